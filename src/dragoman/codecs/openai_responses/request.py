"""Responses requests, both ways."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from msgspec import UNSET, Raw, structs

from dragoman.codecs.encoded import Encoded
from dragoman.codecs.memo import NO_TOOLS
from dragoman.codecs.openai_responses.messages import MessageDecoder, MessageEncoder
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
from dragoman.codecs.openai_responses.wire import (
    PASSED_ON,
    USUALLY_PASSED_ON,
    RequestFields,
    ResponsesBody,
    ResponsesRequest,
    TextSettings,
    UsualResponsesBody,
)
from dragoman.codecs.reading import WireReader, WireValue, keep, splice, spliced
from dragoman.codecs.settings import BY_HAND, Setting, Settings, collect_keys
from dragoman.errors import EncodeError
from dragoman.ir import Message, Metadata, Request, StructuredOutput, Text
from dragoman.ir.messages import content_held
from dragoman.ir.notes import MODELLED, WITHIN, Extra, Spelling, inner_extra
from dragoman.ir.values import encode_json, parse_json
from dragoman.losses import LossLog

PATH = "/responses"
NAME = "openai-responses"
SOURCE = "openai-responses request"

_reader: WireReader[RequestFields] = WireReader(UsualResponsesBody, SOURCE, wider=ResponsesBody)
_usual_keys = collect_keys(UsualResponsesBody, USUALLY_PASSED_ON)
_keys = collect_keys(ResponsesBody, PASSED_ON)
_text_keys = collect_keys(TextSettings, ("verbosity",))

NOT_STORED = Raw(b"false")
ENCRYPTED = Raw(b'["reasoning.encrypted_content"]')
STRING = Raw(b'"string"')
EMPTY = Raw(b'"empty"')
ONLY_STRING = Spelling({FAMILY: {"~input": STRING}})


def _write_maximum(maximum: int, request: Request, log: LossLog) -> int:
    if maximum >= LEAST_OUTPUT_TOKENS or request.origin == FAMILY:
        return maximum
    why = f"this API takes no fewer than {LEAST_OUTPUT_TOKENS}"
    log.degrade(request, "max_output_tokens", f"a limit of {maximum} tokens", why)
    return LEAST_OUTPUT_TOKENS


SETTINGS = Settings(
    ResponsesRequest,
    FAMILY,
    (
        Setting("model"),
        Setting("tool_choice", read=decode_tool_choice, write=BY_HAND),
        Setting("parallel_tool_calls", write=BY_HAND),
        Setting("max_output_tokens", write=_write_maximum),
        Setting("temperature", write=BY_HAND),
        Setting("top_p", write=BY_HAND),
        Setting("reasoning", read=decode_reasoning, write=encode_reasoning),
        Setting("output", "text", BY_HAND, BY_HAND, path="text.format"),
        Setting("stream"),
        Setting("user"),
        Setting("verbosity", "text.verbosity"),
        Setting("candidates", None),  # one answer is what this API gives; more are reported by hand
        Setting("stop", None, lost="this API takes none"),
        Setting("cache", None, lost="prompts are cached automatically by this API"),
    ),
    content=("instructions", "tools", "store", "include", "input"),
)

# ── decoding ──────────────────────────────────────────────────────────────────────────────────────────────────


def decode_request(body: bytes) -> Request:
    wire: Any = _reader.read(body)
    extra = _keys(wire) if type(wire) is ResponsesBody else _usual_keys(wire)
    given = wire.input
    metadata: Metadata | None = None
    decoder = MessageDecoder()
    if wire.instructions is not None:
        decoder.add_instructions(wire.instructions)
    if type(given) is str:
        decoder.add_text(given)
        if extra is None:
            metadata = ONLY_STRING
        else:
            extra["~input"] = STRING
    elif given is not UNSET:
        if not given:
            extra = {**(extra or {}), "~input": EMPTY}
        decoder.add_items(given)
    messages = decoder.finished()
    tools = NO_TOOLS if wire.tools is UNSET else decode_tools(wire.tools)
    output: StructuredOutput | None = None
    text = wire.text
    if not (wire.store is wire.include is text is UNSET and (tools.tools or wire.tools is UNSET)):
        extra = _decode_spelling(wire, dict((metadata or {}).get(FAMILY, {})) if extra is None else extra) or None
        output = None if text is UNSET or text.format is UNSET else decode_output(text.format)
    if extra is not None:
        metadata = {FAMILY: extra}
    request: Request = SETTINGS.read(wire, messages, tools.tools, metadata, output)
    return decoder.noted_on(request, tools.names, tools.is_private)


def _decode_spelling(wire: RequestFields, extra: Extra) -> Extra:
    """What is kept between requests, and which of several ways of saying the same thing the client chose."""
    store, include, text = wire.store, wire.include, wire.text
    if wire.tools is not UNSET and not decode_tools(wire.tools).tools:
        extra["tools"] = wire.tools  # an empty list, or null
    if store is not UNSET:
        # Not keeping anything is what other APIs do anyway, and no loss there.
        extra["store" if store == TRUE else MODELLED + "store"] = store
    if include is not UNSET:
        only_reasoning = include == ENCRYPTED or parse_json(include) in (None, [], ["reasoning.encrypted_content"])
        extra[MODELLED * only_reasoning + "include"] = include
    if text is not UNSET:
        _decode_text_settings(text, extra)
    return extra


def _decode_text_settings(text: TextSettings, extra: Extra) -> None:
    keys = _text_keys(text)
    if keys is not None:
        extra.update((keep(FAMILY, UNSET, text=keys) or {})[FAMILY])
    if text.format is UNSET:
        extra["~text"] = TRUE
    elif decode_output(text.format) is None:
        extra["~format"] = spliced(text.format, text.format.extra or {})
        if text.format.extra is not UNSET:
            extra[WITHIN + "text.format"] = Raw(encode_json(text.format.extra))


# ── encoding ──────────────────────────────────────────────────────────────────────────────────────────────────


def encode_request(request: Request, log: LossLog) -> Encoded:
    native = request.origin == FAMILY
    extra = SETTINGS.add_keys(request, log, own(request.metadata))
    store = include = UNSET
    temperature, top_p = request.temperature, request.top_p
    if not native:
        request = _as_the_api_takes_it(request, log)
        if extra:
            extra = _explicit(request, extra)
        else:
            store, include = _state(request)
        if not (temperature is top_p is None):
            temperature, top_p = _sampling(request, log)
    instructions, messages = _split_instructions(request, native=native)
    items: Any = MessageEncoder(log, native).encode(messages)
    if "~input" in extra and native:
        items = messages[0].text if extra["~input"] == STRING and len(messages) == 1 else items
    elif not items:
        if not native and not _has_state(extra):
            raise EncodeError(path="$.input", reason="no message says anything this API can hold", target=NAME)
        items = UNSET
    tools = (encode_tools(request.tools, log, native=native) if request.tools else None) or UNSET
    is_choosable = tools is not UNSET or native
    choice = request.tool_choice if is_choosable else None
    wire = SETTINGS.write(
        request,
        log,
        instructions,
        tools,
        store,
        include,
        items,
        UNSET if choice is None else encode_tool_choice(choice, request.tools),
        request.parallel_tool_calls if is_choosable else None,
        temperature,
        top_p,
        UNSET if request.output is None and not extra else _encode_text_settings(request, extra, log),
    )
    return Encoded(encode_json(wire) if not extra else splice(wire, extra), (), PATH)


def _has_state(extra: Extra) -> bool:
    return any(key in extra for key in ("previous_response_id", "conversation", "prompt"))


def _explicit(request: Request, extra: Extra) -> Extra:
    """The keys of a request of another family that says something to this one, and what this API must be told."""
    if _has_state(extra) or "store" in extra:
        return extra
    store, include = _state(request)
    said: Extra = {"store": store} if include is UNSET else {"store": store, "include": include}
    return {**said, **{key: held for key, held in extra.items() if key.removeprefix(MODELLED) not in said}}


@lru_cache(maxsize=256)
def _reasons(model: str | None) -> bool:
    return REASONING_MODELS.match(model or "") is not None


def _state(request: Request) -> tuple[Any, Any]:
    """`store` and `include`: by default this API stores what it is sent and keeps its reasoning; no other does."""
    return NOT_STORED, ENCRYPTED if _reasons(request.model) else UNSET


def _as_the_api_takes_it(request: Request, log: LossLog) -> Request:
    if request.candidates is not None and request.candidates != 1:
        log.drop(request, "candidates", f"{request.candidates} candidates", "this API gives one answer")
    if request.output is not None and request.output.kind == "json":
        request = _announcing_json(request, log)
    return request


def _announcing_json(request: Request, log: LossLog) -> Request:
    """JSON mode is refused unless the conversation says the word; no schema is needed for it elsewhere."""
    if _says_json(request.messages):
        return request
    # "Response input messages must contain the word 'json' in some form"
    log.invent(request, "output", "the instruction to answer in JSON", "this API wants the word JSON in a message")
    announced = structs.replace(request, messages=(Message("system", "Answer in JSON."), *request.messages))
    log.replaced(announced, request)
    return announced


def _sampling(request: Request, log: LossLog) -> tuple[float | None, float | None]:
    """Temperature and top_p, for a model that takes them."""
    if not _reasons(request.model) or _is_switched_off(request):
        return request.temperature, request.top_p
    for name in SAMPLING:
        if getattr(request, name) is not None:
            log.drop(request, name, name, "this model refuses it while it reasons")
    return None, None


def _is_switched_off(request: Request) -> bool:
    return is_off(request.reasoning) and "none" in efforts_of(request.model or "")


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
