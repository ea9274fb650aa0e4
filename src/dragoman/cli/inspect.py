"""`dragoman inspect`: shows a body as a tree."""

from __future__ import annotations

import argparse

SUMMARY = "show turns, calls and results of a body or recorded stream as a tree"
DESCRIPTION = """\
Shows the format, kind, model and settings of a body and its content: turns,
calls with their results, reasoning, media, tools, usage. Long texts are
shortened to the width of the terminal; in a pipe to COLUMNS, or 100.

A recorded stream is recognised (answers of Gemini, one per line, need --stream)
and shown as a timeline: its parts in the order in which they became complete,
with the lines (or frames) of the file they came from, then the answer they make.
"""
EXAMPLES = """\
examples:
  dragoman inspect chat.json
  dragoman inspect history.jsonl --color always | less -R
  dragoman inspect answer.json --from gemini --full
  dragoman inspect answer.sse
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", nargs="?", default="-", metavar="FILE", help="JSON or JSON Lines (default: stdin)")
    parser.add_argument(
        "--from", dest="source", default="auto", metavar="FORMAT", help="source format (default: detected)"
    )
    parser.add_argument(
        "--kind",
        choices=("auto", "request", "response", "error"),
        default="auto",
        help="kind of body (default: detected)",
    )
    parser.add_argument("--stream", action="store_true", help="read FILE as one recorded stream")
    parser.add_argument("--full", action="store_true", help="do not shorten long texts")
    parser.add_argument(
        "--color",
        choices=("auto", "always", "never"),
        default="auto",
        help="when to use colours (default: %(default)s, on a terminal)",
    )


def run(arguments: argparse.Namespace) -> int:
    from dragoman.cli.inspect_command import inspect

    colour = {"auto": None, "always": True, "never": False}[arguments.color]
    return inspect(
        arguments.file, arguments.source, arguments.kind, full=arguments.full, stream=arguments.stream, colour=colour
    )
