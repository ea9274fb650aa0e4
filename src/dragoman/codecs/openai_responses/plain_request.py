"""Responses requests, the short way, both directions (see codecs/plain.py)."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from dragoman.codecs.arguments import arguments_as_text, read_arguments
from dragoman.codecs.encoded import Encoded
from dragoman.codecs.ids import INVENTED_PREFIX
from dragoman.codecs.openai_responses.items import DEVELOPER, ID, INSTRUCTIONS, ITEM, SPELLING, STATUS, TYPED_PARTS
from dragoman.codecs.openai_responses.parts import ANNOTATIONS, LOGPROBS, NOTHING, TRUE
from dragoman.codecs.openai_responses.profile import FAMILY, LEAST_OUTPUT_TOKENS, PROFILE, REASONING_MODELS
from dragoman.codecs.openai_responses.request import ENCRYPTED, NOT_STORED, PATH, STRING
from dragoman.codecs.openai_responses.tools import decode_tool_choice, decode_tools, encode_tools
from dragoman.codecs.openai_responses.wire import InputText
from dragoman.codecs.plain import Accepted, PlainWire, ToolMemory, has_rare_settings, plain_texts, tells
from dragoman.codecs.reading import MaybeBool, MaybeInt, MaybeNumber, MaybeStr, WireValue
from dragoman.codecs.result_errors import ERROR_START
from dragoman.ir import AnyPart, Message, Request, Text, ToolCall, ToolResult
from dragoman.ir.messages import content_held
from dragoman.ir.notes import MODELLED, Extra, Spelling
from dragoman.ir.parts import value_held
from dragoman.ir.values import compact_text, encode_json

# ── decoding ──────────────────────────────────────────────────────────────────────────────────────────────────


class PlainInput(PlainWire, frozen=True, tag="input_text"):
    text: str


class PlainOutput(PlainWire, frozen=True, tag="output_text"):
    text: str
    annotations: Raw | UnsetType = UNSET
    logprobs: Raw | UnsetType = UNSET


class PlainItem(PlainWire, frozen=True):
    """A message, a call or its output: what they say is told by `type`, which messages may leave out."""

    type: Literal["message", "function_call", "function_call_output"] | UnsetType = UNSET
    role: Literal["user", "assistant", "system", "developer"] | UnsetType = UNSET
    content: str | list[PlainInput | PlainOutput] | UnsetType = UNSET
    id: str | UnsetType = UNSET
    call_id: str | UnsetType = UNSET
    name: str | UnsetType = UNSET
    arguments: str | UnsetType = UNSET
    output: str | UnsetType = UNSET
    status: Raw | UnsetType = UNSET


class PlainRequest(PlainWire, frozen=True):
    input: str | list[PlainItem]
    model: MaybeStr = None
    instructions: MaybeStr = None
    tools: Raw | UnsetType = UNSET
    tool_choice: Literal["auto", "none", "required"] | UnsetType = UNSET
    parallel_tool_calls: MaybeBool = None
    max_output_tokens: MaybeInt = None
    temperature: MaybeNumber = None
    top_p: MaybeNumber = None
    stream: MaybeBool = None
    store: Raw | UnsetType = UNSET
    include: Raw | UnsetType = UNSET


_read = msgspec.json.Decoder(PlainRequest).decode

_STATE: dict[tuple[bool, bool, bool], Spelling | None] = {
    (string, stored, included): Spelling(
        {
            FAMILY: ({"~input": STRING} if string else {})
            | ({MODELLED + "store": NOT_STORED} if stored else {})
            | ({MODELLED + "include": ENCRYPTED} if included else {})
        }
    )
    if string or stored or included
    else None
    for string in (True, False)
    for stored in (True, False)
    for included in (True, False)
}
"""What the long way notes, by whether the input is a string, `store` is false, and reasoning is asked for."""


def decode_plain_request(body: bytes) -> Request | None:
    try:
        wire = _read(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None
    given: Any = wire.input
    store, include = wire.store, wire.include
    if (store is not UNSET and store != NOT_STORED) or (include is not UNSET and include != ENCRYPTED):
        return None
    messages: list[Message] = []
    if wire.instructions is not None:
        messages.append(Message("system", wire.instructions, None, INSTRUCTIONS))
    string = type(given) is str
    if string:
        messages.append(Message("user", given))
    elif not given or not _decode_items(given, messages):
        return None
    tools = () if wire.tools is UNSET else decode_tools(wire.tools)
    if not tools and wire.tools is not UNSET:
        return None
    return Request(
        wire.model,
        tuple(messages),
        tools,
        None if wire.tool_choice is UNSET else decode_tool_choice(wire.tool_choice),
        wire.parallel_tool_calls,
        wire.max_output_tokens,
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
        _STATE[string, store is not UNSET, include is not UNSET],
        FAMILY,
    )


def _decode_items(items: list[PlainItem], messages: list[Message]) -> bool:
    """Whether all of them were ordinary. The model's items in a row are one message."""
    names: dict[str, str] = {}
    turn: list[AnyPart] = []
    for item in items:
        kind = item.type
        part: AnyPart | None
        if kind == "function_call":
            part = decode_plain_call(item)
            if part is None:
                return False
            names[part.id] = part.name
            turn.append(part)
            continue
        if item.role == "assistant":
            if type(item.content) is str and turn and type(turn[-1]) is Text:
                messages.append(Message("assistant", tuple(turn)))
                turn = []
            part = decode_plain_said(item)
            if part is None:
                return False
            turn.append(part)
            continue
        if turn:
            messages.append(Message("assistant", tuple(turn)))
            turn = []
        message = _decode_output(item, names) if kind == "function_call_output" else _decode_message(item)
        if message is None:
            return False
        messages.append(message)
    if turn:
        messages.append(Message("assistant", tuple(turn)))
    return True


def decode_plain_call(item: PlainItem) -> ToolCall | None:
    call_id, name, text, item_id, status = item.call_id, item.name, item.arguments, item.id, item.status
    if (
        not call_id
        or name is UNSET
        or text is UNSET
        or item.role is not UNSET
        or item.content is not UNSET
        or item.output is not UNSET
    ):
        return None
    invented = call_id[:4] == INVENTED_PREFIX
    held = read_arguments(text)
    if item_id is UNSET and status is UNSET:
        return ToolCall(call_id, name, held, text, False, invented)  # noqa: FBT003
    notes: Extra = {} if item_id is UNSET else {ID: Raw(encode_json(item_id))}
    if status is not UNSET:
        notes[STATUS] = status
    return ToolCall(call_id, name, held, text, False, invented, False, None, None, Spelling({FAMILY: notes}))  # noqa: FBT003


def decode_plain_said(item: PlainItem) -> Text | None:
    """What the model said in a message of one text: as the client wrote it, or as the API gave it."""
    content, item_id, status = item.content, item.id, item.status
    if item.call_id is not UNSET or item.name is not UNSET or item.arguments is not UNSET or item.output is not UNSET:
        return None
    if type(content) is str:
        return Text(content) if item.type is UNSET and item_id is UNSET and status is UNSET else None
    if content is UNSET or len(content) != 1 or item.type != "message":
        return None
    said: PlainInput | PlainOutput = content[0]  # type: ignore[assignment]
    if type(said) is not PlainOutput:
        return None
    notes: Extra = {ITEM: SPELLING[TYPED_PARTS]} if item_id is UNSET else {ID: Raw(encode_json(item_id))}
    if status is not UNSET:
        notes["~status"] = status
    if said.annotations is not UNSET:
        if said.annotations != NOTHING:
            return None
        notes[ANNOTATIONS] = NOTHING
    if said.logprobs is not UNSET:
        if said.logprobs != NOTHING:
            return None
        notes[LOGPROBS] = NOTHING
    return Text(said.text, (), None, None, Spelling({FAMILY: notes}))


def _decode_output(item: PlainItem, names: dict[str, str]) -> Message | None:
    call_id, output = item.call_id, item.output
    if (
        not call_id
        or output is UNSET
        or output[:9] == ERROR_START
        or item.id is not UNSET
        or item.status is not UNSET
        or item.name is not UNSET
        or item.role is not UNSET
        or item.content is not UNSET
        or item.arguments is not UNSET
    ):
        return None
    return Message("tool", (ToolResult(call_id, names.get(call_id, ""), "text", output),))


_TYPED = Spelling({FAMILY: {"~type": TRUE}})
_DEVELOPER = Spelling({FAMILY: {"~role": DEVELOPER}})
_TYPED_DEVELOPER = Spelling({FAMILY: {"~type": TRUE, "~role": DEVELOPER}})


def _decode_message(item: PlainItem) -> Message | None:
    role, content = item.role, item.content
    if (
        role is UNSET
        or content is UNSET
        or item.id is not UNSET
        or item.status is not UNSET
        or item.call_id is not UNSET
        or item.name is not UNSET
        or item.arguments is not UNSET
        or item.output is not UNSET
    ):
        return None
    typed = item.type is not UNSET
    metadata = _TYPED if typed else None
    if role == "developer":
        role, metadata = "system", _TYPED_DEVELOPER if typed else _DEVELOPER
    if type(content) is str:
        return Message(role, content, None, metadata)
    parts: list[AnyPart] = []
    part: PlainInput | PlainOutput
    for part in content:  # type: ignore[assignment]
        if type(part) is not PlainInput:
            return None
        parts.append(Text(part.text))
    return Message(role, tuple(parts), None, metadata)


# ── encoding ──────────────────────────────────────────────────────────────────────────────────────────────────


class MessageOut(Struct, frozen=True, gc=False):
    role: str
    content: str | list[InputText]


class CallOut(Struct, frozen=True, gc=False, tag="function_call"):
    call_id: str
    name: str
    arguments: str


class OutputOut(Struct, frozen=True, gc=False, tag="function_call_output"):
    call_id: str
    output: str


class RequestOut(Struct, frozen=True, gc=False, omit_defaults=True):
    """The fields of an ordinary request, in the order of the long way."""

    model: str | None = None
    instructions: str | None = None
    tools: WireValue = UNSET
    tool_choice: WireValue = UNSET
    max_output_tokens: int | None = None
    temperature: float | None = None
    stream: bool | None = None
    input: WireValue = UNSET
    store: Raw | UnsetType = UNSET
    include: Raw | UnsetType = UNSET


_accepted = Accepted(PROFILE)


def encode_plain_request(request: Request) -> Encoded | None:
    temperature, tools, choice, model = request.temperature, request.tools, request.tool_choice, request.model
    maximum, messages = request.max_output_tokens, request.messages
    if has_rare_settings(request) or (request.metadata is not None and FAMILY in request.metadata):
        return None
    if maximum is not None and maximum < LEAST_OUTPUT_TOKENS:
        return None
    include: WireValue = UNSET
    if model is not None and REASONING_MODELS.match(model) is not None:
        if temperature is not None:
            return None
        include = ENCRYPTED
    instructions = _instructions(messages)
    wires = _items(messages if instructions is None else messages[1:])
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
    wire = RequestOut(
        model,
        instructions,
        wire_tools,
        wire_choice,
        maximum,
        temperature,
        request.stream,
        wires,
        NOT_STORED,
        include,
    )
    return Encoded(encode_json(wire), losses, PATH)


def _instructions(messages: tuple[Message, ...]) -> str | None:
    """The opening system text, where one of the conversation follows it."""
    if len(messages) < 2 or messages[0].role != "system" or messages[1].role == "system":  # noqa: PLR2004
        return None
    first = messages[0]
    content: Any = content_held(first)
    if type(content) is not str or first.name is not None or tells(first.metadata, FAMILY):
        return None
    return content or None


def _items(messages: tuple[Message, ...]) -> list[WireValue] | None:
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
            for part in content:
                wire = _output(part, waiting)
                if wire is None:
                    return None
                wires.append(wire)
        elif waiting:
            return None
        elif type(content) is str:
            wires.append(MessageOut(role, content))
        elif role == "assistant":
            if not _turn(content, wires, waiting, seen):
                return None
        else:
            texts = plain_texts(content)
            if not texts or (role == "system" and len(wires) == 0):
                return None
            wires.append(MessageOut(role, [InputText(text) for text in texts]))
    return None if waiting or role == "system" or not wires else wires


def _turn(parts: tuple[AnyPart, ...], wires: list[WireValue], waiting: list[str], seen: set[str]) -> bool:
    """Text, then calls, each an item."""
    first = True
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
                return False
            seen.add(call_id)
            waiting.append(call_id)
            wires.append(CallOut(call_id, name, arguments_as_text(part)))
        elif type(part) is Text and first:
            if part.cache is not None or part.signature is not None or part.citations:
                return False
            if part.metadata is not None and tells(part.metadata, FAMILY):
                return False
            wires.append(MessageOut("assistant", part.text))
        else:
            return False
        first = False
    return not first


def _output(part: AnyPart, waiting: list[str]) -> WireValue:
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
        return OutputOut(part.tool_call_id, value)
    return OutputOut(part.tool_call_id, compact_text(value)) if part.kind == "data" else None


_tools = ToolMemory(lambda request, log: encode_tools(request.tools, log), _accepted)
