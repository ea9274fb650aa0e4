"""Times two functions against each other, so that their ratio survives a noisy machine."""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter_ns
from typing import Final

# Long enough for the clock, short enough to fit between two interruptions by other programs.
_BATCH_NANOSECONDS: Final = 1_500_000
_FEWEST_ROUNDS: Final = 9
_BIG_BLOCK: Final = 31 << 20  # just below the size from which glibc never keeps a block


@dataclass(frozen=True, slots=True)
class Comparison:
    """Nanoseconds per call, each the best of many rounds taken in turns."""

    candidate: float
    floor: float

    @property
    def ratio(self) -> float:
        return self.candidate / self.floor

    def joined(self, other: "Comparison") -> "Comparison":
        """As if the rounds of both had been one measurement."""
        return Comparison(candidate=min(self.candidate, other.candidate), floor=min(self.floor, other.floor))


@contextmanager
def quiet(*, collector: bool) -> Iterator[None]:
    """The same memory state for everybody.

    What exists already is set aside, so that nobody pays for its collection. And the C allocator is brought to where a
    long-running process has it: until it has seen a big block freed, it fetches every large one from the kernel anew.
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


def compare(
    candidate: Callable[[], object], floor: Callable[[], object], *, seconds: float, collector: bool = False
) -> Comparison:
    """Both for `seconds` together, round about; the best round of each counts, being the least disturbed one."""
    with quiet(collector=collector):
        repeats = _repeats(candidate), _repeats(floor)
        best = [float("inf"), float("inf")]
        contestants = [(0, candidate, repeats[0]), (1, floor, repeats[1])]
        deadline = perf_counter_ns() + int(seconds * 1e9)
        rounds = 0
        while rounds < _FEWEST_ROUNDS or perf_counter_ns() < deadline:
            rounds += 1
            contestants.reverse()  # nobody always runs in the cache the other one warmed
            for index, function, repeat in contestants:
                best[index] = min(best[index], _batch(function, repeat) / repeat)
                gc.collect(0)
    return Comparison(candidate=best[0], floor=best[1])


def _batch(function: Callable[[], object], repeat: int) -> int:
    rounds = range(repeat)
    start = perf_counter_ns()
    for _ in rounds:
        function()
    return perf_counter_ns() - start


def _repeats(function: Callable[[], object]) -> int:
    """How often fits into one batch; the first calls warm caches and lazy imports and do not count."""
    for _ in range(3):
        function()
    return max(1, _BATCH_NANOSECONDS // max(1, min(_batch(function, 1) for _ in range(3))))
