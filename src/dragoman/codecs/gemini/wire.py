"""generateContent on the wire. Only what we interpret is typed; the rest travels as extras, exactly as written.

proto3 JSON: every key also in snake_case, a repeated field also as its lone element, enums in any case or as numbers,
null for absent, integers as strings. `ALIASES` and the reader take care of the first two, `extra` of nulls; numbers and
enums are typed for all their spellings.
"""

from __future__ import annotations

import re
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from dragoman.codecs.reading import Wire, spliced
from dragoman.ir.notes import MODELLED, RENAMED, Extra
from dragoman.ir.values import encode_json

Number: TypeAlias = int | float | str
Enum: TypeAlias = str | int


class GoogleWire(Wire, frozen=True, rename="camel"):
    """Python names are snake_case; wire names camelCase."""


class FunctionCall(GoogleWire, frozen=True):
    # Pieces of a streamed call (Vertex) have neither name nor args.
    name: str | UnsetType = UNSET
    args: Raw | UnsetType = UNSET
    id: str | UnsetType = UNSET


class Blob(GoogleWire, frozen=True):
    mime_type: str | UnsetType = UNSET
    data: str | UnsetType = UNSET


class FileData(GoogleWire, frozen=True):
    file_uri: str | UnsetType = UNSET
    mime_type: str | UnsetType = UNSET


class ResponsePart(GoogleWire, frozen=True):
    inline_data: Blob | UnsetType = UNSET
    file_data: FileData | UnsetType = UNSET


class FunctionResponse(GoogleWire, frozen=True):
    name: str | UnsetType = UNSET
    response: Raw | UnsetType = UNSET
    id: str | UnsetType = UNSET
    parts: list[ResponsePart] | UnsetType = UNSET


class Part(GoogleWire, frozen=True):
    """One of text, functionCall, functionResponse, inlineData, fileData, or what `extra` holds (server-side tools)."""

    text: str | UnsetType = UNSET
    thought: bool | UnsetType = UNSET
    thought_signature: str | UnsetType = UNSET
    function_call: FunctionCall | UnsetType = UNSET
    function_response: FunctionResponse | UnsetType = UNSET
    inline_data: Blob | UnsetType = UNSET
    file_data: FileData | UnsetType = UNSET


class Content(GoogleWire, frozen=True):
    role: str | UnsetType = UNSET
    parts: list[Part] | UnsetType = UNSET


# ── requests ──────────────────────────────────────────────────────────────────────────────────────────────────


class FunctionDeclaration(GoogleWire, frozen=True):
    name: str
    description: str | UnsetType = UNSET
    parameters_json_schema: Raw | UnsetType = UNSET
    parameters: Raw | UnsetType = UNSET


class ToolObject(GoogleWire, frozen=True):
    """Each built-in tool is a key of its own, in `extra`."""

    function_declarations: list[FunctionDeclaration] | UnsetType = UNSET


class FunctionCallingConfig(GoogleWire, frozen=True):
    mode: Enum | UnsetType = UNSET
    allowed_function_names: list[str] | UnsetType = UNSET


class ToolConfig(GoogleWire, frozen=True):
    function_calling_config: FunctionCallingConfig | UnsetType = UNSET


class ThinkingConfig(GoogleWire, frozen=True):
    include_thoughts: bool | UnsetType = UNSET
    thinking_budget: Number | UnsetType = UNSET
    thinking_level: Enum | UnsetType = UNSET


class GenerationConfig(GoogleWire, frozen=True):
    max_output_tokens: Number | UnsetType = UNSET
    temperature: Number | UnsetType = UNSET
    top_p: Number | UnsetType = UNSET
    top_k: Number | UnsetType = UNSET
    stop_sequences: list[str] | UnsetType = UNSET
    seed: Number | UnsetType = UNSET
    presence_penalty: Number | UnsetType = UNSET
    frequency_penalty: Number | UnsetType = UNSET
    candidate_count: Number | UnsetType = UNSET
    thinking_config: Raw | UnsetType = UNSET
    response_mime_type: str | UnsetType = UNSET
    response_json_schema: Raw | UnsetType = UNSET
    response_schema: Raw | UnsetType = UNSET
    response_format: Raw | UnsetType = UNSET
    response_modalities: Raw | UnsetType = UNSET


class GenerateContentRequest(GoogleWire, frozen=True):
    contents: list[Content]
    system_instruction: Content | UnsetType = UNSET
    tools: Raw | UnsetType = UNSET
    tool_config: ToolConfig | UnsetType = UNSET
    generation_config: GenerationConfig | UnsetType = UNSET
    safety_settings: Raw | UnsetType = UNSET
    model: str | UnsetType = UNSET


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


class ModalityCount(GoogleWire, frozen=True):
    modality: Enum | UnsetType = UNSET
    token_count: Number | UnsetType = UNSET


class UsageMetadata(GoogleWire, frozen=True):
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


class TextCount(Struct, frozen=True, gc=False, rename="camel", forbid_unknown_fields=True):
    modality: Literal["TEXT"]
    token_count: int = 0


class PlainUsage(Struct, frozen=True, gc=False, rename="camel", forbid_unknown_fields=True):
    """What most answers say: whole numbers, all of them text. The rest is read as `UsageMetadata`."""

    prompt_token_count: int = 0
    candidates_token_count: int = 0
    total_token_count: int | None = None
    cached_content_token_count: int | None = None
    thoughts_token_count: int | None = None
    tool_use_prompt_token_count: int = 0
    prompt_tokens_details: list[TextCount] = []
    candidates_tokens_details: list[TextCount] = []
    cache_tokens_details: list[TextCount] = []
    tool_use_prompt_tokens_details: list[TextCount] = []


class GenerateContentResponse(GoogleWire, frozen=True):
    candidates: list[Candidate] | UnsetType = UNSET
    prompt_feedback: Raw | UnsetType = UNSET
    usage_metadata: Raw | UnsetType = UNSET
    model_version: str | UnsetType = UNSET
    create_time: Raw | UnsetType = UNSET
    response_id: str | UnsetType = UNSET


# ── errors ────────────────────────────────────────────────────────────────────────────────────────────────────


class Status(GoogleWire, frozen=True):
    """google.rpc.Status, with the HTTP status as its code."""

    code: Enum | UnsetType = UNSET
    message: str | UnsetType = UNSET
    status: str | UnsetType = UNSET
    details: Raw | UnsetType = UNSET


class ErrorResponse(GoogleWire, frozen=True):
    error: Status | str


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


class DeclarationOut(Struct, frozen=True, gc=False, rename="camel"):
    name: str
    description: str | UnsetType
    parameters_json_schema: Any


class ConfigOut(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    max_output_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    stop_sequences: tuple[str, ...] = ()
    seed: int | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    candidate_count: int | None = None
    thinking_config: Any = UNSET
    response_mime_type: Any = UNSET
    response_json_schema: Any = UNSET
    response_schema: Any = UNSET
    response_format: Any = UNSET


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


def _aliases() -> dict[str, str]:
    kinds = list(GoogleWire.__subclasses__())
    names = {name for kind in kinds for name in kind.__struct_encode_fields__ if not name.startswith("~")}
    return {snake_case(name): name for name in names if snake_case(name) != name}


ALIASES = _aliases()
"""Other spelling -> wire name, for every key that we type."""


def restored(value: Any) -> Any:
    """A wire value as it was written, with the extras of every object inside it."""
    if isinstance(value, list):
        return [restored(item) for item in value]
    if not isinstance(value, Wire):
        return value
    entries = {}
    for name, key in zip(value.__struct_fields__, value.__struct_encode_fields__, strict=True):
        held = getattr(value, name)
        if name != "extra" and held is not UNSET:
            entries[key] = restored(held)
    return spliced(Raw(encode_json(entries)), {} if value.extra is UNSET else value.extra)


def keep_whole(extra: Extra, key: str, held: Raw, prefix: str = "") -> None:
    """Keep a value that we typed but leave unread under the key it was written with."""
    renamed = extra.pop(RENAMED + key, None)
    extra[prefix + (key if renamed is None else msgspec.json.decode(renamed))] = held


def says(extra: Extra, key: str) -> bool:
    """Whether `keep_whole` kept this key, in either spelling."""
    spellings = {key, snake_case(key)}
    return any(name.removeprefix(MODELLED) in spellings for name in extra)


def overlaid(wire: Struct, extra: Extra) -> Raw:
    """`spliced`, but what the struct says now wins over a null or an empty list that was there before."""
    said = {
        key
        for name, key in zip(wire.__struct_fields__, wire.__struct_encode_fields__, strict=True)
        if getattr(wire, name) is not UNSET
    }
    repeated = [key for key in extra if key.removeprefix(MODELLED) in said]
    return spliced(wire, {key: held for key, held in extra.items() if key not in repeated} if repeated else extra)
