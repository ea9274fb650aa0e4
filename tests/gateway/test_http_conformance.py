"""Unusual, malformed and hostile HTTP requests, to a gateway in a separate process: each gets the right status."""

import signal
import socket
import ssl
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import h2.config
import h2.connection
import h2.events
import h2.settings
import hpack
import httpx
import pytest
from h2.errors import ErrorCodes
from h2.settings import SettingCodes

from dragoman.sim.server import Simulator
from tests.gateway.running import Got, send, until_closed
from tests.gateway.served import Served, served
from tests.gateway.test_failures import chat, provider
from tests.sim.test_sim_tls import certificate, self_signed
from tests.support.promises import promise
from tests.support.waiting import PATIENCE

__all__ = ["certificate"]

BODY = b'{"model":"p/claude-sonnet-5","messages":[{"role":"user","content":"Hello"}]}'
POST = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n"
LENGTH = b"content-length: %d\r\n" % len(BODY)
GOOD = POST + LENGTH + b"\r\n" + BODY
SMUGGLED = b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n"
CHUNKED = POST + b"transfer-encoding: chunked\r\n\r\n"


@pytest.fixture(scope="module")
def gateway(dragoman_simulator: Simulator, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("gateway"), provider("p", dragoman_simulator.url), "--quiet") as running:
        yield running


def ask(gateway: Served, data: bytes) -> list[int]:
    """Return the statuses of all answers to these bytes."""
    with gateway.connect() as sock:
        sock.sendall(data)
        sock.settimeout(3.0)
        received = b""
        try:
            while piece := sock.recv(65536):
                received += piece
        except TimeoutError:
            pass
        except ConnectionResetError:
            pass
    return [int(one[:3]) for one in received.split(b"HTTP/1.1 ")[1:]]


def is_well(gateway: Served) -> bool:
    return send(gateway.url, "/v1/chat/completions", BODY).status == 200


# Requests that two servers could interpret differently; each is followed by a request that must not be answered.
SMUGGLING: dict[str, bytes] = {
    "length and chunks": POST + LENGTH + b"transfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunks and length": POST + b"transfer-encoding: chunked\r\n" + LENGTH + b"\r\n0\r\n\r\n",
    "two lengths": POST + LENGTH + b"content-length: 3\r\n\r\n" + BODY,
    "the same length twice": POST + LENGTH + LENGTH + b"\r\n" + BODY,
    "a list of lengths": POST + b"content-length: 5, 5\r\n\r\nhello",
    "negative length": POST + b"content-length: -1\r\n\r\n",
    "signed length": POST + b"content-length: +5\r\n\r\nhello",
    "hexadecimal length": POST + b"content-length: 0x5\r\n\r\nhello",
    "endless length": POST + b"content-length: 99999999999999999999999\r\n\r\nhello",
    "another coding": POST + b"transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "chunked twice": POST + b"transfer-encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
    "two codings": POST + b"transfer-encoding: chunked\r\ntransfer-encoding: identity\r\n\r\n0\r\n\r\n",
    "a coding like chunked": POST + b"transfer-encoding: xchunked\r\n\r\n0\r\n\r\n",
    "chunks in HTTP/1.0": b"POST /v1/chat/completions HTTP/1.0\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "space before the colon": POST + b"transfer-encoding : chunked\r\n\r\n0\r\n\r\n",
    "folded line": POST + b"x: y\r\n z\r\n" + LENGTH + b"\r\n" + BODY,
    "bare line feed": b"POST /v1/chat/completions HTTP/1.1\nhost: x\n" + LENGTH + b"\r\n" + BODY,
    "bare carriage return": POST + b"x: y\rtransfer-encoding: chunked\r\n" + LENGTH + b"\r\n" + BODY,
    "no colon": POST + b"transfer-encoding\r\n" + LENGTH + b"\r\n" + BODY,
    "no name": POST + b": chunked\r\n" + LENGTH + b"\r\n" + BODY,
    "null in a value": POST + b"x: a\0b\r\n" + LENGTH + b"\r\n" + BODY,
    "null in a name": POST + b"x\0: a\r\n" + LENGTH + b"\r\n" + BODY,
    "null in the path": b"POST /v1/chat\0 HTTP/1.1\r\nhost: x\r\n" + LENGTH + b"\r\n" + BODY,
    "bad chunk size": CHUNKED + b"zz\r\nhello\r\n0\r\n\r\n",
    "negative chunk": CHUNKED + b"-1\r\nhello\r\n0\r\n\r\n",
    "prefixed chunk size": CHUNKED + b"0x5\r\nhello\r\n0\r\n\r\n",
    "endless chunk": CHUNKED + b"FFFFFFFFFFFFFFFFFF\r\nhello\r\n0\r\n\r\n",
    "chunk longer than it says": CHUNKED + b"3\r\nhello\r\n0\r\n\r\n",
    "line feed after a chunk size": CHUNKED + b"5\nhello\r\n0\r\n\r\n",
    "line feed after a chunk": CHUNKED + b"5\r\nhello\n0\r\n\r\n",
    "two hosts": POST + b"host: y\r\n" + LENGTH + b"\r\n" + BODY,
    "no host": b"POST /v1/chat/completions HTTP/1.1\r\n" + LENGTH + b"\r\n" + BODY,
    "two keys": POST + b"x-api-key: a\r\nx-api-key: b\r\n" + LENGTH + b"\r\n" + BODY,
    "lower-case method": b"post /v1/chat/completions HTTP/1.1\r\nhost: x\r\n\r\n",
    "unknown method": b"FROB / HTTP/1.1\r\nhost: x\r\n\r\n",
    "no version": b"GET /health\r\nhost: x\r\n\r\n",
    "other version": b"GET /health HTTP/3.0\r\nhost: x\r\n\r\n",
    "authority form": b"CONNECT x:443 HTTP/1.1\r\nhost: x\r\n\r\n",
    "no path": b"GET health HTTP/1.1\r\nhost: x\r\n\r\n",
    "oversized request line": b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\nhost: x\r\n\r\n",
    "oversized header": POST + b"x: " + b"y" * 100_000 + b"\r\n" + LENGTH + b"\r\n" + BODY,
    "endless header": POST + b"x: " + b"y" * 300_000,
    "many headers": POST + b"".join(b"x%d: y\r\n" % number for number in range(300)) + LENGTH + b"\r\n" + BODY,
    "one header many times": POST + b"x: y\r\n" * 5_000 + LENGTH + b"\r\n" + BODY,
    "endless trailers": CHUNKED + b"0\r\n" + b"x: y\r\n" * 50_000,
    "endless chunk extension": CHUNKED + b"5;" + b"x" * 300_000,
    "not HTTP": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 20,
}


@promise("gateway:bad-input", "gateway:http-conformance")
@pytest.mark.parametrize("name", SMUGGLING)
def test_ambiguous_or_malformed_requests_are_refused_once(gateway: Served, name: str) -> None:
    statuses = ask(gateway, SMUGGLING[name] + SMUGGLED)
    assert len(statuses) == 1, "a request behind it was answered"
    assert statuses[0] in {400, 405, 413, 414, 431, 501, 505}, statuses
    assert is_well(gateway)


BROKEN_CHUNKS = [
    name for name, data in SMUGGLING.items() if data.startswith(CHUNKED) and not name.startswith("endless")
]


@promise("gateway:bad-input", "gateway:http-conformance")
@pytest.mark.parametrize("name", BROKEN_CHUNKS)
def test_broken_chunks_are_refused_at_once_if_the_connection_ends_with_the_request(gateway: Served, name: str) -> None:
    """The gateway once waited for the rest of a body that could not come, until the time limit of bodies."""
    started = time.monotonic()
    assert ask(gateway, SMUGGLING[name].replace(POST, POST + b"connection: close\r\n")) == [400]
    assert time.monotonic() - started < 5.0, "half of the window in which the rate of a body is measured"


FINE: dict[str, tuple[bytes, list[int]]] = {
    "plain": (GOOD, [200]),
    "chunks": (CHUNKED + b"%x;a=b\r\n%b\r\n0\r\nx: y\r\n\r\n" % (len(BODY), BODY), [200]),
    "chunks of a byte": (CHUNKED + b"".join(b"1\r\n%c\r\n" % byte for byte in BODY) + b"0\r\n\r\n", [200]),
    "absolute form": (b"GET http://x.example/health?a=b HTTP/1.1\r\nhost: x\r\n\r\n", [200]),
    "doubled user agent": (POST + b"user-agent: a\r\nuser-agent: b\r\n" + LENGTH + b"\r\n" + BODY, [200]),
    "doubled accept": (POST + b"accept: a\r\naccept: b\r\n" + LENGTH + b"\r\n" + BODY, [200]),
    "empty lines before": (b"\r\n\r\n" + GOOD, [200]),
    "HTTP/1.0": (GOOD.replace(b"HTTP/1.1", b"HTTP/1.0"), [200]),
    "upgrade to h2c": (b"GET /health HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n", [200]),
    "upgrade with a body": (POST + b"connection: upgrade\r\nupgrade: h2c\r\n" + LENGTH + b"\r\n" + BODY, [200]),
    "pipelined": (GOOD + SMUGGLED + GOOD, [200, 200, 200]),
    "pipelined, the last one broken": (GOOD + GOOD + b"HELLO\r\n\r\n" + SMUGGLED, [200, 200, 400]),
    "pipelined after close": (GOOD.replace(LENGTH, LENGTH + b"connection: close\r\n") + SMUGGLED, [200]),
    "an invalid host": (b"GET /health HTTP/1.1\r\nhost: [::1\r\n\r\n", [200]),
    "an invalid origin": (b"GET /v1/models HTTP/1.1\r\nhost: x\r\norigin: http://[\r\n\r\n", [403]),
    "an invalid host of a page": (b"GET /_/api/site HTTP/1.1\r\nhost: [::1\r\n\r\n", [403]),
    "head": (b"HEAD /v1/models HTTP/1.1\r\nhost: x\r\n\r\n" + SMUGGLED, [200, 200]),
}


@promise("gateway:http-conformance")
def test_unusual_but_valid_requests_are_answered(gateway: Served) -> None:
    """At the same time, because open connections are watched for three seconds, in case an extra answer comes."""
    with ThreadPoolExecutor(len(FINE)) as pool:
        answers = pool.map(lambda case: ask(gateway, case[0]), FINE.values())
        assert dict(zip(FINE, answers, strict=True)) == {name: statuses for name, (_, statuses) in FINE.items()}


@promise("gateway:http-conformance")
@pytest.mark.parametrize("name", ["plain", "chunks", "pipelined"])
def test_requests_may_be_split_between_any_two_bytes(gateway: Served, name: str) -> None:
    data, statuses = FINE[name]
    with gateway.connect() as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in data:
            sock.sendall(bytes([byte]))
        received = b""
        while received.count(b"HTTP/1.1 200 OK") < len(statuses):
            received += sock.recv(65536)


@promise("gateway:http-conformance")
@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
@pytest.mark.parametrize("name", [b"", b"connection", b"proxy-connection"])
@pytest.mark.parametrize("value", [b"keep-alive", b"close"])
def test_only_clients_of_http_1_1_get_chunks(gateway: Served, version: bytes, name: bytes, value: bytes) -> None:
    """The parser reports that both versions keep a connection, if the client asks for it in either header."""
    body = BODY.replace(b'{"model"', b'{"stream":true,"model"')
    asked = b"%b: %b\r\n" % (name, value) if name else b""
    head = POST.replace(b"1.1", version) + asked + b"content-length: %d\r\n\r\n" % len(body)
    with gateway.connect() as sock:
        sock.sendall(head + body)
        received = b""
        while b"[DONE]" not in received and (piece := sock.recv(65536)):
            received += piece
    assert b"[DONE]" in received
    assert (b"transfer-encoding: chunked" in received) is (version == b"1.1")


@promise("gateway:http-conformance")
def test_too_many_pipelined_requests_are_refused(gateway: Served) -> None:
    statuses = ask(gateway, SMUGGLED * 2_000)
    assert statuses[-1] == 429
    assert is_well(gateway)


@promise("gateway:http-conformance")
def test_head_has_the_headers_and_no_body(gateway: Served) -> None:
    with gateway.connect() as sock:
        sock.sendall(b"HEAD /health HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        head, _, body = until_closed(sock).partition(b"\r\n\r\n")
    assert b"content-length: " in head
    assert body == b""


@promise("gateway:http-conformance")
def test_a_slow_head_is_cut_off(gateway: Served) -> None:
    """The whole head has to arrive within fifteen seconds."""
    started = time.monotonic()
    with gateway.connect() as sock:
        sock.sendall(b"GET /health HTTP/1.1\r\n")
        sock.settimeout(0.5)
        received = None
        while received is None and time.monotonic() < started + 25:
            try:
                sock.sendall(b"x: y\r\n")
                received = sock.recv(100)
            except TimeoutError:
                continue
    assert received is not None
    assert b" 408 " in received
    assert time.monotonic() - started < 18


# ── HTTP/2 ──


class Http2:
    """A client that can send any frames."""

    def __init__(self, gateway: Served) -> None:
        self.sock = gateway.connect()
        config = h2.config.H2Configuration(
            client_side=True, validate_outbound_headers=False, normalize_outbound_headers=False
        )
        self.h2 = h2.connection.H2Connection(config)
        self.h2.initiate_connection()
        self.closed = False
        self.flush()

    def flush(self) -> None:
        self.send(self.h2.data_to_send())

    def send(self, data: bytes) -> None:
        try:
            self.sock.sendall(data)
        except OSError:
            self.closed = True

    def headers(self, path: str = "/health", method: str = "GET", **more: str) -> list[tuple[str, str]]:
        named = {name.replace("_", "-"): value for name, value in more.items()}
        return [(":method", method), (":path", path), (":scheme", "http"), (":authority", "x"), *named.items()]

    def ask(self, headers: list[tuple[str, str]], body: bytes | None = None) -> int:
        stream = self.h2.get_next_available_stream_id()
        self.h2.send_headers(stream, headers, end_stream=body is None)
        if body is not None:
            self.h2.send_data(stream, body, end_stream=True)
        self.flush()
        return stream

    def events(self) -> Iterator[h2.events.Event]:
        """Yield all events until the server closes the connection or sends nothing for a long time."""
        self.sock.settimeout(PATIENCE)
        while True:
            try:
                data = self.sock.recv(65536)
            except TimeoutError:
                return
            except ConnectionResetError:
                data = b""
            if not data:
                self.closed = True
                return
            yield from self.h2.receive_data(data)
            self.flush()

    def answer(self, stream: int) -> Got:
        status, headers, body = 0, {}, b""
        for event in self.events():
            if isinstance(event, h2.events.ResponseReceived) and event.stream_id == stream:
                headers_there = [(name.decode(), value.decode()) for name, value in event.headers or []]
                headers = dict(headers_there)
                status = int(headers[":status"])
            elif isinstance(event, h2.events.DataReceived) and event.stream_id == stream:
                body += event.data or b""
                self.h2.acknowledge_received_data(event.flow_controlled_length or 0, stream)
            elif isinstance(event, h2.events.StreamEnded | h2.events.StreamReset) and event.stream_id == stream:
                break
        return Got(status, headers, body)


@pytest.fixture
def client(gateway: Served) -> Iterator[Http2]:
    made = Http2(gateway)
    yield made
    made.sock.close()


@promise("gateway:http2")
def test_many_requests_over_one_connection(client: Http2) -> None:
    headers = client.headers("/v1/chat/completions", "POST", content_type="application/json")
    streams = [client.ask(headers, BODY) for _ in range(20)]
    seen = set()
    for event in client.events():
        if isinstance(event, h2.events.ResponseReceived):
            assert dict(event.headers or [])[b":status"] == b"200"
        if isinstance(event, h2.events.StreamEnded):
            seen.add(event.stream_id)
            if len(seen) == 20:
                break
    assert seen == set(streams)


@promise("gateway:http2")
def test_streams_and_large_bodies_over_http2(gateway: Served, client: Http2) -> None:
    headers = client.headers("/v1/chat/completions", "POST", content_type="application/json")
    got = client.answer(client.ask(headers, BODY[:-1] + b',"stream":true}'))
    assert (got.status, got.headers["content-type"].partition(";")[0]) == (200, "text/event-stream")
    assert got.body.endswith(b"data: [DONE]\n\n")
    large = chat("p/claude-sonnet-5")
    large["messages"] = [{"role": "user", "content": "x" * 300_000}]
    with httpx.Client(http1=False, http2=True) as other:
        assert other.post(f"{gateway.url}/v1/chat/completions", json=large, timeout=PATIENCE).status_code == 200
        assert other.request("HEAD", f"{gateway.url}/v1/models").content == b""


@promise("gateway:http2", "gateway:bad-input")
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"path": "health"}, 400),
        ({"path": "/a b"}, 400),
        ({"more": [("x-api-key", "a"), ("x-api-key", "b")]}, 400),
        ({"more": [(f"x{number}", "y") for number in range(300)]}, 431),
        ({"more": [("user-agent", "a"), ("user-agent", "b")]}, 200),
    ],
)
def test_http2_heads_get_the_right_status(client: Http2, headers: dict[str, object], status: int) -> None:
    more = headers.pop("more", [])
    assert isinstance(more, list)
    answer = client.headers(**headers)  # type: ignore[arg-type]
    assert client.answer(client.ask(answer + more)).status == status


@promise("gateway:http2", "gateway:bad-input")
@pytest.mark.parametrize("gone", [False, True], ids=["without a window", "reset at once"])
def test_an_invalid_head_affects_only_its_own_stream(client: Http2, *, gone: bool) -> None:
    """A proxy may send the requests of many clients over one connection."""
    window = h2.settings.SettingCodes.INITIAL_WINDOW_SIZE
    client.h2.update_settings({window: 0})
    client.flush()
    next(event for event in client.events() if isinstance(event, h2.events.SettingsAcknowledged))
    invalid = client.h2.get_next_available_stream_id()
    client.h2.send_headers(invalid, client.headers("health"), end_stream=True)
    if gone:
        client.h2.reset_stream(invalid)
    client.flush()
    if not gone:
        head = next(event for event in client.events() if isinstance(event, h2.events.ResponseReceived))
        assert dict(head.headers or [])[b":status"] == b"400"
    client.h2.update_settings({window: 65_535})
    client.flush()
    if not gone:
        assert client.answer(invalid).body == b"the request target is not a path\n"
    assert client.answer(client.ask(client.headers())).status == 200


@promise("gateway:http2", "gateway:bad-input")
@pytest.mark.parametrize(
    "more", [[("connection", "close")], [("transfer-encoding", "chunked")], [("X-Upper", "y")], [(":status", "200")]]
)
def test_headers_forbidden_in_http2_end_the_stream(gateway: Served, client: Http2, more: list[tuple[str, str]]) -> None:
    got = client.answer(client.ask(client.headers() + more))
    assert got.status in {0, 400}
    assert is_well(gateway)


def goaway(client: Http2) -> ErrorCodes | int | None:
    for event in client.events():
        if isinstance(event, h2.events.ConnectionTerminated):
            return event.error_code
    return None


@promise("gateway:http2-abuse")
def test_rapid_resets_end_the_connection(gateway: Served, client: Http2) -> None:
    before = gateway.cpu_seconds
    headers = client.headers("/v1/chat/completions", "POST", content_type="application/json")
    for _ in range(2_000):
        stream = client.h2.get_next_available_stream_id()
        client.h2.send_headers(stream, headers)
        client.h2.reset_stream(stream)
        client.flush()
    assert goaway(client) == ErrorCodes.ENHANCE_YOUR_CALM or client.closed
    assert gateway.cpu_seconds - before < 2
    assert is_well(gateway)


@promise("gateway:http2-abuse")
def test_more_streams_than_agreed_end_the_connection(gateway: Served, client: Http2) -> None:
    client.h2.remote_settings.acknowledge()
    client.h2.local_settings.acknowledge()
    encoder = hpack.Encoder()
    frames = b""
    for number in range(500):
        block = encoder.encode(client.headers("/v1/chat/completions", "POST"))
        frames += frame(1, 4, 2 * number + 1, block)
    client.send(frames)
    assert goaway(client) is not None or client.closed
    assert is_well(gateway)


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


@promise("gateway:http2-abuse")
def test_compressed_headers_take_no_memory(gateway: Served, client: Http2) -> None:
    """A header of 4 KB is stored in the compression table, and referred to ten thousand times in a frame."""
    before = gateway.megabytes
    encoder = hpack.Encoder()
    block = encoder.encode([*client.headers(), ("x-bomb", "y" * 3_900)])
    client.send(frame(1, 4, 1, block + encoder.encode([("x-bomb", "y" * 3_900)]) * 12_000))
    assert goaway(client) is not None or client.closed
    assert gateway.megabytes - before < 10
    assert is_well(gateway)


@promise("gateway:http2-abuse")
def test_settings_of_a_client_take_no_memory(gateway: Served, client: Http2) -> None:
    """60,000 unknown settings, which h2 itself would store, and a huge compression table for our headers."""
    before = gateway.megabytes
    for start in range(1_000, 61_000, 2_500):
        pairs = [struct.pack(">HI", number, 1) for number in range(start, start + 2_500)]
        client.send(frame(4, 0, 0, b"".join(pairs)))
    client.h2.update_settings({SettingCodes.HEADER_TABLE_SIZE: 1 << 30})
    client.flush()
    assert client.answer(client.ask(client.headers())).status == 200
    assert gateway.megabytes - before < 10
    assert client.h2.decoder.header_table_size == 4_096, "our encoder uses as large a table as the client allows"


SIZE_UPDATES = b"\x20" * 16_384
"""Instructions of header compression that take one byte each."""
FLOODS: dict[str, bytes] = {
    "a head in large pieces": frame(1, 0, 1, SIZE_UPDATES) + frame(9, 0, 1, SIZE_UPDATES) * 60,
    "continuations": frame(1, 0, 1, b"\x82") + frame(9, 0, 1, b"\x82") * 100_000,
    "pings": frame(6, 0, 0, b"12345678") * 100_000,
    "settings": frame(4, 0, 0) * 100_000,
    "empty data": frame(1, 4, 1, hpack.Encoder().encode([(":method", "POST"), (":path", "/x"), (":scheme", "http")]))
    + frame(0, 0, 1) * 100_000,
    "other services": frame(10, 0, 0, b"\0\1ax") * 100_000,
    "frames of an unknown kind": frame(77, 0, 0) * 100_000,
    "windows": frame(8, 0, 0, b"\0\0\0\1") * 100_000,
    "priorities": frame(2, 0, 1, b"\0\0\0\0\1") * 100_000,
    "a window that overflows": frame(8, 0, 0, b"\x7f\xff\xff\xff") * 2,
    "a frame too large": frame(0, 0, 1, b"x" * 20_000),
    "garbage": b"\xff" * 100_000,
}


@promise("gateway:http2-abuse")
@pytest.mark.parametrize("name", FLOODS)
def test_floods_end_only_their_connection(gateway: Served, client: Http2, name: str) -> None:
    before, cpu = gateway.megabytes, gateway.cpu_seconds
    client.send(FLOODS[name])
    for _ in client.events():
        pass
    assert client.closed
    assert gateway.megabytes - before < 10
    assert gateway.cpu_seconds - cpu < 5
    assert is_well(gateway)


LATE: dict[str, bytes] = {
    "data": frame(0, 0, 1, b"x"),
    "padding": frame(0, 8, 1, b"\1\0"),
    "trailers": frame(1, 5, 1, b"\x82"),
    "resets": frame(3, 0, 1, b"\0\0\0\0"),
    "windows": frame(8, 0, 1, b"\0\0\0\1"),
}


@promise("gateway:http2-abuse")
@pytest.mark.parametrize("ended", [True, False], ids=["whole", "refused"])
@pytest.mark.parametrize("name", LATE)
def test_floods_for_a_request_that_is_answered_end_the_connection(
    gateway: Served, client: Http2, name: str, *, ended: bool
) -> None:
    """h2 ignores such frames or answers each with a reset, without an event."""
    cpu = gateway.cpu_seconds
    client.h2.send_headers(1, client.headers("/x", "POST"), end_stream=ended)
    client.flush()
    assert client.answer(1).status == 404
    client.send(LATE[name] * 100_000)
    for _ in client.events():
        pass
    assert client.closed
    assert gateway.cpu_seconds - cpu < 5
    assert is_well(gateway)


# ── TLS ──


@promise("gateway:attacks")
@pytest.mark.skipif(sys.platform == "win32", reason="there are no such limits on Windows")
@pytest.mark.parametrize("hello", [b"", b"\x16\x03\x01\x02\x00\x01"], ids=["silent", "begun"])
@pytest.mark.parametrize("secure", [True, False], ids=["TLS", "plain"])
def test_idle_connections_do_not_lock_out_other_clients(
    tmp_path: Path, certificate: Path, hello: bytes, *, secure: bool
) -> None:
    """Unfinished TLS handshakes count too. The oldest connections are closed first, those in use never."""
    few = ("sh", "-c", 'ulimit -n 128 && exec "$@"', "sh")
    text = "[providers.openai]\napi_key = 'x'\n" + (f'[server]\ntls_cert = "{certificate}"\n' if secure else "")
    context = ssl.create_default_context(cafile=certificate)
    with served(tmp_path, text, "--quiet", within=few) as gateway, ExitStack() as stack:
        for turn in range(150):
            stack.enter_context(gateway.connect()).sendall(hello)
            if turn % 30 == 29:
                sock = gateway.connect()
                sock = stack.enter_context(context.wrap_socket(sock, server_hostname="localhost") if secure else sock)
                sock.sendall(b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n")
                assert sock.recv(12) == b"HTTP/1.1 200", turn
                assert len(list(Path(f"/proc/{gateway.process.pid}/fd").iterdir())) < 100


@promise("gateway:attacks")
def test_idle_clients_do_not_delay_a_stop(tmp_path: Path, certificate: Path) -> None:
    """An idle client does not read, so it does not confirm the end of TLS, nor of a handshake that it left open."""
    context = ssl.create_default_context(cafile=certificate)
    text = f'[providers.openai]\napi_key = "x"\n[server]\ntls_cert = "{certificate}"\n'
    with ExitStack() as stack, served(tmp_path, text, "--quiet") as gateway:
        idle = stack.enter_context(context.wrap_socket(gateway.connect(), server_hostname="localhost"))
        idle.sendall(b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n")
        assert idle.recv(12) == b"HTTP/1.1 200"
        stack.enter_context(gateway.connect()).sendall(b"\x16\x03\x01\x02\x00\x01")
        stopped = time.monotonic()
        gateway.process.terminate()
        gateway.process.wait(PATIENCE)
        # asyncio waits half a minute for the confirmation, and so did the gateway.
        assert time.monotonic() - stopped < 15


@pytest.fixture
def renewed(tmp_path: Path) -> Path:
    return self_signed(tmp_path / "renewed.pem")


@promise("gateway:tls", "gateway:http2", "gateway:reload")
def test_tls_with_a_self_signed_certificate(dragoman_simulator: Simulator, tmp_path: Path, certificate: Path) -> None:
    text = provider("p", dragoman_simulator.url)
    trust = ssl.create_default_context(cafile=str(certificate))
    with served(tmp_path, text, "--quiet", "--tls-cert", str(certificate)) as gateway:
        assert gateway.url.startswith("https://")
        for newer in (False, True):
            with httpx.Client(http2=newer, verify=trust) as client:
                answer = client.post(
                    f"{gateway.url}/v1/chat/completions", json=chat("p/claude-sonnet-5"), timeout=PATIENCE
                )
                assert (answer.status_code, answer.http_version) == (200, "HTTP/2" if newer else "HTTP/1.1")
                assert client.get(f"{gateway.url}/", headers={"accept": "text/html"}).status_code == 200
        with pytest.raises(httpx.ConnectError):
            httpx.get(gateway.url)


@promise("gateway:tls")
def test_an_unreadable_certificate_is_reported_clearly(tmp_path: Path) -> None:
    empty = tmp_path / "empty.pem"
    empty.write_text("")
    for file in ("nowhere.pem", str(empty)):
        with pytest.raises(AssertionError, match=r"tls_cert"), served(tmp_path, "", "--tls-cert", file):
            pass


@promise("gateway:tls", "gateway:reload")
def test_a_renewed_certificate_is_used_for_new_connections(
    dragoman_simulator: Simulator, tmp_path: Path, certificate: Path, renewed: Path
) -> None:
    file = tmp_path / "server.pem"
    file.write_bytes(certificate.read_bytes())
    text = f'[server]\ntls_cert = "{file}"\n' + provider("p", dragoman_simulator.url)
    with served(tmp_path, text) as gateway:
        with httpx.Client(verify=ssl.create_default_context(cafile=str(certificate))) as client:
            assert client.get(f"{gateway.url}/health").status_code == 200
            file.write_bytes(renewed.read_bytes())
            gateway.process.send_signal(signal.SIGHUP)
            gateway.wait_for("reloaded")
            assert client.get(f"{gateway.url}/health").status_code == 200, "the connection goes on"
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{gateway.url}/health", verify=ssl.create_default_context(cafile=str(certificate)))
        trusted = ssl.create_default_context(cafile=str(renewed))
        assert httpx.get(f"{gateway.url}/health", verify=trusted).status_code == 200


@promise("gateway:tls", "gateway:reload")
def test_a_certificate_without_its_key_changes_nothing(
    dragoman_simulator: Simulator, tmp_path: Path, certificate: Path, renewed: Path
) -> None:
    """A renewal replaces two files, one after the other, and a reload may come in between."""
    chain, key = tmp_path / "chain.pem", tmp_path / "key.pem"
    chain.write_bytes(certificate.read_bytes())
    key.write_bytes(certificate.read_bytes())
    text = f'[server]\ntls_cert = "{chain}"\ntls_key = "{key}"\n' + provider("p", dragoman_simulator.url)
    with served(tmp_path, text) as gateway:
        for number, changed in enumerate((chain, key)):
            changed.write_bytes(renewed.read_bytes())
            gateway.process.send_signal(signal.SIGHUP)
            gateway.wait_for("reloaded" if number else "reload_refused")
            trusted = ssl.create_default_context(cafile=str(renewed if number else certificate))
            assert httpx.get(f"{gateway.url}/health", verify=trusted).status_code == 200


# ── disconnects ──


FIRST_EVENT = (
    b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m",'
    b'"choices":[{"index":0,"delta":{"role":"assistant","content":"hi"},"finish_reason":null}]}\n\n'
)


@contextmanager
def silent_upstream() -> Iterator[tuple[str, Callable[[], bytes]]]:
    """Run an upstream that begins a stream and then only reads; yields a function that waits for the disconnect."""
    received = bytearray()
    gone = threading.Event()
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        line, _ = listening.accept()
        with line:
            line.recv(65536)
            head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
            line.sendall(head + b"%x\r\n%b\r\n" % (len(FIRST_EVENT), FIRST_EVENT))
            with suppress(OSError):
                while data := line.recv(65536):
                    received.extend(data)
            gone.set()

    def wait() -> bytes:
        assert gone.wait(PATIENCE), "the upstream call goes on"
        return bytes(received)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    with listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1", wait


@promise("gateway:disconnect", "gateway:http2")
@pytest.mark.parametrize("how", ["reset", "close", "HTTP/1.1"])
def test_a_client_that_disconnects_ends_the_upstream_call(tmp_path: Path, how: str) -> None:
    body = BODY[:-1] + b',"stream":true}'
    with silent_upstream() as (url, left):
        text = f'[providers.p]\nkind = "openai-chat"\nbase_url = "{url}"\napi_key = "k"\n'
        with served(tmp_path, text, "--quiet") as gateway:
            if how == "HTTP/1.1":
                with gateway.connect() as sock:
                    sock.sendall(POST + b"content-length: %d\r\n\r\n" % len(body) + body)
                    received = b""
                    while b"hi" not in received:
                        received += sock.recv(65536)
            else:
                client = Http2(gateway)
                stream = client.ask(client.headers("/v1/chat/completions", "POST"), body)
                events = client.events()
                next(event for event in events if isinstance(event, h2.events.DataReceived))
                if how == "reset":
                    client.h2.reset_stream(stream)
                    client.flush()
                else:
                    client.sock.close()
            assert left() == b""
            assert send(gateway.url, "/health", method="GET").json["in_flight"] == 0
