"""Messages, calls and results, both ways.

On this wire, results are in user messages, before the user's other content. In the intermediate format they are
separate messages, so one wire message may become two; encoding joins them again, unless a note says that they were
apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import UNSET, Raw, UnsetType
from msgspec.structs import replace

from dragoman.codecs.anthropic_messages import foreign_signatures
from dragoman.codecs.anthropic_messages.caching import FAMILY, NULL, decode_mark
from dragoman.codecs.anthropic_messages.parts import PartEncoder, decode_part
from dragoman.codecs.anthropic_messages.profile import PROFILE
from dragoman.codecs.anthropic_messages.wire import (
    Block,
    MessageWire,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from dragoman.codecs.arguments import EMPTY_OBJECT, arguments_as_object, report_unparsed, unwrap_arguments
from dragoman.codecs.block_encoder import with_keys
from dragoman.codecs.claude_tools import TOOLSET, member_name, qualified_name
from dragoman.codecs.common_losses import NOT_SENT
from dragoman.codecs.ids import is_invented
from dragoman.codecs.reading import WireValue, restore, spliced
from dragoman.codecs.result_errors import states_success
from dragoman.codecs.search_results import search_as_text
from dragoman.codecs.settings import collect_keys
from dragoman.codecs.signature_blocks import beside_calls
from dragoman.codecs.wire_values import Unmodelled
from dragoman.errors import DecodeError
from dragoman.ir import (
    AnyPart,
    Cache,
    Message,
    Metadata,
    Opaque,
    SearchResult,
    ServerToolCall,
    ServerToolResult,
    Signature,
    Text,
    ToolCall,
    ToolResult,
)
from dragoman.ir.notes import MODELLED, Extra, family_notes
from dragoman.ir.traits import BLANK_TEXT, EMPTY_MESSAGE, TraitNotes
from dragoman.ir.values import compact_text, encode_json, parse_json, to_raw

DIRECT_CALLER = b'{"type":"direct"}'
DIRECT: Metadata = {FAMILY: {MODELLED + "caller": Raw(DIRECT_CALLER)}}
"""On a call of a newer model: the model made it directly, as every call in other formats."""

NOT_AN_ERROR: Metadata = {FAMILY: {"~is_error": Raw(b"false")}}
APART: Extra = {"~turn": Raw(b'"own"')}
INLINE: Extra = {"~inline": Raw(b"true")}
EMPTY: Extra = {"~content": Raw(b'"empty"')}

# ── decoding ──────────────────────────────────────────────────────────────────────────────────────────────────


class MessageDecoder(TraitNotes):
    """Decodes the messages of one request, in order: results take their names from the calls before them.

    Notes the traits of the conversation as it reads.
    """

    server_names: dict[str, str]
    messages: list[Message]

    def __init__(self) -> None:
        super().__init__()
        self.server_names = {}
        self.messages = []

    def decode_system(self, system: str | list[TextBlock | Unmodelled]) -> None:
        """Decode the `system` field, which comes before all messages."""
        if isinstance(system, str):
            self.text(system)
            self.messages.append(Message("system", system))
            return
        self.messages.append(Message("system", tuple(self._decode_blocks(system, "system"))))

    def decode(self, wires: Iterable[MessageWire]) -> None:
        messages = self.messages
        after_results = False
        for index, wire in enumerate(wires):
            role, content = wire.role, wire.content
            if role == "assistant":
                after_results = False
                if not content or not wire.extra is wire.output_config is UNSET:
                    messages.append(self._decode_plain(wire, "assistant", {}))
                    continue
                self.turn("assistant")
                if type(content) is str:
                    self.text(content)
                    messages.append(Message("assistant", content))
                else:
                    messages.append(Message("assistant", tuple(self._decode_blocks(content, "assistant"))))  # type: ignore[arg-type]
            elif role == "user":
                if type(content) is str and wire.extra is wire.output_config is UNSET and not after_results:
                    self.user_text(content)
                    messages.append(Message("user", content))
                else:
                    after_results = self._decode_user(wire, apart=after_results)
            elif role == "system":
                after_results = False
                messages.append(self._decode_plain(wire, "system", INLINE))
            else:
                expected = "user, assistant or system"
                path = f"$.messages[{index}].role"
                raise DecodeError(path=path, expected=expected, got=repr(role), source="anthropic-messages")

    def _decode_blocks(self, blocks: Sequence[Block], role: str) -> list[AnyPart]:
        return decode_blocks(blocks, self, self.server_names, may_call=role == "assistant")

    def _decode_plain(self, wire: MessageWire, role: Any, noted: Extra) -> Message:
        content, notes = wire.content, noted
        self.turn(role)
        keys = _message_keys(wire)
        if keys is not None:
            notes = {**notes, **keys}
        parts: Any = content
        if isinstance(content, list):
            parts = tuple(self._decode_blocks(content, role))
            if not content:
                notes = {**notes, **EMPTY}
        elif content is UNSET:
            parts, notes = (), {**notes, "~content": Raw(b'"absent"')}
        else:
            self.text(content)
        if not parts and not isinstance(parts, str):
            self.bits |= EMPTY_MESSAGE
        return Message(role, parts, None, self.keep_notes(FAMILY, notes))

    def _decode_user(self, wire: MessageWire, *, apart: bool) -> bool:
        """Add one or two messages; return whether results end the turn: a user message after it is noted as apart."""
        content: Any = wire.content
        notes = APART if apart else {}
        results: list[ToolResultBlock] = []
        if type(content) is list:
            results = [block for block in content if type(block) is ToolResultBlock]
        if not results:
            if content and type(content) is list and not apart and wire.extra is wire.output_config is UNSET:
                self.turn("user")
                self.messages.append(Message("user", tuple(self._decode_blocks(content, "user"))))
            else:
                self.messages.append(self._decode_plain(wire, "user", notes))
            return False
        keys = _message_keys(wire)
        if keys is not None:
            notes = {**notes, **keys}
        others: list[Block] = [block for block in content if type(block) is not ToolResultBlock]
        parts: tuple[AnyPart, ...] = tuple([self.decode_result(block) for block in results])
        if others and any(type(block) is not ToolResultBlock for block in content[: len(results)]):
            notes = {**notes, "~order": Raw(encode_json([type(block) is ToolResultBlock for block in content]))}
        self.messages.append(Message("tool", parts, None, self.keep_notes(FAMILY, notes)))
        if others:
            self.turn("user")
            self.messages.append(Message("user", tuple(self._decode_blocks(others, "user"))))
        return not others

    def decode_result(self, wire: ToolResultBlock) -> ToolResult:
        content, call_id = wire.content, wire.tool_use_id
        name = self.call_names.get(call_id) or self.server_names.get(call_id, "")
        self.result(call_id, name)
        if wire.extra is wire.cache_control is wire.toolset_name is UNSET and type(content) is str and content:
            if wire.is_error is UNSET:
                return ToolResult(call_id, name, "text", content)
            if wire.is_error:
                return ToolResult(call_id, name, "error", content)
            return ToolResult(call_id, name, "text", content, metadata=NOT_AN_ERROR)
        notes: Extra = _result_keys(wire) or {}
        if wire.toolset_name is not UNSET:
            notes[TOOLSET] = wire.toolset_name
        cache = decode_mark(wire.cache_control, notes)
        if wire.is_error is False:
            notes.update(NOT_AN_ERROR[FAMILY])
        if content in ("", []):
            notes.update(EMPTY)
        parts: Any = tuple([decode_part(block) for block in content]) if isinstance(content, list) else ()
        for piece in parts:
            if piece_metadata := getattr(piece, "metadata", None):
                self.metadata(piece_metadata)
        kind: Any = "error" if wire.is_error is True else "multimodal" if isinstance(content, list) else "text"
        value = content if isinstance(content, str) else None if isinstance(content, list) else ""
        return ToolResult(call_id, name, kind, value, parts, cache, self.keep_notes(FAMILY, notes))


_message_keys = collect_keys(MessageWire, ("output_config",))
_result_keys = collect_keys(ToolResultBlock, ())


def decode_blocks(
    blocks: Sequence[Any], notes: TraitNotes, server_names: dict[str, str], *, may_call: bool = True
) -> list[AnyPart]:
    """Decode the parts of one message; `server_names` collects call names, which results of server calls need."""
    parts: list[AnyPart] = []
    carrier: ThinkingBlock | None = None  # carries the signature of the next part
    for block in beside_calls(blocks, _tag_of, _call_id_of, _retag):
        part: AnyPart
        kind = type(block)
        if kind is TextBlock and block.citations is block.cache_control is block.extra is UNSET:
            part = Text(block.text)
            if not block.text or block.text.isspace():
                notes.bits |= BLANK_TEXT
        elif kind is ToolUseBlock and may_call:
            part = decode_call(block)
            notes.call(part.id, part.name)
            if part.metadata is not None and part.metadata is not DIRECT:
                notes.metadata(part.metadata)
        elif kind is ThinkingBlock and foreign_signatures.is_tagged(block.signature):
            tagged = _decode_tagged(block, parts, is_first=carrier is None)
            if tagged is None:
                continue
            if isinstance(tagged, Signature):
                if carrier is not None:
                    parts.append(decode_part(carrier))
                carrier = block
                continue
            part = tagged
        else:
            is_misplaced = kind is ToolUseBlock
            part = _decode_misplaced(block) if is_misplaced else name_server_result(decode_part(block), server_names)
            notes.part(part)
        if carrier is not None:
            part = _sign(carrier, part, parts)
            carrier = None
        parts.append(part)
    if carrier is not None:
        parts.append(decode_part(carrier))
    return parts


def _tag_of(block: Any) -> str | None:
    tagged = type(block) is ThinkingBlock and foreign_signatures.is_tagged(block.signature)
    return str(block.signature) if tagged else None


def _call_id_of(block: Any) -> str | None:
    return block.id if type(block) is ToolUseBlock else None


def _retag(carrier: Any, tag: str) -> Any:
    return replace(carrier, signature=tag)


def _decode_tagged(block: ThinkingBlock, parts: list[AnyPart], *, is_first: bool) -> AnyPart | Signature | None:
    """Decode a tagged block: a part, the signature of the next part, or None if it signed the last part."""
    tagged = foreign_signatures.read_tagged(block)
    if tagged is not None:
        return tagged
    tag = str(block.signature)
    if is_first and foreign_signatures.sign_last(parts, foreign_signatures.read_trailing(block), tag):
        return None
    return decode_part(block)


def _decode_misplaced(block: ToolUseBlock) -> Opaque:
    """Keep a misplaced call unchanged, for the API itself to refuse."""
    return Opaque(FAMILY, "tool_use", restore(block))


def _sign(carrier: ThinkingBlock, part: AnyPart, parts: list[AnyPart]) -> AnyPart:
    """Return the part with the signature that came before it; if it cannot have one, add that block as a part."""
    signature = foreign_signatures.read_tagged(carrier)
    tag = str(carrier.signature)
    signed = foreign_signatures.signed(part, signature, tag) if isinstance(signature, Signature) else None
    if signed is None:
        parts.append(decode_part(carrier))
        return part
    return signed


def name_server_result(part: AnyPart, names: dict[str, str]) -> AnyPart:
    """Name a server result after its call; a server call records its name in `names`."""
    if type(part) is ServerToolCall:
        names[part.id] = part.name
    elif type(part) is ServerToolResult and part.tool_call_id in names:
        return replace(part, name=names[part.tool_call_id])
    return part


def decode_call(wire: ToolUseBlock) -> ToolCall:
    exact, call_id = wire.input, wire.id
    data = b"" if exact is UNSET else bytes(exact)
    if exact is UNSET or data[:1] != b"{":
        return _decode_odd_call(wire)
    arguments, text = unwrap_arguments(exact) if data.startswith(b'{"unparsed') else (exact, None)
    if wire.caller is wire.extra is wire.cache_control is wire.toolset_name is UNSET:
        return ToolCall(call_id, wire.name, arguments, text, invented_id=is_invented(call_id))
    metadata, cache = _decode_further(wire, {})
    name = wire.name if wire.toolset_name is UNSET else qualified_name(wire.name, wire.toolset_name)
    return ToolCall(call_id, name, arguments, text, invented_id=is_invented(call_id), cache=cache, metadata=metadata)


_call_keys = collect_keys(ToolUseBlock, ())


def _decode_further(wire: ToolUseBlock, notes: Extra) -> tuple[Metadata | None, Cache | None]:
    notes.update(_call_keys(wire) or {})
    if wire.toolset_name is not UNSET:
        notes[TOOLSET] = wire.toolset_name
    cache = decode_mark(wire.cache_control, notes)
    if wire.caller is not UNSET:
        if bytes(wire.caller) == DIRECT_CALLER or parse_json(wire.caller) == {"type": "direct"}:
            if not notes:
                return DIRECT, cache
            notes[MODELLED + "caller"] = wire.caller
        else:
            notes["caller"] = wire.caller
    return {FAMILY: notes} if notes else None, cache


def _decode_odd_call(wire: ToolUseBlock) -> ToolCall:
    """Decode a call whose `input` is not an object: missing or null means no arguments.

    Any other value is kept as text, and is not run.
    """
    arguments: Raw | UnsetType = EMPTY_OBJECT
    text, spelled = None, Raw(b'"absent"') if wire.input is UNSET else wire.input
    if wire.input is not UNSET and wire.input != NULL:
        arguments, text = UNSET, bytes(wire.input).decode()
    metadata, cache = _decode_further(wire, {"~input": spelled})
    return ToolCall(
        wire.id, wire.name, arguments, text, invented_id=is_invented(wire.id), cache=cache, metadata=metadata
    )


# ── encoding ──────────────────────────────────────────────────────────────────────────────────────────────────


class MessageEncoder(PartEncoder):
    """Encodes the messages of one request, or the one message of an answer."""

    _noted: tuple[tuple[int, Extra], ...] = ()

    def encode(self, messages: Sequence[Message]) -> list[WireValue]:
        wires: list[WireValue] = []
        turn: list[WireValue] | None = None  # results, while the same turn may continue
        for message in messages:
            metadata = message.metadata
            if metadata is not None:
                turn = self._encode_noted(message, wires, turn)
                continue
            role, content = message.role, message.content_held
            if role == "tool":
                blocks = [self.encode_result(part) for part in content]  # type: ignore[arg-type]
                if turn is None:
                    wires.append(MessageWire("user", blocks))
                    turn = blocks
                else:
                    turn += blocks
                continue
            if turn is not None and role == "user":
                turn += [TextBlock(content)] if type(content) is str else self.encode_blocks(content, "user")  # type: ignore[arg-type]
            elif role == "system":
                self._encode_message(message, wires, None)
            elif type(content) is str:
                wires.append(MessageWire(role, content))
            elif blocks := self.encode_blocks(content, role):  # type: ignore[arg-type]
                wires.append(MessageWire(role, blocks))
            else:
                self._encode_nothing(message, wires, None)
            turn = None
        for index, notes in self._noted:
            wires[index] = _apply_notes(wires[index], notes)
        return wires

    def _encode_noted(
        self, message: Message, wires: list[WireValue], turn: list[WireValue] | None
    ) -> list[WireValue] | None:
        """Encode a message with more than role and content; return the turn that later messages may still join."""
        notes = None if message.metadata is None else message.metadata.get(FAMILY)
        role, content = message.role, message.content_held
        joined = turn is not None and (notes is None or "~turn" not in notes)
        before = len(wires)
        if role == "tool":
            blocks = [self.encode_result(part) for part in content]  # type: ignore[arg-type]
            if joined and turn is not None:
                turn += blocks
                self._lose_keys(message, notes)
                return turn
            wires.append(MessageWire("user", blocks))
            turn = blocks
        elif role == "user" and joined and turn is not None:
            turn += [TextBlock(content)] if isinstance(content, str) else self.encode_blocks(content, "user")
            self._lose_keys(message, notes)
            return None
        else:
            self._encode_message(message, wires, notes)
            turn = None
        if notes and len(wires) > before:
            self._noted = (*self._noted, (before, notes))
        else:
            self._lose_keys(message, notes)
        return turn

    def _encode_message(self, message: Message, wires: list[WireValue], notes: Extra | None) -> None:
        role, content = message.role, message.content_held
        if role == "system" and not self._stands_inline(notes):
            self._hoist(message)
            return
        blocks: Any = content if isinstance(content, str) else self.encode_blocks(content, role)
        if blocks or isinstance(content, str):
            wires.append(MessageWire(role, blocks))
        else:
            self._encode_nothing(message, wires, notes)

    def _encode_nothing(self, message: Message, wires: list[WireValue], notes: Extra | None) -> None:
        """Encode a message without content, or of which nothing can be sent."""
        role = message.role
        if notes is not None and "~content" in notes:
            wires.append(MessageWire(role, [] if parse_json(notes["~content"]) == "empty" else UNSET))
        elif self._lose_message(message):
            wires.append(MessageWire(role, NOT_SENT))

    def _stands_inline(self, notes: Extra | None) -> bool:
        if notes is not None and "~inline" in notes:
            return True
        model = None if self._request is None else self._request.model
        return PROFILE.inline_system_models.search(model or "") is not None

    def encode_blocks(self, parts: Iterable[AnyPart], role: str) -> list[WireValue]:
        blocks: list[WireValue] = []
        called = crossed = False
        for part in parts:
            if type(part) is Text:
                crossed = crossed or called
                plain = part.cache is None and part.signature is None and not part.citations
                if plain and not family_notes(FAMILY, part.metadata):
                    blocks.append(TextBlock(part.text))
                    continue
            elif type(part) is ToolCall and role == "assistant":
                called = True
                arguments = part.arguments_held
                plain = part.signature is None and part.cache is None and type(arguments) is Raw
                if plain and not family_notes(FAMILY, part.metadata):
                    blocks.append(ToolUseBlock(part.id, part.name, arguments))
                else:
                    blocks += self._encode_call(part)
                continue
            written = self.encode_part(part, role)
            crossed = crossed or (called and any(map(_is_text, written)))
            blocks += written
        if crossed and not self._native and not self._to_client:
            return self._calls_last(parts, blocks)
        return blocks

    def _calls_last(self, parts: Iterable[AnyPart], blocks: list[WireValue]) -> list[WireValue]:
        """Move calls to the end: text after one is a 400, «`tool_use` ids were found without `tool_result` blocks»."""
        for part in parts:
            if isinstance(part, ToolCall):
                self._log.degrade(part, "", "place among the other parts", "calls must end a turn of this API")
        return sorted(blocks, key=_is_call)

    def _encode_call(self, call: ToolCall) -> list[WireValue]:
        exact_arguments, notes = call.arguments_held, family_notes(FAMILY, call.metadata)
        arguments: Any = arguments_as_object(call)
        if exact_arguments is UNSET and not self._native:
            report_unparsed(call, self._log)
        if "~input" in notes:
            spelled = notes["~input"]
            arguments = spelled if exact_arguments is UNSET or spelled == NULL else UNSET
        block = ToolUseBlock(call.id, member_name(call.name, notes), arguments, UNSET, self.mark(call))
        return self.with_carrier(call, spliced(block, notes) if notes else block)

    # ── results ──

    def encode_result(self, result: ToolResult) -> WireValue:
        metadata = result.metadata
        if (
            result.kind == "text"
            and result.cache is None
            and (metadata is None or not (FAMILY in metadata or states_success(metadata)))
        ):
            value = result.value_held
            if type(value) is str and value:
                return ToolResultBlock(result.tool_call_id, value)
        notes = family_notes(FAMILY, metadata)
        failed = result.kind == "error"
        content = self._result_content(result, notes)
        if not content and "~content" in notes:
            content = [] if result.kind == "multimodal" or result.value_held is None else ""
        elif not content:
            content = self._nonempty(result) if failed and not self._native else UNSET
        is_error: Any = True if failed else False if states_success(metadata) else UNSET
        block = ToolResultBlock(result.tool_call_id, content, is_error, self.mark(result))
        return spliced(block, notes) if notes else block

    def _result_content(self, result: ToolResult, notes: Extra) -> WireValue:
        if result.parts or result.kind == "multimodal":
            blocks: list[WireValue] = []
            for part in result.parts if self._native else self._separate_searches(result.parts):
                if type(part) is Text and not part.text.strip() and not self._native:
                    continue  # 400: text content blocks must be non-empty
                blocks += self.encode_part(part, "tool result")
            return blocks
        exact_value: Any = result.value_held
        value = (
            parse_json(exact_value)
            if type(exact_value) is Raw and bytes(memoryview(exact_value)[:1]) == b'"'
            else exact_value
        )
        if isinstance(value, str) and result.kind != "data":
            return value
        empty = result.kind == "error" and bytes(to_raw(exact_value)) == b"null"
        return "" if empty or "~content" in notes else compact_text(exact_value)

    def _separate_searches(self, parts: tuple[AnyPart, ...]) -> Iterable[AnyPart]:
        """Return the parts of a result; search results beside anything else as text, because this API refuses both."""
        searches = sum(type(part) is SearchResult for part in parts)
        if not 0 < searches < len(parts):
            return parts
        why = "sent as text: a result of this API holds search results or something else"
        return [search_as_text(part, self._log, why) if type(part) is SearchResult else part for part in parts]

    def _nonempty(self, result: ToolResult) -> str:
        self._log.invent(result, "value", "text of the error", "this API refuses an error without text")
        return "unknown error"


def _is_text(block: WireValue) -> bool:
    """Whether the block is text, including text that replaces something else, such as another provider's call."""
    return isinstance(block, TextBlock)


def _is_call(block: WireValue) -> bool:
    return isinstance(block, ToolUseBlock) or (isinstance(block, Raw) and b'"type":"tool_use"' in bytes(block)[:18])


def _apply_notes(wire: MessageWire, notes: Extra) -> WireValue:
    """Return the message with its further keys, and with results at their original positions."""
    if "~order" in notes:
        order: list[bool] = parse_json(notes["~order"])
        blocks: list[WireValue] = wire.content  # type: ignore[assignment]
        if len(order) == len(blocks):
            results, others = iter(blocks[: sum(order)]), iter(blocks[sum(order) :])
            wire = MessageWire(wire.role, [next(results if is_result else others) for is_result in order])
    return with_keys(wire, notes)
