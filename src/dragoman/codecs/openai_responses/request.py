"""Responses requests, both ways."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, Raw, structs

from dragoman.codecs.encoded import Encoded
from dragoman.codecs.openai_responses.items import INSTRUCTIONS
from dragoman.codecs.openai_responses.messages import MessageEncoder, decode_items
from dragoman.codecs.openai_responses.parts import TRUE, own
from dragoman.codecs.openai_responses.profile import (
    FAMILY,
    LEAST_OUTPUT_TOKENS,
    REASONING_MODELS,
    SAMPLING,
    efforts_of,
)
from dragoman.codecs.openai_responses.thinking import decode_reasoning, encode_reasoning, is_off
from dragoman.codecs.openai_responses.tools import (
    decode_output,
    decode_tool_choice,
    decode_tools,
    encode_output,
    encode_tool_choice,
    encode_tools,
)
from dragoman.codecs.openai_responses.wire import LooseRequest, ResponsesRequest, Settings, TextSettings
from dragoman.codecs.reading import WireReader, WireValue, check_text, keep, spliced
from dragoman.errors import EncodeError
from dragoman.ir import Message, Request, Text
from dragoman.ir.messages import content_held
from dragoman.ir.notes import MODELLED, WITHIN, Extra, inner_extra
from dragoman.ir.values import encode_json, parse_json
from dragoman.losses import LossLog

PATH = "/responses"

_strict = msgspec.json.Decoder(ResponsesRequest)
SOURCE = "openai-responses request"
_loose = WireReader(LooseRequest, SOURCE)

NOT_STORED = Raw(b"false")
ENCRYPTED = Raw(b'["reasoning.encrypted_content"]')
STRING = Raw(b'"string"')

# ── decoding ──────────────────────────────────────────────────────────────────────────────────────────────────


def decode_request(body: bytes) -> Request:
    wire: ResponsesRequest | LooseRequest
    check_text(body, SOURCE)
    try:
        wire = _strict.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        wire = _loose.read(body)
    given: Any = wire.input
    text = wire.text
    tools = () if wire.tools is UNSET else decode_tools(wire.tools)
    extra: Extra = {} if wire.extra is UNSET else dict(wire.extra)
    messages: tuple[Message, ...] = ()
    if type(given) is str:
        messages = (Message("user", given),)
        extra["~input"] = STRING
    elif given is not UNSET:
        messages = decode_items(given)
        if not messages:
            extra["~input"] = Raw(b'"empty"')
    if wire.instructions is not None:
        messages = (Message("system", wire.instructions, None, INSTRUCTIONS), *messages)
    if wire.tools is not UNSET and not tools:
        extra["tools"] = wire.tools  # none, said aloud
    _decode_state(wire, extra)
    if text is not UNSET:
        _decode_text_settings(text, extra)
    return Request(
        wire.model,
        messages,
        tools,
        None if wire.tool_choice is UNSET else decode_tool_choice(wire.tool_choice),
        wire.parallel_tool_calls,
        wire.max_output_tokens,
        wire.temperature,
        wire.top_p,
        reasoning=None if wire.reasoning is UNSET else decode_reasoning(wire.reasoning),
        output=None if text is UNSET or text.format is UNSET else decode_output(text.format),
        stream=wire.stream,
        user=wire.user,
        metadata={FAMILY: extra} if extra else None,
        origin=FAMILY,
    )


def _decode_state(wire: Settings, extra: Extra) -> None:
    """What is kept between requests. Not keeping it is what other APIs do anyway, and no loss there."""
    if wire.store is not UNSET:
        extra[("" if bytes(wire.store) == b"true" else MODELLED) + "store"] = wire.store
    if wire.include is not UNSET:
        only_reasoning = parse_json(wire.include) in (None, [], ["reasoning.encrypted_content"])
        extra[MODELLED * only_reasoning + "include"] = wire.include


def _decode_text_settings(text: TextSettings, extra: Extra) -> None:
    within = (keep(FAMILY, UNSET, text=text.extra) or {FAMILY: {}})[FAMILY]
    extra.update(within)
    if text.format is UNSET:
        extra["~text"] = TRUE
    elif decode_output(text.format) is None:
        extra["~format"] = spliced(text.format, text.format.extra or {})
        if text.format.extra is not UNSET:
            extra[WITHIN + "text.format"] = Raw(encode_json(text.format.extra))


# ── encoding ──────────────────────────────────────────────────────────────────────────────────────────────────


def encode_request(request: Request, log: LossLog) -> Encoded:
    native = request.origin == FAMILY
    extra = own(request.metadata)
    if not native:
        request = _fitting(request, log)
        extra = _explicit(request, extra)
    instructions, messages = _split_instructions(request, native=native)
    encoder = MessageEncoder(log, native=native)
    items: Any = encoder.encode(messages)
    if "~input" in extra and native:
        spelled = parse_json(extra["~input"])
        items = messages[0].text if spelled == "string" and len(messages) == 1 else items
    elif not items:
        if not native and not _has_state(extra):
            raise EncodeError(path="$.input", reason="no message says anything this API can hold", target=NAME)
        items = UNSET
    tools: Any = encode_tools(request.tools, log, native=native) if request.tools else None
    choice = request.tool_choice if tools or native else None
    wire = ResponsesRequest(
        request.model,
        instructions,
        tools or UNSET,
        UNSET if choice is None else encode_tool_choice(choice, request.tools),
        request.parallel_tool_calls if tools or native else None,
        request.max_output_tokens,
        request.temperature,
        request.top_p,
        UNSET if request.reasoning is None else encode_reasoning(request.reasoning, request, log),
        _encode_text_settings(request, extra, log),
        request.stream,
        request.user,
        input=items,
    )
    return Encoded(encode_json(wire) if not extra else bytes(spliced(wire, extra)), (), PATH)


NAME = "openai-responses"


def _has_state(extra: Extra) -> bool:
    return any(key in extra for key in ("previous_response_id", "conversation", "prompt"))


def _explicit(request: Request, extra: Extra) -> Extra:
    """Defaults of this API that no other has: it stores what it is sent, and keeps its reasoning to itself."""
    if _has_state(extra) or "store" in extra:
        return extra
    said: Extra = {"store": NOT_STORED}
    if REASONING_MODELS.match(request.model or "") is not None:
        said["include"] = ENCRYPTED
    return {**said, **{key: held for key, held in extra.items() if key.removeprefix(MODELLED) not in said}}


_UNKNOWN_SETTINGS = ("top_k", "seed", "presence_penalty", "frequency_penalty")


def _fitting(request: Request, log: LossLog) -> Request:
    """A request of another family without what this API has no field for."""
    for name in _UNKNOWN_SETTINGS:
        if getattr(request, name) is not None:
            log.drop(request, name, name, "this API has no such setting")
    if request.stop:
        log.drop(request, "stop", "stop sequences", "this API takes none")
    if request.candidates not in {None, 1}:
        log.drop(request, "candidates", f"{request.candidates} candidates", "this API gives one answer")
    if request.cache is not None:
        log.drop(request, "cache", "automatic cache mark", "prompts are cached automatically by this API")
    changes: dict[str, Any] = {}
    maximum = request.max_output_tokens
    if maximum is not None and maximum < LEAST_OUTPUT_TOKENS:
        why = f"this API takes no fewer than {LEAST_OUTPUT_TOKENS}"
        log.degrade(request, "max_output_tokens", f"a limit of {maximum} tokens", why)
        changes["max_output_tokens"] = LEAST_OUTPUT_TOKENS
    if REASONING_MODELS.match(request.model or "") is not None and not _is_switched_off(request):
        for name in SAMPLING:
            if getattr(request, name) is not None:
                log.drop(request, name, name, "this model refuses it while it reasons")
                changes[name] = None
    if request.output is not None and request.output.kind == "json" and not _says_json(request.messages):
        # "Response input messages must contain the word 'json' in some form"
        log.invent(request, "output", "the instruction to answer in JSON", "this API wants the word JSON in a message")
        changes["messages"] = (Message("system", "Answer in JSON."), *request.messages)
    return _replaced(request, changes, log) if changes else request


def _is_switched_off(request: Request) -> bool:
    return is_off(request.reasoning) and "none" in efforts_of(request.model or "")


def _replaced(request: Request, changes: dict[str, Any], log: LossLog) -> Request:
    changed = structs.replace(request, **changes)
    log.replaced(changed, request)
    return changed


def _split_instructions(request: Request, *, native: bool) -> tuple[str | None, tuple[Message, ...]]:
    """The system text that goes into its own field: what came from there, or the opening one of another family."""
    messages = request.messages
    first = messages[0] if messages else None
    if first is None or first.role != "system":
        return None, messages
    noted = own(first.metadata).keys() == {"~instructions"}
    if native:
        return (first.text, messages[1:]) if noted else (None, messages)
    if first.name is not None or len(messages) == 1 or messages[1].role == "system" or not _is_plain(first):
        return None, messages
    if request.output is not None and request.output.kind == "json" and not _says_json(messages[1:]):
        return None, messages  # the API looks for the word in messages only
    return first.text, messages[1:]


def _is_plain(message: Message) -> bool:
    content = content_held(message)
    if type(content) is str:
        return bool(content)
    parts = message.parts
    return len(parts) == 1 and type(parts[0]) is Text and parts[0].cache is None and bool(parts[0].text)


def _says_json(messages: tuple[Message, ...]) -> bool:
    return any("json" in message.text.lower() for message in messages)


def _encode_text_settings(request: Request, extra: Extra, log: LossLog) -> WireValue:
    output = request.output
    if "~format" in extra:
        form: Any = extra["~format"]
    else:
        form = UNSET if output is None else encode_output(output, request, log)
    within = inner_extra(extra, "text")
    if form is UNSET and within is None and "~text" not in extra:
        return UNSET
    settings = TextSettings(form)
    return settings if within is None else spliced(settings, within)
