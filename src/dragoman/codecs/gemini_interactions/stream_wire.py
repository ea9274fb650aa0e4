"""Events of an Interactions stream. Unknown keys are skipped: nothing here is written back."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import UNSET, Raw, Struct, UnsetType


class TextDelta(Struct, gc=False, tag="text"):
    text: str


class ArgumentsDelta(Struct, gc=False, tag="arguments_delta"):
    """A fragment of the JSON text of arguments, which are an object in a whole step."""

    arguments: str

    @property
    def text(self) -> str:
        return self.arguments


class SummaryContent(Struct, gc=False):
    text: str


class SummaryDelta(Struct, gc=False, tag="thought_summary"):
    content: SummaryContent

    @property
    def text(self) -> str:
        return self.content.text


class SignatureDelta(Struct, gc=False, tag="thought_signature"):
    signature: str


class AnnotationDelta(Struct, gc=False, tag="text_annotation_delta"):
    annotations: list[Raw]


class StepDelta(Struct, gc=False, tag="step.delta", tag_field="event_type"):
    index: int
    delta: TextDelta | ArgumentsDelta | SummaryDelta | SignatureDelta | AnnotationDelta


class StepStart(Struct, gc=False, tag="step.start", tag_field="event_type"):
    index: int
    step: Raw


class StepStop(Struct, gc=False, tag="step.stop", tag_field="event_type"):
    index: int


class Created(Struct, gc=False, tag="interaction.created", tag_field="event_type"):
    interaction: Raw


class StatusUpdate(Struct, gc=False, tag="interaction.status_update", tag_field="event_type"):
    status: str | None = None
    usage: Raw | UnsetType = UNSET
    continuation_token: Raw | UnsetType = UNSET


class Completed(Struct, gc=False, tag="interaction.completed", tag_field="event_type"):
    """The end of every complete answer, whatever its status."""

    interaction: Raw


class ErrorEvent(Struct, gc=False, tag="error", tag_field="event_type"):
    error: Raw | UnsetType = UNSET


WireEvent: TypeAlias = StepDelta | StepStart | StepStop | Created | StatusUpdate | Completed | ErrorEvent


class LooseEvent(Struct, gc=False):
    """An event of another type, or with a delta of another type."""

    event_type: str | None = None
    index: int | None = None
    delta: dict[str, Raw] | None = None
    status: str | None = None
    interaction: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


class Opening(Struct, gc=False):
    """The interaction as it appears in an event."""

    id: str | None = None
    model: str | None = None
    status: str | None = None
    created: Raw | UnsetType = UNSET
    usage: Raw | UnsetType = UNSET
    steps: list[Raw] | None = None


class StepSeed(Struct, gc=False):
    """The fields of a starting step: usually its type, sometimes the first of its content."""

    type: str = ""
    content: list[Raw] | str | None = None
    summary: list[Raw] | None = None
    signature: str | None = None
    arguments: Raw | UnsetType = UNSET
