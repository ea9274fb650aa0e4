"""Tables and exceeded limits of the measurements on real bodies."""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from math import inf
from typing import Any, Final

from benchmarks import corpus, limits
from benchmarks.edges import Edge
from benchmarks.limits import Limit, Verdict
from benchmarks.recorded import Figure, Row, overhead, percentile

Grid = list[list[str]]

_PERCENTS: Final = {"p50": 50, "p90": 90, "p99": 99, "max": 100}
_HEAD: Final = [
    "from -> to", "bodies", "body only p50", "p50", "p90", "p99", "once p50", "once p90", "reading losses",
]  # fmt: skip
_ALL: Final = "all together"


def sections(rows: Sequence[Row], edges: Sequence[Edge], draw: Callable[[Grid], str]) -> Iterator[str]:
    for suite, of_suite in _by_suite(rows):
        promised = ", ".join(f"{limit.metric} {limit.most:g}" for limit in limits.LIMITS if limit.suite == suite)
        yield f"{suite}: times the floor, losses read; limits: {promised or 'none'}"
        yield draw([_HEAD, *(_line(f"{row.source} -> {row.target}", [row]) for row in of_suite), _line(_ALL, of_suite)])
    if peers := _peer_lines(rows):
        yield "other libraries on the same bodies, times the floor, p50, body only (bodies that both convert)"
        yield draw([["pair", "library", "bodies", "library p50", "dragoman p50"], *peers])
    if edges:
        yield "one unusual trait: the conversion with it, against the one without"
        yield draw(
            [
                ["case", "pair", "ratio", "limit"],
                *(
                    [edge.name, edge.pair, f"{edge.ratio:.2f}", "-" if edge.most is None else f"{edge.most:g}"]
                    for edge in edges
                ),
            ]
        )


def failures(rows: Sequence[Row], edges: Sequence[Edge]) -> list[str]:
    """Exceeded limits. Rows and suites that were not measured are skipped."""
    found = [*_over_limits(rows, "over"), *_slow_losses(rows, "over")]
    found += [text for row in rows for text in _peer_failures(row)]
    found += [
        f"{edge.name}, {edge.pair}: {edge.ratio:.2f}, limit {edge.most:g}"
        for edge in edges
        if edge.is_broken and edge.most is not None
    ]
    return found


def known_misses(rows: Sequence[Row]) -> list[str]:
    """Figures over a limit that is known not to be met."""
    return [*_over_limits(rows, "known"), *_slow_losses(rows, "known")]


def _slow_losses(rows: Sequence[Row], wanted: Verdict) -> Iterator[str]:
    for suite, of_suite in _by_suite(rows):
        extra = overhead(_figures(of_suite))
        if limits.verdict(extra, limits.READING_LOSSES, limits.READING_LOSSES_REACHED.get(suite)) == wanted:
            yield f"{suite}: reading the losses takes {extra:.0%} on top, limit {limits.READING_LOSSES:.0%}"


def _by_suite(rows: Sequence[Row]) -> Iterator[tuple[str, list[Row]]]:
    for suite, of_suite in groupby(rows, key=lambda row: row.suite):
        yield suite, list(of_suite)


def _over_limits(rows: Sequence[Row], wanted: Verdict) -> Iterator[str]:
    for suite, of_suite in _by_suite(rows):
        for limit in limits.LIMITS:
            if limit.suite != suite:
                continue
            for title, figures in _judged(limit, of_suite):
                value = percentile((figure.ratio for figure in figures), _PERCENTS[limit.metric])
                if limit.judge(value) == wanted:
                    yield f"{title}: {limit.metric} {value:.1f}, limit {limit.most:g}"


def _judged(limit: Limit, rows: list[Row]) -> Iterator[tuple[str, list[Figure]]]:
    if not limit.each_row:
        yield limit.suite, _figures(rows)
        return
    for row in rows:
        yield f"{limit.suite}, {row.source} -> {row.target}", row.figures


def _peer_failures(row: Row) -> Iterator[str]:
    if row.suite not in {limits.VENDOR_REQUESTS, limits.VENDOR_RESPONSES, limits.VENDOR_STREAMS}:
        return
    for peer, count, theirs, ours in _compared(row):
        if ours > theirs:
            pair = f"{row.source} -> {row.target}"
            yield f"{row.suite}, {pair}: body only {ours:.1f}, {peer} {theirs:.1f} on the same {count} bodies"
    source = corpus.VENDOR_FILES.get(row.source)
    best = next((best for pair, best in limits.BEST_PEERS.items() if pair == (source, row.target)), None)
    if best is not None and not row.peers and row.suite == limits.VENDOR_REQUESTS:
        name, most = best
        value = percentile((figure.body_ratio for figure in row.figures), 50)
        if value > most:
            yield f"{row.suite}, {row.source} -> {row.target}: body only {value:.1f}, {name} had {most:g}"


def _compared(row: Row) -> Iterator[tuple[str, int, float, float]]:
    """Peer, number of bodies that both convert, their p50 and ours on these."""
    for peer, theirs in row.peers.items():
        ours = [figure.body_ratio for figure in row.figures if figure.sample.id in theirs]
        if ours:
            yield peer, len(ours), percentile(theirs.values(), 50), percentile(ours, 50)


def _figures(rows: Sequence[Row]) -> list[Figure]:
    return [figure for row in rows for figure in row.figures]


def _line(title: str, rows: list[Row]) -> list[str]:
    figures = _figures(rows)
    refused = sum(row.refused for row in rows)
    values = [
        percentile((figure.body_ratio for figure in figures), 50),
        *(percentile((figure.ratio for figure in figures), percent) for percent in (50, 90, 99)),
        *(percentile((figure.ratio_once for figure in figures), percent) for percent in (50, 90)),
    ]
    count = f"{len(figures)}" + (f" (+{refused} refused)" if refused else "")
    return [title, count, *("-" if value == inf else f"{value:.1f}" for value in values), f"{overhead(figures):+.0%}"]


def _peer_lines(rows: Sequence[Row]) -> Grid:
    return [
        [
            f"{row.suite}: {row.source} -> {row.target}",
            peer,
            f"{count} of {len(row.figures)}",
            f"{theirs:.1f}",
            f"{ours:.1f}",
        ]
        for row in rows
        for peer, count, theirs, ours in _compared(row)
    ]


def as_json(rows: Sequence[Row], edges: Sequence[Edge]) -> dict[str, Any]:
    return {
        "recorded": [
            {
                "suite": row.suite,
                "source": row.source,
                "target": row.target,
                "bodies": len(row.figures),
                "refused": row.refused,
                "body_only": [percentile((one.body_ratio for one in row.figures), p) for p in (50, 90, 99)],
                "losses_read": [percentile((one.ratio for one in row.figures), p) for p in (50, 90, 99)],
                "once": [percentile((one.ratio_once for one in row.figures), p) for p in (50, 90, 99)],
                "reading_losses": overhead(row.figures),
                "peers": {name: percentile(theirs.values(), 50) for name, theirs in row.peers.items() if theirs},
            }
            for row in rows
        ],
        "edges": [{"name": edge.name, "pair": edge.pair, "ratio": edge.ratio, "limit": edge.most} for edge in edges],
    }
