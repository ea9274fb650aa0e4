"""What an agent does, told as it happens. Typed, and each one is a line of JSON.

Per turn of the model: `reasoning`, `text` (not of the last answer: that is `final`), `usage`; then for every call
`step_start`, `tool_call`, `tool_result`, `step_complete`. A run ends with exactly one `final`; one that was
cancelled or failed has none.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct, structs

from dragoman.ir import Usage


class AgentEvent(Struct, frozen=True, omit_defaults=True, tag_field="type"):
    """Base of all of them."""

    @property
    def type(self) -> str:
        """The word that tells them apart, as in JSON."""
        return str(self.__struct_config__.tag)


class TextEvent(AgentEvent, frozen=True, tag="text"):
    """What the model said before it went on."""

    content: str
    timestamp: float
    """Milliseconds since 1970."""


class ReasoningEvent(AgentEvent, frozen=True, tag="reasoning"):
    content: str
    timestamp: float


class TextDeltaEvent(AgentEvent, frozen=True, tag="text_delta"):
    """A piece of text while it comes in, where deltas were asked for. `text` or `final` tells the whole again."""

    content: str


class ReasoningDeltaEvent(AgentEvent, frozen=True, tag="reasoning_delta"):
    content: str


class StepStartEvent(AgentEvent, frozen=True, tag="step_start"):
    """A call is taken up. `step_id` is the id of the call; numbers run through the whole run, from one."""

    step_id: str
    title: str
    step_number: int


class ToolCallEvent(AgentEvent, frozen=True, tag="tool_call"):
    """Arguments that are not a JSON object stand under the one key `raw`, as the model wrote them."""

    tool: str
    args: dict[str, Any]
    tool_call_id: str
    display_name: str | None = None


class ToolResultEvent(AgentEvent, frozen=True, tag="tool_result"):
    """`result` is text: parts are joined, and an image is told as [image]."""

    tool: str
    result: str
    tool_call_id: str
    is_error: bool = False
    screenshot_base64: str | None = None
    """The first PNG or JPEG of the result."""


class StepCompleteEvent(AgentEvent, frozen=True, tag="step_complete"):
    step_id: str
    status: Literal["completed", "error"]
    duration_ms: float


class HiddenUserMessageEvent(AgentEvent, frozen=True, tag="hidden_user_message"):
    """Said to the model in the user's name: stored and sent, not shown."""

    content: str


class CompactionStartEvent(AgentEvent, frozen=True, tag="compaction_start"):
    messages: int
    """How long the history is."""
    tokens: int | None = None
    """How full the window is, about; None when compaction was asked for."""


class CompactionCompleteEvent(AgentEvent, frozen=True, tag="compaction_complete"):
    compacted: bool
    """False: the history is as it was."""
    messages: int
    reason: str | None = None
    """Why not."""


class RetryEvent(AgentEvent, frozen=True, tag="retry"):
    """The driver asks its provider once more."""

    provider: str
    attempt: int
    """The one that failed, counted from one."""
    delay: float
    """Seconds until the next."""
    reason: str


class UsageEvent(AgentEvent, frozen=True, tag="usage"):
    """Tokens of one call of the model."""

    model: str
    usage: Usage


def usage_event(model: str, usage: Usage) -> UsageEvent:
    """How the wire spelled the counts is nobody's business here."""
    return UsageEvent(model, usage if usage.metadata is None else structs.replace(usage, metadata=None))


class FinalEvent(AgentEvent, frozen=True, tag="final"):
    content: str


AnyAgentEvent: TypeAlias = (
    TextEvent
    | ReasoningEvent
    | TextDeltaEvent
    | ReasoningDeltaEvent
    | StepStartEvent
    | ToolCallEvent
    | ToolResultEvent
    | StepCompleteEvent
    | HiddenUserMessageEvent
    | CompactionStartEvent
    | CompactionCompleteEvent
    | RetryEvent
    | UsageEvent
    | FinalEvent
)

encode_event = msgspec.json.Encoder(decimal_format="number").encode
"""One event as JSON, without line breaks."""
decode_event = msgspec.json.Decoder(AnyAgentEvent).decode
