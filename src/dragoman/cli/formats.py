"""`dragoman formats`: lists the formats."""

from __future__ import annotations

import argparse

SUMMARY = "list the formats"
DESCRIPTION = """\
Lists the formats, the family each belongs to (formats of one family understand
each other's signatures and private fields), and where a request is sent.
The formats below them belong to files, not to an API: batch files of providers
(for `dragoman batch`), stored conversations (training data, logs of agents,
exports) and stored histories.
"""
EXAMPLES = ""

_HEADINGS = ("format", "family", "system text", "a request goes to", "headers")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    pass


def run(arguments: argparse.Namespace) -> int:  # noqa: ARG001
    from dragoman.codecs.registry import formats
    from dragoman.terminal import align_columns, stdout, terminal_of

    stream = stdout()
    heading, *rows = align_columns(
        [
            _HEADINGS,
            *map(_row, (*formats(), *formats("compatible"))),
            *_batch_file_rows(),
            *map(_dataset_row, formats("dataset")),
            *map(_stored_row, formats("record")),
        ]
    )
    print(terminal_of(stream).paint(heading, "bold"), *rows, sep="\n", file=stream)
    return 0


def _batch_file_rows() -> list[tuple[str, ...]]:
    from dragoman.batch.provider_files import BATCH_FILES
    from dragoman.codecs.registry import codec

    return [(name, codec(file.format).profile.family, "", "(batch files)", "") for name, file in BATCH_FILES.items()]


def _dataset_row(name: str) -> tuple[str, ...]:
    from dragoman.codecs.datasets.catalogue import dataset

    kind = "stored conversations, read only" if dataset(name).write is None else "stored conversations"
    return name, "", "", f"({kind})", ""


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
