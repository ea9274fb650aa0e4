"""Interactions requests, both ways. The model and streaming are in the body."""

from __future__ import annotations

from functools import partial
from typing import Any

from msgspec import UNSET, Raw

from dragoman.codecs.common_losses import CACHED
from dragoman.codecs.encoded import Encoded
from dragoman.codecs.gemini_interactions.messages import MessageDecoder, MessageEncoder
from dragoman.codecs.gemini_interactions.profile import FAMILY, PROFILE, InteractionsProfile
from dragoman.codecs.gemini_interactions.steps import TRUE
from dragoman.codecs.gemini_interactions.thinking import decode_reasoning, encode_reasoning
from dragoman.codecs.gemini_interactions.tools import (
    decode_output,
    decode_tool_choice,
    decode_tools,
    encode_output,
    encode_tool_choice,
    encode_tools,
)
from dragoman.codecs.gemini_interactions.wire import (
    CONTENTS,
    PASSED_ON,
    PASSED_ON_CONFIG,
    GenerationConfig,
    GenerationConfigBody,
    InteractionBody,
    InteractionRequest,
)
from dragoman.codecs.google_media_keys import MediumKeys
from dragoman.codecs.google_settings import (
    settings_in_google_words,
    settings_of_google,
    with_google_words,
    with_place,
    write_modalities,
)
from dragoman.codecs.google_signatures import GOOGLE, with_named_signatures
from dragoman.codecs.memo import NO_TOOLS
from dragoman.codecs.reading import WireReader, WireValue, spliced
from dragoman.codecs.settings import BY_HAND, NO_SUCH_SETTING, Setting, Settings, collect_keys
from dragoman.codecs.shared_settings import (
    GEMINI_TIERS,
    GOOGLE_LABELS,
    fit_labels,
    fit_limits,
    fit_others,
    fit_tier,
    read_tier,
)
from dragoman.codecs.system_text import split_system
from dragoman.errors import EncodeError
from dragoman.ir import Message, Request
from dragoman.ir.notes import MODELLED, WITHIN, Extra, family_notes, inner_extra
from dragoman.ir.values import encode_json, parse_json
from dragoman.losses import LossLog

SOURCE = "gemini-interactions request"

_reader: WireReader[InteractionRequest] = WireReader(InteractionRequest, SOURCE, wider=InteractionBody)
_keys = collect_keys(InteractionBody, PASSED_ON)
_config_keys = collect_keys(GenerationConfigBody, PASSED_ON_CONFIG)

_CONFIG = "generation_config"
_NO_CONFIG = GenerationConfig()
_NO_SETTINGS: tuple[Any, ...] = (None, None, None, None, (), None, None)
INPUT = "~input"
"""Note: the form of the input, if it was not a list of steps."""
_GOOGLES = (FAMILY, GOOGLE)

SETTINGS = Settings(
    InteractionRequest,
    FAMILY,
    (
        Setting("model"),
        Setting("tool_choice", None, BY_HAND, path=f"{_CONFIG}.tool_choice"),
        Setting("max_output_tokens", None, BY_HAND, path=f"{_CONFIG}.max_output_tokens"),
        Setting("temperature", None, BY_HAND, path=f"{_CONFIG}.temperature"),
        Setting("top_p", None, BY_HAND, path=f"{_CONFIG}.top_p"),
        Setting("stop", None, BY_HAND, path=f"{_CONFIG}.stop_sequences"),
        Setting("seed", None, BY_HAND, path=f"{_CONFIG}.seed"),
        Setting("reasoning", None, BY_HAND, path=f"{_CONFIG}.thinking_level"),
        Setting("output", None, BY_HAND, path="response_format"),
        Setting("stream"),
        Setting("labels", write=fit_others(partial(fit_labels, GOOGLE_LABELS), *_GOOGLES)),
        Setting("service_tier", "service_tier", read_tier(GEMINI_TIERS), partial(fit_tier, GEMINI_TIERS)),
        Setting("store"),
        Setting("modalities", "response_modalities", write=write_modalities),
        Setting("obfuscation", None, lost=NO_SUCH_SETTING, anyway=False),
        Setting("parallel_tool_calls", None),  # several calls are the default; one at a time is reported separately
        Setting("candidates", None),  # there is always one answer; more are reported separately
        Setting("cache", None, lost=CACHED),
    ),
    content=("input", "system_instruction", "tools", "generation_config", "response_format"),
)

# ── decoding ──────────────────────────────────────────────────────────────────────────────────────────────────


def decode_request(body: bytes) -> Request:
    wire: Any = _reader.read(body)
    notes: Extra = (_keys(wire) if type(wire) is InteractionBody else None) or {}
    decoder = MessageDecoder()
    if wire.system_instruction is not None:
        decoder.add_system(wire.system_instruction)
    _decode_input(wire.input, decoder, notes)
    messages = decoder.finished()
    tools = NO_TOOLS if wire.tools is UNSET else decode_tools(wire.tools)
    if wire.tools is not UNSET and not tools.tools:
        notes[MODELLED + "tools"] = wire.tools  # an empty list, or null
    output = None if wire.response_format is UNSET else decode_output(wire.response_format, notes)
    config = wire.generation_config
    settings: tuple[Any, ...] = _NO_SETTINGS if config is UNSET else _decode_config(config, notes)
    google = settings_in_google_words(notes, tools.tools) if notes or tools.is_private else {}
    request: Request = SETTINGS.read(wire, messages, tools.tools, {FAMILY: notes} if notes else None, *settings, output)
    request = with_google_words(request, google, notes)
    return decoder.noted_on(request, tools.names, tools.is_private)


def _decode_input(given: Any, decoder: MessageDecoder, notes: Extra) -> None:
    """Decode the input, and note every form but the usual one, a list of steps."""
    if given is UNSET:
        return
    single = type(given) is not list
    items, form = ([given], "step") if single else (given, "")
    if type(given) is str:
        form = "string"
        decoder.add_text(given)
    elif not items:
        form = "empty"
    elif type(items[0]) in CONTENTS:
        form = "content" if single else "contents"
        decoder.add_contents(items)
    else:
        decoder.add_steps(items)
    if form:
        notes[INPUT] = Raw(encode_json(form))


def _decode_config(config: Any, notes: Extra) -> tuple[Any, ...]:
    """Decode the settings in generation_config, in the order of the table."""
    extra: Extra = {} if config.extra is UNSET else dict(config.extra)
    if type(config) is GenerationConfigBody:
        extra = _config_keys(config) or {}
    if config.stop_sequences is not UNSET and not config.stop_sequences:
        extra[MODELLED + "stop_sequences"] = Raw(b"[]")
    if extra:
        notes[WITHIN + _CONFIG] = Raw(encode_json(extra))
    elif encode_json(config) == b"{}":
        notes["~config"] = TRUE
    return (
        None if config.tool_choice is UNSET else decode_tool_choice(config.tool_choice),
        config.max_output_tokens,
        config.temperature,
        config.top_p,
        () if config.stop_sequences is UNSET else tuple(config.stop_sequences),
        config.seed,
        decode_reasoning(config),
    )


# ── encoding ──────────────────────────────────────────────────────────────────────────────────────────────────


def encode_request(request: Request, log: LossLog, profile: InteractionsProfile = PROFILE) -> Encoded:
    native = request.origin == FAMILY
    if not native:
        request = with_place(with_named_signatures(_legal_settings(request, log), log), log)
    notes = SETTINGS.add_keys(request, log, family_notes(FAMILY, request.metadata)) or {}
    if not native and not {"store", "previous_interaction_id"} & notes.keys():
        # By default this API stores requests; others do not.
        notes = {"store": Raw(b"false"), **notes}
    system, messages = split_system(request.messages, log)
    encoder = MessageEncoder(log, profile, model=request.model, native=native)
    encoder.parts.keys = MediumKeys(None if native else request, log)
    steps = encoder.encode(messages)
    encoder.parts.keys.finish()
    given: Any = _native_input(notes, messages, steps) if native else steps
    if not native and not steps:
        reason = f"no message has content{log.dropped_content()}"
        raise EncodeError(path="$.messages", reason=reason, target=profile.name)
    written = encode_tools(request.tools, log, native=native) if request.tools else None
    tools = UNSET if written is None else written
    shared, within = ({}, {}) if native else settings_of_google(request, notes, log)
    config = _encode_config(request, log, notes, within, has_tools=written is not None)
    wire = SETTINGS.write(request, log, given, system, tools, config, encode_output(request, log))
    extra = {**notes, **shared} if shared else notes
    return Encoded(bytes(spliced(wire, extra)) if extra else encode_json(wire), (), profile.path)


def _native_input(notes: Extra, messages: tuple[Message, ...], steps: list[WireValue]) -> Any:
    spelled = parse_json(notes[INPUT]) if INPUT in notes else None
    if not steps:
        return [] if spelled == "empty" else UNSET
    if spelled is None:
        return steps
    if spelled == "step":
        return steps[0]
    if spelled == "string" and len(messages) == 1:
        return messages[0].text
    contents = getattr(steps[0], "content", steps)
    return contents[0] if spelled == "content" else contents


def _encode_config(request: Request, log: LossLog, notes: Extra, shared: Extra, *, has_tools: bool) -> WireValue:
    """Return the generation_config, or UNSET; `shared` are its keys that generateContent has too."""
    native = request.origin == FAMILY
    level, summaries = encode_reasoning(request, log)
    choice: Any = UNSET
    if request.tool_choice is not None and (has_tools or native):
        choice = encode_tool_choice(request, request.tool_choice, log)
    elif request.tool_choice is not None and request.tool_choice.mode == "required":
        log.drop(request, "tool_choice", "tool choice", "there are no tools to choose from")
    elif has_tools and not native and any(getattr(tool, "strict", None) for tool in request.tools):
        choice = "validated"
    config = GenerationConfig(
        request.max_output_tokens,
        list(request.stop) if request.stop else UNSET,
        request.seed,
        level,
        summaries,
        choice,
        request.temperature,
        request.top_p,
    )
    within = {**(inner_extra(notes, _CONFIG) or {}), **shared}
    if within:
        return spliced(config, within)
    return UNSET if config == _NO_CONFIG and "~config" not in notes else config


def _legal_settings(request: Request, log: LossLog) -> Request:
    """Return the request without settings of other formats that would be refused here."""
    changes = fit_limits(request, log)
    if request.candidates is not None and request.candidates != 1:
        log.drop(request, "candidates", f"{request.candidates} candidates", "this API gives one answer")
    if request.parallel_tool_calls is False:
        log.drop(request, "parallel_tool_calls", "one call at a time", "this API has no such switch")
    if request.origin not in _GOOGLES:
        # Deprecated here, and to be removed according to Google's guide; generateContent still has them.
        for name in ("temperature", "top_p"):
            if getattr(request, name) is not None:
                log.drop(request, name, name, "this API has deprecated it")
                changes[name] = None
    return log.replace(request, **changes)
