"""Real clients with models that sign: signed content returns to its vendor, whatever the client does with it.

Each client calls Gemini 3 and Claude with thinking through other formats. The conversation is a text with two parallel
calls, a text with a third call, an answer, and another question. The simulators refuse a signature that is missing,
altered or moved.
"""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from dragoman.gateway.config import read_config
from dragoman.sim.server import Simulator
from tests.gateway.installing import HERE, installed, more_python_packages, npm_packages, python_packages
from tests.gateway.running import RunningGateway, every_format, simulated
from tests.support.promises import promise

GEMINI, CLAUDE = "as-gemini/gemini-3.6-flash", "as-anthropic-messages/claude-sonnet-5"
WEATHER = {"Paris": "clear sky", "Oslo": "heavy rain", "Rome": "thick fog"}
QUESTIONS = ["What is the weather in Paris and in Oslo?", "Thanks. And what do you think?"]
LAST = "I think so."
PARIS, OSLO, ROME = ({"name": "get_weather", "arguments": {"city": city}} for city in WEATHER)
TURNS: list[dict[str, Any]] = [
    {
        "when": {"rounds": 0, "says": "Paris"},
        "reasoning": "I look.",
        "text": "Let me look.",
        "calls": [PARIS, OSLO],
    },
    {"when": {"rounds": 1}, "reasoning": "Rome too.", "text": "One more.", "calls": [ROME]},
    {"when": {"rounds": 2, "says": "fog"}, "reasoning": "Enough.", "text": "Clear, rain, fog."},
    {"when": {"rounds": 2, "says": "Thanks"}, "reasoning": "Hm.", "text": LAST},
]


def _python(name: str, packages: Callable[[], Path], script: str) -> Callable[[], list[str]]:
    return lambda: [str(installed(name, packages, "python")), str(HERE / script)]


def _node(package: str, script: str) -> Callable[[], list[str]]:
    def command() -> list[str]:
        found = installed(package, npm_packages, "zod/package.json")
        run = 'cd "$0" && exec node "$@"'
        return ["bash", "-c", run, str(found.parents[2]), str(HERE / script)]

    return command


CLIENTS: dict[str, Callable[[], list[str]]] = {
    "litellm": _python("litellm", more_python_packages, "litellm_loop.py"),
    "haystack": _python("haystack", more_python_packages, "haystack_loop.py"),
    "strands": _python("strands", more_python_packages, "strands_loop.py"),
    "langchain": _python("langchain", python_packages, "langchain_loop.py"),
    "pydantic-ai": _python("pydantic-ai", python_packages, "pydantic_ai_loop.py"),
    "langchain-js": _node("langchain-js", "langchain_loop.mjs"),
    "vercel-ai-sdk": _node("vercel-ai-sdk", "vercel_loop.mjs"),
}
FORMATS = {
    "anthropic-messages": (GEMINI,),
    "gemini": (CLAUDE,),
    "openai-chat": (GEMINI, CLAUDE),
    "openai-responses": (GEMINI, CLAUDE),
}
NOT_SPOKEN = {("litellm", "openai-responses"), ("strands", "openai-responses")}
ALWAYS_STREAMS = {"strands"}
# From any server, it merges parallel calls that are streamed in separate chunks into one call with broken arguments.
MERGES_CALLS = {("haystack", "gemini", True)}
THINKERS = {"litellm", "haystack", "strands", "langchain", "langchain-js"}
"""Clients with an option to ask for thinking in the Messages API."""


def cases(client: str) -> list[dict[str, Any]]:
    return [
        {"client": format, "model": model, "streamed": streamed, "thinks": thinks}
        for format, models in FORMATS.items()
        if (client, format) not in NOT_SPOKEN
        for model in models
        for streamed in ((True,) if client in ALWAYS_STREAMS else (False, True))
        if (client, format, streamed) not in MERGES_CALLS
        for thinks in ((False, True) if format == "anthropic-messages" and client in THINKERS else (False,))
    ]


@pytest.fixture(scope="module")
def remembering(dragoman_simulator: Simulator) -> Iterator[RunningGateway]:
    """A gateway that remembers signatures."""
    with RunningGateway(simulated(dragoman_simulator.url, every_format(dragoman_simulator.url))) as gateway:
        yield gateway


@pytest.fixture(scope="module")
def forgetting(dragoman_simulator: Simulator) -> Iterator[RunningGateway]:
    """A gateway without that memory: signatures travel with the client."""
    config = every_format(dragoman_simulator.url)
    config = structs.replace(config, server=read_config("[server]\nsignature_seconds = 0.0\n").server)
    with RunningGateway(simulated(dragoman_simulator.url, config)) as gateway:
        yield gateway


# Without the memory, a client has to send signatures back itself. Clients of Chat drop them, and Haystack keeps only
# signed parts, so both depend on the memory.
CARRYING = CLIENTS.keys() - {"haystack"}
CARRIED_IN = {"anthropic-messages", "gemini"}


@promise("gateway:signatures-survive-clients")
@pytest.mark.parametrize("client", CLIENTS)
def test_signed_content_returns_to_its_vendor(
    remembering: RunningGateway, forgetting: RunningGateway, dragoman_sim: Simulator, client: str
) -> None:
    """With both gateways in one run of the client, because its imports take most of the time."""
    carried = [case for case in cases(client) if client in CARRYING and case["client"] in CARRIED_IN]
    tried = [(remembering, cases(client)), (forgetting, carried)]
    turns = [
        {**case, "environment": addresses(gateway.url, is_vercel=client == "vercel-ai-sdk")}
        for gateway, some in tried
        for case in some
    ]
    dragoman_sim.play(*(turn for _ in turns for turn in TURNS))
    remembering.log.clear()
    forgetting.log.clear()
    answers = run(CLIENTS[client](), turns)
    assert answers == [LAST] * len(turns), list(zip(turns, answers, strict=True))
    for gateway, some in tried:
        records = gateway.requests(len(TURNS) * len(some))
        lost = [loss for line in records for loss in line.get("losses", ()) if "signature" in loss]
        assert lost == []
    sent = [request.body.decode() for request in dragoman_sim.requests if request.method == "POST"]
    for last in sent[len(TURNS) - 1 :: len(TURNS)]:
        for text in ("Let me look.", "One more.", *WEATHER.values()):
            assert last.count(text) == 1


def addresses(url: str, *, is_vercel: bool) -> dict[str, str]:
    return {
        "ANTHROPIC_BASE_URL": f"{url}/v1" if is_vercel else url,
        "OPENAI_BASE_URL": f"{url}/v1",
        "GOOGLE_GEMINI_BASE_URL": url,
        "GOOGLE_GENERATIVE_AI_BASE_URL": f"{url}/v1beta",
    }


def run(command: list[str], requests: list[dict[str, Any]]) -> Any:
    environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    environment |= {
        "ANTHROPIC_API_KEY": "any",
        "OPENAI_API_KEY": "any",
        "GOOGLE_API_KEY": "any",
        "GOOGLE_GENERATIVE_AI_API_KEY": "any",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "NO_PROXY": "*",
    }
    given = json.dumps({"questions": QUESTIONS, "weather": WEATHER, "cases": requests})
    ended = subprocess.run([*command, given], capture_output=True, text=True, env=environment, timeout=600, check=False)  # noqa: S603
    assert ended.returncode == 0, (ended.stderr or ended.stdout)[-3000:]
    return json.loads(ended.stdout.splitlines()[-1])
