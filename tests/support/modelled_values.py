"""Bodies that have what the code of a codec names: every member of its wire structs, and every word in its modules.

Samples have what their authors thought of. These cases are derived from the code, so a new member or word has its
cases as soon as it is written.
"""

import ast
import importlib
import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from zlib import crc32

import msgspec
from msgspec.inspect import (
    AnyType,
    BoolType,
    DictType,
    FloatType,
    IntType,
    ListType,
    LiteralType,
    NoneType,
    RawType,
    StrType,
    StructType,
    Type,
    UnionType,
    VarTupleType,
    type_info,
)

import dragoman
from dragoman.codecs.datasets.catalogue import dataset
from dragoman.codecs.registry import folder_of
from dragoman.codecs.wire_values import EXTRA, UNKNOWN

PLACES = 3
"""Where a member or a word is put at most."""
DRAWN = 12
"""Of so many places that are drawn."""
_RICH: dict[str, Any] = {
    "type": "text", "id": "zq_1", "name": "look", "text": "zq text", "content": "zq content", "url": "https://zq/a.png",
    "data": "iVBORw0KGgo=", "media_type": "image/png", "arguments": {"city": "Rome"}, "input": {"city": "Rome"},
}  # fmt: skip
BESIDE: tuple[Any, ...] = (_RICH, [_RICH], "zq word", 7)
"""Values of the other words of a function, as keys."""
MOST = 1 << 16
"""Larger numbers are limits of memory."""
_ABOUT_MODELS = re.compile("models|settings|effort")
_WORD = re.compile(r"[A-Za-z][\w.:/-]{1,40}")
_CODECS = Path(inspect.getfile(dragoman)).parent / "codecs"

Bodies = Mapping[str, Any]
"""Title -> body."""
Change = tuple[str, Any]
"""What was done, and the whole body."""


@dataclass(frozen=True, slots=True)
class Member:
    struct: str
    key: str
    values: tuple[Any, ...]
    keys: frozenset[str]
    """Of the whole struct."""
    tag: tuple[str, Any] | None

    def fits(self, found: dict[str, Any]) -> bool:
        if self.tag is not None and found.get(self.tag[0]) != self.tag[1]:
            return False
        return bool(found) and found.keys() <= self.keys


# ── what the code names ───────────────────────────────────────────────────────────────────────────────────────


@cache
def members(name: str) -> tuple[Member, ...]:
    found: dict[tuple[str, str], Member] = {}
    for part in ("wire", "stream_wire"):
        if not (_CODECS / folder_of(name) / f"{part}.py").exists():
            continue
        module = importlib.import_module(f"dragoman.codecs.{folder_of(name)}.{part}")
        for kind in vars(module).values():
            if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and kind.__module__ == module.__name__:
                found |= {(one.struct, one.key): one for one in _members_of(kind)}
    return tuple(found.values())


def _members_of(kind: type[msgspec.Struct]) -> Iterator[Member]:
    try:
        info = type_info(kind)
    except (TypeError, NameError):  # a generic struct, whose members are in the ones it stands for
        return
    if not isinstance(info, StructType) or info.array_like:
        return
    tag = None if info.tag_field is None or info.tag == UNKNOWN else (info.tag_field, info.tag)
    fields = [one for one in info.fields if one.encode_name != EXTRA]
    keys = frozenset([one.encode_name for one in fields] + ([] if tag is None else [tag[0]]))
    for one in fields:
        yield Member(kind.__name__, one.encode_name, tuple(_examples(one.type, 0)), keys, tag)


_SINGLE: dict[type[Type], tuple[Any, ...]] = {
    StrType: ("zq", ""), IntType: (3, 0), FloatType: (0.5,), BoolType: (True, False),
    NoneType: (None,), RawType: ({"zq": 1}, "zq"), AnyType: ({"zq": 1}, "zq"),
}  # fmt: skip


def _examples(kind: Type, depth: int) -> Iterator[Any]:
    match kind:
        case UnionType(types=inner):
            for one in inner:
                yield from _examples(one, depth)
        case ListType(item_type=inner) | VarTupleType(item_type=inner):
            yield from ([one] for one in _examples(inner, depth + 1))
            yield []
        case DictType(value_type=inner):
            yield {"zq": next(_examples(inner, depth + 1), None)}
        case LiteralType(values=values):
            yield from values
        case StructType(fields=fields, tag=tag, tag_field=tag_field):
            if depth < 3 and tag != UNKNOWN:
                head = {} if tag_field is None else {tag_field: tag}
                for chosen in ([one for one in fields if one.required], fields):
                    yield head | {
                        one.encode_name: next(_examples(one.type, depth + 1), None)
                        for one in chosen
                        if one.encode_name != EXTRA
                    }
        case _:
            yield from _SINGLE.get(type(kind), ())


@cache
def words(name: str) -> tuple[str, ...]:
    """Texts in the modules of the codec that could be values on the wire."""
    return tuple(sorted({word for tree in _trees(name) for word in _words_in(tree)}))


@cache
def words_of_functions(name: str) -> Mapping[str, tuple[str, ...]]:
    """The same for each function: what one function looks for together is found together in real bodies."""
    return {
        node.name: found
        for tree in _trees(name)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and (found := tuple(_words_in(node)))
    }


@cache
def numbers(name: str) -> tuple[int, ...]:
    """Integers in the modules of the codec, and in those about models that codecs share, each with its neighbours."""
    shared = [ast.parse(file.read_text()) for file in sorted(_CODECS.glob("*.py")) if _ABOUT_MODELS.search(file.stem)]
    constants = {
        node.value
        for tree in (*_trees(name), *shared)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and type(node.value) is int and node.value < MOST
    }
    return tuple(sorted({value + step for value in constants for step in (-1, 0, 1)}))


def _trees(name: str) -> list[ast.Module]:
    if name in dragoman.formats("dataset"):
        files = [Path(inspect.getfile(dataset(name).read))]
    elif name in dragoman.formats("record"):
        files = [(_CODECS / folder_of(name).replace(".", "/")).with_suffix(".py")]
    else:
        files = sorted((_CODECS / folder_of(name)).glob("*.py"))
    return [ast.parse(file.read_text()) for file in files]


def _words_in(tree: ast.AST) -> dict[str, None]:
    texts = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str))
    return {text: None for text in texts if _WORD.fullmatch(text)}


# ── bodies that have it ───────────────────────────────────────────────────────────────────────────────────────


def with_members(bodies: Bodies, name: str) -> Iterator[Change]:
    """Every member with every value, in some objects that could have it."""
    places = [(title, body, path, found) for title, body in bodies.items() for path, found in _objects(body, ())]
    for member in members(name):
        fitting = [place for place in places if member.fits(place[-1])]
        for number, value in enumerate(member.values):
            case = f"{member.struct}.{member.key} {number}"
            for title, body, path, found in _some(fitting, case):
                yield f"{case} in {title} {path}", _replaced(body, path, {**found, member.key: value})


def with_words(bodies: Bodies, name: str) -> Iterator[Change]:
    """Every word in the place of some texts."""
    places = _texts(bodies)
    for word in words(name):
        for title, body, path, key, found in _some(places, word):
            yield f"{word} as {key} in {title} {path}", _replaced(body, path, {**found, key: word})


def with_functions(bodies: Bodies, name: str) -> Iterator[Change]:
    """Every word of a function in the place of two texts, beside the other words of the function as keys.

    One of the texts is a word of the code too, where there is one, as the type of a block is.
    """
    places, known = _texts(bodies), set(words(name))
    of_code = [place for place in places if place[-1][place[-2]] in known]
    for function, found_words in words_of_functions(name).items():
        for word in found_words:
            about = f"{function} {word}"
            chosen = [*_some(of_code, about)[:1], *_some(places, about)[:2]][:2]
            for title, body, path, key, found in chosen:
                for number, value in enumerate(BESIDE):
                    beside = dict.fromkeys(found_words, value)
                    case = f"{function}: {word} as {key} beside {number} in {title} {path}"
                    yield case, _replaced(body, path, {**beside, **found, key: word})


def _texts(bodies: Bodies) -> list[tuple[str, Any, tuple[Any, ...], str, dict[str, Any]]]:
    return [
        (title, body, path, key, found)
        for title, body in bodies.items()
        for path, found in _objects(body, ())
        for key, value in found.items()
        if isinstance(value, str)
    ]


def _some(places: list[Any], about: str) -> list[Any]:
    """Always the same for a text, so that a further member or word leaves the cases of the others as they are.

    Of the first places drawn those in objects with other keys than the ones before come first.
    """
    drawn = {crc32(f"{about} {turn}".encode()) % len(places): None for turn in range(DRAWN)} if places else {}
    keys = {number: frozenset(places[number][-1]) for number in drawn}
    others = {keys[number]: number for number in reversed(drawn)}.values()
    return [places[number] for number in sorted([*dict.fromkeys([*reversed(others), *drawn])][:PLACES])]


def _objects(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    if isinstance(value, dict):
        yield path, value
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _objects(inner, (*path, key))


def _replaced(body: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    changed = body.copy()
    changed[path[0]] = _replaced(body[path[0]], path[1:], new)
    return changed
