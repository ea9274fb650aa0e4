"""Measures how the cost of a piece of work grows with its input.

A cost is steep if it grows like a square: fourfold input at more than `MOST` times the cost, three steps in a row, with
a last step of `SQUARE` or more. Single steps are common in linear code (an input outgrows a memo, a cache of the
processor, a pool of the allocator) and do not repeat. The share of a quadratic term, on the other hand, grows with
every step: one that makes up a quarter of the cost at 4n is half of it at 16n and nearly all of it at 64n.

The first step may be wider (`FAR`). Over sixteenfold input a quadratic term shows so clearly that half of the cost may
be noise, where a fourfold step has to be measured again and again. It needs a small input that costs something: where
fixed costs dominate, as in a request over HTTP, they hide more of a wide step than of a short one.
"""

import gc
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import _lru_cache_wrapper, cache
from itertools import pairwise
from typing import Any, NamedTuple

from dragoman.codecs.memo import BoundedMemo
from tests.support.collector import tracked_objects

Work = Callable[[], Any]
Prepare = Callable[[int], Work]
"""From a size to the work on an input of that size; only the work is measured."""
Measure = Callable[[Work], float]
"""The cost of running some work once."""

NEAR, FAR = 4, 16
"""How much larger the second input is than the first; every later one is four times as large as the one before."""
MOST = 5.0
"""Growth of the cost when the input grows fourfold: 4 is linear, 16 quadratic, 4.9 is n log n at a few hundred."""
MOST_FAR = 24.0
"""The same when it grows sixteenfold: 16 is linear, 256 quadratic."""
SQUARE = 7.0
STEPS = 3
THOROUGH = "DRAGOMAN_THOROUGH_COSTS"
"""Set, it lets every row grow until it takes ten times as long, where smaller quadratic terms show."""
_ENOUGH = {NEAR: 0.005, FAR: 0.005} if THOROUGH in os.environ else {NEAR: 0.0005, FAR: 0.0001}
"""CPU seconds that are measured well enough: a short first step needs more, so that it is at larger sizes.

A longer run is interrupted more often, and then its caches are cold."""
_ROUNDS = 8
_RUNS = 2
"""To find a size, and as many before the first comparison, so that one of them is without noise."""
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
    """Of `size`, `leap` times `size`, four times as much, …, as far as was needed."""
    leap: int = NEAR

    @property
    def is_steep(self) -> bool:
        first, *later = (large / small for small, large in pairwise(self.costs))
        return first >= _most(self.leap) and min(later, default=MOST) >= MOST and [first, *later][-1] >= SQUARE

    def __str__(self) -> str:
        sizes = [self.size, *(self.size * self.leap * 4**step for step in range(len(self.costs) - 1))]
        return ", ".join(f"{size}: {cost * 1000:.2f} ms" for size, cost in zip(sizes, self.costs, strict=True))


def _most(factor: int) -> float:
    return MOST_FAR if factor == FAR else MOST


def cpu_seconds(work: Work) -> float:
    """CPU time of this thread, so that other processes count by their noise only."""
    started = time.thread_time()
    work()
    return time.thread_time() - started


def cold_cpu_seconds(work: Work) -> float:
    """The same, with no tool or schema remembered: a memo that holds n inputs and not 4n looks like a steep cost."""
    forget()
    return cpu_seconds(work)


def growth(
    prepare: Prepare, size: int, largest: int, measure: Measure = cold_cpu_seconds, *, leap: int = NEAR
) -> Growth:
    """Compares n with `leap` times n, and goes on to four and sixteen times as much only while the growth looks steep.

    What looks steep to the end is measured once more: on a busy machine other processes take the caches of the
    processor away, which slows large inputs down more than small ones.
    """
    found = _growth(prepare, size, largest, measure, leap)
    return _growth(prepare, size, largest, measure, leap) if found.is_steep else found


def _growth(prepare: Prepare, size: int, largest: int, measure: Measure, leap: int) -> Growth:
    with _without_collector():
        size, work, cost = _measurable(prepare, size, largest, measure, _ENOUGH[leap])
        costs, larger_size = [cost], size
        for factor in (leap, *[NEAR] * (STEPS - 1)):
            larger_size *= factor
            larger = prepare(larger_size)
            costs[-1:] = _compare(work, larger, costs[-1], measure, _most(factor))
            if factor == FAR and costs[-1] >= _LONG:  # a single wide step may be a cliff
                return _growth(prepare, size, largest, measure, NEAR)
            if costs[-1] < _most(factor) * costs[-2] or costs[-1] >= _LONG:
                break
            work = larger
    return Growth(size, costs, leap)


@contextmanager
def _without_collector() -> Iterator[None]:
    """A collection would fall into some runs and not into others."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _measurable(prepare: Prepare, size: int, largest: int, measure: Measure, enough: float) -> tuple[int, Work, float]:
    """The size, doubled until its work can be measured, with this work and its cost.

    Preparing an input often takes longer than the work on it, so sizes that are certainly too small are skipped.
    """
    while True:
        work = prepare(size)
        cost = _least(work, measure, _RUNS)
        if cost >= enough or size * 2 > largest:
            return size, work, cost
        wanted = size * enough / max(cost, 1e-9)
        size *= 2
        while size < wanted and size * 2 <= largest:
            size *= 2


def _compare(small: Work, large: Work, cost: float, measure: Measure, most: float) -> list[float]:
    """The least costs of both, measured in turns until the growth looks linear: noise only ever adds to a cost."""
    large_cost = float("inf")
    for turn in range(_ROUNDS):
        cost = min(cost, _least(small, measure, 1 if turn else _RUNS))
        large_cost = min(large_cost, measure(large))
        is_clear = large_cost >= most / MOST * _CLEAR * cost
        if large_cost < most * cost or (large_cost >= _LONG and (turn >= _LONG_ROUNDS or is_clear)):
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
