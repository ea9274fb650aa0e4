"""generateContent on the wire: every documented field.

Fields that we interpret are typed, other keys are exact JSON. Only future fields come as extras (codecs/reading.py).
proto3 JSON: every key also in snake_case, a repeated field also as its single element, enums in any case or as
numbers, null for absent, integers as strings. `ALIASES` and the reader handle the first two, `extra` most nulls;
numbers and enums are typed for all their spellings.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from dragoman.codecs.reading import spliced
from dragoman.codecs.settings import collect_keys
from dragoman.codecs.wire_values import MaybeRaw, MaybeStr, Wire
from dragoman.ir.notes import MODELLED, RENAMED, Extra

Number: TypeAlias = int | float | str
Enum: TypeAlias = str | int

if TYPE_CHECKING:
    MaybeSpelled: TypeAlias = Number | None
else:
    MaybeSpelled = Number
    """A number in any spelling; None if it is absent."""


class GoogleWire(Wire, frozen=True, rename="camel"):
    """Base with snake_case names in Python and camelCase names on the wire."""


class FunctionCall(GoogleWire, frozen=True):
    # Pieces of a streamed call (Vertex) have neither name nor args.
    name: str | UnsetType = UNSET
    args: Raw | UnsetType = UNSET
    id: str | UnsetType = UNSET


class FunctionCallBody(FunctionCall, frozen=True):
    partial_args: Raw | UnsetType = UNSET
    will_continue: Raw | UnsetType = UNSET


class Blob(GoogleWire, frozen=True):
    mime_type: str | UnsetType = UNSET
    data: str | UnsetType = UNSET
    display_name: Raw | UnsetType = UNSET


class FileData(GoogleWire, frozen=True):
    file_uri: str | UnsetType = UNSET
    mime_type: str | UnsetType = UNSET
    display_name: Raw | UnsetType = UNSET


class ResponsePart(GoogleWire, frozen=True):
    inline_data: Blob | UnsetType = UNSET
    file_data: FileData | UnsetType = UNSET
    media_processing: Raw | UnsetType = UNSET


class FunctionResponse(GoogleWire, frozen=True):
    name: str | UnsetType = UNSET
    response: Raw | UnsetType = UNSET
    id: str | UnsetType = UNSET
    parts: list[ResponsePart] | UnsetType = UNSET


class FunctionResponseBody(FunctionResponse, frozen=True):
    will_continue: Raw | UnsetType = UNSET
    scheduling: Raw | UnsetType = UNSET


class Part(GoogleWire, frozen=True):
    """One of text, functionCall, functionResponse, inlineData, fileData."""

    text: str | UnsetType = UNSET
    thought: bool | UnsetType = UNSET
    thought_signature: str | UnsetType = UNSET
    function_call: FunctionCall | UnsetType = UNSET
    function_response: FunctionResponse | UnsetType = UNSET
    inline_data: Blob | UnsetType = UNSET
    file_data: FileData | UnsetType = UNSET


class PartBody(Part, frozen=True):
    """A part as it is read, which may also hold a block of the server's own tools."""

    function_call: FunctionCallBody | UnsetType = UNSET
    function_response: FunctionResponseBody | UnsetType = UNSET
    executable_code: Raw | UnsetType = UNSET
    code_execution_result: Raw | UnsetType = UNSET
    tool_call: Raw | UnsetType = UNSET
    tool_response: Raw | UnsetType = UNSET
    video_metadata: Raw | UnsetType = UNSET
    media_resolution: Raw | UnsetType = UNSET
    media_processing: Raw | UnsetType = UNSET
    part_metadata: Raw | UnsetType = UNSET
    speech_metadata: Raw | UnsetType = UNSET
    audio_transcription: Raw | UnsetType = UNSET


class Content(GoogleWire, frozen=True):
    role: str | UnsetType = UNSET
    parts: list[Part] | UnsetType = UNSET


class ContentBody(Content, frozen=True):
    parts: list[PartBody] | UnsetType = UNSET  # type: ignore[assignment]


_OF_A_CALL = ("partial_args", "will_continue")
_OF_A_FILE = ("display_name",)
_OF_AN_ANSWER = ("will_continue", "scheduling")
_OF_A_PIECE = ("media_processing",)
_OF_A_PART = (
    "executable_code",
    "code_execution_result",
    "tool_call",
    "tool_response",
    "video_metadata",
    "media_resolution",
    "media_processing",
    "part_metadata",
    "speech_metadata",
    "audio_transcription",
)

_call_keys = collect_keys(FunctionCallBody, _OF_A_CALL)
_answer_keys = collect_keys(FunctionResponseBody, _OF_AN_ANSWER)
_part_keys = collect_keys(PartBody, _OF_A_PART)
blob_keys = collect_keys(Blob, _OF_A_FILE)
file_keys = collect_keys(FileData, _OF_A_FILE)
response_part_keys = collect_keys(ResponsePart, _OF_A_PIECE)


# Objects of the narrow types have no extras: a body with extras is read with the wider types.


def call_keys(call: FunctionCall) -> Extra | None:
    return None if type(call) is FunctionCall else _call_keys(call)


def answer_keys(answer: FunctionResponse) -> Extra | None:
    return None if type(answer) is FunctionResponse else _answer_keys(answer)


def part_keys(part: Part) -> Extra | None:
    return None if type(part) is Part else _part_keys(part)


# ── requests ──────────────────────────────────────────────────────────────────────────────────────────────────


class FunctionDeclaration(GoogleWire, frozen=True):
    name: str
    description: str | UnsetType = UNSET
    parameters_json_schema: Raw | UnsetType = UNSET
    parameters: Raw | UnsetType = UNSET
    # Google's own Python SDK sends these two in snake_case beside camelCase keys.
    snake_parameters: Raw | UnsetType = field(default=UNSET, name="parameters_json_schema")
    snake_response: Raw | UnsetType = field(default=UNSET, name="response_json_schema")
    response: Raw | UnsetType = UNSET
    response_json_schema: Raw | UnsetType = UNSET
    behavior: Raw | UnsetType = UNSET


declaration_keys = collect_keys(FunctionDeclaration, ("response", "response_json_schema", "snake_response", "behavior"))


class ToolObject(GoogleWire, frozen=True):
    """Functions and the built-in tools, each under a separate key."""

    function_declarations: list[FunctionDeclaration] | UnsetType = UNSET
    google_search: Raw | UnsetType = UNSET
    google_search_retrieval: Raw | UnsetType = UNSET
    url_context: Raw | UnsetType = UNSET
    code_execution: Raw | UnsetType = UNSET
    google_maps: Raw | UnsetType = UNSET
    file_search: Raw | UnsetType = UNSET
    computer_use: Raw | UnsetType = UNSET
    retrieval: Raw | UnsetType = UNSET
    enterprise_web_search: Raw | UnsetType = UNSET
    exa_ai_search: Raw | UnsetType = UNSET
    parallel_ai_search: Raw | UnsetType = UNSET
    mcp_servers: Raw | UnsetType = UNSET


_OF_A_TOOL = ToolObject.__struct_fields__[1:-1]
tool_keys = collect_keys(ToolObject, _OF_A_TOOL)


class FunctionCallingConfig(GoogleWire, frozen=True):
    mode: Enum | UnsetType = UNSET
    allowed_function_names: list[str] | UnsetType = UNSET
    stream_function_call_arguments: Raw | UnsetType = UNSET


class ToolConfig(GoogleWire, frozen=True):
    function_calling_config: FunctionCallingConfig | UnsetType = UNSET
    retrieval_config: Raw | UnsetType = UNSET
    include_server_side_tool_invocations: Raw | UnsetType = UNSET


_OF_A_CHOICE = ("stream_function_call_arguments",)
_OF_A_TOOL_CONFIG = ("retrieval_config", "include_server_side_tool_invocations")

choice_keys = collect_keys(FunctionCallingConfig, _OF_A_CHOICE)
tool_config_keys = collect_keys(ToolConfig, _OF_A_TOOL_CONFIG)


class ThinkingConfig(GoogleWire, frozen=True):
    include_thoughts: bool | UnsetType = UNSET
    thinking_budget: Number | UnsetType = UNSET
    thinking_level: Enum | UnsetType = UNSET


class GenerationConfig(GoogleWire, frozen=True, omit_defaults=True):
    """The settings that we write, which the intermediate format has too."""

    max_output_tokens: MaybeSpelled = None
    temperature: MaybeSpelled = None
    top_p: MaybeSpelled = None
    top_k: MaybeSpelled = None
    stop_sequences: list[str] | UnsetType = UNSET
    seed: MaybeSpelled = None
    presence_penalty: MaybeSpelled = None
    frequency_penalty: MaybeSpelled = None
    candidate_count: MaybeSpelled = None
    thinking_config: Raw | UnsetType = UNSET
    response_mime_type: str | UnsetType = UNSET
    response_json_schema: Raw | UnsetType = UNSET
    response_schema: Raw | UnsetType = UNSET
    response_format: Raw | UnsetType = UNSET
    # Kept as read, never generated here. Many bodies have it.
    response_modalities: MaybeRaw = None


class GenerationConfigBody(GenerationConfig, frozen=True, omit_defaults=True):
    """`generationConfig` as it is read."""

    response_logprobs: MaybeRaw = None
    logprobs: MaybeRaw = None
    media_resolution: MaybeRaw = None
    speech_config: MaybeRaw = None
    image_config: MaybeRaw = None
    audio_timestamp: MaybeRaw = None
    audio_transcription_config: MaybeRaw = None
    enable_affective_dialog: MaybeRaw = None
    enable_enhanced_civic_answers: MaybeRaw = None
    model_selection_config: MaybeRaw = None
    routing_config: MaybeRaw = None
    translation_config: MaybeRaw = None


PASSED_ON_CONFIG = (
    "response_modalities",
    *(name for name in GenerationConfigBody.__struct_fields__ if name not in GenerationConfig.__struct_fields__),
)


class GenerateContentRequest(GoogleWire, frozen=True, omit_defaults=True):
    """A request as we write it."""

    contents: list[Content]
    system_instruction: Content | None | UnsetType = UNSET
    tools: Raw | UnsetType = UNSET
    tool_config: ToolConfig | None | UnsetType = UNSET
    generation_config: GenerationConfig | None | UnsetType = UNSET
    model: MaybeStr = None
    # Kept as read, never generated here. Many bodies have it.
    safety_settings: MaybeRaw = None


class GenerateContentBody(GenerateContentRequest, frozen=True, omit_defaults=True):
    """A request as it is read."""

    contents: list[ContentBody]  # type: ignore[assignment]
    system_instruction: ContentBody | None | UnsetType = UNSET
    generation_config: GenerationConfigBody | None | UnsetType = UNSET
    cached_content: MaybeRaw = None
    labels: MaybeRaw = None
    service_tier: MaybeRaw = None
    store: MaybeRaw = None
    continuation_token: MaybeRaw = None
    model_armor_config: MaybeRaw = None
    output_config: MaybeRaw = None


PASSED_ON = (
    "safety_settings",
    *(name for name in GenerateContentBody.__struct_fields__ if name not in GenerateContentRequest.__struct_fields__),
)
"""Keys that are sent back to this API unchanged, and to no other."""


# ── responses ─────────────────────────────────────────────────────────────────────────────────────────────────


class Candidate(GoogleWire, frozen=True):
    content: Content | UnsetType = UNSET
    finish_reason: Enum | UnsetType = UNSET
    index: int | UnsetType = UNSET
    finish_message: Raw | UnsetType = UNSET
    safety_ratings: Raw | UnsetType = UNSET
    avg_logprobs: Raw | UnsetType = UNSET
    citation_metadata: Raw | UnsetType = UNSET
    grounding_metadata: Raw | UnsetType = UNSET


class CandidateBody(Candidate, frozen=True):
    further: ClassVar = ("score",)  # of Vertex

    content: ContentBody | UnsetType = UNSET
    url_context_metadata: Raw | UnsetType = UNSET
    logprobs_result: Raw | UnsetType = UNSET
    token_count: Raw | UnsetType = UNSET
    continuation_token: Raw | UnsetType = UNSET


_OF_EVERY_CANDIDATE = ("finish_message", "avg_logprobs", "safety_ratings", "citation_metadata")
_OF_A_CANDIDATE = (
    *_OF_EVERY_CANDIDATE,
    "url_context_metadata",
    "logprobs_result",
    "token_count",
    "continuation_token",
)
_usual_candidate_keys = collect_keys(Candidate, _OF_EVERY_CANDIDATE)
_candidate_keys = collect_keys(CandidateBody, _OF_A_CANDIDATE)


def candidate_keys(candidate: Candidate) -> Extra | None:
    return _usual_candidate_keys(candidate) if type(candidate) is Candidate else _candidate_keys(candidate)


class ModalityCount(GoogleWire, frozen=True):
    modality: Enum | UnsetType = UNSET
    token_count: Number | UnsetType = UNSET


class UsageMetadata(GoogleWire, frozen=True):
    further: ClassVar = ("billablePromptUsage",)  # of Vertex

    prompt_token_count: Number | UnsetType = UNSET
    candidates_token_count: Number | UnsetType = UNSET
    total_token_count: Number | UnsetType = UNSET
    cached_content_token_count: Number | UnsetType = UNSET
    thoughts_token_count: Number | UnsetType = UNSET
    tool_use_prompt_token_count: Number | UnsetType = UNSET
    prompt_tokens_details: list[ModalityCount] | UnsetType = UNSET
    candidates_tokens_details: list[ModalityCount] | UnsetType = UNSET
    cache_tokens_details: list[ModalityCount] | UnsetType = UNSET
    tool_use_prompt_tokens_details: list[ModalityCount] | UnsetType = UNSET
    service_tier: Raw | UnsetType = UNSET
    traffic_type: Raw | UnsetType = UNSET


_OF_USAGE = ("service_tier", "traffic_type")
usage_keys = collect_keys(UsageMetadata, _OF_USAGE)


class TextCount(Struct, frozen=True, gc=False, rename="camel", forbid_unknown_fields=True):
    modality: Literal["TEXT"]
    token_count: int = 0


class PlainUsage(Struct, frozen=True, gc=False, rename="camel", forbid_unknown_fields=True):
    """The usage of most answers: whole numbers, all of them text. The rest is read as `UsageMetadata`."""

    prompt_token_count: int = 0
    candidates_token_count: int = 0
    total_token_count: int | None = None
    cached_content_token_count: int | None = None
    thoughts_token_count: int | None = None
    tool_use_prompt_token_count: int = 0
    prompt_tokens_details: list[TextCount] | UnsetType = UNSET
    candidates_tokens_details: list[TextCount] | UnsetType = UNSET
    cache_tokens_details: list[TextCount] | UnsetType = UNSET
    tool_use_prompt_tokens_details: list[TextCount] | UnsetType = UNSET
    service_tier: MaybeRaw = None
    traffic_type: MaybeRaw = None


class GenerateContentResponse(GoogleWire, frozen=True):
    candidates: list[Candidate] | UnsetType = UNSET
    prompt_feedback: Raw | UnsetType = UNSET
    usage_metadata: Raw | UnsetType = UNSET
    model_version: str | UnsetType = UNSET
    create_time: Raw | UnsetType = UNSET
    response_id: str | UnsetType = UNSET


class GenerateContentResponseBody(GenerateContentResponse, frozen=True):
    """A response as it is read."""

    candidates: list[CandidateBody] | UnsetType = UNSET  # type: ignore[assignment]
    model_status: Raw | UnsetType = UNSET
    turn_token: Raw | UnsetType = UNSET


_OF_A_RESPONSE = ("model_status", "turn_token")
_response_keys = collect_keys(GenerateContentResponseBody, _OF_A_RESPONSE)


def response_keys(response: GenerateContentResponse) -> Extra | None:
    return None if type(response) is GenerateContentResponse else _response_keys(response)


# ── what we write most, without the members that we never set ─────────────────────────────────────────────────


class TextOut(Struct, frozen=True, gc=False):
    text: str


class FunctionCallOut(Struct, frozen=True, gc=False):
    name: str
    args: Any
    id: str | UnsetType = UNSET


class CallOut(Struct, frozen=True, gc=False, rename="camel"):
    function_call: Any
    thought_signature: str | UnsetType = UNSET


class FunctionResponseOut(Struct, frozen=True, gc=False):
    name: str
    response: Any
    id: str | UnsetType = UNSET


class ResultOut(Struct, frozen=True, gc=False, rename="camel"):
    function_response: Any


class CandidateOut(Struct, frozen=True, gc=False, rename="camel"):
    content: Any
    finish_reason: Any
    index: int
    grounding_metadata: Any = UNSET


class Output(Struct, frozen=True, gc=False):
    output: Any


class ContentOut(Struct, frozen=True, gc=False):
    role: str | UnsetType
    parts: Any


# ── spelling ──────────────────────────────────────────────────────────────────────────────────────────────────

_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def snake_case(name: str) -> str:
    return _CAPITAL.sub("_", name).lower()


def camel_case(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)


_PASSED_ON = {
    *PASSED_ON,
    *PASSED_ON_CONFIG,
    *_OF_A_CALL,
    *_OF_A_FILE,
    *_OF_AN_ANSWER,
    *_OF_A_PIECE,
    *_OF_A_PART,
    *_OF_A_TOOL,
    *_OF_A_CHOICE,
    *_OF_A_TOOL_CONFIG,
    *_OF_A_CANDIDATE,
    *_OF_USAGE,
    *_OF_A_RESPONSE,
}


def _aliases() -> dict[str, str]:
    names = {name for kind in GoogleWire.__subclasses__() for name in kind.__struct_encode_fields__}
    aliases = {snake_case(name): name for name in names if snake_case(name) != name and not name.startswith("~")}
    return {other: name for other, name in aliases.items() if other not in _PASSED_ON}


ALIASES = _aliases()
"""Other spelling -> wire name, for every key that we interpret. Keys that are only passed on keep their spelling."""


def keep_whole(extra: Extra, key: str, raw: Raw, prefix: str = "") -> str:
    """Keep a value that is typed but not interpreted, under the key it was written with, which is returned."""
    renamed = extra.pop(RENAMED + key, None)
    spelled: str = key if renamed is None else msgspec.json.decode(renamed)
    extra[prefix + spelled] = raw
    return spelled


def says(extra: Extra, key: str) -> bool:
    """Whether `keep_whole` kept this key, in either spelling."""
    spellings = {key, snake_case(key)}
    return any(name.removeprefix(MODELLED) in spellings for name in extra)


def overlaid(wire: Struct, extra: Extra) -> Raw:
    """Like `spliced`, but fields of the struct override a null or an empty list that was there before."""
    known = {
        key
        for name, key in zip(wire.__struct_fields__, wire.__struct_encode_fields__, strict=True)
        if getattr(wire, name) is not UNSET and getattr(wire, name) is not None
    }
    repeated = [key for key in extra if key.removeprefix(MODELLED) in known]
    return spliced(wire, {key: value for key, value in extra.items() if key not in repeated} if repeated else extra)


class TextWrapper(Struct, frozen=True, forbid_unknown_fields=True):
    """The response object that we make from a text."""

    output: str


class Wrapper(Struct, frozen=True, forbid_unknown_fields=True):
    """The response object that we make from any other result."""

    output: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET
