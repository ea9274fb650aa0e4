"""Variants of wire structs: every member of every struct is read as lifting reads it, without lifting."""

import importlib
import json
import pkgutil
import types
import typing
from collections.abc import Iterator, Mapping
from typing import Any, Union, get_args, get_origin

import msgspec
import pytest
from msgspec import NODEFAULT, Raw, Struct, UnsetType

import dragoman.codecs
from dragoman.codecs import reading
from dragoman.codecs.loose_structs import LooseDecoder
from dragoman.codecs.wire_values import EXTRA, UNKNOWN, Wire, further_keys
from tests.support.cases import each
from tests.support.promises import promise

Case = tuple[str, dict[str, Any]]


def _wire_modules() -> list[types.ModuleType]:
    names = [info.name for info in pkgutil.iter_modules(dragoman.codecs.__path__) if info.ispkg]
    found = [f"dragoman.codecs.{name}.wire" for name in names if name not in {"records", "datasets"}]
    return [importlib.import_module(name) for name in found]


def _structs() -> list[tuple[type[Wire], Mapping[str, str]]]:
    """Every struct that is read, with the other spellings of its codec."""
    found = []
    for module in _wire_modules():
        for kind in vars(module).values():
            is_own = isinstance(kind, type) and issubclass(kind, Wire) and kind.__module__ == module.__name__
            if is_own and kind.__struct_config__.tag != UNKNOWN and len(kind.__struct_fields__) > 1:
                found.append((kind, getattr(module, "ALIASES", {})))
    return found


STRUCTS = _structs()


def _members(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)


def _sample(kind: Any) -> Any:
    """A JSON value that fits the type; of a struct, its required members."""
    member = next(member for member in _members(kind) if member not in (type(None), UnsetType))
    if isinstance(member, type) and issubclass(member, Struct):
        return _smallest(member)
    if get_origin(member) in (list, tuple):
        return [_sample(get_args(member)[0])]
    if get_origin(member) is typing.Literal:
        return get_args(member)[0]
    return {str: "x", int: 1, float: 0.5, bool: True}.get(member, {"any": [1]})


def _smallest(kind: type[Struct]) -> dict[str, Any]:
    config = kind.__struct_config__
    body = {} if config.tag is None else {config.tag_field or "type": config.tag}
    hints = typing.get_type_hints(kind)
    for info in msgspec.structs.fields(kind):
        if info.default is NODEFAULT and info.default_factory is NODEFAULT:
            body[info.encode_name] = _sample(hints[info.name])
    return body


def _cases(kind: type[Wire], aliases: Mapping[str, str]) -> Iterator[Case]:
    """Bodies with one member written in another way than the struct wants it."""
    hints = typing.get_type_hints(kind)
    smallest = _smallest(kind)
    own = set(kind.__struct_encode_fields__)
    for info in msgspec.structs.fields(kind):
        key = info.encode_name
        if key == EXTRA or key in smallest:
            continue
        value = _sample(hints[info.name])
        yield f"{key}: null", {**smallest, key: None}
        for other, name in aliases.items():
            if name == key and other not in own:
                yield f"{key} as {other}", {**smallest, other: value}
                yield f"{key} as {other}: null", {**smallest, other: None}
                yield f"{key} twice", {**smallest, key: value, other: value}
        if info.name not in own:
            yield f"{key} as {info.name}", {**smallest, info.name: value}
        members = _members(hints[info.name])
        if isinstance(value, list) and isinstance(value[0], dict) and value[0] != {"any": [1]} and len(members) == 2:
            yield f"{key}: one element", {**smallest, key: value[0]}
    for key in further_keys(kind):
        yield f"further key {key}", {**smallest, key: {"a": [1, None]}}
        yield f"further key {key}: null", {**smallest, key: None}


def _lifted(body: bytes, kind: type[Wire], aliases: Mapping[str, str]) -> Wire:
    lift = reading._Lift(aliases, lone_elements=True)  # noqa: SLF001 - the other reader of the same body
    return msgspec.json.decode(lift.value(body, kind), type=kind)


@promise("core:few-lifted")
@each(("kind", "aliases"), STRUCTS, ids=[f"{k.__module__.split('.')[-2]}.{k.__name__}" for k, _ in STRUCTS])
def test_every_member_written_otherwise_is_read_as_lifting_reads_it(
    kind: type[Wire], aliases: Mapping[str, str]
) -> None:
    loose = LooseDecoder(kind, aliases, lone_elements=True)
    for name, value in _cases(kind, aliases):
        body = json.dumps(value).encode()
        expected = _lifted(body, kind, aliases)
        if name.endswith("twice"):
            with pytest.raises(msgspec.ValidationError):
                loose.decode(body)
            continue
        found = loose.decode(body)
        assert type(found) is kind, name
        assert _plain(found) == _plain(expected), name


def _plain(value: Any) -> Any:
    """Compared by content: `Raw` keeps the spaces of its body."""
    if isinstance(value, Raw):
        return json.loads(bytes(value))
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, Struct):
        return type(value), {name: _plain(getattr(value, name)) for name in value.__struct_fields__}
    return value


@promise("core:few-lifted")
@pytest.mark.parametrize(
    ("kind", "aliases"), STRUCTS, ids=[f"{k.__module__.split('.')[-2]}.{k.__name__}" for k, _ in STRUCTS]
)
def test_a_body_that_a_loose_struct_reads_is_not_lifted(
    kind: type[Wire], aliases: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> bytes:
        raise AssertionError("lifted")

    monkeypatch.setattr(reading._Lift, "_object", refuse)  # noqa: SLF001
    reader = reading.WireReader(kind, "test", aliases=aliases)
    for name, value in _cases(kind, aliases):
        if not name.endswith("twice"):
            assert type(reader.read(json.dumps(value).encode())) is kind, name


class Tree(Wire, frozen=True, tag="tree"):
    name: str | UnsetType = msgspec.UNSET
    branches: "list[Tree] | UnsetType" = msgspec.UNSET


def test_a_struct_within_itself_is_read_strictly_there_and_lifted() -> None:
    reader = reading.WireReader(Tree, "test")
    outer = reader.read(b'{"type": "tree", "name": null, "branches": [{"type": "tree", "name": null}]}')
    assert outer.branches
    assert (outer.extra, outer.branches[0].extra) == ({"name": Raw(b"null")}, {"name": Raw(b"null")})


def test_a_null_of_a_required_member_is_refused() -> None:
    reader: reading.WireReader[Any] = reading.WireReader(Tree, "test")
    with pytest.raises(dragoman.DecodeError):
        reader.read(b'{"type": null}')
