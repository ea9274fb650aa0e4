"""What every sample becomes in every format is what tests/golden says (tests/support/golden.py)."""

from difflib import unified_diff
from functools import cache

import pytest

from tests.support.collected_cases import FOLDER as COLLECTED
from tests.support.collected_cases import collected, lines_of
from tests.support.golden import FOLDER, PAGES, page, reviewed
from tests.support.promises import promise

SHOWN = 40
"""Lines of a difference that are printed."""


pages_of = cache(reviewed)


@promise("law:2-nothing-vanishes", "law:4-determinism")
@pytest.mark.parametrize("name", PAGES)
def test_conversions_are_as_reviewed(name: str) -> None:
    kind, _, of = name.partition("/")
    known, found = pages_of(kind).get(of, ""), page(name)
    if found != known:
        rows = list(unified_diff(known.splitlines(), found.splitlines(), "reviewed", "now", n=1, lineterm=""))
        shown = "\n".join(row[:300] for row in rows[:SHOWN])
        pytest.fail(
            f"{name} is converted otherwise than tests/golden says ({len(rows)} lines):\n{shown}\n"
            f"In full: python scripts/golden.py --against HEAD {name}\n"
            "If this is meant: python scripts/golden.py, and review its difference."
        )


def test_every_page_is_made() -> None:
    kinds = [file.stem for file in FOLDER.iterdir()]
    assert {f"{kind}/{of}" for kind in kinds for of in pages_of(kind)} == PAGES.keys()


@pytest.mark.parametrize("name", sorted(file.stem for file in COLLECTED.iterdir()))
def test_collected_cases_are_written_in_one_way(name: str) -> None:
    """So that a case that is there already is recognised."""
    cases = list(collected(name))
    assert [case.line for case in cases] == lines_of(name)
    assert len({case.line for case in cases}) == len(cases)
