"""Counts of a conversion: records, losses by path, rejects, sizes. Tallies of shards add up to that of the job."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from msgspec import Struct, field

from dragoman.loss import SEVERITIES, Severity

EXAMPLES = 3
"""Records named per kind of loss and per reason for rejection."""
MAX_KINDS = 2_000
"""Kinds of loss that one tally counts separately; further kinds are counted together."""


class Example(Struct, frozen=True):
    """Where a loss or reject occurred: the source, the line (or row) in it, the JSON path in that record."""

    source: str
    line: int
    path: str


class LossCount(Struct):
    """How often one kind of loss occurred. Indices in `path` are written as [*]."""

    severity: Severity
    path: str
    what: str
    why: str
    count: int = 0
    records: int = 0
    examples: list[Example] = []


class RejectCount(Struct):
    """How often records were rejected for one reason."""

    reason: str
    count: int = 0
    examples: list[Example] = []


class Sizes(Struct):
    """A histogram of byte sizes: `buckets[i]` counts sizes below 2**i."""

    total: int = 0
    largest: int = 0
    buckets: list[int] = []

    def merge(self, other: Sizes) -> None:
        self.total += other.total
        self.largest = max(self.largest, other.largest)
        self.buckets.extend([0] * (len(other.buckets) - len(self.buckets)))
        for bucket, count in enumerate(other.buckets):
            self.buckets[bucket] += count


def sizes_of(sizes: list[int]) -> Sizes:
    """Return the histogram of many sizes."""
    if not sizes:
        return Sizes()
    counted = Counter(map(int.bit_length, sizes))
    return Sizes(sum(sizes), max(sizes), [counted[bucket] for bucket in range(max(counted) + 1)])


class Tally(Struct):
    """The counts of one shard, or of a whole job."""

    lines: int = 0
    """Lines or rows read, including blank lines: the line numbers of the next shard begin after them."""
    records: int = 0
    converted: int = 0
    rejected: int = 0
    left_out: int = 0
    """Converted, and then dropped because of --filter."""
    not_sampled: int = 0
    lossless: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    estimated_tokens: int = 0
    """A quarter of the bytes of converted requests, which do not report tokens."""
    formats: dict[str, int] = field(default_factory=dict)
    models: dict[str, int] = field(default_factory=dict)
    """Models that requests named, if the target has one model per job."""
    losses: list[LossCount] = []
    rejects: list[RejectCount] = []
    input_sizes: Sizes = field(default_factory=Sizes)
    output_sizes: Sizes = field(default_factory=Sizes)

    def merge(self, other: Tally) -> None:
        """Add the counts of another tally. The first examples stay, so the order of merging decides which are shown."""
        for name in _COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name, count in other.formats.items():
            self.formats[name] = self.formats.get(name, 0) + count
        for name, count in other.models.items():
            self.models[name] = self.models.get(name, 0) + count
        self.input_sizes.merge(other.input_sizes)
        self.output_sizes.merge(other.output_sizes)
        _merge_losses(self.losses, other.losses)
        _merge_rejects(self.rejects, other.rejects)

    def sort(self) -> None:
        """Sort losses and rejects: worst and most frequent first."""
        self.losses.sort(
            key=lambda loss: (SEVERITIES.index(loss.severity), -loss.count, loss.path, loss.what, loss.why)
        )
        self.rejects.sort(key=lambda reject: (-reject.count, reject.reason))


_COUNTS = (
    "lines", "records", "converted", "rejected", "left_out", "not_sampled", "lossless",
    "input_tokens", "output_tokens", "estimated_tokens",
)  # fmt: skip


def _merge_losses(into: list[LossCount], others: Iterable[LossCount]) -> None:
    known = {(loss.severity, loss.path, loss.what, loss.why): loss for loss in into}
    for loss in others:
        key = (loss.severity, loss.path, loss.what, loss.why)
        mine = known.get(key)
        if mine is None:
            mine = known[key] = LossCount(*key)
            into.append(mine)
        mine.count += loss.count
        mine.records += loss.records
        mine.examples = (mine.examples + loss.examples)[:EXAMPLES]


def _merge_rejects(into: list[RejectCount], others: Iterable[RejectCount]) -> None:
    known = {reject.reason: reject for reject in into}
    for reject in others:
        mine = known.get(reject.reason)
        if mine is None:
            mine = known[reject.reason] = RejectCount(reject.reason)
            into.append(mine)
        mine.count += reject.count
        mine.examples = (mine.examples + reject.examples)[:EXAMPLES]
