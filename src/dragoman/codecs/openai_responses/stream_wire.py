"""Events of a Responses stream. Unknown keys are skipped: these objects are read but never written."""

from __future__ import annotations

from typing import Any, ClassVar, TypeAlias

from msgspec import UNSET, Raw, Struct, UnsetType, field


class TextDelta(Struct, gc=False, tag="response.output_text.delta"):
    output_index: int
    delta: str | None = None
    place: int = field(default=0, name="content_index")
    logprobs: Any = None


class RefusalDelta(Struct, gc=False, tag="response.refusal.delta"):
    logprobs: ClassVar[Any] = None
    output_index: int
    delta: str | None = None
    place: int = field(default=0, name="content_index")


class SummaryDelta(Struct, gc=False, tag="response.reasoning_summary_text.delta"):
    logprobs: ClassVar[Any] = None
    output_index: int
    delta: str | None = None
    place: int = field(default=0, name="summary_index")


class ReasoningDelta(Struct, gc=False, tag="response.reasoning_text.delta"):
    logprobs: ClassVar[Any] = None
    output_index: int
    delta: str | None = None
    place: int = field(default=0, name="content_index")


class ArgumentsDelta(Struct, gc=False, tag="response.function_call_arguments.delta"):
    logprobs: ClassVar[Any] = None
    place: ClassVar[int] = 0
    output_index: int
    delta: str | None = None


class InputDelta(Struct, gc=False, tag="response.custom_tool_call_input.delta"):
    logprobs: ClassVar[Any] = None
    place: ClassVar[int] = 0
    output_index: int
    delta: str | None = None


Delta: TypeAlias = TextDelta | RefusalDelta | SummaryDelta | ReasoningDelta | ArgumentsDelta | InputDelta
DELTA_KINDS = (TextDelta, RefusalDelta, SummaryDelta, ReasoningDelta, ArgumentsDelta, InputDelta)


class Opening(Struct, gc=False):
    """The first event's fields that describe the whole answer."""

    id: str | None = None
    model: str | None = None
    created_at: float | None = None


class Created(Struct, gc=False, tag="response.created"):
    response: Opening | UnsetType = UNSET


class Completed(Struct, gc=False, tag="response.completed"):
    response: Raw


class Incomplete(Struct, gc=False, tag="response.incomplete"):
    response: Raw


class ItemAdded(Struct, gc=False, tag="response.output_item.added"):
    output_index: int
    item: Raw


class ItemDone(Struct, gc=False, tag="response.output_item.done"):
    output_index: int
    item: Raw


class PartHead(Struct, gc=False):
    """The field that gives the kind of a content part."""

    type: str | None = None


class PartAdded(Struct, gc=False, tag="response.content_part.added"):
    output_index: int
    part: PartHead
    content_index: int = 0


class ArgumentsDone(Struct, gc=False, tag="response.function_call_arguments.done"):
    output_index: int
    arguments: str


class InProgress(Struct, gc=False, tag="response.in_progress"):
    """Adds nothing, like those below: the item repeats it when it is done."""


class TextDone(Struct, gc=False, tag="response.output_text.done"):
    pass


class PartDone(Struct, gc=False, tag="response.content_part.done"):
    pass


class SummaryPartAdded(Struct, gc=False, tag="response.reasoning_summary_part.added"):
    pass


class SummaryTextDone(Struct, gc=False, tag="response.reasoning_summary_text.done"):
    pass


class SummaryPartDone(Struct, gc=False, tag="response.reasoning_summary_part.done"):
    pass


WireEvent: TypeAlias = (
    Delta
    | Created
    | Completed
    | Incomplete
    | ItemAdded
    | ItemDone
    | PartAdded
    | ArgumentsDone
    | InProgress
    | TextDone
    | PartDone
    | SummaryPartAdded
    | SummaryTextDone
    | SummaryPartDone
)
"""The events of nearly every stream. An event that does not fit its type is read as `OtherEvent`."""
SILENT = frozenset({InProgress, TextDone, PartDone, SummaryPartAdded, SummaryTextDone, SummaryPartDone})


class OtherEvent(Struct, gc=False):
    """Any other event, and one that does not fit its type."""

    type: str | None = None
    output_index: int | None = None
    content_index: int | None = None
    summary_index: int | None = None
    item: Raw | UnsetType = UNSET
    part: Raw | UnsetType = UNSET
    response: Raw | UnsetType = UNSET
    annotation: Raw | UnsetType = UNSET
    arguments: Raw | UnsetType = UNSET
    input: Raw | UnsetType = UNSET
    delta: Raw | UnsetType = UNSET
    text: Raw | UnsetType = UNSET
    refusal: Raw | UnsetType = UNSET
    name: str | None = None
    error: Raw | UnsetType = UNSET
