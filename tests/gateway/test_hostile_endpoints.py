"""Upstreams with malformed or absurd answers at the endpoints besides generation: lists, embeddings, uploads."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.running import RunningGateway, configured, send
from tests.gateway.scripted_upstream import Reply, completion, reply, scripted
from tests.gateway.served import served
from tests.gateway.test_pairs import path_of
from tests.sim.test_sim_pairs import FORMATS, first
from tests.sim.wire import DOORS
from tests.support.cases import each
from tests.support.promises import promise

pytestmark = promise("gateway:attacks")


def _message(kind: str) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": [{"type": kind, "text": "hi"}]}


PATIENT = "breaker = { failures = 100 }"
FINE = '[providers.fine]\nkind = "openai-compatible"\nbase_url = "http://127.0.0.1:9/v1"\nmodels = ["fine"]\n'
LISTS: tuple[tuple[str, dict[str, str]], ...] = (
    ("/v1/models", {}),
    ("/v1/models", {"anthropic-version": "1"}),
    ("/v1beta/models", {}),
    ("/api/tags", {}),
)
LISTED: dict[str, bytes] = {
    "a NUL": b'{"data":[{"id":"a\\u0000b"},{"id":"usable"}]}',
    "two lines": b'{"data":[{"id":"a\\r\\nb"},{"id":"usable"}]}',
    "an escape sequence of terminals": b'{"data":[{"id":"\\u001b[2J"},{"id":"usable"}]}',
    "another path": b'{"data":[{"id":"../x"},{"id":"usable"}]}',
    "no name": b'{"data":[{"id":""},{"id":"usable"}]}',
    "a name of a megabyte": b'{"data":[{"id":"%b"},{"id":"usable"}]}' % (b"x" * 1_000_000),
}
NOT_LISTED: dict[str, bytes] = {
    "half a surrogate pair": b'{"data":[{"id":"\\ud800"}]}',
    "a number": b'{"data":[{"id":5}]}',
    "deep nesting": b'{"data":%b%b}' % (b"[" * 100_000, b"]" * 100_000),
    "very many models": b'{"data":[%b{"id":"m"}]}' % (b'{"id":"m"},' * 300_000),
    "many models": b'{"data":[%b{"id":"m"}]}' % (b'{"id":"m"},' * 30_000),
    "text": b'{"data":"abc"}',
    "nothing": b"",
}


@pytest.mark.parametrize("name", LISTED)
def test_names_that_no_client_can_use_are_not_listed(name: str) -> None:
    """In the list of Ollama's loaded models, one such name made an error of the whole list."""
    with scripted(reply(LISTED[name])) as upstream, RunningGateway(configured(FINE + upstream.table("p"))) as gateway:
        for path, headers in (*LISTS, ("/api/ps", {})):
            got = send(gateway.url, path, None, headers, "GET")
            assert got.status == 200, path
            assert len(got.body) < 10_000
            assert json.dumps(got.json).count("p/") == json.dumps(got.json).count("p/usable") > 0


@pytest.mark.parametrize("name", NOT_LISTED)
def test_a_malformed_list_of_one_upstream_leaves_those_of_others(name: str) -> None:
    with (
        scripted(reply(NOT_LISTED[name])) as upstream,
        RunningGateway(configured(FINE + upstream.table("p"))) as gateway,
    ):
        for path, headers in LISTS:
            got = send(gateway.url, path, None, headers, "GET")
            assert got.status == 200, path
            assert b"fine" in got.body
            assert b"p/" not in got.body


@pytest.mark.parametrize("kind", ["many entries", "many bytes"])
def test_a_huge_list_of_models_takes_no_memory(tmp_path: Path, kind: str) -> None:
    """It was parsed whole on the event loop: 33 MB took 660 MB and three seconds."""
    entries = b'{"id":"m"},' * (3_000_000 if kind == "many entries" else 1)
    filling = b" " * (1 if kind == "many entries" else 100 << 20)
    with (
        scripted(reply(b'{"data":[%b%b{"id":"m"}]}' % (entries, filling))) as upstream,
        served(tmp_path, FINE + upstream.table("p")) as gateway,
    ):
        before, spent = gateway.megabytes, gateway.cpu_seconds
        got = send(gateway.url, "/v1/models", method="GET")
        assert b"fine" in got.body
        assert gateway.megabytes - before < 100
        assert gateway.cpu_seconds - spent < 2


@pytest.mark.parametrize("status", ["000 None", "099 Low"])
def test_a_status_that_is_none_is_a_failure_at_once(status: str) -> None:
    """It passed for an informational answer, so the gateway waited for another one, for ten minutes."""
    with scripted(reply({}, status)) as upstream, RunningGateway(configured(upstream.table("p"))) as gateway:
        body = {"model": "p/m", "messages": [{"role": "user", "content": "hi"}]}
        assert send(gateway.url, "/v1/chat/completions", body).status == 502


# ── the answers of other services ──

STRANGE: dict[str, dict[str, Any]] = {
    "an empty object": {},
    "a health check": {"status": "ok"},
    "an unknown path": {"detail": "Not found"},
    "an error in other words": {"code": 500, "msg": "bad gateway", "success": False},
    "a list": {"object": "list", "data": []},
    "nulls": {"output": None, "message": None, "steps": None, "choices": None, "content": None, "candidates": None},
}
OF_APIS: dict[str, dict[str, Any]] = {
    "openai-chat": completion(),
    "openai": {"id": "r", "status": "completed", "output": [_message("output_text")]},
    "anthropic": {
        "id": "m",
        "role": "assistant",
        "stop_reason": "end_turn",
        "content": [{"type": "text", "text": "hi"}],
    },
    "gemini": {"candidates": [{"content": {"parts": [{"text": "hi"}]}, "finishReason": "STOP"}]},
    "gemini-interactions": {"id": "i", "status": "completed", "steps": [{**_message("text"), "type": "model_output"}]},
    "cohere": {
        "message": {"role": "assistant", "content": [{"type": "text", "text": "hi"}]},
        "finish_reason": "COMPLETE",
    },
    "ollama": {"model": "m", "message": {"role": "assistant", "content": "hi"}, "done": True, "done_reason": "stop"},
}


@each("name", (*STRANGE, *OF_APIS))
@each("kind", OF_APIS)
def test_the_answer_of_another_service_is_no_empty_answer(name: str, kind: str) -> None:
    """Many keys are optional, so that any object read as an answer without content, which costs nothing."""
    if name == kind or {name, kind} == {"cohere", "ollama"}:  # the same keys
        return
    answer = reply(STRANGE.get(name) or OF_APIS.get(name) or {})
    with scripted(answer) as bad, scripted(reply(completion("fine"))) as good:
        route = '[routes.mine]\nto = "bad/m"\nfallback = ["good/m"]\n'
        with RunningGateway(configured(bad.table("bad", kind, PATIENT) + good.table("good") + route)) as gateway:
            for format in FORMATS:
                body = first(format)
                for model, statuses in (("bad/m", {502, 424}), ("mine", {200})):
                    request = {**body, "model": model} if "model" in body else body
                    path = path_of(format, model, streamed=False)
                    got = send(gateway.url, path, request, DOORS[format].headers)
                    assert got.status in statuses, (format, got.body)
                    assert (b"fine" in got.body) == (model == "mine")


# ── embeddings ──

EMBEDDINGS: dict[str, tuple[str, dict[str, Any]]] = {
    "openai": ("/v1/embeddings", {"model": "mine", "input": ["a", "b"]}),
    "cohere": ("/v2/embed", {"model": "mine", "texts": ["a", "b"], "input_type": "clustering"}),
    "ollama": ("/api/embed", {"model": "mine", "input": ["a", "b"]}),
    "gemini": ("/v1beta/models/mine:embedContent", {"content": {"parts": [{"text": "a"}]}}),
}
GOOD = {
    "openai": {"data": [{"embedding": [1.0], "index": 0}, {"embedding": [2.0], "index": 1}], "model": "m"},
    "cohere": {"embeddings": {"float": [[1.0], [2.0]]}},
    "ollama": {"embeddings": [[1.0], [2.0]]},
    "gemini": {"embedding": {"values": [1.0]}},
}
NO_VECTORS: dict[str, bytes] = {
    "an empty object": b"{}",
    "another answer": b'{"object":"list","has_more":false}',
    "null": b'{"data":null,"embeddings":null,"embedding":null}',
    "half an answer": b'{"data":[{"embedding":[1.0]',
    "not a number": b'{"data":[{"embedding":[NaN]}],"embeddings":[[NaN]],"embedding":[NaN]}',
    "deep nesting": b'{"data":%b%b}' % (b"[" * 100_000, b"]" * 100_000),
}


@pytest.mark.parametrize("name", NO_VECTORS)
@pytest.mark.parametrize("kind", EMBEDDINGS)
def test_an_answer_without_vectors_permits_the_fallback(kind: str, name: str) -> None:
    """Also between equal APIs, where the bytes of an answer pass unchanged."""
    route = '[routes.mine]\nto = "bad/m"\nfallback = ["good/m"]\n'
    path, body = EMBEDDINGS[kind]
    with (
        scripted(reply(NO_VECTORS[name])) as bad,
        scripted(reply(GOOD[kind])) as good,
        RunningGateway(configured(bad.table("bad", kind, PATIENT) + good.table("good", kind) + route)) as gateway,
    ):
        got = send(gateway.url, path, body)
        assert (got.status, got.json) == (200, GOOD[kind])
        alone = json.loads(json.dumps(body).replace("mine", "bad/m"))
        assert send(gateway.url, path.replace("mine", "bad%2Fm"), alone).status == 502


@pytest.mark.parametrize("indexes", [(0, 0), (1, 2), (-1, 0), (0, 1_000_000_000), (None, 1)])
def test_indexes_that_leave_the_order_open_are_a_failure_of_the_upstream(indexes: tuple[int | None, ...]) -> None:
    """Otherwise a text might get the vector of another."""
    data = [{"embedding": [1.0], **({} if index is None else {"index": index})} for index in indexes]
    path, body = EMBEDDINGS["cohere"]
    with scripted(reply({"data": data})) as upstream, RunningGateway(configured(upstream.table("p"))) as gateway:
        assert send(gateway.url, path, {**body, "model": "p/m"}).status == 502


@pytest.mark.parametrize("indexes", [(0, 1), (1, 0), (None, None)])
def test_vectors_are_in_the_order_of_their_indexes(indexes: tuple[int | None, ...]) -> None:
    data = [
        {"embedding": [float(index or place)], **({} if index is None else {"index": index})}
        for place, index in enumerate(indexes)
    ]
    if indexes == (1, 0):
        data[1]["embedding"] = [0.0]
    path, body = EMBEDDINGS["cohere"]
    with scripted(reply({"data": data})) as upstream, RunningGateway(configured(upstream.table("p"))) as gateway:
        got = send(gateway.url, path, {**body, "model": "p/m"})
        assert got.json["embeddings"]["float"] == [[0.0], [1.0]]


# ── what passes unchanged ──


def test_an_upload_url_that_is_none_is_a_failure_of_the_upstream() -> None:
    odd = reply({"file": {"name": "files/a"}}, headers={"x-goog-upload-url": "http://[::1"})
    with scripted(odd) as upstream, RunningGateway(configured(upstream.table("p", "gemini", PATIENT))) as gateway:
        for method, path in (("POST", "/upload/v1beta/files"), ("GET", "/v1beta/files")):
            got = send(gateway.url, path, {} if method == "POST" else None, {"x-dragoman-provider": "p"}, method)
            assert got.status == 502, got.body
            assert got.json["error"]["message"]
        assert not [line for line in gateway.log.lines if line["event"] == "error"]


def test_the_number_of_upload_headers_is_limited() -> None:
    many = {f"x-goog-upload-{number}": "y" for number in range(150)}
    odd: Reply = reply({"data": [{"embedding": [1.0], "index": 0}]}, headers=many)
    with scripted(odd) as upstream, RunningGateway(configured(upstream.table("p", "openai"))) as gateway:
        for path, body in (
            ("/v1/embeddings", {"model": "p/m", "input": "a"}),
            ("/v1/images/generations", {"model": "p/m", "prompt": "a"}),
        ):
            got = send(gateway.url, path, body)
            assert got.status == 200
            assert "x-goog-upload-0" in got.headers
