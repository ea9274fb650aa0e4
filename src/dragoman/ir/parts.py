"""Parts of messages. Their order matters: text, reasoning and calls may be interleaved."""

from __future__ import annotations

from binascii import b2a_base64
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NotRequired, Self, TypeAlias, TypedDict, overload

from msgspec import UNSET, Raw

from dragoman.errors import InvalidType, UnparsedArguments
from dragoman.ir.values import (
    Held,
    Json,
    JsonObject,
    MaybeJsonObject,
    Metadata,
    Nodes,
    SignedMetadata,
    Value,
    construct_checked,
    holds_json,
    parse_json,
)

if TYPE_CHECKING:
    from msgspec import UnsetType


class Signature(Value, frozen=True):
    """Opaque data of a vendor, such as a thought signature. It returns to that vendor on the same part (law 6)."""

    family: str
    data: str
    id: str | None = None
    """The vendor's own id of the signed item, if any."""


class Cache(Value, frozen=True):
    """A prompt-cache mark: everything up to and including this node may be cached."""

    ttl: str | None = None


class Citation(Value, frozen=True):
    """Where a piece of text comes from. Offsets are in characters of the part's text; `start` is None when unknown."""

    url: str | None = None
    title: str | None = None
    cited_text: str | None = None
    start: int | None = None
    end: int | None = None
    metadata: Metadata | None = None


class Part(Value, tag_field="type", frozen=True):
    """Base of all parts."""


class Text(Part, tag="text", frozen=True):
    """Text for people (or, in a system message, for the model)."""

    text: str
    citations: Nodes[Citation] = ()  # type: ignore[assignment]
    cache: Cache | None = None
    signature: Signature | None = None
    metadata: Metadata | None = None


class Reasoning(Part, tag="reasoning", frozen=True):
    """The model's reasoning: a text or summary (may be empty), and what its vendor wants back.

    `redacted` reasoning has no readable text at all, only its signature.
    """

    text: str = ""
    signature: Signature | None = None
    redacted: bool = False
    metadata: Metadata | None = None


class Refusal(Part, tag="refusal", frozen=True):
    """The model's refusal, in its own words."""

    text: str
    metadata: Metadata | None = None


class Media(Part, frozen=True):
    """Bytes given as `data` (base64), by `url`, or as the provider's `file_id`: exactly one of the three."""

    media_type: str | None = None
    data: str | None = None
    url: str | None = None
    file_id: str | None = None
    cache: Cache | None = None
    signature: Signature | None = None
    metadata: Metadata | None = None

    @classmethod
    def from_bytes(cls, data: bytes, media_type: str) -> Self:
        """The part that holds these bytes, as base64."""
        return construct_checked(cls, media_type, b2a_base64(data, newline=False).decode())


class Image(Media, tag="image", frozen=True):
    """An image. `detail` is the requested resolution: low, high, auto or original."""

    detail: str | None = None


class Document(Media, tag="document", frozen=True):
    """A file: PDF, plain text (in `text`), or any other media type, video included."""

    text: str | None = None
    title: str | None = None
    context: str | None = None
    cite: bool | None = None
    """Whether the model is asked to cite this document."""


class Audio(Media, tag="audio", frozen=True):
    """Audio, with its transcript if known."""

    transcript: str | None = None


PLAIN_SIGNATURES = {"google": "thoughtSignature"}
"""Family -> the name of its signature in the metadata of a plain record."""


class PlainToolCall(TypedDict):
    """A call as four plain fields; the same call from any provider gives the same record."""

    id: str
    name: str
    arguments: dict[str, Any]
    metadata: NotRequired[dict[str, Any]]
    """Only where Google signed the call: {"thoughtSignature": …}."""


@holds_json("arguments")
class ToolCall(Part, tag="tool_call", frozen=True):
    """The model asks for a tool to be run.

    >>> ToolCall("call_1", "get_weather", {"city": "Tokyo"}).plain()
    {'id': 'call_1', 'name': 'get_weather', 'arguments': {'city': 'Tokyo'}}

    `arguments` reads as a mapping. Where the wire gave text, `arguments_text` is that text, exactly; when the text is
    not a JSON object, `parsed` is False and reading `arguments` raises `UnparsedArguments`: bad JSON never becomes {}.
    """

    id: str
    name: str
    arguments: JsonObject = UNSET  # type: ignore[assignment]  # UNSET: the text did not parse
    arguments_text: str | None = None
    custom: bool = False
    """A custom tool takes free text (`arguments_text`); `arguments` is then {"input": text}."""
    invented_id: bool = False
    """The wire gave no id; this one is derived from the position, and is not sent to APIs that work without ids."""
    incomplete: bool = False
    """The answer was cut inside this call, or the provider calls it unexpected: it must not be run."""
    signature: Signature | None = None
    cache: Cache | None = None
    metadata: SignedMetadata = None  # type: ignore[assignment]

    arguments_held: ClassVar[Held[Any]]

    @property
    def parsed(self) -> bool:
        """Whether there is an argument mapping to run the tool with."""
        return self.arguments_held is not UNSET

    def plain(self) -> PlainToolCall:
        """The four fields of a call, independent of its wire format. `from_plain` reads it again.

        Raises `UnparsedArguments` if the arguments are not a JSON object.
        """
        record: PlainToolCall = {"id": self.id, "name": self.name, "arguments": self.arguments}
        key = None if self.signature is None else PLAIN_SIGNATURES.get(self.signature.family)
        if self.signature is not None and key is not None:
            record["metadata"] = {key: self.signature.data}
        return record

    @classmethod
    def from_plain(cls, record: PlainToolCall) -> ToolCall:
        """The call of a plain record; its metadata may hold Gemini's `thoughtSignature`."""
        return construct_checked(ToolCall, **record)


def _read_arguments(call: ToolCall) -> Any:
    arguments: Raw | dict[str, Any] | UnsetType = call.arguments_held
    if arguments is UNSET:
        raise UnparsedArguments(call_id=call.id, name=call.name, text=call.arguments_text or "")
    return parse_json(arguments) if type(arguments) is Raw else arguments


ToolCall.arguments = property(_read_arguments)  # type: ignore[assignment]

ResultKind: TypeAlias = Literal["text", "data", "error", "multimodal"]


@holds_json("value")
class ToolResult(Part, tag="tool_result", frozen=True):
    """The result of a tool. The value is kept unchanged; each codec serialises it in its own way.

    text: `value` is a string shown verbatim. data: any JSON. error: a string (or any JSON, or `parts`).
    multimodal: content blocks, given as `value` or as `parts` and kept in `parts`.

    >>> call = ToolCall("call_1", "get_weather", {"city": "Tokyo"})
    >>> ToolResult.text(call, "18°") == ToolResult("call_1", "get_weather", "text", "18°")
    True
    """

    tool_call_id: str
    name: str
    kind: ResultKind
    value: Json = None  # type: ignore[assignment]
    parts: Nodes[ContentBlock] = ()  # type: ignore[assignment]
    cache: Cache | None = None
    metadata: Metadata | None = None

    value_held: ClassVar[Held[Any]]

    @property
    def is_error(self) -> bool:
        return self.kind == "error"

    @overload
    @classmethod
    def text(cls, call: ToolCall, value: str) -> ToolResult: ...
    @overload
    @classmethod
    def text(cls, tool_call_id: str, name: str, value: str) -> ToolResult: ...
    @classmethod
    def text(cls, *args: Any, **kwargs: Any) -> ToolResult:
        """Text that the model reads as it is; for a call, or for its id and the tool's name."""
        return _result_of("text", args, kwargs)

    @overload
    @classmethod
    def data(cls, call: ToolCall, value: Any) -> ToolResult: ...
    @overload
    @classmethod
    def data(cls, tool_call_id: str, name: str, value: Any) -> ToolResult: ...
    @classmethod
    def data(cls, *args: Any, **kwargs: Any) -> ToolResult:
        """Any JSON: a mapping, a list, a number, None."""
        return _result_of("data", args, kwargs)

    @overload
    @classmethod
    def error(cls, call: ToolCall, value: str | Sequence[str | ContentBlock]) -> ToolResult: ...
    @overload
    @classmethod
    def error(cls, tool_call_id: str, name: str, value: str | Sequence[str | ContentBlock]) -> ToolResult: ...
    @classmethod
    def error(cls, *args: Any, **kwargs: Any) -> ToolResult:
        """What went wrong."""
        return _result_of("error", args, kwargs)

    @overload
    @classmethod
    def multimodal(cls, call: ToolCall, value: Sequence[str | ContentBlock | Mapping[str, Any]]) -> ToolResult: ...
    @overload
    @classmethod
    def multimodal(
        cls, tool_call_id: str, name: str, value: Sequence[str | ContentBlock | Mapping[str, Any]]
    ) -> ToolResult: ...
    @classmethod
    def multimodal(cls, *args: Any, **kwargs: Any) -> ToolResult:
        """Text, images, documents and audio, in order."""
        return _result_of("multimodal", args, kwargs)


def _result_of(kind: ResultKind, args: tuple[Any, ...], kwargs: dict[str, Any]) -> ToolResult:
    by_call = "call" in kwargs or (len(args) > 0 and isinstance(args[0], ToolCall))
    names = ("call", "value") if by_call else ("tool_call_id", "name", "value")
    given = dict(zip(names, args, strict=False)) | kwargs
    if len(args) > len(names) or set(given) != set(names) or (by_call and not isinstance(given["call"], ToolCall)):
        raise InvalidType(
            path=f"ToolResult.{kind}()",
            expected="(call, value) or (tool_call_id, name, value), where call is a ToolCall",
            found=f"({', '.join([*(type(arg).__name__ for arg in args), *kwargs])})",
        )
    call = given.get("call")
    call_id, name = (call.id, call.name) if call is not None else (given["tool_call_id"], given["name"])
    return construct_checked(ToolResult, call_id, name, kind, given["value"])


HostedKind: TypeAlias = Literal[
    "web_search",
    "web_fetch",
    "code_execution",
    "file_search",
    "mcp",
    "shell",
    "computer",
    "image_generation",
    "tool_search",
]
"""Tools of providers that at least two vendors have, by what they do."""


@holds_json("block", "input")
class ServerToolCall(Part, tag="server_tool_call", frozen=True):
    """A call that the provider runs itself. Never executed, never answered.

    `block` is the wire's own block, verbatim; its family (`origin`) gets it back. The other fields express the same in
    terms that all vendors share; a field is None if the vendor's call has nothing like it.
    """

    id: str
    name: str
    origin: str | None = None
    block: MaybeJsonObject = None  # type: ignore[assignment]
    signature: Signature | None = None
    cache: Cache | None = None
    metadata: Metadata | None = None
    kind: HostedKind | None = None
    input: MaybeJsonObject = None  # type: ignore[assignment]
    """web_search: `query` or `queries`; web_fetch: `url`; code_execution: `code` or `command`; file_search: `queries`;
    others: the arguments as the vendor has them."""
    server: str | None = None
    """The MCP server whose tool it is."""

    block_held: ClassVar[Held[Any]]
    input_held: ClassVar[Held[Any]]


@holds_json("block")
class ServerToolResult(Part, tag="server_tool_result", frozen=True):
    """The provider's own result of a `ServerToolCall`. `block` is the wire's own, as in the call."""

    tool_call_id: str
    name: str
    origin: str | None = None
    block: MaybeJsonObject = None  # type: ignore[assignment]
    signature: Signature | None = None
    cache: Cache | None = None
    metadata: Metadata | None = None
    kind: HostedKind | None = None
    parts: Nodes[ContentBlock] = ()  # type: ignore[assignment]
    """The output of the tool, as far as the vendor shows it."""
    sources: Nodes[Citation] = ()  # type: ignore[assignment]
    """Pages and files that a search found; `cited_text` is an excerpt."""
    error: str | None = None
    """Why it failed: the vendor's own value."""

    block_held: ClassVar[Held[Any]]


class SearchResult(Part, tag="search_result", frozen=True):
    """What the application found, for the model to read and to cite: its source, a title, and excerpts."""

    source: str
    """An address, or the name of the place in the application."""
    title: str
    texts: Nodes[str] = ()  # type: ignore[assignment]
    cite: bool | None = None
    """Whether the model is asked to cite it."""
    cache: Cache | None = None
    metadata: Metadata | None = None


@holds_json("block")
class Opaque(Part, tag="opaque", frozen=True):
    """A block of one family that we do not model, verbatim. It returns to that family and is a loss elsewhere."""

    origin: str
    kind: str
    block: Json
    signature: Signature | None = None

    block_held: ClassVar[Held[Any]]


ContentBlock: TypeAlias = Text | Image | Document | Audio | SearchResult | Opaque
"""What a multimodal result is made of. `Opaque`, a block of one vendor kept verbatim, comes from decoders."""

AnyPart: TypeAlias = (
    Text
    | Reasoning
    | Refusal
    | Image
    | Document
    | Audio
    | ToolCall
    | ToolResult
    | ServerToolCall
    | ServerToolResult
    | SearchResult
    | Opaque
)
