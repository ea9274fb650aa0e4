"""Write docs/fidelity.md, .json, .svg and .png, and the table of docs/comparison.md.

    make fidelity

The verdicts on other libraries are read from docs/fidelity-peers.json, which benchmarks/fidelity_peers.py writes where
those libraries are installed. The PNG needs Pillow (the extra `docs`); without it the other files are written.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec

from dragoman.fidelity import png, svg, tables
from dragoman.fidelity.interpreters import Dragoman
from dragoman.fidelity.judging import VERDICTS
from dragoman.fidelity.matrix import Matrix, cells, matrix_of, to_json
from dragoman.fidelity.picture import draw

DOCS = Path(__file__).resolve().parent.parent / "docs"
INTRODUCTION = """\
# How faithful each conversion is

<!-- Written by `make fidelity`; do not edit. -->

What becomes of each feature when a request, response or stream is converted to another format: one row per feature, one
column per pair. `dragoman fidelity` prints the same for one pair or one feature, with the reasons.

[![Heat map: features by pairs of formats](fidelity.svg)](fidelity.svg)

**How it is measured.** The catalogue (`src/dragoman/fidelity/catalogue`) has {features} features, each with a small
example and the fact that must arrive. Each example is encoded in every format that has a field for the feature,
converted to every other format, decoded there, and converted back. Its {cases} examples make {total} conversions:
{counts}.

**What the numbers do not say.**

- Every feature counts once. If you need three of them, all three may be exact, or none.
- The results are decoded with dragoman's own decoders. The judge also looks for the target's own key on the wire (the
  `slots` of each example), and other tests check the decoders with recorded traffic.
- Call ids in a request only pair results with their calls, so the pairing is judged, not the ids: Vertex AI takes only
  its own.
- Whitespace between the tokens of arguments does not count as content. The order of keys and the form of numbers do.
- What an API accepts depends on the model. One usual model stands for each format (`MODELS` in `cases.py`).
- A test fails if a cell is worse than in [fidelity.json](fidelity.json), and another if a loss is not reported.

## Pairs

"""
PEERS = """
## Other libraries

The same examples with the same judge, measured on {date}, for the pairs that each library offers. A warning counts as a
report, any exception as a refusal. The docstring of `benchmarks/fidelity_peers.py` lists the caveats.

"""
AHEAD = """
No other library keeps a feature intact that dragoman degrades or refuses; `tests/fidelity/test_matrix.py` checks this.
"""


class Peers(msgspec.Struct):
    date: str
    interpreters: list[Matrix]


def page(matrix: Matrix, peers: Peers | None) -> str:
    counts = dict.fromkeys(VERDICTS, 0)
    for source in matrix.formats:
        for target in matrix.formats:
            for verdict, count in matrix.counts(source, target).items():
                counts[verdict] += count
    introduction = INTRODUCTION.format(
        features=len({feature for rows in matrix.rows.values() for feature in rows}),
        cases=sum(map(len, matrix.rows.values())),
        total=sum(counts.values()),
        counts=", ".join(f"{count} {verdict}" for verdict, count in counts.items()),
    )
    peer_comparison = ""
    if peers is not None:
        peer_comparison = PEERS.format(date=peers.date) + "\n".join(side_by_side(peers.interpreters)) + "\n" + AHEAD
    overview, details = tables.overview_markdown(matrix), tables.details_markdown(matrix)
    return f"{introduction}{overview}\n{peer_comparison}\n## Features\n{details}\n"


def ahead(matrices: list[Matrix]) -> Iterator[tuple[str, str, str, str, str]]:
    """What another library keeps intact and dragoman does not: (library, kind, feature, from, to)."""
    ours, *others = matrices
    for peer in others:
        for kind, features in peer.rows.items():
            for feature, sources in features.items():
                for source, targets in sources.items():
                    for target, verdict in targets.items():
                        is_ours = ours.rows[kind][feature][source][target] in _INTACT
                        if verdict in _INTACT and not is_ours:
                            yield peer.name, kind, feature, source, target


_INTACT = frozenset({"exact", "carried"})


def side_by_side(matrices: list[Matrix]) -> list[str]:
    formats = matrices[0].formats
    pairs = [(source, target) for source in formats for target in formats if source != target]
    pairs = [pair for pair in pairs if any(matrix.counts(*pair) for matrix in matrices[1:])]
    rows = ([*pair, *(tables.count_verdicts(matrix, *pair) for matrix in matrices)] for pair in pairs)
    return list(tables.table(["from", "to", *(f"{matrix.name} {matrix.version}" for matrix in matrices)], rows))


_MEASURED = re.compile(r"(?<=<!-- measured -->\n).*?(?=<!-- end -->)", re.DOTALL)


def comparison(text: str, peers: Peers) -> str:
    """The page with the counts of all pairs together, for each library."""
    rows = []
    for matrix in peers.interpreters:
        counts: Counter[str] = Counter()
        for source in matrix.formats:
            for target in matrix.formats:
                counts.update(matrix.counts(source, target))
        numbers = [counts.total(), *(counts[verdict] for verdict in VERDICTS)]
        rows.append([f"{matrix.name} {matrix.version}", *map(str, numbers)])
    lines = tables.table(["library", "conversions offered", *VERDICTS], rows)
    return _MEASURED.sub(f"\nMeasured on {peers.date}:\n\n" + "\n".join(lines) + "\n\n", text)


def main() -> int:
    interpreter = Dragoman()
    matrix = matrix_of(interpreter, cells(interpreter))
    kept = DOCS / "fidelity-peers.json"
    peers = msgspec.json.decode(kept.read_bytes(), type=Peers) if kept.exists() else None
    (DOCS / "fidelity.json").write_bytes(to_json(matrix))
    (DOCS / "fidelity.md").write_text(page(matrix, peers), encoding="utf-8")
    if peers is not None:
        compared = DOCS / "comparison.md"
        compared.write_text(comparison(compared.read_text(encoding="utf-8"), peers), encoding="utf-8")
    (DOCS / "fidelity.svg").write_text(svg.render(draw(matrix)), encoding="utf-8")
    try:
        (DOCS / "fidelity.png").write_bytes(png.render(draw(matrix)))
    except ImportError:
        print("docs/fidelity.png is as it was: Pillow is not installed (pip install 'dragoman[docs]')", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
