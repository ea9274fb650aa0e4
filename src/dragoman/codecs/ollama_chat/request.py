"""Chat requests, both ways."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Raw

from dragoman.codecs.common_losses import CACHED
from dragoman.codecs.encoded import Encoded
from dragoman.codecs.memo import NO_TOOLS
from dragoman.codecs.ollama_chat.messages import MessageDecoder, MessageEncoder
from dragoman.codecs.ollama_chat.profile import FAMILY, PATH
from dragoman.codecs.ollama_chat.thinking import decode_reasoning, encode_reasoning
from dragoman.codecs.ollama_chat.tools import (
    decode_output,
    decode_tools,
    encode_output,
    encode_tool_choice,
    encode_tools,
)
from dragoman.codecs.ollama_chat.wire import (
    ALIASES,
    PASSED_ON,
    PASSED_ON_OPTIONS,
    ChatBody,
    ChatRequest,
    Options,
    OptionsBody,
)
from dragoman.codecs.reading import WireReader, WireValue, splice, spliced
from dragoman.codecs.settings import BY_HAND, NO_SUCH_SETTING, Setting, Settings, collect_keys
from dragoman.codecs.shared_settings import number_or_none
from dragoman.errors import EncodeError
from dragoman.ir import Request
from dragoman.ir.notes import MODELLED, WITHIN, Extra, inner_extra
from dragoman.ir.values import encode_json, parse_json
from dragoman.losses import LossLog

_reader = WireReader(ChatBody, "ollama-chat request", aliases=ALIASES)
_keys = collect_keys(ChatBody, PASSED_ON)
_option_keys = collect_keys(OptionsBody, PASSED_ON_OPTIONS)

STREAM = "~stream"
"""Note: `stream` was absent. This API streams by default."""
STOP = "~stop"
NUMBER = "~number:"
"""Note: this whole number was written with a fraction."""
_NO_OPTIONS = OptionsBody()

SETTINGS = Settings(
    ChatRequest,
    FAMILY,
    (
        Setting("model"),
        # The model always decides for itself: encode_tools omits the tools it may not call.
        Setting("tool_choice", None),
        Setting("parallel_tool_calls", None),
        Setting("max_output_tokens", None, BY_HAND, path="options.num_predict"),
        Setting("temperature", None, BY_HAND, path="options.temperature"),
        Setting("top_p", None, BY_HAND, path="options.top_p"),
        Setting("top_k", None, BY_HAND, path="options.top_k"),
        Setting("stop", None, BY_HAND, path="options.stop"),
        Setting("seed", None, BY_HAND, path="options.seed"),
        Setting("presence_penalty", None, BY_HAND, path="options.presence_penalty"),
        Setting("frequency_penalty", None, BY_HAND, path="options.frequency_penalty"),
        Setting("min_p", "options.min_p", number_or_none),
        Setting("repetition_penalty", "options.repeat_penalty", number_or_none),
        Setting("candidates", None),
        Setting("reasoning", "think", decode_reasoning, encode_reasoning),
        Setting("output", "format", BY_HAND, encode_output),
        Setting("stream", read=BY_HAND, write=BY_HAND),
        Setting("cache", None, lost=CACHED),
        Setting("store", None, lost="this API stores nothing", anyway=False),
        Setting("logprobs"),
        Setting("top_logprobs"),
        Setting("modalities", None, lost=NO_SUCH_SETTING, anyway=("text",)),
        Setting("obfuscation", None, lost=NO_SUCH_SETTING, anyway=False),
    ),
    content=("messages", "tools", "options"),
)

# ── decoding ──────────────────────────────────────────────────────────────────────────────────────────────────


def decode_request(body: bytes) -> Request:
    wire = _reader.read(body)
    notes: Extra = _keys(wire) or {}
    if wire.stream is None and "stream" not in notes:
        notes[STREAM] = Raw(b"null")
    if not wire.messages:
        notes["~messages"] = Raw(b"null") if wire.messages is UNSET else Raw(b"[]")
    tools = NO_TOOLS if wire.tools is UNSET else decode_tools(wire.tools)
    if wire.tools is not UNSET and not tools.tools:
        notes[MODELLED + "tools"] = wire.tools
    options = _NO_OPTIONS if wire.options is UNSET else wire.options
    option_keys: Extra = {} if wire.options is UNSET else _option_keys(options) or {}
    maximum = _whole(options.num_predict, "num_predict", option_keys)
    top_k = _whole(options.top_k, "top_k", option_keys)
    stop = () if options.stop is UNSET else _decode_stop(options.stop, option_keys)
    seed = _whole(options.seed, "seed", option_keys)
    if option_keys or (wire.options is not UNSET and options == _NO_OPTIONS):
        notes[WITHIN + "options"] = Raw(encode_json(option_keys))
    output = None if wire.format is UNSET else decode_output(wire.format, notes)
    decoder = MessageDecoder()
    messages = decoder.decode(wire.messages) if wire.messages else ()
    request: Request = SETTINGS.read(
        wire,
        messages,
        tools.tools,
        {FAMILY: notes} if notes else None,
        maximum,
        options.temperature,
        options.top_p,
        top_k,
        stop,
        seed,
        options.presence_penalty,
        options.frequency_penalty,
        output,
        True if wire.stream is None else wire.stream,
    )
    return decoder.noted_on(request, tools.names, tools.is_private)


def _whole(value: WireValue, key: str, entries: Extra) -> int | None:
    """Return a whole number. -1 means the same as no value (no limit, a random seed); -2 fills the context."""
    if value is None or (type(value) is int and value >= 0):
        return value
    if value < 0:
        entries[MODELLED * (value == -1) + key] = Raw(encode_json(value))
        return None
    entries[NUMBER + key] = Raw(encode_json(value))
    return int(value)


def _decode_stop(stop: list[str] | str, entries: Extra) -> tuple[str, ...]:
    if isinstance(stop, str):
        entries[STOP] = Raw(b'"string"')
        return (stop,)
    if not stop:
        entries[STOP] = Raw(b"[]")
    return tuple(stop)


# ── encoding ──────────────────────────────────────────────────────────────────────────────────────────────────


def encode_request(request: Request, log: LossLog) -> Encoded:
    notes: Extra = SETTINGS.add_keys(request, log, (request.metadata or {}).get(FAMILY, {}))
    native = request.origin == FAMILY
    messages: Any = MessageEncoder(log, native=native).encode(request.messages)
    if not messages and not native:
        # An empty list would load the model and answer nothing.
        raise EncodeError(
            path="$.messages", reason="no message has content that this API can hold", target="ollama-chat"
        )
    if request.candidates is not None and request.candidates > 1:
        log.drop(request, "candidates", f"{request.candidates} candidates", "this API gives one")
    tools: WireValue = UNSET
    if request.tools or not native:
        chosen = encode_tool_choice(request, log)
        tools = (encode_tools(chosen, log, native=native) if chosen else None) or UNSET
    stream = request.stream
    if STREAM in notes and stream is not False:
        stream = None
    elif stream is None and not native:
        stream = False  # written out: this API streams by default
    wire = SETTINGS.write(
        request,
        log,
        messages if messages or "~messages" not in notes or bytes(notes["~messages"]) != b"null" else UNSET,
        tools,
        _encode_options(request, inner_extra(notes, "options")),
        stream,
    )
    return Encoded(splice(wire, notes) if notes else encode_json(wire), (), PATH)


_NOTHING_SET = Options()


def _encode_options(request: Request, entries: Extra | None) -> WireValue:
    stop: WireValue = list(request.stop) or UNSET
    if entries is not None and STOP in entries:
        stop = request.stop[0] if request.stop and bytes(entries[STOP]) == b'"string"' else list(request.stop)
    options = Options(
        _spell_number(request.max_output_tokens, "num_predict", entries),
        request.temperature,
        request.top_p,
        _spell_number(request.top_k, "top_k", entries),
        stop,
        _spell_number(request.seed, "seed", entries),
        request.presence_penalty,
        request.frequency_penalty,
    )
    if entries is not None:
        return spliced(options, entries)
    return UNSET if options == _NOTHING_SET else options


def _spell_number(value: int | None, key: str, entries: Extra | None) -> WireValue:
    noted = None if value is None or entries is None else entries.get(NUMBER + key)
    return noted if noted is not None and int(parse_json(noted)) == value else value
