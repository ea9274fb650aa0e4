"""Chat responses, both ways."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Raw, UnsetType, structs

from dragoman.codecs.arguments import cut_short
from dragoman.codecs.common_losses import drop_stop_sequence, note_empty_model
from dragoman.codecs.encoded import Encoded
from dragoman.codecs.failures import failed_answer
from dragoman.codecs.logprobs import read_tokens, report_ids, tokens_of, write_tokens
from dragoman.codecs.ollama_chat.errors import encode_error
from dragoman.codecs.ollama_chat.messages import ABSENT, MessageEncoder, decode_assistant
from dragoman.codecs.ollama_chat.profile import FAMILY
from dragoman.codecs.ollama_chat.wire import ALIASES, DURATIONS, ChatResponse
from dragoman.codecs.reading import WireReader, WireValue, splice
from dragoman.codecs.settings import collect_keys
from dragoman.codecs.timestamps import read_time, write_time
from dragoman.ir import Completion, Finish, FinishReason, Logprobs, Message, ToolCall, Usage, withholds_calls
from dragoman.ir.notes import MODELLED, Extra
from dragoman.ir.values import encode_json
from dragoman.losses import LossLog

_reader = WireReader(ChatResponse, "ollama-chat response", aliases=ALIASES)
_keys = collect_keys(ChatResponse, ("logprobs",))

CREATED = MODELLED + "created_at"
LOGPROBS = MODELLED + "logprobs"
_DURATION_KEYS = DURATIONS
CALL_WITHHELD = "call that must not be run"
CANNOT_SAY = "this API cannot say that an answer was blocked or failed, and its clients run every call"

# ── finish reasons: total both ways ───────────────────────────────────────────────────────────────────────────

_DECODE_FINISH: dict[str, FinishReason] = {
    "stop": "stop",
    "length": "length",
    # An empty conversation loads or unloads the model, and the answer is empty.
    "load": "stop",
    "unload": "stop",
}
_ENCODE_FINISH: dict[FinishReason, str] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "stop",
    "content_filter": "length",
    "refusal": "length",
    "pause": "length",
    "error": "length",  # the answer is cut off, for whatever reason
    "unknown": "length",
}
_EXACT = frozenset({"stop", "length", "tool_calls"})
UNSAID: frozenset[FinishReason] = frozenset({"error", "content_filter", "refusal"})
"""Finish reasons that no answer of this API can state."""


def decode_finish(raw: str | UnsetType, message: Message | None) -> Finish:
    """Decode the finish; calls mean "tool_calls" even at "stop", or without a reason, as old servers send them."""
    reason = "stop" if raw is UNSET else _DECODE_FINISH.get(raw, "unknown")
    if reason == "stop" and message is not None and message.tool_calls:
        reason = "tool_calls"
    return Finish(reason, None if raw is UNSET else raw)


def encode_finish(finish: Finish | None, log: LossLog, completion: Completion, *, native: bool = False) -> WireValue:
    if native:
        return UNSET if finish is None or finish.raw is None else finish.raw
    if finish is None:
        log.invent(completion, "finish", "finish reason stop", "answers of this API have a finish reason")
        return "stop"
    if finish.stop_sequence is not None:
        drop_stop_sequence(completion, log)
    if finish.explanation is not None:
        log.drop(completion, "finish.explanation", "explanation of the failure", "this API has no field for it")
    word = _ENCODE_FINISH[finish.reason]
    if _is_whole(finish, completion):
        word = "stop"
    if finish.reason not in _EXACT:
        log.degrade(
            completion, "finish", f"finish reason {finish.raw or finish.reason!r}", f"this API can only say {word}"
        )
    return word


def _is_whole(finish: Finish, completion: Completion) -> bool:
    """Whether the answer is complete: the model declined in its own text, or its calls wait for results."""
    if finish.reason == "refusal":
        return any(message.refusal is not None for message in completion.messages)
    return finish.reason == "pause" and any(message.tool_calls for message in completion.messages)


# ── usage ─────────────────────────────────────────────────────────────────────────────────────────────────────

_UNCOUNTED = (
    ("cached", "cached tokens"),
    ("cache_written", "tokens written to a cache"),
    ("reasoning", "reasoning tokens"),
    ("image", "image tokens"),
)


def decode_usage(prompt: int | None, written: int | None) -> Usage | None:
    """Decode the counts: prompt tokens include cached ones, output tokens thinking. A count of zero is omitted."""
    if prompt is None and written is None:
        return None
    zeros = {
        MODELLED + name: Raw(b"0")
        for name, count in (("prompt_eval_count", prompt), ("eval_count", written))
        if count == 0
    }
    return Usage(prompt or 0, written or 0, metadata={FAMILY: zeros} if zeros else None)


def encode_usage(usage: Usage | None, log: LossLog, completion: Completion) -> tuple[int | None, int | None]:
    """Return (prompt_eval_count, eval_count)."""
    if usage is None:
        return None, None
    for field, what in _UNCOUNTED:
        if getattr(usage, field):
            log.note(completion, f"usage.{field}", what, "this API does not count them apart")
    if usage.total is not None and usage.total != usage.input + usage.output:
        log.degrade(completion, "usage.total", f"total of {usage.total} tokens", "this API gives the two counts only")
    return usage.input, usage.output


# ── responses ─────────────────────────────────────────────────────────────────────────────────────────────────


def decode_response(body: bytes) -> Completion:
    wire = _reader.read(body)
    notes: Extra = _keys(wire) or {}
    created = None
    if wire.created_at is not UNSET:
        notes[CREATED] = wire.created_at
        created = read_time(wire.created_at)
    durations = (wire.total_duration, wire.load_duration, wire.prompt_eval_duration, wire.eval_duration)
    for key, value in zip(_DURATION_KEYS, durations, strict=True):
        if value is not UNSET:
            notes[key] = value
    if wire.done is not True:
        notes["~done"] = ABSENT if wire.done is UNSET else Raw(b"false")
    if wire.message is UNSET:
        message = Message("assistant", ())
        notes["~message"] = ABSENT
    else:
        message = decode_assistant(wire.message, seed_of(wire.id, wire.created_at), answer=True)
    unfinished = wire.done is False and wire.done_reason is UNSET
    # `done: false` without a reason: a line of a stream, not a whole answer.
    finish = Finish("unknown") if unfinished else decode_finish(wire.done_reason, message)
    if finish.reason == "length" and message.tool_calls:
        message = structs.replace(message, parts=cut_short(message.parts, finish.reason))
    tokens = read_tokens(wire.logprobs) if "logprobs" in notes else ()
    if tokens:
        notes[LOGPROBS] = notes.pop("logprobs")
    return Completion(
        (message,),
        finish,
        decode_usage(wire.prompt_eval_count, wire.eval_count),
        wire.id,
        wire.model,
        created,
        (),
        {FAMILY: notes},
        (Logprobs(tokens),) if tokens else (),
    )


def seed_of(answer_id: str | None, created_at: Raw | UnsetType) -> str:
    """Return a seed for the ids of an answer's calls: the API has no answer id, but its clock is fine-grained."""
    return answer_id or ("" if created_at is UNSET else str(created_at, "utf-8"))


def encode_response(completion: Completion, log: LossLog) -> Encoded:
    notes: Extra | None = (completion.metadata or {}).get(FAMILY)
    native = notes is not None
    failure = None if native else failed_answer(completion, log, UNSAID)
    if failure is not None:
        return encode_error(failure)
    message = completion.messages[0] if completion.messages else Message("assistant", ())
    for other in completion.messages[1:]:
        log.drop(other, "", "a further candidate", "an answer of this API has one")
    if not native and withholds_calls(completion.finish):
        message = _without_calls(message, log)
    prompt, written = encode_usage(completion.usage, log, completion)
    if native:
        prompt, written = prompt or None, written or None  # zeros that were present are in the notes
    model = completion.model
    if model is None and not native:
        note_empty_model(completion, log)
        model = ""
    done: Any = True
    if notes is not None and "~done" in notes:
        done = UNSET if notes["~done"] == ABSENT else False
    wire = ChatResponse(
        model,
        UNSET if native else Raw(encode_json(write_time(completion.created))),
        UNSET
        if notes is not None and "~message" in notes
        else MessageEncoder(log, to_client=True, native=native).encode_assistant(message),
        done,
        encode_finish(completion.finish, log, completion, native=native),
        prompt,
        written,
        id=completion.id,
        logprobs=_encode_logprobs(completion, log, notes) if completion.logprobs else None,
    )
    if notes is None:
        return Encoded(encode_json(_with_durations(wire)))
    zeros: Extra = (completion.usage.metadata or {}).get(FAMILY, {}) if completion.usage is not None else {}
    return Encoded(splice(wire, {**notes, **zeros}))


def _encode_logprobs(completion: Completion, log: LossLog, notes: Extra | None) -> Raw | None:
    if notes is not None and (LOGPROBS in notes or "logprobs" in notes):
        return None
    tokens = tokens_of(completion)
    report_ids(completion, log)
    return Raw(encode_json(write_tokens(tokens))) if tokens else None


_LEAST_DURATION = Raw(b"1")


def _with_durations(wire: ChatResponse) -> ChatResponse:
    """Return the answer with durations of one nanosecond: clients divide by them, and nothing was measured here."""
    return structs.replace(wire, **dict.fromkeys(DURATIONS, _LEAST_DURATION))


def _without_calls(message: Message, log: LossLog) -> Message:
    """Drop the calls: this API cannot say that an answer was blocked, and its clients run every call they get."""
    for call in message.tool_calls:
        log.drop(call, "", CALL_WITHHELD, CANNOT_SAY)
    if not message.tool_calls:
        return message
    return log.replace(message, parts=tuple(part for part in message.parts if not isinstance(part, ToolCall)))
