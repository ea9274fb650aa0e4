"""The network towards upstreams: HTTP/1.1 on `asyncio.Protocol`, a third of what the drivers' general transport costs.

It does what a gateway needs: pooled connections, TLS, time limits at every stage, bodies by length, in chunks or until
the end, perhaps packed by gzip. Where a proxy stands in between, the drivers' own transport is used.
"""

from __future__ import annotations

import asyncio
import re
import ssl
import zlib
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from math import inf
from typing import TypeAlias
from urllib.parse import urlsplit

from dragoman.drivers.deadlines import Deadlines
from dragoman.drivers.transport import HttpRequest, HttpResponse, Timeouts, Tls, failed, not_answered, not_connected
from dragoman.errors import ProviderError
from dragoman.gateway.http11 import HEAD_END, MAX_HEAD, BadRequest, Chunks
from dragoman.gateway.receiving import Receiver, shared_room

IDLE_SECONDS = 25.0
"""Shorter than servers keep a connection that nobody uses."""
MOST_IDLE = 256
HELD = 1 << 20
"""Bytes that may wait for a slow reader before the server is made to wait."""
_STATUS = re.compile(rb"HTTP/1\.[01] ([1-9]\d\d)(?: [^\r\n]*)?")
_FINAL = 200
_BODILESS = frozenset({204, 304})
_PACKED = {"gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}


Sink: TypeAlias = Callable[[bytes], bool]
"""Takes a piece of a body, and tells whether whoever it is for has enough for now."""


class Head:
    __slots__ = ("headers", "status")

    def __init__(self, status: int, headers: Mapping[str, str]) -> None:
        self.status = status
        self.headers = headers


class Line(Receiver):
    """One connection. It answers one request at a time."""

    def __init__(self, loop: asyncio.AbstractEventLoop, room: memoryview | None = None) -> None:
        super().__init__(room)
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._buffer = b""
        self._waiter: asyncio.Future[None] | None = None
        self._chunks: Chunks | None = None
        self._left: int | None = 0
        self._unpack: zlib._Decompress | None = None
        self._paused = False
        self._sink: Sink | None = None
        self.crowded = False
        """The sink has enough."""
        self.broken: Exception | None = None
        """What the sink could not cope with."""
        self.heard = 0.0
        self.pieces: deque[bytes] = deque()
        self.held = 0
        self.head: Head | None = None
        self.done = True
        self.reusable = True
        self.lost: Exception | None = None
        self.idle_since = 0.0

    # ── from the transport ──

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - create_connection gives nothing else
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self.reusable = False
        if not self.done and self.head is not None and self._left is None and self._chunks is None and exc is None:
            self.done = True  # the end of the connection is the end of the body
        elif not self.done:
            self.lost = exc or ConnectionResetError("closed by the server")
        self._wake()

    def data_received(self, data: bytes) -> None:
        if self.done:  # nobody has asked
            self.reusable = False
            self.close()
            return
        try:
            if self.head is None:
                data = self._read_head(data)
            if self.head is not None and data:
                self._read_body(data)
        except (BadRequest, zlib.error, ValueError) as error:
            self.lost = error
            self.close()
        self._wake_if_due()

    # ── reading ──

    def _read_head(self, data: bytes) -> bytes:
        self._buffer += data
        while True:
            head, found, rest = self._buffer.partition(HEAD_END)
            if not found:
                if len(self._buffer) > MAX_HEAD:
                    raise BadRequest("the head of the answer is too long")
                return b""
            self._buffer = rest
            parsed = _parsed(head)
            if parsed.status >= _FINAL:
                break
        self._buffer = b""
        self._frame(parsed)
        self.head = parsed
        return rest

    def _frame(self, head: Head) -> None:
        headers = head.headers
        length, coding = headers.get("content-length"), headers.get("transfer-encoding", "").lower()
        self._chunks = Chunks() if coding == "chunked" else None
        if length is not None and not (length.isascii() and length.isdigit()):
            raise BadRequest("the length of the answer is not a number")
        self._left = None if length is None or self._chunks is not None else int(length)
        if head.status in _BODILESS:
            self._left, self._chunks = 0, None
        window = _PACKED.get(headers.get("content-encoding", "").lower())
        self._unpack = None if window is None else zlib.decompressobj(window)
        ends_with_connection = self._left is None and self._chunks is None
        if ends_with_connection or "close" in headers.get("connection", "").lower():
            self.reusable = False
        self.done = self._left == 0

    def _read_body(self, data: bytes) -> None:
        if self._chunks is not None:
            data = self._chunks.feed(data)
            self.done = self._chunks.done
            self.reusable = self.reusable and not self._chunks.rest
        elif self._left is not None:
            self.reusable = self.reusable and len(data) <= self._left
            data = data[: self._left]
            self._left -= len(data)
            self.done = self._left == 0
        if self._unpack is not None:
            data = self._unpack.decompress(data)
            if self.done and not self._unpack.eof:
                self.done = False
                raise BadRequest("the compressed answer is cut short")
        if data:
            self.heard = self._loop.time()
            if self._sink is None:
                self._hold(data)
            else:
                self._pour(data, self._sink)

    def _hold(self, data: bytes) -> None:
        self.pieces.append(data)
        self.held += len(data)
        if self.held > HELD and self._transport is not None and not self._paused:
            self._paused = True
            self._transport.pause_reading()

    def _pour(self, data: bytes, sink: Sink) -> None:
        try:
            self.crowded = sink(data)
        except Exception as error:  # noqa: BLE001 - told to the task that waits for the end
            self.broken = error
        if self.crowded or self.broken is not None:
            self._sink = None

    def take(self) -> bytes:
        if len(self.pieces) == 1:
            data = self.pieces.popleft()
        else:
            data = b"".join(self.pieces)
            self.pieces.clear()
        self.held = 0
        if self._paused and self._transport is not None:
            self._paused = False
            self._transport.resume_reading()
        return data

    # ── for whoever asks ──

    def ask(self, data: bytes) -> None:
        self.head, self.done, self.lost = None, False, None
        self._buffer = b""
        if self._transport is None:
            self.lost = ConnectionResetError("closed by the server")
        else:
            self._transport.write(data)

    async def more(self) -> None:
        """Until something has come."""
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    async def flow(self, sink: Sink) -> None:
        """What comes goes straight to the sink, until that has enough or nothing more comes."""
        self._sink, self.crowded, self.broken = sink, False, None
        try:
            await self.more()
        finally:
            self._sink = None

    def _wake_if_due(self) -> None:
        """What goes to a sink is nobody else's news, except for its end."""
        if self.done or self.lost is not None or (self.head is not None and self._sink is None):
            self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    @property
    def is_open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    def close(self) -> None:
        self.reusable = False
        if self._transport is not None:
            self._transport.abort()


def _parsed(head: bytes) -> Head:
    first, *lines = head.split(b"\r\n")
    status = _STATUS.fullmatch(first)
    if status is None:
        raise BadRequest("the answer is not HTTP/1.1")
    headers: dict[str, str] = {}
    for line in lines:
        name, found, value = line.decode("latin-1").partition(":")
        if not found:
            raise BadRequest("a header of the answer is not `name: value`")
        key = name.lower()
        told = value.strip()
        headers[key] = f"{headers[key]}, {told}" if key in headers else told
    return Head(int(status[1]), headers)


class WireTransport:
    """A pool of connections to one upstream. It belongs to the event loop it is first used in."""

    def __init__(self, tls: Tls | None = None) -> None:
        self._tls = tls
        self._context: ssl.SSLContext | None = None
        self._idle: dict[tuple[str, int, bool], deque[Line]] = {}
        self._deadlines: Deadlines | None = None
        self._room: memoryview | None = None

    async def send(self, request: HttpRequest, *, timeouts: Timeouts) -> WireResponse:
        loop = asyncio.get_running_loop()
        if self._deadlines is None:
            self._deadlines, self._room = Deadlines(loop), shared_room(loop)
        deadlines = self._deadlines
        started = loop.time()
        end = inf if timeouts.total is None else started + timeouts.total
        first = min(end, inf if timeouts.first_byte is None else started + timeouts.first_byte)
        place, data = _written(request)
        line = self._rested(place, started) or await self._connected(place, loop, timeouts, end)
        if not line.is_open:
            raise not_connected("the connection was closed before anything was sent")
        line.ask(data)
        try:
            while line.head is None and line.lost is None:
                await deadlines.wait(line.more(), first)
        except TimeoutError:
            line.close()
            over = "the time for the whole call is over"
            waited = f"nothing came for {loop.time() - started:.1f} s before the answer began"
            raise failed("timeout", over if loop.time() >= end else waited) from None
        except BaseException:
            line.close()
            raise
        if line.head is None:
            line.close()
            # Also on a connection that was used before: the server may have read the request before it closed it.
            raise not_answered(f"no answer: {_reason(line.lost)}")
        return WireResponse(self, place, line, line.head, timeouts, deadlines, first, end)

    def _rested(self, place: tuple[str, int, bool], now: float) -> Line | None:
        lines = self._idle.get(place)
        while lines:
            line = lines.pop()
            if line.reusable and line.is_open and now - line.idle_since < IDLE_SECONDS:
                return line
            line.close()
        return None

    async def _connected(
        self, place: tuple[str, int, bool], loop: asyncio.AbstractEventLoop, timeouts: Timeouts, end: float
    ) -> Line:
        host, port, secure = place
        if secure and self._context is None:
            self._context = (self._tls or Tls()).context()
        context = self._context if secure else None
        started = loop.time()
        limit = inf if timeouts.connect is None else started + timeouts.connect
        assert self._deadlines is not None  # noqa: S101 - made by send
        try:
            connecting = loop.create_connection(lambda: Line(loop, self._room), host, port, ssl=context)
            _, line = await self._deadlines.wait(connecting, min(limit, end))
        except TimeoutError:
            waited = loop.time() - started
            raise not_connected(f"no connection within {waited:.1f} s") from None
        except OSError as error:
            raise not_connected(f"no connection: {_reason(error)}") from None
        return line

    def give_back(self, place: tuple[str, int, bool], line: Line, now: float) -> None:
        lines = self._idle.setdefault(place, deque())
        if line.reusable and line.is_open and len(lines) < MOST_IDLE:
            line.idle_since = now
            lines.append(line)
        else:
            line.close()

    async def close(self) -> None:
        for lines in self._idle.values():
            for line in lines:
                line.close()
        self._idle.clear()
        if self._deadlines is not None:
            self._deadlines.close()
        await asyncio.sleep(0)


class WireResponse:
    __slots__ = ("_deadlines", "_end", "_line", "_now", "_pause", "_place", "_pool", "_until", "headers", "status")

    def __init__(  # noqa: PLR0913, PLR0917 - made in one place only
        self,
        pool: WireTransport,
        place: tuple[str, int, bool],
        line: Line,
        head: Head,
        timeouts: Timeouts,
        deadlines: Deadlines,
        first: float,
        end: float,
    ) -> None:
        self._pool = pool
        self._place = place
        self._line: Line | None = line
        self._deadlines = deadlines
        self._now = asyncio.get_running_loop().time
        self._pause = inf if timeouts.between_bytes is None else timeouts.between_bytes
        self._until = first
        self._end = end
        self.status = head.status
        self.headers = head.headers

    async def chunk(self) -> bytes:
        line = self._line
        if line is None:
            return b""
        try:
            while not line.pieces and not line.done and line.lost is None:
                await self._deadlines.wait(line.more(), self._until)
        except TimeoutError:
            self.close()
            raise self._too_slow() from None
        except BaseException:
            self.close()
            raise
        if line.pieces:
            self._until = min(self._end, self._now() + self._pause)
            return line.take()
        if line.lost is not None:
            self.close()
            raise failed("truncated", f"the connection broke inside the answer: {_reason(line.lost)}")
        self._line = None
        self._pool.give_back(self._place, line, self._now())
        return b""

    async def pour(self, sink: Sink, drained: Callable[[], Awaitable[None]]) -> None:
        """The rest of the body, piece by piece in the moment it comes: no task is woken for any of them."""
        while data := await self.chunk():
            if sink(data) or await self._flow(sink):
                await drained()
                self._until = min(self._end, self._now() + self._pause)

    async def _flow(self, sink: Sink) -> bool:
        """Whether the sink has enough. If not, `chunk` knows why nothing comes any more."""
        line = self._line
        if line is None or line.pieces or line.done or line.lost is not None:
            return False
        try:
            await self._deadlines.wait(line.flow(sink), self._until)
        except TimeoutError:
            # Set when the first piece came: only now it matters when the last one did.
            self._until = min(self._end, line.heard + self._pause)
        except BaseException:
            self.close()
            raise
        if line.broken is not None:
            self.close()
            raise line.broken
        return line.crowded

    async def drain(self) -> None:
        while await self.chunk():
            pass

    def close(self) -> None:
        line, self._line = self._line, None
        if line is not None:
            line.close()

    def _too_slow(self) -> ProviderError:
        over = self._now() >= self._end
        words = (
            "the time for the whole call is over" if over else "nothing came for too long in the middle of the answer"
        )
        return failed("timeout", words)


async def pour(response: HttpResponse, sink: Sink, drained: Callable[[], Awaitable[None]]) -> None:
    """All that is still to come of an answer goes to the sink; when that has enough, `drained` is waited for."""
    if isinstance(response, WireResponse):
        await response.pour(sink, drained)
        return
    while data := await response.chunk():
        if sink(data):
            await drained()


def _written(request: HttpRequest) -> tuple[tuple[str, int, bool], bytes]:
    parts = urlsplit(request.url)
    secure = parts.scheme == "https"
    host = parts.hostname or ""
    port = parts.port or (443 if secure else 80)
    path = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
    lines = [f"{request.method} {path} HTTP/1.1", f"host: {parts.netloc.rpartition('@')[2]}"]
    lines += [f"{name}: {value}" for name, value in request.headers.items()]
    lines.append(f"content-length: {len(request.body)}\r\n\r\n")
    head = "\r\n".join(lines)
    if head.count("\n") != len(lines) + 1 or head.count("\r") != len(lines) + 1:
        raise failed("invalid_request", "a header or an address holds a line break")
    return (host, port, secure), head.encode("latin-1") + request.body


def _reason(error: Exception | None) -> str:
    word = error.strerror if isinstance(error, OSError) else None
    return f"{type(error).__name__}{f' ({word})' if word else ''}"
