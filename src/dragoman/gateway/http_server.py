"""The HTTP server of one process: listeners, connections, time limits, drain.

HTTP/1.1 is parsed by llhttp (http1.py), HTTP/2 by h2 (http2.py), which TLS clients choose by ALPN and others by prior
knowledge. Handlers see `Exchange` only. Why not a whole server from a library: docs/decisions/0021-gateway-http.md.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from contextlib import suppress
from email.utils import formatdate
from importlib.util import find_spec
from math import inf
from typing import Protocol

from dragoman.gateway.exchange import Application, Budget, Exchange, Gone, ServerLimits
from dragoman.gateway.http1 import Http1Connection
from dragoman.gateway.read_buffer import shared_buffer
from dragoman.gateway.write_batching import WriteBatcher

_TICK = 0.5
_EVICTED = 16
"""If there are too many connections, this share of them (1/16) is closed at a time, as finding the oldest is slow."""
_NO_FILES_LEFT = 0.1
"""Seconds to wait after a connection could not be accepted."""
_TEXT = {"content-type": "text/plain; charset=utf-8"}


class Connection(Protocol):
    due: float
    read_by: float
    """When a client that does not read is cut off."""
    held_head: int
    """Bytes of an incomplete head in memory, as `Server.hold_head` has noted them."""

    @property
    def unread(self) -> int:
        """Bytes of answers in memory that the client has not read."""
        ...

    @property
    def idle_since(self) -> float:
        """When the last answer was complete, or the connection or a head began; infinity while a handler is at work."""
        ...

    def overdue(self) -> None: ...

    @property
    def has_work(self) -> bool:
        """Whether an answer is in progress, or not sent yet."""
        ...

    def close_if_idle(self) -> None: ...

    def abort(self) -> None: ...


def supports_http2() -> bool:
    """Whether h2 is installed (extra `gateway`). The page alone does not need it."""
    return find_spec("h2") is not None


def server_context() -> ssl.SSLContext:
    """Return a TLS context for a listener, still without certificate. Clients choose the HTTP version by ALPN."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["h2", "http/1.1"] if supports_http2() else ["http/1.1"])
    return context


class Server:
    def __init__(self, application: Application, limits: ServerLimits | None = None) -> None:
        self.application = application
        self.limits = limits or ServerLimits()
        self.budget = Budget(self.limits.buffered)
        self.connections: set[Connection] = set()
        self._heads = 0
        """Bytes of incomplete heads, over all connections."""
        self._held_since = 0
        """Bytes of answers that had to wait since slow readers were last looked for."""
        self.closing = False
        self.tls: ssl.SSLContext | None = None
        """The context of new TLS connections; a renewed certificate comes with a new one."""
        self.date = b""
        self.loop = asyncio.get_running_loop()
        self.buffer = shared_buffer(self.loop)
        self.outbox = WriteBatcher(self.loop)
        self._ticking: asyncio.TimerHandle | None = None
        self._listening: list[asyncio.Server] = []
        self._accepting: list[asyncio.Task[None]] = []
        self._handshakes: dict[asyncio.Task[None], float] = {}
        """The TLS handshakes under way, with the times when they began."""
        self._tick()

    async def listen(self, listening: socket.socket, tls: ssl.SSLContext | None = None) -> None:
        if tls is None:
            server = await self.loop.create_server(lambda: Http1Connection(self), sock=listening, backlog=1024)
            self._listening.append(server)
        else:
            listening.listen(1024)
            listening.settimeout(0)
            self.tls = tls
            self._accepting.append(self.loop.create_task(self._accept(listening)))

    async def _accept(self, listening: socket.socket) -> None:
        """Accept connections with TLS. asyncio's own server would not count handshakes that do not end."""
        with listening:
            while True:
                accepted: socket.socket | None = None
                with suppress(OSError):  # no files left, or the client is gone already
                    accepted, _ = await self.loop.sock_accept(listening)
                if accepted is None:
                    await asyncio.sleep(_NO_FILES_LEFT)
                    continue
                if not self._has_room():
                    accepted.close()
                    continue
                task = self.loop.create_task(self._shake_hands(accepted))
                self._handshakes[task] = self.loop.time()
                task.add_done_callback(lambda done: self._handshakes.pop(done, None))

    async def _shake_hands(self, accepted: socket.socket) -> None:
        with suppress(OSError):  # also of TLS, and the time limit
            await self.loop.connect_accepted_socket(
                lambda: Http1Connection(self), accepted, ssl=self.tls, ssl_handshake_timeout=self.limits.head_seconds
            )

    def admits(self, connection: Connection) -> bool:
        """Add a connection, in place of idle ones if there are too many. Return False if none of them is idle."""
        if len(self.connections) >= self.limits.connections and not self._has_room():
            return False
        self.connections.add(connection)
        return True

    def hold_head(self, connection: Connection, size: int) -> None:
        """Note how much of an incomplete head a connection holds. Beyond the limit, those that hold the most are cut.

        Sending heads needs no key. A client whose head arrives in two packets holds less than one that fills memory.
        """
        self._heads += size - connection.held_head
        connection.held_head = size
        while self._heads > self.limits.heads and self.connections:
            most = max(self.connections, key=lambda one: one.held_head)
            if not most.held_head:  # the rest belongs to connections that are being closed
                break
            self.connections.discard(most)
            self._heads -= most.held_head
            most.held_head = 0
            most.abort()

    def _has_room(self) -> bool:
        """Return whether a connection can be added, after closing those that have been idle longest if need be.

        Opening connections needs no key, so otherwise one client could open all that are allowed and lock out the rest.
        """
        if len(self.connections) + len(self._handshakes) < self.limits.connections:
            return True
        ages: list[tuple[float, Connection | asyncio.Task[None]]] = [(one.idle_since, one) for one in self.connections]
        ages += [(began, task) for task, began in self._handshakes.items()]
        ages.sort(key=lambda age: age[0])
        idle = [one for since, one in ages[: max(1, self.limits.connections // _EVICTED)] if since != inf]
        for one in idle:
            if isinstance(one, asyncio.Task):
                self._handshakes.pop(one)
                one.cancel()
            else:
                self.connections.discard(one)
                one.abort()
        return bool(idle)

    def switch_to_http2(self, connection: Http1Connection, transport: asyncio.Transport, data: bytes = b"") -> None:
        """Replace the connection, which turned out to be HTTP/2."""
        self.connections.discard(connection)
        try:
            from dragoman.gateway.http2 import Http2Connection  # noqa: PLC0415 - see supports_http2
        except ImportError:
            transport.abort()
            return
        newer = Http2Connection(self)
        transport.set_protocol(newer)
        newer.connection_made(transport)
        if data:
            newer.received(memoryview(data))

    def answer_failure(self, exchange: Exchange, error: Exception) -> None:
        """Answer 500 for what the application has raised, or break off the answer, and close the connection."""
        context = {"message": f"the handler of {exchange.head.path} failed", "exception": error}
        self.loop.call_exception_handler(context)
        exchange.close_after()
        if not exchange.started:
            with suppress(Gone):
                exchange.send(500, _TEXT, b"Internal error of the gateway.\n")

    async def close(self, patience: float) -> None:
        """Stop listening; answers in progress have `patience` seconds to end."""
        self.closing = True
        for server in self._listening:
            server.close()
        for task in (*self._accepting, *self._handshakes):
            task.cancel()
        for connection in list(self.connections):
            connection.close_if_idle()
        end = self.loop.time() + patience
        # Idle clients do not read, so they do not confirm the end of TLS, for which the transport waits half a minute.
        while self._has_work() and self.loop.time() < end:  # noqa: ASYNC110 - once, at the very end
            await asyncio.sleep(0.02)
        for connection in list(self.connections):
            connection.abort()
        if self._ticking is not None:
            self._ticking.cancel()
        await asyncio.sleep(0)

    def _has_work(self) -> bool:
        return any(connection.has_work for connection in self.connections)

    def hold_answer(self, size: int) -> None:
        """Note bytes of an answer that wait for the client.

        Slow readers are also looked for here, because answers between two ticks might not fit into memory.
        """
        self._held_since += size
        if self._held_since > self.limits.unread // 4:
            self._cut_slow_readers()

    def _cut_slow_readers(self) -> None:
        """Keep what clients do not read within its limit: at some endpoints an answer needs no key."""
        self._held_since = 0
        unread = {one: one.unread for one in self.connections}
        total = sum(unread.values())
        while total > self.limits.unread:
            most = max(unread, key=lambda one: unread[one])
            total -= unread.pop(most)
            self.connections.discard(most)
            most.abort()

    def _tick(self) -> None:
        """Check all time limits with one timer: a timer per read would be set and cancelled for every chunk."""
        now = self.loop.time()
        self.date = f"date: {formatdate(usegmt=True)}\r\n".encode()
        for connection in [one for one in self.connections if now >= one.due or now >= one.read_by]:
            connection.overdue()
        self._cut_slow_readers()
        self._ticking = self.loop.call_later(_TICK, self._tick)
