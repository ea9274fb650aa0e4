"""Decodes and encodes histories and answers of the agent SDK.

Messages have five roles, arguments are JSON text, and a result refers to its whole output. Reasoning is a separate
message and belongs to the assistant message that follows it. An answer is {messages, usage?, stop_reason?,
provider_meta?}. There are no streams and no errors.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import UNSET, Raw, UnsetType, structs

from dragoman.codecs.encoded import Encoded
from dragoman.codecs.layout import Layout
from dragoman.codecs.reading import WireReader, as_json, keep, spliced
from dragoman.codecs.records.answers import finish_with, only_message
from dragoman.codecs.records.calls import CallRecord, CallStyle
from dragoman.codecs.records.history import (
    EarlierParts,
    History,
    HistoryDocument,
    Places,
    answer_paths,
)
from dragoman.codecs.records.parts import EVERY_PART, RESULT_PARTS, Content, PartStyle, decode_parts, encode_parts
from dragoman.codecs.records.reading import CONTENT, NULL, TRUE, read_record, spelled_id
from dragoman.codecs.records.refusals import no_errors, no_streams
from dragoman.codecs.records.results import PARTS, in_parts, read_value, report_result, spelled_value
from dragoman.codecs.records.roles import RoleDecoder, RoleEncoder, RoleStyle, place_of
from dragoman.codecs.records.signatures import bag_of, signature_in
from dragoman.codecs.records.tools import ToolStyle
from dragoman.codecs.wire_values import MaybeInt, MaybeStr, Wire
from dragoman.errors import DecodeError
from dragoman.ir import (
    AnyPart,
    Cache,
    Completion,
    Finish,
    FinishReason,
    Message,
    Reasoning,
    Refusal,
    Role,
    Signature,
    Text,
    ToolCall,
    ToolResult,
    Usage,
)
from dragoman.ir.notes import MODELLED, WITHIN, Extra
from dragoman.ir.values import encode_json, note, parse_json
from dragoman.losses import LossLog, at
from dragoman.profile import Profile

PROFILE = Profile(name="agent-sdk", family="agent-sdk", names_speakers=True, tool_name=re.compile(r".*", re.DOTALL))

LAYOUT = Layout(result_names="kept")


# ── wire structs ─────────────────────────────────────────────────────────────────────────────────────────────────


class MessageRecord(Wire, frozen=True):
    role: str
    content: Content = UNSET
    name: MaybeStr = None
    tool_calls: list[CallRecord] | UnsetType = UNSET
    refusal: str | UnsetType = UNSET
    cache: bool | UnsetType = UNSET


class ReasoningRecord(Wire, frozen=True):
    """A reasoning message. `raw_item` is the provider's own item, which must be sent back to it."""

    role: str
    content: str | None | UnsetType = UNSET
    raw_item: Raw | UnsetType = UNSET


class ResultRecord(Wire, frozen=True):
    """A tool result. `output_ref` and `trimmed` concern only the agent: they stay with the record."""

    role: str
    tool_call_id: str | None | UnsetType = UNSET
    tool_name: MaybeStr = None
    content: Content = UNSET
    is_error: bool | UnsetType = UNSET
    kind: str | UnsetType = UNSET


class UsageRecord(Wire, frozen=True):
    model: MaybeStr = None
    input_tokens: int = 0
    input_cached_tokens: MaybeInt = None
    input_cache_creation_tokens: MaybeInt = None
    input_image_tokens: MaybeInt = None
    output_tokens: int = 0
    total_tokens: MaybeInt = None


class CompletionRecord(Wire, frozen=True):
    messages: list[Raw]
    usage: UsageRecord | UnsetType = UNSET
    stop_reason: str | UnsetType = UNSET


# ── signatures of other vendors ──────────────────────────────────────────────────────────────────────────────────

# Reasoning messages have, beside the text, the provider's own item, which is sent back to that provider.

ITEM = "raw_item"
_REDACTED = "redacted"

# type of a provider's item -> family, key of the data to send back, key of its id, other keys the item may have
_ITEMS: dict[str, tuple[str, str, str | None, frozenset[str]]] = {
    "thinking": ("anthropic", "signature", None, frozenset({"thinking"})),
    "redacted_thinking": ("anthropic", "data", None, frozenset()),
    "reasoning": ("openai", "encrypted_content", "id", frozenset({"summary"})),
}


def read_item(raw: Raw, text: str, notes: Extra) -> Reasoning:
    """Return reasoning with its signature. The item is written back unchanged; unknown data stays with the record."""
    item = parse_json(raw)
    signature, redacted, known = _read_signature(item)
    if signature is None:
        notes[ITEM] = raw
        return Reasoning(text)
    notes[MODELLED + ITEM] = raw
    others = {key: Raw(encode_json(value)) for key, value in item.items() if key not in known}
    if others:
        notes[WITHIN + ITEM] = Raw(encode_json(others))
    return Reasoning(text, signature, redacted)


def _read_signature(item: Any) -> tuple[Signature | None, bool, frozenset[str]]:
    """Return (signature, whether the item is redacted, keys that were read)."""
    if not isinstance(item, Mapping):
        return None, False, frozenset()
    found = signature_in(item)
    if found is not None:
        return found[1], item.get(_REDACTED) is True, frozenset({found[0], _REDACTED})
    kind = item.get("type")
    family, key, id_key, further = _ITEMS.get(kind if isinstance(kind, str) else "", ("", "", None, frozenset()))
    data = item.get(key)
    if not isinstance(data, str):
        return None, False, frozenset()
    item_id = item.get(id_key) if id_key is not None else None
    read = {"type", key} | further | ({id_key} if id_key is not None else set())
    redacted = kind == "redacted_thinking"
    return Signature(family, data, item_id if isinstance(item_id, str) else None), redacted, frozenset(read)


def item_of(part: Reasoning) -> dict[str, Any] | None:
    if part.signature is None:
        return {_REDACTED: True} if part.redacted else None
    item = bag_of(part.signature)
    return {**item, _REDACTED: True} if part.redacted else item


# ── messages ─────────────────────────────────────────────────────────────────────────────────────────────────────

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
        """Add reasoning that no assistant message follows as a separate message."""
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
            message = _apply_cache(message)
        if role == "assistant" and (self._thoughts or wire.refusal is not UNSET):
            parts = message.parts
            if wire.refusal is not UNSET:
                calls = tuple(part for part in parts if isinstance(part, ToolCall))
                parts = (*parts[: len(parts) - len(calls)], Refusal(wire.refusal), *calls)
            message = structs.replace(message, parts=(*self._thoughts, *parts))
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


def _apply_cache(message: Message) -> Message:
    """Apply `cache` of a system message: all of the message may be cached."""
    parts = message.parts
    if not parts or not isinstance(parts[-1], Text):
        notes = {**(message.metadata or {}).get(FAMILY, {}), "cache": TRUE}
        return structs.replace(message, metadata={FAMILY: notes})
    notes = dict((message.metadata or {}).get(FAMILY, {}))
    if type(message.content_held) is str:
        notes[CONTENT] = as_json("string")
    marked = structs.replace(parts[-1], cache=Cache())
    return Message(message.role, (*parts[:-1], marked), message.name, {FAMILY: notes} if notes else None)


class MessageEncoder(RoleEncoder):
    def __init__(self, log: LossLog, native: bool = False, *, answers: bool = False) -> None:  # noqa: FBT001, FBT002
        """Set `answers` for the messages of one answer, which keep their order; in a history results follow calls."""
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
                    # There must be no other message between a call and its result.
                    self.log.degrade(part, "", "place of reasoning", "it is stored before the calls of its turn")
                elif run:
                    records.append(self._assistant(message, run, first=not records))
                    run = []
                records.append(self._reasoning(part))
                continue
            if called and self._answers and not isinstance(part, ToolCall | Refusal):
                # A record has its content before its calls: what follows a call is put into another message.
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


# ── requests ─────────────────────────────────────────────────────────────────────────────────────────────────────

HISTORY = History(
    FAMILY,
    ToolStyle(FAMILY, complete=True, bare_choice=True),
    WireReader(HistoryDocument, FAMILY),
    MessageDecoder,
    MessageEncoder,
)


decode_request = HISTORY.decode_request
encode_request = HISTORY.encode_request


# ── paths of losses ───────────────────────────────────────────────────────────────────────────────────────────


def _thoughts(message: Message) -> int:
    content = message.content_held
    if type(content) is str or message.role != "assistant":
        return 0
    return sum([type(part) is Reasoning for part in content])


def _span(message: Message) -> int:
    thoughts = _thoughts(message)
    return thoughts if thoughts and OPEN in (message.metadata or {}).get(FAMILY, {}) else thoughts + 1


def place(message: Message, part_index: int, field: str, earlier: EarlierParts) -> tuple[int, str]:
    """Return (record, path) of a part. Reasoning is in separate records before the message."""
    part = message.parts[part_index]
    notes = (getattr(part, "metadata", None) or {}).get(FAMILY, {})
    if isinstance(part, Reasoning):
        is_carried = field == "signature" and "~raw:raw_item" in notes
        return part_index, ".raw_item" if is_carried else f".{field}" if field.partition(".")[0] == "raw_item" else ""
    before = earlier.before(message, -1, Reasoning) if message.role == "assistant" else 0
    if isinstance(part, Refusal):
        return before, ".refusal"
    if message.role == "system" and CONTENT in (message.metadata or {}).get(FAMILY, {}):
        return 0, ".cache" if field == "cache" else ".content"
    _, within = place_of(message, part_index, field, earlier, STYLE)
    return before, within.replace(f".content[{part_index}]", f".content[{part_index - before}]")


request_paths = Places(HISTORY, _span, place).paths


# ── answers ──────────────────────────────────────────────────────────────────────────────────────────────────────

_reader = WireReader(CompletionRecord, f"{FAMILY} completion")

RECORDS = "~messages"
"""Note: how the answer was split into messages, if we would split it differently (one per block is usual there)."""

# ── stop reasons ──────────────────────────────────────────────────────────────────────────────────────────────

_REASONS: dict[str, FinishReason] = {
    "end_turn": "stop",
    "stop": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "tool_calls": "tool_calls",
    "max_tokens": "length",
    "length": "length",
    "content_filter": "content_filter",
    "refusal": "refusal",
    "pause_turn": "pause",
    "error": "error",
    # Stop reasons are the providers' own: also those of Gemini, the Responses API and Bedrock.
    "STOP": "stop",
    "completed": "stop",
    "MAX_TOKENS": "length",
    "max_output_tokens": "length",
    "model_context_window_exceeded": "length",
    "SAFETY": "content_filter",
    "RECITATION": "content_filter",
    "BLOCKLIST": "content_filter",
    "PROHIBITED_CONTENT": "content_filter",
    "SPII": "content_filter",
    "content_filtered": "content_filter",
    "guardrail_intervened": "content_filter",
    "MALFORMED_FUNCTION_CALL": "error",
    "UNEXPECTED_TOOL_CALL": "error",
    "OTHER": "error",
    "failed": "error",
}
_WORDS: dict[FinishReason, str] = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "length": "max_tokens",
    "content_filter": "content_filter",
    "refusal": "refusal",
    "pause": "pause_turn",
    "error": "error",
    "unknown": "end_turn",
}


def decode_finish(word: str) -> Finish:
    return Finish(_REASONS.get(word, "unknown"), word)


def encode_finish(finish: Finish, completion: Completion, log: LossLog, *, native: bool) -> str:
    if native and finish.raw is not None:
        return finish.raw
    if finish.stop_sequence is not None:
        log.drop(completion, "finish.stop_sequence", "matched stop sequence", "this format does not say which matched")
    if finish.reason == "unknown":
        if finish.raw is not None and finish.raw not in _REASONS:
            return finish.raw  # any stop reason is allowed here
        if any(message.tool_calls for message in completion.messages):
            return "unknown"  # the ordinary stop reason would make the calls runnable
        log.degrade(completion, "finish", "unknown finish reason", "stored as the ordinary one")
    return _WORDS[finish.reason]


# ── usage ─────────────────────────────────────────────────────────────────────────────────────────────────────


def decode_usage(wire: UsageRecord) -> Usage:
    """Decode usage. Input tokens include those read from the cache and written to it."""
    return Usage(
        wire.input_tokens,
        wire.output_tokens,
        wire.input_cached_tokens,
        wire.input_cache_creation_tokens,
        None,
        wire.input_image_tokens,
        wire.total_tokens,
        keep(FAMILY, wire.extra),
    )


def encode_usage(usage: Usage, completion: Completion, log: LossLog, *, native: bool) -> Raw:
    if usage.reasoning:
        log.note(completion, "usage.reasoning", "reasoning tokens", "this format does not count them apart")
    model = completion.model
    if model is None and not native:
        log.note(completion, "model", "empty model name", "counts of this format name the model")
        model = ""
    total = usage.total
    if total is None and not native:
        total = usage.input + usage.output
    counts = {
        "model": model,
        "input_tokens": usage.input,
        "input_cached_tokens": usage.cached,
        "input_cache_creation_tokens": usage.cache_written,
        "input_image_tokens": usage.image,
        "output_tokens": usage.output,
        "total_tokens": total,
    }
    stated = {key: value for key, value in counts.items() if value is not None}
    return spliced(as_json(stated), (usage.metadata or {}).get(FAMILY, {}))


# ── answers ───────────────────────────────────────────────────────────────────────────────────────────────────


def decode_response(body: bytes) -> Completion:
    wire = _reader.read(body)
    extra: Extra = {} if wire.extra is UNSET else dict(wire.extra)
    messages = MessageDecoder().decode(wire.messages, "$.messages")
    for message in messages:
        if message.role != "assistant":
            got = f"a message of role {message.role}"
            raise DecodeError(path="$.messages", expected="the assistant's messages only", got=got, source=FAMILY)
    usage = None if wire.usage is UNSET else decode_usage(wire.usage)
    message = _join_messages(messages, wire.messages)
    return Completion(
        (message,),
        finish_with(message, None if wire.stop_reason is UNSET else decode_finish(wire.stop_reason)),
        usage,
        model=None if wire.usage is UNSET else wire.usage.model,
        metadata={FAMILY: extra},
    )


def _join_messages(messages: tuple[Message, ...], records: list[Raw]) -> Message:
    """Join several messages into one answer; a completion with several messages would mean several candidates."""
    if len(messages) == 1:
        return messages[0]
    parts: tuple[AnyPart, ...] = tuple(part for message in messages for part in message.parts)
    name = messages[0].name if messages else None
    return Message("assistant", parts, name, {FAMILY: {RECORDS: Raw(encode_json(records))}})


def encode_response(completion: Completion, log: LossLog) -> Encoded:
    native = FAMILY in (completion.metadata or {})
    holds = {"usage", "finish", *(("model",) if completion.usage is not None else ())}
    message = only_message(completion, log, holds=frozenset(holds))
    given = (message.metadata or {}).get(FAMILY, {}).get(RECORDS)
    records: Any = given
    if given is None:
        records = MessageEncoder(log, native, answers=True).encode_message(message) if completion.messages else []
    fields: dict[str, Any] = {"messages": records}
    if completion.usage is not None:
        fields["usage"] = encode_usage(completion.usage, completion, log, native=native)
    if completion.finish is not None and not (native and completion.finish.raw is None):
        fields["stop_reason"] = encode_finish(completion.finish, completion, log, native=native)
    return Encoded(bytes(spliced(as_json(fields), (completion.metadata or {}).get(FAMILY, {}))))


# ── paths of losses ───────────────────────────────────────────────────────────────────────────────────────────

_COUNTS = {
    "input": "input_tokens",
    "cached": "input_cached_tokens",
    "cache_written": "input_cache_creation_tokens",
    "image": "input_image_tokens",
    "output": "output_tokens",
    "total": "total_tokens",
}


def _json_path(
    completion: Completion, earlier: EarlierParts, message_index: int | None, part_index: int | None, field: str
) -> str:
    """Return where in the stored answer a node of the completion came from."""
    if message_index is None:
        head, _, rest = field.partition(".")
        if head == "finish":
            return "$.stop_reason"
        if head == "model":
            return "$.usage.model"
        if head == "usage":
            return f"$.usage.{_COUNTS.get(rest, rest)}" if rest else "$.usage"
        return at("$", field)
    message = completion.messages[message_index]
    if RECORDS in (message.metadata or {}).get(FAMILY, {}):
        return "$.messages"
    if part_index is None:
        return at("$.messages[0]", field)
    record, within = place(message, part_index, field, earlier)
    return f"$.messages[{record}]{within}"


response_paths = answer_paths(_json_path)


# ── errors and streams ───────────────────────────────────────────────────────────────────────────────────────────

decode_error, encode_error = no_errors("agent-sdk")

PayloadDecoder, EventEncoder = no_streams("agent-sdk")
