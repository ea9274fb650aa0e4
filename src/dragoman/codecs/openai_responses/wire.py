"""Responses on the wire: every documented field of what we interpret, and the keys of servers that speak the format.

Fields we interpret are typed, other keys are exact JSON. Items have no common tag: a message may omit its `type`, and
most do. So one struct holds the fields of the types that make up nearly all traffic; in a body with other types, or
with keys that are only passed on, each item is read separately. Items of other types are kept as they are.
"""

from __future__ import annotations

from typing import ClassVar, TypeAlias

from msgspec import UNSET, Raw, Struct, UnsetType, field

from dragoman.codecs.wire_values import MaybeBool, MaybeInt, MaybeNumber, MaybeRaw, MaybeStr, Unmodelled, Wire

# ── content parts ─────────────────────────────────────────────────────────────────────────────────────────────


class Breakpoint(Wire, frozen=True):
    mode: str
    ttl: str | UnsetType = UNSET


class InputText(Wire, frozen=True, tag="input_text"):
    text: str
    prompt_cache_breakpoint: Breakpoint | UnsetType = UNSET


class InputImage(Wire, frozen=True, tag="input_image"):
    # A plain string, with `detail` beside it; Chat nests both.
    image_url: str | UnsetType = UNSET
    file_id: str | UnsetType = UNSET
    detail: str | UnsetType = UNSET
    prompt_cache_breakpoint: Breakpoint | UnsetType = UNSET


class InputFile(Wire, frozen=True, tag="input_file"):
    file_data: str | UnsetType = UNSET
    file_url: str | UnsetType = UNSET
    file_id: str | UnsetType = UNSET
    filename: str | UnsetType = UNSET
    detail: Raw | UnsetType = UNSET
    prompt_cache_breakpoint: Breakpoint | UnsetType = UNSET


class AudioData(Wire, frozen=True):
    data: str
    format: str


class InputAudio(Wire, frozen=True, tag="input_audio"):
    input_audio: AudioData


class OutputText(Wire, frozen=True, tag="output_text"):
    text: str
    annotations: Raw | UnsetType = UNSET
    logprobs: Raw | UnsetType = UNSET

    further: ClassVar = ("refusal",)


class RefusalPart(Wire, frozen=True, tag="refusal"):
    refusal: str


class ReasoningText(Wire, frozen=True, tag="reasoning_text"):
    text: str


class SummaryText(Wire, frozen=True, tag="summary_text"):
    text: str


ContentPart: TypeAlias = (
    InputText
    | InputImage
    | InputFile
    | InputAudio
    | OutputText
    | RefusalPart
    | ReasoningText
    | SummaryText
    | Unmodelled
)

# ── items ─────────────────────────────────────────────────────────────────────────────────────────────────────


class Item(Wire, frozen=True):
    """A message, a call, its output, or reasoning."""

    type: str | UnsetType = UNSET
    role: str | UnsetType = UNSET
    content: str | list[ContentPart] | UnsetType = UNSET
    id: str | UnsetType = UNSET
    call_id: str | UnsetType = UNSET
    name: str | UnsetType = UNSET
    # The specification says text; gateways also give an object.
    arguments: str | dict[str, Raw] | UnsetType = UNSET
    input: str | UnsetType = UNSET
    output: str | list[ContentPart] | UnsetType = UNSET
    summary: list[SummaryText | Unmodelled] | UnsetType = UNSET
    encrypted_content: str | None | UnsetType = UNSET
    status: Raw | UnsetType = UNSET
    phase: Raw | UnsetType = UNSET
    namespace: Raw | UnsetType = UNSET
    caller: Raw | UnsetType = UNSET
    created_by: Raw | UnsetType = UNSET
    is_async: Raw | UnsetType = field(default=UNSET, name="async")

    # OpenRouter; Bedrock's endpoint
    further: ClassVar = ("format", "item_id", "output_index")


class ItemHead(Struct, frozen=True, gc=False):
    """The fields that give an item's kind and identify it."""

    type: str | None = None
    role: str | None = None
    id: str | None = None
    call_id: str | None = None
    name: str | None = None
    server_label: str | None = None
    execution: str | None = None
    environment: Raw | UnsetType = UNSET


# ── tools ─────────────────────────────────────────────────────────────────────────────────────────────────────


class ToolWire(Wire, frozen=True, omit_defaults=True):
    """A function or a custom tool, which we interpret, or a tool of the provider, which is only passed on."""

    type: str | UnsetType = UNSET
    name: MaybeStr = None
    # An explicit null is as common as a missing key.
    description: str | None | UnsetType = UNSET
    parameters: Raw | UnsetType = UNSET
    strict: MaybeBool = None
    format: Raw | UnsetType = UNSET
    allowed_callers: Raw | UnsetType = UNSET
    defer_loading: Raw | UnsetType = UNSET
    output_schema: Raw | UnsetType = UNSET
    is_async: Raw | UnsetType = field(default=UNSET, name="async")
    # The shape of Chat, which some clients send.
    function: Raw | UnsetType = UNSET


class ProviderToolWire(ToolWire, frozen=True, omit_defaults=True):
    """A tool as it is read: with the keys of tools that the provider runs."""

    action: Raw | UnsetType = UNSET
    allowed_tools: Raw | UnsetType = UNSET
    authorization: Raw | UnsetType = UNSET
    background: Raw | UnsetType = UNSET
    complexity: Raw | UnsetType = UNSET
    connector_id: Raw | UnsetType = UNSET
    container: Raw | UnsetType = UNSET
    display_height: Raw | UnsetType = UNSET
    display_width: Raw | UnsetType = UNSET
    environment: Raw | UnsetType = UNSET
    execution: Raw | UnsetType = UNSET
    external_web_access: Raw | UnsetType = UNSET
    filters: Raw | UnsetType = UNSET
    frame_count: Raw | UnsetType = UNSET
    frame_duration_ms: Raw | UnsetType = UNSET
    headers: Raw | UnsetType = UNSET
    image_settings: Raw | UnsetType = UNSET
    input_fidelity: Raw | UnsetType = UNSET
    input_image_mask: Raw | UnsetType = UNSET
    max_num_results: Raw | UnsetType = UNSET
    model: Raw | UnsetType = UNSET
    moderation: Raw | UnsetType = UNSET
    output_compression: Raw | UnsetType = UNSET
    output_format: Raw | UnsetType = UNSET
    partial_images: Raw | UnsetType = UNSET
    quality: Raw | UnsetType = UNSET
    ranking_options: Raw | UnsetType = UNSET
    require_approval: Raw | UnsetType = UNSET
    search_content_types: Raw | UnsetType = UNSET
    search_context_size: Raw | UnsetType = UNSET
    server_description: Raw | UnsetType = UNSET
    server_label: Raw | UnsetType = UNSET
    server_url: Raw | UnsetType = UNSET
    size: Raw | UnsetType = UNSET
    svg: Raw | UnsetType = UNSET
    tools: Raw | UnsetType = UNSET
    tunnel_id: Raw | UnsetType = UNSET
    user_location: Raw | UnsetType = UNSET
    vector_store_ids: Raw | UnsetType = UNSET


class ChoiceObject(Wire, frozen=True):
    type: str
    name: str | UnsetType = UNSET
    server_label: str | UnsetType = UNSET
    mode: str | UnsetType = UNSET
    tools: list[ChoiceObject] | UnsetType = UNSET


class FormatWire(Wire, frozen=True):
    type: str
    name: str | UnsetType = UNSET
    schema: Raw | UnsetType = UNSET
    description: str | UnsetType = UNSET
    strict: bool | UnsetType = UNSET


class TextSettings(Wire, frozen=True):
    format: FormatWire | UnsetType = UNSET
    verbosity: Raw | UnsetType = UNSET


class ReasoningWire(Wire, frozen=True):
    effort: str | UnsetType = UNSET
    summary: str | UnsetType = UNSET
    context: Raw | UnsetType = UNSET
    generate_summary: Raw | UnsetType = UNSET
    mode: Raw | UnsetType = UNSET


# ── bodies ────────────────────────────────────────────────────────────────────────────────────────────────────


class RequestFields(Wire, frozen=True, omit_defaults=True):
    """A request without its input."""

    model: MaybeStr = None
    instructions: MaybeStr = None
    tools: Raw | UnsetType = UNSET
    tool_choice: str | ChoiceObject | UnsetType = UNSET
    parallel_tool_calls: MaybeBool = None
    max_output_tokens: MaybeInt = None
    temperature: MaybeNumber = None
    top_p: MaybeNumber = None
    reasoning: ReasoningWire | UnsetType = UNSET
    text: TextSettings | UnsetType = UNSET
    stream: MaybeBool = None
    user: MaybeStr = None
    store: Raw | UnsetType = UNSET
    include: Raw | UnsetType = UNSET


class ResponsesRequest(RequestFields, frozen=True, omit_defaults=True):
    input: str | list[Item] | UnsetType = UNSET


class UsualResponsesBody(ResponsesRequest, frozen=True, omit_defaults=True):
    """A request as it is usually read: with the frequent keys that the intermediate format does not model."""

    client_metadata: MaybeRaw = None  # Codex
    metadata: MaybeRaw = None
    previous_response_id: MaybeRaw = None
    prompt_cache_key: MaybeRaw = None
    service_tier: MaybeRaw = None
    truncation: MaybeRaw = None


class ResponsesBody(RequestFields, frozen=True, omit_defaults=True):
    """Any request as it is read: items as raw JSON, and all keys that the intermediate format does not model."""

    input: str | list[Raw] | UnsetType = UNSET
    access_programs: MaybeRaw = None
    background: MaybeRaw = None
    client_metadata: MaybeRaw = None
    context_management: MaybeRaw = None
    conversation: MaybeRaw = None
    image: MaybeRaw = None
    max_tool_calls: MaybeRaw = None
    metadata: MaybeRaw = None
    moderation: MaybeRaw = None
    previous_response_id: MaybeRaw = None
    prompt: MaybeRaw = None
    prompt_cache_key: MaybeRaw = None
    prompt_cache_options: MaybeRaw = None
    prompt_cache_retention: MaybeRaw = None
    safety_identifier: MaybeRaw = None
    service_tier: MaybeRaw = None
    stream_options: MaybeRaw = None
    top_logprobs: MaybeRaw = None
    truncation: MaybeRaw = None
    # OpenRouter
    provider: MaybeRaw = None


PASSED_ON = tuple(name for name in ResponsesBody.__struct_fields__ if name not in ResponsesRequest.__struct_fields__)
"""Keys of a request that only this family understands."""
USUALLY_PASSED_ON = tuple(name for name in PASSED_ON if name in UsualResponsesBody.__struct_fields__)


class InputDetails(Struct, frozen=True, gc=False):
    cached_tokens: int | None | UnsetType = UNSET
    cache_write_tokens: int | None | UnsetType = UNSET
    image_tokens: int | None | UnsetType = UNSET


class OutputDetails(Struct, frozen=True, gc=False):
    reasoning_tokens: int | None | UnsetType = UNSET


class UsageWire(Struct, frozen=True, gc=False):
    """The counts we read. The whole object is kept beside them, byte for byte."""

    input_tokens: int | None | UnsetType = UNSET
    input_tokens_details: InputDetails | None | UnsetType = UNSET
    output_tokens: int | None | UnsetType = UNSET
    output_tokens_details: OutputDetails | None | UnsetType = UNSET
    total_tokens: int | None | UnsetType = UNSET


class Answer(Wire, frozen=True, omit_defaults=True):
    """A response without its output."""

    id: MaybeStr = None
    object: Raw | UnsetType = UNSET
    created_at: Raw | UnsetType = UNSET
    model: MaybeStr = None
    status: MaybeStr = None
    incomplete_details: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET
    usage: Raw | UnsetType = UNSET
    completed_at: Raw | UnsetType = UNSET
    background: Raw | UnsetType = UNSET
    billing: Raw | UnsetType = UNSET
    frequency_penalty: Raw | UnsetType = UNSET
    instructions: Raw | UnsetType = UNSET
    max_output_tokens: Raw | UnsetType = UNSET
    max_tool_calls: Raw | UnsetType = UNSET
    metadata: Raw | UnsetType = UNSET
    moderation: Raw | UnsetType = UNSET
    parallel_tool_calls: Raw | UnsetType = UNSET
    presence_penalty: Raw | UnsetType = UNSET
    previous_response_id: Raw | UnsetType = UNSET
    prompt_cache_key: Raw | UnsetType = UNSET
    prompt_cache_retention: Raw | UnsetType = UNSET
    reasoning: Raw | UnsetType = UNSET
    safety_identifier: Raw | UnsetType = UNSET
    service_tier: Raw | UnsetType = UNSET
    store: Raw | UnsetType = UNSET
    temperature: Raw | UnsetType = UNSET
    text: Raw | UnsetType = UNSET
    tool_choice: Raw | UnsetType = UNSET
    tool_usage: Raw | UnsetType = UNSET
    tools: Raw | UnsetType = UNSET
    top_logprobs: Raw | UnsetType = UNSET
    top_p: Raw | UnsetType = UNSET
    truncation: Raw | UnsetType = UNSET
    user: Raw | UnsetType = UNSET


class ResponsesResponse(Answer, frozen=True, omit_defaults=True):
    output: list[Item] | UnsetType = UNSET


class ResponsesAnswer(Answer, frozen=True, omit_defaults=True):
    """Any response as it is read: items as raw JSON, and keys that few answers have."""

    output: list[Raw] | None | UnsetType = UNSET
    access_programs: Raw | UnsetType = UNSET
    input_transformations: Raw | UnsetType = UNSET
    conversation: Raw | UnsetType = UNSET
    image: Raw | UnsetType = UNSET
    output_text: Raw | UnsetType = UNSET
    prompt: Raw | UnsetType = UNSET
    prompt_cache_diagnostics: Raw | UnsetType = UNSET
    prompt_cache_options: Raw | UnsetType = UNSET
    # Azure, GitHub Copilot, and others
    content_filters: Raw | UnsetType = UNSET
    copilot_usage: Raw | UnsetType = UNSET
    status_details: Raw | UnsetType = UNSET

    further: ClassVar = ("input", "input_messages", "output_messages")  # vLLM
    system_fingerprint: Raw | UnsetType = UNSET
    tool_calls: Raw | UnsetType = UNSET
    total_tokens: Raw | UnsetType = UNSET
