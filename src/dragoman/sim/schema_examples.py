"""Generates valid instances of JSON Schemas, filled from the user's text."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from dragoman.sim import prompt_reading
from dragoman.sim.conversation_view import JsonObject
from dragoman.sim.regex_examples import matching_text

# Beyond this depth, only required properties are written.
DEEPEST = 8
# A schema that requires itself has no instance: stop at this depth.
BOTTOM = 64

# Defaults if the text has no suitable value.
_EXAMPLES: dict[str, str] = {
    "email": "user@example.com",
    "uri": "https://example.com/",
    "url": "https://example.com/",
    "date-time": "2026-11-15T12:00:00Z",
    "date": "2026-11-15",
    "time": "12:00:00Z",
    "duration": "PT1H",
    "uuid": "00000000-0000-4000-8000-000000000000",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "hostname": "example.com",
    "byte": "AAAA",
}
# Parameters that get the whole request, not its subject.
_WHOLE_TEXT = re.compile(r"(?i)quer|question|prompt|text|message|content|input|body|instruction|expression|task")
# Parameters whose value an agent may run in a shell: they get what the user quoted, and never a guess.
_COMMAND = re.compile(r"(?i)(?:.*_)?(?:command|commands|cmd|script)")
_HARMLESS = "echo hello"
# Properties of an answer that get the prose.
_PROSE = re.compile(r"(?i)answer|summary|result|reply|response|explanation|conclusion|reason|note|text|message")


@dataclass(slots=True)
class Hints:
    """Values found in the text, used up in order."""

    text: str
    subjects: tuple[str, ...] = ()
    # The whole request and tool results, searched if the text has no value.
    context: str = ""
    # The answer in prose, for structured output; optional properties are then written too.
    prose: str | None = None
    _numbers: Iterator[float] = field(init=False)

    def __post_init__(self) -> None:
        self._numbers = iter(prompt_reading.numbers(self.text))

    def find_stated_value(self, name: str) -> str | None:
        return (
            prompt_reading.find_stated_value(name, self.text) or prompt_reading.find_stated_value(name, self.context)
            if name
            else None
        )

    def mentions(self, value: object) -> bool:
        if not isinstance(value, str) or not value:
            return False
        return prompt_reading.is_mentioned(value, self.text) or prompt_reading.is_mentioned(value, self.context)

    def next_number(self) -> float | None:
        return next(self._numbers, None)


def instance_of(schema: JsonObject, hints: Hints) -> object:
    return _Builder(schema, hints).value(schema, "", 0)


def arguments_for(schema: JsonObject, hints: Hints) -> dict[str, object]:
    """As `instance_of`, for the parameters of a function: always an object."""
    return _Builder(schema, hints).properties(schema, 0)


def _object_at(node: JsonObject, key: str) -> JsonObject:
    found = node.get(key)
    return found if isinstance(found, Mapping) else {}


def _list_at(node: JsonObject, key: str) -> list[object]:
    found = node.get(key)
    return found if isinstance(found, list) else []


def _number_at(node: JsonObject, key: str) -> float | None:
    """Google writes 64-bit integers as strings."""
    found = node.get(key)
    if isinstance(found, str) and re.fullmatch(r"-?\d+(\.\d+)?", found):
        return float(found)
    return float(found) if isinstance(found, int | float) and not isinstance(found, bool) else None


def _types(node: JsonObject) -> list[str]:
    declared = node.get("type")
    names = [name.lower() for name in (declared if isinstance(declared, list) else [declared]) if isinstance(name, str)]
    if not names:
        names = ["object" if "properties" in node else "array" if "items" in node else "string"]
    return [*names, "null"] if node.get("nullable") is True and "null" not in names else names


@dataclass(slots=True)
class _Builder:
    root: JsonObject
    hints: Hints

    def value(self, schema: object, name: str, depth: int) -> object:
        node = self._resolve(schema, depth)
        if "const" in node:
            return node["const"]
        if values := _list_at(node, "enum"):
            return self._one_of(values, node)
        kinds = _types(node)
        if depth > BOTTOM:
            return None
        if "null" in kinds and (depth > DEEPEST or not self._is_mentioned(name, node)):
            return None
        kind = next((kind for kind in kinds if kind != "null"), "null")
        writers: dict[str, Callable[[], object]] = {
            "object": lambda: self.properties(node, depth),
            "array": lambda: self._array(node, name, depth),
            "integer": lambda: self._number(node, name, whole=True),
            "number": lambda: self._number(node, name, whole=False),
            "boolean": lambda: self._boolean(node, name),
            "null": lambda: None,
        }
        return writers.get(kind, lambda: self._text(node, name))()

    # --- which schema ---------------------------------------------------------------------------------------------

    def _resolve(self, schema: object, depth: int) -> JsonObject:
        """Resolves references, chooses one alternative and merges conjunctions."""
        node: JsonObject = schema if isinstance(schema, Mapping) else {}
        for _ in range(DEEPEST * 4):
            reference = node.get("$ref", node.get("ref"))
            if isinstance(reference, str):
                rest = {key: value for key, value in node.items() if key not in ("$ref", "ref")}
                node = _join_schemas([self._target(reference), rest])
            elif branches := _list_at(node, "anyOf") or _list_at(node, "oneOf"):
                rest = {key: value for key, value in node.items() if key not in ("anyOf", "oneOf")}
                node = _join_schemas([rest, *self._branch(branches, depth)])
            elif every := _list_at(node, "allOf"):
                rest = {key: value for key, value in node.items() if key != "allOf"}
                node = _join_schemas([rest, *(one for one in every if isinstance(one, Mapping))])
            else:
                break
        return node

    def _target(self, reference: str) -> JsonObject:
        node: object = self.root
        for step in reference.removeprefix("#").split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            node = node.get(name) if isinstance(node, Mapping) else None
        return node if isinstance(node, Mapping) else {}

    def _branch(self, branches: list[object], depth: int) -> list[JsonObject]:
        """The first branch that is not null; null is added as a type, so that null stays possible."""
        known = [branch for branch in branches if isinstance(branch, Mapping)]
        nulls = [branch for branch in known if branch.get("type") in ("null", "NULL")]
        others = [branch for branch in known if branch not in nulls]
        if nulls and (depth > DEEPEST or not others):
            return [{"type": "null"}]
        flat = [branch for branch in others if "$ref" not in branch and branch.get("type") not in ("object", "array")]
        chosen = (flat if depth > DEEPEST and flat else others)[:1]
        return [*chosen, {"nullable": True}] if nulls else chosen

    def _is_mentioned(self, name: str, node: JsonObject) -> bool:
        """Whether the text mentions this parameter; if not, null is used where it is allowed."""
        if self.hints.prose is not None or not name:
            return True
        if self.hints.find_stated_value(name) is not None:
            return True
        if any(self.hints.mentions(value) for value in _list_at(node, "enum")):
            return True
        declared = node.get("format")
        return isinstance(declared, str) and declared in prompt_reading.FORMATS and bool(self._find_in_prompt(declared))

    def _find_in_prompt(self, kind: str) -> str | None:
        found = prompt_reading.FORMATS[kind].search(self.hints.text) or prompt_reading.FORMATS[kind].search(
            self.hints.context
        )
        return found[0] if found else None

    # --- values ---------------------------------------------------------------------------------------------------

    def _one_of(self, values: list[object], node: JsonObject) -> object:
        for value in values:
            if self.hints.mentions(value):
                return value
        if "default" in node and node["default"] in values:
            return node["default"]
        return values[0]

    def properties(self, schema: JsonObject, depth: int) -> dict[str, object]:
        node = self._resolve(schema, depth)
        described = _object_at(node, "properties")
        required = [name for name in _list_at(node, "required") if isinstance(name, str)]
        built: dict[str, object] = {}
        for name, subschema in described.items():
            if name in required or self._is_worth_writing(name, subschema, depth):
                built[name] = self.value(subschema, name, depth + 1)
        for name in required:
            if name not in built:
                built[name] = self.value(node.get("additionalProperties"), name, depth + 1)
        return self._with_enough_properties(node, built, depth)

    def _with_enough_properties(self, node: JsonObject, built: dict[str, object], depth: int) -> dict[str, object]:
        least = int(_number_at(node, "minProperties") or 0)
        described = _object_at(node, "properties")
        invented = (f"key{number}" for number in range(1, least + 1))
        for name in (*described, *invented):
            if len(built) >= least:
                break
            if name not in built:
                built[name] = self.value(described.get(name, node.get("additionalProperties")), name, depth + 1)
        return built

    def _is_worth_writing(self, name: str, subschema: object, depth: int) -> bool:
        if depth > DEEPEST:
            return False
        if self.hints.prose is not None:
            return depth < DEEPEST // 2
        return self._is_mentioned(name, self._resolve(subschema, depth))

    def _array(self, node: JsonObject, name: str, depth: int) -> list[object]:
        least = int(_number_at(node, "minItems") or 0)
        most = int(most) if (most := _number_at(node, "maxItems")) is not None else None
        tuple_items = _list_at(node, "prefixItems")
        if tuple_items:
            return [self.value(item, name, depth + 1) for item in tuple_items]
        item = self._resolve(node.get("items"), depth)
        wanted = self._items(item, name, max(least, 0 if depth > DEEPEST else 1), depth)
        unique = node.get("uniqueItems") is True
        values = list(_without_repeats(wanted)) if unique else wanted
        return values if most is None else values[:most]

    def _items(self, item: JsonObject, name: str, least: int, depth: int) -> list[object]:
        if values := _list_at(item, "enum"):
            mentioned = [value for value in values if self.hints.mentions(value)]
            repeated = values * (max(least, 1) // len(values) + 1)
            return mentioned if len(mentioned) >= least else repeated[: max(least, 1)]
        kind = "const" if "const" in item else _types(item)[0]
        if kind == "string" and _COMMAND.fullmatch(name):
            return [self._fit_text(word, item) for word in self._command().split()]
        if kind == "string" and "format" not in item:
            offered = list(self.hints.subjects) or prompt_reading.subjects(self.hints.text)
            texts = [self._fit_text(subject, item) for subject in offered]
            return [*texts, *(self._fit_text(f"item {number}", item) for number in range(len(texts) + 1, least + 1))]
        if kind in ("integer", "number"):
            numbers = [*prompt_reading.numbers(self.hints.text)]
            numbers.extend(float(extra) for extra in range(len(numbers), least))
            return [_fit_number(number, item, whole=kind == "integer") for number in numbers]
        return [self.value(item, name, depth + 1) for _ in range(least)]

    def _number(self, node: JsonObject, name: str, *, whole: bool) -> float:
        stated = self.hints.find_stated_value(name)
        given = prompt_reading.numbers(stated) if stated else []
        number = given[0] if given else self.hints.next_number()
        if number is None:
            number = _number_at(node, "default")
        return _fit_number(1.0 if number is None else number, node, whole=whole)

    def _boolean(self, node: JsonObject, name: str) -> bool:
        stated = (self.hints.find_stated_value(name) or "").lower()
        if stated.startswith(("false", "no", "off")):
            return False
        if stated.startswith(("true", "yes", "on")):
            return True
        default = node.get("default")
        if isinstance(default, bool):
            return default
        stems = prompt_reading.significant_stems
        return prompt_reading.overlap(stems(name), stems(self.hints.text)) > 0

    def _text(self, node: JsonObject, name: str) -> str:
        declared = node.get("format")
        stated = self.hints.find_stated_value(name)
        if isinstance(declared, str) and declared in _EXAMPLES:
            kind = "uri" if declared == "url" else declared
            return (self._find_in_prompt(kind) if kind in prompt_reading.FORMATS else None) or _EXAMPLES[declared]
        if _COMMAND.fullmatch(name):
            return self._fit_text(self._command(), node)
        if stated:
            return self._fit_text(stated, node)
        if self.hints.prose is not None and _PROSE.search(name):
            return self._fit_text(self.hints.prose, node)
        if _WHOLE_TEXT.search(name) and not prompt_reading.quotations(self.hints.text):
            return self._fit_text(self.hints.text.strip(), node)
        subjects = self.hints.subjects or tuple(prompt_reading.subjects(self.hints.text))
        default = node.get("default")
        fallback = default if isinstance(default, str) else self.hints.text.strip() or name or "text"
        return self._fit_text(subjects[0] if subjects else fallback, node)

    def _command(self) -> str:
        quoted = prompt_reading.quotations(self.hints.text)
        return next((one for one in (*self.hints.subjects, *quoted) if one in quoted), _HARMLESS)

    def _fit_text(self, text: str, node: JsonObject) -> str:
        least = int(_number_at(node, "minLength") or 0)
        most = _number_at(node, "maxLength")
        pattern = node.get("pattern")
        fitted = text if most is None else text[: int(most)]
        if len(fitted) < least:
            fitted = fitted.ljust(least, "x")
        if isinstance(pattern, str) and not _matches(pattern, fitted):
            upper = [fitted.upper(), fitted.lower(), fitted.replace(" ", "_"), fitted.replace(" ", "-")]
            return next((one for one in upper if _matches(pattern, one)), matching_text(pattern) or fitted)
        return fitted


def _matches(pattern: str, text: str) -> bool:
    try:
        return re.search(pattern, text) is not None
    except re.error:
        return True


def _fit_number(number: float, node: JsonObject, *, whole: bool) -> float:
    step = _number_at(node, "multipleOf") or (1.0 if whole else None)
    low, high = _bounds(node, step or 0.5)
    number = min(max(number, low), high)
    if step:
        number = round(number / step) * step
        number += step if number < low else -step if number > high else 0
    return int(number) if whole or number.is_integer() else number


def _bounds(node: JsonObject, step: float) -> tuple[float, float]:
    """Inclusive bounds; an exclusive one is moved by a step. Drafts before 6 say `exclusiveMinimum: true`."""
    low = _number_at(node, "minimum")
    high = _number_at(node, "maximum")
    above = low if node.get("exclusiveMinimum") is True else _number_at(node, "exclusiveMinimum")
    below = high if node.get("exclusiveMaximum") is True else _number_at(node, "exclusiveMaximum")
    lows = [bound for bound in (low, None if above is None else above + step) if bound is not None]
    highs = [bound for bound in (high, None if below is None else below - step) if bound is not None]
    return max(lows, default=-math.inf), min(highs, default=math.inf)


def _join_schemas(schemas: list[JsonObject]) -> JsonObject:
    """Merges schemas into one that requires what all of them require."""
    joined: dict[str, object] = {}
    for schema in schemas:
        for key, value in schema.items():
            if key == "properties":
                joined[key] = {**_object_at(joined, key), **_object_at(schema, key)}
            elif key == "required":
                joined[key] = list(dict.fromkeys([*_list_at(joined, key), *_list_at(schema, key)]))
            else:
                joined[key] = value
    return joined


def _without_repeats(values: Iterable[object]) -> Iterator[object]:
    seen: list[object] = []
    for value in values:
        if value not in seen:
            seen.append(value)
            yield value
