"""Where a request body of one format has the pieces of a conversation, as data.

Functions that convert one value (`dragoman.single_values`) build a small request around it, let the codec read or
write that request, and extract the value again. Each codec folder describes its format in one `LAYOUT`.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


class Envelope(Struct, frozen=True):
    """An object that holds a value under one key: `{"functionCall": {...}}`."""

    key: str
    seen: tuple[str, ...]
    """Keys of the outer object: a value that has any of them is already wrapped."""
    inner: str = "name"
    """Key of the inner object: only a value that has it is wrapped."""
    beside: tuple[tuple[str, str], ...] = ()
    """Other members of the outer object, such as its type."""


class Layout(Struct, frozen=True, kw_only=True):
    """One format. The defaults are those of the Chat Completions API."""

    messages: str = "messages"
    """Key of the list of messages."""
    tools: tuple[str, ...] = ("tools",)
    tool_choice: tuple[str, ...] = ("tool_choice",)
    system: str | None = None
    """Key of the system text, if it is not a message of the list."""

    assistant: str = "assistant"
    """Role of a message that makes calls."""
    message_signs: tuple[str, ...] = ("role",)
    """Keys that only messages have, which distinguish them from calls and results."""
    calls: str | None = "tool_calls"
    """Key of the list in a message that holds calls; None if calls are entries of the list of messages."""
    call_sign: tuple[str, str | None] | None = None
    """(key, value) that distinguishes calls from other entries of that list; None matches any value."""
    call_envelope: Envelope | None = None

    results: tuple[str, str] | None = None
    """(role, key) of the message that holds results as its parts; None if each result is a message."""
    result_envelope: Envelope | None = None
    result_names: Literal["needed", "kept", "unused"] = "unused"
    """Whether a result names its tool."""

    tool_envelope: Envelope | None = None
    declarations: str | None = None
    """Key of an element of the tools that holds a list of definitions."""
    choice_envelope: Envelope | None = None
