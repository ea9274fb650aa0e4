"""Server-sent events to the page: one stream per tab."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Collection

import msgspec

from dragoman.gateway.exchange import Exchange

_BEAT = 15.0  # seconds without an event after which a comment keeps the connection open
_BEHIND = 10_000  # events a reader may lag behind before it must reconnect
_MOST_BYTES = 16 << 20
"""Bytes of such events; a single one may be larger, because a whole conversation is one event."""
_HEADERS = {"content-type": "text/event-stream", "cache-control": "no-store", "x-accel-buffering": "no"}
_ALIVE = b": still here\n\n"


class Streams:
    """All open streams. Closed before the server stops, because it would wait for them."""

    def __init__(self) -> None:
        self._open: set[Stream] = set()
        self._closed = False

    def close(self) -> None:
        self._closed = True
        for stream in self._open:
            stream.end()

    def stream(self) -> Stream:
        return Stream(self)

    def enter(self, stream: Stream) -> None:
        self._open.add(stream)
        if self._closed:
            stream.end()

    def leave(self, stream: Stream) -> None:
        self._open.discard(stream)


class Stream:
    """Server-sent events. A page whose stream has ended reconnects by itself and starts from the beginning."""

    def __init__(self, streams: Streams) -> None:
        self._streams = streams
        self._waiting: deque[tuple[str, bytes]] = deque()
        self._bytes = 0
        self._is_ended = False
        self._changed = asyncio.Event()

    def put(self, kind: str, data: object) -> None:
        """Send an event. A reader that lags too far behind is disconnected, without the events that wait for it."""
        if self._is_ended:
            return
        event = b"event: " + kind.encode() + b"\ndata: " + msgspec.json.encode(data) + b"\n\n"
        if self._waiting and (len(self._waiting) >= _BEHIND or self._bytes + len(event) > _MOST_BYTES):
            self._waiting.clear()
            self._bytes = 0
            self.end()
            return
        self._waiting.append((kind, event))
        self._bytes += len(event)
        self._changed.set()

    def put_state(self, kind: str, data: object, *, except_for: Collection[str]) -> None:
        """Send the whole state, in place of all events that still wait except for those of these kinds."""
        kept = [one for one in self._waiting if one[0] in except_for]
        self._waiting = deque(kept)
        self._bytes = sum(len(event) for _, event in kept)
        self.put(kind, data)

    def end(self) -> None:
        self._is_ended = True
        self._changed.set()

    async def run(self, exchange: Exchange) -> None:
        """Sends events until the page disconnects or lags too far behind."""
        exchange.start(200, _HEADERS)
        self._streams.enter(self)
        try:
            while (data := await self._next()) is not None:
                if exchange.write(data):
                    await exchange.drain()
        finally:
            self._streams.leave(self)
        exchange.finish()

    async def _next(self) -> bytes | None:
        """Return the next event, or a comment after a while without one; None at the end."""
        try:
            async with asyncio.timeout(_BEAT):
                while not self._waiting:
                    if self._is_ended:
                        return None
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            return _ALIVE
        _, event = self._waiting.popleft()
        self._bytes -= len(event)
        return event
