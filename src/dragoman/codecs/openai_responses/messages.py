"""Messages as sequences of items, both ways; single items are in items.py.

On this wire, one turn of the model is a sequence of items: reasoning, messages, calls. In the intermediate format they
are one assistant message, in the same order. An unusual spelling of a message item is noted on its first part; a text
without such a note continues the item before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from msgspec import UNSET, Raw
from msgspec.structs import replace

from dragoman.codecs.common_losses import NOT_SENT
from dragoman.codecs.openai_client_items import FOUND_TOOLS, WHOLE, decode_client_call, decode_client_result
from dragoman.codecs.openai_responses import foreign_signatures
from dragoman.codecs.openai_responses.items import (
    DEVELOPER,
    EASY,
    EASY_PARTS,
    ID,
    INSTRUCTIONS,
    ITEM,
    SPELLING,
    STATUS,
    TYPED,
    TYPED_PARTS,
    ItemEncoder,
    as_notes,
    decode_call,
    decode_reasoning,
    decode_result,
    message_keys,
    output_keys,
    own_part_notes,
    spelling_of,
)
from dragoman.codecs.openai_responses.parts import (
    CONTENT,
    NOTHING,
    TRUE,
    decode_part,
)
from dragoman.codecs.openai_responses.profile import FAMILY
from dragoman.codecs.openai_responses.server_items import (
    DRAWN,
    decode_other,
    drawing_item,
    encode_pair,
    entries_of,
    is_for_client,
    is_outcome_of,
    is_run_by_server,
    read_head,
    role_of_item,
)
from dragoman.codecs.openai_responses.wire import ContentPart, InputText, Item, ItemHead, OutputText
from dragoman.codecs.reading import WireReader, WireValue, as_json, keep, restore, spliced
from dragoman.codecs.shared_tools import SharedTools, cross_hosted, goes_back
from dragoman.codecs.signature_blocks import beside_calls
from dragoman.codecs.signature_tags import TAG, is_about, is_tagged, make_tag
from dragoman.errors import DecodeError
from dragoman.ir import (
    AnyPart,
    Image,
    Message,
    Metadata,
    Opaque,
    Reasoning,
    Refusal,
    Role,
    ServerToolCall,
    ServerToolResult,
    Signature,
    Text,
    ToolCall,
)
from dragoman.ir.notes import MODELLED, Extra, Spelling, family_notes
from dragoman.ir.traits import BLANK_TEXT, EMPTY_MESSAGE, UNKNOWN_PART, TraitNotes
from dragoman.ir.values import parse_json

_reader = WireReader(Item, "openai-responses")

_SPEECH = (Text, Refusal)
_SPELLED = {
    (untyped, developer): Spelling(
        {FAMILY: ({} if untyped else {"~type": TRUE}) | ({"~role": DEVELOPER} if developer else {})}
    )
    if developer or not untyped
    else None
    for untyped in (True, False)
    for developer in (True, False)
}
"""Metadata of a message, by whether its item has no type and whether its role is `developer`."""
_ROLES: dict[str, Role] = {"user": "user", "system": "system", "developer": "system"}

# ── decoding ──────────────────────────────────────────────────────────────────────────────────────────────────


def read_item(raw: Raw) -> Item | None:
    """Return an item of a kind we model, or None."""
    try:
        head = read_head(raw)
        return _reader.read(raw) if head.type in _HANDLERS and not is_run_by_server(head) else None
    except ValueError:
        return None


def decode_answer(items: Sequence[Item | Raw], seed: str) -> tuple[AnyPart, ...]:
    """Decode the output of a response: all of it is the model's."""
    decoder = MessageDecoder(seed=seed, answering=True)
    decoder.add_items(items)
    return decoder.answer()


class MessageDecoder(TraitNotes):
    """Decodes the items of one request, in order: results take their names from the calls before them.

    Notes the traits of the conversation as it reads (ir/traits.py).
    """

    seed: str
    answering: bool
    _messages: list[Message]
    _turn_parts: list[AnyPart]
    """The model's turn so far."""
    _pending_signature: tuple[Signature, Raw, str] | None = None
    _custom: set[str] | frozenset[str] = frozenset()
    """Ids of the calls of custom tools."""
    _unanswered: list[str] | tuple[()] = ()
    """Ids of the calls that came without one."""
    _server_calls: dict[str, str] | None = None
    added: list[tuple[int, Raw]] | tuple[()] = ()
    """Items that provide tools: their positions and their lists."""

    def __init__(self, seed: str = "", *, answering: bool = False) -> None:
        super().__init__()
        self.seed = seed
        self.answering = answering
        self._messages = []
        self._turn_parts = []

    def finished(self) -> tuple[Message, ...]:
        if self._turn_parts or self._pending_signature is not None:
            self._end_turn()
        return tuple(self._messages)

    def answer(self) -> tuple[AnyPart, ...]:
        if self._pending_signature is not None:
            self._give_up_carrier()
        return tuple(self._turn_parts)

    def parts_of(self, item: Item | Raw, index: int) -> list[AnyPart]:
        """Return the parts of one item of a streamed answer."""
        before = len(self._turn_parts)
        self._add(item, index)
        return self._turn_parts[before:]

    def add_instructions(self, text: str) -> None:
        self.turn("system")
        self.text(text)
        self._messages.append(Message("system", text, None, INSTRUCTIONS))

    def add_text(self, text: str) -> None:
        """Add the input of a request that gives it as a string."""
        self.user_text(text)
        self._messages.append(Message("user", text))

    def add_items(self, items: Sequence[Item | Raw]) -> None:
        handlers = _HANDLERS
        for item in items:
            if type(item) is not Item:
                items = _beside_calls_read(items)
                break
            if item.type == "reasoning":
                items = beside_calls(items, _tag_of, _call_id_of, _retag)
                break
        for index, item in enumerate(items):
            handler = handlers.get(item.type) if type(item) is Item else None  # type: ignore[arg-type]
            if handler is None:
                self._add(item, index)
            else:
                handler(self, item, index)  # type: ignore[arg-type]

    def _add(self, item: Item | Raw, index: int) -> None:
        if type(item) is not Item:
            read = self._read(item, index)  # type: ignore[arg-type]
            if read is None:
                return
            item = read
        kind = item.type
        if kind is UNSET and item.role is not UNSET:
            kind = "message"
        handler = _HANDLERS.get(kind)  # type: ignore[arg-type]
        if handler is None:
            self._add_other(restore(item), index)
        else:
            handler(self, item, index)

    def _read(self, raw: Raw, index: int) -> Item | None:
        """Return an item of a type we model; an item of any other type is added, and None returned."""
        try:
            head = read_head(raw)
            other = head.type not in _HANDLERS and (head.type is not None or head.role is None)
        except ValueError:
            other = False  # the reader reports what is wrong, and where
        if other:
            self._add_other(raw, index)
            return None
        return _reader.read(raw, f"$.{self._where}[{index}]")

    @property
    def _where(self) -> str:
        return "output" if self.answering else "input"

    # ── messages ──

    def _add_message(self, item: Item, index: int) -> None:
        role, content = item.role, item.content
        if role == "assistant" or (self.answering and role is UNSET):
            self._add_assistant(item)
            return
        own_role = _ROLES.get(role)  # type: ignore[arg-type]
        if own_role is None:
            raise self._misfit(index, "role", "user, assistant, system or developer", role)
        if self._turn_parts or self._pending_signature is not None:
            self._end_turn()
        if content is UNSET and (item.extra is UNSET or "content" not in item.extra):
            raise self._misfit(index, "content", "text or a list of parts", content)
        if self.answering:
            self._turn_parts.append(Opaque(FAMILY, "message", restore(item)))
            return
        self.turn(own_role)
        parts: Any = ()
        if type(content) is str:
            parts = content
            if not content or content.isspace():
                self.bits |= BLANK_TEXT
        elif type(content) is list:
            parts = self._decode_parts(content)
        else:
            self.bits |= EMPTY_MESSAGE
        keys = message_keys(item)
        if keys is None and item.id is item.status is UNSET:
            metadata: Metadata | None = _SPELLED[item.type is UNSET, role == "developer"]
        else:
            metadata = {FAMILY: self._message_notes(item, as_notes(keys))}
            self.metadata(metadata)
        self._messages.append(Message(own_role, parts, None, metadata))

    def _decode_parts(self, wires: list[ContentPart]) -> tuple[AnyPart, ...]:
        parts: list[AnyPart] = []
        for wire in wires:
            if type(wire) is InputText and wire.prompt_cache_breakpoint is wire.extra is UNSET:
                text = wire.text
                if not text or text.isspace():
                    self.bits |= BLANK_TEXT
                parts.append(Text(text))
            else:
                part = decode_part(wire)
                self.part(part)
                parts.append(part)
        if not parts:
            self.bits |= EMPTY_MESSAGE
        return tuple(parts)

    def _message_notes(self, item: Item, notes: Extra) -> Extra:
        if item.type is not UNSET:
            notes["~type"] = TRUE
        if item.role == "developer":
            notes["~role"] = DEVELOPER
        if item.id is not UNSET:
            notes[MODELLED + "id"] = as_json(item.id)
        if item.status is not UNSET:
            notes[STATUS] = item.status
        return notes

    def _add_assistant(self, item: Item) -> None:
        content, pending = item.content, self._turn_parts
        notes = self._item_notes(item)
        if type(content) is str and notes is None and item.type is item.id is UNSET:
            if pending and type(pending[-1]) in _SPEECH and not self.answering:
                self._end_turn()
            self._say(Text(content))
            return
        parts: list[AnyPart]
        if type(content) is str:
            parts = [Text(content)]
            spelled = EASY if item.type is UNSET else TYPED
        else:
            parts = [decode_part(part, assistant=True) for part in content] if type(content) is list else []
            spelled = EASY_PARTS if item.type is UNSET else TYPED_PARTS
        first = parts[0] if parts else None
        if type(first) is not Text and type(first) is not Refusal:
            self._say(Opaque(FAMILY, "message", restore(item)))
            return
        notes = notes or {}
        if item.id is not UNSET:
            notes[ID] = as_json(item.id)
        if spelled is not TYPED_PARTS or item.id is UNSET:
            notes[ITEM] = SPELLING[spelled]
        if first.metadata is not None:
            notes = family_notes(FAMILY, first.metadata) | notes
        if type(first) is Text:
            self._say(Text(first.text, first.citations, first.cache, first.signature, {FAMILY: notes}))
        else:
            self._say(Refusal(first.text, {FAMILY: notes}))
        for part in parts[1:]:
            self._say(part)

    def _item_notes(self, item: Item) -> Extra | None:
        """Return notes on a message item of the model: its keys other than content and id."""
        keys = message_keys(item)
        if keys is None and item.status is UNSET:
            return None
        notes: Extra = {}
        if keys is not None:
            if "phase" in keys:
                notes["phase"] = keys.pop("phase")
            if keys:
                notes.update((keep(FAMILY, UNSET, item=as_notes(keys)) or {})[FAMILY])
        if item.status is not UNSET:
            notes["~status"] = item.status
        return notes

    def _say(self, part: AnyPart) -> None:
        """Add a part to the model's turn, with the signature that came before it."""
        if self._pending_signature is not None:
            signature, carrier, kind = self._pending_signature
            is_its = is_about(make_tag(kind, None), part)
            signed_part = foreign_signatures.signed(part, signature, carrier) if is_its else None
            if signed_part is None:
                self._give_up_carrier()
            else:
                self._pending_signature = None
                part = signed_part
        parts = self._turn_parts
        if self.answering:
            parts.append(part)  # passes do not use the traits of an answer
            return
        if not parts:
            self.turn("assistant")
        if type(part) is ToolCall:
            self.call(part.id, part.name)
            if part.metadata is not None:
                self.metadata(part.metadata)
        else:
            self.part(part)
        parts.append(part)

    def _give_up_carrier(self) -> None:
        """Keep a signature without its part in place, as the item it came in."""
        if self._pending_signature is not None:
            carrier, self._pending_signature = self._pending_signature[1], None
            self._say(Opaque(FAMILY, "reasoning", carrier))

    def _end_turn(self) -> None:
        self._give_up_carrier()
        if self._turn_parts and not self.answering:
            self._messages.append(Message("assistant", tuple(self._turn_parts)))
            self._turn_parts = []

    # ── reasoning ──

    def _add_reasoning(self, item: Item, index: int) -> None:  # noqa: ARG002
        carried = foreign_signatures.read_carrier(item)
        if carried is None:
            self._say(decode_reasoning(item))
            return
        kind, signature = carried
        raw = restore(item)
        if foreign_signatures.is_empty_text(kind):
            self._say(Text("", signature=signature, metadata={FAMILY: {foreign_signatures.CARRIER: raw}}))
        elif not foreign_signatures.is_behind(kind):
            self._give_up_carrier()
            self._pending_signature = (signature, raw, kind)
        else:
            last = self._turn_parts[-1] if self._turn_parts else Opaque(FAMILY, "", {})
            if not is_about(make_tag(kind, None), last):
                last = Opaque(FAMILY, "", {})
            again = foreign_signatures.signed(last, signature, raw, foreign_signatures.CARRIER_BEHIND)
            if again is None:
                self._say(Opaque(FAMILY, "reasoning", raw))
            else:
                self._turn_parts[-1] = again

    # ── calls ──

    def _add_call(self, item: Item, index: int) -> None:
        if is_run_by_server(item):
            self._add_other(restore(item), index)
            return
        call = decode_call(item, f"{self.seed} {index}" if self.answering else index)
        if not item.call_id:
            if not self._unanswered:
                self._unanswered = []
            self._unanswered.append(call.id)
        if call.custom:
            if type(self._custom) is not set:
                self._custom = set()
            self._custom.add(call.id)
        self._say(call)

    def _add_output(self, item: Item, index: int) -> None:
        if self.answering:
            self._turn_parts.append(Opaque(FAMILY, str(item.type), restore(item)))
            return
        if self._turn_parts or self._pending_signature is not None:
            self._end_turn()
        call_id, output = item.call_id, item.output
        if output is UNSET:
            raise self._misfit(index, "output", "text or a list of parts", output)
        keys = output_keys(item)
        notes: Extra | None = None
        if (
            not call_id
            or keys is not None
            or not (item.id is item.name is item.status is UNSET)
            or (self._custom or item.type != "function_call_output")
        ):
            notes = self._output_notes(item, as_notes(keys))
            if not call_id:
                # The type allows it to be missing; such outputs answer in order.
                notes["~call_id"] = TRUE if call_id is UNSET else Raw(b'""')
                call_id = self._unanswered.pop(0) if self._unanswered else ""
            if (item.type == "custom_tool_call_output") != (call_id in self._custom):
                notes["~type"] = as_json(str(item.type))
        name = self.call_names.get(call_id, "") or (item.name if item.name is not UNSET else "")
        metadata = {FAMILY: notes} if notes else None
        result = decode_result(call_id, name, output, metadata)
        self.result(call_id, name)
        if metadata is not None:
            self.metadata(metadata)
        if type(output) is not str:
            for piece in result.parts:
                if (piece_metadata := getattr(piece, "metadata", None)) is not None:
                    self.metadata(piece_metadata)
        self._messages.append(Message("tool", (result,)))

    def _output_notes(self, item: Item, notes: Extra) -> Extra:
        for key, value in (("id", item.id), ("name", item.name)):
            if value is not UNSET:
                notes[MODELLED + key] = as_json(value)
        if item.status is not UNSET:
            notes[STATUS] = item.status
        return notes

    # ── the rest ──

    def _add_other(self, raw: Raw, index: int) -> None:
        try:
            head = read_head(raw)
        except ValueError as error:
            raise self._misfit(index, "", "an item", bytes(raw)[:80].decode(errors="replace")) from error
        if head.type is None and head.id is None:
            raise self._misfit(index, "", "an item with a type or a role", bytes(raw)[:80].decode(errors="replace"))
        if self._server_calls is None:
            self._server_calls = {}
        if self._add_client_item(raw, head, index) or (head.type == "additional_tools" and self._add_tools(raw, index)):
            return
        parts = decode_other(raw, head, self._server_calls)
        if self.answering or not isinstance(parts[0], Opaque) or role_of_item(head.type or "") == "assistant":
            for part in parts:
                self._say(part)
            return
        self._end_turn()
        role = role_of_item(head.type or "")
        self.turn(role)
        self.bits |= UNKNOWN_PART
        self._messages.append(Message(role, tuple(parts)))

    def _add_client_item(self, raw: Raw, head: ItemHead, index: int) -> bool:
        """Add a call or result of a tool that the client runs; return False for any other item."""
        call = decode_client_call(raw, head) if is_for_client(head.type or "", head) else None
        if call is not None:
            self._say(call)
            return True
        result = None if self.answering else decode_client_result(raw, head, self.call_names)
        served = self._server_calls is not None and (head.call_id or "") in self._server_calls
        if result is None or served:
            return False
        self._end_turn()
        self.result(result.tool_call_id, result.name)
        if result.metadata is not None:
            self.metadata(result.metadata)
        self._messages.append(Message("tool", (result,)))
        if head.type == FOUND_TOOLS:
            self._declare(index, entries_of(raw)["tools"])
        return True

    def _declare(self, index: int, tools: Raw) -> None:
        """Note tools that an item of the input declares, so that the request has them beside its own."""
        if type(self.added) is not list:
            self.added = []
        self.added.append((index, tools))

    def _add_tools(self, raw: Raw, index: int) -> bool:
        """Add tools given in the middle of the conversation to the others; in this format they stay in place."""
        entry = entries_of(raw).get("tools")
        if self.answering or entry is None or bytes(entry)[:1] != b"[":
            return False
        self._end_turn()
        self.turn("system")
        self.bits |= EMPTY_MESSAGE
        self._messages.append(Message("system", (), None, {FAMILY: {WHOLE: raw}}))
        self._declare(index, entry)
        return True

    def _misfit(self, index: int, key: str, expected: str, got: object) -> DecodeError:
        path = f"$.{self._where}[{index}]" + (f".{key}" if key else "")
        found = "nothing" if got is UNSET else repr(got)
        return DecodeError(path=path, expected=expected, got=found, source="openai-responses")


def _beside_calls_read(items: Sequence[Item | Raw]) -> Sequence[Item | Raw]:
    """Apply `beside_calls` to items that are not read yet. Most histories have no carrier, and stay unread."""
    if not any(type(item) is Raw and _TAG in bytes(item) for item in items):
        return items
    read = [(read_item(item) or item) if type(item) is Raw else item for item in items]
    return beside_calls(read, _tag_of, _call_id_of, _retag)


_TAG = TAG.encode()


def _tag_of(item: Item | Raw) -> str | None:
    if type(item) is not Item or item.type != "reasoning" or item.summary:
        return None
    return str(item.encrypted_content) if is_tagged(item.encrypted_content) else None


def _call_id_of(item: Item | Raw) -> str | None:
    if type(item) is not Item or item.type not in {"function_call", "custom_tool_call"}:
        return None
    return None if item.call_id is UNSET else str(item.call_id)


def _retag(carrier: Item | Raw, tag: str) -> Item | Raw:
    return replace(carrier, encrypted_content=tag) if type(carrier) is Item else carrier


_HANDLERS: dict[str, Callable[[MessageDecoder, Item, int], None]] = {
    "message": MessageDecoder._add_message,
    "function_call": MessageDecoder._add_call,
    "custom_tool_call": MessageDecoder._add_call,
    "function_call_output": MessageDecoder._add_output,
    "custom_tool_call_output": MessageDecoder._add_output,
    "reasoning": MessageDecoder._add_reasoning,
}
ITEM_TYPES = frozenset(_HANDLERS)
"""Types of items that are read as structs; all others are kept as they are."""


# ── encoding ──────────────────────────────────────────────────────────────────────────────────────────────────


def _begins_item(part: AnyPart, previous: AnyPart | None) -> bool:
    """Whether a part of an assistant message begins an item, or continues the one before it."""
    if isinstance(part, Text | Refusal):
        notes = family_notes(FAMILY, part.metadata)
        if ID in notes or ITEM in notes:
            return True
        if isinstance(part, Text) and part.signature is not None and foreign_signatures.CARRIER_BEHIND not in notes:
            return True  # the item that carries the signature comes before it
        earlier = family_notes(FAMILY, getattr(previous, "metadata", None))
        return not _is_speech(previous) or foreign_signatures.CARRIER_BEHIND in earlier
    if isinstance(part, Opaque) and part.kind.startswith(CONTENT):
        return not _is_speech(previous)
    return not is_outcome_of(part, previous)


def _is_foreign(part: AnyPart) -> bool:
    """Whether another provider ran this server tool."""
    return isinstance(part, ServerToolCall | ServerToolResult) and not goes_back(part, FAMILY, to_client=False)


def _is_speech(part: AnyPart | None) -> bool:
    return isinstance(part, Text | Refusal) or (isinstance(part, Opaque) and part.kind.startswith(CONTENT))


class MessageEncoder(ItemEncoder):
    """Encodes messages in order: as the input of a request, or as the output for a client."""

    def encode(self, messages: Iterable[Message]) -> list[WireValue]:
        items: list[WireValue] = []
        for message in messages:
            role = message.role
            content = message.content_held
            if role in {"tool", "assistant"} and (message.metadata is not None or message.name is not None):
                self._report_turn(message)
            if role == "tool":
                items += [self.result(part) for part in content]  # type: ignore[arg-type]
            elif role == "assistant":
                if type(content) is str:
                    items.append(self.usual_text(content))
                else:
                    items += self._usual_turn(content) or self.encode_turn(message)
            elif type(content) is str and message.metadata is None:
                items.append(Item(UNSET, role, content))
            else:
                items += self._encode_message(message)
        return items

    def _report_turn(self, message: Message) -> None:
        if message.name is not None:
            self._log.drop(message, "name", "name of the speaker", "messages of this API have none")
        for key in family_notes(FAMILY, message.metadata):
            if not key.startswith("~"):
                self._log.drop(message, key, key, "a turn is a row of items here, and has no fields of its own")

    def _usual_turn(self, content: Any) -> list[WireValue] | None:
        """Encode the usual agent turn, text then calls without notes of this family; return None for any other."""
        for index, part in enumerate(content):
            kind = type(part)
            if kind is not ToolCall and (kind is not Text or index or part.citations):
                return None
            if part.signature is not None or part.cache is not None:
                return None
            metadata = part.metadata
            if metadata is not None and FAMILY in metadata:
                return None
            if kind is ToolCall and (part.custom or part.incomplete):
                return None
        return [self.usual_call(part) if type(part) is ToolCall else self.usual_text(part.text) for part in content]

    def _encode_message(self, message: Message) -> list[WireValue]:
        notes = family_notes(FAMILY, message.metadata)
        if WHOLE in notes:
            return [notes[WHOLE]]
        content: Any = message.content_held
        items: list[WireValue] = []
        if type(content) is not str:
            wires: list[WireValue] = []
            for part in content:
                wire = self.encode_part(part, message.role)
                whole = isinstance(part, Opaque) and part.origin == FAMILY and not part.kind.startswith(CONTENT)
                if wire is not None:
                    (items if whole else wires).append(wire)
            if not wires and (items or (not self._native and message.role != "user")):
                return items
            content = wires if wires or "content" not in notes else UNSET
            if not wires and not self._native:
                # Parts without an equivalent are logged; the turn stays.
                content = NOT_SENT if any(type(part) is not Text for part in message.parts) else ""
        role = parse_json(notes["~role"]) if "~role" in notes else message.role
        item = Item("message" if "~type" in notes else UNSET, role, content)
        return [spliced(item, notes) if notes else item, *items]

    # ── the model's turn ──

    def encode_turn(self, message: Message) -> list[WireValue]:
        """Encode the items of an assistant message, in order."""
        parts = message.parts
        items: list[WireValue] = []
        run: list[AnyPart] = []
        for index, part in enumerate(parts):
            previous = parts[index - 1] if index else None
            if not _begins_item(part, previous) and (self._to_client or not _is_foreign(part)):
                if _is_speech(part):
                    run.append(part)
                continue
            items += self._encode_run(run)
            run = []
            if _is_speech(part):
                run.append(part)
                if isinstance(part, Text) and part.signature is not None and not part.text:
                    items += self._encode_run(run)
                    run = []
            else:
                following = parts[index + 1] if index + 1 < len(parts) else None
                items += self._encode_item(part, following)
        return [*items, *self._encode_run(run)]

    def _encode_item(self, part: AnyPart, following: AnyPart | None) -> list[WireValue]:
        if isinstance(part, ToolCall):
            return self.with_carrier(part, self.call(part))
        if isinstance(part, Reasoning):
            return self.reasoning(part, following)
        if isinstance(part, ServerToolCall | ServerToolResult):
            return self._encode_hosted(part, following)
        if isinstance(part, Opaque) and part.origin == FAMILY:
            return [part.block_held]
        if isinstance(part, Image):
            is_drawn = DRAWN in family_notes(FAMILY, part.metadata)
            if is_drawn or (self._to_client and part.data is not None):
                return self._encode_drawing(part)
        wire = self._encode_content(part)
        return [] if wire is None else [self.message([wire], {})]

    def _encode_drawing(self, image: Image) -> list[WireValue]:
        """Encode an image of the model's turn, which this API has as the item of a tool."""
        if not self._to_client:
            self._log.drop(image, "", "image", "this API takes back only what its own models drew")
            return []
        notes = family_notes(FAMILY, image.metadata)
        if DRAWN in notes:
            return self.with_carrier(image, notes[DRAWN])
        if image.detail is not None:
            self._log.drop(image, "detail", f"detail {image.detail!r}", "images of an answer have none")
        if image.cache is not None:
            self._log.drop(image, "cache", "cache mark", "answers have none")
        item = drawing_item(image, self._item_id("ig"))
        return self.with_carrier(image, spliced(item, notes) if notes else item)

    def _encode_hosted(self, part: ServerToolCall | ServerToolResult, following: AnyPart | None) -> list[WireValue]:
        is_own = goes_back(part, FAMILY, to_client=self._to_client)
        if is_own and isinstance(part, ServerToolResult):
            return [part.block_held]
        if isinstance(part, ServerToolCall) and (self._to_client or is_own):
            wire = encode_pair(part, following, self._log)
            return [] if wire is None else [wire]
        # A client could not show a result without its call.
        text: Any = cross_hosted(part, self._log, SharedTools() if self._to_client else None)
        return [] if text is None else [self.usual_text(text.text)]

    def _encode_run(self, run: list[AnyPart]) -> list[WireValue]:
        """Return a message item with these content parts."""
        if not run:
            return []
        first = run[0]
        carried = isinstance(first, Text) and first.signature is not None
        if carried and isinstance(first, Text) and not first.text:
            return self.with_carrier(first, None)
        notes = family_notes(FAMILY, getattr(first, "metadata", None))
        plain = len(run) == 1 and type(first) is Text and not first.citations and first.cache is None
        spelled = spelling_of(notes)
        if (
            plain
            and isinstance(first, Text)
            and (spelled in {EASY, TYPED} or not (self._to_client or ID in notes or spelled))
        ):
            if own_part_notes(notes):
                plain = False
            else:
                return self.with_carrier(first, self.message(first.text, notes))
        contents = [wire for part in run if (wire := self._encode_content(part)) is not None]
        if not contents:
            return []
        item = self.message(contents, notes)
        return self.with_carrier(first, item) if isinstance(first, Text) else [item]

    def _encode_content(self, part: AnyPart) -> WireValue:
        notes = family_notes(FAMILY, part.metadata) if isinstance(part, Text | Refusal) else None
        if notes:
            part = replace(part, metadata={FAMILY: own_part_notes(notes)})
        wire = self.encode_part(part, "assistant")
        if not self._to_client or self._native or not isinstance(wire, OutputText):
            return wire
        # A strict client expects both lists on every text.
        return OutputText(wire.text, NOTHING if wire.annotations is UNSET else wire.annotations, NOTHING)


def item_places(message: Message) -> tuple[list[tuple[int, int]], int]:
    """Return, for each part of an assistant message, its item and its position in that item's content.

    And the number of items.
    """
    places: list[tuple[int, int]] = []
    item, place = -1, 0
    previous: AnyPart | None = None
    for part in message.parts:
        notes = family_notes(FAMILY, getattr(part, "metadata", None))
        if _begins_item(part, previous):
            # The item that carries a signature comes before its part; it alone represents an empty text.
            item += 1 + (foreign_signatures.CARRIER in notes and not (type(part) is Text and not part.text))
            place = 0
        else:
            place += 1
        places.append((max(item, 0), place))
        item += foreign_signatures.CARRIER_BEHIND in notes
        previous = part
    return places, item + 1
