"""JSON compared exactly, and the leaves of JSON trees and of intermediate values by path."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec import Raw, structs

from dragoman import ir
from dragoman.ir.values import Value, parse_json


class Pairs(list[tuple[str, Any]]):
    """An object with its keys in order, repeated keys included."""


def exact(body: bytes | str) -> Any:
    """JSON read so that nothing hides: key order and repetition, and how each number is spelled."""
    return json.loads(body, object_pairs_hook=Pairs, parse_float=lambda text: f"float {text}", parse_int=str)


def plain(body: bytes | str) -> Any:
    """JSON read by the standard library: independent of the parser under test."""
    return json.loads(body)


def difference(left: Any, right: Any, path: str = "$") -> str | None:
    """The first place where two JSON values differ, or None. 1 and 1.0 are the same number, true and 1 are not."""
    if isinstance(left, bool) or isinstance(right, bool) or not isinstance(left, int | float | dict | list):
        same = type(left) is type(right) and left == right
        return None if same else f"{path}: {_short(left)} != {_short(right)}"
    if isinstance(left, dict) and isinstance(right, dict):
        return _difference_of_objects(left, right, path)
    if isinstance(left, list) and isinstance(right, list):
        if len(left) != len(right):
            return f"{path}: {len(left)} items != {len(right)} items"
        pairs = enumerate(zip(left, right, strict=True))
        return next((found for i, (a, b) in pairs if (found := difference(a, b, f"{path}[{i}]"))), None)
    number = isinstance(left, int | float) and isinstance(right, int | float) and left == right
    return None if number else f"{path}: {_short(left)} != {_short(right)}"


def _difference_of_objects(left: Mapping[str, Any], right: Mapping[str, Any], path: str) -> str | None:
    for key in left:
        if key not in right:
            return f"{path}.{key}: {_short(left[key])} is missing"
    for key in right:
        if key not in left:
            return f"{path}.{key}: {_short(right[key])} was added"
    return next((found for key in left if (found := difference(left[key], right[key], f"{path}.{key}"))), None)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def strings(value: Any) -> Iterator[str]:
    """Every string in a JSON value, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield key
            yield from strings(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from strings(inner)


def leaves(value: Any, path: str = "$") -> Iterator[tuple[str, Any]]:
    """Every scalar of an intermediate value (or of JSON inside it) with its path in the intermediate format."""
    if isinstance(value, Value):
        for name in value.__struct_fields__:
            yield from leaves(_field(value, name), f"{path}.{name}")
    elif isinstance(value, Raw):
        yield from leaves(parse_json(value), path)
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from leaves(inner, f"{path}.{key}")
    elif isinstance(value, list | tuple):
        for index, inner in enumerate(value):
            yield from leaves(inner, f"{path}[{index}]")
    else:
        yield path, value


def _field(value: Value, name: str) -> Any:
    if name == "parts" and type(value).__name__ == "Message":
        content = value.content_held  # type: ignore[attr-defined]
        return value.parts if isinstance(content, str) else content  # type: ignore[attr-defined]
    if name in getattr(type(value), "__exact__", {}):
        return getattr(value, f"{name}_held")
    return getattr(value, name)


_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]")


def reaches(body: Any, path: str) -> bool:
    """Whether a path such as `$.messages[0].content` leads somewhere in this JSON value."""
    if path != "$" and (not path.startswith("$") or _STEP.sub("", path[1:])):
        return False
    for key, index in _STEP.findall(path):
        if isinstance(body, Mapping) and key in body:
            body = body[key]
        elif isinstance(body, list) and index and int(index) < len(body):
            body = body[int(index)]
        else:
            return False
    return True


def covers(loss_path: str, leaf_path: str) -> bool:
    """Whether a loss at one path covers the leaf at the other: the leaf itself, or something that holds it."""
    rest = leaf_path.removeprefix(loss_path)
    return rest != leaf_path and (not rest or rest[0] in ".[")


def variants(body: Any, change: Callable[[dict[str, Any]], Any], path: str = "$") -> Iterator[tuple[str, Any]]:
    """The JSON value once for every object in it, with that object changed, and the path of the object."""
    if isinstance(body, dict):
        yield path, change(body)
        for key, inner in body.items():
            for where, variant in variants(inner, change, f"{path}.{key}"):
                yield where, {**body, key: variant}
    elif isinstance(body, list):
        for index, inner in enumerate(body):
            for where, variant in variants(inner, change, f"{path}[{index}]"):
                yield where, [*body[:index], variant, *body[index + 1 :]]


def without_notes(value: Any) -> Any:
    """The value without spelling notes and origin: what another vendor's decoder would have made of it."""
    if isinstance(value, tuple):
        return tuple(without_notes(inner) for inner in value)
    if not isinstance(value, Value):
        return value
    changes: dict[str, Any] = {}
    for field in value.__struct_fields__:
        if field == "metadata" or (field == "origin" and isinstance(value, ir.Request)):
            changes[field] = None
        elif field == "arguments" and not value.parsed:  # type: ignore[attr-defined]
            continue
        else:
            changes[field] = without_notes(getattr(value, field))
    return structs.replace(value, **changes)
