"""`dragoman keys`: stored provider keys, and keys of your gateway's clients."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from dragoman.cli.problems import CommandError, not_installed

if TYPE_CHECKING:
    from dragoman.drivers.key_store import KeyStore

SUMMARY = "store provider keys; create and revoke keys of your gateway"
DESCRIPTION = """\
Two kinds of keys:

  provider keys, which you pay with         set PROVIDER, unset PROVIDER, stored
  gateway keys, which you give to clients   create, list, rotate, revoke NAME

`set` asks for the key, or reads it from a pipe, and stores it in the system's
keyring (if the package keyring is installed) or in a file that only you can
read. ask, run, chat, serve and doctor find it there; the provider's environment
variable overrides it.

The database stores only digests of gateway keys: a key is shown once, when it
is created.
"""
EXAMPLES = """\
examples:
  dragoman keys set openai
  pass show anthropic | dragoman keys set anthropic
  dragoman keys stored

  dragoman keys create alice --database gateway.db --models 'anthropic/*' --budget 20 --days 30
  dragoman keys list --database postgresql://me@db.example.com/gateway --json
  dragoman keys rotate alice --database gateway.db
  dragoman keys revoke alice --database gateway.db
"""
_LONGEST = 16 << 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = (*_PROVIDERS, "create", "list", "revoke", "rotate")
    parser.add_argument("action", metavar="ACTION", choices=actions, help=", ".join(actions))
    parser.add_argument("name", nargs="?", metavar="NAME", help="name of the provider or of the gateway key")
    parser.add_argument("rest", nargs="*", default=[], help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true", help="one line of JSON for each key")
    gateway = parser.add_argument_group("options of gateway keys")
    gateway.add_argument(
        "--database", metavar="ADDRESS", help="SQLite file or postgresql://… (default: that of the configuration)"
    )
    gateway.add_argument("--config", type=Path, metavar="FILE", help="TOML file that names the database")
    gateway.add_argument(
        "--models", action="append", default=[], metavar="PATTERN", help="models that the key may use (default: all)"
    )
    gateway.add_argument("--days", type=float, help="days until it expires")
    gateway.add_argument("--requests-per-minute", type=int, metavar="N")
    gateway.add_argument("--concurrent", type=int, metavar="N", help="requests at a time")
    gateway.add_argument("--tokens-per-minute", type=int, metavar="N", help="input and output together")
    gateway.add_argument(
        "--budget", type=float, metavar="AMOUNT", help="spending limit in the currency of the prices (USD)"
    )
    gateway.add_argument(
        "--token-budget", type=int, metavar="N", help="limit of input and output tokens over its lifetime"
    )


def run(arguments: argparse.Namespace) -> int:
    if arguments.rest and arguments.action == "set":
        raise CommandError("keys set asks for the key, or reads it from a pipe: shells remember arguments")
    if arguments.rest:
        raise CommandError(f"unexpected argument {arguments.rest[0]!r} (see: dragoman keys --help)")
    if arguments.action not in {"list", "stored"} and not arguments.name:
        example = "openai" if arguments.action in _PROVIDERS else "alice"
        raise CommandError(f"keys {arguments.action} needs a name, such as: dragoman keys {arguments.action} {example}")
    if arguments.action in _PROVIDERS:
        return _run_provider_action(arguments)
    return run_admin_command("keys", arguments)


# ── keys of providers ──


def _run_provider_action(arguments: argparse.Namespace) -> int:
    from dragoman.drivers.key_store import KeyStore
    from dragoman.errors import DragomanError

    try:
        for line in _PROVIDERS[arguments.action](KeyStore.open(), arguments):
            print(line)
    except DragomanError as error:
        raise CommandError(str(error)) from None
    return 0


def _set(store: KeyStore, arguments: argparse.Namespace) -> Iterator[str]:
    from dragoman.drivers.providers import find_provider

    provider = find_provider(arguments.name)
    key = _read_key(provider.name)
    if not key:
        raise CommandError("no key given: nothing is stored")
    if any(character.isspace() or not character.isprintable() for character in key) or len(key) > _LONGEST:
        raise CommandError("that is not a key: it contains spaces or control characters, or is too long")
    yield f"the key of {provider.name} is in {store.set(provider.name, key)}; check it with: dragoman doctor"


def _read_key(provider: str) -> str:
    """Reads the key from a pipe, or from the terminal without echo. Never from arguments, which other users can see."""
    if sys.stdin is None:
        raise CommandError("no key given: standard input is closed")
    if not sys.stdin.isatty():
        return sys.stdin.read(_LONGEST + 2).strip()
    import getpass

    return getpass.getpass(f"Key of {provider} (not shown): ").strip()


def _unset(store: KeyStore, arguments: argparse.Namespace) -> Iterator[str]:
    if not store.remove(arguments.name):
        raise CommandError(f"no key of {arguments.name} is stored")
    yield f"the key of {arguments.name} was removed"


def _list_stored(store: KeyStore, arguments: argparse.Namespace) -> Iterator[str]:
    import json

    places = store.places()
    if arguments.json:
        yield from (json.dumps({"provider": name, "in": place}) for name, place in places.items())
    elif places:
        yield from (f"{name:<20} {place}" for name, place in places.items())
    else:
        yield "no keys are stored; store one with: dragoman keys set PROVIDER"


_PROVIDERS: Mapping[str, Callable[[KeyStore, argparse.Namespace], Iterator[str]]] = {
    "set": _set,
    "unset": _unset,
    "stored": _list_stored,
}


# ── keys of the gateway ──


def run_admin_command(name: Literal["keys", "usage"], arguments: argparse.Namespace) -> int:
    """Run a command on the gateway's database, and print its lines."""
    import asyncio

    try:
        from dragoman.gateway import admin_commands
        from dragoman.gateway.config import ConfigError
    except ImportError as error:
        raise not_installed(error, "gateway") from None
    command = admin_commands.keys if name == "keys" else admin_commands.usage
    try:
        lines = asyncio.run(command(arguments))
    except ConfigError as error:
        raise CommandError(str(error)) from None
    for line in lines:
        print(line)
    return 0
