"""Reads stored histories: a bare list of records, or an object that holds the list under `messages`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, Raw, UnsetType

from dragoman.codecs.reading import WireReader
from dragoman.codecs.records.pairing import NO_ID
from dragoman.errors import DecodeError, LimitExceeded
from dragoman.ir.notes import SINGLE, Extra
from dragoman.ir.values import parse_json

TRUE = Raw(b"true")
NULL = Raw(b"null")
ABSENT = Raw(b'"absent"')
CONTENT = "~content"
"""Note: how the content was written if the format has several ways: "string", "parts", "absent" or null."""

W = TypeVar("W")

_items = WireReader(list[Raw], "history")


def is_list(body: bytes) -> bool:
    return body.lstrip()[:1] == b"["


def read_list(body: bytes, source: str) -> list[Raw]:
    return read_at(_items.read, body, "$", source)


def read_record(reader: WireReader[W], raw: Raw, place: str, source: str) -> W:
    """Decode one record of a list; errors state the path of the record."""
    wire = read_at(reader.read, bytes(raw), place, source)
    refuse_single(wire, place, source)
    return wire


def refuse_single(wire: object, place: str, source: str) -> None:
    """Raise an error for a single element in place of a list: some APIs accept it, stored histories never have it."""
    extra = getattr(wire, "extra", UNSET)
    for key in () if extra is UNSET else extra:
        if key.startswith(SINGLE):
            path = f"{place}.{key.removeprefix(SINGLE)}"
            raise DecodeError(path=path, expected="array", got="object", source=source)


def read_at(read: Callable[[bytes], W], body: bytes, place: str, source: str) -> W:
    """Read a body; paths in errors start at its place in the whole."""
    try:
        return read(body)
    except DecodeError as error:
        path = place + error.path.removeprefix("$")
        raise type(error)(path=path, expected=error.expected, got=error.got, source=source) from error


class Peeker:
    """Returns the keys of a record, to find its kind before it is decoded."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._entries = msgspec.json.Decoder(dict[str, Raw])

    def keys(self, raw: Raw, place: str) -> dict[str, Raw]:
        try:
            return self._entries.decode(raw)
        except msgspec.ValidationError as error:
            got = str(error).partition("got ")[2] or str(error)
            raise DecodeError(path=place, expected="a record (an object)", got=got, source=self._source) from error
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise DecodeError(path=place, expected="JSON", got=str(error), source=self._source) from error
        except RecursionError as error:
            raise LimitExceeded(
                path=place, expected="JSON", got="nesting too deep to read", source=self._source
            ) from error


def role_of(keys: dict[str, Raw], place: str, source: str) -> str | None:
    raw = keys.get("role")
    if raw is None:
        return None
    role = parse_json(raw)
    if isinstance(role, str):
        return role
    raise DecodeError(path=f"{place}.role", expected="str", got=_kind_of(role), source=source)


def _kind_of(value: Any) -> str:
    return "null" if value is None else type(value).__name__


def spelled_id(call_id: str, notes: Extra) -> str | None | UnsetType:
    """Return the id as the record had it: invented ids of old data are not written back."""
    if NO_ID in notes:
        return UNSET
    given = notes.get("~id")
    return call_id if given is None else parse_json(given)
