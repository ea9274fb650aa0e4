"""Base of the intermediate format: frozen values, and JSON kept exactly as it was written.

A JSON-valued field (arguments of a call, value of a result, a schema, metadata) holds either a Python value that
was built in code, or the exact bytes a wire gave us. Reading the field always gives the Python value; encoding always
gives the exact bytes. So 1.0 stays 1.0, 2**53+1 stays itself, 1e400 survives, key order and duplicate keys survive,
and what is not read is never parsed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from math import isfinite, isinf
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeAlias, TypeVar, cast

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from dragoman.errors import EncodeError

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

    JsonEntry: TypeAlias = Any
else:

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

# A number too large for a double is read as a Decimal, and must be written unchanged.
encode_json = msgspec.json.Encoder(decimal_format="number").encode
_decode_json = msgspec.json.Decoder().decode


def _number(text: str) -> float | Decimal | Raw:
    number = float(text)
    try:
        return Decimal(text) if isinf(number) else number
    except InvalidOperation:
        return Raw(text.encode())  # an exponent of more than 18 digits: keep the exact text


_decode_big_numbers = msgspec.json.Decoder(float_hook=_number).decode
_decode_raw = msgspec.json.Decoder(Raw).decode
_MOST_DIGITS = 4_300
"""Most digits of an integer that Python converts (sys.get_int_max_str_digits) and msgspec accepts."""


def parse_json(text: bytes | str | Raw) -> Any:
    """Parse JSON; a number that no float or int holds (1e400, 5,000 digits) becomes an exact `Decimal`.

    One that no `Decimal` holds either stays exact JSON (`Raw`).
    """
    try:
        return _decode_json(text)
    except msgspec.ValidationError:
        return _parse_wide(text)


def _parse_wide(text: bytes | str | Raw) -> Any:
    try:
        return _decode_big_numbers(text)
    except msgspec.ValidationError:
        _decode_raw(text)  # refuses lone surrogates, which the standard library accepts
    import json  # noqa: PLC0415 - rarely needed

    data = text if isinstance(text, str) else bytes(text)
    try:
        return json.loads(data, parse_int=_integer, parse_float=_number, parse_constant=_refuse_constant)
    except ValueError as error:
        raise msgspec.DecodeError(str(error)) from error


def _integer(text: str) -> int | Decimal:
    return int(text) if len(text) <= _MOST_DIGITS else Decimal(text)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def parse_plain_json(text: bytes) -> Any:
    """Parse JSON into what the standard library's `json` can write: 1e999 becomes the integer of the same value.

    A number that is no such integer has no plain Python value; the error names its path.
    """
    try:
        return _decode_json(text)
    except msgspec.ValidationError:
        return _without_decimals(parse_json(text), "$")


def _without_decimals(value: Any, path: str) -> Any:
    if isinstance(value, dict):
        return {key: _without_decimals(member, f"{path}.{key}") for key, member in value.items()}
    if isinstance(value, list):
        return [_without_decimals(member, f"{path}[{index}]") for index, member in enumerate(value)]
    if not isinstance(value, Decimal | Raw):
        return value
    if isinstance(value, Decimal) and value.adjusted() < _MOST_DIGITS and value == value.to_integral_value():
        return int(value)
    reason = "a number too large for a Python float or int; json() has it in its own spelling"
    raise EncodeError(path=path, reason=reason, target="Encoded.body")


def exact_json(text: str | bytes) -> Raw | None:
    """The text as exact JSON if it is one valid JSON value, else None. Checks the syntax without building objects."""
    try:
        return _decode_raw(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return None


def exact_object(text: str | bytes) -> Raw | None:
    """Like `exact_json`, for JSON objects only."""
    raw = exact_json(text)
    return raw if raw is not None and bytes(memoryview(raw)[:1]) == b"{" else None


EMPTY_OBJECT = Raw(b"{}")


def read_arguments(text: str) -> Raw | UnsetType:
    """The mapping in an argument text, or UNSET when there is none. No text at all, and null, mean no arguments."""
    parsed = exact_json(text) if text[:1] == "{" else exact_object(text)
    if parsed is not None:
        return parsed
    return EMPTY_OBJECT if text.strip() in {"", "null"} else UNSET


def to_raw(value: Any) -> Raw:
    """Exact bytes of a JSON value, whether it is held as bytes or as a Python value."""
    return value if type(value) is Raw else Raw(encode_finite(value))


def encode_finite(value: Any) -> bytes:
    """Encodes JSON, and refuses NaN and infinity, which the encoder would silently write as null."""
    data = encode_json(value)
    if b"null" in data and not _is_finite(value):
        raise EncodeError(path="$", reason="NaN and infinity do not exist in JSON", target="json")
    return data


def _is_finite(value: Any) -> bool:
    if isinstance(value, float):
        return isfinite(value)
    if isinstance(value, Mapping):
        return all(map(_is_finite, value.values()))
    return not isinstance(value, list | tuple) or all(map(_is_finite, value))


def single_line(raw: Raw) -> Raw:
    """The same JSON without line breaks between tokens, for framings that end at one. Numbers keep their spelling."""
    data = bytes(raw)
    return Raw(msgspec.json.format(data, indent=-1)) if _LF in data or _CR in data else raw


def json_line(value: Any) -> bytes:
    """The JSON of a value without line breaks, which its exact pieces may have between tokens."""
    data = encode_json(value)
    return msgspec.json.format(data, indent=-1) if _LF in data or _CR in data else data


_LF, _CR = b"\n\r"


_format = msgspec.json.format


def compact_text(value: Any) -> str:
    """JSON text in the usual form: compact, non-ASCII unescaped, key order kept."""
    if type(value) is Raw:
        return _format(value, indent=-1).decode()
    return encode_finite(value).decode()


class Value(Struct, frozen=True, gc=False, omit_defaults=True):
    """Base of all intermediate values. gc=False: values hold no cycles, and histories hold many of them."""

    def __repr__(self) -> str:
        shown = []
        for name, default in zip(self.__struct_fields__, _defaults(type(self)), strict=True):
            value = _reading(self, name)
            if value != default:
                shown.append(f"{name}={_readable(value)!r}")
        return f"{type(self).__name__}({', '.join(shown)})"


S = TypeVar("S", bound=Struct)


def construct_checked(kind: type[S], /, *args: Any, **kwargs: Any) -> S:
    """Builds a checked value: `InvalidValue` says which field is wrong.

    Calling the class itself checks nothing; codecs and passes do that.
    """
    from dragoman.ir.checks import construct  # noqa: PLC0415 - decoding never loads the checks

    return construct(kind, args, kwargs)


def _reading(value: Value, name: str) -> Any:
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
    """Class decorator: these fields hold exact JSON (see the module's text).

    The struct's own slot keeps what was given; a property in front of it parses on reading. Two values are equal
    when they read the same, however each of them is held.
    """

    def decorate(kind: V) -> V:
        slots = {}
        for name in names:
            slot = kind.__dict__[name]
            slots[name] = slot
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
    return all(_reading(self, name) == _reading(other, name) for name in self.__struct_fields__)


def held(value: Value, name: str) -> Any:
    """The unparsed field: exact bytes (`Raw`) or the Python value it was built with."""
    return cast("Any", type(value)).__exact__[name].__get__(value)


def getter(kind: type[Value], name: str) -> Callable[[Any], Any]:
    """`held` for one field of one kind, resolved once, for the hot path."""
    return cast("Callable[[Any], Any]", cast("Any", kind).__exact__[name].__get__)


def note(metadata: Metadata | None, family: str, key: str) -> Any:
    """One entry of a node's metadata as a Python value, or UNSET."""
    if metadata is None:
        return UNSET
    raw = metadata.get(family, {}).get(key, UNSET)
    return parse_json(raw) if type(raw) is Raw else raw
