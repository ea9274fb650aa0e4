"""Opens the input of a command: a file or stdin."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from dragoman.cli.problems import CommandError, system_reason
from dragoman.inspection.rereadable_lines import Input

_NO_TEXT = {
    b"SQLite format 3\0": "a SQLite database",
    b"PAR1": "a Parquet file",
    b"ARROW1": "an Arrow file",
    b"\x1f\x8b": "compressed with gzip",
    b"\x28\xb5\x2f\xfd": "compressed with zstd",
}
"""First bytes of files that only `batch` reads, and what they are."""


def read_prompt(words: Sequence[str], what: str) -> str:
    """The words of the command line, or else stdin; `what` they are is named if there is nothing."""
    if words:
        text = " ".join(words)
    elif sys.stdin is None or sys.stdin.isatty():
        raise CommandError(f"no {what}: give one, or pipe one in")
    else:
        text = sys.stdin.read()
    if not text.strip():
        raise CommandError(f"the {what} is empty: write it after the options, or pipe it in")
    return text


@contextmanager
def open_input(name: str) -> Iterator[Input]:
    """A file, or stdin for `-`."""
    if name == "-":
        if sys.stdin is None:  # started with `<&-`
            raise CommandError("cannot read stdin: it is closed")
        if sys.stdin.isatty():
            print("dragoman: reading from the terminal, Ctrl-D ends the input", file=sys.stderr)
        yield Input(sys.stdin.buffer, "stdin")
        return
    try:
        stream = open(name, "rb")  # noqa: PTH123, SIM115 - may be a device or pipe
    except (OSError, ValueError) as error:
        reason = system_reason(error) if isinstance(error, OSError) else str(error)
        raise CommandError(f"cannot read {name}: {reason}") from error
    with stream:
        start = stream.peek(16)
        for magic, kind in _NO_TEXT.items():
            if start.startswith(magic):
                command = f"dragoman batch convert {name} --to FORMAT -o DST"
                raise CommandError(f"{name} is {kind}; read it with: {command}")
        yield Input(stream, name)
