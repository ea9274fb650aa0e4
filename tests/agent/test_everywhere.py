"""The same scenario on the simulators of all providers, over real HTTP: the same events as from a script."""

import asyncio
from collections.abc import Sequence
from itertools import cycle
from typing import Any

import pytest

import dragoman
from dragoman.agent import Agent, NestedEvent, SessionStore, StepCompleteEvent, agent_tool, done, tool, toolset
from dragoman.agent.history_repair import is_whole
from dragoman.drivers import Scripted, ScriptedDriver
from dragoman.drivers.providers import PROVIDERS
from dragoman.drivers.retries import RetryPolicy
from dragoman.ir import Image, Message, Text
from dragoman.sim.server import Simulator
from tests.drivers.partners import COMPATIBLE, EACH_FORMAT, EVERY, FORMATS, PARTNERS, Partner, driver_of, talking
from tests.support.agents import Story, plain, run, story_of, types
from tests.support.promises import promise

PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


@tool
def get_weather(city: str) -> dict[str, Any]:
    """Tell the weather of a city."""
    return {"city": city, "degrees": 18.5}


@tool
def get_map(city: str) -> list[Any]:
    """Draw a map of a city."""
    return [Text(f"map of {city}"), Image("image/png", data=PICTURE)]


@tool
def fail(reason: str) -> None:
    """Fail."""
    raise ValueError(reason)


TOOLS = [get_weather, get_map, fail, done]
CALLS: list[list[tuple[str, dict[str, Any]]]] = [
    [("get_weather", {"city": "Zürich"}), ("get_map", {"city": "Zürich"})],
    [("fail", {"reason": "no luck"}), ("get_weather", {"town": "Rome"}), ("unheard_of", {})],
    [("get_weather", {"city": "Rome"}), ("done", {"message": "18.5 in both."}), ("get_map", {"city": "Rome"})],
]
TEXTS = ["Let me see.", "Once more.", "Almost."]


def play(simulator: Simulator) -> None:
    turns: list[dict[str, Any]] = [
        {"text": text, "calls": [{"name": name, "arguments": arguments} for name, arguments in calls]}
        for text, calls in zip(TEXTS, CALLS, strict=True)
    ]
    simulator.play(*turns, {"text": "You are welcome."})


def scripted() -> Agent:
    turns: list[Any] = [Scripted(text=text, calls=calls) for text, calls in zip(TEXTS, CALLS, strict=True)]
    return Agent(ScriptedDriver([*turns, "You are welcome."]), tools=TOOLS)


def alike(story: Story) -> Story:
    """The story without what is each provider's own: ids by their order, no clocks, no counts of tokens."""
    ids: dict[str, str] = {}
    told = []
    for event in story:
        if event["type"] in {"usage", "reasoning"}:
            continue
        kept = {key: value for key, value in event.items() if key not in {"timestamp", "duration_ms"}}
        for key in ("step_id", "tool_call_id"):
            if key in kept:
                kept[key] = ids.setdefault(kept[key], f"id {len(ids) + 1}")
        told.append(kept)
    return told


async def both_runs(agent: Agent) -> Story:
    first = await story_of(agent.run_stream("How warm is it?"))
    return [*first, *await story_of(agent.run_stream("Thanks!"))]


def test_no_provider_is_left_out() -> None:
    tried = {one.provider for one in (*PARTNERS, *COMPATIBLE)}
    assert set(PROVIDERS) - tried == {"local"}
    assert {PROVIDERS[one.provider].format for one in FORMATS} == set(dragoman.formats())


@promise("agent:same-story")
@EVERY
@pytest.mark.parametrize("deltas", [False, True], ids=["whole", "streamed"])
def test_the_same_story_everywhere(partner: Partner, deltas: bool, dragoman_sim: Simulator) -> None:  # noqa: FBT001
    async def session() -> None:
        expected = alike(await both_runs(scripted()))
        play(dragoman_sim)
        async with talking(partner, dragoman_sim) as driver:
            agent = Agent(driver, tools=TOOLS, system_prompt="Be brief.", deltas=deltas)
            story = await both_runs(agent)
            said = "".join(event["content"] for event in story if event["type"] == "text_delta")
            assert (
                alike([event for event in story if event["type"] not in {"text_delta", "reasoning_delta"}]) == expected
            )
            assert said == ("".join([*TEXTS, "You are welcome."]) if deltas else "")
            # The stand-in of a compatible server counts streamed tokens only for those that ask for it.
            counted = not deltas or partner not in COMPATIBLE or bool(PROVIDERS[partner.provider].stream_keys)
            assert types(story).count("usage") == (4 if counted else 0)
            assert is_whole(agent.history)

    run(session())
    assert [recorded.status for recorded in dragoman_sim.requests] == [200] * 4


@promise("agent:switch-model", "agent:same-story")
def test_the_model_is_switched_after_every_turn_and_the_story_stays_the_same(dragoman_sim: Simulator) -> None:
    """Calls, ids, signatures and pictures of each vendor are in the history of the next."""

    async def session() -> None:
        expected = alike(await both_runs(scripted()))
        for offset in range(len(FORMATS)):
            play(dragoman_sim)
            drivers = [driver_of(partner, dragoman_sim) for partner in (*FORMATS[offset:], *FORMATS[:offset])]
            waiting = cycle(drivers)
            agent = Agent(next(waiting), tools=TOOLS, settings={"reasoning": "medium"})
            story: Story = []
            for words in ("How warm is it?", "Thanks!"):
                async for event in agent.run_stream(words):
                    story.append(plain(event))
                    if isinstance(event, StepCompleteEvent):
                        agent.driver = next(waiting)
                agent.driver = next(waiting)
            assert alike(story) == expected
            for driver in drivers:
                await driver.close()

    run(session())
    assert {recorded.status for recorded in dragoman_sim.requests} == {200}


@promise("agent:retries", "agent:same-story")
@EACH_FORMAT
def test_retries_are_reported_while_they_happen(partner: Partner, dragoman_sim: Simulator) -> None:
    async def session() -> None:
        dragoman_sim.play({"error": "overloaded"}, {"error": "overloaded"}, {"text": "At last."})
        quick = RetryPolicy(attempts=3, first_delay=0.01)
        async with talking(partner, dragoman_sim, retry=quick) as driver:
            story = await story_of(Agent(driver).run_stream("Hello"))
        assert [event["attempt"] for event in story if event["type"] == "retry"] == [1, 2]
        assert types(story) == ["retry", "retry", "usage", "final"]

    run(session())


@promise("agent:cancel", "agent:same-story")
@EACH_FORMAT
@pytest.mark.parametrize("deltas", [False, True], ids=["whole", "streamed"])
def test_cancelling_lets_go_of_the_connection(partner: Partner, deltas: bool, dragoman_sim: Simulator) -> None:  # noqa: FBT001
    async def session() -> None:
        dragoman_sim.play({"text": "never", "delay": 30.0}, {"text": "Here."})
        async with talking(partner, dragoman_sim) as driver:
            agent = Agent(driver, deltas=deltas)
            running = asyncio.create_task(story_of(agent.run_stream("Hello")))
            while not running.done():  # a run that has not begun yet cannot be cancelled
                await asyncio.sleep(0.2)
                agent.cancel()
            assert await running == []
            assert (await agent.run("Still there?")).text == "Here."

    run(session())


@promise("agent:session", "agent:same-story")
@EACH_FORMAT
def test_a_session_is_resumed_with_the_same_provider(partner: Partner, dragoman_sim: Simulator, tmp_path: Any) -> None:
    """What the provider signed goes through the disk and back."""

    async def session() -> None:
        play(dragoman_sim)
        for words in ("How warm is it?", "Thanks!"):
            with SessionStore(tmp_path) as store:
                async with talking(partner, dragoman_sim) as driver:
                    agent = Agent(driver, tools=TOOLS, session=store.open("one"), settings={"reasoning": "medium"})
                    await agent.run(words)

    run(session())
    assert [recorded.status for recorded in dragoman_sim.requests] == [200] * 4


@promise("agent:toolsets", "agent:sub-agents", "agent:instructions", "agent:same-story")
@EACH_FORMAT
def test_toolsets_agents_as_tools_instructions_and_processors(partner: Partner, dragoman_sim: Simulator) -> None:
    """Caller and called agent share the provider; what is sent is what instructions and processors made of it."""

    def asked_only(messages: Sequence[Message]) -> Sequence[Message]:
        return [*messages[:-1], Message("user", "(end of notes)")] if messages[-1].role == "user" else messages

    async def session() -> None:
        dragoman_sim.play(
            {"calls": [{"name": "research", "arguments": {"task": "weather in Rome"}}]},
            {"calls": [{"name": "far_get_weather", "arguments": {"city": "Rome"}}]},
            {"text": "18.5 in Rome."},
            {"text": "Take a coat."},
        )
        async with talking(partner, dragoman_sim) as driver:
            researcher = Agent(driver, tools=toolset(get_weather).prefix("far_"), name="research")
            agent = Agent(
                driver,
                tools=[agent_tool(researcher, description="Looks things up.")],
                instructions=["Be kind.", lambda: "Today is Monday."],
                history_processors=[asked_only],
            )
            events = [event async for event in agent.run_stream("What to pack?")]
        nested = [event for event in events if isinstance(event, NestedEvent)]
        assert {event.path for event in nested} == {("research",)}
        assert events[-1].type == "final"
        assert is_whole(agent.history)
        assert [part.value for message in agent.history for part in message.tool_results] == ["18.5 in Rome."]
        assert [message.text for message in agent.history if message.role == "user"] == ["What to pack?"]

    run(session())
    assert [recorded.status for recorded in dragoman_sim.requests] == [200] * 4
    first, second, *_ = (recorded.body.decode() for recorded in dragoman_sim.requests)
    assert "Today is Monday." in first
    assert "(end of notes)" in first
    assert "What to pack?" not in first
    assert "far_get_weather" in second
    assert "Today is Monday." not in second
