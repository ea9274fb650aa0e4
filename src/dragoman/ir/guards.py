"""Predicates on messages, given as a `Message` or as a mapping of modular-prompt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.ir.messages import Message


def has_tool_calls(message: Message | Mapping[str, Any]) -> bool:
    """Whether a message calls tools. An empty list of calls does not count.

    >>> has_tool_calls({"role": "assistant", "content": "", "toolCalls": []})
    False
    """
    if isinstance(message, Message):
        return bool(message.tool_calls)
    return message.get("role") == "assistant" and bool(message.get("toolCalls") or message.get("tool_calls"))


def is_tool_result(message: Message | Mapping[str, Any]) -> bool:
    """Whether a message is the result of a tool.

    >>> is_tool_result({"role": "tool", "content": "18", "toolCallId": "call_1"})
    True
    """
    if isinstance(message, Message):
        return message.role == "tool" and bool(message.tool_results)
    return message.get("role") == "tool" and bool(message.get("toolCallId") or message.get("tool_call_id"))
