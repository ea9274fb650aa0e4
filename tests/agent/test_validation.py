"""Our checker of arguments and an independent one agree on what a schema accepts."""

from typing import Any

import jsonschema  # type: ignore[import-untyped]
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.agent.validation import problems_of
from tests.support.promises import promise

LEAVES = st.sampled_from([None, True, False, -1, 0, 1, 2, 0.5, 1.0, "", "a", "ab", "b1"])
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "x1"]), inner, max_size=3),
    max_leaves=5,
)
WORDS: dict[str, st.SearchStrategy[Any]] = {
    "type": st.sampled_from(["null", "boolean", "integer", "number", "string", "array", "object", ["string", "null"]]),
    "enum": st.lists(VALUES, min_size=1, max_size=3),
    "const": VALUES,
    "minimum": st.integers(-2, 2),
    "exclusiveMaximum": st.integers(-2, 2),
    "multipleOf": st.sampled_from([1, 2, 0.5]),
    "minLength": st.integers(0, 2),
    "pattern": st.sampled_from(["^a", "b", "1$"]),
    "maxItems": st.integers(0, 2),
    "uniqueItems": st.booleans(),
    "minProperties": st.integers(0, 2),
    "required": st.lists(st.sampled_from(["a", "b"]), max_size=2, unique=True),
    "dependentRequired": st.just({"a": ["b"]}),
    "$ref": st.just("#/$defs/other"),
}
PLAIN = st.fixed_dictionaries({}, optional=WORDS)
INNER = st.booleans() | PLAIN
OUTER = st.fixed_dictionaries(
    {},
    optional={
        **WORDS,
        **dict.fromkeys(("not", "if", "then", "else", "additionalProperties", "items", "contains"), INNER),
        **dict.fromkeys(("allOf", "anyOf", "oneOf", "prefixItems"), st.lists(INNER, min_size=1, max_size=3)),
        "propertyNames": INNER,
        "properties": st.dictionaries(st.sampled_from(["a", "b"]), INNER, max_size=2),
        "patternProperties": st.dictionaries(st.sampled_from(["^x", "b"]), INNER, max_size=1),
    },
)


@promise("agent:original-schema", "agent:tool-by-hand")
@settings(max_examples=200)
@given(OUTER, PLAIN, VALUES)
def test_both_accept_the_same(schema: dict[str, Any], other: dict[str, Any], value: Any) -> None:
    schema = {
        **schema,
        "$defs": {"other": {key: keyword_value for key, keyword_value in other.items() if key != "$ref"}},
    }
    accepted = jsonschema.Draft202012Validator(schema).is_valid(value)
    assert (problems_of(schema, value) == []) is accepted
