"""Toolsets, agents as tools, hand-off to another model, and hosted tools beside own ones."""

import asyncio
import gc
import warnings
from typing import Any

import msgspec
import pytest

from dragoman.agent import (
    Agent,
    Allow,
    HandOffEvent,
    Limits,
    NestedEvent,
    agent_tool,
    hand_off_tool,
    tool,
    toolset,
)
from dragoman.agent.history_repair import is_whole
from dragoman.drivers import Scripted, ScriptedDriver
from dragoman.ir import ProviderTool, Usage
from dragoman.sim.server import Simulator
from tests.drivers.partners import EACH_FORMAT, FORMATS, Partner, driver_of, talking
from tests.support.agents import agent_of, results_in, run
from tests.support.promises import promise


@tool(read_only=True)
def look(place: str) -> str:
    """Look."""
    return f"nothing in {place}"


@tool
def write(text: str) -> str:
    """Write."""
    return f"wrote {text}"


# ── toolsets ──────────────────────────────────────────────────────────────────────────────────────────────────


@promise("agent:toolsets")
def test_sets_are_combined_prefixed_filtered_renamed_and_approved() -> None:
    files = toolset(look, write)
    assert [one.name for one in files.prefix("disk_") + files.filter(lambda one: one.read_only)] == [
        "disk_look",
        "disk_write",
        "look",
    ]
    assert [one.name for one in files.rename({"look": "read"})] == ["read", "write"]
    assert [one.needs_approval for one in files.approve()] == [False, True]
    assert [one.needs_approval for one in files.approve(lambda one: one.name == "look")] == [True, False]
    assert len(files) == 2
    with pytest.raises(ValueError, match="two tools are named 'look'"):
        toolset(files, look)
    with pytest.raises(ValueError, match="no tool is named nothing"):
        files.rename({"nothing": "x"})
    with pytest.raises(ValueError, match="not a valid tool name"):
        files.prefix("not a name ")


@promise("agent:toolsets")
def test_a_set_in_an_agent() -> None:
    script: list[Any] = [Scripted(calls=[("disk_look", {"place": "a"}), ("disk_write", {"text": "b"})]), "Ok."]
    agent = agent_of(script, tools=toolset(look, write).prefix("disk_").approve())
    result = run(agent.run("Go"))
    assert [one.tool for one in result.pending] == ["disk_write"]
    assert run(agent.resume(decisions={"call_2": Allow()})).text == "Ok."
    assert [value for _, _, value in results_in(agent.history)] == ["nothing in a", "wrote b"]


@promise("agent:toolsets")
def test_parallel_or_one_after_the_other_per_set() -> None:
    running: list[int] = [0, 0]

    @tool
    async def work() -> str:
        """Work."""
        running[0] += 1
        running[1] = max(running)
        await asyncio.sleep(0.01)
        running[0] -= 1
        return "done"

    for tools, most in ((toolset(work), 3), (toolset(work).sequential(), 1)):
        running[:] = [0, 0]
        run(agent_of([Scripted(calls=[("work", {})] * 3), "Ok."], tools=tools).run("Go"))
        assert running[1] == most


# ── agents as tools ───────────────────────────────────────────────────────────────────────────────────────────


def team(**options: Any) -> Agent:
    """A boss with a researcher, which has a helper."""
    helper = Agent(ScriptedDriver(lambda _: Scripted(text="deep", usage=Usage(1, 1)), name="scripted/helper"))
    researcher = Agent(
        ScriptedDriver(
            lambda request: (
                Scripted(text="found", usage=Usage(10, 1))
                if request.messages[-1].role == "tool"
                else Scripted(calls=[("helper", {"task": "dig"})], usage=Usage(10, 1))
            ),
            name="scripted/researcher",
        ),
        tools=[agent_tool(helper, name="helper", description="Digs.")],
        name="research",
    )
    script = [
        Scripted(calls=[("research", {"task": "search"})], usage=Usage(100, 1)),
        Scripted(text="So.", usage=Usage(100, 1)),
    ]
    return Agent(
        ScriptedDriver(script * 2, name="scripted/boss"),
        tools=[agent_tool(researcher, description="Searches.")],
        **options,
    )


@promise("agent:sub-agents")
def test_an_agent_as_a_tool_has_its_own_history_and_nested_events_and_its_tokens_count() -> None:
    async def session() -> None:
        agent = team()
        events = [event async for event in agent.run_stream("Go")]
        nested = [(event.path, event.event.type) for event in events if isinstance(event, NestedEvent)]
        assert (("research",), "tool_call") in nested
        assert (("research", "helper"), "final") in nested
        assert nested[-1] == (("research",), "final")
        assert events[-1].type == "final"
        result = agent.last_result
        assert result is not None
        assert result.usage == Usage(100 + 10 + 1 + 10 + 100, 5)
        assert {name: account.calls for name, account in agent.usage.items()} == {
            "scripted/boss": 2,
            "scripted/researcher": 2,
            "scripted/helper": 1,
        }
        assert results_in(agent.history) == [("call_1", "text", "found")]
        assert len(agent.history) == 4
        line = msgspec.json.encode(next(event for event in events if isinstance(event, NestedEvent)))
        assert b'"path":["research"]' in line

    run(session())


@promise("agent:sub-agents")
def test_every_call_begins_with_an_empty_history() -> None:
    worker = Agent(ScriptedDriver(lambda request: f"{len(request.messages)} messages"), history=[])
    script: list[Any] = [Scripted(calls=[("worker", {"task": "a"}), ("worker", {"task": "b"})]), "Ok."]
    agent = agent_of(script, tools=[agent_tool(worker, name="worker", description="Works.")])
    run(agent.run("Go"))
    assert [value for _, _, value in results_in(agent.history)] == ["1 messages", "1 messages"]


@promise("agent:sub-agents", "agent:limits")
def test_limits_count_what_sub_agents_use() -> None:
    result = run(team(limits=Limits(total_tokens=120)).run("Go"))
    assert (result.reason, result.turns) == ("limit", 1)


@promise("agent:sub-agents")
def test_a_typed_sub_agent_gives_data_and_one_that_does_not_finish_an_error() -> None:
    typed = Agent(ScriptedDriver(lambda _: '{"value": 5}'), output_type=int)
    stuck = Agent(
        ScriptedDriver(lambda _: Scripted(calls=[("look", {"place": "x"})])), tools=[look], limits=Limits(requests=1)
    )
    tools = [
        agent_tool(typed, name="typed", description="Counts."),
        agent_tool(stuck.fork, name="stuck", description="Never ends."),
    ]
    agent = agent_of([Scripted(calls=[("typed", {"task": "a"}), ("stuck", {"task": "b"})]), "Ok."], tools=tools)
    run(agent.run("Go"))
    (_, kind, value), (_, failed, why) = results_in(agent.history)
    assert (kind, value, failed) == ("data", 5, "error")
    assert "did not finish (limit)" in why


# ── hand-off and hosted tools ─────────────────────────────────────────────────────────────────────────────────


@promise("agent:hand-off")
def test_a_tool_hands_the_conversation_to_another_model() -> None:
    async def session() -> None:
        expert = ScriptedDriver(["I know."], name="scripted/expert")
        over = hand_off_tool(expert, name="ask_expert", description="Hands over.", reason="it is hard")
        agent = agent_of([Scripted(calls=[("ask_expert", {})])], tools=[over, look])
        events = [event async for event in agent.run_stream("Go")]
        assert [event for event in events if isinstance(event, HandOffEvent)] == [
            HandOffEvent("scripted/test", "scripted/expert", "it is hard")
        ]
        assert agent.last_result is not None
        assert agent.last_result.text == "I know."
        assert agent.driver is expert
        assert is_whole(expert.requests[0].messages)

    run(session())


@promise("agent:hand-off")
def test_hand_off_between_all_formats_in_mid_loop(dragoman_sim: Simulator) -> None:
    async def session() -> None:
        for before, after in zip(FORMATS, (*FORMATS[1:], FORMATS[0]), strict=True):
            async with talking(before, dragoman_sim) as driver:
                other = driver_of(after, dragoman_sim)
                dragoman_sim.play(
                    {
                        "text": "Hard.",
                        "calls": [{"name": "look", "arguments": {"place": "x"}}, {"name": "over", "arguments": {}}],
                    },
                    {"text": "Here."},
                )
                over = hand_off_tool(other, name="over", description="Hands over.")
                agent = Agent(driver, tools=[look, over])
                assert (await agent.run("Go")).text == "Here."
                assert agent.driver is other
                await other.close()

    run(session())


@promise("agent:hand-off")
def test_an_agent_closes_all_drivers_that_it_connected(
    dragoman_sim: Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ANTHROPIC", "OPENAI"):
        monkeypatch.setenv(f"{name}_API_KEY", "k")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", dragoman_sim.url)
    monkeypatch.setenv("OPENAI_BASE_URL", f"{dragoman_sim.url}/v1")
    dragoman_sim.play({"calls": [{"name": "over", "arguments": {}}]}, {"text": "Here."}, {"text": "Again."})

    async def session() -> None:
        over = hand_off_tool("openai-chat/gpt-4.1", name="over", description="Hands over.")
        async with Agent("anthropic/claude-sonnet-4-6", tools=[over]) as agent:
            assert (await agent.run("Go")).text == "Here."
            assert (await agent.run("Go")).text == "Again."

    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        run(session())
        gc.collect()
    assert [str(one.message) for one in found if "Unclosed" in str(one.message)] == []
    assert len(dragoman_sim.requests) == 3


@promise("agent:hosted-tools")
@EACH_FORMAT
def test_hosted_tools_stand_beside_own_ones(partner: Partner, dragoman_sim: Simulator) -> None:
    async def session() -> None:
        dragoman_sim.play({"calls": [{"name": "look", "arguments": {"place": "x"}}]}, {"text": "Here."})
        async with talking(partner, dragoman_sim) as driver:
            agent = Agent(driver, tools=[look, ProviderTool("web_search", kind="web_search")])
            assert (await agent.run("Go")).text == "Here."
            assert [one.name for one in agent.tools] == ["look"]

    run(session())
