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
    PendingCall,
    PendingEvent,
    Rules,
    SessionStore,
    pause,
    tool,
)
from dragoman.agent.history_repair import is_whole
from dragoman.drivers import Scripted, ScriptedDriver
from dragoman.ir import Message, ToolResult
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
    asked = agent_of([Scripted(calls=[("pay", {"amount": 1})]), "Ok."], tools=[pay], ask=lambda _: True)
    assert run(asked.run("Go")).text == "Ok."
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
