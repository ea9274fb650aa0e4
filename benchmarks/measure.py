"""Times two functions against each other, so that their ratio survives a noisy machine."""

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf
from time import perf_counter_ns
from typing import Final

# Long enough for the clock, short enough to fit between interruptions by other programs.
_BATCH_NANOSECONDS: Final = 1_500_000
_FEWEST_ROUNDS: Final = 9
_SHORT_BATCH_NANOSECONDS: Final = 120_000
_MOST_REPEATS: Final = 8
_UNTIMED: Final = 2
_BIG_BLOCK: Final = 31 << 20  # just below the size from which glibc never keeps a block


class Best:
    """Nanoseconds of the fastest call so far. Noise only adds time, so more rounds are more accurate."""

    def __init__(self) -> None:
        self.nanoseconds = inf

    def see(self, nanoseconds: float) -> None:
        self.nanoseconds = min(self.nanoseconds, nanoseconds)


@dataclass(frozen=True, slots=True)
class Runner:
    function: Callable[[], object]
    best: Best


@contextmanager
def quiet(*, collector: bool) -> Iterator[None]:
    """Sets the same memory state for all measurements.

    Existing objects are frozen, so that no case pays for their collection. And the C allocator is brought to the state
    of a long-running process: until it has freed a large block, it fetches every large one from the kernel.
    """
    was_enabled = gc.isenabled()
    bytes(_BIG_BLOCK)
    gc.collect()
    gc.freeze()
    if not collector:
        gc.disable()
    try:
        yield
    finally:
        gc.unfreeze()
        if was_enabled:
            gc.enable()


def race(first: Runner, second: Runner, *, seconds: float, collector: bool) -> None:
    """Runs both alternately, in short batches, for `seconds` in total."""
    with quiet(collector=collector):
        runners = [(runner, _repeats(runner.function)) for runner in (first, second)]
        deadline = perf_counter_ns() + int(seconds * 1e9)
        rounds = 0
        while rounds < _FEWEST_ROUNDS or perf_counter_ns() < deadline:
            rounds += 1
            runners.reverse()  # alternate which side runs with warm caches
            for runner, repeat in runners:
                runner.best.see(_batch(runner.function, repeat) / repeat)
                gc.collect(0)


def _batch(function: Callable[[], object], repeat: int) -> int:
    rounds = range(repeat)
    start = perf_counter_ns()
    for _ in rounds:
        function()
    return perf_counter_ns() - start


def _repeats(function: Callable[[], object]) -> int:
    """Number of calls per batch; the first calls warm up caches and lazy imports and do not count."""
    for _ in range(3):
        function()
    return max(1, _BATCH_NANOSECONDS // max(1, min(_batch(function, 1) for _ in range(3))))


def interleaved(works: Sequence[Callable[[], object]], *, rounds: int) -> list[float]:
    """Nanoseconds of the fastest call of each, measured alternately, for many small subjects.

    A few untimed calls precede each batch: the first call after other work finds cold caches and costs about a fifth
    more.
    """
    repeats = [_short_batch(work) for work in works]
    best = [inf] * len(works)
    order = list(range(len(works)))
    for turn in range(rounds):
        for index in order[turn % len(order) :] + order[: turn % len(order)]:
            work, repeat = works[index], repeats[index]
            for _ in range(_UNTIMED):
                work()
            best[index] = min(best[index], _batch(work, repeat) / repeat)
    return best


def _short_batch(work: Callable[[], object]) -> int:
    for _ in range(_UNTIMED):
        work()
    return max(1, min(_MOST_REPEATS, _SHORT_BATCH_NANOSECONDS // max(1, min(_batch(work, 1) for _ in range(2)))))


def once(works: Sequence[Callable[[], object]]) -> list[int]:
    """Nanoseconds of a single call of each, in this order, without warm-up."""
    return [_batch(work, 1) for work in works]
