"""JSON kept exactly as it was written, or parsed without changing a number."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from math import isfinite, isinf
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, UnsetType

from dragoman.errors import EncodeError

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
_MOST_DIGITS: Final = 4_300
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

    data: Any = text  # msgspec's types derive `Raw` from bytes, which it is not: compiled code would insist on bytes
    if not isinstance(data, str):
        data = bytes(data)
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


EMPTY_OBJECT: Final = Raw(b"{}")


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
    return without_line_breaks(encode_json(value))


def without_line_breaks(data: bytes) -> bytes:
    """The same JSON without line breaks."""
    return msgspec.json.format(data, indent=-1) if _LF in data or _CR in data else data


_LF: Final = ord("\n")
_CR: Final = ord("\r")


_format = msgspec.json.format


def compact_text(value: Any) -> str:
    """JSON text in the usual form: compact, non-ASCII unescaped, key order kept."""
    if type(value) is Raw:
        return _format(value, indent=-1).decode()
    return encode_finite(value).decode()


def note(metadata: Mapping[str, Mapping[str, Any]] | None, family: str, key: str) -> Any:
    """One entry of a node's metadata as a Python value, or UNSET."""
    if metadata is None:
        return UNSET
    raw = metadata.get(family, {}).get(key, UNSET)
    return parse_json(raw) if type(raw) is Raw else raw
