"""The gateway's HTTP server fed from memory: the cost of a request head of any shape."""

import asyncio
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from h2.connection import H2Connection

from dragoman.gateway.exchange import Exchange
from dragoman.gateway.http1 import Http1Connection
from dragoman.gateway.http_server import Server
from tests.support.costs import Prepare, Work

Headers = list[tuple[str, str]]
_FIRST: Headers = [("host", "a"), ("content-length", "0")]
_CHUNKED = b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n"


class MemoryTransport(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.sent: list[bytes] = []
        self.closed = False

    def get_extra_info(self, name: str, default: Any = None) -> Any:  # noqa: ARG002
        return default

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    abort = close
    write_eof = close

    def can_write_eof(self) -> bool:
        return True

    def pause_reading(self) -> None:
        pass

    resume_reading = pause_reading

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self.protocol = protocol

    def write(self, data: Any) -> None:
        self.sent.append(bytes(data))

    def get_write_buffer_size(self) -> int:
        return 0


@cache
def _loop() -> asyncio.AbstractEventLoop:
    return asyncio.new_event_loop()


async def _answer(exchange: Exchange) -> None:
    await exchange.receive()
    exchange.send(200, {"content-type": "text/plain"}, b"ok")


async def _serve(pieces: list[bytes]) -> bytes:
    server, transport = Server(_answer), MemoryTransport()
    connection: Any = Http1Connection(server)
    connection.connection_made(transport)
    for piece in pieces:
        connection.received(memoryview(piece))
        connection = getattr(transport, "protocol", connection)  # HTTP/2, from its preface on
    for _ in range(5):
        await asyncio.sleep(0)
    await server.close(0)
    return b"".join(transport.sent)


def serve(pieces: list[bytes]) -> bytes:
    """The bytes that the server sends."""
    return _loop().run_until_complete(_serve(pieces))


HEADS: dict[str, Callable[[int], Headers]] = {
    "headers": lambda n: [(f"x-{number}", "v") for number in range(n)],
    "headers of one name": lambda n: [("x-a", "v")] * n,
    "cookies": lambda n: [("cookie", "a=b")] * n,
    "agents": lambda n: [("user-agent", "a")] * n,
    "one long header": lambda n: [("x-a", "v" * 20 * n)],
    "one long name": lambda n: [("x" * 20 * n, "v")],
}
HTTP1: dict[str, Callable[[int], bytes]] = {
    "a long target": lambda n: b"GET /" + b"a" * 20 * n + b" HTTP/1.1\r\nhost: a\r\n\r\n",
    "parameters": lambda n: b"GET /?" + b"a=b&" * n + b" HTTP/1.1\r\nhost: a\r\n\r\n",
    "pipelined requests": lambda n: b"GET / HTTP/1.1\r\nhost: a\r\n\r\n" * n,
    "blank lines": lambda n: b"\r\n" * n + b"GET / HTTP/1.1\r\nhost: a\r\n\r\n",
    "chunks": lambda n: _CHUNKED + b"1\r\nx\r\n" * n + b"0\r\n\r\n",
    "chunk extensions": lambda n: _CHUNKED + b"1" + b";a=b" * n + b"\r\nx\r\n0\r\n\r\n",
    "trailers": lambda n: _CHUNKED + b"1\r\nx\r\n0\r\n" + b"x-a: b\r\n" * n + b"\r\n",
}


def http1_head(headers: Headers) -> bytes:
    lines = "".join(f"{name}: {value}\r\n" for name, value in [*_FIRST, *headers])
    return f"GET / HTTP/1.1\r\n{lines}\r\n".encode()


def http2_head(headers: Headers) -> bytes:
    client = H2Connection()
    client.initiate_connection()
    pseudo = [(":method", "GET"), (":path", "/"), (":scheme", "http"), (":authority", "a")]
    client.send_headers(1, [*pseudo, *headers], end_stream=True)
    return client.data_to_send()


def server_rows() -> Iterator[tuple[str, str, str, Prepare]]:
    bodies = {name: _headed(http1_head, build) for name, build in HEADS.items()} | HTTP1
    for dimension, build in bodies.items():
        for cut, size in (("whole", 1 << 16), ("in pieces", 100), ("byte by byte", 1)):
            yield "server", f"{dimension}, {cut}", "http1", _fed(build, size)
    for dimension, headers in HEADS.items():
        for cut, size in (("whole", 1 << 16), ("in pieces", 100)):
            yield "server", f"{dimension}, {cut}", "http2", _fed(_headed(http2_head, headers), size)


def _headed(head: Callable[[Headers], bytes], headers: Callable[[int], Headers]) -> Callable[[int], bytes]:
    return lambda n: head(headers(n))


def _fed(build: Callable[[int], bytes], size: int) -> Prepare:
    def prepare(n: int) -> Work:
        data = build(max(n // 8, 4) if size == 1 else n)
        pieces = [data[start : start + size] for start in range(0, len(data), size)]
        return lambda: serve(pieces)

    return prepare
