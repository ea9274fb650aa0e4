"""Every body that differs from a given one in a single place."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from zlib import crc32

_EMPTY: dict[type, Any] = {str: "", list: [], dict: {}, int: 0}


@dataclass(frozen=True, slots=True)
class Edit:
    """What was done at a path, the value that was there, and the whole body afterwards."""

    path: str
    what: str
    before: Any
    body: Any

    def __str__(self) -> str:
        return f"{self.path} {self.what}"


def edits(value: Any, path: str = "$") -> Iterator[Edit]:
    """Keys and elements removed, set to null, emptied, turned (booleans) or repeated (elements), one at a time."""
    if isinstance(value, dict):
        for key, inner in value.items():
            place = f"{path}.{key}"
            yield Edit(place, "removed", inner, {name: one for name, one in value.items() if name != key})
            yield from (Edit(place, what, inner, {**value, key: one}) for what, one in _replaced(inner))
            yield from (Edit(one.path, one.what, one.before, {**value, key: one.body}) for one in edits(inner, place))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            place, before, behind = f"{path}[{index}]", value[:index], value[index + 1 :]
            yield Edit(place, "removed", inner, [*before, *behind])
            yield Edit(place, "repeated", inner, [*before, inner, inner, *behind])
            if isinstance(inner, str) and inner:
                yield Edit(place, "emptied", inner, [*before, "", *behind])
            for one in edits(inner, place):
                yield Edit(one.path, one.what, one.before, [*before, one.body, *behind])


def _replaced(value: Any) -> Iterator[tuple[str, Any]]:
    if value is not None:
        yield "null", None
    if isinstance(value, bool):
        yield "turned", not value
    elif type(value) in _EMPTY and value != _EMPTY[type(value)]:
        yield "emptied", _EMPTY[type(value)]


# ── further edits, as (what was done, the whole value) ────────────────────────────────────────────────────────

_STRUCTURED = frozenset("<>{}[]\n`:,")
"""Characters of texts that a codec may take apart: tags, JSON, lines, data URLs."""
CUTS = 2
"""Where a text is cut."""


def everywhere(value: Any) -> Iterator[tuple[str, Any]]:
    """Each key that several objects have, removed from or set to null in all of them at once."""
    counts: dict[str, int] = {}
    _count_keys(value, counts)
    for key, count in counts.items():
        if count > 1:
            yield f"every {key} removed", _without(value, key)
            yield f"every {key} null", _with_null(value, key)


def _count_keys(value: Any, counts: dict[str, int]) -> None:
    for inner in value.values() if isinstance(value, dict) else value:
        if isinstance(inner, dict | list):
            _count_keys(inner, counts)
    if isinstance(value, dict):
        for key in value:
            counts[key] = counts.get(key, 0) + 1


def _without(value: Any, key: str) -> Any:
    if isinstance(value, dict):
        return {name: _without(inner, key) for name, inner in value.items() if name != key}
    return [_without(inner, key) for inner in value] if isinstance(value, list) else value


def _with_null(value: Any, key: str) -> Any:
    if isinstance(value, dict):
        return {name: None if name == key else _with_null(inner, key) for name, inner in value.items()}
    return [_with_null(inner, key) for inner in value] if isinstance(value, list) else value


def reordered(value: Any, path: str = "$") -> Iterator[tuple[str, Any]]:
    """Every list backwards, with its first element last, without its first or last elements, or with two joined."""
    if isinstance(value, list) and len(value) > 1:
        yield f"{path} backwards", value[::-1]
        yield f"{path} first last", [*value[1:], value[0]]
        yield from ((f"{path} from {start}", value[start:]) for start in range(2, len(value)))
        yield from ((f"{path} up to {end}", value[:end]) for end in range(1, len(value) - 1))
        for place, (one, following) in enumerate(pairwise(value)):
            if isinstance(one, dict) and isinstance(following, dict):
                yield f"{path} {place} joined", [*value[:place], _joined(one, following), *value[place + 2 :]]
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in items:
        for title, one in reordered(inner, f"{path}.{key}") if isinstance(inner, dict | list) else ():
            changed = value.copy()
            changed[key] = one
            yield title, changed


def _joined(one: dict[str, Any], following: dict[str, Any]) -> dict[str, Any]:
    """The first object, with the keys and the elements of lists that the second has besides."""
    lists = {
        key for key in one.keys() & following.keys() if isinstance(one[key], list) and isinstance(following[key], list)
    }
    return {**following, **one, **{key: [*one[key], *following[key]] for key in one if key in lists}}


def cut_texts(value: Any, path: str = "$") -> Iterator[tuple[str, Any]]:
    """Every text that has structure: its beginning or its end left out at some places, and all of it twice."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in items:
        place = f"{path}.{key}"
        found = list(cut_texts(inner, place)) if isinstance(inner, dict | list) else []
        if isinstance(inner, str) and not _STRUCTURED.isdisjoint(inner):
            found = [(f"{place} {what}", text) for what, text in _cut(inner, place)]
        for title, one in found:
            changed = value.copy()
            changed[key] = one
            yield title, changed


def _cut(text: str, about: str) -> Iterator[tuple[str, str]]:
    places = [number for number, character in enumerate(text) if character in _STRUCTURED]
    for number in sorted({crc32(f"{about} {turn}".encode()) % len(places) for turn in range(CUTS)}):
        yield f"from {places[number]}", text[places[number] :]
        yield f"up to {places[number]}", text[: places[number] + 1]
    yield "twice", text + text
