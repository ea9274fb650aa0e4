"""Retries that the model can learn from, time-outs and idempotency of tools, and limits of runs."""

import asyncio
from decimal import Decimal
from typing import Any

import pytest

from dragoman import catalogue
from dragoman.agent import Agent, Clock, LimitEvent, Limits, Retry, ToolContext, tool
from dragoman.agent.history_repair import is_whole
from dragoman.catalogue import Model, Prices
from dragoman.drivers import Scripted, ScriptedDriver
from dragoman.errors import InvalidValue, NotConfigured
from dragoman.ir import Usage
from dragoman.sim.server import Simulator
from tests.drivers.partners import EACH_FORMAT, Partner, talking
from tests.support.agents import agent_of, results_in, run, run_events, types
from tests.support.promises import promise


@tool
def guess(number: int) -> str:
    """Guess the number."""
    if number != 7:
        raise Retry(f"{number} is too {'low' if number < 7 else 'high'}")
    return "right"


def calling(*numbers: int) -> list[Any]:
    return [Scripted(calls=[("guess", {"number": number})]) for number in numbers]


@promise("agent:retry")
def test_what_was_wrong_reaches_the_model_as_an_error_result() -> None:
    agent = agent_of([*calling(3, 9, 7), "It was 7."], tools=[guess])
    assert run(agent.run("Guess")).text == "It was 7."
    assert [(kind, value) for _, kind, value in results_in(agent.history)] == [
        ("error", "3 is too low"),
        ("error", "9 is too high"),
        ("text", "right"),
    ]


@promise("agent:retry")
@pytest.mark.parametrize("bound", [0, 2])
def test_tries_are_bounded_per_tool_and_a_success_begins_a_new_count(bound: int) -> None:
    ran: list[int] = []

    @tool(max_retries=bound)
    def pick(number: int) -> str:
        """Pick."""
        ran.append(number)
        if number:
            raise Retry("no")
        return "yes"

    picks = [1] * (bound + 1)
    script = [Scripted(calls=[("pick", {"number": number})]) for number in [0, *picks, 5, 6]]
    agent = agent_of([*script, "I give up."], tools=[pick])
    assert run(agent.run("Pick")).text == "I give up."
    assert ran == [0, *picks]
    assert results_in(agent.history)[-1][2].startswith("pick has failed")


@promise("agent:idempotent")
def test_an_idempotent_tool_is_tried_again_by_itself_and_another_is_not() -> None:
    keys: list[str] = []

    def flaky(context: ToolContext) -> str:
        """Fail twice."""
        keys.append(context.idempotency_key)
        if len(keys) % 3:
            raise OSError("no route")
        return "done"

    for idempotent, expected in ((True, ["text"]), (False, ["error"])):
        keys.clear()
        agent = agent_of(
            [Scripted(calls=[("flaky", {})]), "Well."], tools=[tool(idempotent=idempotent, max_retries=2)(flaky)]
        )
        run(agent.run("Go"))
        assert [kind for _, kind, _ in results_in(agent.history)] == expected
        assert len(set(keys)) == 1


@promise("agent:idempotent")
def test_time_outs_count_per_attempt() -> None:
    began: list[float] = []

    @tool(timeout=0.5, idempotent=True, max_retries=1)
    async def slow() -> str:
        """Wait."""
        began.append(1)
        await asyncio.sleep(0 if len(began) == 2 else 5)
        return "there"

    agent = agent_of([Scripted(calls=[("slow", {})]), "Ok."], tools=[slow])
    run(agent.run("Go"))
    assert results_in(agent.history) == [("call_1", "text", "there")]


# ── limits ────────────────────────────────────────────────────────────────────────────────────────────────────


def spender(limits: Limits, name: str = "scripted/test", **options: Any) -> Agent:
    script = [
        Scripted(text="Hm.", calls=[("guess", {"number": 7}), ("guess", {"number": 8})], usage=Usage(100, 10))
    ] * 50
    return Agent(ScriptedDriver(script, name=name), tools=[guess], limits=limits, **options)


@promise("agent:limits")
@pytest.mark.parametrize(
    ("limits", "name", "turns", "used"),
    [
        (Limits(requests=3), "requests", 3, 3),
        (Limits(tool_calls=5), "tool_calls", 3, 4),
        (Limits(input_tokens=250), "input_tokens", 3, 300),
        (Limits(output_tokens=10), "output_tokens", 1, 10),
        (Limits(total_tokens=120), "total_tokens", 2, 220),
    ],
)
def test_a_limit_ends_the_run_as_its_own_event_and_result(limits: Limits, name: str, turns: int, used: int) -> None:
    async def session() -> None:
        agent = spender(limits)
        events = [event async for event in agent.run_stream("Go")]
        assert isinstance(events[-1], LimitEvent)
        assert events[-1].limit == name
        assert "final" not in [event.type for event in events]
        result = agent.last_result
        assert result is not None
        assert result.limit is not None
        assert (result.reason, result.limit.limit, result.limit.used, result.turns) == ("limit", name, used, turns)
        assert result.text == "Hm."
        assert result.usage == Usage(100 * turns, 10 * turns)
        assert is_whole(agent.history)

    run(session())


@promise("agent:limits")
def test_cost_is_counted_by_the_catalogue_and_needs_a_price() -> None:
    catalogue.register(
        Model(provider="scripted", id="priced", prices=Prices(input=Decimal(1000), output=Decimal(1000)))
    )
    try:
        result = run(spender(Limits(cost=0.2), "scripted/priced").run("Go"))
        assert (result.reason, result.turns, result.cost) == ("limit", 2, Decimal("0.22"))
        unpriced = spender(Limits(cost=1))
        with pytest.raises(NotConfigured, match="price of scripted/test is not known"):
            run(unpriced.run("Go"))
        assert is_whole(unpriced.history)
    finally:
        catalogue.reset()


@promise("agent:limits")
def test_wall_time_is_checked_before_the_next_request() -> None:
    seconds = iter(range(1000))
    agent = spender(Limits(seconds=20), clock=Clock(lambda: 1.0, lambda: float(next(seconds))))
    result = run(agent.run("Go"))
    assert (result.reason, result.limit is not None and result.limit.limit) == ("limit", "seconds")
    assert 0 < result.turns < 20


@promise("agent:limits")
@pytest.mark.parametrize("name", Limits.__struct_fields__)
@pytest.mark.parametrize("value", [0, -1])
def test_a_limit_of_zero_is_a_typed_error(name: str, value: int) -> None:
    with pytest.raises(InvalidValue, match=f"Limits.{name}: expected a number above 0"):
        Limits(**{name: value})


@promise("agent:limits")
def test_the_next_run_begins_at_zero() -> None:
    agent = Agent(ScriptedDriver(["one", "two"]), limits=Limits(requests=1))
    assert run(agent.run("?")).text == "one"
    assert run(agent.run("?")).text == "two"


@promise("agent:limits")
def test_events_of_a_limited_run() -> None:
    agent = agent_of([*calling(7)], tools=[guess], limits=Limits(requests=1))
    assert types(run_events(agent)) == ["step_start", "tool_call", "tool_result", "step_complete", "limit"]


@promise("agent:retry", "agent:limits")
@EACH_FORMAT
def test_retries_and_limits_on_every_provider(partner: Partner, dragoman_sim: Simulator) -> None:
    async def session() -> None:
        calls = [{"calls": [{"name": "guess", "arguments": {"number": number}}]} for number in (3, 7, 7)]
        dragoman_sim.play(*calls)
        async with talking(partner, dragoman_sim) as driver:
            agent = Agent(driver, tools=[guess], limits=Limits(tool_calls=2))
            result = await agent.run("Guess")
            assert (result.reason, result.turns, result.usage.input > 0) == ("limit", 3, True)
            assert [value for _, _, value in results_in(agent.history)][:2] == ["3 is too low", "right"]
            assert is_whole(agent.history)
            dragoman_sim.play({"text": "It was 7."})
            assert (await agent.run("Well?")).text == "It was 7."

    run(session())
