"""HTTP/1.1 connections of clients: parsed by llhttp (`httptools`), one request at a time, each with its time limits."""

from __future__ import annotations

import asyncio
import socket
import struct
import sys
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING, cast

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser

from dragoman.gateway.exchange import BodyReader, Exchange, Gone, Tunnel, over_budget, too_large
from dragoman.gateway.http_request import (
    MAX_HEAD,
    BadRequest,
    Head,
    RepeatedHeaders,
    is_websocket,
    join_header,
    split_target,
)
from dragoman.gateway.read_buffer import BufferedReader

if TYPE_CHECKING:
    from dragoman.gateway.http_server import Server

NEVER = float("inf")
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_FIRST_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode("ascii") for status in HTTPStatus}
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_LAST_CHUNK = b"0\r\n\r\n"
_NO_BODY = frozenset({204, 304})
_TEXT = {"content-type": "text/plain; charset=utf-8"}
_LINGER = 2.0
"""Seconds that a client that is still sending has to read the answer before the connection is cut."""
_NO_LINGER = struct.pack("hh" if sys.platform == "win32" else "ii", 1, 0)
"""The option of a socket with which closing it sends a reset."""
_MAX_PIPELINED = 64
_FRAMING = ("content-length", "transfer-encoding")


_TUNNEL_BUFFER = 1 << 20
"""Bytes that a client may send ahead of the handler's reads."""


class Http1Tunnel(Tunnel):
    def __init__(self, connection: Http1Connection, early: bytes) -> None:
        super().__init__(connection.server.budget, connection.server.limits)
        self._connection = connection
        self._pieces = [early] if early else []
        self._size = len(early)
        self._ended = False
        self._waiter: asyncio.Future[None] | None = None

    async def read(self) -> bytes:
        if not self._pieces and not self._ended:
            self._waiter = self._connection.server.loop.create_future()
            await self._waiter
        data = b"".join(self._pieces)
        self._pieces, self._size = [], 0
        self._connection.read_tunnel(wants_more=True)
        return data

    def feed(self, data: bytes) -> None:
        self._pieces.append(data)
        self._size += len(data)
        if self._size > _TUNNEL_BUFFER:
            self._connection.read_tunnel(wants_more=False)
        self._wake()

    def end(self) -> None:
        self._ended = True
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    @property
    def is_gone(self) -> bool:
        return self._connection.is_gone

    def write(self, data: bytes) -> bool:
        self._connection.put(data)
        return self._connection.paused

    async def drain(self) -> None:
        await self._connection.writable()


class Http1Exchange(Exchange):
    complete = False
    """Whether the whole request has arrived."""
    _reader: BodyReader | None = None
    _waiter: asyncio.Future[None] | None = None
    _early = b""
    """The part of the body that came with the head: at most one read."""
    _failure: BadRequest | None = None
    _taken = 0
    """Bytes of the budget that a body without a reader uses."""

    def __init__(self, connection: Http1Connection, head: Head, *, keep: bool, chunked: bool, quiet: bool) -> None:
        self.head = head
        self._connection = connection
        self._chunked = chunked
        self.keep = keep
        self.quiet = quiet
        """A HEAD request: the answer has no body."""

    def close_after(self) -> None:
        self.keep = False

    # ── the body ──

    def receive_arrived(self) -> bool:
        return self.complete and self._failure is None and self._read_arrived(self._connection.server.limits.body)

    def _read_arrived(self, limit: int) -> bool:
        """Read a body that has arrived completely and is not compressed; return whether it is one."""
        if self._reader is not None or "content-encoding" in self.head.headers:
            return False
        early, self._early = self._early, b""
        if early:
            if len(early) > limit:
                raise too_large(limit)
            if not self._connection.server.budget.take(len(early)):
                raise over_budget()
            self.body, self._taken = early, len(early)
        return True

    async def receive(self, limit: int | None = None) -> bytes:
        if self._reader is not None:
            return self.body
        server, headers = self._connection.server, self.head.headers
        limit = server.limits.body if limit is None else limit
        if self.complete and self._failure is None and self._read_arrived(limit):
            return self.body
        self._reader = BodyReader(headers.get("content-encoding", ""), limit, server.budget)
        early, self._early = self._early, b""
        if self.complete and self._failure is None:
            self.body = self._reader.whole(early)
            return self.body
        if int(headers.get("content-length", "0")) > limit:
            raise too_large(limit)
        if early:
            self._reader.feed(early)
        if self._failure is None and not self.complete:
            if not early and headers.get("expect", "").lower() == "100-continue":
                self._connection.put(_CONTINUE)
            self._waiter = server.loop.create_future()
            self._connection.read_body()
            try:
                await self._waiter
            finally:
                self._waiter = None
                self._connection.due = NEVER  # the limit was for the body: the answer may take longer
        if self._failure is not None:
            raise self._failure
        self.body = self._reader.end()
        return self.body

    @property
    def is_receiving(self) -> bool:
        return self._waiter is not None

    @property
    def received(self) -> int:
        return 0 if self._reader is None else self._reader.received

    def feed(self, data: bytes) -> None:
        if self._failure is not None:
            return
        if self._reader is None or self._waiter is None:
            self._early += data
            return
        try:
            self._reader.feed(data)
        except BadRequest as bad:
            self.fail(bad)

    def end(self) -> None:
        self.complete = True
        if self._waiter is not None:
            self._wake()

    def fail(self, bad: BadRequest) -> None:
        self._failure = self._failure or bad
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def release(self) -> None:
        self.body = self._early = b""
        if self._taken:
            self._connection.server.budget.used -= self._taken
            self._taken = 0
        if self._reader is not None:
            self._reader.release()

    # ── the answer ──

    @property
    def ends_visibly(self) -> bool:
        """Whether the client can tell an incomplete answer from a whole one: it lacks the last chunk."""
        return self.started and self._chunked and not self.quiet

    def send(self, status: int, headers: Mapping[str, str], body: bytes = b"") -> None:
        self.started = self.whole = True
        if self.on_sent is not None:
            self.on_sent(status, body)
        length = b"" if status in _NO_BODY else b"content-length: %d\r\n" % len(body)
        self._connection.put(self._opening(status, headers, length) + (b"" if self.quiet else body))

    def start(self, status: int, headers: Mapping[str, str], first: bytes = b"") -> None:
        self.started = True
        if self._chunked:
            self._connection.put(self._opening(status, headers, b"transfer-encoding: chunked\r\n") + self._chunk(first))
        else:  # HTTP/1.0: the answer ends with its connection
            self.keep = False
            self._connection.put(self._opening(status, headers, b"") + self._chunk(first))

    def _chunk(self, data: bytes) -> bytes:
        if self.quiet or not data:
            return b""
        return b"%x\r\n%b\r\n" % (len(data), data) if self._chunked else data

    def write(self, data: bytes) -> bool:
        connection = self._connection
        if data and not self.quiet:
            connection.put(b"%x\r\n%b\r\n" % (len(data), data) if self._chunked else data)
        return connection.paused

    async def drain(self) -> None:
        await self._connection.writable()

    def finish(self, last: bytes = b"") -> None:
        self.whole = True
        self._connection.put(self._chunk(last) + (_LAST_CHUNK if self._chunked and not self.quiet else b""))

    def open_tunnel(self) -> Tunnel | None:
        tunnel = self._connection.open_tunnel()
        if tunnel is not None:
            self.started = self.whole = True
            self.keep = False
        return tunnel

    def _opening(self, status: int, headers: Mapping[str, str], framing: bytes) -> bytes:
        server = self._connection.server
        if self.also:
            headers = {**headers, **self.also}
        if not self.keep or not self.complete or server.closing:
            self.keep = False
            headers = {**headers, "connection": "close"}
        lines = list(map(join_header, headers.items()))
        joined = "".join(lines)
        if "\n" in joined or "\r" in joined:  # a value with a line break
            lines = [line.replace("\r", " ").replace("\n", " ") for line in lines]
        text = "\r\n".join(lines)
        first = _FIRST_LINES.get(status) or b"HTTP/1.1 %d -\r\n" % status
        ending = b"\r\n\r\n" if headers else b"\r\n"
        return b"".join((first, server.date, framing, text.encode("latin-1", "replace"), ending))


def _is_newer(version: str) -> bool:
    """Return whether this is HTTP/1.1 and not 1.0. Raises `BadRequest` for others."""
    if version not in {"1.0", "1.1"}:
        raise BadRequest(f"HTTP/{version} is not supported", 505)
    return version == "1.1"


class Http1Connection(BufferedReader):
    """One client connection. If it opens with HTTP/2, it is handed to `Server.switch_to_http2`."""

    def __init__(self, server: Server) -> None:
        super().__init__(server.buffer)
        self.server = server
        self.paused = False
        self.due = NEVER
        """When the server is to call `overdue`."""
        self.read_by = NEVER
        self.held_head = 0
        self._unread_before = 0
        """Bytes that the client had not read when `read_by` was set."""
        self._transport: asyncio.Transport | None = None
        self._secure = False
        self._opening: bytes | None = b""
        """The first bytes, as long as they may be the preface of HTTP/2; None once they are not."""
        self._reading = True
        self._discarding = False
        self._resumed: asyncio.Future[None] | None = None
        # State of the parser.
        self._pieces: list[bytes] = []
        self.on_body = self._pieces.append  # the parser reads this attribute once, when it is created
        self._parser = HttpRequestParser(self)
        self._url: list[bytes] = []
        self._pairs: list[tuple[bytes, bytes]] = []
        self._headers = RepeatedHeaders()
        self._in_head = False
        self._bodiless = 0
        """Bytes received since the last byte of a body or the end of a head."""
        self._began = 0.0
        """When the last of these happened: the connection was made, a head began, an answer was complete."""
        self._incoming: Http1Exchange | None = None
        """The request whose body is still to come."""
        self._bad: BadRequest | None = None
        self._no_more = False
        self._upgrading = False
        self._replaying = False
        self._early: bytes | None = None
        """What came after a request to leave HTTP; None if there was no such request."""
        self._tunnel: Http1Tunnel | None = None
        # State of the requests being served.
        self._waiting: deque[Http1Exchange] = deque()
        self._current: Http1Exchange | None = None
        self._task: asyncio.Task[None] | None = None
        self._window = 0
        """Bytes of the body received when the current window of `body_rate` began."""

    # ── from the transport ──

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport = cast("asyncio.Transport", transport)  # uvloop's does not inherit from it
        self._transport = transport
        line = transport.get_extra_info("socket")
        if line is not None and line.family != getattr(socket, "AF_UNIX", None):
            # asyncio does this only for sockets created with IPPROTO_TCP; ours may be inherited.
            # Without it the last chunks of a stream wait 40 ms for the client to acknowledge the previous ones.
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if not self.server.admits(self):
            transport.abort()
            return
        self._began = self.server.loop.time()
        self.due = self._began + self.server.limits.head_seconds
        secured = transport.get_extra_info("ssl_object")
        self._secure = secured is not None
        if secured is not None and secured.selected_alpn_protocol() == "h2":
            self.server.switch_to_http2(self, transport)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self.server.connections.discard(self)
        if self.held_head or self._in_head:  # the parser and this object refer to each other: free its part of a head
            self._parser, self._url, self._pairs = HttpRequestParser(self), [], []
            self.server.hold_head(self, 0)
        self._transport = None
        self._wake()
        if self._tunnel is not None:
            self._tunnel.end()
        if self._task is not None:
            self._task.cancel()

    def pause_writing(self) -> None:
        self.paused = True
        self._set_read_by()

    def _set_read_by(self) -> None:
        self.read_by = self.server.loop.time() + self.server.limits.write_seconds
        self._unread_before = self.unread

    def resume_writing(self) -> None:
        self.paused = False
        self.read_by = NEVER
        self._wake()
        if self._current is None and not self._discarding:
            self.due = self.server.loop.time() + self.server.limits.idle_seconds
            if self._waiting or self._bad is not None:
                self._advance()

    @property
    def unread(self) -> int:
        return self._transport.get_write_buffer_size() if self.paused and self._transport is not None else 0

    @property
    def idle_since(self) -> float:
        if self._current is not None or self._tunnel is not None:
            return NEVER
        return 0.0 if self._discarding else self._began

    def received(self, data: memoryview) -> None:
        if self._discarding:
            return
        if self._tunnel is not None:
            self._tunnel.feed(bytes(data))
            return
        if self._early is not None:
            self._early += bytes(data)
            self.read_tunnel(wants_more=len(self._early) < _TUNNEL_BUFFER)
            return
        if self._opening is None:
            self._feed(data)
            return
        first = self._opening + bytes(data[: len(PREFACE)])
        if first.startswith(PREFACE[:4]) and len(first) >= 4:  # noqa: PLR2004 - "PRI ", not a method of HTTP/1.1
            assert self._transport is not None  # noqa: S101 - it has just read
            self.server.switch_to_http2(self, self._transport, self._opening + bytes(data))
        elif PREFACE.startswith(first):
            self._opening = first
        else:
            opening, self._opening = self._opening, None
            self._feed(memoryview(opening + bytes(data)) if opening else data)

    # ── from the parser ──

    def on_message_begin(self) -> None:
        self._url, self._pairs, self._in_head = [], [], True
        if self._current is None:
            self._began = self.server.loop.time()
            self.due = self._began + self.server.limits.head_seconds

    def on_url(self, url: bytes) -> None:
        self._url.append(url)  # called once per piece that arrives

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:  # not a trailer
            self._pairs.append((name, value))

    def on_headers_complete(self) -> None:
        self._in_head, self._bodiless = False, 0
        if self._bad is not None or self._no_more or self._replaying:
            return
        self._upgrading = self._parser.should_upgrade()
        try:
            self._incoming = self._request()
        except BadRequest as bad:
            self._bad = bad
            return
        self._waiting.append(self._incoming)
        self._no_more = not self._incoming.keep

    def on_message_complete(self) -> None:
        if self._upgrading:  # the body is still to come, see _ignore_upgrade
            return
        if self._pieces:
            self._take_body()
        incoming, self._incoming = self._incoming, None
        if incoming is not None:
            incoming.end()

    def _request(self) -> Http1Exchange:
        parser, headers = self._parser, self._headers.collect(self._pairs)
        keep = parser.should_keep_alive()
        # Only HTTP/1.1 keeps a connection without being asked to. httptools formats the version at each call.
        is_asked = "connection" in headers or "proxy-connection" in headers
        newer = (keep and not is_asked) or _is_newer(parser.get_http_version())
        if newer and "host" not in headers:
            raise BadRequest("the Host header is missing")
        if "transfer-encoding" in headers and (not newer or headers["transfer-encoding"].lower() != "chunked"):
            raise BadRequest("transfer-encoding is not chunked", 501)
        method = parser.get_method().decode("ascii")
        if method == "CONNECT":
            raise BadRequest("CONNECT is not supported", 405)
        path, query = split_target(b"".join(self._url))
        quiet = method == "HEAD"
        head = Head("GET" if quiet else method, path, query, headers, self._secure, self._headers.size)
        return Http1Exchange(self, head, keep=keep, chunked=newer, quiet=quiet)

    # ── reading ──

    def _feed(self, data: memoryview) -> None:
        self._bodiless += len(data)
        try:
            try:
                self._parser.feed_data(data)
            except HttpParserUpgrade as upgrade:
                rest = data[upgrade.args[0] :]
                if self._incoming is not None and is_websocket(self._incoming.head):
                    self._stop_parsing(bytes(rest))
                else:
                    self._ignore_upgrade(rest)
        except HttpParserUpgrade:  # a pipelined request asks for another upgrade
            self._no_more = True
        except HttpParserError as error:
            # llhttp refuses bytes after a request that ends its connection; such bytes are ignored.
            if not self._no_more or self._incoming is not None:
                self._bad = self._bad or BadRequest(f"not HTTP/1.1: {error}")
        if self._pieces:
            self._take_body()
        if self._bodiless > 2 * MAX_HEAD and self._bad is None:
            # A head that does not end, or trailers or chunk extensions without a body.
            self._bad = BadRequest(f"a head of more than {MAX_HEAD} bytes", 431)
        held = self._bodiless if self._in_head else 0
        if held != self.held_head:
            self.server.hold_head(self, held)
        if len(self._waiting) > _MAX_PIPELINED:
            self._bad = BadRequest("too many requests before their answers", 429)
        if self._bad is not None and self._incoming is not None:
            self._incoming.fail(self._bad)
        self._advance()

    def _stop_parsing(self, rest: bytes) -> None:
        """Handle a request for a WebSocket. It is the last one of its connection: what follows is not HTTP."""
        incoming, self._incoming = self._incoming, None
        assert incoming is not None  # noqa: S101 - see _feed
        incoming.keep, self._no_more, self._upgrading, self._early = False, True, False, rest
        incoming.end()

    def open_tunnel(self) -> Http1Tunnel | None:
        if self._early is None or self._transport is None:
            return None
        self._tunnel = Http1Tunnel(self, self._early)
        self.due = NEVER
        self.read_tunnel(wants_more=True)
        return self._tunnel

    @property
    def is_gone(self) -> bool:
        return self._transport is None

    def read_tunnel(self, *, wants_more: bool) -> None:
        if self._transport is not None and wants_more is not self._reading:
            self._reading = wants_more
            if wants_more:
                self._transport.resume_reading()
            else:
                self._transport.pause_reading()

    def _ignore_upgrade(self, rest: memoryview) -> None:
        """Ignore an `Upgrade` (RFC 9110, 7.8; the JDK's client sends one with each request).

        llhttp stops after a head with this header, so the body is read by a new parser that has not seen it.
        """
        incoming = self._incoming
        headers = {} if incoming is None else incoming.head.headers
        framing = [f"{name}: {headers[name]}\r\n" for name in _FRAMING if name in headers]
        self._parser, self._upgrading, self._replaying = HttpRequestParser(self), False, True
        self._parser.feed_data(f"POST / HTTP/1.1\r\n{''.join(framing)}\r\n".encode("latin-1"))
        self._replaying = False
        self._parser.feed_data(rest)

    def _take_body(self) -> None:
        """Pass on the parsed parts of a body, joined: a client may send it in chunks of one byte."""
        pieces = self._pieces
        if pieces:
            self._bodiless = 0
            if self._incoming is not None:
                self._incoming.feed(pieces[0] if len(pieces) == 1 else b"".join(pieces))
            pieces.clear()

    def _advance(self) -> None:
        if self._current is None and not self.paused:  # while an answer is unread, no other is begun
            if self._waiting:
                self._current = self._waiting.popleft()
                self.due = NEVER
                self._task = self.server.loop.create_task(self._serve(self._current))
            elif self._bad is not None:
                self._refuse(self._bad)
                return
        self._regulate()

    def _regulate(self) -> None:
        """Read only while the bytes can be used: for a body that a handler waits for, or the next request."""
        current = self._current
        reads = current is None or current.is_receiving
        if current is not None and current.complete:  # a client that disconnects is noticed only by reading
            reads = not self._waiting
        reads = reads and self._bad is None
        if reads is not self._reading and self._transport is not None:
            self._reading = reads
            if reads:
                self._transport.resume_reading()
            else:
                self._transport.pause_reading()

    def read_body(self) -> None:
        """Start reading the body that the current request's handler waits for."""
        self._window = 0
        self.due = self.server.loop.time() + self.server.limits.body_window
        self._regulate()

    # ── serving ──

    async def _serve(self, exchange: Http1Exchange) -> None:
        try:
            await self.server.application(exchange)
        except asyncio.CancelledError:
            self.abort()
            raise
        except Gone:
            self.abort()
        except Exception as error:  # noqa: BLE001 - a bug in one handler must not affect other requests
            self.server.answer_failure(exchange, error)
        finally:
            self._task = None
            exchange.release()
        self._after_answer(exchange)

    def _after_answer(self, exchange: Http1Exchange) -> None:
        self._current = None
        if self._transport is None:
            return
        now = self._began = self.server.loop.time()
        if not exchange.whole and not (exchange.ends_visibly and exchange.complete):
            self._reset()
        elif not exchange.complete:
            self._linger()
        elif not (exchange.whole and exchange.keep) or self.server.closing:
            # What was written still arrives: without its head, a client would take the request for an unprocessed one.
            self.server.outbox.flush(self._transport)
            self._transport.close()
            self.due = now + self.server.limits.write_seconds  # the client may not read the rest
        else:
            self.due = now + self.server.limits.idle_seconds
            if self._waiting or self._bad is not None or not self._reading:
                self._advance()

    def _refuse(self, bad: BadRequest) -> None:
        """Refuse an invalid request, in plain text because the client's format is unknown."""
        exchange = Http1Exchange(self, Head("GET", "/", "", {}), keep=False, chunked=True, quiet=False)
        with suppress(Gone):
            exchange.send(bad.status, _TEXT, f"{bad}\n".encode())
        self._linger()

    def _linger(self) -> None:
        """Discard incoming data for a while: a client that is still sending would see a reset and not the answer."""
        self._discarding = True
        self.due = self.server.loop.time() + _LINGER
        if self._transport is not None:
            self.server.outbox.flush(self._transport)
            if self._transport.can_write_eof():
                with suppress(OSError):  # the client has reset the connection
                    self._transport.write_eof()
            if not self._reading:
                self._reading = True
                self._transport.resume_reading()

    # ── writing ──

    def put(self, data: bytes) -> None:
        if self._transport is None or self._transport.is_closing():
            raise Gone
        self.server.outbox.put(self._transport, data)

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
        """Handle a time limit: answer 408 if a request is in progress, otherwise drop the connection."""
        self.due = NEVER
        current, limits, now = self._current, self.server.limits, self.server.loop.time()
        if now >= self.read_by:
            if self._unread_before - self.unread >= limits.body_rate * limits.write_seconds:
                self._set_read_by()
            else:
                self.abort()
        elif self.paused and current is None and not self._discarding:
            pass  # an idle connection whose last answer is still being read
        elif current is not None and current.is_receiving:
            fast = current.received - self._window >= limits.body_rate * limits.body_window
            if fast and now - self._began < limits.request_seconds:
                self._window = current.received
                self.due = min(now + limits.body_window, self._began + limits.request_seconds)
            else:
                current.fail(BadRequest("the request took too long", 408))
        elif current is None and not self._discarding and self._in_head:
            self._refuse(BadRequest("the request took too long", 408))
        else:
            self.abort()

    @property
    def has_work(self) -> bool:
        """Whether an answer is in progress, or not sent yet."""
        if self._task is not None or self._tunnel is not None or self._discarding:
            return True
        return self._transport is not None and self._transport.get_write_buffer_size() > 0

    def close_if_idle(self) -> None:
        if self._tunnel is not None:
            self._tunnel.end()
        elif self._task is None and self._transport is not None:
            self.server.outbox.flush(self._transport)
            self._transport.close()

    def _reset(self) -> None:
        """Close with a reset, because a client without chunks takes a plain close for the end of the answer."""
        line = None if self._transport is None else self._transport.get_extra_info("socket")
        if line is not None:
            with suppress(OSError):  # the connection is gone already
                line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
        self.abort()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()
