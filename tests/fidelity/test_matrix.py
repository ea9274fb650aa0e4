"""The matrix: nothing is silent, and no cell gets worse than the committed one."""

import xml.etree.ElementTree as ET
from functools import cache
from pathlib import Path

import msgspec
import pytest

import dragoman
from dragoman.fidelity import svg
from dragoman.fidelity.cases import Case
from dragoman.fidelity.catalogue import CASES, FEATURES, PLAIN
from dragoman.fidelity.interpreters import Crossing, Dragoman, Translation
from dragoman.fidelity.judging import VERDICTS, judge, write_original
from dragoman.fidelity.matrix import Cell, Matrix, cells, changes, from_json, matrix_of, to_json
from dragoman.fidelity.picture import draw
from dragoman.fidelity.tables import markdown
from scripts import fidelity_docs
from tests.support.cases import each
from tests.support.promises import promise

DOCS = Path(__file__).parents[2] / "docs"
REGENERATE = "run `make fidelity` and commit docs/fidelity.*"


@cache
def judged() -> tuple[Cell, ...]:
    return tuple(cells(Dragoman()))


@cache
def matrix() -> Matrix:
    return matrix_of(Dragoman(), judged())


def committed() -> Matrix:
    return from_json((DOCS / "fidelity.json").read_bytes())


@promise("law:2-nothing-vanishes")
def test_no_cell_is_silent() -> None:
    silent = [
        f"{cell.case.kind} {cell.case.feature}: {cell.source} -> {cell.target}"
        for cell in judged()
        if cell.judgement.verdict == "silent"
    ]
    assert silent == []


def test_no_cell_is_worse_than_the_committed_one() -> None:
    worse, _ = changes(committed(), matrix())
    assert worse == [], "if this is meant to be: " + REGENERATE


def test_what_got_better_is_committed() -> None:
    _, better = changes(committed(), matrix())
    assert better == [], REGENERATE


def test_the_page_and_the_picture_show_the_committed_matrix() -> None:
    page = (DOCS / "fidelity.md").read_text(encoding="utf-8")
    for line in markdown(committed()).splitlines():
        assert line in page, REGENERATE
    assert (DOCS / "fidelity.svg").read_text(encoding="utf-8") == svg.render(draw(committed())), REGENERATE
    assert (DOCS / "fidelity.png").read_bytes().startswith(b"\x89PNG")


def test_the_same_format_is_exact() -> None:
    for name in dragoman.formats():
        assert set(matrix().counts(name, name)) == {"exact"}, name


# ── the catalogue ─────────────────────────────────────────────────────────────────────────────────────────────


def test_every_feature_has_an_example_and_every_example_a_feature() -> None:
    assert {case.feature for case in CASES} == {feature.name for feature in FEATURES}
    assert len(FEATURES) == len({feature.name for feature in FEATURES}) >= 40


@each("case", CASES, ids=lambda case: f"{case.kind}-{case.feature}")
def test_every_feature_is_native_in_some_format(case: Case) -> None:
    sayable = [name for name in dragoman.formats() if write_original(case, name) is not None]
    assert sayable, "no format can express this example"
    for name in sayable:
        assert case.slots.of(name) is not None


def test_plain_exchanges_can_be_expressed_everywhere() -> None:
    for plain in (case for cases in PLAIN.values() for case in cases):
        for name in dragoman.formats():
            assert write_original(plain, name) is not None, (plain.feature, plain.kind, name)


# ── the judge ─────────────────────────────────────────────────────────────────────────────────────────────────


class Forgetful(Dragoman):
    """Loses what is between the first and the last word, and reports nothing."""

    def translate(self, content: bytes, crossing: Crossing) -> Translation:
        body = msgspec.json.decode(super().translate(content, crossing).content)
        return Translation(msgspec.json.encode({key: body[key] for key in ("model", "messages")}))


def _case(feature: str) -> Case:
    return next(case for case in CASES if case.feature == feature and case.kind == "request")


def test_the_judge_detects_a_silent_loss() -> None:
    seed = _case("seed")
    honest = judge(seed, "openai-chat", "ollama-chat", Dragoman())
    assert honest is not None
    assert honest.verdict == "exact"
    forgetful = judge(seed, "openai-chat", "ollama-chat", Forgetful())
    assert forgetful is not None
    assert forgetful.verdict == "silent"


@pytest.mark.parametrize(
    ("feature", "source", "target", "verdict"),
    [
        ("parallel-calls", "openai-chat", "gemini", "exact"),
        ("error-results", "anthropic-messages", "openai-chat", "carried"),
        ("data-results", "gemini", "anthropic-messages", "carried"),
        ("seed", "gemini", "anthropic-messages", "degraded"),
        ("signatures", "anthropic-messages", "gemini", "degraded"),
        ("data-results", "openai-chat", "gemini", None),
    ],
)
def test_verdicts_that_are_easy_to_check_by_hand(feature: str, source: str, target: str, verdict: str | None) -> None:
    judgement = judge(_case(feature), source, target, Dragoman())
    assert (judgement and judgement.verdict) == verdict
    assert verdict != "degraded" or (judgement is not None and judgement.reason)


def test_a_matrix_survives_its_json() -> None:
    assert from_json(to_json(matrix())) == matrix()


def test_changes_are_reported_in_both_directions() -> None:
    old = Matrix("dragoman", "1", ("a",), {"request": {"seed": {"a": {"a": "carried"}}}})
    new = Matrix("dragoman", "1", ("a",), {"request": {"seed": {"a": {"a": "exact"}}}})
    assert changes(old, new) == ([], ["request seed: a -> a: carried -> exact"])
    assert changes(new, old) == (["request seed: a -> a: exact -> carried"], [])
    assert changes(new, Matrix("dragoman", "1", ("a",), {})) == (["request seed: a -> a: exact -> -"], [])


def test_the_picture_is_well_formed_and_says_what_it_shows() -> None:
    root = ET.fromstring(svg.render(draw(matrix())))  # noqa: S314  our own text
    names = {"svg": "http://www.w3.org/2000/svg"}
    assert root.get("role") == "img"
    assert "exact" in (root.findtext("svg:desc", "", names))
    shown = len(root.findall(".//svg:use", names))
    rows = sum(len(matrix().features(kind)) for kind in ("request", "response", "stream"))
    assert shown >= rows * len(matrix().formats) ** 2


def test_no_other_library_carries_what_is_dropped_here() -> None:
    """docs/fidelity-peers.json is written where the libraries are installed (benchmarks/fidelity_peers.py)."""
    peers = msgspec.json.decode((DOCS / "fidelity-peers.json").read_bytes(), type=fidelity_docs.Peers)
    assert list(fidelity_docs.ahead(peers.interpreters)) == []
    # No cell of the table is worse in the committed matrix than when the libraries were measured.
    ours, now = peers.interpreters[0], committed()
    order = {verdict: place for place, verdict in enumerate(VERDICTS)}
    for kind, features in ours.rows.items():
        for feature, sources in features.items():
            for source, targets in sources.items():
                for target, verdict in targets.items():
                    assert order[now.rows[kind][feature][source][target]] <= order[verdict], (
                        kind,
                        feature,
                        source,
                        target,
                    )
