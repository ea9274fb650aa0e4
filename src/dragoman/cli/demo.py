"""`dragoman demo`: converts a sample conversation to every format and shows the losses."""

from __future__ import annotations

import argparse

SUMMARY = "convert a sample conversation to every format and show what was lost"
DESCRIPTION = """\
Converts a conversation that comes with dragoman from OpenAI Chat to every
format, and shows what was kept and what was lost.
"""
EXAMPLES = """\
examples:
  dragoman demo
  dragoman demo --short
  dragoman demo --transcript | dragoman convert --to gemini --report
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--short", action="store_true", help="one line for each format")
    parser.add_argument("--transcript", action="store_true", help="print the conversation as JSON and stop")


def run(arguments: argparse.Namespace) -> int:
    from dragoman.cli.demo_command import print_transcript, show

    return print_transcript() if arguments.transcript else show(short=arguments.short)
