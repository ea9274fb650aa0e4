"""`dragoman models`: the providers, the models of one, and what is known about models."""

from __future__ import annotations

import argparse

from dragoman.cli.ask import add_connection

SUMMARY = "list the providers, the models of one, or what is known about models"
DESCRIPTION = """\
Without a name, lists the providers: the format each speaks and where its key
comes from. With one, asks it for its models. --catalogue prints what is known
about models, of all providers or of one: context window, output limit, prices
for a million tokens, capabilities, and where and when that was read. It needs no
network. Files named by DRAGOMAN_CATALOGUE add rows of your own.
"""
EXAMPLES = """\
examples:
  dragoman models
  dragoman models ollama
  dragoman models --catalogue anthropic
  dragoman models --catalogue --json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("provider", metavar="PROVIDER", nargs="?", help="whose models (default: the providers)")
    parser.add_argument("--catalogue", action="store_true", help="what is known about models, without asking anyone")
    parser.add_argument("--json", action="store_true", help="with --catalogue: one JSON object per model")
    add_connection(parser)


def run(arguments: argparse.Namespace) -> int:
    from dragoman.cli.ask_command import list_providers, list_their_models, print_catalogue

    if arguments.catalogue:
        return print_catalogue(arguments.provider, as_json=arguments.json)
    return list_providers() if arguments.provider is None else list_their_models(arguments)
