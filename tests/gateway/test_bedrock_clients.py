"""Clients of Claude on Bedrock (InvokeModel), set up with what `--print-env bedrock` prints, with models of others."""

import json
import re
import shlex
import sys
from pathlib import Path

import pytest

from dragoman.sim.server import Simulator
from tests.gateway.agents import AGENTS, WORD, in_shell, printed, turns
from tests.gateway.installing import HERE, installed, npm_packages, python_packages
from tests.gateway.running import RunningGateway
from tests.sim.test_sim_pairs import MODELS, QUESTION, WEATHER
from tests.support.promises import promise

TARGETS = ("openai-responses", "gemini", "anthropic-messages")
CASES = [
    {"model": f"as-{target}/{MODELS[target]}", "streamed": streamed} for target in TARGETS for streamed in (False, True)
]


@promise("gateway:bedrock-clients")
def test_a_tool_loop_with_chat_bedrock(gateway: RunningGateway, tmp_path: Path) -> None:
    python = installed("langchain-aws", python_packages, "python")
    given = json.dumps({"questions": [QUESTION], "weather": WEATHER, "cases": CASES})
    lines = printed("bedrock", gateway.url, "openai/gpt-5.6")
    command = [str(python), str(HERE / "bedrock_loop.py"), given]
    ended = in_shell(lines, command, home=tmp_path, path=Path(sys.executable).parent, environment={})
    assert ended.good, ended.output[-3000:]
    answers = json.loads(ended.stdout.splitlines()[-1])
    assert [re.findall("clear sky|heavy rain", answer) for answer in answers] == [[*WEATHER.values()] for _ in CASES], (
        answers
    )
    records = gateway.requests(2 * len(CASES))
    requests_seen = [(line["client"], line["model"], line["stream"], line["status"]) for line in records]
    assert requests_seen == [
        ("anthropic-messages", case["model"], case["streamed"], 200) for case in CASES for _ in range(2)
    ]


@promise("gateway:bedrock-clients")
@pytest.mark.parametrize("target", ["gemini"])
def test_a_tool_loop_with_claude_code(
    gateway: RunningGateway, dragoman_sim: Simulator, tmp_path: Path, target: str
) -> None:
    agent = AGENTS["claude"]
    program = installed("claude", npm_packages, agent.program)
    dragoman_sim.play(*turns())
    model = f"as-{target}/{MODELS[target]}"
    names = ("ANTHROPIC_MODEL", *(f"ANTHROPIC_DEFAULT_{size}_MODEL" for size in ("OPUS", "SONNET", "HAIKU")))
    further = {"CLAUDE_CODE_USE_BEDROCK": "1", "ANTHROPIC_BEDROCK_BASE_URL": gateway.url, **dict.fromkeys(names, model)}
    lines = printed("bedrock", gateway.url, model)
    exports = "\n".join(f"export {name}={shlex.quote(value)}" for name, value in further.items())
    shortcuts = tmp_path / "bin"
    shortcuts.mkdir()
    (shortcuts / "claude").symlink_to(program.resolve())
    ended = in_shell(f"{lines}\n{exports}", agent.command, home=tmp_path, path=shortcuts, environment=agent.environment)
    assert ended.good, ended.output[-3000:]
    assert WORD in ended.stdout
    records = [line for line in gateway.log.lines if line["event"] == "request"]
    assert {(line["client"], line["model"], line["status"]) for line in records} == {("anthropic-messages", model, 200)}
    assert any(line["stream"] for line in records)
