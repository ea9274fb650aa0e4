"""Connects to the database and the limit store that an address names."""

from __future__ import annotations

import sqlite3

from dragoman.drivers.connect import Environment
from dragoman.errors import NotConfigured
from dragoman.gateway.config import CacheTable, ConfigError, Server
from dragoman.gateway.routing import revealed_key
from dragoman.gateway.state.answers import AnswerStore, MemoryAnswers, RedisAnswers, SqlAnswers
from dragoman.gateway.state.base import Meters, Timing, Unavailable
from dragoman.gateway.state.ledger import Ledger
from dragoman.gateway.state.memory import MemoryMeters
from dragoman.gateway.state.postgres import PostgresDatabase, PostgresMeters
from dragoman.gateway.state.redis import RedisMeters
from dragoman.gateway.state.sql import Database, SqlStore
from dragoman.gateway.state.sqlite import SqliteDatabase, SqliteMeters

_POSTGRES = ("postgresql://", "postgres://")
_REDIS = ("redis://", "rediss://", "unix://")


def is_address(name: str) -> bool:
    return "://" in name


async def open_store(address: str) -> tuple[SqlStore, SqliteDatabase | PostgresDatabase]:
    """Open `postgresql://…`, a SQLite file, or a store in memory if the address is empty. Raises `ConfigError`."""
    try:
        if address.startswith(_POSTGRES):
            postgres = PostgresDatabase(address)
            await postgres.prepare()
            return SqlStore(postgres), postgres
        if is_address(address):
            raise ConfigError(f"server.database: a file or postgresql://…, not {address.partition('://')[0]}://…")
        sqlite = SqliteDatabase(address)
        return SqlStore(sqlite), sqlite
    except NotConfigured as error:
        raise ConfigError(f"server.database: {error}") from None
    except (Unavailable, sqlite3.Error) as error:
        shown = "the database" if is_address(address) else address
        raise ConfigError(f"{shown}: {error}") from None


async def open_ledger(server: Server, environment: Environment, timing: Timing | None = None) -> Ledger:
    """Open the ledger. Limits are stored with the keys unless they are configured separately. Raises `ConfigError`."""
    address, limits = (revealed_key(name, environment) for name in (server.database, server.limits))
    used = timing or Timing(lease=server.lease_seconds)
    store, database = await open_store(address)
    try:
        meters = _meters(limits, database, used)
        if isinstance(meters, RedisMeters):
            await meters.prepare()
        ledger = Ledger(store, meters, used, keeps_all=server.usage)
        await ledger.refresh()
    except (Unavailable, ConfigError) as error:
        await store.close()
        raise ConfigError(str(error)) from None
    return ledger


def open_answers(table: CacheTable, environment: Environment, database: Database) -> AnswerStore:
    """Open the store of cached answers. Raises `ConfigError`."""
    address = revealed_key(table.store, environment)
    if address == "memory":
        return MemoryAnswers(table.max_bytes)
    if address == "database":
        return SqlAnswers(database, table.max_bytes)
    if not address.startswith(_REDIS):
        raise ConfigError('cache.store: "memory", "database" or redis://…')
    try:
        return RedisAnswers(address)
    except (NotConfigured, ValueError) as error:
        raise ConfigError(f"cache.store: {error}") from None


def _meters(limits: str, database: SqliteDatabase | PostgresDatabase, timing: Timing) -> Meters:
    if limits.startswith(_REDIS):
        try:
            return RedisMeters(limits, timing)
        except (NotConfigured, ValueError) as error:
            raise ConfigError(f"server.limits: {error}") from None
    if limits not in {"", "memory"}:
        raise ConfigError('server.limits: "memory" or redis://…; left out, limits are where the keys are')
    if limits == "memory" or not database.shared:
        return MemoryMeters(timing)
    if isinstance(database, PostgresDatabase):
        return PostgresMeters(database, timing)
    return SqliteMeters(database, timing)
