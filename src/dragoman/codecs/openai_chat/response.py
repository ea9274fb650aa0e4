"""Chat Completions responses, both ways."""

from __future__ import annotations

from msgspec import UNSET, Raw, UnsetType, structs

from dragoman.codecs.arguments import cut_short
from dragoman.codecs.common_losses import drop_stop_sequence, fill_in_identity
from dragoman.codecs.encoded import Encoded
from dragoman.codecs.failures import failed_answer
from dragoman.codecs.ids import invent_id
from dragoman.codecs.listed_pages import cite_sources, has_sources
from dragoman.codecs.logprobs import read_choice, read_reasoning, report_ids, tokens_by_candidate, write_choice
from dragoman.codecs.openai_chat.errors import encode_error
from dragoman.codecs.openai_chat.messages import FAMILY, NULL, MessageEncoder, decode_assistant
from dragoman.codecs.openai_chat.profile import PROFILE, ChatProfile
from dragoman.codecs.openai_chat.wire import (
    ANSWER_PASSED_ON,
    ChatAnswer,
    ChatResponse,
    ChoiceWire,
    CompletionDetails,
    HostedCounts,
    PromptDetails,
    UsageWire,
)
from dragoman.codecs.reading import WireReader, WireValue, keep, splice, spliced
from dragoman.codecs.settings import collect_keys
from dragoman.codecs.shared_settings import ANSWERED_BY_OPENAI, OPENAI_TIERS_READ, named_tier
from dragoman.codecs.timestamps import whole_seconds
from dragoman.errors import DecodeError
from dragoman.ir import (
    Completion,
    Finish,
    FinishReason,
    Logprobs,
    Message,
    Metadata,
    Refusal,
    Text,
    TokenLogprob,
    ToolCall,
    Usage,
    withholds_calls,
)
from dragoman.ir.notes import MODELLED, Extra, inner_extra
from dragoman.ir.values import encode_json, parse_json, to_raw
from dragoman.losses import LossLog

_reader = WireReader(ChatAnswer, "openai-chat response")
_keys = collect_keys(ChatAnswer, ANSWER_PASSED_ON)
_choice_keys = collect_keys(ChoiceWire, ("content_filter_results", "native_finish_reason", "stop_reason", "seed"))
_counts = WireReader(UsageWire, "openai-chat usage", path="$.usage", loose_numbers=True)

ABSENT = Raw(b'"absent"')
OBJECT_KEY = MODELLED + "object"
OBJECT = Raw(b'"chat.completion"')
INVENTED_ID = f"chatcmpl-{invent_id('answer', 0)}"

# ── finish reasons: total both ways ───────────────────────────────────────────────────────────────────────────

_DECODE_FINISH: dict[str, FinishReason] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "content_filter",
    # Words of Azure DeepSeek, Together, Mistral and HuggingFace.
    "tool_call": "tool_calls",
    "eos": "stop",
    "end_turn": "stop",
    "model_length": "length",
    "error": "error",
    "eos_token": "stop",
    "stop_sequence": "stop",
    # Proxies that pass on Anthropic's words.
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    # GLM and DeepSeek: blocked, or broken off by a fault of the server.
    "sensitive": "content_filter",
    "network_error": "error",
    "insufficient_system_resource": "error",
    # Snowflake and others: the key is always present, even when empty.
    "": "stop",
}
_ENCODE_FINISH: dict[FinishReason, str] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "content_filter": "content_filter",
    "refusal": "stop",
    "pause": "length",
    "error": "length",
    "unknown": "length",
}


_CERTAIN = {word: Finish(reason, word) for word, reason in _DECODE_FINISH.items() if reason not in {"stop", "unknown"}}


def decode_finish(raw: str | None | UnsetType, message: Message | None) -> Finish | None:
    """Return the finish; calls mean "tool_calls" even at "stop", with which forced choices end on several servers.

    With an unknown word, calls do not prove that the answer is complete: the reason stays unknown (law 7).
    """
    if raw is UNSET or raw is None:
        return None
    certain = _CERTAIN.get(raw)
    if certain is not None:
        return certain
    reason = _DECODE_FINISH.get(raw, "unknown")
    content = () if message is None else message.content_held
    if type(content) is tuple:
        for part in content:
            if type(part) is ToolCall and raw in _DECODE_FINISH:
                return Finish("tool_calls", raw)
            if type(part) is Refusal:
                reason = "refusal"
    return Finish(reason, raw)


MATCHED = ("stop_reason", "matched_stop")
"""Keys of a choice in which vLLM and SGLang name the stop sequence that matched."""


def add_explanation(finish: Finish | None, keys: Extra) -> Finish | None:
    """Return the finish with what the keys beside it say: why it failed, or which stop sequence matched."""
    if finish is None or finish.reason == "stop":
        return finish and _with_matched_stop(finish, keys)
    parsed = parse_json(keys["error"]) if finish.reason == "error" and "error" in keys else None
    message = parsed.get("message") if isinstance(parsed, dict) else None  # OpenRouter
    return structs.replace(finish, explanation=message) if isinstance(message, str) and message else finish


def _with_matched_stop(finish: Finish, keys: Extra) -> Finish:
    """Return the finish with the stop sequence that these keys name; its key becomes a note.

    A number is a token of the model instead, and some servers repeat the finish reason there.
    """
    for key in MATCHED:
        text = parse_json(keys[key]) if key in keys else None
        if isinstance(text, str) and text not in _DECODE_FINISH:
            keys[MODELLED + key] = keys.pop(key)
            return structs.replace(finish, stop_sequence=text)
    return finish


def encode_finish(finish: Finish | None, source: str | None, log: LossLog, completion: Completion) -> str | None:
    if finish is None:
        return None
    if source == FAMILY and finish.raw is not None:
        return finish.raw
    if finish.explanation is not None:
        log.drop(completion, "finish.explanation", "explanation of the failure", "this API has no field for it")
    if finish.stop_sequence is not None:
        drop_stop_sequence(completion, log)
    if withholds_calls(finish) and finish.reason != "content_filter" and _has_calls(completion):
        what = f"finish reason {finish.raw or finish.reason!r}"
        log.degrade(completion, "finish", what, "this API's value for an answer whose calls must not be run")
        return _ENCODE_FINISH["content_filter"]
    if finish.reason == "refusal" and not any(message.refusal is not None for message in completion.messages):
        # Anthropic's classifiers cut an answer off midway; this API shows a refusal only by its `refusal` text.
        log.degrade(completion, "finish", "finish reason 'refusal'", "this API calls it a filtered answer")
        return _ENCODE_FINISH["content_filter"]
    word = _ENCODE_FINISH[finish.reason]
    if finish.reason == "pause" and _has_calls(completion):
        word = "tool_calls"  # the client can continue by sending results
    if finish.reason in {"pause", "error", "unknown"}:
        # "length": the answer was or may have been cut, for whatever reason. "stop" would call it a success.
        what = f"finish reason {finish.raw or finish.reason!r}"
        log.degrade(completion, "finish", what, f"the nearest value of this API is {word}")
    return word


def _has_calls(completion: Completion) -> bool:
    return any(message.tool_calls for message in completion.messages)


# ── usage ─────────────────────────────────────────────────────────────────────────────────────────────────────


def decode_usage(raw: Raw, tier: str | None = None) -> Usage:
    """Decode the counts, with the wire's own object noted; on this wire, the tier is given outside the usage."""
    usage = usage_of(_counts.read(raw), {FAMILY: {"~usage": raw}})
    return usage if tier is None else structs.replace(usage, service_tier=tier)


def usage_of(wire: UsageWire, metadata: Metadata | None = None) -> Usage:
    """Return the counts. Prompt tokens include cached ones; the total shows if a vendor counts reasoning separately."""
    prompt_details = wire.prompt_tokens_details
    completion_details = wire.completion_tokens_details
    prompt = wire.prompt_tokens or 0
    written = wire.completion_tokens or 0
    total = wire.total_tokens
    cached = cache_written = image = reasoning = None
    if prompt_details:
        cached = prompt_details.cached_tokens
        cache_written = prompt_details.cache_write_tokens
        image = prompt_details.image_tokens
    if completion_details:
        reasoning = completion_details.reasoning_tokens
        if reasoning and prompt + written + reasoning == total:
            written += reasoning
    return Usage(
        prompt,
        written,
        _count_of(wire, _CACHED, prompt) if cached is None or cached is UNSET else cached,
        _count_of(prompt_details or wire, _CACHE_WRITTEN, prompt)
        if cache_written is None or cache_written is UNSET
        else cache_written,
        None if reasoning is UNSET else reasoning,
        None if image is UNSET else image,
        None if total is UNSET else total,
        metadata,
        _searches_of(wire),
        _usage_details(prompt_details, completion_details),
    )


_CACHED = ("cached_tokens", "prompt_cache_hit_tokens", "cache_read_input_tokens")
"""Where Kimi and Together, DeepSeek, and LiteLLM count cached tokens, beside or instead of OpenAI's field."""
_CACHE_WRITTEN = ("cache_creation_tokens", "cache_creation_input_tokens")
"""Where LiteLLM and Qwen count tokens written to a cache."""


def _count_of(counts: PromptDetails | UsageWire, names: tuple[str, ...], most: int) -> int | None:
    """Return the first of these counts; None for one that can be no part of the input."""
    for name in names:
        count = getattr(counts, name, None)
        if type(count) is int:
            return count if count <= most else None
    return None


def _searches_of(wire: UsageWire) -> int | None:
    counts = wire.server_tool_use_details or wire.server_side_tool_usage_details
    if counts is UNSET or counts is None:
        return None
    return counts.web_search_requests if counts.web_search_calls is None else counts.web_search_calls


_HOUR = "ephemeral_1h_input_tokens"
_NO_DETAILS = CompletionDetails()


def _usage_details(
    prompt: PromptDetails | None | UnsetType, completion: CompletionDetails | None | UnsetType
) -> dict[str, int] | None:
    """Return the rarer counts that are above zero; None without any."""
    audio = prompt.audio_tokens if prompt else None
    written = prompt.cache_creation_token_details if prompt else None
    hour = written.get(_HOUR) if isinstance(written, dict) else None
    completion = completion or _NO_DETAILS
    if not (
        audio
        or hour
        or completion.audio_tokens
        or completion.accepted_prediction_tokens
        or completion.rejected_prediction_tokens
    ):
        return None
    counts = {
        "audio_input": audio,
        "cache_written_1h": hour,
        "audio_output": completion.audio_tokens,
        "accepted_prediction": completion.accepted_prediction_tokens,
        "rejected_prediction": completion.rejected_prediction_tokens,
    }
    return {name: count for name, count in counts.items() if type(count) is int and count > 0} or None


def encode_usage(usage: Usage) -> WireValue:
    notes = (usage.metadata or {}).get(FAMILY)
    if notes is not None and "~usage" in notes:
        return notes["~usage"]
    prompt = PromptDetails(
        0 if usage.cached is None else usage.cached,
        UNSET if usage.cache_written is None else usage.cache_written,
        UNSET if usage.image is None else usage.image,
    )
    details = CompletionDetails(0 if usage.reasoning is None else usage.reasoning)
    if usage.details is not None:
        count = usage.details.get
        prompt = structs.replace(prompt, audio_tokens=count("audio_input", UNSET))
        if "cache_written_1h" in usage.details:
            hour = usage.details["cache_written_1h"]
            lifetimes = {"ephemeral_5m_input_tokens": max((usage.cache_written or 0) - hour, 0), _HOUR: hour}
            prompt = structs.replace(prompt, cache_creation_token_details=lifetimes)
        details = CompletionDetails(
            details.reasoning_tokens,
            count("audio_output", UNSET),
            count("accepted_prediction", UNSET),
            count("rejected_prediction", UNSET),
        )
    return UsageWire(
        usage.input,
        usage.output,
        usage.input + usage.output if usage.total is None else usage.total,
        prompt,
        details,
        HostedCounts(usage.searches) if usage.searches else UNSET,  # OpenRouter's field; OpenAI has none
    )


# ── responses ─────────────────────────────────────────────────────────────────────────────────────────────────


def decode_response(body: bytes) -> Completion:
    wire = _reader.read(body)
    extra: Extra = _keys(wire) or {}
    if wire.object is not UNSET:
        extra[OBJECT_KEY] = wire.object
    tier = None
    if wire.service_tier is not UNSET:
        tier = None if wire.usage is UNSET else OPENAI_TIERS_READ.get(bytes(wire.service_tier))
        extra["service_tier" if tier is None else MODELLED + "service_tier"] = wire.service_tier
    if wire.system_fingerprint is not UNSET:
        extra["system_fingerprint"] = wire.system_fingerprint
    usage = wire.usage
    if usage is not UNSET and usage == NULL:
        extra["usage"], usage = NULL, UNSET
    if type(wire.created) is float:
        extra[MODELLED + "created"] = to_raw(wire.created)
    messages = []
    finishes = []
    logprobs = []
    has_roles = _ROLE in body
    for position, choice in enumerate(wire.choices):
        seed = f"{wire.id or ''} {position}" if position else wire.id or ""
        message, finish = _decode_choice(choice, position, seed)
        if not has_roles:
            message = _without_role(message)
        if finish is not None and finish.reason == "length" and message.tool_calls:
            message = structs.replace(message, parts=cut_short(message.parts, finish.reason))
        if choice.logprobs is not UNSET and choice.logprobs != NULL and (tokens := read_choice(choice.logprobs)):
            logprobs.append(Logprobs(tokens, position))
        messages.append(message)
        finishes.append(finish)
    if messages and has_sources(extra):
        messages[0] = _with_sources(messages[0], extra)
    return Completion(
        tuple(messages),
        finishes[0] if finishes else None,
        None if usage is UNSET else decode_usage(usage, tier),
        wire.id,
        wire.model,
        whole_seconds(wire.created),
        tuple(finishes) if len(finishes) > 1 else (),
        {FAMILY: extra},
        tuple(logprobs),
    )


def _with_sources(message: Message, extra: Extra) -> Message:
    """Return the message with the pages listed beside the answer as citations of its last text."""
    parts = list(message.parts)
    for index in range(len(parts) - 1, -1, -1):
        part = parts[index]
        if type(part) is Text:
            if not part.citations and (cited := cite_sources(part.text, extra)):
                parts[index] = structs.replace(part, citations=tuple(cited))
                return structs.replace(message, parts=tuple(parts))
            break
    return message


_NO_ROLE = "~no_role"
"""Note of a message without a role, as Snowflake answers."""
_ROLE, _ASSISTANT = b'"role"', b'{"role":"assistant"'


def _without_role(message: Message) -> Message:
    own = (message.metadata or {}).get(FAMILY, {})
    return structs.replace(message, metadata={FAMILY: {**own, _NO_ROLE: ABSENT}})


def _decode_choice(choice: ChoiceWire, position: int, seed: str) -> tuple[Message, Finish | None]:
    wire = choice.message
    if wire is UNSET:
        message = Message("assistant", (), None, {FAMILY: {"~message": ABSENT}})
    else:
        try:
            message = decode_assistant(wire, seed)
        except DecodeError as error:
            raise error.within(f"$.choices[{position}].message") from error
    finish = decode_finish(choice.finish_reason, message)
    keys = _choice_keys(choice)
    if keys is not None:
        finish = add_explanation(finish, keys)
    return _decode_choice_notes(message, choice, position, keys), finish


_REASONING_TOKENS = "logprobs.reasoning_content"


def _decode_choice_notes(message: Message, choice: ChoiceWire, position: int, keys: Extra | None) -> Message:
    """Return the message with notes on the other fields of its choice."""
    notes: Extra = {}
    if choice.index != position:
        notes["~index"] = ABSENT if choice.index is UNSET else Raw(encode_json(choice.index))
    if choice.logprobs is UNSET:
        notes["~logprobs"] = ABSENT
    elif choice.logprobs != NULL:
        is_modelled = bool(read_choice(choice.logprobs))
        notes[MODELLED + "logprobs" if is_modelled else "logprobs"] = choice.logprobs
        if is_modelled and (thoughts := read_reasoning(choice.logprobs)) is not None:
            notes[_REASONING_TOKENS] = thoughts
    if choice.finish_reason is UNSET:
        notes["~finish"] = ABSENT
    if keys is not None:
        notes |= keep(FAMILY, UNSET, choice=keys)[FAMILY]  # type: ignore[index]
    if not notes:
        return message
    own = (message.metadata or {}).get(FAMILY, {})
    return Message("assistant", message.content_held, message.name, {FAMILY: {**own, **notes}})


def encode_response(completion: Completion, log: LossLog, profile: ChatProfile = PROFILE) -> Encoded:
    native = completion.metadata is not None and FAMILY in completion.metadata
    failure = None if native else failed_answer(completion, log)
    if failure is not None:
        return encode_error(failure)
    extra = (completion.metadata or {}).get(FAMILY)
    encoder = MessageEncoder(log, profile, native=native, to_client=True)
    # A blocked prompt has no answer; this API expresses that as an empty choice.
    messages = completion.messages if completion.messages or native else (Message("assistant", ()),)
    words = _encode_finishes(completion, len(messages), log, native=native)
    likely = tokens_by_candidate(completion) if completion.logprobs else {}
    choices = [
        _encode_choice(message, encoder, words[position], position, likely.get(position, ()), native=native)
        for position, message in enumerate(messages)
    ]
    if completion.logprobs and not native:
        report_ids(completion, log)
    if not native and (completion.id is None or completion.model is None):
        completion = fill_in_identity(completion, INVENTED_ID, log)
    wire = ChatResponse(
        choices,
        completion.id,
        UNSET if native else OBJECT,
        _written_time(completion, extra) if native else completion.created or 0,
        completion.model,
        UNSET if completion.usage is None else encode_usage(completion.usage),
    )
    if extra:
        return Encoded(splice(wire, extra))
    tier = named_tier(completion.usage, ANSWERED_BY_OPENAI)
    return Encoded(splice(wire, {key: to_raw(word) for key, word in tier.items()}) if tier else encode_json(wire))


def _written_time(completion: Completion, extra: Extra | None) -> int | None:
    """Return the time of creation; None if it is among the other keys, because it has a fraction."""
    return None if extra and MODELLED + "created" in extra else completion.created


def _encode_finishes(completion: Completion, count: int, log: LossLog, *, native: bool) -> list[str | None]:
    finishes = completion.finishes or (completion.finish,) * count
    if not native and None in finishes:
        log.invent(completion, "finish", "finish reason stop", "answers of this API have a finish reason")
        finishes = tuple(Finish("stop") if finish is None else finish for finish in finishes)
    return [encode_finish(finish, FAMILY if native else None, log, completion) for finish in finishes]


def _encode_choice(
    message: Message,
    encoder: MessageEncoder,
    word: WireValue,
    position: int,
    tokens: tuple[TokenLogprob, ...],
    *,
    native: bool,
) -> WireValue:
    if not native:
        return ChoiceWire(encoder.encode_answer(message), position, word, write_choice(tokens))
    notes = dict((message.metadata or {}).get(FAMILY, {}))
    logprobs: WireValue = UNSET if "~logprobs" in notes and not tokens else write_choice(tokens)
    logprobs = notes.pop("logprobs", notes.pop(MODELLED + "logprobs", logprobs))
    notes.pop(_REASONING_TOKENS, None)  # among the others
    place: WireValue = notes.get("~index", position)
    body = encoder.encode_assistant(structs.replace(message, metadata={FAMILY: notes}))
    if _NO_ROLE in notes:
        written = bytes(body) if isinstance(body, Raw) else encode_json(body)
        body = Raw(b"{" + written.removeprefix(_ASSISTANT).removeprefix(b","))
    choice = ChoiceWire(
        UNSET if "~message" in notes else body,
        UNSET if place is ABSENT or (isinstance(place, Raw) and bytes(place) == bytes(ABSENT)) else place,
        UNSET if "~finish" in notes else word,
        logprobs,
    )
    inner = inner_extra(notes, "choice")
    return choice if inner is None else spliced(choice, inner)
