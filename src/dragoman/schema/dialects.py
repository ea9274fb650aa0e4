"""What each target accepts in its schema fields, as data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

ROOT_COMBINATORS = ("allOf", "anyOf", "oneOf")


class SchemaDialect(Struct, frozen=True, kw_only=True):
    """Rules of one schema field. All defaults are permissive."""

    name: str
    keywords: frozenset[str] | None = None
    """The allowed keywords; None: all but the `refused` ones."""
    refused: frozenset[str] = frozenset()
    root_object: bool = False
    """The root says `type: "object"` itself: no reference in its place, and no allOf, anyOf or oneOf beside it."""
    inlined_references: tuple[str, ...] = ()
    """Reference keywords that the target cannot follow."""
    reference_siblings: bool = True
    recursion: bool = True
    boolean_schemas: bool = True
    typed_nodes: bool = False
    """Every schema needs a type, enum, const, reference or combination."""
    other_types: bool = False
    """`type` may be a name that JSON Schema does not have: it stays."""
    single_type: bool = False
    """`type` is required and a single name, in either case; null is `nullable`."""
    any_of_alone: bool = False
    enum_beside: frozenset[str] | None = None
    """Types beside which `enum` may stand; None: all."""
    enum_as_text: bool = False
    scalar_enum: bool = False
    formats: Mapping[str, frozenset[str]] = {}
    """Type -> formats; a type that is not listed takes any."""
    int64_limits: bool = False
    max_min_items: int | None = None
    plain_patterns: bool = False
    """No look-around and no backreferences in `pattern`."""
    array_items: Literal["optional", "demanded", "added"] = "optional"
    declared_required: bool = False
    """`required` names only properties that are declared."""
    all_required: bool = False
    closed_objects: bool = False
    max_properties: int | None = None
    max_enum_values: int | None = None
    max_object_depth: int | None = None

    def accepts(self, keyword: str) -> bool:
        return keyword not in self.refused and (self.keywords is None or keyword in self.keywords)


JSON_SCHEMA = SchemaDialect(name="JSON Schema")
"""OpenAI without strict; Gemini's `parametersJsonSchema` and `responseJsonSchema`."""

# 400 «input_schema does not support oneOf, allOf, or anyOf at the top level»; «input_schema.type: Field required».
ANTHROPIC_INPUT = SchemaDialect(name="Anthropic input_schema", root_object=True)

_STRING_FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})
_BASIC = frozenset(
    {"type", "title", "description", "properties", "required", "additionalProperties", "items", "enum", "anyOf"}
)

ANTHROPIC_STRICT = SchemaDialect(
    name="Anthropic strict tool",
    keywords=_BASIC
    | {"const", "allOf", "$ref", "$defs", "definitions", "$schema", "default", "format", "minItems", "pattern"},
    root_object=True,
    recursion=False,
    boolean_schemas=False,
    typed_nodes=True,
    scalar_enum=True,
    formats={"string": _STRING_FORMATS | {"uri"}, "integer": frozenset(), "number": frozenset()},
    max_min_items=1,
    plain_patterns=True,
    closed_objects=True,
)
ANTHROPIC_FORMAT = replace(ANTHROPIC_STRICT, name="Anthropic output_config.format", root_object=False)
"""The same subset for an answer, which need not be an object."""

# «array schema missing items»: the only thing that a function which is not strict is refused for, below its root.
OPENAI_FUNCTION = SchemaDialect(name="OpenAI function", other_types=True, array_items="added")

# A list of what is refused rather than of what is accepted: strict schemas with $schema, default, minLength, numeric
# formats and x-* keywords are on record with status 200.
OPENAI_STRICT = SchemaDialect(
    name="OpenAI strict",
    refused=frozenset(
        {"allOf", "oneOf", "not", "if", "then", "else", "dependentRequired", "dependentSchemas", "dependencies"}
        | {"patternProperties", "propertyNames", "unevaluatedProperties", "minProperties", "maxProperties"}
        | {"unevaluatedItems", "additionalItems", "contains", "minContains", "maxContains", "uniqueItems"}
    ),
    root_object=True,
    reference_siblings=False,
    boolean_schemas=False,
    typed_nodes=True,
    formats={"string": _STRING_FORMATS},
    plain_patterns=True,
    array_items="demanded",
    declared_required=True,
    all_required=True,
    closed_objects=True,
    max_properties=5_000,
    max_enum_values=1_000,
    max_object_depth=10,
)

# A closed proto: one unknown keyword is a 400 for the whole request.
GEMINI_TYPED = SchemaDialect(
    name="Gemini Schema",
    keywords=(_BASIC - {"additionalProperties"})
    | {"format", "nullable", "default", "example", "pattern", "propertyOrdering", "minimum", "maximum"}
    | {"minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"},
    inlined_references=("$ref", "ref"),
    recursion=False,
    boolean_schemas=False,
    single_type=True,
    enum_beside=frozenset({"string"}),
    enum_as_text=True,
    formats={
        "string": frozenset({"enum", "date-time"}),
        "number": frozenset({"float", "double"}),
        "integer": frozenset({"int32", "int64"}),
    },
    int64_limits=True,
    array_items="added",
    declared_required=True,
)
VERTEX_TYPED = replace(
    GEMINI_TYPED,
    name="Vertex Schema",
    keywords=(GEMINI_TYPED.keywords or frozenset()) | {"additionalProperties", "ref", "defs"},
    inlined_references=("$ref",),
    any_of_alone=True,
    enum_beside=frozenset({"string", "integer"}),
)
