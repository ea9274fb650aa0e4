"""Who is meant: a message that starts with `@name` goes to that model, `@all` to all, other text to the default."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches

from msgspec import Struct

ALL = "all"
# The word ends where ASCII letters, digits, `_`, `.` and `-` end: `@allies` is another word than `@all`, and in
# `@geminiこんにちは`, where no blank is usual, the name is `gemini`.
_MENTION = re.compile(r"\s*@([A-Za-z0-9_][A-Za-z0-9_.-]*)")
_PUNCTUATION = ".-"


class UnknownMention(ValueError):
    """A message that starts with a name that no model has, most likely a slip."""

    def __init__(self, name: str, models: Sequence[str]) -> None:
        near = get_close_matches(name, [*models, ALL], 1)
        names = ", ".join(f"@{one}" for one in (*models, ALL))
        hint = f"did you mean @{near[0]}?" if near else f"there are {names}."
        super().__init__(f"No model is called @{name}: {hint} Nothing was sent.")


class Addressed(Struct, frozen=True):
    """The models a message is for, in the order of the conversation; none means that it is a memo."""

    models: tuple[str, ...]

    @property
    def is_memo(self) -> bool:
        return not self.models


def addressed(text: str, models: Sequence[str], default: Sequence[str] = ()) -> Addressed:
    """Whom the mentions at the start of the text name. Case does not matter; several mentions add up.

    >>> addressed("@claude @gemini hello", ("gemini", "claude")).models
    ('gemini', 'claude')
    >>> addressed("@allies are text", ("gemini",)).is_memo
    True
    """
    known = {name.casefold(): name for name in models}
    named: set[str] = set()
    for word in _mentions(text):
        if word not in known and word != ALL:
            break
        named.update(models if word == ALL else (known[word],))
    if not named:
        named.update(name for one in default for name in (models if one == ALL else (one,)))
    return Addressed(tuple(name for name in models if name in named))


def stranger(text: str, models: Sequence[str]) -> str | None:
    """The name at the start of a message that looks like a mention and is none, so that a slip can be told.

    >>> stranger("@gemni hello", ("gemini",))
    'gemni'
    """
    word = next(_mentions(text), None)
    return None if word is None or word == ALL or word in {name.casefold() for name in models} else word


def _mentions(text: str) -> Iterator[str]:
    """The `@words` that the text begins with."""
    place = 0
    while (found := _MENTION.match(text, place)) is not None:
        yield found[1].rstrip(_PUNCTUATION).casefold()
        place = found.end()
