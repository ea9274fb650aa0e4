"""Decodes and encodes universal histories and answers.

Messages are {role, content, tool_calls?}, calls {id, name, arguments, raw_context?}, results separate records without a
role: {tool_call_id, name, result, …}. Calls as separate records and results with role "tool" are read, too. An answer
is one message. Any name and any id is accepted, in any order of turns. There are no streams and no errors.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Any

from msgspec import UNSET, Raw, UnsetType

from dragoman.codecs.encoded import Encoded
from dragoman.codecs.layout import Layout
from dragoman.codecs.reading import WireReader, as_json, spliced
from dragoman.codecs.records.answers import finish_with, only_message
from dragoman.codecs.records.calls import CallRecord, CallStyle
from dragoman.codecs.records.history import (
    EarlierParts,
    History,
    HistoryDocument,
    Places,
    answer_paths,
)
from dragoman.codecs.records.parts import (
    EVERY_PART,
    RESULT_PARTS,
    Content,
    ContentPart,
    PartStyle,
    decode_parts,
    encode_parts,
    is_plain,
)
from dragoman.codecs.records.reading import NULL, TRUE, read_record, spelled_id
from dragoman.codecs.records.refusals import no_errors, no_streams
from dragoman.codecs.records.results import PARTS, in_parts, read_value, report_result, spelled_value
from dragoman.codecs.records.roles import RoleDecoder, RoleEncoder, RoleStyle, count_records, place_of
from dragoman.codecs.records.tools import ToolStyle
from dragoman.codecs.result_errors import NOT_AN_ERROR
from dragoman.codecs.wire_values import MaybeStr, Wire
from dragoman.errors import DecodeError
from dragoman.ir import AnyPart, Completion, Message, Role, Text, ToolResult
from dragoman.ir.notes import DATA_TEXT, Extra, is_data_text
from dragoman.ir.values import compact_text, exact_json, parse_json
from dragoman.losses import LossLog, at
from dragoman.profile import Profile

PROFILE = Profile(name="universal", family="universal", names_speakers=True, tool_name=re.compile(r".*", re.DOTALL))

LAYOUT = Layout(result_names="kept")


# ── wire structs ─────────────────────────────────────────────────────────────────────────────────────────────────


class MessageRecord(Wire, frozen=True):
    role: str
    content: Content = UNSET
    name: MaybeStr = None
    tool_calls: list[CallRecord] | UnsetType = UNSET


class ResultRecord(Wire, frozen=True):
    tool_call_id: str | None | UnsetType = UNSET
    name: MaybeStr = None
    result: Raw | UnsetType = UNSET
    is_error: bool | UnsetType = UNSET
    multimodal_parts: list[ContentPart] | UnsetType = UNSET
    kind: str | UnsetType = UNSET
    role: str | UnsetType = UNSET


# ── messages ─────────────────────────────────────────────────────────────────────────────────────────────────────

FAMILY = "universal"
BAG = "raw_context"
STYLE = RoleStyle(PartStyle(FAMILY, BAG, EVERY_PART), CallStyle(FAMILY, BAG))
IN_RESULTS = PartStyle(FAMILY, BAG, RESULT_PARTS)

_message = WireReader(MessageRecord, FAMILY)
_call = WireReader(CallRecord, FAMILY)
_result = WireReader(ResultRecord, FAMILY)

NO_FLAG = "~no_flag"
"""Note: the result did not say whether it is an error."""
RESULT = "~result"
"""Note: the value of `result` beside media parts, if it was not text."""


class MessageDecoder(RoleDecoder):
    def __init__(self) -> None:
        super().__init__(STYLE)

    def add_message(self, role: Role, raw: Raw, place: str) -> None:
        self.messages.append(self.decode_message(role, read_record(_message, raw, place, FAMILY), place))

    def add_bare(self, keys: dict[str, Raw], raw: Raw, place: str) -> None:
        if "tool_call_id" in keys or "result" in keys:
            self.messages.append(Message("tool", (self.decode_result(raw, place),)))
        elif "arguments" in keys or "function" in keys:
            self.add_bare_call(read_record(_call, raw, place, FAMILY), place)
        else:
            expected = "a message (role), a call (arguments) or a result (tool_call_id)"
            raise DecodeError(path=place, expected=expected, got="keys of none of them", source=FAMILY)

    def decode_result(self, raw: Raw, place: str) -> ToolResult:
        wire = read_record(_result, raw, place, FAMILY)
        notes: Extra = {} if wire.extra is UNSET else dict(wire.extra)
        if wire.role is not UNSET:
            notes["~raw:role"] = as_json(wire.role)
        if wire.is_error is UNSET:
            notes[NO_FLAG] = TRUE
        elif not wire.is_error:
            notes[NOT_AN_ERROR] = Raw(b"false")
        call_id, name = self.pairing.result(wire.tool_call_id, wire.name, notes)
        if wire.name is None:
            notes["~name"] = TRUE
        is_error = wire.is_error is True
        if wire.multimodal_parts is not UNSET:
            parts: Any = _with_text(wire.result, decode_parts(wire.multimodal_parts, IN_RESULTS), notes)
            if wire.kind is not UNSET:
                notes["kind"] = as_json(wire.kind)
            if is_error and not parts:
                notes[PARTS] = TRUE
            return ToolResult(
                call_id,
                name,
                "error" if is_error else "multimodal",
                None,
                parts,
                metadata={FAMILY: notes} if notes else None,
            )
        if wire.result is UNSET:
            raise DecodeError(path=place, expected="a result", got="none", source=FAMILY)
        kind, value = read_value(wire.result, wire.kind, notes, is_error=is_error)
        return ToolResult(call_id, name, kind, value, metadata={FAMILY: notes} if notes else None)


def _with_text(result: Raw | UnsetType, media: tuple[AnyPart, ...], notes: Extra) -> tuple[AnyPart, ...]:
    """Return the media with the returned value, as text, before them."""
    if result is UNSET or bytes(result) == b"null":
        notes[RESULT] = as_json("absent") if result is UNSET else NULL
        return media
    value = parse_json(result)
    if value == "" and media and is_plain(media[0]):
        notes[RESULT] = result
    if isinstance(value, str):
        return (Text(value), *media) if value else media
    notes[RESULT] = result
    return (Text(compact_text(result), metadata={FAMILY: {DATA_TEXT: TRUE}}), *media)


_NOTHING: dict[bytes, Any] = {b"null": None, b'"absent"': UNSET, b'""': ""}


class MessageEncoder(RoleEncoder):
    def __init__(self, log: LossLog, native: bool = False) -> None:  # noqa: FBT001, FBT002
        super().__init__(STYLE, log, native=native)

    def encode_result(self, result: ToolResult) -> Raw:
        notes = self.notes_of(result.metadata)
        report_result(result, self.log)
        fields: dict[str, Any] = {}
        call_id = spelled_id(result.tool_call_id, notes)
        if call_id is not UNSET:
            fields["tool_call_id"] = call_id
        if "~name" not in notes:
            fields["name"] = result.name
        if in_parts(result, notes):
            fields |= self._media(result, notes)
        else:
            value, marker = spelled_value(result, notes)
            fields["result"] = value
            if marker is not UNSET:
                fields["kind"] = marker
        if NO_FLAG not in notes or result.is_error:
            fields["is_error"] = result.is_error
        return spliced(as_json(fields), notes)

    def _media(self, result: ToolResult, notes: Extra) -> dict[str, Any]:
        parts: Any = result.parts
        given = notes.get(RESULT)
        first = parts[0] if parts else None
        text: Any = ""
        if given is not None and bytes(given) in _NOTHING:
            text = _NOTHING[bytes(given)]
        elif isinstance(first, Text) and is_data_text(first.metadata) and (value := exact_json(first.text)):
            parts = parts[1:]
            text = given if given is not None and compact_text(given) == first.text else value
        elif isinstance(first, Text) and is_plain(first) and first.text:
            parts = parts[1:]
            text = given if given is not None else first.text
        fields = {} if text is UNSET else {"result": text}
        return {**fields, "multimodal_parts": encode_parts(parts, IN_RESULTS, self.log)}


# ── requests ─────────────────────────────────────────────────────────────────────────────────────────────────────

HISTORY = History(FAMILY, ToolStyle(FAMILY), WireReader(HistoryDocument, FAMILY), MessageDecoder, MessageEncoder)


decode_request = HISTORY.decode_request
encode_request = HISTORY.encode_request


request_paths = Places(HISTORY, partial(count_records, style=STYLE), partial(place_of, style=STYLE)).paths


# ── answers ──────────────────────────────────────────────────────────────────────────────────────────────────────

_reader = WireReader(MessageRecord, f"{FAMILY} answer")


def decode_response(body: bytes) -> Completion:
    role = _reader.read(body).role
    if role != "assistant":
        raise DecodeError(path="$.role", expected="assistant", got=repr(role), source=FAMILY)
    decoder = MessageDecoder()
    decoder.add_message("assistant", Raw(body), "$")
    (message,) = decoder.messages
    return Completion((message,), finish_with(message), metadata={FAMILY: {}})


def encode_response(completion: Completion, log: LossLog) -> Encoded:
    (record,) = MessageEncoder(log).encode_message(only_message(completion, log))
    return Encoded(bytes(record))


def _json_path(
    completion: Completion, earlier: EarlierParts, message_index: int | None, part_index: int | None, field: str
) -> str:
    """Return where in the stored answer a node of the completion came from."""
    if message_index is None:
        return "$"
    if part_index is None:
        return at("$", field)
    return "$" + place_of(completion.messages[message_index], part_index, field, earlier, STYLE)[1]


response_paths = answer_paths(_json_path)


# ── errors and streams ───────────────────────────────────────────────────────────────────────────────────────────

decode_error, encode_error = no_errors("universal")

PayloadDecoder, EventEncoder = no_streams("universal")
