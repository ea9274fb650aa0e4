"""Bytes from a socket, read into one room that all connections of an event loop share.

What asyncio offers besides takes 256 KiB from the system for each read and gives all but a few back: twenty times the
cost of the read itself, and more than everything else that a piece of a stream needs here.
"""

from __future__ import annotations

import asyncio

ROOM = 64 << 10


def shared_room(loop: asyncio.AbstractEventLoop) -> memoryview | None:
    """None: this loop reads while it does other things, so that each connection needs a room of its own."""
    return memoryview(bytearray(ROOM)) if isinstance(loop, asyncio.SelectorEventLoop) else None


class Receiver(asyncio.BufferedProtocol):
    def __init__(self, room: memoryview | None) -> None:
        self._room = memoryview(bytearray(ROOM)) if room is None else room

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002
        return self._room

    def buffer_updated(self, nbytes: int) -> None:
        self.data_received(bytes(self._room[:nbytes]))

    def data_received(self, data: bytes) -> None:
        raise NotImplementedError
