"""PostgreSQL as the database of a `SqlStore` (extra `postgres`: psycopg)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import RLock
from typing import Any

from dragoman.chat.stores.base import DEFAULT_USER
from dragoman.chat.stores.sql import SqlStore
from dragoman.drivers.credentials import needed
from dragoman.errors import NotConfigured

_LOCK = 0x647261  # key of the advisory lock: one writer at a time for each user


class Postgres:
    """One connection, reopened when the server has closed it. `dsn` is what libpq takes: postgresql://user@host/db."""

    def __init__(self, dsn: str) -> None:
        self._turn = RLock()
        self._dsn = dsn
        self._driver: Any = needed("psycopg", "postgres")
        self._connection: Any = self._connect()

    def _connect(self) -> Any:
        try:
            return self._driver.connect(self._dsn, autocommit=True)
        except self._driver.OperationalError as error:
            raise NotConfigured(f"the database does not answer: {error}", missing="postgres") from None

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with self._turn, self._live_connection().cursor() as cursor:
            cursor.execute(statement.replace("?", "%s"), tuple(values))
            return cursor.fetchall() if cursor.description is not None else []

    def _live_connection(self) -> Any:
        """The connection, reopened if it was lost, unless a transaction is open."""
        if self._connection.info.transaction_status == self._driver.pq.TransactionStatus.INTRANS:
            return self._connection
        try:
            self._connection.execute("select 1")
        except self._driver.OperationalError:
            self._connection.close()
            self._connection = self._connect()
        return self._connection

    @contextmanager
    def transaction(self, owner: str) -> Iterator[None]:
        with self._turn, self._live_connection().transaction():
            self._connection.execute("select pg_advisory_xact_lock(%s, hashtext(%s))", (_LOCK, owner))
            yield

    def close(self) -> None:
        self._connection.close()


class PostgresStore(SqlStore):
    def __init__(self, dsn: str, user: str = DEFAULT_USER) -> None:
        super().__init__(Postgres(dsn), user)
