"""The commands `keys` and `usage`, for any kind of database."""

from __future__ import annotations

import argparse
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeAlias

import msgspec

from dragoman.gateway.access import digest_of
from dragoman.gateway.config import ConfigError, load_config
from dragoman.gateway.config_file import find_config_file
from dragoman.gateway.routing import revealed_key
from dragoman.gateway.serving import environment
from dragoman.gateway.state.base import Grant, Group, KeyRow, NameTaken, Store, Unavailable, UsageRow
from dragoman.gateway.state.connect import is_address, open_store

_DAY = 86_400.0
GROUPS: tuple[Group, ...] = ("key", "model", "day")


@asynccontextmanager
async def database_of(address: str | None, config: Path | None, *, creates: bool = False) -> AsyncIterator[Store]:
    """Open the given database, or else the configured one. Raises `ConfigError`."""
    store, _ = await open_store(_address(address, config, creates=creates))
    try:
        yield store
    except Unavailable as error:
        raise ConfigError(str(error)) from None
    finally:
        await store.close()


def _address(given: str | None, config: Path | None, *, creates: bool) -> str:
    name = given or load_config(find_config_file(config).path).server.database
    if not name:
        raise ConfigError("which database? give --database, or set server.database in the configuration")
    address = revealed_key(name, environment())
    if not creates and not is_address(address) and not Path(address).exists():
        raise ConfigError(f"there is no database {address}: `dragoman serve` and `dragoman keys create` make one")
    return address


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


# ── keys ──


def new_key() -> str:
    return f"dgm-{secrets.token_urlsafe(32)}"


def _shown_once(arguments: argparse.Namespace, key: str) -> Iterable[str]:
    return (_json({"name": arguments.name, "key": key}) if arguments.json else key,)


async def _create(store: Store, arguments: argparse.Namespace) -> Iterable[str]:
    key = new_key()
    grant = Grant(
        name=arguments.name,
        id=f"key:{secrets.token_hex(16)}",
        digest=digest_of(key),
        models=tuple(arguments.models),
        expires=None if arguments.days is None else time.time() + arguments.days * _DAY,
        requests_per_minute=arguments.requests_per_minute,
        concurrent=arguments.concurrent,
        tokens_per_minute=arguments.tokens_per_minute,
        budget=arguments.budget,
        token_budget=arguments.token_budget,
    )
    try:
        await store.create(grant)
    except NameTaken:
        raise ConfigError(
            f"A key named {arguments.name!r} exists already; `keys rotate` gives it a new secret"
        ) from None
    return _shown_once(arguments, key)


async def _list(store: Store, arguments: argparse.Namespace) -> Iterable[str]:
    rows = await store.list_keys()
    if arguments.json:
        return [_json({**msgspec.structs.asdict(row), "state": row.state}) for row in rows]
    return [_line_of(row) for row in rows]


def _line_of(row: KeyRow) -> str:
    budget = "" if row.budget is None else f" of {row.budget:g}"
    limits = {
        "requests/min": row.requests_per_minute,
        "at a time": row.concurrent,
        "tokens/min": row.tokens_per_minute,
        "tokens in all": row.token_budget,
    }
    limited = "".join(f", {limit} {words}" for words, limit in limits.items() if limit is not None)
    models = ", ".join(row.models) or "all models"
    return (
        f"{row.name:<24} {row.state:<8} {models:<32} spent {row.spent:.4f}{budget}, {row.spent_tokens} tokens{limited}"
    )


async def _revoke(store: Store, arguments: argparse.Namespace) -> Iterable[str]:
    if not await store.revoke(arguments.name):
        raise ConfigError(f"No active key named {arguments.name!r}")
    return (_json({"name": arguments.name, "revoked": True}) if arguments.json else f"{arguments.name} is revoked",)


async def _rotate(store: Store, arguments: argparse.Namespace) -> Iterable[str]:
    key = new_key()
    if not await store.rotate(arguments.name, digest_of(key)):
        raise ConfigError(f"No active key named {arguments.name!r}")
    return _shown_once(arguments, key)


Action: TypeAlias = Callable[[Store, argparse.Namespace], Awaitable[Iterable[str]]]
KEY_ACTIONS: Mapping[str, Action] = {"create": _create, "list": _list, "revoke": _revoke, "rotate": _rotate}


async def keys(arguments: argparse.Namespace) -> Iterable[str]:
    creates = arguments.action == "create"
    async with database_of(arguments.database, arguments.config, creates=creates) as store:
        return await KEY_ACTIONS[arguments.action](store, arguments)


# ── usage ──

_HEADINGS: Mapping[Group, str] = {"key": f"{'key':<16}", "model": f"{'model':<44}", "day": f"{'day':<10}"}
_COLUMNS: Mapping[Group, Callable[[UsageRow], str]] = {
    "key": lambda row: f"{row.key or '-':<16}",
    "model": lambda row: f"{row.upstream + '/' + row.model:<44}",
    "day": lambda row: f"{row.day:<10}",
}


async def usage(arguments: argparse.Namespace) -> Iterable[str]:
    since = 0.0 if arguments.days is None else time.time() - arguments.days * _DAY
    groups: tuple[Group, ...] = tuple(arguments.by) or ("key", "model")
    async with database_of(arguments.database, arguments.config) as store:
        rows = await store.usage(since, groups)
    if arguments.json:
        return [_json(row) for row in rows]
    counts = f"{'requests':>9} {'failed':>7} {'input':>11} {'output':>11} {'cost':>11}"
    return [" ".join((*(_HEADINGS[group] for group in groups), counts)), *(_line(row, groups) for row in rows)]


def _line(row: UsageRow, groups: Iterable[Group]) -> str:
    counts = f"{row.requests:>9} {row.failed:>7} {row.input:>11} {row.output:>11} {row.cost:>11.4f}"
    return " ".join((*(_COLUMNS[group](row) for group in groups), counts))
