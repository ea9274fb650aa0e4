"""Counts the losses of records while they are converted."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from dragoman.batch.tally import EXAMPLES, MAX_KINDS, Example, LossCount
from dragoman.ir import Request
from dragoman.loss import SEVERITIES, Loss
from dragoman.losses import LossLog

_INDEX = re.compile(r"\[(?:\d+|'[0-9a-f]{8}-[0-9a-f-]{27}')\]")
"""An index, or a random id: exports of chat applications have their messages by id."""


class LossCounter:
    """Counts losses as they occur; `counts` returns what a tally keeps.

    Records of one source mostly lose the same things at the same places. Such a record costs one lookup: once it cannot
    add an example any more, it is counted as a repetition, and added up at the end. If the losses concern the whole
    request, such as its settings, their paths are not even looked up: they depend on the names of the fields alone.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, str, str, str], LossCount] = {}
        self._records: dict[tuple[Loss, ...], list[int]] = {}
        """How often a record lost exactly this, as a list of one number: counting up hashes the losses once."""
        self._shapes: dict[tuple[tuple[str, ...], ...], list[int]] = {}
        """The same lists, by entries of a log without their paths."""

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

    def add_log(self, log: LossLog, source: str, line: int) -> None:
        """Count the losses of one record, which are resolved only if they are new."""
        shape = _shape_of(log)
        if shape is None:
            self.add(log.resolve_kept(), source, line)
            return
        seen = self._shapes.get(shape)
        if seen is not None and seen[0] >= EXAMPLES:
            seen[0] += 1
            return
        losses = log.resolve_kept()
        self.add(losses, source, line)
        if (found := self._records.get(losses)) is not None:
            self._shapes[shape] = found

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
        self._records, self._shapes = {}, {}
        return list(self._known.values())


def _shape_of(log: LossLog) -> tuple[tuple[str, ...], ...] | None:
    """Return what the losses are about if that determines their paths: fields of a request without notes."""
    root = log.root
    if type(root) is not Request or root.metadata is not None or log.tools is not None:
        return None
    entries = log.entries
    if len(entries) == 1:
        (entry,) = entries
        return (entry[1:],) if type(entry[0]) is Request else None
    if any([type(entry[0]) is not Request for entry in entries]):  # noqa: C419 - a list is faster
        return None
    return tuple([entry[1:] for entry in entries])


def count_by_severity(losses: Mapping[str, int]) -> list[str]:
    """Return the numbers of losses of each severity that there are, as words."""
    return [f"{losses[severity]:,} {severity}" for severity in SEVERITIES if losses.get(severity)]


@lru_cache(maxsize=4_096)
def pattern_of(path: str) -> str:
    """Return the path with [*] for every index or id: the same place in all messages is one row of the report."""
    return _INDEX.sub("[*]", path)
