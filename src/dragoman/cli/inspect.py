"""`dragoman inspect`: what a body is, as a tree."""

from __future__ import annotations

import argparse

SUMMARY = "show what a body is: its turns, calls and results as a tree"
DESCRIPTION = """\
Shows what a body is (format, kind, model, settings) and what is in it: turns,
calls with their results, reasoning, media, tools, usage. Long texts are
shortened to the width of the terminal; in a pipe to COLUMNS, or 100.
"""
EXAMPLES = """\
examples:
  dragoman inspect chat.json
  dragoman inspect history.jsonl | less
  dragoman inspect answer.json --from gemini --full
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", nargs="?", default="-", metavar="FILE", help="JSON or JSON Lines; - or nothing: stdin")
    parser.add_argument("--from", dest="source", default="auto", metavar="FORMAT", help="default: auto")
    parser.add_argument(
        "--kind", choices=("auto", "request", "response", "error"), default="auto", help="default: %(default)s"
    )
    parser.add_argument("--full", action="store_true", help="do not shorten long texts")


def run(arguments: argparse.Namespace) -> int:
    from dragoman.cli.inspection import inspect

    return inspect(arguments.file, arguments.source, arguments.kind, full=arguments.full)
