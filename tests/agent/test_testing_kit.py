"""The kit for tests of agents: recordings of whole runs, assertions about calls, and evaluations."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dragoman.agent import Agent, tool
from dragoman.agent.evaluation import Case, evaluate, median_interval, problem_with, read_cases, wilson
from dragoman.agent.testing import ReplayMismatch, assert_calls, record, replay
from dragoman.drivers import Scripted, ScriptedDriver
from dragoman.errors import InvalidValue
from dragoman.sim.server import Simulator
from tests.cli.command import environment
from tests.drivers.partners import EACH_FORMAT, FORMATS, KEY, Partner, driver_of, talking
from tests.support.agents import agent_of, plain, run
from tests.support.promises import promise


@tool
def get_weather(city: str) -> str:
    """Tell the weather."""
    return f"18 degrees in {city}"


# ── recordings ────────────────────────────────────────────────────────────────────────────────────────────────


@promise("agent:record-replay")
@EACH_FORMAT
@pytest.mark.parametrize("deltas", [False, True], ids=["whole", "streamed"])
def test_a_whole_run_is_recorded_and_replayed(
    partner: Partner,
    deltas: bool,  # noqa: FBT001
    dragoman_sim: Simulator,
    tmp_path: Path,
) -> None:
    file = tmp_path / "run.jsonl"

    async def story(driver: Any) -> list[Any]:
        agent = Agent(driver, tools=[get_weather], deltas=deltas)
        events = [plain(event) async for event in agent.run_stream("How warm is it in Rome?")]
        assert_calls(agent, ("get_weather", {"city": "Rome"}))
        unsteady = {"timestamp", "duration_ms"}
        return [{key: value for key, value in event.items() if key not in unsteady} for event in events]

    async def session() -> None:
        dragoman_sim.play({"calls": [{"name": "get_weather", "arguments": {"city": "Rome"}}]}, {"text": "18 degrees."})
        async with talking(partner, dragoman_sim) as driver:
            recorded = await story(record(driver, file))
        again = replay(partner.model, file, **_place(partner, dragoman_sim))
        assert await story(again) == recorded
        other = Agent(replay(partner.model, file, **_place(partner, dragoman_sim)), tools=[get_weather], deltas=deltas)
        with pytest.raises(ReplayMismatch, match="request 1"):
            await other.run("And in Oslo?")

    run(session())
    assert KEY not in file.read_text(encoding="utf-8")
    assert file.stat().st_mode & 0o077 == 0


def _place(partner: Partner, simulator: Simulator) -> dict[str, Any]:
    return {**partner.options(), "base_url": simulator.url + partner.mount, "environment": {}}


@promise("agent:record-replay")
def test_a_run_that_asks_more_than_was_recorded(dragoman_sim: Simulator, tmp_path: Path) -> None:
    partner, file = FORMATS[0], tmp_path / "run.jsonl"

    async def session() -> None:
        dragoman_sim.play({"text": "One."})
        driver = driver_of(partner, dragoman_sim)
        await Agent(record(driver, file)).run("Hello")
        await driver.close()
        agent = Agent(replay(partner.model, file, **_place(partner, dragoman_sim)))
        assert (await agent.run("Hello")).text == "One."
        with pytest.raises(ReplayMismatch, match="has 1 requests"):
            await agent.run("Again")

    run(session())


# ── assertions ────────────────────────────────────────────────────────────────────────────────────────────────


@promise("agent:assert-calls")
def test_calls_of_agents_messages_and_events() -> None:
    script: list[Any] = [Scripted(calls=[("get_weather", {"city": "Rome"}), ("get_weather", {"city": "Oslo"})]), "Ok."]
    agent = agent_of(script, tools=[get_weather])

    async def session() -> list[Any]:
        return [event async for event in agent.run_stream("Go")]

    for source in (run(session()), agent, agent.history):
        assert_calls(source, ("get_weather", {"city": "Rome"}), "get_weather")
        assert_calls(source, ("get_weather", {"city": "Oslo"}), ("get_weather", {"city": "Rome"}), in_order=False)
        with pytest.raises(AssertionError, match="call 1: expected get_weather"):
            assert_calls(source, ("get_weather", {"city": "Oslo"}), "get_weather")
        with pytest.raises(AssertionError, match="not expected"):
            assert_calls(source, "get_weather")
        with pytest.raises(AssertionError, match="call 3"):
            assert_calls(source, "get_weather", "get_weather", "get_weather")
    assert_calls(agent_of([]))


# ── evaluations ───────────────────────────────────────────────────────────────────────────────────────────────


@promise("agent:eval")
def test_what_a_case_expects() -> None:
    rows: list[tuple[dict[str, Any], str, bool]] = [
        ({"contains": "ROME"}, "In Rome.", True),
        ({"contains": ["rome", "oslo"]}, "In Rome.", False),
        ({"lacks": "oslo"}, "In Rome.", True),
        ({"lacks": ["rome"]}, "In Rome.", False),
        ({"matches": r"\d+ degrees"}, "18 degrees", True),
        ({"matches": r"^degrees"}, "18 degrees", False),
        ({"equals": "18"}, " 18\n", True),
        ({"equals": {"a": [1]}}, '```json\n{"a": [1]}\n```', True),
        ({"equals": {"a": [1]}}, "no", False),
    ]
    for given, text, right in rows:
        assert (problem_with(Case(prompt="?", **given), text) == "") is right, given


@promise("agent:eval")
def test_cases_are_read_and_mistakes_are_typed(tmp_path: Path) -> None:
    lines, toml = tmp_path / "a.jsonl", tmp_path / "a.toml"
    lines.write_text('{"prompt": "Hi", "contains": "hello"}\n\n{"prompt": "Bye"}\n', encoding="utf-8")
    toml.write_text('[[case]]\nprompt = "Hi"\ncontains = ["hello"]\n', encoding="utf-8")
    assert [case.prompt for case in read_cases(lines)] == ["Hi", "Bye"]
    assert read_cases(toml) == [Case(prompt="Hi", contains=("hello",))]
    for name, text in {
        "empty.jsonl": "",
        "key.jsonl": '{"prompt": "x", "nonsense": 1}',
        "type.toml": "[[case]]\nprompt = 5\n",
        "broken.jsonl": "{",
        "pattern.jsonl": '{"prompt": "x", "matches": "("}',
    }.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        with pytest.raises(InvalidValue, match=name):
            read_cases(tmp_path / name)


@promise("agent:eval")
def test_intervals() -> None:
    assert wilson(0, 0).high == 1.0
    assert wilson(10, 10).low == pytest.approx(0.722, abs=0.001)
    assert wilson(5, 10).low == pytest.approx(0.237, abs=0.001)
    assert wilson(0, 10).high == pytest.approx(0.278, abs=0.001)
    assert median_interval([1.0] * 5) == median_interval([1.0] * 5)
    found = median_interval([float(one) for one in range(100)])
    assert found.low < found.value < found.high


@promise("agent:eval")
def test_cases_are_run_by_agents_of_their_own() -> None:
    cases = [
        Case(prompt="Rome", contains="18 degrees", calls=("get_weather",)),
        Case(prompt="Oslo", contains="frost"),
    ]

    def answer(request: Any) -> Any:
        if request.messages[-1].role == "tool":
            return Scripted(text=str(request.messages[-1].tool_results[0].value))
        return Scripted(calls=[("get_weather", {"city": request.messages[-1].text})])

    score = run(
        evaluate(cases, lambda: Agent(ScriptedDriver(answer), tools=[get_weather]), model="scripted/test", repeat=2)
    )
    assert (score.passed, len(score.outcomes), score.cost) == (2, 4, None)
    assert [one.passed for one in score.outcomes] == [True, True, False, False]
    assert "does not contain 'frost'" in score.outcomes[2].problem


@promise("agent:eval")
def test_the_command_compares_models(dragoman_sim: Simulator, tmp_path: Path) -> None:
    cases = '[[case]]\nprompt = "Say hello"\n\n[[case]]\nname = "never"\nprompt = "Hi"\ncontains = "zzzz"\n'
    (tmp_path / "cases.toml").write_text(cases, encoding="utf-8")
    variables = {
        **environment(),
        "ANTHROPIC_BASE_URL": f"{dragoman_sim.url}/anthropic",
        "OPENAI_BASE_URL": f"{dragoman_sim.url}/openai/v1",
        "ANTHROPIC_API_KEY": "sk-test",
        "OPENAI_API_KEY": "sk-test",
    }

    def command(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(  # noqa: S603
            [sys.executable, "-m", "dragoman", "eval", *arguments], cwd=tmp_path, env=variables,
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip

    models = ("-m", "anthropic/claude-sonnet-5", "-m", "openai/gpt-5.1")
    ended = command("cases.toml", *models)
    assert (ended.returncode, ended.stderr) == (0, "")
    lines = ended.stdout.splitlines()
    assert lines[0].split()[:2] == ["model", "passed"]
    assert lines[1].startswith("anthropic/claude-sonnet-5  1/2 (50%)")
    assert "never: does not contain 'zzzz'" in ended.stdout
    strict = command("cases.toml", *models, "--min-pass", "0.9", "--json")
    assert strict.returncode == 5
    assert [json.loads(line)["passed"] for line in strict.stdout.splitlines()] == [1, 1]
    assert command("nothing.toml", *models).returncode == 2
    assert command("cases.toml", *models, "--repeat", "0").returncode == 2
