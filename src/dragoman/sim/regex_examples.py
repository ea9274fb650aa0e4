"""Generates a short text that matches a regular expression, for a common subset of the syntax."""

from __future__ import annotations

import re
from dataclasses import dataclass

_CLASSES = {"d": "0", "w": "a", "s": " ", "D": "a", "W": "-", "S": "a", "b": "", "B": "", "A": "", "Z": "", "z": ""}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
_QUANTIFIER = re.compile(r"\{(\d+)(?:,(\d*))?\}|[*+?]")
# Candidates for negated classes: the first that is not excluded.
_FILLERS = "a0 A-_.x1"


def matching_text(pattern: str) -> str | None:
    """A text that matches; None if the pattern is invalid or beyond the subset (look-around, back references)."""
    try:
        text = _Writer(pattern).alternatives()
        return text if re.search(pattern, text) else None
    except (IndexError, re.error, ValueError):
        return None


@dataclass(slots=True)
class _Writer:
    pattern: str
    at: int = 0

    def alternatives(self) -> str:
        """Writes the first alternative, up to the end or a closing bracket."""
        first = self._sequence()
        while self._peek() == "|":
            self.at += 1
            self._sequence()
        return first

    def _peek(self) -> str:
        return self.pattern[self.at : self.at + 1]

    def _next(self) -> str:
        self.at += 1
        return self.pattern[self.at - 1]

    def _sequence(self) -> str:
        written: list[str] = []
        while self._peek() not in ("", "|", ")"):
            atom = self._atom()
            written.append(atom * self._times())
        return "".join(written)

    def _atom(self) -> str:
        symbol = self._next()
        match symbol:
            case "^" | "$":
                return ""
            case ".":
                return "a"
            case "\\":
                return self._write_escape()
            case "[":
                return self._class()
            case "(":
                return self._group()
        return symbol

    def _write_escape(self) -> str:
        symbol = self._next()
        if symbol.isdigit():
            raise ValueError("back references are beyond the subset")
        return _CLASSES.get(symbol, _ESCAPES.get(symbol, symbol))

    def _group(self) -> str:
        if self._peek() == "?":
            self.at += 1
            marker = self._next()
            if marker == "P" or (marker == "<" and self._peek() not in ("=", "!")):
                self.at = self.pattern.index(">", self.at) + 1
            elif marker != ":":
                raise ValueError("look-around is beyond the subset")
        inside = self.alternatives()
        if self._next() != ")":
            raise ValueError("an open group")
        return inside

    def _class(self) -> str:
        negated = self._peek() == "^"
        start = self.at + negated
        end = start + 1
        while self.pattern[end] != "]":
            end += 2 if self.pattern[end] == "\\" else 1
        self.at = end + 1
        if negated:
            source = self.pattern[start - 2 : end + 1]
            return next(filler for filler in _FILLERS if re.fullmatch(source, filler))
        first = self.pattern[start]
        return _CLASSES.get(self.pattern[start + 1], self.pattern[start + 1]) if first == "\\" else first

    def _times(self) -> int:
        found = _QUANTIFIER.match(self.pattern, self.at)
        if not found:
            return 1
        self.at = found.end()
        if self._peek() in ("?", "+"):  # lazy and possessive make no difference here
            self.at += 1
        if found[1] is not None:
            return int(found[1])
        return 0 if found[0] in ("*", "?") else 1
