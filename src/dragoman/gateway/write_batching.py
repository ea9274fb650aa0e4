"""Batches writes to sockets until the ready callbacks of the event loop have run.

A write to a socket wakes its reader, which often takes over the CPU core immediately: code between two writes then runs
with cold caches each time. With batching, the requests of many clients are processed first and then written one after
the other. Nothing waits longer than one iteration of the event loop.
"""

from __future__ import annotations

import asyncio

_MOST = 64 << 10
"""Maximum bytes batched per socket; more is written immediately, so that a client that does not read is noticed."""


class WriteBatcher:
    __slots__ = ("_is_due", "_loop", "_waiting")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: dict[asyncio.Transport, bytes | bytearray] = {}
        self._is_due = False

    def put(self, transport: asyncio.Transport, data: bytes) -> None:
        before = self._waiting.get(transport)
        if before is None:
            self._waiting[transport] = data
            if not self._is_due:
                self._is_due = True
                self._loop.call_soon(self._flush)
        elif len(before) + len(data) > _MOST:
            self.flush(transport)
            transport.write(data)
        elif isinstance(before, bytearray):
            before += data
        else:
            self._waiting[transport] = bytearray(before) + data

    def flush(self, transport: asyncio.Transport) -> None:
        """Write what waits for this transport now, because it is about to be closed."""
        data = self._waiting.pop(transport, None)
        if data is not None and not transport.is_closing():
            transport.write(data)

    def _flush(self) -> None:
        self._is_due = False
        waiting, self._waiting = self._waiting, {}
        for transport, data in waiting.items():
            if not transport.is_closing():
                transport.write(data)
