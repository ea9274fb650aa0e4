"""Agents under test: with a fixed clock, and with events as JSON that is easy to compare."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from typing import Any, TypeVar

import msgspec

from dragoman.agent import Agent, AnyAgentEvent, Clock
from dragoman.drivers import ScriptedDriver
from dragoman.drivers.scripted import Line
from dragoman.ir import Message, Request
from tests.support.waiting import PATIENCE

T = TypeVar("T")
Story = list[dict[str, Any]]
CLOCK = Clock(lambda: 1.0, lambda: 2.0)


def agent_of(script: Iterable[Line] | Callable[[Request], Any], **options: Any) -> Agent:
    return Agent(ScriptedDriver(script), **{"clock": CLOCK, **options})


def driver_of(agent: Agent) -> ScriptedDriver:
    driver = agent.driver
    assert isinstance(driver, ScriptedDriver)
    return driver


async def story_of(events: AsyncIterator[AnyAgentEvent]) -> Story:
    """The events as JSON."""
    return [plain(event) async for event in events]


def plain(event: AnyAgentEvent) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(event)
    return fields


def run(work: Coroutine[Any, Any, T]) -> T:
    async def limited() -> T:
        async with asyncio.timeout(PATIENCE):
            return await work

    return asyncio.run(limited())


def run_events(agent: Agent, opening: Any = "Go") -> Story:
    return run(story_of(agent.run_stream(opening)))


def types(story: Story) -> list[str]:
    return [event["type"] for event in story]


def step(number: int, call_id: str, tool: str, arguments: dict[str, Any]) -> Story:
    """The events that begin a step."""
    return [
        {"type": "step_start", "step_id": call_id, "title": tool, "step_number": number},
        {"type": "tool_call", "tool": tool, "args": arguments, "tool_call_id": call_id},
    ]


def result(call_id: str, tool: str, text: str, *, error: bool = False) -> Story:
    """The events that end a step."""
    event: dict[str, Any] = {"type": "tool_result", "tool": tool, "result": text, "tool_call_id": call_id}
    status = "error" if error else "completed"
    return [
        {**event, "is_error": True} if error else event,
        {"type": "step_complete", "step_id": call_id, "status": status, "duration_ms": 0.0},
    ]


def final(content: str) -> Story:
    return [{"type": "final", "content": content}]


def text(content: str) -> Story:
    return [{"type": "text", "content": content, "timestamp": 1000.0}]


def results_in(messages: Iterable[Message]) -> list[tuple[str, str, Any]]:
    """All results of a history: id, kind, value."""
    return [
        (one.tool_call_id, one.kind, one.value if not one.parts else one.parts)
        for message in messages
        for one in message.tool_results
    ]
