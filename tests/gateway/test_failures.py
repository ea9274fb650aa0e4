"""The errors that clients of each format get, and the retries and fallbacks before that."""

import asyncio
import json
import select
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

import dragoman
from dragoman.gateway.exchange import Exchange, Gone
from dragoman.gateway.http_request import Head
from dragoman.gateway.serving import serving, simulators_at
from dragoman.sim.server import Simulator
from tests.gateway.running import Lines, RunningGateway, configured, connected, send, until_closed
from tests.gateway.scripted_upstream import reply, scripted
from tests.gateway.test_pairs import path_of
from tests.sim.test_sim_pairs import FORMATS, first
from tests.sim.wire import DOORS
from tests.support.promises import promise
from tests.support.waiting import PATIENCE, until

CHAT: Any = {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}


def chat(model: str, **more: Any) -> Any:
    return {**CHAT, "model": model, **more}


def provider(name: str, url: str, *, kind: str = "anthropic", fault: str = "", more: str = "") -> str:
    base = simulators_at(url)[kind]
    headers = f'headers = {{ "x-sim-fault" = "{fault}" }}\n' if fault else ""
    return f'[providers.{name}]\nkind = "{kind}"\nbase_url = "{base}"\napi_key = "any-key"\n{headers}{more}\n'


@contextmanager
def routed(text: str) -> Iterator[RunningGateway]:
    with RunningGateway(configured(text)) as gateway:
        yield gateway


# ── error messages ──


@promise("gateway:own-words")
@pytest.mark.parametrize("format", FORMATS)
def test_a_model_without_a_provider_is_refused(format: str) -> None:
    """No provider has a key, and there is no simulator."""
    body = {**first(format), **({"model": "nobody"} if "model" in first(format) else {})}
    with routed("") as gateway:
        got = send(gateway.url, path_of(format, "nobody", streamed=False), body, DOORS[format].headers)
    failure = dragoman.decode_error(got.body, format, status=got.status, headers=got.headers)
    # Ollama needs no key, so the gateway calls its default address.
    assert got.status in ({502, 404} if format == "ollama-chat" else {400, 404})
    assert failure.kind in {"not_found", "invalid_request", "server"}
    assert DOORS[format].message_of(got.json)


@promise("gateway:own-words", "gateway:no-secrets")
@pytest.mark.parametrize("target", ["anthropic", "openai-chat", "gemini"])
@pytest.mark.parametrize("format", FORMATS)
def test_errors_of_an_upstream_are_translated(dragoman_simulator: Simulator, format: str, target: str) -> None:
    text = provider("p", dragoman_simulator.url, kind=target, fault="status=429; retry_after=120")
    body = first(format)
    sent = {**body, "model": "p/m"} if "model" in body else body
    with routed(text) as gateway:
        got = send(gateway.url, path_of(format, "p/m", streamed=False), sent, DOORS[format].headers)
    assert got.status == 429, got.body
    failure = dragoman.decode_error(got.body, format, status=got.status, headers=got.headers)
    assert failure.kind == "rate_limit"
    assert DOORS[format].message_of(got.json)


@promise("gateway:same-bytes", "gateway:own-words")
def test_errors_in_the_clients_own_format_pass_unchanged(gateway: RunningGateway, dragoman_sim: Simulator) -> None:
    body = {"model": "claude-sonnet-5", "max_tokens": 0, "messages": []}
    headers = DOORS["anthropic-messages"].headers
    through = send(gateway.url, "/v1/messages", body, headers)
    straight = send(dragoman_sim.url, "/v1/messages", body, headers)
    assert (through.status, through.body) == (straight.status, straight.body)


@promise("gateway:own-words-midstream")
@pytest.mark.parametrize("fault", ["fail=8; status=529", "cut=8", "garbage=8"])
@pytest.mark.parametrize("format", FORMATS)
def test_a_broken_stream_ends_with_an_error_event(dragoman_simulator: Simulator, format: str, fault: str) -> None:
    source, name = ("openai-chat", "gpt-5") if format == "anthropic-messages" else ("anthropic", "claude-sonnet-5")
    body = {**first(format), **DOORS[format].streams}
    sent = {**body, "model": f"p/{name}"} if "model" in body else body
    text = provider("p", dragoman_simulator.url, kind=source, fault=fault)
    with routed(text) as gateway:
        got = send(gateway.url, path_of(format, f"p/{name}", streamed=True), sent, DOORS[format].headers)
        (record,) = gateway.requests(1)
    assert got.status == 200, got.body
    decoder = dragoman.StreamDecoder(format)
    events = [*decoder.feed(got.body), *decoder.close()]
    assert isinstance(events[-1], dragoman.ir.StreamFailed), events[-3:]
    assert events[-1].failure.kind != "truncated", "the client gets an error event, not a silent end"
    assert record["failure"]


@promise("gateway:own-words-midstream")
def test_a_broken_stream_of_the_same_format_ends_with_an_error_event(dragoman_simulator: Simulator) -> None:
    with routed(provider("p", dragoman_simulator.url, fault="cut=4")) as gateway:
        body = {**first("anthropic-messages"), "model": "p/claude-sonnet-5", "stream": True}
        got = send(gateway.url, "/v1/messages", body, DOORS["anthropic-messages"].headers)
    assert b"event: error" in got.body


# ── retries and fallbacks ──


@promise("gateway:fallback", "gateway:routes")
@pytest.mark.parametrize("fault", ["status=500", "status=529", "cut=0", "fail=0; status=529", "status=401"])
@pytest.mark.parametrize("streamed", [False, True])
def test_the_fallback_answers_if_the_first_upstream_fails_before_the_first_byte(
    dragoman_simulator: Simulator, fault: str, *, streamed: bool
) -> None:
    text = (
        provider("bad", dragoman_simulator.url, fault=fault)
        + provider("good", dragoman_simulator.url, kind="gemini")
        + '[routes.mine]\nto = "bad/claude-sonnet-5"\nfallback = ["good/gemini-3.6-flash"]\n'
    )
    with routed(text) as gateway:
        got = send(gateway.url, "/v1/chat/completions", chat("mine", stream=streamed))
        (record,) = gateway.requests(1)
    assert got.status == 200, got.body
    assert (record["upstream"], record["attempts"]) == ("good", 2)


@promise("gateway:fallback")
def test_invalid_requests_are_not_sent_to_the_fallback(dragoman_simulator: Simulator) -> None:
    text = (
        provider("bad", dragoman_simulator.url, fault="status=400")
        + provider("good", dragoman_simulator.url)
        + '[routes.mine]\nto = "bad/claude-sonnet-5"\nfallback = ["good/claude-sonnet-5"]\n'
    )
    with routed(text) as gateway:
        got = send(gateway.url, "/v1/chat/completions", chat("mine"))
        (record,) = gateway.requests(1)
    assert (got.status, record["attempts"]) == (400, 1)


@promise("gateway:fallback")
def test_an_overloaded_upstream_is_retried(dragoman_sim: Simulator) -> None:
    dragoman_sim.play({"error": "overloaded"}, {"error": "overloaded"}, {"text": "third time lucky"})
    with routed(provider("p", dragoman_sim.url)) as gateway:
        got = send(gateway.url, "/v1/chat/completions", chat("p/claude-sonnet-5"))
        (record,) = gateway.requests(1)
    assert got.json["choices"][0]["message"]["content"] == "third time lucky"
    assert record["attempts"] == 3


@promise("gateway:breaker")
def test_the_circuit_breaker_opens_after_failures_and_closes_after_a_success(dragoman_sim: Simulator) -> None:
    def configuration(seconds: float) -> str:
        breaker = f"breaker = {{ failures = 3, seconds = {seconds} }}\n"
        return provider("p", dragoman_sim.url, more=breaker) + '[routes.mine]\nto = "p/claude-sonnet-5"\nattempts = 1\n'

    def ask(gateway: RunningGateway) -> int:
        return send(gateway.url, "/v1/chat/completions", chat("mine")).status

    dragoman_sim.play(*[{"error": "server"}] * 6, {"text": "well again"})
    with routed(configuration(3600)) as gateway:
        assert [ask(gateway) for _ in range(5)] == [500, 500, 500, 503, 503]
        assert len(dragoman_sim.requests) == 3
        assert 'dragoman_breaker_open{upstream="p"} 1' in send(gateway.url, "/metrics", method="GET").body.decode()
    with routed(configuration(0.5)) as gateway:
        assert [ask(gateway) for _ in range(2)] == [500, 500]
        last_failure = time.monotonic()
        assert ask(gateway) == 500
        until(lambda: ask(gateway) == 200)
        assert time.monotonic() - last_failure > 0.5
        assert len(dragoman_sim.requests) == 7


@promise("gateway:routes")
def test_keys_are_used_in_turn_except_one_that_is_rate_limited(dragoman_sim: Simulator) -> None:
    base = simulators_at(dragoman_sim.url)["anthropic"]
    text = f'[providers.p]\nkind = "anthropic"\nbase_url = "{base}"\napi_keys = ["key-one", "key-two"]\n'
    with routed(text) as gateway:
        for _ in range(4):
            assert send(gateway.url, "/v1/chat/completions", chat("p/claude-sonnet-5")).status == 200
        assert {line["upstream"] for line in gateway.requests(4)} == {"p#1", "p#2"}


# ── slow and dead upstreams, clients that disconnect ──


class Upstream:
    """A server that streams chunks when the test releases them, and notices disconnects."""

    def __init__(self) -> None:
        self.go = threading.Semaphore(0)
        self.gone = threading.Event()
        self.asked = threading.Event()
        self.last = -1
        """The piece that says it is the last, though the connection stays."""
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                return

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["content-length"]))
                outer.asked.set()
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.send_header("transfer-encoding", "chunked")
                self.end_headers()
                try:
                    outer.pieces(self)
                except OSError:
                    outer.gone.set()

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def pieces(self, handler: BaseHTTPRequestHandler) -> None:
        number = 0
        while True:
            self.go.acquire()
            finish = "stop" if number == self.last else None
            choice = {"index": 0, "delta": {"content": f"piece {number} "}, "finish_reason": finish}
            chunk = {"id": "c", "choices": [choice]}
            data = f"data: {json.dumps(chunk)}\n\n".encode() + (b"data: [DONE]\n\n" if finish else b"")
            handler.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
            handler.wfile.flush()
            number += 1


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    one = Upstream()
    yield one
    one.server.shutdown()
    one.server.server_close()


def stream_of(model: str, path: str = "/v1/messages") -> bytes:
    body = json.dumps({"model": model, "max_tokens": 9, "stream": True, "messages": CHAT["messages"]}).encode()
    return b"POST %b HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n%b" % (path.encode(), len(body), body)


@promise("gateway:no-delay", "gateway:disconnect")
@pytest.mark.parametrize("kind", ["openai-chat"])
def test_each_chunk_is_passed_on_at_once_and_a_disconnect_is_noticed(upstream: Upstream, kind: str) -> None:
    text = f'[providers.p]\nkind = "{kind}"\nbase_url = "{upstream.url}"\napi_key = "k"\n'
    with routed(text) as gateway, connected(gateway.url) as sock:
        sock.sendall(stream_of("p/m"))
        for number in range(3):
            upstream.go.release()
            received = b""
            while f"piece {number}".encode() not in received:
                received += sock.recv(65536)
        sock.close()

        def has_noticed() -> bool:
            upstream.go.release()
            return upstream.gone.is_set()

        until(has_noticed, "the upstream call goes on without its client")
        assert gateway.requests(1)[0]["failure"] == "cancelled"


class Client(Exchange):
    """A client that reads a stream to its end, or disconnects before."""

    def __init__(self, path: str, *, leaves: bool) -> None:
        super().__init__(Head("POST", path, "", {"host": "localhost"}))
        self.body = json.dumps({"model": "p/m", "max_tokens": 9, "stream": True, "messages": CHAT["messages"]}).encode()
        self.received = b""
        self._leaves = leaves

    def receive_arrived(self) -> bool:
        return True

    def start(self, status: int, headers: Mapping[str, str], first: bytes = b"") -> None:  # noqa: ARG002
        self.started, self.received = True, first

    def write(self, data: bytes) -> bool:
        if self._leaves:
            raise Gone
        self.received += data
        return False

    def finish(self, last: bytes = b"") -> None:
        self.write(last)


@promise("gateway:disconnect")
@pytest.mark.parametrize(("path", "last"), [("/v1/messages", b"message_stop"), ("/v1/chat/completions", b"[DONE]")])
def test_a_client_that_disconnects_in_a_stream_does_not_end_later_streams(path: str, last: bytes) -> None:
    """In the compiled core, the exception of the disconnect was once raised in later streams too."""
    choice = {"index": 0, "delta": {"content": "all of it"}, "finish_reason": "stop"}
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    events = b"data: %b\n\ndata: [DONE]\n\n" % json.dumps(chunk).encode()

    async def run(text: str) -> None:
        async with serving(configured(text), log=Lines()) as running:
            for leaves in (True, False, True, False):
                client = Client(path, leaves=leaves)
                # Like a connection: a task of its own, with no other frame between the event loop and the gateway.
                serve = asyncio.ensure_future(running.gateway(client))
                (outcome,) = await asyncio.gather(serve, return_exceptions=True)
                assert type(outcome) is (Gone if leaves else type(None))
                assert last in client.received or leaves

    with scripted(reply(events, headers={"content-type": "text/event-stream"})) as upstream:
        asyncio.run(run(upstream.table("p")))


@promise("gateway:disconnect", "gateway:log")
def test_a_client_that_disconnects_after_the_last_event_has_the_whole_answer(upstream: Upstream) -> None:
    """Codex disconnects as soon as it has received the event that completes the response."""
    upstream.last = 1
    text = f'[providers.p]\nkind = "openai-chat"\nbase_url = "{upstream.url}"\napi_key = "k"\n'
    with routed(text) as gateway, connected(gateway.url) as sock:
        sock.sendall(stream_of("p/m", "/v1/chat/completions"))
        upstream.go.release(2)
        received = b""
        while b"[DONE]" not in received:
            received += sock.recv(65536)
        sock.close()
        (record,) = gateway.requests(1)
    assert (record["status"], record.get("failure")) == (200, None)


@promise("gateway:timeouts")
def test_a_dead_upstream_delays_only_its_own_requests(upstream: Upstream, dragoman_simulator: Simulator) -> None:
    text = (
        f'[providers.dead]\nkind = "openai-chat"\nbase_url = "{upstream.url}"\napi_key = "k"\n'
        "timeouts = { first_byte = 1.5 }\n"
        + provider("p", dragoman_simulator.url)
        + '[routes.dead]\nto = "dead/m"\nattempts = 1\n'
    )
    with routed(text) as gateway, connected(gateway.url) as sock:
        sock.sendall(stream_of("dead"))
        assert upstream.asked.wait(PATIENCE)
        assert send(gateway.url, "/v1/chat/completions", chat("p/claude-sonnet-5")).status == 200
        assert not select.select([sock], [], [], 0)[0], "the other request was answered first"
        head = sock.recv(65536)
        assert b" 504 " in head.split(b"\r\n")[0]
        assert b'"type":"error"' in head


@promise("gateway:shutdown")
def test_streams_in_progress_end_before_the_gateway_stops(dragoman_simulator: Simulator) -> None:
    gateway = RunningGateway(configured(provider("p", dragoman_simulator.url, fault="drip=0.002")))
    with gateway, connected(gateway.url) as sock:
        sock.sendall(stream_of("p/claude-sonnet-5"))
        received = sock.recv(4096)
        gateway.stop()
        received += until_closed(sock)
    assert received.endswith(b"0\r\n\r\n")


@promise("gateway:usage", "gateway:log", "gateway:metrics")
def test_metrics_and_the_log_have_tokens_and_times_and_no_bodies(gateway: RunningGateway) -> None:
    send(gateway.url, "/v1/messages", {**first("anthropic-messages")}, DOORS["anthropic-messages"].headers)
    (record,) = gateway.requests(1)
    assert record["tokens"]["input"] > 0
    assert "Paris" not in json.dumps(record), "bodies are not logged"
    text = send(gateway.url, "/metrics", method="GET").body.decode()
    for name in ("requests_total", "tokens_total", "first_byte_seconds_bucket", "request_seconds_sum", "in_flight"):
        assert f"dragoman_{name}" in text


@promise("gateway:log", "gateway:no-secrets")
@pytest.mark.parametrize("streamed", [False, True])
def test_bodies_are_logged_only_if_configured(dragoman_simulator: Simulator, *, streamed: bool) -> None:
    picture = "QUJD" * 500
    parts = [
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{picture}"}},
        {"type": "text", "text": "Say hello to Ada. " + "x" * 600},
    ]
    metadata = {"api_key": "a-secret-key"}
    body = chat("p/claude-sonnet-5", metadata=metadata, messages=[{"role": "user", "content": parts}], stream=streamed)
    text = "[log]\nbodies = true\nmax_body = 500\n" + provider("p", dragoman_simulator.url)
    with routed(text) as gateway:
        got = send(gateway.url, "/v1/chat/completions", body)
        gateway.requests(1)
        (line,) = [line for line in gateway.log.lines if line["event"] == "bodies"]
    assert got.status == 200, got.body
    assert line["id"] == got.headers["x-request-id"]
    assert "data:image/png;base64,[2000 characters]" in line["request"]
    assert "Say hello to Ada" in line["request"]
    assert "bytes]" in line["request"][-20:], "cut, and said to be"
    assert len(line["request"]) < 540
    assert line["answer"]
    assert "a-secret-key" not in json.dumps(line)


@promise("gateway:losses")
def test_losses_are_reported_and_a_strict_route_refuses_them(dragoman_simulator: Simulator) -> None:
    text = (
        provider("p", dragoman_simulator.url)
        + '[routes.loose]\nto = "p/claude-sonnet-4-6"\n[routes.strict]\nto = "p/claude-sonnet-4-6"\nstrict = true\n'
    )
    with routed(text) as gateway:
        loose = send(gateway.url, "/v1/chat/completions", chat("loose", seed=1, max_completion_tokens=50))
        strict = send(gateway.url, "/v1/chat/completions", chat("strict", seed=1, max_completion_tokens=50))
        fine = send(gateway.url, "/v1/chat/completions", chat("strict", max_completion_tokens=50))
        record = gateway.requests(3)[0]
    assert loose.status == 200
    assert "$.seed" in loose.headers["x-dragoman-lost"]
    assert any("$.seed" in loss for loss in record["losses"])
    assert (strict.status, fine.status) == (400, 200), fine.body
    assert strict.json["error"]["param"] == "seed"
