"""How a command ends when it cannot do its job: one line for a person, one number for a script."""

from __future__ import annotations

import argparse

from dragoman.inspection.input_errors import InputProblem, one_line, system_reason

__all__ = ["CommandError", "InputProblem", "one_line", "system_reason"]

OK = 0
BAD_INPUT = 2
"""What came in is not what it should be, or the command was not understood (argparse uses the same number)."""
REFUSED = 3
"""The target cannot say it: a strict conversion would lose something, or the target's own rules forbid it."""
STREAM_FAILED = 4
"""The recorded stream broke off or ended in an error: what came was converted, but it is no whole answer."""
UNFINISHED = 5
"""An agent stopped before its task was done: no turns were left, or the user stopped it."""
UNREACHABLE = 6
"""The configuration is right, but an upstream that it names cannot be reached or refuses its key."""
INTERRUPTED = 130
"""As shells report a command ended by Ctrl-C (128 + SIGINT)."""
PIPE_CLOSED = 141
"""As shells report a command whose reader went away (128 + SIGPIPE)."""


class CommandError(InputProblem):
    """Ends the command with one line on stderr."""

    def __init__(self, message: str, exit_code: int = BAD_INPUT) -> None:
        self.exit_code = exit_code
        super().__init__(message)


def port(text: str) -> int:
    """The type of `--port`: a number that a socket takes."""
    if not text.isdecimal() or not text.isascii() or len(text) > len("65535") or int(text) >= 1 << 16:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port: a number from 0 to 65535")
    return int(text)
