"""Adapts a schema to a dialect, or says what the dialect refuses in it."""

from __future__ import annotations

import msgspec
from msgspec import UNSET

from dragoman.schema.dialects import ROOT_COMBINATORS, SchemaDialect
from dragoman.schema.steps import has_root_rules_only, is_verbatim
from dragoman.schema.values import Adapted, Json, SchemaError, SchemaNote, SchemaRoot
from dragoman.schema.walk import Walk


def adapt_schema(schema: Json, dialect: SchemaDialect, path: str = "$") -> Adapted:
    """Adapts the schema to the dialect; returns the same object if nothing had to change."""
    if is_verbatim(dialect) or (has_root_rules_only(dialect) and _is_plain_object(schema)):
        return Adapted(schema, ())
    walk = Walk(schema, dialect, path)
    adapted = walk.run()
    notes = tuple(walk.notes)
    return Adapted(adapted if _changes(notes) else schema, notes)


def violations(schema: Json, dialect: SchemaDialect, path: str = "$") -> tuple[SchemaNote, ...]:
    """What the dialect refuses in this schema; empty if it is legal.

    For switches such as `strict`: omitting the switch may be better than weakening the schema.
    """
    try:
        return adapt_schema(schema, dialect, path).notes
    except SchemaError as error:
        return (SchemaNote(error.path, error.keyword, "kept", f"expected {error.expected}, got {error.got}"),)


def _changes(notes: tuple[SchemaNote, ...]) -> bool:
    for note in notes:  # noqa: SIM110 - a generator costs more, compiled
        if note.action != "kept":
            return True
    return False


_decode_root = msgspec.json.Decoder(SchemaRoot).decode


def needs_adaptation(schema: bytes, dialect: SchemaDialect) -> bool:
    """False only if `adapt_schema` would change nothing; decided without parsing the schema."""
    if is_verbatim(dialect):
        return False
    if not has_root_rules_only(dialect):
        return True
    try:
        root = _decode_root(schema)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return True
    return root.type != "object" or not (root.all_of is root.any_of is root.one_of is UNSET)


def _is_plain_object(schema: Json) -> bool:
    return isinstance(schema, dict) and schema.get("type") == "object" and schema.keys().isdisjoint(ROOT_COMBINATORS)
