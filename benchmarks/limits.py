"""Limits of each figure, as multiples of the floor unless stated otherwise. `--check` enforces them.

They are for the compiled core, which releases ship. The source is about twice as slow.
"""

from dataclasses import dataclass
from typing import Final, Literal

from benchmarks.bodies import Format

Metric = Literal["p50", "p90", "p99", "max"]
Verdict = Literal["within", "known", "over"]
"""A figure within its limit, over a limit that is known not to be met, or over what was reached before."""


def verdict(value: float, most: float, reached: float | None) -> Verdict:
    if value <= most:
        return "within"
    return "over" if reached is None or value > reached else "known"


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit on one figure of one suite, over all of its rows together or (`each_row`) for every row."""

    suite: str
    metric: Metric
    most: float
    each_row: bool = False
    reached: float | None = None
    """What is reached if `most` is not, with room for noise. `--check` fails above it, and reports what is between."""

    def judge(self, value: float) -> Verdict:
        return verdict(value, self.most, self.reached)


VENDOR_REQUESTS: Final = "recorded requests, vendors' own formats"
COMPATIBLE_REQUESTS: Final = "recorded requests, compatible servers"
NEW_TOOLS: Final = "recorded requests, tools never seen before"
AGENTS: Final = "coding agents' requests"
VENDOR_RESPONSES: Final = "recorded responses, vendors' own formats"
COMPATIBLE_RESPONSES: Final = "recorded responses, compatible servers"
VENDOR_STREAMS: Final = "recorded streams, vendors' own formats"
COMPATIBLE_STREAMS: Final = "recorded streams, compatible servers"
STORED: Final = "stored conversations, line by line"
OWN: Final = "your own"

LIMITS: Final = (
    Limit(VENDOR_REQUESTS, "p50", 6.0),
    Limit(VENDOR_REQUESTS, "p90", 11.0),
    Limit(VENDOR_REQUESTS, "p99", 22.0),
    Limit(COMPATIBLE_REQUESTS, "p50", 7.0),
    Limit(COMPATIBLE_REQUESTS, "p90", 16.0),
    Limit(COMPATIBLE_REQUESTS, "p99", 32.0),
    Limit(NEW_TOOLS, "p50", 9.0),
    Limit(AGENTS, "p50", 3.0, each_row=True),
    Limit(VENDOR_RESPONSES, "p50", 5.0),
    Limit(VENDOR_RESPONSES, "p90", 11.0),
    Limit(COMPATIBLE_RESPONSES, "p50", 5.0, reached=6.0),
    Limit(COMPATIBLE_RESPONSES, "p90", 11.0),
    Limit(VENDOR_STREAMS, "p50", 4.0, each_row=True, reached=11.0),
    Limit(COMPATIBLE_STREAMS, "p50", 4.0),
    Limit(STORED, "p50", 6.0),
)

READING_LOSSES: Final = 0.15
"""Reading `.losses` of all bodies of a suite may take this share of their conversion on top."""
READING_LOSSES_REACHED: Final = {AGENTS: 0.2}
"""What is reached where this is not met: bodies with many losses, whose tools are not converted again."""

# The best figure of another library on the same bodies, body only, measured on 2026-11-16. Where the peers are
# installed, their figures of the same run count instead.
BEST_PEERS: Final[dict[tuple[Format, Format], tuple[str, float]]] = {
    ("openai-chat", "anthropic-messages"): ("any-llm", 6.6),
    ("anthropic-messages", "openai-chat"): ("any-llm", 4.2),
    ("gemini", "openai-chat"): ("litellm", 7.5),
}
