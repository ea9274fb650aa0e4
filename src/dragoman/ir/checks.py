"""Checks of values built by users: every field against its annotation, then the rules of its class.

Loaded by the first call of a `Checked` class, so decoding alone never loads it. Every problem is an `InvalidValue`
with the path of the field, what was expected and what was found.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from math import isfinite
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    NamedTuple,
    NoReturn,
    TypeAlias,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
)
from typing import get_type_hints as annotations_of

from msgspec import NODEFAULT, UNSET, Meta, Raw, Struct

from dragoman.errors import DragomanError, InvalidType, InvalidValue
from dragoman.ir.values import Value, encode_finite, exact_json, exact_object, to_raw

S = TypeVar("S", bound=Struct)
Given: TypeAlias = dict[str, Any]
Check: TypeAlias = Callable[[Any, str], Any]
"""Returns the value as it is stored, or raises: (value, path) -> value."""

_SHOWN: Final = 60


class Plan(NamedTuple):
    """How the arguments of one class are checked."""

    prepare: Callable[[Given], None] | None
    fields: Mapping[str, Check]
    required: tuple[str, ...]
    confirm: Callable[[Given], None] | None


@cache
def plan_of(kind: type[Struct]) -> Plan:
    from dragoman.ir.rules import CONFIRM, FIELDS, PREPARE  # noqa: PLC0415 - the rules use the checks

    fields = {name: FIELDS.get((kind, name)) or check_of(hint) for name, hint in hints_of(kind).items()}
    return Plan(PREPARE.get(kind), fields, _required_fields(kind), CONFIRM.get(kind))


def construct(kind: type[S], args: tuple[Any, ...], kwargs: Given) -> S:
    """Builds a value from constructor arguments; the error names the wrong one."""
    plan = plan_of(kind)
    given = _bind(kind, plan, args, kwargs)
    if plan.prepare is not None:
        plan.prepare(given)
    name, fields = kind.__name__, plan.fields
    for field, value in given.items():
        given[field] = fields[field](value, f"{name}.{field}")
    for field in plan.required:
        if field not in given:
            refuse_type(f"{name}.{field}", noun_of(hints_of(kind)[field]), NOTHING)
    if plan.confirm is not None:
        plan.confirm(given)
    return kind(**given)


def _bind(kind: type[Struct], plan: Plan, args: tuple[Any, ...], kwargs: Given) -> Given:
    names = kind.__struct_fields__
    if len(args) > len(names):
        found = Found(f"{len(args)} arguments")
        refuse_type(kind.__name__, f"at most {len(names)} arguments ({', '.join(names)})", found)
    given = dict(zip(names, args, strict=False))
    for name in kwargs:
        if name not in plan.fields:
            refuse_type(f"{kind.__name__}.{name}", f"one of the fields {', '.join(names)}", Found("an unknown field"))
        if name in given:
            refuse_type(f"{kind.__name__}.{name}", "the field once", Found("the field twice"))
    return given | kwargs


def _required_fields(kind: type[Struct]) -> tuple[str, ...]:
    names, defaults = kind.__struct_fields__, kind.__struct_defaults__
    optional = {
        name
        for name, default in zip(names[len(names) - len(defaults) :], defaults, strict=True)
        if default is not NODEFAULT
    }
    return tuple(name for name in names if name not in optional)


# ── messages ──────────────────────────────────────────────────────────────────────────────────────────────────


class Found(str):
    """A description of what was found, used verbatim in messages."""

    __slots__ = ()


NOTHING: Final = Found("nothing")


def refuse_type(path: str, expected: str, found: Any, hint: str = "") -> NoReturn:
    raise InvalidType(path=path, expected=expected, found=describe(found), hint=hint)


def refuse(path: str, expected: str, found: Any, hint: str = "") -> NoReturn:
    raise InvalidValue(path=path, expected=expected, found=describe(found), hint=hint)


def describe(value: Any) -> str:
    """A short description of what was found: its type, and the value if it is short."""
    if type(value) is Found:
        return value
    if value is None or value is UNSET:
        return repr(value)
    if isinstance(value, str):
        return f"the string {value[:_SHOWN]!r}{'…' if len(value) > _SHOWN else ''}"
    if isinstance(value, bool | int | float):
        return f"{_short(value)} ({type(value).__name__})"
    if isinstance(value, bytes):
        return "1 byte" if len(value) == 1 else f"{len(value)} bytes"
    if isinstance(value, list | tuple | dict):
        return f"{_article(type(value).__name__)} of {len(value)}" if value else f"an empty {type(value).__name__}"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    return _article(type(value).__name__)


def _short(value: float) -> str:
    try:
        return f"{value!r}"[:_SHOWN]
    except ValueError:  # Python does not write integers of more than 4300 digits
        return "a very large number"


def _article(noun: str) -> str:
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"


def join_alternatives(words: tuple[str, ...]) -> str:
    *first, last = words
    return f"{', '.join(first)} or {last}" if first else last


def within(path: str, build: Callable[[], S]) -> S:
    """Builds an inner value; errors are reported with its path in the outer one."""
    try:
        return build()
    except InvalidValue as problem:
        inner = f"{path}.{problem.field}" if problem.field else path
        raise type(problem)(
            path=inner, expected=problem.expected, found=problem.found, hint=problem.hint
        ) from problem.__cause__


# ── scalars ───────────────────────────────────────────────────────────────────────────────────────────────────


def check_string(value: Any, path: str) -> str:
    if type(value) is not str:
        if not isinstance(value, str):
            refuse_type(path, "a string", value)
        value = str.__str__(value)  # codecs test for the exact type
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as problem:
            raise InvalidValue(path=path, expected="text", found="a lone surrogate") from problem
    return cast("str", value)


def _check_bool(value: Any, path: str) -> bool:
    return value if isinstance(value, bool) else refuse_type(path, "True or False", value)


def _check_integer(value: Any, path: str) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else refuse_type(path, "an integer", value)


def _check_number(value: Any, path: str) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        refuse_type(path, "a number", value)
    try:
        finite = isfinite(value)
    except OverflowError:  # an integer beyond the range of a double
        finite = False
    return value if finite else refuse(path, "a finite number", value)


# ── JSON ──────────────────────────────────────────────────────────────────────────────────────────────────────


def check_json(value: Any, path: str) -> Any:
    """Any JSON, checked by encoding it once, so that errors appear here and not at the next request."""
    if type(value) is Raw:
        return value if exact_json(bytes(value)) is not None else refuse(path, "JSON", bytes(value))
    if isinstance(value, Value | bytes | bytearray) or (
        isinstance(value, list | tuple) and any(isinstance(item, Value | bytes) for item in value)
    ):
        refuse_type(path, "JSON", Found("a list of parts or bytes") if isinstance(value, list | tuple) else value)
    try:
        encode_finite(value)
    except (TypeError, ValueError, RecursionError, OverflowError, DragomanError) as problem:
        raise InvalidType(path=path, expected="JSON", found=f"{describe(value)} ({problem})") from problem
    return value


def check_object(value: Any, path: str) -> Any:
    if type(value) is Raw:
        return value if exact_object(bytes(value)) is not None else refuse(path, "a JSON object", bytes(value))
    if not isinstance(value, Mapping):
        hint = "this is text: parse it with json.loads" if isinstance(value, str) else ""
        refuse_type(path, "a mapping", value, hint)
    for key in value:
        if not isinstance(key, str):
            refuse_type(path, "strings as keys", key)
    return check_json(value if type(value) is dict else dict(value), path)


def _check_metadata(value: Any, path: str) -> Any:
    """Format family -> key -> JSON, kept as exact bytes, as by decoders."""
    if not isinstance(value, Mapping):
        refuse_type(path, "a mapping of format family to a mapping", value)
    checked = {family: _check_entries(family, entries, path) for family, entries in value.items()}
    is_exact = isinstance(value, dict) and all(
        type(entry) is Raw for entries in value.values() for entry in entries.values()
    )
    return value if is_exact else checked  # decoded metadata may be a subclass of dict


def _check_entries(family: Any, entries: Any, path: str) -> dict[str, Raw]:
    if not isinstance(family, str):
        refuse_type(path, "names of format families as keys", family)
    inner = f"{path}[{family!r}]"
    if not isinstance(entries, Mapping):
        hint = 'metadata is {"format family": {"key": JSON}}, as in {"openai": {"store": True}}'
        refuse_type(inner, "a mapping", entries, hint)
    for key in entries:
        if not isinstance(key, str):
            refuse_type(inner, "strings as keys", key)
    return {key: to_raw(check_json(entry, f"{inner}[{key!r}]")) for key, entry in entries.items()}


# ── from annotations ──────────────────────────────────────────────────────────────────────────────────────────

_SCALARS: Final[dict[Any, Check]] = {
    str: check_string,
    bool: _check_bool,
    int: _check_integer,
    float: _check_number,
    Raw: check_json,
}
_NOUNS: Final = {str: "a string", bool: "True or False", int: "an integer", float: "a number", Raw: "JSON"}


def check_of(annotation: Any) -> Check:
    """The check that an annotation calls for."""
    scalar = _SCALARS.get(annotation)
    if scalar is not None:
        return scalar
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _check_annotated(arguments)
    if origin is Literal:
        return _check_literal(arguments)
    if origin in {Union, UnionType}:
        return _check_union(arguments)
    if origin is tuple:
        return check_items(check_of(arguments[0]), noun_of(arguments[0]))
    if origin is dict:
        return _check_metadata
    return check_values((annotation,))


def _check_annotated(arguments: tuple[Any, ...]) -> Check:
    schema = next(note.extra_json_schema for note in arguments if isinstance(note, Meta))
    return check_object if schema == {"type": "object"} else _optional(check_object)


def _optional(check: Check) -> Check:
    return lambda value, path: None if value is None else check(value, path)


def _check_literal(words: tuple[Any, ...]) -> Check:
    expected = join_alternatives(tuple(f'"{word}"' for word in words))

    def check(value: Any, path: str) -> Any:
        if not isinstance(value, str):
            refuse_type(path, expected, value)
        word = str.__str__(value)
        return word if word in words else refuse(path, expected, value)

    return check


def _check_union(arguments: tuple[Any, ...]) -> Check:
    kinds = tuple(argument for argument in arguments if argument is not NoneType)
    check = check_of(kinds[0]) if len(kinds) == 1 else check_values(kinds)
    return check if len(kinds) == len(arguments) else _optional(check)


def check_items(check: Check, noun: str) -> Check:
    """Check of a list or tuple, which is stored as a tuple."""

    def check_all(value: Any, path: str) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple):
            refuse_type(
                path, f"a list, each {noun}", value, "put it into a list" if isinstance(value, str | Struct) else ""
            )
        return tuple([check(item, f"{path}[{index}]") for index, item in enumerate(value)])

    return check_all


def check_values(kinds: tuple[type[Struct], ...]) -> Check:
    """Check of a value of these classes, or a mapping of the fields of one."""
    by_tag = {kind.__struct_config__.tag: kind for kind in kinds}
    expected = join_alternatives(tuple(kind.__name__ for kind in kinds))

    def check(value: Any, path: str) -> Any:
        if isinstance(value, kinds):
            return value
        if not isinstance(value, Mapping):
            refuse_type(path, _article(expected), value)
        fields = dict(value)
        if len(kinds) == 1:
            kind, tag = kinds[0], kinds[0].__struct_config__.tag
            if tag is not None and fields.pop("type", tag) != tag:
                refuse(f"{path}.type", f'"{tag}"', value["type"])
        else:
            kind = _class_by_tag(fields, by_tag, path)
        return within(path, lambda: construct(kind, (), fields))

    return check


def _class_by_tag(fields: Given, by_tag: Mapping[Any, type[Struct]], path: str) -> type[Struct]:
    words = join_alternatives(tuple(f'"{tag}"' for tag in by_tag))
    if "type" not in fields:
        refuse_type(f"{path}.type", words, NOTHING, "a mapping needs a type that says which class it stands for")
    tag = fields.pop("type")
    if not isinstance(tag, str) or tag not in by_tag:
        refuse(f"{path}.type", words, tag, "what a provider's API calls it is read by the decode functions")
    return by_tag[tag]


def noun_of(annotation: Any) -> str:
    """The name of an annotation in messages."""
    if annotation in _NOUNS:
        return _NOUNS[annotation]
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return join_alternatives(tuple(f'"{word}"' for word in arguments))
    if origin in {Union, UnionType}:
        return join_alternatives(tuple(noun_of(argument) for argument in arguments))
    if origin is tuple:
        return f"a list, each {noun_of(arguments[0])}"
    if origin in {dict, Annotated}:
        return "a mapping"
    return "None" if annotation is NoneType else _article(annotation.__name__)


@cache
def hints_of(kind: type[Struct]) -> Mapping[str, Any]:
    hints = annotations_of(kind, include_extras=True)
    return {name: hints[name] for name in kind.__struct_fields__}
