"""scripts/mutate.py: every kind of change it knows is made, one at a time, and where it should not be."""

import ast
import importlib
import sys
from pathlib import Path

import pytest

from scripts.mutate import Changed, mutants_of, mutated


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
        "def f(x: A[1]) -> B[2]:\n    '''Text.'''",
        "x = 'text'",
        "return_none = None",
    ],
)
def test_what_no_test_could_notice_is_left_alone(source: str) -> None:
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
