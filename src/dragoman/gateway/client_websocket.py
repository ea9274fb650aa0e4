"""The client's side of a WebSocket whose messages pass through, with the sans-I/O protocol of `websockets`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed, InvalidState
from websockets.frames import Frame, Opcode
from websockets.http11 import Request
from websockets.protocol import State
from websockets.server import ServerProtocol

from dragoman.gateway.exchange import Gone, Tunnel
from dragoman.gateway.http_request import Head

_SWITCHED = 101
_LONGEST_REASON = 120


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
        buffer = bytearray()  # one buffer: a client may send frames of one byte, or empty ones
        is_text = True
        while not self._frames.close_expected():
            data = await self._tunnel.read()
            if not data:
                if self._tunnel.is_gone:
                    raise Gone
                return
            self._frames.receive_data(data)
            if self._flush():  # answers to pings would pile up
                await self._tunnel.drain()
            for frame in self._frames.events_received():
                if not isinstance(frame, Frame) or frame.opcode not in {Opcode.TEXT, Opcode.BINARY, Opcode.CONT}:
                    continue
                if frame.opcode is not Opcode.CONT:
                    is_text = frame.opcode is Opcode.TEXT
                buffer += frame.data
                if frame.fin:
                    message, buffer = bytes(buffer), bytearray()
                    yield message.decode() if is_text else message

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
