"""Events of an Interactions stream. Unknown keys are forbidden, and kept with the answer (codecs/unknown_keys.py)."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import UNSET, Raw, Struct, UnsetType, field


class TextDelta(Struct, gc=False, tag="text", forbid_unknown_fields=True):
    text: str


class ArgumentsDelta(Struct, gc=False, tag="arguments_delta", forbid_unknown_fields=True):
    """A fragment of the JSON text of arguments, which are an object in a whole step."""

    text: str = field(name="arguments")


class SummaryContent(Struct, gc=False, forbid_unknown_fields=True):
    text: str
    type: Raw | UnsetType = UNSET


class SummaryDelta(Struct, gc=False, tag="thought_summary", forbid_unknown_fields=True):
    content: SummaryContent

    @property
    def text(self) -> str:
        return self.content.text


class SignatureDelta(Struct, gc=False, tag="thought_signature", forbid_unknown_fields=True):
    signature: str


class AnnotationDelta(Struct, gc=False, tag="text_annotation_delta", forbid_unknown_fields=True):
    annotations: list[Raw]


class Event(Struct, gc=False, kw_only=True, tag_field="event_type", forbid_unknown_fields=True):
    event_id: Raw | UnsetType = UNSET


class StepDelta(Event, gc=False, tag="step.delta"):
    index: int
    delta: TextDelta | ArgumentsDelta | SummaryDelta | SignatureDelta | AnnotationDelta


class StepStart(Event, gc=False, tag="step.start"):
    index: int
    step: Raw


class StepStop(Event, gc=False, tag="step.stop"):
    index: int


class Created(Event, gc=False, tag="interaction.created"):
    interaction: Raw


class StatusUpdate(Event, gc=False, tag="interaction.status_update"):
    status: str | None = None
    interaction_id: Raw | UnsetType = UNSET
    usage: Raw | UnsetType = UNSET
    continuation_token: Raw | UnsetType = UNSET


class Completed(Event, gc=False, tag="interaction.completed"):
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
