"""A program that shows what an agent does: every event distinguished by its `type`, with `if` and with `match`."""

from collections.abc import Iterator
from typing import assert_never

from dragoman import Agent, tool
from dragoman.agent import (
    AgentEvent,
    CompactionCompleteEvent,
    CompactionStartEvent,
    FinalEvent,
    HandOffEvent,
    HiddenUserMessageEvent,
    HostedCallEvent,
    LimitEvent,
    NestedEvent,
    PartialOutputEvent,
    PendingEvent,
    ReasoningDeltaEvent,
    ReasoningEvent,
    RetryEvent,
    StepCompleteEvent,
    StepStartEvent,
    TextDeltaEvent,
    TextEvent,
    ToolCallEvent,
    ToolResultEvent,
    UsageEvent,
)
from dragoman.drivers import ScriptedDriver


def by_type(event: AgentEvent) -> str:  # noqa: C901, PLR0911, PLR0912 - one branch per event
    if event.type == "text" or event.type == "reasoning":  # noqa: PLR1714 - both checkers narrow by `==`
        return f"{event.content} at {event.timestamp}"
    if event.type == "text_delta":
        return event.content
    if event.type == "reasoning_delta":
        return event.content
    if event.type == "step_start":
        return f"{event.step_number}. {event.title} ({event.step_id})"
    if event.type == "tool_call":
        return f"{event.display_name or event.tool} {sorted(event.args)} {event.tool_call_id}"
    if event.type == "tool_result":
        return f"{event.tool}: {event.result}" + (" (error)" if event.is_error else "")
    if event.type == "step_complete":
        return f"{event.step_id} {event.status} in {event.duration_ms:.0f} ms"
    if event.type == "hidden_user_message":
        return event.content
    if event.type == "compaction_start":
        return f"{event.messages} messages"
    if event.type == "compaction_complete":
        return f"{event.compacted} {event.reason}"
    if event.type == "retry":
        return f"{event.provider} {event.attempt} {event.delay}"
    if event.type == "usage":
        return f"{event.model} {event.usage.output}"
    if event.type == "hosted_call":
        return f"{event.tool} {event.tool_call_id}"
    if event.type == "partial_output":
        return str(event.output)
    if event.type == "hand_off":
        return f"{event.before} {event.after} {event.reason}"
    if event.type == "limit":
        return f"{event.limit} {event.used} of {event.allowed}"
    if event.type == "pending":
        return " ".join(call.call_id for call in event.calls)
    if event.type == "nested":
        return f"{event.path} {by_type(event.event)}"
    if event.type == "final":
        return event.content
    assert_never(event)


def by_match(event: AgentEvent) -> str:  # noqa: PLR0911 - one branch per event
    match event:
        case TextEvent() | ReasoningEvent() | TextDeltaEvent() | ReasoningDeltaEvent() | HiddenUserMessageEvent():
            return event.content
        case StepStartEvent() | StepCompleteEvent():
            return event.step_id
        case ToolCallEvent() | ToolResultEvent():
            return event.tool
        case CompactionStartEvent() | CompactionCompleteEvent():
            return str(event.messages)
        case RetryEvent():
            return event.reason
        case UsageEvent():
            return event.model
        case HostedCallEvent():
            return event.tool
        case PartialOutputEvent() | HandOffEvent() | LimitEvent() | PendingEvent():
            return event.type
        case NestedEvent(event=inner):
            return by_match(inner)
        case FinalEvent(content=content):
            return content
        case _:
            assert_never(event)


@tool(display_name="Weather")
def get_weather(city: str) -> str:
    """The weather of a city."""
    return f"18 degrees in {city}"


def show() -> Iterator[str]:
    script = ScriptedDriver(
        [
            {"type": "text", "content": "One moment."},
            {"type": "tool_call", "content": {"name": "get_weather", "arguments": {"city": "Tokyo"}}},
        ]
    )
    agent = Agent(script, tools=[get_weather], max_iterations=1)
    for event in agent.run_stream_sync("Weather in Tokyo?"):
        yield f"{event.type}: {by_type(event)} / {by_match(event)}"


LINES = list(show())
