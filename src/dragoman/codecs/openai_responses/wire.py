"""Responses on the wire. Only what we interpret is typed; the rest travels as extras, exactly as written.

Items have no common tag: a message may leave its `type` out, and most do. So one struct holds the fields of the kinds
that nearly all traffic consists of, and a body that says more is read item by item.
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import UNSET, Raw, Struct, UnsetType

from dragoman.codecs.reading import MaybeBool, MaybeInt, MaybeNumber, MaybeStr, Unmodelled, Wire

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
    # Text by the specification; gateways also give an object.
    arguments: str | dict[str, Raw] | UnsetType = UNSET
    input: str | UnsetType = UNSET
    output: str | list[ContentPart] | UnsetType = UNSET
    summary: list[SummaryText | Unmodelled] | UnsetType = UNSET
    encrypted_content: str | None | UnsetType = UNSET
    status: Raw | UnsetType = UNSET
    phase: Raw | UnsetType = UNSET
    namespace: Raw | UnsetType = UNSET


class ItemHead(Struct, frozen=True, gc=False):
    """What tells the kind of an item and names it."""

    type: str | None = None
    role: str | None = None
    id: str | None = None
    call_id: str | None = None
    name: str | None = None
    server_label: str | None = None
    execution: str | None = None
    environment: Raw | UnsetType = UNSET


# ── tools ─────────────────────────────────────────────────────────────────────────────────────────────────────


class FunctionTool(Wire, frozen=True, tag="function"):
    name: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    parameters: Raw | UnsetType = UNSET
    strict: bool | UnsetType = UNSET


class CustomTool(Wire, frozen=True, tag="custom"):
    name: str
    description: str | UnsetType = UNSET
    format: Raw | UnsetType = UNSET


AnyTool: TypeAlias = FunctionTool | CustomTool | Unmodelled


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


class ReasoningWire(Wire, frozen=True):
    effort: str | UnsetType = UNSET
    summary: str | UnsetType = UNSET


# ── bodies ────────────────────────────────────────────────────────────────────────────────────────────────────


class Settings(Wire, frozen=True, omit_defaults=True):
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


class ResponsesRequest(Settings, frozen=True, omit_defaults=True):
    input: str | list[Item] | UnsetType = UNSET


class LooseRequest(Settings, frozen=True, omit_defaults=True):
    """A request some of whose items say more than `Item` knows."""

    input: str | list[Raw] | UnsetType = UNSET


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


class LooseResponse(Answer, frozen=True, omit_defaults=True):
    """A response some of whose items say more than `Item` knows."""

    output: list[Raw] | None | UnsetType = UNSET
