"""Messages of modular-prompt, both ways.

Written are the flat records of the newer specification; the older ones, shaped like OpenAI's, are read and go back as
they came: calls {id, type, function: {name, arguments: text}}, results {role, content: text, toolCallId}.
"""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Raw, structs

from dragoman.codecs.reading import WireReader, spliced
from dragoman.codecs.records.calls import CallRecord, CallStyle
from dragoman.codecs.records.modular_prompt.foreign_signatures import BAG, put_reasoning, take_reasoning
from dragoman.codecs.records.modular_prompt.wire import MessageRecord, ResultRecord
from dragoman.codecs.records.parts import ContentPart, PartStyle, decode_parts, encode_parts
from dragoman.codecs.records.reading import CONTENT, TRUE, as_json, read_record, spelled_id
from dragoman.codecs.records.results import report_result, text_of_parts
from dragoman.codecs.records.roles import RoleDecoder, RoleEncoder, RoleStyle
from dragoman.errors import DecodeError
from dragoman.ir import Image, Message, Reasoning, Role, Text, ToolResult
from dragoman.ir.notes import Extra
from dragoman.ir.parts import value_held
from dragoman.ir.values import compact_text, to_raw
from dragoman.losses import LossLog

FAMILY = "modular-prompt"
STYLE = RoleStyle(PartStyle(FAMILY, BAG, frozenset({Text, Image})), CallStyle(FAMILY, BAG), "toolCalls")
RESULT_PARTS = PartStyle(FAMILY, BAG, frozenset({Text, Image}))

KINDS = ("text", "data", "error", "multimodal")
NO_ROLE = "~no_role"
VALUE = "~value"

_message = WireReader(MessageRecord, FAMILY)
_call = WireReader(CallRecord, FAMILY)
_result = WireReader(ResultRecord, FAMILY, aliases={"tool_call_id": "toolCallId"})
_parts = WireReader(list[ContentPart], FAMILY)


class MessageDecoder(RoleDecoder):
    def __init__(self) -> None:
        super().__init__(STYLE)

    def add_message(self, role: Role, raw: Raw, place: str) -> None:
        wire = read_record(_message, raw, place, FAMILY)
        notes: Extra = {} if wire.extra is UNSET else dict(wire.extra)
        reasoning = take_reasoning(notes) if role == "assistant" else ()
        message = self.decode_message(role, wire, place, notes)
        if reasoning:
            message = structs.replace(message, parts=(*reasoning, *message.parts))
        self.messages.append(message)

    def add_bare(self, keys: dict[str, Raw], raw: Raw, place: str) -> None:
        if "toolCallId" in keys or "kind" in keys:
            self.messages.append(Message("tool", (self.decode_result(raw, place),)))
        elif "arguments" in keys or "function" in keys:
            self.add_bare_call(read_record(_call, raw, place, FAMILY), place)
        else:
            expected = "a message (role), a call (arguments) or a result (toolCallId)"
            raise DecodeError(path=place, expected=expected, got="keys of none of them", source=FAMILY)

    def decode_result(self, raw: Raw, place: str) -> ToolResult:
        wire = read_record(_result, raw, place, FAMILY)
        notes: Extra = {} if wire.extra is UNSET else dict(wire.extra)
        if wire.role is UNSET:
            notes[NO_ROLE] = TRUE
        call_id, name = self.pairing.result(wire.tool_call_id, wire.name, notes)
        if wire.name is None:
            notes["~name"] = TRUE
        if wire.kind is UNSET:
            return self._old_result(wire, ToolResult(call_id, name, "text"), notes, place)
        kind: Any = wire.kind
        if kind not in KINDS:
            raise DecodeError(
                path=f"{place}.kind", expected=f"one of {', '.join(KINDS)}", got=repr(kind), source=FAMILY
            )
        if wire.content is not UNSET:
            notes["content"] = self.peeker.keys(raw, place)["content"]
        if wire.value is UNSET:
            raise DecodeError(path=place, expected="a result with value", got="none", source=FAMILY)
        if kind == "multimodal":
            listed = read_record(_parts, wire.value, f"{place}.value", FAMILY)
            parts: Any = decode_parts(listed, RESULT_PARTS)
            return ToolResult(call_id, name, kind, None, parts, metadata=_kept(notes))
        if kind == "text" and bytes(wire.value)[:1] != b'"':
            # The old program made text of whatever was there.
            notes[VALUE] = wire.value
            return ToolResult(call_id, name, "text", compact_text(wire.value), metadata=_kept(notes))
        return ToolResult(call_id, name, kind, wire.value, metadata=_kept(notes))

    def _old_result(self, wire: ResultRecord, result: ToolResult, notes: Extra, place: str) -> ToolResult:
        content = wire.content
        if wire.value is not UNSET or content is UNSET or content is None:
            raise DecodeError(path=place, expected="a result with kind and value", got="no kind", source=FAMILY)
        notes[CONTENT] = TRUE
        if isinstance(content, str):
            return structs.replace(result, value=content, metadata=_kept(notes))
        parts: Any = decode_parts(content, RESULT_PARTS)
        return structs.replace(result, kind="multimodal", parts=parts, metadata=_kept(notes))


def _kept(notes: Extra) -> dict[str, Extra] | None:
    return {FAMILY: notes} if notes else None


class MessageEncoder(RoleEncoder):
    def __init__(self, log: LossLog, native: bool = False) -> None:  # noqa: FBT001, FBT002
        super().__init__(STYLE, log, native=native)

    def encode_message(self, message: Message) -> list[Raw]:
        parts = message.parts
        reasoning = [part for part in parts if isinstance(part, Reasoning)]
        if not reasoning or message.role != "assistant":
            return super().encode_message(message)
        fields = dict(self.notes_of(message.metadata))
        put_reasoning(fields, reasoning)
        said = [part for part in parts if not isinstance(part, Reasoning)]
        first = next((index for index, part in enumerate(parts) if not isinstance(part, Reasoning)), len(parts))
        for part in parts[first:]:
            if isinstance(part, Reasoning):
                self.log.degrade(part, "", "place of reasoning", "it is stored beside the message, before its words")
        return [self.record_of(message, said, fields)]

    def encode_result(self, result: ToolResult) -> Raw:
        notes = self.notes_of(result.metadata)
        report_result(result, self.log)
        fields: dict[str, Any] = {} if NO_ROLE in notes else {"role": "tool"}
        call_id = spelled_id(result.tool_call_id, notes)
        if call_id is not UNSET:
            fields["toolCallId"] = call_id
        if "~name" not in notes:
            fields["name"] = result.name
        if CONTENT in notes and result.kind in {"text", "multimodal"}:
            listed = result.kind == "multimodal"
            fields["content"] = encode_parts(result.parts, RESULT_PARTS, self.log) if listed else result.value
        else:
            fields |= {"kind": result.kind, "value": self._value(result, notes)}
        return spliced(as_json(fields), notes)

    def _value(self, result: ToolResult, notes: Extra) -> Any:
        if result.kind == "multimodal":
            return encode_parts(result.parts, RESULT_PARTS, self.log)
        if result.parts:
            for part in result.parts:
                if not isinstance(part, Text):
                    self.log.drop(part, "", type(part).__name__.lower(), "an error of this format is text")
            return text_of_parts(result)
        return notes.get(VALUE, to_raw(value_held(result)))
