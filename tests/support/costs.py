"""Measures how the cost of a piece of work grows with its input.

A cost is steep if it grows like a square: fourfold input at more than `MOST` times the cost, three steps in a row, with
a last step of `SQUARE` or more. Single steps are common in linear code (an input outgrows a memo, a cache of the
processor, a pool of the allocator) and do not repeat. The share of a quadratic term, on the other hand, grows with
every step: one that makes up a quarter of the cost at 4n is half of it at 16n and nearly all of it at 64n.
"""

import gc
import os
import time
from collections.abc import Callable
from functools import _lru_cache_wrapper, cache
from typing import Any, NamedTuple

from dragoman.codecs.memo import BoundedMemo
from tests.support.collector import tracked_objects

Work = Callable[[], Any]
Prepare = Callable[[int], Work]
"""From a size to the work on an input of that size; only the work is measured."""
Measure = Callable[[Work], float]
"""The cost of running some work once."""

MOST = 5.0
"""Growth of the cost when the input grows fourfold: 4 is linear, 16 quadratic, 4.9 is n log n at a few hundred."""
SQUARE = 7.0
STEPS = 3
THOROUGH = "DRAGOMAN_THOROUGH_COSTS"
"""Set, it lets every row grow until it takes ten times as long, where smaller quadratic terms show."""
_ENOUGH = 0.005 if THOROUGH in os.environ else 0.0005
"""CPU seconds that are measured well enough."""
_ROUNDS = 8
_RUNS = 3
"""Of the smaller input, so that one of them is without noise."""
_LONG = 0.4
"""CPU seconds of one run after which nothing larger is tried: if the cost is a square, that takes six seconds."""
_LONG_ROUNDS = 3
"""Repetitions of such a run while its growth could still be noise."""
_CLEAR = 12.0
"""A growth that noise does not explain."""


class Growth(NamedTuple):
    size: int
    """The smallest input that was large enough to measure."""
    costs: list[float]
    """Of `size`, 4 times `size`, 16 times `size`, …, as far as was needed."""

    @property
    def ratios(self) -> list[float]:
        return [large / small for small, large in zip(self.costs, self.costs[1:], strict=False)]

    @property
    def is_steep(self) -> bool:
        ratios = self.ratios
        return min(ratios) >= MOST and ratios[-1] >= SQUARE

    def __str__(self) -> str:
        sizes = (f"{self.size * 4**step}: {cost * 1000:.2f} ms" for step, cost in enumerate(self.costs))
        return ", ".join(sizes)


def cpu_seconds(work: Work) -> float:
    """CPU time of this thread, so that other processes count by their noise only."""
    started = time.thread_time()
    work()
    return time.thread_time() - started


def cold_cpu_seconds(work: Work) -> float:
    """The same, with no tool or schema remembered: a memo that holds n inputs and not 4n looks like a steep cost."""
    forget()
    return cpu_seconds(work)


def growth(prepare: Prepare, size: int, largest: int, measure: Measure = cold_cpu_seconds) -> Growth:
    """Compares n with 4n, and goes on to 16n and 64n only while the growth looks steep.

    What looks steep to the end is measured once more: on a busy machine other processes take the caches of the
    processor away, which slows large inputs down more than small ones.
    """
    found = _growth(prepare, size, largest, measure)
    return _growth(prepare, size, largest, measure) if found.is_steep else found


def _growth(prepare: Prepare, size: int, largest: int, measure: Measure) -> Growth:
    work = prepare(size)
    cost = measure(work)
    while cost < _ENOUGH and size * 2 <= largest:
        size *= 2
        work = prepare(size)
        cost = measure(work)
    costs = [cost]
    gc.disable()
    try:
        for step in range(1, STEPS + 1):
            larger = prepare(size * 4**step)
            costs[-1:] = _compare(work, larger, costs[-1], measure)
            if costs[-1] < MOST * costs[-2] or costs[-1] >= _LONG:
                break
            work = larger
    finally:
        gc.enable()
    return Growth(size, costs)


def _compare(small: Work, large: Work, cost: float, measure: Measure) -> list[float]:
    """The least costs of both, measured in turns until the growth looks linear: noise only ever adds to a cost."""
    large_cost = float("inf")
    for turn in range(_ROUNDS):
        cost = min(cost, _least(small, measure, 1 if turn else _RUNS))
        large_cost = min(large_cost, measure(large))
        if large_cost < MOST * cost or (large_cost >= _LONG and (turn >= _LONG_ROUNDS or large_cost >= _CLEAR * cost)):
            break
    return [max(cost, 1e-9), large_cost]


def _least(work: Work, measure: Measure, times: int) -> float:
    return min(measure(work) for _ in range(times))


@cache
def _memos() -> tuple[list[BoundedMemo[Any, Any]], list[Any]]:
    """Every memo of the codecs, and every cache with a limit; those without one hold what a program has, not a body."""
    objects = tracked_objects()
    found = [one for one in objects if isinstance(one, BoundedMemo)]
    caches = [
        one
        for one in objects
        if isinstance(one, _lru_cache_wrapper)
        and getattr(one, "__module__", "").startswith("dragoman.")
        and one.cache_parameters()["maxsize"] is not None
    ]
    return found, caches


def forget() -> None:
    """Empties all of them. Call it first when all codecs are loaded."""
    memos, caches = _memos()
    for memo in memos:
        memo.clear()
    for one in caches:
        one.cache_clear()
