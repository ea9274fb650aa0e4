"""Decodes and encodes histories and answers of modular-prompt.

It writes the flat records of the newer specification: messages with `toolCalls`, results {toolCallId, name, kind,
value}. The older ones, shaped like OpenAI's, are read and written back unchanged: calls {id, type, function: {name,
arguments: text}}, results {role, content: text, toolCallId}. An answer is the result of a query: {content, toolCalls?,
finishReason?, usage?}. Tool names have letters, digits, `_` and `-`, at most 64. There are no streams and no errors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from msgspec import UNSET, Raw, UnsetType, field, structs

from dragoman.codecs.encoded import Encoded
from dragoman.codecs.layout import Layout
from dragoman.codecs.part_handlers import name_of_part
from dragoman.codecs.reading import WireReader, as_json, check_text, keep, spliced
from dragoman.codecs.records.answers import finish_with, only_message
from dragoman.codecs.records.calls import CallRecord, CallStyle
from dragoman.codecs.records.history import (
    EarlierParts,
    History,
    HistoryDocument,
    Places,
    answer_paths,
)
from dragoman.codecs.records.parts import Content, ContentPart, PartStyle, decode_parts, encode_parts
from dragoman.codecs.records.reading import CONTENT, TRUE, Peeker, read_record, spelled_id
from dragoman.codecs.records.refusals import no_errors, no_streams
from dragoman.codecs.records.results import report_result
from dragoman.codecs.records.roles import RoleDecoder, RoleEncoder, RoleStyle, count_records, place_of
from dragoman.codecs.records.signatures import bag_of, signature_in
from dragoman.codecs.records.tools import ChoiceRecord, ToolStyle
from dragoman.codecs.shared_tools import text_within
from dragoman.codecs.wire_values import MaybeStr, Wire
from dragoman.errors import DecodeError
from dragoman.ir import (
    Completion,
    Finish,
    FinishReason,
    Image,
    Message,
    Reasoning,
    Role,
    Text,
    ToolResult,
    Usage,
    withholds_calls,
)
from dragoman.ir.notes import MODELLED, WITHIN, Extra
from dragoman.ir.values import compact_text, encode_json, parse_json, to_raw
from dragoman.losses import LossLog, at
from dragoman.profile import Profile

PROFILE = Profile(name="modular-prompt", family="modular-prompt", names_speakers=True)

LAYOUT = Layout(calls="toolCalls", tool_choice=("toolChoice",), result_names="kept")


# ── wire structs ─────────────────────────────────────────────────────────────────────────────────────────────────


class MessageRecord(Wire, frozen=True):
    role: str
    content: Content = UNSET
    name: MaybeStr = None
    tool_calls: list[CallRecord] | UnsetType = field(default=UNSET, name="toolCalls")


class ResultRecord(Wire, frozen=True):
    """A tool result. `kind` and `value` are of the newer specification, `content` of the older one."""

    tool_call_id: str | None | UnsetType = field(default=UNSET, name="toolCallId")
    name: MaybeStr = None
    kind: str | UnsetType = UNSET
    value: Raw | UnsetType = UNSET
    content: Content = UNSET
    role: str | UnsetType = UNSET


class Prompt(HistoryDocument, frozen=True, omit_defaults=True):
    """Messages with the options of a query."""

    tool_choice: str | ChoiceRecord | UnsetType = field(default=UNSET, name="toolChoice")


class TokenCounts(Wire, frozen=True):
    prompt_tokens: int = field(default=0, name="promptTokens")
    completion_tokens: int = field(default=0, name="completionTokens")
    total_tokens: int | UnsetType = field(default=UNSET, name="totalTokens")


class QueryResult(Wire, frozen=True):
    """The fields of a query result besides the message."""

    finish_reason: str | UnsetType = field(default=UNSET, name="finishReason")
    usage: TokenCounts | UnsetType = UNSET


# ── signatures of other vendors ──────────────────────────────────────────────────────────────────────────────────

# modular-prompt has no field for reasoning: it is stored in the `metadata` of its message.

BAG = "metadata"
_KEY = "reasoning"
_FIELDS = frozenset({"text", "redacted", "signature", "thoughtSignature"})


def take_reasoning(extra: Extra) -> tuple[Reasoning, ...]:
    """Return the reasoning in a message's metadata, which is written back unchanged; other keys stay private."""
    raw = extra.get(BAG)
    bag = None if raw is None else parse_json(raw)
    entries = bag.get(_KEY) if isinstance(bag, Mapping) else None
    if raw is None or not isinstance(bag, Mapping) or not isinstance(entries, list) or not entries:
        return ()
    found = [_reasoning(entry) for entry in entries]
    if None in found:
        return ()
    del extra[BAG]
    extra[MODELLED + BAG] = raw
    others = {key: Raw(encode_json(value)) for key, value in bag.items() if key != _KEY}
    if others:
        extra[WITHIN + BAG] = Raw(encode_json(others))
    return tuple(part for part in found if part is not None)


def _reasoning(entry: Any) -> Reasoning | None:
    if not isinstance(entry, Mapping) or not entry.keys() <= _FIELDS:
        return None
    text, redacted = entry.get("text", ""), entry.get("redacted", False)
    if not isinstance(text, str) or not isinstance(redacted, bool):
        return None
    signed = signature_in(entry)
    if signed is None and entry.keys() & {"signature", "thoughtSignature"}:
        return None
    return Reasoning(text, None if signed is None else signed[1], redacted)


def put_reasoning(fields: Extra, parts: Sequence[Reasoning]) -> None:
    """Write the reasoning of a message, unless its own metadata is written back."""
    if parts and MODELLED + BAG not in fields:
        entries = []
        for part in parts:
            entry: dict[str, Any] = {"text": part.text}
            if part.redacted:
                entry["redacted"] = True
            entries.append(entry if part.signature is None else entry | bag_of(part.signature))
        fields[BAG] = as_json({_KEY: entries})


# ── messages ─────────────────────────────────────────────────────────────────────────────────────────────────────

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
            return ToolResult(call_id, name, kind, None, parts, metadata=_as_metadata(notes))
        if kind == "text" and bytes(wire.value)[:1] != b'"':
            # The old program converted any value to text.
            notes[VALUE] = wire.value
            return ToolResult(call_id, name, "text", compact_text(wire.value), metadata=_as_metadata(notes))
        return ToolResult(call_id, name, kind, wire.value, metadata=_as_metadata(notes))

    def _old_result(self, wire: ResultRecord, result: ToolResult, notes: Extra, place: str) -> ToolResult:
        content = wire.content
        if wire.value is not UNSET or content is UNSET or content is None:
            raise DecodeError(path=place, expected="a result with kind and value", got="no kind", source=FAMILY)
        notes[CONTENT] = TRUE
        if isinstance(content, str):
            return structs.replace(result, value=content, metadata=_as_metadata(notes))
        parts: Any = decode_parts(content, RESULT_PARTS)
        return structs.replace(result, kind="multimodal", parts=parts, metadata=_as_metadata(notes))


def _as_metadata(notes: Extra) -> dict[str, Extra] | None:
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
        visible = [part for part in parts if not isinstance(part, Reasoning)]
        first = next((index for index, part in enumerate(parts) if not isinstance(part, Reasoning)), len(parts))
        for part in parts[first:]:
            if isinstance(part, Reasoning):
                self.log.degrade(part, "", "place of reasoning", "it is stored beside the message, before its words")
        return [self.record_of(message, visible, fields)]

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
                    self.log.drop(part, "", name_of_part(part), "an error of this format is text")
            return text_within(result)
        return notes.get(VALUE, to_raw(result.value_held))


# ── requests ─────────────────────────────────────────────────────────────────────────────────────────────────────

HISTORY = History(
    FAMILY,
    ToolStyle(FAMILY, choice_key="toolChoice"),
    WireReader(Prompt, FAMILY, aliases={"tool_choice": "toolChoice"}),
    MessageDecoder,
    MessageEncoder,
)


decode_request = HISTORY.decode_request
encode_request = HISTORY.encode_request


def place(message: Message, part_index: int, field: str, earlier: EarlierParts) -> tuple[int, str]:
    """Return (record, path) of a part. Reasoning is in its message's metadata, and does not shift other parts."""
    if isinstance(message.parts[part_index], Reasoning):
        return 0, ".metadata"
    before = earlier.before(message, part_index, Reasoning)
    if not before:
        return place_of(message, part_index, field, earlier, STYLE)
    offset, within = place_of(message, part_index, field, earlier, STYLE)
    return offset, within.replace(f".content[{part_index}]", f".content[{part_index - before}]")


request_paths = Places(HISTORY, partial(count_records, style=STYLE), place).paths


# ── answers ──────────────────────────────────────────────────────────────────────────────────────────────────────

_reader = WireReader(QueryResult, FAMILY)
_peeker = Peeker(FAMILY)
_OF_THE_MESSAGE = ("content", "toolCalls", "metadata")

_REASONS: dict[str, FinishReason] = {"stop": "stop", "length": "length", "tool_calls": "tool_calls", "error": "error"}
_WORDS: dict[FinishReason, str] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "error": "error",
    "content_filter": "error",
    "refusal": "stop",
    "pause": "stop",
    "unknown": "stop",
}


def decode_finish(word: str) -> Finish:
    return Finish(_REASONS.get(word, "unknown"), word)


def encode_finish(finish: Finish, completion: Completion, log: LossLog, *, native: bool) -> str:
    if native and finish.raw is not None:
        return finish.raw
    if finish.reason not in _REASONS:
        log.degrade(
            completion, "finish", f"finish reason {finish.raw or finish.reason!r}", "this format has four of them"
        )
    if finish.stop_sequence is not None:
        log.drop(completion, "finish.stop_sequence", "matched stop sequence", "this format does not say which matched")
    if withholds_calls(finish) and any(message.tool_calls for message in completion.messages):
        return "error"  # the only reason here for an answer whose calls must not be run
    return _WORDS[finish.reason]


def decode_usage(wire: TokenCounts) -> Usage:
    total = None if wire.total_tokens is UNSET else wire.total_tokens
    return Usage(wire.prompt_tokens, wire.completion_tokens, total=total, metadata=keep(FAMILY, wire.extra))


_UNCOUNTED = {"cached": "cached tokens", "cache_written": "tokens written to the cache"} | {
    "reasoning": "reasoning tokens",
    "image": "image tokens",
}


def encode_usage(usage: Usage, completion: Completion, log: LossLog) -> Raw:
    for name, what in _UNCOUNTED.items():
        if getattr(usage, name):
            log.note(completion, f"usage.{name}", what, "this format counts prompt and completion only")
    notes: Extra = (usage.metadata or {}).get(FAMILY, {})
    total = usage.input + usage.output if usage.total is None else usage.total
    counts = {"promptTokens": usage.input, "completionTokens": usage.output, "totalTokens": total}
    if usage.total is None and FAMILY in (completion.metadata or {}):
        del counts["totalTokens"]
    return spliced(as_json(counts), notes)


def decode_response(body: bytes) -> Completion:
    check_text(body, FAMILY)
    entries = _peeker.keys(Raw(body), "$")
    record = {key: entries.pop(key) for key in _OF_THE_MESSAGE if key in entries}
    wire = read_record(_reader, as_json(entries), "$", FAMILY)
    decoder = MessageDecoder()
    decoder.add_message("assistant", as_json({"role": "assistant", **record}), "$")
    (message,) = decoder.messages
    return Completion(
        (message,),
        finish_with(message, None if wire.finish_reason is UNSET else decode_finish(wire.finish_reason)),
        None if wire.usage is UNSET else decode_usage(wire.usage),
        metadata={FAMILY: {} if wire.extra is UNSET else wire.extra},
    )


def encode_response(completion: Completion, log: LossLog) -> Encoded:
    native = FAMILY in (completion.metadata or {})
    message = only_message(completion, log, holds=frozenset({"usage", "finish"}))
    (record,) = MessageEncoder(log).encode_message(message)
    fields: dict[str, Any] = _peeker.keys(record, "$")
    del fields["role"]
    if "content" in fields and bytes(fields["content"]) == b"null" and not native:
        fields["content"] = ""  # a result always has text, possibly empty
    if completion.finish is not None and not (native and completion.finish.raw is None):
        fields["finishReason"] = encode_finish(completion.finish, completion, log, native=native)
    if completion.usage is not None:
        fields["usage"] = encode_usage(completion.usage, completion, log)
    return Encoded(bytes(spliced(as_json(fields), (completion.metadata or {}).get(FAMILY, {}))))


_COUNTS = {"input": "promptTokens", "output": "completionTokens", "total": "totalTokens"}


def _json_path(
    completion: Completion, earlier: EarlierParts, message_index: int | None, part_index: int | None, field: str
) -> str:
    """Return where in the result a node of the completion came from."""
    if message_index is None:
        head, _, rest = field.partition(".")
        if head == "finish":
            return "$.finishReason"
        if head == "usage":
            return f"$.usage.{_COUNTS.get(rest, rest)}" if rest else "$.usage"
        return at("$", field)
    if part_index is None:
        return at("$", field)
    return "$" + place(completion.messages[message_index], part_index, field, earlier)[1]


response_paths = answer_paths(_json_path)


# ── errors and streams ───────────────────────────────────────────────────────────────────────────────────────────

decode_error, encode_error = no_errors("modular-prompt")

PayloadDecoder, EventEncoder = no_streams("modular-prompt")
