"""Capabilities of an output: colours, lines, width."""

from __future__ import annotations

import os
import shutil
import sys
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, TextIO, TypeAlias

Style: TypeAlias = Literal["bold", "dim", "red", "green", "yellow", "blue", "magenta", "cyan"]

_CODES: Mapping[Style, str] = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "magenta": "35",
    "cyan": "36",
}
# Characters that a terminal interprets: controls, direction marks and lone surrogates.
_OBEYED = (range(0x20), range(0x7F, 0xA0), range(0x2028, 0x202F), range(0x2066, 0x206A), range(0xD800, 0xE000))
_HARMLESS = {code: "\N{REPLACEMENT CHARACTER}" for codes in _OBEYED for code in codes if chr(code) not in "\n\t"}
_PIPE_WIDTH = 100
_LEAST_WIDTH = 40
_GAP = "  "


class Terminal(NamedTuple):
    """One output. `lines`: whether it can show box-drawing characters."""

    width: int
    colour: bool
    lines: bool

    def paint(self, text: str, style: Style | None) -> str:
        return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if self.colour and style and text else text


def terminal_of(stream: TextIO, *, colour: bool | None = None) -> Terminal:
    """A pipe or file gets plain text, unless `colour` is True or FORCE_COLOR is set, as for `less -R`.

    NO_COLOR (no-color.org) and TERM=dumb disable colours, unless `colour` is True.
    """
    shown = stream.isatty()
    if colour is None:
        wanted = shown or bool(os.environ.get("FORCE_COLOR"))
        colour = wanted and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    width = shutil.get_terminal_size((_PIPE_WIDTH, 24)).columns if shown else _requested_width()
    return Terminal(max(width, _LEAST_WIDTH), colour, lines=shown and _encodes(stream, "├└│─"))


def _requested_width() -> int:
    columns = os.environ.get("COLUMNS", "")
    return int(columns) if columns.isdecimal() and int(columns) > 0 else _PIPE_WIDTH


def _encodes(stream: TextIO, text: str) -> bool:
    try:
        text.encode(stream.encoding or "ascii")
    except (UnicodeError, LookupError):
        return False
    return True


def stdout() -> TextIO:
    """Standard output for text: unencodable characters are escaped instead of raising."""
    stream = sys.stdout
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="backslashreplace")
    return stream


def harmless(text: str) -> str:
    """Returns the text with control sequences made harmless, so that it is safe to print."""
    return text.replace("\r\n", "\n").translate(_HARMLESS)


def visible(text: str) -> str:
    """The text on one line, without control characters."""
    return harmless(text).replace("\n", "⏎").replace("\t", " ")


def columns(text: str) -> int:
    """How many columns the text takes on a terminal."""
    return len(text) if text.isascii() else sum(map(_columns_of, text))


def _columns_of(character: str) -> int:
    if unicodedata.category(character) in {"Mn", "Me", "Cf"}:  # combining marks and joiners
        return 0
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1


def shorten(text: str, width: int) -> str:
    """The text cut to `width` columns, with an ellipsis where something is missing."""
    if len(text) <= width and columns(text) <= width:
        return text
    taken, shown = 0, []
    for character in text:
        taken += _columns_of(character)
        if taken > width - 1:
            break
        shown.append(character)
    return "".join(shown) + "…"


def align_columns(rows: Sequence[Sequence[str]], *, widest: int = 60) -> list[str]:
    """Aligned lines, one per row. A cell wider than `widest` is not cut; it shifts only its own row."""
    widths = [min(max(map(columns, column)), widest) for column in zip(*rows, strict=True)]
    return [_GAP.join(map(_pad, row, widths)).rstrip() for row in rows]


def _pad(cell: str, width: int) -> str:
    return cell + " " * (width - columns(cell))
