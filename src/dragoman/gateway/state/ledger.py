"""What a gateway holds of its state: keys it has just read, usage that is not written yet, its place under limits."""

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
"""Seconds for which what was read of a key counts: so long may one that was revoked still be good."""
_MOST_REMEMBERED = 10_000
_WRITTEN_EVERY = 1.0
_TOGETHER = 500
_MOST_WAITING = 100_000
_WRITING = 3.0
"""Seconds that an answer waits until its cost is written; an unreachable database delays no request for longer."""


class Ledger:
    """One for each process."""

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
        """Whether also requests without a key are written."""
        self._meters = meters
        self._timing = timing or Timing()
        self._in_memory: Meters = meters if isinstance(meters, MemoryMeters) else MemoryMeters(self._timing)
        """Counts where the disk of the database fails."""
        self._failing = False
        self._grants: dict[str, tuple[float, Grant | None]] = {}
        self._waiting: deque[Entry] = deque()
        self._reserved: dict[str, Reservation] = {}
        """By the ids of requests whose cost is not written yet."""
        self._most_waiting = most_waiting
        self._writing = asyncio.Lock()
        self._hurry = asyncio.Event()
        self.locked = False
        """Whether there are keys, as far as is known; once there are, it stays so."""
        self.dropped = 0
        """Requests whose usage was never written: the database was away for too long."""
        self.problem: Callable[[str], None] = lambda _words: None
        """Called when the database cannot be reached."""
        self.away = ""
        """Why the database could not be reached when it was last asked; empty while it can."""

    @property
    def unwritten(self) -> int:
        """Requests whose usage could not be written, and waits until it can."""
        return len(self._waiting) if self._failing else 0

    async def close(self) -> None:
        with suppress(Unavailable):
            await self.flush()
        if self._waiting:
            self.problem(f"the usage of {len(self._waiting)} requests was never written")
        await self._meters.close()
        await self.store.close()

    async def tend(self) -> None:
        """As long as the gateway runs."""
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
                    if self.locked and self.store.shared:  # asked also while no request comes: health has to be true
                        await self.store.any_keys()
                await self.flush()
                await self.look()
                self.away = ""
            except Unavailable as error:
                # From a disk that is full keys can still be read.
                self.away = "" if isinstance(error, DiskFailed | Unwritable) else str(error)
                self.problem(str(error))
            except Exception as error:  # noqa: BLE001 - whatever it was, leases have to be kept up
                self.problem(f"{type(error).__name__}: {error}")

    # ── keys ──

    async def look(self) -> None:
        """Whether there are keys by now: a gateway that began without closes with the first."""
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
        """What the requests that have ended cost, here and elsewhere."""
        if self._waiting:
            await self.flush()
        return await self.store.spent(key_id)

    async def reserve(self, grant: Grant, request: str, cost: float, tokens: int = 0) -> None:
        """Count the expected cost and tokens of a request as spent until the true ones are written.

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
        """Raises `Exceeded` and `Unavailable`. On a disk that fails, this process counts its own requests in memory."""
        try:
            return await self._meters.enter(grant)
        except DiskFailed as error:
            self.problem(f"{error}; the limits of {grant.name!r} are counted in memory")
            return await self._in_memory.enter(grant)

    async def leave(self, ticket: Ticket, tokens: int) -> None:
        """A lease that could not be given back runs out."""
        meters = self._in_memory if ticket.lease == IN_MEMORY else self._meters
        with suppress(Unavailable):
            await meters.leave(ticket, tokens)

    # ── usage ──

    def add(self, entry: Entry) -> None:
        """Written soon, together with others; at once what a key has spent, as other gateways have to know it."""
        self._wait(entry)
        if entry.id in self._reserved or (entry.key_id and entry.cost):
            self._hurry.set()

    def _wait(self, entry: Entry) -> None:
        """The oldest make room where too many wait."""
        self._waiting.append(entry)
        if len(self._waiting) > self._most_waiting:
            self._reserved.pop(self._waiting.popleft().id, None)
            self.dropped += 1

    async def settle(self, entry: Entry) -> None:
        """Written when this returns, unless the database is away: then it is written later."""
        self._wait(entry)
        try:
            async with asyncio.timeout(_WRITING):
                await self.flush()
        except (Unavailable, TimeoutError) as error:
            words = str(error) or "the database does not answer in time"
            self.problem(f"{words}; the usage of {len(self._waiting)} requests waits to be written")

    async def flush(self) -> None:
        """Whatever waits is written in one transaction: who waits for a turn finds that others did it for him."""
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
                except BaseException:  # perhaps written and perhaps not: each id counts once, so it is tried again
                    self._waiting.extendleft(reversed(batch))
                    raise
                for entry in batch:
                    self._reserved.pop(entry.id, None)
            self._failing = False

    async def _write(self, batch: list[Entry]) -> None:
        """One that the database will never take must not keep back the others."""
        try:
            await self.store.add(batch)
        except Unwritable as error:
            if len(batch) > 1:
                for entry in batch:
                    await self._write([entry])
                return
            self.dropped += 1
            self.problem(f"{batch[0].id}: {error}")
