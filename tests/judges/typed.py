"""What a vendor's TypedDict says about a value, key by key: nothing missing, nothing unknown, every value of its type.

Pydantic ignores unknown keys of a TypedDict and looks into an Iterable only when it is read; a judge must do
neither.
"""

import collections.abc
import types
import typing
from collections.abc import Iterator
from typing import Any

import typing_extensions
from typing_extensions import is_typeddict

# Older typing_extensions have markers of their own, newer ones the standard library's.
_WRAPPERS = (
    typing.Annotated,
    typing.Required,
    typing.NotRequired,
    typing_extensions.Required,
    typing_extensions.NotRequired,
)
_LISTS = (list, collections.abc.Iterable, collections.abc.Sequence)
_SCALARS: dict[Any, tuple[type, ...]] = {str: (str,), int: (int,), float: (int, float), bool: (bool,)}


def complaints(value: Any, kind: Any, path: str = "$") -> list[str]:
    kind = _bare(kind)
    origin = typing.get_origin(kind)
    if kind in (Any, object) or (kind in (None, type(None)) and value is None):
        return []
    if origin in (typing.Union, types.UnionType):
        return _of_union(value, typing.get_args(kind), path)
    if is_typeddict(kind):
        return list(_of_object(value, kind, path))
    if origin is dict or origin in _LISTS or (origin is not None and "Sequence" in str(origin)):
        return _of_container(value, kind, path)
    return _of_scalar(value, kind, path)


def _of_container(value: Any, kind: Any, path: str) -> list[str]:
    inner = typing.get_args(kind)[-1]
    if isinstance(value, dict) and typing.get_origin(kind) is dict:
        return [found for key, each in value.items() for found in complaints(each, inner, f"{path}.{key}")]
    if isinstance(value, list) and typing.get_origin(kind) is not dict:
        return [found for i, each in enumerate(value) for found in complaints(each, inner, f"{path}[{i}]")]
    return [f"{path}: expected {kind}, got {value!r}"]


def _of_scalar(value: Any, kind: Any, path: str) -> list[str]:
    if typing.get_origin(kind) is typing.Literal:
        return [] if value in typing.get_args(kind) else [f"{path}: expected {kind}, got {value!r}"]
    expected = _SCALARS.get(kind)
    if expected is None:  # an SDK's own class, which no JSON value is
        return [f"{path}: expected {kind}, got {value!r}"]
    fits = isinstance(value, expected) and (kind is bool or not isinstance(value, bool))
    return [] if fits else [f"{path}: expected {kind.__name__}, got {value!r}"]


def _of_union(value: Any, members: tuple[Any, ...], path: str) -> list[str]:
    """The complaints of the member that fits best."""
    found = [complaints(value, member, path) for member in members]
    return min(found, key=lambda faults: (len(faults), [fault.count(".") for fault in faults]))


def _of_object(value: Any, kind: Any, path: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{path}: expected an object, got {value!r}"
        return
    hints = typing.get_type_hints(kind, include_extras=True)
    for key in kind.__required_keys__:
        if key not in value:
            yield f"{path}.{key}: missing"
    for key, inner in value.items():
        if key not in hints:
            yield f"{path}.{key}: unknown"
        else:
            yield from complaints(inner, hints[key], f"{path}.{key}")


def _bare(kind: Any) -> Any:
    """Without Required, NotRequired, Annotated and names of aliases."""
    while True:
        origin = typing.get_origin(kind)
        if origin in _WRAPPERS:
            kind = typing.get_args(kind)[0]
        elif hasattr(kind, "__value__"):
            kind = kind.__value__
        else:
            return kind
