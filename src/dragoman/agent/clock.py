"""Time in one place, so that tests can set it."""

from __future__ import annotations

import time
from collections.abc import Callable

from msgspec import Struct


class Clock(Struct, frozen=True):
    wall: Callable[[], float] = time.time
    monotonic: Callable[[], float] = time.monotonic
    """For durations: it never goes backwards."""

    def milliseconds(self) -> float:
        return round(self.wall() * 1000)
