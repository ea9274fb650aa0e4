"""Real coding agents, set up with what `--print-env` prints, run through the gateway with models of other families.

Each runs a streamed tool loop: the model asks for a command, the agent runs it, the model repeats its result.
scripts/try_agents.py tries all agents with all families.
"""

from pathlib import Path

import pytest

from dragoman.sim.server import Simulator
from tests.gateway.agents import AGENTS, run, turns
from tests.gateway.installing import installed, npm_packages
from tests.gateway.running import RunningGateway
from tests.sim.test_sim_pairs import MODELS
from tests.support.promises import promise

RUNS = [
    ("claude", "openai-responses"),
    ("claude", "gemini"),
    ("codex", "anthropic-messages"),
    ("codex", "gemini"),
    ("gemini", "anthropic-messages"),
    ("gemini", "openai-responses"),
    ("opencode", "gemini"),
]


@promise("gateway:recipe-agents", "gateway:agents")
@pytest.mark.parametrize(("name", "target"), RUNS)
def test_a_tool_loop(gateway: RunningGateway, dragoman_sim: Simulator, tmp_path: Path, name: str, target: str) -> None:
    agent = AGENTS[name]
    program = installed(name, npm_packages, agent.program)
    dragoman_sim.play(*turns())
    model = f"as-{target}/{MODELS[target]}"
    ended = run(agent, program, url=gateway.url, model=model, home=tmp_path)
    assert ended.good, ended.output[-3000:]
    records = [line for line in gateway.log.lines if line["event"] == "request"]
    assert {(record["client"], record["model"], record["status"]) for record in records} == {(agent.format, model, 200)}
    assert any(record["stream"] for record in records)
    invented = [loss for record in records for loss in record.get("losses", ()) if "signature" in loss]
    assert not invented, "what the vendor signed did not come back to it"


OWN = {"claude": "claude-opus-5-5", "codex": "gpt-5-codex"}


@promise("gateway:recipe-agents", "gateway:same-bytes")
@pytest.mark.parametrize("name", OWN)
def test_requests_of_an_agent_reach_its_own_vendor_unchanged(
    gateway: RunningGateway, dragoman_sim: Simulator, tmp_path: Path, name: str
) -> None:
    """The bytes pass unchanged, so this tests the simulator, which has to accept what the vendor accepts."""
    agent = AGENTS[name]
    program = installed(name, npm_packages, agent.program)
    dragoman_sim.play(*turns())
    ended = run(agent, program, url=gateway.url, model=OWN[name], home=tmp_path)
    assert ended.good, ended.output[-3000:]
    assert {line["status"] for line in gateway.log.lines if line["event"] == "request"} == {200}


def test_every_agent_recipe_is_tested() -> None:
    assert {name for name, _ in RUNS} == set(AGENTS)
