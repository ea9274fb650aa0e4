"""Runs the golden pages against changed modules, for scripts/mutate_runs.py.

A page is made case by case and compared with the digests of its cases, up to the first difference. The digests are
taken from the unchanged code, so a case that differs from them would also differ from tests/golden, if that is up to
date. Most changes are detected in a fraction of a second. All pages that call the changed function are tried.
"""

import os
import signal
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from types import CodeType
from typing import Any
from zlib import crc32

LEAST_SECONDS = 2.0
"""CPU seconds that each page may take, in addition to a multiple of what it took when it was recorded."""
DIFFERS, ENDLESS, ALIKE = 1, 9, 0
"""Exit codes of a process that compares pages."""


@dataclass(slots=True)
class Page:
    name: str
    seconds: float
    called: dict[str, set[int] | None]
    """File -> the first lines of its functions that the page calls; None: the file has changed since the recording."""
    digests: list[int]
    """One for each case."""

    def may_call(self, place: str, starts: set[int]) -> bool:
        called = self.called.get(place, set())
        return called is None or not starts.isdisjoint(called)


def digest(case: tuple[str, str, str]) -> int:
    return crc32("\n".join(case).encode("utf-8", "surrogatepass"))


def difference(page: Page) -> str | None:
    """The first case that differs from its recorded digest, or None."""
    from tests.support.golden import cases_of  # noqa: PLC0415 - after the changed module

    number = -1
    for number, case in enumerate(cases_of(page.name)):
        if number == len(page.digests) or digest(case) != page.digests[number]:
            return f"{case[0]}, {case[1]}"
    return None if number + 1 == len(page.digests) else "its number of cases"


def compare(pages: list[Page], answer: int) -> int:
    """Writes what is being compared to `answer`; returns an exit code. Ends the process if a page takes too long."""
    signal.signal(signal.SIGVTALRM, lambda *_: os._exit(ENDLESS))
    for page in pages:
        os.write(answer, f"golden {page.name}\n".encode())
        signal.setitimer(signal.ITIMER_VIRTUAL, LEAST_SECONDS + 3 * page.seconds)
        try:
            found = difference(page)
        except Exception as failed:  # noqa: BLE001 - a page that cannot be made differs
            found = type(failed).__name__
        if found is not None:
            os.write(answer, f"golden {page.name}: {found}\n".encode("utf-8", "replace"))
            return DIFFERS
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return ALIKE


def affordable(pages: list[Page], seconds: float) -> list[Page]:
    """The first pages, as many as take no longer than `seconds` together, but at least one."""
    chosen: list[Page] = []
    for page in pages:
        seconds -= page.seconds
        if seconds < 0 and chosen:
            break
        chosen.append(page)
    return chosen


def recorded_page(name: str, *, trace: bool = True) -> tuple[set[CodeType], list[int]]:
    """The functions that a page calls, if they are traced, and the digests of its cases.

    Only calls are traced: lines would cost several times as much.
    """
    from tests.support.golden import cases_of  # noqa: PLC0415

    called: set[CodeType] = set()
    if trace:
        sys.settrace(lambda frame, _event, _argument: called.add(frame.f_code))
    cases = list(cases_of(name))
    sys.settrace(None)
    return called, [digest(case) for case in cases]


@dataclass(slots=True)
class Golden:
    """The recorded pages, and which of them detected changes of which module."""

    pages: list[Page] = field(default_factory=list)
    killers: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))

    def in_order(self, place: str, functions: Iterable[CodeType]) -> list[Page]:
        """Pages that call a changed function: those that detected an earlier change first, then those of its format."""
        starts = {code.co_firstlineno for code in functions}
        found = [page for page in self.pages if page.may_call(place, starts)]
        return sorted(found, key=lambda page: self._rank(page, place))

    def _rank(self, page: Page, place: str) -> tuple[Any, ...]:
        of = page.name.partition("/")[2].replace("-", "_")
        is_other = of not in place.removesuffix(".py").split("/")
        return place not in page.called, -self.killers[place][page.name], is_other, page.seconds

    def near(self, place: str) -> list[Page]:
        """Pages for a change of what an import computes: all that call its folder, where modules may use it."""
        folder = place.rpartition("/")[0] + "/"
        near = [page for page in self.pages if any(one.startswith(folder) for one in page.called)]
        return sorted(near, key=lambda page: self._rank(page, place))

    def note(self, place: str, by: str) -> None:
        self.killers[place][by.removeprefix("golden ").partition(":")[0]] += 1

    def load(self, rows: dict[str, Any], sources: dict[str, str]) -> None:
        """Adds recorded pages. Of a file that has changed since, any function may be called."""
        for name, row in rows.items():
            called = {
                place: set(starts) if digest == sources.get(place) else None
                for place, (digest, *starts) in row["called"].items()
            }
            self.pages.append(Page(name, row["seconds"], called, row["digests"]))
