import copy
import json
from typing import Any

import pytest
from hypothesis import event, example, given, note
from hypothesis import strategies as st

from dragoman.schema import (
    ANTHROPIC_FORMAT,
    ANTHROPIC_INPUT,
    ANTHROPIC_STRICT,
    GEMINI_TYPED,
    OPENAI_STRICT,
    VERTEX_TYPED,
    SchemaDialect,
    SchemaError,
    adapt_schema,
    needs_adaptation,
    violations,
)
from dragoman.schema.dialects import OPENAI_FUNCTION
from dragoman.schema.steps import has_root_rules_only
from dragoman.schema.walk import Walk
from tests.passes.schema_judge import (
    accepts,
    anthropic_strict_refuses,
    gemini_refuses,
    nodes,
    openai_strict_refuses,
)
from tests.support.promises import promise

Schema = Any

NAMES = st.sampled_from(["a", "b", "type", "$ref", "anyOf"])
TYPES = st.sampled_from(["string", "number", "integer", "boolean", "array", "object", "null"])
SCALARS = st.sampled_from([None, True, False, 0, 1, 2, -1, 3, 0.5, 2.0, "a", "b", "ab"])
VALUES = SCALARS | st.lists(SCALARS, max_size=2) | st.dictionaries(NAMES, SCALARS | st.just({"a": 1}), max_size=3)
REFERENCES = st.sampled_from(["#/$defs/A", "#/$defs/B", "#/$defs/C", "#/properties/a", "#/$defs/A/properties/b"])
SMALL = st.integers(0, 3)
PLAIN: dict[str, st.SearchStrategy[Any]] = {
    "type": TYPES | st.lists(TYPES, min_size=1, max_size=3, unique=True),
    "enum": st.lists(VALUES, min_size=1, max_size=3),
    "const": VALUES,
    "description": st.sampled_from(["one", "two"]),
    "title": st.sampled_from(["T", "U"]),
    "default": VALUES,
    "minLength": SMALL,
    "maxLength": SMALL,
    "pattern": st.sampled_from(["^a", "b$", "(?=a)"]),
    "minimum": SMALL,
    "exclusiveMinimum": st.sampled_from([-1, 0, 0.5]),
    "exclusiveMaximum": st.sampled_from([1, 3, 2.0]),
    "maximum": SMALL,
    "minItems": st.sampled_from([0, 1, 2, 1.0]),
    "maxItems": SMALL,
    "required": st.lists(NAMES, max_size=2, unique=True),
    "format": st.sampled_from(["date-time", "date", "int64", "odd"]),
    "nullable": st.sampled_from([True]),  # false is the default, and JSON Schema knows neither
    "uniqueItems": st.booleans(),
    "x-note": st.just("n"),
    "$ref": REFERENCES,
}
HOLDING = ("properties", "items", "prefixItems", "additionalProperties", "anyOf", "oneOf", "allOf", "not")
LEAVES = st.one_of(
    TYPES.map(lambda name: {"type": name}),
    REFERENCES.map(lambda reference: {"$ref": reference}),
    st.sampled_from([{"type": "string", "enum": ["a"]}, {"type": ["string", "null"]}, {}, True, False]),
)
# A few keywords each: schemas that use all of them only contradict themselves. Type stands twice, to be drawn more.
KEYWORDS = st.lists(st.sampled_from(["type", *PLAIN, *HOLDING, *HOLDING]), min_size=1, max_size=4)


@st.composite
def schemas(draw: st.DrawFn, depth: int) -> Schema:
    if depth == 0:
        return copy.deepcopy(draw(LEAVES))
    inner = schemas(depth - 1)
    holding: dict[str, st.SearchStrategy[Any]] = dict.fromkeys(HOLDING, st.lists(inner, min_size=1, max_size=3)) | {
        "properties": st.dictionaries(NAMES, inner, max_size=3),
        "additionalProperties": inner | st.booleans(),
        "items": inner,
        "not": inner,
    }
    return {keyword: draw(PLAIN[keyword] if keyword in PLAIN else holding[keyword]) for keyword in draw(KEYWORDS)}


@st.composite
def documents(draw: st.DrawFn) -> Schema:
    """A whole schema, often of an object, with definitions that may refer to each other, to themselves, to nothing."""
    root = draw(schemas(draw(st.integers(1, 3))))
    if draw(st.booleans()):
        root = {"type": "object"} | root
    names = draw(st.lists(st.sampled_from("ABC"), unique=True))
    return root | ({"$defs": {name: draw(schemas(draw(st.integers(0, 2)))) for name in names}} if names else {})


JUDGES = {
    GEMINI_TYPED.name: gemini_refuses,
    VERTEX_TYPED.name: lambda schema: gemini_refuses(schema, vertex=True),
    ANTHROPIC_STRICT.name: anthropic_strict_refuses,
    OPENAI_STRICT.name: openai_strict_refuses,
}
each_dialect = pytest.mark.parametrize(
    "dialect",
    [ANTHROPIC_INPUT, ANTHROPIC_STRICT, ANTHROPIC_FORMAT, OPENAI_FUNCTION, OPENAI_STRICT, GEMINI_TYPED, VERTEX_TYPED],
    ids=lambda dialect: dialect.name,
)


@promise("report:65", "law:3-legality", "law:4-determinism")
@each_dialect
@given(schema=documents())
def test_the_adapted_schema_is_legal_and_stays_as_it_is(schema: Schema, dialect: SchemaDialect) -> None:
    before = json.dumps(schema)
    try:
        adapted = adapt_schema(schema, dialect)
    except SchemaError:
        event(f"{dialect.name}: refused")
        (violation,) = violations(schema, dialect)
        assert violation.path.startswith("$")
        return
    finally:
        assert json.dumps(schema) == before
    event(f"{dialect.name}: {'same' if adapted.schema is schema else 'adapted'}")
    note(json.dumps(adapted.schema))
    assert adapt_schema(copy.deepcopy(schema), dialect) == adapted
    judge = JUDGES.get(dialect.name)
    kept = {found.keyword for found in adapted.notes if found.action == "kept"}
    if judge is not None and not kept:
        assert judge(adapted.schema) == []
    again = adapt_schema(adapted.schema, dialect)
    assert again.schema is adapted.schema, again.notes
    assert not needs_adaptation(json.dumps(adapted.schema).encode(), dialect) or not has_root_rules_only(dialect)


@promise("law:2-nothing-vanishes")
@each_dialect
@given(schema=documents())
def test_whatever_changes_is_noted(schema: Schema, dialect: SchemaDialect) -> None:
    walk = Walk(schema, dialect, "$")
    try:
        adapted = walk.run()
    except SchemaError:
        return
    changes = [found for found in walk.notes if found.action != "kept"]
    if not changes:
        assert json.dumps(adapted) == json.dumps(schema)
    kept = {keyword for part in nodes(adapted) for keyword in part}
    noted = {found.keyword for found in changes}
    for keyword in schema:
        assert keyword in kept or keyword in noted


@promise("report:66")
@each_dialect
@given(schema=documents(), values=st.lists(VALUES, min_size=1, max_size=8))
@example(schema={"type": ["string", "null"], "enum": ["a"]}, values=[None, "a", "b"])
@example(schema={"type": "string", "anyOf": [{"type": "string"}, {"type": "null"}]}, values=[None, "a"])
@example(schema={"type": "integer", "exclusiveMinimum": 0.5, "minimum": 2}, values=[0, 1, 2, 3])
@example(schema={"type": "object", "const": None}, values=[{}, None])
@example(schema={"allOf": [False], "type": "object"}, values=[{}])
def test_an_exact_adaptation_accepts_the_same_values(schema: Schema, dialect: SchemaDialect, values: list[Any]) -> None:
    try:
        adapted = adapt_schema(schema, dialect)
    except SchemaError:
        return
    if adapted.schema is schema or not all(found.exact for found in adapted.notes):
        return
    event(f"{dialect.name}: exact")
    note(json.dumps(adapted.schema))
    for value in values:
        try:
            before, after = accepts(schema, value), accepts(adapted.schema, value)
        except (KeyError, TypeError, RecursionError):  # a reference to nothing or in a circle, in a part left alone
            continue
        # Where the root must be an object, the schema is for arguments or answers, which are objects anyway.
        if isinstance(value, dict) or not dialect.root_object:
            assert after == before, value
