"""Types of the single-value functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from msgspec import Struct

from dragoman.codecs.sdk_objects import SdkObject
from dragoman.ir.values import parse_json
from dragoman.loss import Loss


class EncodedValue(Struct, frozen=True):
    """One value in the shape of a format. `json()` is its exact bytes, `value` the same as Python values.

    `losses` are those of this value alone. Their paths start at the value that was given: `$.signature` of a call,
    `$[1].cache` of the second one in a list. `value` is None where the format has no place for the value at all.
    """

    content: bytes
    losses: tuple[Loss, ...] = ()

    def json(self) -> bytes:
        return self.content

    @property
    def value(self) -> Any:
        return parse_json(self.content)


WireInput: TypeAlias = bytes | bytearray | memoryview | str | Mapping[str, Any] | SdkObject
"""One value of a format: JSON text, the parsed object, or an object of the vendor's SDK."""
WireInputs: TypeAlias = WireInput | Sequence[Mapping[str, Any] | SdkObject]
"""One value of a format, or a list of them."""
