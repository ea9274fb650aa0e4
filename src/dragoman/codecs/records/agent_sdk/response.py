"""One answer of the agent SDK, both ways: {messages, usage?, stop_reason?, provider_meta?}."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Raw

from dragoman.codecs.encoded import Encoded
from dragoman.codecs.reading import WireReader, keep, spliced
from dragoman.codecs.records.agent_sdk.messages import FAMILY, MessageDecoder, MessageEncoder
from dragoman.codecs.records.agent_sdk.request import place
from dragoman.codecs.records.agent_sdk.wire import CompletionRecord, UsageRecord
from dragoman.codecs.records.answers import finish_with, only_message
from dragoman.codecs.records.reading import as_json
from dragoman.errors import DecodeError
from dragoman.ir import AnyPart, Completion, Finish, FinishReason, Message, Usage
from dragoman.ir.notes import Extra
from dragoman.ir.values import encode_json
from dragoman.losses import LossLog, paths_by

_reader = WireReader(CompletionRecord, f"{FAMILY} completion")

RECORDS = "~messages"
"""Note: how the answer was cut into messages, where we would cut it otherwise (one per block is usual there)."""

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
    # The word is the provider's own: Gemini's, the Responses API's and Bedrock's beside those of Anthropic and OpenAI.
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
            return finish.raw  # any word is allowed here
        if any(message.tool_calls for message in completion.messages):
            return "unknown"  # the ordinary word would offer the calls
        log.degrade(completion, "finish", "unknown finish reason", "stored as the ordinary one")
    return _WORDS[finish.reason]


# ── usage ─────────────────────────────────────────────────────────────────────────────────────────────────────


def decode_usage(wire: UsageRecord) -> Usage:
    """Input includes what was read from the cache and written to it."""
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
    said = {key: value for key, value in counts.items() if value is not None}
    return spliced(as_json(said), (usage.metadata or {}).get(FAMILY, {}))


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
    message = _joined(messages, wire.messages)
    return Completion(
        (message,),
        finish_with(message, None if wire.stop_reason is UNSET else decode_finish(wire.stop_reason)),
        usage,
        model=None if wire.usage is UNSET else wire.usage.model,
        metadata={FAMILY: extra},
    )


def _joined(messages: tuple[Message, ...], records: list[Raw]) -> Message:
    """Several messages are one answer; several messages of a completion would be candidates."""
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


def _json_path(completion: Completion, message_index: int | None, part_index: int | None, field: str) -> str:
    """Where in the stored answer a node of the completion came from."""
    if message_index is None:
        head, _, rest = field.partition(".")
        if head == "finish":
            return "$.stop_reason"
        if head == "model":
            return "$.usage.model"
        if head == "usage":
            return f"$.usage.{_COUNTS.get(rest, rest)}" if rest else "$.usage"
        return f"$.{field}" if field else "$"
    message = completion.messages[message_index]
    if RECORDS in (message.metadata or {}).get(FAMILY, {}):
        return "$.messages"
    if part_index is None:
        return f"$.messages[0].{field}" if field else "$.messages[0]"
    record, within = place(message, part_index, field)
    return f"$.messages[{record}]{within}"


response_paths = paths_by(_json_path)
