"""`dragoman keys`: who may ask the gateway."""

from __future__ import annotations

import argparse
from pathlib import Path

from dragoman.cli.problems import CommandError

SUMMARY = "make, list and revoke keys of the gateway"
DESCRIPTION = """\
Keys that clients show to `dragoman serve`. The database keeps their digests only:
a key is shown once, when it is made.
"""
EXAMPLES = """\
examples:
  dragoman keys create alice --database gateway.db --models 'anthropic/*' --budget 20 --days 30
  dragoman keys list --database gateway.db
  dragoman keys revoke alice --database gateway.db
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("create", "list", "revoke"))
    parser.add_argument("name", nargs="?", help="of the key")
    parser.add_argument(
        "--database", type=Path, metavar="FILE", help="SQLite file (default: that of the configuration)"
    )
    parser.add_argument("--config", type=Path, metavar="FILE", help="TOML file that names the database")
    parser.add_argument(
        "--models", action="append", default=[], metavar="PATTERN", help="models it is for (default: all)"
    )
    parser.add_argument("--days", type=float, help="until it expires")
    parser.add_argument("--requests-per-minute", type=int, metavar="N")
    parser.add_argument("--concurrent", type=int, metavar="N", help="requests at a time")
    parser.add_argument("--budget", type=float, metavar="AMOUNT", help="in the currency of the prices")


def run(arguments: argparse.Namespace) -> int:
    from dragoman.gateway import commands
    from dragoman.gateway.config import ConfigError

    if arguments.action != "list" and not arguments.name:
        raise CommandError(f"keys {arguments.action}: which key? give its name")
    try:
        database = commands.database_of(arguments.database, arguments.config)
        lines = commands.KEY_ACTIONS[arguments.action](database, arguments)
    except ConfigError as error:
        raise CommandError(str(error)) from None
    for line in lines:
        print(line)
    return 0
