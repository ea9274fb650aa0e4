"""generateContent requests, the short way, both directions (see codecs/plain.py)."""

from __future__ import annotations

import string
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Raw, UnsetType

from dragoman.codecs.encoded import Encoded
from dragoman.codecs.gemini.foreign_signatures import is_dummy, is_tagged
from dragoman.codecs.gemini.profile import FAMILY, PROFILE, GeminiProfile, path_of
from dragoman.codecs.gemini.results import decode_text_wrapper, has_reference, read_response
from dragoman.codecs.gemini.tools import encode_tools, read_tools
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
from dragoman.codecs.ids import INVENTED_PREFIX, invent_id
from dragoman.codecs.plain import (
    Accepted,
    Given,
    PlainWire,
    ToolMemory,
    has_rare_settings,
    is_object,
    plain_texts,
    tells,
)
from dragoman.codecs.reading import MaybeInt, MaybeNumber, WireValue
from dragoman.ir import (
    AnyPart,
    AnyTool,
    Message,
    Request,
    Signature,
    Text,
    ToolCall,
    ToolChoice,
    ToolResult,
)
from dragoman.ir.messages import content_held
from dragoman.ir.parts import arguments_held, value_held
from dragoman.ir.values import encode_json

# ── decoding ──────────────────────────────────────────────────────────────────────────────────────────────────


class PlainCall(PlainWire, frozen=True, rename="camel"):
    name: str
    args: Raw
    id: Given[str] = None


class PlainResponse(PlainWire, frozen=True, rename="camel"):
    name: str
    response: Raw
    id: Given[str] = None


class PlainPart(PlainWire, frozen=True, rename="camel"):
    text: Given[str] = None
    function_call: Given[PlainCall] = None
    function_response: Given[PlainResponse] = None
    thought_signature: Given[str] = None


class PlainContent(PlainWire, frozen=True, rename="camel"):
    parts: list[PlainPart]
    role: Given[Literal["user", "model"]] = None


class PlainChoice(PlainWire, frozen=True, rename="camel"):
    mode: Literal["AUTO", "ANY", "NONE"]


class PlainToolConfig(PlainWire, frozen=True, rename="camel"):
    function_calling_config: PlainChoice


class PlainConfig(PlainWire, frozen=True, rename="camel"):
    max_output_tokens: MaybeInt = None
    temperature: MaybeNumber = None
    top_p: MaybeNumber = None
    top_k: MaybeInt = None


class PlainRequest(PlainWire, frozen=True, rename="camel"):
    contents: list[PlainContent]
    system_instruction: Given[PlainContent] = None
    tools: Given[Raw] = None
    tool_config: Given[PlainToolConfig] = None
    generation_config: Given[PlainConfig] = None


_read = msgspec.json.Decoder(PlainRequest).decode
_NO_CONFIG = PlainConfig()
_DECODED_CHOICES = {"AUTO": ToolChoice("auto"), "ANY": ToolChoice("required"), "NONE": ToolChoice("none")}


def decode_plain_request(body: bytes) -> Request | None:
    try:
        wire = _read(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None
    messages = _decode_contents(wire.contents, wire.system_instruction)
    if messages is None:
        return None
    tools: tuple[AnyTool, ...] = ()
    if wire.tools is not None:
        tools, notes = read_tools(wire.tools)
        if notes is not None:
            return None
    choice = None if wire.tool_config is None else _DECODED_CHOICES[wire.tool_config.function_calling_config.mode]
    config = wire.generation_config
    if config is None:
        return Request(None, messages, tools, choice, origin=FAMILY)
    maximum, temperature = config.max_output_tokens, config.temperature
    if maximum is temperature is None and config == _NO_CONFIG:
        return None
    return Request(
        None,
        messages,
        tools,
        choice,
        None,
        maximum,
        temperature,
        config.top_p,
        config.top_k,
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
        None,
        FAMILY,
    )


def _decode_contents(contents: list[PlainContent], system: PlainContent | None) -> tuple[Message, ...] | None:
    messages: list[Message] = []
    if system is not None:
        text = system.parts[0].text if len(system.parts) == 1 else None
        if text is None or system.role is not None or system.parts != [PlainPart(text)]:
            return None
        messages.append(Message("system", text))
    waiting: list[AnyPart] = []  # the calls of the last turn, until they are answered
    for index, content in enumerate(contents):
        parts, role = content.parts, content.role
        if not parts:
            return None
        first = parts[0]
        if first.function_response is not None:
            results = _decode_results(parts, waiting)
            if results is None or role != "user":
                return None
            waiting = []
            messages.append(Message("tool", results))
        elif waiting or role is None:
            return None
        elif len(parts) == 1 and first.function_call is None:
            text = first.text
            if text is None or first.thought_signature is not None:
                return None
            messages.append(Message("user" if role == "user" else "assistant", text))
        else:
            said = _decode_model(parts, index, waiting) if role == "model" else None
            if said is None:
                return None
            messages.append(Message("assistant", said))
    return tuple(messages)


def _decode_model(parts: list[PlainPart], index: int, waiting: list[AnyPart]) -> tuple[AnyPart, ...] | None:
    said: list[AnyPart] = []
    for part in parts:
        call, spelled = part.function_call, part.thought_signature
        if part.function_response is not None:
            return None
        if call is None:
            if part.text is None or spelled is not None:
                return None
            said.append(Text(part.text))
            continue
        arguments, call_id, signature = call.args, call.id, None
        if spelled is not None:
            if is_dummy(spelled) or is_tagged(spelled):
                return None
            signature = Signature(FAMILY, spelled)
        if part.text is not None or not is_object(bytes(arguments)):
            return None
        if call_id is None:
            call_id = invent_id(f"$.contents[{index}]", len(waiting))
            decoded = ToolCall(call_id, call.name, arguments, None, False, True, False, signature)  # noqa: FBT003
        elif call_id and call_id[:4] != INVENTED_PREFIX:
            decoded = ToolCall(call_id, call.name, arguments, None, False, False, False, signature)  # noqa: FBT003
        else:
            return None
        waiting.append(decoded)
        said.append(decoded)
    return tuple(said)


def _decode_results(parts: list[PlainPart], waiting: list[Any]) -> tuple[AnyPart, ...] | None:
    """One for each open call, in order, nothing beside them."""
    if len(parts) != len(waiting):
        return None
    results: list[AnyPart] = []
    for call, part in zip(waiting, parts):  # noqa: B905  as many as each other, and this is the hot path
        answer = part.function_response
        if (
            answer is None
            or part.text is not None
            or part.function_call is not None
            or part.thought_signature is not None
        ):
            return None
        call_id, name, given, response = call.id, call.name, answer.id, answer.response
        if answer.name != name or (given != call_id and (given is not None or not call.invented_id)):
            return None
        data = bytes(response)
        head = data[:11]
        if head == b'{"output":"':
            try:
                results.append(ToolResult(call_id, name, "text", decode_text_wrapper(data).output))
            except msgspec.DecodeError:
                return None
        elif head[:3] in _ORDINARY_STARTS and data.isascii() and _DOLLAR not in data:
            results.append(ToolResult(call_id, name, "data", response))
        else:
            result = _unusual_result(call, response, data)
            if result is None:
                return None
            results.append(result)
    return tuple(results)


def _unusual_result(call: ToolCall, response: Raw, data: bytes) -> ToolResult | None:
    if not is_object(data):
        return None
    kind, value = read_response(response, data)
    return None if kind == "data" and has_reference(data) else ToolResult(call.id, call.name, kind, value)


_DOLLAR = ord("$")
_ORDINARY_STARTS = frozenset(
    b'{"' + bytes([letter]) for letter in string.ascii_letters.encode() if letter not in b"oeu"
)
"""Of responses that are certainly no wrapper: neither `output` nor `error`, nor our own."""


# ── encoding ──────────────────────────────────────────────────────────────────────────────────────────────────

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
        texts = _texts(content_held(first))
        if not texts or first.name is not None or (first.metadata is not None and tells(first.metadata, FAMILY)):
            return None
        system = ContentOut(UNSET, texts)
        messages = messages[1:]
    contents = _contents(messages, profile.sends_foreign_ids)
    if contents is None:
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
        wire_choice = _CHOICES[choice.mode]
    temperature = request.temperature
    config: WireValue = UNSET if maximum is temperature is None else ConfigOut(maximum, temperature)
    wire = GenerateContentRequest(contents, system, wire_tools, wire_choice, config)
    return Encoded(encode_json(wire), losses, path_of(request.model, profile, stream=request.stream))


def _contents(messages: tuple[Message, ...], sends_ids: bool) -> list[WireValue] | None:  # noqa: C901, FBT001, PLR0912  the hot path: one walk
    contents: list[WireValue] = []
    turn: list[WireValue] | None = None  # results, while more of the same turn may follow
    waiting: list[ToolCall] = []
    seen: set[str] = set()
    previous = "system"
    for message in messages:
        if message.name is not None or (message.metadata is not None and tells(message.metadata, FAMILY)):
            return None
        role: str = message.role
        content: Any = content_held(message)
        if role == "tool":
            if not content:
                return None
            if turn is None:
                turn = []
                contents.append(ContentOut("user", turn))
            for part in content:
                result = _result(part, waiting, sends_ids)
                if result is None:
                    return None
                turn.append(result)
            previous = role
            continue
        if waiting:
            return None
        turn = None
        if role == "user":
            texts = (TextOut(content),) if type(content) is str else _texts(content)
            if not texts:
                return None
            contents.append(ContentOut("user", texts))
        elif role == "system" or previous == "assistant" or previous == "system":  # noqa: PLR1714
            return None
        elif type(content) is str:
            contents.append(ContentOut("model", (TextOut(content),)))
        else:
            parts = _model_parts(content, waiting, seen, sends_ids)
            if not parts:
                return None
            contents.append(ContentOut("model", parts))
        previous = role
    return None if waiting or previous == "assistant" or not contents else contents


def _texts(content: str | tuple[AnyPart, ...]) -> Sequence[TextOut] | None:
    if type(content) is str:
        return (TextOut(content),)
    texts = plain_texts(content)  # type: ignore[arg-type]
    return None if texts is None else [TextOut(text) for text in texts]


def _model_parts(
    parts: tuple[AnyPart, ...],
    waiting: list[ToolCall],
    seen: set[str],
    sends_ids: bool,  # noqa: FBT001
) -> list[WireValue] | None:
    wires: list[WireValue] = []
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
            waiting.append(part)
            wires.append(CallOut(FunctionCallOut(name, held, _sent_id(part, sends_ids))))
        elif type(part) is Text:
            if part.cache is not None or part.signature is not None or part.citations:
                return None
            if part.metadata is not None and tells(part.metadata, FAMILY):
                return None
            wires.append(TextOut(part.text))
        else:
            return None
    return wires


def _sent_id(call: ToolCall, sends_ids: bool) -> str | UnsetType:  # noqa: FBT001
    return call.id if sends_ids and not call.invented_id and call.id[:4] != INVENTED_PREFIX else UNSET


def _result(part: AnyPart, waiting: list[ToolCall], sends_ids: bool) -> WireValue:  # noqa: FBT001
    if type(part) is not ToolResult or not waiting:
        return None
    call = waiting.pop(0)
    if (
        part.tool_call_id != call.id
        or (part.metadata is not None and tells(part.metadata, FAMILY))
        or part.cache is not None
        or part.parts
        or not part.name
    ):
        return None
    value: Any = value_held(part)
    if part.kind == "text" and type(value) is str:
        response: WireValue = Output(value)
    elif part.kind == "data" and type(value) is Raw:
        data = bytes(value)
        if has_reference(data):
            return None
        response = value if data[:1] == b"{" else Output(value)
    else:
        return None
    return ResultOut(FunctionResponseOut(call.name, response, _sent_id(call, sends_ids)))


_tools = ToolMemory(lambda request, log: encode_tools(request, PROFILE, log), _accepted)
