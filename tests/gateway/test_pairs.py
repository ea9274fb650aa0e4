"""Every client format to every simulator, over HTTP, streamed and not: a conversation with parallel calls."""

import json
from typing import Any

import pytest

import dragoman
from dragoman.sim.server import Simulator
from tests.gateway.running import RunningGateway, send
from tests.sim.test_sim_pairs import ANSWER, FORMATS, MODELS, NEXT, first
from tests.sim.wire import DOORS, Body
from tests.support.promises import promise

# A stream of Chat reports tokens only on request.
COUNTED: dict[str, Body] = {"openai-chat": {"stream_options": {"include_usage": True}}}
# The key of an answer that names the model; None if there is none.
NAMED = {"cohere-chat": None, "gemini": "modelVersion", "vertex": "modelVersion", "bedrock-converse": None}


def path_of(source: str, model: str, *, streamed: bool) -> str:
    door = DOORS[source]
    path = door.streaming_path if streamed else door.path
    for known in ("gemini-3.6-flash", "amazon.nova-lite-v1%3A0"):
        path = path.replace(known, model.replace("/", "%2F").replace(":", "%3A"))
    return path


def ask(gateway: RunningGateway, body: Body, source: str, model: str, *, streamed: bool) -> Any:
    request = {**body, "model": model} if "model" in body else body
    if streamed:
        request = {**request, **DOORS[source].streams, **COUNTED.get(source, {})}
    got = send(gateway.url, path_of(source, model, streamed=streamed), request, DOORS[source].headers)
    assert got.status == 200, got.body
    if not streamed:
        return got.json
    decoder = dragoman.StreamDecoder(source)
    completion = dragoman.accumulate([*decoder.feed(got.body), *decoder.close()])
    return json.loads(dragoman.encode_response(completion, source).content)


@promise("gateway:pairs", "law:6-owed-back")
@pytest.mark.parametrize("target", FORMATS)
@pytest.mark.parametrize("source", FORMATS)
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_a_tool_conversation_crosses(gateway: RunningGateway, source: str, target: str, *, streamed: bool) -> None:
    model = f"as-{target}/{MODELS[target]}"
    body = first(source)
    called = ask(gateway, body, source, model, streamed=streamed)
    answered = ask(gateway, NEXT[source](body, called), source, model, streamed=streamed)
    assert DOORS[source].text_of(answered) == ANSWER
    place = NAMED.get(source, "model")
    assert place is None or answered[place]
    records = gateway.requests(2)
    assert [line["status"] for line in records] == [200, 200]
    assert all(line["tokens"]["output"] for line in records)


SIX = (*("openai-chat", "openai-responses", "anthropic-messages", "gemini", "bedrock-converse", "cohere-chat"),)
"""The six protocols of the public comparison of gateways; their 36 pairs are among those tested above."""


@promise("gateway:six-protocols")
@pytest.mark.parametrize("target", SIX)
@pytest.mark.parametrize("source", SIX)
def test_each_of_the_thirty_six_pairs_reports_an_error_in_the_format_of_the_client(
    gateway: RunningGateway, dragoman_sim: Simulator, source: str, target: str
) -> None:
    """Tool conversations of these and all other pairs, whole and streamed, are tested above."""
    assert set(SIX) <= set(FORMATS)
    dragoman_sim.play({"error": "invalid"})
    model = f"as-{target}/{MODELS[target]}"
    body = DOORS[source].ask("hi")
    request = {**body, "model": model} if "model" in body else body
    got = send(gateway.url, path_of(source, model, streamed=False), request, DOORS[source].headers)
    assert got.status == 400
    assert DOORS[source].message_of(got.json)


@promise("gateway:same-bytes")
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("format", FORMATS)
def test_the_same_format_passes_byte_exact(
    gateway: RunningGateway, dragoman_sim: Simulator, format: str, *, streamed: bool
) -> None:
    body = {**first(format), **(DOORS[format].streams if streamed else {})}
    raw = json.dumps(body, indent=3, ensure_ascii=False).encode()
    headers = DOORS[format].headers
    path = path_of(format, MODELS[format], streamed=streamed)
    through = send(gateway.url, path, raw, headers)
    assert through.status == 200, through.body
    sent = dragoman_sim.requests[-1]
    assert sent.body == raw
    query = "&".join(f"{name}={value}" for name, value in sent.query.items())
    straight = send(dragoman_sim.url, f"{sent.path}?{query}", raw, headers)
    assert through.body == straight.body
    assert through.headers["content-type"] == straight.headers["content-type"]
