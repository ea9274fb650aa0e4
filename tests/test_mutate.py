"""scripts/mutate.py makes every kind of change, one at a time, and none where no test could detect it."""

import ast
import importlib
import sys
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

from scripts.mutate import EQUIVALENT, interval, listed, mutants_of, mutated, sampled
from scripts.mutate_golden import Golden, Page, affordable, difference, recorded_page
from scripts.mutate_runs import SOURCE, Changed, Coverage, Tracer, changed_functions, replace_code, spread


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = a == b", "x = a != b"),
        ("x = a is None", "x = a is not None"),
        ("x = a in b", "x = a not in b"),
        ("x = a < b", "x = a <= b"),
        ("x = a and b", "x = a or b"),
        ("x = not a", "x = a"),
        ("x = b if a else c", "x = b if not a else c"),
        ("x = a + b", "x = a - b"),
        ("x = True", "x = False"),
        ("x = 3", "x = 4"),
        ("x = -1", "x = 0"),
        ("log.drop(a)", "pass"),
        ("x += y", "pass"),
    ],
)
def test_one_change_of_each_kind(before: str, after: str) -> None:
    (mutant,) = mutants_of(before)
    assert ast.unparse(mutated(before, mutant)) == after


def test_statements_of_functions_and_loops() -> None:
    source = "def f(x):\n    for y in x:\n        if y:\n            continue\n    return x"
    changed = [ast.unparse(mutated(source, mutant)) for mutant in mutants_of(source)]
    assert len(changed) == 3
    assert any("return None" in text for text in changed)
    assert any("if not y:" in text for text in changed)
    assert any("break" in text for text in changed)


@pytest.mark.parametrize(
    "source",
    [
        "if TYPE_CHECKING:\n    x = 1",
        "raise ValueError(1 + 2)",
        "assert a == b",
        "x = f(zip(a, b, strict=True), maxsize=3)",
        "def f(x: A[1]) -> B[2]:\n    '''Text.'''",
        "x = 'text'",
        "return_none = None",
        "def f():\n    return ()",
        "def f():\n    return ''",
    ],
)
def test_code_whose_change_no_test_could_detect_is_not_changed(source: str) -> None:
    assert mutants_of(source) == []


def test_the_changed_module_is_the_one_that_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "mutation_probe.py"
    source.write_text("VALUE = 3\n")
    (mutant,) = mutants_of(source.read_text())
    monkeypatch.syspath_prepend(tmp_path)
    changed = Changed("mutation_probe", source, mutated(source.read_text(), mutant))
    monkeypatch.setattr(sys, "meta_path", [changed, *sys.meta_path])
    monkeypatch.delitem(sys.modules, "mutation_probe", raising=False)
    assert importlib.import_module("mutation_probe").VALUE == 4
    del sys.modules["mutation_probe"]


PROBE = """
LIMIT = 3
def outer(value):
    def inner():
        return value + 1
    return inner
ADD = outer(1)
SHOW = [lambda value: not value, lambda value: value]
class Holder:
    size = 5
    def has(self, value):
        return value < self.size
"""


def _imported(source: Path, text: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    exec(compile(text, str(source), "exec", dont_inherit=True), found)  # noqa: S102
    return found


@pytest.mark.parametrize(
    ("line", "question", "before", "after"),
    [
        (5, "outer(1)()", 2, 0),  # in a function of a function, called after the change
        (5, "ADD()", 2, 0),  # and made before the change
        (8, "SHOW[0](1)", False, 1),
        (12, "Holder().has(5)", False, True),
    ],
)
def test_functions_are_changed_in_place(tmp_path: Path, line: int, question: str, before: Any, after: Any) -> None:
    source = tmp_path / "probe.py"
    module = _imported(source, PROBE)
    mutant = next(
        one for one in mutants_of(PROBE) if one.line == line and one.kind in {"operator", "not", "comparison"}
    )
    changed = changed_functions(PROBE, mutated(PROBE, mutant), source)
    assert changed is not None
    assert eval(question, module) == before  # noqa: S307
    functions = [module["outer"], module["ADD"], *module["SHOW"], module["Holder"].has]
    assert all(isinstance(one, FunctionType) for one in functions)
    assert replace_code(functions, changed)
    assert eval(question, module) == after  # noqa: S307


@pytest.mark.parametrize("line", [2, 7, 10])
def test_values_computed_by_an_import_are_not_changed_in_place(tmp_path: Path, line: int) -> None:
    mutant = next(one for one in mutants_of(PROBE) if one.line == line)
    assert changed_functions(PROBE, mutated(PROBE, mutant), tmp_path / "probe.py") is None


def test_the_lines_that_a_test_reaches_are_recorded(tmp_path: Path) -> None:
    source = tmp_path / "probe.py"
    text = "def choose(x):\n    if x:\n        return 1\n    return 2\n"
    module = _imported(source, text)
    tracer = Tracer([str(source)])
    previous = sys.gettrace()
    sys.settrace(tracer.trace)
    try:
        module["choose"](0)
    finally:
        sys.settrace(previous)
    (bits,) = tracer.lines().values()
    assert [line for line in range(6) if bits >> line & 1] == [1, 2, 4]


def test_a_golden_page_is_compared_up_to_its_first_difference() -> None:
    name = "errors/ollama-chat"
    called, digests = recorded_page(name)
    assert any(code.co_filename.endswith("ollama_chat/errors.py") for code in called)
    assert difference(Page(name, 0.0, {}, digests)) is None
    assert difference(Page(name, 0.0, {}, digests[:-1])) is not None
    assert difference(Page(name, 0.0, {}, [*digests, 0])) == "its number of cases"
    changed = [*digests[:1], digests[1] + 1, *digests[2:]]
    assert "openai-responses" in str(difference(Page(name, 0.0, {}, changed)))


def test_pages_that_call_a_changed_function_are_compared_earlier_killers_first() -> None:
    def function() -> None: ...

    start = function.__code__.co_firstlineno
    pages = [Page("a/slow", 9.0, {"m.py": {start}}, []), Page("a/quick", 1.0, {"m.py": {start}}, [])]
    golden = Golden([*pages, Page("a/other", 1.0, {"m.py": {start + 1}}, [])])
    assert [page.name for page in golden.in_order("m.py", [function.__code__])] == ["a/quick", "a/slow"]
    golden.note("m.py", "golden a/slow: some case")
    assert [page.name for page in golden.in_order("m.py", [function.__code__])] == ["a/slow", "a/quick"]
    assert [page.name for page in affordable(pages, 9.5)] == ["a/slow"]
    assert affordable(pages, 10.0) == pages


def test_lines_of_a_file_that_has_changed_since_count_as_reached() -> None:
    coverage = Coverage({"a.py": "new", "b.py": "same"})
    coverage.add({"test": [1.0, {"a.py": "4", "b.py": "4"}]}, {"a.py": "old", "b.py": "same"})
    assert [len(coverage.reaching("a.py", line)) for line in (2, 3)] == [1, 1]
    assert [len(coverage.reaching("b.py", line)) for line in (2, 3)] == [1, 0]


def test_the_first_cases_of_a_test_have_every_word() -> None:
    formats = [f"format_{number}" for number in range(9)]
    cases = [f"test_it[{source}-{target}]" for source in formats for target in formats]
    chosen = spread(cases)
    assert sorted(chosen) == sorted(cases) != chosen
    assert spread(cases) == chosen
    first = " ".join(chosen[: 2 * len(formats)])
    assert all(name in first for name in formats)


def test_a_sample_has_every_module_and_is_proportional_from_its_start() -> None:
    modules = {
        SOURCE / f"{name}.py": mutants_of("x = 1\n" * count) for name, count in (("a", 400), ("b", 200), ("c", 1))
    }
    tasks = sampled(modules, 60, 15)
    assert tasks == sampled(modules, 60, 15) != sampled(modules, 60, 16)
    assert len(set(tasks)) == len(tasks)
    counts = [sum(task.place == f"{name}.py" for task in tasks) for name in "abc"]
    assert counts == [40, 20, 1]
    assert sum(task.place == "a.py" for task in tasks[:30]) in range(18, 23)
    assert len(sampled(modules, 0, 15)) == 601


def test_the_interval_of_a_share() -> None:
    low, high = interval(570, 600)
    assert 0.929 < low < 0.93
    assert 0.964 < high < 0.965


@pytest.mark.parametrize(("place", "kind", "text"), EQUIVALENT)
def test_every_equivalent_mutant_still_exists(place: str, kind: str, text: str) -> None:
    found = mutants_of((SOURCE / place).read_text())
    assert [mutant.what for mutant in found if (mutant.kind, mutant.what) == (kind, text)] == [text]


def test_listed_mutants_are_found_wherever_their_text_occurs() -> None:
    path = SOURCE / "codecs" / "memo.py"
    text = "def f(x):\n    g(x)\n    y = 1\n    g(x)\n"
    rows = "# a heading\n\ncodecs/memo.py: call left out: g(x)\ncodecs/other.py: constant: y = 1\n"
    assert [task.mutant.line for task in listed({path: mutants_of(text)}, rows)] == [2, 4]
