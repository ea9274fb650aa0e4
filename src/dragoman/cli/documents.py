"""Reads JSON or JSON Lines, detected automatically, from a file or stdin, with line numbers for messages.

A line that is a complete JSON value is a document; any other line begins a document that ends when its brackets are
closed. Only one document at a time is in memory, so the size of the input does not matter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, islice
from typing import NamedTuple

import msgspec

from dragoman.cli.inputs import open_input
from dragoman.cli.problems import BAD_INPUT, REFUSED, CommandError
from dragoman.codecs.datasets.catalogue import readable_lines, session_of
from dragoman.codecs.reading import MAX_BODY_BYTES
from dragoman.errors import DragomanError, EncodeError
from dragoman.inspection.byte_positions import error_offset
from dragoman.inspection.rereadable_lines import ByLine, input_lines
from dragoman.ir.values import exact_json, parse_json

_LOOKED_AT = 10
"""Documents read before the first is converted: enough to recognise the session file of an agent."""
_STRING = rb'"[^"\\]*(?:\\.[^"\\]*)*"'
_BRACKET = re.compile(_STRING + rb"|[{}\[\]]", re.DOTALL)
_STEPS = {b"{": 1, b"[": 1, b"}": -1, b"]": -1}


class Document(NamedTuple):
    """One body, and the input line on which it begins."""

    content: bytes
    line: int


class Documents(NamedTuple):
    """All bodies of an input. `several` is known before the second one is converted."""

    name: str
    several: bool
    items: Iterator[Document]

    def problem(self, document: Document, error: DragomanError) -> CommandError:
        """The error with the file and line it is about."""
        line = document.line + _lines_before(document.content, error)
        where = (
            f" (in the document that begins on line {document.line})" if self.several and line != document.line else ""
        )
        code = REFUSED if isinstance(error, EncodeError) else BAD_INPUT
        return CommandError(f"{self.name}:{line}: {error}{where}", code)


@contextmanager
def open_documents(name: str) -> Iterator[Documents]:
    """The documents of a file, or of stdin for `-`."""
    with open_input(name) as given:
        yield read_documents(given.stream, given.name)


def read_documents(stream: ByLine, name: str) -> Documents:
    lines = _nonblank_lines(stream, name)
    start = list(islice(lines, _LOOKED_AT))
    if start and exact_json(start[0].content) is not None and any(map(_is_session_line, start)):
        content = b",".join(readable_lines(line.content for line in chain(start, lines)))
        return Documents(name, several=False, items=iter((Document(b"[" + content + b"]", start[0].line),)))
    items = _documents(chain(start, lines), name)
    first = list(islice(items, _LOOKED_AT))
    if not first:
        raise CommandError(f"{name}: empty input, expected JSON or JSON Lines")
    return Documents(name, several=len(first) > 1, items=chain(first, items))


def _is_session_line(document: Document) -> bool:
    """All lines of an agent's session file are one conversation."""
    try:
        return session_of(parse_json(document.content)) is not None
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False  # the conversion will report the error


def _nonblank_lines(stream: ByLine, name: str) -> Iterator[Document]:
    for number, line in input_lines(stream, name, longest=MAX_BODY_BYTES + 1):
        if len(line) > MAX_BODY_BYTES:
            raise _too_large(name, number)
        if line.strip():
            yield Document(line.rstrip(b"\r\n"), number)


def _too_large(name: str, line: int) -> CommandError:
    return CommandError(f"{name}:{line}: expected at most {MAX_BODY_BYTES} bytes in a document, got more")


def _documents(lines: Iterator[Document], name: str) -> Iterator[Document]:
    for line in lines:
        if exact_json(line.content) is not None:
            yield line
        else:
            yield from _split(_join_until_balanced(line, lines, name))


def _join_until_balanced(first: Document, lines: Iterator[Document], name: str) -> Document:
    """Joins lines until all brackets are closed. JSON strings hold no line break, so each line is counted alone."""
    pieces, depth, number, size = [first.content], _depth(first.content), first.line, len(first.content)
    while depth > 0 and (line := next(lines, None)) is not None:
        # Keep blank lines, so that line numbers stay right.
        pieces.append(b"\n" * (line.line - number) + line.content)
        depth += _depth(line.content)
        number = line.line
        size += len(pieces[-1])
        if size > MAX_BODY_BYTES:
            raise _too_large(name, first.line)
    return Document(b"".join(pieces), first.line)


def _depth(text: bytes) -> int:
    return sum(_STEPS.get(token[0], 0) for token in _BRACKET.finditer(text))


def _split(text: Document) -> Iterator[Document]:
    """Splits consecutive values. Text that is not JSON stays with its neighbour, whose decoding reports it."""
    content, depth, start, line = text.content, 0, 0, text.line
    for token in _BRACKET.finditer(content):
        step = _STEPS.get(token[0], 0)
        depth += step
        if step and depth <= 0:
            end, depth = token.end(), 0
            yield _trim(content[start:end], line)
            line += content.count(b"\n", start, end)
            start = end
    if content[start:].strip():
        yield _trim(content[start:], line)


def _trim(content: bytes, line: int) -> Document:
    led = content.lstrip()
    return Document(led.rstrip(), line + content.count(b"\n", 0, len(content) - len(led)))


def _lines_before(content: bytes, error: DragomanError) -> int:
    """How many lines of the document come before the error."""
    if b"\n" not in content:
        return 0
    return content.count(b"\n", 0, error_offset(content, error))
