import contextlib
import copy
import json
import sys
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pytest

from dragoman.errors import DragomanError
from dragoman.schema import (
    ANTHROPIC_FORMAT,
    ANTHROPIC_INPUT,
    ANTHROPIC_STRICT,
    GEMINI_TYPED,
    JSON_SCHEMA,
    OPENAI_STRICT,
    VERTEX_TYPED,
    SchemaDialect,
    SchemaError,
    adapt_schema,
    needs_adaptation,
    violations,
)
from dragoman.schema.dialects import OPENAI_FUNCTION
from tests.support.cases import each
from tests.support.promises import promise
from tests.support.recordings import Record

Schema = Any
ALL = (
    JSON_SCHEMA,
    OPENAI_FUNCTION,
    ANTHROPIC_INPUT,
    ANTHROPIC_STRICT,
    ANTHROPIC_FORMAT,
    OPENAI_STRICT,
    GEMINI_TYPED,
    VERTEX_TYPED,
)
TYPED = (GEMINI_TYPED, VERTEX_TYPED)


def obj(**properties: Schema) -> Schema:
    return {"type": "object", "properties": properties}


def strict(**properties: Schema) -> Schema:
    return obj(**properties) | {"required": list(properties), "additionalProperties": False}


def adapt(schema: Schema, dialect: SchemaDialect) -> tuple[Schema, list[tuple[str, str, str, bool]]]:
    before = json.dumps(schema)
    adapted = adapt_schema(schema, dialect, "$")
    assert json.dumps(schema) == before
    return adapted.schema, [(note.path, note.keyword, note.action, note.exact) for note in adapted.notes]


def exact(path: str, keyword: str, action: str = "rewritten") -> tuple[str, str, str, bool]:
    return (path, keyword, action, True)


def lossy(path: str, keyword: str, action: str = "dropped") -> tuple[str, str, str, bool]:
    return (path, keyword, action, False)


STRING = {"type": "string"}
INTEGER = {"type": "integer"}
NULL = {"type": "null"}

TYPED_CASES: dict[str, tuple[Schema, Schema, list[tuple[str, str, str, bool]]]] = {
    "null in a list of types": (
        {"type": ["string", "null"], "minLength": 1},
        {"type": "string", "minLength": 1, "nullable": True},
        [exact("$", "type")],
    ),
    "a list of one type": ({"type": ["string"]}, STRING, [exact("$", "type")]),
    "a list of null alone": ({"type": ["null"]}, NULL, [exact("$", "type")]),
    "several types": (
        {"type": ["string", "integer", "null"], "minLength": 1, "minimum": 2},
        {"anyOf": [{"type": "string", "minLength": 1}, {"type": "integer", "minimum": 2}, NULL]},
        [exact("$", "type")],
    ),
    "anyOf with null": (
        {"anyOf": [STRING, NULL], "default": None},
        {"default": None, "type": "string", "nullable": True},
        [exact("$", "anyOf")],
    ),
    "anyOf of two and null keeps null as a schema": ({"anyOf": [STRING, INTEGER, NULL]}, None, []),
    "anyOf with null that is described": (
        {"anyOf": [STRING, {"type": "null", "description": "unknown", "title": "T"}]},
        {"type": "string", "nullable": True},
        [exact("$", "anyOf"), lossy("$.anyOf[1]", "description"), lossy("$.anyOf[1]", "title")],
    ),
    "null that the type beside it forbids": (
        {"type": "string", "anyOf": [{"minLength": 1}, NULL]},
        {"type": "string", "minLength": 1},
        [exact("$", "anyOf")],
    ),
    "anyOf with a null behind a reference": (
        {"anyOf": [INTEGER, {"$ref": "#/$defs/Nothing"}], "$defs": {"Nothing": {"const": None}}},
        {"type": "integer", "nullable": True},
        [
            exact("$.anyOf[1]", "$ref"),
            exact("$.$defs.Nothing", "const"),
            exact("$.$defs.Nothing", "type"),
            exact("$.$defs.Nothing", "enum"),
            exact("$", "anyOf"),
            exact("$", "$defs", "dropped"),
        ],
    ),
    "anyOf with false": (
        {"anyOf": [STRING, INTEGER, False]},
        {"anyOf": [STRING, INTEGER]},
        [exact("$", "anyOf")],
    ),
    "const": ({"const": "a"}, {"enum": ["a"], "type": "string"}, [exact("$", "const"), exact("$", "type")]),
    "const beside enum": (
        {"type": "string", "const": "a", "enum": ["a", "b"]},
        {"type": "string", "enum": ["a"]},
        [exact("$", "const")],
    ),
    "enum without a type": ({"enum": ["a", "b"]}, {"enum": ["a", "b"], "type": "string"}, [exact("$", "type")]),
    "enum with null": (
        {"type": ["string", "null"], "enum": ["a", None]},
        {"type": "string", "enum": ["a"], "nullable": True},
        [exact("$", "type"), exact("$", "enum")],
    ),
    "enum without the null its type allows": (
        {"type": ["string", "null"], "enum": ["a"]},
        {"type": "string", "enum": ["a"]},
        [exact("$", "type")],
    ),
    "enum of null alone": ({"enum": [None]}, NULL, [exact("$", "type"), exact("$", "enum")]),
    "numbers as values of a string": (
        {"type": "string", "enum": [1, "1", 2.5, True]},
        {"type": "string", "enum": ["1", "2.5", "true"]},
        [lossy("$", "enum", "rewritten")],
    ),
    "enum of both booleans": (
        {"type": "boolean", "enum": [True, False]},
        {"type": "boolean"},
        [exact("$", "enum", "dropped")],
    ),
    "enum of objects": ({"enum": [{"a": 1}]}, {"type": "object"}, [exact("$", "type"), lossy("$", "enum")]),
    "oneOf": (
        {"oneOf": [STRING, INTEGER]},
        {"anyOf": [STRING, INTEGER]},
        [lossy("$", "oneOf", "rewritten")],
    ),
    "oneOf beside anyOf": (
        {"oneOf": [STRING], "anyOf": [STRING, INTEGER]},
        {"anyOf": [STRING, INTEGER]},
        [lossy("$", "oneOf")],
    ),
    "allOf of one, with a description": (
        {"description": "d", "allOf": [STRING]},
        {"description": "d", "type": "string"},
        [exact("$", "allOf")],
    ),
    "allOf of objects": (
        {"allOf": [obj(a=STRING) | {"required": ["a"]}, obj(b=INTEGER, a={"maxLength": 3}) | {"required": ["b"]}]},
        obj(a={"type": "string", "maxLength": 3}, b=INTEGER) | {"required": ["a", "b"]},
        [
            exact("$", "allOf"),
            exact("$.allOf[0].properties.a", "allOf"),
        ],
    ),
    "allOf with limits": (
        {"type": "integer", "minimum": 1, "allOf": [{"type": "number", "minimum": 3}, {"maximum": 9}, {"maximum": 7}]},
        {"type": "integer", "minimum": 3, "maximum": 7},
        [exact("$", "allOf")],
    ),
    "allOf that contradicts itself": (
        {"allOf": [STRING, INTEGER]},
        STRING,
        [exact("$", "allOf"), lossy("$.allOf[1]", "type")],
    ),
    "exclusive limits of an integer": (
        {"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 10.0, "minimum": -5},
        {"type": "integer", "minimum": 1, "maximum": 9},
        [exact("$", "exclusiveMinimum"), exact("$", "exclusiveMaximum")],
    ),
    "exclusive limits of a number": (
        {"type": "number", "exclusiveMinimum": 0},
        {"type": "number"},
        [lossy("$", "exclusiveMinimum")],
    ),
    "exclusive limits in the style of draft 4": (
        {"type": "integer", "minimum": 0, "exclusiveMinimum": True},
        {"type": "integer", "minimum": 0},
        [lossy("$", "exclusiveMinimum")],
    ),
    "keywords the proto does not know": (
        {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$id": "x",
            "type": "number",
            "multipleOf": 2,
            "examples": [2],
            "x-order": 1,
            "deprecated": True,
            "readOnly": False,
        },
        {"type": "number"},
        [
            exact("$", "$schema", "dropped"),
            exact("$", "$id", "dropped"),
            lossy("$", "multipleOf"),
            lossy("$", "examples"),
            lossy("$", "x-order"),
            lossy("$", "deprecated"),
            exact("$", "readOnly", "dropped"),
        ],
    ),
    "limits are whole numbers": (
        {"type": "array", "items": STRING, "minItems": 2.0, "maxItems": 2.5},
        {"type": "array", "items": STRING, "minItems": 2},
        [exact("$", "minItems"), lossy("$", "maxItems")],
    ),
    "limits beyond the range": (
        {"type": "string", "minLength": -1, "maxLength": 2**63},
        STRING,
        [lossy("$", "minLength"), lossy("$", "maxLength")],
    ),
    "limits as text, as the proto itself writes them": ({"type": "string", "maxLength": "12"}, None, []),
    "formats": (
        obj(
            day={"type": "string", "format": "date"},
            at={"type": "string", "format": "date-time"},
            count={"type": "integer", "format": "uint8"},
            size={"type": "integer", "format": "int64"},
        ),
        obj(
            day=STRING,
            at={"type": "string", "format": "date-time"},
            count=INTEGER,
            size={"type": "integer", "format": "int64"},
        ),
        [lossy("$.properties.day", "format"), lossy("$.properties.count", "format")],
    ),
    "an array of anything": (
        {"type": "array"},
        {"type": "array", "items": {}},
        [exact("$", "items")],
    ),
    "a tuple": (
        {"type": "array", "prefixItems": [STRING, INTEGER, STRING], "items": False},
        {"type": "array", "items": {"anyOf": [STRING, INTEGER]}},
        [lossy("$", "prefixItems", "rewritten")],
    ),
    "a tuple in the style before 2020-12": (
        {"type": "array", "items": [STRING, STRING], "additionalItems": False},
        {"type": "array", "items": STRING},
        [lossy("$", "additionalItems", "rewritten"), lossy("$", "items", "rewritten")],
    ),
    "required without a declaration": (
        obj(a=STRING) | {"required": ["a", "b"]},
        obj(a=STRING) | {"required": ["a"]},
        [lossy("$", "required", "rewritten")],
    ),
    "required in the style of draft 3": (
        obj(a=STRING | {"required": True}),
        obj(a=STRING),
        [lossy("$.properties.a", "required")],
    ),
    "a type left out": (
        {"properties": {"a": STRING}},
        {"type": "object", "properties": {"a": STRING}},
        [lossy("$", "type", "rewritten")],
    ),
    "an unknown type": (obj(a={"type": "any"}), obj(a={}), [lossy("$.properties.a", "type")]),
    "boolean schemas": (
        obj(a=True, b=False),
        obj(a={}, b={}),
        [exact("$", "properties.a"), lossy("$", "properties.b", "rewritten")],
    ),
    "nothing but true": (True, {}, [exact("$", "")]),
    "values that are not text": (
        {"type": "string", "title": 3, "description": None, "pattern": ["a"]},
        {"type": "string", "description": None},
        [lossy("$", "title"), lossy("$", "pattern")],
    ),
    "what the proto takes": (
        {
            "type": "OBJECT",
            "title": "T",
            "description": "d",
            "nullable": True,
            "properties": {
                "empty": {"type": "OBJECT"},
                "words": {"type": "ARRAY", "items": {"type": "STRING", "enum": ["a"]}, "minItems": 1, "maxItems": 2},
                "either": {"anyOf": [{"type": "STRING"}, {"type": "NUMBER", "minimum": 0.5}]},
                "maybe": {"type": "STRING", "nullable": True, "enum": ["a"], "default": "a", "example": "a"},
            },
            "required": ["words"],
            "propertyOrdering": ["words", "either"],
            "minProperties": 1,
        },
        None,
        [],
    ),
    "no properties": ({"type": "object", "properties": {}, "required": []}, None, []),
}


@promise("report:66", "law:2-nothing-vanishes")
@each("dialect", TYPED, ids=lambda dialect: dialect.name)
@each("name", TYPED_CASES)
def test_typed_schemas(name: str, dialect: SchemaDialect) -> None:
    schema, expected, notes = TYPED_CASES[name]
    adapted, found = adapt(schema, dialect)
    if expected is None:
        assert adapted is schema
    assert adapted == (schema if expected is None else expected)
    assert found == notes


def test_where_the_two_typed_dialects_differ() -> None:
    schema = obj(n={"type": "integer", "enum": [1, 2]}, m={"type": "object", "additionalProperties": {"const": 1}})
    assert adapt(schema, GEMINI_TYPED) == (
        obj(n=INTEGER, m={"type": "object"}),
        [lossy("$.properties.n", "enum"), lossy("$.properties.m", "additionalProperties")],
    )
    assert adapt(schema, VERTEX_TYPED)[0] == obj(
        n={"type": "integer", "enum": ["1", "2"]},
        m={"type": "object", "additionalProperties": {"enum": ["1"], "type": "integer"}},
    )
    open_object = {"type": "object", "additionalProperties": True}
    assert adapt(open_object, GEMINI_TYPED)[1] == [exact("$", "additionalProperties", "dropped")]
    assert adapt(open_object, VERTEX_TYPED)[0] is open_object


def test_any_of_has_no_siblings_on_vertex() -> None:
    schema = {"description": "d", "nullable": True, "anyOf": [STRING | {"description": "s"}, INTEGER]}
    assert adapt(schema, GEMINI_TYPED)[0] is schema
    assert adapt(schema, VERTEX_TYPED) == (
        {"anyOf": [STRING | {"description": "d\ns"}, INTEGER | {"description": "d"}, NULL]},
        [exact("$", "nullable"), exact("$", "anyOf")],
    )
    assert adapt({"title": "t", "anyOf": [STRING]}, VERTEX_TYPED)[0] == STRING | {"title": "t"}
    nested = {"title": "t", "anyOf": [{"minimum": 1, "anyOf": [INTEGER, {"type": "number"}]}, STRING]}
    assert adapt(nested, VERTEX_TYPED)[0] == {
        "anyOf": [
            {"anyOf": [kind | {"title": "t", "minimum": 1} for kind in (INTEGER, {"type": "number"})]},
            STRING | {"title": "t"},
        ]
    }


def test_typed_references_stay_on_vertex_and_are_inlined_on_gemini() -> None:
    schema = obj(pet={"ref": "#/defs/Pet"}) | {"defs": {"Pet": obj(name=STRING)}}
    assert adapt(schema, VERTEX_TYPED)[0] is schema
    assert adapt(schema, GEMINI_TYPED)[0] == obj(pet=obj(name=STRING))
    assert adapt({"ref": "a book"}, GEMINI_TYPED) == ({}, [lossy("$", "ref")])


# References

POINTERS: dict[str, Schema] = {
    "#/$defs/X": {"$defs": {"X": STRING}},
    "#/definitions/X": {"definitions": {"X": STRING}},
    "#/properties/headers": {"properties": {"headers": STRING}},
    "#/properties/a~1b~0c": {"properties": {"a/b~c": STRING}},
    "#/properties/a%20%C3%A9": {"properties": {"a é": STRING}},
    "#/properties/50%2525": {"properties": {"50%25": STRING}},
    "#/properties/list/anyOf/1/items": {
        "properties": {"list": {"anyOf": [INTEGER, {"type": "array", "items": STRING}]}}
    },
    "#/properties/$ref": {"properties": {"$ref": STRING}},
    "#/$defs/": {"$defs": {"": STRING}},
    "https://example.com/s#/$defs/X": {"$id": "https://example.com/s", "$defs": {"X": STRING}},
}


@promise("report:64")
@pytest.mark.parametrize("pointer", POINTERS)
def test_every_form_of_local_pointer_is_inlined(pointer: str) -> None:
    schema = copy.deepcopy(POINTERS[pointer]) | {"type": "object"}
    schema["properties"] = {**schema.get("properties", {}), "used": {"$ref": pointer, "description": "d"}}
    adapted, notes = adapt(schema, GEMINI_TYPED)
    assert adapted["properties"]["used"] == STRING | {"description": "d"}
    assert exact("$.properties.used", "$ref") in notes


@promise("report:64", "law:10-bad-input-good-words")
@each(
    "reference",
    [
        "#/$defs/Missing",
        "#anchor",
        "https://example.com/other.json",
        "other.json#/$defs/X",
        "",
        "#/properties/a/0",
        "#/required/0",
        "#/required/99999999999999999999",
        "#/required/\u0661",
        "#/%FF",
        "#/title",
        7,
        None,
    ],
)
@each("dialect", [GEMINI_TYPED, ANTHROPIC_STRICT, OPENAI_STRICT], ids=lambda dialect: dialect.name)
def test_references_that_lead_nowhere(reference: Any, dialect: SchemaDialect) -> None:
    schema = obj(a={"$ref": reference}) | {"required": ["a"], "title": "t", "$defs": {"X": STRING}}
    with pytest.raises(SchemaError) as caught:
        adapt_schema(schema, dialect, "$.tools[0]")
    assert caught.value.path == "$.tools[0].properties.a.$ref"
    assert caught.value.got == repr(reference)
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, DragomanError)


RECURSIVE = {
    "itself": ({"$defs": {"N": obj(next={"$ref": "#/$defs/N"})}, "$ref": "#/$defs/N"}, "#/$defs/N -> #/$defs/N"),
    "the root": (obj(child={"$ref": "#"}), "# -> #"),
    "a holder": (obj(a=obj(b={"$ref": "#/properties/a"})), "#/properties/a -> #/properties/a"),
    "optional": (
        obj(n={"$ref": "#/$defs/N"}) | {"$defs": {"N": obj(next={"anyOf": [{"$ref": "#/$defs/N"}, NULL]})}},
        "#/$defs/N -> #/$defs/N",
    ),
    "by two": (
        obj(a={"$ref": "#/$defs/A"})
        | {"$defs": {"A": obj(b={"$ref": "#/$defs/B"}), "B": obj(a={"$ref": "#/$defs/A"})}},
        "#/$defs/A -> #/$defs/B -> #/$defs/A",
    ),
    "names of nothing": (
        obj(a={"$ref": "#/$defs/A"}) | {"$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}}},
        "#/$defs/A -> #/$defs/B -> #/$defs/A",
    ),
    "within allOf": (
        obj(a={"$ref": "#/$defs/A"}) | {"$defs": {"A": {"allOf": [obj(x=STRING), obj(a={"$ref": "#/$defs/A"})]}}},
        "#/$defs/A -> #/$defs/A",
    ),
}


@promise("report:64")
@pytest.mark.parametrize("name", RECURSIVE)
def test_recursion_is_refused_where_it_cannot_be_expressed(name: str) -> None:
    schema, cycle = RECURSIVE[name]
    for dialect in (GEMINI_TYPED, VERTEX_TYPED, ANTHROPIC_STRICT):
        with pytest.raises(SchemaError, match="no recursion") as caught:
            adapt_schema(schema, dialect)
        if dialect in TYPED:
            assert caught.value.got == cycle
        (violation,) = violations(schema, dialect)
        assert (violation.keyword, violation.action) == ("$ref", "kept")


@promise("report:64", "report:65")
@pytest.mark.parametrize("name", ["itself", "the root", "a holder", "optional", "by two", "within allOf"])
def test_recursion_stays_where_it_can_be_expressed(name: str) -> None:
    schema, _cycle = RECURSIVE[name]
    assert adapt_schema(schema, JSON_SCHEMA).schema is schema
    adapted = adapt_schema(schema, ANTHROPIC_INPUT).schema
    assert '"$ref"' in json.dumps(adapted)
    assert '"$ref"' in json.dumps(adapt_schema(schema, OPENAI_STRICT).schema)


def test_siblings_of_a_reference_and_its_target_are_both_kept() -> None:
    target = {
        "type": "object",
        "description": "A place.",
        "title": "Place",
        "properties": {"x": INTEGER},
        "required": ["x"],
    }
    use = {
        "$ref": "#/$defs/P",
        "description": "Where to go.",
        "title": "Goal",
        "properties": {"y": STRING},
        "default": {},
    }
    schema = obj(goal=use) | {"$defs": {"P": target}}
    adapted, notes = adapt(schema, GEMINI_TYPED)
    assert adapted["properties"]["goal"] == {
        "description": "Where to go.\nA place.",
        "title": "Goal",
        "properties": {"y": STRING, "x": INTEGER},
        "default": {},
        "type": "object",
        "required": ["x"],
    }
    assert lossy("$.$defs.P", "title") in notes


def test_a_note_names_the_place_in_the_source() -> None:
    bad = {"type": "number", "multipleOf": 2}
    schema = obj(a={"$ref": "#/$defs/odd name", "uniqueItems": True}, b={"$ref": "#/$defs/odd name"})
    schema["$defs"] = {"odd name": bad}
    notes = adapt_schema(schema, GEMINI_TYPED, "$.tools[3].function.parameters").notes
    assert [(note.path, note.keyword) for note in notes if note.action == "dropped"] == [
        ("$.tools[3].function.parameters.properties.a", "uniqueItems"),
        ("$.tools[3].function.parameters.$defs['odd name']", "multipleOf"),
        ("$.tools[3].function.parameters", "$defs"),
    ]


@promise("law:10-bad-input-good-words")
def test_references_that_multiply_are_refused() -> None:
    laughs: dict[str, Schema] = {"L0": {"type": "string", "description": "ha" * 10}}
    for level in range(1, 40):
        laughs[f"L{level}"] = obj(a={"$ref": f"#/$defs/L{level - 1}"}, b={"$ref": f"#/$defs/L{level - 1}"})
    with pytest.raises(SchemaError, match="bytes of inlined schemas"):
        adapt_schema(obj(a={"$ref": "#/$defs/L39"}) | {"$defs": laughs}, GEMINI_TYPED)
    values = {"type": "string", "enum": [f"value {index}" for index in range(5000)]}
    many = {f"p{index}": {"$ref": "#/$defs/E"} for index in range(50)}
    with pytest.raises(SchemaError, match="bytes of inlined schemas"):
        adapt_schema(obj(**many) | {"$defs": {"E": values}}, GEMINI_TYPED)
    wide = {"description": "x" * 20_000, "anyOf": [{"type": "string", "maxLength": size} for size in range(50)]}
    with pytest.raises(SchemaError, match="bytes of inlined schemas"):
        adapt_schema(wide, VERTEX_TYPED)
    adapt_schema(obj(**many) | {"$defs": {"E": values}}, ANTHROPIC_FORMAT)


def _tower(wrap: Callable[[Schema], Schema], levels: int) -> Schema:
    schema: Schema = {"type": "string"}
    for _ in range(levels):
        schema = wrap(schema)
    return schema


TOWERS: dict[str, Callable[[Schema], Schema]] = {
    "properties": lambda inner: obj(a=inner),
    "items": lambda inner: {"type": "array", "items": inner},
    "anyOf": lambda inner: {"anyOf": [inner, {"type": "integer"}]},
    "anyOf null": lambda inner: {"anyOf": [inner, {"type": "null"}]},
    "allOf": lambda inner: {"allOf": [inner, {"description": "d"}]},
    "oneOf": lambda inner: {"oneOf": [inner]},
    "default": lambda inner: {"default": inner},
}


@promise("law:10-bad-input-good-words")
@pytest.mark.parametrize("name", TOWERS)
def test_deep_nesting_is_a_typed_error(name: str) -> None:
    for levels in (70, 150, 5000):
        tower = _tower(TOWERS[name], levels)
        if levels > 200:
            with pytest.raises(SchemaError, match="deeper nesting"):
                adapt_schema(tower, GEMINI_TYPED)
        for dialect in ALL:
            for schema in (tower, obj(a=tower)):
                with contextlib.suppress(SchemaError):
                    adapt_schema(schema, dialect)


def test_a_chain_of_references_counts_as_nesting() -> None:
    chain = {f"D{level}": obj(a={"$ref": f"#/$defs/D{level + 1}"}) for level in range(300)} | {"D300": STRING}
    schema = obj(a={"$ref": "#/$defs/D0"}) | {"$defs": chain}
    for dialect in (GEMINI_TYPED, ANTHROPIC_STRICT):
        with pytest.raises(SchemaError, match="nested schemas"):
            adapt_schema(schema, dialect)


def test_the_deepest_schema_we_read_fits_on_a_stack_already_in_use() -> None:
    schema = _tower(TOWERS["properties"], 30)
    frames = sys.getrecursionlimit() // 3

    def deeper(left: int) -> Schema:
        return deeper(left - 1) if left else adapt_schema(schema, GEMINI_TYPED).schema

    assert deeper(frames) is schema


# Names that look like keywords


@promise("report:64", "report:65")
def test_property_names_are_not_keywords() -> None:
    names = [
        "type",
        "$ref",
        "ref",
        "properties",
        "anyOf",
        "allOf",
        "const",
        "enum",
        "items",
        "$defs",
        "required",
        "not",
    ]
    schema = obj(**dict.fromkeys(names, STRING)) | {"required": ["$ref", "type"]}
    for dialect in (*TYPED, JSON_SCHEMA, ANTHROPIC_INPUT):
        assert adapt_schema(schema, dialect).schema is schema
    closed = schema | {"additionalProperties": False, "required": names}
    for dialect in (ANTHROPIC_STRICT, ANTHROPIC_FORMAT, OPENAI_STRICT):
        assert adapt_schema(closed, dialect).schema is closed


def test_values_are_not_schemas() -> None:
    value = {"$ref": "#/nowhere", "const": 1, "type": ["a"]}
    schema = strict(a={"type": "object", "properties": {}, "additionalProperties": False, "default": value})
    assert adapt_schema(schema, ANTHROPIC_FORMAT).schema is schema
    typed = obj(a={"type": "object", "default": value, "example": value})
    assert adapt_schema(typed, GEMINI_TYPED).schema is typed


@each("bad", [3, "x", [], None])
@each(
    ("keyword", "holder"),
    [
        ("properties", lambda bad: {"type": "object", "properties": bad if bad is not None else 3}),
        ("properties.a", lambda bad: obj(a=bad)),
        ("anyOf[0]", lambda bad: {"anyOf": [bad, STRING]}),
        ("additionalProperties", lambda bad: {"type": "object", "additionalProperties": bad}),
        ("allOf", lambda bad: {"allOf": bad if bad != [] else 3}),
    ],
)
def test_values_that_are_not_schemas_are_named(keyword: str, holder: Callable[[Any], Schema], bad: Any) -> None:
    if keyword == "additionalProperties" and bad == []:
        return
    with pytest.raises(SchemaError) as caught:
        adapt_schema(obj(p=holder(bad)), VERTEX_TYPED, "$")
    assert caught.value.path.startswith("$.properties.p")
    assert "schema" in caught.value.expected


@pytest.mark.parametrize("bad", [3, "x", [], None, Decimal(1)])
def test_a_root_that_is_not_a_schema(bad: Any) -> None:
    for dialect in ALL[1:]:
        with pytest.raises(SchemaError) as caught:
            adapt_schema(bad, dialect, "$.here")
        assert caught.value.path == "$.here"
    assert adapt_schema(bad, JSON_SCHEMA).schema is bad


# The root of a tool's input


def test_a_root_of_anthropic_that_is_legal_is_not_examined() -> None:
    schema = obj(a={"anyOf": [{"$ref": "https://elsewhere"}], "oneOf": [True], "minimum": "?"}) | {"x-any": {}}
    assert adapt_schema(schema, ANTHROPIC_INPUT).schema is schema
    deep = obj(a=_tower(TOWERS["items"], 900))
    assert adapt_schema(deep, ANTHROPIC_INPUT).schema is deep


ROOTS: dict[str, tuple[Schema, Schema, list[tuple[str, str, str, bool]]]] = {
    "nothing said": ({}, {"type": "object"}, [exact("$", "type")]),
    "true": (True, {"type": "object"}, [exact("$", "type")]),
    "no type": ({"properties": {"a": STRING}}, obj(a=STRING), [exact("$", "type")]),
    "or null": ({"type": ["object", "null"]}, {"type": "object"}, [lossy("$", "type", "rewritten")]),
    "a reference": (
        {"$ref": "#/$defs/A", "$defs": {"A": obj(a={"$ref": "#/$defs/A"})}},
        {"$defs": {"A": obj(a={"$ref": "#/$defs/A"})}} | obj(a={"$ref": "#/$defs/A"}),
        [exact("$", "$ref")],
    ),
    "allOf": (
        {"allOf": [obj(a=STRING), {"$ref": "#/$defs/B"}], "$defs": {"B": obj(b=INTEGER) | {"required": ["b"]}}},
        {"$defs": {"B": obj(b=INTEGER) | {"required": ["b"]}}} | obj(a=STRING, b=INTEGER) | {"required": ["b"]},
        [exact("$.allOf[1]", "$ref"), exact("$", "allOf")],
    ),
    "anyOf of required names": (
        obj(a=STRING, b=STRING) | {"anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
        obj(a=STRING, b=STRING),
        [lossy("$", "anyOf", "rewritten")],
    ),
    "oneOf": (
        {
            "description": "d",
            "oneOf": [
                obj(kind={"const": "a"}, x=STRING) | {"required": ["kind", "x"], "additionalProperties": False},
                obj(kind={"const": "b"}, x=STRING) | {"required": ["x", "kind"], "additionalProperties": False},
                NULL,
            ],
        },
        {"description": "d"}
        | obj(kind={"anyOf": [{"const": "a"}, {"const": "b"}]}, x=STRING)
        | {"required": ["kind", "x"], "additionalProperties": False},
        [lossy("$", "oneOf", "rewritten")],
    ),
    "anyOf that refines what stands beside it": (
        obj(kind=STRING)
        | {"required": ["kind"], "anyOf": [obj(kind={"const": "a"}), obj(kind={"const": "b"}, y=INTEGER)]},
        obj(kind={"allOf": [STRING, {"anyOf": [{"const": "a"}, {"const": "b"}]}]}, y=INTEGER) | {"required": ["kind"]},
        [lossy("$", "anyOf", "rewritten")],
    ),
    "anyOf of one": ({"anyOf": [obj(a=STRING)]}, obj(a=STRING), [exact("$", "anyOf")]),
    "anyOf with null": (
        {"anyOf": [{"$ref": "#/$defs/A"}, NULL], "$defs": {"A": obj(a=STRING)}},
        {"$defs": {"A": obj(a=STRING)}} | obj(a=STRING),
        [exact("$.anyOf[0]", "$ref"), lossy("$", "anyOf", "rewritten")],
    ),
    "alternatives within alternatives": (
        {"anyOf": [{"oneOf": [obj(a=STRING), obj(b=STRING)]}, obj(c=STRING) | {"minProperties": 1}]},
        obj(a=STRING, b=STRING, c=STRING),
        [
            lossy("$.anyOf[0]", "oneOf", "rewritten"),
            lossy("$", "anyOf", "rewritten"),
            lossy("$.anyOf[1]", "minProperties"),
        ],
    ),
    "references into what was united": (
        {"anyOf": [obj(a=STRING), obj(b={"type": "array", "items": {"$ref": "#/anyOf/0/properties/a"}})]},
        obj(a=STRING, b={"type": "array", "items": STRING}),
        [lossy("$", "anyOf", "rewritten"), exact("$.anyOf[1].properties.b.items", "$ref")],
    ),
}


@pytest.mark.parametrize("name", ROOTS)
def test_roots_of_anthropic_input(name: str) -> None:
    schema, expected, notes = ROOTS[name]
    adapted, found = adapt(schema, ANTHROPIC_INPUT)
    assert json.dumps(adapted, sort_keys=True) == json.dumps(expected, sort_keys=True)
    assert found == notes
    assert adapt_schema(adapted, ANTHROPIC_INPUT).schema is adapted


@pytest.mark.parametrize(
    "schema",
    [False, STRING, {"type": ["string", "null"]}, {"type": 3}, {"anyOf": [STRING, NULL]}, {"anyOf": []}, {"anyOf": {}}],
)
def test_roots_that_cannot_be_objects(schema: Schema) -> None:
    for dialect in (ANTHROPIC_INPUT, ANTHROPIC_STRICT, OPENAI_STRICT):
        with pytest.raises(SchemaError):
            adapt_schema(schema, dialect)
        (violation,) = violations(schema, dialect)
        assert violation.action == "kept"


@pytest.mark.parametrize("schema", [{"anyOf": [{"$ref": "#"}]}, {"oneOf": [{"allOf": [{"$ref": "#/oneOf/0"}]}]}])
def test_a_root_that_is_made_of_itself(schema: Schema) -> None:
    with pytest.raises(SchemaError, match="no recursion"):
        adapt_schema(schema, ANTHROPIC_INPUT)


# Strict


STRICT_LEGAL = strict(
    name={"type": ["string", "null"], "description": "d", "title": "t", "pattern": "^a+$", "format": "email"},
    kind={"const": "a"},
    level={"enum": [1, "a", None]},
    either={"anyOf": [STRING, strict(x=INTEGER)]},
    many={"type": "array", "items": {"$ref": "#/$defs/Item"}, "minItems": 1},
) | {"$defs": {"Item": strict(y={"type": "number"})}, "$schema": "https://json-schema.org/draft/2020-12/schema"}


@promise("report:65", "report:80")
@pytest.mark.parametrize(
    "dialect", [OPENAI_STRICT, ANTHROPIC_STRICT, ANTHROPIC_FORMAT], ids=lambda dialect: dialect.name
)
def test_a_strict_schema_is_left_alone(dialect: SchemaDialect) -> None:
    assert violations(STRICT_LEGAL, dialect) == ()
    assert adapt_schema(STRICT_LEGAL, dialect).schema is STRICT_LEGAL


STRICT_CASES: dict[str, tuple[SchemaDialect, Schema, Schema, list[tuple[str, str, str, bool]]]] = {
    "an open object is closed": (
        OPENAI_STRICT,
        obj(a=STRING) | {"required": ["a"]},
        strict(a=STRING),
        [lossy("$", "additionalProperties", "rewritten")],
    ),
    "a map is closed, which is reported": (
        ANTHROPIC_STRICT,
        strict(m={"type": "object", "additionalProperties": STRING}),
        strict(m={"type": "object", "additionalProperties": False}),
        [lossy("$.properties.m", "additionalProperties", "rewritten")],
    ),
    "an optional property stays optional": (
        OPENAI_STRICT,
        strict(a=STRING, b=STRING) | {"required": ["a"]},
        None,
        [lossy("$", "required", "kept")],
    ),
    "an optional property is nothing to Anthropic": (
        ANTHROPIC_STRICT,
        strict(a=STRING, b=STRING) | {"required": ["a"]},
        None,
        [],
    ),
    "limits on Anthropic": (
        ANTHROPIC_FORMAT,
        strict(
            n={"type": "integer", "minimum": 1, "exclusiveMaximum": 5, "multipleOf": 2},
            s={"type": "string", "minLength": 1, "pattern": "^(?=a)", "format": "idn-email"},
            l={"type": "array", "items": STRING, "minItems": 2, "maxItems": 3, "uniqueItems": True},
        ),
        strict(n=INTEGER, s=STRING, l={"type": "array", "items": STRING}),
        [
            lossy("$.properties.n", "minimum"),
            lossy("$.properties.n", "exclusiveMaximum"),
            lossy("$.properties.n", "multipleOf"),
            lossy("$.properties.s", "minLength"),
            lossy("$.properties.s", "pattern"),
            lossy("$.properties.s", "format"),
            lossy("$.properties.l", "minItems"),
            lossy("$.properties.l", "maxItems"),
            lossy("$.properties.l", "uniqueItems"),
        ],
    ),
    "limits on OpenAI": (
        OPENAI_STRICT,
        strict(
            n={"type": "integer", "minimum": 1, "exclusiveMaximum": 5, "multipleOf": 2, "format": "uint8"},
            s={"type": "string", "minLength": 1, "default": "x", "x-mine": 1},
            l={"type": "array", "items": STRING, "minItems": 2, "maxItems": 3},
        ),
        None,
        [],
    ),
    "allOf of plain values stays on Anthropic": (
        ANTHROPIC_STRICT,
        strict(a={"allOf": [STRING, {"enum": ["a", "b"]}]}),
        None,
        [],
    ),
    "allOf is merged for OpenAI": (
        OPENAI_STRICT,
        strict(a={"allOf": [STRING, {"enum": ["a", "b"]}]}),
        strict(a={"type": "string", "enum": ["a", "b"]}),
        [exact("$.properties.a", "allOf")],
    ),
    "allOf with a reference": (
        ANTHROPIC_STRICT,
        strict(a={"description": "d", "allOf": [{"$ref": "#/$defs/A"}]}) | {"$defs": {"A": STRING}},
        strict(a={"description": "d", "$ref": "#/$defs/A"}) | {"$defs": {"A": STRING}},
        [exact("$.properties.a", "allOf")],
    ),
    "allOf of objects that have to be closed": (
        ANTHROPIC_STRICT,
        strict(a={"allOf": [obj(x=STRING), {"$ref": "#/$defs/A"}]}) | {"$defs": {"A": strict(y=STRING)}},
        strict(a=strict(x=STRING, y=STRING) | {"required": ["y"]}) | {"$defs": {"A": strict(y=STRING)}},
        [
            exact("$.properties.a.allOf[1]", "$ref"),
            exact("$.properties.a", "allOf"),
            lossy("$.$defs.A", "additionalProperties", "rewritten"),
        ],
    ),
    "a reference with siblings": (
        OPENAI_STRICT,
        strict(a={"$ref": "#/$defs/A", "description": "d"}) | {"$defs": {"A": STRING}},
        strict(a={"description": "d", "type": "string"}) | {"$defs": {"A": STRING}},
        [exact("$.properties.a", "$ref")],
    ),
    "a recursive reference with siblings": (
        OPENAI_STRICT,
        strict(a={"$ref": "#", "description": "d"}),
        strict(a={"$ref": "#"}),
        [lossy("$.properties.a", "description")],
    ),
    "a reference through what is rewritten": (
        OPENAI_STRICT,
        strict(a={"oneOf": [STRING, INTEGER]}, b={"$ref": "#/properties/a/oneOf/1"}),
        strict(a={"anyOf": [STRING, INTEGER]}, b=INTEGER),
        [lossy("$.properties.a", "oneOf", "rewritten"), exact("$.properties.b", "$ref")],
    ),
    "types in upper case": (
        ANTHROPIC_STRICT,
        strict(a={"type": "STRING"}, b={"type": ["INTEGER", "null"]}),
        strict(a=STRING, b={"type": ["integer", "null"]}),
        [exact("$.properties.a", "type"), exact("$.properties.b", "type")],
    ),
    "no type": (ANTHROPIC_STRICT, strict(a={"description": "any"}), None, [lossy("$.properties.a", "type", "kept")]),
    "true": (ANTHROPIC_STRICT, strict(a=True), None, [lossy("$", "properties.a", "kept")]),
    "an array of anything": (
        OPENAI_STRICT,
        strict(a={"type": "array"}),
        None,
        [lossy("$.properties.a", "items", "kept")],
    ),
    "an old tuple": (
        OPENAI_STRICT,
        strict(a={"type": "array", "items": [STRING, INTEGER], "additionalItems": STRING}),
        strict(a={"type": "array", "prefixItems": [STRING, INTEGER], "items": STRING}),
        [exact("$.properties.a", "additionalItems"), exact("$.properties.a", "items")],
    ),
    "values that are not scalars": (
        ANTHROPIC_STRICT,
        strict(a={"type": "array", "enum": [[1]]}, b={"type": "object", "additionalProperties": False, "const": {}}),
        strict(a={"type": "array"}, b={"type": "object", "additionalProperties": False}),
        [lossy("$.properties.a", "enum"), lossy("$.properties.b", "const")],
    ),
    "an answer that is not an object": (ANTHROPIC_FORMAT, {"anyOf": [STRING, NULL]}, None, []),
    "null for no properties": (
        ANTHROPIC_STRICT,
        {"type": "object", "properties": None, "additionalProperties": False},
        {"type": "object", "additionalProperties": False},
        [lossy("$", "properties")],
    ),
}


@promise("report:65", "law:2-nothing-vanishes")
@each("name", STRICT_CASES)
def test_strict_schemas(name: str) -> None:
    dialect, schema, expected, notes = STRICT_CASES[name]
    adapted, found = adapt(schema, dialect)
    if expected is None:
        assert adapted is schema
    else:
        assert json.dumps(adapted, sort_keys=True) == json.dumps(expected, sort_keys=True)
    assert found == notes
    assert [(note.path, note.keyword, note.action, note.exact) for note in violations(schema, dialect)] == notes


@pytest.mark.parametrize(
    ("pattern", "plain"),
    [
        (r"^[a-z]+$", True),
        (r"^(?:a|b)$", True),
        (r"\\1", True),
        (r"(?P<name>a)", True),
        (r"(a)\1", False),
        (r"(a)\\\1", False),
        (r"(?!a)", False),
        (r"(?<=a)b", False),
        (r"(?<name>a)\k<name>", False),
    ],
)
def test_patterns(pattern: str, *, plain: bool) -> None:
    for dialect in (OPENAI_STRICT, ANTHROPIC_STRICT):
        assert (violations(strict(a={"type": "string", "pattern": pattern}), dialect) == ()) is plain


def test_the_limits_of_openai() -> None:
    wide = strict(**{f"p{index}": STRING for index in range(5001)})
    listed = strict(a={"enum": [str(index) for index in range(1001)]})
    deep = _tower(lambda inner: strict(a=inner), 11)
    for schema, what in ((wide, "5001 properties"), (listed, "1001 values in enums"), (deep, "11 levels of objects")):
        (note,) = violations(schema, OPENAI_STRICT, "$.p")
        assert (note.path, note.action) == ("$.p", "kept")
        assert note.reason.startswith(what)
        assert adapt_schema(schema, OPENAI_STRICT).schema is schema


# For all dialects


@promise("report:65")
def test_a_target_that_takes_everything_gets_everything() -> None:
    schema = {
        "oneOf": [{"const": 1}, {"$ref": "#/$defs/A"}],
        "$defs": {"A": {"$ref": "#/$defs/A"}},
        "exclusiveMinimum": 3,
        "unheard-of": True,
    }
    assert adapt_schema(schema, JSON_SCHEMA).schema is schema
    assert violations(schema, JSON_SCHEMA) == ()


@promise("report:80", "law:4-determinism")
@pytest.mark.parametrize("dialect", ALL, ids=lambda dialect: dialect.name)
def test_keys_keep_their_order(dialect: SchemaDialect) -> None:
    names = ["zeta", "alpha", "type", "m", "b"]
    schema = {"required": names, "x-a": 1, "properties": dict.fromkeys(names, STRING), "type": "object"}
    adapted = adapt_schema(schema, dialect).schema
    assert list(adapted["properties"]) == names
    assert [keyword for keyword in adapted if keyword in schema] == [
        keyword for keyword in schema if keyword in adapted
    ]


def test_objects_that_appear_twice_are_not_recursion() -> None:
    shared = {"type": "string", "format": "date"}
    adapted, notes = adapt(obj(a=shared, b=shared, c=obj(a=shared)), GEMINI_TYPED)
    assert adapted == obj(a=STRING, b=STRING, c=obj(a=STRING))
    assert notes == [lossy("$.properties.a", "format")]


def test_an_object_that_holds_itself_is_an_error() -> None:
    endless: dict[str, Any] = {"type": "array"}
    endless["items"] = endless
    with pytest.raises(SchemaError, match="nesting"):
        adapt_schema(endless, GEMINI_TYPED)


def test_numbers_that_no_double_holds() -> None:
    schema = {"type": "integer", "exclusiveMinimum": Decimal("1e400"), "maximum": Decimal("1.5")}
    assert adapt_schema(schema, GEMINI_TYPED).schema == {"type": "integer", "maximum": Decimal("1.5")}
    assert adapt_schema({"type": "string", "maxLength": Decimal("1e400")}, GEMINI_TYPED).schema == STRING
    assert adapt_schema({"type": "string", "enum": [Decimal("0.1")]}, GEMINI_TYPED).schema["enum"] == ["0.1"]


@pytest.mark.parametrize(
    ("text", "needed"),
    [
        (b'{"type":"object"}', False),
        (b' {"properties":{"anyOf":{"type":"string"}},"type":"object","$defs":{}} ', False),
        (b'{"type":"object","anyOf":[]}', True),
        (b'{"type":"object","oneOf":null}', True),
        (b'{"type":"object","allOf":[{}]}', True),
        (b'{"type":["object"]}', True),
        (b'{"properties":{}}', True),
        (b"true", True),
        (b"not json", True),
        (b'{"type":"\xff"}', True),
        (b'{"type":"object","a":' + b"[" * 100_000, True),
    ],
)
def test_whether_adapting_is_needed_follows_from_the_bytes(text: bytes, *, needed: bool) -> None:
    assert needs_adaptation(text, ANTHROPIC_INPUT) is needed
    assert needs_adaptation(text, JSON_SCHEMA) is False
    for dialect in (ANTHROPIC_STRICT, ANTHROPIC_FORMAT, OPENAI_STRICT, GEMINI_TYPED, VERTEX_TYPED):
        assert needs_adaptation(text, dialect) is True


# What the real services accepted is legal here too


def _openai_strict(request: Any) -> Iterator[Schema]:
    functions = [tool.get("function", tool) for tool in request.get("tools") or []]
    formats = [(request.get("response_format") or {}).get("json_schema"), (request.get("text") or {}).get("format")]
    for schema in (*functions, *formats):
        if schema and schema.get("strict"):
            yield schema.get("parameters") or schema.get("schema")


def _anthropic_strict(request: Any) -> Iterator[Schema]:
    for tool in request.get("tools") or []:
        if tool.get("strict"):
            yield tool["input_schema"]


def _anthropic_input(request: Any) -> Iterator[Schema]:
    for tool in request.get("tools") or []:
        yield tool.get("input_schema")


def _anthropic_format(request: Any) -> Iterator[Schema]:
    format = (request.get("output_config") or {}).get("format") or request.get("output_format")
    yield (format or {}).get("schema")


def _gemini_typed(request: Any) -> Iterator[Schema]:
    for tool in request.get("tools") or []:
        for declaration in tool.get("functionDeclarations") or [] if isinstance(tool, dict) else []:
            yield declaration.get("parameters")
    yield (request.get("generationConfig") or {}).get("responseSchema")


# Keyword of the note -> why the service took what we would not send, or would send otherwise.
ACCEPTED_ALL_THE_SAME = {
    "OpenAI strict": {"additionalProperties": "some models do not check it; others answer 400"},
    "Gemini Schema": {
        "format": "newer models take any format of a string, older ones answer 400",
        "anyOf": "null as a schema of its own is taken too",
        "type": "enum numbers of the proto, a spelling for the decoder to read",
        "property_ordering": "snake_case, a spelling for the decoder to read",
        "any_of": "snake_case, a spelling for the decoder to read",
    },
    "Vertex Schema": {"type": "enum numbers of the proto, a spelling for the decoder to read"},
}


@promise("report:65", "law:3-legality")
@pytest.mark.parametrize(
    ("dialect", "file", "schemas_of", "at_least"),
    [
        (OPENAI_STRICT, "openai-chat", _openai_strict, 100),
        (OPENAI_STRICT, "openai-responses", _openai_strict, 100),
        (ANTHROPIC_INPUT, "anthropic-messages", _anthropic_input, 1000),
        (ANTHROPIC_STRICT, "anthropic-messages", _anthropic_strict, 100),
        (ANTHROPIC_FORMAT, "anthropic-messages", _anthropic_format, 50),
        (GEMINI_TYPED, "gemini-generate", _gemini_typed, 500),
        (VERTEX_TYPED, "vertex-generate", _gemini_typed, 50),
    ],
    ids=lambda value: value.name if isinstance(value, SchemaDialect) else None,
)
def test_recorded_schemas(
    dialect: SchemaDialect,
    file: str,
    schemas_of: Callable[[Any], Iterator[Schema]],
    at_least: int,
    recordings: Callable[[str], Iterator[Record]],
) -> None:
    known = ACCEPTED_ALL_THE_SAME.get(dialect.name, {})
    seen = 0
    for record in recordings(file):
        if record.status != 200 or record.request is None:
            continue
        for schema in schemas_of(record.request):
            if not isinstance(schema, dict):
                continue
            seen += 1
            unexpected = [note for note in violations(schema, dialect) if note.keyword not in known]
            assert not unexpected, record.source
            if dialect is ANTHROPIC_INPUT:
                assert not needs_adaptation(json.dumps(schema).encode(), dialect)
    assert seen >= at_least
