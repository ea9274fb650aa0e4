"""generateContent requests, both ways. The model and streaming are in the path, not in the body."""

from __future__ import annotations

from functools import partial
from typing import Any

from msgspec import UNSET, Raw, structs

from dragoman.codecs.arguments import EMPTY_OBJECT
from dragoman.codecs.common_losses import CACHED
from dragoman.codecs.encoded import Encoded
from dragoman.codecs.gemini.messages import MessageDecoder, MessageEncoder
from dragoman.codecs.gemini.parts import NULL
from dragoman.codecs.gemini.profile import FAMILY, OWN_REQUESTS, PROFILE, GeminiProfile
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
    PASSED_ON,
    PASSED_ON_CONFIG,
    GenerateContentBody,
    GenerateContentRequest,
    GenerationConfig,
    GenerationConfigBody,
    Number,
    ToolConfig,
    keep_whole,
    overlaid,
    snake_case,
    tool_config_keys,
)
from dragoman.codecs.google_services import without_unknown_keys
from dragoman.codecs.google_signatures import with_named_signatures, with_signed_calls
from dragoman.codecs.memo import NO_TOOLS, DecodedTools
from dragoman.codecs.reading import WireReader, WireValue
from dragoman.codecs.settings import BY_HAND, NO_SUCH_SETTING, Setting, Settings, collect_keys
from dragoman.codecs.shared_settings import (
    GEMINI_TIERS,
    GOOGLE_LABELS,
    fit_labels,
    fit_limits,
    fit_modalities,
    fit_others,
    fit_tier,
    fit_top_logprobs,
    read_tier,
)
from dragoman.errors import DecodeError, EncodeError
from dragoman.ir import Metadata, Request, ToolChoice
from dragoman.ir.notes import MODELLED, WITHIN, Extra, Spelling, family_notes, inner_extra
from dragoman.ir.values import encode_json, parse_json
from dragoman.losses import LossLog

SOURCE = "gemini/vertex request"

_reader = WireReader(GenerateContentRequest, SOURCE, wider=GenerateContentBody, aliases=ALIASES)
_keys = collect_keys(GenerateContentBody, PASSED_ON)
_usual_config_keys = collect_keys(GenerationConfig, ("response_modalities",))
_config_keys = collect_keys(GenerationConfigBody, PASSED_ON_CONFIG)

_CONFIG = "generationConfig"
_NO_CONFIG = GenerationConfigBody()
_NOTHING_SET = GenerationConfig()
SERVICE = "~service"
"""Note: which of Google's two services the request was written for. A request of a stored conversation has none."""
_SERVICES = {name: Raw(encode_json(name)) for name in OWN_REQUESTS}
# Shared by all requests without other notes: they are then encoded without looking for keys to add.
_SERVICE_ONLY: dict[str, Metadata] = {name: Spelling({FAMILY: {SERVICE: word}}) for name, word in _SERVICES.items()}
_NUMBER = "~number:"
"""Note: this number was written as a string, or with a fraction of zero."""


def _read_modalities(given: Any) -> tuple[str, ...] | None:
    if not isinstance(given, list) or not all(isinstance(word, str) for word in given):
        return None
    # Other spellings (lower case, enum numbers) are kept as written.
    return tuple(word.lower() for word in given) if given == [word.upper() for word in given] else None


def _write_modalities(modalities: tuple[str, ...], request: Request, log: LossLog) -> WireValue:
    kept = modalities if request.origin == FAMILY else fit_modalities(modalities, _MODALITIES, request, log)
    return [word.upper() for word in kept] or UNSET


_MODALITIES = ("text", "image", "audio", "video")


SETTINGS = Settings(
    GenerateContentRequest,
    FAMILY,
    (
        Setting("model", write=BY_HAND),
        Setting("tool_choice", None, BY_HAND, path="toolConfig.functionCallingConfig"),
        Setting("parallel_tool_calls", None),
        Setting("max_output_tokens", None, BY_HAND, path=f"{_CONFIG}.maxOutputTokens"),
        Setting("temperature", None, BY_HAND, path=f"{_CONFIG}.temperature"),
        Setting("top_p", None, BY_HAND, path=f"{_CONFIG}.topP"),
        Setting("top_k", None, BY_HAND, path=f"{_CONFIG}.topK"),
        Setting("stop", None, BY_HAND, path=f"{_CONFIG}.stopSequences"),
        Setting("seed", None, BY_HAND, path=f"{_CONFIG}.seed"),
        Setting("presence_penalty", None, BY_HAND, path=f"{_CONFIG}.presencePenalty"),
        Setting("frequency_penalty", None, BY_HAND, path=f"{_CONFIG}.frequencyPenalty"),
        Setting("candidates", None, BY_HAND, path=f"{_CONFIG}.candidateCount"),
        Setting("reasoning", None, BY_HAND, path=f"{_CONFIG}.thinkingConfig"),
        Setting("output", None, BY_HAND, path=f"{_CONFIG}.responseMimeType"),
        Setting("stream", None),  # it is in the path
        Setting("user", None, lost="this API has no such field"),
        Setting("cache", None, lost=CACHED),
        Setting("labels", write=fit_others(partial(fit_labels, GOOGLE_LABELS), FAMILY)),
        Setting("service_tier", "serviceTier", read_tier(GEMINI_TIERS), partial(fit_tier, GEMINI_TIERS)),
        Setting("store"),
        Setting("logprobs", f"{_CONFIG}.responseLogprobs"),
        Setting(
            "top_logprobs",
            f"{_CONFIG}.logprobs",
            write=fit_others(partial(fit_top_logprobs, "responseLogprobs"), FAMILY),
        ),
        Setting("modalities", f"{_CONFIG}.responseModalities", _read_modalities, _write_modalities),
        Setting("obfuscation", None, lost=NO_SUCH_SETTING, anyway=False),
    ),
    content=("contents", "system_instruction", "tools", "tool_config", "generation_config"),
    alias=snake_case,
)

# ── decoding ──────────────────────────────────────────────────────────────────────────────────────────────────


def decode_request(body: bytes, profile: GeminiProfile = PROFILE) -> Request:
    wire = _reader.read(body)
    notes: Extra = {}
    if type(wire) is GenerateContentBody:
        notes = _keys(wire) or notes
    elif wire.safety_settings is not None:
        is_null = wire.safety_settings == NULL
        notes[MODELLED * is_null + "safetySettings"] = wire.safety_settings
    if wire.model is not None:
        notes["~model"] = Raw(b"true")
    decoder = MessageDecoder()
    messages = decoder.decode(wire.contents, wire.system_instruction)
    tools: DecodedTools = NO_TOOLS
    if wire.tools is not UNSET:
        tools = declared = decode_tools(wire.tools)
        if declared.notes is not None:
            notes.update(declared.notes)
    config = wire.generation_config
    if wire.system_instruction is None or wire.tool_config is None or config is None:
        _note_nulls(wire, notes)
    choice = _decode_choice(wire.tool_config, notes) if wire.tool_config else None
    settings = _decode_config(config, notes) if config else _NO_SETTINGS
    if notes:
        notes[SERVICE] = _SERVICES[profile.name]
    metadata = {FAMILY: notes} if notes else _SERVICE_ONLY[profile.name]
    request: Request = SETTINGS.read(wire, messages, tools.tools, metadata, choice, *settings)
    if decoder.is_rearranged:
        return request
    return decoder.noted_on(request, tools.names, tools.is_private)


def _note_nulls(wire: GenerateContentRequest, notes: Extra) -> None:
    for key, value in (
        ("systemInstruction", wire.system_instruction),
        ("toolConfig", wire.tool_config),
        (_CONFIG, wire.generation_config),
    ):
        if value is None:
            keep_whole(notes, key, Raw(b"null"), MODELLED)


def _decode_choice(config: ToolConfig, notes: Extra) -> ToolChoice | None:
    extra = tool_config_keys(config)
    if extra is not None:
        notes[WITHIN + "toolConfig"] = Raw(encode_json(extra))
    elif config.function_calling_config is UNSET:
        keep_whole(notes, "toolConfig", EMPTY_OBJECT, MODELLED)
    return None if config.function_calling_config is UNSET else decode_tool_choice(config.function_calling_config)


_NO_SETTINGS: tuple[Any, ...] = (None, None, None, None, (), None, None, None, None, None, None)


def _decode_config(config: GenerationConfig, notes: Extra) -> tuple[Any, ...]:
    """Decode the settings in generationConfig, in the order of the table."""
    config_keys: Extra = (_config_keys if type(config) is GenerationConfigBody else _usual_config_keys)(config) or {}
    settings = (
        None if config.max_output_tokens is None else _whole(config.max_output_tokens, "maxOutputTokens", config_keys),
        None if config.temperature is None else _real(config.temperature, "temperature", config_keys),
        None if config.top_p is None else _real(config.top_p, "topP", config_keys),
        None if config.top_k is None else _whole(config.top_k, "topK", config_keys),
        () if config.stop_sequences is UNSET else _decode_stop(config.stop_sequences, config_keys),
        None if config.seed is None else _whole(config.seed, "seed", config_keys),
        None if config.presence_penalty is None else _real(config.presence_penalty, "presencePenalty", config_keys),
        None if config.frequency_penalty is None else _real(config.frequency_penalty, "frequencyPenalty", config_keys),
        None if config.candidate_count is None else _whole(config.candidate_count, "candidateCount", config_keys),
        None if config.thinking_config is UNSET else decode_reasoning(config.thinking_config, config_keys),
        decode_output(config, config_keys),
    )
    if config_keys:
        notes[WITHIN + _CONFIG] = Raw(encode_json(config_keys))
    elif settings == _NO_SETTINGS and config in (_NOTHING_SET, _NO_CONFIG):
        keep_whole(notes, _CONFIG, EMPTY_OBJECT, MODELLED)
    return settings


def _decode_stop(stop: list[str], entries: Extra) -> tuple[str, ...]:
    if not stop:
        entries["~stop"] = Raw(b"[]")
    return tuple(stop)


def _whole(value: Number, key: str, entries: Extra) -> int:
    if type(value) is int:
        return value
    number = _real(value, key, entries)
    entries[_NUMBER + key] = Raw(encode_json(value))
    if not float(number).is_integer():
        raise DecodeError(path=f"$.{_CONFIG}.{key}", expected="whole number", got=_describe(value), source=SOURCE)
    return int(number)


def _describe(value: Number) -> str:
    return f"{type(value).__name__} {value!r}"


def _real(value: Number, key: str, entries: Extra) -> WireValue:
    if type(value) is not str:
        return value
    entries[_NUMBER + key] = Raw(encode_json(value))
    try:
        return float(value)
    except ValueError:
        raise DecodeError(path=f"$.{_CONFIG}.{key}", expected="number", got=_describe(value), source=SOURCE) from None


# ── encoding ──────────────────────────────────────────────────────────────────────────────────────────────────


def encode_request(request: Request, log: LossLog, profile: GeminiProfile = PROFILE) -> Encoded:
    is_own = _is_for(request, profile)
    if is_own:
        profile = OWN_REQUESTS[profile.name]
    else:
        request = _for_this_service(request, profile, log)
    metadata = request.metadata
    is_bare = metadata is None or metadata is _SERVICE_ONLY.get(profile.name)
    notes = SETTINGS.add_keys(request, log, None if is_bare else metadata.get(FAMILY))  # type: ignore[union-attr]
    headers: dict[str, str] = {}
    if notes and profile.tier_header and not notes.keys().isdisjoint(_NOT_ON_VERTEX):
        notes = _as_vertex_takes_it(notes, headers, request, profile, log)
    native = request.origin == FAMILY
    # A stored transcript (native, without a target model) keeps what it carries; a provider never receives it.
    carries = native and request.model is None
    encoder = MessageEncoder(log, profile, carries, native, request.model)
    encoder.crosses = not is_own and not (carries and _is_stored(request))
    contents = encoder.encode_contents(request.messages)
    if not contents and not native:
        reason = f"no message has content{log.dropped_content()}"
        raise EncodeError(path="$.messages", reason=reason, target=profile.name)
    tools: WireValue = UNSET
    if request.tools or (notes is not None and GROUPS in notes):
        tools = encode_tools(request, profile, log)
        tools = tools if tools or (notes is not None and GROUPS in notes) else UNSET
    wire = SETTINGS.write(
        request,
        log,
        contents,
        encoder.encode_system(),
        tools,
        encode_tool_config(request, profile, log),
        _encode_config(request, profile, log, None if notes is None else inner_extra(notes, _CONFIG)),
        request.model if notes is not None and "~model" in notes else None,
    )
    content = bytes(overlaid(wire, notes)) if notes else encode_json(wire)
    path = _path_of(request.model, profile, stream=request.stream)
    return Encoded(content, (), path) if not headers else Encoded(content, (), path, headers)


def _path_of(model: str | None, profile: GeminiProfile, *, stream: bool | None) -> str:
    """Return the URL path of a request, which holds the model and whether to stream; the body has neither."""
    method = "streamGenerateContent?alt=sse" if stream else "generateContent"
    name = model or "{model}"
    if "/" not in name:
        return f"{profile.path}{profile.model_prefix}{name}:{method}"
    name = name.removeprefix("models/")
    publisher, slash, bare = name.partition("/")
    if not slash:
        name = profile.model_prefix + name
    elif "/" not in bare and profile.other_publishers:
        name = profile.other_publishers.format(publisher=publisher, model=bare)
    return f"{profile.path}{name}:{method}"


def _is_for(request: Request, profile: GeminiProfile) -> bool:
    """Whether the client wrote the request for this service, so it returns there unchanged."""
    if request.origin != FAMILY or request.metadata is None:
        return False
    return family_notes(FAMILY, request.metadata).get(SERVICE) == _SERVICES.get(profile.name, Raw(b""))


def _is_stored(request: Request) -> bool:
    """Whether the request comes from a stored conversation, which does not say what service it was with."""
    return SERVICE not in family_notes(FAMILY, request.metadata)


def _for_this_service(request: Request, profile: GeminiProfile, log: LossLog) -> Request:
    request = without_unknown_keys(request, profile.unknown_keys, log)
    if request.origin == "gemini-interactions":
        return with_signed_calls(request, log)
    return request if request.origin == FAMILY else with_named_signatures(request, log)


_NOT_ON_VERTEX = ("store", "serviceTier", "service_tier")


def _as_vertex_takes_it(
    notes: Extra, headers: dict[str, str], request: Request, profile: GeminiProfile, log: LossLog
) -> Extra:
    """Adapt the keys for Vertex AI, which has no `store` and takes the service tier as a header."""
    kept = {key: value for key, value in notes.items() if key not in _NOT_ON_VERTEX}
    if request.store and "store" in notes:
        log.drop(request, "store", "store", NO_SUCH_SETTING)
    spelled = notes.get("serviceTier", notes.get("service_tier"))
    tier = None if spelled is None else parse_json(spelled)
    if tier in ("flex", "priority"):  # a tuple: a tier may be an object
        headers[profile.tier_header] = tier
        log.degrade(request, "service_tier", f"service tier {tier!r}", f"sent as the header {profile.tier_header}")
    elif tier is not None:
        log.drop(request, "service_tier", f"service tier {tier!r}", "this API has no such tier")
    return kept


def _encode_config(request: Request, profile: GeminiProfile, log: LossLog, entries: Extra | None) -> WireValue:
    """Return the generationConfig, or UNSET."""
    if request.origin != FAMILY and (request.stop or not request.candidates is request.max_output_tokens is None):
        request = _legal_settings(request, profile, log)
    mime: WireValue
    mime, schema, typed, form = (UNSET,) * 4 if request.output is None else encode_output(request, profile, log)
    thinking = UNSET if request.reasoning is None else encode_reasoning(request, profile, log)
    if entries is None:
        config: Any = GenerationConfig(
            request.max_output_tokens,
            request.temperature,
            request.top_p,
            request.top_k,
            request.stop or UNSET,  # type: ignore[arg-type]
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
        return UNSET if config == _NOTHING_SET else config
    return overlaid(
        GenerationConfig(
            _spell_number(request.max_output_tokens, "maxOutputTokens", entries),
            _spell_number(request.temperature, "temperature", entries),
            _spell_number(request.top_p, "topP", entries),
            _spell_number(request.top_k, "topK", entries),
            list(request.stop) if request.stop or "~stop" in entries else UNSET,
            _spell_number(request.seed, "seed", entries),
            _spell_number(request.presence_penalty, "presencePenalty", entries),
            _spell_number(request.frequency_penalty, "frequencyPenalty", entries),
            _spell_number(request.candidates, "candidateCount", entries),
            thinking,
            mime,
            schema,
            typed,
            form,
        ),
        entries,
    )


def _legal_settings(request: Request, profile: GeminiProfile, log: LossLog) -> Request:
    """Return the request without settings of other formats that would be refused here."""
    changes = fit_limits(request, log)
    candidates = request.candidates
    if candidates is not None and candidates > 1 and profile.single_answer_models.search(request.model or ""):
        log.drop(request, "candidates", f"{candidates} candidates", "this model gives one")
        changes["candidates"] = None
    return structs.replace(request, **changes) if changes else request


def _spell_number(value: WireValue, key: str, entries: Extra) -> WireValue:
    if value is None:
        return None
    noted = entries.get(_NUMBER + key)
    return noted if noted is not None and float(parse_json(noted)) == value else value
