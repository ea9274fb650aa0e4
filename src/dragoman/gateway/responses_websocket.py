"""The Responses API over a WebSocket: one connection, one `response.create` per turn.

Each turn is served as a separate request, by the same path as over HTTP: keys, limits, routes, records. What differs
is the framing, and that the connection remembers responses that are not stored (`store: false`), so that the next turn
may name them as `previous_response_id`. Frames are read and written by the sans-I/O protocol of `websockets`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec
from msgspec import Raw, Struct
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed, InvalidState
from websockets.frames import CloseCode
from websockets.http11 import Request
from websockets.protocol import State
from websockets.server import ServerProtocol

from dragoman.codecs.framing import ServerSentEvents
from dragoman.codecs.registry import codec
from dragoman.codecs.stream_limits import Limits
from dragoman.gateway.client_websocket import IncomingMessages
from dragoman.gateway.exchange import Exchange, Gone, Tunnel
from dragoman.gateway.http_request import Head
from dragoman.gateway.stored_responses import LocalResponses

LONGEST_CONNECTION = 3600.0
"""Seconds, OpenAI's limit."""
_MOST_LANES = 32
_MOST_ACTIVE = 16
_MOST_WAITING = 100
"""Maximum number of unfinished turns of one connection."""
_PING_EVERY = 30.0
_SWITCHED = 101
_FAILED_FROM = 400
_OF_THE_HANDSHAKE = ("upgrade", "connection", "content-length", "content-encoding")
_FAILURES = frozenset({"error", "response.failed"})
_ENDINGS = _FAILURES | {"response.completed", "response.incomplete"}
_ERROR = b'{"type":"error"}'
_DONE = b"[DONE]"
_object = msgspec.json.Decoder(dict[str, Raw]).decode
_encode = msgspec.json.encode
Serve = Callable[[Exchange], Awaitable[None]]


class _ClientEvent(Struct):
    type: str
    stream_id: str | None = None
    previous_response_id: str | None = None
    background: bool | None = None


class _Typed(Struct):
    type: str = ""


_client_event = msgspec.json.Decoder(_ClientEvent).decode
_typed = msgspec.json.Decoder(_Typed).decode


class _Turn(Exchange):
    """One `response.create`, served as any other request; its answer is sent as messages."""

    __slots__ = ("_events", "_lane", "_last", "_previous", "_session", "is_single")

    def __init__(self, session: ResponsesWebSocket, event: _ClientEvent, body: bytes) -> None:
        super().__init__(session.head)
        self.body = body
        self.local = session.local
        self.is_single = False
        """Whether the answer is one message instead of events, such as an estimate."""
        self._session = session
        self._last = b""
        self._lane = event.stream_id
        self._previous = event.previous_response_id
        self._events = ServerSentEvents(Limits(), "openai-responses stream")

    async def receive(self, limit: int | None = None) -> bytes:  # noqa: ARG002 - messages are limited as they come
        return self.body

    def send(self, status: int, headers: Mapping[str, str], body: bytes = b"") -> None:
        """Send a whole answer, mostly an error, since turns stream."""
        self.started = self.whole = True
        if self.on_sent is not None:
            self.on_sent(status, body)
        if status >= _FAILED_FROM:
            kept = {name: value for name, value in headers.items() if name.startswith(("x-", "retry-after"))}
            self.fail(status, {**_error_in(body, status), "headers": kept})
        else:
            self.is_single = True
            self._emit(body)

    def fail(self, status: int, error: Mapping[str, Any]) -> None:
        self._last = _ERROR
        self._session.emit_error(status, error, self._lane)

    @property
    def last_type(self) -> str:
        """The type of the last event."""
        try:
            return _typed(self._last).type if self._last else ""
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return ""

    def start(self, status: int, headers: Mapping[str, str], first: bytes = b"") -> None:  # noqa: ARG002 - no heads here
        self.started = True
        self.write(first)

    def write(self, data: bytes) -> bool:
        for payload in self._events.feed(data) if data else ():
            self._emit(payload)
        return self._session.is_crowded

    async def drain(self) -> None:
        await self._session.drain()

    def finish(self, last: bytes = b"") -> None:
        self.whole = True
        self.write(last)
        for payload in self._events.close():
            self._emit(payload)

    def _emit(self, payload: bytes) -> None:
        if payload == _DONE:  # some servers end streams of this API as those of Chat
            return
        self._last = payload
        if self._previous is not None and b'"response":{' in payload:
            payload = self._with_previous(payload)
        self._session.emit(payload, self._lane)

    def _with_previous(self, payload: bytes) -> bytes:
        """Add the id of the previous response: an upstream that got the whole conversation does not know it."""
        event: dict[str, Any] = _object(payload)
        if "response" in event:
            event["response"] = {**_object(event["response"]), "previous_response_id": self._previous}
        return _encode(event)


def _error_in(body: bytes, status: int) -> Mapping[str, Any]:
    """Return the error of an answer, in the shape of this API: a server of the same API may have another."""
    try:
        return _object(_object(body)["error"])
    except (msgspec.DecodeError, KeyError):
        failure = codec("openai-responses").decode_error(body, status, {})
        kind = failure.raw_type or "server_error"
        return {"type": kind, "code": failure.code, "param": failure.parameter, "message": failure.message}


class ResponsesWebSocket:
    """One connection."""

    def __init__(self, tunnel: Tunnel, head: Head, serve: Serve, largest: int) -> None:
        headers = {name: value for name, value in head.headers.items() if name not in _OF_THE_HANDSHAKE}
        self.head = Head("POST", head.path, head.query, {**headers, "content-type": "application/json"}, head.secure)
        self.local = LocalResponses()
        self.is_crowded = False
        """Whether the client reads more slowly than we write."""
        self._head = head
        self._tunnel = tunnel
        self._serve = serve
        self._frames = ServerProtocol(state=State.OPEN, max_size=largest)
        self._lanes: dict[str | None, asyncio.Task[None]] = {}
        self._active = asyncio.Semaphore(_MOST_ACTIVE)
        self._incoming = IncomingMessages(tunnel, self._frames)
        self._turns = 0

    async def run(self) -> None:
        request = Request(f"{self._head.path}?{self._head.query}", Headers(self._head.headers))
        accepted = ServerProtocol().accept(request)
        self._tunnel.write(accepted.serialize())
        if accepted.status_code != _SWITCHED:
            return
        try:
            async with asyncio.timeout(LONGEST_CONNECTION):
                await self._read()
            await self._finish_turns(CloseCode.GOING_AWAY)
        except TimeoutError:
            message = "This connection has reached its limit of 60 minutes. Open another one to continue."
            error = {"type": "invalid_request_error", "code": "websocket_connection_limit_reached", "message": message}
            self.emit_error(400, error, None)
            await self._finish_turns(CloseCode.GOING_AWAY)
        except Gone:
            pass
        finally:
            self._incoming.release()
            for task in self._lanes.values():
                task.cancel()
            await asyncio.gather(*self._lanes.values(), return_exceptions=True)

    async def _read(self) -> None:
        """Read messages until the connection closes or the server is shutting down."""
        heard_at = time.monotonic()
        while not self._frames.close_expected():
            try:
                data = await self._incoming.read(_PING_EVERY)
            except TimeoutError:
                if time.monotonic() - heard_at > 3 * _PING_EVERY:
                    raise Gone from None
                self._frames.send_ping(b"")
                self._flush()
                continue
            if not data:
                if self._tunnel.is_gone:
                    raise Gone
                self._flush()
                return
            heard_at = time.monotonic()
            for message, _ in self._incoming.feed(data):
                self._on_message(message)
            self._flush()
            if self.is_crowded:  # errors and answers to pings would pile up
                await self.drain()

    async def _finish_turns(self, code: CloseCode) -> None:
        """Wait for running turns, then close the connection."""
        if self._frames.state is State.OPEN:
            await asyncio.gather(*self._lanes.values(), return_exceptions=True)
            self._frames.send_close(code)
            self._flush()

    def _on_message(self, message: bytes) -> None:
        try:
            event, fields = _client_event(message), _object(message)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            self.emit_error(400, _invalid(f"The message is not an event of this API: {error}"), None)
            return
        if event.type == "response.steer":
            self._refuse_steering(fields)
        elif event.type != "response.create":
            self.emit_error(400, _invalid(f"Unknown event type: '{event.type}'.", "type"), event.stream_id)
        elif event.background is True:
            self.emit_error(400, _invalid("Background responses need HTTP.", "background"), event.stream_id)
        elif event.stream_id not in self._lanes and len(self._lanes) >= _MOST_LANES:
            words = f"A connection has at most {_MOST_LANES} streams."
            self.emit_error(400, _invalid(words, "stream_id"), event.stream_id)
        elif self._turns >= _MOST_WAITING:
            words = f"A connection has at most {_MOST_WAITING} responses under way."
            self.emit_error(429, _invalid(words), event.stream_id)
        else:
            body = {name: value for name, value in fields.items() if name not in {"type", "stream_id", "stream"}}
            self._start(event, _encode({**body, "stream": True}))

    def _refuse_steering(self, fields: Mapping[str, Raw]) -> None:
        words = "No upstream of this gateway takes input while it answers; send it with the next response.create."
        error = {"type": "invalid_request_error", "code": "steering_not_supported", "message": words}
        steer = {"input": fields.get("input"), "previous_response_id": fields.get("previous_response_id", "")}
        failed = {"type": "response.steer.failed", "sequence_number": 0, "error": error, "steer": steer}
        self.emit(_encode(failed), None)

    def _start(self, event: _ClientEvent, body: bytes) -> None:
        """Start a turn after the previous one of the same stream."""
        before = self._lanes.get(event.stream_id)
        self._turns += 1
        self._lanes[event.stream_id] = asyncio.ensure_future(self._take_turn(event, body, before))

    async def _take_turn(self, event: _ClientEvent, body: bytes, before: asyncio.Task[None] | None) -> None:
        if not self._tunnel.budget.take(len(body)):
            self._turns -= 1
            words = "The gateway's memory for request bodies is full; try again."
            self.emit_error(503, {"type": "server_error", "code": None, "message": words}, event.stream_id)
            return
        try:
            if before is not None:
                await asyncio.wait([before])
            async with self._active:
                turn = _Turn(self, event, body)
                await self._answer(turn)
            if event.previous_response_id is not None and (turn.last_type in _FAILURES or not turn.whole):
                # As at OpenAI, the previous response of a failed turn cannot be continued.
                self.local.forget(event.previous_response_id)
        except Gone:
            pass
        finally:
            self._turns -= 1
            self._tunnel.budget.used -= len(body)

    async def _answer(self, turn: _Turn) -> None:
        """Serve a turn. The client can see the end of an answer only by its last event, so there is always one."""
        status, words = 502, "The answer of the upstream ended early."
        try:
            await self._serve(turn)
        except Gone:
            raise
        except Exception as error:  # noqa: BLE001 - a bug in one handler must not affect other turns
            context = {"message": f"the handler of {self.head.path} failed", "exception": error}
            asyncio.get_running_loop().call_exception_handler(context)
            status, words = 500, "Internal error of the gateway."
        if not turn.whole or (turn.last_type not in _ENDINGS and not turn.is_single):
            turn.fail(status, {"type": "server_error", "message": words})

    # ── writing ──

    def emit(self, payload: bytes, lane: str | None) -> None:
        """Send an event as one message. Raises `Gone`."""
        if lane is not None:
            payload = b'%b,"stream_id":%b}' % (payload.rstrip()[:-1], _encode(lane))
        try:
            self._frames.send_text(payload)
        except (ConnectionClosed, InvalidState):
            raise Gone from None
        self._flush()

    def emit_error(self, status: int, error: Mapping[str, Any], lane: str | None) -> None:
        whole = {"code": None, "param": None, **error}
        self.emit(_encode({"type": "error", "sequence_number": 0, "status": status, "error": whole}), lane)

    def _flush(self) -> None:
        for data in self._frames.data_to_send():
            if data:
                self.is_crowded = self._tunnel.write(data)

    async def drain(self) -> None:
        await self._tunnel.drain()
        self.is_crowded = False


def _invalid(message: str, parameter: str | None = None) -> dict[str, Any]:
    return {"type": "invalid_request_error", "message": message, "param": parameter}
