"""Finds the position of a setting in a TOML text, which tomllib does not report.

tomllib has already parsed the text, so it is well-formed.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Generator, Iterator
from typing import TypeAlias

Path: TypeAlias = tuple[str | int, ...]
Place: TypeAlias = tuple[Path, int]
_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")
_STRING = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}'
    r"|'''.*?'{3,5}"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'",
    re.DOTALL,
)
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_SCALAR = re.compile(r"[^\s,\]}#]+(?: \d[^\s,\]}#]*)?")


def position_of(text: str, path: Path) -> tuple[int, int]:
    """Return line and column, from 1, of the setting or its nearest parent. A `*` in a path matches any name."""
    best, depth = 0, 0
    for found, offset in _places(text):
        shared = 0
        for wanted, step in zip(path, found, strict=False):
            if wanted not in (step, "*"):
                break
            shared += 1
        if shared > depth and shared == len(found):
            best, depth = offset, shared
    before = text[:best]
    return before.count("\n") + 1, best - (before.rfind("\n") + 1) + 1


def _places(text: str) -> Iterator[Place]:
    at = 0
    table: Path = ()
    counts: dict[Path, int] = {}
    while (at := _end(_BLANK, text, at)) < len(text):
        if text[at] == "[":
            start = at
            many = text.startswith("[[", at)
            keys, at = _key(text, at + (2 if many else 1))
            at = text.index("]", at) + (2 if many else 1)
            table = keys
            if many:
                counts[keys] = counts.get(keys, -1) + 1
                table = (*keys, counts[keys])
            yield table, start
        else:
            at = yield from _pair(text, at, table)


def _pair(text: str, at: int, table: Path) -> Generator[Place, None, int]:
    start = at
    keys, at = _key(text, at)
    path = (*table, *keys)
    yield path, start
    at = _end(_SPACE, text, text.index("=", at) + 1)
    return (yield from _value(text, at, path))


def _value(text: str, at: int, path: Path) -> Generator[Place, None, int]:
    if text[at] == "[":
        return (yield from _array(text, at + 1, path))
    if text[at] == "{":
        at = _end(_BLANK, text, at + 1)
        while text[at] != "}":
            at = yield from _pair(text, at, path)
            at = _end(_BLANK, text, at)
            at = _end(_BLANK, text, at + 1) if text[at] == "," else at
        return at + 1
    matched = _STRING.match(text, at) or _SCALAR.match(text, at)
    return matched.end() if matched else at + 1


def _array(text: str, at: int, path: Path) -> Generator[Place, None, int]:
    index = 0
    at = _end(_BLANK, text, at)
    while text[at] != "]":
        yield (*path, index), at
        at = yield from _value(text, at, (*path, index))
        at = _end(_BLANK, text, at)
        at = _end(_BLANK, text, at + 1) if text[at] == "," else at
        index += 1
    return at + 1


def _key(text: str, at: int) -> tuple[Path, int]:
    steps: list[str] = []
    while True:
        at = _end(_SPACE, text, at)
        quoted = _STRING.match(text, at)
        matched = quoted or _BARE.match(text, at)
        if matched is None:
            return tuple(steps), at
        word = matched.group()
        steps.append(str(tomllib.loads(f"k = {word}")["k"]) if quoted else word)
        at = _end(_SPACE, text, matched.end())
        if text[at : at + 1] != ".":
            return tuple(steps), at
        at += 1


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    matched = pattern.match(text, at)
    return at if matched is None else matched.end()
