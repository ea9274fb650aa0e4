"""What an agent does, reported as it happens. Typed, and each event is a line of JSON.

Per turn of the model: `reasoning`, `text` (not of the last answer: that is `final`), `usage`; then for every call
`step_start`, `tool_call`, `tool_result`, `step_complete`. A run ends with exactly one `final`; one that was
cancelled or failed has none, and one that hit a limit or waits for decisions ends with `limit` or `pending` instead.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, TypeAlias

import msgspec
from msgspec import Struct, structs

from dragoman.agent.limits import LimitName
from dragoman.agent.pending import PendingCall
from dragoman.ir import Usage


class BaseEvent(Struct, frozen=True, omit_defaults=True, tag_field="type"):
    """Base of all of them. `type` is the word that tells them apart, in Python, for type checkers and in JSON."""


class TextEvent(BaseEvent, frozen=True, tag="text"):
    """What the model said before it went on."""

    type: ClassVar[Literal["text"]] = "text"
    content: str
    timestamp: float
    """Milliseconds since 1970."""


class ReasoningEvent(BaseEvent, frozen=True, tag="reasoning"):
    type: ClassVar[Literal["reasoning"]] = "reasoning"
    content: str
    timestamp: float


class TextDeltaEvent(BaseEvent, frozen=True, tag="text_delta"):
    """A piece of text while it comes in, where deltas were asked for. `text` or `final` tells the whole again."""

    type: ClassVar[Literal["text_delta"]] = "text_delta"
    content: str


class ReasoningDeltaEvent(BaseEvent, frozen=True, tag="reasoning_delta"):
    type: ClassVar[Literal["reasoning_delta"]] = "reasoning_delta"
    content: str


class StepStartEvent(BaseEvent, frozen=True, tag="step_start"):
    """A call is taken up. `step_id` is the id of the call; numbers run through the whole run, from one."""

    type: ClassVar[Literal["step_start"]] = "step_start"
    step_id: str
    title: str
    step_number: int


class ToolCallEvent(BaseEvent, frozen=True, tag="tool_call"):
    """Arguments that are not a JSON object stand under the one key `raw`, as the model wrote them."""

    type: ClassVar[Literal["tool_call"]] = "tool_call"
    tool: str
    args: dict[str, Any]
    tool_call_id: str
    display_name: str | None = None


class ToolResultEvent(BaseEvent, frozen=True, tag="tool_result"):
    """`result` is text: parts are joined, and an image becomes [image]."""

    type: ClassVar[Literal["tool_result"]] = "tool_result"
    tool: str
    result: str
    tool_call_id: str
    is_error: bool = False
    screenshot_base64: str | None = None
    """The first PNG or JPEG of the result."""


class StepCompleteEvent(BaseEvent, frozen=True, tag="step_complete"):
    type: ClassVar[Literal["step_complete"]] = "step_complete"
    step_id: str
    status: Literal["completed", "error", "pending"]
    duration_ms: float


class HiddenUserMessageEvent(BaseEvent, frozen=True, tag="hidden_user_message"):
    """Said to the model in the user's name: stored and sent, not shown."""

    type: ClassVar[Literal["hidden_user_message"]] = "hidden_user_message"
    content: str


class CompactionStartEvent(BaseEvent, frozen=True, tag="compaction_start"):
    type: ClassVar[Literal["compaction_start"]] = "compaction_start"
    messages: int
    """How long the history is."""
    tokens: int | None = None
    """How full the window is, about; None when compaction was asked for."""


class CompactionCompleteEvent(BaseEvent, frozen=True, tag="compaction_complete"):
    type: ClassVar[Literal["compaction_complete"]] = "compaction_complete"
    compacted: bool
    """False: the history is as it was."""
    messages: int
    reason: str | None = None
    """Why not."""


class RetryEvent(BaseEvent, frozen=True, tag="retry"):
    """The driver asks its provider once more."""

    type: ClassVar[Literal["retry"]] = "retry"
    provider: str
    attempt: int
    """The one that failed, counted from one."""
    delay: float
    """Seconds until the next."""
    reason: str


class UsageEvent(BaseEvent, frozen=True, tag="usage"):
    """Tokens of one call of the model."""

    type: ClassVar[Literal["usage"]] = "usage"
    model: str
    usage: Usage


def usage_event(model: str, usage: Usage) -> UsageEvent:
    """The counts without the wire's own spelling of them."""
    return UsageEvent(model, usage if usage.metadata is None else structs.replace(usage, metadata=None))


class HostedCallEvent(BaseEvent, frozen=True, tag="hosted_call"):
    """The provider ran a tool of its own, such as a search."""

    type: ClassVar[Literal["hosted_call"]] = "hosted_call"
    tool: str
    tool_call_id: str


class PartialOutputEvent(BaseEvent, frozen=True, tag="partial_output"):
    """The typed answer as far as it has come, where partial values were asked for. In JSON it is plain data."""

    type: ClassVar[Literal["partial_output"]] = "partial_output"
    output: Any


class HandOffEvent(BaseEvent, frozen=True, tag="hand_off"):
    """From here on another model answers."""

    type: ClassVar[Literal["hand_off"]] = "hand_off"
    before: str
    after: str
    reason: str = ""


class LimitEvent(BaseEvent, frozen=True, tag="limit"):
    """The run ended because one of its limits is used up."""

    type: ClassVar[Literal["limit"]] = "limit"
    limit: LimitName
    allowed: float
    used: float
    content: str = ""
    """What the model said last."""


class PendingEvent(BaseEvent, frozen=True, tag="pending"):
    """The run ended because calls wait for a decision (`Agent.resume`)."""

    type: ClassVar[Literal["pending"]] = "pending"
    calls: tuple[PendingCall, ...]


class NestedEvent(BaseEvent, frozen=True, tag="nested"):
    """An event of an agent that was called as a tool. `path` are the tools that lead to it, the outermost first."""

    type: ClassVar[Literal["nested"]] = "nested"
    path: tuple[str, ...]
    event: AgentEvent
    calls: tuple[str, ...] = ()
    """The ids of the calls of these tools."""


class FinalEvent(BaseEvent, frozen=True, tag="final"):
    type: ClassVar[Literal["final"]] = "final"
    content: str


AgentEvent: TypeAlias = (
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
    | HostedCallEvent
    | PartialOutputEvent
    | HandOffEvent
    | LimitEvent
    | PendingEvent
    | NestedEvent
    | FinalEvent
)
"""All events. `match event:` and `if event.type == ...` narrow it for type checkers, down to `assert_never`."""
AnyAgentEvent: TypeAlias = AgentEvent
FinalResponseEvent: TypeAlias = FinalEvent
"""Its name in the specification of the agent SDK."""


def _as_json(value: Any) -> Any:
    """A value of an output type that msgspec does not know: a model of pydantic, or what it says of itself."""
    return value.model_dump(mode="json") if hasattr(value, "model_dump") else repr(value)


encode_event = msgspec.json.Encoder(decimal_format="number", enc_hook=_as_json).encode
"""One event as JSON, without line breaks."""
decode_event = msgspec.json.Decoder(AnyAgentEvent).decode
