"""Losses (law 2): what was lost, how badly and why, with its JSON path in the source."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

Severity = Literal["dropped", "degraded", "invented", "noted"]
SEVERITIES: tuple[Severity, ...] = ("dropped", "degraded", "invented", "noted")
"""Worst first."""


class Loss(Struct, frozen=True, order=True, gc=False):
    """One thing that a conversion changed, added or left out.

    `dropped`: the target never sees it. `degraded`: it arrives in a poorer form. `invented`: the target requires
    something that the source does not have, so it was added. `noted`: no content is lost, only a provider's bookkeeping
    about its answer (ids, times, tiers, counts that the target does not keep apart), or what a log of an agent records
    beside its messages. What the model saw but the log never contained is noted too.
    """

    path: str
    what: str
    severity: Severity
    why: str

    @property
    def refusable(self) -> bool:
        """Whether `strict` refuses it. Only notes are accepted."""
        return self.severity != "noted"

    def __str__(self) -> str:
        return f"{self.severity:9} {self.path}: {self.what} ({self.why})"


def render_losses(losses: Iterable[Loss]) -> str:
    """A text table: one line per loss, worst first."""
    rows = sorted(losses, key=lambda loss: (SEVERITIES.index(loss.severity), loss.path))
    if not rows:
        return "nothing was lost"
    path_width = min(max(len(row.path) for row in rows), 60)
    what_width = min(max(len(row.what) for row in rows), 40)
    return "\n".join(f"{row.severity:9} {row.path:{path_width}}  {row.what:{what_width}}  {row.why}" for row in rows)
