"""Decodes single values of a format."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeVar

from msgspec import Raw, structs

from dragoman.codecs.ids import INVENTED_PREFIX, invent_id, is_invented
from dragoman.codecs.registry import layout
from dragoman.errors import DecodeError, UnsupportedFormat
from dragoman.ir import AnyTool, Message, Request, ToolCall, ToolChoice, ToolResult
from dragoman.ir.values import encode_json, exact_json
from dragoman.single_values.encoding import encode_messages
from dragoman.single_values.other_formats import (
    count_calls,
    count_parts,
    count_results,
    count_schemas,
    refuse_other_format,
)
from dragoman.single_values.values import WireInput, WireInputs
from dragoman.single_values.wrapping import (
    read_bytes,
    read_items,
    read_wrapped,
    wrap_choice,
    wrap_messages,
    wrap_tools,
)
from dragoman.translate import decode_response

_SEED = "call"
_FUNCTION = b'"function"'
_RESULTS = "a tool result or a message of tool results"
_OURS = re.compile(INVENTED_PREFIX.encode() + rb"\w+")
T = TypeVar("T")


def decode_tool_call(value: WireInput, source: str, *, position: int = 0) -> ToolCall:
    """One call of format `source`: a call object, its inner object, or an assistant message that makes one call.

    Where the wire gives no id (Gemini, Ollama, old records), the call gets one that depends on `position` alone: its
    number in the conversation. Use a different position for each call of a conversation, or `decode_tool_calls`.

    >>> call = decode_tool_call({"functionCall": {"name": "get_weather", "args": {"city": "Tokyo"}}}, "gemini")
    >>> call.name, call.arguments, call.invented_id
    ('get_weather', {'city': 'Tokyo'}, True)
    """
    return _only(decode_tool_calls(value, source, position=position), "tool call", source)


def decode_tool_calls(value: WireInputs, source: str, *, position: int = 0) -> tuple[ToolCall, ...]:
    """All calls of a message, or of a list of calls or messages. `position` is the number of the first of them."""
    data = read_bytes(value, source)
    try:
        calls = _decode_calls(data, source, position)
    except DecodeError:
        if not _is_response(data, source):
            raise
    else:
        if count_calls(calls) < 2 * len(calls) or not calls:
            _refuse_calls_of_others(calls, data, source)
        return calls
    hint = f"a whole response, whose calls are decode_response(body, {source!r}).tool_calls"
    raise DecodeError(path="$", expected="a tool call or an assistant message", got=hint, source=source)


def _refuse_calls_of_others(calls: Sequence[ToolCall], data: bytes, source: str) -> None:
    def read(other: str) -> Sequence[ToolCall]:
        return _decode_calls(data, other, 0)

    refuse_other_format(calls, count_calls, read=read, expected="a tool call or an assistant message", source=source)


def _is_response(data: bytes, source: str) -> bool:
    """Whether this is a whole response that makes calls."""
    try:
        completion = decode_response(data, source)
    except (DecodeError, UnsupportedFormat):
        return False
    return any(message.tool_calls for message in completion.messages)


def _decode_calls(data: bytes, source: str, position: int) -> tuple[ToolCall, ...]:
    where = layout(source)
    items = read_items(data, source, "a tool call or an assistant message")
    holder = None if where.calls is None else (where.assistant, where.calls)
    request = read_wrapped(wrap_messages(items, where, holder=holder, envelope=where.call_envelope), source)
    if not any(sign in item.keys for item in items for sign in where.message_signs):
        _refuse_others(request, ToolCall, "a tool call", source)
    calls = [call for message in request.messages for call in message.tool_calls]
    if not all(call.name for call in calls):
        raise DecodeError(path="$", expected="a call with the name of its tool", got="no name", source=source)
    echoed = _ids_of_ours(data)
    return tuple(
        structs.replace(call, id=invent_id(_SEED, position + index)) if _is_made_up(call.id, echoed) else call
        for index, call in enumerate(calls)
    )


def decode_tool_result(value: WireInput, source: str, *, call: ToolCall | None = None, position: int = 0) -> ToolResult:
    """One result of format `source`: a message or block that holds it, or its inner object.

    OpenAI and Anthropic do not name the tool in a result: give the `call` it answers, else `name` is empty.

    >>> block = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "18°", "is_error": False}
    >>> decode_tool_result(block, "anthropic-messages", call=ToolCall("toolu_1", "get_weather", {})).name
    'get_weather'
    """
    results = decode_tool_results(value, source, calls=() if call is None else (call,), position=position)
    return _only(results, "tool result", source)


def decode_tool_results(
    value: WireInputs, source: str, *, calls: Sequence[ToolCall] = (), position: int = 0
) -> tuple[ToolResult, ...]:
    """All results of a message, or of a list of results or messages, media that follow in a user message included.

    `calls` are those of the turn they answer. A result takes its name, and where the wire has no ids its id, from the
    call; without them a result that has no id gets the id `decode_tool_calls` gives the call at the same position.
    """
    data = read_bytes(value, source)
    results = _decode_results(data, source, calls, position)
    if count_results(results) < 2 * len(results) or not results:

        def read(other: str) -> Sequence[ToolResult]:
            return _decode_results(data, other, (), position)

        refuse_other_format(results, count_results, read=read, expected=_RESULTS, source=source)
    return results


def _decode_results(data: bytes, source: str, calls: Sequence[ToolCall], position: int) -> tuple[ToolResult, ...]:
    where = layout(source)
    items = read_items(data, source, _RESULTS)
    before = _as_messages(calls, source)
    wrapped = wrap_messages(items, where, holder=where.results, envelope=where.result_envelope, before=before)
    request = read_wrapped(wrapped, source)
    if not calls:
        _refuse_others(request, ToolResult, "tool results", source)
        results = [result for message in request.messages for result in message.tool_results]
        echoed = _ids_of_ours(data)
        return tuple(
            structs.replace(result, tool_call_id=invent_id(_SEED, position + index))
            if _is_made_up(result.tool_call_id, echoed)
            else result
            for index, result in enumerate(results)
        )
    first, *rest = request.messages
    _refuse_others(structs.replace(request, messages=tuple(rest)), ToolResult, "tool results", source)
    again = {read_back.id: call for read_back, call in zip(first.tool_calls, calls, strict=True)}
    return tuple(_pair_with_call(result, again) for message in rest for result in message.tool_results)


def _as_messages(calls: Sequence[ToolCall], source: str) -> list[Raw]:
    if not calls:
        return []
    encoded = encode_messages([Message("assistant", tuple(calls))], source)
    return [item.raw for item in read_items(encoded.json(), source, "messages")]


def _pair_with_call(result: ToolResult, calls: dict[str, ToolCall]) -> ToolResult:
    call = calls.get(result.tool_call_id)
    if call is None:
        return result
    return structs.replace(result, tool_call_id=call.id, name=result.name or call.name)


def decode_tool_definition(value: WireInput, source: str) -> AnyTool:
    """One tool definition of format `source`. A tool that the provider runs is a `ProviderTool`.

    >>> decode_tool_definition({"name": "f", "input_schema": {"type": "object"}}, "anthropic-messages")
    ToolDefinition(name='f', parameters={'type': 'object'})
    """
    return _only(decode_tool_definitions(value, source), "tool definition", source)


def decode_tool_definitions(value: WireInputs, source: str) -> tuple[AnyTool, ...]:
    """All tool definitions of a list, or of one element that holds several (`functionDeclarations`)."""
    data = read_bytes(value, source)
    tools = _decode_definitions(data, source)
    items = read_items(data, source, "a tool definition")
    # Of another type: a tool that the provider runs, perhaps a future one. It may have parameters, too.
    is_function = all(bytes(item.keys.get("type", _FUNCTION)) == _FUNCTION for item in items)
    if is_function and count_schemas(tools) < len(tools):

        def read(other: str) -> Sequence[AnyTool]:
            return _decode_definitions(data, other)

        refuse_other_format(tools, count_schemas, read=read, expected="a tool definition", source=source)
    return tools


def _decode_definitions(data: bytes, source: str) -> tuple[AnyTool, ...]:
    items = read_items(data, source, "a tool definition")
    return read_wrapped(wrap_tools(items, layout(source)), source).tools


def decode_tool_choice(value: WireInput, source: str) -> ToolChoice:
    """The tool choice of format `source`. Text that is not JSON is taken literally: `"auto"`.

    >>> decode_tool_choice({"type": "any"}, "anthropic-messages")
    ToolChoice(mode='required')
    """
    where = layout(source)
    is_word = isinstance(value, str) and exact_json(value) is None
    data = encode_json(value) if is_word else read_bytes(value, source)
    is_object = data.lstrip()[:1] == b"{"
    keys = read_items(data, source, "a tool choice")[0].keys if is_object else {}
    choice = read_wrapped(wrap_choice(Raw(data), keys, where), source).tool_choice
    if choice is None:
        raise DecodeError(path="$", expected="a tool choice", got="a value that this format lacks", source=source)
    return choice


def decode_message(value: WireInput, source: str) -> Message:
    """One message of format `source` that is one message of the intermediate format too.

    Results have messages of their own in the intermediate format: a user message with results and text is two. Use
    `decode_messages`.

    >>> decode_message({"role": "model", "parts": [{"text": "hi"}]}, "gemini").role
    'assistant'
    """
    return _only(decode_messages(value, source), "message", source)


def decode_messages(value: WireInputs, source: str) -> tuple[Message, ...]:
    """A message or a list of messages (items, contents, entries) of format `source`."""
    data = read_bytes(value, source)
    messages = _decode_messages(data, source)
    if not any(message.parts for message in messages):

        def read(other: str) -> Sequence[Message]:
            return _decode_messages(data, other)

        refuse_other_format(messages, count_parts, read=read, expected="a message", source=source)
    return messages


def _decode_messages(data: bytes, source: str) -> tuple[Message, ...]:
    items = read_items(data, source, "a message")
    return read_wrapped(wrap_messages(items, layout(source), holder=None, envelope=None), source).messages


def _only(values: Sequence[T], what: str, source: str) -> T:
    if len(values) != 1:
        got = f"{len(values)} {what}s" if values else f"no {what}"
        raise DecodeError(path="$", expected=f"one {what}", got=got, source=source)
    return values[0]


def _refuse_others(request: Request, kind: type[ToolCall | ToolResult], expected: str, source: str) -> None:
    """Raises if there are other parts, which would be dropped silently."""
    for message in request.messages:
        for part in message.parts:
            if not isinstance(part, kind):
                got = (
                    f"{type(part).__name__} in a message of role {message.role} (the parts of a message: pass it whole)"
                )
                raise DecodeError(path="$", expected=f"{expected} and nothing else", got=got, source=source)


def _ids_of_ours(data: bytes) -> set[str]:
    """Strings in the input that may be ids that dragoman invented earlier and a client returned."""
    return {found.decode() for found in _OURS.findall(data)}


def _is_made_up(call_id: str, echoed: set[str]) -> bool:
    """Whether the decoder invented this id just now."""
    return not call_id or (is_invented(call_id) and call_id not in echoed)
