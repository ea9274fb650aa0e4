"""What did not cross, told on stderr once the command knows how it ends."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable
from typing import IO, Literal, NamedTuple, TypeAlias

from msgspec import Struct

from dragoman.cli.output import pour, spool
from dragoman.cli.table import aligned
from dragoman.ir.values import encode_json
from dragoman.loss import SEVERITIES, Loss, Severity, render_losses

Style: TypeAlias = Literal["none", "table", "json"]

_INDEX = re.compile(r"\[\d+\]")
_MOST_ROWS = 200


class Crossing(
    Struct, frozen=True, kw_only=True, omit_defaults=True, rename={"source": "from", "target": "to", "path": "send_to"}
):
    """One conversion, as `--report json` tells it. `path` and `headers` say where and how the body would be sent.

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
    """Hears of every conversion, and speaks at the end."""

    def add(self, crossing: Crossing) -> None:
        raise NotImplementedError

    def publish(self) -> None:
        raise NotImplementedError

    def close(self) -> None:
        """Forgets what was not published."""


def counted(losses: Iterable[Loss]) -> str:
    """`2 dropped, 1 invented`, or `nothing lost`."""
    found = Counter(loss.severity for loss in losses)
    return summed(found)


def summed(found: Counter[Severity]) -> str:
    return ", ".join(f"{found[severity]} {severity}" for severity in SEVERITIES if found[severity]) or "nothing lost"


def report_for(style: Style, *, several: bool) -> Report:
    if style == "json":
        return JsonReport()
    if style == "none":
        return Reminder()
    return GroupedTables() if several else Tables()


class Reminder(Report):
    """Without --report, one line says that there are losses, because nothing vanishes in silence."""

    def __init__(self) -> None:
        self._found: Counter[Severity] = Counter()

    def add(self, crossing: Crossing) -> None:
        self._found.update(loss.severity for loss in crossing.losses)

    def publish(self) -> None:
        if self._found:
            print(f"dragoman: {summed(self._found)}; --report tells what and why", file=sys.stderr)


class Tables(Report):
    """A table per conversion."""

    def __init__(self) -> None:
        self._sections: list[str] = []

    def add(self, crossing: Crossing) -> None:
        refused = f"refused: {crossing.refused}" if crossing.refused else ""
        title = f"{crossing.source} → {crossing.target} ({crossing.kind}): {refused or counted(crossing.losses)}"
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
            print(f"→ {target}, {self._lines[target]} lines: {summed(found)}", file=sys.stderr)
            for row in self._rows(target):
                print(row, file=sys.stderr)

    def _rows(self, target: str) -> Iterable[str]:
        groups = sorted(
            ((times, first, group.loss) for group, (times, first) in self._seen.items() if group.target == target),
            key=lambda row: (SEVERITIES.index(row[2].severity), -row[0], row[2].path),
        )
        shown = groups[:_MOST_ROWS]
        yield from aligned(
            [(_on_lines(*seen), loss.severity, loss.path, loss.what, loss.why) for *seen, loss in shown], widest=50
        )
        if len(groups) > _MOST_ROWS:
            yield f"… and {len(groups) - _MOST_ROWS} more kinds of loss; --report json has them all"


def _on_lines(times: int, first: int) -> str:
    return f"line {first}" if times == 1 else f"{times} times from line {first}"


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
