"""Encodes single values in a format, legal there, with losses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

import msgspec
from msgspec import Raw, Struct

from dragoman.codecs.ids import is_invented
from dragoman.codecs.layout import Layout
from dragoman.codecs.registry import codec, layout
from dragoman.errors import EncodeError, LossRefused
from dragoman.ir import AnyTool, Message, Request, ToolCall, ToolChoice, ToolDefinition, ToolResult
from dragoman.ir.values import Value, encode_json
from dragoman.loss import Loss, Severity
from dragoman.losses import PathLookup, PathsWithPieces, intermediate_piece
from dragoman.single_values.values import EncodedValue
from dragoman.translate import decode_request, encode_request_for

_read_object = msgspec.json.Decoder(dict[str, Raw]).decode
_read_list = msgspec.json.Decoder(list[Raw]).decode
T = TypeVar("T")

_QUESTION = Message("user", "…")
"""Placeholder turns around the encoded values, so that the request is legal; removed afterwards."""
_FRAME = "$"
"""Path of losses of the frame, not of the values."""


class _Frame(NamedTuple):
    """A request around some values, and their positions in it."""

    request: Request
    kind: Literal["messages", "parts", "tools", "choice"]
    """Kind of the values: messages, parts of one message, tools, or the tool choice."""
    messages: Mapping[int, int] = {}
    """Index of a message in the request -> index of the value it is (or, for parts, anything)."""
    tools: Mapping[int, int] | None = None
    """Index of a tool in the request -> index of the value it is declared for; None: the same index."""

    def paths(self, _root: Value) -> PathLookup:
        return self._path

    def _path(self, message_index: int | None, part_index: int | None, field: str) -> str:
        """The path of a node, starting at the list of values; `$` for a node of the frame."""
        index: int | None = None
        within = ""
        if message_index is None:
            if part_index is not None and (self.kind == "tools" or (self.kind == "parts" and field == "name")):
                # Aliases of names are reported on the definition; the frame declares one tool for each call and result.
                index = part_index if self.tools is None else self.tools[part_index]
            elif part_index is None and self.kind == "choice" and field.partition(".")[0] == "tool_choice":
                index, field = 0, field.removeprefix("tool_choice").removeprefix(".")
        elif message_index in self.messages:
            index = part_index if self.kind == "parts" else self.messages[message_index]
            within = f".parts[{part_index}]" if self.kind == "messages" and part_index is not None else ""
        if index is None:
            return _FRAME
        return f"$[{index}]{within}.{field}" if field else f"$[{index}]{within}"


class _Body(NamedTuple):
    members: Mapping[str, Raw]
    losses: list[Loss]

    def messages(self, where: Layout) -> list[Raw]:
        return _read_list(self.members[where.messages])

    def member(self, path: Sequence[str]) -> Raw | None:
        """The value at a path, or None."""
        members: Mapping[str, Raw] = self.members
        for key in path[:-1]:
            if key not in members:
                return None
            members = _read_object(members[key])
        return members.get(path[-1])


def _encode(frame: _Frame, target: str) -> _Body:
    encoded = encode_request_for(frame.request, codec(target), paths=PathsWithPieces(frame.paths, intermediate_piece))
    losses = [loss for loss in encoded.losses if loss.path != _FRAME]
    return _Body(_read_object(encoded.json()), losses)


def _result(value: Any, losses: Sequence[Loss], target: str, *, strict: bool, single: bool = False) -> EncodedValue:
    if single:
        losses = [msgspec.structs.replace(loss, path="$" + loss.path.removeprefix("$[0]")) for loss in losses]
    refused = [loss for loss in losses if loss.refusable]
    if strict and refused:
        raise LossRefused(refused, target=target)
    return EncodedValue(bytes(value) if type(value) is Raw else encode_json(value), tuple(losses))


# ── calls ─────────────────────────────────────────────────────────────────────────────────────────────────────


def encode_tool_call(call: ToolCall, target: str, *, model: str | None = None, strict: bool = False) -> EncodedValue:
    """The call as the object that format `target` has for it: an entry of `tool_calls`, a block, a part or an item.

    >>> call = ToolCall("call_1", "get_weather", {"city": "東京"})
    >>> encode_tool_call(call, "openai-chat").value["function"]
    {'name': 'get_weather', 'arguments': '{"city":"東京"}'}
    """
    calls, losses = _encode_calls(_listed((call,), ToolCall, "ToolCall", target), target, model)
    return _result(calls[0] if calls else None, losses, target, strict=strict, single=True)


def encode_tool_calls(
    calls: Sequence[ToolCall], target: str, *, model: str | None = None, strict: bool = False
) -> EncodedValue:
    """A list of such objects, in order. For the whole assistant message, use `encode_message`."""
    calls = _listed(calls, ToolCall, "ToolCall", target)
    wires, losses = _encode_calls(calls, target, model) if calls else ([], [])
    return _result(wires, losses, target, strict=strict)


def _encode_calls(calls: Sequence[ToolCall], target: str, model: str | None) -> tuple[list[Raw], list[Loss]]:
    where = layout(target)
    answers = tuple(ToolResult(call.id, call.name, "text", "…") for call in calls)
    messages = (_QUESTION, Message("assistant", tuple(calls)), Message("tool", answers))
    tools = tuple(ToolDefinition(call.name) for call in calls)
    body = _encode(_Frame(Request(model, messages, tools), "parts", {1: 0}), target)
    items = body.messages(where)[1:]
    if where.calls is not None:
        message = _read_object(items[0])
        items = _read_list(message[where.calls]) if where.calls in message else []
    places = [place for place, item in enumerate(items) if _is_call(item, where)]
    found = [items[place] for place in places]
    # If calls are items of the message list, results follow them there.
    end = len(items) if where.calls is not None else places[-1] + 1 if places else 0
    if len(found) < end:
        why = "it stands in a block of its own beside the call: encode the whole message"
        body.losses.append(Loss("$[0].signature", "signature of the call", "dropped", why))
    return found[: len(calls)], body.losses


def _is_call(item: Raw, where: Layout) -> bool:
    if where.call_sign is None:
        return True
    key, value = where.call_sign
    call = _read_object(item).get(key)
    return call is not None and (value is None or bytes(call) == encode_json(value))


# ── results ───────────────────────────────────────────────────────────────────────────────────────────────────


def encode_tool_result(
    result: ToolResult, target: str, *, call: ToolCall | None = None, model: str | None = None, strict: bool = False
) -> EncodedValue:
    """The messages that hold this result in format `target`: a list, because media may need a message of their own.

    >>> encode_tool_result(ToolResult("c1", "get_weather", "text", "18°"), "anthropic-messages").value
    [{'role': 'user', 'content': [{'type': 'tool_result', 'tool_use_id': 'c1', 'content': '18°'}]}]
    """
    results = _listed((result,), ToolResult, "ToolResult", target)
    messages, losses = _encode_results(results, () if call is None else (call,), target, model)
    return _result(messages, losses, target, strict=strict, single=True)


def encode_tool_results(
    results: Sequence[ToolResult],
    target: str,
    *,
    calls: Sequence[ToolCall] = (),
    model: str | None = None,
    strict: bool = False,
) -> EncodedValue:
    """The messages that hold all results of one turn.

    Where the API wants the results of a turn together (Anthropic, Gemini, Bedrock) they are one message. With the
    `calls` of the turn, results are sent in call order and take missing names from them; without, they stay as given.
    `model` matters where models differ: Gemini 3 takes media within a result, older models in a message of their own.
    """
    results = _listed(results, ToolResult, "ToolResult", target)
    messages, losses = _encode_results(results, calls, target, model) if results else ([], [])
    return _result(messages, losses, target, strict=strict)


def _encode_results(
    results: Sequence[ToolResult], calls: Sequence[ToolCall], target: str, model: str | None
) -> tuple[list[Raw], list[Loss]]:
    calls = _listed(calls, ToolCall, "ToolCall", target)
    where = layout(target)
    answered = _calls_of(results, where, calls)
    _check_names(results, answered, where, target)
    messages = (_QUESTION, Message("assistant", answered), Message("tool", tuple(results)))
    tools = tuple(ToolDefinition(call.name) for call in answered)
    places = {result.tool_call_id: index for index, result in enumerate(results)}
    named = {index: places[call.id] for index, call in enumerate(answered)}
    body = _encode(_Frame(Request(model, messages, tools), "parts", {2: 0}, named), target)
    return body.messages(where)[_items_of_calls(answered, where) + 1 :], body.losses


def _calls_of(results: Sequence[ToolResult], where: Layout, calls: Sequence[ToolCall] = ()) -> tuple[ToolCall, ...]:
    """The calls of these results, in call order; missing calls are derived from the results."""
    spare = "tool" if where.result_names == "unused" else ""
    names = {result.tool_call_id: result.name for result in results}
    given = {call.id: call for call in calls if call.id in names}
    order = dict.fromkeys([*given, *names])
    return tuple(
        ToolCall(
            id_,
            (given[id_].name if id_ in given else names[id_]) or spare,
            {},
            invented_id=given[id_].invented_id if id_ in given else is_invented(id_),
        )
        for id_ in order
    )


def _items_of_calls(calls: Sequence[ToolCall], where: Layout) -> int:
    """Number of messages of an assistant turn with these calls."""
    return len(calls) if where.calls is None else 1


def _check_names(results: Sequence[ToolResult], calls: Sequence[ToolCall], where: Layout, target: str) -> None:
    if where.result_names != "needed":
        return
    nameless = {call.id for call in calls if not call.name}
    for index, result in enumerate(results):
        if result.tool_call_id in nameless:
            reason = "a result needs the name of its tool here: give it one, or the call it answers"
            raise EncodeError(path=f"$[{index}].name", reason=reason, target=target)


def _listed(values: Sequence[T] | None, kind: Any, expected: str, target: str) -> tuple[T, ...]:
    """Return the values of a list, checked. A single one is refused: it has a function of its own."""
    if values is None:
        return ()
    if isinstance(values, str | bytes | Mapping | Struct) or not isinstance(values, Iterable):
        reason = f"expected a list of {expected}, got {type(values).__name__}"
        if isinstance(values, kind):
            reason += ": put it in a list, or call the function for a single one"
        raise EncodeError(path="$", reason=reason, target=target)
    listed = tuple(values)
    for index, value in enumerate(listed):
        if not isinstance(value, kind):
            reason = f"expected {expected}, got {type(value).__name__}"
            raise EncodeError(path=f"$[{index}]", reason=reason, target=target)
    return listed


# ── definitions and choice ────────────────────────────────────────────────────────────────────────────────────


def encode_tool_definition(
    tool: AnyTool, target: str, *, model: str | None = None, strict: bool = False
) -> EncodedValue:
    """The definition as an element of the list of tools in format `target`.

    >>> encode_tool_definition(ToolDefinition("now", "The time"), "anthropic-messages").value
    {'name': 'now', 'description': 'The time', 'input_schema': {'type': 'object', 'properties': {}}}
    """
    tools, losses = _encode_tools(_listed((tool,), AnyTool, "a tool definition", target), target, model)
    if len(tools) > 1:
        why = "it stands in an element of its own: encode the list of definitions"
        losses.append(Loss("$[0].cache", "cache mark", "dropped", why))
    return _result(tools[0] if tools else None, losses, target, strict=strict, single=True)


def encode_tool_definitions(
    tools: Sequence[AnyTool], target: str, *, model: str | None = None, strict: bool = False
) -> EncodedValue:
    """The list of tools of format `target`. Gemini holds all functions in one element of it."""
    tools = _listed(tools, AnyTool, "a tool definition", target)
    wires, losses = _encode_tools(tools, target, model) if tools else ([], [])
    return _result(wires, losses, target, strict=strict)


def _encode_tools(tools: Sequence[AnyTool], target: str, model: str | None) -> tuple[list[Raw], list[Loss]]:
    body = _encode(_Frame(Request(model, (_QUESTION,), tuple(tools)), "tools"), target)
    written = body.member(layout(target).tools)
    return [] if written is None else _read_list(written), body.losses


ChoiceInput: TypeAlias = ToolChoice | Literal["auto", "none", "required"] | Mapping[str, str]
"""A tool choice; `{"name": …}` forces one tool."""


def encode_tool_choice(
    choice: ChoiceInput, target: str, *, model: str | None = None, strict: bool = False
) -> EncodedValue:
    """The tool choice in format `target`; `value` is None if the API does not have it.

    >>> encode_tool_choice(ToolChoice("required", ("f",)), "gemini").value
    {'functionCallingConfig': {'mode': 'ANY', 'allowedFunctionNames': ['f']}}
    """
    choice = _read_choice(choice, target)
    where = layout(target)
    tools = tuple(ToolDefinition(name) for name in choice.names or ("tool",))
    body = _encode(_Frame(Request(model, (_QUESTION,), tools, choice), "choice"), target)
    written = body.member(where.tool_choice)
    losses = body.losses or _choice_losses(choice, written, where, target)
    return _result(written, losses, target, strict=strict, single=True)


def _read_choice(choice: ChoiceInput, target: str) -> ToolChoice:
    if isinstance(choice, ToolChoice):
        return choice
    if choice in ("auto", "none", "required"):
        return ToolChoice(choice)
    if isinstance(choice, Mapping) and choice.keys() == {"name"} and isinstance(choice["name"], str):
        return ToolChoice("required", (choice["name"],))
    reason = f'expected ToolChoice, "auto", "none", "required" or {{"name": …}}, got {choice!r:.80}'
    raise EncodeError(path="$", reason=reason, target=target)


def _choice_losses(choice: ToolChoice, written: Raw | None, where: Layout, target: str) -> list[Loss]:
    """Losses of a choice that the API expresses by declaring fewer tools, which a single choice cannot do."""
    again: ToolChoice | None = None
    if written is not None:
        member: Any = written
        for key in reversed(where.tool_choice):
            member = {key: member}
        again = decode_request(encode_json({where.messages: [], **member}), target).tool_choice
    mode, names = ("auto", ()) if again is None else (again.mode, again.names)
    if mode == choice.mode and len(names) == len(choice.names):
        return []
    described = f"{choice.mode} {', '.join(choice.names)}".strip()
    severity: Severity = "dropped" if written is None else "degraded"
    return [
        Loss("$[0]", f"tool choice {described}", severity, "this API expresses it by the tools that a request declares")
    ]


# ── messages ──────────────────────────────────────────────────────────────────────────────────────────────────


def encode_message(message: Message, target: str, *, model: str | None = None, strict: bool = False) -> EncodedValue:
    """The message in format `target`, as a list, because it may become several messages there.

    >>> encode_message(Message("user", "hi"), "gemini").value
    [{'role': 'user', 'parts': [{'text': 'hi'}]}]
    """
    messages, losses = _encode_messages(_listed((message,), Message, "Message", target), target, model)
    return _result(messages, losses, target, strict=strict, single=True)


def encode_messages(
    messages: Sequence[Message], target: str, *, model: str | None = None, strict: bool = False
) -> EncodedValue:
    """Consecutive messages of a conversation as messages of format `target`, made legal like a whole request.

    They may begin with results whose calls came before, and end with calls that are not answered yet. If the API has a
    field for system text, system messages cannot be in the list: they are reported, and `encode_request` writes them.
    """
    messages = _listed(messages, Message, "Message", target)
    wires, losses = _encode_messages(messages, target, model) if messages else ([], [])
    return _result(wires, losses, target, strict=strict)


def _encode_messages(messages: Sequence[Message], target: str, model: str | None) -> tuple[list[Raw], list[Loss]]:
    where = layout(target)
    leading = next((index for index, message in enumerate(messages) if message.role != "system"), len(messages))
    lead, rest = tuple(messages[:leading]), tuple(messages[leading:])
    calls = _calls_before(rest, where, target)
    called = (Message("assistant", calls),) if calls else ()
    after, cut_after = _after(rest, where)
    # A user turn in front keeps system messages in the list, where the list has a place for them.
    before = (_QUESTION, *lead, *called) if where.system is None else (*lead, _QUESTION, *called)
    places = {before.index(message): index for index, message in enumerate(lead)}
    places |= {len(before) + index: leading + index for index in range(len(rest))}
    body = _encode(_Frame(Request(model, (*before, *rest, *after)), "messages", places), target)
    wires = body.messages(where)
    skipped = 1 + (_count(lead, where, target, model) if where.system is None and lead else 0)
    cut_before = _items_of_calls(calls, where) if calls else 0
    losses = body.losses
    if where.system is not None and where.system in body.members:
        losses += _system_losses(messages, where.system)
    return [*wires[1:skipped], *wires[skipped + cut_before : len(wires) - cut_after]], losses


def _calls_before(messages: Sequence[Message], where: Layout, target: str) -> tuple[ToolCall, ...]:
    """The calls of results at the start of the list."""
    results: list[ToolResult] = []
    for message in messages:
        if message.role != "tool":
            break
        results += message.tool_results
    calls = _calls_of(results, where)
    _check_names(results, calls, where, target)
    return calls


def _after(messages: Sequence[Message], where: Layout) -> tuple[tuple[Message, ...], int]:
    """Turns after a list that ends with the assistant: results for open calls, or a user turn."""
    if not messages or messages[-1].role != "assistant":
        return (), 0
    calls = messages[-1].tool_calls
    if not calls:
        return (_QUESTION,), 1
    results = tuple(ToolResult(call.id, call.name, "text", "…") for call in calls)
    return (Message("tool", results),), len(results) if where.results is None else 1


def _count(messages: tuple[Message, ...], where: Layout, target: str, model: str | None) -> int:
    """Number of list items of these system messages."""
    body = _encode(_Frame(Request(model, (_QUESTION, *messages)), "messages"), target)
    return len(body.messages(where)) - 1


def _system_losses(messages: Sequence[Message], key: str) -> list[Loss]:
    why = f"this API has a field for it, `{key}`: encode_request writes that"
    return [
        Loss(f"$[{index}]", "system text", "dropped", why)
        for index, message in enumerate(messages)
        if message.role == "system"
    ]
