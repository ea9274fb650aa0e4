"""Responses requests, both ways."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache, partial
from typing import Any

from msgspec import UNSET, Raw, structs

from dragoman.codecs.cache_breakpoints import takes_breakpoints
from dragoman.codecs.common_losses import CACHED
from dragoman.codecs.encoded import Encoded
from dragoman.codecs.memo import NO_TOOLS, DecodedTools
from dragoman.codecs.openai_responses.messages import MessageDecoder, MessageEncoder
from dragoman.codecs.openai_responses.parts import TRUE
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
    ReasoningWire,
    RequestFields,
    ResponsesBody,
    ResponsesRequest,
    TextSettings,
    UsualResponsesBody,
)
from dragoman.codecs.reading import WireReader, WireValue, keep, splice, spliced
from dragoman.codecs.settings import BY_HAND, NO_SUCH_SETTING, Setting, Settings, collect_keys
from dragoman.codecs.shared_settings import (
    OPENAI_LABELS,
    RESPONSES_TIERS,
    announcing_json,
    fit_identifier,
    fit_labels,
    fit_others,
    fit_tier,
    mentions_json,
)
from dragoman.errors import EncodeError
from dragoman.ir import AnyTool, Message, Metadata, Request, StructuredOutput, Text
from dragoman.ir.notes import ADDED, MODELLED, WITHIN, Extra, Spelling, family_notes, inner_extra
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
ONLY_LOGPROBS = Raw(b'["message.output_text.logprobs"]')
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
        Setting("temperature"),
        Setting("top_p"),
        Setting("reasoning", read=decode_reasoning, write=encode_reasoning),
        Setting("output", "text", BY_HAND, BY_HAND, path="text.format"),
        Setting("stream"),
        Setting("user"),
        Setting("verbosity", "text.verbosity"),
        Setting("labels", "metadata", write=fit_others(partial(fit_labels, OPENAI_LABELS), FAMILY)),
        Setting("safety_identifier", write=fit_others(fit_identifier, FAMILY)),
        Setting("service_tier", write=fit_others(partial(fit_tier, RESPONSES_TIERS), FAMILY)),
        Setting("store", read=BY_HAND, write=BY_HAND),
        Setting("prompt_cache_key"),
        Setting("prompt_cache_retention"),
        Setting("prompt_cache_options"),
        Setting("moderation"),
        Setting("logprobs", "include", BY_HAND, BY_HAND),
        Setting("top_logprobs"),
        Setting("max_tool_calls"),
        Setting("modalities", None, lost=NO_SUCH_SETTING, anyway=("text",)),
        Setting("obfuscation", "stream_options.include_obfuscation"),
        Setting("candidates", None),  # this API gives one answer; more are reported by hand
        Setting("stop", None, lost="this API takes none"),
        Setting("cache", None, lost=CACHED),
    ),
    content=("instructions", "tools", "input"),
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
    if decoder.added:
        tools = DecodedTools((*tools.tools, *_added_tools(decoder.added)))
    output: StructuredOutput | None = None
    store = logprobs = None
    text = wire.text
    if not (wire.store is wire.include is text is UNSET and (tools.tools or wire.tools is UNSET)):
        extra = _decode_spelling(wire, dict((metadata or {}).get(FAMILY, {})) if extra is None else extra) or None
        output = None if text is UNSET or text.format is UNSET else decode_output(text.format)
        store = _SWITCHES.get(bytes(wire.store)) if wire.store is not UNSET else None
        logprobs = True if wire.include is not UNSET and LOGPROBS in bytes(wire.include) else None
    if wire.reasoning is not UNSET and wire.reasoning == _NO_REASONING:
        extra = {**(extra or (metadata or {}).get(FAMILY, {})), MODELLED + "reasoning": Raw(b"{}")}
    if extra is not None:
        metadata = {FAMILY: extra}
    request: Request = SETTINGS.read(wire, messages, tools.tools, metadata, output, store, logprobs)
    return decoder.noted_on(request, tools.names, tools.is_private)


def _added_tools(items: Iterable[tuple[int, Raw]]) -> Iterator[AnyTool]:
    """Yield the tools given in the input, each with a note of its JSON path."""
    for index, value in items:
        for place, tool in enumerate(decode_tools(value).tools):
            notes = {**family_notes(FAMILY, tool.metadata), ADDED: Raw(encode_json(f"$.input[{index}].tools[{place}]"))}
            yield structs.replace(tool, metadata={**(tool.metadata or {}), FAMILY: notes})


def _decode_spelling(wire: RequestFields, extra: Extra) -> Extra:
    """Note the state kept between requests, and which of several equivalent spellings the client chose."""
    store, include, text = wire.store, wire.include, wire.text
    if wire.tools is not UNSET and not decode_tools(wire.tools).tools:
        extra["tools"] = wire.tools  # an empty list, or null
    if store is not UNSET and bytes(store) not in _SWITCHES:
        extra["store"] = store
    if include is not UNSET:
        extra[MODELLED * _is_understood(include) + "include"] = include
    if text is not UNSET:
        _decode_text_settings(text, extra)
    return extra


_NO_REASONING = ReasoningWire()
_SWITCHES = {b"true": True, b"false": False}
LOGPROBS = b'"message.output_text.logprobs"'
"""The entry that `include` must have for an answer with logprobs."""
_UNDERSTOOD = {"reasoning.encrypted_content", "message.output_text.logprobs"}


def _is_understood(include: Raw) -> bool:
    """Whether all entries of `include` are given unasked by other APIs, or are expressed by a setting."""
    included = [] if include == ENCRYPTED else parse_json(include)
    return included is None or (
        isinstance(included, list) and all(isinstance(entry, str) and entry in _UNDERSTOOD for entry in included)
    )


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
    extra = family_notes(FAMILY, request.metadata)
    if not native:
        request = _as_the_api_takes_it(request, log)
        if not (request.temperature is request.top_p is request.logprobs is request.top_logprobs is None):
            request = _without_sampling(request, log)
    store, include = _state(request, extra, native=native)
    if extra and not native:
        extra = {key: value for key, value in extra.items() if key.removeprefix(MODELLED) not in ("store", "include")}
    extra = SETTINGS.add_keys(request, log, extra)
    instructions, messages = _split_instructions(request, native=native)
    marks = not native and takes_breakpoints(request.model or "")
    items: Any = MessageEncoder(log, native=native, marks=marks).encode(messages)
    if "~input" in extra and native:
        items = messages[0].text if extra["~input"] == STRING and len(messages) == 1 else items
    elif not items:
        if not native and not _has_state(extra):
            raise EncodeError(path="$.messages", reason="no message has content that this API can hold", target=NAME)
        items = UNSET
    tools = (encode_tools(request.tools, log, native=native) if request.tools else None) or UNSET
    is_choosable = tools is not UNSET or native
    choice = request.tool_choice if is_choosable else None
    wire = SETTINGS.write(
        request,
        log,
        instructions,
        tools,
        items,
        UNSET if choice is None else encode_tool_choice(choice, request.tools),
        request.parallel_tool_calls if is_choosable else None,
        UNSET if request.output is None and not extra else _encode_text_settings(request, extra, log),
        store,
        include,
    )
    return Encoded(encode_json(wire) if not extra else splice(wire, extra), (), PATH)


def _has_state(extra: Extra) -> bool:
    return not extra.keys().isdisjoint(("previous_response_id", "conversation", "prompt"))


@lru_cache(maxsize=256)
def _reasons(model: str | None) -> bool:
    return REASONING_MODELS.match(model or "") is not None


def _state(request: Request, extra: Extra, *, native: bool) -> tuple[Any, Any]:
    """Return `store` and `include`: unlike others, this API by default stores requests and keeps its reasoning."""
    store, logprobs = request.store, request.logprobs
    if native:
        is_asked = logprobs and not ("include" in extra or MODELLED + "include" in extra)
        return UNSET if store is None else store, ONLY_LOGPROBS if is_asked else UNSET
    if store is None and (_has_state(extra) or "store" in extra):
        return extra.get("store", UNSET), extra.get("include", ONLY_LOGPROBS if logprobs else UNSET)
    include = extra.get("include", ENCRYPTED if _reasons(request.model) else UNSET)
    if logprobs:
        include = (
            ONLY_LOGPROBS if include is UNSET else Raw(encode_json([*parse_json(include), *parse_json(ONLY_LOGPROBS)]))
        )
    return NOT_STORED if store is None else store, include


def _as_the_api_takes_it(request: Request, log: LossLog) -> Request:
    if request.candidates is not None and request.candidates != 1:
        log.drop(request, "candidates", f"{request.candidates} candidates", "this API gives one answer")
    if request.output is not None and request.output.kind == "json":
        request = announcing_json(request, log)
    return request


def _without_sampling(request: Request, log: LossLog) -> Request:
    """Return the request without settings that a model refuses while it reasons."""
    if not _reasons(request.model) or (is_off(request.reasoning) and "none" in efforts_of(request.model or "")):
        return request
    refused = [name for name in SAMPLING if getattr(request, name) is not None]
    for name in refused:
        log.drop(request, name, name, "this model refuses it while it reasons")
    return log.replace(request, **dict.fromkeys(refused))


def _split_instructions(request: Request, *, native: bool) -> tuple[str | None, tuple[Message, ...]]:
    """Return the text for `instructions` and the other messages: the text came from there or is another family's."""
    messages = request.messages
    first = messages[0] if messages else None
    if first is None or first.role != "system":
        return None, messages
    noted = family_notes(FAMILY, first.metadata).keys() == {"~instructions"}
    if native:
        return (first.text, messages[1:]) if noted else (None, messages)
    if len(messages) == 1 or messages[1].role == "system" or not _is_plain(first):
        return None, messages
    if request.output is not None and request.output.kind == "json" and not mentions_json(messages[1:]):
        return None, messages  # the API looks for the word in messages only
    return first.text, messages[1:]


def _is_plain(message: Message) -> bool:
    content = message.content_held
    if type(content) is str:
        return bool(content)
    parts = message.parts
    if len(parts) != 1 or type(parts[0]) is not Text:
        return False
    text = parts[0]
    return bool(text.text) and text.cache is None and text.signature is None and not text.citations


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
