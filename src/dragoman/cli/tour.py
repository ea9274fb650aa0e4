"""`dragoman tour`: one conversation with tools with every provider, offline."""

from __future__ import annotations

import argparse

SUMMARY = "call a tool with every provider, offline, in a few seconds"
DESCRIPTION = """\
Starts the simulators on a free port of this machine and holds the same
conversation with every provider: a question, two calls, their results, an
answer. No key is needed and nothing leaves the machine.
"""
EXAMPLES = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--whole", action="store_true", help="do not stream answers")


def run(arguments: argparse.Namespace) -> int:
    from dragoman.cli.tour_command import tour

    return tour(streams=not arguments.whole)
