"""Adapts JSON Schemas to each target: unsupported keywords are rewritten, or reported.

Pure functions on plain JSON values. A schema that the target accepts is returned as the same object. The rest is
described by the dialect: references are inlined where the target has none (recursion is refused), allOf is merged,
oneOf becomes anyOf, const an enum of one value, a list of types `nullable` or anyOf, an exclusive limit of an integer
the next integer; other unsupported keywords are dropped. Alternatives at a root that must be one object are merged: the
properties of all are declared, and only those that all require are required.
"""

from __future__ import annotations

from dragoman.schema.adaptation import adapt_schema, needs_adaptation, violations
from dragoman.schema.dialects import (
    ANTHROPIC_FORMAT,
    ANTHROPIC_INPUT,
    ANTHROPIC_STRICT,
    GEMINI_TYPED,
    JSON_SCHEMA,
    OPENAI_STRICT,
    VERTEX_TYPED,
    SchemaDialect,
)
from dragoman.schema.values import Adapted, SchemaError, SchemaNote

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
