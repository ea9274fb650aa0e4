"""Upstreams with endless, absurd or misleading answers: each affects only its own request."""

import http.client
import json
import socket
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from urllib3.util.retry import Retry
from websockets.sync.client import connect

import dragoman
from dragoman.agent.compaction import is_context_error
from dragoman.codecs.stream_limits import Limits
from dragoman.drivers.retries import seconds_until
from dragoman.errors import LimitExceeded, provider_error
from dragoman.gateway import client_request
from dragoman.gateway.capture import Capture
from dragoman.gateway.relay import Relay
from dragoman.ir import Failure
from tests.gateway.running import RunningGateway, configured, connected, send, until_closed
from tests.gateway.scripted_upstream import NO_ANSWER, Reply, ScriptedUpstream, completion, reply, scripted
from tests.gateway.served import served
from tests.gateway.test_failures import chat
from tests.gateway.test_pairs import path_of
from tests.sim.test_sim_pairs import FORMATS, first
from tests.sim.wire import DOORS
from tests.support.cases import each
from tests.support.promises import promise
from tests.support.waiting import PATIENCE

pytestmark = promise("gateway:attacks")

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
CHUNKED = HEAD + b"transfer-encoding: chunked\r\n\r\n"
FINE = json.dumps(completion()).encode()
CHUNK = b"%x\r\n%b\r\n" % (len(FINE), FINE)
PATIENT = "breaker = { failures = 100 }"
CLIENTS = ("/v1/chat/completions", "/v1/messages")
"""The paths of a client of the upstream's own format, and of another one."""


@contextmanager
def pouring(first: bytes, piece: bytes) -> Iterator[tuple[str, Callable[[], int]]]:
    """Run an upstream that sends `first` and then `piece` until the gateway disconnects; it counts the bytes sent."""
    listening = socket.create_server(("127.0.0.1", 0))
    sent = 0

    def serve(line: socket.socket) -> None:
        nonlocal sent
        with line, suppress(OSError):
            line.settimeout(PATIENCE)
            line.recv(65536)
            line.sendall(first)
            while sent < 1 << 30:
                line.sendall(piece)
                sent += len(piece)

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=serve, args=(listening.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    with listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}", lambda: sent


ENDLESS: dict[str, tuple[bytes, bytes]] = {
    "headers": (HEAD, b"x: y\r\n" * 2_000),
    "header value": (HEAD + b"x: ", b"y" * 16_000),
    "status line": (b"HTTP/1.1 200 ", b"y" * 16_000),
    "informational answers": (b"", b"HTTP/1.1 103 Early\r\nx: y\r\n\r\n" * 500),
    "chunk extension": (CHUNKED + b"1;", b"y" * 16_000),
    "trailers": (CHUNKED + CHUNK + b"0\r\n", b"x: y\r\n" * 2_000),
    "trailer value": (CHUNKED + CHUNK + b"0\r\nx: ", b"y" * 16_000),
}


@pytest.mark.parametrize("name", ENDLESS)
def test_endless_answers_are_cut_off(name: str) -> None:
    """After some hundred kilobytes, before the time limit of the answer, and without storing them."""
    with pouring(*ENDLESS[name]) as (url, sent):
        table = f'[providers.p]\nkind = "openai-chat"\nbase_url = "{url}"\napi_key = "k"\n'
        with RunningGateway(configured(table)) as gateway:
            for path in CLIENTS:
                assert send(gateway.url, path, {**chat("p/m"), "max_tokens": 9}).status == 502
    assert sent() < 64 << 20


NOT_ANSWERS = ("204 No Content", "302 Found", "304 Not Modified", "307 Temporary Redirect", "600 What", "999 What")


@pytest.mark.parametrize("status", NOT_ANSWERS)
def test_other_statuses_are_failures_of_the_upstream_and_permit_the_fallback(status: str) -> None:
    route = '[routes.mine]\nto = "bad/m"\nfallback = ["good/m"]\n'
    body = b"" if status[0] in "23" else json.dumps({"error": {"message": "m"}}).encode()
    odd = reply(body, status, {"location": "http://169.254.169.254/latest/meta-data/"})
    with (
        scripted(odd) as bad,
        scripted(reply(completion())) as good,
        RunningGateway(configured(bad.table("bad") + good.table("good") + route)) as gateway,
    ):
        for path in CLIENTS:
            refused = send(gateway.url, path, {**chat("bad/m"), "max_tokens": 9})
            assert refused.status == 502, refused.body
            assert "location" not in refused.headers
            assert refused.json["error"]["message"]
            answered = send(gateway.url, path, {**chat("mine"), "max_tokens": 9})
            assert (answered.status, b"fine" in answered.body) == (200, True)


WAITS = ("nan", "inf", "-inf", "-5", "1e400", "9" * 400, "1000000000000", "soon", "", "²", "0x5")
DATES = ("Fri, 31 Dec 9999 23:59:59 +99999999999999", "1 Jan 99999999999999999999 00:00:00 GMT", "Fri, 99 Dec 99999")


@each("value", (*WAITS, *DATES))
@each("name", ("retry-after", "retry-after-ms"))
@each("format", dragoman.formats())
def test_retry_after_is_a_finite_number_in_digits(format: str, name: str, value: str) -> None:
    body = dragoman.encode_error(Failure("rate_limit", "later", 429), format).json()
    failure = dragoman.decode_error(body, format, status=429, headers={name: value})
    assert failure.retry_after is None or 0 <= failure.retry_after < 1e15
    if failure.retry_after is not None:
        written = dragoman.encode_error(Failure("rate_limit", "later", 429, retry_after=failure.retry_after), format)
        text = written.headers.get("retry-after") or json.loads(written.json())["error"]["details"][-1]["retryDelay"]
        assert text.rstrip("s").isdigit(), text
    wait = seconds_until(value)
    assert wait is None or wait >= 0


@each("seconds", (0.0, 0.1, 1.0, 2.5, 59.9, 3600.0))
@each("format", [one for one in dragoman.formats() if one not in {"gemini", "vertex", "gemini-interactions"}])
def test_retry_after_is_in_whole_seconds(format: str, seconds: float) -> None:
    """RFC 9110 permits no fractions: urllib3 raises an error for one, Cohere's SDK ignores the header."""
    encoded = dragoman.encode_error(Failure("rate_limit", "later", 429, retry_after=seconds), format)
    given = Retry().parse_retry_after(encoded.headers["retry-after"])
    assert seconds <= given < seconds + 1
    again = dragoman.decode_error(encoded.json(), format, status=429, headers=encoded.headers)
    assert again.retry_after == pytest.approx(seconds)


INFO = "type.googleapis.com/google.rpc.RetryInfo"


@each("delay", ("nans", "infs", "-1s", "1e999s", "xs", "s", ""))
@each("format", ("gemini", "vertex"))
def test_retry_delays_of_google_are_finite(format: str, delay: str) -> None:
    body = {"error": {"code": 429, "details": [{"@type": INFO, "retryDelay": delay}]}}
    assert dragoman.decode_error(json.dumps(body).encode(), format, status=429).retry_after is None


@pytest.mark.parametrize("wait", ["nan", "inf", "1000000000000", DATES[0]])
def test_an_absurd_retry_after_does_not_disable_a_model(wait: str) -> None:
    """`float` accepts `nan`, and no time is later than that, so the model would never be tried again."""
    limited = reply({"error": {"message": "later"}}, "429 Too Many Requests", {"retry-after": wait})
    route = '[routes.mine]\nto = "p/m"\nattempts = 1\n'
    with (
        scripted(limited) as upstream,
        RunningGateway(configured(upstream.table("p") + route)) as gateway,
    ):
        for path in (*CLIENTS, *CLIENTS):  # the later ones may be refused by the breaker
            refused = send(gateway.url, path, {**chat("mine"), "max_tokens": 9})
            assert refused.status == 429, refused.body
            assert "nan" not in refused.headers.get("retry-after", "") or path == CLIENTS[0]
        if not wait.isdigit():
            upstream.replies = [reply(completion())]
            assert send(gateway.url, CLIENTS[0], chat("mine")).status == 200


def test_an_answer_that_is_too_large_is_a_failure_of_the_upstream() -> None:
    """A failure of the request would not permit the fallback."""
    route = '[routes.mine]\nto = "bad/m"\nfallback = ["good/m"]\n'
    with (
        scripted(reply(b" " * 3_000_000)) as bad,
        scripted(reply(completion())) as good,
        RunningGateway(configured(bad.table("bad", more=PATIENT) + good.table("good") + route)) as gateway,
    ):
        for relay in (Relay(1_000_000), Relay(answers=1_000_000)):
            assert gateway.running is not None
            gateway.running.gateway.relay = relay
            for path in CLIENTS:
                assert send(gateway.url, path, {**chat("bad/m"), "max_tokens": 9}).status == 502
                assert send(gateway.url, path, {**chat("mine"), "max_tokens": 9}).status == 200


@pytest.mark.parametrize(
    "listed",
    [b'{"data":[%b1]}' % (b"1," * 500_000), b'{"data":[%b1]}' % (b"1," * 1_500_000), b" " * (65 << 20), b"[]"],
    ids=["many entries", "very many entries", "many bytes", "no list"],
)
def test_a_list_of_an_unusual_size_is_a_failure_of_the_upstream(listed: bytes) -> None:
    """Its entries, which are looked up one by one, would take far more memory than its bytes."""
    table = '[server]\nkeys = ["a-long-key"]\n'
    with (
        scripted(reply(listed)) as upstream,
        RunningGateway(configured(table + upstream.table("p", "openai", PATIENT))) as gateway,
    ):
        got = send(gateway.url, "/v1/fine_tuning/jobs", None, {"authorization": "Bearer a-long-key"}, "GET")
        assert got.status == 502, got.body[:200]
        assert gateway.running is not None
        assert gateway.running.gateway.relay._answers.used == 0  # noqa: SLF001 - the memory is released


def test_what_is_collected_of_a_stream_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its content is collected while it passes, and would fill the memory."""
    monkeypatch.setattr(client_request, "STREAM_LIMITS", Limits(stream_bytes=1_000_000))
    endless = {**STREAM, "content-length": str(1 << 40)}
    long = reply(chunk(delta={"content": "x" * 900}) * 2_000, headers=endless)
    with scripted(long) as upstream, RunningGateway(configured(upstream.table("p"))) as gateway:
        body = {**chat("p/m"), "max_tokens": 9, "stream": True}
        assert b"event: error" in send(gateway.url, CLIENTS[1], body).body[-1_000:]  # while the upstream's goes on
        (line,) = gateway.requests(1)
    assert line["failure"] == "too_large"


def test_memory_reserved_for_answers_is_released() -> None:
    """Whether the answers succeed or fail."""
    long = completion("x" * 500_000)
    with (
        scripted(reply(long), reply(b"x" * 500_000), reply(long)) as upstream,
        RunningGateway(configured(upstream.table("p", more=PATIENT))) as gateway,
    ):
        assert gateway.running is not None
        gateway.running.gateway.relay = Relay(answers=600_000)
        statuses = [send(gateway.url, "/v1/messages", {**chat("p/m"), "max_tokens": 9}).status for _ in range(4)]
    assert statuses == [200, 502, 200, 200]


def test_an_answer_that_is_too_large_is_not_a_context_error() -> None:
    too_large = Failure("too_large", "more than 67108864 bytes", raw_type=LimitExceeded.__name__)
    assert not is_context_error(provider_error(too_large))
    assert is_context_error(provider_error(Failure("too_large", "too large", 413)))


def test_the_number_of_upstream_headers_is_limited() -> None:
    """Python's http.client refuses an answer with more than 100."""
    many = {f"x-ratelimit-{number}": "y" for number in range(150)}
    with (
        scripted(reply(completion(), headers=many)) as upstream,
        RunningGateway(configured(upstream.table("p"))) as gateway,
    ):
        answered = send(gateway.url, "/v1/chat/completions", chat("p/m"))
    assert answered.status == 200
    assert "x-ratelimit-0" in answered.headers


# ── keys in answers ──

KEY = "upstream-key"
"""The key of a scripted upstream."""
QUOTED = {"error": {"message": f"Incorrect API key: {KEY}", "type": "invalid_request_error"}}


def chunk(**choice: object) -> bytes:
    made = {"index": 0, "delta": {}, "finish_reason": None, **choice}
    return sse({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [made]})


def sse(event: object) -> bytes:
    return b"data: " + json.dumps(event).encode() + b"\n\n"


STREAM = {"content-type": "text/event-stream"}
LEAKING = {
    "in a whole answer": reply(QUOTED),
    "in a failed response": reply({**completion(), **QUOTED}),
    "in the first event": reply(sse(QUOTED), headers=STREAM),
    "in a later event": reply(chunk(delta={"content": "a"}) + sse(QUOTED), headers=STREAM),
}


@promise("gateway:page-no-secrets")
@pytest.mark.parametrize("name", LEAKING)
def test_a_key_that_an_answer_quotes_is_hidden_from_client_log_and_page(name: str) -> None:
    streamed = "event" in name
    capture = Capture()
    with scripted(LEAKING[name]) as upstream:
        setting = configured(upstream.table("p", more=PATIENT))
        with RunningGateway(setting) as gateway:
            assert gateway.running is not None
            gateway.running.gateway.capture = capture
            for path in (*CLIENTS, "/v1/responses"):
                body = {"input": "x"} if path == "/v1/responses" else chat("p/m")
                got = send(gateway.url, path, {**body, "model": "p/m", "max_tokens": 9, "stream": streamed})
                assert b"[hidden]" in got.body, path
                assert KEY.encode() not in got.body, path
            gateway.requests(3)
            assert KEY not in str(gateway.log.lines)
        for request in capture:
            shown = [*((one.answer, one.error) for one in request.attempts), request.answer, *request.pieces]
            assert KEY not in str(shown)


def pieces_of_a_key(at: int) -> tuple[bytes, bytes]:
    event = chunk(delta={"content": "a"}) + sse(QUOTED)
    cut = event.index(KEY.encode()) + at
    return event[:cut], event[cut:]


@pytest.mark.parametrize("at", range(1, len(KEY)))
@pytest.mark.parametrize("path", CLIENTS)
def test_a_key_split_between_two_reads_is_hidden(path: str, at: int) -> None:
    first, second = pieces_of_a_key(at)
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
    with (
        in_turns(head + first, second) as url,
        RunningGateway(
            configured(f'[providers.p]\nkind = "openai-chat"\nbase_url = "{url}"\napi_key = "{KEY}"\n')
        ) as gateway,
    ):
        got = send(gateway.url, path, {**chat("p/m"), "max_tokens": 9, "stream": True})
        assert b"[hidden]" in got.body
        assert KEY.encode() not in got.body
        assert KEY not in str(gateway.log.lines)


@contextmanager
def in_turns(*pieces: bytes) -> Iterator[str]:
    """Run an upstream that sends its answer in several writes."""

    def serve(line: socket.socket) -> None:
        with line, suppress(OSError):
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            line.recv(65536)
            for piece in pieces:
                line.sendall(piece)
                time.sleep(0.02)

    with socket.create_server(("127.0.0.1", 0)) as listening:

        def accept() -> None:
            with suppress(OSError):
                while True:
                    threading.Thread(target=serve, args=(listening.accept()[0],), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


def test_the_beginning_of_a_key_at_the_end_of_a_stream_is_sent() -> None:
    whole = chunk(delta={"content": "a"}) + chunk(finish_reason="stop") + b"data: [DONE]\n\n: up"
    table = '[providers.p]\nkind = "openai-chat"\nbase_url = "{}"\napi_key = "upstream-key"\n'
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
    with in_turns(head + whole) as url, RunningGateway(configured(table.format(url))) as gateway:
        assert send(gateway.url, CLIENTS[0], {**chat("p/m"), "stream": True}).body == whole


def test_a_key_with_escapes_or_in_a_header_is_hidden() -> None:
    escaped = json.dumps(QUOTED).replace(KEY, KEY.replace("k", "\\u006b")).encode()
    headers = {"x-ratelimit-note": f"of {KEY}", "x-request-id": KEY}
    replies = (reply(escaped, "400 Bad Request", headers), reply(completion(), headers=headers))
    with (
        scripted(*replies) as upstream,
        RunningGateway(configured(upstream.table("p", more=PATIENT))) as gateway,
    ):
        refused, answered = (send(gateway.url, CLIENTS[0], chat("p/m")) for _ in range(2))
        assert (refused.status, answered.status) == (400, 200)
        assert refused.json["error"]["message"] == "Incorrect API key: [hidden]"
        assert answered.headers["x-ratelimit-note"] == "of [hidden]"
        assert KEY not in str([refused.headers, answered.headers])


@pytest.mark.parametrize("kind", ["openai-chat", "anthropic", "cohere"])
@pytest.mark.parametrize("streamed", [False, True])
def test_a_key_in_any_part_of_an_error_is_hidden_in_every_format(kind: str, *, streamed: bool) -> None:
    error = {"message": "no", "type": KEY, "code": KEY, "param": KEY}
    quoted = {"type": "error", "error": error, "request_id": KEY, "id": KEY, "message": "no"}
    names = ("x-request-id", "request-id", "x-debug-trace-id", "retry-after")
    refusals = [reply(quoted, "400 Bad Request"), reply({}, "400 Bad Request", dict.fromkeys(names, KEY))]
    with scripted(*refusals) as upstream, RunningGateway(configured(upstream.table("p", kind))) as gateway:
        for format in FORMATS:
            for answer in refusals:
                upstream.replies = [answer]
                body = {**first(format), **(DOORS[format].streams if streamed else {})}
                sent = {**body, "model": "p/m"} if "model" in body else body
                got = send(gateway.url, path_of(format, "p/m", streamed=streamed), sent, DOORS[format].headers)
                assert got.status == 400, (format, got.body)
                assert KEY not in str([got.headers, got.body]), format
        assert KEY not in str(gateway.log.lines)


OWNED = {
    "openai": ("/v1/responses", {"id": "resp_1", "object": "response", "status": "completed", "output": []}),
    "gemini-interactions": ("/v1beta/interactions", {"id": "v1_1", "status": "completed", "steps": []}),
}
"""Objects that an upstream stores: where a client creates and finds them, and what the upstream answers first."""


@contextmanager
def owned(kind: str) -> Iterator[tuple[ScriptedUpstream, RunningGateway, str]]:
    """Run an upstream that has stored an object, and a gateway that knows it."""
    path, made = OWNED[kind]
    with (
        scripted(reply({**made, "model": "m"})) as upstream,
        RunningGateway(configured(upstream.table("p", kind, f'{PATIENT}\nheaders = {{ "x-ours" = "1" }}'))) as gateway,
    ):
        assert send(gateway.url, path, {"model": "p/m", "input": "x"}).status == 200
        yield upstream, gateway, f"{path}/{made['id']}"


@pytest.mark.parametrize("kind", OWNED)
def test_failures_of_an_upstream_that_stores_an_object_are_its_own(kind: str) -> None:
    answers = {
        502: (NO_ANSWER, reply(b"", "302 Found", {"location": "http://127.0.0.1:1/"}), Reply(b"HTTP/1.1 2\r\n\r\n")),
        401: (reply({"error": {"message": f"wrong key {KEY}"}}, "401 Unauthorized"),),
        403: (reply({"error": {"message": f"wrong key {KEY}"}}, "403 Forbidden"),),
    }
    with owned(kind) as (upstream, gateway, path):
        for status, replies in answers.items():
            for answer in replies:
                upstream.replies = [answer]
                got = send(gateway.url, path, method="GET")
                assert got.status == status, got.body
                assert got.json["error"]["message"]
                assert "location" not in got.headers
                assert KEY not in str([got.headers, got.body])
        assert all("\nx-ours: 1" in head for head in upstream.heads)


@pytest.mark.parametrize("kind", OWNED)
def test_pages_of_an_upstream_that_stores_an_object_are_sandboxed(kind: str) -> None:
    with owned(kind) as (upstream, gateway, path):
        upstream.replies = [reply(b"<script>1</script>", headers={"content-type": "text/html"})]
        got = send(gateway.url, path, method="GET")
        assert got.headers["content-security-policy"] == "sandbox; default-src 'none'"


@pytest.mark.parametrize("kind", OWNED)
def test_events_of_an_upstream_that_stores_an_object_are_sent_as_they_come(kind: str) -> None:
    more = threading.Event()
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"

    class Waiting(ScriptedUpstream):
        def _answer(self, client: socket.socket, incoming: Any) -> bool:
            while incoming.readline() not in {b"\r\n", b""}:
                pass
            client.sendall(head + sse({"n": 1}))
            assert more.wait(PATIENCE)
            client.sendall(sse({"n": KEY}))
            return False

    with owned(kind) as (upstream, gateway, path):
        waiting = Waiting(reply(b""))
        gateway.reload(waiting.table("p", kind))
        try:
            with connected(gateway.url) as sock:
                sock.sendall(
                    b"GET %b?stream=true HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n" % path.encode()
                )
                received = b""
                while sse({"n": 1}) not in received:
                    received += sock.recv(65536)
                more.set()
                received += until_closed(sock)
        finally:
            waiting.close()
        assert received.endswith(b"0\r\n\r\n")
        assert KEY.encode() not in received
        assert upstream.count == 1


CREATED = {"type": "response.created", "response": {"id": "r"}}
UNFINISHED: dict[str, Reply] = {
    "text as an error": reply({"error": "no"}, "400 Bad Request"),
    "a list": reply([{"error": {"message": "no"}}], "400 Bad Request"),
    "null as an error": reply({"error": None, "message": "no"}, "400 Bad Request"),
    "another key": reply({"detail": "no"}, "400 Bad Request"),
    "nothing after the first event": reply(sse(CREATED), headers=STREAM),
    "the ending of another API": reply(sse(CREATED) + b"data: [DONE]\n\n", headers=STREAM),
    "half an event": reply(sse(CREATED) + b'data: {"type"', headers=STREAM),
    "half an answer": reply(sse(CREATED), headers={**STREAM, "content-length": "9000", "connection": "close"}),
}


@pytest.mark.parametrize("previous", [None, "resp_0"])
def test_every_turn_over_a_websocket_ends_with_an_event(previous: str | None) -> None:
    """The client cannot see otherwise that the answer has ended: the connection stays open."""
    turn = {"type": "response.create", "model": "p/m", "input": "x", "previous_response_id": previous}
    with scripted(NO_ANSWER) as upstream, RunningGateway(configured(upstream.table("p", "openai", PATIENT))) as gateway:
        url = gateway.url.replace("http", "ws") + "/v1/responses"
        for name, answer in UNFINISHED.items():
            upstream.replies = [answer]
            with connect(url, proxy=None) as websocket:
                websocket.send(json.dumps(turn))
                event: dict[str, Any] = {}
                while event.get("type") not in {"error", "response.failed"}:
                    event = json.loads(websocket.recv(PATIENCE))
                error = event["error"] if event["type"] == "error" else event["response"]["error"]
                assert error["message"], name
                assert answer.data.startswith(b"HTTP/1.1 200") or error["message"] == "no", name


def test_a_stream_that_ends_within_an_event_is_cut_for_the_client_too() -> None:
    begun = reply(chunk(delta={"content": "a"}) + chunk(delta={"content": "b"})[:30], headers=STREAM)
    with scripted(begun) as upstream, RunningGateway(configured(upstream.table("p", more=PATIENT))) as gateway:
        with pytest.raises(http.client.HTTPException):
            send(gateway.url, CLIENTS[0], {**chat("p/m"), "stream": True})
        translated = send(gateway.url, CLIENTS[1], {**chat("p/m"), "max_tokens": 9, "stream": True})
        assert b"event: error" in translated.body
        assert [line["failure"] for line in gateway.requests(2)] == ["truncated", "truncated"]


def test_what_came_before_a_cut_still_arrives() -> None:
    """A client that gets no head takes its request for an unprocessed one, and sends it again."""
    whole = chunk(delta={"content": "a"})
    begun = reply(whole + chunk(delta={"content": "b"})[:30], headers=STREAM)
    body = json.dumps({**chat("p/m"), "stream": True}).encode()
    request = b"POST /v1/chat/completions HTTP/%b\r\nHost: a\r\nContent-Length: %d\r\n\r\n%b"
    with scripted(begun) as upstream, RunningGateway(configured(upstream.table("p", more=PATIENT))) as gateway:
        for version in (b"1.1", b"1.0"):
            with connected(gateway.url) as sock:
                sock.sendall(request % (version, len(body), body))
                received, is_reset = bytearray(), False
                try:
                    while data := sock.recv(65536):
                        received += data
                except ConnectionResetError:
                    is_reset = True
            if version == b"1.1":
                assert received.startswith(b"HTTP/1.1 200 ")
                assert whole in received
            # Without chunks only a reset shows that the answer is incomplete.
            assert is_reset == (version == b"1.0")
            assert not received.endswith(b"0\r\n\r\n")


def test_an_answer_without_a_message_permits_the_fallback() -> None:
    route = '[routes.mine]\nto = "bad/m"\nfallback = ["good/m"]\n'
    with (
        scripted(reply({**completion(), "choices": []})) as bad,
        scripted(reply(completion())) as good,
        RunningGateway(configured(bad.table("bad", more=PATIENT) + good.table("good") + route)) as gateway,
    ):
        for path in ("/v1/messages", "/v1/responses"):
            body = {**chat("bad/m"), "max_tokens": 9} if path == "/v1/messages" else {"input": "x"}
            assert send(gateway.url, path, {**body, "model": "bad/m"}).status == 502
            assert b"fine" in send(gateway.url, path, {**body, "model": "mine"}).body


@pytest.mark.parametrize("usage", [(-1_000_000, 4), (3, -1_000_000)])
def test_negative_counts_of_an_upstream_refund_nothing(usage: tuple[int, int]) -> None:
    counts = {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage)}
    price = '[prices."p/m"]\ninput = 1.0\noutput = 1.0\n'
    with (
        scripted(reply({**completion(), "usage": counts})) as upstream,
        RunningGateway(configured(upstream.table("p") + price)) as gateway,
    ):
        for path in CLIENTS:
            assert send(gateway.url, path, {**chat("p/m"), "max_tokens": 9}).status == 200
        for line in gateway.requests(2):
            assert line["cost"] >= 0
            assert min(line["tokens"]["input"], line["tokens"]["output"]) == 0


# ── compressed streams ──

BOMBS = {
    "line breaks": b"\n" * 4_000_000,
    "comments": b": x\n\n" * 2_000_000,
    "events": chunk(delta={"content": "a"}) * 100_000,
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_compressed_stream_does_not_hold_up_other_requests(tmp_path: Path, name: str) -> None:
    """A few kilobytes may decompress to many megabytes of events, so they are processed in small pieces."""
    machine = zlib.compressobj(9, zlib.DEFLATED, 31)
    packed = machine.compress(BOMBS[name] * 4) + machine.flush()
    bomb = reply(packed, headers={"content-type": "text/event-stream", "content-encoding": "gzip"})
    with scripted(bomb) as upstream, served(tmp_path, upstream.table("p", more=PATIENT)) as gateway:
        before = gateway.cpu_seconds
        asking = threading.Thread(
            target=send, args=(gateway.url, CLIENTS[1], {**chat("p/m"), "max_tokens": 9, "stream": True})
        )
        asking.start()
        answers = 0
        while asking.is_alive():
            assert send(gateway.url, "/health", method="GET").status == 200
            answers += 1
        asking.join()
        spent = gateway.cpu_seconds - before
    assert answers > 4 * spent, f"{answers} answers in {spent} seconds of work"


def test_the_compression_ratio_of_an_answer_is_limited() -> None:
    """The size of a stream is not limited, but its compression ratio is."""
    machine = zlib.compressobj(9, zlib.DEFLATED, 31)
    packed = machine.compress(b"\n" * (100 << 20)) + machine.flush()
    bomb = reply(packed, headers={"content-type": "text/event-stream", "content-encoding": "gzip"})
    with scripted(bomb) as upstream, RunningGateway(configured(upstream.table("p", more=PATIENT))) as gateway:
        for path in CLIENTS:
            got = send(gateway.url, path, {**chat("p/m"), "max_tokens": 9, "stream": True})
            assert got.status == 502
            assert b"too large" in got.body
