"""Chat requests, the short way, both directions (see codecs/plain.py)."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from dragoman.codecs.encoded import Encoded
from dragoman.codecs.ids import INVENTED_PREFIX
from dragoman.codecs.ollama_chat.profile import FAMILY, PATH, PROFILE
from dragoman.codecs.ollama_chat.tools import decode_tools, encode_tools
from dragoman.codecs.ollama_chat.wire import (
    AssistantMessage,
    Call,
    ChatRequest,
    Function,
    Options,
    ResultOut,
    TextOut,
    ToolMessage,
)
from dragoman.codecs.plain import Accepted, PlainWire, ToolMemory, has_rare_settings, is_object, tells
from dragoman.codecs.reading import MaybeInt, MaybeNumber, MaybeStr, WireValue
from dragoman.codecs.result_errors import ERROR_START
from dragoman.ir import AnyPart, Message, Request, Text, ToolCall, ToolResult
from dragoman.ir.messages import content_held
from dragoman.ir.parts import arguments_held, value_held
from dragoman.ir.values import compact_text, encode_json

# ── decoding ──────────────────────────────────────────────────────────────────────────────────────────────────


class PlainSystem(PlainWire, frozen=True, tag_field="role", tag="system"):
    content: str


class PlainUser(PlainWire, frozen=True, tag_field="role", tag="user"):
    content: str


class PlainFunction(PlainWire, frozen=True):
    name: str
    arguments: Raw


class PlainCall(PlainWire, frozen=True):
    function: PlainFunction
    id: str


class PlainAssistant(PlainWire, frozen=True, tag_field="role", tag="assistant"):
    content: str
    tool_calls: list[PlainCall] | UnsetType = UNSET


class PlainTool(PlainWire, frozen=True, tag_field="role", tag="tool"):
    content: str
    tool_name: str
    tool_call_id: str


class PlainOptions(PlainWire, frozen=True):
    num_predict: MaybeInt = None
    temperature: MaybeNumber = None
    top_p: MaybeNumber = None


class PlainRequest(PlainWire, frozen=True):
    messages: list[PlainSystem | PlainUser | PlainAssistant | PlainTool]
    stream: bool
    model: MaybeStr = None
    tools: Raw | UnsetType = UNSET
    options: PlainOptions | UnsetType = UNSET


_read = msgspec.json.Decoder(PlainRequest).decode
_NO_OPTIONS = PlainOptions()


def decode_plain_request(body: bytes) -> Request | None:
    try:
        wire = _read(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None
    messages = _decode_messages(wire.messages)
    tools = () if wire.tools is UNSET else decode_tools(wire.tools)
    options = _NO_OPTIONS if wire.options is UNSET else wire.options
    maximum, temperature = options.num_predict, options.temperature
    if not messages or (not tools and wire.tools is not UNSET) or (maximum is not None and maximum < 0):
        return None
    if wire.options is not UNSET and maximum is temperature is None and options == _NO_OPTIONS:
        return None
    return Request(
        wire.model,
        messages,
        tools,
        None,
        None,
        maximum,
        temperature,
        options.top_p,
        None,
        (),
        None,
        None,
        None,
        None,
        None,
        None,
        wire.stream,
        None,
        None,
        None,
        FAMILY,
    )


def _decode_messages(
    wires: list[PlainSystem | PlainUser | PlainAssistant | PlainTool],
) -> tuple[Message, ...] | None:
    messages: list[Message] = []
    waiting: list[ToolCall] = []  # the calls of the last turn, until they are answered
    for wire in wires:
        content = wire.content
        if type(wire) is PlainTool:
            call = waiting.pop(0) if waiting else None
            if call is None or wire.tool_call_id != call.id or wire.tool_name != call.name:
                return None
            if content[:9] == ERROR_START:
                return None
            messages.append(Message("tool", (ToolResult(call.id, call.name, "text", content),)))
        elif type(wire) is PlainAssistant:
            calls = wire.tool_calls
            if calls is UNSET:
                messages.append(Message("assistant", content))
                continue
            parts: list[AnyPart] = [Text(content)] if content else []
            waiting = []
            for called in calls:
                function, call_id = called.function, called.id
                if not call_id or call_id[:4] == INVENTED_PREFIX or not is_object(bytes(function.arguments)):
                    return None
                decoded = ToolCall(call_id, function.name, function.arguments)
                waiting.append(decoded)
                parts.append(decoded)
            if not waiting:
                return None
            messages.append(Message("assistant", tuple(parts)))
        else:
            messages.append(Message("user" if type(wire) is PlainUser else "system", content))
    return tuple(messages)


# ── encoding ──────────────────────────────────────────────────────────────────────────────────────────────────

_accepted = Accepted(PROFILE)


def encode_plain_request(request: Request) -> Encoded | None:
    maximum, temperature, tools, choice = (
        request.max_output_tokens,
        request.temperature,
        request.tools,
        request.tool_choice,
    )
    if has_rare_settings(request):
        return None
    # The model always decides for itself here, so only that choice is none.
    if choice is not None and (choice.mode != "auto" or choice.names or choice.metadata is not None or not tools):
        return None
    wires = _messages(request.messages)
    if wires is None:
        return None
    wire_tools: WireValue = UNSET
    losses: Any = ()
    if tools:
        written = _tools.written(tools)
        if written is None:
            return None
        wire_tools, losses = written.wire, written.losses
    options: WireValue = UNSET if maximum is temperature is None else Options(maximum, temperature)
    stream = request.stream
    wire = ChatRequest(request.model, wires, wire_tools, False if stream is None else stream, UNSET, UNSET, options)
    return Encoded(encode_json(wire), losses, PATH)


def _messages(messages: tuple[Message, ...]) -> list[WireValue] | None:
    wires: list[WireValue] = []
    waiting: list[str] = []
    seen: set[str] = set()
    role: str = ""
    for message in messages:
        if message.name is not None or (message.metadata is not None and tells(message.metadata, FAMILY)):
            return None
        role = message.role
        content: Any = content_held(message)
        if role == "tool":
            if not content:
                return None
            for part in content:
                wire = _result(part, waiting)
                if wire is None:
                    return None
                wires.append(wire)
        elif waiting:
            return None
        elif type(content) is str:
            wires.append(TextOut(role, content))
        elif role == "assistant":
            said = _assistant(content, waiting, seen)
            if said is None:
                return None
            wires.append(said)
        else:
            return None
    return None if waiting or role == "system" or not wires else wires


def _assistant(parts: tuple[AnyPart, ...], waiting: list[str], seen: set[str]) -> WireValue:
    """Text, then calls: a message keeps them apart."""
    text = ""
    calls: list[Any] = []
    for part in parts:
        if type(part) is ToolCall:
            call_id, name, held = part.id, part.name, arguments_held(part)
            if (
                type(held) is not Raw
                or (part.metadata is not None and tells(part.metadata, FAMILY))
                or part.signature is not None
                or part.cache is not None
                or part.custom
                or call_id in seen
                or (name not in _accepted.names and not _accepted.takes_name(name))
            ):
                return None
            seen.add(call_id)
            waiting.append(call_id)
            calls.append(Call(Function(name, held), UNSET if part.invented_id else call_id))
        elif type(part) is Text and not text and not calls:
            if part.cache is not None or part.signature is not None or part.citations:
                return None
            if part.metadata is not None and tells(part.metadata, FAMILY):
                return None
            text = part.text
        else:
            return None
    if calls:
        return AssistantMessage(text, UNSET, calls)
    return TextOut("assistant", text) if text else None


def _result(part: AnyPart, waiting: list[str]) -> WireValue:
    if type(part) is not ToolResult or not waiting or part.tool_call_id != waiting.pop(0):
        return None
    if part.cache is not None or part.parts or not part.name:
        return None
    if part.metadata is not None and tells(part.metadata, FAMILY):
        return None
    call_id, value = part.tool_call_id, value_held(part)
    sent: WireValue = UNSET if call_id[:4] == INVENTED_PREFIX else call_id
    if part.kind == "text" and type(value) is str:
        return ResultOut("tool", part.name, value, sent)
    return ToolMessage(compact_text(value), part.name, sent) if part.kind == "data" else None


_tools = ToolMemory(encode_tools, _accepted)
