"""Batched writes: in order, within one iteration of the event loop, and at most a socket's buffer."""

import asyncio
import socket
import time

from dragoman.gateway.exchange import Exchange
from dragoman.gateway.http_server import Server
from tests.support.promises import promise

PIECE = b"x" * 1000


async def served(pieces: int, *, reads: bool) -> tuple[list[bool], bytes, float]:
    """Return the results of writes without waiting, what the client received, and the CPU time."""
    crowded: list[bool] = []
    used = 0.0
    done = asyncio.Event()

    async def handle(exchange: Exchange) -> None:
        nonlocal used
        started = time.process_time()
        exchange.start(200, {})
        crowded.extend([exchange.write(b"%06d" % number + PIECE) for number in range(pieces)])
        used = time.process_time() - started
        exchange.finish()
        done.set()

    server = Server(handle)
    listening = socket.create_server(("127.0.0.1", 0))
    await server.listen(listening)
    reader, writer = await asyncio.open_connection(*listening.getsockname())
    writer.write(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
    received = await reader.read(-1) if reads else b""
    await done.wait()
    writer.close()
    await server.close(0.0)
    return crowded, received, used


@promise("gateway:no-delay")
def test_batched_writes_arrive_in_order() -> None:
    _, received, _ = asyncio.run(served(500, reads=True))
    found = [received.find(b"%06d" % number + PIECE) for number in range(500)]
    assert found == sorted(found)
    assert found[0] > 0


@promise("gateway:bad-input")
def test_write_reports_a_client_that_does_not_read() -> None:
    crowded, _, _ = asyncio.run(served(20_000, reads=False))
    assert crowded[-1]


@promise("gateway:no-delay")
def test_the_cost_of_many_writes_is_linear() -> None:
    few = min(asyncio.run(served(2_000, reads=False))[2] for _ in range(3))
    many = min(asyncio.run(served(8_000, reads=False))[2] for _ in range(3))
    assert many < 12 * few + 0.02
