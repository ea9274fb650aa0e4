"""Keys, usage and responses in SQL that SQLite and PostgreSQL both understand."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import msgspec

from dragoman.gateway.state.base import (
    LONGEST_CHAIN,
    Entry,
    Grant,
    Group,
    Kept,
    KeyRow,
    NameTaken,
    Reservation,
    Unwritable,
    UsageRow,
)
from dragoman.gateway.state.objects import OBJECTS_SCHEMA, ObjectStore

Row: TypeAlias = tuple[Any, ...]

# Type names that mean the same to both; table names with a prefix, since the database may have other tables.
SCHEMA = (
    """
    CREATE TABLE IF NOT EXISTS gateway_keys (
      name TEXT PRIMARY KEY, digest TEXT UNIQUE NOT NULL, models TEXT NOT NULL, created DOUBLE PRECISION NOT NULL,
      expires DOUBLE PRECISION, revoked DOUBLE PRECISION, requests_per_minute BIGINT, concurrent BIGINT,
      tokens_per_minute BIGINT, budget DOUBLE PRECISION, spent DOUBLE PRECISION NOT NULL,
      id TEXT NOT NULL DEFAULT '', token_budget BIGINT, spent_tokens BIGINT NOT NULL DEFAULT 0)
    """,
    """
    CREATE TABLE IF NOT EXISTS gateway_usage (
      id TEXT PRIMARY KEY, time DOUBLE PRECISION NOT NULL, day TEXT NOT NULL, key TEXT NOT NULL, client TEXT NOT NULL,
      model TEXT NOT NULL, upstream TEXT NOT NULL, target TEXT NOT NULL, status BIGINT NOT NULL,
      seconds DOUBLE PRECISION NOT NULL, input BIGINT, output BIGINT, cached BIGINT, cost DOUBLE PRECISION,
      key_id TEXT NOT NULL DEFAULT '')
    """,
    "CREATE INDEX IF NOT EXISTS gateway_usage_by_time ON gateway_usage (time)",
    """
    CREATE TABLE IF NOT EXISTS gateway_responses (
      id TEXT PRIMARY KEY, owner TEXT NOT NULL, previous TEXT, created DOUBLE PRECISION NOT NULL, input BYTEA NOT NULL,
      response BYTEA NOT NULL, upstream TEXT NOT NULL)
    """,
    "CREATE INDEX IF NOT EXISTS gateway_responses_by_time ON gateway_responses (created)",
    """
    CREATE TABLE IF NOT EXISTS gateway_items (
      conversation TEXT NOT NULL, place BIGINT NOT NULL, owner TEXT NOT NULL, id TEXT NOT NULL, item BYTEA NOT NULL,
      PRIMARY KEY (conversation, id))
    """,
    """
    CREATE TABLE IF NOT EXISTS gateway_signatures (
      owner TEXT NOT NULL, key TEXT NOT NULL, created DOUBLE PRECISION NOT NULL, message BYTEA NOT NULL,
      PRIMARY KEY (owner, key))
    """,
    "CREATE INDEX IF NOT EXISTS gateway_signatures_by_time ON gateway_signatures (created)",
    *OBJECTS_SCHEMA,
    """
    CREATE TABLE IF NOT EXISTS gateway_answers (
      key TEXT PRIMARY KEY, until DOUBLE PRECISION NOT NULL, size BIGINT NOT NULL, answer BYTEA NOT NULL)
    """,
    "CREATE INDEX IF NOT EXISTS gateway_answers_by_time ON gateway_answers (until)",
)
# Columns that databases of earlier versions lack, and the statements that fill them.
ADDED_COLUMNS = (
    ("gateway_keys", "id", "TEXT NOT NULL DEFAULT ''"),
    ("gateway_usage", "key_id", "TEXT NOT NULL DEFAULT ''"),
    ("gateway_keys", "token_budget", "BIGINT"),
    ("gateway_keys", "spent_tokens", "BIGINT NOT NULL DEFAULT 0"),
    ("gateway_reservations", "tokens", "BIGINT NOT NULL DEFAULT 0"),
)
FILLED = (
    "UPDATE gateway_keys SET id = name WHERE id = ''",
    "CREATE UNIQUE INDEX IF NOT EXISTS gateway_keys_by_id ON gateway_keys (id)",
)
ENTRY = "id, time, day, key, client, model, upstream, target, status, seconds, input, output, cached, cost, key_id"
_GRANT = "name, digest, id, models, expires, requests_per_minute, concurrent, tokens_per_minute, budget, token_budget"
_LISTED = (
    "name, models, created, expires, revoked, requests_per_minute, concurrent, tokens_per_minute, budget, spent, "
    "token_budget, spent_tokens"
)
_COLUMNS: Mapping[Group, tuple[str, ...]] = {"key": ("key",), "model": ("upstream", "target"), "day": ("day",)}
_CHAIN = """
WITH RECURSIVE chain (id, owner, previous, input, response, upstream, depth) AS (
  SELECT id, owner, previous, input, response, upstream, 0 FROM gateway_responses WHERE id = ? AND owner = ?
  UNION ALL
  SELECT one.id, one.owner, one.previous, one.input, one.response, one.upstream, chain.depth + 1
  FROM chain JOIN gateway_responses AS one ON one.id = chain.previous AND one.owner = chain.owner
  WHERE one.id <> chain.id AND chain.depth < ?)
SELECT * FROM chain ORDER BY depth
"""
_NO_LIMIT = 1 << 60
_MOST_IN_MEMORY, _MOST_ON_DISK = 256 << 20, 4 << 30
"""Maximum bytes of all stored responses and conversations, and of all signatures: clients choose their sizes."""
_OLDEST_RESPONSES = """
    DELETE FROM gateway_responses WHERE id IN (SELECT id FROM (
      SELECT gateway_responses.id AS id, sum(length(input) + length(response) + coalesce(size, 0))
        OVER (ORDER BY created DESC, gateway_responses.id) AS total
      FROM gateway_responses LEFT JOIN
        (SELECT conversation, sum(length(item)) AS size FROM gateway_items GROUP BY conversation) AS sized
        ON conversation = gateway_responses.id) AS added WHERE total > ?)
    """
_OLDEST_SIGNATURES = """
    DELETE FROM gateway_signatures WHERE (owner, key) IN (SELECT owner, key FROM (
      SELECT owner, key, sum(length(message)) OVER (ORDER BY created DESC, owner, key) AS total
      FROM gateway_signatures) AS added WHERE total > ?)
    """
"""Delete what is beyond a number of bytes, counted from the newest."""
_ORPHANED_ITEMS = "DELETE FROM gateway_items WHERE conversation NOT IN (SELECT id FROM gateway_responses)"
_PRUNED_EVERY = 50
_PRUNED_AT_GROWTH = 8
"""The part of the limit after which the oldest are looked for: one of this number."""


class Conflict(Exception):
    """A value that must be unique exists already."""


class Database(Protocol):
    """Runs single statements with `?` placeholders, and operations that need a transaction or the database's clock."""

    shared: bool

    async def rows(self, statement: str, values: Sequence[object] = ()) -> list[Row]:
        """Run a statement and return its rows. Raises `Conflict` and `Unavailable`."""
        ...

    async def add(self, entries: Sequence[Row]) -> None: ...

    async def reserve(self, reservation: Reservation) -> None: ...

    async def renew(self, ids: Sequence[str], seconds: float) -> None: ...

    async def close(self) -> None: ...


class SqlStore:
    def __init__(self, database: Database, *, most_responses: int = 10_000, most_signatures: int = 20_000) -> None:
        self._database = database
        self._most = most_responses
        self._most_signatures = most_signatures
        self._keeping = 0
        self._remembering = 0
        self._grown = 0
        self.most_bytes = _MOST_ON_DISK if database.shared else _MOST_IN_MEMORY
        self.shared = database.shared
        self.objects = ObjectStore(database)

    @property
    def database(self) -> Database:
        return self._database

    async def close(self) -> None:
        await self._database.close()

    # ── keys ──

    async def create(self, grant: Grant) -> None:
        models = msgspec.json.encode(grant.models).decode()
        given = (grant.name, grant.digest, grant.id, models, grant.expires, grant.requests_per_minute, grant.concurrent)
        try:
            await self._database.rows(
                f"INSERT INTO gateway_keys ({_GRANT}, created, spent) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0)",  # noqa: S608 - our own names
                (*given, grant.tokens_per_minute, grant.budget, grant.token_budget, time.time()),
            )
        except Conflict:
            raise NameTaken(grant.name) from None

    async def revoke(self, name: str) -> bool:
        changed = "UPDATE gateway_keys SET revoked = ? WHERE name = ? AND revoked IS NULL RETURNING name"
        return bool(await self._database.rows(changed, (time.time(), name)))

    async def rotate(self, name: str, digest: str) -> bool:
        changed = "UPDATE gateway_keys SET digest = ? WHERE name = ? AND revoked IS NULL RETURNING name"
        return bool(await self._database.rows(changed, (digest, name)))

    async def list_keys(self) -> list[KeyRow]:
        rows = await self._database.rows(f"SELECT {_LISTED} FROM gateway_keys ORDER BY created, name")  # noqa: S608 - our own names
        return [KeyRow(**_as_dict(_LISTED, row)) for row in rows]

    async def any_keys(self) -> bool:
        return bool(await self._database.rows("SELECT 1 FROM gateway_keys LIMIT 1"))

    async def grant(self, digest: str) -> Grant | None:
        rows = await self._database.rows(
            f"SELECT {_GRANT} FROM gateway_keys WHERE digest = ? AND revoked IS NULL",  # noqa: S608 - our own names
            (digest,),
        )
        return Grant(**_as_dict(_GRANT, rows[0])) if rows else None

    async def spent(self, key_id: str) -> float:
        rows = await self._database.rows("SELECT spent FROM gateway_keys WHERE id = ?", (key_id,))
        return float(rows[0][0]) if rows else 0.0

    async def spent_tokens(self, key_id: str) -> int:
        rows = await self._database.rows("SELECT spent_tokens FROM gateway_keys WHERE id = ?", (key_id,))
        return int(rows[0][0]) if rows else 0

    async def reserve(self, reservation: Reservation) -> None:
        await self._database.reserve(reservation)

    async def renew(self, ids: Sequence[str], seconds: float) -> None:
        await self._database.renew(ids, seconds)

    # ── usage ──

    async def add(self, entries: Sequence[Entry]) -> None:
        # Always in the same order, so that two gateways that update the same keys cannot deadlock.
        ordered = sorted(entries, key=lambda entry: (entry.key_id, entry.id))
        await self._database.add([msgspec.structs.astuple(entry) for entry in ordered])

    async def usage(
        self, since: float = 0.0, by: Sequence[Group] = ("key", "model"), key_id: str | None = None
    ) -> list[UsageRow]:
        group_columns = [column for group in by for column in _COLUMNS[group]]
        columns = ", ".join(
            column if column in group_columns else "''" for column in ("key", "upstream", "target", "day")
        )
        order = (
            f"GROUP BY {', '.join(group_columns)} ORDER BY {', '.join(group_columns)}"
            if group_columns
            else "HAVING count(*) > 0"
        )
        mine = "" if key_id is None else "AND key_id = ?"
        rows = await self._database.rows(
            f"SELECT {columns}, count(*), sum(CASE WHEN status >= 400 THEN 1 ELSE 0 END), "  # noqa: S608 - our own names
            "CAST(coalesce(sum(input), 0) AS BIGINT), CAST(coalesce(sum(output), 0) AS BIGINT), "
            f"CAST(coalesce(sum(cost), 0) AS DOUBLE PRECISION) FROM gateway_usage WHERE time >= ? {mine} {order}",
            (since,) if key_id is None else (since, key_id),
        )
        names = UsageRow.__struct_fields__
        return [UsageRow(**dict(zip(names, row, strict=True))) for row in rows]

    # ── responses ──

    async def keep(self, kept: Kept) -> None:
        await self._database.rows(
            "INSERT INTO gateway_responses VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET "
            "previous = excluded.previous, input = excluded.input, response = excluded.response",
            (kept.id, kept.owner, kept.previous, time.time(), kept.input, kept.response, kept.upstream),
        )
        await self._grew(len(kept.input) + len(kept.response))
        self._keeping += 1
        if self._keeping % _PRUNED_EVERY:
            return
        await self._database.rows(
            "DELETE FROM gateway_responses WHERE id IN "
            "(SELECT id FROM gateway_responses ORDER BY created DESC LIMIT ? OFFSET ?)",
            (_NO_LIMIT, self._most),
        )
        await self._database.rows(_ORPHANED_ITEMS)

    async def _grew(self, size: int) -> None:
        """Note that so many bytes were written; from time to time, delete the oldest beyond the limit."""
        self._grown += size
        if self._grown < self.most_bytes // _PRUNED_AT_GROWTH:
            return
        self._grown = 0
        await self._database.rows(_OLDEST_RESPONSES, (self.most_bytes,))
        await self._database.rows(_ORPHANED_ITEMS)
        await self._database.rows(_OLDEST_SIGNATURES, (self.most_bytes,))

    async def find_response(self, id: str, owner: str) -> Kept | None:
        rows = await self._find(
            "SELECT id, owner, previous, input, response, upstream FROM gateway_responses WHERE id = ? AND owner = ?",
            id,
            owner,
        )
        return Kept(*rows[0]) if rows else None

    async def chain(self, id: str, owner: str) -> list[Kept]:
        return [Kept(*row[:-1]) for row in await self._find(_CHAIN, id, owner, LONGEST_CHAIN)]

    async def forget(self, id: str, owner: str) -> bool:
        statement = "DELETE FROM gateway_responses WHERE id = ? AND owner = ? RETURNING id"
        is_forgotten = bool(await self._find(statement, id, owner))
        if is_forgotten:
            await self._database.rows("DELETE FROM gateway_items WHERE conversation = ?", (id,))
        return is_forgotten

    async def add_items(self, id: str, owner: str, items: Sequence[tuple[str, bytes]]) -> None:
        for item, content in items:
            await self._database.rows(
                "INSERT INTO gateway_items VALUES (?, (SELECT coalesce(max(place), 0) + 1 FROM gateway_items "
                "WHERE conversation = ?), ?, ?, ?) ON CONFLICT (conversation, id) DO NOTHING",
                (id, id, owner, item, content),
            )
        await self._grew(sum(len(content) for _, content in items))

    async def items(self, id: str, owner: str) -> list[tuple[str, bytes]]:
        found = "SELECT id, item FROM gateway_items WHERE conversation = ? AND owner = ? ORDER BY place, id"
        return [(row[0], bytes(row[1])) for row in await self._find(found, id, owner)]

    async def forget_item(self, id: str, owner: str, item: str) -> bool:
        statement = "DELETE FROM gateway_items WHERE conversation = ? AND owner = ? AND id = ? RETURNING id"
        try:
            return bool(await self._database.rows(statement, (id, owner, item)))
        except Unwritable:
            return False

    # ── signatures ──

    async def remember(self, owner: str, key: str, message: bytes) -> None:
        await self._database.rows(
            "INSERT INTO gateway_signatures VALUES (?, ?, ?, ?) ON CONFLICT (owner, key) DO UPDATE SET "
            "created = excluded.created, message = excluded.message",
            (owner, key, time.time(), message),
        )
        await self._grew(len(message))
        self._remembering += 1
        if self._remembering % _PRUNED_EVERY == 0:
            await self._database.rows(
                "DELETE FROM gateway_signatures WHERE created < (SELECT min(created) FROM "
                "(SELECT created FROM gateway_signatures ORDER BY created DESC LIMIT ?) AS kept)",
                (self._most_signatures,),
            )

    async def recall(self, owner: str, keys: Sequence[str], seconds: float) -> dict[str, bytes]:
        marks = ", ".join("?" * len(keys))
        try:
            rows = await self._database.rows(
                f"SELECT key, message FROM gateway_signatures WHERE owner = ? AND created > ? AND key IN ({marks})",  # noqa: S608 - marks only
                (owner, time.time() - seconds, *keys),
            )
        except Unwritable:  # clients choose the ids: one that cannot be stored does not exist
            return {}
        return {row[0]: bytes(row[1]) for row in rows}

    async def touch(self, id: str) -> None:
        await self._database.rows("UPDATE gateway_responses SET created = ? WHERE id = ?", (time.time(), id))

    async def age(self, id: str) -> float:
        rows = await self._database.rows("SELECT created FROM gateway_responses WHERE id = ?", (id,))
        return time.time() - float(rows[0][0]) if rows else 0.0

    async def _find(self, statement: str, id: str, owner: str, *more: int) -> list[Row]:
        """Return the rows of a statement. Clients choose the id: one that cannot be stored does not exist."""
        try:
            return await self._database.rows(statement, (id, owner, *more))
        except Unwritable:
            return []


def _as_dict(columns: str, row: Row) -> dict[str, Any]:
    fields = dict(zip(columns.split(", "), row, strict=True))
    fields["models"] = tuple(msgspec.json.decode(fields["models"]))
    return fields
