"""Checks arguments against a JSON Schema, with messages that let a model correct itself.

The keywords that describe arguments are checked (2020-12, and where drafts 4 to 7 differ); annotations and `format` are
not. A reference that leads out of the schema accepts everything, and so does a keyword whose own value is not what JSON
Schema requires. Schema and value may both come from outside (an MCP server, a model), so depth and work are bounded:
see `_DEEPEST` and `_Check.spend`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from decimal import Decimal
from typing import Any, TypeAlias

from dragoman.agent.linear_patterns import matches
from dragoman.errors import EncodeError
from dragoman.ir.values import compact_text

Problems: TypeAlias = Iterator[str]
_SHOWN = 60
_MANY = 5
_DEEPEST = 128
"""Levels of nested schemas. Each takes two Python frames, of which there are a thousand by default."""
_MOST_DIGITS = 20_000
"""Most digits of a number that is divided: the time grows with their square."""
_WORK = 100_000
"""Schemas applied to values, beyond those that a value of its size needs."""


class _Beyond(Exception):
    """The check would exceed its limit on depth or work."""


def problems_of(schema: Any, value: Any) -> list[str]:
    """Return the first few problems of the value; empty if it is valid."""
    found: list[str] = []
    try:
        for problem in _Check(schema, value).problems(schema, value, "$"):
            found.append(problem)
            if len(found) == _MANY:
                break
    except _Beyond as error:
        found.append(str(error))
    except RecursionError:  # the caller had already used up the stack
        found.append("$: nested too deeply to be checked")
    return found


# ── messages ──────────────────────────────────────────────────────────────────────────────────────────────────


def _number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _integer(value: Any) -> bool:
    # 2.0 is an integer (JSON Schema validation, 6.1.1)
    if isinstance(value, Decimal):
        return value.is_finite() and value == value.to_integral_value()
    return _number(value) and (isinstance(value, int) or value.is_integer())


_TYPES: Mapping[str, Callable[[Any], bool]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "integer": _integer,
    "number": _number,
    "string": lambda value: isinstance(value, str),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}


def _kind(value: Any) -> str:
    return next((name for name, is_one in _TYPES.items() if is_one(value)), type(value).__name__)


def _as_text(value: Any) -> str:
    """Return the beginning of the value as JSON, without looking at the rest, however large it is."""
    try:
        text = compact_text(_shorten(value, 4))
    except (EncodeError, UnicodeEncodeError, TypeError, ValueError, OverflowError):
        text = type(value).__name__
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def _shorten(value: Any, levels: int) -> Any:
    if isinstance(value, str):
        return value[:_SHOWN]
    if isinstance(value, int) and value.bit_length() > 64:  # noqa: PLR2004 - the range that the encoder accepts
        return Decimal(value)
    if not isinstance(value, list | dict) or not value:
        return value
    if not levels:
        return "…"
    if isinstance(value, list):
        return [_shorten(item, levels - 1) for item in value[:_SHOWN]]
    first = (entry for entry, _ in zip(value.items(), range(_SHOWN), strict=False))
    return {str(name)[:_SHOWN]: _shorten(member, levels - 1) for name, member in first}


def _same(one: Any, other: Any) -> bool:
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def _within(path: str, name: Any) -> str:
    return f"{path}.{str(name)[:_SHOWN]}"


# ── checks ────────────────────────────────────────────────────────────────────────────────────────────────────


class _Check:
    def __init__(self, root: Any, value: Any) -> None:
        self._root = root
        self._open: set[tuple[int, int]] = set()
        """Schemas in progress, with the value: a circular reference adds nothing."""
        self._left = _WORK + 50 * _size(value)
        self._options: dict[int, frozenset[Any]] = {}
        self._first: dict[tuple[int, int], str | None] = {}
        """First problem per alternative and value: nested alternatives would check the same pair again and again."""

    def spend(self, work: int, path: str) -> None:
        """Count work, bounded by the size of the value: references to schemas that refer to others multiply."""
        self._left -= work
        if self._left < 0:
            raise _Beyond(f"{path}: the schema is too complex to check the arguments against it")

    def problems(self, schema: Any, value: Any, path: str) -> Problems:
        self.spend(1, path)
        if schema is False:
            yield f"{path}: nothing is allowed here, got {_as_text(value)}"
        if not isinstance(schema, Mapping):
            return
        visit = (id(schema), id(value))
        if visit in self._open:
            return
        if len(self._open) >= _DEEPEST:
            raise _Beyond(f"{path}: nested more than {_DEEPEST} levels deep")
        self._open.add(visit)
        try:
            for keyword, expected in schema.items():
                check = _KEYWORDS.get(keyword)
                if check is not None and isinstance(expected, _SHAPES.get(keyword, object)):
                    yield from check(self, expected, value, path, schema)
        finally:
            self._open.discard(visit)

    def first(self, schema: Any, value: Any, path: str) -> str | None:
        """Return the first problem; None if the schema accepts the value."""
        self.spend(1, path)  # also for a known pair: equal small values are one object
        key = (id(schema), id(value))
        if key not in self._first:
            self._first[key] = next(self.problems(schema, value, path), None)
        return self._first[key]

    def accepts(self, schema: Any, value: Any) -> bool:
        return self.first(schema, value, "$") is None

    def options(self, expected: Sequence[Any]) -> frozenset[Any]:
        """Return the scalar options of an enum as a set, for fast lookup."""
        known = self._options.get(id(expected))
        if known is None:
            known = frozenset((isinstance(one, bool), one) for one in expected if not isinstance(one, list | dict))
            self._options[id(expected)] = known
        return known

    def resolve(self, reference: str) -> Any:
        if reference != "#" and not reference.startswith("#/"):
            return True
        node = self._root
        for token in reference.split("/")[1:]:
            key = token.replace("~1", "/").replace("~0", "~")
            if isinstance(node, list) and key.isdecimal() and len(key) < _SHOWN and int(key) < len(node):
                node = node[int(key)]
            elif isinstance(node, Mapping) and key in node:
                node = node[key]
            else:
                return True
        return node


def _size(value: Any) -> int:
    """Return the number of values within the value, including itself."""
    count = 0
    waiting = [value]
    while waiting:
        item = waiting.pop()
        count += 1
        if isinstance(item, dict):
            waiting += item.values()
        elif isinstance(item, list):
            waiting += item
    return count


Keyword: TypeAlias = Callable[[_Check, Any, Any, str, Mapping[str, Any]], Problems]


def _reference(check: _Check, expected: str, value: Any, path: str, _: Mapping[str, Any]) -> Problems:
    check.spend(expected.count("/"), path)
    yield from check.problems(check.resolve(expected), value, path)


def _type(_check: _Check, expected: Any, value: Any, path: str, _: Mapping[str, Any]) -> Problems:
    names = [name for name in ([expected] if isinstance(expected, str) else expected[:_SHOWN]) if isinstance(name, str)]
    known = [_TYPES[name] for name in names if name in _TYPES]
    if known and not any(is_one(value) for is_one in known):
        yield f"{path}: expected {' or '.join(names)}, got {_kind(value)}"


def _enum(check: _Check, expected: list[Any], value: Any, path: str, _: Mapping[str, Any]) -> Problems:
    if isinstance(value, list | dict):
        check.spend(len(expected), path)
        accepted = any(_same(option, value) for option in expected)
    else:
        accepted = (isinstance(value, bool), value) in check.options(expected)
    if not accepted:
        more = ", …" if len(expected) > _SHOWN else ""
        yield f"{path}: expected one of {', '.join(map(_as_text, expected[:_SHOWN]))}{more}, got {_as_text(value)}"


def _const(_check: _Check, expected: Any, value: Any, path: str, _: Mapping[str, Any]) -> Problems:
    if not _same(expected, value):
        yield f"{path}: expected {_as_text(expected)}, got {_as_text(value)}"


def _all_of(check: _Check, expected: list[Any], value: Any, path: str, _: Mapping[str, Any]) -> Problems:
    for part in expected:
        yield from check.problems(part, value, path)


def _any_of(check: _Check, expected: list[Any], value: Any, path: str, _: Mapping[str, Any]) -> Problems:
    reasons = []
    for part in expected:
        reason = check.first(part, value, path)
        if reason is None:
            return
        reasons.append(reason)
    yield _none_fits(reasons, path)


def _one_of(check: _Check, expected: list[Any], value: Any, path: str, _: Mapping[str, Any]) -> Problems:
    reasons = [reason for reason in (check.first(part, value, path) for part in expected) if reason is not None]
    fitting = len(expected) - len(reasons)
    if fitting == 0:
        yield _none_fits(reasons, path)
    elif fitting > 1:
        yield f"{path}: {fitting} alternatives fit where exactly one may"


def _none_fits(reasons: Sequence[str], path: str) -> str:
    shown = [reason if len(reason) <= 3 * _SHOWN else f"{reason[: 3 * _SHOWN]}…" for reason in reasons[:_SHOWN]]
    return f"{path}: none of the alternatives fits ({'; '.join(shown)})"


def _not(check: _Check, expected: Any, value: Any, path: str, _: Mapping[str, Any]) -> Problems:
    if check.accepts(expected, value):
        yield f"{path}: {_as_text(value)} is not allowed here"


def _if(check: _Check, expected: Any, value: Any, path: str, schema: Mapping[str, Any]) -> Problems:
    branch = "then" if check.accepts(expected, value) else "else"
    yield from check.problems(schema.get(branch, True), value, path)


def _properties(check: _Check, expected: Mapping[str, Any], value: Any, path: str, _: Mapping[str, Any]) -> Problems:
    if isinstance(value, dict):
        check.spend(len(expected) // 10, path)
        for name, inner in expected.items():
            if name in value:
                yield from check.problems(inner, value[name], _within(path, name))


def _required(_check: _Check, expected: list[Any], value: Any, path: str, _: Mapping[str, Any]) -> Problems:
    if isinstance(value, dict):
        yield from (f"{path}: {name!r} is missing" for name in expected if isinstance(name, str) and name not in value)


def _pattern_properties(
    check: _Check, expected: Mapping[str, Any], value: Any, path: str, _: Mapping[str, Any]
) -> Problems:
    if isinstance(value, dict):
        for pattern, inner in expected.items():
            check.spend(len(value), path)
            for name in value:
                if matches(pattern, name):
                    yield from check.problems(inner, value[name], _within(path, name))


def _additional(check: _Check, expected: Any, value: Any, path: str, schema: Mapping[str, Any]) -> Problems:
    if not isinstance(value, dict):
        return
    known, patterns = schema.get("properties"), schema.get("patternProperties")
    known = known if isinstance(known, Mapping) else {}
    patterns = patterns if isinstance(patterns, Mapping) else {}
    for name in value:
        check.spend(len(patterns), path)
        if name in known or any(matches(pattern, name) for pattern in patterns):
            continue
        if expected is False:
            some = ", ".join(list(known)[:_SHOWN])
            yield f"{path}: unknown name {name[:_SHOWN]!r}; known: {some or 'none'}"
        else:
            yield from check.problems(expected, value[name], _within(path, name))


def _property_names(check: _Check, expected: Any, value: Any, path: str, _: Mapping[str, Any]) -> Problems:
    if isinstance(value, dict):
        for name in value:
            yield from check.problems(expected, name, f"{path} (name {name[:_SHOWN]!r})")


def _dependent_required(
    _check: _Check, expected: Mapping[str, Any], value: Any, path: str, _: Mapping[str, Any]
) -> Problems:
    if isinstance(value, dict):
        for name, others in expected.items():
            if name in value and isinstance(others, list):
                missing = (other for other in others if isinstance(other, str) and other not in value)
                yield from (f"{path}: {name!r} needs {other!r}" for other in missing)


def _prefix_items(check: _Check, expected: list[Any], value: Any, path: str, _: Mapping[str, Any]) -> Problems:
    if isinstance(value, list):
        for index, (inner, item) in enumerate(zip(expected, value, strict=False)):
            yield from check.problems(inner, item, f"{path}[{index}]")


def _items(check: _Check, expected: Any, value: Any, path: str, schema: Mapping[str, Any]) -> Problems:
    if isinstance(expected, list):  # drafts up to 2019-09
        yield from _prefix_items(check, expected, value, path, schema)
    elif isinstance(value, list):
        prefix = schema.get("prefixItems")
        start = len(prefix) if isinstance(prefix, list) else 0
        for index, item in enumerate(value[start:], start):
            yield from check.problems(expected, item, f"{path}[{index}]")


def _contains(check: _Check, expected: Any, value: Any, path: str, schema: Mapping[str, Any]) -> Problems:
    if isinstance(value, list):
        count = sum(check.accepts(expected, item) for item in value)
        least, most = schema.get("minContains", 1), schema.get("maxContains", len(value))
        if (_number(least) and count < least) or (_number(most) and count > most):
            yield f"{path}: {count} elements match `contains`"


def _unique(_check: _Check, expected: bool, value: Any, path: str, _: Mapping[str, Any]) -> Problems:  # noqa: FBT001
    if expected and isinstance(value, list):
        texts = [_identity(item) for item in value]
        if len(set(texts)) < len(texts):
            yield f"{path}: elements must differ from each other"


def _identity(value: Any) -> str:
    try:
        return compact_text(value)
    except (EncodeError, UnicodeEncodeError, OverflowError):  # values that JSON cannot express, but repr can
        return repr(value)


def _pattern(_check: _Check, expected: str, value: Any, path: str, _: Mapping[str, Any]) -> Problems:
    if isinstance(value, str) and not matches(expected, value):
        yield f"{path}: expected text that matches {expected[: 4 * _SHOWN]}, got {_as_text(value)}"


def _bound(words: str, measured: Callable[[Any], Any], holds: Callable[[Any, Any], bool]) -> Keyword:
    """Return a keyword that compares a measure of the value with a number; a measure of None means not applicable."""

    def check(_check: _Check, expected: Any, value: Any, path: str, _: Mapping[str, Any]) -> Problems:
        measure = measured(value)
        if measure is not None and _number(expected) and not holds(measure, expected):
            yield f"{path}: expected {words.format(_as_text(expected))}, got {_as_text(value)}"

    return check


def _as_number(value: Any) -> Any:
    return value if _number(value) else None


def _length(kind: type[Sized]) -> Callable[[Any], Any]:
    return lambda value: len(value) if isinstance(value, kind) else None


def _is_multiple(value: Any, step: Any) -> bool:
    # Through decimals, because 0.3 % 0.1 is not 0 in binary; through their digits, because 1e300 / 0.01 has more of
    # them than a division of decimals keeps.
    dividend, step_value = _decimal(value), _decimal(step)
    if not dividend.is_finite() or not step_value.is_finite():
        return False
    if not dividend or not step_value:
        return True
    (_, digits, exponent), (_, step_digits, step_exponent) = dividend.as_tuple(), step_value.as_tuple()
    if max(len(digits), len(step_digits)) > _MOST_DIGITS:
        return False
    number, divisor = _whole(digits), _whole(step_digits)
    shift = int(exponent) - int(step_exponent)
    if shift >= 0:
        return number * pow(10, shift, divisor) % divisor == 0
    return -shift <= len(digits) and number % (divisor * 10**-shift) == 0


def _decimal(value: Any) -> Decimal:
    return Decimal(str(value)) if isinstance(value, float) else Decimal(value)


def _whole(digits: Sequence[int]) -> int:
    return int(Decimal((0, tuple(digits), 0)))


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
_SHAPES: Mapping[str, Any] = {
    "$ref": str,
    "type": (str, list),
    "pattern": str,
    "uniqueItems": bool,
    **dict.fromkeys(("enum", "required", "allOf", "anyOf", "oneOf", "prefixItems"), list),
    **dict.fromkeys(("properties", "patternProperties", "dependentRequired"), Mapping),
}
"""The required type of a keyword's own value; a value of another type is ignored."""
