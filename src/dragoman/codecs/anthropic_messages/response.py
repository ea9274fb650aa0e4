"""Messages responses, both ways."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Raw, UnsetType
from msgspec.structs import replace

from dragoman.codecs.anthropic_messages.caching import FAMILY, NULL
from dragoman.codecs.anthropic_messages.errors import encode_error
from dragoman.codecs.anthropic_messages.messages import MessageEncoder, decode_blocks
from dragoman.codecs.anthropic_messages.wire import (
    HostedCounts,
    MessageResponse,
    OutputDetails,
    StopDetails,
    TextBlock,
    UsageWire,
)
from dragoman.codecs.common_losses import note_empty_model
from dragoman.codecs.encoded import Encoded
from dragoman.codecs.failures import failed_answer, last_text_as_refusal, refusal_explained
from dragoman.codecs.ids import invent_id
from dragoman.codecs.reading import WireReader, WireValue, spliced
from dragoman.codecs.settings import collect_keys
from dragoman.codecs.shared_settings import ANSWERED_BY_ANTHROPIC, tier_word
from dragoman.ir import (
    AnyPart,
    Completion,
    Finish,
    FinishReason,
    Message,
    Metadata,
    Refusal,
    ToolCall,
    Usage,
    withholds_calls,
)
from dragoman.ir.notes import MODELLED, WITHIN, Extra, family_notes
from dragoman.ir.traits import TraitNotes
from dragoman.ir.values import encode_json, parse_json
from dragoman.losses import LossLog

_reader = WireReader(MessageResponse, "anthropic-messages response")
_counts = WireReader(UsageWire, "anthropic-messages usage", path="$.usage")
_keys = collect_keys(MessageResponse, ("container", "context_management", "diagnostics", "input_transformations"))

# ── finish reasons: total both ways ───────────────────────────────────────────────────────────────────────────

CONTEXT_EXCEEDED = "model_context_window_exceeded"
_DECODE_FINISH: dict[str, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    CONTEXT_EXCEEDED: "length",
    "tool_use": "tool_calls",
    "pause_turn": "pause",
    "compaction": "pause",
    "refusal": "refusal",
    # Servers that pass on OpenAI's words.
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "content_filter": "content_filter",
}
_ENCODE_FINISH: dict[FinishReason, str] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "content_filter": "refusal",
    "refusal": "refusal",
    "pause": "pause_turn",
    "error": "max_tokens",  # the answer was cut, for whatever reason; "end_turn" would call it a success
    "unknown": "max_tokens",
}

NO_DETAILS = {FAMILY: {"~stop_details": NULL}}


def decode_finish(
    raw: str | None | UnsetType,
    parts: list[AnyPart],
    stop_sequence: str | None | UnsetType = None,
    stop_details: Raw | UnsetType = UNSET,
) -> Finish | None:
    """Decode the finish; calls mean "tool_calls" even at `end_turn`, except calls that code made: those are answered.

    With an unknown word, calls do not prove that the answer is complete: the reason stays unknown (law 7).
    """
    if raw is UNSET or raw is None:
        return None
    reason = _DECODE_FINISH.get(raw, "unknown")
    if reason == "stop":
        for part in parts:
            if type(part) is ToolCall and ("caller" not in family_notes(FAMILY, part.metadata)):
                reason = "tool_calls"
    matched = stop_sequence if isinstance(stop_sequence, str) else None
    if stop_details is UNSET:
        return Finish(reason, raw, matched)
    if stop_details == NULL:
        return Finish(reason, raw, matched, NO_DETAILS)
    finish = Finish(reason, raw, matched, {FAMILY: {"stop_details": stop_details}})
    details = parse_json(stop_details)
    return _with_details(finish, stop_details, details) if isinstance(details, dict) else finish


def _with_details(finish: Finish, raw: Raw, details: dict[str, Any]) -> Finish:
    """Return the finish with the explanation of a refusal. The other details, such as its category, are notes."""
    further = {key: value for key, value in details.items() if key != "type" and value is not None}
    words = further.get("explanation")
    explained = finish.reason == "refusal" and isinstance(words, str) and words != ""
    if explained:
        del further["explanation"]
    notes: Extra = {"~stop_details": raw}
    if further:
        notes[WITHIN + "stop_details"] = Raw(encode_json(further))
    return replace(finish, explanation=words if explained else None, metadata={FAMILY: notes})


_RUNS_CALLS = frozenset({"stop", "tool_calls"})
_TEXT_ONLY: set[type] = set()


def _has_whole_call(content: str | tuple[AnyPart, ...]) -> bool:
    return any(type(part) is ToolCall and not part.incomplete for part in content)


def encode_finish(
    finish: Finish | None, source: str | None, log: LossLog, completion: Completion
) -> tuple[str | None, str | None]:
    """Return the stop reason, and the stop sequence that matched."""
    if finish is None:
        if source != FAMILY:
            log.invent(completion, "finish", "stop reason end_turn", "answers of this API have a finish reason")
        return (None, None) if source == FAMILY else ("end_turn", None)
    if source == FAMILY and finish.raw is not None:
        return finish.raw, finish.stop_sequence
    content = completion.messages[0].content_held if completion.messages else ()
    kinds = {type(part) for part in content} if type(content) is tuple else _TEXT_ONLY
    has_calls = ToolCall in kinds
    if finish.reason in _RUNS_CALLS and has_calls and _has_whole_call(content):
        return "tool_use", None
    if finish.reason == "stop" and finish.stop_sequence is not None:
        return "stop_sequence", finish.stop_sequence
    if finish.reason == "stop" and Refusal in kinds:
        return "refusal", None
    word = "end_turn" if finish.reason == "tool_calls" else _ENCODE_FINISH[finish.reason]
    if finish.reason == "length" and finish.raw == CONTEXT_EXCEEDED:
        word = CONTEXT_EXCEEDED
    if has_calls and withholds_calls(finish):
        word = "refusal"  # the only stop reason that keeps clients from running the calls of an answer
    elif has_calls and word == "end_turn":
        word = "max_tokens"  # the only stop reason for an answer with a call that must not be run
    if finish.reason in {"content_filter", "error", "unknown", "tool_calls"}:
        what = f"finish reason {finish.raw or finish.reason!r}"
        log.degrade(completion, "finish", what, f"the nearest value of this API is {word}")
    if finish.explanation is not None and word != "refusal":
        log.drop(completion, "finish.explanation", "explanation of the failure", "this API has no field for it")
    return word, None


# ── usage ─────────────────────────────────────────────────────────────────────────────────────────────────────


def decode_usage(raw: Raw) -> Usage:
    """Decode the counts, with the wire's own object noted."""
    return _usage_of(_counts.read(raw), {FAMILY: {"~usage": raw}})


def _usage_of(wire: UsageWire, metadata: Metadata | None = None) -> Usage:
    """Return the counts; input is a sum, as `input_tokens` excludes tokens read from or written to a cache."""
    written, cached, details = (
        wire.cache_creation_input_tokens,
        wire.cache_read_input_tokens,
        wire.output_tokens_details,
    )
    return Usage(
        (wire.input_tokens or 0) + (written or 0) + (cached or 0),
        wire.output_tokens or 0,
        cached,
        written,
        None if details is None else details.thinking_tokens,
        metadata=metadata,
        searches=None if wire.server_tool_use is None else wire.server_tool_use.web_search_requests,
        details=None if wire.cache_creation is wire.server_tool_use is None else _usage_details(wire),
        service_tier=_TIERS.get(wire.service_tier) if type(wire.service_tier) is str else None,
    )


_TIERS = {word: tier for tier, word in ANSWERED_BY_ANTHROPIC.items()}
_COUNTS = (("cache_written_1h", "cache_creation", "ephemeral_1h_input_tokens"),)


def _usage_details(wire: UsageWire) -> dict[str, int] | None:
    """Return the rarer counts that are above zero; None without any."""
    found = {}
    for name, member, key in _COUNTS:
        value = getattr(wire, member)
        count = value.get(key) if isinstance(value, dict) else None
        if type(count) is int and count > 0:
            found[name] = count
    fetches = None if wire.server_tool_use is None else wire.server_tool_use.web_fetch_requests
    if type(fetches) is int and fetches > 0:
        found["web_fetches"] = fetches
    return found or None


def _encode_details(usage: Usage) -> dict[str, dict[str, int]]:
    counts = usage.details or {}
    members: dict[str, dict[str, int]] = {}
    for name, member, key in _COUNTS:
        if name in counts:
            members.setdefault(member, {})[key] = counts[name]
    if "cache_creation" in members:
        written = (usage.cache_written or 0) - counts["cache_written_1h"]
        members["cache_creation"]["ephemeral_5m_input_tokens"] = max(written, 0)
    return members


def encode_usage(usage: Usage) -> WireValue:
    notes = family_notes(FAMILY, usage.metadata)
    if "~usage" in notes:
        return notes["~usage"]
    fetches = None if usage.details is None else usage.details.get("web_fetches")
    # A strict client of this API expects all four counts.
    wire = UsageWire(
        max(usage.uncached_input, 0),
        usage.output,
        usage.cache_written or 0,
        min(usage.cached or 0, max(usage.input - (usage.cache_written or 0), 0)),  # the counts add up to the input
        None if usage.reasoning is None else OutputDetails(min(usage.reasoning, usage.output)),
        HostedCounts(usage.searches, fetches) if usage.searches or fetches else None,
        service_tier=tier_word(usage, ANSWERED_BY_ANTHROPIC),
    )
    return wire if usage.details is None else replace(wire, **_encode_details(usage))


# ── responses ─────────────────────────────────────────────────────────────────────────────────────────────────


def decode_response(body: bytes) -> Completion:
    wire = _reader.read(body)
    extra: Extra = _keys(wire) or {}
    parts = decode_blocks(wire.content, TraitNotes(), {})
    finish = decode_finish(wire.stop_reason, parts, wire.stop_sequence, wire.stop_details)
    if finish is not None and finish.reason == "length" and parts and isinstance(parts[-1], ToolCall):
        # The answer was cut inside the call: its input may be incomplete.
        parts[-1] = replace(parts[-1], incomplete=True)
    _note_spelling(wire, finish, extra)
    if finish is not None and finish.explanation is not None:
        finish, parts = _read_refusal(finish, parts)
    usage = wire.usage
    if usage is not UNSET and usage == NULL:
        extra["usage"], usage = NULL, UNSET
    return Completion(
        (Message("assistant", tuple(parts)),),
        finish,
        None if usage is UNSET else decode_usage(usage),
        wire.id,
        wire.model,
        metadata={FAMILY: extra},
    )


def _read_refusal(finish: Finish, parts: list[AnyPart]) -> tuple[Finish, list[AnyPart]]:
    """Read a refusal's text if the stop details repeat it."""
    declined = last_text_as_refusal(parts, finish.explanation)
    return (finish, parts) if declined is None else (replace(finish, explanation=None), list(declined))


def _refusal_details(completion: Completion, word: str | None) -> Raw:
    """Return the stop details: this API explains refusals there."""
    words = refusal_explained(completion, completion.finish) if word == "refusal" else None
    return NULL if words is None else Raw(encode_json(StopDetails(words)))


def _note_spelling(wire: MessageResponse, finish: Finish | None, extra: Extra) -> None:
    if wire.type != "message":
        extra["~type"] = Raw(b'"absent"') if wire.type is UNSET else Raw(encode_json([wire.type]))
    if wire.role != "assistant":
        extra["~role"] = Raw(b'"absent"') if wire.role is UNSET else Raw(encode_json([wire.role]))
    if wire.stop_reason is UNSET:
        extra["~stop_reason"] = Raw(b'"absent"')
    if wire.stop_sequence is UNSET:
        extra["~stop_sequence"] = Raw(b'"absent"')
    elif finish is None and wire.stop_sequence is not None:
        extra["stop_sequence"] = Raw(encode_json(wire.stop_sequence))  # `Finish` needs a reason
    if finish is None and wire.stop_details is not UNSET:
        extra[MODELLED + "stop_details"] = wire.stop_details


def encode_response(completion: Completion, log: LossLog) -> Encoded:
    if completion.metadata is not None and FAMILY in completion.metadata:
        return Encoded(bytes(_encode_native(completion, completion.metadata[FAMILY], log)))
    failure = failed_answer(completion, log)
    if failure is not None:
        return encode_error(failure)
    for message in completion.messages[1:]:
        log.drop(message, "", "further candidate", "an answer of this API is one message")
    if completion.created is not None:
        log.note(completion, "created", "time of creation", "answers of this API do not include it")
    encoder = MessageEncoder(log)
    word, matched = encode_finish(completion.finish, None, log, completion)
    usage = completion.usage
    report_usage(usage, log, completion)
    if completion.model is None:
        note_empty_model(completion, log)
    wire = MessageResponse(
        _encode_content(completion, encoder),
        message_id(completion.id),
        "message",
        "assistant",
        completion.model or "",
        word,
        matched,
        _refusal_details(completion, word),
        encode_usage(usage or Usage()),
    )
    return Encoded(encode_json(wire))


def report_usage(usage: Usage | None, log: LossLog, node: Completion) -> None:
    """Report counts that this API has no field for, or that do not add up as its clients expect."""
    if usage is None:
        log.invent(node, "usage", "usage of zero tokens", "answers of this API include usage")
        return
    if (usage.reasoning or 0) > usage.output:
        why = "thinking is part of the output here, and the output count was smaller"
        log.degrade(node, "usage.reasoning", f"{usage.reasoning} reasoning tokens", why)
    if usage.image:
        log.note(node, "usage.image", f"{usage.image} image tokens", "this API does not count them apart")
    if usage.total is not None and usage.total != usage.input + usage.output:
        log.note(node, "usage.total", f"total of {usage.total} tokens", "this API has no total")


def _encode_native(completion: Completion, notes: Extra, log: LossLog) -> Raw:
    finish = completion.finish
    word, matched = encode_finish(finish, FAMILY, log, completion)
    details = {} if finish is None else family_notes(FAMILY, finish.metadata)
    wire = MessageResponse(
        _encode_content(completion, MessageEncoder(log, native=True)),
        completion.id,
        _original_spelling(notes, "~type", "message"),
        _original_spelling(notes, "~role", "assistant"),
        completion.model,
        UNSET if "~stop_reason" in notes else word,
        UNSET if "~stop_sequence" in notes or "stop_sequence" in notes else matched,
        details.get("stop_details", details.get("~stop_details", UNSET)),
        UNSET if completion.usage is None else encode_usage(completion.usage),
    )
    return spliced(wire, notes)


def _original_spelling(notes: Extra, key: str, usual: str) -> str | UnsetType:
    if key not in notes:
        return usual
    spelled = parse_json(notes[key])
    return UNSET if spelled == "absent" else spelled[0]


def _encode_content(completion: Completion, encoder: MessageEncoder) -> list[WireValue]:
    if not completion.messages:
        return []
    content = completion.messages[0].content_held
    if isinstance(content, str):
        return [TextBlock(content)] if content else []
    return encoder.encode_blocks(content, "assistant")


def message_id(given: str | None) -> str:
    if given is None:
        return f"msg_{invent_id('message', 0)}"
    return given if given.startswith("msg_") else f"msg_{given}"
