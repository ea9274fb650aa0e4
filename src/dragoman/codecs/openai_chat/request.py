"""Chat Completions requests, both ways."""

from __future__ import annotations

from msgspec import UNSET, Raw, structs

from dragoman.codecs.encoded import Encoded
from dragoman.codecs.openai_chat.compatible import fit
from dragoman.codecs.openai_chat.messages import FAMILY, OLD_MAXIMUM, ONLY_OLD_MAXIMUM, MessageEncoder, decode_messages
from dragoman.codecs.openai_chat.profile import PATH, PROFILE, ChatProfile
from dragoman.codecs.openai_chat.thinking import decode_reasoning, encode_reasoning, without_sampling
from dragoman.codecs.openai_chat.tools import (
    decode_output,
    decode_tool_choice,
    decode_tools,
    encode_output,
    encode_tool_choice,
    encode_tools,
)
from dragoman.codecs.openai_chat.wire import ChatRequest
from dragoman.codecs.reading import WireReader, WireValue, spliced
from dragoman.errors import EncodeError
from dragoman.ir import Message, Request
from dragoman.ir.notes import MODELLED, Extra
from dragoman.ir.values import encode_json, parse_json
from dragoman.losses import LossLog

_reader = WireReader(ChatRequest, "openai-chat request")


def decode_request(body: bytes) -> Request:
    wire = _reader.read(body)
    tools = () if wire.tools is UNSET else decode_tools(wire.tools)
    stop = wire.stop
    output = wire.response_format
    maximum = wire.max_completion_tokens
    extra = wire.extra
    if wire.max_tokens is not None:
        if maximum is None:
            maximum = wire.max_tokens
            extra = OLD_MAXIMUM if extra is UNSET else {**extra, **OLD_MAXIMUM}
        else:
            extra = {**(extra or {}), "max_tokens": Raw(encode_json(wire.max_tokens))}
    if not (stop is wire.stream_options is output is UNSET and (tools or wire.tools is UNSET)):
        extra = _decode_spelling(wire, {} if extra is UNSET else dict(extra))
    seed = wire.seed
    if seed is None and extra is not UNSET and SEED in extra:
        seed, extra = _decode_seed(extra)
    return Request(
        wire.model,
        decode_messages(wire.messages),
        tools,
        None if wire.tool_choice is UNSET else decode_tool_choice(wire.tool_choice),
        wire.parallel_tool_calls,
        maximum,
        wire.temperature,
        wire.top_p,
        None,
        () if stop is UNSET else (stop,) if isinstance(stop, str) else tuple(stop),
        seed,
        wire.presence_penalty,
        wire.frequency_penalty,
        wire.n,
        None if wire.reasoning_effort is UNSET else decode_reasoning(wire.reasoning_effort),
        None if output is UNSET else decode_output(output),
        wire.stream,
        wire.user,
        None,
        None if not extra else ONLY_OLD_MAXIMUM if extra is OLD_MAXIMUM else {FAMILY: extra},
        FAMILY,
    )


SEED = "random_seed"
"""Mistral's word for it."""


def _decode_seed(extra: Extra) -> tuple[int | None, Extra]:
    seed = parse_json(extra[SEED])
    if type(seed) is not int:
        return None, extra
    return seed, {key if key != SEED else MODELLED + SEED: held for key, held in extra.items()}


def _decode_spelling(wire: ChatRequest, extra: Extra) -> Extra:
    """Which of several ways of saying the same thing the client chose."""
    if isinstance(wire.stop, str):
        extra["~stop"] = Raw(b'"string"')
    if wire.stream_options is not UNSET:
        options = parse_json(wire.stream_options)
        only_usage = options is None or (isinstance(options, dict) and options.keys() <= {"include_usage"})
        extra[MODELLED * only_usage + "stream_options"] = wire.stream_options
    if wire.response_format is not UNSET and decode_output(wire.response_format) is None:
        extra[MODELLED + "response_format"] = spliced(
            wire.response_format, {} if wire.response_format.extra is UNSET else wire.response_format.extra
        )
    if wire.tools is not UNSET and not decode_tools(wire.tools):
        extra["tools"] = wire.tools
    if wire.stop == []:
        extra["stop"] = Raw(b"[]")
    return extra


def encode_request(request: Request, log: LossLog, profile: ChatProfile = PROFILE) -> Encoded:
    request = fit(request, profile, log)
    metadata = request.metadata
    extra: Extra | None = None if metadata is None else metadata.get(FAMILY)
    native = request.origin == FAMILY and not profile.legalises_own_family
    effort = UNSET if request.reasoning is None else encode_reasoning(request.reasoning, request, log)
    if not native:
        request = _as_the_model_takes_it(request, effort, log)
        if extra is not None and MODELLED + SEED in extra:
            extra = {key: held for key, held in extra.items() if key != MODELLED + SEED}
    maximum = request.max_output_tokens
    old_maximum = (extra is not None and "~max_tokens" in extra) or profile.maximum == "max_tokens"
    stop: WireValue = request.stop
    if stop and extra is not None and "~stop" in extra:
        stop = stop[0]
    _report_missing(request, log)
    tools: WireValue = (
        encode_tools(request.tools, log, native=request.origin == FAMILY, loose=not profile.strict_schemas)
        if request.tools
        else None
    )
    # The API refuses both switches when no tool is left.
    choice = request.tool_choice if tools or native else None
    messages = MessageEncoder(log, native=native, model=request.model, profile=profile).encode(request.messages)
    if not messages and not native:
        raise EncodeError(path="$.messages", reason="no message says anything this API can hold", target=profile.name)
    wire = ChatRequest(
        messages,
        request.model,
        tools or UNSET,
        UNSET if choice is None else encode_tool_choice(choice, request.tools, profile.required),
        request.parallel_tool_calls if tools or native else None,
        None if old_maximum else maximum,
        maximum if old_maximum else None,
        request.temperature,
        request.top_p,
        stop or UNSET,
        request.seed if profile.seed == "seed" and not (extra and MODELLED + SEED in extra) else None,
        request.presence_penalty,
        request.frequency_penalty,
        request.candidates,
        effort,
        UNSET if request.output is None else encode_output(request.output, request, log),
        request.stream,
        UNSET,
        request.user,
    )
    if request.seed is not None and profile.seed != "seed":
        extra = {**(extra or {}), profile.seed: Raw(encode_json(request.seed))}
    return Encoded(encode_json(wire) if extra is None else bytes(spliced(wire, extra)), (), PATH)


def _report_missing(request: Request, log: LossLog) -> None:
    if request.top_k is not None:
        log.drop(request, "top_k", "top_k", "this API has no such setting")
    if request.cache is not None:
        log.drop(request, "cache", "automatic cache mark", "prompts are cached automatically by this API")


def _as_the_model_takes_it(request: Request, effort: WireValue, log: LossLog) -> Request:
    request = without_sampling(request, effort, log)
    if request.output is not None and request.output.kind == "json":
        request = _announcing_json(request, log)
    return request


def _announcing_json(request: Request, log: LossLog) -> Request:
    """JSON mode is refused unless the conversation says the word; no schema is needed for it elsewhere."""
    if any("json" in message.text.lower() for message in request.messages):
        return request
    log.invent(request, "output", "the instruction to answer in JSON", "this API wants the word JSON in a message")
    announced = structs.replace(request, messages=(Message("system", "Answer in JSON."), *request.messages))
    log.replaced(announced, request)
    return announced
