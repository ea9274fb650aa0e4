"""When requests are retried, which models are not called for a while, and how broken answers are reported."""

import gzip
import json
import socket
import time
from typing import Any

import pytest

import dragoman
from dragoman.sim.server import Simulator
from tests.gateway.running import RunningGateway, configured, every_format, send
from tests.gateway.scripted_upstream import NO_ANSWER, Reply, ScriptedUpstream, completion, reply, scripted
from tests.gateway.test_failures import chat
from tests.gateway.test_pairs import path_of
from tests.sim.test_sim_pairs import FORMATS, first
from tests.sim.wire import DOORS
from tests.support.cases import each
from tests.support.promises import promise

ERROR = {"error": {"message": "try later", "type": "rate_limit_error", "code": None, "param": None}}
LIMITED = reply(ERROR, "429 Too Many Requests", {"retry-after": "30"})
FINE = reply(completion())


def ask(gateway: RunningGateway, model: str, **more: Any) -> Any:
    return send(gateway.url, "/v1/chat/completions", chat(model, **more))


# ── a failing or rate-limited model does not affect the others ──


@promise("gateway:breaker-per-model")
def test_a_rate_limited_model_does_not_stop_the_others() -> None:
    with scripted(LIMITED, FINE) as upstream, RunningGateway(configured(upstream.table("p"))) as gateway:
        limited = ask(gateway, "p/busy")
        assert (limited.status, limited.headers["retry-after"]) == (429, "30")
        assert ask(gateway, "p/free").status == 200
        again = ask(gateway, "p/busy")
        assert again.status == 429, "answered as what it is, and not as a failure of the gateway"
        assert 25 <= float(again.headers["retry-after"]) <= 30
        assert "try later" in again.json["error"]["message"]
        assert upstream.count == 2, "a model that asked to be left alone is"


@promise("gateway:breaker-per-model")
@pytest.mark.parametrize("format", FORMATS)
def test_a_rate_limited_model_is_a_429_in_every_format(format: str) -> None:
    with scripted(LIMITED) as upstream, RunningGateway(configured(upstream.table("p"))) as gateway:
        assert ask(gateway, "p/busy").status == 429
        sent = {**first(format), "model": "p/busy"} if "model" in first(format) else first(format)
        got = send(gateway.url, path_of(format, "p/busy", streamed=False), sent, DOORS[format].headers)
        failure = dragoman.decode_error(got.body, format, status=got.status, headers=got.headers)
    assert (got.status, failure.kind) == (429, "rate_limit")
    assert upstream.count == 1


@promise("gateway:breaker-per-model", "gateway:breaker")
def test_a_failing_model_does_not_stop_the_others() -> None:
    failed = reply({"error": {"message": "boom"}}, "500 Internal Server Error")
    with (
        scripted(failed, failed, FINE) as upstream,
        RunningGateway(configured(upstream.table("p", more="breaker = { failures = 2, seconds = 30 }"))) as gateway,
    ):
        assert [ask(gateway, "p/broken").status for _ in range(3)] == [500, 500, 503]
        assert ask(gateway, "p/well").status == 200
        assert upstream.count == 3
        metrics = send(gateway.url, "/metrics", method="GET").body.decode()
        assert 'dragoman_breaker_open{upstream="p"} 1' in metrics
        assert 'dragoman_model_breaker_open{upstream="p",model="broken"} 1' in metrics
        assert 'model="well"' not in metrics


@promise("gateway:breaker-per-model")
def test_if_all_candidates_are_rate_limited_none_is_called() -> None:
    soon = reply(ERROR, "429 Too Many Requests", {"retry-after": "20"})
    with scripted(LIMITED) as one, scripted(soon) as other:
        route = '[routes.mine]\nto = "one/m"\nfallback = ["other/m"]\n'
        with RunningGateway(configured(one.table("one") + other.table("other") + route)) as gateway:
            assert ask(gateway, "mine").status == 429
            again = ask(gateway, "mine")
            assert again.status == 429
            assert float(again.headers["retry-after"]) <= 20, "the one that is back first"
        assert (one.count, other.count) == (1, 1)


def test_breakers_of_invented_models_are_bounded() -> None:
    from dragoman.gateway.upstreams import BreakerSettings, ModelBreakers  # noqa: PLC0415

    breakers = ModelBreakers(BreakerSettings(), most=10)
    for number in range(100):
        breakers[f"m{number}"].begin()
    assert len(breakers.states()) <= 10


# ── requests are retried only if they were not processed ──

SENT_AGAIN = {
    "429": reply(ERROR, "429 Too Many Requests", {"retry-after": "0.05"}),
    "503": reply({"error": {"message": "no capacity"}}, "503 Service Unavailable"),
    "529": reply({"error": {"message": "overloaded"}}, "529 Overloaded"),
}
NOT_SENT_AGAIN = {
    "500": (reply({"error": {"message": "boom"}}, "500 Internal Server Error"), 500),
    "502": (reply(b"<html>bad gateway</html>", "502 Bad Gateway"), 502),
    "504": (reply({"error": {"message": "late"}}, "504 Gateway Timeout"), 504),
    "no answer": (NO_ANSWER, 502),
    "half a head": (Reply(b"HTTP/1.1 200 OK\r\ncontent-le"), 502),
    "no HTTP": (Reply(b"SSH-2.0-OpenSSH\r\n\r\n"), 502),
}


@promise("gateway:sent-once")
@pytest.mark.parametrize("name", SENT_AGAIN)
def test_requests_refused_before_processing_are_retried(name: str) -> None:
    with (
        scripted(SENT_AGAIN[name], FINE) as upstream,
        RunningGateway(configured(upstream.table("p"))) as gateway,
    ):
        assert ask(gateway, "p/m").status == 200
        assert upstream.count == 2


@promise("gateway:sent-once")
@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("name", NOT_SENT_AGAIN)
def test_requests_that_may_have_been_processed_are_not_retried(name: str, *, streamed: bool) -> None:
    broken, status = NOT_SENT_AGAIN[name]
    with scripted(broken, FINE) as upstream, RunningGateway(configured(upstream.table("p"))) as gateway:
        got = ask(gateway, "p/m", stream=streamed)
        assert got.status == status, got.body
        assert got.json["error"]["message"]
        assert upstream.count == 1


@promise("gateway:sent-once")
def test_a_broken_kept_alive_connection_does_not_prove_that_nothing_was_sent() -> None:
    """The server had read the request when it closed the connection."""
    with scripted(FINE, NO_ANSWER, FINE) as upstream, RunningGateway(configured(upstream.table("p"))) as gateway:
        assert ask(gateway, "p/m").status == 200
        assert ask(gateway, "p/m").status == 502
        assert upstream.count == 2


@promise("gateway:sent-once")
def test_refused_connections_are_retried() -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]
    table = f'[providers.p]\nkind = "openai-chat"\nbase_url = "http://127.0.0.1:{port}"\napi_key = "k"\n'
    with RunningGateway(configured(table)) as gateway:
        started = time.monotonic()
        assert ask(gateway, "p/m").status == 502
        assert time.monotonic() - started > 0.2, "refused connections are tried again after a while"
        assert gateway.requests(1)[0]["attempts"] == 3


@promise("gateway:sent-once", "gateway:fallback")
def test_another_key_of_the_same_provider_is_not_a_fallback() -> None:
    """Only the configuration names fallbacks; with another key, the same request would be sent to the same server."""
    failed = reply({"error": {"message": "boom"}}, "500 Internal Server Error")
    with scripted(failed, FINE) as upstream, scripted(FINE) as other:
        keys = upstream.table("p").replace('api_key = "upstream-key"', 'api_keys = ["k1", "k2"]')
        with RunningGateway(configured(keys)) as gateway:
            assert ask(gateway, "p/m").status == 500
            assert upstream.count == 1
        upstream.replies.insert(0, failed)
        route = '[routes.mine]\nto = "p/m"\nfallback = ["q/m"]\n'
        with RunningGateway(configured(keys + other.table("q") + route)) as gateway:
            assert ask(gateway, "mine").status == 200
            assert (upstream.count, other.count) == (2, 1)


# ── malformed answers ──


def packed(cut: int) -> Reply:
    data = gzip.compress(json.dumps(completion("x" * 1000)).encode())[:cut]
    return reply(data, headers={"content-encoding": "gzip"})


BROKEN = {
    "an error inside 200": reply({"error": {"message": "upstream broke", "type": "server_error"}}),
    "an error text inside 200": reply({"error": "upstream broke"}),
    "MiniMax's error": reply({"id": "c", "choices": None, "base_resp": {"status_code": 1013, "status_msg": "broke"}}),
    "MiniMax's error beside choices": reply({"id": "c", "choices": [], "base_resp": {"status_code": 1000}}),
    "a page inside 200": reply(b"<html>hello</html>", headers={"content-type": "text/html"}),
    "nothing inside 200": reply(b""),
    "half a JSON": reply(json.dumps(completion()).encode()[:-20]),
    "another shape": reply({"choices": "none"}),
    "truncated gzip": packed(-20),
    "no gzip": reply(b"not packed", headers={"content-encoding": "gzip"}),
    "negative length": reply(completion(), headers={"content-length": "-5"}),
    "two lengths": reply(completion(), headers={"content-length": "5, 7"}),
    "short body": reply(completion(), headers={"content-length": "5000", "connection": "close"}),
}


@promise("gateway:broken-answers")
@pytest.mark.parametrize("format", ["openai-chat", "anthropic-messages", "gemini"])
@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_answer_is_an_upstream_failure(name: str, format: str) -> None:
    sent = {**first(format), "model": "p/m"} if "model" in first(format) else first(format)
    with scripted(BROKEN[name]) as upstream, RunningGateway(configured(upstream.table("p"))) as gateway:
        got = send(gateway.url, path_of(format, "p/m", streamed=False), sent, DOORS[format].headers)
    assert got.status == 502, got.body
    assert DOORS[format].message_of(got.json)
    assert upstream.count == 1, "it may have been processed"


@promise("gateway:broken-answers", "gateway:fallback")
@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_answer_permits_the_fallback(name: str, *, streamed: bool) -> None:
    good = reply(completion())
    if streamed:
        chunk = {"id": "c", "choices": [{"index": 0, "delta": {"content": "fine"}, "finish_reason": "stop"}]}
        data = f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode()
        good = reply(data, headers={"content-type": "text/event-stream"})
    route = '[routes.mine]\nto = "bad/m"\nfallback = ["good/m"]\n'
    with scripted(BROKEN[name]) as bad, scripted(good) as other:
        with RunningGateway(configured(bad.table("bad") + other.table("good") + route)) as gateway:
            got = ask(gateway, "mine", stream=streamed)
        assert got.status == 200, got.body
        assert b"fine" in got.body
        assert (bad.count, other.count) == (1, 1)


NO_ERRORS = ("[]", "[[[[", "{", "7")
"""Bodies of failed requests that are errors in no format."""


@promise("gateway:broken-answers", "gateway:own-words")
@each("format", FORMATS)
def test_a_refusal_that_is_not_an_error_of_the_format_becomes_one(dragoman_simulator: Simulator, format: str) -> None:
    """Even if the client speaks the upstream's format: its SDK could not read the body."""
    table = every_format(dragoman_simulator.url).providers[f"as-{format}"]
    sent = {**first(format), "model": "p/m"} if "model" in first(format) else first(format)
    with scripted(reply(b"")) as upstream:
        region = f'region = "{table.region}"' if table.region else ""
        setting = configured(upstream.table("p", table.kind, f"{region}\nbreaker = {{ failures = 100 }}"))
        with RunningGateway(setting) as gateway:
            for body in NO_ERRORS:
                upstream.replies = [reply(body.encode(), "400 Bad Request")]
                got = send(gateway.url, path_of(format, "p/m", streamed=False), sent, DOORS[format].headers)
                assert got.status == 400, (body, got.body)
                assert DOORS[format].message_of(got.json), (body, got.body)


@promise("gateway:broken-answers")
@pytest.mark.parametrize("kind", ["openai", "ollama"])
def test_errors_inside_answers_of_formats_with_optional_members(kind: str) -> None:
    """Every member of these answers is optional, so a body with only an error would be an empty answer."""
    with (
        scripted(reply({"error": {"message": "upstream broke"}})) as upstream,
        RunningGateway(configured(upstream.table("p", kind))) as gateway,
    ):
        assert ask(gateway, "p/m").status == 502
        assert send(gateway.url, "/v1/responses", {"model": "p/m", "input": "Hello"}).status == 502
        assert send(gateway.url, "/api/chat", chat("p/m", stream=False)).status == 502


# ── 401 of an upstream ──

REFUSALS = {
    "openai-chat": reply(
        {"error": {"message": "Incorrect API key provided: up****ey.", "code": "invalid_api_key"}}, "401 Unauthorized"
    ),
    "anthropic": reply(
        {"type": "error", "error": {"type": "authentication_error", "message": "invalid x-api-key"}}, "401 Unauthorized"
    ),
}


@promise("gateway:whose-key")
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("kind", REFUSALS)
def test_a_401_of_an_upstream_states_whose_key_was_refused(kind: str, format: str) -> None:
    sent = {**first(format), "model": "p/m"} if "model" in first(format) else first(format)
    with (
        scripted(REFUSALS[kind]) as upstream,
        RunningGateway(configured(upstream.table("p", kind))) as gateway,
    ):
        got = send(gateway.url, path_of(format, "p/m", streamed=False), sent, DOORS[format].headers)
        (record,) = gateway.requests(1)
    message = DOORS[format].message_of(got.json)
    assert "the gateway's key for provider 'p'" in message
    assert "not the key of the client" in message
    assert "upstream-key" not in got.body.decode()
    assert "invalid_api_key" not in got.body.decode(), "that code means the client's own key"
    assert record["failure"] == "authentication"


@promise("gateway:whose-key")
def test_a_401_of_token_counting_states_whose_key_was_refused() -> None:
    with (
        scripted(REFUSALS["anthropic"]) as upstream,
        RunningGateway(configured(upstream.table("p", "anthropic"))) as gateway,
    ):
        body = {"model": "p/m", "messages": [{"role": "user", "content": "Hello"}]}
        got = send(gateway.url, "/v1/messages/count_tokens", body)
    assert got.status == 401
    assert "the gateway's key for provider 'p'" in got.json["error"]["message"]


def test_scripted_upstreams_answer_as_scripted() -> None:
    upstream = ScriptedUpstream(FINE)
    try:
        assert send(upstream.url, "/", {"a": 1}).json == completion()
        assert upstream.bodies == [b'{"a": 1}']
    finally:
        upstream.close()
