"""Each example in a docstring runs, and prints what is written below it."""

import doctest
from importlib import import_module
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[1] / "src"
MODULES = [
    ".".join(path.relative_to(SOURCES).with_suffix("").parts).removesuffix(".__init__")
    for path in sorted(SOURCES.rglob("*.py"))
    if ">>> " in path.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("module", MODULES)
def test_the_examples_of_a_module_run(module: str) -> None:
    loaded = import_module(module)
    # Names that are imported at their first use must be there before doctest looks for examples and runs them.
    for name in getattr(loaded, "__all__", ()):
        getattr(loaded, name)
    outcome = doctest.testmod(loaded)
    assert outcome.attempted > 0
    assert outcome.failed == 0
