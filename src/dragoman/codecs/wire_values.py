"""The base of all wire structs, and the types of their members.

Structs are in separate modules, which are not compiled: msgspec reads their annotations.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from msgspec import UNSET, Raw, Struct, UnsetType, field

from dragoman.ir.notes import Extra

# These two names exist only between lifting and decoding. No body may contain them, so they cannot be guessed.
_SECRET = os.urandom(8).hex()
EXTRA = f"~extra-{_SECRET}"
UNKNOWN = f"~unknown-{_SECRET}"
"""Tag of the struct for every block type that a union does not name."""

if TYPE_CHECKING:
    MaybeStr: TypeAlias = str | None
    MaybeInt: TypeAlias = int | None
    MaybeNumber: TypeAlias = int | float | None
    MaybeBool: TypeAlias = bool | None
    MaybeRaw: TypeAlias = Raw | None
else:
    # May be absent (then None), may not be null: an explicit null is lifted into `extra` and so survives. With these,
    # settings pass between wire and intermediate format without a check of each.
    MaybeStr = str
    MaybeInt = int
    MaybeNumber = int | float
    MaybeBool = bool
    MaybeRaw = Raw


class Wire(Struct, frozen=True, gc=False, forbid_unknown_fields=True, kw_only=True):
    """Base of all wire structs. `extra` holds the object's keys beyond its type; it never has that name on a wire."""

    extra: Extra | UnsetType = field(default=UNSET, name=EXTRA)

    further: ClassVar[tuple[str, ...]] = ()
    """Keys that compatible servers document or clients send, too rare for members. They are kept in `extra`; the
    struct's variant (codecs/loose_structs.py) reads them without lifting."""


class Unmodelled(Wire, frozen=True, tag=UNKNOWN):
    """A tagged object of a kind that we do not model, whole."""

    raw: Raw


def further_keys(kind: type[Struct]) -> tuple[str, ...]:
    """Return the rare keys of a struct, unless it has a member of that name."""
    keys: tuple[str, ...] = getattr(kind, "further", ())
    return tuple(key for key in keys if key not in kind.__struct_encode_fields__)
