"""Offsets in one text, counted in UTF-8 bytes (as Google counts) and in characters (as Python does)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate


class TextOffsets:
    """Converts offsets both ways. The text may grow; each conversion costs no more than a binary search."""

    def __init__(self, text: str = "") -> None:
        self.length = 0
        self._pieces = 0
        # Byte offset of each character and of the end of the text; None while every character is one byte.
        self._starts: list[int] | None = None
        self.extend(text)

    def extend(self, text: str) -> None:
        """Append to the text."""
        if self._starts is None and not text.isascii():
            self._starts = list(range(self.length + 1))
        self.length += len(text)
        if self._starts is not None:
            last = self._starts.pop()
            self._starts += accumulate(map(_size, text), initial=last)

    def catch_up(self, pieces: Sequence[str]) -> TextOffsets:
        """Append the pieces of a stream that have come since the last call."""
        self.extend("".join(pieces[self._pieces :]))
        self._pieces = len(pieces)
        return self

    def characters(self, place: int) -> int | None:
        """Return the character offset; None for a byte offset outside the text, or within a character."""
        if self._starts is None:
            return place if 0 <= place <= self.length else None
        index = bisect_left(self._starts, place)
        return index if index <= self.length and self._starts[index] == place else None

    def bytes(self, place: int) -> int:
        return place if self._starts is None else self._starts[min(place, self.length)]


def _size(character: str) -> int:
    return len(character.encode("utf-8", "surrogatepass"))
