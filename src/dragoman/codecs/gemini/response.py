"""generateContent responses, both ways."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType, structs

from dragoman.codecs.common_losses import drop_stop_sequence
from dragoman.codecs.encoded import Encoded
from dragoman.codecs.failures import last_text_as_refusal, words_of_refusal
from dragoman.codecs.gemini import foreign_signatures
from dragoman.codecs.gemini.messages import MessageEncoder, decode_answer
from dragoman.codecs.gemini.profile import FAMILY, PROFILE, GeminiProfile
from dragoman.codecs.gemini.wire import (
    ALIASES,
    Candidate,
    CandidateBody,
    CandidateOut,
    Content,
    GenerateContentResponse,
    GenerateContentResponseBody,
    ModalityCount,
    Number,
    PlainUsage,
    UsageMetadata,
    candidate_keys,
    keep_whole,
    overlaid,
    response_keys,
    says,
    usage_keys,
)
from dragoman.codecs.google_usage import USAGE_METADATA, by_modality, usage_for_generate
from dragoman.codecs.google_vocabulary import fit_counts
from dragoman.codecs.ids import seed_of_bytes
from dragoman.codecs.logprobs import GOOGLE_KEYS, read_google, report_bytes, tokens_by_candidate, write_google
from dragoman.codecs.reading import WireReader, WireValue, as_json, keep, restore, spliced
from dragoman.codecs.shared_settings import ANSWERED_BY_GOOGLE, GOOGLE_TIERS_READ, tier_word
from dragoman.errors import DecodeError
from dragoman.ir import Completion, Finish, FinishReason, Logprobs, Message, Text, TokenLogprob, ToolCall, Usage
from dragoman.ir.notes import MODELLED, WITHIN, Extra, family_notes, inner_extra
from dragoman.ir.values import encode_json, parse_json
from dragoman.losses import LossLog

SOURCE = "gemini/vertex response"

_reader = WireReader(GenerateContentResponse, SOURCE, wider=GenerateContentResponseBody, aliases=ALIASES)

NULL = Raw(b"null")

# ── finish reasons: total both ways ───────────────────────────────────────────────────────────────────────────

_DECODE_FINISH: dict[str, FinishReason] = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "SAFETY": "content_filter",
    "RECITATION": "content_filter",
    "BLOCKLIST": "content_filter",
    "PROHIBITED_CONTENT": "content_filter",
    "SPII": "content_filter",
    "IMAGE_SAFETY": "content_filter",
    "IMAGE_PROHIBITED_CONTENT": "content_filter",
    "IMAGE_RECITATION": "content_filter",
    "MODEL_ARMOR": "content_filter",
    "ESCALATION": "content_filter",
    "PUP_LIMITED_DISABLED": "error",
    "LANGUAGE": "error",
    "OTHER": "error",
    "IMAGE_OTHER": "error",
    "NO_IMAGE": "error",
    "MALFORMED_RESPONSE": "error",
    "MALFORMED_FUNCTION_CALL": "error",
    "UNEXPECTED_TOOL_CALL": "error",
    "TOO_MANY_TOOL_CALLS": "error",
    "MISSING_THOUGHT_SIGNATURE": "error",
    # Neither stop nor length: the client resends the request with the token in this answer.
    "CONTINUATION": "pause",
    "FINISH_REASON_UNSPECIFIED": "unknown",
}
_ENCODE_FINISH: dict[FinishReason, str] = {
    "stop": "STOP",
    "length": "MAX_TOKENS",
    "tool_calls": "STOP",
    "content_filter": "SAFETY",
    "refusal": "SAFETY",
    # CONTINUATION would make clients resend with a token that does not exist.
    "pause": "MAX_TOKENS",
    "error": "OTHER",
    "unknown": "FINISH_REASON_UNSPECIFIED",
}
# The two backends number the later reasons differently.
_NUMBERED = ("FINISH_REASON_UNSPECIFIED", "STOP", "MAX_TOKENS", "SAFETY", "RECITATION", "OTHER")
_INEXACT = frozenset({"refusal", "pause"})


def decode_finish(spelled: str | int | UnsetType, message: Message | None) -> Finish | None:
    """Decode the finish; calls mean "tool_calls" even at STOP."""
    if spelled is UNSET:
        return None
    if isinstance(spelled, int):
        word = _NUMBERED[spelled] if 0 <= spelled < len(_NUMBERED) else str(spelled)
    else:
        word = spelled
    reason = _DECODE_FINISH.get(word) or _DECODE_FINISH.get(word.upper(), "unknown")
    if reason == "stop" and message is not None and message.tool_calls:
        reason = "tool_calls"
    if word == spelled and word in _DECODE_FINISH:
        return Finish(reason, word)
    return Finish(reason, word, metadata={FAMILY: {"~word": Raw(encode_json(spelled))}})


def with_explanation(finish: Finish, raw: Raw | UnsetType) -> Finish:
    """Return the finish reason of a failed answer with the provider's explanation."""
    parsed = None if raw is UNSET else parse_json(raw)
    return structs.replace(finish, explanation=parsed) if isinstance(parsed, str) and parsed else finish


def _is_understood(wire: Candidate, message: Message) -> bool:
    """Whether the finish message is the explanation of a failure, or the refusal that the answer ends with."""
    finish = decode_finish(wire.finish_reason, None)
    if finish is None:
        return False
    if finish.reason == "error":
        return with_explanation(finish, wire.finish_message).explanation is not None
    words = parse_json(wire.finish_message)  # type: ignore[arg-type]
    return finish.raw == "SAFETY" and last_text_as_refusal(message.parts, words) is not None


def mark_explained(keys: Extra) -> None:
    """Note that the finish says what the finish message says, so that only the finish reports it."""
    for key in ("finishMessage", "finish_message"):
        if key in keys:
            keys[MODELLED + key] = keys.pop(key)


def _read_refusal(finish: Finish, message: Message, raw: Raw) -> tuple[Finish, Message]:
    """Return finish and message with the text as a refusal, if the finish message repeats that text."""
    declined = last_text_as_refusal(message.parts, parse_json(raw))
    if declined is None:
        return finish, message
    spelled = {FAMILY: {"~word": Raw(encode_json(finish.raw))}}
    return Finish("refusal", finish.raw, metadata=spelled), structs.replace(message, parts=declined)


def refuses_calls(finish: Finish | None) -> bool:
    """Whether the calls of this answer must not be run: an unexpected call is kept, and never run."""
    return finish is not None and finish.raw == "UNEXPECTED_TOOL_CALL"


def _unrunnable(message: Message) -> Message:
    parts = [structs.replace(part, incomplete=True) if type(part) is ToolCall else part for part in message.parts]
    return structs.replace(message, parts=tuple(parts))


def encode_finish(finish: Finish | None, log: LossLog, completion: Completion) -> WireValue:
    if finish is None:
        return UNSET
    if finish.metadata is not None and "~word" in finish.metadata.get(FAMILY, {}):
        return finish.metadata[FAMILY]["~word"]
    if finish.stop_sequence is not None:
        drop_stop_sequence(completion, log)
    raw, reason = finish.raw, finish.reason
    known = _DECODE_FINISH.get(raw) if raw is not None else None
    if known is not None and (known == reason or (known == "stop" and reason == "tool_calls")):
        return raw
    word = _ENCODE_FINISH[reason]
    if reason == "pause" and any(message.tool_calls for message in completion.messages):
        word = "STOP"  # the client continues from the results
    if reason in _INEXACT or (reason == "unknown" and raw is not None):
        log.degrade(completion, "finish", f"finish reason {raw or reason!r}", f"this API can only say {word}")
    return word


# ── usage ─────────────────────────────────────────────────────────────────────────────────────────────────────

USAGE = USAGE_METADATA
"""Note: the usage object as written. Members that no count holds are noted under their own keys."""

_usage_reader = WireReader(UsageMetadata, "gemini/vertex usageMetadata", aliases=ALIASES, path="$.usageMetadata")
_decode_plain_usage = msgspec.json.Decoder(PlainUsage).decode


def decode_usage(raw: Raw) -> Usage:
    """Decode the counts: thoughts are not in the candidates' count, server tool results not in the prompt's."""
    try:
        plain = _decode_plain_usage(raw)
    except msgspec.ValidationError:
        return _decode_any_usage(raw)
    thoughts = plain.thoughts_token_count
    notes: Extra = {USAGE: raw}
    tier = None
    if plain.service_tier is not None:
        tier = GOOGLE_TIERS_READ.get(bytes(plain.service_tier))
        notes["serviceTier" if tier is None else MODELLED + "serviceTier"] = plain.service_tier
    if plain.traffic_type is not None:
        notes["trafficType"] = plain.traffic_type
    return Usage(
        plain.prompt_token_count + plain.tool_use_prompt_token_count,
        plain.candidates_token_count if thoughts is None else plain.candidates_token_count + thoughts,
        plain.cached_content_token_count,
        None,
        thoughts,
        None,
        plain.total_token_count,
        {FAMILY: notes},
        service_tier=tier,
    )


def _decode_any_usage(raw: Raw) -> Usage:
    wire = _usage_reader.read(bytes(raw))
    notes: Extra = {USAGE: raw, **(usage_keys(wire) or {})}
    thoughts = _number(wire.thoughts_token_count)
    tier = GOOGLE_TIERS_READ.get(bytes(notes["serviceTier"])) if "serviceTier" in notes else None
    if tier is not None:
        notes[MODELLED + "serviceTier"] = notes.pop("serviceTier")
    return Usage(
        (_number(wire.prompt_token_count) or 0) + (_number(wire.tool_use_prompt_token_count) or 0),
        (_number(wire.candidates_token_count) or 0) + (thoughts or 0),
        _number(wire.cached_content_token_count),
        None,
        thoughts,
        _decode_details(wire, notes),
        _number(wire.total_token_count),
        {FAMILY: notes},
        details=_sound_tokens(wire),
        service_tier=tier,
    )


_SOUND = frozenset({"AUDIO", 4})


def _sound_tokens(wire: UsageMetadata) -> dict[str, int] | None:
    found: dict[str, int] = {}
    for name, counts in (
        ("audio_input", wire.prompt_tokens_details),
        ("audio_output", wire.candidates_tokens_details),
    ):
        for detail in () if counts is UNSET else counts:
            if detail.modality in _SOUND and (count := _number(detail.token_count) or 0) > 0:
                found[name] = found.get(name, 0) + count
    return found or None


def _number(value: Number | UnsetType) -> int | None:
    if type(value) is int:
        return value
    if value is UNSET:
        return None
    try:
        return int(float(value))
    except (ValueError, OverflowError):
        raise DecodeError(path="$.usageMetadata", expected="token counts", got=repr(value), source=SOURCE) from None


_TEXT = frozenset({"TEXT", 1})
_IMAGE = frozenset({"IMAGE", 2})
"""The image modality, by name and by number."""


def _decode_details(wire: UsageMetadata, notes: Extra) -> int | None:
    """Return the image tokens of the prompt. Lists that say more than "all text" are kept in the notes, unchanged."""
    image = None
    for key, details in (
        ("promptTokensDetails", wire.prompt_tokens_details),
        ("candidatesTokensDetails", wire.candidates_tokens_details),
        ("cacheTokensDetails", wire.cache_tokens_details),
        ("toolUsePromptTokensDetails", wire.tool_use_prompt_tokens_details),
    ):
        if details is UNSET:
            continue
        tells_more = False
        for detail in details:
            if detail.modality in _IMAGE and key == "promptTokensDetails":
                image = (image or 0) + (_number(detail.token_count) or 0)
            elif detail.modality not in _TEXT:
                tells_more = True
            tells_more = tells_more or detail.extra is not UNSET
        if tells_more:
            notes[key] = Raw(encode_json([restore(detail) for detail in details]))
    return image


def encode_usage(usage: Usage, log: LossLog, completion: Completion) -> WireValue:
    notes = family_notes(FAMILY, usage.metadata)
    raw = notes.get(USAGE)
    if raw is not None and decode_usage(raw) == usage:
        return raw
    if (translated := usage_for_generate(usage)) is not None:
        tier = _tier_of(usage)
        return as_json(translated if tier is UNSET else {**translated, "serviceTier": tier})
    thoughts, cached, total = fit_counts(usage, log, completion)
    read, written = by_modality(usage)
    return UsageMetadata(
        usage.input,
        usage.output - thoughts,
        total,
        UNSET if cached is None else cached,
        UNSET if usage.reasoning is None else thoughts,
        prompt_tokens_details=[ModalityCount(*count) for count in read] if read else UNSET,
        candidates_tokens_details=[ModalityCount(*count) for count in written] if written else UNSET,
        service_tier=_tier_of(usage),
        traffic_type=notes.get("trafficType", UNSET),
    )


def _tier_of(usage: Usage) -> Raw | UnsetType:
    """Return the tier in this API's word, or the word it was read from."""
    word = tier_word(usage, ANSWERED_BY_GOOGLE)
    if word is not None:
        return Raw(encode_json(word))
    return family_notes(FAMILY, usage.metadata).get("serviceTier", UNSET)


# ── responses ─────────────────────────────────────────────────────────────────────────────────────────────────


def decode_response(body: bytes) -> Completion:
    wire = _reader.read(body)
    notes: Extra = response_keys(wire) or {}
    candidates = wire.candidates
    messages: list[Message] = []
    finishes: list[Finish | None] = []
    logprobs: list[Logprobs] = []
    if candidates is UNSET or not candidates:
        if candidates is wire.prompt_feedback is wire.usage_metadata is wire.model_version is UNSET:
            raise DecodeError(path="$", expected="candidates or promptFeedback", got="neither", source=SOURCE)
        finishes.append(_decode_silence(wire, notes))
    else:
        seed = seed_of_bytes(body) if wire.response_id is UNSET else wire.response_id
        for index, candidate in enumerate(candidates):
            message = _decode_candidate(candidate, f"{seed} {index}" if index else seed, index)
            finish = decode_finish(candidate.finish_reason, message)
            if finish is not None and finish.reason == "error":
                finish = with_explanation(finish, candidate.finish_message)
            elif finish is not None and finish.raw == "SAFETY" and candidate.finish_message is not UNSET:
                finish, message = _read_refusal(finish, message, candidate.finish_message)
            messages.append(_unrunnable(message) if refuses_calls(finish) else message)
            finishes.append(finish)
            if type(candidate) is CandidateBody and (tokens := _tokens_in(candidate)):
                logprobs.append(Logprobs(tokens, index))
        if wire.prompt_feedback is not UNSET:
            keep_whole(notes, "promptFeedback", wire.prompt_feedback)
    usage = None
    if wire.usage_metadata is not UNSET:
        if wire.usage_metadata == NULL:
            keep_whole(notes, "usageMetadata", NULL)
        else:
            usage = decode_usage(wire.usage_metadata)
    return Completion(
        tuple(messages),
        finishes[0],
        usage,
        None if wire.response_id is UNSET else wire.response_id,
        None if wire.model_version is UNSET else wire.model_version,
        None if wire.create_time is UNSET else decode_time(wire.create_time, notes),
        tuple(finishes) if len(finishes) > 1 else (),
        {FAMILY: notes} if notes else None,
        tuple(logprobs),
    )


def _tokens_in(candidate: CandidateBody) -> tuple[TokenLogprob, ...]:
    return () if candidate.logprobs_result is UNSET else read_google(candidate.logprobs_result)


def _decode_silence(wire: GenerateContentResponse, notes: Extra) -> Finish | None:
    """Decode an answer without candidates: the prompt was blocked."""
    if wire.candidates is not UNSET:
        notes["~candidates"] = Raw(b"[]")
    elif wire.prompt_feedback is UNSET:
        notes["~candidates"] = NULL
    if wire.prompt_feedback is UNSET:
        return None
    feedback = parse_json(wire.prompt_feedback)
    reason = feedback.get("blockReason", feedback.get("block_reason")) if isinstance(feedback, dict) else None
    says_all = isinstance(feedback, dict) and feedback.keys() <= {"blockReason", "block_reason"}
    keep_whole(notes, "promptFeedback", wire.prompt_feedback, MODELLED if says_all else "")
    return None if reason is None else Finish("content_filter", str(reason))


def decode_time(raw: Raw, notes: Extra) -> int | None:
    keep_whole(notes, "createTime", raw, MODELLED)
    try:
        return int(msgspec.json.decode(raw, type=dt.datetime).timestamp())
    except (msgspec.DecodeError, OverflowError):
        return None


def _decode_candidate(wire: Candidate, seed: str, index: int) -> Message:
    message = decode_answer(wire.content, seed, f"$.candidates[{index}].content")
    extra: Extra = candidate_keys(wire) or {}
    parts = message.content_held
    if wire.grounding_metadata is not UNSET:
        cited, beside = foreign_signatures.read_grounding(wire.grounding_metadata, message.parts)
        prefix = "" if beside is None else MODELLED
        spelled = keep_whole(extra, foreign_signatures.GROUNDING, wire.grounding_metadata, prefix)
        if beside:
            extra[WITHIN + spelled] = Raw(encode_json(beside))
        parts = tuple(cited) if tuple(cited) != message.parts else parts
    if type(wire) is CandidateBody and _tokens_in(wire):
        for key in extra.keys() & GOOGLE_KEYS:
            extra[MODELLED + key] = extra.pop(key)
    if index == 0 and wire.finish_message is not UNSET and _is_understood(wire, message):
        mark_explained(extra)
    notes: Extra = {}
    if wire.finish_reason is UNSET:
        notes["~finish"] = NULL
    if wire.index != index:
        notes["~index"] = NULL if wire.index is UNSET else Raw(encode_json(wire.index))
    if extra:
        notes |= keep(FAMILY, UNSET, candidate=extra)[FAMILY]  # type: ignore[index]
    if not notes and parts is message.content_held:
        return message
    own = (message.metadata or {}).get(FAMILY, {})
    return Message("assistant", parts, None, {FAMILY: {**own, **notes}} if own or notes else None)


def encode_response(completion: Completion, log: LossLog, profile: GeminiProfile = PROFILE) -> Encoded:
    notes = None if completion.metadata is None else completion.metadata.get(FAMILY)
    encoder = MessageEncoder(log, profile, carries=True, native=notes is not None)
    finishes = completion.finishes
    candidates: Any = []
    blocked = completion.finish is not None and completion.finish.reason == "content_filter"
    messages = completion.messages
    if not messages and notes is None and not blocked:
        messages = (Message("assistant", ()),)  # clients read an answer without candidates as a blocked prompt
    likely = tokens_by_candidate(completion) if completion.logprobs else {}
    for index, message in enumerate(messages):
        finish = finishes[index] if finishes else completion.finish
        if finish is None and not completion.messages:
            log.invent(completion, "finish", "finish reason OTHER", "there is no answer")
            finish = Finish("error", "OTHER")
        candidate = _encode_candidate(encoder, message, encode_finish(finish, log, completion), index, log)
        declined = None if finish is None or finish.reason != "refusal" else words_of_refusal(message)
        if declined is not None or (finish is not None and finish.explanation is not None):
            candidate = add_explanation(candidate, declined or finish.explanation or "")  # type: ignore[union-attr]
        if completion.logprobs:
            candidate = _with_logprobs(candidate, likely.get(index, ()))
        candidates.append(candidate)
    if completion.logprobs:
        report_bytes(completion, log)
    feedback: Any = UNSET
    if not candidates and notes is not None:
        candidates = notes.get("~candidates", UNSET)
        candidates = UNSET if candidates == NULL else candidates
    elif not candidates:
        candidates, feedback = UNSET, Raw(b'{"blockReason":"OTHER"}')
    wire = GenerateContentResponse(
        candidates,
        feedback,
        UNSET if completion.usage is None else encode_usage(completion.usage, log, completion),
        UNSET if completion.model is None else completion.model,
        encode_time(completion.created, notes),
        UNSET if completion.id is None else completion.id,
    )
    return Encoded(bytes(overlaid(wire, notes)) if notes else encode_json(wire))


def encode_time(created: int | None, notes: Extra | None) -> WireValue:
    if created is None or (notes is not None and says(notes, "createTime")):
        return UNSET
    try:
        return dt.datetime.fromtimestamp(created, dt.UTC)
    except (OverflowError, ValueError, OSError):
        return UNSET  # not a valid date: a number of seconds beyond the year 9999


def add_explanation(candidate: WireValue, explanation: str) -> WireValue:
    """Return the candidate with the explanation of its finish reason, unless it has one."""
    raw = bytes(candidate) if isinstance(candidate, Raw) else encode_json(candidate)
    keys = {"finishMessage": Raw(encode_json(explanation))}
    return Raw(raw) if b'"finishMessage"' in raw else spliced(Raw(raw), keys)


def _with_logprobs(candidate: WireValue, tokens: tuple[TokenLogprob, ...]) -> WireValue:
    """Return the candidate with its log probabilities, unless it has them."""
    raw = bytes(candidate) if isinstance(candidate, Raw) else encode_json(candidate)
    if not tokens or any(b'"%b":' % key.encode() in raw for key in GOOGLE_KEYS):
        return Raw(raw)
    return spliced(Raw(raw), {"logprobsResult": write_google(tokens)})


def _encode_candidate(
    encoder: MessageEncoder, message: Message, word: WireValue, index: int, log: LossLog
) -> WireValue:
    notes = None if message.metadata is None else message.metadata.get(FAMILY)
    if word is UNSET and (notes is None or "~finish" not in notes):
        word = "STOP"
        log.invent(message, "", "finish reason STOP", "clients of this API expect one")
    content: WireValue = encoder.encode_turn(message)
    if not notes:
        grounding = _encode_citations(message, encoder.places, log)
        return CandidateOut(Content("model") if content is None else content, word, index, grounding)
    if content is None:
        content = UNSET if "~content" in notes else Content("model")
    place: WireValue = index
    if "~index" in notes:
        place = UNSET if notes["~index"] == NULL else notes["~index"]
    extra = inner_extra(notes, "candidate") or {}
    grounding = UNSET if says(extra, foreign_signatures.GROUNDING) else _encode_citations(message, encoder.places, log)
    wire = Candidate(content, word, place, grounding_metadata=grounding)
    return overlaid(wire, extra) if extra else wire


def _encode_citations(message: Message, places: Sequence[int], log: LossLog) -> WireValue:
    content = message.content_held
    if type(content) is str:
        return UNSET
    for part in content:
        if type(part) is Text and part.citations:
            break
    else:
        return UNSET
    grounding = foreign_signatures.write_grounding(message.parts, places, log)
    return UNSET if grounding is None else grounding
