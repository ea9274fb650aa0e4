"""generateContent requests, the short way (see codecs/plain.py)."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from msgspec import UNSET, Raw, UnsetType

from dragoman.codecs.encoded import Encoded
from dragoman.codecs.gemini.profile import PROFILE, GeminiProfile
from dragoman.codecs.gemini.request import path_of
from dragoman.codecs.gemini.results import REFERENCE
from dragoman.codecs.gemini.tools import declared
from dragoman.codecs.gemini.wire import (
    CallOut,
    ConfigOut,
    ContentOut,
    FunctionCallingConfig,
    FunctionCallOut,
    FunctionResponseOut,
    GenerateContentRequest,
    Output,
    ResultOut,
    TextOut,
    ToolConfig,
)
from dragoman.codecs.ids import INVENTED_PREFIX
from dragoman.codecs.plain import Accepted, ToolMemory, has_rare_settings
from dragoman.codecs.reading import WireValue
from dragoman.ir import AnyPart, AnyTool, Message, Request, Text, ToolCall, ToolDefinition, ToolResult
from dragoman.ir.messages import content_held
from dragoman.ir.parts import arguments_held, value_held
from dragoman.ir.values import encode_json

_accepted = Accepted(PROFILE)
_CHOICES = {
    mode: ToolConfig(FunctionCallingConfig(spelled))
    for mode, spelled in (("auto", "AUTO"), ("required", "ANY"), ("none", "NONE"))
}


@lru_cache(maxsize=256)
def _wants_signatures(model: str | None) -> bool:
    return PROFILE.placeholder_signature_models.search(model or "") is not None


def encode_plain_request(request: Request, profile: GeminiProfile = PROFILE) -> Encoded | None:
    maximum, tools, choice = request.max_output_tokens, request.tools, request.tool_choice
    if has_rare_settings(request) or (maximum is not None and maximum < 1) or _wants_signatures(request.model):
        return None
    messages = request.messages
    system: WireValue = UNSET
    if messages and messages[0].role == "system":
        first = messages[0]
        text = content_held(first)
        if type(text) is not str or not first.name is first.metadata is None:
            return None
        system = ContentOut(UNSET, (TextOut(text),))
        messages = messages[1:]
    contents = _contents(messages, sends_ids=profile.sends_foreign_ids)
    if contents is None:
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
        wire_choice = _CHOICES[choice.mode]
    temperature = request.temperature
    config: WireValue = UNSET if maximum is temperature is None else ConfigOut(maximum, temperature)
    wire = GenerateContentRequest(contents, system, wire_tools, wire_choice, config)
    return Encoded(encode_json(wire), (), path_of(request, profile))


def _contents(messages: tuple[Message, ...], *, sends_ids: bool) -> list[WireValue] | None:
    contents: list[WireValue] = []
    turn: list[WireValue] | None = None  # results, while more of the same turn may follow
    waiting: list[ToolCall] = []
    seen: set[str] = set()
    previous = "system"
    for message in messages:
        if not message.metadata is message.name is None:
            return None
        role, content = message.role, content_held(message)
        if role == "tool":
            if turn is None:
                turn = []
                contents.append(ContentOut("user", turn))
            for part in content:
                result = _result(part, waiting, sends_ids=sends_ids)
                if result is None:
                    return None
                turn.append(result)
            previous = role
            continue
        if waiting:
            return None
        turn = None
        if role == "user":
            if type(content) is not str:
                return None
            contents.append(ContentOut("user", (TextOut(content),)))
        elif role == "system" or previous == "assistant" or previous == "system":  # noqa: PLR1714
            return None
        elif type(content) is str:
            contents.append(ContentOut("model", (TextOut(content),)))
        else:
            parts = _model_parts(content, waiting, seen, sends_ids=sends_ids)
            if not parts:
                return None
            contents.append(ContentOut("model", parts))
        previous = role
    return None if waiting or previous == "assistant" or not contents else contents


def _model_parts(
    parts: tuple[AnyPart, ...], waiting: list[ToolCall], seen: set[str], *, sends_ids: bool
) -> list[WireValue] | None:
    wires: list[WireValue] = []
    for part in parts:
        kind = type(part)
        if kind is ToolCall:
            call_id, name, held = part.id, part.name, arguments_held(part)
            if (
                type(held) is not Raw
                or not part.metadata is part.signature is part.cache is None
                or part.custom
                or call_id in seen
                or (name not in _accepted.names and not _accepted.takes_name(name))
            ):
                return None
            seen.add(call_id)
            waiting.append(part)
            wires.append(CallOut(FunctionCallOut(name, held, _sent_id(part, sends_ids=sends_ids))))
        elif kind is Text:
            if not part.metadata is part.cache is part.signature is None or part.citations:
                return None
            wires.append(TextOut(part.text))
        else:
            return None
    return wires


def _sent_id(call: ToolCall, *, sends_ids: bool) -> str | UnsetType:
    return call.id if sends_ids and not call.invented_id and call.id[:4] != INVENTED_PREFIX else UNSET


def _result(part: AnyPart, waiting: list[ToolCall], *, sends_ids: bool) -> WireValue:
    if type(part) is not ToolResult or not waiting:
        return None
    call = waiting.pop(0)
    if part.tool_call_id != call.id or not part.metadata is part.cache is None or part.parts or not part.name:
        return None
    value: Any = value_held(part)
    if part.kind == "text" and type(value) is str:
        response: WireValue = Output(value)
    elif part.kind == "data" and type(value) is Raw:
        data = bytes(value)
        if REFERENCE in data:
            return None
        response = value if data[:1] == b"{" else Output(value)
    else:
        return None
    return ResultOut(FunctionResponseOut(call.name, response, _sent_id(call, sends_ids=sends_ids)))


def _write_tools(tools: tuple[AnyTool, ...]) -> Raw | None:
    wires = []
    for tool in tools:
        if type(tool) is not ToolDefinition or not tool.strict is tool.cache is tool.metadata is None:
            return None
        if not _accepted.takes_name(tool.name):
            return None
        wires.append(declared(tool))
    return Raw(encode_json([{"functionDeclarations": wires}]))


_tools = ToolMemory(_write_tools)
