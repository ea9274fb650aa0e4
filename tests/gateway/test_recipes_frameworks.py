"""Frameworks, set up with what `--print-env` prints, run a tool loop through the gateway with models of other families,
in every format that they support, streamed and not."""

import json
import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.gateway.agents import in_shell, printed
from tests.gateway.installing import HERE, installed, npm_packages, python_packages
from tests.gateway.running import RunningGateway
from tests.sim.test_sim_pairs import ANSWER, MODELS, QUESTION, WEATHER
from tests.support.promises import promise

# The target of each format: a model of another family that signs what it needs back.
TO = {
    "openai-chat": "anthropic-messages",
    "openai-responses": "gemini",
    "anthropic-messages": "openai-responses",
    "gemini": "anthropic-messages",
}
CASES = [
    {"client": client, "model": f"as-{target}/{MODELS[target]}", "streamed": streamed}
    for client, target in TO.items()
    for streamed in (False, True)
]


def _python(name: str, script: str) -> Callable[[], list[str]]:
    def command() -> list[str]:
        return [str(installed(name, python_packages, "python")), str(HERE / script)]

    return command


def _node() -> list[str]:
    package = installed("vercel-ai-sdk", npm_packages, "ai/package.json")
    run = 'cd "$0" && exec node "$@"'
    return ["bash", "-c", run, str(package.parents[2]), str(HERE / "vercel_loop.mjs")]


FRAMEWORKS: dict[str, Callable[[], list[str]]] = {
    "vercel-ai-sdk": _node,
    "langchain": _python("langchain", "langchain_loop.py"),
    "pydantic-ai": _python("pydantic-ai", "pydantic_ai_loop.py"),
}

# In the Responses API, it returns reasoning only to models whose names it knows.
FORGETFUL = {"pydantic-ai"}


@promise("gateway:recipe-frameworks")
@pytest.mark.parametrize("name", FRAMEWORKS)
def test_a_tool_loop_in_every_format(gateway: RunningGateway, tmp_path: Path, name: str) -> None:
    command = FRAMEWORKS[name]()
    given = json.dumps({"questions": [QUESTION], "weather": WEATHER, "cases": CASES})
    lines = printed(name, gateway.url, "anthropic/claude-sonnet-5")
    ended = in_shell(lines, [*command, given], home=tmp_path, path=Path(sys.executable).parent, environment={})
    assert ended.good, ended.output[-3000:]
    answers = json.loads(ended.stdout.splitlines()[-1])
    # Some frameworks add text of their own to results for Gemini.
    assert [re.findall("clear sky|heavy rain", answer) for answer in answers] == [[*WEATHER.values()] for _ in CASES]
    records = gateway.requests(2 * len(CASES))
    seen = [(line["client"], line["model"], line["stream"], line["status"]) for line in records]
    assert seen == [(case["client"], case["model"], case["streamed"], 200) for case in CASES for _ in range(2)]
    unsigned = [loss for line in records for loss in line.get("losses", ()) if "signature" in loss]
    assert not unsigned or name in FORGETFUL, "what the vendor signed did not come back to it"


FUNCTION = f"""
def get_weather(city: str) -> str:
    "Weather of a city"
    return {WEATHER!r}[city]
"""


@promise("gateway:recipe-frameworks")
def test_a_tool_loop_with_llm(gateway: RunningGateway, tmp_path: Path) -> None:
    program = installed("llm", python_packages, "llm")
    model = f"as-anthropic-messages/{MODELS['anthropic-messages']}"
    lines = printed("llm", gateway.url, model)
    command = ["llm", "-m", f"dragoman/{model}", "--functions", FUNCTION, QUESTION]
    # The lines are run twice, because the second run must not add the model to the file again.
    first = f"{lines}\n{shlex.join([*command, '--no-stream'])}\n{lines}"
    # The small model of other tests is installed as a plugin of llm, but without its dependencies.
    alone = {"LLM_LOAD_PLUGINS": ""}
    ended = in_shell(first, command, home=tmp_path, path=program.parent, environment=alone)
    assert ended.good, ended.output
    assert ended.stdout.count(ANSWER) == 2
    assert [line["stream"] for line in gateway.requests(4)] == [False, False, True, True]
    (models,) = tmp_path.rglob("extra-openai-models.yaml")
    assert models.read_text(encoding="utf-8").count("model_id") == 1
