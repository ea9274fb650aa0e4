"""Cancelling at every point of a run, and retries of the driver."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Unpack

import pytest

from dragoman.agent import Agent, AnyAgentEvent, ToolCallEvent, tool
from dragoman.agent.history_repair import is_whole
from dragoman.agent.result_text import CANCELLED, NOT_RUN
from dragoman.drivers import QueryResult, Scripted, ScriptedDriver, Settings
from dragoman.drivers.retries import RetryNotice, announce
from dragoman.errors import Overloaded
from dragoman.ir import Failure
from tests.support.agents import (
    Story,
    agent_of,
    driver_of,
    final,
    plain,
    result,
    results_in,
    run,
    run_events,
    step,
    story_of,
    types,
)
from tests.support.promises import promise
from tests.support.waiting import until

SLEEP: tuple[str, dict[str, Any]] = ("sleep", {})
ADD = ("add", {"a": 1})


reached: list[str] = []
"""Tools that have come to their last line, so that a test can cancel there however slow the machine is."""


@pytest.fixture(autouse=True)
def _nothing_reached() -> None:
    reached.clear()


@tool
async def sleep() -> str:
    """Sleep."""
    reached.append("sleep")
    await asyncio.sleep(10)
    return "rested"


@tool
def add(a: int) -> int:
    """Add one."""
    reached.append("add")
    return a + 1


async def cancelled_at(agent: Agent, when: Callable[[AnyAgentEvent], bool]) -> Story:
    """The events, if the reader cancels as soon as it sees this one."""
    story = []
    async for event in agent.run_stream("Go"):
        story.append(plain(event))
        if when(event):
            agent.cancel()
    return story


async def cancelled_after(agent: Agent, *tools: str) -> Story:
    """The events, if another task cancels a moment after the model was called and these tools were reached."""

    async def cancel() -> None:
        while not driver_of(agent).requests or sorted(reached) != sorted(tools):  # noqa: ASYNC110 - other threads
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.05)
        agent.cancel()

    cancelling = asyncio.create_task(cancel())
    story = await story_of(agent.run_stream("Go"))
    await cancelling
    return story


@promise("agent:cancel", "agent:only-final")
def test_during_a_call_of_the_model() -> None:
    agent = agent_of([Scripted(text="never", delay=10), "Next."])
    assert run(cancelled_after(agent)) == []
    assert [message.role for message in agent.history] == ["user"]
    assert agent.run_sync("Again").text == "Next."


@promise("agent:cancel")
def test_before_a_call_of_the_model() -> None:
    agent = agent_of([Scripted(calls=[ADD]), "never"], tools=[add])
    story = run(cancelled_at(agent, lambda event: plain(event)["type"] == "step_complete"))
    assert story == [*step(1, "call_1", "add", {"a": 1}), *result("call_1", "add", "2")]
    assert len(driver_of(agent).requests) == 1
    assert results_in(agent.history) == [("call_1", "data", 2)]


@promise("agent:cancel")
def test_before_the_run_has_asked_anything() -> None:
    async def at_once() -> None:
        agent = agent_of(["never", "Next."])
        running = asyncio.create_task(agent.run("Go"))
        asyncio.get_running_loop().call_soon(agent.cancel)
        assert (await running).cancelled
        assert driver_of(agent).requests == []

    run(at_once())


@promise("agent:cancel", "agent:steps", "agent:no-open-calls")
def test_during_a_tool_steps_are_closed_and_there_is_no_final() -> None:
    agent = agent_of([Scripted(calls=[ADD, SLEEP, SLEEP]), "never"], tools=[add, sleep])
    assert run(cancelled_after(agent, "add", "sleep", "sleep")) == [
        *step(1, "call_1", "add", {"a": 1}),
        *step(2, "call_2", "sleep", {}),
        *step(3, "call_3", "sleep", {}),
        *result("call_1", "add", "2"),
        *result("call_2", "sleep", CANCELLED, error=True),
        *result("call_3", "sleep", CANCELLED, error=True),
    ]
    assert results_in(agent.history) == [
        ("call_1", "data", 2),
        ("call_2", "error", CANCELLED),
        ("call_3", "error", CANCELLED),
    ]


@promise("agent:cancel", "agent:no-open-calls")
def test_what_has_finished_is_not_forgotten_behind_what_has_not() -> None:
    agent = agent_of([Scripted(calls=[SLEEP, ADD]), "never"], tools=[add, sleep])
    assert run(cancelled_after(agent, "sleep", "add")) == [
        *step(1, "call_1", "sleep", {}),
        *step(2, "call_2", "add", {"a": 1}),
        *result("call_1", "sleep", CANCELLED, error=True),
        *result("call_2", "add", "2"),
    ]
    assert results_in(agent.history) == [("call_1", "error", CANCELLED), ("call_2", "data", 2)]


@promise("agent:cancel", "agent:steps", "agent:no-open-calls")
def test_before_a_tool() -> None:
    ran = []

    @tool
    def touch() -> None:
        """Touch."""
        ran.append(1)

    agent = agent_of([Scripted(calls=[("touch", {}), ("touch", {})]), "never"], tools=[touch])
    story = run(cancelled_at(agent, lambda event: isinstance(event, ToolCallEvent)))
    assert story == [*step(1, "call_1", "touch", {}), *result("call_1", "touch", CANCELLED, error=True)]
    assert ran == []
    assert results_in(agent.history)[1] == ("call_2", "error", NOT_RUN.format(reason="the run ended before it"))


@promise("agent:cancel", "agent:steps")
@pytest.mark.parametrize("parallel", [True, False])
@pytest.mark.parametrize("place", range(12))
def test_at_every_event_steps_complete_and_calls_are_answered(place: int, parallel: bool) -> None:  # noqa: FBT001
    script: list[Any] = [Scripted(text="So.", calls=[ADD, ADD]), Scripted(calls=[ADD]), "never"]
    agent = agent_of([*script], tools=[add], parallel=parallel)
    whole = types(run(story_of(agent_of(script, tools=[add], parallel=parallel).run_stream("Go"))))
    seen = 0

    def when(_event: AnyAgentEvent) -> bool:
        nonlocal seen
        seen += 1
        return seen == place + 1

    story = run(cancelled_at(agent, when))
    assert types(story)[: place + 1] == whole[: place + 1]
    if whole[place] != "final":
        assert "final" not in types(story)
    started = [event["step_id"] for event in story if event["type"] == "step_start"]
    assert sorted(event["step_id"] for event in story if event["type"] == "step_complete") == sorted(started)
    assert is_whole(agent.history)


@promise("agent:cancel-next")
def test_the_next_run_knows_nothing_of_it() -> None:
    agent = agent_of([Scripted(calls=[SLEEP]), Scripted(calls=[ADD]), "Two."], tools=[add, sleep])
    run(cancelled_after(agent, "sleep"))
    agent.cancel()  # nothing is under way: nothing happens
    assert run(story_of(agent.run_stream("Again"))) == [
        *step(1, "call_2", "add", {"a": 1}),
        *result("call_2", "add", "2"),
        *final("Two."),
    ]
    assert is_whole(agent.history)


@promise("agent:cancel", "agent:no-open-calls")
def test_cancelling_the_task_itself_works_too() -> None:
    async def cancel_task() -> None:
        agent = agent_of([Scripted(calls=[SLEEP]), "Next."], tools=[sleep])
        task = asyncio.create_task(agent.run("Go"))
        while not reached:  # noqa: ASYNC110 - a tool cannot wait for a test
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert results_in(agent.history) == [("call_1", "error", CANCELLED)]
        reading = asyncio.create_task(story_of(agent_of([Scripted(text="a", delay=9)]).run_stream("Go")))
        await asyncio.sleep(0.02)
        reading.cancel()
        with suppress(asyncio.CancelledError):
            await reading
        assert (await agent.run("Again")).text == "Next."
        assert len(asyncio.all_tasks()) == 1

    run(cancel_task())


@promise("agent:cancel")
def test_a_tool_that_will_not_be_cancelled_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.agent.steps._GRACE", 0.02)

    async def stubborn_run() -> None:
        release = asyncio.Event()

        @tool
        async def stubborn() -> None:
            """Stay."""
            while not release.is_set():
                with suppress(asyncio.CancelledError):
                    await release.wait()

        agent = agent_of([Scripted(calls=[("stubborn", {})])], tools=[stubborn])
        try:
            assert types(await cancelled_after(agent))[-1] == "step_complete"
        finally:
            release.set()

    run(stubborn_run())


@promise("agent:cancel", "agent:run")
def test_from_another_thread() -> None:
    agent = agent_of([Scripted(calls=[SLEEP]), "Next."], tools=[sleep])

    def cancel() -> None:
        until(lambda: reached)
        agent.cancel()

    thread = threading.Thread(target=cancel)
    thread.start()
    assert agent.run_sync("Go").cancelled
    thread.join()
    assert agent.run_sync("Again").text == "Next."


@promise("agent:run")
def test_the_sync_variant_does_not_wait_for_itself() -> None:
    @tool
    async def inner() -> str:
        """Ask another agent, the wrong way."""
        return agent_of(["Hello."]).run_sync("Hi").text

    agent = agent_of([Scripted(calls=[("inner", {})]), "."], tools=[inner])
    agent.run_sync("Go")
    ((_, kind, value),) = results_in(agent.history)
    assert (kind, "await the async variant" in value) == ("error", True)


class RetryingDriver(ScriptedDriver):
    """Announces retries as the drivers of the providers do."""

    async def query(self, *args: Any, **settings: Unpack[Settings]) -> QueryResult:  # type: ignore[override]
        for attempt in (1, 2):
            error = Overloaded(Failure("overloaded", "busy", 529), provider="scripted")
            announce(RetryNotice(provider="scripted", attempt=attempt, delay=0.5, error=error), None)
            await asyncio.sleep(0)
        return await super().query(*args, **settings)


@promise("agent:retries")
def test_retries_of_the_driver_are_events() -> None:
    driver: Any = RetryingDriver(["At last."])
    retry = {"type": "retry", "provider": "scripted", "delay": 0.5, "reason": "scripted: busy (overloaded, status 529)"}
    assert run_events(Agent(driver)) == [
        {**retry, "attempt": 1},
        {**retry, "attempt": 2},
        *final("At last."),
    ]
