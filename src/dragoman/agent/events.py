"""What an agent does, reported as it happens: typed events, each of which can be written as a line of JSON.

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
    """Base of all events. `type` distinguishes them, in Python, for type checkers and in JSON."""


class TextEvent(BaseEvent, frozen=True, tag="text"):
    """Text that the model wrote before it continued, that is, not its last answer."""

    type: ClassVar[Literal["text"]] = "text"
    content: str
    timestamp: float
    """Milliseconds since 1970."""


class ReasoningEvent(BaseEvent, frozen=True, tag="reasoning"):
    type: ClassVar[Literal["reasoning"]] = "reasoning"
    content: str
    timestamp: float


class TextDeltaEvent(BaseEvent, frozen=True, tag="text_delta"):
    """A piece of text as it arrives, if deltas were requested. `text` or `final` has the whole text."""

    type: ClassVar[Literal["text_delta"]] = "text_delta"
    content: str


class ReasoningDeltaEvent(BaseEvent, frozen=True, tag="reasoning_delta"):
    type: ClassVar[Literal["reasoning_delta"]] = "reasoning_delta"
    content: str


class StepStartEvent(BaseEvent, frozen=True, tag="step_start"):
    """A call starts. `step_id` is the id of the call; steps are numbered from one through the whole run."""

    type: ClassVar[Literal["step_start"]] = "step_start"
    step_id: str
    title: str
    step_number: int


class ToolCallEvent(BaseEvent, frozen=True, tag="tool_call"):
    """A call. Arguments that are not a JSON object are under the single key `raw`, as the model wrote them."""

    type: ClassVar[Literal["tool_call"]] = "tool_call"
    tool: str
    args: dict[str, Any]
    tool_call_id: str
    display_name: str | None = None


class ToolResultEvent(BaseEvent, frozen=True, tag="tool_result"):
    """A result. `result` is text: parts are joined, and an image becomes [image]."""

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
    """A message that was sent to the model as the user's: stored and sent, not shown."""

    type: ClassVar[Literal["hidden_user_message"]] = "hidden_user_message"
    content: str


class CompactionStartEvent(BaseEvent, frozen=True, tag="compaction_start"):
    type: ClassVar[Literal["compaction_start"]] = "compaction_start"
    messages: int
    """Length of the history."""
    tokens: int | None = None
    """Approximate number of tokens in the window; None if compaction was requested."""


class CompactionCompleteEvent(BaseEvent, frozen=True, tag="compaction_complete"):
    type: ClassVar[Literal["compaction_complete"]] = "compaction_complete"
    compacted: bool
    """False: the history is unchanged."""
    messages: int
    reason: str | None = None
    """Why it was not compacted."""


class RetryEvent(BaseEvent, frozen=True, tag="retry"):
    """The driver retries a request to its provider."""

    type: ClassVar[Literal["retry"]] = "retry"
    provider: str
    attempt: int
    """The failed attempt, counted from one."""
    delay: float
    """Seconds until the next attempt."""
    reason: str


class UsageEvent(BaseEvent, frozen=True, tag="usage"):
    """Tokens of one request to the model."""

    type: ClassVar[Literal["usage"]] = "usage"
    model: str
    usage: Usage


def usage_event(model: str, usage: Usage) -> UsageEvent:
    """Return the event with the counts, without the provider's own spelling of them."""
    return UsageEvent(model, usage if usage.metadata is None else structs.replace(usage, metadata=None))


class HostedCallEvent(BaseEvent, frozen=True, tag="hosted_call"):
    """The provider ran one of its own tools, such as a search."""

    type: ClassVar[Literal["hosted_call"]] = "hosted_call"
    tool: str
    tool_call_id: str


class PartialOutputEvent(BaseEvent, frozen=True, tag="partial_output"):
    """The typed answer so far, if partial values were requested. In JSON it is plain data."""

    type: ClassVar[Literal["partial_output"]] = "partial_output"
    output: Any


class HandOffEvent(BaseEvent, frozen=True, tag="hand_off"):
    """Another model answers from here on."""

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
    """The last text of the model."""


class PendingEvent(BaseEvent, frozen=True, tag="pending"):
    """The run ended because calls wait for a decision (`Agent.resume`)."""

    type: ClassVar[Literal["pending"]] = "pending"
    calls: tuple[PendingCall, ...]


class NestedEvent(BaseEvent, frozen=True, tag="nested"):
    """An event of an agent that was called as a tool. `path` names the tools that lead to it, outermost first."""

    type: ClassVar[Literal["nested"]] = "nested"
    path: tuple[str, ...]
    event: AgentEvent
    calls: tuple[str, ...] = ()
    """The ids of the calls of the tools in `path`."""


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
"""The name of `FinalEvent` in the specification of the agent SDK."""


def _as_json(value: Any) -> Any:
    """Convert a value that msgspec does not support: a pydantic model to its data, anything else to its repr."""
    return value.model_dump(mode="json") if hasattr(value, "model_dump") else repr(value)


encode_event = msgspec.json.Encoder(decimal_format="number", enc_hook=_as_json).encode
"""Returns one event as JSON, without line breaks."""
decode_event = msgspec.json.Decoder(AnyAgentEvent).decode
