"""Calls that wait for a person or an outside job: the run pauses, and goes on in another process."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dragoman.agent import (
    Agent,
    Allow,
    BadDecisions,
    Defer,
    Deferred,
    Deny,
    NestedEvent,
    PendingCall,
    PendingEvent,
    Rules,
    SessionStore,
    StepCompleteEvent,
    agent_tool,
    pause,
    tool,
)
from dragoman.agent.history_repair import is_whole
from dragoman.drivers import Scripted, ScriptedDriver
from dragoman.ir import Message, Request, ToolResult
from dragoman.sim.server import Simulator
from tests.cli.command import environment
from tests.drivers.partners import EACH_FORMAT, Partner, talking
from tests.support.agents import agent_of, results_in, run, types
from tests.support.promises import promise

pytestmark = promise("agent:pending")

PAID: list[int] = []


@tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pay."""
    PAID.append(amount)
    return f"paid {amount}"


@tool
def render(name: str) -> str:
    """Render a film elsewhere."""
    raise Deferred(f"job for {name}")


@tool
def look() -> str:
    """Look."""
    return "seen"


CALLS = Scripted(text="Let me.", calls=[("look", {}), ("pay", {"amount": 5}), ("render", {"name": "film"})])


@pytest.fixture(autouse=True)
def _unpaid() -> None:
    PAID.clear()


def waiting(**options: Any) -> Agent:
    return agent_of([CALLS, "All done."], tools=[look, pay, render], **options)


def test_a_run_with_waiting_calls_ends_with_them_and_a_valid_history() -> None:
    async def session() -> None:
        agent = waiting()
        events = [event async for event in agent.run_stream("Go")]
        result = agent.last_result
        assert result is not None
        assert isinstance(events[-1], PendingEvent)
        assert (result.reason, result.pending) == ("pending", events[-1].calls)
        assert result.pending == agent.pending
        assert result.pending == (
            PendingCall("call_2", "pay", {"amount": 5}, "approval", ""),
            PendingCall("call_3", "render", {"name": "film"}, "deferred", "job for film"),
        )
        assert msgspec.json.decode(msgspec.json.encode(result.pending), type=tuple[PendingCall, ...]) == result.pending
        assert is_whole(agent.history)
        assert results_in(agent.history)[0] == ("call_1", "text", "seen")
        assert PAID == []

    run(session())


def test_decisions_go_on_with_the_run() -> None:
    async def session() -> None:
        agent = waiting()
        await agent.run("Go")
        finished = ToolResult("", "", "data", {"url": "film.mp4"})
        decisions: dict[str, Any] = {"call_2": Allow(), "call_3": finished}
        events = [event async for event in agent.resume_stream(decisions=decisions)]
        assert types([msgspec.to_builtins(event) for event in events]) == [
            "step_start", "tool_call", "step_start", "tool_call", "tool_result", "step_complete", "tool_result",
            "step_complete", "final",
        ]  # fmt: skip
        assert PAID == [5]
        assert [(call_id, kind) for call_id, kind, _ in results_in(agent.history)] == [
            ("call_1", "text"), ("call_2", "text"), ("call_3", "data"),
        ]  # fmt: skip
        assert is_whole(agent.history)
        assert agent.pending == ()
        assert agent.last_result is not None
        assert agent.last_result.text == "All done."

    run(session())


def test_denied_calls_and_plain_values() -> None:
    agent = waiting()
    run(agent.run("Go"))
    result = run(agent.resume(decisions={"call_2": Deny("too dear"), "call_3": "film.mp4"}))
    assert result.text == "All done."
    assert PAID == []
    assert results_in(agent.history)[1:] == [
        ("call_2", "error", "pay was not permitted: too dear; it did not run"),
        ("call_3", "text", "film.mp4"),
    ]


@pytest.mark.parametrize(
    ("decisions", "problem"),
    [
        ({}, "no decision for: call_2"),
        ({"call_2": Allow()}, "no decision for: call_3"),
        ({"call_2": Allow(), "call_3": "x", "call_9": Allow()}, "unknown calls: call_9"),
        ({"call_1": Allow(), "call_2": Allow(), "call_3": "x"}, "unknown calls: call_1"),
    ],
)
def test_decisions_that_do_not_fit_change_nothing(decisions: dict[str, Any], problem: str) -> None:
    agent = waiting()
    run(agent.run("Go"))
    before = agent.history
    with pytest.raises(BadDecisions, match=problem):
        run(agent.resume(decisions=decisions))
    assert agent.history == before
    assert run(agent.resume(decisions={"call_2": Allow(), "call_3": "x"})).text == "All done."


def test_a_tool_that_is_gone_can_be_denied_but_not_allowed() -> None:
    agent = waiting()
    run(agent.run("Go"))
    other = Agent(ScriptedDriver(["Fine."]), tools=[look], history=agent.history)
    with pytest.raises(BadDecisions, match="no tool 'pay'"):
        run(other.resume(decisions={"call_2": Allow(), "call_3": "x"}))
    assert run(other.resume(decisions={"call_2": Deny(), "call_3": "x"})).text == "Fine."


def test_nothing_waits() -> None:
    agent = agent_of(["Hello."])
    run(agent.run("Hi"))
    with pytest.raises(BadDecisions, match="no call of this conversation waits"):
        run(agent.resume(decisions={}))


def test_another_question_leaves_the_waiting_calls_behind() -> None:
    agent = waiting()
    run(agent.run("Go"))
    assert run(agent.run("Never mind.")).text == "All done."
    assert agent.pending == ()
    assert is_whole(agent.history)


def test_permissions_feed_into_it() -> None:
    for options in (
        {"permissions": Rules(ask=["look"]), "ask": pause},
        {"permissions": lambda _: Defer("ask the boss")},
    ):
        agent = agent_of([Scripted(calls=[("look", {})]), "Ok."], tools=[look], **options)
        assert [one.tool for one in run(agent.run("Go")).pending] == ["look"]
        assert run(agent.resume(decisions={"call_1": Allow()})).text == "Ok."
    permitted = agent_of([Scripted(calls=[("pay", {"amount": 1})]), "Ok."], tools=[pay], ask=lambda _: True)
    assert run(permitted.run("Go")).text == "Ok."
    assert PAID == [1]


def test_a_call_may_wait_twice() -> None:
    @tool(needs_approval=True)
    def order() -> str:
        """Order."""
        raise Deferred("on its way")

    agent = agent_of([Scripted(calls=[("order", {})]), "Here."], tools=[order])
    assert [one.kind for one in run(agent.run("Go")).pending] == ["approval"]
    assert [one.kind for one in run(agent.resume(decisions={"call_1": Allow()})).pending] == ["deferred"]
    assert run(agent.resume(decisions={"call_1": "a parcel"})).text == "Here."


PROGRAM = '''
import sys
from dragoman.agent import Agent, Allow, SessionStore, tool
from dragoman.drivers import Scripted, ScriptedDriver

@tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"

folder, step = sys.argv[1:]
store = SessionStore(folder)
if step == "ask":
    agent = Agent(ScriptedDriver([Scripted(calls=[("pay", {"amount": 5})])]), tools=[pay], session=store.open("s"))
    result = agent.run_sync("Pay 5.")
    print(result.reason, *[one.call_id for one in result.pending])
else:
    agent = Agent(ScriptedDriver(["Paid."]), tools=[pay])
    result = agent.resume_sync(store.resume("s"), decisions={"call_1": Allow()})
    print(result.reason, result.text)
'''


def test_in_another_process(tmp_path: Path) -> None:
    def ran(step: str) -> str:
        ended = subprocess.run(  # noqa: S603
            [sys.executable, "-c", PROGRAM, str(tmp_path), step],
            env=environment(), capture_output=True, text=True, timeout=60, check=True,
        )  # fmt: skip
        return ended.stdout.strip()

    assert ran("ask") == "pending call_1"
    with SessionStore(tmp_path) as store:
        assert is_whole(store.resume("s").messages)
    assert ran("resume") == "answer Paid."
    with SessionStore(tmp_path) as store:
        messages = store.resume("s").messages
    assert results_in(messages) == [("call_1", "text", "paid 5")]
    assert messages[-1].text == "Paid."


def test_the_history_survives_as_json() -> None:
    agent = waiting()
    run(agent.run("Go"))
    text = msgspec.json.encode(agent.history)
    assert json.loads(text)
    other = Agent(
        ScriptedDriver(["Ok."]), tools=[look, pay, render], history=msgspec.json.decode(text, type=list[Message])
    )
    assert other.pending == agent.pending
    assert run(other.resume(decisions={"call_2": Allow(), "call_3": "x"})).text == "Ok."


@EACH_FORMAT
def test_on_every_provider(partner: Partner, dragoman_sim: Simulator) -> None:
    async def session() -> None:
        dragoman_sim.play({"calls": [{"name": "pay", "arguments": {"amount": 5}}]}, {"text": "Paid."})
        async with talking(partner, dragoman_sim) as driver:
            agent = Agent(driver, tools=[pay])
            (call,) = (await agent.run("Pay 5.")).pending
            again = Agent(driver, tools=[pay], history=agent.history)
            assert (await again.resume(decisions={call.call_id: Allow()})).text == "Paid."

    run(session())
    assert PAID == [5]


# ── calls of agents that are tools ────────────────────────────────────────────────────────────────────────────


def payer(request: Request) -> Any:
    """Pays what the task says, then reports what came of it."""
    results = [one for message in request.messages for one in message.tool_results]
    if results:
        return f"clerk: {'; '.join(str(one.value) for one in results)}"
    return Scripted(calls=[("pay", {"amount": int(request.messages[-1].text)})])


def clerk(**options: Any) -> Agent:
    return Agent(ScriptedDriver(payer), tools=[pay], name="clerk", **options)


def office(make: Any) -> Agent:
    """An agent that passes its task on to the clerk."""

    def passes_on(request: Request) -> Any:
        last = request.messages[-1]
        if last.role == "tool":
            return f"office: {last.tool_results[0].value}"
        return Scripted(calls=[("clerk", {"task": last.text})])

    return Agent(ScriptedDriver(passes_on), tools=[agent_tool(make, name="clerk", description="Pays.")], name="office")


def boss(*tasks: str, make: Any = None, **options: Any) -> Agent:
    """An agent whose clerks each get one task at the same time."""
    script: list[Any] = [Scripted(calls=[("clerk", {"task": one}) for one in tasks]), "All done."]
    tool_of_clerk = agent_tool(make or clerk(), name="clerk", description="Pays.")
    return Agent(ScriptedDriver(script), tools=[tool_of_clerk, look], **options)


def test_calls_of_a_sub_agent_wait_in_the_outer_run_with_their_path() -> None:
    async def session() -> None:
        agent = boss("5", "7", make=clerk)  # each with a model of its own: the inner ids are equal
        events = [event async for event in agent.run_stream("Go")]
        assert isinstance(events[-1], PendingEvent)
        assert events[-1].calls == agent.pending
        assert agent.pending == (
            PendingCall("call_1/call_1", "pay", {"amount": 5}, "approval", "", ("clerk",)),
            PendingCall("call_2/call_1", "pay", {"amount": 7}, "approval", "", ("clerk",)),
        )
        assert msgspec.json.decode(msgspec.json.encode(agent.pending), type=tuple[PendingCall, ...]) == agent.pending
        assert is_whole(agent.history)
        assert [one.status for one in events if isinstance(one, StepCompleteEvent)] == ["pending", "pending"]
        decisions: dict[str, Any] = {"call_1/call_1": Allow(), "call_2/call_1": Deny("too much")}
        resumed = [event async for event in agent.resume_stream(decisions=decisions)]
        nested = [one for one in resumed if isinstance(one, NestedEvent) and one.event.type == "tool_result"]
        assert sorted((one.path, one.calls) for one in nested) == [
            (("clerk",), ("call_1",)),
            (("clerk",), ("call_2",)),
        ]
        assert agent.last_result is not None
        assert agent.last_result.text == "All done."
        assert PAID == [5]
        assert [value for _, _, value in results_in(agent.history)] == [
            "clerk: paid 5",
            "clerk: pay was not permitted: too much; it did not run",
        ]
        assert not agent.pending

    run(session())


@pytest.mark.parametrize("make", [clerk(), clerk], ids=["agent", "function"])
def test_two_levels_down_and_through_json(make: Any) -> None:
    def outer() -> Agent:
        tools = [agent_tool(office(make), name="office", description="Passes on.")]
        script: list[Any] = [Scripted(calls=[("office", {"task": "9"})]), "Done."]
        return Agent(ScriptedDriver(script), tools=tools)

    first = outer()
    (call,) = run(first.run("Go")).pending
    assert (call.call_id, call.path) == ("call_1/call_1/call_1", ("office", "clerk"))
    again = outer()
    again.driver = ScriptedDriver(["Done."])
    again.history = msgspec.json.decode(msgspec.json.encode(first.history), type=list[Message])
    assert again.pending == (call,)
    assert run(again.resume(decisions={call.call_id: Allow()})).text == "Done."
    assert PAID == [9]
    assert results_in(again.history) == [("call_1", "text", "office: clerk: paid 9")]


def test_a_sub_agent_may_wait_again_and_take_a_result() -> None:
    def twice(request: Request) -> Any:
        count = sum(len(message.tool_results) for message in request.messages)
        return Scripted(calls=[("pay", {"amount": count + 1})]) if count < 2 else "paid twice"

    agent = boss("x", make=Agent(ScriptedDriver(twice), tools=[pay]))
    assert [one.arguments for one in run(agent.run("Go")).pending] == [{"amount": 1}]
    second = run(agent.resume(decisions={"call_1/call_1": Allow()}))
    assert [(one.call_id, one.arguments) for one in second.pending] == [("call_1/call_2", {"amount": 2})]
    assert run(agent.resume(decisions={"call_1/call_2": "paid by hand"})).text == "All done."
    assert PAID == [1]


@pytest.mark.parametrize(
    ("tools", "decisions", "problem"),
    [
        (None, {}, "no decision for: call_1/call_1"),
        (None, {"call_1": Allow()}, "unknown calls: call_1"),
        ([look], {"call_1/call_1": Allow()}, "was called by the agent of 'clerk', which this agent no longer has"),
        ("penniless", {"call_1/call_1": Allow()}, "in clerk: call_1 is allowed, but this agent has no tool 'pay'"),
    ],
)
def test_decisions_about_sub_agents_that_do_not_fit_change_nothing(
    tools: Any, decisions: dict[str, Any], problem: str
) -> None:
    paused = boss("5")
    run(paused.run("Go"))
    if tools is None:
        agent = paused
    else:
        poor = agent_tool(Agent(ScriptedDriver([])), name="clerk", description="Pays.")
        own = [poor] if tools == "penniless" else tools
        agent = Agent(ScriptedDriver(["Fine."]), tools=own, history=paused.history)
    before = agent.history
    with pytest.raises(BadDecisions, match=problem):
        run(agent.resume(decisions=decisions))
    assert agent.history == before
    assert PAID == []


def test_a_session_of_the_outer_agent_is_all_that_another_process_needs(tmp_path: Path) -> None:
    with SessionStore(tmp_path) as store:
        agent = boss("5", session=store.open("s"))
        assert run(agent.run("Go")).reason == "pending"
    with SessionStore(tmp_path) as store:
        later = boss("5")
        later.driver = ScriptedDriver(["Paid."])
        assert run(later.resume(store.resume("s"), decisions={"call_1/call_1": Allow()})).text == "Paid."
        assert results_in(store.resume("s").messages) == [("call_1", "text", "clerk: paid 5")]


@promise("agent:sub-agents")
@EACH_FORMAT
def test_sub_agents_that_wait_on_every_provider(partner: Partner, dragoman_sim: Simulator) -> None:
    async def session() -> None:
        dragoman_sim.play(
            {"calls": [{"name": "clerk", "arguments": {"task": "Pay 5."}}]},
            {"calls": [{"name": "pay", "arguments": {"amount": 5}}]},
            {"text": "I paid 5."},
            {"text": "All is paid."},
        )
        async with talking(partner, dragoman_sim) as driver:
            worker = agent_tool(Agent(driver, tools=[pay]), name="clerk", description="Pays.")
            agent = Agent(driver, tools=[worker])
            (call,) = (await agent.run("Pay 5.")).pending
            stored = msgspec.json.decode(msgspec.json.encode(agent.history), type=list[Message])
            again = Agent(driver, tools=[worker], history=stored)
            assert (await again.resume(decisions={call.call_id: Allow()})).text == "All is paid."
            assert results_in(again.history)[-1][2] == "I paid 5."

    run(session())
    assert PAID == [5]
    assert {recorded.status for recorded in dragoman_sim.requests} == {200}
