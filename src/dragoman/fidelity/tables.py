"""Verdicts as text and Markdown tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from dragoman.fidelity.cases import KINDS
from dragoman.fidelity.catalogue import FEATURES
from dragoman.fidelity.judging import VERDICTS, Verdict
from dragoman.fidelity.matrix import Cell, Matrix

LETTERS: dict[Verdict | None, str] = {
    "exact": "E",
    "carried": "C",
    "degraded": "D",
    "refused": "R",
    "silent": "!",
    None: "·",
}
MEANINGS: dict[Verdict | None, str] = {
    "exact": "the target has its own field for it, nothing is lost",
    "carried": "the target has no equal field; converted back, it is intact",
    "degraded": "it does not come back, and a loss is reported",
    "refused": "the conversion is refused, with a reason",
    "silent": "it does not come back, and no loss is reported",
    None: "the source does not have it",
}


def overview_rows(matrix: Matrix) -> list[tuple[str, ...]]:
    """One row per pair."""
    rows = [("from", "to", *VERDICTS)]
    for source in matrix.formats:
        for target in matrix.formats:
            counts = matrix.counts(source, target)
            if counts:
                rows.append((source, target, *(str(counts[verdict]) for verdict in VERDICTS)))
    return rows


def detail_rows(judged: Iterable[Cell]) -> list[tuple[str, ...]]:
    """One row per case and pair, with the reported losses."""
    heading = ("kind", "feature", "from", "to", "verdict", "because")
    return [
        heading,
        *(
            (cell.case.kind, cell.case.feature, cell.source, cell.target, cell.judgement.verdict, cell.judgement.reason)
            for cell in judged
        ),
    ]


def markdown(matrix: Matrix) -> str:
    """The overview, then one table per source."""
    return f"{overview_markdown(matrix)}\n{details_markdown(matrix)}"


def overview_markdown(matrix: Matrix) -> str:
    rows = ([f"**{f}**", *(count_verdicts(matrix, f, target) for target in matrix.formats)] for f in matrix.formats)
    return "\n".join([*table(["from \\ to", *matrix.formats], rows), "", *_legend()])


def details_markdown(matrix: Matrix) -> str:
    return "\n".join(line for source in matrix.formats for line in _details(matrix, source))


def count_verdicts(matrix: Matrix, source: str, target: str) -> str:
    """Counts of the verdicts of a pair, as letters."""
    counts = matrix.counts(source, target)
    return " ".join(f"{counts[verdict]}{LETTERS[verdict]}" for verdict in VERDICTS if counts[verdict]) or "-"


def _legend() -> Iterator[str]:
    yield from (f"- `{LETTERS[verdict]}` {verdict or 'not applicable'}: {text}." for verdict, text in MEANINGS.items())


def _details(matrix: Matrix, source: str) -> Iterator[str]:
    """Three letters in a cell: request, response, stream."""
    yield from ("", f"### From {source}", "", "Each cell: request, response, stream.", "")
    rows = []
    for feature in FEATURES:
        letters = [
            " ".join(LETTERS[matrix.verdict(kind, feature.name, source, target)] for kind in KINDS)
            for target in matrix.formats
        ]
        if any(letter.strip("· ") for letter in letters):
            rows.append([feature.title, *letters])
    yield from table(["feature", *matrix.formats], rows)


def table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(heading)} |"
    yield f"|{'---|' * len(heading)}"
    yield from (f"| {' | '.join(row)} |" for row in rows)
