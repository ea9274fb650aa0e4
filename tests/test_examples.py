"""The programs of examples/ run, as their README says, against simulated providers."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from dragoman.sim.server import Simulator
from tests.support.promises import promise

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"


def run(
    command: Sequence[str], sim: Simulator | None = None, given: bytes = b"", path: Sequence[Path] = ()
) -> tuple[str, str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (*path, ROOT / "src")))}
    if sim is not None:
        environment |= {
            "ANTHROPIC_BASE_URL": sim.url,
            "ANTHROPIC_API_KEY": "any",
            "OPENAI_BASE_URL": f"{sim.url}/v1",
            "OPENAI_API_KEY": "any",
        }
    ended = subprocess.run(  # noqa: S603 - our own programs
        [sys.executable, *command], cwd=ROOT, env=environment, input=given, capture_output=True, check=False
    )
    assert ended.returncode == 0, ended.stderr.decode()[-2000:] + ended.stdout.decode()[-2000:]
    return ended.stdout.decode(), ended.stderr.decode()


@promise("front:examples")
def test_convert() -> None:
    out, losses = run(["examples/convert.py", "examples/request.json", "gemini"])
    path, _, body = out.partition("\n")
    assert path.endswith(":generateContent")
    assert [content["role"] for content in json.loads(body)["contents"]] == ["user", "model", "user"]
    assert "logit_bias" in losses


@promise("front:examples")
def test_tool_loop(dragoman_sim: Simulator) -> None:
    out, _ = run(["examples/tool_loop.py", "anthropic/claude-sonnet-5", "openai/gpt-5.6"], dragoman_sim)
    first, second = out.splitlines()
    assert "Oslo" in first
    assert "Paris" in second
    assert {request.path for request in dragoman_sim.requests} == {"/v1/messages", "/v1/responses"}


@promise("front:examples")
def test_agent(dragoman_sim: Simulator) -> None:
    question = "What is the weather in Oslo?"
    out, _ = run(["examples/agent.py", "anthropic/claude-sonnet-5", question], dragoman_sim)
    assert out.startswith("-> get_weather {'city': 'Oslo'}\n<- ")
    assert "rain" in out.splitlines()[-1]


@promise("front:examples")
def test_translate_stream() -> None:
    stream = (EXAMPLES / "stream.sse").read_bytes()
    out, _ = run(["examples/translate_stream.py", "openai-chat", "anthropic-messages"], given=stream)
    assert "".join(re.findall(r'"text":"([^"]+)"', out)) == "Hello"
    assert out.rstrip().endswith('{"type":"message_stop"}')


@promise("front:examples")
def test_offline(tmp_path: Path) -> None:
    """It runs in a clone, with the configuration of our own tests, but without the packages that these need."""
    (tmp_path / "hypothesis.py").write_text('raise ImportError("not installed")\n')
    plugins = ["-p", "no:cacheprovider", "-p", "no:hypothesispytest"]
    out, _ = run(["-m", "pytest", "-q", *plugins, "examples/test_offline.py"], path=[tmp_path])
    assert "1 passed" in out


@promise("front:examples")
@pytest.mark.parametrize("name", sorted(file.name for file in EXAMPLES.glob("*.py")))
def test_every_program_is_listed(name: str) -> None:
    assert f"]({name})" in (EXAMPLES / "README.md").read_text(encoding="utf-8")
