"""Chat Completions requests, the short way, both directions (see codecs/plain.py)."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from dragoman.codecs.arguments import arguments_as_text, read_arguments
from dragoman.codecs.encoded import Encoded
from dragoman.codecs.ids import INVENTED_PREFIX
from dragoman.codecs.openai_chat.messages import FAMILY, ONLY_OLD_MAXIMUM
from dragoman.codecs.openai_chat.profile import PATH, PROFILE, REASONING_MODELS, ChatProfile
from dragoman.codecs.openai_chat.tools import decode_tool_choice, decode_tools, encode_tools
from dragoman.codecs.openai_chat.wire import ChatRequest
from dragoman.codecs.plain import Accepted, PlainWire, ToolMemory, has_rare_settings, plain_texts, tells
from dragoman.codecs.reading import MaybeBool, MaybeInt, MaybeNumber, MaybeStr, WireValue
from dragoman.codecs.result_errors import ERROR_START
from dragoman.codecs.result_media import is_media_tag
from dragoman.ir import AnyPart, Message, Request, Text, ToolCall, ToolResult
from dragoman.ir.messages import content_held
from dragoman.ir.parts import value_held
from dragoman.ir.values import compact_text, encode_json

# ── decoding ──────────────────────────────────────────────────────────────────────────────────────────────────


class PlainText(PlainWire, frozen=True, tag="text"):
    text: str


class PlainSystem(PlainWire, frozen=True, tag_field="role", tag="system"):
    content: str


class PlainUser(PlainWire, frozen=True, tag_field="role", tag="user"):
    content: str | list[PlainText]


class PlainFunction(PlainWire, frozen=True):
    name: str
    arguments: str


class PlainCall(PlainWire, frozen=True):
    id: str
    type: Literal["function"]
    function: PlainFunction


class PlainAssistant(PlainWire, frozen=True, tag_field="role", tag="assistant"):
    content: str | None
    tool_calls: list[PlainCall] | UnsetType = UNSET


class PlainTool(PlainWire, frozen=True, tag_field="role", tag="tool"):
    content: str
    tool_call_id: str


class PlainRequest(PlainWire, frozen=True):
    messages: list[PlainSystem | PlainUser | PlainAssistant | PlainTool]
    model: MaybeStr = None
    tools: Raw | UnsetType = UNSET
    tool_choice: Literal["auto", "none", "required"] | UnsetType = UNSET
    parallel_tool_calls: MaybeBool = None
    max_completion_tokens: MaybeInt = None
    max_tokens: MaybeInt = None
    temperature: MaybeNumber = None
    top_p: MaybeNumber = None
    stream: MaybeBool = None


_read = msgspec.json.Decoder(PlainRequest).decode


def decode_plain_request(body: bytes) -> Request | None:
    try:
        wire = _read(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None
    messages = _decode_messages(wire.messages)
    tools = () if wire.tools is UNSET else decode_tools(wire.tools)
    if messages is None or (not tools and wire.tools is not UNSET):
        return None
    maximum, metadata = wire.max_completion_tokens, None
    if wire.max_tokens is not None:
        if maximum is not None:
            return None
        maximum, metadata = wire.max_tokens, ONLY_OLD_MAXIMUM
    return Request(
        wire.model,
        messages,
        tools,
        None if wire.tool_choice is UNSET else decode_tool_choice(wire.tool_choice),
        wire.parallel_tool_calls,
        maximum,
        wire.temperature,
        wire.top_p,
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
        metadata,
        FAMILY,
    )


def _decode_messages(
    wires: list[PlainSystem | PlainUser | PlainAssistant | PlainTool],
) -> tuple[Message, ...] | None:
    messages: list[Message] = []
    names: dict[str, str] = {}
    for wire in wires:
        content: Any = wire.content
        if type(wire) is PlainTool:
            call_id = wire.tool_call_id
            if not call_id or content[:9] == ERROR_START:
                return None
            messages.append(Message("tool", (ToolResult(call_id, names.get(call_id, ""), "text", content),)))
        elif type(wire) is PlainAssistant:
            calls = wire.tool_calls
            if calls is UNSET:
                if content is None:
                    return None
                messages.append(Message("assistant", content))
                continue
            parts = decode_plain_calls(calls, content, names)
            if parts is None:
                return None
            messages.append(Message("assistant", parts))
        elif type(content) is str:
            messages.append(Message("user" if type(wire) is PlainUser else "system", content))
        elif content and not is_media_tag(content[0].text):
            messages.append(Message("user", tuple([Text(part.text) for part in content])))
        else:
            return None
    return tuple(messages)


def decode_plain_calls(
    calls: list[PlainCall], content: str | None, names: dict[str, str]
) -> tuple[AnyPart, ...] | None:
    """The parts of a message with calls; `names` learns which call is whose."""
    parts: list[AnyPart] = [] if content is None else [Text(content)]
    for call in calls:
        function, call_id = call.function, call.id
        text, name = function.arguments, function.name
        if not call_id:
            return None
        names[call_id] = name
        invented = call_id[:4] == INVENTED_PREFIX
        parts.append(ToolCall(call_id, name, read_arguments(text), text, False, invented))  # noqa: FBT003
    return tuple(parts) if calls else None


# ── encoding ──────────────────────────────────────────────────────────────────────────────────────────────────

# What is written here, without the members that are never set on this way.


class TextOut(Struct, frozen=True, gc=False, tag="text"):
    text: str


class FunctionOut(Struct, frozen=True, gc=False):
    name: str
    arguments: str


class CallOut(Struct, frozen=True, gc=False):
    id: str
    function: FunctionOut
    type: str = "function"


class SystemOut(Struct, frozen=True, gc=False, tag_field="role", tag="system"):
    content: Any


class UserOut(Struct, frozen=True, gc=False, tag_field="role", tag="user"):
    content: Any


class AssistantOut(Struct, frozen=True, gc=False, tag_field="role", tag="assistant"):
    content: str | None
    tool_calls: list[CallOut] | UnsetType = UNSET


class ToolOut(Struct, frozen=True, gc=False, tag_field="role", tag="tool"):
    content: str
    tool_call_id: str


_accepted = Accepted(PROFILE)


def encode_plain_request(request: Request, profile: ChatProfile = PROFILE) -> Encoded | None:
    temperature, tools, choice, model = request.temperature, request.tools, request.tool_choice, request.model
    if profile is not PROFILE or has_rare_settings(request):
        return None
    if temperature is not None and model is not None and REASONING_MODELS.match(model) is not None:
        return None
    wires = _messages(request.messages)
    if wires is None:
        return None
    wire_tools: WireValue = UNSET
    wire_choice: WireValue = UNSET
    losses: Any = ()
    if tools:
        written = _tools.written(tools)
        if written is None:
            return None
        wire_tools, losses = written.wire, written.losses
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
        None,
        UNSET,
        None,
        None,
        None,
        None,
        UNSET,
        UNSET,
        request.stream,
    )
    return Encoded(encode_json(wire), losses, PATH)


def _messages(messages: tuple[Message, ...]) -> list[WireValue] | None:  # noqa: C901, PLR0912  the hot path: one walk
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
            if role == "user":
                wires.append(UserOut(content))
            elif role == "assistant":
                wires.append(AssistantOut(content))
            else:
                wires.append(SystemOut(content))
        elif role == "assistant":
            said = _assistant(content, waiting, seen)
            if said is None:
                return None
            wires.append(said)
        else:
            texts = plain_texts(content)
            if not texts:
                return None
            parts: list[Any] = [TextOut(text) for text in texts]
            wires.append(UserOut(parts) if role == "user" else SystemOut(parts))
    return None if waiting or role == "system" or not wires else wires


def _assistant(parts: tuple[AnyPart, ...], waiting: list[str], seen: set[str]) -> WireValue:
    """Text, then calls: a chat message keeps them apart."""
    text: str | None = None
    calls: list[CallOut] = []
    for part in parts:
        if type(part) is ToolCall:
            call_id, name = part.id, part.name
            if (
                (part.metadata is not None and tells(part.metadata, FAMILY))
                or part.signature is not None
                or part.cache is not None
                or part.custom
                or call_id in seen
                or (
                    (call_id not in _accepted.ids or name not in _accepted.names) and not _accepted.takes(call_id, name)
                )
            ):
                return None
            seen.add(call_id)
            waiting.append(call_id)
            calls.append(CallOut(call_id, FunctionOut(name, arguments_as_text(part))))
        elif type(part) is Text and text is None and not calls:
            if part.cache is not None or part.signature is not None or part.citations:
                return None
            if part.metadata is not None and tells(part.metadata, FAMILY):
                return None
            text = part.text
        else:
            return None
    if calls:
        return AssistantOut(text, calls)
    return None if text is None else AssistantOut(text)


def _result(part: AnyPart, waiting: list[str]) -> WireValue:
    if (
        type(part) is not ToolResult
        or not waiting
        or part.tool_call_id != waiting.pop(0)
        or (part.metadata is not None and tells(part.metadata, FAMILY))
        or part.cache is not None
        or part.parts
        or not part.name
    ):
        return None
    value = value_held(part)
    if part.kind == "text" and type(value) is str:
        return ToolOut(value, part.tool_call_id)
    return ToolOut(compact_text(value), part.tool_call_id) if part.kind == "data" else None


_tools = ToolMemory(lambda request, log: encode_tools(request.tools, log), _accepted)
