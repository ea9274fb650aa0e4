"""Whether arguments are what a JSON Schema says, in words that a model can correct itself by.

The keywords that describe arguments are checked (2020-12, and what drafts 4 to 7 said otherwise); annotations and
`format` are not. A reference that leads out of the schema accepts everything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sized
from functools import lru_cache
from typing import Any, TypeAlias

from dragoman.ir.values import compact_text

Problems: TypeAlias = Iterator[str]
_SHOWN = 60
_MANY = 5


def problems_of(schema: Any, value: Any) -> list[str]:
    """What is wrong with the value, the first few of it; nothing when it is valid."""
    found: list[str] = []
    for problem in _Check(schema).problems(schema, value, "$"):
        found.append(problem)
        if len(found) == _MANY:
            break
    return found


# ── words ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_TYPES: Mapping[str, Callable[[Any], bool]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    # 2.0 is an integer (JSON Schema validation, 6.1.1)
    "integer": lambda value: _number(value) and value == int(value) if _finite(value) else False,
    "number": _number,
    "string": lambda value: isinstance(value, str),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}


def _finite(value: Any) -> bool:
    return _number(value) and abs(value) != float("inf")


def _kind(value: Any) -> str:
    return next((name for name, is_one in _TYPES.items() if is_one(value)), type(value).__name__)


def _shown(value: Any) -> str:
    text = compact_text(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def _same(one: Any, other: Any) -> bool:
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


# ── checks ────────────────────────────────────────────────────────────────────────────────────────────────────


class _Check:
    def __init__(self, root: Any) -> None:
        self._root = root
        self._open: set[tuple[int, int]] = set()
        """Schemas at work, with the value: a reference that leads in a circle says nothing more."""

    def problems(self, schema: Any, value: Any, path: str) -> Problems:
        if schema is False:
            yield f"{path}: nothing is allowed here, got {_shown(value)}"
        if not isinstance(schema, Mapping):
            return
        visit = (id(schema), id(value))
        if visit in self._open:
            return
        self._open.add(visit)
        try:
            for keyword, said in schema.items():
                check = _KEYWORDS.get(keyword)
                if check is not None:
                    yield from check(self, said, value, path, schema)
        finally:
            self._open.discard(visit)

    def accepts(self, schema: Any, value: Any) -> bool:
        return next(self.problems(schema, value, "$"), None) is None

    def found(self, reference: str) -> Any:
        if reference != "#" and not reference.startswith("#/"):
            return True
        node = self._root
        for token in reference.split("/")[1:]:
            key = token.replace("~1", "/").replace("~0", "~")
            if isinstance(node, list) and key.isdecimal() and int(key) < len(node):
                node = node[int(key)]
            elif isinstance(node, Mapping) and key in node:
                node = node[key]
            else:
                return True
        return node


Keyword: TypeAlias = Callable[[_Check, Any, Any, str, Mapping[str, Any]], Problems]


def _reference(check: _Check, said: Any, value: Any, path: str, _: Mapping[str, Any]) -> Problems:
    yield from check.problems(check.found(str(said)), value, path)


def _type(_check: _Check, said: Any, value: Any, path: str, _: Mapping[str, Any]) -> Problems:
    names = [said] if isinstance(said, str) else said
    known = [_TYPES[name] for name in names if name in _TYPES]
    if known and not any(is_one(value) for is_one in known):
        yield f"{path}: expected {' or '.join(names)}, got {_kind(value)}"


def _enum(_check: _Check, said: Any, value: Any, path: str, _: Mapping[str, Any]) -> Problems:
    if not any(_same(option, value) for option in said):
        yield f"{path}: expected one of {', '.join(map(_shown, said))}, got {_shown(value)}"


def _const(_check: _Check, said: Any, value: Any, path: str, _: Mapping[str, Any]) -> Problems:
    if not _same(said, value):
        yield f"{path}: expected {_shown(said)}, got {_shown(value)}"


def _all_of(check: _Check, said: Any, value: Any, path: str, _: Mapping[str, Any]) -> Problems:
    for part in said:
        yield from check.problems(part, value, path)


def _any_of(check: _Check, said: Any, value: Any, path: str, _: Mapping[str, Any]) -> Problems:
    if not any(check.accepts(part, value) for part in said):
        reasons = [next(check.problems(part, value, path), "") for part in said]
        yield f"{path}: none of the alternatives fits ({'; '.join(reasons)})"


def _one_of(check: _Check, said: Any, value: Any, path: str, schema: Mapping[str, Any]) -> Problems:
    fitting = sum(check.accepts(part, value) for part in said)
    if fitting == 0:
        yield from _any_of(check, said, value, path, schema)
    elif fitting > 1:
        yield f"{path}: {fitting} alternatives fit where exactly one may"


def _not(check: _Check, said: Any, value: Any, path: str, _: Mapping[str, Any]) -> Problems:
    if check.accepts(said, value):
        yield f"{path}: {_shown(value)} is not allowed here"


def _if(check: _Check, said: Any, value: Any, path: str, schema: Mapping[str, Any]) -> Problems:
    branch = "then" if check.accepts(said, value) else "else"
    yield from check.problems(schema.get(branch, True), value, path)


def _properties(check: _Check, said: Any, value: Any, path: str, _: Mapping[str, Any]) -> Problems:
    if isinstance(value, dict):
        for name, inner in said.items():
            if name in value:
                yield from check.problems(inner, value[name], f"{path}.{name}")


def _required(_check: _Check, said: Any, value: Any, path: str, _: Mapping[str, Any]) -> Problems:
    if isinstance(value, dict) and isinstance(said, list):
        yield from (f"{path}: {name!r} is missing" for name in said if name not in value)


def _pattern_properties(check: _Check, said: Any, value: Any, path: str, _: Mapping[str, Any]) -> Problems:
    if isinstance(value, dict):
        for pattern, inner in said.items():
            for name in value:
                if _matches(pattern, name):
                    yield from check.problems(inner, value[name], f"{path}.{name}")


def _additional(check: _Check, said: Any, value: Any, path: str, schema: Mapping[str, Any]) -> Problems:
    if not isinstance(value, dict):
        return
    known = schema.get("properties", {})
    patterns = schema.get("patternProperties", {})
    for name in value:
        if name in known or any(_matches(pattern, name) for pattern in patterns):
            continue
        if said is False:
            yield f"{path}: unknown name {name!r}; known: {', '.join(known) or 'none'}"
        else:
            yield from check.problems(said, value[name], f"{path}.{name}")


def _property_names(check: _Check, said: Any, value: Any, path: str, _: Mapping[str, Any]) -> Problems:
    if isinstance(value, dict):
        for name in value:
            yield from check.problems(said, name, f"{path} (name {name!r})")


def _dependent_required(_check: _Check, said: Any, value: Any, path: str, _: Mapping[str, Any]) -> Problems:
    if isinstance(value, dict):
        for name, others in said.items():
            if name in value:
                yield from (f"{path}: {name!r} needs {other!r}" for other in others if other not in value)


def _prefix_items(check: _Check, said: Any, value: Any, path: str, _: Mapping[str, Any]) -> Problems:
    if isinstance(value, list):
        for index, (inner, item) in enumerate(zip(said, value, strict=False)):
            yield from check.problems(inner, item, f"{path}[{index}]")


def _items(check: _Check, said: Any, value: Any, path: str, schema: Mapping[str, Any]) -> Problems:
    if isinstance(said, list):  # drafts up to 2019-09
        yield from _prefix_items(check, said, value, path, schema)
    elif isinstance(value, list):
        start = len(schema.get("prefixItems", ()))
        for index, item in enumerate(value[start:], start):
            yield from check.problems(said, item, f"{path}[{index}]")


def _contains(check: _Check, said: Any, value: Any, path: str, schema: Mapping[str, Any]) -> Problems:
    if isinstance(value, list):
        count = sum(check.accepts(said, item) for item in value)
        if not schema.get("minContains", 1) <= count <= schema.get("maxContains", len(value)):
            yield f"{path}: {count} elements are what must be contained"


def _unique(_check: _Check, said: Any, value: Any, path: str, _: Mapping[str, Any]) -> Problems:
    if said is True and isinstance(value, list):
        texts = [compact_text(item) for item in value]
        if len(set(texts)) < len(texts):
            yield f"{path}: elements must differ from each other"


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str] | None:
    try:
        return re.compile(pattern)
    except re.error:  # ECMA 262 knows what Python does not
        return None


def _matches(pattern: str, text: str) -> bool:
    compiled = _compiled(pattern)
    return compiled is None or compiled.search(text) is not None


def _pattern(_check: _Check, said: Any, value: Any, path: str, _: Mapping[str, Any]) -> Problems:
    if isinstance(value, str) and not _matches(said, value):
        yield f"{path}: expected text that matches {said}, got {_shown(value)}"


def _bound(words: str, measured: Callable[[Any], Any], holds: Callable[[Any, Any], bool]) -> Keyword:
    """A keyword that compares one measure of the value with a number; `measured` gives None where it does not apply."""

    def check(_check: _Check, said: Any, value: Any, path: str, _: Mapping[str, Any]) -> Problems:
        measure = measured(value)
        if measure is not None and _number(said) and not holds(measure, said):
            yield f"{path}: expected {words.format(said)}, got {_shown(value)}"

    return check


def _as_number(value: Any) -> Any:
    return value if _number(value) else None


def _length(kind: type[Sized]) -> Callable[[Any], Any]:
    return lambda value: len(value) if isinstance(value, kind) else None


def _is_multiple(value: Any, step: Any) -> bool:
    # Through decimals, because 0.3 % 0.1 is not 0 in binary.
    from decimal import Decimal  # noqa: PLC0415 - rarely needed

    return step == 0 or Decimal(str(value)) % Decimal(str(step)) == 0


_KEYWORDS: Mapping[str, Keyword] = {
    "$ref": _reference,
    "type": _type,
    "enum": _enum,
    "const": _const,
    "allOf": _all_of,
    "anyOf": _any_of,
    "oneOf": _one_of,
    "not": _not,
    "if": _if,
    "properties": _properties,
    "required": _required,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional,
    "propertyNames": _property_names,
    "dependentRequired": _dependent_required,
    "prefixItems": _prefix_items,
    "items": _items,
    "contains": _contains,
    "uniqueItems": _unique,
    "pattern": _pattern,
    "minimum": _bound("at least {}", _as_number, lambda one, other: one >= other),
    "maximum": _bound("at most {}", _as_number, lambda one, other: one <= other),
    "exclusiveMinimum": _bound("more than {}", _as_number, lambda one, other: one > other),
    "exclusiveMaximum": _bound("less than {}", _as_number, lambda one, other: one < other),
    "multipleOf": _bound("a multiple of {}", _as_number, _is_multiple),
    "minLength": _bound("at least {} characters", _length(str), lambda one, other: one >= other),
    "maxLength": _bound("at most {} characters", _length(str), lambda one, other: one <= other),
    "minItems": _bound("at least {} elements", _length(list), lambda one, other: one >= other),
    "maxItems": _bound("at most {} elements", _length(list), lambda one, other: one <= other),
    "minProperties": _bound("at least {} entries", _length(dict), lambda one, other: one >= other),
    "maxProperties": _bound("at most {} entries", _length(dict), lambda one, other: one <= other),
}
