import os
import sys
from collections.abc import Callable, Iterator

import pytest
from hypothesis import settings

from tests.support.not_tried import NOT_TRIED
from tests.support.recordings import VARIABLE, Record, load, recordings_dir

# Tests start hundreds of processes. Each would compile all of our modules again where bytecode is not written.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# `ci` always draws the same examples, so a red run is red for everybody. `explore` looks for new ones:
# HYPOTHESIS_PROFILE=explore make unit
# Laws are asked of every pair of formats, so few examples each are thousands together.
settings.register_profile("ci", max_examples=30, derandomize=True, deadline=None, database=None, print_blob=True)
settings.register_profile("quick", max_examples=4, derandomize=True, deadline=None, database=None)  # scripts/mutate.py
settings.register_profile("explore", max_examples=2000, deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.fixture(scope="session")
def recordings() -> Callable[[str], Iterator[Record]]:
    """`recordings("gemini-generate")` yields the exchanges of that file; the test skips where there are none."""
    if recordings_dir() is None:
        pytest.skip(f"no recordings beside this repository, and {VARIABLE} is not set")
    return load


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What could not be tried stands at the end of the run, once, where it is seen."""
    told = {str(report.longrepr[-1]) for report in terminalreporter.getreports("skipped")}
    reasons = sorted(reason.removeprefix("Skipped: ") for reason in told if NOT_TRIED in reason)
    if reasons:
        terminalreporter.section("NOT TRIED", sep="!", red=True, bold=True)
        for reason in reasons:
            terminalreporter.line(reason, red=True)
