"""Every body that differs from a given one in a single place."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

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
