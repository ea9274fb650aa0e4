"""Server-sent events to the page: one stream per tab."""

from __future__ import annotations

import asyncio

import msgspec

from dragoman.gateway.exchange import Exchange

_BEAT = 15.0  # seconds without an event after which a comment keeps the connection open
_BEHIND = 10_000  # events a reader may lag behind before it must reconnect
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
        self._queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._is_whole = True

    def put(self, kind: str, data: object) -> None:
        if self._queue.qsize() >= _BEHIND:
            self._is_whole = False
        else:
            self._queue.put_nowait(b"event: " + kind.encode() + b"\ndata: " + msgspec.json.encode(data) + b"\n\n")

    def end(self) -> None:
        self._queue.put_nowait(None)

    async def run(self, exchange: Exchange) -> None:
        """Sends events until the page disconnects or lags too far behind."""
        exchange.start(200, _HEADERS)
        self._streams.enter(self)
        try:
            while self._is_whole and (data := await self._next()) is not None:
                if exchange.write(data):
                    await exchange.drain()
        finally:
            self._streams.leave(self)
        exchange.finish()

    async def _next(self) -> bytes | None:
        try:
            async with asyncio.timeout(_BEAT):
                return await self._queue.get()
        except TimeoutError:
            return _ALIVE
