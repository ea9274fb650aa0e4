"""Messages on the wire: every documented field, including those of its betas.

Fields we interpret are typed, other keys are exact JSON. Only fields added later become extras (codecs/reading.py).
"""

from __future__ import annotations

from typing import Any, ClassVar, TypeAlias

from msgspec import UNSET, Raw, Struct, UnsetType

from dragoman.codecs.reading import fields_beyond
from dragoman.codecs.wire_values import MaybeBool, MaybeInt, MaybeNumber, MaybeRaw, MaybeStr, Unmodelled, Wire

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
    transformations: Raw | UnsetType = UNSET


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
    # Compatible servers omit it or leave it empty.
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
    toolset_name: Raw | UnsetType = UNSET


# ── blocks that only this API has, carried as they are ──


class WholeBlock(Wire, frozen=True):
    """Base of blocks that no other API has. Their fields are read when needed (`BlockHead`)."""


class ServerCallBlock(WholeBlock, frozen=True):
    id: Raw | UnsetType = UNSET
    name: Raw | UnsetType = UNSET
    input: Raw | UnsetType = UNSET
    caller: Raw | UnsetType = UNSET
    server_name: Raw | UnsetType = UNSET
    cache_control: Raw | UnsetType = UNSET


class ServerToolUseBlock(ServerCallBlock, frozen=True, tag="server_tool_use"):
    pass


class McpToolUseBlock(ServerCallBlock, frozen=True, tag="mcp_tool_use"):
    pass


class ServerResultBlock(WholeBlock, frozen=True):
    tool_use_id: Raw | UnsetType = UNSET
    content: Raw | UnsetType = UNSET
    is_error: Raw | UnsetType = UNSET
    caller: Raw | UnsetType = UNSET
    cache_control: Raw | UnsetType = UNSET


class WebSearchResultBlock(ServerResultBlock, frozen=True, tag="web_search_tool_result"):
    pass


class WebFetchResultBlock(ServerResultBlock, frozen=True, tag="web_fetch_tool_result"):
    pass


class CodeExecutionResultBlock(ServerResultBlock, frozen=True, tag="code_execution_tool_result"):
    pass


class BashExecutionResultBlock(ServerResultBlock, frozen=True, tag="bash_code_execution_tool_result"):
    pass


class TextEditorResultBlock(ServerResultBlock, frozen=True, tag="text_editor_code_execution_tool_result"):
    pass


class ToolSearchResultBlock(ServerResultBlock, frozen=True, tag="tool_search_tool_result"):
    pass


class McpResultBlock(ServerResultBlock, frozen=True, tag="mcp_tool_result"):
    pass


class ContainerUploadBlock(WholeBlock, frozen=True, tag="container_upload"):
    file_id: Raw | UnsetType = UNSET
    cache_control: Raw | UnsetType = UNSET


class SearchResultBlock(WholeBlock, frozen=True, tag="search_result"):
    source: Raw | UnsetType = UNSET
    title: Raw | UnsetType = UNSET
    content: Raw | UnsetType = UNSET
    citations: Raw | UnsetType = UNSET
    cache_control: Raw | UnsetType = UNSET


class ToolReferenceBlock(WholeBlock, frozen=True, tag="tool_reference"):
    tool_name: Raw | UnsetType = UNSET
    cache_control: Raw | UnsetType = UNSET


class CompactionBlock(WholeBlock, frozen=True, tag="compaction"):
    content: Raw | UnsetType = UNSET
    cache_control: Raw | UnsetType = UNSET


class BrowserStateBlock(WholeBlock, frozen=True, tag="browser_state"):
    tabs: Raw | UnsetType = UNSET
    state_changes: Raw | UnsetType = UNSET
    cache_control: Raw | UnsetType = UNSET


ResultBlock: TypeAlias = TextBlock | ImageBlock | DocumentBlock | SearchResultBlock | ToolReferenceBlock | Unmodelled


class ToolResultBlock(Wire, frozen=True, tag="tool_result"):
    tool_use_id: str
    content: str | list[ResultBlock] | UnsetType = UNSET
    is_error: bool | UnsetType = UNSET
    cache_control: CacheControl | None | UnsetType = UNSET
    toolset_name: Raw | UnsetType = UNSET


# Future kinds of blocks are carried as they are too: they arrive as `Unmodelled`.
Block: TypeAlias = (
    TextBlock
    | ImageBlock
    | DocumentBlock
    | ThinkingBlock
    | RedactedThinkingBlock
    | ToolUseBlock
    | ToolResultBlock
    | ServerToolUseBlock
    | McpToolUseBlock
    | WebSearchResultBlock
    | WebFetchResultBlock
    | CodeExecutionResultBlock
    | BashExecutionResultBlock
    | TextEditorResultBlock
    | ToolSearchResultBlock
    | McpResultBlock
    | ContainerUploadBlock
    | SearchResultBlock
    | ToolReferenceBlock
    | CompactionBlock
    | BrowserStateBlock
    | Unmodelled
)


class BlockHead(Struct):
    """The fields we need of a block that is carried as it is."""

    type: str | None = None
    id: str | None = None
    name: str | None = None
    tool_use_id: str | None = None
    cache_control: Raw | UnsetType = UNSET


class CitationHead(Struct):
    """The fields of all five kinds of citations that say what is cited, and of which file."""

    cited_text: str | None = None
    url: str | None = None
    title: str | None = None
    document_title: str | None = None
    encrypted_index: str | None = None
    file_id: str | None = None


# ── requests ──────────────────────────────────────────────────────────────────────────────────────────────────


class MessageWire(Wire, frozen=True):
    role: str
    # β: a system message may hold nothing but `output_config`.
    content: str | list[Block] | UnsetType = UNSET
    output_config: Raw | UnsetType = UNSET


class ToolWire(Wire, frozen=True):
    """Custom tools, and (with another `type`) tools that Anthropic defines or runs."""

    # Toolsets have no name.
    name: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    input_schema: Raw | UnsetType = UNSET
    type: str | None | UnsetType = UNSET
    strict: bool | UnsetType = UNSET
    cache_control: CacheControl | None | UnsetType = UNSET
    allowed_callers: Raw | UnsetType = UNSET
    defer_loading: Raw | UnsetType = UNSET
    eager_input_streaming: Raw | UnsetType = UNSET
    input_examples: Raw | UnsetType = UNSET


class ProviderToolWire(ToolWire, frozen=True):
    """A tool that Anthropic defines or runs, with its options."""

    allowed_domains: Raw | UnsetType = UNSET
    blocked_domains: Raw | UnsetType = UNSET
    citations: Raw | UnsetType = UNSET
    configs: Raw | UnsetType = UNSET
    default_config: Raw | UnsetType = UNSET
    display_height_px: Raw | UnsetType = UNSET
    display_number: Raw | UnsetType = UNSET
    display_width_px: Raw | UnsetType = UNSET
    enable_zoom: Raw | UnsetType = UNSET
    max_characters: Raw | UnsetType = UNSET
    max_content_tokens: Raw | UnsetType = UNSET
    max_tokens: Raw | UnsetType = UNSET
    max_uses: Raw | UnsetType = UNSET
    mcp_server_name: Raw | UnsetType = UNSET
    model: Raw | UnsetType = UNSET
    user_location: Raw | UnsetType = UNSET


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

    further: ClassVar = ("task_budget",)


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


class UsualMessagesBody(MessagesRequest, frozen=True, omit_defaults=True):
    """A request as it is usually read: with the frequent keys that the intermediate format does not model."""

    # In the body on Bedrock and Vertex, in a header elsewhere.
    anthropic_version: MaybeRaw = None
    container: MaybeRaw = None
    context_management: MaybeRaw = None
    mcp_servers: MaybeRaw = None
    service_tier: MaybeRaw = None


class MessagesBody(UsualMessagesBody, frozen=True, omit_defaults=True):
    """A request with all keys that the intermediate format does not model."""

    anthropic_beta: MaybeRaw = None
    betas: MaybeRaw = None
    billing_policy: MaybeRaw = None
    compaction: MaybeRaw = None
    diagnostics: MaybeRaw = None
    fallback_credit_token: MaybeRaw = None
    fallbacks: MaybeRaw = None
    inference_geo: MaybeRaw = None
    speed: MaybeRaw = None
    thread: MaybeRaw = None
    user_profile_id: MaybeRaw = None
    workspace_id: MaybeRaw = None


PASSED_ON = fields_beyond(MessagesBody, MessagesRequest)
"""Keys of a request that only this family understands."""
USUALLY_PASSED_ON = tuple(name for name in PASSED_ON if name in UsualMessagesBody.__struct_fields__)


# ── responses ─────────────────────────────────────────────────────────────────────────────────────────────────


class OutputDetails(Struct, frozen=True, gc=False):
    thinking_tokens: int | None = None


class HostedCounts(Struct, frozen=True, gc=False, omit_defaults=True):
    web_search_requests: int | None = None
    web_fetch_requests: Any = None


class UsageWire(Struct, frozen=True, gc=False, omit_defaults=True):
    """The counts we read. The whole object is kept beside them, byte for byte."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    output_tokens_details: OutputDetails | None = None
    server_tool_use: HostedCounts | None = None
    cache_creation: Any = None
    service_tier: Any = None


class StopDetails(Struct, frozen=True, tag_field="type", tag="refusal"):
    """Why the model refused."""

    explanation: str | None
    category: str | None = None


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
    container: Raw | UnsetType = UNSET
    context_management: Raw | UnsetType = UNSET
    diagnostics: Raw | UnsetType = UNSET
    input_transformations: Raw | UnsetType = UNSET


# ── errors ────────────────────────────────────────────────────────────────────────────────────────────────────


class ErrorBody(Wire, frozen=True):
    type: str | UnsetType = UNSET
    message: str | UnsetType = UNSET
    details: Raw | UnsetType = UNSET


class ErrorResponse(Wire, frozen=True):
    """An error; Bedrock's InvokeModel sends `message` alone."""

    error: ErrorBody | str | UnsetType = UNSET
    type: str | UnsetType = UNSET
    request_id: str | None | UnsetType = UNSET
    message: str | UnsetType = UNSET
