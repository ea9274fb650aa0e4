"""Reports of the measurements: as a text table, as Markdown for the README, or as JSON."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from math import inf
from typing import Final

import orjson

from benchmarks import recorded_report
from benchmarks.candidates import Job
from benchmarks.cases import ALLOWANCE, IMPORT_LIMIT
from benchmarks.contest import Contest
from benchmarks.edges import Edge
from benchmarks.imports import ImportCost
from benchmarks.memory import LONG, SHORT, MemoryUse
from benchmarks.recorded import Row

_NOTHING: Final = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    versions: Mapping[str, str]
    contests: Sequence[Contest]
    imports: ImportCost | None
    memory: Sequence[MemoryUse] = ()
    rows: Sequence[Row] = ()
    edges: Sequence[Edge] = ()

    @property
    def failures(self) -> list[str]:
        found = [_over(contest) for contest in self.contests if contest.broken]
        if self.imports is not None and self.imports.ratio > IMPORT_LIMIT:
            found.append(f"import dragoman: {self.imports.ratio:.2f} x import msgspec, limit {IMPORT_LIMIT}")
        if self.imports is not None and self.imports.unwanted:
            found.append(f"import dragoman loads {', '.join(self.imports.unwanted)}")
        return [*found, *recorded_report.failures(self.rows, self.edges)]

    @property
    def known_misses(self) -> list[str]:
        """Figures over a limit that is known not to be met."""
        return [
            *(_over(contest) for contest in self.contests if contest.known and not contest.broken),
            *recorded_report.known_misses(self.rows),
        ]


def text(report: Report) -> str:
    return "\n\n".join(_sections(report, _aligned))


def markdown(report: Report) -> str:
    return "\n\n".join(_sections(report, _piped))


def _sections(report: Report, draw: Callable[[list[list[str]]], str]) -> Iterator[str]:
    if report.versions:
        yield "Measured: " + ", ".join(f"{name} {version}" for name, version in report.versions.items())
    yield from recorded_report.sections(report.rows, report.edges, draw)
    # Contests are ordered by candidate; sorting keeps that order within a case.
    cases = list({contest.case: None for contest in report.contests})
    ordered = sorted(report.contests, key=lambda contest: cases.index(contest.case))
    for case, contests in groupby(ordered, key=lambda contest: contest.case):
        later = f"{case.limit * ALLOWANCE:g} for formats that came later"
        yield f"{case.name}: times the floor; dragoman's limit is {case.limit}, and {later}"
        yield draw(_grid(list(contests), list(report.versions)))
    if remarks := [f"! {_title(contest)}: {contest.remark}" for contest in ordered if contest.remark is not None]:
        yield "\n".join(remarks)
    if report.imports is not None:
        yield _import_line(report.imports)
    if report.memory:
        yield f"peak memory of a stream in flight, without its answer, {SHORT} and {LONG} chunks of text (no limit)"
        yield draw(_memory_grid(report.memory))


def _grid(contests: list[Contest], names: list[str]) -> list[list[str]]:
    """A row for each pair, a column for each candidate."""
    grid = [["from -> to", "kB", "floor µs", *names]]
    for pair in {_pair(contest): None for contest in contests}:
        row = [contest for contest in contests if _pair(contest) == pair]
        numbers = {contest.candidate.name: _number(contest) for contest in row}
        grid.append(
            [
                pair,
                f"{len(row[0].ground.body) / 1e3:.1f}",
                _floor(row[0]),
                *(numbers[name] for name in names),
            ]
        )
    return grid


def _memory_grid(memory: Sequence[MemoryUse]) -> list[list[str]]:
    rows = [
        [f"{use.source} -> {use.target}", f"{use.short / 1e3:.1f}", f"{use.long / 1e3:.1f}", f"{use.growth:.2f}"]
        for use in memory
    ]
    return [["from -> to", "short, kB", "long, kB", "growth"], *rows]


def _floor(contest: Contest) -> str:
    nanoseconds = contest.ground.floor.nanoseconds
    return _NOTHING if nanoseconds == inf else f"{nanoseconds / 1e3:.1f}"


def _pair(contest: Contest) -> str:
    if contest.case.job is Job.CALLS:
        return contest.source
    return f"{contest.source} -> {contest.target}"


def _title(contest: Contest) -> str:
    return f"{contest.candidate.name}, {contest.case.name}, {_pair(contest)}"


def _over(contest: Contest) -> str:
    return f"{_title(contest)}: {_number(contest)}, limit {contest.limit:g}"


def _number(contest: Contest) -> str:
    if contest.ratio is None:
        return _NOTHING if contest.remark is None else "failed"
    return f"{contest.ratio:.{2 if contest.ratio < 10 else 0}f}{'' if contest.remark is None else ' !'}"


def _aligned(grid: list[list[str]]) -> str:
    widths = [max(len(cell) for cell in column) for column in zip(*grid, strict=True)]
    return "\n".join(
        "  ".join(
            [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        )
        for row in grid
    )


def _piped(grid: list[list[str]]) -> str:
    head, *rows = ["| " + " | ".join(row) + " |" for row in grid]
    rule = "|---|" + "---:|" * (len(grid[0]) - 1)
    return "\n".join([head, rule, *rows])


def _import_line(imports: ImportCost) -> str:
    brought = ", ".join(imports.unwanted) or "nothing of network or event loop"
    return (
        f"import dragoman: {imports.ratio:.2f} x import msgspec, which takes {imports.msgspec / 1e6:.1f} ms; "
        f"the limit is {IMPORT_LIMIT}\n"
        f"with the first request into each format: {imports.first_use_ratio:.2f} x; loads {brought}"
    )


def json(report: Report) -> str:
    numbers = [
        {
            "candidate": contest.candidate.name,
            "case": contest.case.name,
            "source": contest.source,
            "target": contest.target,
            "bytes": len(contest.ground.body),
            "ratio": contest.ratio,
            "limit": contest.limit if contest.candidate.held_to_limits else None,
            "floor_microseconds": contest.ground.floor.nanoseconds / 1e3,
            "remark": contest.remark,
        }
        for contest in report.contests
    ]
    imports = report.imports and {
        "ratio": report.imports.ratio,
        "limit": IMPORT_LIMIT,
        "first_use_ratio": report.imports.first_use_ratio,
        "msgspec_milliseconds": report.imports.msgspec / 1e6,
        "unwanted": report.imports.unwanted,
    }
    memory = [{**asdict(use), "growth": use.growth} for use in report.memory]
    whole = {
        "versions": report.versions,
        "numbers": numbers,
        "import": imports,
        "memory": memory,
        **recorded_report.as_json(report.rows, report.edges),
        "failures": report.failures,
        "known_misses": report.known_misses,
    }
    return orjson.dumps(whole, option=orjson.OPT_INDENT_2).decode()
