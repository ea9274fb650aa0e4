"""Messages, calls and results, both ways.

Results are in user messages on this wire, before anything else the user says. In the intermediate format they are
separate messages, so one wire message may be two of ours; encoding joins them again, unless a note says that they
were separate.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import UNSET, Raw

from dragoman.codecs.arguments import EMPTY_OBJECT, arguments_as_object, report_unparsed, unwrap_arguments
from dragoman.codecs.bedrock_converse import foreign_signatures
from dragoman.codecs.bedrock_converse.caching import mark_node
from dragoman.codecs.bedrock_converse.hosted_tools import HOSTED
from dragoman.codecs.bedrock_converse.parts import (
    PartEncoder,
    decode_part,
    decode_result_part,
    is_plain_text,
    kind_of,
    whole,
)
from dragoman.codecs.bedrock_converse.profile import FAMILY
from dragoman.codecs.bedrock_converse.wire import (
    Block,
    MessageWire,
    ReasoningContent,
    ReasoningText,
    ToolResultWire,
    ToolUse,
)
from dragoman.codecs.block_encoder import with_keys
from dragoman.codecs.common_losses import NOT_SENT
from dragoman.codecs.ids import is_invented
from dragoman.codecs.reading import WireValue, restore, spliced
from dragoman.codecs.signature_blocks import beside_calls
from dragoman.errors import DecodeError
from dragoman.ir import (
    AnyPart,
    Document,
    Message,
    Metadata,
    ServerToolCall,
    ServerToolResult,
    Signature,
    Text,
    ToolCall,
    ToolResult,
)
from dragoman.ir.notes import MODELLED, WITHIN, Extra, family_notes, inner_extra
from dragoman.ir.traits import BLANK_TEXT, EMPTY_MESSAGE, TraitNotes
from dragoman.ir.values import compact_text, encode_json, parse_json, to_raw

TYPED: Metadata = {FAMILY: {MODELLED + "type": Raw(b'"tool_use"')}}
"""On a call of a newer model, which repeats in each call what its key already says."""
SUCCESS: Metadata = {FAMILY: {"~status": Raw(b'"success"')}}
APART: Extra = {"~turn": Raw(b'"own"')}
INLINE: Extra = {"~inline": Raw(b"true")}
EMPTY: Extra = {"~content": Raw(b'"empty"')}
RESULTS_ARE_IN = "[The results have arrived.]"
SEE_DOCUMENT = "[The document is attached.]"
SERVER_CALL = "server_tool_use"
_BLOCK = "block"
_NO_NOTES: Extra = {}
_NULL = Raw(b"null")
_NOTHING = frozenset({b"", b"null"})

# ── decoding ──────────────────────────────────────────────────────────────────────────────────────────────────


class MessageDecoder(TraitNotes):
    """Decodes the messages of one request, in order: results take their names from the calls before them.

    Records the traits of the conversation while reading.
    """

    server_names: dict[str, str]
    messages: list[Message]

    def __init__(self) -> None:
        super().__init__()
        self.server_names = {}
        self.messages = []

    def decode_system(self, system: list[Block]) -> None:
        """Decode the `system` field, which comes before all messages."""
        self.messages.append(Message("system", self.decode_content(system, "system")))

    def decode(self, wires: Iterable[MessageWire]) -> None:
        messages = self.messages
        after_results = False
        for index, wire in enumerate(wires):
            role = wire.role
            if role == "assistant":
                after_results = False
                if wire.extra is UNSET and wire.content:
                    self.turn("assistant")
                    messages.append(Message("assistant", self.decode_content(wire.content, "assistant")))
                else:
                    messages.append(self._decode_message(wire, "assistant", {}))
            elif role == "user":
                content = wire.content
                if (
                    not after_results
                    and content
                    and len(content) == 1
                    and wire.extra is UNSET
                    and is_plain_text(content[0])
                ):
                    text: str = content[0].text  # type: ignore[assignment]
                    self.user_text(text)
                    messages.append(Message("user", text))
                else:
                    after_results = self._decode_user(wire, apart=after_results)
            elif role == "system":
                after_results = False
                messages.append(self._decode_message(wire, "system", INLINE))
            else:
                path, expected = f"$.messages[{index}].role", "user, assistant or system"
                raise DecodeError(path=path, expected=expected, got=repr(role), source="bedrock-converse")

    def _decode_message(self, wire: MessageWire, role: Any, noted: Extra) -> Message:
        content, notes = wire.content, noted
        self.turn(role)
        if wire.extra is not UNSET:
            notes = {**notes, **wire.extra}
        if not content:
            notes = {**notes, **({"~content": Raw(b'"absent"')} if content is UNSET else EMPTY)}
            self.bits |= EMPTY_MESSAGE
        parts = self.decode_content(content, role) if content else ()
        return Message(role, parts, None, self.keep_notes(FAMILY, notes))

    def decode_content(self, blocks: Sequence[Block], role: str) -> str | tuple[AnyPart, ...]:
        """Decode the content of a message without results, whose turn has begun."""
        if len(blocks) == 1 and is_plain_text(blocks[0]):
            text: str = blocks[0].text  # type: ignore[assignment]
            self.text(text)
            return text
        parts = decode_blocks(blocks, self, self.server_names, role)
        self._note_parts(parts)
        return tuple(parts)

    def _note_parts(self, parts: Iterable[AnyPart]) -> None:
        """Record the traits of the parts; those of calls were recorded when the calls were read."""
        for part in parts:
            if type(part) is Text and part.metadata is None and not part.citations:
                if not part.text or part.text.isspace():
                    self.bits |= BLANK_TEXT
            elif type(part) is not ToolCall or not (part.metadata is None or part.metadata is TYPED):
                self.part(part)

    def _decode_user(self, wire: MessageWire, *, apart: bool) -> bool:
        """Add one or two messages; return whether results end the turn: a user message after it is noted as apart."""
        content = wire.content or ()
        notes = APART if apart else {}
        if not [block for block in content if block.tool_result is not UNSET]:
            if content and not apart and wire.extra is UNSET:
                self.turn("user")
                self.messages.append(Message("user", self.decode_content(content, "user")))
            else:
                self.messages.append(self._decode_message(wire, "user", notes))
            return False
        parts = decode_blocks(content, self, self.server_names, "user")
        results = tuple([part for part in parts if type(part) is ToolResult])
        others = tuple([part for part in parts if type(part) is not ToolResult])
        if wire.extra is not UNSET:
            notes = {**notes, **wire.extra}
        if not results:
            self.turn("user")
            self._note_parts(others)
            self.messages.append(Message("user", others, None, self.keep_notes(FAMILY, notes)))
            return False
        if others and not all(type(part) is ToolResult for part in parts[: len(results)]):
            notes = {**notes, "~order": Raw(encode_json([type(part) is ToolResult for part in parts]))}
        for result in results:
            self._note_result(result)
        self.messages.append(Message("tool", results, None, self.keep_notes(FAMILY, notes)))
        if others:
            self.turn("user")
            self._note_parts(others)
            self.messages.append(Message("user", others))
        return not others

    def _note_result(self, result: ToolResult) -> None:
        self.result(result.tool_call_id, result.name)
        metadata = result.metadata
        if metadata is not None and metadata is not SUCCESS:
            self.metadata(metadata)
        for piece in result.parts:
            inner = getattr(piece, "metadata", None)
            if inner is not None:
                self.metadata(inner)
            for citation in piece.citations if type(piece) is Text else ():
                if citation.metadata is not None:
                    self.metadata(citation.metadata)


def decode_blocks(blocks: Sequence[Block], notes: TraitNotes, server_names: dict[str, str], role: str) -> list[AnyPart]:
    """Decode the parts of one message. Records the names of calls and server calls, which results then take."""
    parts: list[AnyPart] = []
    waiting: Block | None = None  # carries the signature of the next part
    for block in beside_calls(blocks, _tag_of, _call_id_of, _retag):
        part: AnyPart
        if is_plain_text(block):
            part = Text(block.text)  # type: ignore[arg-type]
        elif block.tool_use is not UNSET or block.tool_result is not UNSET:
            part = _decode_call_or_result(block, notes, server_names, role)
        elif block.cache_point is not UNSET and kind_of(block) == "cache_point" and block.extra is UNSET:
            before = mark_node(parts[-1], block.cache_point) if parts and waiting is None else None
            if before is not None:
                parts[-1] = before
                continue
            part = whole(block)
        elif (carrier := _carrier(block)) is not None:
            if isinstance(carrier, Signature):
                if waiting is not None:
                    parts.append(decode_part(waiting))
                waiting = block
                continue
            if carrier is _BEHIND and waiting is None and _sign_last(block, parts):
                continue
            part = decode_part(block) if isinstance(carrier, str) else carrier
        else:
            part = decode_part(block)
        if waiting is not None:
            part = _sign(waiting, part, parts)
            waiting = None
        parts.append(part)
    if waiting is not None:
        parts.append(decode_part(waiting))
    return parts


def _tag_of(block: Block) -> str | None:
    content = block.reasoning_content
    wire = UNSET if content is UNSET else content.reasoning_text
    return str(wire.signature) if wire is not UNSET and foreign_signatures.is_carrier(wire) else None


def _call_id_of(block: Block) -> str | None:
    return None if block.tool_use is UNSET else block.tool_use.tool_use_id


def _retag(carrier: Block, tag: str) -> Block:  # noqa: ARG001 - its text is always empty
    return Block(reasoning_content=ReasoningContent(ReasoningText("", tag)))


_BEHIND = "behind"


def _carrier(block: Block) -> AnyPart | Signature | str | None:
    """Return what a tagged block carries; None for a block that is not one of ours."""
    content = block.reasoning_content
    if content is UNSET or content.extra is not UNSET or content.reasoning_text is UNSET or block.extra is not UNSET:
        return None
    wire = content.reasoning_text
    if not foreign_signatures.is_carrier(wire) or content.redacted_content is not UNSET:
        return None
    return foreign_signatures.read_tagged(wire) or _BEHIND


def _sign(carrier: Block, part: AnyPart, parts: list[AnyPart]) -> AnyPart:
    """Return the part with the signature that came before it; if it cannot have one, add that block as a part."""
    signature = _carrier(carrier)
    tag = _tag_of(carrier) or ""
    signed = foreign_signatures.signed(part, signature, tag) if isinstance(signature, Signature) else None
    if signed is None:
        parts.append(decode_part(carrier))
        return part
    return signed


def _sign_last(carrier: Block, parts: list[AnyPart]) -> bool:
    """Give the last part the signature in a block that follows it; return whether it is that part's."""
    wire = carrier.reasoning_content.reasoning_text  # type: ignore[union-attr]
    tag = _tag_of(carrier) or ""
    return foreign_signatures.sign_last(parts, foreign_signatures.read_trailing(wire), tag)  # type: ignore[arg-type]


def _decode_call_or_result(block: Block, notes: TraitNotes, server_names: dict[str, str], role: str) -> AnyPart:
    call, result = block.tool_use, block.tool_result
    if call is not UNSET and block == Block(UNSET, call):
        kind = "tool_use"
    else:
        kind = "tool_result" if block == Block(UNSET, UNSET, result) else kind_of(block)
    if kind == "tool_use" and call is not UNSET and role == "assistant":
        if call.type == SERVER_CALL:
            server_names[call.tool_use_id] = call.name
            return _decode_hosted(ServerToolCall, call.tool_use_id, call.name, restore(block))
        notes.call(call.tool_use_id, call.name)
        return _decode_call(call, block.extra or {})
    if kind == "tool_result" and result is not UNSET and role != "system":
        name = notes.call_names.get(result.tool_use_id) or server_names.get(result.tool_use_id, "")
        if role == "user":
            return _decode_result(result, name, block.extra or {})
        # The results of what the provider ran itself are within the assistant's turn.
        return _decode_hosted(ServerToolResult, result.tool_use_id, name, restore(block))
    # A call or result where the API takes none; kept whole, for the API itself to refuse.
    return whole(block)


def _decode_hosted(kind: type[ServerToolCall | ServerToolResult], call_id: str, name: str, block: Raw) -> AnyPart:
    shown = parse_json(block)
    fields: dict[str, Any] = HOSTED.read_call(shown) if kind is ServerToolCall else HOSTED.read_result(shown)
    return kind(call_id, name, FAMILY, block, **fields)


def _decode_call(wire: ToolUse, beside: Extra) -> ToolCall:
    exact, call_id, kind = wire.input, wire.tool_use_id, wire.type
    data = b"" if exact is UNSET else bytes(exact)
    odd = exact is UNSET or data[:1] != b"{"
    arguments: Any = exact
    text = None
    if odd:
        # `input` is an object by the specification; anything else but null is kept as text, and is not run.
        arguments, text = (EMPTY_OBJECT, None) if data in _NOTHING else (UNSET, data.decode())
    elif data.startswith(b'{"unparsed'):
        arguments, text = unwrap_arguments(exact)  # type: ignore[arg-type]
    metadata = None
    if odd or beside or wire.extra is not UNSET or kind not in (UNSET, "tool_use"):
        notes: Extra = {} if wire.extra is UNSET else dict(wire.extra)
        if odd:
            notes["~input"] = Raw(b'"absent"') if exact is UNSET else exact
        if beside:
            notes[WITHIN + _BLOCK] = Raw(encode_json(beside))
        if kind is not UNSET:
            notes[MODELLED + "type" if kind == "tool_use" else "type"] = Raw(encode_json(kind))
        metadata = {FAMILY: notes}
    elif kind is not UNSET:
        metadata = TYPED
    return ToolCall(call_id, wire.name, arguments, text, invented_id=is_invented(call_id), metadata=metadata)


def _decode_result(wire: ToolResultWire, name: str, beside: Extra) -> ToolResult:
    content, call_id, status = wire.content, wire.tool_use_id, wire.status
    plain = wire.extra is UNSET and wire.type is UNSET and not beside and content is not UNSET and len(content) == 1
    if plain and status in (UNSET, "success", "error") and is_plain_text(content[0]):  # type: ignore[index]
        text = content[0].text  # type: ignore[index]
        kind: Any = "error" if status == "error" else "text"
        return ToolResult(call_id, name, kind, text, metadata=SUCCESS if status == "success" else None)
    notes: Extra = {} if wire.extra is UNSET else dict(wire.extra)
    if beside:
        notes[WITHIN + _BLOCK] = Raw(encode_json(beside))
    if wire.type is not UNSET:
        notes["type"] = Raw(encode_json(wire.type))
    if status not in (UNSET, "error"):
        notes["~status" if status == "success" else "status"] = Raw(encode_json(status))
    kind, value, parts = _decode_content(content or [], notes)
    if not content:
        notes.update({"~content": Raw(b'"absent"')} if content is UNSET else EMPTY)
    kind = "error" if status == "error" else kind
    return ToolResult(call_id, name, kind, value, parts, None, {FAMILY: notes} if notes else None)


def _decode_content(content: list[Block], notes: Extra) -> tuple[Any, Any, Any]:
    """Return kind, value and parts of a result."""
    if not content:
        return "text", "", ()
    if len(content) == 1:
        block = content[0]
        if is_plain_text(block):
            return "text", block.text, ()
        if block.json is not UNSET and kind_of(block) == "json" and block.extra is UNSET:
            if bytes(block.json)[:1] != b"{":
                # Not legal here, but it occurs.
                notes["~json"] = Raw(b"true")
            return "data", block.json, ()
    return "multimodal", None, tuple([decode_result_part(block) for block in content])


# ── encoding ──────────────────────────────────────────────────────────────────────────────────────────────────


class MessageEncoder(PartEncoder):
    """Encodes the messages of one request, or the one message of an answer."""

    def encode(self, messages: Sequence[Message]) -> list[WireValue]:
        wires: list[WireValue] = []
        noted: list[tuple[int, Extra]] = []
        turn: list[WireValue] | None = None  # results, while more of the same turn may follow
        place = 0
        while place < len(messages):
            message = messages[place]
            place += 1
            role, metadata = message.role, message.metadata
            content = message.content_held
            is_bare = turn is None and metadata is None
            if is_bare and type(content) is str and role != "system":
                wires.append(MessageWire(role, [Block(content)]))
                continue
            notes: Extra = _NO_NOTES if metadata is None else metadata.get(FAMILY, _NO_NOTES)
            joined = turn is not None and "~turn" not in notes
            before = len(wires)
            if self._media_met is not None:
                self._media_met.next_message()
            if role == "tool" and "~order" in notes and place < len(messages) and messages[place].role == "user":
                wires.append(self._encode_ordered(message, messages[place]))
                place, turn = place + 1, None
            elif role == "tool":
                blocks = self._results(message)
                if joined and turn is not None:
                    turn += blocks
                else:
                    turn = blocks
                    wires.append(MessageWire("user", turn))
            elif role == "user" and joined and turn is not None and self._may_join(message, wires):
                self._join_user(message, turn)
                turn = None
            else:
                self._encode_message(message, wires, notes)
                turn = turn if len(wires) == before else None  # nothing of it is sent: the turn continues
            if notes and len(wires) > before:
                noted.append((len(wires) - 1, notes))
            elif notes:
                self._lose_keys(message, notes)
        for index, notes in noted:
            wires[index] = with_keys(wires[index], notes)
        return wires

    def _results(self, message: Message) -> list[WireValue]:
        blocks: list[WireValue] = []
        for part in message.parts:
            if type(part) is ToolResult and part.cache is None and not part.parts:
                blocks.append(self.encode_result(part))
            else:  # parts of a result may have marks too, which this API does not take
                blocks += self.with_point(part, [self.encode_result(part)])  # type: ignore[arg-type]
        return blocks

    def _encode_ordered(self, results: Message, others: Message) -> MessageWire:
        """Encode results and other blocks of one turn, in their original order."""
        order: list[bool] = parse_json(family_notes(FAMILY, results.metadata)["~order"])
        answered = [self.with_point(part, [self.encode_result(part)]) for part in results.parts]  # type: ignore[arg-type]
        encoded = [self.encode_blocks((part,), "user") for part in others.parts]
        if sum(order) != len(answered) or len(order) != len(answered) + len(encoded):
            order = [True] * len(answered) + [False] * len(encoded)
        left, right = iter(answered), iter(encoded)
        return MessageWire("user", [block for is_result in order for block in next(left if is_result else right)])

    def _may_join(self, message: Message, wires: list[WireValue]) -> bool:
        """Whether the message may join the results before it; if not, add an assistant turn between them.

        Llama and Mistral refuse anything beside results, and consecutive turns of one role are merged.
        """
        if self._native or not self._limits.results_alone:
            return True
        self._log.invent(message, "", "an assistant turn before it", "this model takes results in a turn of their own")
        wires.append(MessageWire("assistant", [Block(RESULTS_ARE_IN)]))
        return False

    def _join_user(self, message: Message, turn: list[WireValue]) -> None:
        """Add what the user says after results. Claude refuses documents there, but takes them within a result."""
        content = message.content_held
        if isinstance(content, str):
            turn.append(Block(content))
            return
        for part in content:
            blocks = self.encode_blocks((part,), "user")
            alone = self._native or self._limits.documents_beside_results or not isinstance(part, Document)
            place = None if alone or not blocks else _last_content(turn)
            if place is None:
                turn += blocks
            else:
                place.append(blocks[0])
                self._log.degrade(part, "", "document beside results", "it moves into the last of them")
        if not self._native:
            self._explain_documents(message, turn)

    def _encode_message(self, message: Message, wires: list[WireValue], notes: Extra) -> None:
        role, content = message.role, message.content_held
        if isinstance(content, str) and role != "system":
            wires.append(MessageWire(role, [Block(content)]))
            return
        if role == "system" and "~inline" not in notes:
            self._hoist(message)
            return
        blocks = [Block(content)] if isinstance(content, str) else self.encode_blocks(content, role)
        if not blocks:
            if "~content" in notes:
                absent = parse_json(notes["~content"]) == "absent"
                wires.append(MessageWire(role, UNSET if absent else []))
                return
            if not self._lose_message(message):
                return
            blocks.append(Block(NOT_SENT))
        elif role == "user" and not self._native:
            self._explain_documents(message, blocks)
        wires.append(MessageWire(role, blocks))

    def _explain_documents(self, message: Message, blocks: list[WireValue]) -> None:
        """Add a text to a message with a document, which this API requires."""
        has_document = False
        for block in blocks:
            if type(block) is Block:
                if block.text is not UNSET:
                    return
                has_document = has_document or block.document is not UNSET
        if has_document:
            self._log.invent(message, "", "a text beside the document", "this API requires one in the same message")
            blocks.append(Block(SEE_DOCUMENT))

    def encode_blocks(self, parts: Iterable[AnyPart], role: str) -> list[WireValue]:
        blocks: list[WireValue] = []
        called = crossed = False
        for part in parts:
            if type(part) is Text:
                crossed = crossed or called
                if part.metadata is None and part.cache is None and part.signature is None and not part.citations:
                    blocks.append(Block(part.text))
                    continue
            elif type(part) is ToolCall and role == "assistant":
                called = True
                arguments = part.arguments_held
                if part.metadata is None and part.signature is None and part.cache is None and type(arguments) is Raw:
                    blocks.append(Block(UNSET, ToolUse(part.id, part.name, arguments)))
                else:
                    wires = self._encode_call(part)
                    blocks += wires if part.cache is None else self.with_point(part, wires)
                continue
            written = self.encode_part(part, role)
            crossed = crossed or (called and any(map(_is_text, written)))
            blocks += written
        if crossed and not self._native and not self._to_client:
            return self._calls_last(parts, blocks)
        return blocks

    def _calls_last(self, parts: Iterable[AnyPart], blocks: list[WireValue]) -> list[WireValue]:
        """Move the calls to the end: Claude refuses text between a call and its result.

        A cache point stays after what it caches.
        """
        for part in parts:
            if isinstance(part, ToolCall):
                self._log.degrade(part, "", "place among the other parts", "calls must end a turn of this API")
        groups: list[list[WireValue]] = []
        for block in blocks:
            if groups and isinstance(block, Block) and block.cache_point is not UNSET:
                groups[-1].append(block)
            else:
                groups.append([block])
        return [block for group in sorted(groups, key=_is_call) for block in group]

    def _encode_call(self, call: ToolCall) -> list[WireValue]:
        exact_arguments, notes = call.arguments_held, family_notes(FAMILY, call.metadata)
        arguments: Any = arguments_as_object(call)
        if exact_arguments is UNSET and not self._native:
            report_unparsed(call, self._log)
        if "~input" in notes:
            spelled = notes["~input"]
            arguments = spelled if exact_arguments is UNSET or spelled == _NULL else UNSET
        wire: Any = ToolUse(call.id, call.name, arguments)
        wire = spliced(wire, notes) if notes else wire
        block = Block(UNSET, wire)
        inner = inner_extra(notes, _BLOCK) if notes else None
        return self.with_carrier(call, block if inner is None else spliced(block, inner))

    # ── results ──

    def encode_result(self, result: ToolResult) -> WireValue:
        if result.metadata is None and result.kind == "text":
            value = result.value_held
            if type(value) is str and value and not value.isspace():
                return Block(UNSET, UNSET, ToolResultWire(result.tool_call_id, [Block(value)]))
        notes = family_notes(FAMILY, result.metadata)
        content: Any = self._result_content(result, notes)
        if not content and "~content" in notes:
            content = UNSET if parse_json(notes["~content"]) == "absent" else []
        elif not content and result.is_error and not self._native:
            self._log.invent(result, "value", "text of the error", "an error without text is refused")
            content = [Block("unknown error")]
        wire: Any = ToolResultWire(result.tool_call_id, content, self._status(result, notes))
        wire = spliced(wire, notes) if notes else wire
        block = Block(UNSET, UNSET, wire)
        inner = inner_extra(notes, _BLOCK) if notes else None
        return block if inner is None else spliced(block, inner)

    def _status(self, result: ToolResult, notes: Extra) -> WireValue:
        if not result.is_error:
            return "success" if "~status" in notes else UNSET
        if self._limits.status or self._native:
            return "error"
        self._log.degrade(result, "kind", "error of a tool", "this model takes no status: only its text says so")
        return UNSET

    def _result_content(self, result: ToolResult, notes: Extra) -> list[WireValue]:
        if result.parts or result.kind == "multimodal":
            blocks: list[WireValue] = []
            for part in result.parts:
                if type(part) is Text and not part.text.strip() and not self._native:
                    continue  # «The text field in the ContentBlock object is blank.»
                blocks += self.encode_part(part, "tool result")
            return blocks
        exact_value: Any = result.value_held
        if result.kind != "text" and not isinstance(exact_value, str):
            raw = to_raw(exact_value)
            # «Provide a json object for the field and try again»: anything else is sent as its JSON text.
            if bytes(raw)[:1] == b"{" or (self._native and "~json" in notes):
                return [Block(json=raw)]
        value = (
            parse_json(exact_value)
            if type(exact_value) is Raw and bytes(memoryview(exact_value)[:1]) == b'"'
            else exact_value
        )
        if not isinstance(value, str) or result.kind == "data":
            if result.kind != "data" and bytes(to_raw(exact_value)) == b"null":
                return []  # empty, rather than the word «null»
            return [Block(compact_text(exact_value))]
        if value.strip() or (self._native and "~content" not in notes):
            return [Block(value)]
        if value:
            self._log.drop(result, "value", "blank text", "this API refuses text that is only white space")
        return []


def _is_text(block: WireValue) -> bool:
    """Whether the block is text, including text that replaces something else, such as another provider's call."""
    return isinstance(block, Block) and block.text is not UNSET


def _is_call(group: list[WireValue]) -> bool:
    block = group[0]
    return isinstance(block, Block) and block.tool_use is not UNSET


def _last_content(turn: list[WireValue]) -> list[WireValue] | None:
    """Return the content of the last result of a turn."""
    for block in reversed(turn):
        result = block.tool_result if isinstance(block, Block) else UNSET
        if isinstance(result, ToolResultWire) and isinstance(result.content, list):
            return result.content
    return None
