"""Chat Completions requests, both ways."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from msgspec import UNSET, Raw

from dragoman.codecs import cache_control
from dragoman.codecs.encoded import Encoded
from dragoman.codecs.memo import NO_TOOLS, DecodedTools
from dragoman.codecs.openai_chat.compatible import fit
from dragoman.codecs.openai_chat.hosted_tools import HOSTED
from dragoman.codecs.openai_chat.messages import FAMILY, OLD_MAXIMUM, ONLY_OLD_MAXIMUM, MessageDecoder, MessageEncoder
from dragoman.codecs.openai_chat.profile import PATH, PROFILE, ChatProfile
from dragoman.codecs.openai_chat.thinking import (
    decode_reasoning,
    encode_reasoning,
    without_sampling,
)
from dragoman.codecs.openai_chat.tools import (
    decode_output,
    decode_tool_choice,
    decode_tools,
    encode_output,
    encode_tool_choice,
    encode_tools,
)
from dragoman.codecs.openai_chat.wire import PASSED_ON, USUALLY_PASSED_ON, ChatBody, ChatRequest, UsualChatBody
from dragoman.codecs.reading import WireReader, WireValue, encode_with_extra, splice
from dragoman.codecs.settings import BY_HAND, NO_SUCH_SETTING, SETTING_NAMES, Setting, Settings, collect_keys
from dragoman.codecs.shared_settings import (
    CHAT_TIERS,
    OPENAI_LABELS,
    announcing_json,
    fit_identifier,
    fit_labels,
    fit_others,
    fit_tier,
    fit_top_logprobs,
    number_or_none,
)
from dragoman.errors import EncodeError
from dragoman.ir import Metadata, Request
from dragoman.ir.notes import MODELLED, Extra
from dragoman.ir.values import encode_json, parse_json
from dragoman.losses import LossLog

_reader = WireReader(UsualChatBody, "openai-chat request", wider=ChatBody)
_usual_keys = collect_keys(UsualChatBody, USUALLY_PASSED_ON)
_keys = collect_keys(ChatBody, PASSED_ON)


def _read_stop(stop: str | list[str]) -> tuple[str, ...]:
    """Return the stop sequences; none if all are empty, as an empty text stops nothing."""
    if not any(stop):
        return ()
    return (stop,) if isinstance(stop, str) else tuple(stop)


_OF_CACHE_OPTIONS = {"mode": None, "ttl": "30m"}


def _write_cache_options(options: dict[str, Any], request: Request, log: LossLog) -> WireValue:
    """Keep the options that this API has: Responses has more of them, and longer lifetimes."""
    if request.origin == FAMILY:
        return options
    kept = {}
    for key, value in options.items():
        if key in _OF_CACHE_OPTIONS and _OF_CACHE_OPTIONS[key] in (None, value):
            kept[key] = value
        else:
            log.drop(request, f"prompt_cache_options.{key}", f"cache option {key}", "this API does not take it")
    return kept or UNSET


def _read_top_k(value: Any) -> int | None:
    """Return the number of tokens; None for 0 and -1, with which servers of this format mean all."""
    return value if type(value) is int and value > 0 else None


def _write_sampling(field: str) -> Callable[[float, Request, LossLog], WireValue]:
    """Return the writer of a setting for servers of this format that the client knows: OpenAI refuses it."""

    def write(value: float, request: Request, log: LossLog) -> WireValue:
        if request.origin == FAMILY:
            return value
        log.drop(request, field, SETTING_NAMES[field], NO_SUCH_SETTING)
        return UNSET

    return write


_SPELLINGS = {"repetition_penalty": "repeat_penalty"}
"""Key of most servers -> that of llama.cpp."""


def _second_spelling(key: str) -> str:
    return _SPELLINGS.get(key, key)


SETTINGS = Settings(
    ChatRequest,
    FAMILY,
    (
        Setting("model"),
        Setting("tool_choice", read=decode_tool_choice, write=BY_HAND),
        Setting("parallel_tool_calls", write=BY_HAND),
        Setting("max_output_tokens", "max_completion_tokens", BY_HAND, BY_HAND),
        Setting("temperature"),
        Setting("top_p"),
        Setting("top_k", read=_read_top_k, write=_write_sampling("top_k")),
        Setting("min_p", read=number_or_none, write=_write_sampling("min_p")),
        Setting("repetition_penalty", read=number_or_none, write=_write_sampling("repetition_penalty")),
        Setting("stop", read=_read_stop, write=BY_HAND),
        Setting("seed", read=BY_HAND, write=BY_HAND),
        Setting("presence_penalty"),
        Setting("frequency_penalty"),
        Setting("candidates", "n"),
        Setting("reasoning", "reasoning_effort", BY_HAND, BY_HAND),
        Setting("output", "response_format", BY_HAND, encode_output),
        Setting("stream"),
        Setting("user"),
        Setting("verbosity"),
        Setting("labels", "metadata", write=fit_others(partial(fit_labels, OPENAI_LABELS), FAMILY)),
        Setting("safety_identifier", write=fit_others(fit_identifier, FAMILY)),
        Setting("service_tier", write=fit_others(partial(fit_tier, CHAT_TIERS), FAMILY)),
        Setting("store"),
        Setting("prompt_cache_key"),
        Setting("prompt_cache_retention"),
        Setting("prompt_cache_options", write=_write_cache_options),
        Setting("moderation"),
        Setting("logprobs"),
        Setting("top_logprobs", write=fit_others(partial(fit_top_logprobs, "logprobs"), FAMILY)),
        Setting("modalities"),
        Setting("obfuscation", "stream_options.include_obfuscation"),
        Setting("cache", cache_control.KEY, read=cache_control.read_setting, write=cache_control.write_setting),
    ),
    content=("messages", "tools", "max_tokens"),
    alias=_second_spelling,
)

# ── decoding ──────────────────────────────────────────────────────────────────────────────────────────────────


def decode_request(body: bytes) -> Request:
    wire = _reader.read(body)
    extra = _keys(wire) if type(wire) is ChatBody else _usual_keys(wire)
    decoder = MessageDecoder()
    messages = decoder.decode(wire.messages)
    tools = NO_TOOLS if wire.tools is UNSET else decode_tools(wire.tools)
    if extra is not None and ("web_search_options" in extra or "plugins" in extra or "search_parameters" in extra):
        search = HOSTED.read_settings(extra)
        if search is not None:
            tools, extra = DecodedTools((*tools.tools, search)), extra or None
    reasoning = decode_reasoning(None if wire.reasoning_effort is UNSET else wire.reasoning_effort, extra)
    extra = extra or None
    maximum, seed = wire.max_completion_tokens, wire.seed
    output = None if wire.response_format is UNSET else decode_output(wire.response_format)
    metadata: Metadata | None = None
    if wire.max_tokens is not None:
        if maximum is not None:
            extra = {**(extra or {}), "max_tokens": Raw(encode_json(wire.max_tokens))}
        elif extra is None:
            maximum, metadata = wire.max_tokens, ONLY_OLD_MAXIMUM
        else:
            maximum = wire.max_tokens
            extra.update(OLD_MAXIMUM)
    has_read_tools = tools.tools or wire.tools is UNSET
    if not (wire.stop is wire.stream_options is wire.response_format is UNSET and has_read_tools):
        spelled = {} if metadata is None else dict(metadata[FAMILY])
        extra = _decode_spelling(wire, extra or spelled, has_output=output is not None)
        if wire.tools is not UNSET and not tools.tools:
            extra["tools"] = wire.tools
        extra = extra or None
    if extra is not None:
        if type(wire) is ChatBody and wire.random_seed is not None and seed is None:
            seed = _decode_seed(wire.random_seed, extra)
        metadata = {FAMILY: extra}
    request: Request = SETTINGS.read(wire, messages, tools.tools, metadata, maximum, seed, reasoning, output)
    if decoder.tagged:
        return request  # media moved into their results: the notes on the wire's messages no longer apply
    return decoder.noted_on(request, tools.names, tools.is_private)


SEED = "random_seed"
"""Mistral's key for the seed."""

_ONLY_USAGE = frozenset({b'{"include_usage":true}', b'{"include_usage": true}', b"null"})


def _decode_seed(raw: Raw, extra: Extra) -> int | None:
    seed = parse_json(raw)
    if type(seed) is not int:
        return None
    extra[MODELLED + SEED] = extra.pop(SEED)
    return seed


def _decode_spelling(wire: ChatRequest, extra: Extra, *, has_output: bool) -> Extra:
    """Note which of several equivalent spellings the client chose."""
    stop, options, output = wire.stop, wire.stream_options, wire.response_format
    if stop is not UNSET and not any(stop):  # empty, in any spelling
        extra[MODELLED + "stop"] = Raw(encode_json(stop))
    elif isinstance(stop, str):
        extra["~stop"] = Raw(b'"string"')
    if options is not UNSET:
        if _asks_for_usage_only(options):
            extra[MODELLED + "stream_options"] = options
        else:
            _decode_stream_options(options, extra)
    if output is not UNSET and not has_output:
        key = MODELLED + "response_format" if output.type == "text" else "response_format"
        extra[key] = encode_with_extra(output)
    return extra


_USAGE = "~include_usage"
"""Note: whether the stream should end with the token counts, which other APIs always send."""


def _decode_stream_options(options: Raw, extra: Extra) -> None:
    extra["stream_options"] = options
    parsed = parse_json(options)
    if isinstance(parsed, dict) and "include_usage" in parsed:
        extra[_USAGE] = Raw(encode_json(parsed.pop("include_usage")))
        extra["stream_options"] = Raw(encode_json(parsed))


def _asks_for_usage_only(options: Raw) -> bool:
    if bytes(options) in _ONLY_USAGE:
        return True
    parsed = parse_json(options)
    return parsed is None or (isinstance(parsed, dict) and parsed.keys() <= {"include_usage"})


# ── encoding ──────────────────────────────────────────────────────────────────────────────────────────────────


def encode_request(request: Request, log: LossLog, profile: ChatProfile = PROFILE) -> Encoded:
    if profile.legalises_own_family:
        request = fit(request, profile, log, SETTINGS.keys_beside)
    native = request.origin == FAMILY and not profile.legalises_own_family
    effort, whole = encode_reasoning(request, log, profile)
    if not native:
        request = _as_the_model_takes_it(request, effort, log)
    if request.origin != FAMILY and (profile.cache_control or profile.sampling):
        request, whole = _take_keys_of_server(request, whole, log, profile)
    extra = _keys_beside(request, whole, log)
    if not native:
        if request.modalities and request.origin != FAMILY:
            extra = _with_audio(request, extra, log, profile)
        if extra is not None and MODELLED + SEED in extra:
            extra = {key: value for key, value in extra.items() if key != MODELLED + SEED}
    old_maximum = (extra is not None and "~max_tokens" in extra) or profile.maximum == "max_tokens"
    maximum, stop, seed = request.max_output_tokens, request.stop, request.seed
    tools: WireValue = UNSET
    if request.tools:
        value, settings = encode_tools(request.tools, log, native=request.origin == FAMILY, profile=profile)
        tools = UNSET if value is None else value
        if settings:
            extra = {**(extra or {}), **settings}
    # The API refuses both switches when no tool is left.
    is_choosable = tools is not UNSET or native
    choice = request.tool_choice if is_choosable else None
    messages = MessageEncoder(log, profile, request.model or "", native).encode(request.messages)
    if not messages and not native:
        why = "no message has content that this API can hold"
        raise EncodeError(path="$.messages", reason=why, target=profile.name)
    if seed is not None and profile.seed != "seed":
        extra = {**(extra or {}), profile.seed: Raw(encode_json(seed))}
        seed = None
    elif extra is not None and MODELLED + SEED in extra:
        seed = None
    wire = SETTINGS.write(
        request,
        log,
        messages,
        tools,
        maximum if old_maximum else None,
        UNSET if choice is None else encode_tool_choice(choice, request.tools, profile.required),
        request.parallel_tool_calls if is_choosable else None,
        None if old_maximum else maximum,
        (stop[0] if extra is not None and "~stop" in extra else stop) if stop else UNSET,
        seed,
        effort,
    )
    return Encoded(encode_json(wire) if extra is None else splice(wire, extra), (), PATH)


def _take_keys_of_server(
    request: Request, keys: Extra | None, log: LossLog, profile: ChatProfile
) -> tuple[Request, Extra]:
    """Move the settings that this server has and OpenAI does not from the request to its keys."""
    taken = dict(keys or {})
    changes: dict[str, Any] = {}
    for field, key in profile.sampling.items():
        value = getattr(request, field)
        if value is not None:
            taken[key] = Raw(encode_json(value))
            changes[field] = None
    if profile.cache_control and request.cache is not None:
        taken |= cache_control.mark_for_relay(request, request.cache, log)
        changes["cache"] = None
    return log.replace(request, **changes), taken


def _keys_beside(request: Request, reasoning: Extra | None, log: LossLog) -> Extra | None:
    metadata = request.metadata
    extra: Extra | None = SETTINGS.add_keys(request, log, None if metadata is None else metadata.get(FAMILY))
    if extra is not None and _USAGE in extra:
        options = parse_json(extra.get("stream_options", Raw(b"{}")))
        extra = {**extra, "stream_options": Raw(encode_json({"include_usage": extra[_USAGE], **options}))}
    return extra if reasoning is None else {**(extra or {}), **reasoning}


def _as_the_model_takes_it(request: Request, effort: WireValue, log: LossLog) -> Request:
    request = without_sampling(request, effort, log)
    if request.output is not None and request.output.kind == "json":
        request = announcing_json(request, log)
    return request


def _with_audio(request: Request, extra: Extra | None, log: LossLog, profile: ChatProfile) -> Extra:
    """Return the keys with the audio settings a spoken answer requires; drops modalities this API cannot produce."""
    keys = dict(extra or {})
    kept = [word for word in request.modalities if word in profile.modalities]
    for word in request.modalities:
        if word not in kept:
            log.drop(request, "modalities", f"answer as {word}", "this API has no such answer")
    keys.pop("modalities", None)
    if kept:
        keys["modalities"] = Raw(encode_json(kept))
    if "audio" in kept and "audio" not in keys:
        log.invent(request, "modalities", "voice and format of the audio", "this API demands both")
        # Streams carry raw samples only.
        keys["audio"] = Raw(encode_json({"voice": "alloy", "format": "pcm16" if request.stream else "wav"}))
    return keys
