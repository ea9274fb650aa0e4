"""`dragoman usage`: what was asked through the gateway, and what it cost."""

from __future__ import annotations

import argparse
from pathlib import Path

from dragoman.cli.problems import CommandError

SUMMARY = "tokens and cost by key and model"
DESCRIPTION = "Adds up the requests that `dragoman serve` has written to its database."
EXAMPLES = """\
examples:
  dragoman usage --database gateway.db --days 7
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--database", type=Path, metavar="FILE", help="SQLite file (default: that of the configuration)"
    )
    parser.add_argument("--config", type=Path, metavar="FILE", help="TOML file that names the database")
    parser.add_argument("--days", type=float, help="how far back (default: all)")
    parser.add_argument("--json", action="store_true", help="one line of JSON for each row")


def run(arguments: argparse.Namespace) -> int:
    from dragoman.gateway import commands
    from dragoman.gateway.config import ConfigError

    try:
        database = commands.database_of(arguments.database, arguments.config)
        lines = commands.usage(database, days=arguments.days, as_json=arguments.json)
    except ConfigError as error:
        raise CommandError(str(error)) from None
    for line in lines:
        print(line)
    return 0
