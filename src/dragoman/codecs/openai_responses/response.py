"""Responses responses, both ways."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType, structs

from dragoman.codecs.arguments import cut_short
from dragoman.codecs.common_losses import drop_stop_sequence, fill_in_identity
from dragoman.codecs.encoded import Encoded
from dragoman.codecs.failures import failure_of
from dragoman.codecs.ids import invent_id
from dragoman.codecs.logprobs import read_tokens, report_ids, split_tokens, tokens_of, with_logprobs_noted, write_tokens
from dragoman.codecs.openai_responses.echo import DEFAULTS, answer_head, answer_json, echo_json
from dragoman.codecs.openai_responses.errors import encode_failure
from dragoman.codecs.openai_responses.hosted_tools import HOSTED
from dragoman.codecs.openai_responses.items import COMPLETED, INCOMPLETE, STATUS
from dragoman.codecs.openai_responses.messages import MessageEncoder, decode_answer
from dragoman.codecs.openai_responses.parts import LOGPROBS, NOTHING, NULL
from dragoman.codecs.openai_responses.profile import ENDED_EARLY, FAMILY
from dragoman.codecs.openai_responses.server_items import asks_client
from dragoman.codecs.openai_responses.wire import (
    Answer,
    InputDetails,
    Item,
    OutputDetails,
    OutputText,
    ResponsesAnswer,
    ResponsesResponse,
    UsageWire,
)
from dragoman.codecs.reading import WireReader, WireValue, splice
from dragoman.codecs.settings import collect_keys
from dragoman.codecs.shared_settings import ANSWERED_BY_OPENAI, OPENAI_TIERS_READ, take_tier, tier_word
from dragoman.ir import (
    AnyPart,
    Completion,
    Finish,
    FinishReason,
    Logprobs,
    Message,
    Metadata,
    Opaque,
    Refusal,
    Text,
    TokenLogprob,
    ToolCall,
    Usage,
    withholds_calls,
)
from dragoman.ir.notes import MODELLED, Extra, family_notes
from dragoman.ir.values import Value, encode_json, parse_json
from dragoman.losses import LossLog

SOURCE = "openai-responses response"
_reader: WireReader[Answer] = WireReader(ResponsesResponse, SOURCE, wider=ResponsesAnswer)
_counts = WireReader(UsageWire, "openai-responses usage", path="$.usage", loose_numbers=True)
_entries = msgspec.json.Decoder(dict[str, Raw]).decode

INVENTED_ID = f"resp_{invent_id('answer', 0)}"

# ── finish reasons: total both ways ───────────────────────────────────────────────────────────────────────────

# An answer that is not ready yet is not a success either.
_FAILED = frozenset({"failed", "cancelled", "in_progress", "queued"})
_ENDED = frozenset({"completed", "complete", None})
_OF_CALLS = frozenset({"tool_calls", "length"})
_CUT = frozenset({bytes(INCOMPLETE)})
_NOT_COMPLETE = frozenset({bytes(INCOMPLETE), b'"in_progress"'})


def decode_finish(
    status: str | None, details: Raw | UnsetType, parts: tuple[AnyPart, ...], error: Raw | UnsetType = UNSET
) -> Finish:
    """Decode the finish, derived from status, incomplete details and parts: this API has no finish reason.

    A call that was cut makes it `length`, whatever the status: other formats cannot mark a single call.
    """
    if status == "incomplete":
        reason, further = _early_end(details)
        if reason is not None:
            return Finish(ENDED_EARLY.get(reason, "unknown"), reason, metadata=further)
    if status not in _ENDED:
        if status not in _FAILED:
            return Finish("unknown", status)
        return Finish("error", status, explanation=None if error is UNSET else _explanation(error))
    word: FinishReason = "stop"
    for part in parts:
        kind = type(part)
        if kind is ToolCall:
            word = "length" if part.incomplete or word == "length" else "tool_calls"  # type: ignore[union-attr]
        elif word in _OF_CALLS:
            continue
        elif kind is Refusal:
            word = "refusal"
        elif kind is Opaque and asks_client(part):
            word = "pause"  # the client must act on an item that is not a tool call in other APIs
    return Finish(word, status)


def _explanation(error: Raw) -> str | None:
    parsed = parse_json(error)
    if not isinstance(parsed, dict) or not isinstance(parsed.get("message"), str):
        return None
    code = parsed.get("code")
    return parsed["message"] if code is None or code == "server_error" else f"{parsed['message']} ({code})"


def _early_end(raw: Raw | UnsetType) -> tuple[str | None, Metadata | None]:
    """Return why an answer is incomplete, and notes on the other details."""
    if raw is UNSET or bytes(raw)[:1] != b"{":
        return None, None
    entries = _entries(raw)
    reason = parse_json(entries.pop("reason", NULL))
    return reason if isinstance(reason, str) else None, {FAMILY: entries} if entries else None


def encode_finish(
    finish: Finish | None, source: str | None, log: LossLog, completion: Completion
) -> tuple[str, str | None]:
    """Return the status, and the reason of an early end."""
    if finish is None:
        status = "completed" if completion.messages or source == FAMILY else "failed"
        if source != FAMILY:
            log.invent(completion, "finish", f"status {status}", "answers of this API have a finish reason")
        return status, None
    if finish.stop_sequence is not None:
        drop_stop_sequence(completion, log)
    reason = finish.reason
    message = completion.messages[0] if completion.messages else Message("assistant", ())
    is_withheld = withholds_calls(finish) and bool(message.tool_calls)
    if finish.explanation is not None and (reason != "error" or is_withheld):
        log.drop(completion, "finish.explanation", "explanation of the failure", "an answer without error has none")
    if reason == "length":
        return "incomplete", "max_output_tokens"
    if reason == "content_filter":
        return "incomplete", "content_filter"
    if is_withheld:
        what = f"finish reason {finish.raw or reason!r}"
        log.degrade(completion, "finish", what, "this API's value for an answer whose calls must not be run")
        return "incomplete", "content_filter"
    if reason == "refusal" and message.refusal is None:
        # Classifiers elsewhere cut an answer off midway; this API shows a refusal only by its `refusal` text.
        log.degrade(completion, "finish", "finish reason 'refusal'", "this API calls it a filtered answer")
        return "incomplete", "content_filter"
    if reason in _NO_SUCCESS:
        return _encode_no_success(finish, log, completion)
    if reason == "pause" and not message.tool_calls:
        what = f"finish reason {finish.raw or reason!r}"
        log.degrade(completion, "finish", what, "sent as an incomplete answer, which is not continued here")
        return "incomplete", "max_output_tokens"
    if reason == "pause" or (reason == "tool_calls" and not message.tool_calls):
        log.degrade(completion, "finish", f"finish reason {finish.raw or reason!r}", "this API can only say completed")
    return "completed", None


_NO_SUCCESS = frozenset({"error", "unknown"})


def _encode_no_success(finish: Finish, log: LossLog, completion: Completion) -> tuple[str, str | None]:
    if finish.reason == "error":
        return "cancelled" if finish.raw == "cancelled" else "failed", None
    what = f"finish reason {finish.raw or finish.reason!r}"
    log.degrade(completion, "finish", what, "sent as an answer that is not complete: it may have been cut")
    return "incomplete", "max_output_tokens"


# ── usage ─────────────────────────────────────────────────────────────────────────────────────────────────────


def decode_usage(raw: Raw) -> Usage:
    """Decode the counts, with the wire's own object noted."""
    return _usage_of(_counts.read(raw), {FAMILY: {"~usage": raw}})


def _usage_of(wire: UsageWire, metadata: Metadata | None = None) -> Usage:
    """Return the counts: input includes cached tokens, output includes reasoning."""
    cached = cache_written = image = reasoning = None
    if wire.input_tokens_details:
        cached = wire.input_tokens_details.cached_tokens
        cache_written = wire.input_tokens_details.cache_write_tokens
        image = wire.input_tokens_details.image_tokens
    if wire.output_tokens_details:
        reasoning = wire.output_tokens_details.reasoning_tokens
    total = wire.total_tokens
    return Usage(
        wire.input_tokens or 0,
        wire.output_tokens or 0,
        None if cached is UNSET else cached,
        None if cache_written is UNSET else cache_written,
        None if reasoning is UNSET else reasoning,
        None if image is UNSET else image,
        None if total is UNSET else total,
        metadata,
    )


def encode_usage(usage: Usage) -> WireValue:
    notes = family_notes(FAMILY, usage.metadata)
    if "~usage" in notes:
        return notes["~usage"]
    return _usage_wire(
        usage.input,
        min(usage.cached or 0, usage.input),
        usage.cache_written or 0,
        usage.output,
        min(usage.reasoning or 0, usage.output),
        usage.input + usage.output,
    )


def _usage_wire(read: Any, cached: Any, cache_written: Any, written: Any, reasoning: Any, total: Any) -> UsageWire:
    """Return the usage with all details: strict clients expect them, and both counts of the input details."""
    return UsageWire(read, InputDetails(cached, cache_written), written, OutputDetails(reasoning), total)


def report_usage(usage: Usage, node: Value, log: LossLog) -> None:
    """Report counts that this API has no field for, or that do not add up as its clients expect."""
    if "~usage" in family_notes(FAMILY, usage.metadata):
        return
    if usage.image:
        log.note(node, "usage.image", f"{usage.image} image tokens", "this API does not count them apart")
    if usage.total not in {None, usage.input + usage.output}:
        log.degrade(node, "usage.total", f"total of {usage.total} tokens", "this API's total is the sum of both counts")


# ── responses ─────────────────────────────────────────────────────────────────────────────────────────────────

_ECHO = (
    *("object", "created_at", "incomplete_details", "completed_at", "background", "frequency_penalty"),
    *("instructions", "max_output_tokens", "max_tool_calls", "metadata", "parallel_tool_calls", "presence_penalty"),
    *("previous_response_id", "prompt_cache_key", "prompt_cache_retention", "reasoning", "safety_identifier"),
    *("store", "temperature", "text", "tool_choice", "tools", "top_logprobs", "top_p", "truncation", "user"),
)
"""Fields that repeat the request, filled with defaults, and fields that the intermediate format models."""
_REPORTED = ("billing", "error", "moderation", "service_tier", "tool_usage")
_RARE = tuple(name for name in ResponsesAnswer.__struct_fields__ if name not in ResponsesResponse.__struct_fields__)
NO_OUTPUT = MODELLED + "output"
"""Note of an output that is written and empty."""
_KEPT = {name: MODELLED + name for name in _ECHO} | {name: name for name in _REPORTED}

_keys = collect_keys(ResponsesResponse, _KEPT)
_all_keys = collect_keys(
    ResponsesAnswer, _KEPT | {name: name for name in _RARE} | {"output_text": MODELLED + "output_text"}
)


def decode_response(body: bytes) -> Completion:
    wire: Any = _reader.read(body)
    extra = metadata_of(wire)
    parts = decode_answer(wire.output or (), wire.id or "")
    parts = _cut(parts, _CUT if wire.status in _ENDED else _NOT_COMPLETE)
    finish = decode_finish(wire.status, wire.incomplete_details, parts, wire.error)
    if finish.explanation is not None:
        extra[MODELLED + "error"] = extra.pop("error")
    parts = cut_short(parts, finish.reason) if finish.reason == "length" else parts
    created = None if wire.created_at is UNSET else parse_json(wire.created_at)
    usage = wire.usage
    if usage is not UNSET and usage == NULL:
        extra[MODELLED + "usage"], usage = NULL, UNSET
    parts, tokens = _take_logprobs(parts)
    return Completion(
        (Message("assistant", parts),),
        finish,
        None if usage is UNSET else _decode_all_usage(usage, wire.tool_usage, extra),
        wire.id,
        wire.model,
        int(created) if isinstance(created, int | float) else None,
        metadata={FAMILY: extra},
        logprobs=(Logprobs(tuple(tokens)),) if tokens else (),
    )


def _decode_all_usage(raw: Raw, tool_usage: Raw | UnsetType, notes: Extra) -> Usage:
    """Return the usage of an answer with what stands outside it: searches in `tool_usage`, the tier in `notes`."""
    return take_tier(HOSTED.count_searches(decode_usage(raw), tool_usage), notes, "service_tier", OPENAI_TIERS_READ)


def _take_logprobs(parts: tuple[AnyPart, ...]) -> tuple[tuple[AnyPart, ...], list[TokenLogprob]]:
    """Return the parts, with log probabilities noted as written, and all log probabilities in order."""
    found: list[TokenLogprob] = []
    kept: list[AnyPart] = []
    for part in parts:
        tokens: tuple[TokenLogprob, ...] = ()
        if type(part) is Text and part.metadata is not None:
            tokens = read_tokens(family_notes(FAMILY, part.metadata).get("logprobs"))
        found += tokens
        kept.append(structs.replace(part, metadata=with_logprobs_noted(part.metadata, FAMILY)) if tokens else part)  # type: ignore[union-attr]
    return (tuple(kept), found) if found else (parts, found)


def _place_logprobs(items: list[WireValue], completion: Completion, log: LossLog) -> list[WireValue]:
    report_ids(completion, log)
    texts = [
        (place, number, content)
        for place, item in enumerate(items)
        if isinstance(item, Item) and isinstance(item.content, list)
        for number, content in enumerate(item.content)
        if isinstance(content, OutputText)
    ]
    tokens = tokens_of(completion)
    if not texts or not tokens:
        log.drop(completion, "logprobs", "log probabilities", "in this API they belong to a text")
        return items
    contents = {place: list(items[place].content) for place, _, _ in texts}
    shares = split_tokens(tokens, [content.text for _, _, content in texts])
    for (place, number, content), share in zip(texts, shares, strict=True):
        contents[place][number] = structs.replace(content, logprobs=Raw(encode_json(write_tokens(share))))
    for place, value in contents.items():
        items[place] = structs.replace(items[place], content=value)
    return items


def metadata_of(wire: ResponsesResponse | ResponsesAnswer) -> Extra:
    """Return the answer's keys other than its output."""
    extra: Extra = (_keys(wire) if type(wire) is ResponsesResponse else _all_keys(wire)) or {}
    status = wire.status
    if status is not None:
        extra[STATUS] = COMPLETED if status == "completed" else Raw(encode_json(status))
    if not wire.output and wire.output is not UNSET:
        extra[NO_OUTPUT] = NULL if wire.output is None else NOTHING
    return extra


def _cut(parts: tuple[AnyPart, ...], cut: frozenset[bytes]) -> tuple[AnyPart, ...]:
    """Mark calls that must not be run: those whose status is in `cut`.

    In a completed answer, a call that a program made stays "in_progress": it waits for its result.
    """
    for part in parts:
        if type(part) is ToolCall and family_notes(FAMILY, part.metadata).get(STATUS, COMPLETED) != COMPLETED:
            return tuple([_mark_cut(part, cut) if type(part) is ToolCall else part for part in parts])
    return parts


def _mark_cut(call: ToolCall, cut: frozenset[bytes]) -> ToolCall:
    is_cut = bytes(family_notes(FAMILY, call.metadata).get(STATUS, NULL)) in cut
    return structs.replace(call, incomplete=True) if is_cut else call


def encode_response(completion: Completion, log: LossLog) -> Encoded:
    extra = family_notes(FAMILY, completion.metadata)
    if completion.metadata is not None and FAMILY in completion.metadata:
        return _encode_native(completion, extra, log)
    if not completion.id or completion.model is None:
        completion = fill_in_identity(completion, INVENTED_ID, log)
    status, reason = encode_finish(completion.finish, None, log, completion)
    for message in completion.messages[1:]:
        log.drop(message, "", "a further candidate", "this API gives one answer")
    seed = completion.id or ""
    items = MessageEncoder(log, to_client=True, seed=seed).encode(completion.messages[:1])
    if completion.logprobs:
        items = _place_logprobs(items, completion, log)
    usage = None if completion.usage is None else encode_usage(completion.usage)
    if completion.usage is not None:
        report_usage(completion.usage, completion, log)
    head = answer_head(completion, status, reason, items)
    if status == "failed":
        head["error"] = encode_failure(failure_of(completion.finish or Finish("error", "no answer")))
    echo = echo_json(DEFAULTS, tier_word(completion.usage, ANSWERED_BY_OPENAI))
    return Encoded(answer_json(head, echo, usage, HOSTED.write_counts(completion.usage)))


def _has_logprobs(completion: Completion) -> bool:
    """Whether a text has log probabilities as this API wrote them."""
    return any(
        type(part) is Text and bytes(family_notes(FAMILY, part.metadata).get(LOGPROBS, NOTHING)) not in {b"[]", b"null"}
        for message in completion.messages
        for part in message.parts
    )


def _encode_native(completion: Completion, extra: Extra, log: LossLog) -> Encoded:
    items: Any = UNSET
    if NO_OUTPUT not in extra and completion.messages:
        encoder = MessageEncoder(log, to_client=True, native=True, seed=completion.id or "")
        items = encoder.encode(completion.messages) or UNSET
        if completion.logprobs and items is not UNSET and not _has_logprobs(completion):
            items = _place_logprobs(items, completion, log)
    wire = ResponsesResponse(
        completion.id,
        model=completion.model,
        usage=UNSET if completion.usage is None else encode_usage(completion.usage),
        output=items,
    )
    return Encoded(splice(wire, extra))
