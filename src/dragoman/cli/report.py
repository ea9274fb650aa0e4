"""Reports of losses, printed to stderr when the command has finished."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable
from typing import IO, Literal, NamedTuple, TypeAlias

from msgspec import Struct

from dragoman.cli.output import pour, spool
from dragoman.ir.values import encode_json
from dragoman.loss import SEVERITIES, Loss, Severity, render_losses
from dragoman.terminal import align_columns

Style: TypeAlias = Literal["none", "table", "json"]

_INDEX = re.compile(r"\[\d+\]")
_MOST_ROWS = 200


class Crossing(
    Struct, frozen=True, kw_only=True, omit_defaults=True, rename={"source": "from", "target": "to", "path": "send_to"}
):
    """One conversion, as in `--report json`. `path` and `headers` say where and how the body would be sent.

    `failed` is the end of a stream that broke off or ended in an error.
    """

    line: int | None = None
    source: str
    target: str
    kind: str
    path: str = ""
    headers: dict[str, str] = {}
    refused: str | None = None
    failed: str | None = None
    losses: tuple[Loss, ...]


class Report:
    """Collects conversions and prints at the end."""

    def add(self, crossing: Crossing) -> None:
        raise NotImplementedError

    def publish(self) -> None:
        raise NotImplementedError

    def close(self) -> None:
        """Discards what was not published."""


def count_losses(losses: Iterable[Loss]) -> str:
    """`2 dropped, 1 invented`, or `nothing lost`."""
    found = Counter(loss.severity for loss in losses)
    return describe_counts(found)


def describe_counts(found: Counter[Severity]) -> str:
    return ", ".join(f"{found[severity]} {severity}" for severity in SEVERITIES if found[severity]) or "nothing lost"


def report_for(style: Style, *, several: bool) -> Report:
    if style == "json":
        return JsonReport()
    if style == "none":
        return Reminder()
    return GroupedTables() if several else Tables()


class Reminder(Report):
    """Without --report: one line that counts the losses, because nothing is lost silently."""

    def __init__(self) -> None:
        self._found: Counter[Severity] = Counter()

    def add(self, crossing: Crossing) -> None:
        self._found.update(loss.severity for loss in crossing.losses)

    def publish(self) -> None:
        if self._found:
            print(f"dragoman: {describe_counts(self._found)}; list them with --report", file=sys.stderr)


class Tables(Report):
    """A table per conversion."""

    def __init__(self) -> None:
        self._sections: list[str] = []

    def add(self, crossing: Crossing) -> None:
        refused = f"refused: {crossing.refused}" if crossing.refused else ""
        title = f"{crossing.source} → {crossing.target} ({crossing.kind}): {refused or count_losses(crossing.losses)}"
        self._sections.append(f"{title}\n{render_losses(crossing.losses)}" if crossing.losses else title)

    def publish(self) -> None:
        print("\n\n".join(self._sections), file=sys.stderr)


class _Group(NamedTuple):
    target: str
    loss: Loss


class GroupedTables(Report):
    """One table per target for all lines: the same loss on many lines is one row that counts them."""

    def __init__(self) -> None:
        self._seen: dict[_Group, tuple[int, int]] = {}
        self._targets: dict[str, Counter[Severity]] = {}
        self._lines: Counter[str] = Counter()

    def add(self, crossing: Crossing) -> None:
        self._lines[crossing.target] += 1
        self._targets.setdefault(crossing.target, Counter()).update(loss.severity for loss in crossing.losses)
        for loss in crossing.losses:
            group = _Group(crossing.target, Loss(_INDEX.sub("[*]", loss.path), loss.what, loss.severity, loss.why))
            times, first = self._seen.get(group, (0, crossing.line or 0))
            self._seen[group] = (times + 1, first)

    def publish(self) -> None:
        for target, found in self._targets.items():
            print(f"→ {target}, {self._lines[target]} lines: {describe_counts(found)}", file=sys.stderr)
            for row in self._rows(target):
                print(row, file=sys.stderr)

    def _rows(self, target: str) -> Iterable[str]:
        groups = sorted(
            ((times, first, group.loss) for group, (times, first) in self._seen.items() if group.target == target),
            key=lambda row: (SEVERITIES.index(row[2].severity), -row[0], row[2].path),
        )
        rows = []
        for times, first, loss in groups[:_MOST_ROWS]:
            where = f"line {first}" if times == 1 else f"{times} times from line {first}"
            rows.append((where, loss.severity, loss.path, loss.what, loss.why))
        yield from align_columns(rows, widest=50)
        if len(groups) > _MOST_ROWS:
            yield f"… and {len(groups) - _MOST_ROWS} more kinds of loss; --report json has them all"


class JsonReport(Report):
    """One JSON object per conversion, each on a line."""

    def __init__(self) -> None:
        self._waiting: IO[bytes] = spool()

    def add(self, crossing: Crossing) -> None:
        self._waiting.write(encode_json(crossing) + b"\n")

    def publish(self) -> None:
        pour(self._waiting, sys.stderr.buffer)

    def close(self) -> None:
        self._waiting.close()
