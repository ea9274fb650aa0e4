"""Shapes, and the reader that checks a body against them.

A *shape* describes what a value in a JSON body may be. Shapes are data; how a server words its complaint is data too
(`Dialect`), so one reader serves all formats. Reading happens in two steps, as on the real servers: first the shape of
the whole body, and only when that holds, the rules between its parts (pairing, order, combinations), which may then
trust the shape.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Protocol, TypeAlias

JsonObject: TypeAlias = Mapping[str, object]


class Tag(str):
    """A path step that names the chosen variant of a union: pydantic-style servers spell it, JSON paths do not."""

    __slots__ = ()


Path: TypeAlias = tuple[str | int, ...]

ROOT: Path = ()
# Bodies may be huge; quotations in messages are limited.
LONGEST_QUOTE = 80


@dataclass(frozen=True, slots=True)
class Violation:
    """One reason to refuse a body: where (JSON path), the server's complaint in our words, its code, its status."""

    path: str
    message: str
    code: str | None
    status: int = 400


def json_path(path: Path) -> str:
    steps = ["$"]
    for step in path:
        if isinstance(step, Tag):
            continue
        if isinstance(step, int):
            steps.append(f"[{step}]")
        elif re.fullmatch(r"[A-Za-z_$][\w$-]*", step):
            steps.append(f".{step}")
        else:
            steps.append(f"[{step!r}]")
    return "".join(steps)


def bracket_path(path: Path) -> str:
    """`messages[3].content[0]`: the spelling of OpenAI and Google."""
    return json_path(path).removeprefix("$").removeprefix(".")


def dotted_path(path: Path) -> str:
    """`messages.3.content.0.text`: the spelling of Anthropic, variant names included."""
    return ".".join(str(step) for step in path)


def json_type(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list() | tuple():
            return "array"
        case Mapping():
            return "object"
    return type(value).__name__


def quote(value: object) -> str:
    spelled = (
        value if isinstance(value, str) else f"{value!r}" if not isinstance(value, list | dict) else json_type(value)
    )
    return spelled if len(spelled) <= LONGEST_QUOTE else spelled[:LONGEST_QUOTE] + "..."


def comma_list(values: Iterable[object]) -> str:
    return ", ".join(f"'{value}'" for value in values)


class Fault(Enum):
    """Everything that can be wrong with a shape."""

    UNKNOWN_KEY = auto()
    MISSING = auto()
    NULL = auto()
    WRONG_TYPE = auto()
    NOT_ONE_OF = auto()
    UNKNOWN_TAG = auto()
    TOO_SMALL = auto()
    TOO_LARGE = auto()
    TOO_SHORT = auto()
    TOO_LONG = auto()
    TOO_FEW = auto()
    TOO_MANY = auto()
    PATTERN = auto()


def same(name: str) -> str:
    return name


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one server reads JSON and words its complaints.

    `wording` maps each fault to a template and a code. A template may use `where` (the spelled path), `parent` (the
    spelled path of the enclosing object), `name` (the last step), `got`, `got_type`, `expected`, `limit`; a code may
    use `expected`.
    """

    spell: Callable[[Path], str]
    wording: Mapping[Fault, tuple[str, str | None]]
    type_names: Mapping[str, str]
    status: int = 400
    known_as: Callable[[str], str] = same
    enum_known_as: Callable[[str], str] = same
    null_is_absent: bool = False
    lone_item_is_array: bool = False
    enum_may_be_number: bool = False
    unknown_keys_pass: bool = False

    def violation(
        self, fault: Fault, path: Path, *, got: object = "", expected: str = "", limit: object = ""
    ) -> Violation:
        template, code = self.wording[fault]
        name = path[-1] if path else ""
        code = code and code.format(expected=expected)
        message = template.format(
            where=self.spell(path),
            parent=self.spell(path[:-1]),
            name=name,
            got=quote(got),
            got_type=self.type_names.get(json_type(got), json_type(got)),
            expected=expected,
            limit=limit,
        )
        return Violation(json_path(path), message, code, self.status)


class Shape(Protocol):
    def read(self, reader: Reader, path: Path, value: object, /) -> object:
        """Reports what is wrong with `value`; returns it normalised (aliases, nulls)."""


@dataclass(slots=True)
class Reader:
    """Collects the faults of one body."""

    dialect: Dialect
    violations: list[Violation] = field(default_factory=list)

    def fault(self, fault: Fault, path: Path, *, got: object = "", expected: str = "", limit: object = "") -> None:
        self.violations.append(self.dialect.violation(fault, path, got=got, expected=expected, limit=limit))

    def wrong_type(self, path: Path, value: object, expected: str) -> None:
        fault = Fault.NULL if value is None else Fault.WRONG_TYPE
        self.fault(fault, path, got=value, expected=self.dialect.type_names.get(expected, expected))


@dataclass(frozen=True, slots=True)
class Anything:
    """Any value: the server does not check it."""

    def read(self, _reader: Reader, _path: Path, value: object) -> object:
        return value


@dataclass(frozen=True, slots=True)
class Text:
    pattern: str | None = None
    at_least: int = 0
    at_most: int | None = None

    def read(self, reader: Reader, path: Path, value: object) -> object:
        if not isinstance(value, str):
            reader.wrong_type(path, value, "string")
        elif len(value) < self.at_least:
            reader.fault(Fault.TOO_SHORT, path, got=len(value), limit=self.at_least)
        elif self.at_most is not None and len(value) > self.at_most:
            reader.fault(Fault.TOO_LONG, path, got=len(value), limit=self.at_most)
        elif self.pattern is not None and not re.fullmatch(self.pattern, value):
            reader.fault(Fault.PATTERN, path, got=value, expected=self.pattern)
        return value


@dataclass(frozen=True, slots=True)
class Boolean:
    def read(self, reader: Reader, path: Path, value: object) -> object:
        if not isinstance(value, bool):
            reader.wrong_type(path, value, "boolean")
        return value


@dataclass(frozen=True, slots=True)
class Number:
    at_least: float | None = None
    at_most: float | None = None
    whole: bool = False
    # Google's int64 travels as a JSON string.
    may_be_text: bool = False

    def read(self, reader: Reader, path: Path, value: object) -> object:
        number = self._number(value)
        if number is None:
            reader.wrong_type(path, value, "integer" if self.whole else "number")
        elif self.at_least is not None and number < self.at_least:
            reader.fault(Fault.TOO_SMALL, path, got=value, limit=self.at_least, expected=self._kind)
        elif self.at_most is not None and number > self.at_most:
            reader.fault(Fault.TOO_LARGE, path, got=value, limit=self.at_most, expected=self._kind)
        return value

    @property
    def _kind(self) -> str:
        return "integer" if self.whole else "decimal"

    def _number(self, value: object) -> float | None:
        if self.may_be_text and isinstance(value, str) and re.fullmatch(r"-?\d{1,20}(\.\d+)?", value):
            return float(value)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        if self.whole and isinstance(value, float) and not value.is_integer():
            return None
        return value


@dataclass(frozen=True, slots=True)
class Choice:
    values: tuple[object, ...]

    def read(self, reader: Reader, path: Path, value: object) -> object:
        if isinstance(value, int) and not isinstance(value, bool) and reader.dialect.enum_may_be_number:
            return value
        known = reader.dialect.enum_known_as(value) if isinstance(value, str) else value
        if known in self.values and type(known) in {type(allowed) for allowed in self.values}:
            return known
        if json_type(value) not in {json_type(allowed) for allowed in self.values}:
            reader.wrong_type(path, value, json_type(self.values[0]))
        else:
            reader.fault(Fault.NOT_ONE_OF, path, got=value, expected=comma_list(self.values))
        return value


@dataclass(frozen=True, slots=True)
class Array:
    item: Shape
    at_least: int = 0
    at_most: int | None = None

    def read(self, reader: Reader, path: Path, value: object) -> object:
        if not isinstance(value, list):
            if not reader.dialect.lone_item_is_array or value is None:
                reader.wrong_type(path, value, "array")
                return value
            value = [value]
        if len(value) < self.at_least:
            reader.fault(Fault.TOO_FEW, path, got=len(value), limit=self.at_least)
        elif self.at_most is not None and len(value) > self.at_most:
            reader.fault(Fault.TOO_MANY, path, got=len(value), limit=self.at_most)
        return [self.item.read(reader, (*path, index), item) for index, item in enumerate(value)]


@dataclass(frozen=True, slots=True)
class Map:
    """An object whose keys the user chooses."""

    item: Shape
    at_most: int | None = None

    def read(self, reader: Reader, path: Path, value: object) -> object:
        if not isinstance(value, Mapping):
            reader.wrong_type(path, value, "object")
            return value
        if self.at_most is not None and len(value) > self.at_most:
            reader.fault(Fault.TOO_MANY, path, got=len(value), limit=self.at_most)
        return {key: self.item.read(reader, (*path, key), item) for key, item in value.items()}


@dataclass(frozen=True, slots=True)
class OrNull:
    shape: Shape

    def read(self, reader: Reader, path: Path, value: object) -> object:
        return None if value is None else self.shape.read(reader, path, value)


@dataclass(frozen=True, slots=True)
class Struct:
    """A typed object: what is not listed is refused."""

    fields: Mapping[str, Shape]
    required: frozenset[str] = frozenset()

    def read(self, reader: Reader, path: Path, value: object) -> object:
        if not isinstance(value, Mapping):
            reader.wrong_type(path, value, "object")
            return value
        known: dict[str, object] = {}
        for key, item in value.items():
            name = reader.dialect.known_as(key)
            if reader.dialect.null_is_absent and item is None and name in self.fields:
                continue
            if name in self.fields:
                known[name] = self.fields[name].read(reader, (*path, name), item)
            elif not reader.dialect.unknown_keys_pass:
                reader.fault(Fault.UNKNOWN_KEY, (*path, key))
        for name in self.fields:
            if name in self.required and name not in known:
                reader.fault(Fault.MISSING, (*path, name))
        return known


@dataclass(frozen=True, slots=True)
class Tagged:
    """An object whose `key` says which struct it is. `default` is the variant of an object without that key."""

    key: str
    variants: Mapping[str, Shape]
    default: str | None = None
    # New variants appear in responses without notice: unknown ones are accepted.
    unknown_variants_pass: bool = False

    def read(self, reader: Reader, path: Path, value: object) -> object:
        if not isinstance(value, Mapping):
            reader.wrong_type(path, value, "object")
            return value
        tag = value.get(self.key)
        if tag is None:
            tag = self.default
        if tag is None:
            reader.fault(Fault.MISSING, (*path, self.key))
        elif isinstance(tag, str) and tag in self.variants:
            return self.variants[tag].read(reader, (*path, Tag(tag)), value)
        elif not (self.unknown_variants_pass and isinstance(tag, str)):
            reader.fault(Fault.UNKNOWN_TAG, (*path, self.key), got=tag, expected=comma_list(self.variants))
        return value


@dataclass(frozen=True, slots=True)
class ByType:
    """A value of several JSON types, each with its own shape."""

    shapes: Mapping[str, Shape]

    def read(self, reader: Reader, path: Path, value: object) -> object:
        shape = self.shapes.get(json_type(value))
        if shape is None:
            reader.wrong_type(path, value, next(iter(self.shapes)))
            return value
        return shape.read(reader, path, value)


@dataclass(frozen=True, slots=True)
class Later:
    """A shape that is defined later, for recursive shapes."""

    shape: Callable[[], Shape]

    def read(self, reader: Reader, path: Path, value: object) -> object:
        return self.shape().read(reader, path, value)


ANYTHING = Anything()
TEXT = Text()
NON_EMPTY = Text(at_least=1)
BOOLEAN = Boolean()
NUMBER = Number()
INTEGER = Number(whole=True)
COUNT = Number(at_least=0, whole=True)
OBJECT = Map(ANYTHING)
TEXTS = Array(TEXT)


def choice(*values: object) -> Choice:
    return Choice(values)


def text_or_array(item: Shape, *, at_least: int = 0) -> ByType:
    return ByType({"string": TEXT, "array": Array(item, at_least=at_least)})


def struct(
    *,
    required: Mapping[str, Shape] | None = None,
    optional: Mapping[str, Shape] | None = None,
    nullable: Mapping[str, Shape] | None = None,
) -> Struct:
    """`nullable` fields may be absent, null, or of their shape."""
    fields: dict[str, Shape] = {**(required or {}), **(optional or {})}
    fields.update({name: OrNull(shape) for name, shape in (nullable or {}).items()})
    return Struct(fields, frozenset(required or ()))


def tagged(key: str, variants: Mapping[str, Shape], *, default: str | None = None) -> Tagged:
    """Shapes distinguished by `key`, which is added to each struct as a field."""
    return Tagged(key, {tag: _with_key(key, variant) for tag, variant in variants.items()}, default)


def open_tagged(key: str, variants: Mapping[str, Shape]) -> Tagged:
    """As `tagged`, for places where new variants appear without warning."""
    shapes = {tag: _with_key(key, variant) for tag, variant in variants.items()}
    return Tagged(key, shapes, unknown_variants_pass=True)


def _with_key(key: str, variant: Shape) -> Shape:
    if not isinstance(variant, Struct):
        return variant
    return Struct({key: ANYTHING, **variant.fields}, variant.required)


def read(shape: Shape, dialect: Dialect, body: object) -> tuple[object, tuple[Violation, ...]]:
    reader = Reader(dialect)
    value = shape.read(reader, ROOT, body)
    return value, tuple(reader.violations)


# --- looking into a body whose shape is known to hold -------------------------------------------------------------


def object_at(value: object, *keys: str) -> JsonObject:
    """The object under `keys`, or an empty one."""
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def objects_at(value: object, *keys: str) -> Sequence[JsonObject]:
    """The objects of the array under `keys`; other values count as empty objects."""
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return [item if isinstance(item, Mapping) else {} for item in value] if isinstance(value, list) else []


def text_at(value: object, *keys: str) -> str:
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, str) else ""


def number_at(value: object, *keys: str) -> float:
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else 0


def texts_at(value: object, *keys: str) -> Sequence[str]:
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


# --- JSON Schema --------------------------------------------------------------------------------------------------

SCHEMA_MAPS = ("properties", "$defs", "definitions", "defs", "patternProperties", "dependentSchemas")
SCHEMA_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
SCHEMA_SINGLES = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames")


def walk_schema(schema: object, path: Path) -> Iterator[tuple[Path, JsonObject]]:
    """Every subschema, the root first. Not recursive: schemas may be nested deeper than our stack."""
    waiting: list[tuple[Path, object]] = [(path, schema)]
    while waiting:
        here, node = waiting.pop()
        if not isinstance(node, Mapping):
            continue
        yield here, node
        waiting.extend(reversed(list(_subschemas(here, node))))


def _subschemas(path: Path, node: JsonObject) -> Iterator[tuple[Path, object]]:
    for keyword in SCHEMA_MAPS:
        for name, subschema in object_at(node, keyword).items():
            yield (*path, keyword, name), subschema
    for keyword in SCHEMA_LISTS:
        for index, subschema in enumerate(objects_at(node, keyword)):
            yield (*path, keyword, index), subschema
    for keyword in SCHEMA_SINGLES:
        if isinstance(node.get(keyword), Mapping):
            yield (*path, keyword), node[keyword]


def types_of(node: JsonObject) -> frozenset[str]:
    declared = node.get("type")
    names = declared if isinstance(declared, list) else [declared]
    return frozenset(name.lower() for name in names if isinstance(name, str))


# --- answers ------------------------------------------------------------------------------------------------------

# A response that a strict client cannot read is the upstream's fault, as in a gateway's 502.
ANSWER_STATUS = 502
ANSWER_CODE = "invalid_response"

ANSWER = Dialect(
    spell=json_path,
    status=ANSWER_STATUS,
    type_names={},
    unknown_keys_pass=True,
    wording={
        Fault.UNKNOWN_KEY: ("unknown key - at {where}", ANSWER_CODE),
        Fault.MISSING: ("missing required key - at {where}", ANSWER_CODE),
        Fault.NULL: ("expected {expected}, got null - at {where}", ANSWER_CODE),
        Fault.WRONG_TYPE: ("expected {expected}, got {got_type} - at {where}", ANSWER_CODE),
        Fault.NOT_ONE_OF: ("expected one of {expected}, got '{got}' - at {where}", ANSWER_CODE),
        Fault.UNKNOWN_TAG: ("expected one of {expected}, got '{got}' - at {where}", ANSWER_CODE),
        Fault.TOO_SMALL: ("expected at least {limit}, got {got} - at {where}", ANSWER_CODE),
        Fault.TOO_LARGE: ("expected at most {limit}, got {got} - at {where}", ANSWER_CODE),
        Fault.TOO_SHORT: ("expected at least {limit} characters, got {got} - at {where}", ANSWER_CODE),
        Fault.TOO_LONG: ("expected at most {limit} characters, got {got} - at {where}", ANSWER_CODE),
        Fault.TOO_FEW: ("expected at least {limit} items, got {got} - at {where}", ANSWER_CODE),
        Fault.TOO_MANY: ("expected at most {limit} items, got {got} - at {where}", ANSWER_CODE),
        Fault.PATTERN: ("expected text matching {expected}, got '{got}' - at {where}", ANSWER_CODE),
    },
)


def bad_answer(path: Path, message: str) -> Violation:
    return Violation(json_path(path), f"{message} - at {json_path(path)}", ANSWER_CODE, ANSWER_STATUS)
