"""What the adaptation of a schema works with: nodes, notes about their keywords, and its error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from msgspec import UNSET, Raw, Struct, UnsetType, field

from dragoman.errors import DragomanError

Json: TypeAlias = Any
Node: TypeAlias = dict[str, Json]

Action = Literal["dropped", "rewritten", "kept"]


class SchemaNote(Struct, frozen=True, order=True):
    """One keyword of a schema that the target does not accept.

    `dropped`: the keyword is gone. `rewritten`: it is expressed in another way, or something was added. `kept`: it is
    still there although the target refuses it, because any other form would mean something else. `path` is the schema
    that holds the keyword, in the source. `exact`: the adapted schema means the same, so nothing is lost.
    """

    path: str
    keyword: str
    action: Action
    reason: str
    exact: bool = False


class Adapted(Struct, frozen=True):
    schema: Json
    notes: tuple[SchemaNote, ...]


class SchemaRoot(Struct):
    """What decides whether a schema with rules for its root has to be examined."""

    type: str | UnsetType = UNSET
    all_of: Raw | UnsetType = field(default=UNSET, name="allOf")
    any_of: Raw | UnsetType = field(default=UNSET, name="anyOf")
    one_of: Raw | UnsetType = field(default=UNSET, name="oneOf")


class SchemaError(DragomanError, ValueError):
    """A schema that cannot be adapted to the target."""

    def __init__(self, *, path: str, expected: str, got: str, keyword: str = "") -> None:
        self.path = path
        self.expected = expected
        self.got = got
        self.keyword = keyword
        super().__init__(f"expected {expected}, got {got} - at {path}")


class Derived(Struct, frozen=True):
    node: Node  # kept alive, so that its id is not reused
    base: Node
    owners: Mapping[str, Node]
    identities: tuple[int, ...]
