"""The public Open Responses schema as a judge: which members a response, its items and its events must have.

Facts of the specification (openresponses.org, 2026-04-24), written down as types: what is required has no default.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Struct, UnsetType


class Usage(Struct):
    class Input(Struct):
        cached_tokens: int

    class Output(Struct):
        reasoning_tokens: int

    input_tokens: int
    output_tokens: int
    total_tokens: int
    input_tokens_details: Input
    output_tokens_details: Output


class OutputText(Struct, tag="output_text", tag_field="type"):
    text: str
    annotations: list[dict[str, Any]]
    logprobs: list[Any] | UnsetType = UNSET


class InputText(Struct, tag="input_text", tag_field="type"):
    text: str


class InputImage(Struct, tag="input_image", tag_field="type"):
    image_url: str | None
    detail: str


class Refusal(Struct, tag="refusal", tag_field="type"):
    refusal: str


class SummaryText(Struct, tag="summary_text", tag_field="type"):
    text: str


class ReasoningText(Struct, tag="reasoning_text", tag_field="type"):
    text: str


Content: TypeAlias = OutputText | InputText | InputImage | Refusal | SummaryText | ReasoningText
Status: TypeAlias = Literal["in_progress", "completed", "incomplete"]


class Message(Struct, tag="message", tag_field="type"):
    id: str
    status: Status
    role: Literal["user", "assistant", "system", "developer", "unknown", "tool"]
    content: list[Content]


class FunctionCall(Struct, tag="function_call", tag_field="type"):
    id: str
    call_id: str
    name: str
    arguments: str
    status: Status


class Reasoning(Struct, tag="reasoning", tag_field="type"):
    id: str
    summary: list[Content]
    content: list[Content] | UnsetType = UNSET
    encrypted_content: str | UnsetType = UNSET


class Compaction(Struct, tag="compaction", tag_field="type"):
    id: str
    encrypted_content: str


Item: TypeAlias = Message | FunctionCall | Reasoning | Compaction


class FunctionTool(Struct, tag="function", tag_field="type"):
    name: str
    description: str | None
    parameters: dict[str, Any] | None
    strict: bool | None


class JsonSchema(Struct, tag="json_schema", tag_field="type"):
    name: str
    description: str | None
    schema: dict[str, Any] | None
    strict: bool


class PlainText(Struct, tag="text", tag_field="type"):
    pass


class JsonObject(Struct, tag="json_object", tag_field="type"):
    pass


class TextField(Struct):
    format: PlainText | JsonObject | JsonSchema
    verbosity: Literal["low", "medium", "high"] | UnsetType = UNSET


class ReasoningField(Struct):
    effort: str | None
    summary: str | None


class Problem(Struct):
    code: str
    message: str


class Incomplete(Struct):
    reason: str


class Resource(Struct):
    id: str
    object: Literal["response"]
    created_at: int
    completed_at: int | None
    status: str
    incomplete_details: Incomplete | None
    model: str
    previous_response_id: str | None
    instructions: str | None
    output: list[Item]
    error: Problem | None
    tools: list[FunctionTool]
    tool_choice: str | dict[str, Any]
    truncation: Literal["auto", "disabled"]
    parallel_tool_calls: bool
    text: TextField
    top_p: float
    presence_penalty: float
    frequency_penalty: float
    top_logprobs: int
    temperature: float
    reasoning: ReasoningField | None
    user: str | None
    usage: Usage | None
    max_output_tokens: int | None
    max_tool_calls: int | None
    store: bool
    background: bool
    service_tier: str
    metadata: dict[str, str]
    safety_identifier: str | None
    prompt_cache_key: str | None


class Compacted(Struct):
    id: str
    object: Literal["response.compaction"]
    output: list[Item]
    created_at: int
    usage: Usage


class _Event(Struct, tag_field="type"):
    sequence_number: int


def _whole(name: str) -> type[Struct]:
    return msgspec.defstruct(name, [("response", Resource)], bases=(_Event,), tag=name)


def _of_item(name: str, *more: tuple[str, Any]) -> type[Struct]:
    fields = [("item_id", str), ("output_index", int), *more]
    return msgspec.defstruct(name, fields, bases=(_Event,), tag=name)


class _Failure(Struct):
    type: str
    code: str | None
    message: str
    param: str | None


_PLACE = ("content_index", int)
_SECTION = ("summary_index", int)
_EVENTS = (
    *(_whole(f"response.{status}") for status in ("created", "queued", "in_progress", "completed", "failed")),
    _whole("response.incomplete"),
    *(
        msgspec.defstruct(name, [("output_index", int), ("item", Item)], bases=(_Event,), tag=name)
        for name in ("response.output_item.added", "response.output_item.done")
    ),
    *(_of_item(f"response.content_part.{step}", _PLACE, ("part", Content)) for step in ("added", "done")),
    _of_item("response.output_text.delta", _PLACE, ("delta", str)),
    _of_item("response.output_text.done", _PLACE, ("text", str)),
    _of_item("response.refusal.delta", _PLACE, ("delta", str)),
    _of_item("response.refusal.done", _PLACE, ("refusal", str)),
    _of_item("response.function_call_arguments.delta", ("delta", str)),
    _of_item("response.function_call_arguments.done", ("arguments", str)),
    *(_of_item(f"response.reasoning_summary_part.{step}", _SECTION, ("part", Content)) for step in ("added", "done")),
    _of_item("response.reasoning_summary_text.delta", _SECTION, ("delta", str)),
    _of_item("response.reasoning_summary_text.done", _SECTION, ("text", str)),
    msgspec.defstruct("error", [("error", _Failure)], bases=(_Event,), tag="error"),
)


def check_response(value: Any) -> Resource:
    """Raises `msgspec.ValidationError` with the path of what is missing or of another type."""
    return msgspec.convert(value, Resource)


def check_compacted(value: Any) -> Compacted:
    return msgspec.convert(value, Compacted)


_by_name = {kind.__struct_config__.tag: kind for kind in _EVENTS}


def check_event(value: dict[str, Any]) -> None:
    msgspec.convert(value, _by_name[value["type"]])
