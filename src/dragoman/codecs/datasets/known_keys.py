"""The keys of a record that its reader reads. All others, at any depth, are reported with their path.

A reader takes the keys it needs from each object and would ignore the rest silently. So every format declares the keys
of its objects, and one walk compares a record with them. It builds paths only for keys that it reports.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct, structs

from dragoman.ir.values import parse_json
from dragoman.loss import Severity

Json: TypeAlias = Any
Link: TypeAlias = tuple[Any, str | int] | None
"""The last step of a path, and the link before it."""


class Keys(Struct, frozen=True):
    """The keys of one kind of object that are read, and those of the objects (or lists of objects) under them."""

    names: frozenset[str] | None
    """None: no key is reported, because all others are kept with the conversation."""
    inner: tuple[tuple[str, Keys], ...] = ()
    each: Keys | None = None
    """Kind of every value, if the keys are ids."""
    items: Keys | None = None
    """Kind of the elements, if there may be a list instead of the object."""
    by: str = ""
    """The key whose value selects one of `kinds`; objects with another value have the keys above."""
    kinds: Mapping[str, Keys] = {}
    as_text: bool = False
    """Whether JSON text of such an object, or of a list of them, is read too."""
    is_kept: Callable[[Json], bool] | None = None
    """Says of an object or a list whether all of it is kept with the conversation."""

    def recursive(self, key: str) -> Keys:
        """Return these keys for objects that contain objects of the same kind under `key`."""
        found = structs.replace(self)
        structs.force_setattr(found, "inner", (*self.inner, (key, found)))
        return found


def keys(names: str = "", /, **inner: Keys) -> Keys:
    """Return the keys with these names, and those of the keywords, each with the keys of the objects under it."""
    return Keys(frozenset(names.split()) | frozenset(inner), tuple(inner.items()))


def all_keys(**inner: Keys) -> Keys:
    """Return the keys of an object that loses none: those that are not read are kept with the conversation."""
    return Keys(None, tuple(inner.items()))


def kinds_of(by: str, kinds: Mapping[str, Keys], other: Keys) -> Keys:
    """Return the keys of objects whose kind is the value of the key `by`; a name in `kinds` may list several values."""
    named = {name: Keys(_with(one, by), one.inner) for names, one in kinds.items() for name in names.split()}
    return Keys(_with(other, by), other.inner, by=by, kinds=named)


def _with(kind: Keys, name: str) -> frozenset[str] | None:
    return None if kind.names is None else kind.names | {name}


def texts_of(names: str = "type text") -> Keys:
    """Return the keys of blocks that become one text; a list in which other blocks are too is kept as it is."""
    return structs.replace(keys(names), is_kept=_has_other_blocks)


def _has_other_blocks(value: Json) -> bool:
    return isinstance(value, list) and any(type(one) is not dict or one.get("type") != "text" for one in value)


def messages_in(message: Keys, names: str = "", /, **inner: Keys) -> Keys:
    """Return the keys of a record that is a list of messages, or an object with `messages` and these keys.

    Keys beside the messages need not be named if they are kept with the conversation.
    """
    whole = keys(names, messages=message, **inner)
    return Keys(whole.names, whole.inner, items=message)


def also(kind: Keys, names: str) -> Keys:
    """Return the keys of objects that may have these keys too, whatever their kind."""
    more = frozenset(names.split())
    kinds = {name: Keys((one.names or frozenset()) | more, one.inner) for name, one in kind.kinds.items()}
    return Keys((kind.names or frozenset()) | more, kind.inner, by=kind.by, kinds=kinds)


def unread_keys(record: Json, known: Keys) -> list[tuple[str, str, int]]:
    """Return path, name and depth of each key that is not read, in the first object of its kind that has it."""
    seen: dict[int, frozenset[str]] = {}
    """The keys of each kind that are read, or were found before."""
    found: list[tuple[Link, list[str]]] = []
    queue: list[tuple[Json, Keys, Link]] = [(record, known, None)]
    for found_value, kind, link in queue:
        value = found_value
        if kind.as_text and type(value) is str:
            value = _parse(value)
        if kind.is_kept is not None and kind.is_kept(value):
            continue
        if type(value) is list:
            of = kind.items or kind
            queue += [
                (one, of, (link, index)) for index, one in enumerate(value) if of.as_text or type(one) in _CONTAINERS
            ]
            continue
        if type(value) is not dict:
            continue
        if kind.by and type(chosen := value.get(kind.by)) is str:
            kind = kind.kinds.get(chosen, kind)  # noqa: PLW2901
        names = seen.get(id(kind), kind.names)
        if (
            names is not None
            and not names.issuperset(value)
            and (new := [key for key in value if key not in names and not _is_empty(value[key])])
        ):
            seen[id(kind)] = names.union(new)
            found.append((link, new))
        for key, inner in kind.inner:
            below = value.get(key)
            if below and (inner.as_text or type(below) in _CONTAINERS):
                queue.append((below, inner, (link, key)))
        if kind.each is not None:
            queue += [(one, kind.each, (link, key)) for key, one in value.items()]
    return [one for link, new in found for one in _paths(link, new)]


_WORDS = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")
_RECORD_KEEPING = frozenset(
    {
        "at",
        "branch",
        "cost",
        "count",
        "created",
        "cwd",
        "date",
        "duration",
        "elapsed",
        "hash",
        "id",
        "ids",
        "idx",
        "index",
    }
    | {"latency", "time", "timestamp", "timing", "title", "tokens", "ts", "updated", "usage", "uuid", "version"}
)
"""Last words of keys for a program's own bookkeeping: when, where, which, how much."""
_EXACTLY = frozenset({("finish", "reason"), ("stop", "reason"), ("user", "type")})
_OF_A_CALL = frozenset({"call", "use", "tool", "toolcall"})


@lru_cache(maxsize=1_024)
def severity_of(key: str) -> Severity:
    """Return the severity of losing a key that is not read: ids of calls connect messages, other ids do not."""
    words = tuple(word.lower() for word in _WORDS.findall(key))
    if not words:
        return "dropped"
    is_kept_for_records = words[-1] in _RECORD_KEEPING and _OF_A_CALL.isdisjoint(words)
    return "noted" if is_kept_for_records or words in _EXACTLY else "dropped"


_CONTAINERS = (dict, list)


def _parse(text: str) -> Json:
    """Return the objects in a text; None if it is another text, which the reader uses as it is."""
    try:
        return parse_json(text) if text.lstrip()[:1] in {"[", "{"} else None
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None


def _is_empty(value: Json) -> bool:
    """Return whether a value is empty: tables fill in nulls, programs write empty lists."""
    return value is None or (type(value) in {str, list, dict} and not value)


_PLAIN_NAME = re.compile(r"\w+")


def _paths(link: Link, new: list[str]) -> list[tuple[str, str, int]]:
    steps: list[str | int] = []
    while link is not None:
        link, step = link[0], link[1]
        steps.append(step)
    path = "$"
    for step in reversed(steps):
        path = step_into(path, step)
    return [(path + _step(key), key, len(steps) + 1) for key in new]


def step_into(path: str, step: str | int) -> str:
    """Return the path of an element, or of the value of a key."""
    return f"{path}[{step}]" if isinstance(step, int) else path + _step(step)


@lru_cache(maxsize=1_024)
def _step(key: str) -> str:
    return f".{key}" if _PLAIN_NAME.fullmatch(key) else f"[{key!r}]"


def merge_keys(first: Keys, second: Keys) -> Keys:
    """Return the keys of objects that may be of either kind, without a key that names it."""
    inner: Mapping[str, Keys] = dict(first.inner)
    both = {**inner, **{key: merge_keys(inner[key], kind) if key in inner else kind for key, kind in second.inner}}
    names = None if first.names is None or second.names is None else first.names | second.names
    return Keys(names, tuple(both.items()), items=first.items or second.items)
