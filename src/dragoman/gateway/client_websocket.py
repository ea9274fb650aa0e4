"""WebSockets, with the package `websockets`: its sans-I/O protocol for clients, and connections to upstreams."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import suppress
from typing import Any

from websockets.asyncio.client import connect
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed, InvalidState
from websockets.frames import CloseCode, Frame, Opcode
from websockets.http11 import Request
from websockets.protocol import State
from websockets.server import ServerProtocol

from dragoman.gateway.exchange import Gone, Tunnel
from dragoman.gateway.http_request import Head

_SWITCHED = 101
_LONGEST_REASON = 120


class ConnectDirectly(connect):
    """Follows no redirects: hosts come from the configuration, and headers hold keys."""

    def process_redirect(self, exc: Exception) -> Exception | str:
        return exc


class IncomingMessages:
    """Assembles the messages of a client, within the limits of request bodies.

    An incomplete message counts against the memory for bodies, and has to arrive at the minimum rate of a body.
    """

    def __init__(self, tunnel: Tunnel, frames: ServerProtocol) -> None:
        self._tunnel = tunnel
        self._frames = frames
        self._message = bytearray()  # one buffer: a client may send frames of one byte, or empty ones
        self._is_text = True
        self._held = 0
        """Bytes that the budget counts."""
        self._began = self._window_began = 0.0
        """When the incomplete message began, and the current window of `body_rate`."""
        self._received = 0
        """Bytes in that window."""

    async def read(self, patience: float | None = None) -> bytes:
        """Return what arrives next, or nothing at the end. Raises `TimeoutError` if nothing arrives in time."""
        limits, end = self._tunnel.limits, None if patience is None else time.monotonic() + patience
        while True:
            if not self._held:
                return await asyncio.wait_for(self._tunnel.read(), patience)
            try:
                return await asyncio.wait_for(self._tunnel.read(), limits.body_window)
            except TimeoutError:
                self._check_rate()
                if self._frames.close_expected():
                    return b""
                if end is not None and time.monotonic() > end:
                    raise

    def feed(self, data: bytes) -> Iterator[tuple[bytes, bool]]:
        """Yield each message that is complete now, and whether it is a text."""
        frames = self._frames
        frames.receive_data(data)
        if not self._held:
            self._begin()
        self._received += len(data)
        for frame in frames.events_received():
            if not isinstance(frame, Frame) or frame.opcode not in {Opcode.TEXT, Opcode.BINARY, Opcode.CONT}:
                continue
            if frame.opcode is not Opcode.CONT:
                self._is_text = frame.opcode is Opcode.TEXT
            self._message += frame.data
            if frame.fin:
                message, self._message = bytes(self._message), bytearray()
                self._begin()
                yield message, self._is_text
        self._hold(len(self._message) + len(frames.reader.buffer))
        self._check_rate()

    def _hold(self, count: int) -> None:
        budget, more = self._tunnel.budget, count - self._held
        if more <= 0:
            budget.used += more
        elif not budget.take(more):
            self._message = bytearray()
            self._frames.fail(CloseCode.TRY_AGAIN_LATER, "the gateway's memory for messages is full; try again")
            return
        self._held = count

    def _begin(self) -> None:
        self._began = self._window_began = time.monotonic()
        self._received = 0

    def _check_rate(self) -> None:
        limits, now = self._tunnel.limits, time.monotonic()
        is_slow = now - self._began > limits.request_seconds
        if now - self._window_began >= limits.body_window:
            is_slow = is_slow or self._received < limits.body_rate * limits.body_window
            self._window_began, self._received = now, 0
        if self._held and is_slow:
            self._frames.fail(CloseCode.POLICY_VIOLATION, "the message took too long")

    def release(self) -> None:
        self._message = bytearray()
        self._hold(0)


class ClientWebSocket:
    def __init__(self, tunnel: Tunnel, head: Head, largest: int, subprotocols: Sequence[str]) -> None:
        self.subprotocol = ""
        """The subprotocol that was agreed on, if any."""
        self._tunnel = tunnel
        self._head = head
        self._subprotocols: Any = list(subprotocols)
        self._frames = ServerProtocol(state=State.OPEN, max_size=largest)

    def accept(self) -> bool:
        offered = {one.strip() for one in self._head.headers.get("sec-websocket-protocol", "").split(",")}
        known: Any = [one for one in self._subprotocols if one in offered] or None
        request = Request(f"{self._head.path}?{self._head.query}", Headers(self._head.headers))
        accepted = ServerProtocol(subprotocols=known).accept(request)
        self.subprotocol = known[0] if known else ""
        self._tunnel.write(accepted.serialize())
        return accepted.status_code == _SWITCHED

    async def messages(self) -> AsyncIterator[str | bytes]:
        """Yield messages until the client closes. Raises `Gone` if it disconnects without closing."""
        incoming = IncomingMessages(self._tunnel, self._frames)
        try:
            while not self._frames.close_expected():
                data = await incoming.read()
                if not data:
                    if self._tunnel.is_gone:
                        raise Gone
                    return
                for message, is_text in incoming.feed(data):
                    if is_text and not _is_utf8(message):
                        self._frames.fail(CloseCode.INVALID_DATA, "a text that is not UTF-8")
                        return
                    yield message.decode() if is_text else message
                if self._flush():  # without waiting, answers to pings would pile up
                    await self._tunnel.drain()
        finally:
            incoming.release()
            with suppress(Gone):
                self._flush()

    async def send(self, message: str | bytes) -> None:
        """Send a message. Raises `Gone`."""
        try:
            if isinstance(message, str):
                self._frames.send_text(message.encode())
            else:
                self._frames.send_binary(message)
        except (ConnectionClosed, InvalidState):
            raise Gone from None
        if self._flush():
            await self._tunnel.drain()

    def close(self, code: int, reason: str) -> None:
        if self._frames.state is State.OPEN:
            self._frames.send_close(code, reason.encode()[:_LONGEST_REASON].decode("utf-8", "ignore"))
            self._flush()

    def _flush(self) -> bool:
        """Write what is pending; return whether the client reads more slowly than we write."""
        crowded = False
        for data in self._frames.data_to_send():
            if data:
                crowded = self._tunnel.write(data)
        return crowded


def _is_utf8(message: bytes) -> bool:
    try:
        message.decode()
    except UnicodeDecodeError:
        return False
    return True
