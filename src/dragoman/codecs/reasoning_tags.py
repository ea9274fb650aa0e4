"""Reasoning, calls and results between tags in text, as open models write them. Linear in the text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

_OPEN, _CLOSE = "<think>", "</think>"


def split_thinking(text: str) -> tuple[str, str]:
    """Split a text that begins with reasoning into (reasoning, answer); return ("", text) for any other.

    Only the beginning counts: an answer that mentions the tag is still an answer.
    """
    led = text.lstrip()
    if not led.startswith(_OPEN):
        return "", text
    thought, closed, rest = led[len(_OPEN) :].partition(_CLOSE)
    return (thought.strip("\n"), rest.lstrip("\n")) if closed else ("", text)


def join_thinking(thought: str, text: str) -> str:
    """Return the text with its reasoning before it."""
    return f"{_OPEN}\n{thought}\n{_CLOSE}\n\n{text}" if thought else text


class Tagged(NamedTuple):
    """The text between an opening and a closing tag, and the span of both tags and the text."""

    inner: str
    start: int
    end: int


def between_tags(text: str, opening: str, closing: str) -> Iterator[Tagged]:
    """Yield everything between these tags, in order. A tag that is never closed is text."""
    start = text.find(opening)
    while start >= 0:
        stop = text.find(closing, start + len(opening))
        if stop < 0:
            return
        end = stop + len(closing)
        yield Tagged(text[start + len(opening) : stop].strip(), start, end)
        start = text.find(opening, end)
