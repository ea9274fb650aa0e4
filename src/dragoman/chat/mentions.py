"""Who is meant: a message that starts with `@name` goes to that model, `@all` to all, anything else is a memo."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

ALL = "all"
# The word ends where ASCII letters, digits, `_`, `.` and `-` end: `@allies` is another word than `@all`, and in
# `@geminiこんにちは`, where no blank is usual, the name is `gemini`.
_MENTION = re.compile(r"\s*@([A-Za-z0-9_][A-Za-z0-9_.-]*)")
_PUNCTUATION = ".-"


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
    place = 0
    while (found := _MENTION.match(text, place)) is not None:
        word = found[1].rstrip(_PUNCTUATION).casefold()
        if word not in known and word != ALL:
            break
        named.update(models if word == ALL else (known[word],))
        place = found.end()
    if not named:
        named.update(name for one in default for name in (models if one == ALL else (one,)))
    return Addressed(tuple(name for name in models if name in named))
