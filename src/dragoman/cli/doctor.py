"""`dragoman doctor`: checks keys, servers and extras."""

from __future__ import annotations

import argparse

SUMMARY = "check keys, servers and installed extras"
DESCRIPTION = """\
Checks the installed extras, the keys in the environment and the servers on
this machine, and asks every provider that is set up for its list of models.
Keys are never shown.
"""
EXAMPLES = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--offline", action="store_true", help="ask only servers on this machine")
    parser.add_argument(
        "--timeout", type=float, default=5.0, metavar="SECONDS", help="time limit per provider (default: %(default)s)"
    )


def run(arguments: argparse.Namespace) -> int:
    from dragoman.cli.doctor_command import examine

    return examine(offline=arguments.offline, timeout=arguments.timeout)
