"""How much of a model's window a conversation takes, and which turns are dropped when it does not fit.

OpenAI models are counted by their own tokenizer if tiktoken and its tables are available. Otherwise tokens are
estimated: letters of alphabets share tokens, Japanese, Chinese and Korean characters take most of one each. Usage that
a provider reported for earlier answers corrects either count, see `calibrate`.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from hashlib import blake2b
from importlib import import_module
from typing import Any, TypeAlias

from msgspec import Struct

from dragoman.catalogue import lookup
from dragoman.chat.entries import Entry, Part
from dragoman.chat.payloads import as_text, call_of

PER_MESSAGE = 4
PER_CALL = 8
PER_IMAGE = 1_100
PER_PAGE = 1_500
_PAGE = 60_000
"""Base64 characters of a document that count as one page."""
SHARE_FOR_ANSWER = 0.1
"""Share of a window that stays free for the answer, at most `MOST_FOR_ANSWER`."""
MOST_FOR_ANSWER = 8_000

Counter: TypeAlias = Callable[[str], int]

# ── counting ──────────────────────────────────────────────────────────────────────────────────────────────────

_IDEOGRAPHS = re.compile(r"[\u2E80-\u2FDF\u3000-\u9FFF\uAC00-\uD7AF\uF900-\uFAFF\uFF00-\uFFEF\U00020000-\U0003FFFF]")
_NUMBERS = re.compile(r"\d{1,3}")
_WORDS = re.compile(r"[^\W\d_]+")
# `snake_case` has no token for its underscore, and a ruler of dashes has few.
_SIGNS = re.compile(r"[^\w\s]+|_+(?![^\W\d_])")
_RULERS = re.compile(r"([^\w\s]|_)\1{3,}")
_RULER = "--"
_BEYOND = 0x2000
_WORD_LETTERS = 6
_OTHER_ALPHABET_LETTERS = 3.0
_FURTHER_SIGN = 0.6
"""Tokens of each further character in a run of punctuation such as `(**`."""
_OF_JSON = frozenset('"{}[]:,')
"""Runs of these, such as `":{"`, are one token each, because tokenizers are trained on much JSON."""
# Tokens per character, between prose (0.4 to 0.8) and names and rare characters (1.3) in current tokenizers.
_PER_IDEOGRAPH = 0.75
_REMEMBERED = 1 << 14
"""Size of a cache: gauges are updated far more often than messages are sent."""
_SHORT = 1_000
"""Characters of a text that a cache keeps as it is."""


class CachedCounter:
    """A counter that remembers what it counted. Long texts are remembered by digest: otherwise they stay in memory."""

    def __init__(self, count: Counter) -> None:
        self._count = count
        self._known: dict[str | bytes, int] = {}
        self._lock = threading.Lock()

    def __call__(self, text: str) -> int:
        key: str | bytes = text
        if len(text) > _SHORT:
            key = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        known = self._known.get(key)
        if known is None:
            known = self._count(text)
            with self._lock:
                if len(self._known) >= _REMEMBERED:
                    del self._known[next(iter(self._known))]
                self._known[key] = known
        return known


def estimate(text: str) -> int:
    """Estimates the tokens of a text (docs/chat.md has the measured error).

    >>> estimate("The weather in Paris is fine today.")
    8
    """
    return _estimated(text)


def _count_estimate(text: str) -> int:
    rest, ideographs = _IDEOGRAPHS.subn(" ", text)
    words = sum(_word_tokens(found[0]) for found in _WORDS.finditer(rest))
    numbers = len(_NUMBERS.findall(rest))
    signs = sum(_punctuation_tokens(row) for row in _SIGNS.findall(_RULERS.sub(_RULER, rest)))
    return round(ideographs * _PER_IDEOGRAPH + words + numbers + signs)


_estimated = CachedCounter(_count_estimate)


def _word_tokens(word: str) -> float:
    if word.isascii():
        return max(1, len(word) / _WORD_LETTERS)
    return max(1, len(word) / _OTHER_ALPHABET_LETTERS)


def _punctuation_tokens(signs: str) -> float:
    if signs.isascii():
        return 1 if _OF_JSON.issuperset(signs) else 1 + (len(signs) - 1) * _FURTHER_SIGN
    return sum(2 if ord(sign) > _BEYOND else 1 for sign in signs)


class Tables:
    """Tokenizers of tiktoken. A table may have to be downloaded first; until then the estimate is used."""

    def __init__(self) -> None:
        self._counters: dict[str, Counter | None] = {}
        self._threads: dict[str, threading.Thread] = {}

    def counter(self, encoding: str) -> Counter | None:
        """The counter, or None while its table is being loaded."""
        if encoding not in self._threads:
            thread = threading.Thread(target=self._load, args=(encoding,), daemon=True, name=f"tiktoken {encoding}")
            self._threads[encoding] = thread
            thread.start()
        return self._counters.get(encoding)

    def wait(self, seconds: float | None = None) -> None:
        for thread in list(self._threads.values()):
            thread.join(seconds)

    def _load(self, encoding: str) -> None:
        try:
            table: Any = import_module("tiktoken").get_encoding(encoding)
        except Exception:  # noqa: BLE001 - not installed, or no table: use the estimate
            return
        self._counters[encoding] = CachedCounter(lambda text: len(table.encode(text, disallowed_special=())))


TABLES = Tables()


def counter_of(model: str, tables: Tables = TABLES) -> Counter | None:
    """The tokenizer of `provider/model` itself, if it is available on this machine."""
    encoding = next((name for pattern, name in _ENCODINGS if fnmatchcase(model, pattern)), None)
    return None if encoding is None else tables.counter(encoding)


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

# ── what providers report ─────────────────────────────────────────────────────────────────────────────────────

ESTIMATED = "estimated"
"""Key in an entry's usage, next to the provider's `input`: our own count of the same request."""
_LEAST = 200
"""Below this many tokens, the ratio reflects overhead around the text rather than the text."""
_RATES = (0.6, 1.6)


class Scale(Struct, frozen=True):
    """Converts our count to the provider's."""

    rate: float = 1.0
    offset: float = 0.0
    reported: bool = False
    """Whether the provider has reported usage."""

    def of(self, tokens: int) -> int:
        return max(0, round(tokens * self.rate + self.offset))


def calibrate(entries: Sequence[Entry], name: str, model: str, *, exact: bool = False) -> Scale:
    """Calibrates by the model's newest answer with reported usage: exact for that request, close for others.

    The rate is how its tokenizer differs from our estimate; the rest is what the provider adds, such as instructions
    for tools.
    """
    for entry in reversed(entries):
        if entry.role != name or entry.model != model or entry.replaced:
            continue
        reported, estimated = entry.usage.get("input"), entry.usage.get(ESTIMATED)
        if isinstance(reported, int) and isinstance(estimated, int) and reported > 0 < estimated:
            least, most = _RATES
            rate = 1.0 if exact or estimated < _LEAST else min(max(reported / estimated, least), most)
            return Scale(rate, reported - estimated * rate, reported=True)
    return Scale()


# ── windows ───────────────────────────────────────────────────────────────────────────────────────────────────

DEFAULT_WINDOW = 32_768
"""For a model that is not in the catalogue: too small loses history, too large causes an error."""
_LOCAL = "local/"
_LOCAL_WINDOW = 8_192
"""The window that `dragoman.local` starts a model with."""
_LOCAL_VARIABLE = "DRAGOMAN_LOCAL_CONTEXT"
"""The environment variable that changes it."""


def window_of(name: str, model: str, environment: Mapping[str, str] | None = None) -> int:
    """The model's window in tokens: `CHAT_CONTEXT_<NAME>`, `CHAT_CONTEXT`, the catalogue, or the default."""
    known = os.environ if environment is None else environment
    own = f"CHAT_CONTEXT_{re.sub(r'[^A-Z0-9]', '_', name.upper())}"
    for variable in (own, "CHAT_CONTEXT", *((_LOCAL_VARIABLE,) if model.startswith(_LOCAL) else ())):
        value = known.get(variable, "")
        if value.isdecimal() and int(value) > 0:
            return int(value)
    provider, _, rest = model.partition("/")
    found = lookup(provider, rest)
    if found is not None and found.context_window is not None:
        return found.context_window
    return _LOCAL_WINDOW if model.startswith(_LOCAL) else DEFAULT_WINDOW


class Gauge(Struct, frozen=True):
    """How full the window of a model is. `exact`: counted by the model's own tokenizer."""

    model: str
    used: int
    window: int
    exact: bool = False
    dropped_turns: int = 0
    """Number of oldest turns that the next request would leave out."""
    reported: bool = False
    """Whether it is corrected by usage that the provider reported."""

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
    counted: int = 0
    """Our own count, before scaling."""


def oldest(turns: int) -> str:
    return "the oldest turn" if turns == 1 else f"the {turns} oldest turns"


def room_for_prompt(window: int) -> int:
    return window - min(round(window * SHARE_FOR_ANSWER), MOST_FOR_ANSWER)


def turns_of(entries: Iterable[Entry]) -> list[list[Entry]]:
    """Groups entries into turns: a user entry with all that follows. A turn is kept or dropped as a whole."""
    turns: list[list[Entry]] = []
    for entry in entries:
        if (turns and entry.turn and entry.turn == turns[-1][0].turn) or (turns and entry.role != "user"):
            turns[-1].append(entry)
        else:
            turns.append([entry])
    return turns


class Measure(Struct, frozen=True, kw_only=True):
    """How one model counts tokens, and the size of its window."""

    name: str = "the model"
    window: int
    fixed: int = 0
    """Tokens of what is always sent: system prompt and tools."""
    counter: Counter = estimate
    exact: bool = False
    scale: Scale = Scale()

    def fit_turns(self, entries: Iterable[Entry]) -> Fitted:
        """The newest turns that fit, in order."""
        turns = turns_of(entries)
        sizes = self._sizes(turns)
        room = room_for_prompt(self.window)
        dropped = self._count_dropped(sizes)
        total = self.fixed + sum(sizes[dropped:])
        if self.scale.of(total) > room:
            raise DoesNotFit(
                f"{self.name} takes {self.window:,} tokens, {room:,} of them for what is sent; this message needs "
                f"{sum(sizes[-1:]):,}, the system prompt and tools {self.scale.of(self.fixed):,}, and no earlier turn "
                "can be left out. Shorten the message or the system prompt, or use a model with a larger window."
            )
        remaining = tuple(entry for turn in turns[dropped:] for entry in turn)
        return Fitted(remaining, self.scale.of(total), dropped, total)

    def gauge(self, entries: Iterable[Entry]) -> Gauge:
        sizes = self._sizes(turns_of(entries))
        used = self.scale.of(self.fixed + sum(sizes))
        return Gauge(self.name, used, self.window, self.exact, self._count_dropped(sizes), self.scale.reported)

    def _sizes(self, turns: Iterable[Iterable[Entry]]) -> list[int]:
        return [sum(count_entry(entry, self.counter) for entry in turn) for turn in turns]

    def _count_dropped(self, sizes: Sequence[int]) -> int:
        """How many of the oldest turns do not fit. The newest is never dropped."""
        total, room = self.fixed + sum(sizes), room_for_prompt(self.window)
        dropped = 0
        while dropped < len(sizes) - 1 and self.scale.of(total) > room:
            total -= sizes[dropped]
            dropped += 1
        return dropped
