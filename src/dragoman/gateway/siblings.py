"""The other workers of a gateway: what they have counted, and the page, which lives in the first of them.

Each listens on a socket of its own in a folder that nobody else may enter, and answers there for itself alone.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from dragoman.gateway.app import Gateway
from dragoman.gateway.http11 import Head
from dragoman.gateway.server import Application, Exchange, Server, ServerLimits

_FIRST = 0
_PATIENCE = 2.0
"""Seconds for a sibling to tell its counts; one that is just starting anew has none."""
_AGAIN = 1.0
_PIECE = 1 << 16
_LONGEST_LINE = 64 << 20
_BEHIND = 1_000
_DATA = b"data: "
_TEXT = {"content-type": "text/plain; charset=utf-8"}
# Of a request that is handed over: its body was read, and its connection is another.
_NOT_HANDED_OVER = frozenset({"connection", "content-length", "transfer-encoding", "expect", "keep-alive"})


def is_for_the_page(head: Head) -> bool:
    """`/` for browsers, and all under `/_/`."""
    if head.path.startswith("/_/"):
        return True
    return head.path == "/" and head.method == "GET" and "text/html" in head.headers.get("accept", "")


class Siblings:
    def __init__(self, folder: Path, place: int, count: int) -> None:
        self._folder = folder
        self._place = place
        self._others = [number for number in range(count) if number != place]

    @property
    def is_first(self) -> bool:
        return self._place == _FIRST

    def _socket(self, place: int) -> str:
        return str(self._folder / f"worker-{place}.sock")

    @property
    def _page(self) -> str:
        """Apart: what clients ask for must never be taken for what a sibling asks."""
        return str(self._folder / "page.sock")

    async def ask(self, target: str) -> list[bytes]:
        found = await asyncio.gather(*(self._ask(place, target) for place in self._others))
        return [body for body in found if body is not None]

    async def _ask(self, place: int, target: str) -> bytes | None:
        try:
            async with asyncio.timeout(_PATIENCE):
                reader, writer = await asyncio.open_unix_connection(self._socket(place))
                try:
                    writer.write(_question(target))
                    head, _, body = (await reader.read(-1)).partition(b"\r\n\r\n")
                finally:
                    writer.close()
        except (OSError, TimeoutError):
            return None
        return body if head.startswith(b"HTTP/1.1 200 ") else None

    async def follow(self, target: str) -> AsyncGenerator[bytes, None]:
        heard: asyncio.Queue[bytes] = asyncio.Queue(_BEHIND)
        following = [asyncio.ensure_future(self._follow(place, target, heard)) for place in self._others]
        try:
            while True:
                yield await heard.get()
        finally:
            for task in following:
                task.cancel()

    async def _follow(self, place: int, target: str, heard: asyncio.Queue[bytes]) -> None:
        """One that starts anew is followed anew."""
        while True:
            with suppress(OSError, ValueError):  # nobody is there, or says more in a line than anybody should
                reader, writer = await asyncio.open_unix_connection(self._socket(place), limit=_LONGEST_LINE)
                try:
                    writer.write(_question(target))
                    while line := await reader.readline():
                        if line.startswith(_DATA):
                            await heard.put(line[len(_DATA) :].rstrip())
                finally:
                    writer.close()
            await asyncio.sleep(_AGAIN)

    async def hand_over(self, exchange: Exchange) -> None:
        """The first worker answers; its bytes pass as they come, and whoever leaves ends it for both."""
        try:
            reader, writer = await asyncio.open_unix_connection(self._page)
        except OSError:
            exchange.send(503, {**_TEXT, "retry-after": "1"}, b"The page is just starting anew; try again.\n")
            return
        try:
            writer.write(_request(exchange))
            while data := await reader.read(_PIECE):
                if exchange.pass_on(data):
                    await exchange.drain()
            exchange.passed()
        finally:
            writer.close()

    @asynccontextmanager
    async def among(
        self, gateway: Gateway, application: Application, limits: ServerLimits
    ) -> AsyncIterator[Application]:
        """Reachable for the others, who are reachable for us."""

        async def for_siblings(exchange: Exchange) -> None:
            await gateway.private.get(exchange.head.path, _nothing)(exchange)

        def for_clients(exchange: Exchange) -> Awaitable[None]:
            handed = is_for_the_page(exchange.head) and exchange.problem is None
            return self.hand_over(exchange) if handed else application(exchange)

        servers = [await _listening(self._socket(self._place), for_siblings, limits)]
        if self.is_first:
            servers.append(await _listening(self._page, application, limits))
        gateway.siblings = self
        shows_the_page = self.is_first or not gateway.config.server.page
        try:
            yield application if shows_the_page else for_clients
        finally:
            gateway.siblings = None
            for server in servers:
                await server.close(0.0)


async def _listening(path: str, application: Application, limits: ServerLimits) -> Server:
    Path(path).unlink(missing_ok=True)  # noqa: ASYNC240 - of the one whose place this was
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listening.bind(path)
    server = Server(application, limits)
    await server.listen(listening)
    return server


async def _nothing(exchange: Exchange) -> None:
    exchange.send(404, _TEXT)


def _question(target: str) -> bytes:
    """In the older HTTP, whose answers need no unpacking: they end with their connection."""
    return f"GET {target} HTTP/1.0\r\nhost: sibling\r\n\r\n".encode()


def _request(exchange: Exchange) -> bytes:
    head = exchange.head
    target = f"{head.path}?{head.query}" if head.query else head.path
    kept = {name: value for name, value in head.headers.items() if name not in _NOT_HANDED_OVER}
    told = {"host": "", **kept, "content-length": str(len(exchange.body)), "connection": "close"}
    lines = [f"{head.method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in told.items())]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + exchange.body
