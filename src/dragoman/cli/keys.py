"""`dragoman keys`: keys of providers that you store, and keys that clients show to your gateway."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.cli.problems import CommandError

if TYPE_CHECKING:
    from dragoman.drivers.key_store import KeyStore

SUMMARY = "store keys of providers; make and revoke keys of your gateway"
DESCRIPTION = """\
Two kinds of keys:

  keys of providers, which you pay with     set PROVIDER, unset PROVIDER, stored
  keys of your gateway, which you give out  create, list, rotate, revoke NAME

`set` asks for the key, or reads it from a pipe, and keeps it in the keyring of
this system (with the package keyring installed), or else in a file that only you
can read. ask, run, chat, serve and doctor find it there; an environment variable
of the provider wins over it.

Of the keys of your gateway the database keeps the digests only: such a key is
shown once, when it is made.
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
    parser.add_argument("action", choices=(*_PROVIDERS, "create", "list", "revoke", "rotate"))
    parser.add_argument("name", nargs="?", metavar="NAME", help="of the provider, or of the key")
    parser.add_argument("--json", action="store_true", help="one line of JSON for each key")
    gateway = parser.add_argument_group("keys of the gateway")
    gateway.add_argument(
        "--database", metavar="ADDRESS", help="SQLite file or postgresql://… (default: that of the configuration)"
    )
    gateway.add_argument("--config", type=Path, metavar="FILE", help="TOML file that names the database")
    gateway.add_argument(
        "--models", action="append", default=[], metavar="PATTERN", help="models it is for (default: all)"
    )
    gateway.add_argument("--days", type=float, help="until it expires")
    gateway.add_argument("--requests-per-minute", type=int, metavar="N")
    gateway.add_argument("--concurrent", type=int, metavar="N", help="requests at a time")
    gateway.add_argument("--tokens-per-minute", type=int, metavar="N", help="input and output together")
    gateway.add_argument("--budget", type=float, metavar="AMOUNT", help="in the currency of the prices (USD)")
    gateway.add_argument("--token-budget", type=int, metavar="N", help="input and output together, for its whole life")


def run(arguments: argparse.Namespace) -> int:
    if arguments.action not in {"list", "stored"} and not arguments.name:
        which = "which provider" if arguments.action in _PROVIDERS else "which key"
        raise CommandError(f"keys {arguments.action}: {which}? give its name")
    if arguments.action in _PROVIDERS:
        return _of_provider(arguments)
    return _of_gateway(arguments)


# ── keys of providers ──


def _of_provider(arguments: argparse.Namespace) -> int:
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
        raise CommandError("no key was given: nothing is stored")
    if any(character.isspace() or not character.isprintable() for character in key) or len(key) > _LONGEST:
        raise CommandError("that is not a key: it has blanks or control characters, or is too long")
    yield f"the key of {provider.name} is in {store.set(provider.name, key)}; check it with: dragoman doctor"


def _read_key(provider: str) -> str:
    """From a pipe, or without an echo from the terminal. Never from the command line, which others can list."""
    if sys.stdin is None:
        raise CommandError("no key was given: standard input is closed")
    if not sys.stdin.isatty():
        return sys.stdin.read(_LONGEST + 2).strip()
    import getpass

    return getpass.getpass(f"Key of {provider} (not shown): ").strip()


def _unset(store: KeyStore, arguments: argparse.Namespace) -> Iterator[str]:
    if not store.remove(arguments.name):
        raise CommandError(f"no key of {arguments.name} is stored")
    yield f"the key of {arguments.name} is gone"


def _stored(store: KeyStore, arguments: argparse.Namespace) -> Iterator[str]:
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
    "stored": _stored,
}


# ── keys of the gateway ──


def _of_gateway(arguments: argparse.Namespace) -> int:
    import asyncio

    try:
        from dragoman.gateway import admin_commands
        from dragoman.gateway.config import ConfigError
    except ImportError as error:
        from dragoman.installation import install_command

        raise CommandError(f"{error.name} is not installed: {install_command('gateway')}") from None
    try:
        lines = asyncio.run(admin_commands.keys(arguments))
    except ConfigError as error:
        raise CommandError(str(error)) from None
    for line in lines:
        print(line)
    return 0
