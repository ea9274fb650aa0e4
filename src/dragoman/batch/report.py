"""The report of a job, as a value, as JSON and as a page."""

from __future__ import annotations

from msgspec import Struct

from dragoman.batch.tally import Tally
from dragoman.loss import SEVERITIES


class Report(Struct, frozen=True, kw_only=True):
    """The result of a job. `digests` has one per shard, of its records, in order: equal for equal output.

    `seconds` are those of the last run; `resumed` counts the records that an earlier, interrupted run converted.
    """

    version: str
    target: str
    sources: list[str]
    output: str
    seconds: float
    resumed: int = 0
    shards: int
    digests: list[str]
    tally: Tally

    @property
    def records_per_second(self) -> float:
        return (self.tally.records - self.resumed) / self.seconds if self.seconds else 0.0

    def by_severity(self) -> dict[str, int]:
        """Return how many losses there were of each severity, worst first."""
        counts = dict.fromkeys(SEVERITIES, 0)
        for loss in self.tally.losses:
            counts[loss.severity] += loss.count
        return {str(severity): count for severity, count in counts.items()}

    def summary(self) -> str:
        """Return one line for people."""
        tally = self.tally
        parts = [f"{tally.converted:,} of {tally.records:,} records converted to {self.target}"]
        parts += [f"{count:,} {name}" for name, count in self.by_severity().items() if count]
        if tally.rejected:
            parts.append(f"{tally.rejected:,} rejected")
        if tally.left_out:
            parts.append(f"{tally.left_out:,} left out by --filter")
        if self.resumed:
            parts.append(f"{self.resumed:,} in an earlier run")
        return f"{', '.join(parts)}; {self.seconds:.1f} s, {self.records_per_second:,.0f} records/s"

    def page(self) -> bytes:
        """Return the report as one self-contained HTML file."""
        from dragoman.batch.report_page import render_page  # noqa: PLC0415 - most callers never look at it

        return render_page(self).encode()
