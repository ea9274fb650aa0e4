"""The matrix of verdicts: by kind of exchange, feature, source and target format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TypeAlias

import msgspec
from msgspec import Struct

from dragoman.codecs.registry import formats
from dragoman.fidelity.cases import KINDS, Case, Kind
from dragoman.fidelity.catalogue import CASES
from dragoman.fidelity.interpreters import Interpreter
from dragoman.fidelity.judging import VERDICTS, Judgement, Verdict, judge

Targets: TypeAlias = dict[str, Verdict]
Rows: TypeAlias = dict[Kind, dict[str, dict[str, Targets]]]
"""Kind of exchange -> feature -> source -> target -> verdict. Entries that do not apply are absent."""


class Cell(Struct, frozen=True):
    """The verdict on one case for one pair of formats."""

    case: Case
    source: str
    target: str
    judgement: Judgement


class Matrix(Struct, frozen=True):
    """The verdicts on one interpreter."""

    name: str
    version: str
    formats: tuple[str, ...]
    rows: Rows

    def verdict(self, kind: Kind, feature: str, source: str, target: str) -> Verdict | None:
        return self.rows.get(kind, {}).get(feature, {}).get(source, {}).get(target)

    def counts(self, source: str, target: str) -> Counter[Verdict]:
        """How many cases of a pair are exact, carried and so on."""
        every = (sources.get(source, {}).get(target) for rows in self.rows.values() for sources in rows.values())
        return Counter(verdict for verdict in every if verdict is not None)

    def features(self, kind: Kind) -> list[str]:
        return list(self.rows.get(kind, {}))


def cells(
    interpreter: Interpreter,
    sources: Iterable[str] | None = None,
    targets: Iterable[str] | None = None,
    cases: Iterable[Case] = CASES,
) -> Iterator[Cell]:
    """Every case that applies, judged."""
    targets = tuple(targets or formats())
    for case in cases:
        for source in sources or formats():
            for target in targets:
                judgement = judge(case, source, target, interpreter)
                if judgement is not None:
                    yield Cell(case, source, target, judgement)


def matrix_of(interpreter: Interpreter, judged: Iterable[Cell], names: Iterable[str] | None = None) -> Matrix:
    rows: Rows = {kind: {} for kind in KINDS}
    for cell in judged:
        sources = rows[cell.case.kind].setdefault(cell.case.feature, {})
        sources.setdefault(cell.source, {})[cell.target] = cell.judgement.verdict
    return Matrix(interpreter.name, interpreter.version, tuple(names or formats()), rows)


def to_json(matrix: Matrix) -> bytes:
    """Indented JSON with one line per source, so that a changed cell is one changed line."""
    text = msgspec.json.format(msgspec.json.encode(matrix), indent=1).decode()
    lines: list[str] = []
    for line in text.splitlines():
        stripped = line.strip()
        before = lines[-1] if lines else ""
        ends_source = line.startswith(" " * _JOINED + "}") and not before.strip().startswith("}")
        if lines and (len(line) - len(line.lstrip()) > _JOINED or ends_source):
            lines[-1] += stripped if before.endswith("{") or stripped.startswith("}") else f" {stripped}"
        else:
            lines.append(line)
    return ("\n".join(lines) + "\n").encode()


_JOINED = 4  # indentation of a source


def from_json(content: bytes) -> Matrix:
    return msgspec.json.decode(content, type=Matrix)


def changes(old: Matrix, new: Matrix) -> tuple[list[str], list[str]]:
    """(worse, better): cells whose verdict changed; one that is gone is worse, one that is new is better."""
    worse: list[str] = []
    better: list[str] = []
    for place, before, after in _compare(old, new):
        if before != after:
            gone_or_worse = after is None or (before is not None and VERDICTS.index(after) > VERDICTS.index(before))
            (worse if gone_or_worse else better).append(f"{place}: {before or '-'} -> {after or '-'}")
    return worse, better


def _compare(old: Matrix, new: Matrix) -> Iterator[tuple[str, Verdict | None, Verdict | None]]:
    names = tuple(dict.fromkeys((*old.formats, *new.formats)))
    for kind in KINDS:
        for feature in dict.fromkeys((*old.features(kind), *new.features(kind))):
            for source in names:
                for target in names:
                    way = (kind, feature, source, target)
                    yield f"{kind} {feature}: {source} -> {target}", old.verdict(*way), new.verdict(*way)
