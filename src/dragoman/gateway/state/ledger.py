"""The part of the state that a gateway holds in memory: cached keys, unwritten usage, reservations and limits."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from dragoman.gateway.state.base import (
    Amounts,
    DiskFailed,
    Entry,
    Grant,
    Meters,
    Reservation,
    Store,
    Ticket,
    Timing,
    Unavailable,
    Unwritable,
    check_budget,
)
from dragoman.gateway.state.memory import IN_MEMORY, MemoryMeters

_REMEMBERED = 2.0
"""Seconds for which a key is cached: a revoked key may stay valid this long."""
_MOST_REMEMBERED = 10_000
_WRITTEN_EVERY = 1.0
_TOGETHER = 500
_MOST_WAITING = 100_000
_WRITING = 3.0
"""Maximum seconds that an answer waits for its cost to be written, even if the database is unreachable."""


class Ledger:
    """The keys, limits and usage of one process."""

    def __init__(
        self,
        store: Store,
        meters: Meters,
        timing: Timing | None = None,
        *,
        keeps_all: bool = True,
        most_waiting: int = _MOST_WAITING,
    ) -> None:
        self.store = store
        self.keeps_all = keeps_all and store.shared
        """Whether requests without a key are written too."""
        self._meters = meters
        self._timing = timing or Timing()
        self._in_memory: Meters = meters if isinstance(meters, MemoryMeters) else MemoryMeters(self._timing)
        """Used if the disk of the database fails."""
        self._failing = False
        self._grants: dict[str, tuple[float, Grant | None]] = {}
        self._waiting: deque[Entry] = deque()
        self._reserved: dict[str, Reservation] = {}
        """Reservations by the ids of requests whose cost is not written yet."""
        self._most_waiting = most_waiting
        self._writing = asyncio.Lock()
        self._hurry = asyncio.Event()
        self.locked = False
        """Whether keys are required because the store has or had some; never becomes False again."""
        self.dropped = 0
        """Requests whose usage was lost because the database was unreachable for too long, or refused it."""
        self.problem: Callable[[str], None] = lambda _words: None
        """Called when the database cannot be reached."""
        self.away = ""
        """Why the last access to the database failed; empty if it succeeded."""

    @property
    def unwritten(self) -> int:
        """Requests whose usage waits to be written to the database."""
        return len(self._waiting) if self._failing else 0

    async def close(self) -> None:
        with suppress(Unavailable):
            await self.flush()
        if self._waiting:
            self.problem(f"the usage of {len(self._waiting)} requests was never written")
        await self._meters.close()
        await self.store.close()

    async def tend(self) -> None:
        """Write usage and renew leases, as long as the gateway runs."""
        loop = asyncio.get_running_loop()
        beaten = loop.time()
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(min(_WRITTEN_EVERY, self._timing.beat)):
                    await self._hurry.wait()
            self._hurry.clear()
            try:
                if loop.time() - beaten >= self._timing.beat * 0.9:
                    beaten = loop.time()
                    await self._meters.beat()
                    if self._reserved:
                        await self.store.renew(list(self._reserved), self._timing.lease)
                    if self.locked and self.store.shared:  # even without requests: health must be current
                        await self.store.any_keys()
                await self.flush()
                await self.refresh()
                self.away = ""
            except Unavailable as error:
                # Keys can still be read from a full disk.
                self.away = "" if isinstance(error, DiskFailed | Unwritable) else str(error)
                self.problem(str(error))
            except Exception as error:  # noqa: BLE001 - leases must be renewed in any case
                self.problem(f"{type(error).__name__}: {error}")

    # ── keys ──

    async def refresh(self) -> None:
        """Check whether there are keys now: a gateway that started without any requires them from the first one on."""
        if self.store.shared and not self.locked:
            self.locked = await self.store.any_keys()

    async def grant(self, digest: str) -> Grant | None:
        now = time.monotonic()
        until, grant = self._grants.get(digest, (0.0, None))
        if now >= until:
            grant = await self.store.grant(digest)
            if len(self._grants) > _MOST_REMEMBERED:
                self._grants.clear()
            self._grants[digest] = (now + _REMEMBERED, grant)
        return grant

    # ── limits ──

    async def spent(self, key_id: str) -> float:
        """Return the cost of all finished requests, of this and other gateways."""
        if self._waiting:
            await self.flush()
        return await self.store.spent(key_id)

    async def reserve(self, grant: Grant, request: str, cost: float, tokens: int = 0) -> None:
        """Count the expected cost and tokens of a request as spent until the actual ones are written.

        Raises `OverBudget` and `Unavailable`. A database on this machine that cannot be written (a full or read-only
        disk) can still be read: then this process counts its own requests in memory.
        """
        new = Reservation(
            id=request,
            key_id=grant.id,
            budget=grant.budget,
            amount=cost,
            seconds=self._timing.lease,
            token_budget=grant.token_budget,
            tokens=tokens,
        )
        try:
            await self.store.reserve(new)
        except DiskFailed as error:
            self.problem(f"{error}; the budget of {grant.name!r} is counted in memory")
            await self._reserve_in_memory(new)
        self._reserved[request] = new

    async def _reserve_in_memory(self, new: Reservation) -> None:
        ended = {entry.id: entry for entry in self._waiting if entry.key_id == new.key_id}
        others = [one for one in self._reserved.values() if one.key_id == new.key_id and one.id not in ended]
        spent = Amounts(
            await self.store.spent(new.key_id) + sum(entry.cost or 0.0 for entry in ended.values()),
            await self.store.spent_tokens(new.key_id) + sum(entry.tokens for entry in ended.values()),
        )
        reserved = Amounts(sum(one.amount for one in others), sum(one.tokens for one in others))
        check_budget(new, spent=spent, reserved=reserved, others=len(others))

    async def enter(self, grant: Grant) -> Ticket:
        """Admit a request. Raises `Exceeded` and `Unavailable`. If the disk fails, limits are counted in memory."""
        try:
            return await self._meters.enter(grant)
        except DiskFailed as error:
            self.problem(f"{error}; the limits of {grant.name!r} are counted in memory")
            return await self._in_memory.enter(grant)

    async def leave(self, ticket: Ticket, tokens: int) -> None:
        """End a request. A lease that could not be released expires."""
        meters = self._in_memory if ticket.lease == IN_MEMORY else self._meters
        with suppress(Unavailable):
            await meters.leave(ticket, tokens)

    # ── usage ──

    def add(self, entry: Entry) -> None:
        """Queue usage to be written in a batch; immediately if a key has spent, so that other gateways see it."""
        self._wait(entry)
        if entry.id in self._reserved or (entry.key_id and entry.cost):
            self._hurry.set()

    def _wait(self, entry: Entry) -> None:
        """Add an entry to the queue, and drop the oldest one if it is full."""
        self._waiting.append(entry)
        if len(self._waiting) > self._most_waiting:
            self._reserved.pop(self._waiting.popleft().id, None)
            self.dropped += 1

    async def settle(self, entry: Entry) -> None:
        """Write usage now, or later if the database is unreachable."""
        self._wait(entry)
        try:
            async with asyncio.timeout(_WRITING):
                await self.flush()
        except (Unavailable, TimeoutError) as error:
            words = str(error) or "the database does not answer in time"
            self.problem(f"{words}; the usage of {len(self._waiting)} requests waits to be written")

    async def flush(self) -> None:
        """Write everything that waits, in batches. A call that waited for the lock may find it already written."""
        if not self._waiting and not self._writing.locked():
            return
        async with self._writing:
            left = len(self._waiting)
            self._failing = left > 0
            while left > 0:
                batch = [self._waiting.popleft() for _ in range(min(left, _TOGETHER))]
                left -= len(batch)
                try:
                    await self._write(batch)
                except BaseException:  # perhaps written: each id counts once, so retry
                    self._waiting.extendleft(reversed(batch))
                    raise
                for entry in batch:
                    self._reserved.pop(entry.id, None)
            self._failing = False

    async def _write(self, batch: list[Entry]) -> None:
        """Write a batch; an entry that the database can never store must not block the others."""
        try:
            await self.store.add(batch)
        except Unwritable as error:
            if len(batch) > 1:
                for entry in batch:
                    await self._write([entry])
                return
            self.dropped += 1
            self.problem(f"{batch[0].id}: {error}")
