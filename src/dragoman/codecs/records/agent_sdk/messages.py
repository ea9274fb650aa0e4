"""Messages of the agent SDK, both ways.

Reasoning is a message of its own and belongs to the assistant message that follows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import UNSET, Raw, structs

from dragoman.codecs.reading import WireReader, spliced
from dragoman.codecs.records.agent_sdk.foreign_signatures import item_of, read_item
from dragoman.codecs.records.agent_sdk.wire import MessageRecord, ReasoningRecord, ResultRecord
from dragoman.codecs.records.calls import CallStyle
from dragoman.codecs.records.parts import EVERY_PART, RESULT_PARTS, PartStyle, decode_parts, encode_parts
from dragoman.codecs.records.reading import CONTENT, NULL, TRUE, as_json, read_record, spelled_id
from dragoman.codecs.records.results import PARTS, in_parts, read_value, report_result, spelled_value
from dragoman.codecs.records.roles import RoleDecoder, RoleEncoder, RoleStyle
from dragoman.errors import DecodeError
from dragoman.ir import AnyPart, Cache, Message, Reasoning, Refusal, Role, Text, ToolCall, ToolResult
from dragoman.ir.messages import content_held
from dragoman.ir.notes import Extra
from dragoman.ir.values import note
from dragoman.losses import LossLog

FAMILY = "agent-sdk"
BAG = "provider_meta"
STYLE = RoleStyle(PartStyle(FAMILY, BAG, EVERY_PART - {Reasoning, Refusal}), CallStyle(FAMILY, BAG, nested=True))
IN_RESULTS = PartStyle(FAMILY, BAG, RESULT_PARTS)

OPEN = "~open"
"""Note: no assistant message followed this reasoning."""

_message = WireReader(MessageRecord, FAMILY)
_reasoning = WireReader(ReasoningRecord, FAMILY)
_result = WireReader(ResultRecord, FAMILY)


class MessageDecoder(RoleDecoder):
    def __init__(self) -> None:
        super().__init__(STYLE)
        self._thoughts: list[AnyPart] = []

    def decode(self, records: Sequence[Raw], path: str) -> tuple[Message, ...]:
        super().decode(records, path)
        self._close()
        return tuple(self.messages)

    def add_rare(self, role: str, raw: Raw, place: str) -> None:
        if role != "reasoning":
            super().add_rare(role, raw, place)
        self._thoughts.append(self._decode_reasoning(read_record(_reasoning, raw, place, FAMILY)))

    def _close(self) -> None:
        """Reasoning that nothing of the assistant follows is a message of its own."""
        if self._thoughts:
            self.messages.append(Message("assistant", tuple(self._thoughts), None, {FAMILY: {OPEN: TRUE}}))
            self._thoughts = []

    def _decode_reasoning(self, wire: ReasoningRecord) -> Reasoning:
        notes: Extra = {} if wire.extra is UNSET else dict(wire.extra)
        content = wire.content
        if not isinstance(content, str):
            notes[CONTENT] = NULL if content is None else as_json("absent")
        text = content if isinstance(content, str) else ""
        if wire.raw_item is UNSET:
            part = Reasoning(text)
        elif bytes(wire.raw_item) == b"null":
            notes["raw_item"] = NULL
            part = Reasoning(text)
        else:
            part = read_item(wire.raw_item, text, notes)
        return structs.replace(part, metadata={FAMILY: notes}) if notes else part

    def add_message(self, role: Role, raw: Raw, place: str) -> None:
        wire = read_record(_message, raw, place, FAMILY)
        notes: Extra = {} if wire.extra is UNSET else dict(wire.extra)
        if wire.cache is not UNSET and (role != "system" or not wire.cache):
            notes["~raw:cache" if not wire.cache else "cache"] = as_json(wire.cache)
        if wire.refusal is not UNSET and role != "assistant":
            notes["refusal"] = as_json(wire.refusal)
        if role != "assistant":
            self._close()
        message = self.decode_message(role, wire, place, notes)
        if role == "system" and wire.cache is True:
            message = _marked(message)
        if role == "assistant" and (self._thoughts or wire.refusal is not UNSET):
            said = message.parts
            if wire.refusal is not UNSET:
                calls = tuple(part for part in said if isinstance(part, ToolCall))
                said = (*said[: len(said) - len(calls)], Refusal(wire.refusal), *calls)
            message = structs.replace(message, parts=(*self._thoughts, *said))
            self._thoughts = []
        self.messages.append(message)

    def decode_result(self, raw: Raw, place: str) -> ToolResult:
        self._close()
        wire = read_record(_result, raw, place, FAMILY)
        notes: Extra = {} if wire.extra is UNSET else dict(wire.extra)
        call_id, name = self.pairing.result(wire.tool_call_id, wire.tool_name, notes)
        if wire.tool_name is None:
            notes["~name"] = TRUE
        is_error = wire.is_error is True
        if wire.is_error is False:
            notes["~raw:is_error"] = Raw(b"false")
        content = wire.content
        if isinstance(content, list):
            parts: Any = decode_parts(content, IN_RESULTS)
            if wire.kind is not UNSET:
                notes["kind"] = as_json(wire.kind)
            if is_error and not parts:
                notes[PARTS] = TRUE
            kind: Any = "error" if is_error else "multimodal"
            return ToolResult(call_id, name, kind, None, parts, metadata={FAMILY: notes} if notes else None)
        if not isinstance(content, str):
            got = "null" if content is None else "none"
            raise DecodeError(path=f"{place}.content", expected="text or parts", got=got, source=FAMILY)
        kind, value = read_value(as_json(content), wire.kind, notes, is_error=is_error, objects=False)
        return ToolResult(call_id, name, kind, value, metadata={FAMILY: notes} if notes else None)


def _marked(message: Message) -> Message:
    """`cache` on a system message: all of it may be cached."""
    parts = message.parts
    if not parts or not isinstance(parts[-1], Text):
        notes = {**(message.metadata or {}).get(FAMILY, {}), "cache": TRUE}
        return structs.replace(message, metadata={FAMILY: notes})
    notes = dict((message.metadata or {}).get(FAMILY, {}))
    if type(content_held(message)) is str:
        notes[CONTENT] = as_json("string")
    marked = structs.replace(parts[-1], cache=Cache())
    return Message(message.role, (*parts[:-1], marked), message.name, {FAMILY: notes} if notes else None)


class MessageEncoder(RoleEncoder):
    def __init__(self, log: LossLog, native: bool = False, *, answers: bool = False) -> None:  # noqa: FBT001, FBT002
        """`answers`: the messages are those of one answer, which keeps its order; in a history results follow calls."""
        super().__init__(STYLE, log, native=native)
        self._answers = answers

    def encode_message(self, message: Message) -> list[Raw]:
        if message.role == "system":
            return [self._system(message)]
        if message.role != "assistant":
            return super().encode_message(message)
        records: list[Raw] = []
        run: list[AnyPart] = []
        called = False  # whether there is a call in the run
        for part in message.parts:
            if isinstance(part, Reasoning):
                if called:
                    # Between a call and its result there is no place for another message.
                    self.log.degrade(part, "", "place of reasoning", "it is stored before the calls of its turn")
                elif run:
                    records.append(self._assistant(message, run, first=not records))
                    run = []
                records.append(self._reasoning(part))
                continue
            if called and self._answers and not isinstance(part, ToolCall | Refusal):
                # A record keeps its content before its calls: what follows a call is a further message.
                records.append(self._assistant(message, run, first=False))
                run, called = [], False
            called = called or isinstance(part, ToolCall)
            run.append(part)
        followed = self.native and note(message.metadata, FAMILY, OPEN) is UNSET
        if run or followed or not records:
            records.append(self._assistant(message, run, first=True))
        return records

    def _assistant(self, message: Message, parts: Sequence[AnyPart], *, first: bool) -> Raw:
        notes = dict(self.notes_of(message.metadata)) if first else {}
        refusals = [part for part in parts if isinstance(part, Refusal)]
        if refusals:
            notes["~raw:refusal"] = as_json("".join(part.text for part in refusals))
        return self.record_of(message, [part for part in parts if not isinstance(part, Refusal)], notes)

    def _system(self, message: Message) -> Raw:
        notes = dict(self.notes_of(message.metadata))
        parts = message.parts
        last = parts[-1] if parts else None
        if isinstance(last, Text) and last.cache is not None:
            notes["~raw:cache"] = TRUE
            if last.cache.ttl is not None:
                self.log.drop(last, "cache", "lifetime of a cache mark", "this format only says that there is one")
            parts = (*parts[:-1], structs.replace(last, cache=None))
        return self.record_of(message, parts, notes)

    def _reasoning(self, part: Reasoning) -> Raw:
        notes = self.notes_of(part.metadata)
        fields: dict[str, Any] = {"role": "reasoning"}
        spelled = note(part.metadata, FAMILY, CONTENT)
        if spelled != "absent":
            fields["content"] = None if spelled is None else part.text
        item = item_of(part)
        if item is not None and "~raw:raw_item" not in notes:
            fields["raw_item"] = item
        return spliced(as_json(fields), notes)

    def encode_result(self, result: ToolResult) -> Raw:
        notes = self.notes_of(result.metadata)
        report_result(result, self.log)
        fields: dict[str, Any] = {"role": "tool"}
        call_id = spelled_id(result.tool_call_id, notes)
        if call_id is not UNSET:
            fields["tool_call_id"] = call_id
        if "~name" not in notes:
            fields["tool_name"] = result.name
        if in_parts(result, notes):
            fields["content"] = encode_parts(result.parts, IN_RESULTS, self.log)
        else:
            fields["content"], marker = spelled_value(result, notes, objects=False)
            if marker is not UNSET:
                fields["kind"] = marker
        if result.is_error:
            fields["is_error"] = True
        return spliced(as_json(fields), notes)
