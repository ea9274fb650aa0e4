"""`dragoman formats`: lists the formats."""

from __future__ import annotations

import argparse

SUMMARY = "list the formats"
DESCRIPTION = """\
Lists the formats, the family each belongs to (formats of one family understand
each other's signatures and private fields), and where a request is sent.
The last ones are storage formats of chat programs; no API uses them.
"""
EXAMPLES = ""

_HEADINGS = ("format", "family", "system text", "a request goes to", "headers")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    pass


def run(arguments: argparse.Namespace) -> int:  # noqa: ARG001
    from dragoman.cli.table import align_columns
    from dragoman.codecs.registry import formats
    from dragoman.terminal import stdout, terminal_of

    stream = stdout()
    heading, *rows = align_columns(
        [_HEADINGS, *map(_row, (*formats(), *formats("compatible"))), *map(_stored_row, formats("record"))]
    )
    print(terminal_of(stream).paint(heading, "bold"), *rows, sep="\n", file=stream)
    return 0


def _stored_row(name: str) -> tuple[str, ...]:
    from dragoman.codecs.registry import codec

    return name, codec(name).profile.family, "a message", "(stored histories)", ""


def _row(name: str) -> tuple[str, ...]:
    """Encodes a minimal request to show where requests of this format go."""
    from dragoman.codecs.registry import codec
    from dragoman.ir import Message, Request
    from dragoman.translate import encode_request

    profile = codec(name).profile
    encoded = encode_request(Request("MODEL", (Message("user", "hi"),)), name)
    system = {"messages": "a message", "field": "a field"}[profile.system]
    return name, profile.family, system, encoded.path, ", ".join(f"{k}: {v}" for k, v in encoded.headers.items())
