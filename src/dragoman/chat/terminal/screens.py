"""What a terminal shows: plain lines, and panels and columns with rich on a terminal."""

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
"""How full the window of a model is, in a few words, by its name."""
_NO_MOVES = frozenset({"", "dumb", "unknown"})


class Screen(Protocol):
    """Where the conversation is shown."""

    gauge: GaugeOf
    simulated: frozenset[str]
    """Models for which a simulator answers: each answer of theirs says so."""

    def show(self, event: AnyChatEvent, running: Sequence[LiveAnswer]) -> None: ...
    def entries(self, entries: Sequence[Entry]) -> None: ...
    def line(self, text: str, style: Style | None = None) -> None: ...
    def rows(self, rows: Sequence[tuple[str, str]]) -> None:
        """A list in two columns."""
        ...

    def pause(self) -> None:
        """Pauses drawing while the user is asked something, until `resume`; nothing is lost."""
        ...

    def resume(self) -> None: ...
    def redraw(self) -> None:
        """The terminal has another size."""
        ...


def screen_of(stream: TextIO) -> Screen:
    """NO_COLOR takes the colours only; a terminal that cannot move its cursor, or a pipe, gets plain lines."""
    if stream.isatty() and os.environ.get("TERM", "") not in _NO_MOVES and find_spec("rich") is not None:
        from dragoman.chat.terminal.panels import PanelScreen  # noqa: PLC0415 - needs an extra

        return PanelScreen(stream)
    from dragoman.chat.terminal.plain import PlainScreen  # noqa: PLC0415 - one of the two

    return PlainScreen(stream)


def shortened(text: str, lines: int) -> str:
    found = text.splitlines()
    return text if len(found) <= lines else "\n".join([*found[:lines], f"… {len(found) - lines} more lines"])


def other_part(part: Part) -> str:
    """A picture or a file."""
    return f"[{part.get('type')} {part.get('title') or ''}]".replace(" ]", "]")
