"""Converse requests, the short way, both directions (see codecs/plain.py)."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Raw, UnsetType

from dragoman.codecs import claude_models
from dragoman.codecs.bedrock_converse.messages import SUCCESS
from dragoman.codecs.bedrock_converse.parts import PartEncoder
from dragoman.codecs.bedrock_converse.profile import FAMILY, PROFILE, limits_of, path_of
from dragoman.codecs.bedrock_converse.tools import ANY, AUTO, decode_tool_choice, encode_tools, read_tools
from dragoman.codecs.bedrock_converse.wire import (
    InferenceConfig,
    JsonOut,
    MessageOut,
    RequestOut,
    ResultContentOut,
    ResultOut,
    TextOut,
    ToolChoiceWire,
    ToolConfigOut,
    ToolUseOut,
    UseOut,
)
from dragoman.codecs.encoded import Encoded
from dragoman.codecs.ids import INVENTED_PREFIX
from dragoman.codecs.plain import Accepted, PlainWire, ToolMemory, has_rare_settings, is_object, plain_texts, tells
from dragoman.codecs.reading import MaybeInt, MaybeNumber, MaybeStr, WireValue
from dragoman.errors import DecodeError
from dragoman.ir import AnyPart, AnyTool, Message, Request, Text, ToolCall, ToolChoice, ToolResult
from dragoman.ir.messages import content_held
from dragoman.ir.notes import Spelling
from dragoman.ir.parts import arguments_held, value_held
from dragoman.ir.values import compact_text, encode_json

# ── decoding ──────────────────────────────────────────────────────────────────────────────────────────────────


class PlainUse(PlainWire, frozen=True, rename="camel"):
    tool_use_id: str
    name: str
    input: Raw


class PlainPiece(PlainWire, frozen=True):
    """Of a result."""

    text: str | UnsetType = UNSET
    json: Raw | UnsetType = UNSET


class PlainResult(PlainWire, frozen=True, rename="camel"):
    tool_use_id: str
    content: tuple[PlainPiece]
    status: Literal["success"] | UnsetType = UNSET


class PlainBlock(PlainWire, frozen=True, rename="camel"):
    text: str | UnsetType = UNSET
    tool_use: PlainUse | UnsetType = UNSET
    tool_result: PlainResult | UnsetType = UNSET


class PlainMessage(PlainWire, frozen=True):
    role: Literal["user", "assistant"]
    content: list[PlainBlock]


class PlainText(PlainWire, frozen=True):
    text: str


class PlainConfig(PlainWire, frozen=True, rename="camel"):
    max_tokens: MaybeInt = None
    temperature: MaybeNumber = None
    top_p: MaybeNumber = None


class PlainToolConfig(PlainWire, frozen=True, rename="camel"):
    tools: Raw
    tool_choice: ToolChoiceWire | UnsetType = UNSET


class PlainRequest(PlainWire, frozen=True, rename="camel"):
    messages: list[PlainMessage]
    system: list[PlainText] | UnsetType = UNSET
    inference_config: PlainConfig | UnsetType = UNSET
    tool_config: PlainToolConfig | UnsetType = UNSET
    model_id: MaybeStr = None


_read = msgspec.json.Decoder(PlainRequest).decode
_NO_CONFIG = PlainConfig()
_MODEL_IN_BODY = Spelling({FAMILY: {"~model": Raw(b"true")}})


def decode_plain_request(body: bytes) -> Request | None:
    try:
        wire = _read(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None
    messages: list[Message] = []
    system, config, tooling, model = wire.system, wire.inference_config, wire.tool_config, wire.model_id
    if system is not UNSET:
        if not system:
            return None
        content: Any = system[0].text if len(system) == 1 else tuple([Text(block.text) for block in system])
        messages.append(Message("system", content))
    if not _decode_messages(wire.messages, messages):
        return None
    tools: tuple[AnyTool, ...] = ()
    choice: ToolChoice | None = None
    if tooling is not UNSET:
        known = _decode_tools(tooling)
        if known is None:
            return None
        tools, choice = known
    if config is UNSET:
        config = _NO_CONFIG
    elif config == _NO_CONFIG:
        return None
    return Request(
        model,
        tuple(messages),
        tools,
        choice,
        None,
        config.max_tokens,
        config.temperature,
        config.top_p,
        None,
        (),
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None if model is None else _MODEL_IN_BODY,
        FAMILY,
    )


def _decode_tools(wire: PlainToolConfig) -> tuple[tuple[AnyTool, ...], ToolChoice | None] | None:
    choice = None
    if wire.tool_choice is not UNSET:
        choice = decode_tool_choice(wire.tool_choice)
        if choice is None or choice.metadata is not None:
            return None
    try:
        tools = read_tools(wire.tools)
    except DecodeError:
        return None
    return (tools, choice) if tools else None


def _decode_messages(wires: list[PlainMessage], messages: list[Message]) -> bool:
    names: dict[str, str] = {}
    after_results = False
    for wire in wires:
        role, blocks = wire.role, wire.content
        if not blocks or (after_results and role == "user"):
            return False
        block = blocks[0]
        text = block.text
        if text is not UNSET and len(blocks) == 1:
            if not block.tool_use is block.tool_result is UNSET:
                return False
            messages.append(Message(role, text))
            after_results = False
        elif role == "assistant":
            parts = _decode_assistant(blocks, names)
            if parts is None:
                return False
            messages.append(Message("assistant", parts))
            after_results = False
        else:
            results, others = _decode_user(blocks, names)
            if results:
                messages.append(Message("tool", tuple(results)))
            if others:
                messages.append(Message("user", tuple(others)))
            elif not results:
                return False
            after_results = not others
    return True


def _decode_assistant(blocks: list[PlainBlock], names: dict[str, str]) -> tuple[AnyPart, ...] | None:
    parts: list[AnyPart] = []
    for block in blocks:
        text, use = block.text, block.tool_use
        if block.tool_result is not UNSET or (text is UNSET) is (use is UNSET):
            return None
        if use is UNSET:
            parts.append(Text(text))  # type: ignore[arg-type]
            continue
        call_id, name, arguments = use.tool_use_id, use.name, use.input
        if not is_object(bytes(arguments)):
            return None
        names[call_id] = name
        parts.append(ToolCall(call_id, name, arguments, None, False, call_id[:4] == INVENTED_PREFIX))  # noqa: FBT003
    return tuple(parts)


_Told = tuple[list[AnyPart], list[AnyPart]]
_ODD: _Told = ([], [])


def _decode_user(blocks: list[PlainBlock], names: dict[str, str]) -> _Told:
    """Results, then texts. Nothing of either when there is more to it."""
    results: list[AnyPart] = []
    others: list[AnyPart] = []
    for block in blocks:
        text, result = block.text, block.tool_result
        if block.tool_use is not UNSET or (text is UNSET) is (result is UNSET):
            return _ODD
        if result is UNSET:
            others.append(Text(text))  # type: ignore[arg-type]
            continue
        (piece,) = result.content
        said, value, call_id = piece.text, piece.json, result.tool_use_id
        if others or (said is UNSET) is (value is UNSET):
            return _ODD
        metadata = None if result.status is UNSET else SUCCESS
        if value is UNSET:
            results.append(ToolResult(call_id, names.get(call_id, ""), "text", said, (), None, metadata))
        elif is_object(bytes(value)):
            results.append(ToolResult(call_id, names.get(call_id, ""), "data", value, (), None, metadata))
        else:
            return _ODD
    return results, others


# ── encoding ──────────────────────────────────────────────────────────────────────────────────────────────────

_accepted = Accepted(PROFILE)
_CHOICES = {"auto": AUTO, "required": ANY}


@lru_cache(maxsize=256)
def _takes(model: str | None) -> tuple[bool, bool, bool]:
    """Whether a temperature, whether words beside results, whether to be forced to call."""
    limits = limits_of(model)
    refuses = limits.thinking == "claude" and claude_models.limits_of(model).sampling.startswith("default")
    return not refuses, not limits.results_alone, PROFILE.no_forced_choice_models.search(model or "") is None


def encode_plain_request(request: Request) -> Encoded | None:  # noqa: PLR0911
    maximum, temperature, tools, choice, model = (
        request.max_output_tokens,
        request.temperature,
        request.tools,
        request.tool_choice,
        request.model,
    )
    if has_rare_settings(request) or (maximum is not None and maximum < 1) or tells(request.metadata, FAMILY):
        return None
    takes_temperature, joins, takes_force = _takes(model)
    if temperature is not None and (temperature > 1 or not takes_temperature):
        return None
    messages = request.messages
    system: WireValue = UNSET
    if messages and messages[0].role == "system":
        first = messages[0]
        system = None if first.name is not None or tells(first.metadata, FAMILY) else _system(content_held(first))
        if system is None:
            return None
        messages = messages[1:]
    wires = _messages(messages, joins, bool(tools))
    if wires is None:
        return None
    tooling: WireValue = UNSET
    losses: Any = ()
    if tools:
        written = _tools.written(tools)
        if written is None:
            return None
        losses = written.losses
        wire_choice: WireValue = UNSET
        if choice is not None:
            wire_choice = _CHOICES.get(choice.mode)
            if wire_choice is None or choice.names or choice.metadata is not None:
                return None
            if wire_choice is ANY and not takes_force:
                return None
        tooling = ToolConfigOut(written.wire, wire_choice)
    elif choice is not None:
        return None
    config: WireValue = UNSET if maximum is temperature is None else InferenceConfig(maximum, temperature)
    return Encoded(encode_json(RequestOut(wires, system, config, tooling)), losses, path_of(model, request.stream))


def _system(content: str | tuple[AnyPart, ...]) -> list[TextOut] | None:
    texts = [content] if isinstance(content, str) else plain_texts(content)
    if not texts or not all(texts) or any(map(str.isspace, texts)):
        return None
    return [TextOut(text) for text in texts]


def _messages(messages: tuple[Message, ...], joins: bool, has_tools: bool) -> list[WireValue] | None:  # noqa: C901, FBT001, PLR0911, PLR0912  the hot path: one walk
    wires: list[WireValue] = []
    turn: list[WireValue] | None = None  # results, while more of the same turn may follow
    waiting: list[str] = []
    seen: set[str] = set()
    role: str = "assistant"
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
            blocks: list[WireValue] | None = [TextOut(content)]
        else:
            blocks = _blocks(content, role, waiting, seen)
            if not blocks:
                return None
        if turn is None or role == "assistant":
            wires.append(MessageOut(role, blocks))
        elif joins:
            turn += blocks  # type: ignore[arg-type]
        else:
            return None
        turn = None
    # An answer begun (a prefill) has rules of its own, and so has a history that begins with one.
    if waiting or role == "assistant" or wires[0].role == "assistant":
        return None
    return wires if has_tools or not seen else None


def _blocks(parts: tuple[AnyPart, ...], role: str, waiting: list[str], seen: set[str]) -> list[WireValue] | None:
    blocks: list[WireValue] = []
    for part in parts:
        if type(part) is ToolCall:
            call_id, name, held = part.id, part.name, arguments_held(part)
            if (
                type(held) is not Raw
                or role != "assistant"
                or (part.metadata is not None and tells(part.metadata, FAMILY))
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
            blocks.append(UseOut(ToolUseOut(call_id, name, held)))
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
    value: Any = value_held(part)
    if part.kind == "text" and type(value) is str:
        if not value or value.isspace():
            return None
        content: WireValue = TextOut(value)
    elif part.kind == "data" and type(value) is Raw:
        # Anything but an object is sent as its JSON text.
        content = JsonOut(value) if bytes(value)[:1] == b"{" else TextOut(compact_text(value))
    else:
        return None
    return ResultOut(ResultContentOut(part.tool_call_id, (content,)))


_tools = ToolMemory(lambda request, log: encode_tools(request, PartEncoder(log, request), log), _accepted)
