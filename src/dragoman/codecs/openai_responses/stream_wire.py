"""Events of a Responses stream. Unknown keys are forbidden, and kept with the answer (codecs/unknown_keys.py).

Members that the decoder does not read are documented: they number the events, pad them, or repeat what other events
say.
"""

from __future__ import annotations

from typing import Any, ClassVar, TypeAlias

from msgspec import UNSET, Raw, Struct, UnsetType, field


class Event(Struct, gc=False, forbid_unknown_fields=True, kw_only=True):
    sequence_number: Raw | UnsetType = UNSET


class ItemEvent(Event, gc=False, kw_only=True):
    output_index: int
    item_id: Raw | UnsetType = UNSET
    obfuscation: Raw | UnsetType = UNSET


class TextDelta(ItemEvent, gc=False, kw_only=True, tag="response.output_text.delta"):
    delta: str | None = None
    place: int = field(default=0, name="content_index")
    logprobs: Any = None


class RefusalDelta(ItemEvent, gc=False, kw_only=True, tag="response.refusal.delta"):
    logprobs: ClassVar[Any] = None
    delta: str | None = None
    place: int = field(default=0, name="content_index")


class SummaryDelta(ItemEvent, gc=False, kw_only=True, tag="response.reasoning_summary_text.delta"):
    logprobs: ClassVar[Any] = None
    delta: str | None = None
    place: int = field(default=0, name="summary_index")


class ReasoningDelta(ItemEvent, gc=False, kw_only=True, tag="response.reasoning_text.delta"):
    logprobs: ClassVar[Any] = None
    delta: str | None = None
    place: int = field(default=0, name="content_index")


class ArgumentsDelta(ItemEvent, gc=False, kw_only=True, tag="response.function_call_arguments.delta"):
    logprobs: ClassVar[Any] = None
    place: ClassVar[int] = 0
    delta: str | None = None


class InputDelta(ItemEvent, gc=False, kw_only=True, tag="response.custom_tool_call_input.delta"):
    logprobs: ClassVar[Any] = None
    place: ClassVar[int] = 0
    delta: str | None = None


Delta: TypeAlias = TextDelta | RefusalDelta | SummaryDelta | ReasoningDelta | ArgumentsDelta | InputDelta
DELTA_KINDS = (TextDelta, RefusalDelta, SummaryDelta, ReasoningDelta, ArgumentsDelta, InputDelta)


class Created(Event, gc=False, kw_only=True, tag="response.created"):
    response: Raw | UnsetType = UNSET


class InProgress(Event, gc=False, kw_only=True, tag="response.in_progress"):
    response: Raw | UnsetType = UNSET


class Completed(Event, gc=False, kw_only=True, tag="response.completed"):
    response: Raw


class Incomplete(Event, gc=False, kw_only=True, tag="response.incomplete"):
    response: Raw


class ItemAdded(Event, gc=False, kw_only=True, tag="response.output_item.added"):
    output_index: int
    item: Raw


class ItemDone(Event, gc=False, kw_only=True, tag="response.output_item.done"):
    output_index: int
    item: Raw


class PartHead(Struct, gc=False, forbid_unknown_fields=True):
    """A content part; its type gives its kind, and the item repeats the rest when it is done."""

    type: str | None = None
    text: Raw | UnsetType = UNSET
    refusal: Raw | UnsetType = UNSET
    annotations: Raw | UnsetType = UNSET
    logprobs: Raw | UnsetType = UNSET


class PartAdded(ItemEvent, gc=False, kw_only=True, tag="response.content_part.added"):
    part: PartHead
    content_index: int = 0


class ArgumentsDone(ItemEvent, gc=False, kw_only=True, tag="response.function_call_arguments.done"):
    arguments: str
    name: Raw | UnsetType = UNSET


class TextDone(ItemEvent, gc=False, kw_only=True, tag="response.output_text.done"):
    """Counts only if the item is never done, because then the item repeats it."""

    content_index: int = 0
    text: Raw | UnsetType = UNSET
    logprobs: Raw | UnsetType = UNSET


class PartDone(ItemEvent, gc=False, kw_only=True, tag="response.content_part.done"):
    """Adds nothing, like those below: the item repeats it when it is done."""

    content_index: Raw | UnsetType = UNSET
    part: PartHead | UnsetType = UNSET


class SummaryPartAdded(ItemEvent, gc=False, kw_only=True, tag="response.reasoning_summary_part.added"):
    summary_index: Raw | UnsetType = UNSET
    part: PartHead | UnsetType = UNSET


class SummaryTextDone(ItemEvent, gc=False, kw_only=True, tag="response.reasoning_summary_text.done"):
    summary_index: Raw | UnsetType = UNSET
    text: Raw | UnsetType = UNSET


class SummaryPartDone(ItemEvent, gc=False, kw_only=True, tag="response.reasoning_summary_part.done"):
    summary_index: Raw | UnsetType = UNSET
    part: PartHead | UnsetType = UNSET


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
SILENT: tuple[type[Any], ...] = (PartDone, SummaryPartAdded, SummaryTextDone, SummaryPartDone)


class OtherEvent(Event, gc=False, kw_only=True):
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
    error: Raw | UnsetType = UNSET
    # Members of events that add nothing: the item repeats them when it is done.
    item_id: Raw | UnsetType = UNSET
    obfuscation: Raw | UnsetType = UNSET
    text: Raw | UnsetType = UNSET
    refusal: Raw | UnsetType = UNSET
    name: Raw | UnsetType = UNSET
    logprobs: Raw | UnsetType = UNSET
    annotation_index: Raw | UnsetType = UNSET
    code: Raw | UnsetType = UNSET
    diff: Raw | UnsetType = UNSET
    command: Raw | UnsetType = UNSET
    command_index: Raw | UnsetType = UNSET
    output: Raw | UnsetType = UNSET
    # A picture that is not finished.
    partial_image_b64: Raw | UnsetType = UNSET
    partial_image_index: Raw | UnsetType = UNSET
    size: Raw | UnsetType = UNSET
    quality: Raw | UnsetType = UNSET
    background: Raw | UnsetType = UNSET
    output_format: Raw | UnsetType = UNSET
    # An error that is not nested.
    message: Raw | UnsetType = UNSET
    param: Raw | UnsetType = UNSET
