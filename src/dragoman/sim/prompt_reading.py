"""Extracts subjects, numbers, dates and quotations from a user's request."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

# Stop words: they say nothing about which tool is meant.
_COMMON_WORDS = """
a about all also an and any are as at be but by can could do does for from get give have how i if in is it its
let me my need now of on or please should so some tell that the then there this to tool tools two use using want
was we what whats when where which who will with would you your s fetch returns return function call calls given
current currently value values run make set both each exactly once one
"""
_COMMON = frozenset(_COMMON_WORDS.split())

_WORD = re.compile(r"[^\W_]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_QUOTED = re.compile(r"\"([^\"]{1,200})\"|“([^”]{1,200})”|'([^'\n]{1,200})'(?!\w)|`([^`]{1,200})`")
_PROPER = re.compile(r"\b[A-ZÀ-ÖØ-Þ][\w'\u2019.-]*(?:[ -](?:de |of |la |del )?[A-ZÀ-ÖØ-Þ][\w'\u2019-]*)*")
_AFTER_PREPOSITION = re.compile(r"\b(?:in|at|for|of|about|to|from|on|near)\s+(?:the\s+)?([^\W\d_][\w-]{2,})")
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w.]*\d)")
_THEN = re.compile(r"\b(?:and then|then|after that|afterwards|next,)\b", re.IGNORECASE)
_BETWEEN = re.compile(r",|;|\?|\n|\.(?=\s|$)|\band\b|\bas well as\b|\bplus\b", re.IGNORECASE)
# Words that start sentences with a capital letter but are not names.
_OPENERS_WORDS = """
ask call check compare compute convert create describe do explain fetch find first give how i i'm if is it let's
list look lookup make ok please read run search second send set show tell thanks then there translate use using
what what's when where which who why write yes no hi hello the a an my can could would should calculate celsius
fahrenheit add book get also both forecast weather time current in
"""
_OPENERS = frozenset(_OPENERS_WORDS.split())

# Coding agents put context beside the user's words: `<system-reminder>`, `<environment_context>`, `<INSTRUCTIONS>`.
_TAG = re.compile(r"<(/?)([A-Za-z][\w-]*)>")

FORMATS: dict[str, re.Pattern[str]] = {
    "email": re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"),
    "uri": re.compile(r"https?://[^\s\"'<>)]+"),
    "date-time": re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:Z|[+-]\d{2}:\d{2})"),
    "date": re.compile(r"\d{4}-\d{2}-\d{2}"),
    "time": re.compile(r"\b\d{2}:\d{2}:\d{2}\b"),
    "uuid": re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"),
    "ipv4": re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}\b"),
}


def without_context(text: str) -> str:
    """The text without blocks in tags: those of several lines, and those whose tag is no single word."""
    kept: list[str] = []
    end = 0
    opened: dict[str, int] = {}
    for tag in _TAG.finditer(text):
        name = tag[2]
        if not tag[1]:
            opened.setdefault(name, tag.start())
            continue
        start = opened.pop(name, None)
        if start is not None and (not name.isalpha() or "\n" in text[start : tag.end()]):
            kept.append(text[end:start])
            end = tag.end()
            opened.clear()
    return "".join([*kept, text[end:]]).strip() if end else text


def stem(word: str) -> str:
    """A rough stem: weathers, weather; locating, locate."""
    word = word.lower()
    for ending in ("ing", "es", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:  # noqa: PLR2004
            return word.removesuffix(ending)
    return word


def significant_stems(text: str) -> list[str]:
    """The stems of significant words, in order."""
    spaced = _CAMEL.sub(" ", text).replace("_", " ")
    return [stem(word) for word in _WORD.findall(spaced) if word.lower() not in _COMMON]


def steps_of(text: str) -> list[str]:
    """The steps of a request, to be done one after the other."""
    return [step for step in _THEN.split(text) if step.strip()] or [text]


def fragments_of(text: str) -> list[str]:
    """Parallel parts of a request. Quoted text is not split."""
    kept: list[str] = []

    def hide(match: re.Match[str]) -> str:
        kept.append(match[0])
        return f"\x00{len(kept) - 1}\x00"

    hidden = _QUOTED.sub(hide, text)
    fragments = [re.sub(r"\x00(\d+)\x00", lambda mark: kept[int(mark[1])], piece) for piece in _BETWEEN.split(hidden)]
    return [fragment.strip() for fragment in fragments if fragment.strip()]


def quotations(text: str) -> list[str]:
    return [next(group for group in match.groups() if group) for match in _QUOTED.finditer(text)]


def subjects(text: str) -> list[str]:
    """Subjects of the text: quotations, else names, else nouns after a preposition."""
    found = quotations(text) or list(_names(text)) or [match[1] for match in _AFTER_PREPOSITION.finditer(text)]
    return list(dict.fromkeys(found))


def _names(text: str) -> Iterator[str]:
    for match in _PROPER.finditer(text):
        words = match[0].rstrip(".'\u2019-").split(" ")
        while words and words[0].lower().rstrip(",") in _OPENERS:
            words.pop(0)
        if words:
            yield " ".join(words)


def numbers(text: str) -> list[float]:
    return [float(match[0]) for match in _NUMBER.finditer(text)]


def is_mentioned(value: str, text: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(value)}(?!\w)", text, re.IGNORECASE) is not None


def find_stated_value(name: str, text: str) -> str | None:
    """The value that the text gives for a parameter: `limit: 5`, `limit=5`, `limit is 5`, `limit 5`."""
    name_pattern = re.escape(name).replace("_", r"[_\s-]")
    given = re.search(rf"(?<!\w){name_pattern}(?:\s*[:=]\s*|\s+(?:is|of|to|should be)\s+)(.+)", text, re.IGNORECASE)
    if not given:
        return None
    rest = given[1].strip()
    marked = _QUOTED.match(rest)
    if marked:
        return next(group for group in marked.groups() if group)
    return re.split(r"[,;\n]|\s+and\s+|\.(?=\s|$)|\?", rest)[0].strip()


def overlap(words: Sequence[str], others: Sequence[str]) -> int:
    return len(set(words) & set(others))
