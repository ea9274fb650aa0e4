"""generateContent requests, both ways. Model and streaming are said in the path, not in the body."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Raw, structs

from dragoman.codecs.encoded import Encoded
from dragoman.codecs.gemini.messages import MessageDecoder, MessageEncoder, decode_system
from dragoman.codecs.gemini.profile import FAMILY, PROFILE, GeminiProfile, path_of
from dragoman.codecs.gemini.thinking import decode_reasoning, encode_reasoning
from dragoman.codecs.gemini.tools import (
    GROUPS,
    decode_output,
    decode_tool_choice,
    decode_tools,
    encode_output,
    encode_tool_config,
    encode_tools,
)
from dragoman.codecs.gemini.wire import (
    ALIASES,
    ConfigOut,
    GenerateContentRequest,
    GenerationConfig,
    Number,
    keep_whole,
    overlaid,
)
from dragoman.codecs.reading import WireReader, WireValue
from dragoman.errors import DecodeError, EncodeError
from dragoman.ir import Request, ToolChoice
from dragoman.ir.notes import WITHIN, Extra, inner_extra
from dragoman.ir.values import encode_json, parse_json
from dragoman.losses import LossLog

SOURCE = "gemini/vertex request"

_reader = WireReader(GenerateContentRequest, SOURCE, aliases=ALIASES)

_CONFIG = "generationConfig"
_NO_CONFIG = GenerationConfig()
_NOTHING_SAID = ConfigOut()
_NUMBER = "~number:"
"""Note: this number was spelled as text, or with a fraction of zero."""

# ── decoding ──────────────────────────────────────────────────────────────────────────────────────────────────


def decode_request(body: bytes) -> Request:
    wire = _reader.read(body)
    notes: Extra = {} if wire.extra is UNSET else dict(wire.extra)
    if wire.safety_settings is not UNSET:
        keep_whole(notes, "safetySettings", wire.safety_settings)
    if wire.model is not UNSET:
        notes["~model"] = Raw(b"true")
    messages = MessageDecoder().decode(wire.contents)
    if wire.system_instruction is not UNSET:
        messages = (decode_system(wire.system_instruction), *messages)
    tools = () if wire.tools is UNSET else decode_tools(wire.tools, notes)
    choice = _decode_choice(wire, notes)
    if wire.generation_config is UNSET:
        return Request(
            None if wire.model is UNSET else wire.model,
            messages,
            tools,
            choice,
            metadata={FAMILY: notes} if notes else None,
            origin=FAMILY,
        )
    config = wire.generation_config
    said: Extra = {} if config.extra is UNSET else dict(config.extra)
    return Request(
        None if wire.model is UNSET else wire.model,
        messages,
        tools,
        choice,
        None,
        None if config.max_output_tokens is UNSET else _whole(config.max_output_tokens, "maxOutputTokens", said),
        None if config.temperature is UNSET else _real(config.temperature, "temperature", said),
        None if config.top_p is UNSET else _real(config.top_p, "topP", said),
        None if config.top_k is UNSET else _whole(config.top_k, "topK", said),
        () if config.stop_sequences is UNSET else _decode_stop(config.stop_sequences, said),
        None if config.seed is UNSET else _whole(config.seed, "seed", said),
        None if config.presence_penalty is UNSET else _real(config.presence_penalty, "presencePenalty", said),
        None if config.frequency_penalty is UNSET else _real(config.frequency_penalty, "frequencyPenalty", said),
        None if config.candidate_count is UNSET else _whole(config.candidate_count, "candidateCount", said),
        None if config.thinking_config is UNSET else decode_reasoning(config.thinking_config, said),
        decode_output(config, said),
        None,
        None,
        None,
        _metadata(config, notes, said),
        FAMILY,
    )


def _decode_choice(wire: GenerateContentRequest, notes: Extra) -> ToolChoice | None:
    config = wire.tool_config
    if config is UNSET:
        return None
    if config.extra is not UNSET or config.function_calling_config is UNSET:
        notes[WITHIN + "toolConfig"] = Raw(encode_json({} if config.extra is UNSET else config.extra))
    return None if config.function_calling_config is UNSET else decode_tool_choice(config.function_calling_config)


def _decode_stop(stop: list[str], said: Extra) -> tuple[str, ...]:
    if not stop:
        said["~stop"] = Raw(b"[]")
    return tuple(stop)


def _metadata(config: GenerationConfig, notes: Extra, said: Extra) -> dict[str, Extra] | None:
    if config.response_modalities is not UNSET:
        keep_whole(said, "responseModalities", config.response_modalities)
    if said or (config.max_output_tokens is config.temperature is UNSET and config == _NO_CONFIG):
        notes[WITHIN + _CONFIG] = Raw(encode_json(said))
    return {FAMILY: notes} if notes else None


def _whole(value: Number, key: str, said: Extra) -> int:
    if type(value) is int:
        return value
    number = _real(value, key, said)
    said[_NUMBER + key] = Raw(encode_json(value))
    if not float(number).is_integer():
        raise DecodeError(path=f"$.{_CONFIG}.{key}", expected="whole number", got=_said(value), source=SOURCE)
    return int(number)


def _said(value: Number) -> str:
    return f"{type(value).__name__} {value!r}"


def _real(value: Number, key: str, said: Extra) -> float:
    if not isinstance(value, str):
        return value
    said[_NUMBER + key] = Raw(encode_json(value))
    try:
        return float(value)
    except ValueError:
        raise DecodeError(path=f"$.{_CONFIG}.{key}", expected="number", got=_said(value), source=SOURCE) from None


# ── encoding ──────────────────────────────────────────────────────────────────────────────────────────────────


def encode_request(request: Request, log: LossLog, profile: GeminiProfile = PROFILE) -> Encoded:
    notes = None if request.metadata is None else request.metadata.get(FAMILY)
    encoder = MessageEncoder(log, profile, model=request.model, native=request.origin == FAMILY)
    contents = encoder.encode_contents(request.messages)
    if not contents and request.origin != FAMILY:
        raise EncodeError(path="$.messages", reason="no message says anything", target=profile.name)
    if request.user is not None:
        log.drop(request, "user", "end user's id", "this API has no such field")
    if request.cache is not None:
        log.drop(request, "cache", "automatic cache mark", "prompts are cached automatically by this API")
    tools: Any = UNSET
    if request.tools or (notes is not None and GROUPS in notes):
        tools = encode_tools(request, profile, log)
        tools = tools if tools or (notes is not None and GROUPS in notes) else UNSET
    wire = GenerateContentRequest(
        contents,
        encoder.encode_system(),
        tools,
        encode_tool_config(request, profile, log),
        _encode_config(request, profile, log, None if notes is None else inner_extra(notes, _CONFIG)),
        UNSET,
        request.model if notes is not None and "~model" in notes and request.model is not None else UNSET,
    )
    content = bytes(overlaid(wire, notes)) if notes else encode_json(wire)
    return Encoded(content, (), path_of(request.model, profile, stream=request.stream))


def _encode_config(request: Request, profile: GeminiProfile, log: LossLog, said: Extra | None) -> WireValue:
    """The generationConfig, or UNSET."""
    if request.origin != FAMILY:
        request = _legal_settings(request, profile, log)
    mime: WireValue
    mime, schema, typed, form = (UNSET,) * 4 if request.output is None else encode_output(request, profile, log)
    thinking = UNSET if request.reasoning is None else encode_reasoning(request, profile, log)
    if said is None:
        config = ConfigOut(
            request.max_output_tokens,
            request.temperature,
            request.top_p,
            request.top_k,
            request.stop,
            request.seed,
            request.presence_penalty,
            request.frequency_penalty,
            request.candidates,
            thinking,
            mime,
            schema,
            typed,
            form,
        )
        return UNSET if config == _NOTHING_SAID else config
    return overlaid(
        GenerationConfig(
            _spelled(request.max_output_tokens, "maxOutputTokens", said),
            _spelled(request.temperature, "temperature", said),
            _spelled(request.top_p, "topP", said),
            _spelled(request.top_k, "topK", said),
            list(request.stop) if request.stop or "~stop" in said else UNSET,
            _spelled(request.seed, "seed", said),
            _spelled(request.presence_penalty, "presencePenalty", said),
            _spelled(request.frequency_penalty, "frequencyPenalty", said),
            _spelled(request.candidates, "candidateCount", said),
            thinking,
            mime,
            schema,
            typed,
            form,
        ),
        said,
    )


def _legal_settings(request: Request, profile: GeminiProfile, log: LossLog) -> Request:
    """Without the settings of others that would be refused here."""
    changes: dict[str, Any] = {}
    limit = profile.stop_limit
    if limit is not None and len(request.stop) > limit:
        log.drop(request, "stop", f"{len(request.stop) - limit} stop sequences", f"this API takes {limit}")
        changes["stop"] = request.stop[:limit]
    maximum = request.max_output_tokens
    if maximum is not None and maximum < 1:
        log.drop(request, "max_output_tokens", f"limit of {maximum} tokens", "this API wants at least one token")
        changes["max_output_tokens"] = None
    candidates = request.candidates
    if candidates is not None and candidates > 1 and profile.single_answer_models.search(request.model or ""):
        log.drop(request, "candidates", f"{candidates} candidates", "this model gives one")
        changes["candidates"] = None
    return structs.replace(request, **changes) if changes else request


def _spelled(value: float | None, key: str, said: Extra) -> WireValue:
    if value is None:
        return UNSET
    noted = said.get(_NUMBER + key)
    return noted if noted is not None and float(parse_json(noted)) == value else value
