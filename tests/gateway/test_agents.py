"""Replays what real coding agents and SDKs send, through the gateway to the strict simulators of every family.

The requests were recorded from the clients themselves; long strings in them are cut. Without recordings the tests are
skipped. A request to an upstream of its own format passes unchanged; that test checks the simulator, which has to
accept what the vendor accepts from its own client.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest

import dragoman
from dragoman.codecs.google_signatures import PLACEHOLDER
from dragoman.codecs.registry import codec
from tests.gateway.running import Got, RunningGateway, send
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


def minted_by(format: str) -> str:
    profile = codec(format).profile
    return profile.signature_family or profile.family


PAIRS = [
    (client, target) for client, format in FORMAT_OF.items() for target in FORMATS if family(format) != family(target)
]


def replay(gateway: RunningGateway, request: dict[str, Any], model: str, format: str) -> Got:
    """Send a recorded request with its headers, except those of the connection and the key."""
    path, body = readdressed(request, model)
    of_connection = ("host", "connection", "content-length", "accept-encoding", "authorization")
    headers = {name: value for name, value in request["headers"].items() if name not in of_connection}
    got = send(gateway.url, path, body, headers)
    assert got.status == 200, (path, got.body[:500])
    if "event-stream" in got.headers["content-type"]:
        decoder = dragoman.StreamDecoder(format)
        events = [*decoder.feed(got.body), *decoder.close()]
        assert isinstance(events[-1], dragoman.ir.Finished), events[-2:]
    return got


@promise("gateway:agents")
@pytest.mark.parametrize(("client", "target"), PAIRS)
def test_recorded_requests_are_answered_by_other_families(gateway: RunningGateway, client: str, target: str) -> None:
    # Another API of the same vendor gets the signatures too, and those of the recordings belong to no vendor.
    shared = minted_by(FORMAT_OF[client]) == minted_by(target)
    for request in captured(client):
        sent = resigned(request) if shared else request
        replay(gateway, sent, f"as-{target}/{MODELS[target]}", FORMAT_OF[client])


def own_model(request: dict[str, Any], format: str) -> str:
    """Return the recorded model, because the request depends on it; recordings of the SDKs name an invented one."""
    of_path = re.search(r"/models/([^:]+):", request["path"])
    name = of_path[1] if of_path else str(request["body"]["model"])
    return MODELS[format] if name == "rig" else name


def resigned(value: Any) -> Any:
    """Replace recorded signatures, which no vendor made, by the placeholder that Google documents for foreign calls."""
    match value:
        case dict():
            return {
                name: PLACEHOLDER if name == "thoughtSignature" else resigned(inner) for name, inner in value.items()
            }
        case list():
            return [resigned(inner) for inner in value]
    return value


@promise("gateway:agents", "gateway:same-bytes")
@pytest.mark.parametrize("client", FORMAT_OF)
def test_recorded_requests_are_accepted_by_their_own_vendor(gateway: RunningGateway, client: str) -> None:
    format = FORMAT_OF[client]
    for request in captured(client):
        replay(gateway, resigned(request), f"as-{format}/{own_model(request, format)}", format)


@promise("gateway:agents")
def test_unknown_betas_and_keys_in_recorded_requests_are_refused(gateway: RunningGateway) -> None:
    request = captured("claude")[0]
    headers = {"anthropic-beta": f"{request['headers']['anthropic-beta']},bananas-20250219"}
    path, body = readdressed(request, f"as-anthropic-messages/{own_model(request, 'anthropic-messages')}")
    assert b"`bananas-20250219`" in send(gateway.url, path, body, headers).body
    path, body = readdressed(captured("codex")[0], "as-openai-responses/gpt-5-codex")
    for name, value in (("client_metadata", {"turn": 1}), ("client_data", {})):
        assert send(gateway.url, path, {**body, name: value}).status == 400
