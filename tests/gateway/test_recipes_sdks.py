"""The vendors' SDKs, configured only by what `--print-env` prints, evaluated by a shell."""

import os
import subprocess
from collections.abc import Callable
from typing import Any

import boto3  # type: ignore[import-untyped]
import cohere
import ollama
import pytest
from anthropic import Anthropic
from google.genai import Client
from openai import OpenAI

from dragoman.gateway.recipes import RECIPES
from tests.gateway.agents import AGENTS, printed
from tests.gateway.running import RunningGateway
from tests.gateway.test_recipes_frameworks import FRAMEWORKS
from tests.gateway.test_sdks import LOOPS
from tests.sim.test_sim_pairs import ANSWER, MODELS
from tests.support.promises import promise

# Recipe -> the client, how to close it, and the formats that it uses, each with the family of the target.
SDKS: dict[str, tuple[Callable[[], Any], Callable[[Any], None], dict[str, str]]] = {
    "openai": (
        OpenAI,
        lambda client: client.close(),
        {"openai-chat": "anthropic-messages", "openai-responses": "gemini"},
    ),
    "anthropic": (Anthropic, lambda client: client.close(), {"anthropic-messages": "openai-responses"}),
    "google-genai": (Client, lambda client: client.close(), {"gemini": "anthropic-messages"}),
    "ollama": (ollama.Client, lambda client: client._client.close(), {"ollama-chat": "gemini"}),  # noqa: SLF001
    "cohere": (
        lambda: cohere.ClientV2(base_url=os.environ["CO_API_URL"]),
        lambda _client: None,
        {"cohere-chat": "anthropic-messages"},
    ),
    "bedrock": (
        lambda: boto3.client("bedrock-runtime"),
        lambda client: client.close(),
        {"bedrock-converse": "openai-chat"},
    ),
}


def evaluated(lines: str) -> dict[str, str]:
    """Return the variables that these lines set in a shell."""
    script = f"set -eu\n{lines}\nenv -0"
    completed = subprocess.run(["bash", "-c", script], env={"PATH": "/usr/bin:/bin"}, capture_output=True, check=True)  # noqa: S603, S607
    variables = dict(line.split("=", 1) for line in completed.stdout.decode().split("\0") if line)
    return {name: value for name, value in variables.items() if name not in {"PATH", "PWD", "SHLVL", "_"}}


@promise("gateway:recipe-sdks")
@pytest.mark.parametrize("name", SDKS)
def test_a_tool_loop(gateway: RunningGateway, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    make, let_go, formats = SDKS[name]
    monkeypatch.delenv("GOOGLE_API_KEY", raising=False)
    for variable, value in evaluated(printed(name, gateway.url, "any/model")).items():
        monkeypatch.setenv(variable, value)
    client = make()
    for format, target in formats.items():
        for streamed in (False, True):
            assert LOOPS[format](client, f"as-{target}/{MODELS[target]}", streamed=streamed) == ANSWER
    let_go(client)


def test_every_recipe_is_tested_with_its_client() -> None:
    assert {*SDKS, *FRAMEWORKS, *(agent.recipe for agent in AGENTS.values()), "llm"} == set(RECIPES)
