"""Records of modular-prompt: the flat ones that are written, and the older nested ones that are read as well."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

from dragoman.records.parts import ImagePart, TextPart

ContentPart: TypeAlias = TextPart | ImagePart


class ToolCall(TypedDict):
    """A call as it is written: arguments are a mapping."""

    id: str
    name: str
    arguments: dict[str, Any]
    metadata: NotRequired[dict[str, Any]]


class Function(TypedDict):
    name: str
    arguments: str


class NestedToolCall(TypedDict):
    """A call of the older specification: arguments are JSON text."""

    id: str
    type: Literal["function"]
    function: Function


class ToolResult(TypedDict):
    """A result as it is written. `kind` says how `value` is meant."""

    toolCallId: str
    name: str
    kind: Literal["text", "data", "error", "multimodal"]
    value: Any
    role: NotRequired[Literal["tool"]]


class StandardChatMessage(TypedDict):
    role: Literal["system", "user", "assistant"]
    content: str | list[ContentPart] | None
    name: NotRequired[str]
    metadata: NotRequired[dict[str, Any]]


class AssistantToolCallMessage(TypedDict):
    role: Literal["assistant"]
    content: str | list[ContentPart] | None
    toolCalls: list[ToolCall | NestedToolCall]
    name: NotRequired[str]
    metadata: NotRequired[dict[str, Any]]


class ToolResultMessage(TypedDict):
    """A result of the older specification."""

    role: Literal["tool"]
    content: str
    toolCallId: str
    name: NotRequired[str]


ChatMessage: TypeAlias = StandardChatMessage | AssistantToolCallMessage | ToolResultMessage


class ToolFunction(TypedDict):
    name: str
    description: NotRequired[str]
    parameters: NotRequired[dict[str, Any]]
    strict: NotRequired[bool]


class ToolDefinition(TypedDict):
    """A definition of the older specification; the newer one is a `ToolFunction` alone."""

    type: Literal["function"]
    function: ToolFunction


class NamedChoice(TypedDict):
    name: str


class FunctionChoice(TypedDict):
    type: Literal["function"]
    function: NamedChoice


ToolChoice: TypeAlias = Literal["auto", "none", "required"] | NamedChoice | FunctionChoice


class Prompt(TypedDict):
    """A request of this format."""

    messages: list[ChatMessage | ToolResult]
    tools: NotRequired[list[ToolFunction | ToolDefinition]]
    toolChoice: NotRequired[ToolChoice]
    model: NotRequired[str]


class TokenCounts(TypedDict):
    promptTokens: int
    completionTokens: int
    totalTokens: NotRequired[int]


class QueryResult(TypedDict):
    """A response of this format."""

    content: str | list[ContentPart] | None
    toolCalls: NotRequired[list[ToolCall]]
    finishReason: NotRequired[Literal["stop", "length", "error", "tool_calls"]]
    usage: NotRequired[TokenCounts]
    metadata: NotRequired[dict[str, Any]]
