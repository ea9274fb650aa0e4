"""Runs tests against changed modules, for scripts/mutate.py.

Tests are collected once, in a session of pytest that runs none of them itself. Each run is a fork of that session: it
replaces the code of the changed functions in place, and runs the tests that reach the changed line, those that detected
earlier changes of the module first. Which lines a test reaches is recorded once per test file. Values computed during
an import cannot be changed in place: for those, a process that has not imported dragoman yet imports the changed
module, and then runs the tests of `COLD`. In both cases the golden pages come first (scripts/mutate_golden.py).
"""

import ast
import contextlib
import gc
import hashlib
import importlib
import importlib.abc
import importlib.util
import json
import os
import pickle
import random
import re
import resource
import select
import signal
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import _lru_cache_wrapper
from pathlib import Path
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any, NoReturn

from scripts.mutate_golden import ALIKE, Golden, Page, affordable, compare, recorded_page

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "dragoman"
RESULTS = ROOT / "build" / "mutants"
TRACED_CALLS = 40
"""After so many calls in a row without a new line, the lines of a function are no longer recorded for this test."""
MEMORY = 4 << 30
SLOW = 5.0
"""CPU seconds after which the recording of a test ends: the lines reached by then count, and the test is run last."""
WAITS = 20
"""How many times in a row to wait again for a child that got no CPU time."""
PATIENCE = 300.0
"""Seconds for one recording. The machine may be busy."""

# Tests of codecs/ and passes/, in the order in which they are recorded, without those that measure cost or memory, and
# those that need servers or the vendors' SDKs. Some of these read recordings, if there are any.
TESTS = (
    "tests/laws/test_survivors.py",
    "tests/laws/test_every_edit.py",
    "tests/laws/test_limits.py",
    "tests/laws/test_every_field.py",
    "tests/laws/test_losses_are_true.py",
    "tests/laws/test_whole_and_streamed.py",
    "tests/laws/test_every_stream_edit.py",
    "tests/laws/test_written_again.py",
    "tests/codecs",
    "tests/streams",
    "tests/passes",
    "tests/datasets",
    "tests/records",
    "tests/test_single_values.py",
    "tests/test_result_kinds.py",
    "tests/test_lifting.py",
    "tests/test_detect.py",
    "tests/laws/test_law_01_identity.py",
    "tests/laws/test_law_02_nothing_vanishes.py",
    "tests/laws/test_law_02_streams.py",
    "tests/laws/test_law_05_streams.py",
    "tests/laws/test_law_08_pairs_hold.py",
    "tests/laws/test_law_09_usage_adds_up.py",
    "tests/laws/test_ugly_bodies.py",
    "tests/laws/test_law_06_owed_back.py",
    "tests/laws/test_law_10_bad_input.py",
    "tests/laws/test_law_03_legality.py",
    "tests/laws/test_law_04_determinism.py",
    "tests/laws/test_law_07_no_guessing.py",
    "tests/laws/test_law_07_withheld_calls.py",
    "tests/drivers/test_driver_specification.py",
    "tests/test_reports.py",
    "tests/reports",
    "tests/test_specification_tables.py",
    "tests/test_specification_examples.py",
    "tests/test_worked_example.py",
    "tests/chat/test_chunks.py",
    "tests/fidelity",
)
BY_BODY = (
    "tests/laws/test_survivors.py",
    "tests/laws/test_every_edit.py",
    "tests/laws/test_limits.py",
    "tests/laws/test_every_field.py",
    "tests/laws/test_whole_and_streamed.py",
    "tests/laws/test_every_stream_edit.py",
    "tests/laws/test_written_again.py",
    "tests/datasets",
    "tests/records/test_every_field.py",
)
"""Tests whose cases differ in what they reach: all of their cases are recorded."""
LEFT_OUT = ("tests/streams/test_memory.py", "tests/records/test_command.py", "tests/records/test_documents.py")

CASES = (
    "tests/golden_cases/*.jsonl",
    "tests/support/*.py",
    "tests/laws/test_every*.py",
    "tests/laws/test_whole_and_streamed.py",
    "tests/datasets/*s.py",
)
"""Files that make the cases of golden pages."""

# Folder under src/dragoman -> test files for a change that needs a fresh import. `{folder}` is the codec's.
COLD = {
    "passes": ("tests/passes", "tests/laws/test_survivors.py"),
    "codecs/datasets": ("tests/datasets",),
    "codecs/records": ("tests/records", "tests/laws/test_survivors.py"),
    "codecs": (
        "tests/codecs/test_{folder}.py",
        "tests/streams/test_{folder}.py",
        "tests/laws/test_survivors.py",
        "tests/laws/test_every_field.py",
        "tests/laws/test_every_edit.py",
        "tests/laws/test_limits.py",
        "tests/laws/test_whole_and_streamed.py",
        "tests/laws/test_every_stream_edit.py",
        "tests/laws/test_written_again.py",
        "tests/laws/test_law_03_legality.py",
        "tests/codecs/test_quirks.py",
        "tests/codecs/test_hosted_tools.py",
        "tests/codecs/test_shared_settings.py",
        "tests/codecs/test_memo.py",
        "tests/codecs/test_logprobs.py",
        "tests/streams/test_framing.py",
        "tests/test_single_values.py",
    ),
}


def place_of(path: Path) -> str:
    """The path below src/dragoman: `codecs/gemini/parts.py`."""
    return path.relative_to(SOURCE).as_posix()


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__")


def digest_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]


# ── changing functions in place ───────────────────────────────────────────────────────────────────────────────


def codes_of(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes_of(constant)


def _own(code: CodeType) -> tuple[Any, ...]:
    """The content of a code object itself, without the functions in it."""
    constants = [repr(one) for one in code.co_consts if not isinstance(one, CodeType)]
    return code.co_code, constants, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars


def _numbered(code: CodeType) -> dict[tuple[str, int, int], CodeType]:
    numbers: Counter[tuple[str, int]] = Counter()
    found = {}
    for one in codes_of(code):
        name = one.co_qualname, one.co_firstlineno
        found[*name, numbers[name]] = one
        numbers[name] += 1
    return found


def changed_functions(text: str, tree: ast.Module, path: Path) -> dict[CodeType, CodeType] | None:
    """Old code -> new code of the changed functions; None if code that runs during the import changed."""
    before = _numbered(compile(text, str(path), "exec", dont_inherit=True))
    after = _numbered(compile(tree, str(path), "exec", dont_inherit=True))
    for key, code in after.items():
        is_function = code.co_flags & 1  # CO_OPTIMIZED: neither a module nor the body of a class
        if not is_function and (key not in before or _own(before[key]) != _own(code)):
            return None
    return {code: after[key] for key, code in before.items() if key in after and code != after[key]}


def replace_code(functions: Iterable[FunctionType], changed: dict[CodeType, CodeType]) -> bool:
    """False if no function has that code, or if one cannot get the new code because it closes over other names."""
    replaced = False
    for function in functions:
        code = changed.get(function.__code__)
        if code is None:
            continue
        try:
            function.__code__ = code
        except ValueError:
            return False
        replaced = True
    return replaced


# ── recording which lines a test reaches ──────────────────────────────────────────────────────────────────────


class Tracer:
    """Records which lines of some files run, of each function until `TRACED_CALLS` calls in a row reach no new line."""

    def __init__(self, files: Iterable[str]) -> None:
        self._files = frozenset(files)
        self._calls: dict[CodeType, int] = {}
        self._lines: dict[CodeType, set[int]] = {}

    def trace(self, frame: FrameType, event: str, argument: Any) -> Any:  # noqa: ARG002
        code = frame.f_code
        calls = self._calls.get(code)
        if calls is None:
            calls = 0 if code.co_filename in self._files else TRACED_CALLS
            self._lines[code] = set()
        if calls >= TRACED_CALLS:
            self._calls[code] = calls
            return None
        self._calls[code] = calls + 1
        lines = self._lines[code]
        lines.add(frame.f_lineno)

        def note(frame: FrameType, event: str, argument: Any) -> Any:  # noqa: ARG001
            if frame.f_lineno not in lines:
                lines.add(frame.f_lineno)
                self._calls[code] = 0
            return note

        return note

    def lines(self) -> dict[str, int]:
        """File -> a bit per line."""
        found: dict[str, int] = defaultdict(int)
        for code, lines in self._lines.items():
            if code.co_filename in self._files:
                for line in lines:
                    found[code.co_filename] |= 1 << line
        return dict(found)


@dataclass(slots=True)
class Reach:
    """What one test reaches: file -> a bit per line."""

    id: str
    seconds: float
    lines: dict[str, int]

    @property
    def function(self) -> str:
        return self.id.partition("[")[0]


@dataclass(slots=True)
class Coverage:
    """The tests that reach a line, from the recordings in build/mutants."""

    digests: dict[str, str]
    tests: list[Reach] = field(default_factory=list)
    imported: dict[str, int] = field(default_factory=dict)
    recorded: set[str] = field(default_factory=set)

    def add(self, rows: dict[str, Any], sources: dict[str, str]) -> None:
        """Adds recorded tests. If a file has changed since the recording, all of its lines count as reached."""
        for name, (seconds, lines) in rows.items():
            reached = {
                file: int(bits, 16) if sources[file] == self.digests.get(file) else -1 for file, bits in lines.items()
            }
            self.tests.append(Reach(name, seconds, reached))

    def reaching(self, file: str, line: int) -> list[Reach]:
        return [test for test in self.tests if test.lines.get(file, 0) >> line & 1]


def spread(cases: list[str]) -> list[str]:
    """The cases of one test function, shuffled, but those whose id has a word that no earlier id has come first.

    So the first dozen cases of a test over all formats contain every format.
    """
    shuffled = cases.copy()
    random.Random(cases[0].partition("[")[0]).shuffle(shuffled)  # noqa: S311 - a sample, not a secret
    seen: set[str] = set()
    first: list[str] = []
    rest: list[str] = []
    for name in shuffled:
        words = set(re.split(r"[^\w.]+", name.partition("[")[2]))
        (rest if words <= seen else first).append(name)
        seen |= words
    return first + rest


# ── the session of pytest that everything is forked from ──────────────────────────────────────────────────────


class Session:
    """A plugin of pytest: collects, then calls `work` instead of running the tests."""

    def __init__(
        self,
        work: "Callable[[Session], None]",
        files: list[Path],
        cases: int,
        tests: Iterable[str] = TESTS,
        left_out: Iterable[str] = (),
    ) -> None:
        self._work, self._cases = work, cases
        self._left_out = (*LEFT_OUT, *left_out)
        self._tests = [place for place in tests if place not in self._left_out]
        self.files = {place_of(path): path for path in files}
        self.coverage = Coverage({place: digest_of(path) for place, path in self.files.items()})
        self.golden = Golden()
        self.killers: dict[str, Counter[str]] = defaultdict(Counter)
        self._names = {str(path): place for place, path in self.files.items()}
        self._items: dict[str, Any] = {}
        self._by_function: dict[str, list[str]] = defaultdict(list)
        self._functions: dict[str, list[FunctionType]] = defaultdict(list)
        self._cold = ColdServer()

    def run(self) -> None:
        import pytest  # noqa: PLC0415 - the cold server is forked before

        os.environ.setdefault("HYPOTHESIS_PROFILE", "quick")
        tracer = Tracer(self._names)
        sys.settrace(tracer.trace)
        for path in self.files.values():
            importlib.import_module(module_name(path))
        sys.settrace(None)
        self.coverage.imported = {self._names[file]: bits for file, bits in tracer.lines().items()}
        options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--capture=no", "--assert=plain"]
        options += [f"--ignore={place}" for place in self._left_out]
        with open(os.devnull, "w") as quiet, contextlib.redirect_stdout(quiet):  # noqa: PTH123
            code = pytest.main([*options, *self._tests], plugins=[self])
        if code:
            raise SystemExit(f"the tests could not be collected: {code!r}")

    def pytest_runtestloop(self, session: Any) -> bool:
        self._items = {item.nodeid: item for item in session.items}
        for name in self._items:
            self._by_function[name.partition("[")[0]].append(name)
        self._by_function = {function: spread(cases) for function, cases in self._by_function.items()}
        gc.unfreeze()  # tests/conftest.py freezes existing objects before the first test
        for one in gc.get_objects():
            if isinstance(one, FunctionType) and one.__code__.co_filename in self._names:
                self._functions[one.__code__.co_filename].append(one)
            if isinstance(one, _lru_cache_wrapper) and (getattr(one, "__module__", "") or "").startswith("dragoman."):
                one.cache_clear()  # a value computed during collection would hide a change
        gc.collect()
        gc.freeze()  # so that forked processes share these pages
        with contextlib.redirect_stdout(sys.__stdout__):
            self._record_pages()
            self._record()
            self._work(self)
        return True

    # ── coverage ──

    def _record(self) -> None:
        """Reads the recordings of test files, and makes those that are missing."""
        files: dict[str, list[str]] = defaultdict(list)
        for name in self._items:
            files[name.partition("::")[0]].append(name)
        for file, names in files.items():
            name = Path(file).with_suffix("").as_posix().replace("/", "-")
            kept = RESULTS / "coverage" / f"{name}-{digest_of(ROOT / file)}.json"
            found = json.loads(kept.read_text()) if kept.exists() else {"sources": self.coverage.digests, "tests": {}}
            missing = [name for name in self._some_cases(names) if name not in found["tests"]]
            if missing:
                start = time.monotonic()
                found["tests"] |= {name: self._recorded(name) for name in missing}
                kept.parent.mkdir(parents=True, exist_ok=True)
                kept.write_text(json.dumps(found))
                print(f"{file}: {len(missing)} tests recorded in {time.monotonic() - start:.0f} s", flush=True)
            self.coverage.recorded |= found["tests"].keys()
            self.coverage.add({name: row for name, row in found["tests"].items() if row}, found["sources"])

    def _record_pages(self) -> None:
        """Reads the recordings of the golden pages of each kind, and makes those that are missing.

        Which functions a page calls is recorded once: tracing takes longer than making the page.
        """
        from tests.support.golden import PAGES  # noqa: PLC0415 - imports dragoman

        made_by = [file for place in CASES for file in sorted(ROOT.glob(place))]
        about = " ".join([*self.coverage.digests.values(), *map(digest_of, made_by)])
        digest = hashlib.sha256(about.encode()).hexdigest()[:12]
        kinds: dict[str, list[str]] = defaultdict(list)
        for name in PAGES:
            kinds[name.partition("/")[0]].append(name)
        for kind, names in kinds.items():
            kept = RESULTS / "coverage" / f"pages-{kind}.json"
            found = json.loads(kept.read_text()) if kept.exists() else {"digest": None, "pages": {}}
            if found["digest"] != digest:
                start, calls = time.monotonic(), {name: row["called"] for name, row in found["pages"].items()}
                found = {
                    "digest": digest,
                    "pages": {name: self._recorded_page(name, calls.get(name)) for name in names},
                }
                kept.parent.mkdir(parents=True, exist_ok=True)
                kept.write_text(json.dumps(found))
                print(f"{kind}: {len(names)} pages recorded in {time.monotonic() - start:.0f} s", flush=True)
            self.golden.load(found["pages"], self.coverage.digests)

    def _recorded_page(self, name: str, called: Any = None) -> Any:
        """One row for `Golden.load`. `called`: the calls from an earlier recording, which are not traced again."""

        def child(answer: int) -> int:
            start = time.process_time()
            codes, digests = recorded_page(name, trace=called is None)
            seconds = time.process_time() - start
            starts: dict[str, set[int]] = defaultdict(set)
            for code in codes:
                if code.co_filename in self._names:
                    starts[self._names[code.co_filename]].add(code.co_firstlineno)
            found = {place: [self.coverage.digests[place], *sorted(lines)] for place, lines in starts.items()}
            with open(answer, "wb") as file:
                row = {"seconds": seconds, "called": called or found, "digests": digests}
                file.write(json.dumps(row).encode())
            return 0

        code, output = forked(child, PATIENCE)
        if code:
            raise SystemExit(f"the golden page {name} could not be made")
        return json.loads(output)

    def _some_cases(self, names: list[str]) -> list[str]:
        """At most `cases` cases of each test function, spread over its parameters; of `BY_BODY` all."""
        functions: dict[str, list[str]] = defaultdict(list)
        for name in names:
            functions[name.partition("[")[0]].append(name)
        return [
            name
            for function, cases in functions.items()
            for name in spread(cases)[: None if function.startswith(BY_BODY) else self._cases]
        ]

    def _recorded(self, name: str) -> Any:
        """[seconds, file -> lines] of one test; None if it does not pass."""

        def child(answer: int) -> int:
            tracer = Tracer(self._names)
            start = time.process_time()

            def write(*_: Any) -> NoReturn:
                sys.settrace(None)
                lines = {self._names[file]: f"{bits:x}" for file, bits in tracer.lines().items()}
                with open(answer, "wb") as file:
                    file.write(json.dumps([time.process_time() - start, lines]).encode())
                os._exit(0)

            signal.signal(signal.SIGVTALRM, write)
            signal.setitimer(signal.ITIMER_VIRTUAL, SLOW)
            sys.settrace(tracer.trace)
            failed = self._first_failure([name])
            if failed is None:
                write()
            return 1

        code, output = forked(child, PATIENCE)
        return json.loads(output) if code == 0 else None

    def _first_failure(self, names: list[str], begin: Callable[[str], None] = lambda _: None) -> str | None:
        from _pytest.runner import runtestprotocol  # noqa: PLC0415

        items = [self._items[name] for name in names]
        for item, following in zip(items, [*items[1:], None], strict=True):
            begin(item.nodeid)
            reports = runtestprotocol(item, log=False, nextitem=following)
            if any(report.failed for report in reports):
                return str(item.nodeid)
            if any(report.skipped for report in reports) and len(items) == 1:
                return "skipped"
        return None

    # ── runs ──

    def judge(self, path: Path, text: str, tree: ast.Module, line: int, budget: float) -> tuple[str, str]:
        """(killed, survived or undecided; the test or page that killed it, or the reason)."""
        place = place_of(path)
        changed = changed_functions(text, tree, path)
        if changed is not None and (page := self._differing_page(path, changed, budget)) is not None:
            self.golden.note(place, page)
            return "killed", page
        reaching = self.coverage.reaching(place, line)
        tests = self._in_order(place, reaching, budget)
        at_import = bool(self.coverage.imported.get(place, 0) >> line & 1)
        if changed is not None and tests:
            result = self._warm(path, changed, tests)
            if result[0] == "survived":
                result = self._warm_further(path, changed, self._further(reaching, budget)) or result
            if result[0] == "survived":
                result = self._warm_elsewhere(path, changed, reaching, budget) or result
            if result[0] != "survived" and result[1] != "closure":
                if "::" in result[1]:
                    self.killers[place][result[1].partition("[")[0]] += 1
                return result
            if result[1] != "closure" and not at_import:
                return result
        elif changed is not None and not at_import:
            return self._warm_elsewhere(path, changed, [], budget) or ("survived", "no test reaches it")
        return self._run_cold(path, tree, budget)

    def _differing_page(self, path: Path, changed: dict[CodeType, CodeType], budget: float) -> str | None:
        pages = affordable(self.golden.in_order(place_of(path), changed), budget)

        def child(answer: int) -> int:
            return compare(pages, answer) if replace_code(self._functions[str(path)], changed) else ALIKE

        code, output = forked(child, PATIENCE)
        return None if code == ALIKE else _last(output, code)

    def _in_order(self, place: str, tests: list[Reach], budget: float) -> list[Reach]:
        """One case of each test function, then a second of each, and so on; earlier killers first, then quick ones."""
        killers = self.killers[place]
        cases: dict[str, list[Reach]] = defaultdict(list)
        for test in sorted(tests, key=lambda one: one.seconds):
            cases[test.function].append(test)
        ranked = [
            (number, -killers[function], test.seconds, test)
            for function, found in cases.items()
            for number, test in enumerate(found)
        ]
        ranked.sort(key=lambda row: row[:3])
        chosen: list[Reach] = []
        seconds = 0.0
        for *_, test in ranked:
            if seconds + test.seconds <= budget or not chosen:
                chosen.append(test)
                seconds += test.seconds
        return chosen

    def _further(self, tests: list[Reach], budget: float) -> list[Reach]:
        """Cases that were not recorded, of test functions of which a recorded case reaches the line."""
        cases: dict[str, list[Reach]] = defaultdict(list)
        for test in tests:
            cases[test.function].append(test)
        rows = []
        for function, recorded in cases.items():
            mean = sum(test.seconds for test in recorded) / len(recorded)
            further = [name for name in self._by_function[function] if name not in self.coverage.recorded]
            rows += [(number, mean, name) for number, name in enumerate(further)]
        chosen: list[Reach] = []
        seconds = 0.0
        for _, mean, name in sorted(rows):
            if seconds + mean <= budget:
                chosen.append(Reach(name, mean, {}))
                seconds += mean
        return chosen

    def _warm(self, path: Path, changed: dict[CodeType, CodeType], tests: list[Reach]) -> tuple[str, str]:
        names = [test.id for test in tests]

        def child(answer: int) -> int:
            if not replace_code(self._functions[str(path)], changed):
                os.write(answer, b"closure\n")
                return 3
            failed = self._first_failure(names, lambda name: _watch(name, answer))
            if failed is None:
                return 0
            return 1

        code, output = forked(child, idle_limit(tests))
        last = _last(output, code)
        if code == 0:
            return "survived", f"{len(names)} tests"
        if last.startswith("closure"):
            return "undecided", "closure"
        return "killed", last

    def _warm_elsewhere(
        self, path: Path, changed: dict[CodeType, CodeType], reaching: list[Reach], budget: float
    ) -> tuple[str, str] | None:
        """A kill by a test of `BY_BODY` that reaches the module: its recording may have ended before the line."""
        place, known = place_of(path), {test.id for test in reaching}
        others = [test for test in self.coverage.tests if place in test.lines and test.id not in known]
        chosen = self._in_order(place, [test for test in others if test.id.startswith(BY_BODY)], budget)
        result = self._warm(path, changed, chosen) if chosen else None
        return result if result is not None and result[0] == "killed" else None

    def _warm_further(
        self, path: Path, changed: dict[CodeType, CodeType], tests: list[Reach]
    ) -> tuple[str, str] | None:
        """A kill by a test that was not recorded before, if it passes without the change; None if there is none."""
        while tests:
            result = self._warm(path, changed, tests)
            if result[0] != "killed":
                return None
            name = result[1].partition(" ended with")[0]
            row = self._recorded(name)
            self.coverage.recorded.add(name)
            if row is not None:
                self.coverage.add({name: row}, self.coverage.digests)
                return result
            tests = tests[[test.id for test in tests].index(name) + 1 :]
        return None

    def _run_cold(self, path: Path, tree: ast.Module, budget: float) -> tuple[str, str]:
        place = place_of(path)
        files = cold_files(path)
        tests = [test for test in self.coverage.tests if test.id.startswith(files)]
        near = [test for test in tests if place in test.lines] or [
            test for test in tests if any(one.startswith(place.rpartition("/")[0] + "/") for one in test.lines)
        ]
        of_constants = [test for test in tests if not test.lines]
        chosen = self._in_order(place, [*near, *of_constants], min(budget, 20.0))
        pages = affordable(self.golden.near(place), budget)
        if not chosen and not pages:
            return "undecided", "no test for a fresh import"
        result = self._cold.run(path, tree, pages, [test.id for test in chosen], idle_limit(chosen) + 60)
        if result[1].startswith("golden "):
            self.golden.note(place, result[1])
        return result


class ColdServer:
    """A process that has not imported dragoman. Each run is a fork of it that imports one changed module first."""

    def __init__(self) -> None:
        if any(name.partition(".")[0] == "dragoman" for name in sys.modules):
            raise RuntimeError("dragoman must not be imported before a module of it is changed")
        self._answers, answering = os.pipe()
        asked, self._questions = os.pipe()
        if os.fork() == 0:
            os.close(self._answers)
            os.close(self._questions)
            with open(asked, "rb") as questions, open(answering, "w") as answers:  # noqa: PTH123 - pipes
                self._serve(questions, answers)
            os._exit(0)
        os.close(asked)
        os.close(answering)
        self._reading = open(self._answers)  # noqa: PTH123, SIM115
        self._writing = open(self._questions, "wb")  # noqa: PTH123, SIM115

    def run(self, path: Path, tree: ast.Module, pages: list[Page], names: list[str], limit: float) -> tuple[str, str]:
        pickle.dump((path, tree, pages, names, limit), self._writing)
        self._writing.flush()
        result, by = json.loads(self._reading.readline())
        return result, by

    @staticmethod
    def _serve(questions: Any, answers: Any) -> None:
        for name in ("pytest", "hypothesis", "hypothesis.strategies", "msgspec", "hypothesis.internal"):
            importlib.import_module(name)
        while True:
            try:
                path, tree, pages, names, limit = pickle.load(questions)  # noqa: S301 - from the parent
            except EOFError:
                return
            code, output = forked(lambda answer: _test_cold(path, tree, pages, names, answer), limit)  # noqa: B023
            last = _last(output, code) or "importing it"
            row = ("survived", f"{len(names)} tests, fresh import") if code == 0 else ("killed", last)
            answers.write(json.dumps(row) + "\n")
            answers.flush()


def _test_cold(path: Path, tree: ast.Module, pages: list[Page], names: list[str], answer: int) -> int:
    import pytest  # noqa: PLC0415 - imported already

    sys.meta_path.insert(0, Changed(module_name(path), path, tree))
    importlib.import_module(module_name(path))  # now: pytest puts an importer of its own in front of ours
    if code := compare(pages, answer):
        return code
    if not names:
        return 0
    wanted = {name: number for number, name in enumerate(names)}

    class Chosen:
        @staticmethod
        def pytest_collection_modifyitems(items: list[Any]) -> None:
            items[:] = sorted((item for item in items if item.nodeid in wanted), key=lambda item: wanted[item.nodeid])

        @staticmethod
        def pytest_runtest_logstart(nodeid: str) -> None:
            _watch(nodeid, answer)

    files = sorted({name.partition("::")[0] for name in names})
    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--tb=no", "--assert=plain"]
    return int(pytest.main([*options, *files], plugins=[Chosen()]))


class Changed(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports one module from a changed tree, and every other as usual."""

    def __init__(self, name: str, path: Path, tree: ast.Module) -> None:
        self._name, self._path, self._tree = name, path, tree

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:  # noqa: ARG002
        if fullname != self._name:
            return None
        folder = [str(self._path.parent)] if self._path.name == "__init__.py" else None
        return importlib.util.spec_from_file_location(
            fullname, self._path, loader=self, submodule_search_locations=folder
        )

    def create_module(self, spec: Any) -> None:  # noqa: ARG002
        return None

    def exec_module(self, module: ModuleType) -> None:
        exec(compile(self._tree, str(self._path), "exec", dont_inherit=True), module.__dict__)  # noqa: S102


def cold_files(path: Path) -> tuple[str, ...]:
    place = place_of(path)
    folder = next(one for one in sorted(COLD, key=len, reverse=True) if place.startswith(one + "/"))
    return tuple(test.format(folder=place.split("/")[1]) for test in COLD[folder])


def _last(output: bytes, code: int) -> str:
    """The test or page that began last, and how the process ended if not by an ordinary failure."""
    last = output.decode(errors="replace").rstrip("\n").rpartition("\n")[2]
    return last if code in {0, 1} or not last else f"{last} ended with {code}"


def _watch(name: str, answer: int) -> None:
    """Tells the parent which test begins, so that it can name the one that failed or did not end."""
    os.write(answer, f"{name}\n".encode())


def idle_limit(tests: list[Reach]) -> float:
    """Seconds that one test may take: far more than the slowest of them took."""
    return 20 + 10 * max((test.seconds for test in tests), default=0.0)


def seconds_used(process: int) -> float:
    """CPU seconds that a process has used; infinity where the system does not report them."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2].split()
    except OSError:
        return float("inf")
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def forked(child: Callable[[int], int], idle: float) -> tuple[int, bytes]:
    """Runs `child` in a fork. Returns its exit code (negative: a signal) and what it wrote to its pipe.

    It is killed if it writes nothing for `idle` seconds, unless it got little CPU time because the machine is busy.
    """
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        code = 3
        try:
            os.close(reading)
            quiet = os.open(os.devnull, os.O_WRONLY)
            os.dup2(quiet, 1)
            os.dup2(quiet, 2)
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            code = child(writing)
        finally:
            os._exit(code)
    os.close(writing)
    output = bytearray()
    busy, waited = 0.0, 0
    while True:
        ready, _, _ = select.select([reading], [], [], idle)
        waited = 0 if ready else waited + 1
        if 0 < waited < WAITS and seconds_used(process) - busy < idle / 2:
            continue
        found = os.read(reading, 1 << 16) if ready else b""
        if not found:
            break
        output += found
        busy = seconds_used(process)
    if not ready:
        os.kill(process, signal.SIGKILL)
    os.close(reading)
    _, status = os.waitpid(process, 0)
    return os.waitstatus_to_exitcode(status), bytes(output)
