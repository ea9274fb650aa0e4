"""The gateway's own way to its upstreams, held to what servers really do."""

import asyncio
import gzip
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from dragoman.drivers.http import HttpTransport
from dragoman.drivers.providers import PROVIDERS
from dragoman.drivers.transport import HttpRequest, Timeouts, Tls, read_whole
from dragoman.errors import AnswerCut, ConnectionFailed, InvalidRequest, TimedOut
from dragoman.gateway.upstreams import BreakerSettings, open_upstreams
from dragoman.gateway.wire import WireTransport
from tests.sim.test_sim_tls import certificate

__all__ = ["certificate"]

Served = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
QUICK = Timeouts(connect=1.0, first_byte=0.2, between_bytes=0.2)


async def asked(reader: asyncio.StreamReader) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    await reader.readexactly(int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0]))


def saying(*pieces: bytes, close: bool = False) -> Served:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                await asked(reader)
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


async def ask(served: Served, times: int = 1, header: str = "b") -> list[bytes]:
    server = await asyncio.start_server(served, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    transport = WireTransport()
    try:
        answers = []
        for _ in range(times):
            request = HttpRequest(url=f"http://127.0.0.1:{port}/x", headers={"a": header}, body=b"{}")
            answers.append(await read_whole(await transport.send(request, timeouts=QUICK), 1 << 20))
        return answers
    finally:
        await transport.close()
        server.close()
        await asyncio.sleep(0.02)  # the other side has to notice


PACKED = gzip.compress(b"hello")
ANSWERS = {
    "by length": (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", b"hello"),
    "in chunks": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n", b"3\r\nllo\r\n0\r\n\r\n"),
    "cut anywhere": tuple(bytes([one]) for one in b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello"),
    "after another status": (b"HTTP/1.1 103 Early\r\nx: y\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello",),
    "packed": (b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(PACKED), PACKED),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_bodies_and_connections_that_are_used_again(name: str) -> None:
    assert asyncio.run(ask(saying(*ANSWERS[name]), times=3)) == [b"hello"] * 3


def test_a_body_until_the_end_of_the_connection() -> None:
    assert asyncio.run(ask(saying(b"HTTP/1.1 200 OK\r\n\r\nhel", b"lo", close=True), times=2)) == [b"hello"] * 2


def test_a_connection_that_was_closed_while_it_rested_is_not_the_clients_trouble() -> None:
    served = saying(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello", close=True)
    assert asyncio.run(ask(served, times=3)) == [b"hello"] * 3


@pytest.mark.parametrize(
    ("pieces", "error"),
    [
        ((b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhello",), AnswerCut),
        ((b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhe\r\n",), AnswerCut),
        ((b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",), AnswerCut),
        ((), ConnectionFailed),
        ((b"SSH-2.0-x\r\n\r\n",), ConnectionFailed),
    ],
)
def test_answers_that_break(pieces: tuple[bytes, ...], error: type[Exception]) -> None:
    with pytest.raises(error):
        asyncio.run(ask(saying(*pieces, close=True)))


@pytest.mark.parametrize("pieces", [(), (b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhello",)])
def test_waiting_has_an_end(pieces: tuple[bytes, ...]) -> None:
    with pytest.raises(TimedOut):
        asyncio.run(ask(saying(*pieces)))


def test_nobody_there_and_nothing_smuggled() -> None:
    async def nobody() -> None:
        await WireTransport().send(HttpRequest(url="http://127.0.0.1:1/x"), timeouts=QUICK)

    with pytest.raises(ConnectionFailed):
        asyncio.run(nobody())
    with pytest.raises(InvalidRequest):
        asyncio.run(ask(saying(b""), header="b\r\nevil: 1"))


def test_tls_is_checked(certificate: Path) -> None:
    """A certificate that nobody vouches for is none."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)

    async def secured(tls: Tls | None) -> bytes:
        served = saying(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello")
        server = await asyncio.start_server(served, "127.0.0.1", 0, ssl=context)
        transport = WireTransport(tls)
        try:
            url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/x"
            response = await transport.send(HttpRequest(url=url, body=b"{}"), timeouts=QUICK)
            return await read_whole(response, 99)
        finally:
            await transport.close()
            server.close()
            await asyncio.sleep(0.02)

    assert asyncio.run(secured(Tls(ca_file=str(certificate)))) == b"hello"
    with pytest.raises(ConnectionFailed):
        asyncio.run(secured(None))


def test_a_proxy_is_left_to_the_drivers() -> None:
    options = {"api_key": "k", "environment": {}, "proxy": "http://127.0.0.1:1"}
    (upstream,) = open_upstreams("p", PROVIDERS["anthropic"], options, (), BreakerSettings())  # type: ignore[arg-type]
    assert isinstance(upstream.channel.transport, HttpTransport)
