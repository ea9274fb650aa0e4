"""What the commands `serve`, `keys` and `usage` do."""

from __future__ import annotations

import argparse
import asyncio
import os
import secrets
import signal
import socket
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack, closing
from pathlib import Path

import msgspec
from msgspec import Struct, structs

from dragoman.gateway.access import Access, Grant, digest_of
from dragoman.gateway.config import Config, ConfigError
from dragoman.gateway.ledger import SqliteLedger
from dragoman.gateway.locally import local_servers
from dragoman.gateway.recipes import RECIPES, recipe
from dragoman.gateway.routing import Router
from dragoman.gateway.serving import (
    Front,
    Running,
    Setting,
    check_exposure,
    environment,
    has_keys,
    listening_socket,
    load_config,
    run,
    simulators,
)

_PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_DAY = 86_400.0
_BREATH = 0.2
"""Seconds before a worker that died is replaced, so that one that cannot start does not keep the machine busy."""


class ServeOptions(Struct, frozen=True, kw_only=True):
    file: Path | None = None
    host: str | None = None
    port: int | None = None
    workers: int = 1
    simulate: bool = False
    quiet: bool = False
    front: Front | None = None
    """Stands before the first worker alone: what it shows is kept in one process."""

    def config(self) -> Config:
        """The file's, where the command line says nothing else."""
        config = load_config(self.file)
        given: dict[str, object] = {"host": self.host, "port": self.port, "log": "off" if self.quiet else None}
        changes = {name: value for name, value in given.items() if value is not None}
        return structs.replace(config, server=structs.replace(config.server, **changes))


# ── serve ──


def checked(options: ServeOptions) -> str:
    config = options.config()
    Router(config, environment())
    return f"{options.file or 'no file'}: {len(config.providers)} providers, {len(config.routes)} routes, no mistakes"


def environment_for(client: str, options: ServeOptions, model: str) -> str:
    if client == "list":
        return "\n".join(RECIPES)
    if client not in RECIPES:
        raise ConfigError(f"no recipe for {client!r}; there are {', '.join(RECIPES)}")
    server = options.config().server
    host = f"[{server.host}]" if ":" in server.host else server.host
    key = "YOUR_KEY" if server.keys else "any"
    return recipe(client, url=f"http://{host}:{server.port}", key=key, model=model)


def serve(options: ServeOptions) -> int:
    config = options.config()
    if options.workers > 1 and not config.server.database:
        with tempfile.TemporaryDirectory(prefix="dragoman-") as folder:
            # What one process keeps, the others have to find.
            shared = structs.replace(config.server, database=str(Path(folder) / "gateway.db"))
            return _serve(options, structs.replace(config, server=shared))
    return _serve(options, config)


def _serve(options: ServeOptions, config: Config) -> int:
    with closing(SqliteLedger(config.server.database)) as ledger:
        check_exposure(config.server.host, Access(config.server.keys, environment(), ledger))
    with listening_socket(config.server.host, config.server.port) as listening:
        if options.workers <= 1:
            asyncio.run(_work(options, config, listening, speaks=True))
            return 0
        return _with_workers(options, config, listening)


def _with_workers(options: ServeOptions, config: Config, listening: socket.socket) -> int:
    """Forked before any event loop is there; signals that reach us reach them; one that dies is replaced."""
    children: set[int] = set()
    ending = False

    def start(*, speaks: bool) -> None:
        # A signal that comes just now waits until it is known who has to hear it.
        signal.pthread_sigmask(signal.SIG_BLOCK, _PASSED_ON)
        child = -1 if ending else os.fork()
        if child == 0:
            for number in _PASSED_ON:  # until it has its own
                signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _PASSED_ON)
            asyncio.run(_work(options, config, listening, speaks=speaks))
            os._exit(0)
        if child > 0:
            children.add(child)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _PASSED_ON)

    def pass_on(number: int, _frame: object) -> None:
        nonlocal ending
        ending = ending or number != signal.SIGHUP
        for child in children:
            os.kill(child, number)

    for number in _PASSED_ON:
        signal.signal(number, pass_on)
    for place in range(options.workers):
        start(speaks=place == 0)
    while children:
        child, status = os.wait()
        children.discard(child)
        if status and not ending:
            time.sleep(_BREATH)
        if status and not ending:
            start(speaks=False)
    return 0


async def _work(options: ServeOptions, config: Config, listening: socket.socket, *, speaks: bool) -> None:
    found = environment()
    local = await local_servers(found)
    offline = options.simulate or not has_keys(config, found)
    async with AsyncExitStack() as stack:
        simulated: Mapping[str, str] = {}
        if offline:
            simulated = await stack.enter_async_context(simulators())
            simulated = {name: url for name, url in simulated.items() if name not in local}
        setting = Setting(config=config, environment=found, simulated=simulated, local=local)

        def ready(running: Running) -> None:
            if speaks:
                sys.stderr.write("".join(f"{line}\n" for line in _greeting(running, setting, offline=offline)))
                sys.stderr.flush()

        front = options.front if speaks else None
        await run(setting, file=options.file, listening=listening, ready=ready, front=front)


def _greeting(running: Running, setting: Setting, *, offline: bool) -> Iterable[str]:
    yield f"{running.url}  dragoman gateway, until Ctrl-C"
    yield "  in a browser: requests as they happen, the chat, a playground"
    if offline:
        yield "  no keys of any provider found: the simulators answer (set one, such as ANTHROPIC_API_KEY)"
    names = ", ".join(place.name for place in running.gateway.router.available())
    yield f"  providers: {names or 'none'}"
    here = sorted(name for name, models in setting.local.items() if models)
    if here:
        yield f"  on this machine: {', '.join(here)}"
    yield f"  OpenAI: {running.url}/v1   Anthropic, Gemini, Ollama, Bedrock: {running.url}"


# ── keys and usage ──


def database_of(file: Path | None, config: Path | None) -> SqliteLedger:
    usual = Path("dragoman.toml")
    name = str(file) if file else load_config(config or (usual if usual.exists() else None)).server.database
    if not name:
        raise ConfigError("which database? give --database, or set server.database in the configuration")
    try:
        return SqliteLedger(name)
    except sqlite3.Error as error:
        raise ConfigError(f"{name}: {error}") from None


def _create(ledger: SqliteLedger, arguments: argparse.Namespace) -> Iterable[str]:
    key = f"dgm-{secrets.token_urlsafe(32)}"
    grant = Grant(
        name=arguments.name,
        digest=digest_of(key),
        models=tuple(arguments.models),
        expires=None if arguments.days is None else time.time() + arguments.days * _DAY,
        requests_per_minute=arguments.requests_per_minute,
        concurrent=arguments.concurrent,
        budget=arguments.budget,
    )
    try:
        ledger.create(grant)
    except sqlite3.IntegrityError:
        raise ConfigError(f"there is a key called {arguments.name!r} already") from None
    return (key,)


def _list(ledger: SqliteLedger, _arguments: argparse.Namespace) -> Iterable[str]:
    for row in ledger.listed():
        state = "revoked" if row.revoked else "expired" if row.expires and row.expires <= time.time() else "good"
        budget = "" if row.budget is None else f" of {row.budget:g}"
        yield f"{row.name:<24} {state:<8} {', '.join(row.models) or 'all models':<32} spent {row.spent:.4f}{budget}"


def _revoke(ledger: SqliteLedger, arguments: argparse.Namespace) -> Iterable[str]:
    if not ledger.revoke(arguments.name):
        raise ConfigError(f"no good key is called {arguments.name!r}")
    return (f"{arguments.name} is revoked",)


KEY_ACTIONS: Mapping[str, Callable[[SqliteLedger, argparse.Namespace], Iterable[str]]] = {
    "create": _create,
    "list": _list,
    "revoke": _revoke,
}


def usage(ledger: SqliteLedger, *, days: float | None, as_json: bool) -> Iterable[str]:
    rows = ledger.usage(0.0 if days is None else time.time() - days * _DAY)
    if as_json:
        yield from (msgspec.json.encode(row).decode() for row in rows)
        return
    yield f"{'key':<16} {'model':<44} {'requests':>9} {'failed':>7} {'input':>11} {'output':>11} {'cost':>11}"
    for row in rows:
        model = f"{row.upstream}/{row.model}"
        counts = f"{row.requests:>9} {row.failed:>7} {row.input:>11} {row.output:>11} {row.cost:>11.4f}"
        yield f"{row.key or '-':<16} {model:<44} {counts}"
