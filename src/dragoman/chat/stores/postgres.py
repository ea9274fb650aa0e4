"""PostgreSQL as the database of a `SqlStore` (extra `postgres`: psycopg)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import RLock
from typing import Any

from dragoman.chat.stores.base import DEFAULT_USER
from dragoman.chat.stores.sql import SqlStore
from dragoman.drivers.credentials import needed

_LOCK = 0x647261  # any number, the same for all of us: one writer at a time


class Postgres:
    """One connection. `dsn` is what libpq takes: postgresql://user@host/database."""

    def __init__(self, dsn: str) -> None:
        self._turn = RLock()
        self._connection: Any = needed("psycopg", "postgres").connect(dsn, autocommit=True)

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with self._turn, self._connection.cursor() as cursor:
            cursor.execute(statement.replace("?", "%s"), tuple(values))
            return cursor.fetchall() if cursor.description is not None else []

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with self._turn, self._connection.transaction():
            self._connection.execute("select pg_advisory_xact_lock(%s)", (_LOCK,))
            yield

    def close(self) -> None:
        self._connection.close()


class PostgresStore(SqlStore):
    def __init__(self, dsn: str, user: str = DEFAULT_USER) -> None:
        super().__init__(Postgres(dsn), user)
