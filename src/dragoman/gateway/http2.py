"""HTTP/2 connections of clients: h2 does frames, header compression and stream states; limits are enforced here.

Flow control bounds memory: a client may send 64 KiB more than handlers have read, over all streams of a connection,
and data that a handler has not read is not acknowledged.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    Event,
    RemoteSettingsChanged,
    RequestReceived,
    StreamEnded,
    StreamReset,
    WindowUpdated,
)
from h2.exceptions import FrameTooLargeError, H2Error, ProtocolError
from h2.frame_buffer import FrameBuffer
from h2.settings import SettingCodes
from hyperframe.frame import Frame, SettingsFrame

from dragoman.gateway.exchange import BodyReader, Exchange, Gone, too_large
from dragoman.gateway.http_request import MAX_HEAD, BadRequest, Head, collect_headers, split_target
from dragoman.gateway.read_buffer import BufferedReader

if TYPE_CHECKING:
    from dragoman.gateway.http_server import Server

_CHECK = 1.0
_FRAME_HEADER = 9
_CROWDED = 64 << 10
_MAX_RESETS = 200
"""Streams that a client may cancel within `_RESET_WINDOW` (CVE-2023-44487: they cost the server far more)."""
_RESET_WINDOW = 10.0
_MAX_CONTROL = 10_000
"""Frames that a client may send within `_RESET_WINDOW`, apart from requests and data for requests in progress."""
_TEXT = {"content-type": "text/plain; charset=utf-8"}
# RFC 9113, 8.2.2: headers that are specific to HTTP/1.1 connections.
_CONNECTION_HEADERS = frozenset({"connection", "keep-alive", "transfer-encoding", "upgrade"})
_SETTINGS = frozenset(SettingCodes)
_HEADER_TABLE = 4096
"""Bytes of the table that compresses the headers of answers; the default of RFC 9113."""
_NEVER = float("inf")


class Http2Exchange(Exchange):
    """One stream."""

    __slots__ = (
        "_connection",
        "_drained",
        "_early",
        "_failure",
        "_length",
        "_reader",
        "_sent_before",
        "_unacknowledged",
        "_waiter",
        "_window",
        "began",
        "complete",
        "due",
        "ending",
        "id",
        "outbox",
        "quiet",
        "sent",
        "task",
    )

    def __init__(self, connection: Http2Connection, id: int, head: Head, *, quiet: bool) -> None:
        super().__init__(head)
        self._connection = connection
        self._reader: BodyReader | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._drained: asyncio.Future[None] | None = None
        self._early: list[bytes] = []
        self._unacknowledged = 0
        self._failure: BadRequest | None = None
        self._window = 0
        self._length = int(head.headers.get("content-length", "0"))
        self.id = id
        self.quiet = quiet
        self.complete = False
        self.ending = False
        self.outbox = bytearray()
        self.sent = self._sent_before = 0
        self.task: asyncio.Task[None] | None = None
        self.began = connection.server.loop.time()
        self.due = _NEVER

    # ── the body ──

    async def receive(self, limit: int | None = None) -> bytes:
        if self._reader is not None:
            return self.body
        server = self._connection.server
        limit = server.limits.body if limit is None else limit
        reader = self._reader = BodyReader(self.head.headers.get("content-encoding", ""), limit, server.budget)
        if self._length > limit:
            raise too_large(limit)
        early, self._early = self._early, []
        for data in early:
            reader.feed(data)
        if not self.complete:
            self.due = server.loop.time() + server.limits.body_window
            self._waiter = server.loop.create_future()
            self.acknowledge()
            try:
                await self._waiter
            finally:
                self._waiter, self.due = None, _NEVER
        if self._failure is not None:
            raise self._failure
        self.acknowledge()
        self.body = reader.end()
        return self.body

    def feed(self, data: bytes, length: int) -> None:
        """Take a part of the body. `length` is its flow-controlled length, including padding."""
        self._unacknowledged += length
        if self._waiter is None or self._reader is None:
            self._early.append(data)  # within the window of the connection
            return
        if self._failure is None:
            try:
                self._reader.feed(data)
            except BadRequest as bad:
                self.fail(bad)
            else:
                self.acknowledge()

    def acknowledge(self) -> None:
        count, self._unacknowledged = self._unacknowledged, 0
        if count:
            self._connection.acknowledge(self.id, count)

    def end(self) -> None:
        self.complete = True
        self._wake()

    def fail(self, bad: BadRequest) -> None:
        self._failure = self._failure or bad
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def release(self) -> None:
        self.body, self._early = b"", []
        self.acknowledge()
        if self._reader is not None:
            self._reader.release()

    # ── the answer ──

    def send(self, status: int, headers: Mapping[str, str], body: bytes = b"") -> None:
        self.started = self.whole = self.ending = True
        if self.on_sent is not None:
            self.on_sent(status, body)
        sized = {"content-length": str(len(body)), **headers}
        if self.quiet:
            body = b""
        self._connection.respond(self, status, {**sized, **self.also}, body)

    def start(self, status: int, headers: Mapping[str, str], first: bytes = b"") -> None:
        self.started = True
        self._connection.respond(self, status, {**headers, **self.also}, b"" if self.quiet else first)

    def write(self, data: bytes) -> bool:
        if data and not self.quiet:
            self._connection.write(self, data)
        return len(self.outbox) > _CROWDED or self._connection.paused

    async def drain(self) -> None:
        while self.outbox or self._connection.paused:
            self._drained = self._drained or self._connection.server.loop.create_future()
            await self._drained

    def finish(self, last: bytes = b"") -> None:
        self.whole = self.ending = True
        self._connection.write(self, b"" if self.quiet else last)

    def written(self) -> None:
        """Wake `drain`: some of the waiting data was sent."""
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)
        self._drained = None

    def expect_reading(self) -> None:
        """Start the time in which the client has to read at the minimum rate."""
        server = self._connection.server
        self.due, self._sent_before = server.loop.time() + server.limits.write_seconds, self.sent

    def resume(self) -> None:
        """Note that the client reads again, so that only the rate at which its request arrives is limited."""
        server = self._connection.server
        self.due = _NEVER if self._waiter is None else server.loop.time() + server.limits.body_window
        self.written()

    def overdue(self, now: float) -> None:
        limits = self._connection.server.limits
        self.due = _NEVER
        if self._waiter is None or self._reader is None:  # the client does not read, or slowly
            if self.sent - self._sent_before >= limits.body_rate * limits.write_seconds:
                self.expect_reading()
            else:
                self._connection.cut(self)
            return
        fast = self._reader.received - self._window >= limits.body_rate * limits.body_window
        if fast and now - self.began < limits.request_seconds:
            self._window = self._reader.received
            self.due = min(now + limits.body_window, self.began + limits.request_seconds)
        else:
            self.fail(BadRequest("the request took too long", 408))


class _FrameBuffer(FrameBuffer):
    """Refuses or ignores what h2 would store, and counts frames, because h2 has no event for many of them.

    h2 would store up to 16 MiB of an oversized frame, 1 MiB of a head in pieces, every setting with an unknown number,
    and a table for our headers as large as the client allows.
    """

    frames = 0

    def __next__(self) -> Frame:
        try:
            frame = super().__next__()
        except StopIteration:
            if len(self._data) > self.max_frame_size + _FRAME_HEADER:
                raise FrameTooLargeError("a frame larger than agreed") from None
            raise
        self.frames += 1
        if isinstance(frame, SettingsFrame):  # RFC 9113, 6.5.2: unknown ones are ignored
            frame.settings = {code: value for code, value in frame.settings.items() if code in _SETTINGS}
            if SettingCodes.HEADER_TABLE_SIZE in frame.settings:  # a larger table would be searched for each header
                allowed = frame.settings[SettingCodes.HEADER_TABLE_SIZE]
                frame.settings[SettingCodes.HEADER_TABLE_SIZE] = min(allowed, _HEADER_TABLE)
        return frame

    def held_head(self, *, is_idle: bool) -> int:
        """Return the bytes of an incomplete head. If no request is in progress, an incomplete frame is part of one."""
        return sum(len(piece.data) for piece in self._headers_buffer) + (len(self._data) if is_idle else 0)

    def _update_header_buffer(self, f: Frame | None) -> Frame | None:
        whole = super()._update_header_buffer(f)
        if sum(len(piece.data) for piece in self._headers_buffer) > MAX_HEAD:
            raise ProtocolError("a head larger than agreed")
        return whole


class _Frames(H2Connection):
    """The protocol of one connection."""

    MAX_CLOSED_STREAMS = 1_000
    """Ended streams that are remembered, for frames that arrive late. h2's own limit of 65,536 would take 8 MB."""


class Http2Connection(BufferedReader):
    def __init__(self, server: Server) -> None:
        super().__init__(server.buffer)
        self.server = server
        self.paused = False
        self.due = server.loop.time() + _CHECK
        self.read_by = _NEVER
        """When to cut a closed connection whose client does not read the rest; streams have limits of their own."""
        self.held_head = 0
        self._idle_since = server.loop.time()
        self._transport: asyncio.Transport | None = None
        self._streams: dict[int, Http2Exchange] = {}
        self._h2 = _Frames(H2Configuration(client_side=False, header_encoding=None))
        self._incoming = self._h2.incoming_buffer = _FrameBuffer(server=True)
        self._h2.local_settings[SettingCodes.MAX_CONCURRENT_STREAMS] = server.limits.streams
        self._h2.local_settings[SettingCodes.MAX_HEADER_LIST_SIZE] = MAX_HEAD
        self._h2.local_settings[SettingCodes.ENABLE_CONNECT_PROTOCOL] = 0
        self._window_began = 0.0
        self._resets = self._control = 0
        self._useful = 0
        """Frames of the current read that began a request or held data for one."""
        self._secure = False

    # ── from the transport ──

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport = cast("asyncio.Transport", transport)  # uvloop's does not inherit from it
        self._transport = transport
        self._secure = transport.get_extra_info("ssl_object") is not None
        if not self.server.admits(self):
            transport.abort()
            return
        self._h2.initiate_connection()
        self._flush()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self.server.connections.discard(self)
        self.server.hold_head(self, 0)
        self._transport = None
        for exchange in list(self._streams.values()):
            self._end(exchange)

    def pause_writing(self) -> None:
        """Stop reading from a client that does not read, because answers to its pings would pile up."""
        self.paused = True
        if self._transport is not None:
            self._transport.pause_reading()
        for exchange in self._streams.values():
            exchange.expect_reading()

    def resume_writing(self) -> None:
        self.paused = False
        if self._transport is not None:
            self._transport.resume_reading()
        for exchange in self._streams.values():
            if not exchange.outbox:
                exchange.resume()

    @property
    def unread(self) -> int:
        buffered = self._transport.get_write_buffer_size() if self.paused and self._transport is not None else 0
        return buffered + sum(len(exchange.outbox) for exchange in self._streams.values())

    @property
    def idle_since(self) -> float:
        at_work = any(exchange.task is not None for exchange in self._streams.values())
        return _NEVER if at_work else self._idle_since

    def received(self, data: memoryview) -> None:
        self._incoming.frames = self._useful = 0
        try:
            for event in self._h2.receive_data(bytes(data)):
                handle = _HANDLERS.get(type(event))
                if handle is not None:
                    handle(self, event)
            self._count_control(self._incoming.frames - self._useful)
        except H2Error:
            self._close()  # h2 has queued a GOAWAY frame with the error
        else:
            self._flush()
            held = self._incoming.held_head(is_idle=not self._streams)
            if held != self.held_head:
                self.server.hold_head(self, held)

    # ── events ──

    def _on_request(self, event: RequestReceived) -> None:
        id = event.stream_id or 0
        self._useful += 1
        self._idle_since = self.server.loop.time()
        if self.server.closing:
            self._reset(id, ErrorCodes.REFUSED_STREAM)
            return
        try:
            head, quiet = self._head(event.headers or [])
        except BadRequest as bad:
            self._refuse(id, bad, complete=event.stream_ended is not None)
            return
        exchange = self._streams[id] = Http2Exchange(self, id, head, quiet=quiet)
        exchange.task = self.server.loop.create_task(self._serve(exchange))

    def _refuse(self, id: int, bad: BadRequest, *, complete: bool) -> None:
        """Refuse an invalid request, in plain text because the client's format is unknown."""
        exchange = self._streams[id] = Http2Exchange(self, id, Head("GET", "/", "", {}), quiet=False)
        exchange.complete = complete
        try:
            exchange.send(bad.status, _TEXT, f"{bad}\n".encode())
        except Gone:  # the client has reset the stream
            self._end(exchange)

    def _head(self, pairs: Any) -> tuple[Head, bool]:
        pseudo: dict[bytes, bytes] = {}
        plain: list[tuple[bytes, bytes]] = []
        for name, value in pairs:
            if name.startswith(b":"):
                pseudo[name] = value
            else:
                plain.append((name, value))
        headers = collect_headers(plain)
        if authority := pseudo.get(b":authority"):
            headers["host"] = authority.decode("latin-1")
        method = pseudo.get(b":method", b"").decode("latin-1")
        if method == "CONNECT" or b":protocol" in pseudo:
            raise BadRequest("CONNECT is not supported", 405)
        path, query = split_target(pseudo.get(b":path", b""))
        quiet = method == "HEAD"
        return Head("GET" if quiet else method, path, query, headers, self._secure), quiet

    def _on_data(self, event: DataReceived) -> None:
        exchange, length = self._streams.get(event.stream_id or 0), event.flow_controlled_length or 0
        if exchange is not None:
            self._useful += 1 if event.data else 0
            exchange.feed(event.data or b"", length)
        elif length:  # the stream is already answered
            self.acknowledge(event.stream_id or 0, length)

    def _on_end(self, event: StreamEnded) -> None:
        exchange = self._streams.get(event.stream_id or 0)
        if exchange is not None:
            exchange.end()

    def _on_reset(self, event: StreamReset) -> None:
        exchange = self._streams.get(event.stream_id or 0)
        if exchange is not None:
            self._end(exchange)
        self._start_window()
        self._resets += 1
        if self._resets > _MAX_RESETS:
            self._calm()

    def _on_window(self, event: WindowUpdated | RemoteSettingsChanged) -> None:
        id = event.stream_id if isinstance(event, WindowUpdated) else 0
        chosen = [self._streams[id]] if id and id in self._streams else [] if id else list(self._streams.values())
        for exchange in chosen:
            if exchange.outbox:
                self._pump(exchange)

    def _on_terminated(self, _: ConnectionTerminated) -> None:
        self._close()

    # ── abuse ──

    def _start_window(self) -> None:
        now = self.server.loop.time()
        if now - self._window_began > _RESET_WINDOW:
            self._window_began, self._resets, self._control = now, 0, 0

    def _count_control(self, frames: int) -> None:
        if not frames:
            return
        self._start_window()
        self._control += frames
        if self._control > _MAX_CONTROL:
            self._calm()

    def _calm(self) -> None:
        with suppress(H2Error):
            self._h2.close_connection(ErrorCodes.ENHANCE_YOUR_CALM)
        self._close()

    # ── serving ──

    async def _serve(self, exchange: Http2Exchange) -> None:
        try:
            await self.server.application(exchange)
        except Gone:
            pass
        except Exception as error:  # noqa: BLE001 - a bug in one handler must not affect other requests
            self.server.answer_failure(exchange, error)
        finally:
            exchange.task = None
            exchange.release()
            if not exchange.whole:
                self.cut(exchange)
            elif not exchange.outbox:
                self._forget(exchange)

    def respond(self, exchange: Http2Exchange, status: int, headers: Mapping[str, str], body: bytes) -> None:
        fields = [(":status", str(status)), ("date", self.server.date[6:-2].decode())]
        for name, value in headers.items():
            if name not in _CONNECTION_HEADERS:
                fields.append((name.lower(), value.replace("\r", " ").replace("\n", " ").strip()))
        bare = exchange.ending and not body
        self._try(exchange, lambda: self._h2.send_headers(exchange.id, fields, end_stream=bare))
        if bare:
            self._flush()
        else:
            self.write(exchange, body)

    def write(self, exchange: Http2Exchange, data: bytes) -> None:
        if self._transport is None or exchange.id not in self._streams:
            raise Gone
        exchange.outbox += data
        self._pump(exchange)
        if exchange.outbox:
            self.server.hold_answer(min(len(data), len(exchange.outbox)))
        self._flush()

    def _pump(self, exchange: Http2Exchange) -> None:
        """Send as much as the client's windows allow."""
        outbox, id = exchange.outbox, exchange.id
        sent = exchange.sent
        try:
            while outbox:
                size = min(self._h2.local_flow_control_window(id), self._h2.max_outbound_frame_size)
                if size <= 0:
                    break
                piece = bytes(outbox[:size])
                del outbox[:size]
                exchange.sent += len(piece)
                self._h2.send_data(id, piece, end_stream=exchange.ending and not outbox)
            if exchange.ending and not outbox and exchange.sent == sent:
                self._h2.end_stream(id)
        except H2Error:
            self._end(exchange)
            return
        if outbox:
            if exchange.due == _NEVER:
                exchange.expect_reading()
            return
        exchange.due = _NEVER
        exchange.written()
        if exchange.ending and exchange.task is None:
            self._forget(exchange)

    def _try(self, exchange: Http2Exchange, send: Callable[[], None]) -> None:
        if self._transport is None or exchange.id not in self._streams:
            raise Gone
        try:
            send()
        except H2Error:
            raise Gone from None

    def acknowledge(self, id: int, count: int) -> None:
        if self._transport is not None:
            with suppress(H2Error):
                self._h2.acknowledge_received_data(count, id)
            self._flush()

    def _forget(self, exchange: Http2Exchange) -> None:
        """Drop an answered stream; ask a client that is still uploading to stop (RFC 9113, 8.1)."""
        if self._streams.pop(exchange.id, None) is None:
            return
        self._idle_since = self.server.loop.time()
        if not exchange.complete:
            self._reset(exchange.id, ErrorCodes.NO_ERROR)
        if self.server.closing:
            self.close_if_idle()

    def cut(self, exchange: Http2Exchange) -> None:
        """Reset a stream whose answer is incomplete."""
        self._reset(exchange.id, ErrorCodes.INTERNAL_ERROR)
        self._end(exchange)

    def _end(self, exchange: Http2Exchange) -> None:
        self._streams.pop(exchange.id, None)
        exchange.outbox.clear()
        exchange.written()
        if exchange.task is not None:
            exchange.task.cancel()

    def _reset(self, id: int, code: ErrorCodes) -> None:
        with suppress(H2Error):
            self._h2.reset_stream(id, code)
        self._flush()

    def _flush(self) -> None:
        data = self._h2.data_to_send()
        if data and self._transport is not None:
            self._transport.write(data)

    # ── ending ──

    def overdue(self) -> None:
        now = self.server.loop.time()
        if now >= self.read_by:
            self.abort()
            return
        self.due = now + _CHECK
        for exchange in [one for one in self._streams.values() if now >= one.due]:
            exchange.overdue(now)
        if not self._streams and now - self._idle_since > self.server.limits.idle_seconds:
            self._close()

    @property
    def has_work(self) -> bool:
        """Whether an answer is in progress, or not sent yet."""
        return bool(self._streams) or (self._transport is not None and self._transport.get_write_buffer_size() > 0)

    def close_if_idle(self) -> None:
        if not self._streams:
            with suppress(H2Error):
                self._h2.close_connection()
            self._close()

    def _close(self) -> None:
        self._flush()
        for exchange in list(self._streams.values()):
            self._end(exchange)
        if self._transport is not None:
            self._transport.close()
            self.read_by = min(self.read_by, self.server.loop.time() + self.server.limits.write_seconds)

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()


_HANDLERS: Mapping[type[Event], Callable[[Http2Connection, Any], None]] = {
    RequestReceived: Http2Connection._on_request,  # noqa: SLF001 - this table belongs to the class
    DataReceived: Http2Connection._on_data,  # noqa: SLF001
    StreamEnded: Http2Connection._on_end,  # noqa: SLF001
    StreamReset: Http2Connection._on_reset,  # noqa: SLF001
    WindowUpdated: Http2Connection._on_window,  # noqa: SLF001
    RemoteSettingsChanged: Http2Connection._on_window,  # noqa: SLF001
    ConnectionTerminated: Http2Connection._on_terminated,  # noqa: SLF001
}
