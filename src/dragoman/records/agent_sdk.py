"""Records of the agent SDK: messages, calls, definitions, and what a call of a model gives back."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

from dragoman.records.parts import DocumentPart, ImagePart, OtherPart, TextPart

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]
ContentPart: TypeAlias = TextPart | ImagePart | DocumentPart | OtherPart
"""`OtherPart` is the extension for what the format itself has no part for."""


class Function(TypedDict):
    """`arguments` is JSON text."""

    name: str
    arguments: str


class ToolCall(TypedDict):
    """A call; `provider_meta` holds what its provider wants back."""

    id: str
    type: Literal["function"]
    function: Function
    provider_meta: NotRequired[Any]


class UserMessage(TypedDict):
    role: Literal["user"]
    content: str | list[ContentPart]
    name: NotRequired[str]


class SystemMessage(TypedDict):
    """`cache` asks a provider that caches prompts to cache up to here."""

    role: Literal["system"]
    content: str | list[ContentPart]
    name: NotRequired[str]
    cache: NotRequired[bool]


class AssistantMessage(TypedDict):
    """An answer, or a piece of one: what follows a call is a further message."""

    role: Literal["assistant"]
    content: str | list[ContentPart] | None
    name: NotRequired[str]
    tool_calls: NotRequired[list[ToolCall]]
    refusal: NotRequired[str | None]


class ReasoningMessage(TypedDict):
    """Reasoning before the next assistant message; `raw_item` is the provider's own item."""

    role: Literal["reasoning"]
    content: str | None
    raw_item: NotRequired[Any]


class ToolOutputRef(TypedDict):
    """Reference to the whole output. Unknown sizes are absent."""

    id: str
    byte_size: NotRequired[int]
    line_count: NotRequired[int]


class ToolMessage(TypedDict):
    """The result of a tool. With `trimmed`, `dragoman.agent.expand_output` restores the whole through `output_ref`."""

    role: Literal["tool"]
    tool_call_id: str
    tool_name: str
    content: str | list[ContentPart]
    is_error: NotRequired[bool]
    kind: NotRequired[Literal["text", "data"]]
    output_ref: NotRequired[ToolOutputRef]
    trimmed: NotRequired[bool]


BaseMessage: TypeAlias = UserMessage | SystemMessage | AssistantMessage | ReasoningMessage | ToolMessage


class ToolDefinition(TypedDict):
    name: str
    description: str
    parameters: dict[str, Any]
    strict: NotRequired[bool]


ToolChoice: TypeAlias = str
"""`auto`, `required`, `none`, or the name of the one tool to call."""


class History(TypedDict):
    """A request of this format."""

    messages: list[BaseMessage]
    tools: NotRequired[list[ToolDefinition]]
    tool_choice: NotRequired[ToolChoice]
    model: NotRequired[str]


class ChatInvokeUsage(TypedDict):
    """Input includes what was read from a cache and written to it."""

    model: str
    input_tokens: int
    input_cached_tokens: NotRequired[int | None]
    input_cache_creation_tokens: NotRequired[int | None]
    input_image_tokens: NotRequired[int | None]
    output_tokens: int
    total_tokens: int


class ChatInvokeCompletion(TypedDict):
    """A response of this format: the answer in order, one or more messages."""

    messages: list[AssistantMessage | ReasoningMessage]
    usage: NotRequired[ChatInvokeUsage | None]
    stop_reason: NotRequired[str | None]
    provider_meta: NotRequired[Any]
