"""Interactions responses, both ways."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import UNSET, Raw, UnsetType, structs

from dragoman.codecs.arguments import cut_short
from dragoman.codecs.common_losses import drop_stop_sequence, note_empty_model
from dragoman.codecs.encoded import Encoded
from dragoman.codecs.failures import failure_of
from dragoman.codecs.gemini_interactions.messages import MessageDecoder, MessageEncoder
from dragoman.codecs.gemini_interactions.profile import FAMILY, STATUSES, UNFINISHED
from dragoman.codecs.gemini_interactions.wire import Interaction, ModelOutputStep
from dragoman.codecs.google_errors import encode_event_error, explain_finish
from dragoman.codecs.google_usage import INTERACTION_USAGE, read_usage, usage_for_interactions, write_usage
from dragoman.codecs.google_vocabulary import fit_counts
from dragoman.codecs.reading import WireReader, WireValue, spliced
from dragoman.codecs.settings import collect_keys
from dragoman.codecs.shared_settings import ANSWERED_BY_GOOGLE, GOOGLE_TIERS_READ, take_tier, tier_word
from dragoman.codecs.timestamps import read_time, write_time
from dragoman.ir import AnyPart, Completion, Finish, FinishReason, Message, ToolCall, Usage, withholds_calls
from dragoman.ir.notes import MODELLED, Extra, family_notes
from dragoman.ir.values import encode_json
from dragoman.losses import LossLog

SOURCE = "gemini-interactions response"
_reader = WireReader(Interaction, SOURCE)

_KEPT = {
    **{name: MODELLED + name for name in ("object", "created", "output_text", "previous_interaction_id")},
    **{
        name: name for name in ("updated", "service_tier", "agent", "agent_config", "environment_id", "errors", "input")
    },
    "continuation_token": "continuation_token",
}
_keys = collect_keys(Interaction, _KEPT)

# ── finish: the status, and what the steps show ───────────────────────────────────────────────────────────────

_WORD_OF: dict[FinishReason, str] = {
    "stop": "completed",
    "tool_calls": "requires_action",
    "length": "incomplete",
    "content_filter": "incomplete",
    "refusal": "incomplete",
    "pause": "incomplete",
    "error": "failed",
    "unknown": "incomplete",
}
FAILED_STEP = "~failed_step"
"""Note: the index of the step whose error explains the failure."""
_DECODE_FINISH = STATUSES
_EXACT = frozenset({"stop", "tool_calls", "length", "error"})


def decode_finish(status: str | None, parts: Sequence[AnyPart], errors: Raw | UnsetType = UNSET) -> Finish:
    """Decode the finish. This API has no finish reason; only the steps show whether a call is unanswered.

    `completed` comes with unanswered calls, and `requires_action` is the last status of an ordinary answer.
    """
    if status in UNFINISHED:  # an unfinished answer is not a success
        return Finish("error", status)
    reason: FinishReason = "stop" if status is None else _DECODE_FINISH.get(status, "unknown")
    if reason in {"stop", "tool_calls"}:
        calls = any(type(part) is ToolCall for part in parts)
        reason = "tool_calls" if calls else "pause" if reason == "tool_calls" else "stop"
    finish = Finish(reason, status)
    return finish if errors is UNSET else explain_finish(errors, finish)


def encode_finish(finish: Finish | None, log: LossLog, completion: Completion) -> str:
    """Return the status."""
    if finish is None:
        status = "completed" if completion.messages else "failed"
        log.invent(completion, "finish", f"status {status}", "answers of this API have a finish reason")
        return status
    if finish.stop_sequence is not None:
        drop_stop_sequence(completion, log)
    if finish.explanation is not None and finish.reason != "error":
        log.drop(completion, "finish.explanation", "explanation of the failure", "an answer without errors has none")
    if finish.reason == "error" and finish.raw == "cancelled":
        return "cancelled"
    calls = bool(completion.messages) and bool(completion.messages[0].tool_calls)
    word = _WORD_OF[finish.reason]
    if finish.reason == "pause" and calls:
        word = "requires_action"  # the client continues from the results
    if finish.reason not in _EXACT or (finish.reason == "tool_calls" and not calls):
        word = "completed" if finish.reason == "tool_calls" else word
        what = f"finish reason {finish.raw or finish.reason!r}"
        log.degrade(completion, "finish", what, f"this API has no finish reasons: status {word}")
    if calls and withholds_calls(finish):
        # No other status makes clients withhold complete calls.
        return "failed"
    return "requires_action" if calls and finish.reason == "stop" else word


# ── usage ─────────────────────────────────────────────────────────────────────────────────────────────────────


def decode_usage(raw: Raw) -> Usage:
    return read_usage(raw, FAMILY)


def encode_usage(usage: Usage, log: LossLog, completion: Completion) -> WireValue:
    written = family_notes(FAMILY, usage.metadata).get(INTERACTION_USAGE) or usage_for_interactions(usage)
    return write_usage(usage, *fit_counts(usage, log, completion)) if written is None else written


# ── responses ─────────────────────────────────────────────────────────────────────────────────────────────────


def decode_response(body: bytes) -> Completion:
    wire = _reader.read(body)
    extra: Extra = _keys(wire) or {}
    decoder = MessageDecoder(seed=wire.id or "", answering=True)
    if wire.steps is not UNSET:
        decoder.add_steps(wire.steps)
        if not wire.steps:
            extra[MODELLED + "steps"] = Raw(b"[]")
    elif wire.outputs is not UNSET:
        extra["~outputs"] = Raw(b"true")
        decoder.add_steps([ModelOutputStep(wire.outputs)])
    parts = decoder.answer()
    finish = decode_finish(wire.status, parts, wire.errors)
    if finish.explanation is not None:
        extra[MODELLED + "errors"] = extra.pop("errors")
    elif finish.reason == "error" and wire.errors is UNSET and wire.steps is not UNSET:
        for index, step in enumerate(wire.steps):
            if type(step) is ModelOutputStep and step.error is not UNSET:
                finish, extra[FAILED_STEP] = explain_finish(step.error, finish), Raw(encode_json(index))
    if finish.reason == "length":
        parts = cut_short(parts, finish.reason)
    usage = wire.usage
    if usage is not UNSET and bytes(usage) == b"null":
        extra[MODELLED + "usage"], usage = usage, UNSET
    return Completion(
        (Message("assistant", parts),),
        finish,
        None if usage is UNSET else take_tier(decode_usage(usage), extra, "service_tier", GOOGLE_TIERS_READ),
        wire.id,
        wire.model,
        None if wire.created is UNSET else read_time(wire.created),
        metadata={FAMILY: extra},
    )


def encode_response(completion: Completion, log: LossLog, profile: Any = None) -> Encoded:  # noqa: ARG001
    notes = (completion.metadata or {}).get(FAMILY)
    for message in completion.messages[1:]:
        log.drop(message, "", "a further candidate", "this API gives one answer")
    message = completion.messages[0] if completion.messages else Message("assistant", ())
    encoder = MessageEncoder(log, native=notes is not None, to_client=True)
    steps: Any = encoder.encode_turn(message)
    usage: Any = UNSET if completion.usage is None else encode_usage(completion.usage, log, completion)
    if notes is not None:
        return _encode_native(completion, notes, steps, usage)
    status = encode_finish(completion.finish, log, completion)
    failure = failure_of(completion.finish or Finish("error", "no answer"))
    time = Raw(encode_json(write_time(completion.created)))
    tier = tier_word(completion.usage, ANSWERED_BY_GOOGLE)
    if completion.model is None:
        note_empty_model(completion, log)
    wire = Interaction(
        completion.id or None,
        Raw(b'"interaction"'),
        status,
        completion.model or "",
        time,
        time,
        steps=steps,
        usage=usage,
        service_tier=UNSET if tier is None else Raw(encode_json(tier)),
        errors=UNSET if status != "failed" else Raw(encode_json([encode_event_error(failure, FAMILY)])),
    )
    return Encoded(encode_json(wire))


def _encode_native(completion: Completion, notes: Extra, steps: list[WireValue], usage: Any) -> Encoded:
    finish = completion.finish
    status = None if finish is None else finish.raw
    wire = Interaction(completion.id, status=status, model=completion.model, usage=usage)
    if "~outputs" in notes:
        first = steps[0] if steps else ModelOutputStep([])
        wire = structs.replace(wire, outputs=getattr(first, "content", []))
    elif steps:
        wire = structs.replace(wire, steps=steps)
    return Encoded(bytes(spliced(wire, notes)))
