"""Messages requests, the short way, both directions (see codecs/plain.py)."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from dragoman.codecs.anthropic_messages.caching import FAMILY
from dragoman.codecs.anthropic_messages.profile import NEWEST_VERSION, PATH, PROFILE, SAMPLING_VERSION, limits_of
from dragoman.codecs.anthropic_messages.tools import decode_tool_choice, decode_tools, encode_tools
from dragoman.codecs.anthropic_messages.wire import (
    ToolChoiceWire,
)
from dragoman.codecs.encoded import UNTOLD, Encoded
from dragoman.codecs.ids import INVENTED_PREFIX
from dragoman.codecs.plain import Accepted, PlainWire, ToolMemory, has_rare_settings, is_object, tells
from dragoman.codecs.reading import MaybeBool, MaybeInt, MaybeNumber, MaybeStr, WireValue
from dragoman.ir import AnyPart, Message, Request, Text, ToolCall, ToolResult
from dragoman.ir.messages import content_held
from dragoman.ir.parts import arguments_held, value_held
from dragoman.ir.values import compact_text, encode_json

# ── decoding ──────────────────────────────────────────────────────────────────────────────────────────────────


class PlainText(PlainWire, frozen=True, tag="text"):
    text: str


class PlainCall(PlainWire, frozen=True, tag="tool_use"):
    id: str
    name: str
    input: Raw


class PlainResult(PlainWire, frozen=True, tag="tool_result"):
    tool_use_id: str
    content: str


class PlainMessage(PlainWire, frozen=True):
    role: Literal["user", "assistant"]
    content: str | list[PlainText | PlainCall | PlainResult]


class PlainRequest(PlainWire, frozen=True):
    messages: list[PlainMessage]
    model: MaybeStr = None
    max_tokens: MaybeInt = None
    system: str | list[PlainText] | UnsetType = UNSET
    tools: Raw | UnsetType = UNSET
    tool_choice: ToolChoiceWire | UnsetType = UNSET
    stream: MaybeBool = None
    temperature: MaybeNumber = None
    top_p: MaybeNumber = None
    top_k: MaybeInt = None


_read = msgspec.json.Decoder(PlainRequest).decode


def decode_plain_request(body: bytes) -> Request | None:
    try:
        wire = _read(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None
    messages: list[Message] = []
    system, choice = wire.system, wire.tool_choice
    if system is not UNSET:
        if not system:
            return None
        content = system if type(system) is str else tuple([Text(block.text) for block in system])  # type: ignore[union-attr]
        messages.append(Message("system", content))
    if not _decode_messages(wire.messages, messages):
        return None
    tools = () if wire.tools is UNSET else decode_tools(wire.tools)
    if (not tools and wire.tools is not UNSET) or (
        choice is not UNSET and choice.disable_parallel_tool_use is not UNSET
    ):
        return None
    return Request(
        wire.model,
        tuple(messages),
        tools,
        None if choice is UNSET else decode_tool_choice(choice),
        None,
        wire.max_tokens,
        wire.temperature,
        wire.top_p,
        wire.top_k,
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


def _decode_messages(wires: list[PlainMessage], messages: list[Message]) -> bool:
    names: dict[str, str] = {}
    after_results = False
    for wire in wires:
        role, content = wire.role, wire.content
        if not content or (after_results and role == "user"):
            return False
        if type(content) is str:
            messages.append(Message(role, content))
            after_results = False
            continue
        parts: list[AnyPart] = []
        results: list[AnyPart] = []
        block: PlainText | PlainCall | PlainResult
        for block in content:  # type: ignore[assignment]
            if type(block) is PlainResult:
                if parts or role != "user" or not block.content:
                    return False
                call_id = block.tool_use_id
                results.append(ToolResult(call_id, names.get(call_id, ""), "text", block.content))
            elif type(block) is PlainCall:
                if role != "assistant" or not is_object(bytes(block.input)):
                    return False
                call_id = block.id
                names[call_id] = block.name
                invented = call_id[:4] == INVENTED_PREFIX
                parts.append(ToolCall(call_id, block.name, block.input, None, False, invented))  # noqa: FBT003
            elif type(block) is PlainText:
                parts.append(Text(block.text))
        if results:
            messages.append(Message("tool", tuple(results)))
        if parts:
            messages.append(Message(role, tuple(parts)))
        after_results = not parts
    return True


# ── encoding ──────────────────────────────────────────────────────────────────────────────────────────────────


# What is written here, without the members that are never set on this way.


class TextOut(Struct, frozen=True, gc=False, tag="text"):
    text: str


class CallOut(Struct, frozen=True, gc=False, tag="tool_use"):
    id: str
    name: str
    input: Raw


class ResultOut(Struct, frozen=True, gc=False, tag="tool_result"):
    tool_use_id: str
    content: str


class MessageOut(Struct, frozen=True, gc=False):
    role: str
    content: Any


class RequestOut(Struct, frozen=True, gc=False, omit_defaults=True):
    messages: list[Any]
    model: MaybeStr
    max_tokens: int
    system: Any = UNSET
    tools: Any = UNSET
    tool_choice: Any = UNSET
    stream: MaybeBool = None
    temperature: MaybeNumber = None


_accepted = Accepted(PROFILE)
_CHOICES = {"auto": ToolChoiceWire("auto"), "none": ToolChoiceWire("none")}


def encode_plain_request(request: Request) -> Encoded | None:
    model, maximum, temperature = request.model, request.max_output_tokens, request.temperature
    tools, choice = request.tools, request.tool_choice
    losses: Any = ()
    if maximum is None:
        maximum, losses = limits_of(model).invented_max_tokens, UNTOLD
    if has_rare_settings(request) or maximum < 1:
        return None
    version = NEWEST_VERSION
    if temperature is not None:
        if temperature > 1 or limits_of(model).sampling[:3] == "def":
            return None
        version = SAMPLING_VERSION
    messages = request.messages
    system: WireValue = UNSET
    if messages and messages[0].role == "system":
        system = _system(messages[0])
        if system is None:
            return None
        messages = messages[1:]
    wires = _messages(messages)
    if wires is None:
        return None
    wire_tools: WireValue = UNSET
    wire_choice: WireValue = UNSET
    if tools:
        written = _tools.written(tools)
        if written is None:
            return None
        wire_tools, losses = written.wire, losses or written.losses
    if choice is not None:
        wire_choice = _CHOICES.get(choice.mode)
        if wire_choice is None or choice.names or choice.metadata is not None or not tools:
            return None
    wire = RequestOut(
        wires,
        UNSET if model is None else model,  # type: ignore[arg-type]
        maximum,
        system,
        wire_tools,
        wire_choice,
        request.stream,
        temperature,
    )
    return Encoded(encode_json(wire), losses, PATH, {"anthropic-version": version})


def _system(message: Message) -> str | None:
    text = content_held(message)
    if type(text) is not str or not text or text.isspace() or message.name is not None:
        return None
    return None if message.metadata is not None and tells(message.metadata, FAMILY) else text


def _messages(messages: tuple[Message, ...]) -> list[WireValue] | None:  # noqa: C901, PLR0912  the hot path: one walk
    wires: list[WireValue] = []
    turn: list[WireValue] | None = None  # results, while more of the same turn may follow
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
            if turn is None:
                turn = []
                wires.append(MessageOut("user", turn))
            for part in content:
                block = _result(part, waiting)
                if block is None:
                    return None
                turn.append(block)
            continue
        if waiting or role == "system":
            return None
        if type(content) is str:
            if not content or content.isspace():
                return None
            if turn is not None and role == "user":
                turn.append(TextOut(content))
            else:
                wires.append(MessageOut(role, content))
        else:
            blocks = _blocks(content, role, waiting, seen)
            if not blocks:
                return None
            if turn is not None and role == "user":
                turn += blocks
            else:
                wires.append(MessageOut(role, blocks))
        turn = None
    # An answer begun (a prefill) has rules of its own.
    return None if waiting or role == "assistant" or not wires else wires


def _blocks(parts: tuple[AnyPart, ...], role: str, waiting: list[str], seen: set[str]) -> list[WireValue] | None:
    blocks: list[WireValue] = []
    for part in parts:
        if type(part) is ToolCall:
            call_id, held = part.id, arguments_held(part)
            if (
                type(held) is not Raw
                or role != "assistant"
                or (part.metadata is not None and tells(part.metadata, FAMILY))
                or part.signature is not None
                or part.cache is not None
                or part.custom
                or call_id in seen
                or (
                    (call_id not in _accepted.ids or part.name not in _accepted.names)
                    and not _accepted.takes(call_id, part.name)
                )
            ):
                return None
            seen.add(call_id)
            waiting.append(call_id)
            blocks.append(CallOut(call_id, part.name, held))
        elif type(part) is Text:
            text = part.text
            if (
                (part.metadata is not None and tells(part.metadata, FAMILY))
                or part.cache is not None
                or part.signature is not None
                or part.citations
                or waiting
                or not text
                or text.isspace()
            ):
                return None
            blocks.append(TextOut(text))
        else:
            return None
    return blocks


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
    if part.kind == "text" and type(value) is str and value:
        return ResultOut(part.tool_call_id, value)
    if part.kind == "data":
        return ResultOut(part.tool_call_id, compact_text(value))
    return None


def _unmarked(_node: object) -> UnsetType:
    return UNSET


_tools = ToolMemory(lambda request, log: encode_tools(request, _unmarked, log), _accepted)
