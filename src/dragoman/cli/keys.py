"""`dragoman keys`: who may ask the gateway."""

from __future__ import annotations

import argparse
from pathlib import Path

from dragoman.cli.problems import CommandError

SUMMARY = "make, list, replace and revoke keys of the gateway"
DESCRIPTION = """\
Keys that clients show to `dragoman serve`. The database keeps their digests only:
a key is shown once, when it is made.
"""
EXAMPLES = """\
examples:
  dragoman keys create alice --database gateway.db --models 'anthropic/*' --budget 20 --days 30
  dragoman keys list --database postgresql://me@db.example.com/gateway --json
  dragoman keys rotate alice --database gateway.db
  dragoman keys revoke alice --database gateway.db
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("create", "list", "revoke", "rotate"))
    parser.add_argument("name", nargs="?", help="of the key")
    parser.add_argument(
        "--database", metavar="ADDRESS", help="SQLite file or postgresql://… (default: that of the configuration)"
    )
    parser.add_argument("--config", type=Path, metavar="FILE", help="TOML file that names the database")
    parser.add_argument(
        "--models", action="append", default=[], metavar="PATTERN", help="models it is for (default: all)"
    )
    parser.add_argument("--days", type=float, help="until it expires")
    parser.add_argument("--requests-per-minute", type=int, metavar="N")
    parser.add_argument("--concurrent", type=int, metavar="N", help="requests at a time")
    parser.add_argument("--tokens-per-minute", type=int, metavar="N", help="input and output together")
    parser.add_argument("--budget", type=float, metavar="AMOUNT", help="in the currency of the prices (USD)")
    parser.add_argument("--token-budget", type=int, metavar="N", help="input and output together, for its whole life")
    parser.add_argument("--json", action="store_true", help="one line of JSON for each key")


def run(arguments: argparse.Namespace) -> int:
    import asyncio

    try:
        from dragoman.gateway import admin_commands
        from dragoman.gateway.config import ConfigError
    except ImportError as error:
        raise CommandError(f"{error.name} is not installed: pip install 'dragoman[gateway]'") from None

    if arguments.action != "list" and not arguments.name:
        raise CommandError(f"keys {arguments.action}: which key? give its name")
    try:
        lines = asyncio.run(admin_commands.keys(arguments))
    except ConfigError as error:
        raise CommandError(str(error)) from None
    for line in lines:
        print(line)
    return 0
