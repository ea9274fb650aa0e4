"""The gateway's HTTP client: pooled connections to upstreams, answers parsed by llhttp (`httptools`).

It implements the drivers' `Transport` with what a gateway needs: TLS, custom CAs, time limits at every stage,
compressed bodies. Behind a proxy the drivers' own transport (aiohttp) is used instead.
"""

from __future__ import annotations

import asyncio
import select
import ssl
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache
from math import inf
from typing import NamedTuple, TypeAlias, cast
from urllib.parse import urlsplit

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from dragoman.drivers.transport import (
    HttpRequest,
    HttpResponse,
    Timeouts,
    Tls,
    connection_error,
    describe_connection_error,
    no_answer_error,
    transport_error,
)
from dragoman.errors import ProviderError
from dragoman.gateway.content_coding import CodingError, Decoder, TooLarge, UnknownCoding, decoder_for
from dragoman.gateway.host_lookup import connect_to_host
from dragoman.gateway.http_request import MAX_HEAD, MAX_HEADERS, header_name, join_header, known_names
from dragoman.gateway.read_buffer import BufferedReader, shared_buffer
from dragoman.gateway.write_batching import WriteBatcher

IDLE_SECONDS = 25.0
"""Shorter than servers keep idle connections."""
MOST_IDLE = 256
MAX_BUFFERED = 1 << 20
"""Bytes that may wait for a slow reader before reading from the server pauses."""
UNPACKED_AT_ONCE = 64 << 20
"""Maximum decompressed bytes of one read."""
UNPACKED_FREELY = 64 << 20
MOST_UNPACKED = 100
"""Decompressed bytes for each compressed one, beyond the first `UNPACKED_FREELY`. JSON and events have at most 20."""
LARGEST_PIECE = 256 << 10
"""Decompressed bytes that are passed on at once. Other requests are served in between."""
_TICK = 0.05
_JUST_USED = 0.005
"""A connection that was idle for less than this many seconds is not checked for being closed by the server."""
_INFORMATIONAL, _FINAL = 100, 200
_BODILESS = frozenset({204, 304})
_OPENING_LINES = 2
"""Lines that `_parse_target` returns."""

Sink: TypeAlias = Callable[[bytes], bool]
"""Takes a chunk of a body; returns True if the reader is slow and must be waited for."""


class BadAnswer(Exception):
    """An answer that is not HTTP, or exceeds a limit."""


class Address(NamedTuple):
    host: str
    port: int
    secure: bool
    unix: str = ""
    """The path of a Unix socket; the other fields are then only for the `host` header."""

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http{'s' if self.secure else ''}://{host}:{self.port}"


class _Head(NamedTuple):
    """The head of a request up to the length of its body: requests to one upstream mostly differ in nothing else."""

    method: str
    url: str
    headers: Mapping[str, str]
    address: Address
    head: bytes


_NO_HEAD = _Head("", "", {}, Address("", 0, secure=False), b"")


class UpstreamConnection(BufferedReader):
    """One connection to an upstream, for one request at a time."""

    def __init__(self, loop: asyncio.AbstractEventLoop, buffer: memoryview | None = None) -> None:
        super().__init__(buffer)
        self._loop = loop
        self.now = loop.time
        self._transport: asyncio.Transport | None = None
        self._readable: select.poll | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._body: list[bytes] = []
        self.on_body = self._body.append  # the parser reads this attribute once, when it is created
        self._parser = HttpResponseParser(self)
        self._pairs: list[tuple[bytes, bytes]] = []
        self._head_size = 0
        """Bytes received since the last byte of a body or the end of the final head."""
        self._in_head = False
        self._decoder: Decoder | None = None
        self._unpacks = False
        self._may_unpack = UNPACKED_FREELY
        """Decompressed bytes that the answer may still have."""
        self._until_closed = False
        self._paused = False
        self._sink: Sink | None = None
        self.crowded = False
        """The reader of the sink is slow and must be waited for."""
        self.broken: Exception | None = None
        """The error that the sink raised."""
        self.last_read = 0.0
        self.pieces: deque[bytes] = deque()
        self.buffered = 0
        self.status = 0
        """0 until the head of the answer has arrived."""
        self.headers: Mapping[str, str] = {}
        self.done = True
        self.reusable = True
        self.lost: Exception | None = None
        self.idle_since = 0.0
        self.due = inf
        """When the wait for the next bytes ends."""
        self.is_late = False

    # ── from the transport ──

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport = cast("asyncio.Transport", transport)  # uvloop's does not inherit from it
        self._transport = transport
        line = transport.get_extra_info("socket")
        if line is not None and hasattr(select, "poll"):
            self._readable = select.poll()
            self._readable.register(line.fileno(), select.POLLIN)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self.reusable = False
        if not self.done and self.lost is None:
            if self.status and self._until_closed and exc is None:
                self._finish()
            else:
                self.lost = exc or ConnectionResetError("closed by the server")
        self._wake()

    def received(self, data: memoryview) -> None:
        if self.done:  # no request is pending
            self.close()
            return
        self._head_size += len(data)
        try:
            self._parser.feed_data(data)
            if self._body:
                self._take_body()
            if self._head_size > 2 * MAX_HEAD:  # also informational heads, trailers, chunk extensions without end
                raise BadAnswer("the head of the answer is too long")  # noqa: TRY301
        except HttpParserUpgrade:
            self._fail(BadAnswer("the answer switches protocols"))
        except (HttpParserError, BadAnswer) as error:
            self._fail(error.__context__ if isinstance(error.__context__, BadAnswer) else error)
        # Data for a sink wakes no task, except at the end.
        if self.done or self.lost is not None or (self.status and self._sink is None):  # type: ignore[redundant-expr] # the parser calls
            self._wake()

    def _fail(self, error: Exception) -> None:
        if not self.done:
            self.lost = self.lost or error
        self.close()

    # ── from the parser ──

    def on_message_begin(self) -> None:
        self._pairs, self._in_head = [], True
        if self.done:
            raise BadAnswer("a second answer")

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:  # not a trailer
            self._pairs.append((name, value))

    def on_headers_complete(self) -> None:
        self._in_head = False
        status = self._parser.get_status_code()
        if status < _FINAL:
            if status < _INFORMATIONAL:
                raise BadAnswer(f"the status of the answer is {status}")
            return
        self._head_size = 0
        if len(self._pairs) > MAX_HEADERS:
            raise BadAnswer("the answer has too many headers")
        headers: dict[str, str] = {}
        for name, value in self._pairs:
            key, text = known_names.get(name) or header_name(name), value.decode("latin-1").strip(" \t")
            headers[key] = f"{headers[key]}, {text}" if key in headers else text
        self.status, self.headers = status, headers
        if "content-encoding" in headers:
            self._decoder = _decoder_of(headers["content-encoding"])
        self._until_closed = not ("content-length" in headers or "transfer-encoding" in headers or status in _BODILESS)
        if self._until_closed or not self._parser.should_keep_alive():
            self.reusable = False

    def on_message_complete(self) -> None:
        if self.status:
            if self._body:
                self._take_body()
            self._finish()

    def _finish(self) -> None:
        decoder, self._decoder = self._decoder, None
        if decoder is not None and self._unpacks:
            try:
                decoder.end()
            except CodingError as error:
                self.lost = BadAnswer(f"the body cannot be decompressed: {error}")
                self.reusable = False
                return
        self.done = True

    def _take_body(self) -> None:
        body = self._body
        if not body:
            return
        data = body[0] if len(body) == 1 else b"".join(body)
        body.clear()
        self._head_size = 0
        if self._decoder is not None:
            data = self._unpack(self._decoder, data)
            if not data:
                return
        if len(data) > LARGEST_PIECE and self._unpacks:
            self.last_read = self._loop.time()
            self._sink = None  # `chunk` returns it piece by piece
        if self._sink is not None:
            self.last_read = self._loop.time()
            try:
                self.crowded = self._sink(data)
            except Exception as error:  # noqa: BLE001 - raised again in the task that waits for the end
                self.broken = error
            if self.crowded or self.broken is not None:
                self._sink = None
            return
        if self._unpacks:
            self.pieces.extend(data[at : at + LARGEST_PIECE] for at in range(0, len(data), LARGEST_PIECE))
        else:
            self.pieces.append(data)
        self.buffered += len(data)
        if self.buffered > MAX_BUFFERED and self._transport is not None and not self._paused:
            self._paused = True
            self._transport.pause_reading()

    def _unpack(self, decoder: Decoder, data: bytes) -> bytes:
        self._unpacks = True
        self._may_unpack += MOST_UNPACKED * len(data)
        try:
            plain = decoder.feed(data, min(UNPACKED_AT_ONCE, self._may_unpack))
            self._may_unpack -= len(plain)
            return plain  # noqa: TRY300 - the exceptions are the decoder's
        except TooLarge:
            raise BadAnswer("the decompressed body is too large") from None
        except CodingError as error:
            raise BadAnswer(f"the body cannot be decompressed: {error}") from None

    # ── for the pool and the response ──

    def take(self) -> bytes:
        """Return all that has arrived."""
        if len(self.pieces) == 1:
            data = self.pieces.popleft()
        else:
            data = b"".join(self.pieces)
            self.pieces.clear()
        self._resume_reading()
        return data

    def take_some(self) -> bytes:
        """Return what has arrived; if it was decompressed, only its first piece."""
        if not self._unpacks:
            return self.take()
        data = self.pieces.popleft()
        if not self.pieces:
            self._resume_reading()
        return data

    def _resume_reading(self) -> None:
        self.buffered = 0
        if self._paused and self._transport is not None:
            self._paused = False
            self._transport.resume_reading()

    def ask(self, data: bytes, outbox: WriteBatcher) -> None:
        self.status, self.done, self.lost = 0, False, None
        self._decoder, self._unpacks, self._head_size = None, False, 0
        self._may_unpack = UNPACKED_FREELY
        if self._transport is None or self._transport.is_closing():
            raise connection_error("the connection was closed before anything was sent")
        outbox.put(self._transport, data)

    async def more(self, until: float) -> None:
        """Wait until something has arrived. Raises `TimeoutError` once the loop's clock is past `until`."""
        self._waiter, self.due, self.is_late = self._loop.create_future(), until, False
        try:
            await self._waiter
        finally:
            self._waiter, self.due = None, inf
        if self.is_late:
            raise TimeoutError

    async def flow(self, sink: Sink, until: float) -> None:
        """Pass incoming data directly to the sink, until its reader must be waited for or the body ends."""
        self._sink, self.crowded, self.broken = sink, False, None
        try:
            await self.more(until)
        finally:
            self._sink = None

    def give_up(self) -> None:
        """End the wait for the next bytes with a timeout."""
        self.is_late = True
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    @property
    def is_open(self) -> bool:
        """Whether the connection is open; also detects a close that the event loop has not noticed yet."""
        if self._transport is None or self._transport.is_closing():
            return False
        return self._readable is None or not self._readable.poll(0)

    def close(self) -> None:
        self.reusable = False
        if self._transport is not None:
            self._transport.abort()


class UpstreamHttp:
    """A pool of connections, bound to the event loop it is first used in. `unix` replaces every address."""

    def __init__(self, tls: Tls | None = None, *, unix: str = "") -> None:
        self._tls = tls
        self._socket_path = unix
        self._context: ssl.SSLContext | None = None
        self._idle: dict[Address, deque[UpstreamConnection]] = {}
        self._busy: set[UpstreamConnection] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._buffer: memoryview | None = None
        self._outbox: WriteBatcher | None = None
        self._last = _NO_HEAD

    async def send(self, request: HttpRequest, *, timeouts: Timeouts) -> UpstreamResponse:
        loop = self._loop
        if loop is None:
            loop = self._loop = asyncio.get_running_loop()
            self._buffer, self._outbox = shared_buffer(loop), WriteBatcher(loop)
        started = loop.time()
        end = inf if timeouts.total is None else started + timeouts.total
        first = min(end, inf if timeouts.first_byte is None else started + timeouts.first_byte)
        address, data = self._serialize(request)
        connection = self._idle_connection(address, started) or await self._connect(address, loop, timeouts, end)
        assert self._outbox is not None  # noqa: S101 - made with the loop
        connection.ask(data, self._outbox)
        self._busy.add(connection)
        if self._timer is None:
            self._timer = loop.call_later(_TICK, self._tick)
        try:
            while not connection.status and connection.lost is None:
                await connection.more(first)
        except TimeoutError:
            self.discard(connection)
            over = "the time limit of the whole call was exceeded"
            waited = f"no data for {loop.time() - started:.1f} s before the answer began"
            raise transport_error("timeout", over if loop.time() >= end else waited) from None
        except BaseException:
            self.discard(connection)
            raise
        if connection.status:
            return UpstreamResponse(self, address, connection, timeouts, first, end)
        self.discard(connection)
        # Never retried here: the server may have read the request before it closed the connection.
        raise no_answer_error(f"no answer: {_reason(connection.lost)}")

    def _serialize(self, request: HttpRequest) -> tuple[Address, bytes]:
        method, url, headers, body = request.method, request.url, request.headers, request.body
        last = self._last
        # A channel's usual headers are the same object for each request; comparing them costs more than the rest.
        if url != last.url or method != last.method or (headers is not last.headers and headers != last.headers):
            last = self._last = _make_head(method, url, headers, self._socket_path)
        return last.address, b"".join((last.head, str(len(body)).encode(), b"\r\n\r\n", body))

    def _tick(self) -> None:
        """Check all time limits with one timer: a timer per read would be set and cancelled for every chunk."""
        assert self._loop is not None  # noqa: S101 - set by send
        now = self._loop.time()
        for connection in [one for one in self._busy if now >= one.due]:
            connection.give_up()
        self._timer = self._loop.call_later(_TICK, self._tick) if self._busy else None

    def discard(self, connection: UpstreamConnection) -> None:
        self._busy.discard(connection)
        connection.close()

    def _idle_connection(self, address: Address, now: float) -> UpstreamConnection | None:
        connections = self._idle.get(address)
        while connections:
            connection = connections.pop()
            idle = now - connection.idle_since
            if connection.reusable and idle < IDLE_SECONDS and (idle < _JUST_USED or connection.is_open):
                return connection
            connection.close()
        return None

    async def _connect(
        self, address: Address, loop: asyncio.AbstractEventLoop, timeouts: Timeouts, end: float
    ) -> UpstreamConnection:
        if address.secure and self._context is None:
            self._context = (self._tls or Tls()).context()
        context = self._context if address.secure else None
        started = loop.time()
        limit = inf if timeouts.connect is None else started + timeouts.connect

        def protocol() -> UpstreamConnection:
            return UpstreamConnection(loop, self._buffer)

        over = min(limit, end)
        try:
            async with asyncio.timeout_at(None if over == inf else over):
                if address.unix:
                    _, connection = await loop.create_unix_connection(protocol, address.unix)
                else:
                    connection = await connect_to_host(loop, protocol, address.host, address.port, context)
        except TimeoutError:
            waited = loop.time() - started
            raise connection_error(f"no connection to {address.url} within {waited:.1f} s") from None
        except OSError as error:
            raise connection_error(describe_connection_error(error, address.url, _reason(error))) from None
        return connection

    def give_back(self, address: Address, connection: UpstreamConnection, now: float) -> None:
        self._busy.discard(connection)
        connections = self._idle.get(address)
        if connections is None:
            connections = self._idle[address] = deque()
        if connection.reusable and len(connections) < MOST_IDLE:
            connection.idle_since = now
            connections.append(connection)
        else:
            connection.close()

    async def close(self) -> None:
        for connections in self._idle.values():
            for connection in connections:
                connection.close()
        self._idle.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        await asyncio.sleep(0)


class UpstreamResponse:
    __slots__ = (
        "_address",
        "_connection",
        "_end",
        "_now",
        "_pause",
        "_pool",
        "_rests",
        "_until",
        "headers",
        "status",
    )

    def __init__(
        self,
        pool: UpstreamHttp,
        address: Address,
        connection: UpstreamConnection,
        timeouts: Timeouts,
        first: float,
        end: float,
    ) -> None:
        self._pool = pool
        self._address = address
        self._connection: UpstreamConnection | None = connection
        self._now = connection.now
        self._pause = inf if timeouts.between_bytes is None else timeouts.between_bytes
        self._until = first
        self._rests = False
        self._end = end
        self.status = connection.status
        self.headers = connection.headers

    def whole(self) -> bytes:
        """Return the body if all of it came with the head; else nothing."""
        connection = self._connection
        if connection is None or not connection.done or connection.lost is not None:
            return b""
        data = connection.take()
        self._connection = None
        self._pool.give_back(self._address, connection, self._now())
        return data

    async def chunk(self) -> bytes:
        connection = self._connection
        if connection is None:
            return b""
        try:
            if self._rests:
                await asyncio.sleep(0)  # one read may be many megabytes when decompressed: let others run
            while not connection.pieces and not connection.done and connection.lost is None:
                await connection.more(self._until)
        except TimeoutError:
            self.close()
            raise self._too_slow() from None
        except BaseException:
            self.close()
            raise
        if connection.pieces:
            self._until = min(self._end, self._now() + self._pause)
            data = connection.take_some()
            self._rests = bool(connection.pieces)
            return data
        if connection.lost is not None:
            self.close()
            raise transport_error("truncated", f"the connection broke inside the answer: {_reason(connection.lost)}")
        self._connection = None
        self._pool.give_back(self._address, connection, self._now())
        return b""

    async def stream_to(self, sink: Sink, drained: Callable[[], Awaitable[None]]) -> None:
        """Pass the rest of the body to the sink as it comes, without waking a task for each chunk."""
        while data := await self.chunk():
            if sink(data) or await self._flow(sink):
                await drained()
                self._until = min(self._end, self._now() + self._pause)

    async def _flow(self, sink: Sink) -> bool:
        """Stream to the sink; return whether its reader must be waited for. If not, `chunk` finds out why it ended."""
        connection = self._connection
        if connection is None or connection.pieces or connection.done or connection.lost is not None:
            return False
        try:
            await connection.flow(sink, self._until)
        except TimeoutError:
            # The limit was set at the first chunk; compute it from the last one only now that it matters.
            self._until = min(self._end, connection.last_read + self._pause)
        except BaseException:
            self.close()
            raise
        if connection.broken is not None:
            broken, connection.broken = connection.broken, None
            self.close()
            try:
                raise broken
            finally:
                del broken  # it refers to this frame, and would keep what the stream holds until the next collection
        return connection.crowded

    async def drain(self) -> None:
        while await self.chunk():
            pass

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            self._pool.discard(connection)

    def _too_slow(self) -> ProviderError:
        over = self._now() >= self._end
        words = (
            "the time limit of the whole call was exceeded"
            if over
            else "no data for too long in the middle of the answer"
        )
        return transport_error("timeout", words)


async def stream_to(response: HttpResponse, sink: Sink, drained: Callable[[], Awaitable[None]]) -> None:
    """Pass the rest of an answer to the sink; when its reader is slow, wait for `drained`."""
    if isinstance(response, UpstreamResponse):
        await response.stream_to(sink, drained)
        return
    while data := await response.chunk():
        if sink(data):
            await drained()


def _make_head(method: str, url: str, headers: Mapping[str, str], unix: str) -> _Head:
    address, opening = _parse_target(method, url, unix)
    lines = [*map(join_header, headers.items()), "content-length: "]
    breaks = "".join([opening, *lines])
    if breaks.count("\n") != _OPENING_LINES or breaks.count("\r") != _OPENING_LINES:
        raise transport_error("invalid_request", "a header or an address holds a line break")
    text = opening + "\r\n".join(lines)
    return _Head(method, url, headers, address, text.encode("latin-1"))


@lru_cache(maxsize=256)
def _parse_target(method: str, url: str, unix: str) -> tuple[Address, str]:
    """Return the address of a request and its first two lines, the same for nearly all requests to an upstream."""
    parts = urlsplit(url)
    secure = parts.scheme == "https"
    port = parts.port or (443 if secure else 80)
    path = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
    opening = f"{method} {path} HTTP/1.1\r\nhost: {parts.netloc.rpartition('@')[2]}\r\n"
    return Address(parts.hostname or "", port, secure, unix), opening


def _decoder_of(coding: str) -> Decoder | None:
    try:
        return decoder_for(coding) if coding else None
    except UnknownCoding as error:
        raise BadAnswer(f"content-encoding {error}") from None


def _reason(error: Exception | None) -> str:
    if isinstance(error, BadAnswer | HttpParserError):
        return str(error)
    word = error.strerror if isinstance(error, OSError) else None
    return f"{type(error).__name__}{f' ({word})' if word else ''}"
