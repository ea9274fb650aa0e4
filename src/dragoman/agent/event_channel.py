"""Passes events from the loop to their reader, one at a time: the loop waits until the reader asks for more.

So a reader that receives a call can cancel the run, or switch the model, before anything else happens.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class Channel(Generic[T]):
    def __init__(self) -> None:
        self._items: deque[T] = deque()
        self._arrived: asyncio.Future[None] | None = None
        self._senders: list[asyncio.Future[None]] = []
        """Senders that wait for the reader: the run, and agents that it called at the same time."""
        self._closed = False

    def push(self, item: T) -> None:
        """Send without waiting, for events that cannot wait."""
        if not self._closed:
            self._items.append(item)
            _wake(self._arrived)

    async def send(self, item: T) -> None:
        if self._closed:
            return
        self.push(item)
        taken = asyncio.get_running_loop().create_future()
        self._senders.append(taken)
        await taken

    def close(self) -> None:
        """Close the channel: no more events follow, or the reader is gone."""
        self._closed = True
        _wake(self._arrived)
        self._release()

    async def take(self) -> T | None:
        """Return the next event; None at the end."""
        if not self._items:
            self._release()
        while not self._items:
            if self._closed:
                return None
            self._arrived = asyncio.get_running_loop().create_future()
            await self._arrived
        return self._items.popleft()

    def _release(self) -> None:
        if self._senders:
            senders, self._senders = self._senders, []
            for sender in senders:
                _wake(sender)


def _wake(future: asyncio.Future[None] | None) -> None:
    if future is not None and not future.done():
        future.set_result(None)
