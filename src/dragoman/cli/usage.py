"""`dragoman usage`: tokens and cost of requests through the gateway."""

from __future__ import annotations

import argparse
from pathlib import Path

from dragoman.cli.keys import run_admin_command

SUMMARY = "show tokens and cost by key, model and day"
DESCRIPTION = "Adds up the requests that `dragoman serve` has written to its database."
EXAMPLES = """\
examples:
  dragoman usage --database gateway.db --days 7
  dragoman usage --database postgresql://me@db.example.com/gateway --by day --by key --json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--database", metavar="ADDRESS", help="SQLite file or postgresql://… (default: that of the configuration)"
    )
    parser.add_argument("--config", type=Path, metavar="FILE", help="TOML file that names the database")
    parser.add_argument("--days", type=float, help="only the last DAYS days (default: all)")
    parser.add_argument(
        "--by",
        action="append",
        default=[],
        choices=("key", "model", "day"),
        help="group by (repeatable; default: key and model)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object per row")


def run(arguments: argparse.Namespace) -> int:
    return run_admin_command("usage", arguments)
