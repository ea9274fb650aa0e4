"""Mentions: a message that starts with `@name` goes to that model, `@all` to all, other text to the default."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches

ALL = "all"
# A name consists of ASCII letters, digits, `_`, `.` and `-`: `@allies` is not `@all`, and in
# `@geminiこんにちは`, written without a space, the name is `gemini`.
_MENTION = re.compile(r"\s*@([A-Za-z0-9_][A-Za-z0-9_.-]*)")
_PUNCTUATION = ".-"


class UnknownMention(ValueError):
    """The message starts with an unknown name, most likely a typo."""

    def __init__(self, name: str, models: Sequence[str]) -> None:
        near = get_close_matches(name, [*models, ALL], 1)
        names = ", ".join(f"@{one}" for one in (*models, ALL))
        hint = f"did you mean @{near[0]}?" if near else f"the models are {names}."
        super().__init__(f"There is no model named @{name}: {hint} Nothing was sent.")


def resolve_mentions(text: str, models: Sequence[str], default: Sequence[str] = ()) -> tuple[str, ...]:
    """Returns the models mentioned at the start of the text, in the order of the conversation; none means a memo.

    Case does not matter; several mentions add up.

    >>> resolve_mentions("@claude @gemini hello", ("gemini", "claude"))
    ('gemini', 'claude')
    >>> resolve_mentions("@allies are text", ("gemini",))
    ()
    """
    known = {name.casefold(): name for name in models}
    named: set[str] = set()
    for word in _mentions(text):
        if word not in known and word != ALL:
            break
        named.update(models if word == ALL else (known[word],))
    if not named:
        named.update(name for one in default for name in (models if one == ALL else (one,)))
    return tuple(name for name in models if name in named)


def unknown_mention(text: str, models: Sequence[str]) -> str | None:
    """Returns an unknown name that is mentioned at the start, so that a typo can be reported.

    >>> unknown_mention("@gemni hello", ("gemini",))
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
