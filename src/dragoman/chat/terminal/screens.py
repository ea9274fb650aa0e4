"""The output of the terminal chat: plain lines, or panels and columns with rich."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Protocol, TextIO, TypeAlias

from dragoman.chat.answers import LiveAnswer
from dragoman.chat.entries import Entry, Part
from dragoman.chat.events import AnyChatEvent
from dragoman.terminal import Style

GaugeOf: TypeAlias = Callable[[str], str]
"""Describes how full a model's window is, given its name."""
_NO_MOVES = frozenset({"", "dumb", "unknown"})


class Screen(Protocol):
    """Where the conversation is shown."""

    gauge: GaugeOf
    simulated: frozenset[str]
    """Models answered by a simulator; their answers are marked."""

    def show(self, event: AnyChatEvent, running: Sequence[LiveAnswer]) -> None: ...
    def entries(self, entries: Sequence[Entry]) -> None: ...
    def line(self, text: str, style: Style | None = None) -> None: ...
    def rows(self, rows: Sequence[tuple[str, str]]) -> None:
        """A list in two columns."""
        ...

    def pause(self) -> None:
        """Holds back output while the user answers a question, until `resume`."""
        ...

    def resume(self) -> None: ...
    def redraw(self) -> None:
        """Called when the terminal was resized."""
        ...


def screen_of(stream: TextIO) -> Screen:
    """Panels on a terminal with rich; plain lines in a pipe or on a dumb terminal. NO_COLOR only removes colours."""
    if stream.isatty() and os.environ.get("TERM", "") not in _NO_MOVES and find_spec("rich") is not None:
        from dragoman.chat.terminal.panels import PanelScreen  # noqa: PLC0415 - needs an extra

        return PanelScreen(stream)
    from dragoman.chat.terminal.plain import PlainScreen  # noqa: PLC0415 - one of the two

    return PlainScreen(stream)


def shorten(text: str, lines: int) -> str:
    found = text.splitlines()
    return text if len(found) <= lines else "\n".join([*found[:lines], f"… {len(found) - lines} more lines"])


def other_part(part: Part) -> str:
    """Placeholder for an image or file."""
    return f"[{part.get('type')} {part.get('title') or ''}]".replace(" ]", "]")
