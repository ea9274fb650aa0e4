"""Chat requests, both ways."""

from __future__ import annotations

from functools import partial
from typing import Any

from msgspec import UNSET, Raw, structs

from dragoman.codecs.cohere_chat.grounding import decode_documents
from dragoman.codecs.cohere_chat.messages import CONTENT, STRING, MessageDecoder, MessageEncoder
from dragoman.codecs.cohere_chat.profile import (
    FAMILY,
    LEAST_TOP_P,
    MOST_SEED,
    MOST_TOP_K,
    MOST_TOP_P,
    PATH,
    PROFILE,
)
from dragoman.codecs.cohere_chat.thinking import decode_reasoning, encode_reasoning
from dragoman.codecs.cohere_chat.tools import (
    decode_output,
    decode_tool_choice,
    decode_tools,
    encode_output,
    encode_tool_choice,
    encode_tools,
)
from dragoman.codecs.cohere_chat.wire import PASSED_ON, ChatBody, ChatRequest
from dragoman.codecs.common_losses import CACHED
from dragoman.codecs.encoded import Encoded
from dragoman.codecs.memo import NO_TOOLS
from dragoman.codecs.reading import WireReader, WireValue, spliced
from dragoman.codecs.settings import BY_HAND, Setting, Settings, collect_keys
from dragoman.errors import EncodeError
from dragoman.ir import Message, Request, ToolDefinition
from dragoman.ir.notes import MODELLED, Extra
from dragoman.ir.traits import EMPTY_MESSAGE
from dragoman.ir.values import encode_json
from dragoman.losses import LossLog

_reader = WireReader(ChatRequest, "cohere-chat request", wider=ChatBody)
_keys = collect_keys(ChatBody, PASSED_ON)

EMPTY_STOP = "~stop_sequences"


def _within(low: WireValue, high: WireValue, field: str, value: WireValue, request: Request, log: LossLog) -> WireValue:
    """Return the number, or the nearest one that the API takes."""
    if request.origin == FAMILY or low <= value <= high:
        return value
    nearest = low if value < low else high
    log.degrade(request, field, f"{field} {value:g}", f"sent as {nearest:g}: this API takes {low:g} to {high:g}")
    return nearest


def _write_penalty(field: str, value: WireValue, request: Request, log: LossLog) -> WireValue:
    if value < 0 and request.origin != FAMILY:
        log.drop(request, field, f"{field} {value:g}", "this API takes penalties from 0 to 1")
        return None
    return _within(0, 1, field, value, request, log)


def _write_maximum(value: int, request: Request, log: LossLog) -> WireValue:
    if request.origin == FAMILY or value >= 0:
        return value
    log.drop(request, "max_output_tokens", f"a limit of {value} tokens", "this API takes no such limit")
    return None


def _write_seed(value: int, request: Request, log: LossLog) -> WireValue:
    if request.origin == FAMILY or 0 <= value <= MOST_SEED:
        return value
    log.drop(request, "seed", f"seed {value}", "this API takes seeds from 0 to 2^64-1")
    return None


SETTINGS = Settings(
    ChatRequest,
    FAMILY,
    (
        Setting("model"),
        Setting("tool_choice", read=decode_tool_choice, write=BY_HAND),
        # encode_tool_choice reports if calls were to come one at a time.
        Setting("parallel_tool_calls", None),
        Setting("max_output_tokens", "max_tokens", write=_write_maximum),
        Setting("temperature", write=partial(_within, 0, 1, "temperature")),
        Setting("top_p", "p", write=partial(_within, LEAST_TOP_P, MOST_TOP_P, "top_p")),
        Setting("top_k", "k", write=partial(_within, 0, MOST_TOP_K, "top_k")),
        Setting("stop", "stop_sequences", tuple, BY_HAND),
        Setting("seed", write=_write_seed),
        Setting("presence_penalty", write=partial(_write_penalty, "presence_penalty")),
        Setting("frequency_penalty", write=partial(_write_penalty, "frequency_penalty")),
        Setting("candidates", None),
        Setting("reasoning", "thinking", decode_reasoning, encode_reasoning),
        Setting("output", "response_format", BY_HAND, encode_output),
        Setting("stream"),
        Setting("logprobs"),
        Setting("store", None, lost="this API stores nothing", anyway=False),
        Setting("cache", None, lost=CACHED),
    ),
    content=("messages", "documents", "tools", "strict_tools"),
)

# ── decoding ──────────────────────────────────────────────────────────────────────────────────────────────────


def decode_request(body: bytes) -> Request:
    wire = _reader.read(body)
    notes: Extra = {}
    if type(wire) is ChatBody:
        notes = _keys(wire) or {}
    decoder = MessageDecoder()
    messages = decoder.decode(wire.messages)
    tools = NO_TOOLS
    if wire.tools is not UNSET:
        tools = decode_tools(wire.tools, wire.strict_tools)
        if not tools.tools:
            notes[MODELLED + "tools"] = wire.tools
    if wire.strict_tools is not UNSET and not any(type(tool) is ToolDefinition for tool in tools.tools):
        notes["strict_tools"] = Raw(encode_json(wire.strict_tools))
    if wire.stop_sequences == []:
        notes[EMPTY_STOP] = Raw(b"[]")
    if wire.documents is not UNSET:
        messages = _with_documents(wire.documents, messages, decoder, notes)
    output = None if wire.response_format is UNSET else decode_output(wire.response_format, notes)
    metadata = {FAMILY: notes} if notes else None
    request: Request = SETTINGS.read(wire, messages, tools.tools, metadata, output)
    if decoder.tagged:
        return request  # media were moved to their results, so the traits noted from the wire's messages do not hold
    return decoder.noted_on(request, tools.names, tools.is_private)


def _with_documents(
    raw: Raw, messages: tuple[Message, ...], decoder: MessageDecoder, notes: Extra
) -> tuple[Message, ...]:
    """Insert the documents of the request before the last user message, which they are meant for."""
    documents = decode_documents(raw)
    last = next((index for index in range(len(messages) - 1, -1, -1) if messages[index].role == "user"), None)
    if not documents or last is None:
        # An empty list means nothing; without a user message the list stays a note of this family.
        notes[MODELLED * (documents == []) + "documents"] = raw
        return messages
    message = messages[last]
    metadata = message.metadata
    if type(message.content_held) is str:
        metadata = {FAMILY: {**(metadata or {}).get(FAMILY, {}), CONTENT: STRING}}
    for document in documents:
        decoder.part(document)
    others = (*messages[:last], *messages[last + 1 :])
    if not message.parts and all(other.content_held for other in others):
        decoder.bits &= ~EMPTY_MESSAGE
    grounded = structs.replace(message, parts=(*documents, *message.parts), metadata=metadata)
    return (*messages[:last], grounded, *messages[last + 1 :])


# ── encoding ──────────────────────────────────────────────────────────────────────────────────────────────────


def encode_request(request: Request, log: LossLog) -> Encoded:
    notes: Extra = (request.metadata or {}).get(FAMILY, {})
    native = request.origin == FAMILY
    takes_documents = native or request.output is None or bool(request.tools)
    foreign = not native and request.origin is not None
    encoder = MessageEncoder(log, native=native, foreign=foreign, takes_documents=takes_documents)
    messages: Any = encoder.encode(request.messages)
    if not messages and not native:
        reason = "no message has content that this API can hold"
        raise EncodeError(path="$.messages", reason=reason, target=PROFILE.name)
    if request.candidates is not None and request.candidates > 1:
        log.drop(request, "candidates", f"{request.candidates} candidates", "this API gives one")
    choosable = encode_tool_choice(request, log)
    tools = encode_tools(choosable.tools, log, native=native) if choosable.tools else None
    has_tools = tools is not None or native
    stop: WireValue = list(request.stop) or ([] if EMPTY_STOP in notes else UNSET)
    wire = SETTINGS.write(
        request,
        log,
        messages,
        Raw(encode_json(encoder.documents)) if encoder.documents else UNSET,
        UNSET if tools is None else tools,
        choosable.strict if has_tools else UNSET,
        choosable.word if has_tools else UNSET,
        stop,
    )
    return Encoded(bytes(spliced(wire, notes)) if notes else encode_json(wire), (), PATH)
