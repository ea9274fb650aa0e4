"""The gateway's HTTP client with correct and broken servers, over real sockets."""

import asyncio
import gzip
import os
import socket
import ssl
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard

from dragoman.drivers.http import HttpTransport
from dragoman.drivers.providers import PROVIDERS
from dragoman.drivers.transport import HttpRequest, Timeouts, Tls, read_whole
from dragoman.errors import AnswerCut, ConnectionFailed, InvalidRequest, TimedOut
from dragoman.gateway.upstream_http import UpstreamHttp, stream_to
from dragoman.gateway.upstreams import BreakerSettings, open_upstreams
from tests.gateway.scripted_upstream import reply, scripted
from tests.sim.test_sim_tls import certificate
from tests.support.promises import promise

__all__ = ["certificate"]

Served = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
QUICK = Timeouts(connect=5.0, first_byte=0.2, between_bytes=0.2)
SLOW = Timeouts(connect=5.0, first_byte=5.0, between_bytes=1.0)
PATIENT = Timeouts(connect=10.0, first_byte=10.0, between_bytes=10.0)


async def read_request(reader: asyncio.StreamReader) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    await reader.readexactly(int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0]))


def saying(*pieces: bytes, close: bool = False) -> Served:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                await read_request(reader)
                for piece in pieces:
                    writer.write(piece)
                    await asyncio.sleep(0.001)
                if close:
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    return serve


async def ask(served: Served, times: int = 1, header: str = "b", timeouts: Timeouts = PATIENT) -> list[bytes]:
    server = await asyncio.start_server(served, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    transport = UpstreamHttp()
    try:
        answers = []
        for _ in range(times):
            request = HttpRequest(url=f"http://127.0.0.1:{port}/x", headers={"a": header}, body=b"{}")
            answers.append(await read_whole(await transport.send(request, timeouts=timeouts), 1 << 20))
        return answers
    finally:
        await transport.close()
        server.close()
        await asyncio.sleep(0.02)  # the server has to notice


PACKED = gzip.compress(b"hello")
MEMBERS = (gzip.compress(b"he"), gzip.compress(b"llo"))
PACKED_HEAD = b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: %d\r\n\r\n"
ZSTD = zstandard.compress(b"hello")
DEFLATED = zlib.compress(b"hello")
RAW_DEFLATED = DEFLATED[2:-4]
ANSWERS = {
    "by length": (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", b"hello"),
    "in chunks": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n", b"3\r\nllo\r\n0\r\n\r\n"),
    "cut anywhere": tuple(bytes([one]) for one in b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello"),
    "after another status": (b"HTTP/1.1 103 Early\r\nx: y\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello",),
    "packed": (PACKED_HEAD % len(PACKED), PACKED),
    "two members": (PACKED_HEAD % len(b"".join(MEMBERS)), *MEMBERS),
    "packed, byte by byte": (PACKED_HEAD % len(PACKED), *(bytes([one]) for one in PACKED)),
    "zstd": (PACKED_HEAD.replace(b"gzip", b"zstd") % len(ZSTD), ZSTD),
    "deflate": (PACKED_HEAD.replace(b"gzip", b"deflate") % len(DEFLATED), DEFLATED),
    "raw deflate": (PACKED_HEAD.replace(b"gzip", b"deflate") % len(RAW_DEFLATED), RAW_DEFLATED),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_bodies_are_read_and_connections_reused(name: str) -> None:
    assert asyncio.run(ask(saying(*ANSWERS[name]), times=3)) == [b"hello"] * 3


def test_a_body_may_end_with_its_connection() -> None:
    assert asyncio.run(ask(saying(b"HTTP/1.1 200 OK\r\n\r\nhel", b"lo", close=True), times=2)) == [b"hello"] * 2


def test_a_connection_that_the_server_closed_while_it_was_idle_is_not_used() -> None:
    """Not even before the event loop has noticed: a POST that was written to it must not be sent again."""

    def serve(listening: socket.socket) -> None:
        for _ in range(3):
            line, _ = listening.accept()
            with line:
                line.recv(1 << 16)
                line.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello")

    async def ask_three_times(url: str) -> list[bytes]:
        transport = UpstreamHttp()
        answers = []
        for _ in range(3):
            response = await transport.send(HttpRequest(url=url, body=b"{}"), timeouts=PATIENT)
            answers.append(await read_whole(response, 99))
            time.sleep(0.05)  # noqa: ASYNC251 - the event loop must not notice what happens meanwhile
        await transport.close()
        return answers

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve, args=(listening,))
        thread.start()
        assert asyncio.run(ask_three_times(f"http://127.0.0.1:{listening.getsockname()[1]}/")) == [b"hello"] * 3
        thread.join()


def test_a_post_is_not_sent_again_when_its_connection_breaks() -> None:
    seen = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal seen
        try:
            while True:
                await read_request(reader)
                seen += 1
                if seen > 1:
                    break
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello")
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()

    with pytest.raises(ConnectionFailed):
        asyncio.run(ask(serve, times=2))
    assert seen == 2


@pytest.mark.parametrize(
    ("pieces", "error"),
    [
        ((b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhello",), AnswerCut),
        ((b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhe\r\n",), AnswerCut),
        ((b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",), AnswerCut),
        ((b"HTTP/1.1 200 OK\r\ncontent-length: -5\r\n\r\nhello",), ConnectionFailed),
        ((b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello",), ConnectionFailed),
        ((PACKED_HEAD % 9, PACKED[:9]), AnswerCut),
        ((PACKED_HEAD % 5, b"hello"), AnswerCut),
        ((PACKED_HEAD % (len(PACKED) + 1), PACKED + b"x"), AnswerCut),
        ((PACKED_HEAD.replace(b"gzip", b"br") % 5, b"hello"), AnswerCut),
        ((b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 40_000,), ConnectionFailed),
        ((b"HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n",), ConnectionFailed),
        ((), ConnectionFailed),
        ((b"SSH-2.0-x\r\n\r\n",), ConnectionFailed),
    ],
)
def test_broken_answers_raise_typed_errors(pieces: tuple[bytes, ...], error: type[Exception]) -> None:
    with pytest.raises(error):
        asyncio.run(ask(saying(*pieces, close=True)))


OPENING = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


async def poured(
    sink: Callable[[bytes], bool], *pieces: bytes, pause: float = 0.001, timeouts: Timeouts = PATIENT
) -> int:
    """Stream these pieces to the sink; return how often the reader had to wait for it."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await read_request(reader)
            for piece in (OPENING, *pieces):
                writer.write(piece)
                await asyncio.sleep(pause)
        finally:
            writer.close()

    waited = 0

    async def drained() -> None:
        nonlocal waited
        waited += 1
        await asyncio.sleep(0.005)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    transport = UpstreamHttp()
    try:
        request = HttpRequest(url=f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/x", body=b"{}")
        await stream_to(await transport.send(request, timeouts=timeouts), sink, drained)
    finally:
        await transport.close()
        server.close()
        await asyncio.sleep(0.02)
    return waited


NUMBERED = [b"2\r\n%02d\r\n" % number for number in range(30)]


@pytest.mark.parametrize("full_at", [(), (0, 1, 7, 8)])
@promise("gateway:no-delay")
def test_chunks_are_passed_on_in_order_and_wait_for_a_full_sink(full_at: tuple[int, ...]) -> None:
    seen: list[bytes] = []

    def sink(data: bytes) -> bool:
        seen.append(data)
        return len(seen) - 1 in full_at

    assert asyncio.run(poured(sink, *NUMBERED, b"0\r\n\r\n")) == len(full_at)
    assert b"".join(seen) == b"".join(b"%02d" % number for number in range(30))


def test_a_stream_may_last_longer_than_the_limit_between_reads() -> None:
    assert asyncio.run(poured(lambda _: False, *NUMBERED[:6], b"0\r\n\r\n", pause=0.3, timeouts=SLOW)) == 0


def test_a_stream_without_data_for_too_long_is_ended() -> None:
    with pytest.raises(TimedOut):
        asyncio.run(poured(lambda _: False, *NUMBERED[:3], pause=0.6, timeouts=QUICK))


def test_a_stream_that_is_cut_off_raises() -> None:
    with pytest.raises(AnswerCut):
        asyncio.run(poured(lambda _: False, *NUMBERED[:3]))


def test_a_sink_that_breaks_ends_the_stream() -> None:
    def sink(data: bytes) -> bool:
        if b"05" in data:
            raise LookupError
        return False

    with pytest.raises(LookupError):
        asyncio.run(poured(sink, *NUMBERED, b"0\r\n\r\n"))


@pytest.mark.parametrize("pieces", [(), (b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhello",)])
def test_waiting_for_an_answer_has_a_time_limit(pieces: tuple[bytes, ...]) -> None:
    with pytest.raises(TimedOut):
        asyncio.run(ask(saying(*pieces), timeouts=QUICK))


def test_a_refused_connection_and_a_header_injection_raise() -> None:
    async def connect_to_a_closed_port() -> None:
        await UpstreamHttp().send(HttpRequest(url="http://127.0.0.1:1/x"), timeouts=QUICK)

    with pytest.raises(ConnectionFailed):
        asyncio.run(connect_to_a_closed_port())
    with pytest.raises(InvalidRequest):
        asyncio.run(ask(saying(b""), header="b\r\nevil: 1"))


def test_certificates_are_verified(certificate: Path) -> None:
    """A certificate of an unknown authority is refused."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)

    async def secured(tls: Tls | None) -> bytes:
        served = saying(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello")
        server = await asyncio.start_server(served, "127.0.0.1", 0, ssl=context)
        transport = UpstreamHttp(tls)
        try:
            url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/x"
            response = await transport.send(HttpRequest(url=url, body=b"{}"), timeouts=PATIENT)
            return await read_whole(response, 99)
        finally:
            await transport.close()
            server.close()
            await asyncio.sleep(0.02)

    assert asyncio.run(secured(Tls(ca_file=str(certificate)))) == b"hello"
    with pytest.raises(ConnectionFailed):
        asyncio.run(secured(None))


def test_behind_a_proxy_the_drivers_transport_is_used() -> None:
    options = {"api_key": "k", "environment": {}, "proxy": "http://127.0.0.1:1"}
    (upstream,) = open_upstreams("p", PROVIDERS["anthropic"], options, (), BreakerSettings())  # type: ignore[arg-type]
    assert isinstance(upstream.channel.transport, HttpTransport)


FIND = """
import asyncio, os, sys
from dragoman.gateway.local_servers import find_local_servers
for _ in range(20):  # on a busy machine the server may need longer than the time limit of a second
    found = asyncio.run(find_local_servers(os.environ)).get("ollama")
    if found:
        break
print(found, "aiohttp" in sys.modules)
"""


def test_servers_of_this_machine_are_found_without_loading_another_http_client() -> None:
    with scripted(reply({"models": [{"name": "tiny:1b"}]})) as upstream:
        found = subprocess.run(  # noqa: S603 - our own program
            [sys.executable, "-c", FIND],
            env={**os.environ, "OLLAMA_HOST": upstream.url},
            capture_output=True,
            text=True,
            check=True,
        )
    assert found.stdout == "('tiny:1b',) False\n"


@promise("gateway:attacks")
@pytest.mark.parametrize("waits", [True, False])
def test_a_host_that_is_not_found_delays_no_other(monkeypatch: pytest.MonkeyPatch, waits: bool) -> None:  # noqa: FBT001
    """Lookups share few threads. Those of a slow name server also go on after their requests were given up."""
    answered = threading.Event()
    look_up, asked = socket.getaddrinfo, list[str]()

    def slow(host: str, *given: Any, **more: Any) -> Any:
        asked.append(host)
        if host == "slow.example":
            answered.wait()
            raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
        return look_up(host, *given, **more)

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    limits = PATIENT if waits else Timeouts(connect=0.1)

    async def run(port: int) -> bytes:
        pools = [UpstreamHttp() for _ in range(3)]
        request = HttpRequest(url="http://slow.example/x", headers={}, body=b"{}")
        asking = [asyncio.ensure_future(pools[n % 3].send(request, timeouts=limits)) for n in range(60)]
        await asyncio.wait(asking, timeout=1.0, return_when=asyncio.ALL_COMPLETED)
        near = HttpRequest(url=f"http://localhost:{port}/x", headers={}, body=b"{}")
        try:
            answer = await read_whole(await pools[0].send(near, timeouts=PATIENT), 1 << 20)
        finally:
            answered.set()
        failures = await asyncio.gather(*asking, return_exceptions=True)
        assert {type(one) for one in failures} == {ConnectionFailed}
        for pool in pools:
            await pool.close()
        return answer

    with scripted(reply(b"near")) as upstream:
        assert asyncio.run(run(int(upstream.url.rpartition(":")[2]))) == b"near"
    assert asked == ["slow.example", "localhost"]
