"""What real coding agents and SDKs send, through the gateway to the strict simulators of every family.

The requests were recorded from the clients themselves; long strings in them are cut. Where the recordings are not at
hand there is nothing to replay. To its own family a request goes as it is, so there is nothing to judge.
"""

import json
from pathlib import Path
from typing import Any

import pytest

import dragoman
from dragoman.codecs.registry import codec
from tests.gateway.running import RunningGateway, send
from tests.sim.test_sim_pairs import FORMATS, MODELS
from tests.support.promises import promise

CAPTURED = Path(__file__).parents[3] / "shared" / "rigs" / "captured"
FORMAT_OF = {
    "claude": "anthropic-messages",
    "claude-vertex": "anthropic-messages",
    "codex": "openai-responses",
    "gemini": "gemini",
    "gemini-vertex": "vertex",
    "sdk-anthropic_messages": "anthropic-messages",
    "sdk-google_genai": "gemini",
    "sdk-google_genai_vertex": "vertex",
    "sdk-ollama_sdk": "ollama-chat",
    "sdk-openai_chat": "openai-chat",
    "sdk-openai_responses": "openai-responses",
}
pytestmark = pytest.mark.skipif(not CAPTURED.exists(), reason="no recorded requests of agents at hand")


def captured(client: str) -> list[dict[str, Any]]:
    lines = (CAPTURED / f"{client}.jsonl").read_text(encoding="utf-8").splitlines()
    return [request for request in map(json.loads, lines) if request["method"] == "POST"]


def readdressed(request: dict[str, Any], model: str) -> tuple[str, dict[str, Any]]:
    path, body = request["path"], request["body"]
    before, found, rest = path.partition("/models/")
    if found:
        path = f"{before}/models/{model.replace('/', '%2F')}:{rest.rpartition(':')[2]}"
    elif "model" in body:
        body = {**body, "model": model}
    return path + (f"?{request['query']}" if request["query"] else ""), body


def family(format: str) -> str:
    return codec(format).profile.family


PAIRS = [
    (client, target) for client, format in FORMAT_OF.items() for target in FORMATS if family(format) != family(target)
]


@promise("gateway:agents")
@pytest.mark.parametrize(("client", "target"), PAIRS)
def test_what_it_sends_is_understood_everywhere(gateway: RunningGateway, client: str, target: str) -> None:
    format = FORMAT_OF[client]
    for request in captured(client):
        path, body = readdressed(request, f"as-{target}/{MODELS[target]}")
        headers = {
            name: value for name, value in request["headers"].items() if name.startswith(("anthropic", "x-goog"))
        }
        got = send(gateway.url, path, body, headers)
        assert got.status == 200, (path, got.body[:500])
        if "event-stream" in got.headers["content-type"]:
            decoder = dragoman.StreamDecoder(format)
            events = [*decoder.feed(got.body), *decoder.close()]
            assert isinstance(events[-1], dragoman.ir.Finished), events[-2:]
