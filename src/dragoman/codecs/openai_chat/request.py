"""Chat Completions requests, both ways."""

from __future__ import annotations

from msgspec import UNSET, Raw, structs

from dragoman.codecs.encoded import Encoded
from dragoman.codecs.memo import NO_TOOLS, DecodedTools
from dragoman.codecs.openai_chat.compatible import fit
from dragoman.codecs.openai_chat.hosted_tools import HOSTED
from dragoman.codecs.openai_chat.messages import FAMILY, OLD_MAXIMUM, ONLY_OLD_MAXIMUM, MessageDecoder, MessageEncoder
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
from dragoman.codecs.openai_chat.wire import PASSED_ON, USUALLY_PASSED_ON, ChatBody, ChatRequest, UsualChatBody
from dragoman.codecs.reading import WireReader, WireValue, splice, spliced
from dragoman.codecs.settings import BY_HAND, Setting, Settings, collect_keys
from dragoman.errors import EncodeError
from dragoman.ir import Message, Metadata, Request
from dragoman.ir.notes import MODELLED, Extra
from dragoman.ir.values import encode_json, parse_json
from dragoman.losses import LossLog

_reader = WireReader(UsualChatBody, "openai-chat request", wider=ChatBody)
_usual_keys = collect_keys(UsualChatBody, USUALLY_PASSED_ON)
_keys = collect_keys(ChatBody, PASSED_ON)


def _read_stop(stop: str | list[str]) -> tuple[str, ...]:
    return (stop,) if isinstance(stop, str) else tuple(stop)


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
        Setting("stop", read=_read_stop, write=BY_HAND),
        Setting("seed", read=BY_HAND, write=BY_HAND),
        Setting("presence_penalty"),
        Setting("frequency_penalty"),
        Setting("candidates", "n"),
        Setting("reasoning", "reasoning_effort", decode_reasoning, BY_HAND),
        Setting("output", "response_format", BY_HAND, encode_output),
        Setting("stream"),
        Setting("user"),
        Setting("verbosity"),
        Setting("cache", None, lost="prompts are cached automatically by this API"),
    ),
    content=("messages", "tools", "max_tokens"),
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
    if not (wire.stop is wire.stream_options is wire.response_format is UNSET and (tools.tools or wire.tools is UNSET)):
        spelled = {} if metadata is None else dict(metadata[FAMILY])
        extra = _decode_spelling(wire, extra or spelled, has_output=output is not None)
        if wire.tools is not UNSET and not tools.tools:
            extra["tools"] = wire.tools
        extra = extra or None
    if extra is not None:
        if type(wire) is ChatBody and wire.random_seed is not None and seed is None:
            seed = _decode_seed(wire.random_seed, extra)
        metadata = {FAMILY: extra}
    request: Request = SETTINGS.read(wire, messages, tools.tools, metadata, maximum, seed, output)
    if decoder.tagged:
        return request  # media returned to their results: what was noted of the wire's messages does not hold
    return decoder.noted_on(request, tools.names, tools.is_private)


SEED = "random_seed"
"""Mistral's word for it."""

_ONLY_USAGE = frozenset({b'{"include_usage":true}', b'{"include_usage": true}', b"null"})


def _decode_seed(held: Raw, extra: Extra) -> int | None:
    seed = parse_json(held)
    if type(seed) is not int:
        return None
    extra[MODELLED + SEED] = extra.pop(SEED)
    return seed


def _decode_spelling(wire: ChatRequest, extra: Extra, *, has_output: bool) -> Extra:
    """Which of several ways of saying the same thing the client chose."""
    stop, options, output = wire.stop, wire.stream_options, wire.response_format
    if isinstance(stop, str):
        extra["~stop"] = Raw(b'"string"')
    elif stop == []:
        extra["stop"] = Raw(b"[]")
    if options is not UNSET:
        extra[MODELLED * _asks_for_usage_only(options) + "stream_options"] = options
    if output is not UNSET and not has_output:
        extra[MODELLED + "response_format"] = spliced(output, {} if output.extra is UNSET else output.extra)
    return extra


def _asks_for_usage_only(options: Raw) -> bool:
    if bytes(options) in _ONLY_USAGE:
        return True
    said = parse_json(options)
    return said is None or (isinstance(said, dict) and said.keys() <= {"include_usage"})


# ── encoding ──────────────────────────────────────────────────────────────────────────────────────────────────


def encode_request(request: Request, log: LossLog, profile: ChatProfile = PROFILE) -> Encoded:
    if profile.legalises_own_family:
        request = fit(request, profile, log, SETTINGS.keys_beside)
    metadata = request.metadata
    extra: Extra | None = SETTINGS.add_keys(request, log, None if metadata is None else metadata.get(FAMILY))
    native = request.origin == FAMILY and not profile.legalises_own_family
    effort = UNSET if request.reasoning is None else encode_reasoning(request.reasoning, request, log)
    if not native:
        request = _as_the_model_takes_it(request, effort, log)
        if extra is not None and MODELLED + SEED in extra:
            extra = {key: held for key, held in extra.items() if key != MODELLED + SEED}
    old_maximum = (extra is not None and "~max_tokens" in extra) or profile.maximum == "max_tokens"
    maximum, stop, seed = request.max_output_tokens, request.stop, request.seed
    tools: WireValue = UNSET
    if request.tools:
        held, settings = encode_tools(request.tools, log, native=request.origin == FAMILY, profile=profile)
        tools = UNSET if held is None else held
        if settings:
            extra = {**(extra or {}), **settings}
    # The API refuses both switches when no tool is left.
    is_choosable = tools is not UNSET or native
    choice = request.tool_choice if is_choosable else None
    messages = MessageEncoder(log, profile, request.model or "", native).encode(request.messages)
    if not messages and not native:
        raise EncodeError(path="$.messages", reason="no message says anything this API can hold", target=profile.name)
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
