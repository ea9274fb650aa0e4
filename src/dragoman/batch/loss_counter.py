"""Counts the losses of records while they are converted."""

from __future__ import annotations

import re
from functools import lru_cache

from dragoman.batch.tally import EXAMPLES, MAX_KINDS, Example, LossCount
from dragoman.loss import Loss

_INDEX = re.compile(r"\[\d+\]")


class LossCounter:
    """Counts losses as they occur; `counts` returns what a tally keeps.

    Records of one source mostly lose the same things at the same places. Such a record costs one lookup: once it cannot
    add an example any more, it is counted as a repetition, and added up at the end.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, str, str, str], LossCount] = {}
        self._records: dict[tuple[Loss, ...], list[int]] = {}
        """How often a record lost exactly this, as a list of one number: counting up hashes the losses once."""

    def add(self, losses: tuple[Loss, ...], source: str, line: int) -> None:
        """Count the losses of one record."""
        seen = self._records.get(losses)
        if seen is not None:
            seen[0] += 1
            if seen[0] > EXAMPLES:
                return
        elif len(self._records) < MAX_KINDS:
            self._records[losses] = [1]
        self._add(losses, source, line)

    def _add(self, losses: tuple[Loss, ...], source: str, line: int, times: int = 1) -> None:
        seen = set[int]()
        for loss in losses:
            count = self._count_of(loss)
            count.count += times
            if id(count) not in seen:
                seen.add(id(count))
                count.records += times
                if len(count.examples) < EXAMPLES:
                    count.examples.append(Example(source, line, loss.path))

    def _count_of(self, loss: Loss) -> LossCount:
        key = (loss.severity, pattern_of(loss.path), loss.what, loss.why)
        count = self._known.get(key)
        if count is None:
            if len(self._known) >= MAX_KINDS:  # texts of the input may be in `what` and `why`
                key = (loss.severity, "$", "other losses", "more kinds of loss than this report distinguishes")
            count = self._known.setdefault(key, LossCount(loss.severity, *key[1:], examples=[]))
        return count

    def counts(self) -> list[LossCount]:
        """Return one count per kind of loss, in the order in which the kinds first occurred."""
        for losses, (count,) in self._records.items():
            if count > EXAMPLES:
                self._add(losses, "", 0, count - EXAMPLES)
        self._records = {}
        return list(self._known.values())


@lru_cache(maxsize=4_096)
def pattern_of(path: str) -> str:
    """Return the path with [*] for every index, so that the same place in all messages is one row of the report."""
    return _INDEX.sub("[*]", path)
