"""HTTP/1.1 over asyncio: connections in, exchanges out. One request at a time on each connection.

Why no library: what a gateway adds to each request is mostly HTTP, and ours has to be strict where machines could
disagree and lenient where clients are only odd (docs/decisions/0013-gateway-server.md).
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from email.utils import formatdate
from http import HTTPStatus
from typing import TypeAlias

from msgspec import Struct

from dragoman.gateway.http11 import HEAD_END, MAX_HEAD, BadRequest, Chunks, Head, parse_head
from dragoman.gateway.receiving import Receiver, shared_room

_REASONS = {status.value: status.phrase.encode() for status in HTTPStatus}
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_LAST_CHUNK = b"0\r\n\r\n"
_TICK = 0.5
_NO_BODY = frozenset({204, 304})


class ServerLimits(Struct, frozen=True, kw_only=True):
    body: int = 64 << 20
    head_seconds: float = 15.0
    """For the head of a request, from its first byte. Who drips it byte by byte is not waited for."""
    body_seconds: float = 120.0
    """For the body, as long as nothing of it comes."""
    idle_seconds: float = 75.0
    write_seconds: float = 60.0
    """For a client that does not read."""
    connections: int = 10_000


class Gone(Exception):
    """The client has gone away."""


class Exchange:
    """One request and the way back. `problem` stands for what was wrong with its body, which is then not here."""

    __slots__ = (
        "_chunks",
        "_connection",
        "_ended",
        "_head_only",
        "also",
        "body",
        "head",
        "heard",
        "keep",
        "problem",
        "started",
    )

    def __init__(self, connection: Connection, head: Head, body: bytes, problem: BadRequest | None) -> None:
        self._connection = connection
        self.head = head
        self.body = body
        self.problem = problem
        self.keep = head.keep_alive
        self._chunks = head.chunks
        self.also: Mapping[str, str] = {}
        """Headers that every answer gets."""
        self.heard: Callable[[int, bytes], None] | None = None
        """Told of an answer that is sent whole."""
        self.started = False
        self._ended = False
        self._head_only = head.method == "HEAD"

    def send(self, status: int, headers: Mapping[str, str], body: bytes = b"") -> None:
        """A whole answer."""
        self.started = self._ended = True
        if self.heard is not None:
            self.heard(status, body)
        length = b"" if status in _NO_BODY else b"content-length: %d\r\n" % len(body)
        self._connection.put(self._opening(status, headers, length) + (b"" if self._head_only else body))

    def start(self, status: int, headers: Mapping[str, str], first: bytes = b"") -> None:
        """An answer that comes in pieces, with its first."""
        self.started = True
        if self.head.chunks:
            opening = self._opening(status, headers, b"transfer-encoding: chunked\r\n")
            self._connection.put(opening + b"%x\r\n%b\r\n" % (len(first), first) if first else opening)
        else:
            self.keep = False
            self._connection.put(self._opening(status, headers, b"") + first)

    def write(self, data: bytes) -> bool:
        """Whether the client reads more slowly than we write: wait with `drain`."""
        connection = self._connection
        if data:
            connection.put(b"%x\r\n%b\r\n" % (len(data), data) if self._chunks else data)
        return connection.paused

    async def drain(self) -> None:
        await self._connection.writable()

    def pass_on(self, data: bytes) -> bool:
        """Bytes of an answer that somebody else has made, head and all; the connection ends with it."""
        self.started, self.keep = True, False
        self._connection.put(data)
        return self._connection.paused

    def passed(self) -> None:
        self._ended = True

    def finish(self, last: bytes = b"") -> None:
        self.write(last)
        self._ended = True
        if self.head.chunks:
            self._connection.put(_LAST_CHUNK)

    @property
    def whole(self) -> bool:
        return self._ended

    def _opening(self, status: int, headers: Mapping[str, str], framing: bytes) -> bytes:
        lines = [b"HTTP/1.1 %d %b\r\n" % (status, _REASONS.get(status, b"-")), self._connection.server.date, framing]
        for name, value in ({**headers, **self.also} if self.also else headers).items():
            clean = value.replace("\r", " ").replace("\n", " ")
            lines.append(f"{name}: {clean}\r\n".encode("latin-1", "replace"))
        if not self.keep or self._connection.server.closing:
            self.keep = False
            lines.append(b"connection: close\r\n")
        lines.append(b"\r\n")
        return b"".join(lines)


Application: TypeAlias = Callable[[Exchange], Awaitable[None]]


class Server:
    """All connections of one process."""

    def __init__(self, application: Application, limits: ServerLimits | None = None) -> None:
        self.application = application
        self.limits = limits or ServerLimits()
        self.connections: set[Connection] = set()
        self.closing = False
        self.date = b""
        self.loop = asyncio.get_running_loop()
        self.room = shared_room(self.loop)
        self._ticking: asyncio.TimerHandle | None = None
        self._listening: list[asyncio.Server] = []
        self._tick()

    async def listen(self, listening: socket.socket, tls: ssl.SSLContext | None = None) -> None:
        server = await self.loop.create_server(lambda: Connection(self), sock=listening, ssl=tls, backlog=1024)
        self._listening.append(server)

    async def close(self, patience: float) -> None:
        """No new connections; answers under way have time to end."""
        self.closing = True
        for server in self._listening:
            server.close()
        for connection in list(self.connections):
            connection.close_if_idle()
        end = self.loop.time() + patience
        while self.connections and self.loop.time() < end:  # noqa: ASYNC110 - once, at the very end
            await asyncio.sleep(0.02)
        for connection in list(self.connections):
            connection.abort()
        if self._ticking is not None:
            self._ticking.cancel()
        await asyncio.sleep(0)

    def _tick(self) -> None:
        now = self.loop.time()
        self.date = f"date: {formatdate(usegmt=True)}\r\n".encode()
        for connection in [one for one in self.connections if now >= one.due]:
            connection.overdue()
        self._ticking = self.loop.call_later(_TICK, self._tick)


_NEVER = float("inf")


class Connection(Receiver):
    """The bytes of one client."""

    def __init__(self, server: Server) -> None:
        super().__init__(server.room)
        self.server = server
        self.paused = False
        self.due = _NEVER
        """When somebody should ask what takes it so long."""
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._head: Head | None = None
        self._chunks: Chunks | None = None
        self._body: list[bytes] = []
        self._size = 0
        self._problem: BadRequest | None = None
        self._task: asyncio.Task[None] | None = None
        self._resumed: asyncio.Future[None] | None = None
        self._reading = True
        self._discarding = False
        self._ended = False

    # ── from the transport ──

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - create_server gives nothing else
        self._transport = transport
        line = transport.get_extra_info("socket")
        if line is not None and line.family != getattr(socket, "AF_UNIX", None):
            # asyncio does so only for sockets that were made with the number of TCP; ours may come from anywhere.
            # Without it the last pieces of a stream wait 40 ms for the client to acknowledge those before.
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if len(self.server.connections) >= self.server.limits.connections:
            transport.abort()
            return
        self.server.connections.add(self)
        self.due = self.server.loop.time() + self.server.limits.head_seconds

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self.server.connections.discard(self)
        self._transport = None
        self._wake()
        if self._task is not None:
            self._task.cancel()

    def data_received(self, data: bytes) -> None:
        if self._discarding:
            return
        if self._task is not None:  # the next request, before the answer to this one
            self._buffer += data
            if len(self._buffer) > MAX_HEAD and self._transport is not None and self._reading:
                self._reading = False
                self._transport.pause_reading()
            return
        try:
            self._receive(data)
        except BadRequest as bad:
            self._refuse(bad)

    def pause_writing(self) -> None:
        self.paused = True
        self.due = self.server.loop.time() + self.server.limits.write_seconds

    def resume_writing(self) -> None:
        self.paused = False
        self.due = _NEVER
        self._wake()

    # ── reading ──

    def _receive(self, data: bytes) -> None:
        if self._head is None:
            data = self._read_head(data)
        head = self._head
        if head is None:
            return
        limits = self.server.limits
        if self._chunks is not None:
            body = self._chunks.feed(data)
            self._keep(body)
            done, rest = self._chunks.done, self._chunks.rest
        else:
            missing = (head.length or 0) - self._size
            self._keep(data[:missing])
            done, rest = len(data) >= missing, data[missing:]
        if done:
            self._buffer += rest
            self._dispatch(head)
        else:
            self.due = self.server.loop.time() + limits.body_seconds

    def _read_head(self, data: bytes) -> bytes:
        """What came behind the head."""
        buffer = self._buffer
        if not buffer:
            data = data.lstrip(b"\r\n")
            self.due = self.server.loop.time() + self.server.limits.head_seconds
        searched = max(0, len(buffer) - 3)
        buffer += data
        end = buffer.find(HEAD_END, searched)
        if end < 0:
            if len(buffer) > MAX_HEAD:
                raise BadRequest(f"a head of more than {MAX_HEAD} bytes", 431)
            return b""
        if end > MAX_HEAD:
            raise BadRequest(f"a head of more than {MAX_HEAD} bytes", 431)
        head = parse_head(bytes(buffer[:end]))
        rest = bytes(buffer[end + 4 :])
        buffer.clear()
        self._head = head
        self._chunks = Chunks() if head.length is None else None
        if head.length is not None and head.length > self.server.limits.body:
            self._problem = self._too_large()
        if head.headers.get("expect", "").lower() == "100-continue" and not rest:
            if self._problem is not None:
                raise self._problem
            self.put(_CONTINUE)
        return rest

    def _keep(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > self.server.limits.body and self._problem is None:
            self._problem = self._too_large()
        if self._problem is None:
            if piece:
                self._body.append(piece)
        else:  # read to its end, and forgotten: a client that still writes would not read our answer
            self._body.clear()

    def _too_large(self) -> BadRequest:
        return BadRequest(f"the body is larger than {self.server.limits.body} bytes", 413)

    def _dispatch(self, head: Head) -> None:
        body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        exchange = Exchange(self, head, body, self._problem)
        self._head, self._chunks, self._body, self._size, self._problem = None, None, [], 0, None
        self.due = _NEVER
        self._task = self.server.loop.create_task(self._serve(exchange))

    async def _serve(self, exchange: Exchange) -> None:
        try:
            await self.server.application(exchange)
        except asyncio.CancelledError:
            self.abort()
            raise
        except Gone:
            self.abort()
        finally:
            self._task = None
        self._answered(exchange)

    def _answered(self, exchange: Exchange) -> None:
        if self._transport is None:
            return
        if not exchange.whole:  # the only way left to say that it is not whole
            self.abort()
        elif not exchange.keep or self.server.closing:
            self._transport.close()
        else:
            self._next()

    def _next(self) -> None:
        self.due = self.server.loop.time() + self.server.limits.idle_seconds
        waiting = bytes(self._buffer)
        self._buffer.clear()
        if not self._reading and self._transport is not None:
            self._reading = True
            self._transport.resume_reading()
        if waiting:
            self.data_received(waiting)

    def _refuse(self, bad: BadRequest) -> None:
        """Not HTTP: nobody knows which format the client speaks."""
        head = self._head or Head("GET", "/", "", {}, 0, keep_alive=False, chunks=True)
        exchange = Exchange(self, head, b"", bad)
        exchange.keep = False
        with suppress(Gone):
            exchange.send(bad.status, {"content-type": "text/plain; charset=utf-8"}, str(bad).encode())
        self._discarding = True
        self.due = self.server.loop.time() + 1.0
        if self._transport is not None and self._transport.can_write_eof():
            self._transport.write_eof()

    # ── writing ──

    def put(self, data: bytes) -> None:
        if self._transport is None or self._transport.is_closing():
            raise Gone
        self._transport.write(data)

    async def writable(self) -> None:
        while self.paused:
            if self._transport is None:
                raise Gone
            self._resumed = self._resumed or self.server.loop.create_future()
            await self._resumed
        if self._transport is None:
            raise Gone

    def _wake(self) -> None:
        if self._resumed is not None and not self._resumed.done():
            self._resumed.set_result(None)
        self._resumed = None

    # ── ending ──

    def overdue(self) -> None:
        """Too slow: a client that is amid a request is told so, one that says nothing is left."""
        self.due = _NEVER
        if self._task is None and not self._discarding and (self._head is not None or self._buffer):
            self._refuse(BadRequest("the request took too long", 408))
        else:
            self.abort()

    def close_if_idle(self) -> None:
        if self._task is None and self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()
