"""Keys, usage and stored responses in SQLite: a file that several processes may share, or memory."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Sequence

import msgspec
from msgspec import Struct

from dragoman.gateway.access import Grant
from dragoman.gateway.records import Record

_SCHEMA = """
CREATE TABLE IF NOT EXISTS keys (
  name TEXT PRIMARY KEY, digest TEXT UNIQUE NOT NULL, models TEXT NOT NULL, created REAL NOT NULL, expires REAL,
  requests_per_minute INTEGER, concurrent INTEGER, budget REAL, revoked REAL);
CREATE TABLE IF NOT EXISTS usage (
  time REAL NOT NULL, id TEXT NOT NULL, key TEXT NOT NULL, client TEXT NOT NULL, model TEXT NOT NULL,
  upstream TEXT NOT NULL, target TEXT NOT NULL, status INTEGER NOT NULL, seconds REAL NOT NULL,
  input INTEGER, output INTEGER, cached INTEGER, cost REAL);
CREATE INDEX IF NOT EXISTS usage_by_key ON usage (key, time);
CREATE TABLE IF NOT EXISTS responses (
  id TEXT PRIMARY KEY, owner TEXT NOT NULL, previous TEXT, created REAL NOT NULL, input BLOB NOT NULL,
  response BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS responses_by_time ON responses (created);
"""
_KEY_COLUMNS = "name, digest, models, expires, requests_per_minute, concurrent, budget"
_REMEMBERED = 2.0
"""Seconds for which what was read of keys and budgets counts: so long may a revoked key still be good elsewhere."""


class Kept(Struct, frozen=True):
    """A response that somebody may ask for again."""

    id: str
    owner: str
    previous: str | None
    input: bytes
    """Items, as a JSON array."""
    response: bytes


class KeyRow(Struct, frozen=True, kw_only=True):
    name: str
    models: tuple[str, ...]
    created: float
    expires: float | None
    revoked: float | None
    budget: float | None
    spent: float


class UsageRow(Struct, frozen=True, kw_only=True):
    key: str
    upstream: str
    model: str
    requests: int
    failed: int
    input: int
    output: int
    cost: float


class SqliteLedger:
    def __init__(self, file: str = "", *, most_responses: int = 10_000) -> None:
        self._database = sqlite3.connect(file or ":memory:", isolation_level=None, timeout=5.0)
        self._database.execute("PRAGMA journal_mode=WAL")
        self._database.execute("PRAGMA synchronous=NORMAL")
        self._database.executescript(_SCHEMA)
        self._keeps_usage = bool(file)
        self._most = most_responses
        self._grants: dict[str, tuple[float, Grant | None]] = {}
        self._any: tuple[float, bool] = (0.0, False)
        self._spent: dict[str, tuple[float, float]] = {}
        self._waiting: list[tuple[object, ...]] = []

    def close(self) -> None:
        self.flush()
        self._database.close()

    # ── keys ──

    def create(self, grant: Grant) -> None:
        """Raises `sqlite3.IntegrityError` when the name is taken."""
        models = msgspec.json.encode(grant.models).decode()
        self._database.execute(
            f"INSERT INTO keys ({_KEY_COLUMNS}, created) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608 - our own names
            (
                grant.name,
                grant.digest,
                models,
                grant.expires,
                grant.requests_per_minute,
                grant.concurrent,
                grant.budget,
                time.time(),
            ),
        )

    def revoke(self, name: str) -> bool:
        changed = self._database.execute(
            "UPDATE keys SET revoked = ? WHERE name = ? AND revoked IS NULL", (time.time(), name)
        )
        self._grants.clear()
        return changed.rowcount > 0

    def listed(self) -> list[KeyRow]:
        rows = self._database.execute(
            "SELECT name, models, created, expires, revoked, budget, "
            "(SELECT coalesce(sum(cost), 0) FROM usage WHERE usage.key = keys.name) FROM keys ORDER BY created"
        )
        return [
            KeyRow(
                name=name,
                models=tuple(msgspec.json.decode(models)),
                created=created,
                expires=expires,
                revoked=revoked,
                budget=budget,
                spent=spent,
            )
            for name, models, created, expires, revoked, budget, spent in rows
        ]

    def any_keys(self) -> bool:
        """Also when all were revoked: a gateway that had keys does not open by itself."""
        known, found = self._any
        now = time.monotonic()
        if not found and now >= known:
            found = self._database.execute("SELECT 1 FROM keys LIMIT 1").fetchone() is not None
            self._any = (now + _REMEMBERED, found)
        return found

    def grant(self, digest: str) -> Grant | None:
        now = time.monotonic()
        until, grant = self._grants.get(digest, (0.0, None))
        if now >= until:
            row = self._database.execute(
                f"SELECT {_KEY_COLUMNS} FROM keys WHERE digest = ? AND revoked IS NULL",  # noqa: S608 - our own names
                (digest,),
            ).fetchone()
            grant = None if row is None else _grant(row)
            if len(self._grants) > self._most:
                self._grants.clear()
            self._grants[digest] = (now + _REMEMBERED, grant)
        return grant

    # ── usage ──

    def spent(self, key: str) -> float:
        """All that has been written; costs of requests under way are known when they end."""
        self.flush()
        now = time.monotonic()
        until, spent = self._spent.get(key, (0.0, 0.0))
        if now >= until:
            row = self._database.execute("SELECT coalesce(sum(cost), 0) FROM usage WHERE key = ?", (key,)).fetchone()
            spent = float(row[0])
            self._spent[key] = (now + _REMEMBERED, spent)
        return spent

    def add(self, record: Record) -> None:
        if not self._keeps_usage and not record.key:
            return
        usage = record.usage
        counts = (None, None, None) if usage is None else (usage.input, usage.output, usage.cached)
        known = (record.id, record.key, record.client, record.model, record.upstream, record.target)
        self._waiting.append((time.time(), *known, record.status, record.seconds, *counts, record.cost))
        if record.cost and record.key in self._spent:
            until, spent = self._spent[record.key]
            self._spent[record.key] = (until, spent + record.cost)
        # What a key has spent others have to know; the rest can wait for company.
        if record.key or len(self._waiting) >= _TOGETHER:
            self.flush()

    def flush(self) -> None:
        """One transaction for many requests: each would cost a write to the disk."""
        if not self._waiting:
            return
        try:
            with self._database:
                self._database.execute("BEGIN")
                self._database.executemany(
                    "INSERT INTO usage VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", self._waiting
                )
        except sqlite3.OperationalError:  # somebody else writes for very long, or the disk is full: later
            del self._waiting[:-_MOST_WAITING]
        else:
            self._waiting.clear()

    def usage(self, since: float = 0.0) -> list[UsageRow]:
        rows = self._database.execute(
            "SELECT key, upstream, target, count(*), sum(status >= 400), coalesce(sum(input), 0), "
            "coalesce(sum(output), 0), coalesce(sum(cost), 0) FROM usage WHERE time >= ? "
            "GROUP BY key, upstream, target ORDER BY key, upstream, target",
            (since,),
        )
        names = UsageRow.__struct_fields__
        return [UsageRow(**dict(zip(names, row, strict=True))) for row in rows]

    # ── responses ──

    def keep(self, kept: Kept) -> None:
        self._database.execute(
            "INSERT OR REPLACE INTO responses VALUES (?, ?, ?, ?, ?, ?)",
            (kept.id, kept.owner, kept.previous, time.time(), kept.input, kept.response),
        )
        self._database.execute(
            "DELETE FROM responses WHERE id IN (SELECT id FROM responses ORDER BY created DESC LIMIT -1 OFFSET ?)",
            (self._most,),
        )

    def kept(self, id: str, owner: str) -> Kept | None:
        row = self._database.execute(
            "SELECT id, owner, previous, input, response FROM responses WHERE id = ? AND owner = ?", (id, owner)
        ).fetchone()
        return None if row is None else Kept(*row)

    def forget(self, id: str, owner: str) -> bool:
        gone = self._database.execute("DELETE FROM responses WHERE id = ? AND owner = ?", (id, owner))
        return gone.rowcount > 0

    def chain(self, id: str, owner: str) -> Iterator[Kept]:
        """A response and all before it, the last one first."""
        seen: set[str] = set()
        following: str | None = id
        while following is not None and following not in seen:
            seen.add(following)
            kept = self.kept(following, owner)
            if kept is None:
                return
            yield kept
            following = kept.previous


_TOGETHER = 50
_MOST_WAITING = 100_000


def _grant(row: Sequence[object]) -> Grant:
    fields = dict(zip(_KEY_COLUMNS.split(", "), row, strict=True))
    fields["models"] = tuple(msgspec.json.decode(str(fields["models"])))
    return msgspec.convert(fields, Grant)
