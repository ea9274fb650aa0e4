"""Layout of the heat map. svg.py and png.py render it.

Colours are distinguishable with colour blindness, and every cell has a letter.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from dragoman.fidelity.cases import KINDS, Kind
from dragoman.fidelity.catalogue import FEATURES
from dragoman.fidelity.judging import VERDICTS, Verdict
from dragoman.fidelity.matrix import Matrix
from dragoman.fidelity.tables import LETTERS, MEANINGS

CELL = 17
GAP = 7  # between sources
LABELS = 300  # width of the names of features
TOP = 140
MARGIN = 16

COLOURS: dict[Verdict | None, tuple[str, str]] = {
    "exact": ("#0b4f7d", "#ffffff"),
    "carried": ("#8cc4e8", "#10222e"),
    "degraded": ("#f3d06b", "#2e2405"),
    "refused": ("#8a8a94", "#ffffff"),
    "silent": ("#b3261e", "#ffffff"),
    None: ("#f1f1f3", "#a0a0a8"),
}
"""Verdict -> fill and letter."""
INK = "#1c1c22"
FAINT = "#6b6b75"
PAPER = "#ffffff"

SHORT = {
    "openai-chat": "OC",
    "openai-responses": "OR",
    "anthropic-messages": "AM",
    "gemini": "Ge",
    "vertex": "Ve",
    "bedrock-converse": "BC",
    "ollama-chat": "Ol",
    "cohere-chat": "Co",
    "gemini-interactions": "GI",
}


class Label(Struct, frozen=True):
    x: float
    y: float
    text: str
    size: int = 12
    anchor: Literal["start", "middle", "end"] = "start"
    bold: bool = False
    fill: str = INK


class Box(Struct, frozen=True):
    """One cell."""

    x: float
    y: float
    verdict: Verdict | None


class Picture(Struct, frozen=True):
    width: int
    height: int
    title: str
    description: str
    shapes: tuple[Label | Box, ...]


def draw(matrix: Matrix) -> Picture:
    """Rows are features, in three blocks for requests, responses and streams; columns are pairs, grouped by source."""
    shapes = [*_header(matrix), *_legend()]
    y = TOP + MARGIN
    for kind in KINDS:
        block = list(_block(matrix, kind, y))
        shapes += block
        y = int(max(shape.y for shape in block)) + 2 * CELL
    shapes += list(_key(matrix, y))
    width = int(_column(matrix, len(matrix.formats) - 1, len(matrix.formats))) + MARGIN
    title = f"How faithful each conversion is ({matrix.name} {matrix.version})"
    return Picture(width, y + 2 * CELL, title, _describe(matrix), tuple(shapes))


def _column(matrix: Matrix, source: int, target: int) -> float:
    return LABELS + source * (len(matrix.formats) * CELL + GAP) + target * CELL


def _header(matrix: Matrix) -> Iterator[Label]:
    yield Label(MARGIN, 26, f"How faithful each conversion is: {matrix.name} {matrix.version}", 17, bold=True)
    for place, source in enumerate(matrix.formats):
        middle = (_column(matrix, place, 0) + _column(matrix, place, len(matrix.formats))) / 2
        yield Label(middle, TOP - 12, f"from {source}", 10, "middle", bold=True)
        for number, target in enumerate(matrix.formats):
            center = _column(matrix, place, number) + CELL / 2
            yield Label(center, TOP + 4, SHORT.get(target, target[:2]), 9, "middle", fill=FAINT)


def _legend() -> Iterator[Label | Box]:
    for place, verdict in enumerate((*VERDICTS, None)):
        x, y = MARGIN + (place % 2) * 520, 40 + (place // 2) * (CELL + 3)
        yield Box(x, y, verdict)
        yield Label(x + CELL + 5, y + 12.5, f"{verdict or 'not applicable'}: {MEANINGS[verdict]}", 11)


def _block(matrix: Matrix, kind: Kind, top: int) -> Iterator[Label | Box]:
    yield Label(MARGIN, top + 12, f"{kind}s", 13, bold=True)
    titles = {feature.name: feature.title for feature in FEATURES}
    for row, feature in enumerate(matrix.features(kind)):
        y = top + CELL * (row + 1)
        yield Label(LABELS - 8, y + 12.5, titles[feature], 11, "end")
        for place, source in enumerate(matrix.formats):
            for number, target in enumerate(matrix.formats):
                yield Box(_column(matrix, place, number), y, matrix.verdict(kind, feature, source, target))


def _key(matrix: Matrix, y: int) -> Iterator[Label]:
    names = ", ".join(f"{SHORT.get(name, name[:2])} = {name}" for name in matrix.formats)
    yield Label(MARGIN, y + 12, f"Columns are targets, grouped by source: {names}.", 11, fill=FAINT)


def _describe(matrix: Matrix) -> str:
    total = dict.fromkeys(VERDICTS, 0)
    for source in matrix.formats:
        for target in matrix.formats:
            for verdict, count in matrix.counts(source, target).items():
                total[verdict] += count
    counts = ", ".join(f"{count} {verdict}" for verdict, count in total.items())
    return (
        f"Heat map of features by pairs of formats. In all: {counts}. The same as text: fidelity.md and fidelity.json."
    )


def letter(verdict: Verdict | None) -> str:
    return LETTERS[verdict]
