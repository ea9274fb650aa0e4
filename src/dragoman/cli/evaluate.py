"""`dragoman eval`: cases against several models."""

from __future__ import annotations

import argparse
from pathlib import Path

from dragoman.cli.ask import add_connection

SUMMARY = "run a file of cases against several models and compare them"
DESCRIPTION = """\
Runs the cases of a file against several models and prints a table of the models:
passed cases with a 95 % interval (Wilson), cost by the catalogue, and the median
time with a 95 % interval (bootstrap). Failed cases follow.

A case is a prompt and what is expected of the answer: `contains`, `lacks`,
`matches` (a regular expression), `equals` (text or JSON) and `calls` (names of
tools). The file is JSON Lines, or TOML with [[case]] tables.
"""
EXAMPLES = """\
examples:
  dragoman eval cases.toml -m anthropic/claude-sonnet-5 -m openai/gpt-5.6
  dragoman eval cases.jsonl -m ollama/qwen3 --tools weather.py --repeat 5
  dragoman eval cases.toml -m openai/gpt-5.6 --min-pass 0.9 --json

exit codes: 0 done, 2 bad input, 5 a model passed less than --min-pass
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("cases", type=Path, metavar="FILE", help="the cases: .jsonl or .toml")
    parser.add_argument(
        "-m", "--model", action="append", default=[], metavar="MODEL", help="provider/model (repeatable)"
    )
    parser.add_argument("--tools", metavar="FILE", help="a Python file or module with tools")
    parser.add_argument("--system", metavar="TEXT", help="system prompt for every case")
    parser.add_argument("--repeat", type=int, default=1, metavar="N", help="run each case N times (default: 1)")
    parser.add_argument("--concurrency", type=int, default=4, metavar="N", help="cases at a time (default: 4)")
    parser.add_argument("--max-requests", type=int, default=20, metavar="N", help="requests per case (default: 20)")
    parser.add_argument("--min-pass", type=float, metavar="SHARE", help="exit with 5 if a model passes a smaller share")
    parser.add_argument("--json", action="store_true", help="one JSON object per model instead of the table")
    add_connection(parser)


def run(arguments: argparse.Namespace) -> int:
    from dragoman.cli.evaluate_command import evaluate_models

    return evaluate_models(arguments)
