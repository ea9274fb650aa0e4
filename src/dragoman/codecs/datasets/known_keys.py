"""The keys of a record that its reader reads: every format declares those of its objects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from msgspec import Struct, structs

Json: TypeAlias = Any


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


def merge_keys(first: Keys, second: Keys) -> Keys:
    """Return the keys of objects that may be of either kind, without a key that names it."""
    inner: Mapping[str, Keys] = dict(first.inner)
    both = {**inner, **{key: merge_keys(inner[key], kind) if key in inner else kind for key, kind in second.inner}}
    names = None if first.names is None or second.names is None else first.names | second.names
    return Keys(names, tuple(both.items()), items=first.items or second.items)
