"""Measures how the cost of a piece of work grows with its input."""

import gc
import os
import time
from collections.abc import Callable
from math import cbrt, inf
from typing import Any

Work = Callable[[], Any]
Prepare = Callable[[int], Work]
"""From a size to the work on an input of that size; only the work is measured."""

MOST = 7.0
"""Growth of the cost when the input grows fourfold: 4 is linear, 16 quadratic."""
THOROUGH = "DRAGOMAN_THOROUGH_COSTS"
"""Set, it lets every row grow until it takes ten times as long, where smaller quadratic terms show."""
_ENOUGH = 0.010 if THOROUGH in os.environ else 0.0005
"""CPU seconds that are measured well enough."""


def _cpu_seconds(work: Work, times: int) -> float:
    """CPU time of this thread, so that other processes count by their noise only."""
    started = time.thread_time()
    for _ in range(times):
        work()
    return (time.thread_time() - started) / times


def growth(prepare: Prepare, size: int, largest: int) -> tuple[float, int, float]:
    """How much more the work on 4n costs than that on n; the n that was large enough to measure; its cost.

    A ratio that looks bad is measured again one step further: noise and single steps pass, a quadratic cost stays.
    """
    small = prepare(size)
    cost = min(_cpu_seconds(small, 1), _cpu_seconds(small, 1))
    while cost < _ENOUGH and size * 2 <= largest:
        size *= 2
        small = prepare(size)
        cost = min(_cpu_seconds(small, 1), _cpu_seconds(small, 1))
    ratio, cost = _compare(small, prepare(4 * size), cost, MOST)
    if ratio >= MOST:
        # Noise, an input that outgrows a cache, an allocator's pool or a memo: each is one step up, and passes further
        # up or over three steps together. A quadratic cost grows sixteenfold with every step.
        sizes = [prepare(factor * size) for factor in (4, 16, 64)]
        ratio = min(ratio, _compare(sizes[0], sizes[1], inf, MOST, 2)[0], _compare(sizes[1], sizes[2], inf, MOST, 2)[0])
        ratio = min(ratio, cbrt(_compare(small, sizes[2], cost, MOST**3, 2)[0]))
    return ratio, size, cost


def _compare(small: Work, large: Work, cost: float, most: float, rounds: int = 8) -> tuple[float, float]:
    """The ratio of their costs, measured until it is below `most` or that is hopeless, and the cost of the first."""
    cost = min(cost, _cpu_seconds(small, 1))
    times = min(50, max(1, round(_ENOUGH / max(cost, 1e-6))))
    ratio, large_cost = 0.0, float("inf")
    gc.disable()
    try:
        for _ in range(rounds):
            cost = min(cost, _cpu_seconds(small, times))
            large_cost = min(large_cost, _cpu_seconds(large, max(1, times // 4)))
            ratio = large_cost / max(cost, 1e-6)
            if ratio < most:
                break
    finally:
        gc.enable()
    return ratio, cost
