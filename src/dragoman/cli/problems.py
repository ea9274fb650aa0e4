"""How a command ends when it cannot do its job: one line for a person, one number for a script."""

from __future__ import annotations

import argparse
import errno
from collections.abc import Mapping

from dragoman.inspection.input_errors import InputProblem, one_line, system_reason

__all__ = ["CommandError", "InputProblem", "one_line", "system_reason"]

OK = 0
_PRIVILEGED = 1024
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


REASONING_HELP = "on, off, an effort (minimal, low, medium, high, xhigh, max) or a budget in tokens"
_REASONING: Mapping[str, str | bool] = {
    "on": True,
    "off": False,
    **{effort: effort for effort in ("none", "minimal", "low", "medium", "high", "xhigh", "max")},
}


def reasoning(text: str) -> str | int | bool:
    """The type of `--reasoning`."""
    if text.isdecimal() and text.isascii():
        return int(text)
    if text not in _REASONING:
        raise argparse.ArgumentTypeError(f"{text!r} is not one of {', '.join(_REASONING)}, nor a number of tokens")
    return _REASONING[text]


def positive(text: str) -> int:
    """The type of counts."""
    if not text.isdecimal() or not text.isascii() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 on")
    return int(text)


def seconds(text: str) -> float:
    """The type of time limits."""
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not 0.0 < found < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return found


def cannot_listen(error: OSError, port: int) -> str:
    """Why a server cannot start, with a port that is free where that is the reason."""
    if error.errno == errno.EADDRINUSE:
        free = _free_port(port)
        again = f"; try --port {free}" if free else ""
        return f"cannot listen: port {port} is in use, perhaps by a dragoman that runs already{again}"
    if error.errno == errno.EACCES and port < _PRIVILEGED:
        return f"cannot listen: ports below {_PRIVILEGED} need privileges; try --port {port + 8000}"
    return f"cannot listen: {system_reason(error)}"


def _free_port(taken: int) -> int | None:
    import socket

    for candidate in range(taken + 1, min(taken + 50, 1 << 16)):
        with socket.socket() as tried:
            try:
                tried.bind(("127.0.0.1", candidate))
            except OSError:
                continue
            return candidate
    return None


def port(text: str) -> int:
    """The type of `--port`: a number that a socket takes."""
    if not text.isdecimal() or not text.isascii() or len(text) > len("65535") or int(text) >= 1 << 16:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port: a number from 0 to 65535")
    return int(text)
