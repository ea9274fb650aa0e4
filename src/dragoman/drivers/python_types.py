"""From a function's signature to the schema of its arguments, and from JSON arguments to Python values.

Types are those of msgspec: builtins, Literal, unions, Enum, dataclasses, TypedDict, NamedTuple, Struct, dates.
Paths work, too, and models of pydantic, if it is installed.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import PurePath
from types import UnionType
from typing import Annotated, Any, TypeAlias, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from dragoman.ir.values import to_raw

Decode: TypeAlias = Callable[[Any], dict[str, Any]]
_REFERENCE = "#/$defs/{name}"
_CONSTRAINTS = ("gt", "ge", "lt", "le", "multiple_of", "pattern", "min_length", "max_length")


class Parameter(Struct, frozen=True):
    """One parameter of a function. `hint` keeps the metadata of Annotated."""

    name: str
    hint: Any
    default: Any
    """`inspect.Parameter.empty` when there is none."""


class Arguments(Struct, frozen=True):
    """The schema of a function's arguments, and their decoder. Decoding raises `ValueError`."""

    schema: dict[str, Any]
    decode: Decode


def function_behind(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with the name, docstring and type hints: the one in a partial, the `__call__` of an object."""
    while isinstance(function, partial):
        function = function.func
    if inspect.isroutine(function) or inspect.isclass(function):
        return function
    call: Callable[..., Any] = function.__call__  # type: ignore[operator]
    return call


def parameters_of(function: Callable[..., Any]) -> list[Parameter]:
    """The parameters that are still open: those that a partial fixes by name are not."""
    behind = function_behind(function)
    name = getattr(behind, "__name__", type(function).__name__)
    try:
        hints = get_type_hints(behind, include_extras=True)
    except NameError as error:
        raise TypeError(f"the type hints of {name} cannot be read: {error}") from None
    fixed = function.keywords if isinstance(function, partial) else {}
    found = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name in fixed:
            continue
        if parameter.kind not in {parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY}:
            raise TypeError(f"{name}: parameter {parameter} cannot be passed by name, as models do")
        found.append(Parameter(parameter.name, hints.get(parameter.name, Any), parameter.default))
    return found


def arguments_of(name: str, parameters: list[Parameter], descriptions: Mapping[str, str]) -> Arguments:
    members = {one.name: alternatives_of(one.hint) for one in parameters}
    fields = [_field(one, members[one.name]) for one in parameters]
    kind = msgspec.defstruct(f"{name}_arguments", fields, kw_only=True, forbid_unknown_fields=True)
    try:
        schema = schema_of(kind)
        for one in parameters:
            entry = schema.setdefault("properties", {}).setdefault(one.name, {})
            if members[one.name]:
                entry |= {"anyOf": [_inline_definitions(schema, member) for member in members[one.name]]}
            _annotate(entry, one, descriptions.get(one.name))
    except TypeError:
        _refuse_types(name, parameters)
        raise
    return Arguments(schema, _decoder(kind, {key: value for key, value in members.items() if value}))


def _refuse_types(name: str, parameters: list[Parameter]) -> None:
    """Raises for the first parameter whose type has no JSON Schema."""
    for one in parameters:
        try:
            schema_of(translate_annotated(one.hint))
        except TypeError:
            hint = getattr(one.hint, "__name__", one.hint)
            known = "JSON types, Literal, enums, dataclasses, TypedDicts, dates, paths, models of pydantic"
            raise TypeError(f"{name}: parameter {one.name}: {hint} has no JSON Schema; use {known}") from None


def schema_of(kind: Any) -> dict[str, Any]:
    """The JSON Schema of a type: an object whose `$defs` hold what it refers to."""
    (schema,), definitions = msgspec.json.schema_components(
        (kind,), schema_hook=_foreign_schema, ref_template=_REFERENCE
    )
    root = definitions.pop(schema["$ref"].rpartition("/")[2]) if "$ref" in schema else schema
    root = {key: value for key, value in root.items() if key != "title"}
    if root.get("type") == "object" and isinstance(kind, type) and issubclass(kind, Struct):
        root.pop("description", None)
    return _hoist_definitions(root, definitions)


def _field(parameter: Parameter, members: tuple[Any, ...]) -> tuple[str, Any] | tuple[str, Any, Any]:
    hint = Raw if members else translate_annotated(parameter.hint)
    if parameter.default is inspect.Parameter.empty:
        return parameter.name, hint
    # Absent stays absent, so that the function's own default applies.
    return parameter.name, Union[hint, UnsetType], UNSET  # noqa: UP007 - a value, not an annotation


def translate_annotated(hint: Any) -> Any:
    """Translates `Annotated` for msgspec: a string is a description; constraints of other libraries are kept."""
    if get_origin(hint) is not Annotated:
        return hint
    base, *extras = get_args(hint)
    metas = [extra for extra in extras if isinstance(extra, Meta)]
    metas += [meta for meta in map(_meta, extras) if meta is not None]
    return Annotated[(base, *metas)] if metas else base


def _meta(extra: Any) -> Meta | None:
    if isinstance(extra, str):
        return Meta(description=extra)
    if isinstance(extra, Meta):
        return None
    known: dict[str, Any] = {}
    # pydantic's Field keeps its constraints in a list, annotated_types are one each.
    for source in (extra, *getattr(extra, "metadata", ())):
        known |= {name: found for name in _CONSTRAINTS if (found := getattr(source, name, None)) is not None}
    description = getattr(extra, "description", None) or getattr(extra, "documentation", None)
    known |= {"description": description} if isinstance(description, str) else {}
    return Meta(**known) if known else None


def alternatives_of(hint: Any) -> tuple[Any, ...]:
    """Members of a union that msgspec cannot distinguish, such as two dataclasses: each is tried in turn."""
    base = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    if get_origin(base) not in {Union, UnionType}:
        return ()
    try:
        msgspec.json.Decoder(base)
    except TypeError:
        return get_args(base)
    return ()


def _decoder(kind: type[Struct], members: Mapping[str, tuple[Any, ...]]) -> Decode:
    decode = msgspec.json.Decoder(kind, dec_hook=_foreign_value).decode
    tries = {
        name: [msgspec.json.Decoder(translate_annotated(one), dec_hook=_foreign_value).decode for one in given]
        for name, given in members.items()
    }

    def arguments(given: Any) -> dict[str, Any]:
        value = decode(to_raw(given))
        found = {name: getattr(value, name) for name in kind.__struct_fields__}
        return {
            name: _first_fitting(name, one, tries[name]) if name in tries else one
            for name, one in found.items()
            if one is not UNSET
        }

    return arguments


def value_decoder(kind: Any) -> Callable[[Any], Any]:
    """From parsed JSON to a value of the type; raises `ValueError`."""
    decode = msgspec.json.Decoder(translate_annotated(kind), dec_hook=_foreign_value).decode
    return lambda given: decode(to_raw(given))


def _first_fitting(name: str, value: Raw, tries: Sequence[Callable[[Raw], Any]]) -> Any:
    problems = []
    for decode in tries:
        try:
            return decode(value)
        except msgspec.ValidationError as error:
            problems.append(str(error))
    raise msgspec.ValidationError(f"none of the alternatives fits ({'; '.join(problems)}) - at `$.{name}`")


# ── types that msgspec does not know: paths, and models of pydantic by their shape (nothing is imported) ───────


def is_model(kind: Any) -> bool:
    return isinstance(kind, type) and hasattr(kind, "model_validate") and hasattr(kind, "model_json_schema")


def _is_path(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, PurePath)


def _foreign_schema(kind: Any) -> dict[str, Any]:
    if _is_path(kind):
        # No `format`: structured output refuses the formats that JSON Schema does not define.
        return {"type": "string"}
    if is_model(kind):
        schema: dict[str, Any] = kind.model_json_schema(ref_template="#/$defs/{model}")
        return schema
    raise NotImplementedError


def _foreign_value(kind: Any, value: Any) -> Any:
    if _is_path(kind) and isinstance(value, str):
        return kind(value)
    if is_model(kind):
        # Strict JSON mode: "5" is not a number, but a date is text.
        return kind.model_validate_json(bytes(to_raw(value)), strict=True)
    if isinstance(value, kind):
        return value
    raise NotImplementedError


def json_form(value: Any) -> Any:
    """The JSON form of a path or of a model of pydantic; an `enc_hook` of msgspec."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    raise NotImplementedError(f"{type(value).__name__} cannot be expressed in JSON")


# ── schemas ───────────────────────────────────────────────────────────────────────────────────────────────────


def _hoist_definitions(schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """Moves nested definitions (as pydantic writes them) to the root, where their references point."""
    found = dict(definitions)

    def walk(node: Any) -> Any:
        if isinstance(node, list):
            return [walk(item) for item in node]
        if not isinstance(node, dict):
            return node
        inner = node.get("$defs")
        if isinstance(inner, dict):
            found.update({name: walk(one) for name, one in inner.items()})
        return {key: walk(value) for key, value in node.items() if key != "$defs" or not isinstance(inner, dict)}

    root: dict[str, Any] = walk(schema)
    hoisted = {name: walk(one) for name, one in definitions.items()}
    merged = {**found, **hoisted}
    return {**root, "$defs": merged} if merged else root


def _inline_definitions(root: dict[str, Any], member: Any) -> dict[str, Any]:
    """The schema of one alternative; its definitions are added to those of the root."""
    schema = schema_of(translate_annotated(member))
    definitions = schema.pop("$defs", None)
    if definitions:
        root.setdefault("$defs", {}).update(definitions)
    return schema


def _annotate(entry: dict[str, Any], parameter: Parameter, description: str | None) -> None:
    if description and "description" not in entry:
        entry["description"] = description
    entry.pop("default", None)
    if parameter.default is inspect.Parameter.empty or parameter.default is None:
        return
    try:
        entry["default"] = msgspec.to_builtins(parameter.default, str_keys=True, enc_hook=json_form)
    except (TypeError, ValueError, NotImplementedError):
        return
