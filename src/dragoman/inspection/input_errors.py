"""Errors of input files, in one line."""

from __future__ import annotations

import re

_BREAKS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_LONGEST = 600


class InputProblem(Exception):
    """The input cannot be read or understood."""

    def __init__(self, message: str) -> None:
        super().__init__(one_line(message))


def one_line(text: str) -> str:
    """The text without line breaks and control characters, because it may quote untrusted input."""
    line = _BREAKS.sub(" ", text).strip()
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


def system_reason(error: OSError) -> str:
    return error.strerror or str(error)
