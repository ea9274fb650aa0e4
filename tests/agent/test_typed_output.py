"""Answers as values of a type: on every provider, in every mode, corrected by the model, and while they come in."""

import enum
from dataclasses import dataclass
from typing import Any, Literal, TypedDict

import msgspec
import pydantic
import pytest

from dragoman.agent import Agent, NoOutput, PartialOutputEvent, Retry, SchemaRefused, tool
from dragoman.agent.history_repair import is_whole
from dragoman.codecs.registry import codec
from dragoman.drivers import Scripted, ScriptedDriver
from dragoman.drivers.partial_output import PartialReader, completions
from dragoman.drivers.sync import SyncDriver
from dragoman.drivers.typed_output import TOOL_NAME, OutputMode, mode_for, output_of
from dragoman.errors import CallCancelled, InvalidRequest, InvalidType, InvalidValue, ProviderError
from dragoman.ir import Failure, Message, Refusal
from dragoman.sim.server import Simulator
from tests.drivers.partners import EACH_FORMAT, Partner, talking
from tests.support.agents import run
from tests.support.promises import promise

pytestmark = promise("agent:typed-output")


class City(msgspec.Struct):
    name: str
    degrees: float
    tags: list[str] = []


@dataclass
class Dog:
    bark: str


@dataclass
class Cat:
    meow: str


class Point(TypedDict):
    x: int
    y: int


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Person(pydantic.BaseModel):
    name: str
    age: int


ROME = City("Rome", 18.5, ["old"])
VALUES: list[tuple[Any, str, Any]] = [
    (City, '{"name":"Rome","degrees":18.5,"tags":["old"]}', ROME),
    (Dog, '{"bark":"wau"}', Dog("wau")),
    (Point, '{"x":1,"y":2}', {"x": 1, "y": 2}),
    (Literal["yes", "no"], '{"value":"yes"}', "yes"),
    (Colour, '{"value":"blue"}', Colour.BLUE),
    (int | None, '{"value":null}', None),
    (Dog | Cat, '{"value":{"meow":"miau"}}', Cat("miau")),
    (list[City], '{"value":[{"name":"Rome","degrees":18.5,"tags":["old"]}]}', [ROME]),
    (Person, '{"name":"Ada","age":36}', Person(name="Ada", age=36)),
    (bool, '{"value":true}', True),
]
MODES: list[OutputMode] = ["native", "tool", "prompted"]


def lines(mode: OutputMode, *texts: str) -> list[Any]:
    """Answers that give these texts in the mode."""
    if mode == "tool":
        return [Scripted(calls=[(TOOL_NAME, msgspec.json.decode(text))]) for text in texts]
    return list(texts)


@tool
def look(place: str) -> str:
    """Look somewhere."""
    return f"nothing in {place}"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("kind", "text", "value"), VALUES, ids=[str(row[0])[-20:] for row in VALUES])
def test_every_type_in_every_mode(kind: Any, text: str, value: Any, mode: OutputMode) -> None:
    async def session() -> None:
        found = await ScriptedDriver(lines(mode, text)).query("?", output_type=kind, output_mode=mode)
        assert (found.output, found.corrections) == (value, 0)
        agent = Agent(ScriptedDriver(lines(mode, text)), output_type=kind, output_mode=mode)
        result = await agent.run("?")
        assert (result.output, result.reason) == (value, "answer")
        assert is_whole(agent.history)

    run(session())


@pytest.mark.parametrize("mode", MODES)
def test_what_is_wrong_is_corrected_by_the_model_within_bounds(mode: OutputMode) -> None:
    bad, good = '{"name":"Rome"}', '{"name":"Rome","degrees":18.5,"tags":["old"]}'

    async def session() -> None:
        driver = ScriptedDriver(lines(mode, bad, good))
        found = await driver.query("?", output_type=City, output_mode=mode)
        assert (found.output, found.corrections) == (ROME, 1)
        assert "degrees" in str(driver.requests[1].messages[-1])
        agent = Agent(ScriptedDriver(lines(mode, bad, good)), output_type=City, output_mode=mode)
        assert (await agent.run("?")).output == ROME
        with pytest.raises(NoOutput, match="degrees"):
            await ScriptedDriver(lines(mode, bad, bad)).query("?", output_type=City, output_mode=mode, output_retries=1)
        spent = Agent(ScriptedDriver(lines(mode, bad, bad)), output_type=City, output_mode=mode, output_retries=1)
        result = await spent.run("?")
        assert result.reason == "invalid_output"
        assert "degrees" in result.text
        with pytest.raises(NoOutput):
            _ = result.output
        assert is_whole(spent.history)

    run(session())


@pytest.mark.parametrize("mode", MODES)
def test_validators_raise_retry_and_may_change_the_value(mode: OutputMode) -> None:
    def warm(city: City) -> City:
        if city.degrees < 0:
            raise Retry("it is never that cold there")
        return city

    async def named(city: City) -> City:
        return msgspec.structs.replace(city, name=city.name.upper())

    script = lines(mode, '{"name":"Rome","degrees":-5}', '{"name":"Rome","degrees":18.5,"tags":["old"]}')
    driver = ScriptedDriver(script)
    agent = Agent(driver, output_type=City, output_mode=mode, output_validators=[warm, named])
    assert run(agent.run("?")).output == msgspec.structs.replace(ROME, name="ROME")
    assert "never that cold" in str(driver.requests[1].messages[-1])


@EACH_FORMAT
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_on_every_provider_with_tools_in_the_mode_of_its_profile(
    partner: Partner,
    streamed: bool,  # noqa: FBT001
    dragoman_sim: Simulator,
) -> None:
    answer = {"name": "Rome", "degrees": 18.5, "tags": ["old"]}

    async def session() -> None:
        async with talking(partner, dragoman_sim) as driver:
            mode = driver.output_mode(beside_tools=True)
            written = msgspec.json.encode(answer).decode()
            last = {"calls": [{"name": TOOL_NAME, "arguments": answer}]} if mode == "tool" else {"text": written}
            dragoman_sim.play({"calls": [{"name": "look", "arguments": {"place": "Rome"}}]}, last)
            agent = Agent(driver, tools=[look], output_type=City, deltas=streamed)
            assert (await agent.run("How warm is it in Rome?")).output == ROME
            dragoman_sim.play({"text": written})
            alone = driver.output_mode(beside_tools=False)
            if alone != "tool":
                assert (await driver.query("How warm?", output_type=City)).output == ROME

    run(session())


@EACH_FORMAT
@pytest.mark.parametrize("mode", MODES)
def test_every_mode_is_accepted_by_every_provider(partner: Partner, mode: OutputMode, dragoman_sim: Simulator) -> None:
    answer = {"name": "Rome", "degrees": 18.5, "tags": ["old"]}

    async def session() -> None:
        async with talking(partner, dragoman_sim) as driver:
            written = msgspec.json.encode(answer).decode()
            call = {"calls": [{"name": TOOL_NAME, "arguments": answer}]}
            dragoman_sim.play(call if mode == "tool" else {"text": f"```json\n{written}\n```"})
            assert (await driver.query("How warm?", output_type=City, output_mode=mode)).output == ROME

    run(session())


def test_the_profile_chooses_the_mode() -> None:
    rows: list[tuple[str, str, OutputMode, OutputMode]] = [
        ("openai-responses", "openai/gpt-5.1", "native", "native"),
        ("anthropic-messages", "anthropic/claude-sonnet-4-6", "native", "native"),
        ("anthropic-messages", "anthropic/claude-3-haiku-20240307", "tool", "tool"),
        ("gemini", "gemini/gemini-2.5-flash", "native", "tool"),
        ("gemini", "gemini/gemini-3-flash-preview", "native", "native"),
        ("cohere-chat", "cohere/command-a-03-2025", "native", "tool"),
        ("deepseek", "deepseek/deepseek-chat", "tool", "tool"),
    ]
    for name, model, alone, beside in rows:
        profile = codec(name).profile
        found = [mode_for(profile, model, beside_tools=tools) for tools in (False, True)]
        assert found == [alone, beside], model


@pytest.mark.parametrize("mode", ["native", "prompted"])
def test_typed_partials_while_it_comes_in(mode: OutputMode) -> None:
    text = '{"name": "Rome", "degrees": 18.5, "tags": ["old", "large and sunny", "crowded", "on seven hills"]}'

    async def session() -> list[City]:
        agent = Agent(ScriptedDriver([text]), output_type=City, output_mode=mode)
        events = [event async for event in agent.run_stream("?", partials=True)]
        assert agent.last_result is not None
        assert agent.last_result.output.tags[-1] == "on seven hills"
        return [event.output for event in events if isinstance(event, PartialOutputEvent)]

    found = run(session())
    assert len(found) > 2
    assert all(isinstance(one, City) for one in found)
    assert [len(one.tags) for one in found] == sorted(len(one.tags) for one in found)


@EACH_FORMAT
def test_partials_of_real_streams(partner: Partner, dragoman_sim: Simulator) -> None:
    answer = {"name": "Rome", "degrees": 18.5, "tags": [f"tag number {index}" for index in range(12)]}

    async def session() -> None:
        async with talking(partner, dragoman_sim) as driver:
            mode = driver.output_mode(beside_tools=True)
            written = msgspec.json.encode(answer).decode()
            call = {"calls": [{"name": TOOL_NAME, "arguments": answer}]}
            dragoman_sim.play(call if mode == "tool" else {"text": written})
            agent = Agent(driver, tools=[look], output_type=City)
            events = [event async for event in agent.run_stream("?", partials=True)]
            partial = [event.output for event in events if isinstance(event, PartialOutputEvent)]
            assert agent.last_result is not None
            assert len(agent.last_result.output.tags) == 12
            assert all(isinstance(one, City) for one in partial)
            assert partial or mode == "tool"  # some give the arguments of a call as a whole

    run(session())


# ── a stream of a driver ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("kind", "text", "value"), VALUES, ids=[str(row[0])[-20:] for row in VALUES])
def test_a_stream_of_every_type_in_every_mode(kind: Any, text: str, value: Any, mode: OutputMode) -> None:
    async def session() -> None:
        stream = ScriptedDriver(lines(mode, text)).stream_query("?", output_type=kind, output_mode=mode)
        async with stream:
            partials = [one async for one in stream.partials()]
            found = await stream.result
            assert found is await stream.result
        assert found.output == value
        assert type(found.output) is type(value)
        assert all(isinstance(one, type(value)) for one in partials)
        assert found.corrections == 0

    run(session())


@EACH_FORMAT
@pytest.mark.parametrize("mode", MODES)
def test_streams_of_every_provider_in_every_mode(partner: Partner, mode: OutputMode, dragoman_sim: Simulator) -> None:
    answer = {"name": "Rome", "degrees": 18.5, "tags": [f"tag number {number}" for number in range(12)]}

    async def session() -> None:
        async with talking(partner, dragoman_sim) as driver:
            written = msgspec.json.encode(answer).decode()
            dragoman_sim.play(
                {"calls": [{"name": TOOL_NAME, "arguments": answer}]} if mode == "tool" else {"text": written}
            )
            stream = driver.stream_query("How warm?", output_type=City, output_mode=mode)
            partials = [one async for one in stream.partials()]
            found = (await stream.result).output
            assert msgspec.to_builtins(found) == answer
            assert [len(one.tags) for one in partials] == sorted(len(one.tags) for one in partials)
            assert partials[-1] == found
            if mode != "tool":
                assert "".join([text async for text in stream]) == written

    run(session())


@pytest.mark.parametrize("mode", MODES)
def test_a_streamed_answer_is_corrected_by_the_model_within_bounds(mode: OutputMode) -> None:
    bad, good = '{"name":"Rome"}', '{"name":"Rome","degrees":18.5,"tags":["old"]}'

    async def session() -> None:
        driver = ScriptedDriver(lines(mode, bad, good))
        found = await driver.stream_query("?", output_type=City, output_mode=mode).result
        assert (found.output, found.corrections) == (ROME, 1)
        assert "degrees" in str(driver.requests[1].messages[-1])
        stream = ScriptedDriver(lines(mode, bad, bad)).stream_query(
            "?", output_type=City, output_mode=mode, output_retries=1
        )
        with pytest.raises(NoOutput, match="after 1 corrections"):
            await stream.result

    run(session())


def test_a_stream_that_fails_is_refused_or_is_left() -> None:
    refusal = InvalidRequest(Failure("invalid_request", "Invalid schema for response_format 'City'", 400))

    async def session() -> None:
        with pytest.raises(SchemaRefused, match='output_mode="tool"'):
            await ScriptedDriver([refusal]).stream_query("?", output_type=City).result
        failed = await ScriptedDriver([refusal]).stream_query("?", output_type=City, errors="result").result
        with pytest.raises(NoOutput, match="the call failed: Invalid schema"):
            _ = failed.output
        whole = await ScriptedDriver([refusal]).query("?", output_type=City, errors="result")
        assert whole.failure is not None
        refused = Message("assistant", (Refusal("I will not."),))
        with pytest.raises(NoOutput, match="the model refused: I will not"):
            await ScriptedDriver([refused]).stream_query("?", output_type=City).result
        called = (
            await ScriptedDriver([Scripted(calls=[("look", {"place": "x"})])])
            .stream_query("?", output_type=City, tools=[look])
            .result
        )
        assert called.tool_calls is not None
        with pytest.raises(NoOutput, match="called tools"):
            _ = called.output
        left = ScriptedDriver(['{"name": "Rome"']).stream_query("?", output_type=City)
        async with left:
            async for _ in left.events():
                break
        with pytest.raises(CallCancelled):
            await left.result

    run(session())


@EACH_FORMAT
def test_a_request_that_fails_raises_from_its_partial_values(partner: Partner, dragoman_sim: Simulator) -> None:
    async def session() -> None:
        async with talking(partner, dragoman_sim) as driver:
            dragoman_sim.play({"error": "invalid"})
            stream = driver.stream_query("How warm?", output_type=City)
            with pytest.raises(ProviderError):
                async for _ in stream.partials():
                    pass

    run(session())


def test_a_typed_stream_by_waiting() -> None:
    text = '{"name": "Rome", "degrees": 18.5, "tags": ["old", "large and sunny", "crowded", "on seven hills"]}'
    driver = SyncDriver(ScriptedDriver([text, "Hello."]))
    with driver.stream_query("?", output_type=City) as stream:
        partials = list(stream.partials())
        assert partials[-1] == stream.result.output
        assert "".join(stream) == text
    assert driver.stream_query("Hi").result.content == "Hello."


def test_beginnings_of_json_are_completed() -> None:
    assert completions("no json") == []
    assert completions('x {"a": 1} y') == ['{"a": 1}']
    assert completions('{"a": [1, {"b": "c')[:2] == ['{"a": [1, {"b": "c"}]}', '{"a": [1, {}]}']
    assert completions('{"a": "b\\')[0] == '{"a": "b"}'
    reader = PartialReader(output_of(list[int]))
    text = '{"value": [' + ", ".join(map(str, range(100))) + "]}"
    found = [value for value in map(reader.feed, text) if isinstance(value, list)]
    assert len(found) > 3
    assert all(value[:-1] == list(range(len(value) - 1)) for value in found)


def test_a_type_without_a_schema_is_refused_beforehand() -> None:
    for kind in (object(), type(run), lambda: None):
        with pytest.raises(InvalidType, match="output_type"):
            Agent(ScriptedDriver([]), output_type=kind)
    with pytest.raises(InvalidValue, match="native, tool or prompted"):
        run(ScriptedDriver(["x"]).query("?", output_type=City, output_mode="magic"))  # type: ignore[call-overload]


def test_a_schema_that_the_provider_refuses_says_what_to_do() -> None:
    refusal = InvalidRequest(Failure("invalid_request", "Invalid schema for response_format 'City'", 400))

    async def session() -> None:
        with pytest.raises(SchemaRefused, match='output_mode="tool"'):
            await ScriptedDriver([refusal]).query("?", output_type=City)
        agent = Agent(ScriptedDriver([refusal]), output_type=City)
        with pytest.raises(SchemaRefused, match="City"):
            await agent.run("?")
        assert is_whole(agent.history)

    run(session())


def test_an_error_about_something_else_than_the_schema_is_raised_as_it_is() -> None:
    """Not as its own cause, which would be an endless chain."""
    error = InvalidRequest(Failure("invalid_request", "temperature must be at most 1", 400))

    async def session() -> None:
        for asking in (
            ScriptedDriver([error]).query("?", output_type=City),
            Agent(ScriptedDriver([error]), output_type=City).run("?"),
        ):
            with pytest.raises(InvalidRequest, match="temperature") as caught:
                await asking
            assert caught.value.__cause__ is None

    run(session())


def test_a_tool_named_like_the_output_tool_is_refused() -> None:
    @tool(name=TOOL_NAME)
    def own() -> str:
        """Answer."""
        return ""

    with pytest.raises(ValueError, match=TOOL_NAME):
        Agent(ScriptedDriver([]), tools=[own], output_type=City)


def test_without_an_output_type_the_output_is_the_text() -> None:
    result = run(Agent(ScriptedDriver(["Hello."])).run("Hi"))
    assert result.output == result.text == "Hello."


@promise("agent:typed-output")
@pytest.mark.parametrize("mode", ["tool", "prompted", "native"])
def test_a_validator_may_return_what_has_no_json(mode: Any) -> None:
    class Checked:
        def __init__(self, value: int) -> None:
            self.value = value

    answer: Any = Scripted(calls=[("final_answer", {"value": 3})]) if mode == "tool" else '{"value":3}'
    driver = ScriptedDriver([answer])
    agent = Agent(driver, output_type=int, output_mode=mode, output_validators=[Checked])
    result = run(agent.run("How many?"))
    assert isinstance(result.output, Checked)
    assert result.output.value == 3
    assert is_whole(agent.history)
