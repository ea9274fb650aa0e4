"""Finds the keys of a record that its reader does not read, at any depth. They are reported with their path.

A reader takes the keys it needs from each object and would ignore the rest silently. So one walk compares a record with
the keys that its format declares (`known_keys.py`). It builds paths only for keys that it reports.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, TypeAlias

import msgspec

from dragoman.codecs.datasets.known_keys import Json, Keys
from dragoman.ir.values import parse_json
from dragoman.loss import Severity

Link: TypeAlias = tuple[Any, str | int] | None
"""The last step of a path, and the link before it."""


def unread_keys(record: Json, known: Keys) -> list[tuple[str, str, int]]:
    """Return path, name and depth of each key that is not read, in the first object of its kind that has it."""
    seen: dict[int, frozenset[str]] = {}
    """The keys of each kind that are read, or were found before."""
    found: list[tuple[Link, list[str]]] = []
    queue: list[tuple[Json, Keys, Link]] = [(record, known, None)]
    for found_value, kind, link in queue:
        value = found_value
        if kind.as_text and type(value) is str:
            value = _parse(value)
        if kind.is_kept is not None and kind.is_kept(value):
            continue
        if type(value) is list:
            of = kind.items or kind
            queue += [
                (one, of, (link, index)) for index, one in enumerate(value) if of.as_text or type(one) in _CONTAINERS
            ]
            continue
        if type(value) is not dict:
            continue
        if kind.by and type(chosen := value.get(kind.by)) is str:
            kind = kind.kinds.get(chosen, kind)  # noqa: PLW2901
        names = seen.get(id(kind), kind.names)
        if (
            names is not None
            and not names.issuperset(value)
            and (new := [key for key in value if key not in names and not _is_empty(value[key])])
        ):
            seen[id(kind)] = names.union(new)
            found.append((link, new))
        for key, inner in kind.inner:
            below = value.get(key)
            if below and (inner.as_text or type(below) in _CONTAINERS):
                queue.append((below, inner, (link, key)))
        if kind.each is not None:
            queue += [(one, kind.each, (link, key)) for key, one in value.items()]
    return [one for link, new in found for one in _paths(link, new)]


_WORDS = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")
_RECORD_KEEPING = frozenset(
    {
        "at",
        "branch",
        "cost",
        "count",
        "created",
        "cwd",
        "date",
        "duration",
        "elapsed",
        "hash",
        "id",
        "ids",
        "idx",
        "index",
    }
    | {"latency", "time", "timestamp", "timing", "title", "tokens", "ts", "updated", "usage", "uuid", "version"}
)
"""Last words of keys for a program's own bookkeeping: when, where, which, how much."""
_EXACTLY = frozenset({("finish", "reason"), ("stop", "reason"), ("user", "type")})
_OF_A_CALL = frozenset({"call", "use", "tool", "toolcall"})


@lru_cache(maxsize=1_024)
def severity_of(key: str) -> Severity:
    """Return the severity of losing a key that is not read: ids of calls connect messages, other ids do not."""
    words = tuple(word.lower() for word in _WORDS.findall(key))
    if not words:
        return "dropped"
    is_kept_for_records = words[-1] in _RECORD_KEEPING and _OF_A_CALL.isdisjoint(words)
    return "noted" if is_kept_for_records or words in _EXACTLY else "dropped"


_CONTAINERS = (dict, list)


def _parse(text: str) -> Json:
    """Return the objects in a text; None if it is another text, which the reader uses as it is."""
    try:
        return parse_json(text) if text.lstrip()[:1] in {"[", "{"} else None
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None


def _is_empty(value: Json) -> bool:
    """Return whether a value is empty: tables fill in nulls, programs write empty lists."""
    return value is None or (type(value) in {str, list, dict} and not value)


_PLAIN_NAME = re.compile(r"\w+")


def _paths(link: Link, new: list[str]) -> list[tuple[str, str, int]]:
    steps: list[str | int] = []
    while link is not None:
        link, step = link[0], link[1]
        steps.append(step)
    path = "$"
    for step in reversed(steps):
        path = step_into(path, step)
    return [(path + _step(key), key, len(steps) + 1) for key in new]


def step_into(path: str, step: str | int) -> str:
    """Return the path of an element, or of the value of a key."""
    return f"{path}[{step}]" if isinstance(step, int) else path + _step(step)


@lru_cache(maxsize=1_024)
def _step(key: str) -> str:
    return f".{key}" if _PLAIN_NAME.fullmatch(key) else f"[{key!r}]"
