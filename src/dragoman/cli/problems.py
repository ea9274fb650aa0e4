"""Exit codes, and errors that end a command with one line."""

from __future__ import annotations

import argparse
import errno
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from dragoman.inspection.input_errors import InputProblem, one_line, system_reason

__all__ = ["CommandError", "InputProblem", "one_line", "system_reason"]

OK = 0
_PRIVILEGED = 1024
_CLOSE = 0.75  # similarity of a name that is suggested
_MOST_NAMES = 30  # more are not listed in an error
_FIRST_NAMES = 10
BAD_INPUT = 2
"""Bad input, or a bad command line (argparse uses the same code)."""
REFUSED = 3
"""Refused: a strict conversion would lose something, or the target's rules forbid it."""
STREAM_FAILED = 4
"""The recorded stream broke off or ended in an error: it was converted up to there."""
UNFINISHED = 5
"""An agent stopped before its task was done: it used up its turns, or the user stopped it."""
UNREACHABLE = 6
"""The configuration is valid, but an upstream cannot be reached or refuses its key."""
INTERRUPTED = 130
"""As shells report a command ended by Ctrl-C (128 + SIGINT)."""
PIPE_CLOSED = 141
"""As shells report a command whose reader went away (128 + SIGPIPE)."""


class CommandError(InputProblem):
    """Ends the command with one line on stderr."""

    def __init__(self, message: str, exit_code: int = BAD_INPUT) -> None:
        self.exit_code = exit_code
        super().__init__(message)


def not_installed(error: ImportError, *extras: str) -> CommandError:
    """The error of a command whose package is missing, with the command that installs the extras it needs."""
    from dragoman.installation import install_command

    return CommandError(f"{error.name} is not installed: {install_command(*extras)}")


REASONING_HELP = "on, off, an effort (minimal, low, medium, high, xhigh, max) or a budget in tokens"
_REASONING: Mapping[str, str | bool] = {
    "on": True,
    "off": False,
    **{effort: effort for effort in ("none", "minimal", "low", "medium", "high", "xhigh", "max")},
}


def reasoning(text: str) -> str | int | bool:
    """Argument type of `--reasoning`."""
    if text.isdecimal() and text.isascii():
        return int(text)
    if text not in _REASONING:
        raise argparse.ArgumentTypeError(f"{text!r} is not one of {', '.join(_REASONING)}, nor a number of tokens")
    return _REASONING[text]


def positive(text: str) -> int:
    """Argument type of counts."""
    if not text.isdecimal() or not text.isascii() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of at least 1")
    return int(text)


def seconds(text: str) -> float:
    """Argument type of time limits."""
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not 0.0 < found < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return found


def cannot_listen(error: OSError, port: int) -> str:
    """Why a server cannot start; suggests a free port if the port is the reason."""
    if error.errno == errno.EADDRINUSE:
        free = _free_port(port)
        again = f"; try --port {free}" if free else ""
        return f"cannot listen: port {port} is in use, perhaps by another dragoman{again}"
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
    """Argument type of `--port`."""
    if not text.isdecimal() or not text.isascii() or len(text) > len("65535") or int(text) >= 1 << 16:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port: a number from 0 to 65535")
    return int(text)


def unknown(
    kind: str, name: str, allowed: Sequence[str], where: str, meant: Mapping[str, str] = MappingProxyType({})
) -> str:
    """Names the closest match, else the allowed names. `where` says how to list them; `meant` has known mistakes."""
    from difflib import get_close_matches

    plain = name.lower().replace("_", "-")
    close = [meant[plain]] if plain in meant else [known for known in allowed if plain and known.startswith(plain)]
    if not close:  # compared with the first word too: `olama` means `ollama-chat`
        spellings = {spelling: known for known in reversed(allowed) for spelling in (known.partition("-")[0], known)}
        close = [spellings[found] for found in get_close_matches(plain, spellings, n=1, cutoff=_CLOSE)]
    if close:
        return f"unknown {kind} {name!r}: did you mean {close[0]!r}? ({where})"
    shown = ", ".join(allowed) if len(allowed) <= _MOST_NAMES else f"{', '.join(allowed[:_FIRST_NAMES])}, …; {where}"
    return f"unknown {kind} {name!r} (known: {shown})"
