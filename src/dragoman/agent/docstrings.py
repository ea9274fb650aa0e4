"""Descriptions of a tool and its parameters, read from a docstring."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from itertools import pairwise

_SECTION = re.compile(r"(?:args|arguments|parameters|params)\s*:?", re.IGNORECASE)
_ANY_SECTION = re.compile(
    r"(?:args|arguments|parameters|params|returns?|raises|yields|examples?|notes?|see also)\s*:?", re.IGNORECASE
)
_SPHINX = re.compile(r":param\s+(?:[^:]*\s)?(\w+)\s*:\s*(.*)")
_FIELD = re.compile(r":\w+[^:]*:")
_GOOGLE = re.compile(r"\s+\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)")
_NUMPY = re.compile(r"(\w+)\s*(?::.*)?")
_RULE = re.compile(r"-{3,}\s*")


def read_docstring(text: str | None) -> tuple[str, dict[str, str]]:
    """Return (what the tool does, what each parameter is) from a docstring in Google, NumPy or Sphinx style."""
    lines = inspect.cleandoc(text or "").splitlines()
    start = next((index for index, _ in _sections(lines)), len(lines))
    summary = "\n".join(lines[:start]).strip()
    return summary, dict(_parameter_descriptions(lines))


def _sections(lines: list[str]) -> Iterator[tuple[int, str]]:
    for index, line in enumerate(lines):
        following = lines[index + 1] if index + 1 < len(lines) else ""
        marked = line.rstrip().endswith(":") or _RULE.fullmatch(following) is not None
        headed = marked and _ANY_SECTION.fullmatch(line) is not None
        if headed or _FIELD.match(line):
            yield index, line


def _parameter_descriptions(lines: list[str]) -> Iterator[tuple[str, str]]:
    sections = [*_sections(lines), (len(lines), "")]
    for (start, head), (end, _) in pairwise(sections):
        body = lines[start + 1 : end]
        sphinx = _SPHINX.match(head)
        if sphinx:
            yield sphinx[1], " ".join([sphinx[2], *(line.strip() for line in body)]).strip()
        elif _SECTION.fullmatch(head):
            numpy = bool(body) and _RULE.fullmatch(body[0]) is not None
            yield from _entries(body[1:] if numpy else body, _NUMPY if numpy else _GOOGLE, numpy=numpy)


def _entries(body: list[str], pattern: re.Pattern[str], *, numpy: bool) -> Iterator[tuple[str, str]]:
    """Yield each entry with the deeper lines that belong to it."""
    depth = min((_depth(line) for line in body if line.strip()), default=0)
    name, text = "", [""]
    for line in body:
        found = pattern.fullmatch(line) if line.strip() and _depth(line) == depth else None
        if found is None:
            text.append(line.strip())
            continue
        if name:
            yield name, " ".join(text).strip()
        name, text = found[1], [] if numpy else [found[2]]
    if name:
        yield name, " ".join(text).strip()


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())
