"""Is this value an instance of that schema? Enough of JSON Schema to judge what the simulated model writes."""

import re
from collections.abc import Callable
from typing import Any

Schema = dict[str, Any]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


TYPES: dict[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: _is_number(value) and float(value).is_integer(),
    "number": _is_number,
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}
FORMATS = {
    "email": r"[^@\s]+@[^@\s]+",
    "date": r"\d{4}-\d{2}-\d{2}",
    "date-time": r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}.*",
    "uuid": r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    "uri": r"[a-z]+://.*",
    "ipv4": r"\d+(\.\d+){3}",
}


def faults(value: Any, schema: Any, root: Schema | None = None) -> list[str]:
    """What is wrong with the value; nothing when it is valid."""
    root = schema if root is None else root
    if not isinstance(schema, dict):
        return []
    if "$ref" in schema:
        target: Any = root
        for step in schema["$ref"].removeprefix("#").split("/")[1:]:
            target = target[step]
        return faults(value, target, root)
    found = [
        f"{value!r} breaks {name}" for name, check in CHECKS.items() if name in schema and not check(value, schema)
    ]
    for one in schema.get("allOf", []):
        found += faults(value, one, root)
    for name in ("anyOf", "oneOf"):
        if name in schema and all(faults(value, one, root) for one in schema[name]):
            found.append(f"{value!r} fits no branch of {name}")
    if isinstance(value, dict):
        for key, item in value.items():
            found += faults(item, schema.get("properties", {}).get(key, schema.get("additionalProperties")), root)
    if isinstance(value, list):
        for item in value:
            found += faults(item, schema.get("items"), root)
    return found


def _typed(value: Any, schema: Schema) -> bool:
    names = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return any(TYPES[name](value) for name in names)


def _of(kind: type, check: Callable[[Any, Any], bool], keyword: str) -> Callable[[Any, Schema], bool]:
    return lambda value, schema: not isinstance(value, kind) or check(value, schema[keyword])


def _numeric(check: Callable[[Any, Any], bool], keyword: str) -> Callable[[Any, Schema], bool]:
    return lambda value, schema: not _is_number(value) or check(value, schema[keyword])


CHECKS: dict[str, Callable[[Any, Schema], bool]] = {
    "type": _typed,
    "enum": lambda value, schema: value in schema["enum"],
    "const": lambda value, schema: value == schema["const"],
    "minLength": _of(str, lambda value, limit: len(value) >= limit, "minLength"),
    "maxLength": _of(str, lambda value, limit: len(value) <= limit, "maxLength"),
    "pattern": _of(str, lambda value, pattern: re.search(pattern, value) is not None, "pattern"),
    "format": _of(str, lambda value, name: name not in FORMATS or bool(re.fullmatch(FORMATS[name], value)), "format"),
    "minimum": _numeric(lambda value, limit: value >= limit, "minimum"),
    "maximum": _numeric(lambda value, limit: value <= limit, "maximum"),
    "exclusiveMinimum": _numeric(lambda value, limit: value > limit, "exclusiveMinimum"),
    "exclusiveMaximum": _numeric(lambda value, limit: value < limit, "exclusiveMaximum"),
    "multipleOf": _numeric(lambda value, step: value % step == 0, "multipleOf"),
    "minItems": _of(list, lambda value, limit: len(value) >= limit, "minItems"),
    "maxItems": _of(list, lambda value, limit: len(value) <= limit, "maxItems"),
    "uniqueItems": _of(list, lambda value, _: all(value.count(item) == 1 for item in value), "uniqueItems"),
    "required": _of(dict, lambda value, names: set(names) <= set(value), "required"),
    "minProperties": _of(dict, lambda value, limit: len(value) >= limit, "minProperties"),
    "additionalProperties": lambda value, schema: (
        not isinstance(value, dict)
        or schema["additionalProperties"] is not False
        or set(value) <= set(schema.get("properties", {}))
    ),
}
