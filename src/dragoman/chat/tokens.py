"""How much of a model's window a conversation takes, and what is left out when it does not fit.

Where tiktoken and its tables are at hand, models of OpenAI are counted exactly. Elsewhere an estimate counts: letters
of alphabets share a token by four, Japanese, Chinese and Korean signs take most of one each.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from importlib import import_module
from typing import Any, TypeAlias

from msgspec import Struct

from dragoman.chat.entries import Entry, Part
from dragoman.chat.payloads import as_text, call_of

PER_MESSAGE = 4
PER_CALL = 8
PER_IMAGE = 1_100
PER_PAGE = 1_500
_PAGE = 60_000
"""Base64 characters of a document that are taken for one page."""
SHARE_FOR_ANSWER = 0.1
"""Of a window stays free for the answer, at most `MOST_FOR_ANSWER`."""
MOST_FOR_ANSWER = 8_000

Counter: TypeAlias = Callable[[str], int]

# ── counting ──────────────────────────────────────────────────────────────────────────────────────────────────

_IDEOGRAPHS = re.compile(r"[\u2E80-\u2FDF\u3000-\u9FFF\uAC00-\uD7AF\uF900-\uFAFF\uFF00-\uFFEF\U00020000-\U0003FFFF]")
_NUMBERS = re.compile(r"\d{1,3}")
_WORDS = re.compile(r"[^\W\d_]+")
_SIGNS = re.compile(r"[^\w\s]|_")
_BEYOND = 0x2000
_WORD_LETTERS = 6
_OTHER_ALPHABET_LETTERS = 2.5
# Tokens a sign, between what current tokenizers need for prose (0.65) and for names and rare characters (1.3).
_PER_IDEOGRAPH = 0.75


def estimate(text: str) -> int:
    """Tokens of a text, a little more rather than less.

    >>> estimate("The weather in Paris is fine today.")
    8
    """
    rest, ideographs = _IDEOGRAPHS.subn(" ", text)
    words = sum(_word(found[0]) for found in _WORDS.finditer(rest))
    numbers = len(_NUMBERS.findall(rest))
    signs = sum(2 if ord(sign) > _BEYOND else 1 for sign in _SIGNS.findall(rest))
    return round(ideographs * _PER_IDEOGRAPH + words + numbers + signs)


def _word(word: str) -> float:
    if word.isascii():
        return max(1, len(word) / _WORD_LETTERS)
    return max(1, len(word) / _OTHER_ALPHABET_LETTERS)


@cache
def counter_of(model: str) -> Counter | None:
    """An exact counter for `provider/model`, where there is one on this machine."""
    encoding = next((name for pattern, name in _ENCODINGS if fnmatchcase(model, pattern)), None)
    if encoding is None:
        return None
    try:
        table: Any = import_module("tiktoken").get_encoding(encoding)
    except Exception:  # noqa: BLE001 - not installed, or its table cannot be fetched: the estimate serves
        return None
    return lambda text: len(table.encode(text, disallowed_special=()))


_ENCODINGS = (
    ("*/gpt-3.5*", "cl100k_base"),
    ("*/gpt-4-*", "cl100k_base"),
    ("*/gpt-*", "o200k_base"),
    ("*/o[134]*", "o200k_base"),
)


def count_entry(entry: Entry, counter: Counter = estimate) -> int:
    return PER_MESSAGE + sum(_count_part(part, counter) for part in entry.content)


def _count_part(part: Part, counter: Counter) -> int:
    count = _PARTS.get(str(part.get("type")))
    return counter(as_text(part)) if count is None else count(part, counter)


def _count_call(part: Part, counter: Counter) -> int:
    call = call_of(part)
    return PER_CALL + counter(str(call.get("name"))) + counter(as_text(call.get("arguments") or {}))


def _count_result(part: Part, counter: Counter) -> int:
    media = part.get("media")
    pictures = sum(_count_part(one, counter) for one in media) if isinstance(media, list) else 0
    return PER_CALL + counter(as_text(part.get("content") or "")) + pictures


def _count_document(part: Part, counter: Counter) -> int:
    text = part.get("text")
    return counter(text) if isinstance(text, str) else PER_PAGE * (1 + len(str(part.get("data", ""))) // _PAGE)


_PARTS: Mapping[str, Callable[[Part, Counter], int]] = {
    "text": lambda part, counter: counter(as_text(part.get("content") or "")),
    "reasoning": lambda part, counter: counter(as_text(part.get("content") or "")),
    "tool_call": _count_call,
    "tool_result": _count_result,
    "image": lambda *_: PER_IMAGE,
    "document": _count_document,
}

# ── windows ───────────────────────────────────────────────────────────────────────────────────────────────────

DEFAULT_WINDOW = 32_768
_WINDOWS: tuple[tuple[str, int], ...] = (
    ("*gemini-*", 1_000_000),
    ("*claude-*", 200_000),
    ("*gpt-5*", 400_000),
    ("*gpt-4.1*", 1_000_000),
    ("*gpt-4o*", 128_000),
    ("*gpt-4-turbo*", 128_000),
    ("*gpt-4*", 8_192),
    ("*gpt-3.5*", 16_385),
    ("*/o[134]*", 200_000),
    ("ollama/*", 32_768),
)


def window_of(name: str, model: str, environment: Mapping[str, str] | None = None) -> int:
    """Tokens a model takes: by `CHAT_CONTEXT_<NAME>`, by `CHAT_CONTEXT`, by the table, or the default."""
    known = os.environ if environment is None else environment
    for variable in (f"CHAT_CONTEXT_{re.sub(r'[^A-Z0-9]', '_', name.upper())}", "CHAT_CONTEXT"):
        value = known.get(variable, "")
        if value.isdecimal() and int(value) > 0:
            return int(value)
    return next((size for pattern, size in _WINDOWS if fnmatchcase(model, pattern)), DEFAULT_WINDOW)


class Gauge(Struct, frozen=True):
    """How full the window of a model is. `exact`: counted by the model's own tokenizer."""

    model: str
    used: int
    window: int
    exact: bool = False
    dropped_turns: int = 0
    """Oldest turns that would be left out if it were asked now."""

    @property
    def share(self) -> float:
        return self.used / self.window


# ── pruning ───────────────────────────────────────────────────────────────────────────────────────────────────


class DoesNotFit(ValueError):
    """The newest turn alone is too long for the window."""


class Fitted(Struct, frozen=True):
    entries: tuple[Entry, ...]
    tokens: int
    dropped_turns: int


def room_in(window: int) -> int:
    return window - min(round(window * SHARE_FOR_ANSWER), MOST_FOR_ANSWER)


def turns_of(entries: Iterable[Entry]) -> list[list[Entry]]:
    """Whole turns: what the user said with all that followed. Nothing within one is ever parted."""
    turns: list[list[Entry]] = []
    for entry in entries:
        if (turns and entry.turn and entry.turn == turns[-1][0].turn) or (turns and entry.role != "user"):
            turns[-1].append(entry)
        else:
            turns.append([entry])
    return turns


def fitted(
    entries: Sequence[Entry], *, fixed: int, window: int, counter: Counter | None = None, model: str = "the model"
) -> Fitted:
    """The newest turns that fit, in their order. `fixed` is what is always sent: system prompt and tools."""
    turns = turns_of(entries)
    sizes = [sum(count_entry(entry, counter or estimate) for entry in turn) for turn in turns]
    room = room_in(window)
    total = fixed + sum(sizes)
    dropped = 0
    while total > room and dropped < len(turns) - 1:
        total -= sizes[dropped]
        dropped += 1
    if total > room:
        last = sizes[-1] if sizes else 0
        raise DoesNotFit(
            f"{model} takes {window:,} tokens, {room:,} of them for what is sent; this message needs {last:,}, the "
            f"system prompt and tools {fixed:,}, and no earlier turn is left to leave out. Shorten the message or the "
            "system prompt, or use a model with a larger window."
        )
    return Fitted(tuple(entry for turn in turns[dropped:] for entry in turn), total, dropped)
