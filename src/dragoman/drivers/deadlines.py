"""Cheap time limits for many waits: one timer checks all of them, many times a second.

A separate timer for each wait would be set and cancelled for every piece of every stream, and hardly any would fire.
The cost is that limits are only as exact as a tick.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from math import inf
from typing import Any, TypeVar

T = TypeVar("T")
TICK = 0.05


class Deadlines:
    """The waits of one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._now = loop.time
        self._due: dict[asyncio.Task[Any], float] = {}
        self._fired: set[asyncio.Task[Any]] = set()
        self._timer: asyncio.TimerHandle | None = None

    async def wait(self, work: Awaitable[T], until: float) -> T:
        """Returns the result of the work, or raises TimeoutError once the loop's clock is past `until`."""
        if until == inf:
            return await work
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - we are awaited by a task
        cancelled_before = task.cancelling()
        self._due[task] = until
        if self._timer is None:
            self._timer = self._loop.call_later(TICK, self._check_all)
        try:
            return await work
        except asyncio.CancelledError:
            # Our cancellation, unless the task was also cancelled from outside.
            if task in self._fired and task.uncancel() <= cancelled_before:
                raise TimeoutError from None
            raise
        finally:
            self._due.pop(task, None)
            self._fired.discard(task)

    def _check_all(self) -> None:
        now = self._now()
        for task in [task for task, until in self._due.items() if now >= until]:
            del self._due[task]
            self._fired.add(task)
            task.cancel()
        self._timer = self._loop.call_later(TICK, self._check_all) if self._due else None

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
