"""Files and batch jobs that the gateway keeps and runs itself, in SQL that SQLite and PostgreSQL both understand.

An open batch belongs to the worker that has claimed it, as long as that worker renews its claim: if the worker dies,
another one continues with the requests that have no result yet.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct

from dragoman.gateway.state.base import Unwritable

if TYPE_CHECKING:
    from dragoman.gateway.state.sql import Database, Row

State: TypeAlias = Literal["open", "canceling", "ended"]
OBJECTS_SCHEMA = (
    """
    CREATE TABLE IF NOT EXISTS gateway_objects (
      id TEXT PRIMARY KEY, owner TEXT NOT NULL, kind TEXT NOT NULL, created DOUBLE PRECISION NOT NULL,
      expires DOUBLE PRECISION NOT NULL, state TEXT NOT NULL, worker TEXT NOT NULL, claimed DOUBLE PRECISION NOT NULL,
      size BIGINT NOT NULL, about BYTEA NOT NULL, content BYTEA NOT NULL)
    """,
    "CREATE INDEX IF NOT EXISTS gateway_objects_by_owner ON gateway_objects (owner, kind, created)",
    "CREATE INDEX IF NOT EXISTS gateway_objects_by_state ON gateway_objects (state, claimed)",
    """
    CREATE TABLE IF NOT EXISTS gateway_results (
      object TEXT NOT NULL, place BIGINT NOT NULL, outcome TEXT NOT NULL, line BYTEA NOT NULL,
      PRIMARY KEY (object, place))
    """,
)
_PIECE = 1 << 20
_LONGEST_CLAIMS = 10
"""A claim may lie this many times its length in the future, because clocks of machines differ."""
_ROW = 500
"""Overhead of an object in bytes, besides its content and its description."""
_SHOWN = "id, owner, kind, created, expires, state, about, size"


class Stored(Struct, frozen=True, kw_only=True):
    """A file or a batch, without its content."""

    id: str
    owner: str
    kind: str
    """`openai-chat file`, `gemini batch`."""
    created: float
    expires: float
    """When it is deleted."""
    state: State = "ended"
    about: bytes = b"{}"
    """The description in JSON, as the format defines it."""
    size: int = 0


class ObjectStore:
    """Files and batches in the database. All methods raise `Unavailable` if it cannot be reached."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def put(self, stored: Stored, content: bytes) -> None:
        await self._database.rows(
            "INSERT INTO gateway_objects VALUES (?, ?, ?, ?, ?, ?, '', 0, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET "
            "about = excluded.about, content = excluded.content, size = excluded.size, state = excluded.state",
            (stored.id, stored.owner, stored.kind, stored.created, stored.expires, stored.state,
             len(content) + len(stored.about) + _ROW, stored.about, content),
        )  # fmt: skip

    async def find(self, id: str, owner: str) -> Stored | None:
        """Return an object. Clients choose the id: one that the database cannot store does not exist."""
        try:
            rows = await self._database.rows(
                f"SELECT {_SHOWN} FROM gateway_objects WHERE id = ? AND owner = ? AND expires > ?",  # noqa: S608 - our own names
                (id, owner, time.time()),
            )
        except Unwritable:
            return None
        return _stored_of_row(rows[0]) if rows else None

    async def content(self, id: str) -> bytes:
        rows = await self._database.rows("SELECT content FROM gateway_objects WHERE id = ?", (id,))
        return bytes(rows[0][0]) if rows else b""

    async def piece(self, id: str, start: int) -> bytes:
        """Return a chunk of the content from this byte on; empty at the end."""
        rows = await self._database.rows(
            "SELECT substr(content, ?, ?) FROM gateway_objects WHERE id = ?", (start + 1, _PIECE, id)
        )
        return bytes(rows[0][0]) if rows else b""

    async def list_objects(self, kind: str, owner: str, limit: int, after: str = "") -> list[Stored]:
        """Return a page of objects, newest first; `after` is the last one of the previous page."""
        further = "AND (created, id) < (SELECT created, id FROM gateway_objects WHERE id = ?) " if after else ""
        rows = await self._database.rows(
            f"SELECT {_SHOWN} FROM gateway_objects WHERE owner = ? AND kind = ? AND expires > ? {further}"  # noqa: S608 - our own names
            "ORDER BY created DESC, id DESC LIMIT ?",
            (owner, kind, time.time(), *((after,) if after else ()), limit),
        )
        return [_stored_of_row(row) for row in rows]

    async def usage_of(self, owner: str) -> tuple[int, int]:
        """Return the bytes that an owner has stored, and the number of its unfinished batches."""
        rows = await self._database.rows(
            "SELECT CAST(coalesce(sum(size), 0) AS BIGINT), "
            "CAST(coalesce(sum(CASE WHEN state <> 'ended' THEN 1 ELSE 0 END), 0) AS BIGINT) "
            "FROM gateway_objects WHERE owner = ?",
            (owner,),
        )
        return int(rows[0][0]), int(rows[0][1])

    async def forget(self, id: str, owner: str) -> bool:
        deleted = await self._database.rows(
            "DELETE FROM gateway_objects WHERE id = ? AND owner = ? RETURNING id", (id, owner)
        )
        if deleted:
            await self._database.rows("DELETE FROM gateway_results WHERE object = ?", (id,))
        return bool(deleted)

    async def prune(self) -> None:
        """Delete what has expired."""
        await self._database.rows("DELETE FROM gateway_objects WHERE expires <= ? AND state = 'ended'", (time.time(),))
        await self._database.rows("DELETE FROM gateway_results WHERE object NOT IN (SELECT id FROM gateway_objects)")

    # ── running batches ──

    async def cancel(self, id: str, about: bytes) -> bool:
        """Cancel a batch, atomically; return False if it has ended or is being cancelled already."""
        changed = (
            "UPDATE gateway_objects SET state = 'canceling', about = ? WHERE id = ? AND state = 'open' RETURNING id"
        )
        return bool(await self._database.rows(changed, (about, id)))

    async def end(self, id: str, worker: str, about: bytes, expires: float) -> bool:
        """End a batch; return False if another worker has claimed it since."""
        ended = (
            "UPDATE gateway_objects SET state = 'ended', about = ?, expires = ? "
            "WHERE id = ? AND worker = ? AND state <> 'ended' RETURNING id"
        )
        return bool(await self._database.rows(ended, (about, expires, id, worker)))

    async def claim(self, worker: str, seconds: float, most: int) -> list[Stored]:
        """Claim at most this many batches without a living worker, and return them."""
        now = time.time()
        # A claim from the future was made before the clock was set back: its worker may be gone.
        waiting = "state IN ('open', 'canceling') AND (claimed < ? OR claimed > ?)"
        latest = now + _LONGEST_CLAIMS * seconds
        query = f"SELECT id FROM gateway_objects WHERE {waiting} ORDER BY created LIMIT ?"  # noqa: S608 - our own words
        found = [row[0] for row in await self._database.rows(query, (now, latest, most))]
        if not found:  # the usual answer, without a write
            return []
        marks = ", ".join("?" * len(found))
        rows = await self._database.rows(
            f"UPDATE gateway_objects SET worker = ?, claimed = ? WHERE id IN ({marks}) AND {waiting} "  # noqa: S608 - our own words
            f"RETURNING {_SHOWN}",
            (worker, now + seconds, *found, now, latest),
        )
        return [_stored_of_row(row) for row in rows]

    async def renew(self, ids: Sequence[str], worker: str, seconds: float) -> dict[str, Stored]:
        """Renew the claims; return the batches that this worker still has, which may have been cancelled."""
        if not ids:
            return {}
        marks = ", ".join("?" * len(ids))
        rows = await self._database.rows(
            f"UPDATE gateway_objects SET claimed = ? WHERE worker = ? AND id IN ({marks}) RETURNING {_SHOWN}",  # noqa: S608 - marks only
            (time.time() + seconds, worker, *ids),
        )
        return {row[0]: _stored_of_row(row) for row in rows}

    async def release(self, ids: Sequence[str], worker: str) -> None:
        """Give up the claims, so that other workers need not wait until they expire."""
        for id in ids:
            await self._database.rows(
                "UPDATE gateway_objects SET claimed = 0 WHERE worker = ? AND id = ?", (worker, id)
            )

    # ── results ──

    async def add_result(self, id: str, place: int, outcome: str, line: bytes) -> None:
        """Add the result of a request, unless it has one already."""
        await self._database.rows(
            "INSERT INTO gateway_results VALUES (?, ?, ?, ?) ON CONFLICT (object, place) DO NOTHING",
            (id, place, outcome, line),
        )

    async def result_size(self, id: str, outcomes: Iterable[str]) -> int:
        """Return the bytes of the lines with one of these outcomes, including line ends."""
        wanted = tuple(outcomes)
        marks = ", ".join("?" * len(wanted))
        rows = await self._database.rows(
            "SELECT CAST(coalesce(sum(length(line) + 1), 0) AS BIGINT) FROM gateway_results "  # noqa: S608 - marks only
            f"WHERE object = ? AND outcome IN ({marks})",
            (id, *wanted),
        )
        return int(rows[0][0])

    async def finished_places(self, id: str) -> set[int]:
        """Return the places of the requests that have a result."""
        return {
            row[0] for row in await self._database.rows("SELECT place FROM gateway_results WHERE object = ?", (id,))
        }

    async def counts(self, id: str) -> dict[str, int]:
        """Return the number of results by outcome."""
        rows = await self._database.rows(
            "SELECT outcome, count(*) FROM gateway_results WHERE object = ? GROUP BY outcome", (id,)
        )
        return {row[0]: int(row[1]) for row in rows}

    async def results(
        self, id: str, outcomes: Iterable[str], after: int = -1, limit: int = 200
    ) -> list[tuple[int, bytes]]:
        """Return a page of result lines with their places, in the order of the requests."""
        wanted = tuple(outcomes)
        marks = ", ".join("?" * len(wanted))
        rows = await self._database.rows(
            f"SELECT place, line FROM gateway_results WHERE object = ? AND place > ? AND outcome IN ({marks}) "  # noqa: S608 - marks only
            "ORDER BY place LIMIT ?",
            (id, after, *wanted, limit),
        )
        return [(row[0], bytes(row[1])) for row in rows]


def _stored_of_row(row: Row) -> Stored:
    id, owner, kind, created, expires, state, about, size = row
    return Stored(
        id=id, owner=owner, kind=kind, created=created, expires=expires, state=state, about=bytes(about), size=size
    )
