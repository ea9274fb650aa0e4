import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.ledger import (
    AGENT,
    BATCH,
    CHAT,
    COMMAND,
    CORE,
    DUE,
    FRONT,
    GATEWAY,
    LAWS,
    PROMISES,
    REPORTS,
    SEEDS,
    VALUES,
    WEB,
)

TESTS = Path(__file__).parent
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def is_promise(node: ast.AST) -> bool:
    """Recognise `promise(...)` and `pytest.mark.promise(...)`."""
    match node:
        case ast.Call(func=ast.Name(id="promise") | ast.Attribute(attr="promise")):
            return True
    return False


def is_test(node: Definition) -> bool:
    return node.name.startswith("Test" if isinstance(node, ast.ClassDef) else "test_")


def places_that_mark(tree: ast.AST) -> Iterator[ast.expr]:
    """Find the marks that reach a test: in decorators, `pytestmark = ...`, and `pytest.param(..., marks=...)`."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() if is_test(node):
                yield from node.decorator_list
            case ast.Assign(targets=[ast.Name(id="pytestmark")]):
                yield node.value
            case ast.keyword(arg="marks"):
                yield node.value


def mentions(source: str) -> tuple[set[str], list[str]]:
    """Return the promise ids that tests in this source name, and the errors in their marks."""
    tree = ast.parse(source)
    marks = {call for place in places_that_mark(tree) for call in ast.walk(place) if is_promise(call)}
    ids: set[str] = set()
    complaints: list[str] = []
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call) or not is_promise(call):
            continue
        literals = [argument.value for argument in call.args if isinstance(argument, ast.Constant)]
        names = [value for value in literals if isinstance(value, str)]
        if call not in marks:
            complaints.append(f"line {call.lineno}: a promise that marks no test")
        elif not names or len(names) != len(call.args) or call.keywords:
            complaints.append(f"line {call.lineno}: promise ids have to be written out as string literals")
        else:
            ids.update(names)
    return ids, complaints


@cache
def mentions_by_file() -> dict[str, tuple[set[str], list[str]]]:
    files = sorted(TESTS.rglob("test_*.py"))
    return {str(path.relative_to(TESTS)): mentions(path.read_text(encoding="utf-8")) for path in files}


def test_the_ledger_lists_eleven_laws_and_eighty_five_reports() -> None:
    assert [int(name.partition("-")[0]) for name, _, _ in LAWS] == list(range(1, 12))
    assert [number for number, _, _ in REPORTS] == list(range(1, 86))
    groups = (LAWS, CORE, REPORTS, VALUES, SEEDS, AGENT, COMMAND, CHAT, GATEWAY, WEB, FRONT, BATCH)
    assert len(PROMISES) == sum(map(len, groups))


def test_every_mark_is_readable_and_names_a_promise_that_was_made() -> None:
    wrong = [
        f"tests/{file}: {complaint}"
        for file, (ids, complaints) in mentions_by_file().items()
        for complaint in [*complaints, *(f"not in the ledger: {name!r}" for name in sorted(ids - PROMISES.keys()))]
    ]
    assert not wrong, "\n".join(wrong)


def test_every_promise_that_is_due_has_a_test() -> None:
    kept = set().union(*(ids for ids, _ in mentions_by_file().values()))
    untested = [promise for promise in PROMISES.values() if promise.due in DUE and promise.id not in kept]
    assert not untested, "no test names:\n" + "\n".join(f"  {promise.id}: {promise.text}" for promise in untested)


@pytest.mark.parametrize(
    ("source", "ids"),
    [
        ('@promise("a", "b")\ndef test_it(): ...', {"a", "b"}),
        ('@pytest.mark.promise("a")\nasync def test_it(): ...', {"a"}),
        ('@promise("a")\nclass TestIt:\n    @promise("b")\n    def test_it(self): ...', {"a", "b"}),
        ('pytestmark = [promise("a"), promise("b")]', {"a", "b"}),
        ('ROWS = [pytest.param(1, marks=promise("a"))]', {"a"}),
        ("def test_it(): ...", set()),
    ],
)
def test_a_mark_on_a_test_is_found(source: str, ids: set[str]) -> None:
    assert mentions(source) == (ids, [])


@pytest.mark.parametrize(
    "source",
    [
        '@promise("a")\ndef helper(): ...',
        'def test_it():\n    promise("a")',
        "@promise(NAME)\ndef test_it(): ...",
        '@promise("a", *MORE)\ndef test_it(): ...',
        "@promise()\ndef test_it(): ...",
    ],
)
def test_a_mark_that_marks_nothing_or_cannot_be_read_is_refused(source: str) -> None:
    ids, complaints = mentions(source)
    assert not ids
    assert len(complaints) == 1
