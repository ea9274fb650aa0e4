"""Calls and results between tags in the texts of a conversation, as open models write them."""

from __future__ import annotations

from collections.abc import Mapping

from dragoman.codecs.datasets.conversation import Json, mappings, parse_literal, text_of
from dragoman.codecs.reasoning_tags import between_tags
from dragoman.ir.messages import Role

ROLES: dict[str, Role] = {
    "system": "system",
    "human": "user",
    "user": "user",
    "gpt": "assistant",
    "assistant": "assistant",
    "tool": "tool",
}
COLUMNS = ("messages", "conversations", "conversation")


def has_call_tags(text: str) -> bool:
    return "<tool_call>" in text or "<tool_response>" in text


def tagged_column(data: Mapping[str, Json]) -> str | None:
    """Return the column whose messages are only texts, with a call or result between tags; None if there is none."""
    return next((column for column in COLUMNS if _are_tagged(data.get(column))), None)


_MORE_THAN_TEXT = ("tool_calls", "function_call", "reasoning_content", "reasoning", "thinking")
"""Keys of messages whose tags are part of a text."""


def _are_tagged(messages: Json) -> bool:
    found = mappings(messages)
    if not found or not all(map(_is_text, found)):
        return False
    return any(_has_tag(message["role"], message["content"]) for message in found)


def _is_text(message: Mapping[str, Json]) -> bool:
    return (
        text_of(message.get("role")) in ROLES
        and isinstance(message.get("content"), str)
        and not any(message.get(key) for key in _MORE_THAN_TEXT)
    )


def _has_tag(role: str, text: str) -> bool:
    """Return whether a text has a result, or a call that can be read; an answer may also be about such tags."""
    if role == "tool":
        return "<tool_response>" in text
    calls = between_tags(text, "<tool_call>", "</tool_call>") if ROLES[role] == "assistant" else ()
    return any(read_call(tagged.inner) is not None for tagged in calls)


def read_call(text: str) -> Mapping[str, Json] | None:
    """Return name and arguments from JSON, or from the tags of Qwen's coder models; None if it is neither."""
    parsed = parse_literal(text)
    if isinstance(parsed, dict):
        inner = parsed.get("function")  # the wrapper of Chat
        call = {**parsed, **inner} if isinstance(inner, dict) else parsed
        call.pop("function", None)
        return call if isinstance(call.get("name"), str) else None
    tagged = next(between_tags(text, "<function=", "</function>"), None)
    if tagged is None:
        return None
    name, _, body = tagged.inner.partition(">")
    found = (inner.inner.partition(">") for inner in between_tags(body, "<parameter=", "</parameter>"))
    return {"name": name.strip(), "arguments": {key.strip(): value.strip("\n") for key, _, value in found}}
