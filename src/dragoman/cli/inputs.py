"""Where a command reads: a file or stdin."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from dragoman.cli.problems import CommandError, system_reason
from dragoman.inspection.rereadable_lines import Input


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
        stream = open(name, "rb")  # noqa: PTH123, SIM115  # a name may be anything the shell knows
    except (OSError, ValueError) as error:
        reason = system_reason(error) if isinstance(error, OSError) else str(error)
        raise CommandError(f"cannot read {name}: {reason}") from error
    with stream:
        yield Input(stream, name)
