"""The other workers of a gateway: fetches their metrics, and forwards the page's requests to the first worker.

Each worker listens on its own socket in a private folder, and reports there only about itself.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from urllib.parse import urlencode

from dragoman.drivers.transport import HttpRequest, Timeouts, read_whole
from dragoman.errors import ProviderError
from dragoman.gateway.app import Gateway
from dragoman.gateway.exchange import Application, Exchange, ServerLimits
from dragoman.gateway.http_request import ADMISSION, ADMITTED, BadRequest, Head
from dragoman.gateway.http_server import Server
from dragoman.gateway.upstream_http import UpstreamHttp, UpstreamResponse

_FIRST = 0
_PATIENCE = 2.0
"""Seconds for another worker to report its counts; one that is restarting is left out."""
_AGAIN = 1.0
_MOST = 64 << 20
"""Maximum bytes of an answer, or of a line of a stream."""
_SHORT = Timeouts(connect=_PATIENCE, first_byte=_PATIENCE, between_bytes=_PATIENCE, total=_PATIENCE)
_PATIENT = Timeouts(connect=_PATIENCE, first_byte=600.0, between_bytes=None)
_OK = 200
_BODILESS = frozenset({204, 304})
_BEHIND = 1_000
_DATA = b"data: "
_TEXT = {"content-type": "text/plain; charset=utf-8"}
_OF_A_CONNECTION = frozenset({"connection", "content-length", "transfer-encoding", "keep-alive", "date"})
_FREE_BODY = 4 << 10
"""Bytes of a body that are read before the first worker has admitted the request."""
# Headers not forwarded with a request: its body was read and decompressed, and the connection is another.
_NOT_HANDED_OVER = _OF_A_CONNECTION | {"expect", "content-encoding", "upgrade", "http2-settings"}


def is_for_the_page(head: Head) -> bool:
    """Whether the request is for the page: `/` in browsers, and everything below `/_/`."""
    if head.path.startswith("/_/"):
        return True
    return head.path == "/" and head.method == "GET" and "text/html" in head.headers.get("accept", "")


class OtherWorkers:
    def __init__(self, folder: Path, place: int, count: int) -> None:
        self._folder = folder
        self._place = place
        self._others = [number for number in range(count) if number != place]
        self._most_body = ServerLimits().body

    @property
    def is_first(self) -> bool:
        return self._place == _FIRST

    def _socket(self, place: int) -> str:
        return str(self._folder / f"worker-{place}.sock")

    @property
    def _page(self) -> str:
        """The socket of the page. It is separate so that clients' requests never reach the workers' handlers."""
        return str(self._folder / "page.sock")

    async def ask(self, target: str) -> list[bytes]:
        found = await asyncio.gather(*(self._ask(place, target) for place in self._others))
        return [body for body in found if body is not None]

    async def _ask(self, place: int, target: str) -> bytes | None:
        client = UpstreamHttp(unix=self._socket(place))
        try:
            response = await client.send(_worker_request(target), timeouts=_SHORT)
            body = await read_whole(response, _MOST)
        except ProviderError:
            return None
        finally:
            await client.close()
        return body if response.status == _OK else None

    async def follow(self, target: str) -> AsyncGenerator[bytes, None]:
        queue: asyncio.Queue[bytes] = asyncio.Queue(_BEHIND)
        following = [asyncio.ensure_future(self._follow(place, target, queue)) for place in self._others]
        try:
            while True:
                yield await queue.get()
        finally:
            for task in following:
                task.cancel()

    async def _follow(self, place: int, target: str, queue: asyncio.Queue[bytes]) -> None:
        """Queue the events of a worker, and reconnect when it is replaced."""
        while True:
            client = UpstreamHttp(unix=self._socket(place))
            try:
                with suppress(ProviderError):  # no worker is there yet
                    response = await client.send(_worker_request(target), timeouts=_PATIENT)
                    rest = b""
                    while (data := await response.chunk()) and len(rest) <= _MOST:
                        *lines, rest = (rest + data).split(b"\n")
                        for line in lines:
                            if line.startswith(_DATA):
                                await queue.put(line[len(_DATA) :].rstrip())
                    response.close()
            finally:
                await client.close()
            await asyncio.sleep(_AGAIN)

    async def hand_over(self, exchange: Exchange) -> None:
        """Let the first worker answer. Chunks pass as they come, and a disconnect on either side ends both."""
        try:
            limit = await self._admit_body(exchange)
            if limit is not None:
                await exchange.receive(limit)
                await self._forward(exchange, self._page, _forwarded_request(exchange))
        except BadRequest as bad:
            exchange.send(bad.status, _TEXT, f"{bad}\n".encode())
        except ProviderError:
            if not exchange.started:
                exchange.send(503, {**_TEXT, "retry-after": "1"}, b"The page is just starting; try again.\n")

    async def _admit_body(self, exchange: Exchange) -> int | None:
        """Ask the first worker how much of the body may be read; None if it has refused the request.

        It knows who is logged in, and nothing is buffered for others.
        """
        if exchange.head.method == "GET":
            return _FREE_BODY
        client = UpstreamHttp(unix=self._socket(_FIRST))
        try:
            response = await client.send(_admission_request(exchange.head), timeouts=_SHORT)
            body = await read_whole(response, _MOST)
        finally:
            await client.close()
        if ADMITTED in response.headers:
            return min(int(response.headers[ADMITTED]), self._most_body)
        exchange.send(response.status, _kept_headers(response), body)
        return None

    async def _forward(self, exchange: Exchange, path: str, request: HttpRequest) -> None:
        client = UpstreamHttp(unix=path)
        try:
            response = await client.send(request, timeouts=_PATIENT)
            if "content-length" in response.headers or response.status in _BODILESS:
                exchange.send(response.status, _kept_headers(response), await read_whole(response, _MOST))
                return
            exchange.start(response.status, _kept_headers(response))
            await response.stream_to(exchange.write, exchange.drain)
            exchange.finish()
        finally:
            await client.close()

    @asynccontextmanager
    async def link(
        self, gateway: Gateway, application: Application, limits: ServerLimits
    ) -> AsyncIterator[Application]:
        """Listen for the other workers, and make them available as `gateway.other_workers`."""
        self._most_body = limits.body

        async def for_workers(exchange: Exchange) -> None:
            await gateway.private.get(exchange.head.path, _not_found)(exchange)

        def for_clients(exchange: Exchange) -> Awaitable[None]:
            return self.hand_over(exchange) if is_for_the_page(exchange.head) else application(exchange)

        servers = [await _listen(self._socket(self._place), for_workers, limits)]
        if self.is_first:
            servers.append(await _listen(self._page, application, limits))
        gateway.other_workers = self
        shows_the_page = self.is_first or not gateway.config.server.page
        try:
            yield application if shows_the_page else for_clients
        finally:
            gateway.other_workers = None
            for server in servers:
                await server.close(0.0)


async def _listen(path: str, application: Application, limits: ServerLimits) -> Server:
    Path(path).unlink(missing_ok=True)  # noqa: ASYNC240 - left by the worker that this one replaces
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listening.bind(path)
    server = Server(application, limits)
    await server.listen(listening)
    return server


async def _not_found(exchange: Exchange) -> None:
    exchange.send(404, _TEXT)


def _worker_request(target: str) -> HttpRequest:
    return HttpRequest(method="GET", url=f"http://worker{target}")


def _kept_headers(response: UpstreamResponse) -> dict[str, str]:
    return {name: value for name, value in response.headers.items() if name not in _OF_A_CONNECTION}


def _forwarded_request(exchange: Exchange) -> HttpRequest:
    head = exchange.head
    target = f"{head.path}?{head.query}" if head.query else head.path
    return _with_headers_of(head, head.method, target, exchange.body)


def _admission_request(head: Head) -> HttpRequest:
    return _with_headers_of(head, "GET", f"{ADMISSION}?{urlencode({'method': head.method, 'path': head.path})}")


def _with_headers_of(head: Head, method: str, target: str, body: bytes = b"") -> HttpRequest:
    kept = {name: value for name, value in head.headers.items() if name not in _NOT_HANDED_OVER}
    return HttpRequest(method=method, url=f"http://{kept.pop('host', 'worker')}{target}", headers=kept, body=body)
