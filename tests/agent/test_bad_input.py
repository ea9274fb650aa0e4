"""Bad input: a typed error that says what to do, and a history that stays valid, on every provider where it matters."""

import tempfile
from typing import Any

import msgspec
import pydantic
import pytest

from dragoman import connect_sync
from dragoman.agent import (
    Agent,
    Allow,
    BadDecisions,
    Deny,
    Limits,
    NoOutput,
    PartialOutputEvent,
    SchemaRefused,
    SessionStore,
    agent_tool,
    encode_event,
    tool,
)
from dragoman.agent.history_repair import is_whole
from dragoman.drivers import Scripted, ScriptedDriver
from dragoman.errors import DragomanError, InvalidType, InvalidValue
from dragoman.ir import Request
from dragoman.sim.server import Simulator
from tests.drivers.partners import EACH_FORMAT, Partner, talking
from tests.support.agents import agent_of, results_in, run
from tests.support.promises import promise

pytestmark = promise("agent:bad-input")


class Person(pydantic.BaseModel):
    name: str
    tags: list[str] = []


ADA = '{"name": "Ada Lovelace", "tags": ["a mathematician", "a writer", "and more of that"]}'

# ── outputs that cannot be serialised ─────────────────────────────────────────────────────────────────────────


@EACH_FORMAT
def test_the_model_learns_that_a_tool_returned_what_json_cannot_express(
    partner: Partner, dragoman_sim: Simulator
) -> None:
    @tool
    def give() -> Any:
        """Give something."""
        return {"a": object()}

    async def session() -> None:
        dragoman_sim.play({"calls": [{"name": "give", "arguments": {}}]}, {"text": "I see."})
        async with talking(partner, dragoman_sim) as driver:
            agent = Agent(driver, tools=[give])
            assert (await agent.run("Go")).text == "I see."
        ((_, kind, value),) = results_in(agent.history)
        assert kind == "error"
        assert "give returned a value that JSON cannot express" in value
        assert is_whole(agent.history)

    run(session())


def test_a_sub_agent_whose_value_has_no_json_is_an_error_of_its_call() -> None:
    inner = Agent(ScriptedDriver(lambda _: '{"value": 3}'), output_type=int, output_validators=lambda _: object())
    worker = agent_tool(inner, name="worker", description="Works.")
    agent = agent_of([Scripted(calls=[("worker", {"task": "x"})]), "I see."], tools=[worker])
    assert run(agent.run("Go")).text == "I see."
    assert results_in(agent.history)[0][1] == "error"


def test_partial_values_of_any_type_are_events_in_json_and_do_not_disturb_a_session() -> None:
    with SessionStore(tempfile.mkdtemp()) as store:
        agent = Agent(ScriptedDriver([ADA]), output_type=Person, session=store.open("s"))

        async def session() -> list[Any]:
            return [event async for event in agent.run_stream("?", partials=True)]

        events = run(session())
        partials = [event for event in events if isinstance(event, PartialOutputEvent)]
        assert isinstance(partials[-1].output, Person)
        assert msgspec.json.decode(encode_event(partials[-1]))["output"] == msgspec.json.decode(ADA)
        assert msgspec.json.decode(encode_event(PartialOutputEvent(3 + 4j)))["output"] == "(3+4j)"
        assert [line.event.type for line in store.resume("s").log() if line.event is not None] == ["final"]


# ── resuming ──────────────────────────────────────────────────────────────────────────────────────────────────


@tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


def paused(**options: Any) -> Agent:
    agent = agent_of([Scripted(calls=[("pay", {"amount": 5})]), "Done."], tools=[pay], **options)
    assert run(agent.run("Go")).reason == "pending"
    return agent


@pytest.mark.parametrize(
    ("decisions", "words"),
    [
        ({}, "no decision for: call_1 (pay); give Allow(), Deny('why') or a result for each"),
        ({"call_2": Allow()}, "unknown calls: call_2"),
        ({"call_1": Allow(), "call_2": Deny()}, "unknown calls: call_2"),
        ({"call_1": None}, "call_1: None is not a decision; give Allow(), Deny('why') or a result"),
    ],
)
def test_unknown_and_missing_decisions_say_what_to_give(decisions: dict[str, Any], words: str) -> None:
    agent = paused()
    before = agent.history
    with pytest.raises(BadDecisions) as caught:
        run(agent.resume(decisions=decisions))
    assert words in str(caught.value)
    assert isinstance(caught.value, DragomanError)
    assert agent.history == before
    assert run(agent.resume(decisions={"call_1": Allow()})).text == "Done."


def test_a_tool_that_is_gone_says_what_to_do() -> None:
    other = Agent(ScriptedDriver(["Done."]), history=paused().history)
    with pytest.raises(BadDecisions, match="this agent has no tool 'pay': add it, deny or give a result"):
        run(other.resume(decisions={"call_1": Allow()}))
    assert run(other.resume(decisions={"call_1": "paid by hand"})).text == "Done."


def test_a_tool_whose_parameters_changed_does_not_run_with_the_old_arguments() -> None:
    @tool(name="pay", needs_approval=True)
    def pay_in(amount: int, currency: str) -> str:
        """Pay."""
        raise AssertionError(f"it ran: {amount} {currency}")

    other = Agent(ScriptedDriver(["I see."]), tools=[pay_in], history=paused().history)
    assert run(other.resume(decisions={"call_1": Allow()})).text == "I see."
    ((_, kind, value),) = results_in(other.history)
    assert kind == "error"
    assert "invalid arguments for pay" in value
    assert is_whole(other.history)


def test_a_result_that_has_no_json_is_refused_before_anything_changes() -> None:
    agent = paused()
    before = agent.history
    with pytest.raises(BadDecisions, match="call_1: its result cannot be expressed in JSON"):
        run(agent.resume(decisions={"call_1": {"a": object()}}))
    assert agent.history == before
    assert run(agent.resume(decisions={"call_1": "x"})).text == "Done."


# ── schemas ───────────────────────────────────────────────────────────────────────────────────────────────────


class Tree(msgspec.Struct):
    name: str
    counts: dict[str, int]
    children: list["Tree"] = []


@EACH_FORMAT
def test_a_schema_that_a_provider_refuses_says_what_to_do(partner: Partner, dragoman_sim: Simulator) -> None:
    """Whatever each API makes of a difficult schema: a value, or an error that names the type and the way out."""

    async def session() -> None:
        async with talking(partner, dragoman_sim) as driver:
            dragoman_sim.play({"text": '{"name": "x", "counts": {"a": 1}, "children": []}', "times": 0})
            agent = Agent(driver, output_type=Tree, output_mode="native")
            refused = None
            try:
                assert (await agent.run("?")).output.counts == {"a": 1}
            except SchemaRefused as error:
                refused = str(error)
            assert is_whole(agent.history)
            if refused is not None:
                assert "Tree" in refused
                assert 'output_mode="tool"' in refused
                other = Agent(driver, output_type=Tree, output_mode="prompted", history=agent.history)
                assert (await other.run("?")).output.counts == {"a": 1}

    run(session())


def test_types_without_a_schema_are_refused_before_anything_is_sent() -> None:
    driver = ScriptedDriver(["x"])
    with pytest.raises(InvalidType, match="a type with a JSON Schema"):
        Agent(driver, output_type=object())
    with pytest.raises(InvalidType, match="a type with a JSON Schema"):
        run(driver.query("?", output_type=object()))
    with pytest.raises(InvalidType, match="a type with a JSON Schema"):
        driver.stream_query("?", output_type=object())
    assert driver.requests == []


# ── limits ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", Limits.__struct_fields__)
@pytest.mark.parametrize("value", [0, -1, float("nan")])
def test_a_limit_of_zero_says_to_leave_it_out(name: str, value: float) -> None:
    with pytest.raises(InvalidValue, match="leave it out for no limit") as caught:
        Limits(**{name: value})  # type: ignore[arg-type]
    assert f"Limits.{name}" in str(caught.value)


def test_no_turns_at_all_are_refused() -> None:
    with pytest.raises(InvalidValue, match="at least 1"):
        Agent(ScriptedDriver([]), max_iterations=0)


def test_no_corrections_at_all_end_with_the_first_bad_answer() -> None:
    def answer(_request: Request) -> str:
        return "no JSON"

    result = run(Agent(ScriptedDriver(answer), output_type=int, output_retries=0).run("?"))
    assert (result.reason, result.turns) == ("invalid_output", 1)
    with pytest.raises(NoOutput, match="the model gave no answer of the output type"):
        _ = result.output


@pytest.mark.parametrize("driver", [None, 5, connect_sync("ollama/qwen3", base_url="http://127.0.0.1:9")])
def test_an_agent_needs_a_driver(driver: Any) -> None:
    with pytest.raises(InvalidType, match="driver: expected provider/model, or a driver of connect"):
        Agent(driver)


@pytest.mark.parametrize("given", ["lookup", 5, {"name": "lookup"}])
def test_options_of_a_tool_have_names(given: Any) -> None:
    with pytest.raises(InvalidType, match=r"tool: expected a function, found \w+; options have names: @tool\(name="):
        tool(given)


@pytest.mark.parametrize(
    ("tools", "words"),
    [
        (print, "tools: expected a list, found builtin_function_or_method; put it into a list"),
        (5, "tools: expected a list, found int"),
        ("lookup", "tools: expected a list, found str"),
        ([5], r"tools\[0\]: expected a function, or a tool made of one, found int"),
        (["lookup"], r"tools\[0\]: expected a function, or a tool made of one, found str"),
    ],
)
def test_the_tools_of_an_agent_are_a_list_of_functions(tools: Any, words: str) -> None:
    with pytest.raises(InvalidType, match=words):
        Agent(ScriptedDriver([]), tools=tools)
