"""Byte positions of JSON paths and errors."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dragoman.errors import DecodeError
from dragoman.ir.values import exact_json

_STRING = rb'"[^"\\]*(?:\\.[^"\\]*)*"'
_TOKEN = re.compile(_STRING + rb'|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+)\]")
_BYTE = re.compile(r"\(byte (\d+)\)|in position (\d+)")


def error_offset(content: bytes, error: Exception) -> int:
    """The byte of a document that an error refers to."""
    if isinstance(error, DecodeError):
        byte = _BYTE.search(error.got)
        if byte:
            return int(byte[1] or byte[2])
        if error.path == "$" and exact_json(content) is None:
            return len(content)  # cut off: the position is the end
    path = getattr(error, "path", "$")
    return offset_of(content, path)


def offset_of(content: bytes, path: str) -> int:
    """Start of the value at a JSON path, as far as the path exists."""
    tokens = _TOKEN.finditer(content)
    offset = 0
    token = next(tokens, None)
    for key, index in _STEP.findall(path):
        if token is None:
            break
        offset = token.start()
        found = _entry(tokens, token, key.encode()) if key else _item(tokens, token, int(index))
        if found is None:
            return offset
        token = found
    return token.start() if token is not None else offset


Tokens = Iterator[re.Match[bytes]]


def _entry(tokens: Tokens, opening: re.Match[bytes], key: bytes) -> re.Match[bytes] | None:
    if opening[0] != b"{":
        return None
    for name in tokens:
        next(tokens, None)  # the colon
        value = next(tokens, None)
        if value is None or name[0] == b"}":
            return None
        if name[0].strip(b'"') == key:
            return value
        if _skip(tokens, value) != b",":
            return None
    return None


def _item(tokens: Tokens, opening: re.Match[bytes], index: int) -> re.Match[bytes] | None:
    if opening[0] != b"[":
        return None
    value = next(tokens, None)
    for _ in range(index):
        if value is None or value[0] == b"]" or _skip(tokens, value) != b",":
            return None
        value = next(tokens, None)
    return value


def _skip(tokens: Tokens, value: re.Match[bytes]) -> bytes:
    """Skips the value; returns the comma or bracket after it."""
    depth = int(value[0] in {b"{", b"["})
    for token in tokens:
        if token[0] in {b"{", b"["}:
            depth += 1
        elif depth == 0:
            return token[0]
        elif token[0] in {b"}", b"]"}:
            depth -= 1
    return b""
