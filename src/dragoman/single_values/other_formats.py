"""Notices values of another format.

Decoders keep what they do not know, so a value of another format can read as a call without arguments, or as a message
without parts. In a whole body such keys are extensions of a vendor; a single value with nothing else is a mistake.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from dragoman.codecs.registry import formats
from dragoman.errors import DecodeError
from dragoman.ir import AnyTool, Message, Opaque, ToolCall, ToolDefinition, ToolResult

T = TypeVar("T")


def refuse_other_format(
    found: Sequence[T],
    count: Callable[[Sequence[T]], int],
    *,
    read: Callable[[str], Sequence[T]],
    expected: str,
    source: str,
) -> None:
    """Raises if another format reads more in the value than `found`. `read` reads it as a format, `count` measures."""
    known = formats()
    if source not in known:  # stored records are written in many shapes, and say less
        return
    ours = count(found)
    for other in known:
        if other == source:
            continue
        try:
            theirs = count(read(other))
        except DecodeError:
            continue
        if theirs > ours:
            raise DecodeError(path="$", expected=expected, got=f"a value of {other}", source=source)


def count_calls(calls: Sequence[ToolCall]) -> int:
    """The number of calls, and of those with arguments."""
    return len(calls) + sum(1 for call in calls if not call.parsed or call.arguments)


def count_results(results: Sequence[ToolResult]) -> int:
    """The number of results, and of those with a value."""
    return len(results) + sum(1 for result in results if result.parts or result.value not in ("", {}, None))


def count_parts(messages: Sequence[Message]) -> int:
    return sum(1 for message in messages for part in message.parts if not isinstance(part, Opaque))


def count_schemas(tools: Sequence[AnyTool]) -> int:
    """The number of functions with parameters."""
    return sum(1 for tool in tools if isinstance(tool, ToolDefinition) and tool.parameters)
