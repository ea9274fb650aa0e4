"""Variants of wire structs that also accept null, other spellings, a lone element, and keys of other servers.

A variant is generated from its struct when a body first needs it. Its values are converted to the struct itself, with
the differences as notes in `extra`, so codecs never see a variant. Lifting (codecs/reading.py) makes the same notes,
and remains for what no struct documents.
"""

from __future__ import annotations

import re
import types
import typing
from collections.abc import Callable, Mapping
from functools import cached_property, reduce
from operator import or_
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec import NODEFAULT, UNSET, Raw, Struct, UnsetType, structs

from dragoman.codecs.generated_code import compile_function
from dragoman.codecs.wire_values import EXTRA, UNKNOWN, further_keys
from dragoman.ir.notes import RENAMED, SINGLE
from dragoman.ir.values import encode_json

W = TypeVar("W")

Convert: TypeAlias = Callable[[Any], Any]
"""Value of a variant -> value of the type it was made from."""

_UNKNOWN_FIELD = re.compile(r"Object contains unknown field `([^`]*)`")


class LooseDecoder(Generic[W]):
    """Decodes a wire type from bodies with nulls, other spellings, lone elements and rare keys.

    Most processes never need the variants, so they are made when a body needs them first.
    """

    def __init__(self, kind: type[W], aliases: Mapping[str, str], *, lone_elements: bool) -> None:
        """`aliases` maps other spellings of a key to the one the structs use; `lone_elements`: an object for a list."""
        self._kind = kind
        self._aliases = aliases
        self._lone_elements = lone_elements

    @cached_property
    def _made(self) -> tuple[Callable[[bytes | Raw], Any], Convert | None, set[str]]:
        variants = _Variants(self._aliases, lone_elements=self._lone_elements)
        variant, convert = variants.of(self._kind)
        return msgspec.json.Decoder(variant).decode, convert, variants.keys

    def might_read(self, fault: str) -> bool:
        """Whether a body that the strict decoder refuses with this message may fit a variant."""
        if "got `null`" in fault:
            return True
        unknown = _UNKNOWN_FIELD.match(fault)
        if unknown is not None:
            return unknown[1] in self._made[2]
        return self._lone_elements and "got `object`" in fault

    def decode(self, body: bytes | Raw) -> W:
        """Raises `msgspec.ValidationError` for a body that has to be lifted."""
        decode, convert, _ = self._made
        value = decode(body)
        found: W = value if convert is None else convert(value)
        return found


class _Variants:
    """Makes the variants of a struct and of the structs in it, each once."""

    def __init__(self, aliases: Mapping[str, str], *, lone_elements: bool) -> None:
        self.keys: set[str] = set()
        """Spellings that the variants accept and the structs do not."""
        self._aliases = aliases
        self._lone_elements = lone_elements
        self._made: dict[type[Struct], tuple[Any, Convert]] = {}
        self._open: set[type[Struct]] = set()

    def of(self, kind: Any) -> tuple[Any, Convert | None]:
        """Return the type to decode, and the conversion of its values; None if they need none."""
        handlers: dict[type, Convert] = {}
        members = []
        for member in _members(kind):
            if get_origin(member) is list:
                item, convert_item = self.of(get_args(member)[0])
                members.append(types.GenericAlias(list, (item,)))
                if convert_item is not None:
                    handlers[list] = _each(convert_item)
            elif isinstance(member, type) and issubclass(member, Struct):
                variant, convert = self._struct(member)
                members.append(variant)
                if convert is not None:
                    handlers[variant] = convert
            else:
                members.append(member)
        return reduce(or_, members), _by_type(handlers) if handlers else None

    def _struct(self, kind: type[Struct]) -> tuple[Any, Convert | None]:
        if kind in self._open or kind.__struct_config__.tag == UNKNOWN:
            return kind, None  # a struct within itself is read strictly
        if kind not in self._made:
            self._open.add(kind)
            self._made[kind] = self._make(kind)
            self._open.discard(kind)
        return self._made[kind]

    def _make(self, kind: type[Struct]) -> tuple[Any, Convert]:
        hints = typing.get_type_hints(kind)
        own = set(kind.__struct_encode_fields__)
        members: list[tuple[str, Any, Any]] = []
        rows = []
        for info in structs.fields(kind):
            loose, row = self._member(info, hints[info.name])
            default = NODEFAULT if _is_required(info) else UNSET
            members.append((info.name, loose, msgspec.field(name=info.encode_name, default=default)))
            rows.append(row)
            for spelling in self._other_spellings(info, own):
                name, is_kept = f"spelling_{len(members)}", spelling not in self._aliases
                member: Any = Raw | UnsetType if is_kept else loose
                members.append((name, member, msgspec.field(name=spelling, default=UNSET)))
                rows.append(row._replace(attribute=name, key=spelling, is_kept=is_kept))
                self.keys.add(spelling)
        for key in further_keys(kind):
            name = f"further_{len(members)}"
            members.append((name, Raw | UnsetType, msgspec.field(name=key, default=UNSET)))
            rows.append(_Row(name, key, "", key, is_kept=True))
            self.keys.add(key)
        config = kind.__struct_config__
        variant = msgspec.defstruct(
            kind.__name__,
            members,
            frozen=True,
            gc=False,
            kw_only=True,
            forbid_unknown_fields=config.forbid_unknown_fields,
            tag=config.tag,
            tag_field=config.tag_field,
        )
        return variant, _narrow(kind, rows)

    def _member(self, info: structs.FieldInfo, kind: Any) -> tuple[Any, _Row]:
        """Return the type that a member has in the variant, and its row."""
        loose, convert = self.of(kind)
        members = _members(loose)
        is_nullable = not {type(None), Raw, Any}.isdisjoint(members)
        has_lone = False
        lists = [member for member in members if get_origin(member) is list]
        if self._lone_elements and lists and not any(map(_is_struct, members)):
            items = _members(get_args(lists[0])[0])
            has_lone = any(map(_is_struct, items))
            loose = reduce(or_, filter(_is_struct, items), loose)
        row = _Row(info.name, info.encode_name, info.name, info.encode_name, convert, is_nullable, has_lone)
        if _is_required(info):
            return loose, row
        return (loose if is_nullable else loose | None) | UnsetType, row

    def _other_spellings(self, info: structs.FieldInfo, own: set[str]) -> list[str]:
        """Return further keys of a member: those that mean it, and its Python name, which is kept as it is."""
        if _is_required(info) or info.encode_name == EXTRA:
            return []
        others = [other for other, name in self._aliases.items() if name == info.encode_name and other not in own]
        if info.name != info.encode_name and info.name not in self._aliases and info.name not in own:
            others.append(info.name)
        return others


class _Row(NamedTuple):
    """One key of a variant, and the member of the struct that it means."""

    attribute: str
    key: str
    member: str
    member_key: str
    convert: Convert | None = None
    is_nullable: bool = True
    has_lone: bool = False
    is_kept: bool = False
    """The key is not interpreted: it stays in `extra` as it is."""

    def source(self, names: dict[str, Any]) -> str:
        """Return the code that takes this key from `wire`; `names` gets the values that the code refers to."""
        lines = [f"    value = wire.{self.attribute}", "    if value is not UNSET:"]
        if self.is_kept:
            return "\n".join([*lines, f"        extra[{self.key!r}] = value"])
        if self.member == "extra":
            return "\n".join([*lines, "        extra.update(value)"])
        if not self.is_nullable:
            lines += ["        if value is None:", f"            extra[{self.key!r}] = NULL", "        else:"]
        indent = "        " if self.is_nullable else "            "
        return "\n".join([*lines, *(indent + line for line in self._take(names))])

    def _take(self, names: dict[str, Any]) -> list[str]:
        lines = []
        if self.key != self.member_key:
            names[f"spelled_{self.attribute}"] = Raw(encode_json(self.key))
            lines += [f"if {self.member!r} in known:", f"    raise ValidationError({self.key + _TWICE!r})"]
            lines.append(f"extra[{RENAMED + self.member_key!r}] = spelled_{self.attribute}")
        if self.has_lone:
            lines += ["if isinstance(value, Struct):", "    value = [value]"]
            lines.append(f"    extra[{SINGLE + self.member_key!r}] = TRUE")
        if self.convert is not None:
            names[f"convert_{self.attribute}"] = self.convert
            lines.append(f"value = convert_{self.attribute}(value)")
        return [*lines, f"known[{self.member!r}] = value"]


_TWICE = " is given in two spellings"


def _narrow(kind: type[Struct], rows: list[_Row]) -> Convert:
    """Return a function that makes the struct from a value of its variant."""
    names: dict[str, Any] = {"Kind": kind, "Struct": Struct, "ValidationError": msgspec.ValidationError}
    names["NULL"], names["TRUE"] = Raw(b"null"), Raw(b"true")
    head = ["def generated(wire):", "    known, extra = {}, {}"]
    tail = ["    if extra:", "        known['extra'] = extra", "    return Kind(**known)\n"]
    return compile_function(
        "\n".join([*head, *(row.source(names) for row in rows), *tail]), f"strict {kind.__name__}", names
    )


def _members(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Struct)


def _is_required(info: structs.FieldInfo) -> bool:
    return info.default is NODEFAULT and info.default_factory is NODEFAULT


def _each(convert: Convert) -> Convert:
    return lambda items: [convert(value) for value in items]


def _by_type(handlers: Mapping[type, Convert]) -> Convert:
    """Return a conversion that chooses by the value's type; a value of another type stays as it is."""
    find = handlers.get

    def convert(value: Any) -> Any:
        handler = find(type(value))
        return value if handler is None else handler(value)

    return convert
