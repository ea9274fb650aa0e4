"""The same scenario on the simulators of all providers, over real HTTP: the same events as from a script."""

import asyncio
import json
import subprocess
from collections.abc import Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import dragoman
from dragoman.agent import Agent, NestedEvent, SessionStore, StepCompleteEvent, agent_tool, done, tool, toolset
from dragoman.agent.evaluation import Case, evaluate
from dragoman.agent.history_repair import is_whole
from dragoman.agent.mcp import HttpServer, McpServers
from dragoman.drivers import Scripted, ScriptedDriver
from dragoman.drivers.providers import PROVIDERS
from dragoman.drivers.retries import RetryPolicy
from dragoman.drivers.telemetry_names import vendor_of
from dragoman.ir import Image, Message, Text, Usage
from dragoman.sim.server import Simulator
from tests.cli.command import COMMAND, environment
from tests.drivers.partners import COMPATIBLE, EACH_FORMAT, EVERY, FORMATS, KEY, PARTNERS, Partner, driver_of, talking
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
    stories = []
    for event in story:
        if event["type"] in {"usage", "reasoning"}:
            continue
        kept = {key: value for key, value in event.items() if key not in {"timestamp", "duration_ms"}}
        for key in ("step_id", "tool_call_id"):
            if key in kept:
                kept[key] = ids.setdefault(kept[key], f"id {len(ids) + 1}")
        stories.append(kept)
    return stories


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
            text = "".join(event["content"] for event in story if event["type"] == "text_delta")
            assert (
                alike([event for event in story if event["type"] not in {"text_delta", "reasoning_delta"}]) == expected
            )
            assert text == ("".join([*TEXTS, "You are welcome."]) if deltas else "")
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


# ── tools of MCP servers, spans, evaluations ──────────────────────────────────────────────────────────────────


@promise("agent:mcp", "agent:mcp-results", "agent:mcp-requests", "agent:same-story")
def test_tools_of_a_server_on_every_provider(dragoman_sim: Simulator, mcp_server_url: str) -> None:
    """Text, data, pictures and errors of a server reach every model, and every model answers what the server asks."""
    address = HttpServer(url=mcp_server_url)
    calls: list[tuple[str, dict[str, Any]]] = [
        ("add", {"a": 2, "b": 3}),
        ("greet", {"name": "Ada"}),
        ("draw", {}),
        ("fail", {"reason": "no luck"}),
        ("add", {"a": "two"}),
        ("order", {}),
    ]

    async def session() -> None:
        chosen: list[Any] = []
        elicit = lambda _message, _schema: {"seats": 3}  # noqa: E731
        for partner in FORMATS:
            dragoman_sim.reset()
            async with talking(partner, dragoman_sim) as driver:
                servers = McpServers({"tests": address}, sampling=driver, elicit=elicit)
                async with servers:
                    tools = servers.tools()
                    dragoman_sim.play(
                        {"calls": [{"name": name, "arguments": arguments} for name, arguments in calls]},
                        {"text": "Yes."},  # what the server asks the model
                        {"text": "Done."},
                    )
                    agent = Agent(driver, tools=tools)
                    assert (await agent.run("Go")).text == "Done."
            found = [(one.kind, one.value) for message in agent.history for one in message.tool_results]
            assert [kind for kind, _ in found] == ["data", "text", "multimodal", "error", "error", "text"], partner.name
            assert found[5][1] == "3 seats, says the model: Yes.", partner.name
            assert [recorded.status for recorded in dragoman_sim.requests] == [200] * 3, partner.name
            chosen.append(partner)
        assert len(chosen) == len(FORMATS)

    asyncio.run(session())


@promise("agent:spans", "agent:same-story")
@EVERY
@pytest.mark.parametrize("deltas", [False, True], ids=["whole", "streamed"])
def test_spans_of_every_provider(partner: Partner, deltas: bool, dragoman_sim: Simulator) -> None:  # noqa: FBT001
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))

    async def session() -> Usage:
        dragoman_sim.play({"calls": [{"name": "get_weather", "arguments": {"city": "Rome"}}]}, {"text": "Warm."})
        async with talking(partner, dragoman_sim) as driver:
            agent = Agent(driver, tools=[get_weather], tracer=provider.get_tracer("t"), deltas=deltas, name="tester")
            return (await agent.run("How warm is it?")).usage

    usage = run(session())
    spans = exporter.get_finished_spans()
    model = partner.model.partition("/")[2]
    chat = f"chat {model}"
    assert [span.name for span in spans] == [chat, "execute_tool get_weather", chat, "invoke_agent tester"]
    whole = spans[-1]
    for span in spans:
        found = dict(span.attributes or {})
        assert found["gen_ai.operation.name"] == span.name.split()[0]
        if span is not whole:
            assert span.parent is not None
            assert span.parent.span_id == whole.context.span_id
        if span.name == chat:
            assert found["gen_ai.provider.name"] == vendor_of(partner.provider)
            assert found["gen_ai.request.model"] == model
            assert found["gen_ai.response.finish_reasons"]
    assert dict(whole.attributes or {})["gen_ai.usage.output_tokens"] == usage.output
    ends = [dict(span.attributes or {}).get("gen_ai.response.finish_reasons") for span in spans if span.name == chat]
    assert ends == [("tool_calls",), ("stop",)]


CASES = '[[case]]\nprompt = "What is the weather in Rome?"\ncontains = "degrees"\ncalls = ["get_weather"]\n'
TOOLS_FILE = '''
from dragoman import tool


@tool
def get_weather(city: str) -> str:
    """Tell the weather of a city."""
    return f"18 degrees in {city}"
'''


@promise("agent:eval", "agent:same-story")
@EVERY
def test_cases_are_evaluated_with_every_provider(partner: Partner, dragoman_sim: Simulator) -> None:
    cases = [
        Case(prompt="How warm is it?", contains="18.5", calls=("get_weather",)),
        Case(prompt="?", contains="never"),
    ]

    async def session() -> None:
        call = {"calls": [{"name": "get_weather", "arguments": {"city": "Rome"}}]}
        dragoman_sim.play(call, {"text": "18.5 degrees."}, {"text": "No."})
        async with talking(partner, dragoman_sim) as driver:
            score = await evaluate(cases, lambda: Agent(driver, tools=[get_weather]), model=driver.name, concurrency=1)
        assert [one.passed for one in score.outcomes] == [True, False]
        assert score.outcomes[0].output_tokens > 0

    run(session())


@promise("agent:eval")
def test_the_command_evaluates_all_providers_whose_address_is_in_the_environment(
    dragoman_sim: Simulator, tmp_path: Path
) -> None:
    (tmp_path / "cases.toml").write_text(CASES, encoding="utf-8")
    (tmp_path / "tools.py").write_text(TOOLS_FILE, encoding="utf-8")
    variables, models = dict(environment()), list[str]()
    for partner in (*PARTNERS, *COMPATIBLE):
        provider = PROVIDERS[partner.provider]
        known = provider.base_url_environment and provider.key_environment and "credentials" not in partner.options()
        if known and partner.model not in models:
            models.append(partner.model)
            variables[provider.base_url_environment[0]] = dragoman_sim.url + partner.mount
            variables[provider.key_environment[0]] = KEY
    assert len(models) >= 10
    ended = subprocess.run(  # noqa: S603
        [*COMMAND, "eval", "cases.toml", "--tools", "tools.py", "--json", *(f"-m{name}" for name in models)],
        cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    rows = [json.loads(line) for line in ended.stdout.splitlines()]
    assert {row["model"]: row["passed"] for row in rows} == dict.fromkeys(models, 1)
