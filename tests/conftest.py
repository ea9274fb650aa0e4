import os
from collections.abc import Callable, Iterator

import pytest
from hypothesis import settings

from tests.support.recordings import VARIABLE, Record, load, recordings_dir

# `ci` always draws the same examples, so a red run is red for everybody. `explore` looks for new ones:
# HYPOTHESIS_PROFILE=explore make unit
# Laws are asked of every pair of formats, so few examples each are thousands together.
settings.register_profile("ci", max_examples=40, derandomize=True, deadline=None, database=None, print_blob=True)
settings.register_profile("explore", max_examples=2000, deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.fixture(scope="session")
def recordings() -> Callable[[str], Iterator[Record]]:
    """`recordings("gemini-generate")` yields the exchanges of that file; the test skips where there are none."""
    if recordings_dir() is None:
        pytest.skip(f"no recordings beside this repository, and {VARIABLE} is not set")
    return load
