"""`dragoman models`: who there is to talk to."""

from __future__ import annotations

import argparse

from dragoman.cli.ask import add_connection

SUMMARY = "list the providers, or the models of one"
DESCRIPTION = """\
Without a name, lists the providers: the format each speaks and where its key
comes from. With one, asks it for its models.
"""
EXAMPLES = """\
examples:
  dragoman models
  dragoman models ollama
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("provider", metavar="PROVIDER", nargs="?", help="whose models (default: the providers)")
    add_connection(parser)


def run(arguments: argparse.Namespace) -> int:
    from dragoman.cli.asking import list_providers, list_their_models

    return list_providers() if arguments.provider is None else list_their_models(arguments)
