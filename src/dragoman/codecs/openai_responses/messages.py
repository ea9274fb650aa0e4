"""Messages as rows of items, both ways; single items are in items.py.

What the model says in one turn is a row of items on this wire: reasoning, messages, calls. They are one assistant
message in the intermediate format, in the same order. A message item that is not spelled the usual way is noted on its
first part; a text without such a note goes on with the item before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from msgspec import UNSET, Raw
from msgspec.structs import replace

from dragoman.codecs.arguments import arguments_as_text
from dragoman.codecs.openai_responses import foreign_signatures
from dragoman.codecs.openai_responses.items import (
    DEVELOPER,
    EASY,
    EASY_PARTS,
    ID,
    ITEM,
    SPELLING,
    STATUS,
    TYPED,
    TYPED_PARTS,
    ItemEncoder,
    decode_call,
    decode_reasoning,
    decode_result,
    own_part_notes,
    spelling_of,
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
from dragoman.codecs.openai_responses.server_items import (
    decode_other,
    encode_pair,
    is_outcome_of,
    read_head,
    role_of_item,
)
from dragoman.codecs.openai_responses.wire import Item, OutputText
from dragoman.codecs.reading import WireReader, WireValue, keep, spliced
from dragoman.errors import DecodeError
from dragoman.ir import (
    AnyPart,
    Message,
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
from dragoman.ir.messages import content_held
from dragoman.ir.notes import MODELLED, Extra
from dragoman.ir.parts import opaque_block_held
from dragoman.ir.values import parse_json
from dragoman.losses import LossLog

_reader = WireReader(Item, "openai-responses")

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
    """The input of a request."""
    decoder = MessageDecoder()
    for index, item in enumerate(items):
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
            signed_part = foreign_signatures.signed(part, signature, carrier)
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
        carried = foreign_signatures.read_carrier(item)
        if carried is None:
            self._say(decode_reasoning(item))
            return
        kind, signature = carried
        raw = spliced(item, item.extra or {})
        if foreign_signatures.is_empty_text(kind):
            self._say(Text("", signature=signature, metadata={FAMILY: {foreign_signatures.CARRIER: raw}}))
        elif not foreign_signatures.is_behind(kind):
            self._give_up_carrier()
            self._owed = (signature, raw)
        else:
            last = self._turn[-1] if self._turn else Opaque(FAMILY, "", {})
            again = foreign_signatures.signed(last, signature, raw, foreign_signatures.CARRIER_BEHIND)
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
        result = decode_result(call_id, name, output, {FAMILY: notes} if notes else None)
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


# ── encoding ──────────────────────────────────────────────────────────────────────────────────────────────────


def begins_item(part: AnyPart, previous: AnyPart | None) -> bool:
    """Whether a part of an assistant message begins an item, or goes on with the one before it."""
    if isinstance(part, Text | Refusal):
        notes = own(part.metadata)
        if ID in notes or ITEM in notes:
            return True
        if isinstance(part, Text) and part.signature is not None and foreign_signatures.CARRIER_BEHIND not in notes:
            return True  # the item that carries the signature stands before it
        return not _is_said(previous) or foreign_signatures.CARRIER_BEHIND in own(getattr(previous, "metadata", None))
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
        self._parts = PartEncoder(log, native=native)
        self._items = ItemEncoder(log, self._parts, to_client=to_client, native=native, seed=seed)

    def encode(self, messages: Iterable[Message]) -> list[WireValue]:
        items: list[WireValue] = []
        for message in messages:
            role = message.role
            content = content_held(message)
            if message.metadata is not None and role in {"tool", "assistant"}:
                self._report_turn(message)
            if role == "tool":
                items += [self._items.result(part) for part in message.tool_results]
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
            return self._items.with_carrier(part, self._items.call(part))
        if isinstance(part, Reasoning):
            return self._items.reasoning(part, following)
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
        wire = self._encode_content(part)
        return [] if wire is None else [self._items.message([wire], {})]

    def _encode_run(self, run: list[AnyPart]) -> list[WireValue]:
        """A message item with these content parts."""
        if not run:
            return []
        first = run[0]
        carried = isinstance(first, Text) and first.signature is not None
        if carried and isinstance(first, Text) and not first.text:
            return self._items.with_carrier(first, None)
        notes = own(getattr(first, "metadata", None))
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
                return self._items.with_carrier(first, self._items.message(first.text, notes))
        contents = [wire for part in run if (wire := self._encode_content(part)) is not None]
        if not contents:
            return []
        item = self._items.message(contents, notes)
        return self._items.with_carrier(first, item) if isinstance(first, Text) else [item]

    def _encode_content(self, part: AnyPart) -> WireValue:
        notes = own(part.metadata) if isinstance(part, Text | Refusal) else None
        if notes:
            part = replace(part, metadata={FAMILY: own_part_notes(notes)})
        wire = self._parts.encode_part(part, "assistant")
        if not self._to_client or self._native or not isinstance(wire, OutputText):
            return wire
        # A strict client expects both lists on every text.
        return OutputText(wire.text, NOTHING if wire.annotations is UNSET else wire.annotations, NOTHING)


def message_items(message: Message) -> Iterator[tuple[int, int]]:
    """For each part of an assistant message: the item it stands in, and its place in that item's content."""
    item, place = -1, 0
    parts = message.parts
    for index, part in enumerate(parts):
        notes = own(getattr(part, "metadata", None))
        if begins_item(part, parts[index - 1] if index else None):
            item += 1 + (foreign_signatures.CARRIER in notes and not (type(part) is Text and not part.text))
            place = 0
        else:
            place += 1
        yield max(item, 0), place
        item += foreign_signatures.CARRIER_BEHIND in notes
