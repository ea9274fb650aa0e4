"""Judges for adapted schemas, written without the code they judge: what a schema accepts, and what a target refuses."""

import re
from collections.abc import Iterator
from typing import Any

Schema = Any

_KINDS = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "string": lambda value: isinstance(value, str),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}


def accepts(schema: Schema, value: Any, root: Schema = None) -> bool:
    """Whether a value is valid: the part of JSON Schema that the tests use, and OpenAPI's `nullable`."""
    root = schema if root is None else root
    if isinstance(schema, bool):
        return schema
    if "$ref" in schema and not accepts(_pointed_at(root, schema["$ref"]), value, root):
        return False
    if schema.get("nullable") is True and value is None:
        return all(accepts(part, value, root) for part in schema.get("allOf", []))
    return (
        _says_type(schema, value)
        and _combined(schema, value, root)
        and _bounded(schema, value)
        and _object(schema, value, root)
        and _array(schema, value, root)
    )


def _pointed_at(root: Schema, reference: str) -> Schema:
    found = root
    for token in reference.split("/")[1:]:
        found = found[int(token)] if isinstance(found, list) else found[token]
    return found


def _says_type(schema: Schema, value: Any) -> bool:
    types = schema.get("type", [])
    names = [types] if isinstance(types, str) else types
    if names and not any(_KINDS[name.lower()](value) for name in names):
        return False
    if "const" in schema and not _same(schema["const"], value):
        return False
    return "enum" not in schema or any(_same(option, value) for option in schema["enum"])


def _same(one: Any, other: Any) -> bool:
    return isinstance(one, bool) == isinstance(other, bool) and one == other


def _combined(schema: Schema, value: Any, root: Schema) -> bool:
    counted = {
        keyword: [accepts(part, value, root) for part in schema[keyword]]
        for keyword in ("allOf", "anyOf", "oneOf")
        if keyword in schema
    }
    return (
        all(counted.get("allOf", []))
        and any(counted.get("anyOf", [True]))
        and sum(counted.get("oneOf", [True])) == 1
        and not ("not" in schema and accepts(schema["not"], value, root))
    )


def _bounded(schema: Schema, value: Any) -> bool:
    if isinstance(value, str):
        return schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value)) and (
            "pattern" not in schema or re.search(schema["pattern"], value) is not None
        )
    if not isinstance(value, int | float) or isinstance(value, bool):
        return True
    return (
        schema.get("minimum", value) <= value <= schema.get("maximum", value)
        and ("exclusiveMinimum" not in schema or value > schema["exclusiveMinimum"])
        and ("exclusiveMaximum" not in schema or value < schema["exclusiveMaximum"])
    )


def _object(schema: Schema, value: Any, root: Schema) -> bool:
    if not isinstance(value, dict):
        return True
    properties = schema.get("properties", {})
    extra = schema.get("additionalProperties", True)
    return all(name in value for name in schema.get("required", [])) and all(
        accepts(properties.get(name, extra), member, root) for name, member in value.items()
    )


def _array(schema: Schema, value: Any, root: Schema) -> bool:
    if not isinstance(value, list):
        return True
    prefix = schema.get("prefixItems", [])
    rest = schema.get("items", True)
    if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
        return False
    return all(
        accepts(prefix[index] if index < len(prefix) else rest, member, root) for index, member in enumerate(value)
    )


_MAPS = ("properties", "patternProperties", "$defs", "definitions", "defs")
_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
_SINGLE = ("items", "additionalProperties", "not")


def nodes(schema: Schema) -> Iterator[dict[str, Any]]:
    """Every schema object within a schema, itself first. Values of enum, const, default and example are not schemas."""
    if not isinstance(schema, dict):
        return
    yield schema
    for keyword in _MAPS:
        for part in schema.get(keyword, {}).values():
            yield from nodes(part)
    for keyword in _LISTS:
        for part in schema.get(keyword, []):
            yield from nodes(part)
    for keyword in _SINGLE:
        yield from nodes(schema.get(keyword))


_PROTO = frozenset(
    """type format title description nullable default example enum items minItems maxItems properties required
    minProperties maxProperties minimum maximum minLength maxLength pattern anyOf propertyOrdering""".split()  # noqa: SIM905
)


def gemini_refuses(schema: Schema, *, vertex: bool = False) -> list[str]:
    """What the typed Schema of Gemini, or of Vertex, would answer with 400."""
    known = _PROTO | {"additionalProperties", "ref", "defs"} if vertex else _PROTO
    faults = []
    for node in nodes(schema):
        faults += [f"unknown name {keyword}" for keyword in node if keyword not in known]
        kind = node.get("type")
        if kind is not None and not (isinstance(kind, str) and kind.lower() in _KINDS):
            faults.append(f"type {kind}")
        if any(not isinstance(option, str) for option in node.get("enum", [])):
            faults.append("enum of other things than strings")
        if node.get("enum") and str(kind).lower() not in ("string", "integer" if vertex else "string"):
            faults.append(f"enum beside {kind}")
        if str(kind).lower() == "array" and not isinstance(node.get("items"), dict):
            faults.append("items: missing field")
        if set(node.get("required", [])) - set(node.get("properties", {})):
            faults.append("required property is not defined")
        if vertex and "anyOf" in node and len(node.keys() - {"defs"}) > 1:
            faults.append("other fields alongside any_of")
        if any(not isinstance(part, dict) for part in (*node.get("anyOf", []), *node.get("properties", {}).values())):
            faults.append("not a Schema message")
    return faults


_ANTHROPIC_UNKNOWN = frozenset(
    """minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength maxItems uniqueItems oneOf not
    prefixItems minProperties maxProperties patternProperties examples""".split()  # noqa: SIM905
)


def anthropic_strict_refuses(schema: Schema) -> list[str]:
    faults = [] if schema.get("type") == "object" else ["input_schema.type: Field required"]
    for node in nodes(schema):
        faults += [f"property {keyword} is not supported" for keyword in node if keyword in _ANTHROPIC_UNKNOWN]
        if (node.get("type") == "object" or "properties" in node) and node.get("additionalProperties") is not False:
            faults.append("additionalProperties must be false")
        if node.get("minItems", 0) not in (0, 1):
            faults.append("minItems")
        if any("$ref" in part for part in node.get("allOf", []) if isinstance(part, dict)):
            faults.append("allOf with $ref")
        if any(isinstance(option, dict | list) for option in [*node.get("enum", []), node.get("const")]):
            faults.append("enum of other things than scalars")
    return faults


_OPENAI_UNKNOWN = frozenset(
    """allOf oneOf not patternProperties uniqueItems minProperties maxProperties""".split()  # noqa: SIM905
)


def openai_strict_refuses(schema: Schema) -> list[str]:
    """All rules but the one that no adapting can satisfy: every property required."""
    faults = [] if schema.get("type") == "object" and "anyOf" not in schema else ["root must be an object"]
    for node in nodes(schema):
        faults += [f"{keyword} is not permitted" for keyword in node if keyword in _OPENAI_UNKNOWN]
        if (node.get("type") == "object" or "properties" in node) and node.get("additionalProperties") is not False:
            faults.append("additionalProperties is required to be supplied and to be false")
        if "$ref" in node and len(node) > 1:
            faults.append("$ref cannot have siblings")
        if set(node.get("required", [])) - set(node.get("properties", {})):
            faults.append("extra required key")
    return faults
