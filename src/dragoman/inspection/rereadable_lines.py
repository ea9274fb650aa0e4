"""Input that is read line by line, and can be reread from the start after a first look."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from typing import NamedTuple, Protocol

from dragoman.inspection.input_errors import InputProblem, system_reason

_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_UTF8_MARK = b"\xef\xbb\xbf"


class ByLine(Protocol):
    """The part of an open file that we use."""

    def readline(self, size: int, /) -> bytes: ...


class Input(NamedTuple):
    """An open file and its name for messages."""

    stream: ByLine
    name: str


def input_lines(stream: ByLine, name: str, *, longest: int) -> Iterator[tuple[int, bytes]]:
    """Numbered lines; a longer line is returned in pieces with the same number."""
    number, ended = 0, True
    try:
        while line := stream.readline(longest):
            if number == 0:
                line = _without_mark(line, name)
            number += ended
            ended = line.endswith(b"\n")
            yield number, line
    except OSError as error:
        raise InputProblem(f"cannot read {name}: {system_reason(error)}") from error


def _without_mark(line: bytes, name: str) -> bytes:
    if line.startswith(_UTF16_MARKS):
        raise InputProblem(f"{name}:1: expected UTF-8 text, got UTF-16")
    return line.removeprefix(_UTF8_MARK)


class Reread:
    """Lines read before, then the rest."""

    def __init__(self, seen: bytes, rest: ByLine) -> None:
        self._seen = BytesIO(seen)
        self._rest = rest

    def readline(self, size: int, /) -> bytes:
        line = self._seen.readline(size)
        if line.endswith(b"\n") or len(line) == size:
            return line
        return line + self._rest.readline(size - len(line))
