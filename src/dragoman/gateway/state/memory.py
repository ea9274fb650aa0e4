"""Rates and concurrency limits in the memory of one process."""

from __future__ import annotations

import time
from collections import deque

from dragoman.gateway.state.base import Exceeded, Grant, Ticket, Timing

IN_MEMORY = "memory"
"""The lease of every ticket that `MemoryMeters` issues."""


class _Meter:
    __slots__ = ("arrivals", "tokens", "working")

    def __init__(self) -> None:
        self.arrivals: deque[float] = deque()
        self.tokens: deque[tuple[float, int]] = deque()
        self.working = 0


class MemoryMeters:
    """Needs no leases: if the process dies, so do its counts."""

    def __init__(self, timing: Timing | None = None) -> None:
        self._window = (timing or Timing()).window
        self._meters: dict[str, _Meter] = {}

    async def enter(self, grant: Grant) -> Ticket:
        meter = self._meters.setdefault(grant.id, _Meter())
        now = time.monotonic()
        while meter.arrivals and now - meter.arrivals[0] >= self._window:
            meter.arrivals.popleft()
        while meter.tokens and now - meter.tokens[0][0] >= self._window:
            meter.tokens.popleft()
        if grant.tokens_per_minute is not None and sum(count for _, count in meter.tokens) >= grant.tokens_per_minute:
            oldest = meter.tokens[0][0] if meter.tokens else now
            raise Exceeded("tokens", oldest + self._window - now)
        if grant.concurrent is not None and meter.working >= grant.concurrent:
            raise Exceeded("concurrent", 1.0)
        if grant.requests_per_minute is not None and len(meter.arrivals) >= grant.requests_per_minute:
            oldest = meter.arrivals[0] if meter.arrivals else now
            raise Exceeded("requests", oldest + self._window - now)
        if grant.requests_per_minute is not None:
            meter.arrivals.append(now)
        meter.working += 1
        return Ticket(grant.id, IN_MEMORY, grant.tokens_per_minute is not None)

    async def leave(self, ticket: Ticket, tokens: int) -> None:
        meter = self._meters[ticket.key]
        meter.working -= 1
        if ticket.counts_tokens and tokens:
            meter.tokens.append((time.monotonic(), tokens))

    async def beat(self) -> None:
        """Do nothing: there are no leases to renew."""

    async def close(self) -> None:
        self._meters.clear()
