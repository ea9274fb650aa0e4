"""Converse responses, both ways."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Raw, UnsetType

from dragoman.codecs.arguments import cut_short
from dragoman.codecs.bedrock_converse.messages import MessageEncoder, decode_blocks
from dragoman.codecs.bedrock_converse.parts import is_plain_text
from dragoman.codecs.bedrock_converse.profile import FAMILY
from dragoman.codecs.bedrock_converse.wire import (
    PASSED_ON_IN_ANSWERS,
    Block,
    ConverseResponse,
    MessageWire,
    Metrics,
    OutputWire,
    UsageWire,
)
from dragoman.codecs.encoded import Encoded
from dragoman.codecs.reading import WireReader, WireValue, spliced
from dragoman.codecs.settings import collect_keys
from dragoman.codecs.shared_settings import ANSWERED_BY_BEDROCK, BEDROCK_TIERS_READ, take_tier, tier_word
from dragoman.ir import AnyPart, Completion, Finish, FinishReason, Message, ToolCall, Usage
from dragoman.ir.notes import MODELLED, WITHIN, Extra, family_notes, inner_extra
from dragoman.ir.traits import TraitNotes
from dragoman.ir.values import encode_json, parse_json
from dragoman.losses import LossLog

_reader = WireReader(ConverseResponse, "bedrock-converse response")
_keys = collect_keys(ConverseResponse, PASSED_ON_IN_ANSWERS)
_counts = WireReader(UsageWire, "bedrock-converse usage", path="$.usage")

FURTHER = "additionalModelResponseFields"

# ── finish reasons: total both ways ───────────────────────────────────────────────────────────────────────────

CONTEXT_EXCEEDED = "model_context_window_exceeded"
_DECODE_FINISH: dict[str, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    CONTEXT_EXCEEDED: "length",
    "tool_use": "tool_calls",
    "content_filtered": "content_filter",
    "guardrail_intervened": "content_filter",
    "malformed_model_output": "error",
    "malformed_tool_use": "error",
}
_ENCODE_FINISH: dict[FinishReason, str] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "content_filter": "content_filtered",
    "refusal": "content_filtered",
    "pause": "max_tokens",
    "error": "malformed_model_output",
    "unknown": "max_tokens",  # it may have been cut
}


def decode_finish(raw: str | UnsetType, parts: tuple[AnyPart, ...], further: Raw | UnsetType = UNSET) -> Finish | None:
    """Decode the finish; calls mean "tool_calls" even at `end_turn`, but not with an unknown reason (law 7)."""
    if raw is UNSET:
        return None
    reason = _DECODE_FINISH.get(raw, "unknown")
    if reason == "stop" and any(isinstance(part, ToolCall) for part in parts):
        reason = "tool_calls"
    return Finish(reason, raw, None if further is UNSET else _stop_sequence(further))


def _stop_sequence(further: Raw) -> str | None:
    """Return the text that stopped the answer.

    It is present only if the client asked for it; in a stream it is within `delta`.
    """
    value = parse_json(further)
    for place in (value, value.get("delta") if isinstance(value, dict) else None):
        matched = place.get("stop_sequence") if isinstance(place, dict) else None
        if isinstance(matched, str):
            return matched
    return None


def encode_finish(finish: Finish | None, source: str | None, log: LossLog, completion: Completion) -> str | UnsetType:
    if finish is None:
        if source != FAMILY and not completion.messages:
            log.invent(completion, "finish", "stop reason malformed_model_output", "there is no answer")
            return "malformed_model_output"
        if source != FAMILY:
            log.invent(completion, "finish", "stop reason end_turn", "answers of this API have a finish reason")
        return UNSET if source == FAMILY else "end_turn"
    if source == FAMILY and finish.raw is not None:
        return finish.raw
    content = completion.messages[0].content_held if completion.messages else ()
    made = [part for part in content if type(part) is ToolCall] if type(content) is tuple else []
    calls = bool([call for call in made if not call.incomplete])
    if calls and finish.reason in {"stop", "tool_calls"}:
        return "tool_use"
    if finish.reason == "length" and finish.raw == CONTEXT_EXCEEDED:
        return CONTEXT_EXCEEDED
    if finish.reason == "stop" and finish.stop_sequence is not None:
        return "stop_sequence"
    word = _word(finish.reason, calls=calls, cut=len(made) > 0)
    if finish.reason in {"refusal", "pause", "error", "unknown", "tool_calls"}:
        what = f"finish reason {finish.raw or finish.reason!r}"
        log.degrade(completion, "finish", what, f"the nearest value of this API is {word}")
    if finish.explanation is not None:
        log.drop(completion, "finish.explanation", "explanation of the failure", "this API has no field for it")
    return word


def _word(reason: FinishReason, *, calls: bool, cut: bool) -> str:
    """Return the stop reason. `calls`: the answer has calls that may be run. `cut`: it has any call."""
    word = "end_turn" if reason == "tool_calls" else _ENCODE_FINISH[reason]
    if calls and reason == "pause":
        return "tool_use"  # the client continues from the results
    if calls and reason == "unknown":
        return "malformed_model_output"  # no client runs the calls of such an answer
    # This API's only reason for an answer with a call that must not be run.
    return "max_tokens" if word == "end_turn" and cut else word


# ── usage ─────────────────────────────────────────────────────────────────────────────────────────────────────


def decode_usage(raw: Raw) -> Usage:
    """Decode the counts, with the wire's own object noted."""
    return _usage_of(_counts.read(bytes(raw)), raw)


def _usage_of(wire: UsageWire, raw: Raw) -> Usage:
    read, written = wire.cache_read_input_tokens, wire.cache_write_input_tokens
    # `inputTokens` excludes tokens read from a cache or written to one; `totalTokens` is the sum of all four.
    total_input = (wire.input_tokens or 0) + (read or 0) + (written or 0)
    metadata = {FAMILY: {"~usage": raw}}
    return Usage(
        total_input,
        wire.output_tokens or 0,
        read,
        written,
        None,
        None,
        wire.total_tokens,
        metadata,
        details=None if wire.cache_details is None else _written_for_an_hour(wire.cache_details),
    )


def _written_for_an_hour(details: Any) -> dict[str, int] | None:
    found = [
        one["inputTokens"]
        for one in (details if isinstance(details, list) else ())
        if isinstance(one, dict) and one.get("ttl") == "1h" and type(one.get("inputTokens")) is int
    ]
    count = sum(found)
    return {"cache_written_1h": count} if count > 0 else None


def _cache_details(usage: Usage) -> list[dict[str, Any]] | None:
    """Return the tokens written to a cache by time to live, if the usage distinguishes them."""
    hour = None if usage.details is None else usage.details.get("cache_written_1h")
    if hour is None:
        return None
    rest = (usage.cache_written or 0) - hour
    return [*([{"ttl": "5m", "inputTokens": rest}] if rest > 0 else []), {"ttl": "1h", "inputTokens": hour}]


def encode_usage(usage: Usage) -> WireValue:
    if usage.metadata is not None:
        notes = family_notes(FAMILY, usage.metadata)
        if "~usage" in notes:
            return notes["~usage"]
    # Strict clients check the sum: the total is the sum of the four, none of them below zero.
    cached, written = usage.cached, usage.cache_written
    if cached is not None:
        cached = min(cached, max(usage.input - (written or 0), 0))
    kept = (cached or 0) + (written or 0)
    fresh, output = max(usage.input - kept, 0), max(usage.output, 0)
    return UsageWire(fresh, output, fresh + output + kept, cached, written, _cache_details(usage))


def report_usage(usage: Usage, log: LossLog, node: Any) -> None:
    if usage.output < 0 or usage.uncached_input < 0:
        log.degrade(node, "usage", "counts that do not add up", "none is written as less than zero")
    if usage.total not in {None, usage.input + usage.output}:
        log.degrade(node, "usage.total", f"total of {usage.total} tokens", "this API's total is the sum of all counts")
    if usage.reasoning:
        what = f"{usage.reasoning} reasoning tokens"
        log.note(node, "usage.reasoning", what, "this API does not count them apart")
    if usage.image:
        log.note(node, "usage.image", f"{usage.image} image tokens", "this API does not count them apart")


# ── bodies ────────────────────────────────────────────────────────────────────────────────────────────────────


def decode_response(body: bytes) -> Completion:
    wire = _reader.read(body)
    message, further = wire.output.message, wire.additional_model_response_fields
    content = message.content or []
    notes: Extra = _keys(wire) or {}
    if wire.output.extra is not UNSET:
        notes[WITHIN + "output"] = Raw(encode_json(wire.output.extra))
    if message.extra is not UNSET:
        notes[WITHIN + "message"] = Raw(encode_json(message.extra))
    if further is not UNSET:
        notes[(MODELLED if is_modelled(further) else "") + FURTHER] = further
    if message.role != "assistant":
        notes["~role"] = Raw(encode_json(message.role))
    if message.content is UNSET:
        notes["~content"] = Raw(b'"absent"')
    parts: Any
    if len(content) == 1 and is_plain_text(content[0]):
        parts = content[0].text
        finish = decode_finish(wire.stop_reason, (), further)
    else:
        parts = tuple(decode_blocks(content, TraitNotes(), {}, "assistant"))
        finish = decode_finish(wire.stop_reason, parts, further)
        parts = cut_short(parts, None if finish is None else finish.reason)
    usage = None if wire.usage is UNSET else decode_usage(wire.usage)
    if usage is not None:
        usage = take_tier(usage, notes, "serviceTier", BEDROCK_TIERS_READ)
    return Completion((Message("assistant", parts),), finish, usage, metadata={FAMILY: notes})


def _tier_member(usage: Usage | None) -> Raw | UnsetType:
    word = tier_word(usage, ANSWERED_BY_BEDROCK)
    return UNSET if word is None else Raw(encode_json({"type": word}))


def is_modelled(further: Raw) -> bool:
    value = parse_json(further)
    return isinstance(value, dict) and set(value) == {"stop_sequence"}


def encode_response(completion: Completion, log: LossLog) -> Encoded:
    if completion.metadata is not None and FAMILY in completion.metadata:
        return Encoded(bytes(_encode_native(completion, completion.metadata[FAMILY], log)))
    for message in completion.messages[1:]:
        log.drop(message, "", "further candidate", "an answer of this API is one message")
    report_untold(completion, log)
    stop_reason = encode_finish(completion.finish, None, log, completion)
    if completion.usage is None:
        log.invent(completion, "usage", "usage of zero tokens", "answers of this API include usage")
    else:
        report_usage(completion.usage, log, completion)
    log.note(completion, "metrics", "latency of zero", "answers of this API include latency")
    wire = ConverseResponse(
        OutputWire(MessageWire("assistant", _encode_content(completion, MessageEncoder(log)))),
        stop_reason,
        encode_usage(completion.usage or Usage()),
        Metrics(),  # type: ignore[arg-type]
        matched_field(completion.finish, stop_reason),
        service_tier=_tier_member(completion.usage),
    )
    return Encoded(encode_json(wire))


def matched_field(finish: Finish | None, stop_reason: str | UnsetType) -> WireValue:
    """Return the text that stopped the answer, in the field where clients that asked for it find it."""
    is_reported = finish is not None and finish.stop_sequence is not None and stop_reason == "stop_sequence"
    return {"stop_sequence": finish.stop_sequence} if finish is not None and is_reported else UNSET


def report_untold(node: Any, log: LossLog) -> None:
    """Report the id, model and time of an answer, which this API has no fields for."""
    why = "answers of this API do not include it"
    if node.id is not None:
        log.note(node, "id", "id of the answer", why)
    if node.model is not None:
        log.note(node, "model", "name of the model", why)
    if node.created is not None:
        log.note(node, "created", "time of creation", why)


def _encode_native(completion: Completion, notes: Extra, log: LossLog) -> Raw:
    content: Any = _encode_content(completion, MessageEncoder(log, native=True))
    if not content and "~content" in notes:
        content = UNSET
    message: Any = MessageWire(parse_json(notes["~role"]) if "~role" in notes else "assistant", content)
    inner = inner_extra(notes, "message")
    message = message if inner is None else spliced(message, inner)
    output: Any = OutputWire(message)
    inner = inner_extra(notes, "output")
    output = output if inner is None else spliced(output, inner)
    wire = ConverseResponse(
        output,
        encode_finish(completion.finish, FAMILY, log, completion),
        UNSET if completion.usage is None else encode_usage(completion.usage),
    )
    return spliced(wire, notes)


def _encode_content(completion: Completion, encoder: MessageEncoder) -> list[WireValue]:
    if not completion.messages:
        return []
    content = completion.messages[0].content_held
    return [Block(content)] if isinstance(content, str) else encoder.encode_blocks(content, "assistant")
