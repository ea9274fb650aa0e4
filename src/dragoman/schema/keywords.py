"""Handlers per keyword: checks of its value, visits of its subschemas, and rules of finished nodes."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING, TypeAlias

import msgspec
from msgspec import UNSET

from dragoman.schema.source import json_type, step_into, type_names
from dragoman.schema.steps import TYPE_OF_KEYWORD, has_root_rules_only, is_object, main_type
from dragoman.schema.values import Json, Node

if TYPE_CHECKING:
    from dragoman.schema.dialects import SchemaDialect
    from dragoman.schema.walk import Walk

Handler: TypeAlias = Callable[["Walk", Node, str, Json], Json]
Rule: TypeAlias = Callable[["Walk", Node, Node], None]

INERT = frozenset({"$schema", "$id", "$anchor", "$defs", "definitions", "defs"})
"""Dropped without a loss: definitions, once every reference is inlined."""
NEUTRAL: dict[str, bool] = {
    "additionalProperties": True,
    **dict.fromkeys(("uniqueItems", "nullable", "deprecated", "readOnly", "writeOnly"), False),
}
"""Dropped without a loss if they have this value, which is the default."""

_TYPES = frozenset({"string", "number", "integer", "boolean", "array", "object", "null"})
_FANCY_PATTERN = re.compile(r"\(\?<?[=!]|(?<!\\)(?:\\\\)*\\(?:[1-9]|k<)")
_LARGEST_INT64 = 2**63 - 1


# Checks: the value for the target, or UNSET after a note that it is dropped.


def _type(walk: Walk, node: Node, keyword: str, value: Json) -> Json:
    if isinstance(value, str) and value in _TYPES:
        return value
    names = type_names(value)
    if walk.dialect.other_types:
        return value
    if not names or any(name.lower() not in _TYPES for name in names):
        return walk.drop(node, keyword, "not a type of JSON")
    if walk.dialect.single_type or all(name in _TYPES for name in names):
        return value
    walk.note(node, keyword, "rewritten", "types are spelled in lower case", exact=True)
    return [name.lower() for name in names] if isinstance(value, list) else value.lower()


def _enum(walk: Walk, node: Node, keyword: str, value: Json) -> Json:
    if not isinstance(value, list):
        return walk.drop(node, keyword, "not a list of values")
    walk.enum_values += len(value)
    dialect, kind = walk.dialect, main_type(node) or "null"
    if dialect.enum_beside is not None and value and kind not in dialect.enum_beside:
        is_implied_by_type = kind == "boolean" and {item for item in value if isinstance(item, bool)} == {True, False}
        walk.note(node, keyword, "dropped", f"no enum beside type {kind}", exact=is_implied_by_type)
        return UNSET
    if dialect.scalar_enum and any(isinstance(item, dict | list) for item in value):
        return walk.drop(node, keyword, "only scalar values may be listed")
    if not dialect.enum_as_text or all(isinstance(item, str) for item in value):
        return value
    walk.note(node, keyword, "rewritten", "the values are written as text")
    return list(dict.fromkeys(_as_text(item) for item in value))


def _as_text(value: Json) -> str:
    return str(value) if isinstance(value, str | Decimal) else msgspec.json.encode(value).decode()


def _const(walk: Walk, node: Node, keyword: str, value: Json) -> Json:
    if walk.dialect.scalar_enum and isinstance(value, dict | list):
        return walk.drop(node, keyword, "only scalar values may be listed")
    return value


def _format(walk: Walk, node: Node, keyword: str, value: Json) -> Json:
    allowed = walk.dialect.formats.get(main_type(node))
    if not isinstance(value, str) or (allowed is not None and value not in allowed):
        return walk.drop(node, keyword, f"no such format of type {main_type(node)}: {value!r:.40}")
    return value


def _pattern(walk: Walk, node: Node, keyword: str, value: Json) -> Json:
    if not isinstance(value, str):
        return walk.drop(node, keyword, "not text")
    if walk.dialect.plain_patterns and _FANCY_PATTERN.search(value):
        return walk.drop(node, keyword, "no look-around and no backreferences")
    return value


def _text(walk: Walk, node: Node, keyword: str, value: Json) -> Json:
    return value if value is None or isinstance(value, str) else walk.drop(node, keyword, "not text")


def _required(walk: Walk, node: Node, keyword: str, value: Json) -> Json:
    if not isinstance(value, list) or any(not isinstance(name, str) for name in value):
        return walk.drop(node, keyword, "not a list of names")
    properties = node.get("properties")
    declared = [name for name in value if isinstance(properties, dict) and name in properties]
    if not walk.dialect.declared_required or len(declared) == len(value):
        return value
    walk.note(node, keyword, "rewritten", "only declared properties may be required")
    return declared


def _limit(walk: Walk, node: Node, keyword: str, value: Json) -> Json:
    """A limit is an int64 of the proto: an integer, or its text."""
    most = walk.dialect.max_min_items
    if keyword == "minItems" and most is not None and value not in range(most + 1):
        return walk.drop(node, keyword, f"at most {most} may be required")
    if not walk.dialect.int64_limits or (isinstance(value, str) and value.isascii() and value.isdigit()):
        return value
    if json_type(value) not in ("integer", "number") or not 0 <= value <= _LARGEST_INT64 or value != int(value):
        return walk.drop(node, keyword, "not a whole number in the range of the target")
    if not isinstance(value, int):
        walk.note(node, keyword, "rewritten", "written as an integer", exact=True)
    return int(value)


def _additional(walk: Walk, node: Node, keyword: str, value: Json) -> Json:
    if not walk.dialect.closed_objects or value is False:
        return value
    walk.note(node, keyword, "rewritten", "every object must be closed")
    return False


CHECKS: dict[str, Handler] = {
    "type": _type,
    "enum": _enum,
    "const": _const,
    "format": _format,
    "pattern": _pattern,
    "title": _text,
    "description": _text,
    "required": _required,
    "additionalProperties": _additional,
    **dict.fromkeys(("minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"), _limit),
}


# Visits: the keyword's value with all schemas in it adapted.


def _visit_map(walk: Walk, node: Node, keyword: str, value: Json) -> Json:
    if value is None:
        return value if has_root_rules_only(walk.dialect) else walk.drop(node, keyword, "null has no meaning here")
    if not isinstance(value, dict):
        raise walk.error(node, keyword, "an object of schemas", json_type(value))
    is_level = keyword == "properties"
    walk.properties += is_level * len(value)
    walk.object_depth += is_level
    walk.deepest_object = max(walk.deepest_object, walk.object_depth)
    adapted = {}
    for name, schema in value.items():
        # A value that is not an object is reported with its path: as an error, or as a note.
        adapted[name] = walk.adapt(schema, node, "" if isinstance(schema, dict) else step_into(keyword, name))
    walk.object_depth -= is_level
    return adapted


def _visit_list(walk: Walk, node: Node, keyword: str, _value: Json) -> Json:
    schemas = walk.schemas(node, keyword)
    return [walk.adapt(schema, node, step_into(keyword, index)) for index, schema in enumerate(schemas)]


def _visit_schema(walk: Walk, node: Node, keyword: str, value: Json) -> Json:
    if isinstance(value, list):
        return _visit_list(walk, node, keyword, value)
    if keyword == "additionalProperties" and isinstance(value, bool):
        return value
    return walk.adapt(value, node, keyword)


VISITS: dict[str, Handler] = {
    **dict.fromkeys(
        ("properties", "patternProperties", "dependentSchemas", "$defs", "definitions", "defs"), _visit_map
    ),
    **dict.fromkeys(("allOf", "anyOf", "oneOf", "prefixItems"), _visit_list),
    **dict.fromkeys(("items", "additionalItems", "contains", "unevaluatedItems"), _visit_schema),
    **dict.fromkeys(("additionalProperties", "propertyNames", "unevaluatedProperties"), _visit_schema),
    **dict.fromkeys(("not", "if", "then", "else"), _visit_schema),
}


# Rules: what the finished node must have.


def _require_closed(walk: Walk, node: Node, members: Node) -> None:
    if walk.dialect.closed_objects and is_object(members) and "additionalProperties" not in members:
        walk.note(node, "additionalProperties", "rewritten", "every object must be closed")
        members["additionalProperties"] = False


def _require_all(walk: Walk, node: Node, members: Node) -> None:
    required = members.get("required", [])
    optional = [name for name in members.get("properties", ()) if name not in required]
    if walk.dialect.all_required and optional:
        names = ", ".join(optional)
        walk.note(node, "required", "kept", f"every property must be required, these are not: {names:.200}")


def _require_items(walk: Walk, node: Node, members: Node) -> None:
    wanted = walk.dialect.array_items
    if wanted == "optional" or main_type(members) != "array" or "items" in members or "prefixItems" in members:
        return
    if wanted == "demanded":
        walk.note(node, "items", "kept", "an array must declare its items")
        return
    walk.note(node, "items", "rewritten", "an array must declare its items: any value", exact=True)
    members["items"] = {}


def _require_type(walk: Walk, node: Node, members: Node) -> None:
    if walk.dialect.typed_nodes and members.keys().isdisjoint(("type", "enum", "const", "$ref", "anyOf", "allOf")):
        walk.note(node, "type", "kept", "every schema must declare its type")


def _require_named_type(walk: Walk, node: Node, members: Node) -> None:
    kinds = {TYPE_OF_KEYWORD[keyword] for keyword in members if keyword in TYPE_OF_KEYWORD}
    if not walk.dialect.single_type or len(kinds) != 1 or not members.keys().isdisjoint(("type", "anyOf", "ref")):
        return
    (kind,) = kinds
    walk.note(node, "type", "rewritten", f"a type must be declared, and the keywords imply {kind}")
    untyped = dict(members)
    members.clear()
    members.update({"type": kind} | untyped)
    if "format" in members and _format(walk, members, "format", members["format"]) is UNSET:
        del members["format"]


def rules_of(dialect: SchemaDialect) -> tuple[Rule, ...]:
    """The rules that apply in the dialect, in order."""
    wanted = {
        _require_named_type: dialect.single_type,
        _require_closed: dialect.closed_objects,
        _require_all: dialect.all_required,
        _require_items: dialect.array_items != "optional",
        _require_type: dialect.typed_nodes,
    }
    return () if has_root_rules_only(dialect) else tuple(rule for rule, applies in wanted.items() if applies)
