"""Bytes from a socket, read into one buffer that all connections of an event loop share.

asyncio's plain protocols allocate 256 KiB for each read and give nearly all of it back: twenty times the cost of the
read itself, and more than everything else that a chunk of a stream needs here.
"""

from __future__ import annotations

import asyncio

SIZE = 64 << 10


def shared_buffer(loop: asyncio.AbstractEventLoop) -> memoryview | None:
    """None for loops that read while they run other code (Windows' proactor): each connection needs its own."""
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
        """Valid only until this returns."""
        raise NotImplementedError
