"""Base of the intermediate format: frozen values, and JSON kept exactly as it was written.

A JSON-valued field (arguments of a call, value of a result, a schema, metadata) holds either a Python value that
was built in code, or the exact bytes a wire gave us. Reading the field always gives the Python value; encoding always
gives the exact bytes. So 1.0 stays 1.0, 2**53+1 stays itself, 1e400 survives, key order and duplicate keys survive,
and what is not read is never parsed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeAlias, TypeVar

import msgspec
from msgspec import Meta, Raw, Struct, UnsetType

from dragoman.ir.exact_json import (
    EMPTY_OBJECT,
    compact_text,
    encode_finite,
    encode_json,
    exact_json,
    exact_object,
    json_line,
    note,
    parse_json,
    parse_plain_json,
    read_arguments,
    single_line,
    to_raw,
    without_line_breaks,
)

__all__ = [
    "EMPTY_OBJECT",
    "Held",
    "Items",
    "Json",
    "JsonEntry",
    "JsonObject",
    "MaybeJsonObject",
    "Metadata",
    "Nodes",
    "SignedMetadata",
    "Value",
    "compact_text",
    "construct_checked",
    "encode_finite",
    "encode_json",
    "exact_json",
    "exact_object",
    "holds_json",
    "json_line",
    "note",
    "parse_json",
    "parse_plain_json",
    "read_arguments",
    "single_line",
    "to_raw",
    "without_line_breaks",
]

T = TypeVar("T")

if TYPE_CHECKING:
    # What type checkers see: fields that take exact bytes or a Python value, and read as the Python value.

    class Json:
        def __get__(self, instance: object, owner: type | None = None, /) -> Any: ...
        def __set__(self, instance: object, value: Any, /) -> None: ...

    class JsonObject:
        def __get__(self, instance: object, owner: type | None = None, /) -> dict[str, Any]: ...
        def __set__(self, instance: object, value: dict[str, Any] | Raw | UnsetType, /) -> None: ...

    class MaybeJsonObject:
        def __get__(self, instance: object, owner: type | None = None, /) -> dict[str, Any] | None: ...
        def __set__(self, instance: object, value: dict[str, Any] | Raw | None, /) -> None: ...

    class Items(Generic[T]):
        def __get__(self, instance: object, owner: type | None = None, /) -> tuple[T, ...]: ...
        def __set__(self, instance: object, value: Sequence[T], /) -> None: ...

    class Nodes(Generic[T]):
        def __get__(self, instance: object, owner: type | None = None, /) -> tuple[T, ...]: ...
        def __set__(self, instance: object, value: Sequence[T | Mapping[str, Any]], /) -> None: ...

    class SignedMetadata:
        def __get__(self, instance: object, owner: type | None = None, /) -> dict[str, dict[str, Any]] | None: ...
        def __set__(self, instance: object, value: Mapping[str, Mapping[str, Any] | str | bytes] | None, /) -> None: ...

    class Held(Generic[T]):
        def __get__(self, instance: object, owner: type | None = None, /) -> T: ...

    JsonEntry: TypeAlias = Any
else:

    class Held(Generic[T]):
        """A field as it is held: the exact bytes, or the value it was built with. Reading it costs no call."""

    class Items:
        """A tuple that may be given as any list."""

        def __class_getitem__(cls, item: Any) -> Any:
            return tuple[item, ...]

    Nodes = Items  # and whose items may be given as mappings of their fields
    Json = Raw
    JsonObject = Annotated[Raw, Meta(extra_json_schema={"type": "object"})]
    MaybeJsonObject = Annotated[Raw, Meta(extra_json_schema={"type": ["object", "null"]})]
    JsonEntry = Raw
    # Also given flat, with the signature of a vendor under its wire name: {"thoughtSignature": "…"}.
    SignedMetadata = dict[str, dict[str, Raw]] | None

Metadata: TypeAlias = dict[str, dict[str, JsonEntry]]
"""Format family -> key -> exact JSON. Keys that start with ``~`` are spelling notes of a codec, never wire keys."""


class Value(Struct, frozen=True, gc=False, omit_defaults=True):
    """Base of all intermediate values. gc=False: values hold no cycles, and histories hold many of them."""

    def __repr__(self) -> str:
        shown = []
        for name, default in zip(self.__struct_fields__, _defaults(type(self)), strict=True):
            value = _read_field(self, name)
            if value != default:
                shown.append(f"{name}={_readable(value)!r}")
        return f"{type(self).__name__}({', '.join(shown)})"


S = TypeVar("S", bound=Struct)


def construct_checked(kind: type[S], /, *args: Any, **kwargs: Any) -> S:
    """Builds a checked value: `InvalidValue` says which field is wrong.

    Codecs and passes call the class itself, which checks nothing.
    """
    from dragoman.ir.checks import construct  # noqa: PLC0415 - decoding never loads the checks

    return construct(kind, args, kwargs)


def _read_field(value: Value, name: str) -> Any:
    """The parsed field; UNSET if parsing would raise (arguments that are not JSON)."""
    slot = getattr(type(value), "__exact__", {}).get(name)
    if slot is None:
        return getattr(value, name)
    given = slot.__get__(value)
    return parse_json(given) if type(given) is Raw else given


def _readable(value: Any) -> Any:
    """Exact bytes as parsed values, also within metadata."""
    if type(value) is Raw:
        return parse_json(value)
    return {key: _readable(inner) for key, inner in value.items()} if type(value) is dict else value


def _defaults(kind: type[Struct]) -> tuple[Any, ...]:
    defaults = kind.__struct_defaults__
    return (msgspec.NODEFAULT,) * (len(kind.__struct_fields__) - len(defaults)) + tuple(defaults)


V = TypeVar("V", bound=type[Value])


def holds_json(*names: str) -> Callable[[V], V]:
    """Class decorator: these fields hold exact JSON (see the docstring of this module).

    The struct's own slot keeps what was given, and can be read as `<name>_held`; a property in front of it parses on
    reading. Two values are equal when they read the same, however each of them is held.
    """

    def decorate(kind: V) -> V:
        slots = {}
        for name in names:
            slot = kind.__dict__[name]
            slots[name] = slot
            setattr(kind, f"{name}_held", slot)
            setattr(kind, name, property(_reader(slot.__get__)))
        kind.__exact__ = slots  # type: ignore[attr-defined]
        kind.__eq__ = _same_reading  # type: ignore[method-assign, assignment]
        kind.__hash__ = None  # type: ignore[assignment]
        return kind

    return decorate


def _reader(get: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def read(self: Value) -> Any:
        value = get(self)
        return parse_json(value) if type(value) is Raw else value

    return read


def _same_reading(self: Value, other: object) -> bool:
    if type(self) is not type(other):
        return NotImplemented  # type: ignore[no-any-return]
    return all(_read_field(self, name) == _read_field(other, name) for name in self.__struct_fields__)
