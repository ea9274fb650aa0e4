"""`dragoman doctor`: what is there, and what works."""

from __future__ import annotations

import argparse

SUMMARY = "see which keys, servers and extras are there, and what works"
DESCRIPTION = """\
Looks at the installed extras, at the keys in the environment and at servers on
this machine, and asks every provider that is set up for its list of models.
Keys are never shown.
"""
EXAMPLES = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--offline", action="store_true", help="ask only servers on this machine")
    parser.add_argument("--timeout", type=float, default=5.0, metavar="SECONDS", help="for each (default: %(default)s)")


def run(arguments: argparse.Namespace) -> int:
    from dragoman.cli.doctor_command import examine

    return examine(offline=arguments.offline, timeout=arguments.timeout)
