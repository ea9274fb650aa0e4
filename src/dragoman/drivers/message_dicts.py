"""Messages given as mappings: in any wire format or record format, named or recognised by its keys.

The codecs read them, so a mapping means here what it means in a body of its format. If several formats are possible,
all of them read it; if their readings differ, the mapping is ambiguous and refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec
from msgspec import structs

from dragoman.errors import DecodeError
from dragoman.ir import AnyPart, Message, ToolCall, ToolResult
from dragoman.single_values import decode_messages

MessageLike: TypeAlias = Message | Mapping[str, Any]
"""A message, or a mapping of the shape of any format."""

_PLAIN = frozenset({"role", "content", "name"})
_ROLES = frozenset({"system", "user", "assistant", "developer"})
_STEPS = frozenset({"user_input", "model_output", "thought", "function_result"})
_SPEAKERS = frozenset({"gemini", "chatgpt", "claude"})
_PLACE = re.compile(r"\$(?:\.\w+)?\[(\d+)\]")

Formats: TypeAlias = tuple[str, ...]
_OPENAI: Formats = ("openai-chat", "agent-sdk", "modular-prompt")
_WITH_NAMES: Formats = (
    *_OPENAI,
    "openai-responses",
    "ollama-chat",
    "universal",
    "multi-llm-chat",
)
_BLOCKS: Mapping[str, Formats] = {
    **dict.fromkeys(("tool_use", "thinking", "redacted_thinking", "server_tool_use", "image"), ("anthropic-messages",)),
    "document": ("anthropic-messages", "agent-sdk"),
    **dict.fromkeys(("image_url",), _OPENAI),
    **dict.fromkeys(("input_audio", "file", "refusal"), ("openai-chat",)),
    **dict.fromkeys(("input_text", "output_text", "input_image", "input_file"), ("openai-responses",)),
    "tool_call": ("multi-llm-chat",),
}


def read_messages(
    given: Sequence[MessageLike], format: str | None = None, *, place: str = "$.messages"
) -> list[Message]:
    """The messages; mappings are read as `format`, or as the one format that their keys allow."""
    untyped: object = given
    if isinstance(untyped, str | Mapping | Message):
        what = "text: it is the prompt" if isinstance(untyped, str) else "a single one: put it into a list"
        raise _decode_error(place, "a list of messages", what)
    messages: list[Message] = []
    run: list[Mapping[str, Any]] = []
    for index, one in enumerate([*given, None]):
        if isinstance(one, Mapping):
            run.append(one)
            continue
        if run:
            messages += _read_run(run, format, place, index - len(run))
            run = []
        if isinstance(one, Message):
            messages.append(one)
        elif one is not None:
            raise _decode_error(f"{place}[{index}]", "a Message or a mapping", type(one).__name__)
    return _with_names(messages)


def _read_run(run: Sequence[Mapping[str, Any]], format: str | None, place: str, start: int) -> Sequence[Message]:
    plain, values = _with_placeholders(run)
    names = _candidates(plain, place, start) if format is None else (format,)
    readings: dict[str, tuple[Message, ...]] = {}
    failure: DecodeError | None = None
    for name in names:
        try:
            readings[name] = _decode(plain, name, place, start)
        except DecodeError as error:
            failure = failure or error
    if failure is not None and not readings:
        raise failure
    (first, found), *others = readings.items()
    for other, reading in others:
        difference = _difference(_without_format_notes(found), _without_format_notes(reading), place, start)
        if difference is not None:
            where, one, another = difference
            got = (
                f"what {first} reads as {_show(one)} and {other} as {_show(another)}; "
                f'name the format, as in message_format="{first}"'
            )
            raise _decode_error(where, "a message that every possible format reads alike", got)
    return [_with_values(message, values) for message in found]


def _decode(run: Sequence[Mapping[str, Any]], format: str, place: str, start: int) -> tuple[Message, ...]:
    try:
        return decode_messages(msgspec.json.encode(run), format)
    except DecodeError as error:
        raise DecodeError(
            path=_shift_path(error.path, place, start), expected=error.expected, got=error.got, source=error.source
        ) from None


def _shift_path(path: str, place: str, start: int) -> str:
    """Rewrites a path in the codec's body as a path in the caller's list."""
    found = _PLACE.match(path)
    return place if found is None else f"{place}[{start + int(found[1])}]{path[found.end() :]}"


def _decode_error(path: str, expected: str, got: str) -> DecodeError:
    return DecodeError(path=path, expected=expected, got=got, source="messages")


# ── which format ──────────────────────────────────────────────────────────────────────────────────────────────


def _candidates(run: Sequence[Mapping[str, Any]], place: str, start: int) -> Formats:
    if any("tool_plan" in message for message in run):  # the only difference between Cohere's messages and Chat's
        return ("cohere-chat",)
    allowed: Formats | None = None
    first = start
    for index, message in enumerate(run, start):
        path = f"{place}[{index}]"
        for signs in _signs(message, path):
            left = signs if allowed is None else tuple(name for name in allowed if name in signs)
            if not left:
                got = f"{' or '.join(signs)}, after {' or '.join(allowed or ())} at {place}[{first}]"
                raise _decode_error(path, "messages of one format", got)
            first = index if allowed is None else first
            allowed = left
    return allowed or ("openai-chat",)


def _signs(message: Mapping[str, Any], path: str) -> Iterator[Formats]:
    """For each format-specific detail, the formats that have it. Plain text in a plain role yields nothing."""
    found = [*_signs_of_keys(message), *_signs_of_content(message.get("content"))]
    if found and "name" in message:  # messages of Anthropic, Gemini and Bedrock have no such role
        found.append(_WITH_NAMES if "role" in message else (*_WITH_NAMES, "gemini-interactions"))
    yield from found
    if found:
        return
    unknown = sorted(message.keys() - _PLAIN)
    role = message.get("role")
    if unknown or not isinstance(role, str) or role not in _ROLES:
        got = f"the unknown keys {', '.join(unknown)}" if unknown else f"role {role!r}"
        raise _decode_error(path, "a message of a known format, or message_format that names it", got)


def _signs_of_keys(message: Mapping[str, Any]) -> Iterator[Formats]:
    role = message.get("role")
    if "role" not in message and (
        message.get("type") in _STEPS or (message.get("type") == "function_call" and "call_id" not in message)
    ):
        yield ("gemini-interactions",)
        return
    for names, formats in _KEY_SIGNS:
        if any(name in message for name in names):
            yield formats
    calls = list(_mappings(message.get("tool_calls")))
    if calls:
        yield _format_of_calls(calls)
    elif "tool_calls" in message:
        yield ("openai-chat", "ollama-chat", "agent-sdk", "universal")
    if "role" not in message and "type" in message:
        yield ("openai-responses",)
    elif role in _SPEAKERS:
        yield ("multi-llm-chat",)
    elif role == "reasoning":
        yield ("agent-sdk",)
    elif role == "developer":
        yield ("openai-chat", "openai-responses")
    if "tool_call_id" in message and "tool_name" not in message and "result" not in message:
        yield ("openai-chat",)
    elif "tool_name" in message:
        yield ("agent-sdk", "ollama-chat") if "tool_call_id" in message else ("ollama-chat",)


_KEY_SIGNS: tuple[tuple[tuple[str, ...], Formats], ...] = (
    (("toolCalls", "toolCallId"), ("modular-prompt",)),
    (("parts",), ("gemini",)),
    (("images", "thinking"), ("ollama-chat",)),
    (("output_ref", "trimmed"), ("agent-sdk",)),
    (("result", "raw_context"), ("universal",)),
    (("function_call", "refusal", "audio", "reasoning_content"), ("openai-chat",)),
    (("kind",), ("modular-prompt",)),
)


def _format_of_calls(calls: Sequence[Mapping[str, Any]]) -> Formats:
    functions = [call.get("function") for call in calls]
    if any("provider_meta" in call for call in calls):
        return ("agent-sdk",)
    if all(isinstance(function, Mapping) for function in functions):
        texts = [isinstance(function.get("arguments"), str) for function in functions if isinstance(function, Mapping)]
        return ("openai-chat", "agent-sdk") if all(texts) else ("ollama-chat",)
    return ("openai-chat",) if any("custom" in call for call in calls) else ("universal",)


def _signs_of_content(content: Any) -> Iterator[Formats]:
    for block in _mappings(content):
        kind = block.get("type")
        if not isinstance(kind, str):
            yield ("bedrock-converse",)
        elif kind == "tool_result":
            yield ("anthropic-messages",) if "tool_use_id" in block else ("multi-llm-chat",)
        elif kind == "text" and "text" not in block and "content" in block:
            yield ("multi-llm-chat",)
        elif kind == "text":
            yield ("openai-chat", "anthropic-messages", "agent-sdk", "modular-prompt", "gemini-interactions")
        elif kind in _BLOCKS:
            yield _BLOCKS[kind]


def _mappings(value: Any) -> Iterable[Mapping[str, Any]]:
    return (one for one in value if isinstance(one, Mapping)) if isinstance(value, list | tuple) else ()


def _without_format_notes(messages: Sequence[Message]) -> Any:
    """The messages without format-specific notes; a bare string is one text part."""
    copies = [structs.replace(one, parts=one.parts) for one in messages]
    return _without_notes(msgspec.json.decode(msgspec.json.encode(copies)))


def _without_notes(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_notes(one) for one in value]
    if isinstance(value, dict):
        return {key: _without_notes(one) for key, one in value.items() if key != "metadata"}
    return value


_Difference: TypeAlias = tuple[str, Any, Any]


def _difference(one: Any, other: Any, where: str, start: int = 0) -> _Difference | None:
    """The first place where two readings differ, and what each has there."""
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = enumerate(zip(one, other, strict=True), start)
        return next((found for at, (a, b) in pairs if (found := _difference(a, b, f"{where}[{at}]"))), None)
    if isinstance(one, dict) and isinstance(other, dict):
        if one.keys() == other.keys():
            places = ((f"{where}.{key}", key) for key in one)
            return next((found for at, key in places if (found := _difference(one[key], other[key], at))), None)
        names = [key for key in {**one, **other} if one.get(key) != other.get(key)]
        return where, {key: one[key] for key in names if key in one}, {key: other[key] for key in names if key in other}
    return None if one == other else (where, one, other)


def _show(value: Any) -> str:
    text = msgspec.json.encode(value).decode() if value != {} else "nothing"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


_SHOWN = 60


# ── values within mappings ────────────────────────────────────────────────────────────────────────────────────


def _with_placeholders(run: Sequence[Mapping[str, Any]]) -> tuple[list[dict[str, Any]], dict[str, ToolCall]]:
    """Replaces `ToolCall` values in `toolCalls` by placeholders for the codec; `_with_values` puts them back."""
    values: dict[str, ToolCall] = {}
    plain: list[dict[str, Any]] = []
    for message in run:
        copied = dict(message)
        for key, write in _CALL_KEYS.items():
            calls = message.get(key)
            if isinstance(calls, list | tuple) and any(isinstance(call, ToolCall) for call in calls):
                values |= {call.id: call for call in calls if isinstance(call, ToolCall)}
                copied[key] = [write(call) if isinstance(call, ToolCall) else call for call in calls]
            elif calls is None and key in message:
                del copied[key]
        plain.append(copied)
    return plain, values


_CALL_KEYS: Mapping[str, Callable[[ToolCall], dict[str, Any]]] = {
    "toolCalls": lambda call: {"id": call.id, "name": call.name, "arguments": {}},
    "tool_calls": lambda call: {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": "{}"},
    },
}


def _with_values(message: Message, values: Mapping[str, ToolCall]) -> Message:
    if not values or not message.tool_calls:
        return message
    parts: tuple[AnyPart, ...] = tuple(
        values.get(part.id, part) if isinstance(part, ToolCall) else part for part in message.parts
    )
    return structs.replace(message, parts=parts)


def _with_names(messages: list[Message]) -> list[Message]:
    """Gives results without a tool name the name of their call."""
    names = {call.id: call.name for message in messages for call in message.tool_calls}
    return [_with_names_in(message, names) if message.role == "tool" else message for message in messages]


def _with_names_in(message: Message, names: Mapping[str, str]) -> Message:
    if all(result.name for result in message.tool_results):
        return message
    parts = (
        structs.replace(part, name=names.get(part.tool_call_id, ""))
        if isinstance(part, ToolResult) and not part.name
        else part
        for part in message.parts
    )
    return structs.replace(message, parts=tuple(parts))
