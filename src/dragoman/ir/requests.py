"""Requests: what a client asks of a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from dragoman.ir.messages import Message
from dragoman.ir.parts import Cache, HostedKind
from dragoman.ir.values import (
    Held,
    Items,
    Json,
    MaybeJsonObject,
    Metadata,
    Nodes,
    Value,
    holds_json,
)


class Tool(Value, tag_field="type", frozen=True):
    """Base of all tools a request may declare."""


@holds_json("parameters")
class ToolDefinition(Tool, tag="function", frozen=True):
    """A function the client runs. `parameters` is JSON Schema; absent means the function takes nothing."""

    name: str
    description: str | None = None
    parameters: MaybeJsonObject = None  # type: ignore[assignment]
    strict: bool | None = None
    cache: Cache | None = None
    metadata: Metadata | None = None
    deferred: bool | None = None
    """Whether the model sees it only after looking it up (`tool_search`)."""

    parameters_held: ClassVar[Held[Any]]


@holds_json("format")
class CustomTool(Tool, tag="custom", frozen=True):
    """A tool that takes free text, perhaps constrained by a grammar (`format`)."""

    name: str
    description: str | None = None
    format: MaybeJsonObject = None  # type: ignore[assignment]
    metadata: Metadata | None = None

    format_held: ClassVar[Held[Any]]


class Location(Value, frozen=True):
    """Roughly where the user is, for searches. `country` is a code of two letters, `timezone` an IANA name."""

    country: str | None = None
    region: str | None = None
    city: str | None = None
    timezone: str | None = None


@holds_json("definition", "headers")
class ProviderTool(Tool, tag="provider", frozen=True):
    """A tool that a provider defines or runs itself.

    >>> ProviderTool("web_search", kind="web_search", max_uses=3)
    ProviderTool(name='web_search', kind='web_search', max_uses=3)

    `definition` is the wire's own entry, verbatim; its family (`origin`) gets it back, and nothing else. The other
    fields express the same in terms that all vendors share, for families that have the `kind`; options without a field
    are in `metadata`, and are lost elsewhere. `functions` replace a tool that the client runs in other families.
    """

    name: str
    origin: str | None = None
    definition: MaybeJsonObject = None  # type: ignore[assignment]
    cache: Cache | None = None
    kind: HostedKind | None = None
    functions: Nodes[ToolDefinition] = ()  # type: ignore[assignment]
    max_uses: int | None = None
    allowed_domains: Items[str] = ()  # type: ignore[assignment]
    blocked_domains: Items[str] = ()  # type: ignore[assignment]
    location: Location | None = None
    context_size: str | None = None
    """How much of the search results the model gets: low, medium or high."""
    stores: Items[str] = ()  # type: ignore[assignment]
    """The stores that a file search uses. The names are specific to the vendor."""
    max_results: int | None = None
    container: str | None = None
    """The sandbox in which code runs. The id is specific to the vendor."""
    file_ids: Items[str] = ()  # type: ignore[assignment]
    server_url: str | None = None
    """The URL of an MCP server; `name` is its label in the conversation."""
    authorization: str | None = None
    headers: MaybeJsonObject = None  # type: ignore[assignment]
    allowed_tools: Items[str] = ()  # type: ignore[assignment]
    """Of an MCP server; empty means all."""
    approval: Literal["always", "never"] | None = None
    """Whether the client must approve each call of an MCP server."""
    metadata: Metadata | None = None

    definition_held: ClassVar[Held[Any]]
    headers_held: ClassVar[Held[Any]]


AnyTool: TypeAlias = ToolDefinition | CustomTool | ProviderTool

parameters_of: Callable[[ToolDefinition], Any] = attrgetter("parameters")
"""Reads the field as a Python value of any type; in compiled code, `tool.parameters` would check the annotation."""


class ToolChoice(Value, frozen=True):
    """`auto`, `none` or `required`; `names` narrows it: one forced tool is `required` with one name."""

    mode: Literal["auto", "none", "required"]
    names: Items[str] = ()  # type: ignore[assignment]
    metadata: Metadata | None = None

    @classmethod
    def of(cls, choice: Choice) -> ToolChoice:
        """Reads a choice: a mode, the name of the tool to force, {"name": …}, or a list of names.

        >>> ToolChoice.of("auto"), ToolChoice.of({"name": "get_weather"})
        (ToolChoice(mode='auto'), ToolChoice(mode='required', names=('get_weather',)))

        OpenAI's {"type": "function", "function": {"name": …}} is read as well. A tool named like a mode is refused.
        """
        from dragoman.ir.rules import read_choice  # noqa: PLC0415 - decoders never load it

        return read_choice(choice)


Choice: TypeAlias = ToolChoice | str | Mapping[str, Any] | Sequence[str]
"""Every way to write a `ToolChoice`."""

if TYPE_CHECKING:

    class MaybeChoice:
        def __get__(self, instance: object, owner: type | None = None, /) -> ToolChoice | None: ...
        def __set__(self, instance: object, value: Choice | None, /) -> None: ...

else:
    MaybeChoice = ToolChoice | None


class ReasoningSettings(Value, frozen=True):
    """How much the model may think, and how much of it we see.

    mode: off, on (with `budget_tokens`), adaptive (the model decides); None if only effort or visibility is set.
    """

    mode: Literal["off", "on", "adaptive"] | None = None
    effort: str | None = None
    budget_tokens: int | None = None
    visible: bool | None = None
    metadata: Metadata | None = None


@holds_json("schema")
class StructuredOutput(Value, frozen=True):
    """The answer must be JSON: any object (`json`), or one that follows `schema`."""

    kind: Literal["json", "schema"]
    schema: Json = None  # type: ignore[assignment]
    name: str | None = None
    description: str | None = None
    strict: bool | None = None
    metadata: Metadata | None = None

    schema_held: ClassVar[Held[Any]]


# dict, and for it gc: a decoder leaves a note beside the fields (ir/traits.py).
class Request(Value, frozen=True, gc=True, dict=True):
    """One request. None means that the client did not set it."""

    model: str | None
    messages: Nodes[Message]
    tools: Nodes[AnyTool] = ()  # type: ignore[assignment]
    tool_choice: MaybeChoice = None  # type: ignore[assignment]
    parallel_tool_calls: bool | None = None
    max_output_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    stop: Items[str] = ()  # type: ignore[assignment]
    seed: int | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    candidates: int | None = None
    reasoning: ReasoningSettings | None = None
    output: StructuredOutput | None = None
    stream: bool | None = None
    user: str | None = None
    cache: Cache | None = None
    verbosity: str | None = None
    """How long the answer should be: low, medium, high."""
    labels: dict[str, str] | None = None
    """The client's own labels of the request, for logs and billing."""
    safety_identifier: str | None = None
    """Id of the end user for the provider's abuse detection."""
    service_tier: str | None = None
    """OpenAI's values: auto, default, flex, priority, …"""
    store: bool | None = None
    prompt_cache_key: str | None = None
    prompt_cache_retention: str | None = None
    prompt_cache_options: dict[str, Any] | None = None
    moderation: dict[str, Any] | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    modalities: Items[str] = ()  # type: ignore[assignment]
    """What the answer may consist of: text, audio, image."""
    obfuscation: bool | None = None
    """Whether chunks of the stream get padding of random length."""
    max_tool_calls: int | None = None
    """Limit for the calls of all hosted tools together."""
    min_p: float | None = None
    """How likely a token must be, relative to the likeliest one, to be drawn."""
    repetition_penalty: float | None = None
    """Divides the weight of tokens that occurred before; 1 changes nothing."""
    metadata: Metadata | None = None
    origin: str | None = None
    """The format family this request was decoded from. What came from a family is legal there by definition."""

    _remarks: ClassVar[Any] = None
    """What a decoder of stored conversations could not keep (`losses.Remarks`); beside the fields, like traits."""
