"""Histories of role messages, as in three of the four formats: {role, content, calls}, with separate results.

Text, media and reasoning are in `content`, calls in a separate list, so the order between them is lost: decoding puts
the calls last, encoding reports if the source had another order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from msgspec import UNSET, Raw, UnsetType

from dragoman.codecs.reading import as_json, spliced
from dragoman.codecs.records.calls import CallRecord, CallStyle, decode_call, encode_call
from dragoman.codecs.records.history import EarlierParts
from dragoman.codecs.records.pairing import Pairing
from dragoman.codecs.records.parts import Content, PartStyle, decode_parts, encode_parts, is_plain
from dragoman.codecs.records.reading import ABSENT, CONTENT, NULL, TRUE, Peeker, role_of
from dragoman.errors import DecodeError
from dragoman.ir import AnyPart, Message, Metadata, Role, Text, ToolCall, ToolResult
from dragoman.ir.notes import WITHIN, Extra
from dragoman.ir.values import note
from dragoman.losses import LossLog

BARE = "~bare"
"""Note: the calls of this message are separate records."""
ROLES: dict[str, Role] = {"system": "system", "user": "user", "assistant": "assistant"}


class RoleStyle(NamedTuple):
    """How one format writes its role messages."""

    parts: PartStyle
    calls: CallStyle
    calls_key: str = "tool_calls"

    @property
    def family(self) -> str:
        return self.parts.family


class MessageWire(Protocol):
    """What the wire structs of messages have in common."""

    @property
    def content(self) -> Content: ...
    @property
    def name(self) -> str | None: ...
    @property
    def tool_calls(self) -> list[CallRecord] | UnsetType: ...
    @property
    def extra(self) -> Extra | UnsetType: ...


# ── decoding ──────────────────────────────────────────────────────────────────────────────────────────────────


class RoleDecoder:
    """Decodes records in order; results are matched to the calls before them."""

    def __init__(self, style: RoleStyle) -> None:
        self.style = style
        self.family = style.family
        self.pairing = Pairing()
        self.messages: list[Message] = []
        self._bare: dict[int, list[ToolCall]] = {}
        self.peeker = Peeker(style.family)

    def decode(self, records: Sequence[Raw], path: str) -> tuple[Message, ...]:
        for index, raw in enumerate(records):
            place = f"{path}[{index}]"
            keys = self.peeker.keys(raw, place)
            role = role_of(keys, place, self.family)
            if role is None:
                self.add_bare(keys, raw, place)
            elif role == "tool":
                self.messages.append(Message("tool", (self.decode_result(raw, place),)))
            elif role in ROLES:
                self.add_message(ROLES[role], raw, place)
            else:
                self.add_rare(role, raw, place)
        for index, calls in self._bare.items():
            self.messages[index] = Message("assistant", tuple(calls), None, {self.family: {BARE: TRUE}})
        return tuple(self.messages)

    def decode_result(self, raw: Raw, place: str) -> ToolResult:
        raise NotImplementedError

    def add_message(self, role: Role, raw: Raw, place: str) -> None:
        raise NotImplementedError

    def add_bare(self, keys: dict[str, Raw], raw: Raw, place: str) -> None:
        """Raise an error for a record without a role; formats that have such records override this."""
        del keys, raw
        raise DecodeError(path=place, expected="a message with a role", got="none", source=self.family)

    def add_rare(self, role: str, raw: Raw, place: str) -> None:
        del raw
        raise DecodeError(
            path=f"{place}.role", expected="system, user, assistant or tool", got=repr(role), source=self.family
        )

    def add_bare_call(self, wire: CallRecord, place: str) -> None:
        """Add a call that is a separate record. Consecutive calls were made in one turn."""
        call = decode_call(wire, self.style.calls, self.pairing, place)
        last = len(self.messages) - 1
        if last in self._bare:
            self._bare[last].append(call)
        else:
            self._bare[last + 1] = [call]
            self.messages.append(Message("assistant", ()))

    def decode_message(self, role: Role, wire: MessageWire, place: str, notes: Extra | None = None) -> Message:
        notes = dict(wire.extra or {}) if notes is None else notes
        calls = self._decode_calls(role, wire, place, notes)
        content = wire.content
        parts: str | tuple[AnyPart, ...]
        if isinstance(content, str):
            parts = (Text(content), *calls) if calls else content
        elif isinstance(content, list):
            if role == "assistant":
                notes[CONTENT] = as_json("parts")
            parts = decode_parts(content, self.style.parts) + calls
        else:
            if content is UNSET or role != "assistant":
                notes[CONTENT] = ABSENT if content is UNSET else NULL
            parts = calls
        return Message(role, parts, wire.name, {self.family: notes} if notes else None)

    def _decode_calls(self, role: Role, wire: MessageWire, place: str, notes: Extra) -> tuple[ToolCall, ...]:
        wires = wire.tool_calls
        if wires is UNSET:
            return ()
        key = self.style.calls_key
        if not wires:
            notes[f"~raw:{key}"] = Raw(b"[]")
        elif role != "assistant":
            raise DecodeError(
                path=f"{place}.{key}", expected="calls of the assistant only", got=role, source=self.family
            )
        return tuple(
            [
                decode_call(call, self.style.calls, self.pairing, f"{place}.{key}[{index}]")
                for index, call in enumerate(wires)
            ]
        )


# ── encoding ──────────────────────────────────────────────────────────────────────────────────────────────────


class RoleEncoder:
    def __init__(self, style: RoleStyle, log: LossLog, *, native: bool) -> None:
        self.style = style
        self.family = style.family
        self.log = log
        self.native = native

    def encode(self, messages: Sequence[Message]) -> list[Any]:
        records: list[Any] = []
        for message in messages:
            if message.role == "tool":
                records += [self.encode_result(result) for result in message.tool_results]
            elif note(message.metadata, self.family, BARE) is not UNSET:
                records += [encode_call(call, self.style.calls, self.log) for call in message.tool_calls]
            else:
                records += self.encode_message(message)
        return records

    def encode_result(self, result: ToolResult) -> Raw:
        raise NotImplementedError

    def encode_message(self, message: Message) -> list[Raw]:
        return [self.record_of(message, message.parts, self.notes_of(message.metadata))]

    def notes_of(self, metadata: Metadata | None) -> Extra:
        return (metadata or {}).get(self.family, {})

    def record_of(self, message: Message, parts: Sequence[AnyPart], notes: Extra) -> Raw:
        """Return the record of one message with these of its parts."""
        fields: dict[str, Any] = {"role": message.role}
        content = message.content_held
        calls = [part for part in parts if isinstance(part, ToolCall)]
        content_parts = [part for part in parts if not isinstance(part, ToolCall)]
        spelled = note({self.family: notes}, self.family, CONTENT)
        if spelled != "absent":
            fields["content"] = (
                content if type(content) is str and spelled is UNSET else self._content(message, content_parts, spelled)
            )
        if message.name is not None:
            fields["name"] = message.name
        if calls:
            fields[self.style.calls_key] = [encode_call(call, self.style.calls, self.log) for call in calls]
            self._report_order(parts)
        return spliced(as_json(fields), notes)

    def _content(self, message: Message, content_parts: Sequence[AnyPart], spelled: Any) -> Any:
        if spelled is None or (message.role == "assistant" and spelled == "absent"):
            return None
        if spelled == "string" and len(content_parts) == 1 and isinstance(content_parts[0], Text):
            return content_parts[0].text
        if message.role == "assistant" and spelled is UNSET:
            if not content_parts:
                return None
            if len(content_parts) == 1 and is_plain(content_parts[0]):
                return content_parts[0].text  # type: ignore[union-attr]
        return encode_parts(content_parts, self.style.parts, self.log)

    def _report_order(self, parts: Sequence[AnyPart]) -> None:
        called = False
        for part in parts:
            if isinstance(part, ToolCall):
                called = True
            elif called:
                self.log.degrade(part, "", "place among the calls", "a stored message keeps content and calls apart")


# ── paths of losses ───────────────────────────────────────────────────────────────────────────────────────────


def count_records(message: Message, style: RoleStyle) -> int:
    metadata = message.metadata
    return len(message.parts) if metadata is not None and BARE in metadata.get(style.family, ()) else 1


def place_of(message: Message, part_index: int, field: str, earlier: EarlierParts, style: RoleStyle) -> tuple[int, str]:
    parts = message.parts
    part = parts[part_index]
    within = within_part(part, field, style.parts.family, style.calls.bag)
    if message.role == "tool":
        return 0, within
    if isinstance(part, ToolCall):
        position = earlier.before(message, part_index, ToolCall)
        if note(message.metadata, style.family, BARE) is not UNSET:
            return position, within
        return 0, f".{style.calls_key}[{position}]{within}"
    if type(message.content_held) is str or (message.role == "assistant" and not _in_parts(message, style.family)):
        return 0, ".content"
    return 0, f".content[{part_index}]{within}"


def _in_parts(message: Message, family: str) -> bool:
    return bool(note(message.metadata, family, CONTENT) == "parts")


def within_part(part: AnyPart, field: str, family: str, bag: str) -> str:
    """Return the key of the record that a loss is about; empty if the field is not one of its keys."""
    notes: Extra = (getattr(part, "metadata", None) or {}).get(family, {})
    if field == "signature":
        return f".{bag}" if f"~raw:{bag}" in notes else ""
    head = field.partition(".")[0]
    return f".{field}" if head in notes or WITHIN + head in notes else ""
