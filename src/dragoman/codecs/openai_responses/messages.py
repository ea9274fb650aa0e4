"""Items and their parts, both ways.

What the model says in one turn is a row of items on this wire: reasoning, messages, calls. They are one assistant
message in the intermediate format, in the same order. A message item that is not spelled the usual way is noted on its
first part; a text without such a note goes on with the item before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from msgspec import UNSET, Raw
from msgspec.structs import replace

from dragoman.codecs.arguments import arguments_as_text, read_arguments
from dragoman.codecs.ids import INVENTED_PREFIX, invent_id, is_invented
from dragoman.codecs.openai_responses import carriers
from dragoman.codecs.openai_responses.items import (
    decode_other,
    encode_pair,
    is_outcome_of,
    read_head,
    role_of_item,
)
from dragoman.codecs.openai_responses.parts import (
    CONTENT,
    NOTHING,
    TRUE,
    PartEncoder,
    decode_part,
    own,
    wire_text,
)
from dragoman.codecs.openai_responses.profile import FAMILY
from dragoman.codecs.openai_responses.wire import Item, OutputText, SummaryText
from dragoman.codecs.reading import WireReader, WireValue, keep, spliced
from dragoman.codecs.result_errors import ERROR_START, read_error, write_error
from dragoman.codecs.tags import is_tagged
from dragoman.errors import DecodeError
from dragoman.ir import (
    AnyPart,
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
    ToolResult,
)
from dragoman.ir.messages import content_held
from dragoman.ir.notes import MODELLED, Extra, Spelling, inner_extra
from dragoman.ir.parts import opaque_block_held, value_held
from dragoman.ir.values import compact_text, encode_json, parse_json
from dragoman.losses import LossLog

_reader = WireReader(Item, "openai-responses")

ITEM = "~item"
"""Note on the first part of a message item: how it was spelled."""
ID = "~id"
"""Note: the item's own id, which is not the id of a call."""
EASY, EASY_PARTS, TYPED, TYPED_PARTS = "easy", "easy parts", "typed", "typed parts"
SPELLING = {word: Raw(encode_json(word)) for word in (EASY, EASY_PARTS, TYPED, TYPED_PARTS)}
INSTRUCTIONS = Spelling({FAMILY: {"~instructions": TRUE}})
DEVELOPER = Raw(b'"developer"')
STATUS = MODELLED + "status"
COMPLETED = Raw(b'"completed"')
INCOMPLETE = Raw(b'"incomplete"')

_PLAIN_ROLES = frozenset({"user", "assistant"})
_ROLES: dict[str, Role] = {"user": "user", "system": "system", "developer": "system"}

# ── decoding ──────────────────────────────────────────────────────────────────────────────────────────────────


def read_item(raw: Raw) -> Item | None:
    """An item of a kind we model, or None."""
    try:
        head = read_head(raw)
        return _reader.read(bytes(raw)) if head.type in _HANDLERS else None
    except ValueError:
        return None


def decode_items(items: Iterable[Item | Raw]) -> tuple[Message, ...]:
    """The input of a request. Plain messages, calls and outputs are read here; everything else by the decoder."""
    decoder = MessageDecoder()
    for index, item in enumerate(items):
        if type(item) is not Item or item.extra is not UNSET or not decoder.add_plain(item):
            decoder.add(item, index)
    return decoder.finished()


def decode_answer(items: Iterable[Item | Raw], seed: str) -> tuple[AnyPart, ...]:
    """The output of a response: all of it is the model's."""
    decoder = MessageDecoder(seed, answering=True)
    for index, item in enumerate(items):
        decoder.add(item, index)
    return decoder.answer()


class MessageDecoder:
    """Decodes items one after the other; results take their names from the calls before them."""

    def __init__(self, seed: str = "", *, answering: bool = False) -> None:
        self._messages: list[Message] = []
        self._turn: list[AnyPart] = []
        self._seed = seed
        self._answering = answering
        self._where = "output" if answering else "input"
        self._names: dict[str, str] = {}
        self._custom: set[str] = set()
        self._unanswered: list[str] = []
        self._server_calls: dict[str, str] = {}
        self._owed: tuple[Signature, Raw] | None = None

    def finished(self) -> tuple[Message, ...]:
        self._end_turn()
        return tuple(self._messages)

    def answer(self) -> tuple[AnyPart, ...]:
        self._give_up_carrier()
        return tuple(self._turn)

    def add_plain(self, item: Item) -> bool:
        """The items of an agent's history that say nothing unusual; False for every other."""
        if item.id is not UNSET or item.status is not UNSET or item.namespace is not UNSET:
            return False
        kind = item.type
        if kind is UNSET:
            return self._add_plain_message(item)
        if kind == "function_call":
            return self._add_plain_call(item)
        return kind == "function_call_output" and self._add_plain_output(item)

    def _add_plain_message(self, item: Item) -> bool:
        role, content = item.role, item.content
        if type(content) is not str or item.phase is not UNSET or role not in _PLAIN_ROLES:
            return False
        if self._turn:
            if role == "assistant":
                return False
            self._end_turn()
        if role == "assistant":
            self._turn.append(Text(content))
        else:
            self._messages.append(Message("user", content))
        return True

    def _add_plain_call(self, item: Item) -> bool:
        call_id, name, text = item.call_id, item.name, item.arguments
        if not call_id or type(text) is not str or name is UNSET or self._owed is not None:
            return False
        self._names[call_id] = name
        invented = call_id[:4] == INVENTED_PREFIX
        self._turn.append(ToolCall(call_id, name, read_arguments(text), text, invented_id=invented))
        return True

    def _add_plain_output(self, item: Item) -> bool:
        call_id, output = item.call_id, item.output
        if not call_id or type(output) is not str or item.name is not UNSET or call_id in self._custom:
            return False
        if output[:9] == ERROR_START:
            return False
        if self._turn:
            self._end_turn()
        self._messages.append(Message("tool", (ToolResult(call_id, self._names.get(call_id, ""), "text", output),)))
        return True

    def parts_of(self, item: Raw, index: int) -> list[AnyPart]:
        """The parts of one item of an answer that comes piece by piece."""
        before = len(self._turn)
        self.add(item, index)
        return self._turn[before:]

    def add(self, item: Item | Raw, index: int) -> None:
        if isinstance(item, Raw):
            read = self._read(item, index)
            if read is None:
                return
            item = read
        kind = item.type
        if kind is UNSET and item.role is not UNSET:
            kind = "message"
        handler = _HANDLERS.get(kind)  # type: ignore[arg-type]
        if handler is None:
            self._add_other(spliced(item, item.extra or {}), index)
        else:
            handler(self, item, index)

    def _read(self, raw: Raw, index: int) -> Item | None:
        """An item of a kind we model; None when it is another one, and added."""
        try:
            head = read_head(raw)
            other = head.type not in _HANDLERS and (head.type is not None or head.role is None)
        except ValueError:
            other = False  # the reader says what is wrong, and where
        if other:
            self._add_other(raw, index)
            return None
        try:
            return _reader.read(bytes(raw))
        except DecodeError as error:
            path = error.path.replace("$", f"$.{self._where}[{index}]", 1)
            raise DecodeError(path=path, expected=error.expected, got=error.got, source=error.source) from error

    # ── messages ──

    def _add_message(self, item: Item, index: int) -> None:
        role = item.role
        if role == "assistant" or (self._answering and role is UNSET):
            self._add_assistant(item)
            return
        own_role = _ROLES.get(role)  # type: ignore[arg-type]
        content = item.content
        if own_role is None:
            raise self._misfit(index, "role", "user, assistant, system or developer", role)
        if self._turn:
            self._end_turn()
        parts: Any = content
        if content is UNSET:
            if item.extra is UNSET or "content" not in item.extra:
                raise self._misfit(index, "content", "text or a list of parts", content)
            parts = ()
        elif type(content) is list:
            parts = tuple([decode_part(part) for part in content])
        if self._answering:
            self._turn.append(Opaque(FAMILY, "message", spliced(item, item.extra or {})))
            return
        notes = self._message_notes(item)
        self._messages.append(Message(own_role, parts, None, {FAMILY: notes} if notes else None))

    def _message_notes(self, item: Item) -> Extra:
        notes: Extra = {} if item.extra is UNSET else dict(item.extra)
        if item.type is not UNSET:
            notes["~type"] = TRUE
        if item.role == "developer":
            notes["~role"] = DEVELOPER
        if item.id is not UNSET:
            notes[MODELLED + "id"] = wire_text(item.id)
        if item.status is not UNSET:
            notes[STATUS] = item.status
        if item.phase is not UNSET:
            notes["phase"] = item.phase
        return notes

    def _add_assistant(self, item: Item) -> None:
        content = item.content
        parts: list[AnyPart]
        if type(content) is str:
            parts = [Text(content)]
            spelled = EASY if item.type is UNSET else TYPED
        else:
            parts = [decode_part(part, assistant=True) for part in content] if type(content) is list else []
            spelled = EASY_PARTS if item.type is UNSET else TYPED_PARTS
        first = parts[0] if parts else None
        if not isinstance(first, Text | Refusal):
            self._say(Opaque(FAMILY, "message", spliced(item, item.extra or {})))
            return
        notes = self._item_notes(item)
        if spelled is not EASY or notes or item.id is not UNSET:
            if item.id is not UNSET:
                notes[ID] = wire_text(item.id)
            if item.status is not UNSET:
                notes["~status"] = item.status
            if spelled is not TYPED_PARTS or item.id is UNSET:
                notes[ITEM] = SPELLING[spelled]
            parts[0] = replace(first, metadata={FAMILY: own(first.metadata) | notes})
        elif self._turn and isinstance(self._turn[-1], Text | Refusal) and not self._answering:
            self._end_turn()
        for part in parts:
            self._say(part)

    def _item_notes(self, item: Item) -> Extra:
        notes: Extra = {}
        if item.phase is not UNSET:
            notes["phase"] = item.phase
        if item.extra is not UNSET:
            notes.update((keep(FAMILY, UNSET, item=item.extra) or {})[FAMILY])
        if item.status is not UNSET:
            notes["~status"] = item.status
        return notes

    def _say(self, part: AnyPart) -> None:
        """Add a part to the model's turn, with the signature that travelled before it."""
        if self._owed is not None:
            signature, carrier = self._owed
            signed_part = carriers.signed(part, signature, carrier)
            if signed_part is None:
                self._give_up_carrier()
            else:
                self._owed = None
                part = signed_part
        self._turn.append(part)

    def _give_up_carrier(self) -> None:
        """A signature whose part is not there stays where it is, as the item it came in."""
        if self._owed is not None:
            self._turn.append(Opaque(FAMILY, "reasoning", self._owed[1]))
            self._owed = None

    def _end_turn(self) -> None:
        self._give_up_carrier()
        if self._turn and not self._answering:
            self._messages.append(Message("assistant", tuple(self._turn)))
            self._turn = []

    # ── reasoning ──

    def _add_reasoning(self, item: Item, index: int) -> None:  # noqa: ARG002
        carried = carriers.read_carrier(item)
        if carried is None:
            self._say(decode_reasoning(item))
            return
        kind, signature = carried
        raw = spliced(item, item.extra or {})
        if carriers.is_empty_text(kind):
            self._say(Text("", signature=signature, metadata={FAMILY: {carriers.CARRIER: raw}}))
        elif not carriers.is_behind(kind):
            self._give_up_carrier()
            self._owed = (signature, raw)
        else:
            last = self._turn[-1] if self._turn else Opaque(FAMILY, "", {})
            again = carriers.signed(last, signature, raw, carriers.CARRIER_BEHIND)
            if again is None:
                self._say(Opaque(FAMILY, "reasoning", raw))
            else:
                self._turn[-1] = again

    # ── calls ──

    def _add_call(self, item: Item, index: int) -> None:
        call = decode_call(item, f"{self._seed} {index}" if self._answering else index)
        if item.call_id is UNSET or not item.call_id:
            self._unanswered.append(call.id)
        self._names[call.id] = call.name
        if call.custom:
            self._custom.add(call.id)
        self._say(call)

    def _add_output(self, item: Item, index: int) -> None:
        if self._answering:
            self._turn.append(Opaque(FAMILY, str(item.type), spliced(item, item.extra or {})))
            return
        if self._turn:
            self._end_turn()
        call_id, output = item.call_id, item.output
        if output is UNSET:
            raise self._misfit(index, "output", "text or a list of parts", output)
        notes: Extra = {} if item.extra is UNSET else dict(item.extra)
        if call_id is UNSET or not call_id:
            # The type lets it be left out; such outputs answer in order.
            notes["~call_id"] = TRUE if call_id is UNSET else Raw(b'""')
            call_id = self._unanswered.pop(0) if self._unanswered else ""
        self._output_notes(item, call_id, notes)
        name = self._names.get(call_id, "") or (item.name if item.name is not UNSET else "")
        result = _decode_result(call_id, name, output, {FAMILY: notes} if notes else None)
        self._messages.append(Message("tool", (result,)))

    def _output_notes(self, item: Item, call_id: str, notes: Extra) -> None:
        if (item.type == "custom_tool_call_output") != (call_id in self._custom):
            notes["~type"] = wire_text(str(item.type))
        for key, held in (("id", item.id), ("name", item.name)):
            if held is not UNSET:
                notes[MODELLED + key] = wire_text(held)
        if item.status is not UNSET:
            notes[STATUS] = item.status
        if item.namespace is not UNSET:
            notes["namespace"] = item.namespace

    # ── the rest ──

    def _add_other(self, raw: Raw, index: int) -> None:
        try:
            head = read_head(raw)
        except ValueError as error:
            raise self._misfit(index, "", "an item", bytes(raw)[:80].decode(errors="replace")) from error
        if head.type is None and head.id is None:
            raise self._misfit(index, "", "an item with a type or a role", bytes(raw)[:80].decode(errors="replace"))
        parts = decode_other(raw, head, self._server_calls)
        if self._answering or not isinstance(parts[0], Opaque) or role_of_item(head.type or "") == "assistant":
            for part in parts:
                self._say(part)
            return
        self._end_turn()
        self._messages.append(Message(role_of_item(head.type or ""), tuple(parts)))

    def _misfit(self, index: int, key: str, expected: str, got: object) -> DecodeError:
        path = f"$.{self._where}[{index}]" + (f".{key}" if key else "")
        found = "nothing" if got is UNSET else repr(got)
        return DecodeError(path=path, expected=expected, got=found, source="openai-responses")


_HANDLERS: dict[str, Callable[[MessageDecoder, Item, int], None]] = {
    "message": MessageDecoder._add_message,  # noqa: SLF001
    "function_call": MessageDecoder._add_call,  # noqa: SLF001
    "custom_tool_call": MessageDecoder._add_call,  # noqa: SLF001
    "function_call_output": MessageDecoder._add_output,  # noqa: SLF001
    "custom_tool_call_output": MessageDecoder._add_output,  # noqa: SLF001
    "reasoning": MessageDecoder._add_reasoning,  # noqa: SLF001
}


def decode_call(item: Item, seed: object) -> ToolCall:
    """A function call or a custom tool call. The item's own id is a note; `call_id` is what links call and output."""
    call_id, name, given = item.call_id, item.name, item.arguments
    custom = item.type == "custom_tool_call"
    notes: Extra = {} if item.extra is UNSET else dict(item.extra)
    if item.id is not UNSET:
        notes[ID] = wire_text(item.id)
    if item.status is not UNSET:
        notes[STATUS] = item.status
    if item.namespace is not UNSET:
        notes["namespace"] = item.namespace
    invented = False
    if call_id is UNSET or not call_id:
        notes["~call_id"] = TRUE if call_id is UNSET else Raw(b'""')
        call_id, invented = invent_id(seed, 0), True
    if name is UNSET:
        notes["~name"] = TRUE
        name = ""
    metadata = {FAMILY: notes} if notes else None
    if custom:
        text = "" if item.input is UNSET else item.input
        if item.input is UNSET:
            notes["~input"] = TRUE
        held = Raw(encode_json({"input": text}))
        return ToolCall(call_id, name, held, text, custom=True, invented_id=invented, metadata={FAMILY: notes})
    if type(given) is str:
        return ToolCall(
            call_id,
            name,
            read_arguments(given),
            given,
            invented_id=invented or is_invented(call_id),
            metadata=metadata,
        )
    notes["~arguments"] = TRUE if given is UNSET else Raw(b'"object"')
    held = Raw(b"{}") if given is UNSET else Raw(encode_json(given))
    return ToolCall(call_id, name, held, None, invented_id=invented, metadata={FAMILY: notes})


def decode_reasoning(item: Item) -> Reasoning:
    notes: Extra = {} if item.extra is UNSET else dict(item.extra)
    if item.status is not UNSET:
        notes[STATUS] = item.status
    text = _reasoning_text(item, notes)
    encrypted = item.encrypted_content
    signature = None
    redacted = False
    if isinstance(encrypted, str) and encrypted:
        tagged = carriers.read_reasoning_tag(encrypted) if is_tagged(encrypted) else None
        if tagged is None:
            signature = Signature(FAMILY, encrypted, None if item.id is UNSET else item.id)
        else:
            signature, redacted = tagged
            notes[carriers.TAGGED] = TRUE
    elif encrypted is not UNSET:
        notes[MODELLED + "encrypted_content"] = Raw(encode_json(encrypted))
    if item.id is not UNSET and (signature is None or carriers.TAGGED in notes):
        notes[ID] = wire_text(item.id)
    return Reasoning(text, signature, redacted, {FAMILY: notes} if notes else None)


def _reasoning_text(item: Item, notes: Extra) -> str:
    """The summaries, or the reasoning itself where an open model shows it; lists that say more are kept as they are."""
    summary, content = item.summary, item.content
    if summary is UNSET:
        notes["~summary"] = TRUE
        summary = []
    texts = [part.text for part in summary if isinstance(part, SummaryText)]
    if len(summary) > 1 or not all(map(_is_plain, summary)):
        notes[MODELLED + "summary"] = Raw(encode_json([_exact(part) for part in summary]))
    if content is UNSET:
        return SUMMARY_BREAK.join(texts)
    notes[MODELLED + "content"] = Raw(
        encode_json(content if isinstance(content, str) else [_exact(part) for part in content])
    )
    said = content if isinstance(content, str) else "".join(getattr(part, "text", "") for part in content)
    if said and MODELLED + "summary" not in notes:
        notes[MODELLED + "summary"] = Raw(encode_json([_exact(part) for part in summary]))
    return said or SUMMARY_BREAK.join(texts)


SUMMARY_BREAK = "\n\n"
"""What stands between the parts of a summary in one text."""


def _is_plain(part: Any) -> bool:
    return isinstance(part, SummaryText) and part.extra is UNSET and bool(part.text)


def _exact(wire: Any) -> Raw:
    raw = getattr(wire, "raw", None)
    return raw if isinstance(raw, Raw) else spliced(wire, wire.extra or {})


def _decode_result(call_id: str, name: str, output: Any, metadata: Metadata | None) -> ToolResult:
    if type(output) is str:
        error = read_error(output) if output.startswith(ERROR_START) else UNSET
        if error is not UNSET:
            return ToolResult(call_id, name, "error", error, metadata=metadata)
        return ToolResult(call_id, name, "text", output, metadata=metadata)
    parts: Any = tuple([decode_part(part) for part in output])
    first = parts[0] if len(parts) > 1 else None
    if type(first) is Text and first.metadata is None:
        error = read_error(first.text)
        if isinstance(error, str):
            return ToolResult(call_id, name, "error", None, (Text(error), *parts[1:]), metadata=metadata)
    return ToolResult(call_id, name, "multimodal", None, parts, metadata=metadata)


# ── encoding ──────────────────────────────────────────────────────────────────────────────────────────────────


def begins_item(part: AnyPart, previous: AnyPart | None) -> bool:
    """Whether a part of an assistant message begins an item, or goes on with the one before it."""
    if isinstance(part, Text | Refusal):
        notes = own(part.metadata)
        if ID in notes or ITEM in notes:
            return True
        if isinstance(part, Text) and part.signature is not None and carriers.CARRIER_BEHIND not in notes:
            return True  # the item that carries the signature stands before it
        return not _is_said(previous) or carriers.CARRIER_BEHIND in own(getattr(previous, "metadata", None))
    if isinstance(part, Opaque) and part.kind.startswith(CONTENT):
        return not _is_said(previous)
    return not is_outcome_of(part, previous)


def _is_said(part: AnyPart | None) -> bool:
    return isinstance(part, Text | Refusal) or (isinstance(part, Opaque) and part.kind.startswith(CONTENT))


class MessageEncoder:
    """Encodes messages one after the other: as the input of a request, or as the output for a client."""

    def __init__(self, log: LossLog, *, to_client: bool = False, native: bool = False, seed: str = "") -> None:
        self._log = log
        self._to_client = to_client
        self._native = native
        self._seed = seed
        self._parts = PartEncoder(log, native=native)
        self._custom: set[str] = set()
        self._invented = 0

    def encode(self, messages: Iterable[Message]) -> list[WireValue]:
        items: list[WireValue] = []
        for message in messages:
            role = message.role
            content = content_held(message)
            if message.metadata is not None and role in {"tool", "assistant"}:
                self._report_turn(message)
            if role == "tool":
                items += [self._encode_result(part) for part in message.tool_results]
            elif role == "assistant":
                if type(content) is str and not self._to_client:
                    items.append(Item(UNSET, "assistant", content))
                else:
                    items += self._plain_turn(content) or self.encode_turn(message)
            elif type(content) is str and message.metadata is None and message.name is None:
                items.append(Item(UNSET, role, content))
            else:
                items += self._encode_message(message)
        return items

    def _report_turn(self, message: Message) -> None:
        for key in own(message.metadata):
            if not key.startswith("~"):
                self._log.drop(message, key, key, "a turn is a row of items here, and has no fields of its own")

    def _plain_turn(self, content: str | tuple[AnyPart, ...]) -> list[WireValue] | None:
        """The usual turn of an agent, text then calls and nothing beside them; None for every other."""
        if self._to_client:
            return None
        items: list[WireValue] = []
        for part in content:
            kind = type(part)
            if kind is ToolCall:
                call: ToolCall = part  # type: ignore[assignment]
                if call.metadata is not None or call.signature is not None or call.custom or call.cache is not None:
                    return None
                items.append(Item("function_call", UNSET, UNSET, UNSET, call.id, call.name, arguments_as_text(call)))
            elif kind is Text and not items:
                said: Text = part  # type: ignore[assignment]
                if said.metadata is not None or said.signature is not None or said.citations or said.cache is not None:
                    return None
                items.append(Item(UNSET, "assistant", said.text))
            else:
                return None
        return items

    def _encode_message(self, message: Message) -> list[WireValue]:
        if message.name is not None:
            self._log.drop(message, "name", "name of the speaker", "messages of this API have none")
        notes = own(message.metadata)
        content: Any = content_held(message)
        items: list[WireValue] = []
        if type(content) is not str:
            wires: list[WireValue] = []
            for part in content:
                wire = self._parts.encode_part(part, message.role)
                whole = isinstance(part, Opaque) and part.origin == FAMILY and not part.kind.startswith(CONTENT)
                if wire is not None:
                    (items if whole else wires).append(wire)
            if not wires and (items or (not self._native and message.role != "user")):
                return items
            content = wires if wires or "content" not in notes else UNSET
            if not wires and not self._native:
                content = ""  # what could not cross is logged; the turn stays
        role = parse_json(notes["~role"]) if "~role" in notes else message.role
        item = Item("message" if "~type" in notes else UNSET, role, content)
        return [spliced(item, notes) if notes else item, *items]

    # ── the model's turn ──

    def encode_turn(self, message: Message) -> list[WireValue]:
        """The items of an assistant message, in order."""
        parts = message.parts
        items: list[WireValue] = []
        run: list[AnyPart] = []
        for index, part in enumerate(parts):
            previous = parts[index - 1] if index else None
            if not begins_item(part, previous):
                if _is_said(part):
                    run.append(part)
                continue
            items += self._encode_run(run)
            run = []
            if _is_said(part):
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
            return self._with_carrier(part, self._encode_call(part))
        if isinstance(part, Reasoning):
            return self._encode_reasoning(part, following)
        if isinstance(part, ServerToolCall) and part.origin == FAMILY:
            return [encode_pair(part, following)]
        if isinstance(part, ServerToolResult) and part.origin == FAMILY and "type" in part.block:
            return [part.block]
        if isinstance(part, Opaque) and part.origin == FAMILY:
            return [opaque_block_held(part)]
        if isinstance(part, ServerToolCall | ServerToolResult):
            what = "call" if isinstance(part, ServerToolCall) else "result of a call"
            self._log.drop(part, "", f"{what} run by the provider", f"it was run by {part.origin}")
            return []
        wire = self._parts.encode_part(part, "assistant")
        return [] if wire is None else [self._message_item([wire], {}, has_text=False)]

    def _encode_run(self, run: list[AnyPart]) -> list[WireValue]:
        """A message item with these content parts."""
        if not run:
            return []
        first = run[0]
        carried = isinstance(first, Text) and first.signature is not None
        if carried and isinstance(first, Text) and not first.text:
            return self._with_carrier(first, None)
        notes = own(getattr(first, "metadata", None))
        plain = len(run) == 1 and type(first) is Text and not first.citations and first.cache is None
        spelled = _spelling(notes)
        if (
            plain
            and isinstance(first, Text)
            and (spelled in {EASY, TYPED} or not (self._to_client or ID in notes or spelled))
        ):
            if own_part_notes(notes):
                plain = False
            else:
                return self._with_carrier(first, self._message_item(first.text, notes, has_text=True))
        contents = [wire for part in run if (wire := self._encode_content(part)) is not None]
        if not contents:
            return []
        item = self._message_item(contents, notes, has_text=True)
        return self._with_carrier(first, item) if isinstance(first, Text) else [item]

    def _encode_content(self, part: AnyPart) -> WireValue:
        if not isinstance(part, Text | Refusal):
            return self._parts.encode_part(part, "assistant")
        notes = own(part.metadata)
        if notes:
            part = replace(part, metadata={FAMILY: own_part_notes(notes)})
        wire = self._parts.encode_part(part, "assistant")
        if not self._to_client or self._native or not isinstance(wire, OutputText):
            return wire
        # A strict client expects both lists on every text.
        return OutputText(wire.text, NOTHING if wire.annotations is UNSET else wire.annotations, NOTHING)

    def _message_item(self, content: Any, notes: Extra, *, has_text: bool) -> WireValue:  # noqa: ARG002
        spelled = _spelling(notes)
        further: Extra = {"phase": notes["phase"]} if "phase" in notes else {}
        if self._to_client and not self._native:
            item_id: Any = parse_json(notes[ID]) if ID in notes else self._item_id("msg")
            item = Item("message", "assistant", content, item_id, status=COMPLETED)
            return spliced(item, further) if further else item
        if not self._native:
            # Ids name stored items: sent where nothing is stored, they make the API look for what is not there.
            item = Item(role="assistant", content=content)
            return spliced(item, further) if further else item
        typed = spelled in {TYPED, TYPED_PARTS} or (spelled is None and ID in notes)
        item = Item(
            "message" if typed else UNSET,
            "assistant",
            content,
            parse_json(notes[ID]) if ID in notes else UNSET,
            status=notes.get("~status", UNSET),
        )
        further.update(inner_extra(notes, "item") or {})
        return spliced(item, further) if further else item

    def _item_id(self, prefix: str) -> str:
        self._invented += 1
        return f"{prefix}_{invent_id(self._seed, self._invented - 1)}"

    def _with_carrier(self, part: Text | ToolCall, item: WireValue) -> list[WireValue]:
        """An item, and the one that carries its signature to a client and back; providers never see that (law 6)."""
        signature = part.signature
        items = [] if item is None else [item]
        if signature is None:
            return items
        notes = own(part.metadata)
        if carriers.CARRIER in notes and (self._native or self._to_client):
            return [notes[carriers.CARRIER], *items]
        if carriers.CARRIER_BEHIND in notes and (self._native or self._to_client):
            return [*items, notes[carriers.CARRIER_BEHIND]]
        if not self._to_client:
            self._log.drop(part, "signature", "signature", f"it is owed to {signature.family} alone")
            return items
        return [carriers.carrier_of(part, signature, self._item_id("rs")), *items]

    # ── calls, reasoning, results ──

    def _encode_call(self, call: ToolCall) -> WireValue:
        if call.custom:
            self._custom.add(call.id)
        if call.cache is not None:
            self._log.drop(call, "cache", "cache mark", "a call takes no cache breakpoint")
        notes = own(call.metadata)
        if not notes and not call.custom and not self._to_client:
            return Item("function_call", call_id=call.id, name=call.name, arguments=arguments_as_text(call))
        item_id: Any = UNSET
        status: Any = UNSET
        if self._native:
            item_id = parse_json(notes[ID]) if ID in notes else UNSET
        elif self._to_client:
            item_id = parse_json(notes[ID]) if ID in notes else self._item_id("ctc" if call.custom else "fc")
            status = INCOMPLETE if call.incomplete else COMPLETED
        further = notes if self._native else _public(notes)
        item = Item(
            "custom_tool_call" if call.custom else "function_call",
            id=item_id,
            call_id=_call_id(call.id, notes) if self._native else call.id,
            name=UNSET if "~name" in notes and self._native else call.name,
            arguments=UNSET if call.custom else self._arguments(call, notes),
            input=(UNSET if "~input" in notes else call.arguments_text or "") if call.custom else UNSET,
            status=status,
        )
        return spliced(item, further) if further else item

    def _arguments(self, call: ToolCall, notes: Extra) -> Any:
        spelled = parse_json(notes["~arguments"]) if "~arguments" in notes and self._native else None
        if spelled == "object":
            return call.arguments
        text = arguments_as_text(call)
        return UNSET if spelled is True else text or ("{}" if self._to_client and not call.incomplete else "")

    def _encode_reasoning(self, part: Reasoning, following: AnyPart | None) -> list[WireValue]:
        notes, signature = own(part.metadata), part.signature
        if self._native:
            return [self._native_reasoning(part, notes)]
        minted = signature is not None and signature.family == FAMILY and bool(signature.data)
        if self._to_client:
            return [self._told_reasoning(part, notes)]
        if signature is None or not minted:
            owner = "another provider" if signature is None or not signature.data else signature.family
            self._log.drop(part, "", "reasoning", f"it is owed to {owner}; this API takes back only what it encrypted")
            return []
        if following is None:
            self._log.drop(part, "", "reasoning", "this API refuses reasoning that nothing follows")
            return []
        item_id: Any = signature.id if signature.id is not None and signature.id.startswith("rs") else UNSET
        summary = notes.get(MODELLED + "summary")
        told: Any = carriers.summary_of(part.text) if summary is None else summary
        return [Item("reasoning", id=item_id, summary=told, encrypted_content=signature.data)]

    def _native_reasoning(self, part: Reasoning, notes: Extra) -> WireValue:
        signature = part.signature
        encrypted: Any = UNSET
        item_id: Any = UNSET
        if signature is not None and carriers.TAGGED in notes:
            encrypted = carriers.tag_of_reasoning(part, signature)
        elif signature is not None:
            encrypted = signature.data
            item_id = UNSET if signature.id is None else signature.id
        if ID in notes:
            item_id = parse_json(notes[ID])
        absent = "~summary" in notes or MODELLED + "summary" in notes
        summary: Any = UNSET if absent else carriers.summary_of(part.text)
        item = Item("reasoning", id=item_id, summary=summary, encrypted_content=encrypted)
        return spliced(item, notes) if notes else item

    def _told_reasoning(self, part: Reasoning, notes: Extra) -> WireValue:
        signature = part.signature
        encrypted: Any = UNSET
        item_id = self._item_id("rs")
        if signature is not None and signature.data:
            encrypted = carriers.tag_of_reasoning(part, signature)
            if signature.family == FAMILY:
                encrypted = signature.data
                item_id = signature.id or item_id
        summary = notes.get(MODELLED + "summary")
        told: Any = carriers.summary_of(part.text) if summary is None else summary
        return Item("reasoning", id=item_id, summary=told, encrypted_content=encrypted)

    def _encode_result(self, result: ToolResult) -> WireValue:
        if result.metadata is None and result.kind == "text" and not result.parts and result.cache is None:
            held = value_held(result)
            if type(held) is str and not self._custom:
                call_id = result.tool_call_id
                return Item("function_call_output", UNSET, UNSET, UNSET, call_id, UNSET, UNSET, UNSET, held)
        if result.cache is not None:
            self._log.drop(result, "cache", "cache mark", "an output takes no cache breakpoint")
        notes = own(result.metadata)
        kind = "custom_tool_call_output" if result.tool_call_id in self._custom else "function_call_output"
        output = self._output(result)
        if not notes or not self._native:
            return Item(kind, call_id=result.tool_call_id, output=output)
        if "~type" in notes:
            kind = parse_json(notes["~type"])
        return spliced(Item(kind, call_id=_call_id(result.tool_call_id, notes), output=output), notes)

    def _output(self, result: ToolResult) -> Any:
        kind = result.kind
        if result.parts or kind == "multimodal":
            return self._output_parts(result)
        if kind == "text":
            return value_held(result) if type(value_held(result)) is str else result.value
        return write_error(result.value) if kind == "error" else compact_text(value_held(result))

    def _output_parts(self, result: ToolResult) -> Any:
        if result.kind != "error":
            wires = [wire for part in result.parts if (wire := self._parts.encode_part(part, "tool")) is not None]
            return wires if wires or self._native else ""
        text = write_error("".join(part.text for part in result.parts if isinstance(part, Text)))
        others = [part for part in result.parts if not isinstance(part, Text)]
        media = [wire for part in others if (wire := self._parts.encode_part(part, "tool")) is not None]
        return [self._parts.encode_part(Text(text), "tool"), *media] if media else text


_OF_THE_ITEM = frozenset({ITEM, ID, "~status", "phase", "~in:item", carriers.CARRIER, carriers.CARRIER_BEHIND})


def _spelling(notes: Extra) -> str | None:
    return parse_json(notes[ITEM]) if ITEM in notes else None


def own_part_notes(notes: Extra) -> Extra:
    """The notes of a part without those of the item it begins."""
    return {key: held for key, held in notes.items() if key not in _OF_THE_ITEM}


def _public(notes: Extra) -> Extra:
    """What an item says beyond its type, without its spelling and state: `namespace`, `caller`."""
    return {key: held for key, held in notes.items() if not key.startswith("~")}


def _call_id(call_id: str, notes: Extra) -> Any:
    spelled = notes.get("~call_id")
    return call_id if spelled is None else UNSET if bytes(spelled) == b"true" else ""


def message_items(message: Message) -> Iterator[tuple[int, int]]:
    """For each part of an assistant message: the item it stands in, and its place in that item's content."""
    item, place = -1, 0
    parts = message.parts
    for index, part in enumerate(parts):
        notes = own(getattr(part, "metadata", None))
        if begins_item(part, parts[index - 1] if index else None):
            item += 1 + (carriers.CARRIER in notes and not (type(part) is Text and not part.text))
            place = 0
        else:
            place += 1
        yield max(item, 0), place
        item += carriers.CARRIER_BEHIND in notes
