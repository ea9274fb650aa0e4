"""Stores of cached answers: memory, the gateway's database, or Redis. Each is bounded."""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import Any, Protocol

from dragoman.drivers.credentials import import_extra
from dragoman.gateway.state.base import Unavailable
from dragoman.gateway.state.sql import Database

_PATIENCE = 1.0
"""Time limit for Redis in seconds: a slower cache is useless."""
_PREFIX = "dragoman:answers:"
_PRUNED_EVERY = 50


class AnswerStore(Protocol):
    """Stores bytes under a digest, for a while. `find` and `keep` raise `Unavailable`."""

    async def find(self, key: str) -> bytes | None: ...

    async def keep(self, key: str, answer: bytes, seconds: float) -> None: ...

    async def close(self) -> None: ...


class MemoryAnswers:
    """Answers in the memory of one process; the least recently used ones are evicted."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._size = 0
        self._answers: OrderedDict[str, tuple[float, bytes]] = OrderedDict()

    async def find(self, key: str) -> bytes | None:
        found = self._answers.get(key)
        if found is None:
            return None
        if found[0] <= time.monotonic():
            self._drop(key)
            return None
        self._answers.move_to_end(key)
        return found[1]

    async def keep(self, key: str, answer: bytes, seconds: float) -> None:
        if key in self._answers:
            self._drop(key)
        self._answers[key] = (time.monotonic() + seconds, answer)
        self._size += len(key) + len(answer)
        while self._size > self._most and self._answers:
            self._drop(next(iter(self._answers)))

    def _drop(self, key: str) -> None:
        self._size -= len(key) + len(self._answers.pop(key)[1])

    async def close(self) -> None:
        self._answers.clear()


class SqlAnswers:
    """Answers in the gateway's database, for all that share it. The caller that opened the database closes it."""

    def __init__(self, database: Database, most_bytes: int) -> None:
        self._database = database
        self._most = most_bytes
        self._kept = 0

    async def find(self, key: str) -> bytes | None:
        rows = await self._database.rows(
            "SELECT answer FROM gateway_answers WHERE key = ? AND until > ?", (key, time.time())
        )
        return bytes(rows[0][0]) if rows else None

    async def keep(self, key: str, answer: bytes, seconds: float) -> None:
        await self._database.rows(
            "INSERT INTO gateway_answers (key, until, size, answer) VALUES (?, ?, ?, ?) ON CONFLICT (key) DO UPDATE "
            "SET until = excluded.until, size = excluded.size, answer = excluded.answer",
            (key, time.time() + seconds, len(answer), answer),
        )
        self._kept += 1
        if self._kept % _PRUNED_EVERY == 0:
            await self._prune()

    async def _prune(self) -> None:
        """Delete expired answers, then those that expire first, until the rest fits."""
        await self._database.rows("DELETE FROM gateway_answers WHERE until <= ?", (time.time(),))
        await self._database.rows(
            "DELETE FROM gateway_answers WHERE key IN (SELECT key FROM (SELECT key, "
            "sum(size) OVER (ORDER BY until DESC, key) AS total FROM gateway_answers) AS sums WHERE total > ?)",
            (self._most,),
        )

    async def close(self) -> None:
        """Do nothing: the ledger closes the database."""


class RedisAnswers:
    """Answers of all gateways that share a Redis, which expires them; its `maxmemory` bounds their size."""

    def __init__(self, url: str) -> None:
        package = import_extra("redis.asyncio", "redis")
        self._problem: type[Exception] = import_extra("redis.exceptions", "redis").RedisError
        self._client: Any = package.from_url(url, socket_timeout=_PATIENCE, socket_connect_timeout=_PATIENCE)

    async def find(self, key: str) -> bytes | None:
        try:
            found: bytes | None = await self._client.get(_PREFIX + key)
        except (self._problem, OSError, TimeoutError) as error:
            raise Unavailable(f"Redis: {type(error).__name__}") from error
        return found

    async def keep(self, key: str, answer: bytes, seconds: float) -> None:
        try:
            await self._client.set(_PREFIX + key, answer, px=max(1, round(seconds * 1000)))
        except (self._problem, OSError, TimeoutError) as error:
            raise Unavailable(f"Redis: {type(error).__name__}") from error

    async def close(self) -> None:
        await self._client.aclose()
