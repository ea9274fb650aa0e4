"""Decodes and encodes histories and answers of multi-llm-chat.

An entry is {role, content}, with content a string (old) or a list of typed parts. Its role is the speaker: user,
system, tool, or the name of a model. An entry may hold results among other parts; the intermediate format keeps results
in separate messages, so such an entry becomes several messages, and they become one entry again. Files of saved
conversations are read, too: the turns are the messages, with the system prompt as the first. Any name and any id is
accepted (tools whose names clash are called "server:tool"). There are no streams and no errors.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from msgspec import UNSET, Raw, UnsetType, structs

from dragoman.codecs.encoded import Encoded
from dragoman.codecs.layout import Envelope, Layout
from dragoman.codecs.part_handlers import name_of_part
from dragoman.codecs.reading import WireReader, as_json, check_text, keep, spliced
from dragoman.codecs.records.answers import finish_with, only_message
from dragoman.codecs.records.calls import CallStyle, read_given, report_call, spelled_arguments
from dragoman.codecs.records.history import (
    EarlierParts,
    History,
    HistoryDocument,
    Places,
)
from dragoman.codecs.records.pairing import Pairing
from dragoman.codecs.records.parts import report_part
from dragoman.codecs.records.reading import ABSENT, CONTENT, NULL, TRUE, is_list, read_record, spelled_id
from dragoman.codecs.records.refusals import no_errors, no_streams
from dragoman.codecs.records.results import read_value, report_result, spelled_value
from dragoman.codecs.records.roles import within_part
from dragoman.codecs.records.signatures import put_signature, take_signature
from dragoman.codecs.records.tools import ToolStyle
from dragoman.codecs.shared_tools import text_within
from dragoman.codecs.wire_values import MaybeStr, Unmodelled, Wire
from dragoman.errors import DecodeError
from dragoman.ir import (
    AnyPart,
    Completion,
    Document,
    Message,
    Opaque,
    Reasoning,
    Refusal,
    Request,
    Role,
    Text,
    ToolCall,
    ToolResult,
)
from dragoman.ir.notes import Extra, family_notes, inner_extra
from dragoman.ir.values import note, parse_json
from dragoman.losses import LossLog, PathLookup
from dragoman.profile import Profile

PROFILE = Profile(
    name="multi-llm-chat", family="multi-llm-chat", names_speakers=True, tool_name=re.compile(r".*", re.DOTALL)
)

LAYOUT = Layout(
    calls="content",
    call_sign=("type", "tool_call"),
    call_envelope=Envelope("content", ("type",), beside=(("type", "tool_call"),)),
    results=("tool", "content"),
    result_names="kept",
)


# ── wire structs ─────────────────────────────────────────────────────────────────────────────────────────────────


class TextPart(Wire, frozen=True, tag="text"):
    content: str


class CallContent(Wire, frozen=True):
    name: str
    arguments: Raw | UnsetType = UNSET
    tool_call_id: str | None | UnsetType = UNSET


class CallPart(Wire, frozen=True, tag="tool_call"):
    """A call: nested in the specification; the loop of the old program wrote the same keys flat, beside the type."""

    content: CallContent | UnsetType = UNSET
    name: str | UnsetType = UNSET
    arguments: Raw | UnsetType = UNSET
    tool_call_id: str | None | UnsetType = UNSET


class ResultPart(Wire, frozen=True, tag="tool_result"):
    content: Raw | UnsetType = UNSET
    name: MaybeStr = None
    tool_call_id: str | None | UnsetType = UNSET
    is_error: bool | UnsetType = UNSET
    kind: str | UnsetType = UNSET


class ReasoningPart(Wire, frozen=True, tag="reasoning"):
    content: str
    redacted: bool | UnsetType = UNSET


AnyPartWire: TypeAlias = TextPart | CallPart | ResultPart | ReasoningPart | Unmodelled


class Entry(Wire, frozen=True):
    role: str
    content: str | list[AnyPartWire | str] | None | UnsetType = UNSET
    name: MaybeStr = None
    tool_call_id: str | None | UnsetType = UNSET
    is_error: bool | UnsetType = UNSET


class StoredChat(HistoryDocument, frozen=True, omit_defaults=True):
    """A saved conversation: the turns, and the system prompt beside them."""

    system_prompt: MaybeStr = None


# ── messages ─────────────────────────────────────────────────────────────────────────────────────────────────────

FAMILY = "multi-llm-chat"
BAG = "metadata"
CALLS = CallStyle(FAMILY, BAG, id="tool_call_id")

GOES_ON = "~goes_on"
"""Note: this message continues the entry of the message before it."""
FLAT = "~flat"
BARE = "~bare"
ROLE = "~role"
"""Note: the role of an entry, if it cannot be derived from the message."""

ASSISTANT = "assistant"
OTHER_ROLES: dict[str, Role] = {"user": "user", "system": "system", "tool": "tool", ASSISTANT: "assistant"}
"""Every other role is the name of a model."""

_entry = WireReader(Entry, FAMILY, aliases={"text": "content", "id": "tool_call_id"})

Run: TypeAlias = tuple[bool, list[AnyPart]]
"""Whether these are results, and the parts."""


# ── decoding ──────────────────────────────────────────────────────────────────────────────────────────────────


class MessageDecoder:
    """Decodes entries in order; results are matched to the calls before them."""

    def __init__(self) -> None:
        self._pairing = Pairing()
        self._place = ""

    def decode(self, records: Sequence[Raw], path: str) -> tuple[Message, ...]:
        messages: list[Message] = []
        for index, raw in enumerate(records):
            messages += self.decode_entry(raw, f"{path}[{index}]")
        return tuple(messages)

    def decode_entry(self, raw: Raw, place: str) -> list[Message]:
        wire = read_record(_entry, raw, place, FAMILY)
        self._place = place
        notes: Extra = {} if wire.extra is UNSET else dict(wire.extra)
        role = OTHER_ROLES.get(wire.role, "assistant")
        if role == "tool" and isinstance(wire.content, str):
            return [Message("tool", (self._old_result(wire, wire.content, notes),))]
        name = self._name(wire, role, notes)
        content = wire.content
        if isinstance(content, str):
            notes[CONTENT] = as_json("string")
            return [Message(role, content, name, {FAMILY: notes})]
        if not isinstance(content, list):
            notes[CONTENT] = ABSENT if content is UNSET else NULL
            return [Message(role, (), name, {FAMILY: notes})]
        parts = [self._decode_part(part, f"{place}.content[{index}]") for index, part in enumerate(content)]
        return _split(role, parts, name, notes)

    def _name(self, wire: Entry, role: Role, notes: Extra) -> str | None:
        for key, value in (("tool_call_id", wire.tool_call_id), ("is_error", wire.is_error)):
            if value is not UNSET:
                notes[key] = as_json(value)
        if role == "assistant" and wire.role != ASSISTANT:
            if wire.name is not None:
                notes["name"] = as_json(wire.name)
            return wire.role
        if role == "assistant" and wire.name is not None:
            notes[ROLE] = as_json(ASSISTANT)
        if role == "tool" and wire.name is not None:
            notes["name"] = as_json(wire.name)
            return None
        return wire.name

    def _old_result(self, wire: Entry, content: str, notes: Extra) -> ToolResult:
        """Return the result in a tool entry whose content is a string: the entry itself names the tool."""
        notes[CONTENT] = as_json("string")
        call_id, name = self._pair(wire, notes)
        return ToolResult(
            call_id, name, "error" if wire.is_error is True else "text", content, metadata={FAMILY: notes}
        )

    def _pair(self, wire: Entry | ResultPart, notes: Extra) -> tuple[str, str]:
        """Return id and name of the call that the result answers; `notes` gets how the wire spells them."""
        call_id, name = self._pairing.result(wire.tool_call_id, wire.name, notes)
        if wire.name is None:
            notes["~name"] = TRUE
        if wire.is_error is False:
            notes["~raw:is_error"] = Raw(b"false")
        return call_id, name

    def _decode_part(self, wire: AnyPartWire | str, place: str) -> AnyPart:
        if isinstance(wire, str):
            return Text(wire, metadata={FAMILY: {BARE: TRUE}})
        return _DECODE_PART[type(wire)](self, wire, place)

    def decode_text(self, wire: TextPart, place: str) -> Text:
        del place
        metadata = keep(FAMILY, wire.extra)
        signature = None if metadata is None else take_signature(metadata[FAMILY], BAG)
        return Text(wire.content, signature=signature, metadata=metadata)

    def decode_reasoning(self, wire: ReasoningPart, place: str) -> Reasoning:
        del place
        notes: Extra = {} if wire.extra is UNSET else dict(wire.extra)
        if wire.redacted is False:
            notes["~raw:redacted"] = Raw(b"false")
        signature = take_signature(notes, BAG)
        return Reasoning(wire.content, signature, wire.redacted is True, {FAMILY: notes} if notes else None)

    def decode_call(self, wire: CallPart, place: str) -> ToolCall:
        inner = wire if wire.content is UNSET else wire.content
        if inner.name is UNSET:
            raise DecodeError(path=place, expected="a call with content or name", got="neither", source=FAMILY)
        notes: Extra = {} if wire.extra is UNSET else dict(wire.extra)
        if wire.content is UNSET:
            notes[FLAT] = TRUE
            signature = take_signature(notes, BAG)
        else:
            for key in ("name", "arguments", "tool_call_id"):
                if getattr(wire, key) is not UNSET:
                    notes[key] = as_json(getattr(wire, key))
            within: Extra = {} if wire.content.extra is UNSET else dict(wire.content.extra)
            signature = take_signature(within, BAG)
            notes.update((keep(FAMILY, UNSET, content=within or UNSET) or {FAMILY: {}})[FAMILY])
        held, text = read_given(inner.arguments, notes, place, FAMILY, as_text=False)
        call_id, invented = self._pairing.call(inner.tool_call_id, inner.name, place, notes)
        metadata = {FAMILY: notes} if notes else None
        return ToolCall(call_id, inner.name, held, text, invented_id=invented, signature=signature, metadata=metadata)

    def decode_result(self, wire: ResultPart, place: str) -> ToolResult:
        notes: Extra = {} if wire.extra is UNSET else dict(wire.extra)
        call_id, name = self._pair(wire, notes)
        if wire.content is UNSET:
            raise DecodeError(path=place, expected="a result with content", got="none", source=FAMILY)
        kind, value = read_value(wire.content, wire.kind, notes, is_error=wire.is_error is True)
        return ToolResult(call_id, name, kind, value, metadata={FAMILY: notes} if notes else None)

    def decode_unmodelled(self, wire: Unmodelled, place: str) -> Opaque:
        del place
        return Opaque(FAMILY, str(parse_json(wire.raw).get("type")), wire.raw)


_DECODE_PART: dict[type[Wire], Callable[[MessageDecoder, Any, str], AnyPart]] = {
    TextPart: MessageDecoder.decode_text,
    ReasoningPart: MessageDecoder.decode_reasoning,
    CallPart: MessageDecoder.decode_call,
    ResultPart: MessageDecoder.decode_result,
    Unmodelled: MessageDecoder.decode_unmodelled,
}


def _split(role: Role, parts: list[AnyPart], name: str | None, notes: Extra) -> list[Message]:
    """Return an entry's parts as messages, with results separated from everything else."""
    runs: list[Run] = []
    for part in parts:
        is_result = isinstance(part, ToolResult)
        if not runs or runs[-1][0] != is_result:
            runs.append((is_result, []))
        runs[-1][1].append(part)
    if not runs:
        return [Message(role, (), name, {FAMILY: notes} if notes else None)]
    messages: list[Message] = []
    for is_result, run in runs:
        speaker: Role = "tool" if is_result else _speaker(role, run)
        kept: Extra = notes if not messages else {GOES_ON: TRUE}
        if not messages and speaker != role:
            is_name = role == "assistant" and name is not None and ROLE not in notes
            kept = {ROLE: as_json(name if is_name else role), **kept}
            if name is not None and not is_name:
                kept["name"] = as_json(name)
        speaker_name = name if speaker == role else None
        messages.append(Message(speaker, tuple(run), speaker_name, {FAMILY: kept} if kept else None))
    return messages


def _speaker(role: Role, run: list[AnyPart]) -> Role:
    if any(isinstance(part, ToolCall) for part in run):
        return "assistant"
    return "user" if role == "tool" else role


# ── encoding ──────────────────────────────────────────────────────────────────────────────────────────────────


class MessageEncoder:
    def __init__(self, log: LossLog) -> None:
        self._log = log

    def encode(self, messages: Sequence[Message]) -> list[Raw]:
        entries: list[tuple[Message, list[AnyPart]]] = []
        for message in messages:
            if entries and note(message.metadata, FAMILY, GOES_ON) is not UNSET:
                entries[-1][1].extend(message.parts)
            else:
                entries.append((message, list(message.parts)))
        return [self.encode_entry(message, parts) for message, parts in entries]

    def encode_entry(self, message: Message, parts: Sequence[AnyPart]) -> Raw:
        notes = family_notes(FAMILY, message.metadata)
        if message.role == "tool" and len(parts) == 1 and isinstance(parts[0], ToolResult):
            old = family_notes(FAMILY, parts[0].metadata)
            if CONTENT in old:
                return self._old_result(parts[0], old)
        fields: dict[str, Any] = {"role": self._role(message, notes)}
        spelled = note(message.metadata, FAMILY, CONTENT)
        content = message.content_held
        if spelled == "string" and type(content) is str:
            fields["content"] = content
        elif spelled is None:
            fields["content"] = None
        elif spelled != "absent":
            fields["content"] = [wire for part in parts if (wire := self._encode_part(part)) is not None]
        if message.name is not None and fields["role"] != message.name:
            fields["name"] = message.name
        return spliced(as_json(fields), notes)

    def _role(self, message: Message, notes: Extra) -> str:
        if ROLE in notes:
            return str(parse_json(notes[ROLE]))
        if message.role != "assistant" or message.name is None:
            return message.role
        return ASSISTANT if message.name in OTHER_ROLES or not message.name else message.name

    def _old_result(self, result: ToolResult, notes: Extra) -> Raw:
        fields: dict[str, Any] = {"role": "tool", "content": result.value}
        if "~name" not in notes:
            fields["name"] = result.name
        return self._finish_result(fields, result, notes)

    def _finish_result(self, fields: dict[str, Any], result: ToolResult, notes: Extra) -> Raw:
        call_id = spelled_id(result.tool_call_id, notes)
        if call_id is not UNSET:
            fields["tool_call_id"] = call_id
        if result.is_error:
            fields["is_error"] = True
        return spliced(as_json(fields), notes)

    def _encode_part(self, part: AnyPart) -> Any:
        if isinstance(part, Opaque) and part.origin == FAMILY:
            return part.block_held
        encode = _ENCODE_PART.get(type(part))
        return self._refuse(part) if encode is None else encode(self, part)

    def encode_text(self, part: Text) -> Any:
        notes = family_notes(FAMILY, part.metadata)
        if BARE in notes:
            return part.text
        report_part(part, self._log)
        fields: dict[str, Any] = {"type": "text", "content": part.text}
        put_signature(fields, part.signature, BAG, notes)
        return spliced(as_json(fields), notes)

    def encode_reasoning(self, part: Reasoning) -> Any:
        notes = family_notes(FAMILY, part.metadata)
        fields: dict[str, Any] = {"type": "reasoning", "content": part.text}
        if part.redacted:
            fields["redacted"] = True
        put_signature(fields, part.signature, BAG, notes)
        return spliced(as_json(fields), notes)

    def encode_call(self, call: ToolCall) -> Any:
        notes = family_notes(FAMILY, call.metadata)
        report_call(call, self._log)
        described: dict[str, Any] = {"name": call.name}
        arguments = spelled_arguments(call, notes, as_text=False)
        if arguments is not UNSET:
            described["arguments"] = arguments
        call_id = spelled_id(call.id, notes)
        if call_id is not UNSET:
            described["tool_call_id"] = call_id
        if FLAT in notes:
            put_signature(described, call.signature, BAG, notes)
            return spliced(as_json({"type": "tool_call", **described}), notes)
        within = inner_extra(notes, "content") or {}
        put_signature(described, call.signature, BAG, within)
        return spliced(as_json({"type": "tool_call", "content": spliced(as_json(described), within)}), notes)

    def encode_result(self, result: ToolResult) -> Any:
        notes = family_notes(FAMILY, result.metadata)
        report_result(result, self._log)
        fields: dict[str, Any] = {"type": "tool_result"}
        if "~name" not in notes:
            fields["name"] = result.name
        if result.parts or result.kind == "multimodal":
            fields["content"] = text_within(result)
            self._report_media(result)
        else:
            fields["content"], marker = spelled_value(result, notes)
            if marker is not UNSET:
                fields["kind"] = marker
        return self._finish_result(fields, result, notes)

    def _report_media(self, result: ToolResult) -> None:
        for part in result.parts:
            if not isinstance(part, Text):
                self._log.drop(part, "", name_of_part(part), "results of this format are text or an object")
            else:
                report_part(part, self._log)
        if len(result.parts) != 1 or not isinstance(result.parts[0], Text):
            self._log.degrade(result, "", "parts of a result", "stored as one text")

    def encode_words(self, part: Refusal | Document) -> Any:
        if part.text is None:
            return self._refuse(part)
        self._log.degrade(part, "", name_of_part(part), "stored as plain text")
        return as_json({"type": "text", "content": part.text})

    def _refuse(self, part: AnyPart) -> None:
        self._log.drop(part, "", name_of_part(part), "entries of this format hold text, calls and results")


_ENCODE_PART: dict[type[AnyPart], Callable[[MessageEncoder, Any], Any]] = {
    Text: MessageEncoder.encode_text,
    Reasoning: MessageEncoder.encode_reasoning,
    ToolCall: MessageEncoder.encode_call,
    ToolResult: MessageEncoder.encode_result,
    Refusal: MessageEncoder.encode_words,
    Document: MessageEncoder.encode_words,
}


# ── requests ─────────────────────────────────────────────────────────────────────────────────────────────────────

PROMPT = "~system_prompt"
"""Note: this message is the system prompt of a saved conversation, not one of its turns."""

_reader = WireReader(StoredChat, FAMILY, aliases={"turns": "messages", "history": "messages"})
HISTORY = History(FAMILY, ToolStyle(FAMILY), _reader, MessageDecoder, lambda log, _native: MessageEncoder(log))


def decode_request(body: bytes) -> Request:
    request = HISTORY.decode_request(body)
    prompt = None if is_list(body) else _reader.read(body).system_prompt
    if prompt is None:
        return request
    first = Message("system", prompt, None, {FAMILY: {PROMPT: TRUE}})
    return structs.replace(request, messages=(first, *request.messages))


def encode_request(request: Request, log: LossLog) -> Encoded:
    first = request.messages[0] if request.messages else None
    if first is None or note(first.metadata, FAMILY, PROMPT) is UNSET:
        return HISTORY.encode_request(request, log)
    encoded = HISTORY.encode_request(structs.replace(request, messages=request.messages[1:]), log)
    return Encoded(bytes(spliced(Raw(encoded.content), {"system_prompt": as_json(first.text)})))


# ── paths of losses ───────────────────────────────────────────────────────────────────────────────────────────


def request_paths(request: Request) -> PathLookup:
    """Return a lookup of where in the stored body the nodes of a request came from. Counts are computed on demand."""
    messages = request.messages
    own = _places.paths(request)
    entries: list[tuple[list[tuple[int, int]], PathLookup]] = []

    def json_path(message_index: int | None, part_index: int | None, field: str) -> str:
        if message_index is not None and note(messages[message_index].metadata, FAMILY, PROMPT) is not UNSET:
            return "$.system_prompt"
        if message_index is not None and part_index is not None:
            if not entries:
                starts, joined = _joined_entries(messages)
                entries.append((starts, _places.paths(structs.replace(request, messages=joined))))
            starts, lookup = entries[0]
            first, before = starts[message_index]
            return lookup(first, before + part_index, field)
        if field == "name" and message_index is not None and _is_model(messages[message_index]):
            field = "role"
        return own(message_index, part_index, field)

    return json_path


def _is_model(message: Message) -> bool:
    """Return whether the entry names its speaker by its role."""
    return message.role == "assistant" and note(message.metadata, FAMILY, ROLE) is UNSET


def _joined_entries(messages: tuple[Message, ...]) -> tuple[list[tuple[int, int]], tuple[Message, ...]]:
    """Return, per message, (first message of its entry, number of the entry's parts before it), and joined messages.

    Joined: the first message of each entry has all parts of the entry.
    """
    starts: list[tuple[int, int]] = []
    parts: dict[int, list[AnyPart]] = {}
    for index, message in enumerate(messages):
        goes_on = bool(starts) and note(message.metadata, FAMILY, GOES_ON) is not UNSET
        first = starts[-1][0] if goes_on else index
        starts.append((first, len(parts.setdefault(first, []))))
        parts[first] += message.parts
    several = {first for index, (first, _) in enumerate(starts) if first != index}
    joined = tuple(
        structs.replace(message, parts=tuple(parts[index])) if index in several else message
        for index, message in enumerate(messages)
    )
    return starts, joined


def _count(message: Message) -> int:
    return 0 if message.metadata and {GOES_ON, PROMPT} & message.metadata.get(FAMILY, {}).keys() else 1


def _place(message: Message, part_index: int, field: str, earlier: EarlierParts) -> tuple[int, str]:  # noqa: ARG001
    part = message.parts[part_index]
    if type(message.content_held) is str:
        return 0, ".content"
    within = within_part(part, field, FAMILY, BAG)
    if CONTENT in (getattr(part, "metadata", None) or {}).get(FAMILY, {}):
        return 0, within
    return 0, f".content[{part_index}]{within}"


_places = Places(HISTORY, _count, _place)


# ── answers ──────────────────────────────────────────────────────────────────────────────────────────────────────


def decode_response(body: bytes) -> Completion:
    check_text(body, FAMILY)
    messages = MessageDecoder().decode_entry(Raw(body), "$")
    if len(messages) != 1 or messages[0].role != "assistant":
        got = messages[0].role if len(messages) == 1 else "results among its parts"
        raise DecodeError(path="$.role", expected="the entry of a model", got=got, source=FAMILY)
    return Completion(tuple(messages), finish_with(messages[0]), metadata={FAMILY: {}})


def encode_response(completion: Completion, log: LossLog) -> Encoded:
    message = only_message(completion, log)
    return Encoded(bytes(MessageEncoder(log).encode_entry(message, message.parts)))


def response_paths(completion: Completion) -> PathLookup:
    """Return a lookup of where in the stored answer the nodes of a completion came from."""
    lookup = request_paths(Request(None, completion.messages))

    def json_path(message_index: int | None, part_index: int | None, field: str) -> str:
        if message_index is None:
            return "$"
        return "$" + lookup(message_index, part_index, field).removeprefix("$.messages[0]")

    return json_path


# ── errors and streams ───────────────────────────────────────────────────────────────────────────────────────────

decode_error, encode_error = no_errors("multi-llm-chat")

PayloadDecoder, EventEncoder = no_streams("multi-llm-chat")
