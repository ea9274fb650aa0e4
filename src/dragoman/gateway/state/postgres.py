"""PostgreSQL, for several gateways (extra `postgres`: psycopg). All of them use its clock."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

from dragoman.drivers.credentials import import_extra
from dragoman.gateway.state.base import (
    Exceeded,
    Grant,
    OverBudget,
    Reservation,
    Ticket,
    Timing,
    Unavailable,
    Unwritable,
)
from dragoman.gateway.state.sql import ADDED_COLUMNS, ENTRY, FILLED, SCHEMA, Conflict, Row

_SIZE = 8
_PATIENCE = 5.0
_CONNECTING = 3
_LOCK = 0x647267  # an arbitrary lock id: one gateway creates the tables, the others wait
# Counters of a minute need not survive a crash of the database: unlogged tables save writes to its disk.
_METERS = (
    "CREATE UNLOGGED TABLE IF NOT EXISTS gateway_meters (key TEXT PRIMARY KEY, arrivals BIGINT NOT NULL)",
    """
    CREATE UNLOGGED TABLE IF NOT EXISTS gateway_arrivals (
      key TEXT NOT NULL, slot BIGINT NOT NULL, time DOUBLE PRECISION NOT NULL, PRIMARY KEY (key, slot))
    """,
    """
    CREATE UNLOGGED TABLE IF NOT EXISTS gateway_leases (
      lease TEXT PRIMARY KEY, key TEXT NOT NULL, until DOUBLE PRECISION NOT NULL)
    """,
    "CREATE INDEX IF NOT EXISTS gateway_leases_by_key ON gateway_leases (key)",
    """
    CREATE UNLOGGED TABLE IF NOT EXISTS gateway_tokens (
      key TEXT NOT NULL, second BIGINT NOT NULL, tokens BIGINT NOT NULL, PRIMARY KEY (key, second))
    """,
    """
    CREATE UNLOGGED TABLE IF NOT EXISTS gateway_reservations (
      id TEXT PRIMARY KEY, key_id TEXT NOT NULL, amount DOUBLE PRECISION NOT NULL, until DOUBLE PRECISION NOT NULL,
      tokens BIGINT NOT NULL DEFAULT 0)
    """,
    "CREATE INDEX IF NOT EXISTS gateway_reservations_by_key ON gateway_reservations (key_id)",
    # The row of the key is the lock, as in the function below. In both, counters with a time in the future were
    # written before the server's clock was set back.
    """
    CREATE OR REPLACE FUNCTION gateway_reserve(
      request TEXT, who TEXT, most DOUBLE PRECISION, expected DOUBLE PRECISION, seconds DOUBLE PRECISION,
      most_tokens BIGINT, expected_tokens BIGINT, OUT refused TEXT)
    LANGUAGE plpgsql AS $$
    DECLARE
      moment DOUBLE PRECISION; paid DOUBLE PRECISION; used BIGINT; held DOUBLE PRECISION; held_tokens BIGINT;
      others BIGINT;
    BEGIN
      SELECT spent, spent_tokens INTO paid, used FROM gateway_keys WHERE gateway_keys.id = who FOR UPDATE;
      moment := extract(epoch FROM clock_timestamp());
      DELETE FROM gateway_reservations WHERE key_id = who AND (until <= moment OR until > moment + 2 * seconds);
      SELECT coalesce(sum(amount), 0), coalesce(sum(tokens), 0), count(*) INTO held, held_tokens, others
        FROM gateway_reservations WHERE key_id = who;
      -- A comparison with a budget that is NULL is no reason to refuse.
      IF coalesce(paid, 0) >= most OR coalesce(used, 0) >= most_tokens THEN
        refused := 'spent'; RETURN;
      END IF;
      IF others > 0 AND (coalesce(paid, 0) + held + expected > most
                         OR coalesce(used, 0) + held_tokens + expected_tokens > most_tokens) THEN
        refused := 'reserved'; RETURN;
      END IF;
      INSERT INTO gateway_reservations (id, key_id, amount, until, tokens)
        VALUES (request, who, expected, moment + seconds, expected_tokens) ON CONFLICT DO NOTHING;
    END $$
    """,
    # One round trip per request. The row of the key is the lock; everything else is read after it is acquired.
    """
    CREATE OR REPLACE FUNCTION gateway_enter(
      who TEXT, per_minute BIGINT, at_a_time BIGINT, tokens_a_minute BIGINT, minute DOUBLE PRECISION,
      new_lease TEXT, lease_seconds DOUBLE PRECISION, OUT refused TEXT, OUT wait DOUBLE PRECISION)
    LANGUAGE plpgsql AS $$
    DECLARE
      place BIGINT; moment DOUBLE PRECISION; oldest DOUBLE PRECISION; total BIGINT;
    BEGIN
      INSERT INTO gateway_meters VALUES (who, 0) ON CONFLICT DO NOTHING;
      SELECT arrivals INTO place FROM gateway_meters WHERE key = who FOR UPDATE;
      moment := extract(epoch FROM clock_timestamp());
      IF tokens_a_minute IS NOT NULL THEN
        -- A second counts until its end is old enough.
        DELETE FROM gateway_tokens WHERE key = who AND (second <= moment - minute - 1 OR second > moment);
        SELECT coalesce(sum(tokens), 0), min(second) INTO total, oldest FROM gateway_tokens WHERE key = who;
        IF total >= tokens_a_minute THEN
          refused := 'tokens'; wait := coalesce(oldest, moment) + minute + 1 - moment; RETURN;
        END IF;
      END IF;
      IF at_a_time IS NOT NULL THEN
        DELETE FROM gateway_leases WHERE key = who AND (until <= moment OR until > moment + 2 * lease_seconds);
        SELECT count(*) INTO total FROM gateway_leases WHERE key = who;
        IF total >= at_a_time THEN
          refused := 'concurrent'; wait := 1; RETURN;
        END IF;
      END IF;
      IF per_minute IS NOT NULL THEN
        oldest := moment;
        IF per_minute > 0 THEN
          SELECT max(time) INTO oldest FROM gateway_arrivals WHERE key = who AND slot = place % per_minute;
        END IF;
        IF moment >= oldest AND moment - oldest < minute THEN
          refused := 'requests'; wait := oldest + minute - moment; RETURN;
        END IF;
        INSERT INTO gateway_arrivals VALUES (who, place % per_minute, moment)
          ON CONFLICT (key, slot) DO UPDATE SET time = excluded.time;
        UPDATE gateway_meters SET arrivals = arrivals + 1 WHERE key = who;
      END IF;
      IF at_a_time IS NOT NULL THEN
        INSERT INTO gateway_leases VALUES (new_lease, who, moment + lease_seconds);
      END IF;
    END $$
    """,
)
_ADD = f"""
WITH released AS (DELETE FROM gateway_reservations WHERE id = %s),
added AS (
  INSERT INTO gateway_usage ({ENTRY}) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
  ON CONFLICT (id) DO NOTHING RETURNING key_id, cost, coalesce(input, 0) + coalesce(output, 0) AS tokens)
UPDATE gateway_keys SET spent = spent + coalesce(added.cost, 0), spent_tokens = spent_tokens + added.tokens FROM added
WHERE gateway_keys.id = added.key_id AND added.key_id <> '' AND (added.cost IS NOT NULL OR added.tokens > 0)
"""  # noqa: S608 - our own names
_ENTER = "SELECT refused, wait FROM gateway_enter(?, ?, ?, ?, ?, ?, ?)"
_RESERVE = "SELECT refused FROM gateway_reserve(?, ?, ?, ?, ?, ?::BIGINT, ?::BIGINT)"
_RENEW = "UPDATE gateway_reservations SET until = extract(epoch FROM clock_timestamp()) + ? WHERE id = ANY(?)"
_ADD_COLUMN = """
DO $$ BEGIN
  IF NOT EXISTS (SELECT 1 FROM pg_attribute WHERE attrelid = '{table}'::regclass AND attname = '{column}') THEN
    ALTER TABLE {table} ADD COLUMN {column} {kind};
  END IF;
END $$
"""
_LEAVE = "DELETE FROM gateway_leases WHERE lease = ?"
_COUNT = """
INSERT INTO gateway_tokens VALUES (?, floor(extract(epoch FROM clock_timestamp())), ?)
ON CONFLICT (key, second) DO UPDATE SET tokens = gateway_tokens.tokens + excluded.tokens
"""
_BEAT = "UPDATE gateway_leases SET until = extract(epoch FROM clock_timestamp()) + ? WHERE lease = ANY(?)"

Result = TypeVar("Result")


class PostgresDatabase:
    """A small connection pool, filled on demand. `dsn` is a libpq address: postgresql://user@host/database."""

    shared = True

    def __init__(self, dsn: str) -> None:
        self._psycopg = import_extra("psycopg", "postgres")
        self._dsn = dsn
        self._idle: list[Any] = []
        self._is_closed = False
        self._turns = asyncio.Semaphore(_SIZE)

    async def prepare(self) -> None:
        """Create the tables. Without the privilege to do so, it is enough that they exist."""

        async def work(connection: Any) -> None:
            async with connection.transaction():
                await connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
                added = [_ADD_COLUMN.format(table=table, column=name, kind=kind) for table, name, kind in ADDED_COLUMNS]
                for statement in (*SCHEMA, *_METERS, *added, *FILLED):
                    await connection.execute(statement)

        try:
            await self._run(work)
        except Unavailable as error:
            denied = isinstance(error.__cause__, self._psycopg.errors.InsufficientPrivilege)
            if not denied or await self.rows("SELECT to_regclass('gateway_keys')") == [(None,)]:
                await self.close()
                raise

    async def rows(self, statement: str, values: Sequence[object] = ()) -> list[Row]:
        given = _storable(values)

        async def work(connection: Any) -> list[Row]:
            cursor = await connection.execute(statement.replace("?", "%s"), given)
            return list(await cursor.fetchall()) if cursor.description is not None else []

        return await self._run(work)

    async def add(self, entries: Sequence[Row]) -> None:
        async def work(connection: Any) -> None:
            values = [_storable((entry[0], *entry)) for entry in entries]
            if len(values) == 1:
                await connection.execute(_ADD, values[0])
                return
            async with connection.cursor() as cursor:
                await cursor.executemany(_ADD, values)  # in one round trip

        await self._run(work)

    async def reserve(self, reservation: Reservation) -> None:
        new = reservation
        ((refused,),) = await self.rows(
            _RESERVE,
            (new.id, new.key_id, new.budget, new.amount, new.seconds, new.token_budget, new.tokens),
        )
        if refused is not None:
            raise OverBudget(is_spent=refused == "spent")

    async def renew(self, ids: Sequence[str], seconds: float) -> None:
        await self.rows(_RENEW, (seconds, list(ids)))

    async def _run(self, work: Callable[[Any], Awaitable[Result]]) -> Result:
        """Run work, which must be idempotent: it is repeated if a connection broke while idle."""
        errors = self._psycopg
        try:
            async with asyncio.timeout(_PATIENCE):
                try:
                    async with self._connection() as connection:
                        return await work(connection)
                except (errors.OperationalError, errors.InterfaceError):
                    await self._drop()
                    async with self._connection() as connection:
                        return await work(connection)
        except errors.errors.UniqueViolation as error:
            raise Conflict(str(error)) from error
        except (errors.DataError, OverflowError, UnicodeError) as error:
            raise Unwritable(f"PostgreSQL: {_reason(error)}") from error
        except (errors.Error, OSError, TimeoutError) as error:
            raise Unavailable(f"PostgreSQL: {_reason(error)}") from error

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[Any]:
        async with self._turns:
            connection = self._idle.pop() if self._idle else await self._connect()
            try:
                yield connection
            except BaseException:  # the next query must not read the answer of a cancelled one
                await connection.close()
                raise
            if self._is_closed:  # work that ends after the store was closed
                await connection.close()
            else:
                self._idle.append(connection)

    async def _connect(self) -> Any:
        # No prepared statements: a connection pooler in between would run them on another connection.
        return await self._psycopg.AsyncConnection.connect(
            self._dsn, autocommit=True, prepare_threshold=None, connect_timeout=_CONNECTING
        )

    async def _drop(self) -> None:
        idle, self._idle = self._idle, []
        for connection in idle:
            with suppress(self._psycopg.Error):
                await connection.close()

    async def close(self) -> None:
        self._is_closed = True
        await self._drop()


def _storable(values: Sequence[object]) -> tuple[object, ...]:
    """Replace null characters, which PostgreSQL's texts cannot hold, so that usage of a model named so is recorded."""
    return tuple([one.replace("\0", "\ufffd") if isinstance(one, str) else one for one in values])


def _reason(error: BaseException) -> str:
    """Return the first line of the message; libpq's messages never contain the password."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


class PostgresMeters:
    """Limits of all gateways that share a database."""

    def __init__(self, database: PostgresDatabase, timing: Timing | None = None) -> None:
        self._database = database
        self._timing = timing or Timing()
        self._leases: set[str] = set()

    async def enter(self, grant: Grant) -> Ticket:
        lease = secrets.token_hex(8) if grant.concurrent is not None else ""
        limits = (grant.id, grant.requests_per_minute, grant.concurrent, grant.tokens_per_minute)
        values = (*limits, self._timing.window, lease, self._timing.lease)
        ((refused, wait),) = await self._database.rows(_ENTER, values)
        if refused is not None:
            raise Exceeded(refused, wait)
        if lease:  # a process that stops before this leaves a lease that expires
            self._leases.add(lease)
        return Ticket(grant.id, lease, grant.tokens_per_minute is not None)

    async def leave(self, ticket: Ticket, tokens: int) -> None:
        if ticket.lease:
            self._leases.discard(ticket.lease)
            await self._database.rows(_LEAVE, (ticket.lease,))
        if ticket.counts_tokens and tokens:
            await self._database.rows(_COUNT, (ticket.key, tokens))

    async def beat(self) -> None:
        if self._leases:
            await self._database.rows(_BEAT, (self._timing.lease, list(self._leases)))

    async def close(self) -> None:
        """Do nothing: the caller that opened the database closes it."""
