"""Type checks of Go's `encoding/json`, with its error messages.

Ollama has no other validation of shape: unknown keys are ignored, keys match in any case, null means absent everywhere,
and only a value of another JSON type than the Go field is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from dragoman.sim.rules.common import Path, Violation, json_path

INT64 = range(-(2**63), 2**63)
BYTE = range(256)
BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
NOT_BASE64 = re.compile(r"[^A-Za-z0-9+/=\r\n]")


@dataclass(slots=True)
class GoReader:
    """Collects type errors.

    Go names a place by a struct and the fields that lead to it from the top; list indexes and the keys of maps are no
    fields.
    """

    owner: str
    fields: list[str] = field(default_factory=list)
    violations: list[Violation] = field(default_factory=list)

    def refuse(self, path: Path, message: str) -> None:
        self.violations.append(Violation(json_path(path), message, None))

    def mismatch(self, path: Path, value: object, go_type: str, literal: str = "") -> None:
        place = f"struct field {'.'.join([self.owner, *self.fields])}" if self.fields else "value"
        self.refuse(path, f"json: cannot unmarshal {go_word(value)}{literal} into Go {place} of type {go_type}")


def go_word(value: object) -> str:
    match value:
        case bool():
            return "bool"
        case int() | float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
    return "object"


class GoType(Protocol):
    def read(self, reader: GoReader, path: Path, value: object, /) -> None:
        """Report what does not fit; `value` is never null."""


@dataclass(frozen=True, slots=True)
class GoAny:
    def read(self, _reader: GoReader, _path: Path, _value: object) -> None:
        return None


@dataclass(frozen=True, slots=True)
class GoString:
    def read(self, reader: GoReader, path: Path, value: object) -> None:
        if not isinstance(value, str):
            reader.mismatch(path, value, "string")


@dataclass(frozen=True, slots=True)
class GoBool:
    def read(self, reader: GoReader, path: Path, value: object) -> None:
        if not isinstance(value, bool):
            reader.mismatch(path, value, "bool")


@dataclass(frozen=True, slots=True)
class GoInt:
    """A number with a fraction is refused even if it is zero (`5.0`); the message quotes the number."""

    def read(self, reader: GoReader, path: Path, value: object) -> None:
        if isinstance(value, bool) or not isinstance(value, int | float):
            reader.mismatch(path, value, "int")
        elif isinstance(value, float) or value not in INT64:
            reader.mismatch(path, value, "int", literal=f" {value!r}")


@dataclass(frozen=True, slots=True)
class GoBytes:
    """Base64 of the standard alphabet, padded; line ends are skipped. An array of bytes is accepted too."""

    name: str

    def read(self, reader: GoReader, path: Path, value: object) -> None:
        if isinstance(value, list):
            for index, item in enumerate(value):
                if item is not None and (isinstance(item, bool) or not isinstance(item, int) or item not in BYTE):
                    reader.mismatch((*path, index), item, "uint8")
        elif not isinstance(value, str):
            reader.mismatch(path, value, self.name)
        elif not BASE64.fullmatch(value.replace("\r", "").replace("\n", "")):
            foreign = NOT_BASE64.search(value)
            offset = foreign.start() if foreign else len(value) - len(value) % 4
            reader.refuse(path, f"illegal base64 data at input byte {offset}")


@dataclass(frozen=True, slots=True)
class GoSlice:
    name: str
    item: GoType

    def read(self, reader: GoReader, path: Path, value: object) -> None:
        if not isinstance(value, list):
            reader.mismatch(path, value, self.name)
            return
        for index, item in enumerate(value):
            if item is not None:
                self.item.read(reader, (*path, index), item)


@dataclass(frozen=True, slots=True)
class GoMap:
    name: str

    def read(self, reader: GoReader, path: Path, value: object) -> None:
        if not isinstance(value, Mapping):
            reader.mismatch(path, value, self.name)


@dataclass(frozen=True, slots=True)
class OrderedMap:
    """Read by a separate library, which has only this error message."""

    item: GoType

    def read(self, reader: GoReader, path: Path, value: object) -> None:
        if not isinstance(value, Mapping):
            reader.refuse(path, "Value looks like object, but can't find closing '}' symbol")
            return
        for key, item in value.items():
            if item is not None:
                self.item.read(reader, (*path, key), item)


@dataclass(frozen=True, slots=True)
class GoStruct:
    name: str
    fields: Mapping[str, GoType]
    # Inside a type that decodes itself, places are named as fields of the struct around that type.
    owns_its_fields: bool = True

    def read(self, reader: GoReader, path: Path, value: object) -> None:
        if not isinstance(value, Mapping):
            reader.mismatch(path, value, f"api.{self.name}")
            return
        around = reader.owner
        if self.owns_its_fields:
            reader.owner = self.name
        folded = {name.lower(): name for name in self.fields}
        for key, item in value.items():
            name = folded.get(key.lower())
            if name is not None and item is not None:
                reader.fields.append(name)
                self.fields[name].read(reader, (*path, key), item)
                reader.fields.pop()
        reader.owner = around
