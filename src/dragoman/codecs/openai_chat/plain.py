"""Chat Completions requests, the short way (see codecs/plain.py)."""

from __future__ import annotations

from msgspec import UNSET, Raw

from dragoman.codecs.arguments import arguments_as_text
from dragoman.codecs.encoded import Encoded
from dragoman.codecs.openai_chat.profile import PATH, PROFILE, REASONING_MODELS
from dragoman.codecs.openai_chat.wire import (
    AssistantMessage,
    Call,
    ChatRequest,
    Function,
    FunctionDefinition,
    FunctionTool,
    SystemMessage,
    ToolMessage,
    UserMessage,
)
from dragoman.codecs.plain import Accepted, ToolMemory, has_rare_settings
from dragoman.codecs.reading import WireValue
from dragoman.ir import AnyPart, AnyTool, Message, Request, Text, ToolCall, ToolDefinition, ToolResult
from dragoman.ir.messages import content_held
from dragoman.ir.parts import value_held
from dragoman.ir.requests import parameters_held
from dragoman.ir.values import compact_text, encode_json

_accepted = Accepted(PROFILE)


def encode_plain_request(request: Request) -> Encoded | None:
    temperature, tools, choice, model = request.temperature, request.tools, request.tool_choice, request.model
    if has_rare_settings(request):
        return None
    if temperature is not None and model is not None and REASONING_MODELS.match(model) is not None:
        return None
    wires = _messages(request.messages)
    if wires is None:
        return None
    wire_tools: WireValue = UNSET
    wire_choice: WireValue = UNSET
    if tools:
        wire_tools = _tools.written(tools)
        if wire_tools is None:
            return None
    if choice is not None:
        if choice.names or choice.metadata is not None or not tools:
            return None
        wire_choice = choice.mode
    wire = ChatRequest(
        wires,
        model,
        wire_tools,
        wire_choice,
        None,
        request.max_output_tokens,
        None,
        temperature,
        stream=request.stream,
    )
    return Encoded(encode_json(wire), (), PATH)


def _messages(messages: tuple[Message, ...]) -> list[WireValue] | None:
    wires: list[WireValue] = []
    waiting: list[str] = []
    seen: set[str] = set()
    role = ""
    for message in messages:
        if not message.metadata is message.name is None:
            return None
        role, content = message.role, content_held(message)
        if role == "tool":
            for part in content:
                wire = _result(part, waiting)
                if wire is None:
                    return None
                wires.append(wire)
        elif waiting:
            return None
        elif type(content) is str:
            if role == "user":
                wires.append(UserMessage(content))
            elif role == "assistant":
                wires.append(AssistantMessage(content))
            else:
                wires.append(SystemMessage(content))
        elif role == "assistant":
            said = _assistant(content, waiting, seen)
            if said is None:
                return None
            wires.append(said)
        else:
            return None
    return None if waiting or role == "system" or not wires else wires


def _assistant(parts: tuple[AnyPart, ...], waiting: list[str], seen: set[str]) -> WireValue:
    """Text, then calls: a chat message keeps them apart."""
    text: str | None = None
    calls: list[WireValue] = []
    for part in parts:
        kind = type(part)
        if kind is ToolCall:
            call_id, name = part.id, part.name
            if (
                not part.metadata is part.signature is part.cache is None
                or part.custom
                or call_id in seen
                or (
                    (call_id not in _accepted.ids or name not in _accepted.names)
                    and not _accepted.takes(call_id, name)
                )
            ):
                return None
            seen.add(call_id)
            waiting.append(call_id)
            calls.append(Call(call_id, Function(name, arguments_as_text(part)), "function"))
        elif kind is Text and text is None and not calls:
            if not part.metadata is part.cache is part.signature is None or part.citations:
                return None
            text = part.text
        else:
            return None
    return AssistantMessage(text, calls) if calls else None


def _result(part: AnyPart, waiting: list[str]) -> WireValue:
    if (
        type(part) is not ToolResult
        or not waiting
        or part.tool_call_id != waiting.pop(0)
        or not part.metadata is part.cache is None
        or part.parts
        or not part.name
    ):
        return None
    value = value_held(part)
    if part.kind == "text" and type(value) is str:
        return ToolMessage(value, part.tool_call_id)
    return ToolMessage(compact_text(value), part.tool_call_id) if part.kind == "data" else None


def _write_tools(tools: tuple[AnyTool, ...]) -> Raw | None:
    wires = []
    for tool in tools:
        if type(tool) is not ToolDefinition or not tool.strict is tool.cache is tool.metadata is None:
            return None
        if not _accepted.takes_name(tool.name):
            return None
        schema = parameters_held(tool)
        description = UNSET if tool.description is None else tool.description
        wires.append(FunctionTool(FunctionDefinition(tool.name, description, UNSET if schema is None else schema)))
    return Raw(encode_json(wires))


_tools = ToolMemory(_write_tools)
