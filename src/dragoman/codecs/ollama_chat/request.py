"""Chat requests, both ways."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Raw

from dragoman.codecs.encoded import Encoded
from dragoman.codecs.ollama_chat.messages import MessageEncoder, decode_messages
from dragoman.codecs.ollama_chat.profile import FAMILY, PATH
from dragoman.codecs.ollama_chat.thinking import decode_reasoning, encode_reasoning
from dragoman.codecs.ollama_chat.tools import decode_output, decode_tools, encode_output, encode_tools
from dragoman.codecs.ollama_chat.wire import ALIASES, ChatRequest, Options
from dragoman.codecs.reading import WireReader, WireValue, spliced
from dragoman.errors import EncodeError
from dragoman.ir import Request
from dragoman.ir.notes import MODELLED, WITHIN, Extra, inner_extra
from dragoman.ir.values import encode_json, parse_json
from dragoman.losses import LossLog

_reader = WireReader(ChatRequest, "ollama-chat request", aliases=ALIASES)

STREAM = "~stream"
"""Note: `stream` was not said. This API streams unless it is told not to."""
STOP = "~stop"
NUMBER = "~number:"
"""Note: this whole number was spelled with a fraction."""
_NO_OPTIONS = Options()

# ── decoding ──────────────────────────────────────────────────────────────────────────────────────────────────


def decode_request(body: bytes) -> Request:
    wire = _reader.read(body)
    notes: Extra = {} if wire.extra is UNSET else dict(wire.extra)
    if wire.keep_alive is not UNSET:
        notes["keep_alive"] = wire.keep_alive
    if wire.stream is None and "stream" not in notes:
        notes[STREAM] = Raw(b"null")
    if not wire.messages:
        notes["~messages"] = Raw(b"null") if wire.messages is UNSET else Raw(b"[]")
    tools = () if wire.tools is UNSET else decode_tools(wire.tools)
    if wire.tools is not UNSET and not tools:
        notes[MODELLED + "tools"] = wire.tools
    options = _NO_OPTIONS if wire.options is UNSET else wire.options
    said: Extra = {} if options.extra is UNSET else dict(options.extra)
    maximum = _whole(options.num_predict, "num_predict", said)
    stop = () if options.stop is UNSET else _decode_stop(options.stop, said)
    seed = _whole(options.seed, "seed", said)
    top_k = _whole(options.top_k, "top_k", said)
    if said or (wire.options is not UNSET and options == _NO_OPTIONS):
        notes[WITHIN + "options"] = Raw(encode_json(said))
    return Request(
        wire.model,
        decode_messages(wire.messages) if wire.messages else (),
        tools,
        None,
        None,
        maximum,
        options.temperature,
        options.top_p,
        top_k,
        stop,
        seed,
        options.presence_penalty,
        options.frequency_penalty,
        None,
        None if wire.think is UNSET else decode_reasoning(wire.think),
        None if wire.format is UNSET else decode_output(wire.format, notes),
        True if wire.stream is None else wire.stream,
        None,
        None,
        {FAMILY: notes} if notes else None,
        FAMILY,
    )


def _whole(value: float | None, key: str, said: Extra) -> int | None:
    """-1 says what saying nothing says: as much as it takes, a seed by chance. -2 fills the context."""
    if value is None or (type(value) is int and value >= 0):
        return value
    if value < 0:
        said[MODELLED * (value == -1) + key] = Raw(encode_json(value))
        return None
    said[NUMBER + key] = Raw(encode_json(value))
    return int(value)


def _decode_stop(stop: list[str] | str, said: Extra) -> tuple[str, ...]:
    if isinstance(stop, str):
        said[STOP] = Raw(b'"string"')
        return (stop,)
    if not stop:
        said[STOP] = Raw(b"[]")
    return tuple(stop)


# ── encoding ──────────────────────────────────────────────────────────────────────────────────────────────────


def encode_request(request: Request, log: LossLog) -> Encoded:
    notes: Extra = (request.metadata or {}).get(FAMILY, {})
    native = request.origin == FAMILY
    messages: Any = MessageEncoder(log).encode(request.messages)
    if not messages and not native:
        # An empty list would load the model and answer nothing.
        raise EncodeError(path="$.messages", reason="no message says anything this API can hold", target="ollama-chat")
    _report_unsaid(request, log)
    tools: WireValue = encode_tools(request, log) if request.tools else []
    if not native and request.tool_choice is not None and not request.tools:
        encode_tools(request, log)
    stream = request.stream
    if STREAM in notes and stream is not False:
        stream = None
    elif stream is None and not native:
        stream = False  # said aloud: this API streams by default
    wire = ChatRequest(
        request.model,
        messages if messages or "~messages" not in notes or bytes(notes["~messages"]) != b"null" else UNSET,
        tools or UNSET,
        stream,
        UNSET if request.reasoning is None else encode_reasoning(request, log),
        encode_output(request, log),
        _encode_options(request, inner_extra(notes, "options")),
    )
    return Encoded(bytes(spliced(wire, notes)) if notes else encode_json(wire), (), PATH)


def _report_unsaid(request: Request, log: LossLog) -> None:
    if request.user is not None:
        log.drop(request, "user", "end user's id", "this API has no such field")
    if request.cache is not None:
        log.drop(request, "cache", "automatic cache mark", "prompts are cached automatically by this API")
    if request.candidates is not None and request.candidates > 1:
        log.drop(request, "candidates", f"{request.candidates} candidates", "this API gives one")


def _encode_options(request: Request, said: Extra | None) -> WireValue:
    stop: WireValue = list(request.stop) or UNSET
    if said is not None and STOP in said:
        stop = request.stop[0] if request.stop and bytes(said[STOP]) == b'"string"' else list(request.stop)
    options = Options(
        _spelled(request.max_output_tokens, "num_predict", said),
        request.temperature,
        request.top_p,
        _spelled(request.top_k, "top_k", said),
        stop,
        _spelled(request.seed, "seed", said),
        request.presence_penalty,
        request.frequency_penalty,
    )
    if said is not None:
        return spliced(options, said)
    return UNSET if options == _NO_OPTIONS else options


def _spelled(value: int | None, key: str, said: Extra | None) -> WireValue:
    noted = None if value is None or said is None else said.get(NUMBER + key)
    return noted if noted is not None and int(parse_json(noted)) == value else value
