"""What a request may cost without a key, and how large and slow it may be with one; with a real gateway process."""

import gzip
import json
import re
import socket
import struct
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
import zstandard
from h2.connection import H2Connection
from h2.events import ResponseReceived, StreamReset

from dragoman.gateway.openapi import DESCRIBED
from dragoman.sim.server import Simulator
from tests.gateway.running import send
from tests.gateway.scripted_upstream import completion, reply, scripted
from tests.gateway.served import Served, served
from tests.gateway.test_failures import chat, provider
from tests.gateway.test_http_conformance import frame
from tests.support.cases import each
from tests.support.promises import promise
from tests.support.waiting import PATIENCE

PAGE = ("live", "playground", "keys", "logout", "nothing")
KEY = {"authorization": "Bearer sesame"}
MEBIBYTE = 1 << 20
BODY = json.dumps(chat("p/claude-sonnet-5")).encode()
POST = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
KEYED = POST + b"authorization: Bearer sesame\r\n"


@pytest.fixture(scope="module")
def locked(dragoman_simulator: Simulator, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A gateway with keys and default limits, except for a sum of all bodies that a test can reach."""
    text = f'[server]\nkeys = ["sesame"]\nmax_buffered = {80 * MEBIBYTE}\n[mcp]\nserve = true\n' + provider(
        "p", dragoman_simulator.url
    )
    with served(tmp_path_factory.mktemp("gateway"), text, "--quiet") as gateway:
        assert is_well(gateway)
        yield gateway


def is_well(gateway: Served) -> bool:
    return send(gateway.url, "/v1/chat/completions", BODY, KEY).status == 200


def answer(sock: socket.socket, seconds: float = PATIENCE) -> bytes:
    sock.settimeout(seconds)
    with suppress(ConnectionResetError, BrokenPipeError):
        return sock.recv(65536)
    return b""


def pour(gateway: Served, head: bytes, size: int, *, chunked: bool = False) -> bytes:
    """Send a body until the gateway stops reading it; return the answer."""
    piece = b"x" * 65536
    framed = b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece
    with gateway.connect() as sock:
        sock.sendall(
            head + (b"transfer-encoding: chunked\r\n\r\n" if chunked else b"content-length: %d\r\n\r\n" % size)
        )
        with suppress(ConnectionResetError, BrokenPipeError):
            for _ in range(size // len(piece)):
                sock.sendall(framed)
        return answer(sock)


# ── without a key ──


@promise("gateway:admission")
@pytest.mark.parametrize("chunked", [False, True])
def test_large_bodies_without_a_key_take_no_memory(locked: Served, chunked: bool) -> None:  # noqa: FBT001
    before, cpu = locked.megabytes, locked.cpu_seconds
    highest = before
    done = threading.Event()

    def watch() -> None:
        nonlocal highest
        while not done.wait(0.02):
            highest = max(highest, locked.megabytes)

    watching = threading.Thread(target=watch)
    watching.start()
    with ThreadPoolExecutor(20) as pool:
        pending = [pool.submit(pour, locked, POST, 50 * MEBIBYTE, chunked=chunked) for _ in range(20)]
        answers = [one.result() for one in pending]
    done.set()
    watching.join()
    assert all(one.startswith(b"HTTP/1.1 401 ") for one in answers), answers
    assert highest - before < 10
    assert locked.cpu_seconds - cpu < 5
    assert is_well(locked)


OPEN = {"/", "/health", "/ready", "/openapi.json", "/api/version"}
"""Paths that need no key."""
ENDPOINTS = sorted({(row.method, row.path) for row in DESCRIBED} | {("POST", f"/_/api/{name}") for name in PAGE})


@promise("gateway:admission", "gateway:keys")
@each(("method", "path"), ENDPOINTS)
def test_every_endpoint_checks_the_key_before_it_waits_for_a_body(locked: Served, method: str, path: str) -> None:
    line = f"{method} {re.sub('{.*?}', 'x', path)} HTTP/1.1".encode()
    with locked.connect() as sock:
        sock.sendall(line + b"\r\nhost: x\r\nx-dragoman-page: 1\r\ncontent-length: 50000000\r\n\r\n")
        status = int(answer(sock)[9:12])
    assert status in ({200} if path in OPEN else {401, 403}), status  # Google and Amazon answer 403


@promise("gateway:admission")
def test_a_client_that_expects_100_continue_is_refused_before_it_sends_the_body(locked: Served) -> None:
    with locked.connect() as sock:
        sock.sendall(POST + b"content-length: 50000000\r\nexpect: 100-continue\r\n\r\n")
        assert answer(sock).startswith(b"HTTP/1.1 401 ")
    with locked.connect() as sock:
        sock.sendall(KEYED + b"content-length: %d\r\nexpect: 100-continue\r\n\r\n" % len(BODY))
        assert answer(sock) == b"HTTP/1.1 100 Continue\r\n\r\n"
        sock.sendall(BODY)
        assert answer(sock).startswith(b"HTTP/1.1 200 ")


@promise("gateway:admission", "gateway:http2")
def test_http2_streams_without_a_key_take_no_memory(locked: Served) -> None:
    """Each stream sends as much as flow control permits, and is refused."""
    before = locked.megabytes
    with locked.connect() as sock:
        client = H2Connection()
        client.initiate_connection()
        statuses = []
        for _ in range(50):
            stream = client.get_next_available_stream_id()
            path = [(":method", "POST"), (":path", "/v1/messages"), (":scheme", "http"), (":authority", "x")]
            client.send_headers(stream, path)
            with suppress(Exception):  # its window is used up: the gateway has acknowledged nothing
                client.send_data(stream, b"x" * 16_000)
            sock.sendall(client.data_to_send())
        sock.settimeout(PATIENCE)
        resets = 0
        while resets < 50:
            for event in client.receive_data(sock.recv(65536)):
                if isinstance(event, ResponseReceived):
                    statuses.append(dict(event.headers or [])[b":status"])
                resets += isinstance(event, StreamReset)
            sock.sendall(client.data_to_send())
    assert statuses == [b"401"] * 50
    assert locked.megabytes - before < 5
    assert is_well(locked)


PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0)
HALF_HEADS = {
    "HTTP/1.1": POST + b"x: " + b"y" * 60_000,
    "HTTP/2, in pieces": PREFACE + frame(1, 1, 1, b"\x82" * 16_000) + frame(9, 0, 1, b"\x82" * 16_000) * 3,
    "HTTP/2, half a frame": PREFACE + frame(1, 5, 1, b"\x82" * 16_384)[:-1],
}


@promise("gateway:admission")
@pytest.mark.parametrize("name", HALF_HEADS)
def test_heads_that_do_not_end_are_bounded_over_all_connections(locked: Served, name: str) -> None:
    """60 MB here; with the maximum number of connections it would be 600 MB. A head in two packets is not affected."""
    before = locked.megabytes
    half = HALF_HEADS[name]
    with ExitStack() as stack:
        slow = stack.enter_context(locked.connect())
        slow.sendall(KEYED)
        for _ in range(60_000_000 // len(half)):
            sock = stack.enter_context(locked.connect())
            with suppress(ConnectionResetError, BrokenPipeError):
                sock.sendall(half)
        assert is_well(locked)
        assert locked.megabytes - before < 35
        slow.sendall(b"content-length: %d\r\n\r\n" % len(BODY) + BODY)
        assert answer(slow).startswith(b"HTTP/1.1 200 ")


# ── size ──


@promise("gateway:admission")
@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_that_is_too_large_is_refused(locked: Served, chunked: bool) -> None:  # noqa: FBT001
    assert pour(locked, KEYED, 70 * MEBIBYTE, chunked=chunked).startswith(b"HTTP/1.1 413 ")
    assert is_well(locked)


@promise("gateway:admission")
def test_all_bodies_together_are_bounded(locked: Served) -> None:
    """While one request holds most of the memory for bodies, the next large one gets a 503 with Retry-After."""
    with locked.connect() as slow:
        slow.sendall(KEYED + b"content-length: %d\r\n\r\n" % (60 * MEBIBYTE) + b"x" * (50 * MEBIBYTE))
        refused = pour(locked, KEYED, 40 * MEBIBYTE)
        assert refused.startswith(b"HTTP/1.1 503 ")
        assert b"\r\nretry-after: 1\r\n" in refused
        assert is_well(locked), "a small one still fits"
        slow.sendall(b"x" * (10 * MEBIBYTE))
        assert answer(slow).startswith(b"HTTP/1.1 400 "), "not JSON, but read to its end"
    assert pour(locked, KEYED, 40 * MEBIBYTE).startswith(b"HTTP/1.1 400 "), "there is room again"
    assert is_well(locked)


# ── time ──


def trickle(gateway: Served, head: bytes, piece: bytes) -> tuple[bytes, float]:
    """Send a piece every half second until the gateway answers; return the answer and the seconds."""
    started = time.monotonic()
    with gateway.connect() as sock:
        sock.sendall(head)
        received = b""
        while not received and time.monotonic() < started + 40:
            try:
                sock.sendall(piece)
                received = answer(sock, 0.5)
            except TimeoutError:
                continue
            except (ConnectionResetError, BrokenPipeError):
                break
    return received, time.monotonic() - started


@promise("gateway:admission")
def test_slow_bodies_are_cut_off(locked: Served) -> None:
    """The minimum is 1 KiB per second, measured over ten seconds, also for a body of which nothing arrives."""
    with ThreadPoolExecutor(4) as pool:
        pending = [
            pool.submit(trickle, locked, KEYED + b"content-length: 90000\r\n\r\n", b"x"),
            pool.submit(trickle, locked, KEYED + b"content-length: 90000\r\n\r\n", b""),
            pool.submit(trickle, locked, KEYED + b"transfer-encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
            pool.submit(trickle, locked, KEYED + b"transfer-encoding: chunked\r\n\r\n", b"0000000"),
        ]
        for one in pending:
            received, seconds = one.result()
            assert received.startswith((b"HTTP/1.1 408 ", b"HTTP/1.1 400 ")), received
            assert seconds < 14
    assert is_well(locked)


@promise("gateway:admission")
def test_a_whole_request_has_a_time_limit(dragoman_simulator: Simulator, tmp_path: Path) -> None:
    """A request that arrives fast enough but never ends is cut off after `request_seconds`."""
    text = "[server]\nrequest_seconds = 11\nbody_rate = 10\n" + provider("p", dragoman_simulator.url)
    with served(tmp_path, text, "--quiet") as gateway:
        received, seconds = trickle(gateway, POST + b"content-length: 90000\r\n\r\n", b"x" * 100)
        assert received.startswith(b"HTTP/1.1 408 ")
        assert 10 < seconds < 22
        assert send(gateway.url, "/v1/chat/completions", BODY).status == 200


# ── compressed ──

PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "zstd": zstandard.compress,
}


def bomb(coding: str, size: int) -> bytes:
    """Return this many spaces, compressed. zlib would take seconds, so one compressed block is repeated."""
    block = b" " * (20 * MEBIBYTE)
    times = size // len(block)
    if coding == "zstd":
        return zstandard.compress(block * times)
    packer = zlib.compressobj(zlib.Z_BEST_COMPRESSION, wbits=-zlib.MAX_WBITS)
    packed = (packer.compress(block) + packer.flush(zlib.Z_FULL_FLUSH)) * times + packer.flush()
    if coding == "gzip":
        return gzip.compress(b"")[:10] + packed + struct.pack("<II", zlib.crc32(block * times), times * len(block))
    return zlib.compress(b"")[:2] + packed + struct.pack(">I", zlib.adler32(block * times))


def test_the_bombs_of_these_tests_decompress_to_their_size() -> None:
    size = 40 * MEBIBYTE
    assert gzip.decompress(bomb("gzip", size)) == b" " * size
    assert zlib.decompress(bomb("deflate", size)) == b" " * size
    assert zstandard.decompress(bomb("zstd", size)) == b" " * size


@promise("gateway:unpacking")
@pytest.mark.parametrize("coding", PACKERS)
def test_compressed_bodies_of_clients(locked: Served, coding: str) -> None:
    packed = PACKERS[coding](BODY)

    def status(body: bytes) -> int:
        return send(locked.url, "/v1/chat/completions", body, {**KEY, "content-encoding": coding}).status

    assert status(packed) == 200
    for cut in (1, 5, len(packed) // 2):
        assert status(packed[:-cut]) == 400, "cut short"
    assert status(packed + b"x") == 400, "more after its end"
    assert status(BODY) == 400, "not packed"
    before = locked.megabytes
    assert status(bomb(coding, 200 * MEBIBYTE)) == 413
    assert locked.megabytes - before < 140, "what two bodies may have, and not what this one would"
    assert is_well(locked)


@promise("gateway:unpacking")
def test_gzip_members_are_counted(locked: Served) -> None:
    """Parallel compressors write several members; thousands of empty ones would only cost time."""
    halves = gzip.compress(BODY[:9]) + gzip.compress(BODY[9:])
    sent = {**KEY, "content-encoding": "gzip"}
    assert send(locked.url, "/v1/chat/completions", halves, sent).status == 200
    refused = send(locked.url, "/v1/chat/completions", gzip.compress(b"") * 20_000 + halves, sent)
    assert (refused.status, b"members" in refused.body) == (400, True)


@promise("gateway:unpacking")
@pytest.mark.parametrize("coding", PACKERS)
def test_compressed_answers_of_upstreams(tmp_path: Path, coding: str) -> None:
    """For a client of the upstream's format, and for one of another format."""
    packed = PACKERS[coding](json.dumps(completion()).encode())
    headers = {"content-encoding": coding}
    good = [reply(packed, headers=headers)]
    bad = [reply(packed[:-5], headers=headers), reply(packed + b"x", headers=headers)]
    bad.append(reply(bomb(coding, 600 * MEBIBYTE), headers=headers))
    script = [*good, *bad, *good]
    with scripted(*script, *script) as upstream, served(tmp_path, upstream.table("p"), "--quiet") as gateway:
        body = {**chat("p/m"), "max_tokens": 9}
        for path in ("/v1/chat/completions", "/v1/messages"):
            assert send(gateway.url, path, body).status == 200, path
            before = gateway.megabytes
            for _ in bad:
                got = send(gateway.url, path, body)
                assert got.status == 502, (path, got.body)
                assert got.json["error"]["message"], path
            assert gateway.megabytes - before < 150, path
            assert send(gateway.url, path, body).status == 200, path
