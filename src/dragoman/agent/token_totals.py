"""Tokens, added up per model."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from dragoman.ir import Usage

_COUNTS = ("input", "output", "cached", "cache_written", "reasoning", "image", "total")


class Account(Struct, frozen=True):
    """Requests to one model and the tokens that it reported. Requests without usage are not counted."""

    calls: int = 0
    usage: Usage = Usage()

    def plus(self, usage: Usage) -> Account:
        return Account(self.calls + 1, add_usage(self.usage, usage))


def add_usage(one: Usage, other: Usage) -> Usage:
    """Add two usages. Counts that neither reported stay absent; if one has a total, the other's is computed."""
    sums: dict[str, Any] = {name: _sum(getattr(one, name), getattr(other, name)) for name in _COUNTS}
    if sums["total"] is not None:
        sums["total"] = tokens_of(one) + tokens_of(other)
    return Usage(**{name: count for name, count in sums.items() if count is not None})


def _sum(one: int | None, other: int | None) -> int | None:
    return None if one is None and other is None else (one or 0) + (other or 0)


def tokens_of(usage: Usage) -> int:
    """Return how much of the context window the request used."""
    return usage.total if usage.total is not None else usage.input + usage.output
