"""`dragoman models`: lists providers, the models of one, or the catalogue."""

from __future__ import annotations

import argparse

from dragoman.cli.ask import add_connection

SUMMARY = "list providers, the models of one, or the catalogue of models"
DESCRIPTION = """\
Without a name, lists the providers: the format of each and where its key
comes from. With a name, asks the provider for its models. --catalogue prints
what is known about models, of all providers or of one: context window, output
limit, prices for a million tokens, capabilities, and where and when that was
read. It needs no network. Files named by DRAGOMAN_CATALOGUE add rows of your own.
"""
EXAMPLES = """\
examples:
  dragoman models
  dragoman models ollama
  dragoman models --catalogue anthropic
  dragoman models --catalogue --json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "provider", metavar="PROVIDER", nargs="?", help="list the models of this provider (default: list the providers)"
    )
    parser.add_argument("--catalogue", action="store_true", help="print the bundled catalogue; needs no network")
    parser.add_argument("--json", action="store_true", help="with --catalogue: one JSON object per model")
    add_connection(parser)


def run(arguments: argparse.Namespace) -> int:
    from dragoman.cli.ask_command import list_models_of, list_providers, print_catalogue

    if arguments.catalogue:
        return print_catalogue(arguments.provider, as_json=arguments.json)
    return list_providers() if arguments.provider is None else list_models_of(arguments)
