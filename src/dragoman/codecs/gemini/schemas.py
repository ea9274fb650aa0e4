"""Typed schemas as JSON Schema.

`parameters` and `responseSchema` are a closed type with upper-case type names and `nullable`. The intermediate format
holds the equivalent JSON Schema; a note keeps the original for the way back.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from msgspec import UNSET, Raw

from dragoman.codecs.gemini.wire import snake_case
from dragoman.ir.values import parse_json

TYPED = "~typed"
"""Note: the schema used the closed type; the value is the original, if that is not also valid JSON Schema."""

_TYPE_NAMES = ("", "string", "number", "integer", "boolean", "array", "object", "null")
_COUNTS = frozenset({"minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"})
_KEYWORDS = ("anyOf", "propertyOrdering", "additionalProperties", *_COUNTS)
_SPELLINGS: dict[str, str] = {snake_case(name): name for name in _KEYWORDS}
_ELSEWISE = re.compile(
    rb'"type"\s*:\s*(?:\d|"[a-z]*[A-Z])'
    rb'|"(?:nullable|example|ref|defs|propertyOrdering|' + "|".join(_SPELLINGS).encode() + rb')"\s*:'
    rb'|"(?:min|max)(?:Items|Length|Properties)"\s*:\s*"'
    rb'|"format"\s*:\s*"enum"|"enum"\s*:\s*\[\s*"-?\d|:\s*null'
)


def is_json_schema(typed: Raw) -> bool:
    """Whether the schema is already JSON Schema. Checked without parsing, so it may return False too often."""
    return _ELSEWISE.search(bytes(typed)) is None


def json_schema_of(typed: Any) -> Any:
    """Return a typed schema as JSON Schema: lower-case types, null as a type, counts as numbers, `$ref` and `$defs`."""
    if not isinstance(typed, dict):
        return typed
    schema: dict[str, Any] = {}
    spelling: str
    for spelling, value in typed.items():
        key: str = _SPELLINGS.get(spelling, spelling)
        if value is None and key not in {"default", "example"}:
            continue
        convert = _CONVERT.get(key)
        if convert is None:
            schema[key] = value
        else:
            convert(schema, key, value)
    if schema.get("type") == "integer" and isinstance(schema.get("enum"), list):
        schema["enum"] = [_number(value) for value in schema["enum"]]
    _order_properties(schema, typed)
    if typed.get("nullable") is True:
        _allow_null(schema)
    return schema


def _type(schema: dict[str, Any], key: str, value: Any) -> None:
    if isinstance(value, int) and 0 <= value < len(_TYPE_NAMES):
        name = _TYPE_NAMES[value]
    else:
        name = value.lower() if isinstance(value, str) else value
    if name and name != "type_unspecified":
        schema[key] = name


def _number(value: Any) -> Any:
    return int(value) if isinstance(value, str) and value.lstrip("-").isdigit() else value


def _map(schema: dict[str, Any], key: str, value: Any) -> None:
    renamed = "$defs" if key == "defs" else key
    named = isinstance(value, dict)
    schema[renamed] = {name: json_schema_of(inner) for name, inner in value.items()} if named else value


def _list(schema: dict[str, Any], key: str, value: Any) -> None:
    schema[key] = [json_schema_of(inner) for inner in value] if isinstance(value, list) else value


def _reference(schema: dict[str, Any], _: str, value: Any) -> None:
    schema["$ref"] = value.replace("#/defs/", "#/$defs/") if isinstance(value, str) else value


def _format(schema: dict[str, Any], key: str, value: Any) -> None:
    if value != "enum":  # "enum" adds nothing to an enum
        schema[key] = value


def _nothing(_schema: dict[str, Any], _key: str, _value: Any) -> None:
    return


def _examples(schema: dict[str, Any], _: str, value: Any) -> None:
    schema["examples"] = [value]


def _inner(schema: dict[str, Any], key: str, value: Any) -> None:
    schema[key] = json_schema_of(value)


def _count(schema: dict[str, Any], key: str, value: Any) -> None:
    schema[key] = _number(value)


_CONVERT: dict[str, Callable[[dict[str, Any], str, Any], None]] = {
    "type": _type,
    "properties": _map,
    "defs": _map,
    "anyOf": _list,
    "items": _inner,
    "additionalProperties": _inner,
    "ref": _reference,
    "format": _format,
    "example": _examples,
    "nullable": _nothing,
    "propertyOrdering": _nothing,
    **dict.fromkeys(_COUNTS, _count),
}


def _order_properties(schema: dict[str, Any], typed: dict[str, Any]) -> None:
    order = typed.get("propertyOrdering", typed.get("property_ordering"))
    properties = schema.get("properties")
    if isinstance(order, list) and isinstance(properties, dict):
        first = [name for name in order if isinstance(name, str) and name in properties]
        schema["properties"] = {name: properties[name] for name in (*first, *properties)}


def _allow_null(schema: dict[str, Any]) -> None:
    if "type" in schema:
        schema["type"] = [schema["type"], "null"]
        if isinstance(schema.get("enum"), list):
            schema["enum"] = [*schema["enum"], None]
    elif isinstance(schema.get("enum"), list):
        schema["enum"] = [*schema["enum"], None]
    elif isinstance(schema.get("anyOf"), list):
        schema["anyOf"] = [*schema["anyOf"], {"type": "null"}]


def read_typed(typed: Raw) -> tuple[Any, Raw]:
    """Return (JSON Schema, note)."""
    if is_json_schema(typed):
        return typed, Raw(b"true")
    return json_schema_of(parse_json(typed)), typed


def restore_typed(value: Any, noted: Raw) -> Any:
    """Return the typed schema that this JSON Schema was converted from, or UNSET if it has changed since."""
    if bytes(noted) == b"true":
        return value
    now = parse_json(value) if isinstance(value, Raw) else value
    return noted if json_schema_of(parse_json(noted)) == now else UNSET
