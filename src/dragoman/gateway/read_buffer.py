"""Reads from sockets into one buffer that all connections of an event loop share.

asyncio's plain protocols allocate 256 KiB for each read and free nearly all of it: twenty times the cost of the read
itself, and more than all other work for a chunk of a stream here.
"""

from __future__ import annotations

import asyncio

SIZE = 64 << 10


def shared_buffer(loop: asyncio.AbstractEventLoop) -> memoryview | None:
    """Return a buffer; None for loops that read in the background (Windows' proactor), where none can be shared."""
    reads_when_called = isinstance(loop, asyncio.SelectorEventLoop) or type(loop).__module__.startswith("uvloop")
    return memoryview(bytearray(SIZE)) if reads_when_called else None


class BufferedReader(asyncio.BufferedProtocol):
    def __init__(self, buffer: memoryview | None) -> None:
        self._buffer = memoryview(bytearray(SIZE)) if buffer is None else buffer

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.received(self._buffer[:nbytes])

    def received(self, data: memoryview) -> None:
        """Process received data, which is valid only until this returns."""
        raise NotImplementedError
