"""Interactions on the wire: every documented field of what we interpret; other keys are exact JSON.

Steps and contents are tagged by `type` and share no tag, so one union reads a list of either. Steps of tools that
Google runs itself are kept whole.
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import UNSET, Raw, Struct, UnsetType

from dragoman.codecs.reading import fields_beyond
from dragoman.codecs.wire_values import MaybeBool, MaybeInt, MaybeNumber, MaybeRaw, MaybeStr, Unmodelled, Wire

# ── contents ──────────────────────────────────────────────────────────────────────────────────────────────────


class TextContent(Wire, frozen=True, tag="text"):
    text: str
    annotations: Raw | UnsetType = UNSET


class MediaContent(Wire, frozen=True):
    """The fields of all media: bytes in base64, or one URL for files of the API, YouTube, `gs://` and the web."""

    data: str | UnsetType = UNSET
    uri: str | UnsetType = UNSET
    mime_type: str | UnsetType = UNSET


class ImageContent(MediaContent, frozen=True, tag="image"):
    resolution: str | UnsetType = UNSET


class AudioContent(MediaContent, frozen=True, tag="audio"):
    sample_rate: Raw | UnsetType = UNSET
    channels: Raw | UnsetType = UNSET


class VideoContent(MediaContent, frozen=True, tag="video"):
    resolution: Raw | UnsetType = UNSET
    name: Raw | UnsetType = UNSET
    processing: Raw | UnsetType = UNSET


class DocumentContent(MediaContent, frozen=True, tag="document"):
    pass


Content: TypeAlias = TextContent | ImageContent | AudioContent | VideoContent | DocumentContent
CONTENTS = (TextContent, ImageContent, AudioContent, VideoContent, DocumentContent)

# ── steps ─────────────────────────────────────────────────────────────────────────────────────────────────────


class FunctionResultStep(Wire, frozen=True, tag="function_result"):
    call_id: str
    # A string, an object, or a list of contents.
    result: Raw | UnsetType = UNSET
    name: str | UnsetType = UNSET
    is_error: bool | UnsetType = UNSET


class UserInputStep(Wire, frozen=True, tag="user_input"):
    # A list by its type; Google's own samples also send a bare string. One client puts results among the contents.
    content: str | list[Content | FunctionResultStep | Unmodelled] | UnsetType = UNSET


class ModelOutputStep(Wire, frozen=True, tag="model_output"):
    content: str | list[Content | Unmodelled] | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


class ThoughtStep(Wire, frozen=True, tag="thought"):
    signature: str | UnsetType = UNSET
    summary: list[TextContent | Unmodelled] | UnsetType = UNSET


class FunctionCallStep(Wire, frozen=True, tag="function_call"):
    name: str
    id: str | UnsetType = UNSET
    arguments: Raw | UnsetType = UNSET
    # Not in the type; in streams it is empty, in one recording it had a value.
    signature: str | UnsetType = UNSET


Step: TypeAlias = UserInputStep | ModelOutputStep | ThoughtStep | FunctionCallStep | FunctionResultStep | Unmodelled
Item: TypeAlias = Step | Content
"""An element of a list `input`: steps, or contents."""


class StepHead(Struct, frozen=True, gc=False):
    """The fields that identify a step of a tool that Google runs."""

    type: str = ""
    id: str | None = None
    call_id: str | None = None
    name: str | None = None
    signature: str | None = None


# ── tools ─────────────────────────────────────────────────────────────────────────────────────────────────────


class ToolWire(Wire, frozen=True, omit_defaults=True):
    """A function."""

    type: str | UnsetType = UNSET
    name: MaybeStr = None
    description: MaybeStr = None
    parameters: Raw | UnsetType = UNSET


class ProviderToolWire(ToolWire, frozen=True, omit_defaults=True):
    """A tool as it is read, with the keys of tools that Google runs."""

    allowed_tools: Raw | UnsetType = UNSET
    disabled_safety_policies: Raw | UnsetType = UNSET
    enable_prompt_injection_detection: Raw | UnsetType = UNSET
    enable_widget: Raw | UnsetType = UNSET
    environment: Raw | UnsetType = UNSET
    exa_ai_search_config: Raw | UnsetType = UNSET
    excluded_predefined_functions: Raw | UnsetType = UNSET
    file_search_store_names: Raw | UnsetType = UNSET
    headers: Raw | UnsetType = UNSET
    latitude: Raw | UnsetType = UNSET
    longitude: Raw | UnsetType = UNSET
    metadata_filter: Raw | UnsetType = UNSET
    parallel_ai_search_config: Raw | UnsetType = UNSET
    rag_store_config: Raw | UnsetType = UNSET
    retrieval_types: Raw | UnsetType = UNSET
    search_types: Raw | UnsetType = UNSET
    top_k: Raw | UnsetType = UNSET
    url: Raw | UnsetType = UNSET
    vertex_ai_search_config: Raw | UnsetType = UNSET


class AllowedTools(Wire, frozen=True):
    mode: str | UnsetType = UNSET
    tools: list[str] | UnsetType = UNSET


class ChoiceObject(Wire, frozen=True):
    allowed_tools: AllowedTools


# ── bodies ────────────────────────────────────────────────────────────────────────────────────────────────────


class GenerationConfig(Wire, frozen=True, omit_defaults=True):
    max_output_tokens: MaybeInt = None
    stop_sequences: list[str] | UnsetType = UNSET
    seed: MaybeInt = None
    thinking_level: str | UnsetType = UNSET
    thinking_summaries: str | UnsetType = UNSET
    tool_choice: str | ChoiceObject | UnsetType = UNSET
    # Deprecated, still in the type.
    temperature: MaybeNumber = None
    top_p: MaybeNumber = None


class GenerationConfigBody(GenerationConfig, frozen=True, omit_defaults=True):
    """`generation_config` as it is read."""

    speech_config: MaybeRaw = None
    transcription_config: MaybeRaw = None
    video_config: MaybeRaw = None
    image_config: MaybeRaw = None


PASSED_ON_CONFIG = fields_beyond(GenerationConfigBody, GenerationConfig)


class InteractionRequest(Wire, frozen=True, omit_defaults=True):
    model: MaybeStr = None
    input: str | list[Item] | Item | UnsetType = UNSET
    system_instruction: MaybeStr = None
    tools: Raw | UnsetType = UNSET
    generation_config: GenerationConfig | UnsetType = UNSET
    response_format: Raw | UnsetType = UNSET
    stream: MaybeBool = None


class InteractionBody(InteractionRequest, frozen=True, omit_defaults=True):
    """Any request as it is read, with the keys that no field of the intermediate format models."""

    generation_config: GenerationConfigBody | UnsetType = UNSET
    agent: MaybeRaw = None
    agent_config: MaybeRaw = None
    background: MaybeRaw = None
    cached_content: MaybeRaw = None
    continuation_token: MaybeRaw = None
    environment: MaybeRaw = None
    labels: MaybeRaw = None
    previous_interaction_id: MaybeRaw = None
    response_mime_type: MaybeRaw = None
    response_modalities: MaybeRaw = None
    safety_settings: MaybeRaw = None
    service_tier: MaybeRaw = None
    store: MaybeRaw = None
    webhook_config: MaybeRaw = None


PASSED_ON = fields_beyond(InteractionBody, InteractionRequest)
"""Keys of a request that only Google understands."""


class Interaction(Wire, frozen=True, omit_defaults=True):
    """An answer."""

    id: MaybeStr = None
    object: Raw | UnsetType = UNSET
    status: MaybeStr = None
    model: MaybeStr = None
    created: Raw | UnsetType = UNSET
    updated: Raw | UnsetType = UNSET
    service_tier: Raw | UnsetType = UNSET
    steps: list[Step] | UnsetType = UNSET
    usage: Raw | UnsetType = UNSET
    agent: Raw | UnsetType = UNSET
    agent_config: Raw | UnsetType = UNSET
    environment_id: Raw | UnsetType = UNSET
    previous_interaction_id: Raw | UnsetType = UNSET
    continuation_token: Raw | UnsetType = UNSET
    errors: Raw | UnsetType = UNSET
    # In the answer to GET …?include_input=true.
    input: Raw | UnsetType = UNSET
    # Two music models still answer with this instead of steps.
    outputs: list[Content | Unmodelled] | UnsetType = UNSET
    # Added by Google's own SDK; in recordings made through it.
    output_text: Raw | UnsetType = UNSET
