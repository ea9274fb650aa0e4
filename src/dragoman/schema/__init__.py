"""Adapts JSON Schemas to each target: unsupported keywords are rewritten, or reported.

Pure functions on plain JSON values. A schema that the target accepts is returned as the same object. The
rest is described by the dialect: references are inlined where the target has none (recursion is refused),
allOf is merged, oneOf becomes anyOf, const an enum of one value, a list of types `nullable` or anyOf, an exclusive
limit of an integer the next integer; other unsupported keywords are dropped. Alternatives at a root that must be one
object are merged: the properties of all are declared, and only those that all
require are required.
"""

from __future__ import annotations

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from dragoman.schema.dialects import (
    ANTHROPIC_FORMAT,
    ANTHROPIC_INPUT,
    ANTHROPIC_STRICT,
    GEMINI_TYPED,
    JSON_SCHEMA,
    OPENAI_STRICT,
    ROOT_COMBINATORS,
    VERTEX_TYPED,
    SchemaDialect,
)
from dragoman.schema.values import Json, SchemaError, SchemaNote
from dragoman.schema.walk import Walk

__all__ = [
    "ANTHROPIC_FORMAT",
    "ANTHROPIC_INPUT",
    "ANTHROPIC_STRICT",
    "GEMINI_TYPED",
    "JSON_SCHEMA",
    "OPENAI_STRICT",
    "VERTEX_TYPED",
    "Adapted",
    "SchemaDialect",
    "SchemaError",
    "SchemaNote",
    "adapt_schema",
    "needs_adaptation",
    "violations",
]


class Adapted(Struct, frozen=True):
    schema: Json
    notes: tuple[SchemaNote, ...]


def adapt_schema(schema: Json, dialect: SchemaDialect, path: str = "$") -> Adapted:
    """Adapts the schema to the dialect; returns the same object if nothing had to change."""
    if dialect.verbatim or (dialect.root_only and _is_plain_object(schema)):
        return Adapted(schema, ())
    walk = Walk(schema, dialect, path)
    adapted = walk.run()
    notes = tuple(walk.notes)
    return Adapted(adapted if any(note.action != "kept" for note in notes) else schema, notes)


def violations(schema: Json, dialect: SchemaDialect, path: str = "$") -> tuple[SchemaNote, ...]:
    """What the dialect refuses in this schema; empty if it is legal.

    For switches such as `strict`: omitting the switch may be better than weakening the schema.
    """
    try:
        return adapt_schema(schema, dialect, path).notes
    except SchemaError as error:
        return (SchemaNote(error.path, error.keyword, "kept", f"expected {error.expected}, got {error.got}"),)


class _Root(Struct):
    type: str | UnsetType = UNSET
    all_of: Raw | UnsetType = field(default=UNSET, name="allOf")
    any_of: Raw | UnsetType = field(default=UNSET, name="anyOf")
    one_of: Raw | UnsetType = field(default=UNSET, name="oneOf")


_decode_root = msgspec.json.Decoder(_Root).decode


def needs_adaptation(schema: bytes, dialect: SchemaDialect) -> bool:
    """False only if `adapt_schema` would change nothing; decided without parsing the schema."""
    if dialect.verbatim:
        return False
    if not dialect.root_only:
        return True
    try:
        root = _decode_root(schema)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return True
    return root.type != "object" or not (root.all_of is root.any_of is root.one_of is UNSET)


def _is_plain_object(schema: Json) -> bool:
    return isinstance(schema, dict) and schema.get("type") == "object" and schema.keys().isdisjoint(ROOT_COMBINATORS)
