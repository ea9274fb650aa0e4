"""`dragoman schema`: the JSON Schema of the intermediate format."""

from __future__ import annotations

import argparse

SUMMARY = "print the JSON Schema of the intermediate format"
DESCRIPTION = """\
Prints the JSON Schema of the intermediate format, with its version. What its
values mean is described in docs/intermediate-format.md.
"""
EXAMPLES = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    pass


def run(arguments: argparse.Namespace) -> int:  # noqa: ARG001
    import sys

    from dragoman.ir.schema import schema_text

    sys.stdout.buffer.write(schema_text())
    sys.stdout.buffer.flush()
    return 0
