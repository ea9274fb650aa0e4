"""Messages on the wire. Only what we interpret is typed; the rest travels as extras, exactly as written."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import UNSET, Raw, Struct, UnsetType

from dragoman.codecs.reading import MaybeBool, MaybeInt, MaybeNumber, MaybeStr, Unmodelled, Wire

# ── blocks ────────────────────────────────────────────────────────────────────────────────────────────────────


class CacheControl(Wire, frozen=True):
    type: str
    ttl: str | UnsetType = UNSET


class TextBlock(Wire, frozen=True, tag="text"):
    text: str
    # Absent, null or a list, on different paths of the API.
    citations: list[Raw] | None | UnsetType = UNSET
    cache_control: CacheControl | None | UnsetType = UNSET


class Base64Source(Wire, frozen=True, tag="base64"):
    media_type: str
    data: str


class UrlSource(Wire, frozen=True, tag="url"):
    url: str


class FileSource(Wire, frozen=True, tag="file"):
    file_id: str


class TextSource(Wire, frozen=True, tag="text"):
    """`data` is the text itself, not base64."""

    media_type: str
    data: str


class ContentSource(Wire, frozen=True, tag="content"):
    # A string, or text and image blocks.
    content: Raw


ImageSource: TypeAlias = Base64Source | UrlSource | FileSource | Unmodelled
DocumentSource: TypeAlias = Base64Source | TextSource | ContentSource | UrlSource | FileSource | Unmodelled


class ImageBlock(Wire, frozen=True, tag="image"):
    source: ImageSource
    cache_control: CacheControl | None | UnsetType = UNSET


class CitationsSwitch(Wire, frozen=True):
    enabled: bool | UnsetType = UNSET


class DocumentBlock(Wire, frozen=True, tag="document"):
    source: DocumentSource
    title: str | UnsetType = UNSET
    context: str | UnsetType = UNSET
    citations: CitationsSwitch | UnsetType = UNSET
    cache_control: CacheControl | None | UnsetType = UNSET


class ThinkingBlock(Wire, frozen=True, tag="thinking"):
    thinking: str
    # Compatible servers leave it out or empty.
    signature: str | UnsetType = UNSET


class RedactedThinkingBlock(Wire, frozen=True, tag="redacted_thinking"):
    data: str


class ToolUseBlock(Wire, frozen=True, tag="tool_use"):
    id: str
    name: str
    input: Raw | UnsetType = UNSET
    # On every call of newer models; {"type": "direct"} unless code made the call.
    caller: Raw | UnsetType = UNSET
    cache_control: CacheControl | None | UnsetType = UNSET


ResultBlock: TypeAlias = TextBlock | ImageBlock | DocumentBlock | Unmodelled


class ToolResultBlock(Wire, frozen=True, tag="tool_result"):
    tool_use_id: str
    content: str | list[ResultBlock] | UnsetType = UNSET
    is_error: bool | UnsetType = UNSET
    cache_control: CacheControl | None | UnsetType = UNSET


# Server tools, and whatever comes tomorrow, are carried whole: they arrive as `Unmodelled`.
Block: TypeAlias = (
    TextBlock
    | ImageBlock
    | DocumentBlock
    | ThinkingBlock
    | RedactedThinkingBlock
    | ToolUseBlock
    | ToolResultBlock
    | Unmodelled
)


class BlockHead(Struct):
    """What we need to know of a block that is carried whole."""

    type: str | None = None
    id: str | None = None
    name: str | None = None
    tool_use_id: str | None = None
    cache_control: Raw | UnsetType = UNSET


class CitationHead(Struct):
    """What all five kinds of citations have in common."""

    cited_text: str | None = None
    url: str | None = None
    title: str | None = None
    document_title: str | None = None


# ── requests ──────────────────────────────────────────────────────────────────────────────────────────────────


class MessageWire(Wire, frozen=True):
    role: str
    # β: a system message may hold nothing but `output_config`.
    content: str | list[Block] | UnsetType = UNSET


class ToolWire(Wire, frozen=True):
    """Custom tools, and (with another `type`) tools that Anthropic defines or runs."""

    # Toolsets have no name.
    name: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    input_schema: Raw | UnsetType = UNSET
    type: str | None | UnsetType = UNSET
    strict: bool | UnsetType = UNSET
    cache_control: CacheControl | None | UnsetType = UNSET


class ToolChoiceWire(Wire, frozen=True):
    type: str
    name: str | UnsetType = UNSET
    disable_parallel_tool_use: bool | UnsetType = UNSET


class FormatWire(Wire, frozen=True):
    type: str
    schema: Raw | UnsetType = UNSET


class OutputConfig(Wire, frozen=True):
    effort: str | UnsetType = UNSET
    format: FormatWire | UnsetType = UNSET


class MetadataWire(Struct, omit_defaults=True):
    user_id: str | None = None


class MessagesRequest(Wire, frozen=True, omit_defaults=True):
    messages: list[MessageWire]
    # In the URL on Bedrock and Vertex.
    model: MaybeStr = None
    # Required, but count_tokens takes the same body without it.
    max_tokens: MaybeInt = None
    system: str | list[TextBlock | Unmodelled] | UnsetType = UNSET
    tools: Raw | UnsetType = UNSET
    tool_choice: ToolChoiceWire | UnsetType = UNSET
    thinking: Raw | UnsetType = UNSET
    output_config: OutputConfig | UnsetType = UNSET
    output_format: FormatWire | UnsetType = UNSET
    stop_sequences: list[str] | UnsetType = UNSET
    stream: MaybeBool = None
    temperature: MaybeNumber = None
    top_p: MaybeNumber = None
    top_k: MaybeInt = None
    metadata: Raw | UnsetType = UNSET
    cache_control: CacheControl | None | UnsetType = UNSET


# ── responses ─────────────────────────────────────────────────────────────────────────────────────────────────


class OutputDetails(Struct, frozen=True, gc=False):
    thinking_tokens: int | None = None


class UsageWire(Struct, frozen=True, gc=False, omit_defaults=True):
    """The counts we read. The whole object is kept beside them, byte for byte."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    output_tokens_details: OutputDetails | None = None


class MessageResponse(Wire, frozen=True, omit_defaults=True):
    content: list[Block]
    id: MaybeStr = None
    type: str | UnsetType = UNSET
    role: str | UnsetType = UNSET
    model: MaybeStr = None
    stop_reason: str | None | UnsetType = UNSET
    stop_sequence: str | None | UnsetType = UNSET
    stop_details: Raw | UnsetType = UNSET
    usage: Raw | UnsetType = UNSET


# ── errors ────────────────────────────────────────────────────────────────────────────────────────────────────


class ErrorBody(Wire, frozen=True):
    type: str | UnsetType = UNSET
    message: str | UnsetType = UNSET
    details: Raw | UnsetType = UNSET


class ErrorResponse(Wire, frozen=True):
    """`message` alone is what Bedrock's InvokeModel answers with."""

    error: ErrorBody | str | UnsetType = UNSET
    type: str | UnsetType = UNSET
    request_id: str | None | UnsetType = UNSET
    message: str | UnsetType = UNSET
