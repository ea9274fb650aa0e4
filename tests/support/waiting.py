"""Waiting that holds on a busy machine.

A limit on waiting only decides how long a failing test takes. There is therefore one limit, and it is generous. A test
that has something to say about time says it so that a stall of the machine cannot break it: it compares with a lower
bound, with the moment a request was *sent*, or with the CPU time of the process.
"""

import time
from collections.abc import Callable

PATIENCE = 60.0
"""Seconds that a test waits for something that takes milliseconds on a quiet machine."""


def until(condition: Callable[[], object], message: str = "the condition never came true", pause: float = 0.02) -> None:
    """Wait until the condition holds, and fail with the message if it does not within `PATIENCE`."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, message
        time.sleep(pause)
