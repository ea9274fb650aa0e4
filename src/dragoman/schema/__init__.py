"""JSON Schema for each target: what the target's schema field cannot say is said otherwise, or reported.

Pure functions on plain JSON values. A schema that the target takes as it is comes back as the very same object. The
rest is described by the dialect: references are inlined where the target has none (recursion is refused),
allOf is merged, oneOf becomes anyOf, const an enum of one value, a list of types `nullable` or anyOf, an exclusive
limit of an integer the next integer; a keyword that cannot be said at all is dropped. Alternatives at a root that must
be one object are united: the properties of all are offered, and only those that all require are required.
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
from dragoman.schema.source import Json, SchemaError
from dragoman.schema.walk import SchemaNote, Walk

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
    """The schema as the dialect can say it: the same object when nothing had to change."""
    if dialect.verbatim or (dialect.root_only and _is_plain_object(schema)):
        return Adapted(schema, ())
    walk = Walk(schema, dialect, path)
    adapted = walk.run()
    notes = tuple(walk.notes)
    return Adapted(adapted if any(note.action != "kept" for note in notes) else schema, notes)


def violations(schema: Json, dialect: SchemaDialect, path: str = "$") -> tuple[SchemaNote, ...]:
    """What the dialect refuses in this schema; empty when it is legal as it is.

    For switches such as `strict`: leaving the switch out keeps a schema whole that adapting would weaken.
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
    """False only where `adapt_schema` would change nothing; told without building the schema's values."""
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
