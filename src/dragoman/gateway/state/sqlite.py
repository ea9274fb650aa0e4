"""SQLite: a file that all processes of one machine may share, or memory.

With a file, reads run on the event loop (readers never wait), and writes run in a thread, because a writer may wait for
other writers.
"""

from __future__ import annotations

import asyncio
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from dragoman.gateway.state.base import (
    Amounts,
    DiskFailed,
    Exceeded,
    Grant,
    Reservation,
    Ticket,
    Timing,
    Unavailable,
    Unwritable,
    check_budget,
)
from dragoman.gateway.state.sql import ADDED_COLUMNS, ENTRY, FILLED, SCHEMA, Conflict, Row
from dragoman.private_files import create_private_file

_PATIENCE = 5.0
"""Maximum seconds that a writer waits for others."""
_METERS = (
    "CREATE TABLE IF NOT EXISTS gateway_meters (key TEXT PRIMARY KEY, arrivals BIGINT NOT NULL)",
    """
    CREATE TABLE IF NOT EXISTS gateway_arrivals (
      key TEXT NOT NULL, slot BIGINT NOT NULL, time DOUBLE PRECISION NOT NULL, PRIMARY KEY (key, slot)) WITHOUT ROWID
    """,
    """
    CREATE TABLE IF NOT EXISTS gateway_leases (
      lease TEXT PRIMARY KEY, key TEXT NOT NULL, until DOUBLE PRECISION NOT NULL) WITHOUT ROWID
    """,
    "CREATE INDEX IF NOT EXISTS gateway_leases_by_key ON gateway_leases (key)",
    """
    CREATE TABLE IF NOT EXISTS gateway_tokens (
      key TEXT NOT NULL, second BIGINT NOT NULL, tokens BIGINT NOT NULL, PRIMARY KEY (key, second)) WITHOUT ROWID
    """,
    """
    CREATE TABLE IF NOT EXISTS gateway_reservations (
      id TEXT PRIMARY KEY, key_id TEXT NOT NULL, amount DOUBLE PRECISION NOT NULL, until DOUBLE PRECISION NOT NULL,
      tokens BIGINT NOT NULL DEFAULT 0) WITHOUT ROWID
    """,
    "CREATE INDEX IF NOT EXISTS gateway_reservations_by_key ON gateway_reservations (key_id)",
)
_ADD = (
    f"INSERT INTO gateway_usage ({ENTRY}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"  # noqa: S608 - our own names
)
_SPEND = "UPDATE gateway_keys SET spent = spent + ?, spent_tokens = spent_tokens + ? WHERE id = ?"
_UNRESERVE = "DELETE FROM gateway_reservations WHERE id = ?"
_ID, _KEY_ID, _COST, _INPUT, _OUTPUT = (
    ENTRY.split(", ").index(name) for name in ("id", "key_id", "cost", "input", "output")
)
_now = time.monotonic
"""The same for all processes of a machine, and independent of its wall clock. It restarts with the machine: rows with a
time in the future are from before."""

_PRIMARY = 0xFF
"""Extended result codes have the primary one in their lowest byte."""
_OF_THE_DISK = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN})

Result = TypeVar("Result")


class SqliteDatabase:
    """A SQLite file, or memory. Raises `sqlite3.Error` if the file does not exist and cannot be created."""

    def __init__(self, file: str = "") -> None:
        self.shared = bool(file)
        if file:
            with suppress(OSError):  # SQLite reports the error
                create_private_file(Path(file))
        self.read_only = ""
        """Why the database cannot be written; empty if it can."""
        try:
            self._writer = _connect(file)
            with self.transaction() as writer:
                _migrate(writer)
            self._reader = _connect(file) if file else self._writer
        except sqlite3.OperationalError as error:
            self._reader = self._writer = _connect_read_only(file, error)
            self.read_only = str(error)
        self._thread = ThreadPoolExecutor(1, "gateway-database") if file else None

    async def rows(self, statement: str, values: Sequence[object] = ()) -> list[Row]:
        if statement.lstrip().startswith(("SELECT", "WITH")):
            with _problems():
                return self._reader.execute(statement, values).fetchall()
        return await self.write(lambda: self._writer.execute(statement, values).fetchall())

    async def add(self, entries: Sequence[Row]) -> None:
        def work() -> None:
            with self.transaction() as writer:
                for entry in entries:
                    writer.execute(_UNRESERVE, (entry[_ID],))
                    cost, tokens = entry[_COST] or 0.0, (entry[_INPUT] or 0) + (entry[_OUTPUT] or 0)
                    if writer.execute(_ADD, entry).rowcount and entry[_KEY_ID] and (cost or tokens):
                        writer.execute(_SPEND, (cost, tokens, entry[_KEY_ID]))

        await self.write(work)

    async def reserve(self, reservation: Reservation) -> None:
        def work() -> None:
            with self.transaction() as writer:
                _reserve(writer, reservation)

        await self.write(work)

    async def renew(self, ids: Sequence[str], seconds: float) -> None:
        until = _now() + seconds

        def work() -> None:
            with self.transaction() as writer:
                writer.executemany(
                    "UPDATE gateway_reservations SET until = ? WHERE id = ?", [(until, id) for id in ids]
                )

        await self.write(work)

    async def write(self, work: Callable[[], Result]) -> Result:
        if self.read_only:
            raise DiskFailed(f"SQLite: {self.read_only}")
        with _problems():
            if self._thread is None:
                return work()
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        self._writer.execute("BEGIN IMMEDIATE")
        try:
            yield self._writer
            self._writer.execute("COMMIT")
        except BaseException:
            if self._writer.in_transaction:  # a full disk may have ended the transaction
                self._writer.execute("ROLLBACK")
            raise

    async def close(self) -> None:
        if self._thread is not None:
            await asyncio.to_thread(self._thread.shutdown)
            self._reader.close()
        self._writer.close()


def _connect_read_only(file: str, problem: sqlite3.OperationalError) -> sqlite3.Connection:
    """Open a database on a read-only disk, for its keys. Raises `problem` if there is none."""
    if not file or not Path(file).exists():
        raise problem
    try:
        connection = sqlite3.connect(
            f"file:{quote(file)}?mode=ro&immutable=1", uri=True, isolation_level=None, check_same_thread=False
        )
        connection.execute("SELECT id FROM gateway_keys LIMIT 1")
    except sqlite3.Error:
        raise problem from None
    return connection


def _migrate(writer: sqlite3.Connection) -> None:
    for statement in (*SCHEMA, *_METERS):
        writer.execute(statement)
    for table, column, kind in ADDED_COLUMNS:
        if column not in {row[1] for row in writer.execute(f"PRAGMA table_info({table})")}:
            writer.execute(f"ALTER TABLE {table} ADD COLUMN {column} {kind}")
    for statement in FILLED:
        writer.execute(statement)


def _reserve(writer: sqlite3.Connection, new: Reservation) -> None:
    now = _now()
    writer.execute(
        "DELETE FROM gateway_reservations WHERE key_id = ? AND (until <= ? OR until > ?)",
        (new.key_id, now, now + 2 * new.seconds),
    )
    row = writer.execute("SELECT spent, spent_tokens FROM gateway_keys WHERE id = ?", (new.key_id,)).fetchone()
    cost, tokens, others = writer.execute(
        "SELECT coalesce(sum(amount), 0), coalesce(sum(tokens), 0), count(*) FROM gateway_reservations "
        "WHERE key_id = ?",
        (new.key_id,),
    ).fetchone()
    check_budget(new, spent=Amounts(*row) if row else Amounts(), reserved=Amounts(cost, tokens), others=others)
    writer.execute(
        "INSERT INTO gateway_reservations (id, key_id, amount, until, tokens) VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT DO NOTHING",
        (new.id, new.key_id, new.amount, now + new.seconds, new.tokens),
    )


def _connect(file: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        file or ":memory:", isolation_level=None, timeout=_PATIENCE, check_same_thread=not file
    )
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")
    return connection


@contextmanager
def _problems() -> Iterator[None]:
    try:
        yield
    except sqlite3.IntegrityError as error:
        raise Conflict(str(error)) from error
    except (sqlite3.DataError, OverflowError, UnicodeError) as error:
        raise Unwritable(f"SQLite: {error}") from error
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & _PRIMARY
        kind = DiskFailed if code in _OF_THE_DISK else Unavailable  # else another process holds the write lock for long
        raise kind(f"SQLite: {error}") from error


class SqliteMeters:
    """Limits of all processes that share a file."""

    def __init__(self, database: SqliteDatabase, timing: Timing | None = None) -> None:
        self._database = database
        self._timing = timing or Timing()
        self._leases: set[str] = set()

    async def enter(self, grant: Grant) -> Ticket:
        lease = secrets.token_hex(8) if grant.concurrent is not None else ""

        def work() -> None:
            with self._database.transaction() as writer:
                self._enter(writer, grant, lease)

        await self._database.write(work)
        if lease:  # a process that stops before this leaves a lease that expires
            self._leases.add(lease)
        return Ticket(grant.id, lease, grant.tokens_per_minute is not None)

    def _enter(self, writer: sqlite3.Connection, grant: Grant, lease: str) -> None:
        now, key = _now(), grant.id
        self._check_tokens(writer, grant, now)
        if grant.concurrent is not None:
            ends = now + 2 * self._timing.lease
            writer.execute("DELETE FROM gateway_leases WHERE key = ? AND (until <= ? OR until > ?)", (key, now, ends))
            (working,) = writer.execute("SELECT count(*) FROM gateway_leases WHERE key = ?", (key,)).fetchone()
            if working >= grant.concurrent:
                raise Exceeded("concurrent", 1.0)
        if grant.requests_per_minute is not None:
            self._arrive(writer, key, grant.requests_per_minute, now)
        if lease:
            writer.execute("INSERT INTO gateway_leases VALUES (?, ?, ?)", (lease, key, now + self._timing.lease))

    def _arrive(self, writer: sqlite3.Connection, key: str, most: int, now: float) -> None:
        """Record an arrival in a ring of as many slots as a minute allows; the overwritten one must be a minute old."""
        row = writer.execute("SELECT arrivals FROM gateway_meters WHERE key = ?", (key,)).fetchone()
        slot = (row[0] if row else 0) % most if most > 0 else 0
        before = writer.execute("SELECT time FROM gateway_arrivals WHERE key = ? AND slot = ?", (key, slot)).fetchone()
        oldest = now if most <= 0 else before[0] if before else None
        if oldest is not None and 0 <= now - oldest < self._timing.window:
            raise Exceeded("requests", oldest + self._timing.window - now)
        writer.execute(
            "INSERT INTO gateway_arrivals VALUES (?, ?, ?) ON CONFLICT (key, slot) DO UPDATE SET time = excluded.time",
            (key, slot, now),
        )
        writer.execute(
            "INSERT INTO gateway_meters VALUES (?, 1) ON CONFLICT (key) DO UPDATE SET arrivals = arrivals + 1", (key,)
        )

    def _check_tokens(self, writer: sqlite3.Connection, grant: Grant, now: float) -> None:
        if grant.tokens_per_minute is None:
            return
        minute = self._timing.window + 1  # a second counts until its end is old enough
        writer.execute(
            "DELETE FROM gateway_tokens WHERE key = ? AND (second <= ? OR second > ?)", (grant.id, now - minute, now)
        )
        tokens, oldest = writer.execute(
            "SELECT coalesce(sum(tokens), 0), min(second) FROM gateway_tokens WHERE key = ?", (grant.id,)
        ).fetchone()
        if tokens >= grant.tokens_per_minute:
            raise Exceeded("tokens", (now if oldest is None else oldest) + minute - now)

    async def leave(self, ticket: Ticket, tokens: int) -> None:
        self._leases.discard(ticket.lease)
        counted = tokens if ticket.counts_tokens else 0
        if not ticket.lease and not counted:
            return

        def work() -> None:
            with self._database.transaction() as writer:
                writer.execute("DELETE FROM gateway_leases WHERE lease = ?", (ticket.lease,))
                if counted:
                    writer.execute(
                        "INSERT INTO gateway_tokens VALUES (?, ?, ?) ON CONFLICT (key, second) "
                        "DO UPDATE SET tokens = tokens + excluded.tokens",
                        (ticket.key, int(_now()), counted),
                    )

        await self._database.write(work)

    async def beat(self) -> None:
        if not self._leases:
            return
        until = _now() + self._timing.lease
        renewed = [(until, lease) for lease in self._leases]

        def work() -> None:
            with self._database.transaction() as writer:
                writer.executemany("UPDATE gateway_leases SET until = ? WHERE lease = ?", renewed)

        await self._database.write(work)

    async def close(self) -> None:
        """Do nothing: the caller that opened the database closes it."""
