"""Chat responses, both ways: one message, without model name or time."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Raw, structs

from dragoman.codecs.arguments import cut_short
from dragoman.codecs.cohere_chat.messages import MessageDecoder, MessageEncoder
from dragoman.codecs.cohere_chat.parts import report_keys
from dragoman.codecs.cohere_chat.profile import FAMILY
from dragoman.codecs.cohere_chat.wire import ChatResponse, TokenCounts, UsageWire
from dragoman.codecs.common_losses import drop_stop_sequence
from dragoman.codecs.encoded import Encoded
from dragoman.codecs.ids import invent_id
from dragoman.codecs.reading import WireReader, WireValue, spliced
from dragoman.codecs.settings import collect_keys
from dragoman.ir import Completion, Finish, FinishReason, Message, Usage, withholds_calls
from dragoman.ir.notes import MODELLED, Extra
from dragoman.ir.values import encode_json
from dragoman.losses import LossLog

_reader = WireReader(ChatResponse, "cohere-chat response")
_keys = collect_keys(ChatResponse, ("logprobs", "meta"))
_counts = WireReader(UsageWire, "cohere-chat usage")

ABSENT = Raw(b'"absent"')
USAGE = "~usage"
"""Note: the wire's own object. Billed units differ from tokens by the hidden preamble, and are never added to them."""

# ── finish reasons: total both ways ───────────────────────────────────────────────────────────────────────────

_DECODE_FINISH: dict[str, FinishReason] = {
    "COMPLETE": "stop",
    "STOP_SEQUENCE": "stop",
    "MAX_TOKENS": "length",
    "TOOL_CALL": "tool_calls",
    "ERROR": "error",
    "TIMEOUT": "error",
    # Reasons of v1, which gateways still send.
    "ERROR_TOXIC": "content_filter",
    "ERROR_LIMIT": "length",
    "USER_CANCEL": "error",
}
_ENCODE_FINISH: dict[FinishReason, str] = {
    "stop": "COMPLETE",
    "length": "MAX_TOKENS",
    "tool_calls": "TOOL_CALL",
    "content_filter": "ERROR",
    "refusal": "ERROR",
    "pause": "MAX_TOKENS",
    "error": "ERROR",
    "unknown": "ERROR",
}
_EXACT = frozenset({"stop", "length", "tool_calls", "error"})


def decode_finish(raw: str | None, message: Message | None) -> Finish | None:
    """Decode the finish; calls mean "tool_calls" even at COMPLETE."""
    if raw is None:
        return None
    reason = _DECODE_FINISH.get(raw, "unknown")
    if reason == "stop" and message is not None and message.tool_calls:
        reason = "tool_calls"
    return Finish(reason, raw)


def encode_finish(
    finish: Finish | None, log: LossLog, completion: Completion, *, native: bool = False, has_calls: bool = False
) -> str | None:
    """Return the finish reason. `has_calls`: with a reason that means success, the client would run the calls."""
    if native:
        if finish is not None:
            report_keys(completion, finish.metadata, log, "finish.")
        return None if finish is None else finish.raw
    if finish is None:
        word = "COMPLETE" if completion.messages else "ERROR"
        log.invent(completion, "finish", f"finish reason {word}", "answers of this API have a finish reason")
        return word
    report_keys(completion, finish.metadata, log, "finish.")
    if finish.explanation is not None:
        log.drop(completion, "finish.explanation", "explanation of the failure", "this API has no field for it")
    word = _ENCODE_FINISH[finish.reason]
    if finish.reason == "refusal" and not has_calls and any(one.refusal is not None for one in completion.messages):
        word = "COMPLETE"  # the model declined in its own text
    if finish.reason == "pause" and any(one.tool_calls for one in completion.messages):
        word = "TOOL_CALL"  # the client continues from the results
    if finish.stop_sequence is not None:
        word = "STOP_SEQUENCE"
        drop_stop_sequence(completion, log)
    if finish.reason not in _EXACT:
        log.degrade(
            completion, "finish", f"finish reason {finish.raw or finish.reason!r}", f"this API can only say {word}"
        )
    return word


# ── usage ─────────────────────────────────────────────────────────────────────────────────────────────────────


def decode_usage(raw: Raw, path: str = "$.usage") -> Usage:
    """Decode the counts, with the wire's own object noted.

    Cached tokens are part of the input, image tokens are added to it; reasoning is part of the output. If only billed
    units are given, they are used.
    """
    wire = _counts.read(raw, path)
    tokens = wire.tokens or wire.billed_units or TokenCounts()
    image = _whole(tokens.image_tokens)
    notes: Extra = {USAGE: raw}
    if wire.billed_units is not None:
        billed = {name: getattr(wire.billed_units, name) for name in wire.billed_units.__struct_fields__}
        notes["billed_units"] = Raw(encode_json({name: count for name, count in billed.items() if count is not None}))
    return Usage(
        (_whole(tokens.input_tokens) or 0) + (image or 0),
        _whole(tokens.output_tokens) or 0,
        _whole(wire.cached_tokens),
        None,
        _whole(tokens.reasoning_tokens),
        image,
        metadata={FAMILY: notes},
    )


def _whole(count: float | None) -> int | None:
    """Return the count as an integer: `3` may be written as `3.0`."""
    return None if count is None else int(count)


def encode_usage(usage: Usage, log: LossLog, completion: Completion) -> WireValue:
    notes = (usage.metadata or {}).get(FAMILY)
    if notes is not None and USAGE in notes:
        return notes[USAGE]
    if usage.cache_written:
        what = "tokens written to a cache"
        log.note(completion, "usage.cache_written", what, "this API does not count them apart")
    if usage.total is not None and usage.total != usage.input + usage.output:
        log.degrade(completion, "usage.total", f"total of {usage.total} tokens", "this API gives the two counts only")
    tokens: dict[str, Any] = {"input_tokens": usage.input - (usage.image or 0), "output_tokens": usage.output}
    if usage.reasoning is not None:
        tokens["reasoning_tokens"] = usage.reasoning
    if usage.image is not None:
        tokens["image_tokens"] = usage.image
    billed = {"input_tokens": usage.input, "output_tokens": usage.output}
    counts: dict[str, Any] = {"billed_units": billed, "tokens": tokens}
    if usage.cached is not None:
        counts["cached_tokens"] = usage.cached
    return spliced(Raw(encode_json(counts)), notes or {})


# ── responses ─────────────────────────────────────────────────────────────────────────────────────────────────

INVENTED_ID = invent_id("answer", 0)


def decode_response(body: bytes) -> Completion:
    wire = _reader.read(body)
    notes: Extra = _keys(wire) or {}
    if wire.message is UNSET:
        message = Message("assistant", ())
        notes["~message"] = ABSENT
    else:
        message = MessageDecoder.decode_assistant(wire.message)
    finish = decode_finish(wire.finish_reason, message)
    if finish is not None and finish.reason == "length" and message.tool_calls:
        message = structs.replace(message, parts=cut_short(message.parts, finish.reason))
    usage = None
    if wire.usage is not UNSET:
        if bytes(wire.usage) == b"null":
            notes["usage"] = wire.usage
        else:
            usage = decode_usage(wire.usage)
    elif wire.meta is not None:
        usage = decode_usage(wire.meta, "$.meta")
        notes["~meta"] = Raw(b"true")
        notes[MODELLED + "meta"] = notes.pop("meta")
    return Completion((message,), finish, usage, wire.id, None, None, (), {FAMILY: notes})


def encode_response(completion: Completion, log: LossLog) -> Encoded:
    notes: Extra | None = (completion.metadata or {}).get(FAMILY)
    native = notes is not None
    message = completion.messages[0] if completion.messages else Message("assistant", ())
    for other in completion.messages[1:]:
        log.drop(other, "", "a further candidate", "an answer of this API has one")
    if not native:
        completion = _fill_in_identity(completion, log)
    has_calls = withholds_calls(completion.finish) and bool(message.tool_calls)
    usage: Any = UNSET if completion.usage is None else encode_usage(completion.usage, log, completion)
    body: Any = MessageEncoder(log, to_client=True, native=native).encode_assistant(message)
    wire = ChatResponse(
        completion.id,
        UNSET if notes is not None and "~message" in notes else body,
        encode_finish(completion.finish, log, completion, native=native, has_calls=has_calls),
        UNSET if notes is not None and "~meta" in notes else usage,
    )
    return Encoded(bytes(spliced(wire, notes)) if notes else encode_json(wire))


def _fill_in_identity(completion: Completion, log: LossLog) -> Completion:
    """Add an id, which clients of this API expect; report model and time, which it has no fields for."""
    if completion.model is not None:
        log.note(completion, "model", "name of the model", "an answer of this API does not name it")
    if completion.created is not None:
        log.note(completion, "created", "time of the answer", "answers of this API do not include it")
    if completion.id is not None:
        return completion
    log.note(completion, "id", "id of the answer", "an answer of this API has one")
    return log.replace(completion, id=INVENTED_ID)
