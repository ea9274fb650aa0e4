"""What every sample becomes in every format is what tests/golden says (tests/support/golden.py)."""

from difflib import unified_diff
from functools import cache

import pytest

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
