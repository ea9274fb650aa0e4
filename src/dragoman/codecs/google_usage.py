"""Token counts of Google's APIs: thoughts are counted outside the output, and the total is a sum."""

from __future__ import annotations

from dragoman.ir import Completion, Usage
from dragoman.losses import LossLog


def fit_counts(usage: Usage, log: LossLog, completion: Completion) -> tuple[int, int | None, int]:
    """Return (thoughts, cached, total) as these APIs count them; logs counts that do not fit."""
    if usage.cache_written:
        log.note(completion, "usage.cache_written", "tokens written to a cache", "this API does not count them")
    thoughts = min(usage.reasoning or 0, usage.output)
    if thoughts != (usage.reasoning or 0):
        log.degrade(completion, "usage.reasoning", f"{usage.reasoning} reasoning tokens", "more than all output tokens")
    total = usage.input + usage.output
    if usage.total not in {None, total}:
        log.degrade(completion, "usage.total", f"total of {usage.total} tokens", "totals are sums in this API")
    cached = usage.cached
    if cached is not None and cached > usage.input:
        log.degrade(completion, "usage.cached", f"{cached} cached tokens", "more than all input tokens")
        cached = usage.input
    return thoughts, cached, total
