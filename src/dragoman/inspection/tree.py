"""Text trees: each line has a head, a text that may be shortened, and remarks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from dragoman.terminal import Style, Terminal, columns, shorten, visible

_LEAST_TEXT = 16
_PER_COLUMN = 4
"""Characters examined per column: enough for combining ones, without scanning megabytes for one line."""


@dataclass(slots=True)
class Node:
    """One line of a tree and its children."""

    head: str
    text: str = ""
    remark: str = ""
    warning: str = ""
    style: Style | None = None
    children: list[Node] = field(default_factory=list)

    def add(self, child: Node) -> Node:
        self.children.append(child)
        return child


def render(node: Node, terminal: Terminal, *, full: bool = False) -> Iterator[str]:
    """The lines of the tree. `full` does not shorten texts."""
    return _lines(node, "", "", terminal, full=full)


def _lines(node: Node, lead: str, below: str, terminal: Terminal, *, full: bool) -> Iterator[str]:
    yield terminal.paint(lead, "dim") + _line(node, terminal, terminal.width - columns(lead), full=full)
    fork, last, bar = ("├─ ", "└─ ", "│  ") if terminal.lines else ("|- ", "`- ", "|  ")
    for index, child in enumerate(node.children):
        final = index == len(node.children) - 1
        yield from _lines(
            child, below + (last if final else fork), below + ("   " if final else bar), terminal, full=full
        )


def _line(node: Node, terminal: Terminal, width: int, *, full: bool) -> str:
    start = node.text if full else node.text[: _PER_COLUMN * terminal.width]
    head, text, remark, warning = map(visible, (node.head, start, node.remark, node.warning))
    room = width - columns(head) - sum(columns(note) + 2 for note in (remark, warning) if note) - 1
    pieces = [terminal.paint(head, node.style)]
    if text:
        pieces.append(" " + (text if full else shorten(text, max(room, _LEAST_TEXT))))
    if remark:
        pieces.append("  " + terminal.paint(remark, "dim"))
    if warning:
        pieces.append("  " + terminal.paint(warning, "red"))
    return "".join(pieces)
