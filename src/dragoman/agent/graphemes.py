"""Where a text may be cut without splitting a visible character.

A short form of Unicode's rules (UAX 29): marks, joiners and modifiers stay with what they follow, flags are two
letters, Hangul letters keep together. No tables beyond those of the standard library.
"""

from __future__ import annotations

import unicodedata

_JOINER = "\u200d"
_FLAGS = range(0x1F1E6, 0x1F200)
_SKIN = range(0x1F3FB, 0x1F400)
_TAGS = range(0xE0020, 0xE0080)
_HANGUL_LATER = range(0x1160, 0x1200)  # vowels and final consonants
_MARKS = frozenset({"Mn", "Me", "Mc"})


def is_boundary(text: str, index: int) -> bool:
    """Whether the text may be cut before this index."""
    if index <= 0 or index >= len(text):
        return True
    before, after = text[index - 1], text[index]
    code = ord(after)
    if (before == "\r" and after == "\n") or _JOINER in {before, after}:
        return False
    if code in _SKIN or code in _TAGS or code in _HANGUL_LATER or unicodedata.category(after) in _MARKS:
        return False
    return not (code in _FLAGS and _flags_before(text, index) % 2)


def _flags_before(text: str, index: int) -> int:
    count = 0
    while index - count > 0 and ord(text[index - count - 1]) in _FLAGS:
        count += 1
    return count


def cut_before(text: str, index: int) -> int:
    """Return the last position at or before this index where the text may be cut."""
    index = min(max(index, 0), len(text))
    lowest = max(0, index - 64)  # a longer run of marks is cut anyway
    for place in range(index, lowest, -1):
        if is_boundary(text, place):
            return place
    return lowest if lowest == 0 else index


def clip(text: str, start: int, length: int) -> tuple[int, int]:
    """Return (start, end) of a window of at most about this length, moved so that it cuts no character."""
    begin = cut_before(text, start)
    end = cut_before(text, start + length)
    if end <= begin:  # one character is longer than the window
        end = min(start + length, len(text))
    return begin, end
