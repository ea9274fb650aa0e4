"""Chat responses, the short way, both directions (see codecs/plain.py)."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import UNSET, Raw, UnsetType

from dragoman.codecs.ids import INVENTED_PREFIX
from dragoman.codecs.ollama_chat.profile import FAMILY
from dragoman.codecs.ollama_chat.response import CREATED, decode_time, encode_time
from dragoman.codecs.ollama_chat.wire import AssistantMessage, Call, ChatResponse, Function
from dragoman.codecs.plain import PlainWire, is_object
from dragoman.codecs.reading import WireValue
from dragoman.ir import AnyPart, Completion, Finish, Message, Text, ToolCall, Usage
from dragoman.ir.messages import content_held
from dragoman.ir.notes import MODELLED
from dragoman.ir.parts import arguments_held
from dragoman.ir.values import encode_json

# ── decoding ──────────────────────────────────────────────────────────────────────────────────────────────────


class PlainFunction(PlainWire, frozen=True):
    """Answers tell the place of a call, histories do not."""

    index: int
    name: str
    arguments: Raw


class PlainCall(PlainWire, frozen=True):
    function: PlainFunction
    id: str


class PlainAnswer(PlainWire, frozen=True):
    role: Literal["assistant"]
    content: str
    tool_calls: list[PlainCall] | UnsetType = UNSET


class PlainResponse(PlainWire, frozen=True):
    model: str
    created_at: Raw
    message: PlainAnswer
    done: bool
    done_reason: Literal["stop", "length"]
    total_duration: Raw
    load_duration: Raw
    prompt_eval_count: int
    prompt_eval_duration: Raw
    eval_count: int
    eval_duration: Raw


_read = msgspec.json.Decoder(PlainResponse).decode
_STOP, _LENGTH, _CALLS = Finish("stop", "stop"), Finish("length", "length"), Finish("tool_calls", "stop")
_TOTAL, _LOAD, _PROMPT, _EVALUATION = (
    MODELLED + name for name in ("total_duration", "load_duration", "prompt_eval_duration", "eval_duration")
)


def decode_plain_response(body: bytes) -> Completion | None:
    try:
        wire = _read(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None
    said, prompt, written = wire.message, wire.prompt_eval_count, wire.eval_count
    calls = said.tool_calls
    if wire.done is not True or prompt < 1 or written < 1:
        return None
    finish = _STOP if wire.done_reason == "stop" else _LENGTH
    if calls is UNSET:
        message = Message("assistant", said.content)
    else:
        parts = _parts(said.content, calls)
        if parts is None or finish is _LENGTH:
            return None
        message, finish = Message("assistant", parts), _CALLS
    notes = {
        CREATED: wire.created_at,
        _TOTAL: wire.total_duration,
        _LOAD: wire.load_duration,
        _PROMPT: wire.prompt_eval_duration,
        _EVALUATION: wire.eval_duration,
    }
    created = decode_time(wire.created_at)
    return Completion((message,), finish, Usage(prompt, written), None, wire.model, created, (), {FAMILY: notes})


def _parts(content: str, calls: list[PlainCall]) -> tuple[AnyPart, ...] | None:
    parts: list[AnyPart] = [Text(content)] if content else []
    for index, call in enumerate(calls):
        function, call_id = call.function, call.id
        if not call_id or call_id[:4] == INVENTED_PREFIX or function.index != index:
            return None
        if not is_object(bytes(function.arguments)):
            return None
        parts.append(ToolCall(call_id, function.name, function.arguments))
    return tuple(parts) if calls else None


# ── encoding ──────────────────────────────────────────────────────────────────────────────────────────────────

_FINISHES = {"stop": "stop", "length": "length", "tool_calls": "stop"}


def encode_plain_response(completion: Completion) -> bytes | None:
    messages, finish, usage = completion.messages, completion.finish, completion.usage
    if len(messages) != 1 or finish is None or usage is None:
        return None
    word = _FINISHES.get(finish.reason)
    if word is None or (completion.metadata is not None and FAMILY in completion.metadata):
        return None
    answer = _answer(messages[0])
    if answer is None:
        return None
    created = Raw(encode_json(encode_time(completion.created)))
    model = completion.model or ""  # an answer of this API names its model
    wire = ChatResponse(model, created, answer, True, word, usage.input, usage.output, id=completion.id)  # noqa: FBT003
    return encode_json(wire)


def _answer(message: Message) -> WireValue:
    content: Any = content_held(message)
    metadata = message.metadata
    if message.name is not None or (metadata is not None and FAMILY in metadata):
        return None
    if type(content) is str:
        return AssistantMessage(content)
    text = ""
    calls: list[Any] = []
    for part in content:
        if type(part) is ToolCall:
            call = _call(part, len(calls))
            if call is None:
                return None
            calls.append(call)
        elif type(part) is Text and not text and not calls:
            if part.citations or part.signature is not None or part.cache is not None:
                return None
            if part.metadata is not None and FAMILY in part.metadata:
                return None
            text = part.text
        else:
            return None
    return AssistantMessage(text, UNSET, calls or UNSET)


def _call(call: ToolCall, index: int) -> Call | None:
    held = arguments_held(call)
    if type(held) is not Raw or call.signature is not None or call.cache is not None or call.custom:
        return None
    if call.metadata is not None and FAMILY in call.metadata:
        return None
    return Call(Function(call.name, held, index), call.id)
