"""Converse on the wire: every documented key. What we interpret is typed; the rest is carried exactly as written.

A block is an object with exactly one key, which is its kind; so all kinds are fields of one struct.
"""

from __future__ import annotations

from typing import Any, ClassVar

from msgspec import UNSET, Raw, Struct, UnsetType

from dragoman.codecs.reading import fields_beyond
from dragoman.codecs.wire_values import MaybeInt, MaybeNumber, MaybeRaw, MaybeStr, Wire

# ── blocks ────────────────────────────────────────────────────────────────────────────────────────────────────


class CachePoint(Wire, frozen=True):
    type: str
    ttl: str | UnsetType = UNSET


class ToolUse(Wire, frozen=True, rename="camel"):
    tool_use_id: str
    name: str
    input: Raw | UnsetType = UNSET
    # "tool_use", "server_tool_use" (the model lists only this one), or absent.
    type: str | UnsetType = UNSET


class ReasoningText(Wire, frozen=True):
    text: str
    # Only Claude signs.
    signature: str | UnsetType = UNSET


class ReasoningContent(Wire, frozen=True, rename="camel"):
    reasoning_text: ReasoningText | UnsetType = UNSET
    # A blob: base64 of what Anthropic's own API calls `data`.
    redacted_content: str | UnsetType = UNSET


class ToolResultWire(Wire, frozen=True, rename="camel"):
    tool_use_id: str
    content: list[Block] | UnsetType = UNSET
    status: str | UnsetType = UNSET
    # On results of tools that the provider ran.
    type: str | UnsetType = UNSET


class Block(Wire, frozen=True, rename="camel"):
    """One block of a message, of the system field or of a result. `json` is in results only."""

    text: str | UnsetType = UNSET
    tool_use: ToolUse | UnsetType = UNSET
    tool_result: ToolResultWire | UnsetType = UNSET
    cache_point: CachePoint | UnsetType = UNSET
    reasoning_content: ReasoningContent | UnsetType = UNSET
    json: Raw | UnsetType = UNSET
    # Parsed on use: recorders and SDKs write the bytes in several odd ways, and then the block is carried whole.
    image: Raw | UnsetType = UNSET
    document: Raw | UnsetType = UNSET
    video: Raw | UnsetType = UNSET
    audio: Raw | UnsetType = UNSET
    citations_content: Raw | UnsetType = UNSET
    guard_content: Raw | UnsetType = UNSET
    # Of the newest models; carried whole.
    search_result: Raw | UnsetType = UNSET
    tool_addition: Raw | UnsetType = UNSET
    tool_removal: Raw | UnsetType = UNSET

    further: ClassVar = ("type",)  # clients that write Anthropic's blocks


class S3Location(Wire, frozen=True):
    uri: str


class MediaSource(Wire, frozen=True, rename="camel"):
    """The source of a media block; `text` and `content` for documents only."""

    bytes: str | UnsetType = UNSET
    s3_location: S3Location | UnsetType = UNSET
    text: str | UnsetType = UNSET
    content: Raw | UnsetType = UNSET


class CitationsSwitch(Wire, frozen=True):
    enabled: bool | UnsetType = UNSET


class MediaWire(Wire, frozen=True):
    """An image, document, video or audio. `name`, `context` and `citations` for documents only."""

    source: MediaSource
    format: str | UnsetType = UNSET
    name: str | UnsetType = UNSET
    context: str | UnsetType = UNSET
    citations: CitationsSwitch | UnsetType = UNSET


class PlainText(Wire, frozen=True):
    text: str


class CitationsContent(Wire, frozen=True):
    # Nova's web answers omit it.
    content: list[PlainText] | UnsetType = UNSET
    citations: list[Raw] | UnsetType = UNSET


class WebLocation(Struct):
    url: str | None = None


class CitationLocation(Struct):
    web: WebLocation | None = None


class CitationHead(Struct, rename="camel"):
    """The fields of a citation that we read; the whole is kept beside it."""

    title: str | None = None
    source_content: list[PlainText] | None = None
    location: CitationLocation | None = None


class GuardText(Wire, frozen=True):
    text: str
    qualifiers: Raw | UnsetType = UNSET


class GuardContent(Wire, frozen=True):
    text: GuardText | UnsetType = UNSET
    image: Raw | UnsetType = UNSET


# ── requests ──────────────────────────────────────────────────────────────────────────────────────────────────


class MessageWire(Wire, frozen=True):
    role: str
    content: list[Block] | UnsetType = UNSET


class InputSchema(Wire, frozen=True):
    json: Raw | UnsetType = UNSET


class ToolSpec(Wire, frozen=True, rename="camel"):
    name: str
    description: str | UnsetType = UNSET
    input_schema: InputSchema | UnsetType = UNSET
    strict: bool | UnsetType = UNSET


class ToolWire(Wire, frozen=True, rename="camel"):
    tool_spec: ToolSpec | UnsetType = UNSET
    cache_point: CachePoint | UnsetType = UNSET
    # Tools that the provider runs, and future kinds, are carried whole.
    system_tool: Raw | UnsetType = UNSET


class NamedTool(Wire, frozen=True):
    name: str


class ToolChoiceWire(Wire, frozen=True):
    auto: Raw | UnsetType = UNSET
    any: Raw | UnsetType = UNSET
    tool: NamedTool | UnsetType = UNSET


class ToolConfig(Wire, frozen=True, rename="camel"):
    # A list of `ToolWire`, decoded separately: an agent sends the same tools with every request.
    tools: Raw | UnsetType = UNSET
    tool_choice: ToolChoiceWire | UnsetType = UNSET


class InferenceConfig(Wire, frozen=True, rename="camel", omit_defaults=True):
    max_tokens: MaybeInt = None
    temperature: MaybeNumber = None
    top_p: MaybeNumber = None
    stop_sequences: list[str] | UnsetType = UNSET


class JsonSchema(Wire, frozen=True):
    # JSON in a string.
    schema: str
    name: str | UnsetType = UNSET
    description: str | UnsetType = UNSET


class FormatStructure(Wire, frozen=True, rename="camel"):
    json_schema: JsonSchema


class TextFormat(Wire, frozen=True):
    type: str
    structure: FormatStructure


class OutputConfig(Wire, frozen=True, rename="camel"):
    text_format: Raw | UnsetType = UNSET
    effort: str | UnsetType = UNSET


class ConverseRequest(Wire, frozen=True, rename="camel", omit_defaults=True):
    """A request as we write it."""

    # Absent with a stored prompt.
    messages: list[MessageWire] | UnsetType = UNSET
    system: list[Block] | UnsetType = UNSET
    inference_config: InferenceConfig | UnsetType = UNSET
    tool_config: ToolConfig | UnsetType = UNSET
    output_config: OutputConfig | UnsetType = UNSET
    additional_model_request_fields: Raw | UnsetType = UNSET
    # In the URL; the SDKs take it beside the rest.
    model_id: MaybeStr = None


class ConverseBody(ConverseRequest, frozen=True, rename="camel", omit_defaults=True):
    """A request as it is read: with the keys that are only passed on."""

    additional_model_response_field_paths: MaybeRaw = None
    guardrail_config: MaybeRaw = None
    performance_config: MaybeRaw = None
    prompt_variables: MaybeRaw = None
    request_metadata: MaybeRaw = None
    service_tier: MaybeRaw = None


PASSED_ON = fields_beyond(ConverseBody, ConverseRequest)


# ── responses ─────────────────────────────────────────────────────────────────────────────────────────────────


class OutputWire(Wire, frozen=True):
    message: MessageWire


class UsageWire(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """The counts we read. The whole object is kept beside them, byte for byte."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_write_input_tokens: int | None = None
    cache_details: Any = None


class Metrics(Struct, frozen=True, rename="camel"):
    latency_ms: int = 0


class ConverseResponse(Wire, frozen=True, rename="camel"):
    output: OutputWire
    stop_reason: str | UnsetType = UNSET
    usage: Raw | UnsetType = UNSET
    metrics: Raw | UnsetType = UNSET
    additional_model_response_fields: Raw | UnsetType = UNSET
    performance_config: Raw | UnsetType = UNSET
    service_tier: Raw | UnsetType = UNSET
    trace: Raw | UnsetType = UNSET


PASSED_ON_IN_ANSWERS = ("metrics", "performance_config", "service_tier", "trace")
"""Members of an answer that are only passed on."""


# ── errors ────────────────────────────────────────────────────────────────────────────────────────────────────


class ErrorResponse(Wire, frozen=True, rename="camel"):
    message: str | UnsetType = UNSET
    original_status_code: int | UnsetType = UNSET
    original_message: str | UnsetType = UNSET
