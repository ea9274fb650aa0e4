"""Mutation testing of the core: makes small changes, one at a time, and reports those that no test detects.

    python scripts/mutate.py passes                       # every module of passes/
    python scripts/mutate.py codecs/bedrock_converse --sample 200
    python scripts/mutate.py passes/turns.py --show       # list the mutants, run nothing

A mutant is one change of the syntax tree: a comparison or a condition turned round, a constant changed, a statement
that is only called for its effect left out, a returned value replaced by None. Tests run in a forked process that
imports the changed module instead of the one on disk; the tests of a module are chosen by `TESTS`. Results are appended
to build/mutants/, so that an interrupted run goes on where it stopped; a module whose text changed starts again.

killed: a test fails, or the run takes far longer than without a change. survived: all tests pass. Undecided: the change
could not be run. The exit code is 1 if fewer than 95 % of the decided mutants are killed. Generated values are few here
(the profile `quick` of tests/conftest.py); HYPOTHESIS_PROFILE=ci looks longer, and may kill a survivor.
"""

import argparse
import ast
import copy
import hashlib
import importlib.abc
import importlib.util
import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "dragoman"
RESULTS = ROOT / "build" / "mutants"
GOAL = 0.95
_IMPORTED = "ignore::pytest.PytestAssertRewriteWarning"  # the parent has imported what the runs share

# Folder under src/dragoman -> the tests that are about it: quick ones, and those that only a survivor of these meets.
# `{folder}` is the codec's.
TESTS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "passes": (
        (
            "tests/passes/test_selection.py",
            "tests/passes/test_private.py",
            "tests/passes/test_turns.py",
            "tests/passes/test_pairing_and_names.py",
            "tests/passes/test_traits.py",
            "tests/laws/test_survivors.py",
        ),
        (
            "tests/laws/test_every_field.py",
            "tests/codecs/test_traps.py",
            "tests/laws/test_law_08_pairs_hold.py",
            "tests/laws/test_law_06_owed_back.py",
            "tests/laws/test_law_02_nothing_vanishes.py",
            "tests/laws/test_law_03_legality.py",
        ),
    ),
    "codecs": (
        (
            "tests/codecs/test_{folder}.py",
            "tests/streams/test_{folder}.py",
            "tests/laws/test_survivors.py",
            "tests/laws/test_every_field.py",
        ),
        (
            "tests/laws/test_losses_are_true.py",
            "tests/laws/test_law_01_identity.py",
            "tests/laws/test_law_02_nothing_vanishes.py",
            "tests/laws/test_law_05_streams.py",
            "tests/laws/test_law_09_usage_adds_up.py",
            "tests/laws/test_law_10_bad_input.py",
        ),
    ),
}


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change: the number of the node in `ast.walk` order, and its replacement."""

    number: int
    kind: str
    line: int
    what: str

    @property
    def id(self) -> str:
        return f"{self.number}:{self.kind}"


# ── making mutants ────────────────────────────────────────────────────────────────────────────────────────────

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
}  # fmt: skip
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv}

Change = Callable[[Any], ast.AST]


def _changes(node: ast.AST) -> Iterator[tuple[str, Change]]:
    """Possible changes of one node."""
    match node:
        case ast.Compare(ops=[operator]) if type(operator) in _COMPARISONS:
            yield "comparison", _compared
        case ast.BoolOp():
            yield "and/or", _joined
        case ast.UnaryOp(op=ast.Not()):
            yield "not", lambda found: found.operand
        case ast.If() | ast.IfExp() | ast.While():
            yield "condition", _turned
        case ast.BinOp(op=operator) if type(operator) in _OPERATORS:
            yield "operator", _operated
        case ast.Constant(value=bool()):
            yield "constant", lambda found: ast.Constant(not found.value)
        case ast.Constant(value=int() as value) if value < 1 << 16:
            yield "constant", lambda found: ast.Constant(found.value + 1)
        case ast.Expr(value=ast.Call()):
            yield "call left out", lambda _: ast.Pass()
        case ast.AugAssign():
            yield "assignment left out", lambda _: ast.Pass()
        case ast.Return(value=ast.expr() as value) if not (isinstance(value, ast.Constant) and value.value is None):
            yield "nothing returned", lambda _: ast.Return(ast.Constant(None))
        case ast.Continue():
            yield "continue/break", lambda _: ast.Break()
        case _:
            return


def _compared(found: ast.Compare) -> ast.AST:
    return ast.Compare(found.left, [_COMPARISONS[type(found.ops[0])]()], found.comparators)


def _joined(found: ast.BoolOp) -> ast.AST:
    return ast.BoolOp(ast.Or() if isinstance(found.op, ast.And) else ast.And(), found.values)


def _turned(found: Any) -> ast.AST:
    turned = copy.copy(found)
    turned.test = ast.UnaryOp(ast.Not(), found.test)
    return turned  # type: ignore[no-any-return]


def _operated(found: ast.BinOp) -> ast.AST:
    return ast.BinOp(found.left, _OPERATORS[type(found.op)](), found.right)


def _skipped(tree: ast.Module) -> set[int]:
    """Nodes inside annotations, decorators, type-checking blocks, raised errors and assertions: ids."""
    skipped: set[int] = set()
    for node in ast.walk(tree):
        inner: list[ast.AST] = []
        match node:
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                inner = [node]
            case ast.Raise() | ast.Assert():
                inner = [node]
            case ast.AnnAssign(annotation=annotation):
                inner = [annotation]
            case ast.FunctionDef(args=arguments, returns=returns, decorator_list=decorators):
                annotated = [*arguments.args, *arguments.kwonlyargs, *arguments.posonlyargs]
                inner = [*decorators, *(one.annotation for one in annotated if one.annotation)]
                inner += [] if returns is None else [returns]
            case ast.ClassDef(keywords=keywords, decorator_list=decorators):
                inner = [*decorators, *keywords]
        for part in inner:
            skipped.update(id(one) for one in ast.walk(part))
    return skipped


def mutants_of(text: str) -> list[Mutant]:
    tree = ast.parse(text)
    skipped = _skipped(tree)
    lines = text.splitlines()
    return [
        Mutant(number, kind, node.lineno, lines[node.lineno - 1].strip())
        for number, node in enumerate(ast.walk(tree))
        if id(node) not in skipped
        for kind, _ in _changes(node)
        if hasattr(node, "lineno")
    ]


def mutated(text: str, mutant: Mutant) -> ast.Module:
    """The tree with that one change."""
    tree = ast.parse(text)
    target = next(node for number, node in enumerate(ast.walk(tree)) if number == mutant.number)
    change = dict(_changes(target))[mutant.kind]

    class Replace(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> Any:
            if node is target:
                return ast.copy_location(change(node), node)
            return self.generic_visit(node)

    return ast.fix_missing_locations(Replace().visit(tree))  # type: ignore[no-any-return]


# ── running them ──────────────────────────────────────────────────────────────────────────────────────────────


class Changed(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports one module from a changed tree, and every other as usual."""

    def __init__(self, name: str, path: Path, tree: ast.Module) -> None:
        self._name, self._path, self._tree = name, path, tree

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:  # noqa: ARG002
        if fullname != self._name:
            return None
        return importlib.util.spec_from_file_location(fullname, self._path, loader=self)

    def create_module(self, spec: Any) -> None:  # noqa: ARG002
        return None

    def exec_module(self, module: ModuleType) -> None:
        exec(compile(self._tree, str(self._path), "exec"), module.__dict__)  # noqa: S102


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts)


def tests_for(path: Path, tier: int) -> list[str]:
    """The quick tests (0) or the others (1)."""
    place = path.relative_to(SOURCE).parts
    found = [test.format(folder=place[1]) for test in TESTS[place[0]][tier]]
    return [test for test in found if (ROOT / test).exists()]


def selection_for(path: Path) -> list[str]:
    """Selects the law tests of this codec's format; no selection for modules that all codecs share."""
    place = path.relative_to(SOURCE).parts
    if place[0] != "codecs" or len(place) < 3:  # noqa: PLR2004
        return []
    return ["-k", f"{place[1]} or {place[1].replace('_', '-')} or {place[1].partition('_')[0]}"]


def run(path: Path, tree: ast.Module | None, limit: float, tier: int) -> tuple[str, float]:
    """Runs the tests in a separate process; returns (killed, survived or undecided, seconds)."""
    start = time.monotonic()
    child = os.fork()
    if child == 0:
        _test(path, tree, tier)
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        seconds = time.monotonic() - start
        if done:
            code = os.waitstatus_to_exitcode(status)
            return {0: "survived", 1: "killed", 2: "killed"}.get(code, "undecided" if code > 0 else "killed"), seconds
        if seconds > limit:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return "killed", seconds
        time.sleep(0.02)


def _test(path: Path, tree: ast.Module | None, tier: int) -> None:
    import pytest  # noqa: PLC0415 - imported by the parent already

    os.environ.setdefault("HYPOTHESIS_PROFILE", "quick")
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    code = 1
    try:
        if tree is not None:
            sys.meta_path.insert(0, Changed(module_name(path), path, tree))
            importlib.import_module(module_name(path))  # now: pytest puts an importer of its own in front of ours
        code = 3
        options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--tb=no", "-W", _IMPORTED]
        code = int(pytest.main([*options, *selection_for(path), *tests_for(path, tier)]))
    finally:
        os._exit(code)


def prepare() -> None:
    """Imports shared packages before the first fork, but not dragoman, which each run imports itself."""
    os.chdir(ROOT)
    sys.path[:0] = [str(ROOT / "src"), str(ROOT)]
    for name in ("pytest", "hypothesis", "hypothesis.strategies", "msgspec", "json", "orjson", "hypothesis.internal"):
        importlib.import_module(name)
    if any(name == "dragoman" or name.startswith("dragoman.") for name in sys.modules):
        raise RuntimeError("dragoman must not be imported before a module of it is changed")


# ── reports ───────────────────────────────────────────────────────────────────────────────────────────────────


class Record:
    """The results of one module, kept in a file."""

    def __init__(self, path: Path, text: str) -> None:
        digest = hashlib.sha256(text.encode()).hexdigest()[:12]
        name = "_".join(path.relative_to(SOURCE).with_suffix("").parts)
        self._file = RESULTS / f"{name}-{digest}.jsonl"
        self.results: dict[str, str] = {}
        if self._file.exists():
            for line in self._file.read_text().splitlines():
                row = json.loads(line)
                self.results[row["id"]] = row["result"]

    def add(self, mutant: Mutant, result: str) -> None:
        self.results[mutant.id] = result
        RESULTS.mkdir(parents=True, exist_ok=True)
        with self._file.open("a") as file:
            file.write(json.dumps({"id": mutant.id, "line": mutant.line, "what": mutant.what, "result": result}) + "\n")


def examine(path: Path, options: argparse.Namespace) -> tuple[int, int, list[str]]:
    """(killed, decided, survivors) of one module."""
    text = path.read_text()
    found, record = mutants_of(text), Record(path, text)
    if options.sample and len(found) > options.sample:
        found = random.Random(options.seed).sample(found, options.sample)  # noqa: S311 - a sample, not a secret
    place = path.relative_to(ROOT)
    if options.show:
        for mutant in sorted(found, key=lambda one: one.line):
            print(f"{place}:{mutant.line}: {mutant.kind}: {mutant.what}")
        return 0, 0, []
    waiting = [mutant for mutant in found if mutant.id not in record.results]
    if waiting:
        result, seconds = run(path, None, options.most, 0)
        if result != "survived":
            print(f"{place}: its tests fail without any change", file=sys.stderr)
            return 0, 0, []
        limit = min(options.most, 5 * seconds + 10)
        for mutant in waiting:
            if time.monotonic() > options.deadline:
                break
            tree = mutated(text, mutant)
            result, _ = run(path, tree, limit, 0)
            if result == "survived" and not options.quick:
                result, _ = run(path, tree, options.most, 1)
            record.add(mutant, result)
    decided = [mutant for mutant in found if record.results.get(mutant.id) in {"killed", "survived"}]
    alive = [mutant for mutant in decided if record.results[mutant.id] == "survived"]
    print(f"{place}: {len(found)} mutants, {len(decided)} decided, {len(decided) - len(alive)} killed", flush=True)
    return len(decided) - len(alive), len(decided), [f"{place}:{one.line}: {one.kind}: {one.what}" for one in alive]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("places", nargs="+", help="folders or files under src/dragoman, such as passes")
    parser.add_argument("--sample", type=int, default=0, help="number of mutants per module (default: all)")
    parser.add_argument("--seed", type=int, default=15, help="of the sample (default: %(default)s)")
    parser.add_argument("--minutes", type=float, default=60, help="stop after so long (default: %(default)s)")
    parser.add_argument("--most", type=float, default=300, help="seconds for one run (default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="only the quick tests: more survivors, sooner")
    parser.add_argument("--show", action="store_true", help="list the mutants, run nothing")
    options = parser.parse_args()
    options.deadline = time.monotonic() + 60 * options.minutes
    prepare()
    files = [file for place in options.places for file in _files(SOURCE / place)]
    results = [examine(path, options) for path in files]
    killed, decided = sum(row[0] for row in results), sum(row[1] for row in results)
    for survivor in (line for row in results for line in row[2]):
        print(f"survived  {survivor}")
    share = killed / decided if decided else 1.0
    print(f"{killed} of {decided} decided mutants killed ({share:.1%}); the goal is {GOAL:.0%}")
    return 0 if share >= GOAL else 1


def _files(place: Path) -> list[Path]:
    return sorted(place.rglob("*.py")) if place.is_dir() else [place]


if __name__ == "__main__":
    sys.exit(main())
