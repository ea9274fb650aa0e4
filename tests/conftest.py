"""Shared by all tests: profiles of Hypothesis, recordings, and servers that are started once per worker."""

import gc
import os
import signal
import sys
from collections.abc import Callable, Iterator

import pytest
from hypothesis import settings

# Fixtures of dragoman's own pytest plugin, for runs in which dragoman is on the path without being installed.
from dragoman.sim.pytest_plugin import dragoman_sim, dragoman_simulator, pytest_configure
from tests.support.databases import Postgres, Redis, postgres, redis
from tests.support.not_tried import NOT_TRIED
from tests.support.recordings import VARIABLE, Record, load, recordings_dir

__all__ = ["dragoman_sim", "dragoman_simulator", "pytest_configure"]

# Tests start hundreds of processes. Without bytecode files each of them would compile all of our modules.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Modules and collected tests are millions of objects that stay alive. The garbage collector is off while they are made,
# and skips them during the tests because they are frozen.
gc.disable()

# A shell starts background jobs with SIGINT ignored, and their children inherit that: tests of Ctrl-C would hang.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# `ci` always draws the same examples, so that a failure can be reproduced. `explore` looks for new ones:
# HYPOTHESIS_PROFILE=explore make unit
# Laws are tried for every pair of formats, so a few examples of each are thousands in total.
settings.register_profile("ci", max_examples=30, derandomize=True, deadline=None, database=None, print_blob=True)
settings.register_profile("quick", max_examples=4, derandomize=True, deadline=None, database=None)  # scripts/mutate.py
settings.register_profile("explore", max_examples=2000, deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def recordings() -> Callable[[str], Iterator[Record]]:
    """`recordings("gemini-generate")` yields the exchanges of that file; the test is skipped if there are none."""
    if recordings_dir() is None:
        pytest.skip(f"no recordings beside this repository, and {VARIABLE} is not set")
    return load


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Postgres]:
    """A running PostgreSQL; the test is skipped if it is not installed."""
    with postgres() as server:
        yield server


@pytest.fixture(scope="session")
def redis_server() -> Iterator[Redis]:
    """A running Redis; the test is skipped if it is not installed."""
    with redis() as server:
        yield server


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what could not be tried, once, at the end of the run, where it is noticed."""
    skipped = {str(report.longrepr[-1]) for report in terminalreporter.getreports("skipped")}
    reasons = sorted(reason.removeprefix("Skipped: ") for reason in skipped if NOT_TRIED in reason)
    if reasons:
        terminalreporter.section("NOT TRIED", sep="!", red=True, bold=True)
        for reason in reasons:
            terminalreporter.line(reason, red=True)
