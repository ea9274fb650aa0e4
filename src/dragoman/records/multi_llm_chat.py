"""Entries of multi-llm-chat: a role and typed parts."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict


class TextPart(TypedDict):
    type: Literal["text"]
    content: str
    metadata: NotRequired[Any]


class CallContent(TypedDict):
    name: str
    arguments: dict[str, Any]
    tool_call_id: NotRequired[str]
    metadata: NotRequired[Any]


class ToolCallPart(TypedDict):
    type: Literal["tool_call"]
    content: CallContent
    metadata: NotRequired[Any]


class ToolResultPart(TypedDict):
    """`is_error` marks a failure, so that it survives being stored."""

    type: Literal["tool_result"]
    name: str
    content: Any
    tool_call_id: NotRequired[str]
    is_error: NotRequired[bool]
    kind: NotRequired[str]
    metadata: NotRequired[Any]


class ReasoningPart(TypedDict):
    type: Literal["reasoning"]
    content: str
    redacted: NotRequired[bool]
    metadata: NotRequired[Any]


class OtherPart(TypedDict):
    type: Literal["other"]
    provider: str
    kind: str
    payload: NotRequired[Any]
    metadata: NotRequired[Any]


Part: TypeAlias = TextPart | ToolCallPart | ToolResultPart | ReasoningPart | OtherPart


class Entry(TypedDict):
    """`role` is `user`, `system`, `tool`, or the model that spoke, such as `gemini`. A bare string is one text."""

    role: str
    content: str | list[Part] | None


class Conversation(TypedDict):
    """A request of this format as it is written; the bare list of entries is read as well."""

    messages: list[Entry]
    tools: NotRequired[list[dict[str, Any]]]
    tool_choice: NotRequired[Any]
    model: NotRequired[str]


History: TypeAlias = list[Entry] | Conversation
"""A request of this format."""


class StoredChat(TypedDict):
    """A saved conversation."""

    turns: list[Entry]
    system_prompt: NotRequired[str]


class TextChunk(TypedDict):
    """A chunk of a streamed answer (`StreamResult.chunks`)."""

    type: Literal["text", "reasoning", "error"]
    content: str


class ToolCallChunk(TypedDict):
    type: Literal["tool_call"]
    content: CallContent


Chunk: TypeAlias = TextChunk | ToolCallChunk
