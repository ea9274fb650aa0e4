"""Universal records: messages, flat calls, and results without a role."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

from dragoman.records.parts import DocumentPart, ImagePart, OtherPart, ReasoningPart, RefusalPart, TextPart

ContentPart: TypeAlias = TextPart | ImagePart | DocumentPart | ReasoningPart | RefusalPart | OtherPart


class ToolCall(TypedDict):
    """`raw_context` holds what the provider of the call wants back."""

    id: str
    name: str
    arguments: dict[str, Any]
    raw_context: NotRequired[Any]


class ToolResult(TypedDict):
    """`result` is any JSON; media are beside it."""

    tool_call_id: str
    name: str
    result: NotRequired[Any]
    is_error: NotRequired[bool]
    multimodal_parts: NotRequired[list[ContentPart]]
    kind: NotRequired[str]


class Message(TypedDict):
    role: Literal["system", "user", "assistant"]
    content: str | list[ContentPart] | None
    name: NotRequired[str]
    tool_calls: NotRequired[list[ToolCall]]


class ToolDefinition(TypedDict):
    name: str
    description: NotRequired[str]
    parameters: NotRequired[dict[str, Any]]
    strict: NotRequired[bool]


class NamedChoice(TypedDict):
    name: str


ToolChoice: TypeAlias = Literal["auto", "none", "required"] | NamedChoice


class History(TypedDict):
    """A request of this format."""

    messages: list[Message | ToolResult]
    tools: NotRequired[list[ToolDefinition]]
    tool_choice: NotRequired[ToolChoice]
    model: NotRequired[str]
