"""Mutation testing of the core: makes small changes, one at a time, and reports those that no test detects.

    python scripts/mutate.py                              # a sample of all of codecs/ and passes/
    python scripts/mutate.py passes/turns.py --sample 0   # every mutant of one module
    python scripts/mutate.py passes/turns.py --show       # list the mutants, run nothing
    python scripts/mutate.py --again                      # run the survivors once more, after a test was written
    python scripts/mutate.py --listed                     # run the mutants that scripts/surviving_mutants.txt lists

A mutant is one change of the syntax tree: a comparison or a condition inverted, a constant changed, a call that is made
only for its effect left out, a returned value replaced by None (unless it is as false as None). The sample takes at
least one mutant of each module, the others in proportion to its number of mutants; a seed always draws the same sample.
How tests are chosen and run: scripts/mutate_runs.py. Results are appended to build/mutants/, so that an interrupted run
continues where it stopped; a module whose text has changed starts again.

Killed: a test fails, or takes far longer than without the change. Survived: all tests that reach the line pass (as many
as fit into `--budget`). Undecided: the change could not be run. `EQUIVALENT` names mutants that were judged by hand: no
test could detect them. The exit code is 1 if fewer than 95 % of the decided mutants are killed. Generated values
are few here (the profile `quick` of tests/conftest.py).
"""

import argparse
import ast
import copy
import json
import math
import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from scripts.mutate_runs import RESULTS, SOURCE, TESTS, Session, digest_of, place_of  # noqa: E402 - found by the line above

GOAL = 0.95
LISTED = ROOT / "scripts" / "surviving_mutants.txt"

# Mutants that change nothing that a caller could see: (module, kind, text of the line) -> why.
EQUIVALENT: dict[tuple[str, str, str], str] = {
    ("codecs/wire_values.py", "constant", "_SECRET = os.urandom(8).hex()"): "a secret may have any length",
    ("codecs/gemini/stream.py", "call left out", "_read_full(payload)"): (
        "a chunk that the full reader refuses reaches the wide one anyway; only the reader of later chunks differs"
    ),
    ("codecs/openai_chat/request.py", "and/or", "has_read_tools = tools.tools or wire.tools is UNSET"): (
        "bodies without tools are then decoded through the wire structs, which reads them alike"
    ),
    ("codecs/claude_settings.py", "constant", "if wanted is None or wanted < 0:"): (
        "a budget of 0 has switched thinking off before"
    ),
    ("codecs/reading.py", "constant", "further = steps[1:]"): (
        "what is not lifted in its place is lifted with the whole body"
    ),
    ("codecs/bedrock_converse/frames.py", "comparison", "if len(known) >= _MOST:"): (
        "one frame more is remembered; what is read stays the same"
    ),
    ("codecs/gemini/stream.py", "constant", "again = _Call(0)"): "of this call only name and text are compared",
    ("codecs/openai_responses/messages.py", "comparison", 'if item.type == "reasoning":'): (
        "items without reasoning are then searched for signatures, of which there are none"
    ),
    ("passes/legalise.py", "constant", "_LONGEST_REMEMBERED = 128"): "a text that is not remembered is matched again",
    ("codecs/datasets/training_sets.py", "comparison", "while start >= 0:"): (
        "the text is stripped, so it does not begin with a line break"
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
        case (
            ast.Constant(value=int() as value) | ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as value))
        ) if value < 1 << 16:
            yield "constant", _next
        case ast.Expr(value=ast.Call()):
            yield "call left out", lambda _: ast.Pass()
        case ast.AugAssign():
            yield "assignment left out", lambda _: ast.Pass()
        case ast.Return(value=ast.expr() as value) if not _is_falsy(value):
            yield "nothing returned", lambda _: ast.Return(ast.Constant(None))
        case ast.Continue():
            yield "continue/break", lambda _: ast.Break()
        case _:
            return


def _is_falsy(value: ast.expr) -> bool:
    """Whether it is None or as false as None: callers that only test for truth could not tell them apart."""
    match value:
        case ast.Constant(value=constant):
            return not constant
        case ast.Tuple(elts=items) | ast.List(elts=items):
            return not items
        case ast.Dict(keys=keys):
            return not keys
        case _:
            return False


def _compared(found: ast.Compare) -> ast.AST:
    return ast.Compare(found.left, [_COMPARISONS[type(found.ops[0])]()], found.comparators)


def _next(found: ast.Constant | ast.UnaryOp) -> ast.AST:
    """The next integer: 0 for -1, because what is absent may be any negative number."""
    return ast.Constant(ast.literal_eval(found) + 1)


def _joined(found: ast.BoolOp) -> ast.AST:
    return ast.BoolOp(ast.Or() if isinstance(found.op, ast.And) else ast.And(), found.values)


def _turned(found: Any) -> ast.AST:
    turned = copy.copy(found)
    turned.test = ast.UnaryOp(ast.Not(), found.test)
    return turned  # type: ignore[no-any-return]


def _operated(found: ast.BinOp) -> ast.AST:
    return ast.BinOp(found.left, _OPERATORS[type(found.op)](), found.right)


def _skipped(tree: ast.Module) -> set[int]:
    """Ids of the nodes inside annotations, decorators, type-checking blocks, raised errors, assertions, memo sizes."""
    skipped: set[int] = set()
    for node in ast.walk(tree):
        inner: list[ast.AST] = []
        match node:
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                inner = [node]
            case ast.Raise() | ast.Assert():
                inner = [node]
            case ast.keyword(arg="maxsize"):
                inner = [node]
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant() as number):
                inner = [number]
            case ast.Call(func=ast.Name(id="zip"), keywords=keywords):  # strict=True is an assertion
                inner = [*keywords]
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
    """The module's tree with this one change."""
    tree = ast.parse(text)
    target = next(node for number, node in enumerate(ast.walk(tree)) if number == mutant.number)
    change = dict(_changes(target))[mutant.kind]

    class Replace(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> Any:
            if node is target:
                return ast.copy_location(change(node), node)
            return self.generic_visit(node)

    return ast.fix_missing_locations(Replace().visit(tree))  # type: ignore[no-any-return]


# ── sampling ──────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Task:
    path: Path
    mutant: Mutant

    @property
    def place(self) -> str:
        return place_of(self.path)

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.mutant.line}: {self.mutant.kind}: {self.mutant.what}"


def sampled(modules: dict[Path, list[Mutant]], size: int, seed: int) -> list[Task]:
    """`count` mutants (0: all). Modules are spread over the whole list, so the first mutants of it are a sample too."""
    total = sum(map(len, modules.values()))
    tasks: list[tuple[float, float, Task]] = []
    for path, mutants in modules.items():
        share = len(mutants) if not size else min(len(mutants), max(1, round(size * len(mutants) / total)))
        chance = random.Random(f"{seed} {place_of(path)}")  # noqa: S311 - a sample, not a secret
        chosen = chance.sample(mutants, share)
        tasks += [
            ((number + chance.random()) / share, chance.random(), Task(path, one)) for number, one in enumerate(chosen)
        ]
    return [task for *_, task in sorted(tasks, key=lambda row: row[:2])]


def listed(modules: dict[Path, list[Mutant]], rows: str) -> list[Task]:
    """All mutants that a row of `rows` describes: `module: kind: text of the line`, wherever that text occurs."""
    wanted = {row for row in rows.splitlines() if row and not row.startswith("#")}
    tasks = [Task(path, one) for path, mutants in modules.items() for one in mutants]
    return [task for task in tasks if f"{task.place}: {task.mutant.kind}: {task.mutant.what}" in wanted]


def interval(killed: int, decided: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share."""
    z, share = 1.96, killed / decided
    middle = share + z * z / (2 * decided)
    half = z * math.sqrt(share * (1 - share) / decided + z * z / (4 * decided * decided))
    return (middle - half) / (1 + z * z / decided), (middle + half) / (1 + z * z / decided)


# ── results ───────────────────────────────────────────────────────────────────────────────────────────────────


class Record:
    """The results of one module, kept in a file."""

    def __init__(self, path: Path) -> None:
        name = "_".join(path.relative_to(SOURCE).with_suffix("").parts)
        self._file = RESULTS / f"{name}-{digest_of(path)}.jsonl"
        self.results: dict[str, str] = {}
        if self._file.exists():
            for line in self._file.read_text().splitlines():
                row = json.loads(line)
                self.results[row["id"]] = row["result"]

    def add(self, mutant: Mutant, result: str, by: str) -> None:
        self.results[mutant.id] = result
        RESULTS.mkdir(parents=True, exist_ok=True)
        row = {"id": mutant.id, "line": mutant.line, "what": mutant.what, "result": result, "by": by}
        with self._file.open("a") as file:
            file.write(json.dumps(row) + "\n")


def work(tasks: list[Task], records: dict[Path, Record], options: argparse.Namespace) -> Callable[[Session], None]:
    """Runs one task after the other in the session. The sources may change meanwhile."""
    texts = {task.path: task.path.read_text() for task in tasks}

    def run(session: Session) -> None:
        for number, task in enumerate(tasks, 1):
            if time.monotonic() > options.deadline:
                print(f"stopped after {number - 1} of {len(tasks)} mutants", flush=True)
                return
            text, start = texts[task.path], time.monotonic()
            tree = mutated(text, task.mutant)
            result, by = session.judge(task.path, text, tree, task.mutant.line, options.budget)
            records[task.path].add(task.mutant, result, by)
            print(f"{number}/{len(tasks)} {result} {time.monotonic() - start:.1f} s  {task}  [{by}]", flush=True)

    return run


def report(tasks: list[Task], records: dict[Path, Record]) -> int:
    results = {task: records[task.path].results.get(task.mutant.id) for task in tasks}
    reasons = {task: EQUIVALENT.get((task.place, task.mutant.kind, task.mutant.what)) for task in tasks}
    alive = [task for task, result in results.items() if result == "survived"]
    for task in sorted(alive, key=str):
        print(f"survived  {task}" + (f"  (equivalent: {reasons[task]})" if reasons[task] else ""))
    equivalent = sum(reasons[task] is not None for task in alive)
    killed = sum(result == "killed" for result in results.values())
    decided = killed + len(alive) - equivalent
    share = killed / decided if decided else 1.0
    low, high = interval(killed, decided) if decided else (0.0, 1.0)
    print(f"{len(tasks)} mutants, {sum(map(bool, results.values()))} run, {equivalent} equivalent")
    print(f"{killed} of {decided} decided mutants killed: {share:.1%} (95 % interval {low:.1%} to {high:.1%})")
    return 0 if share >= GOAL else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("places", nargs="*", default=["codecs", "passes"], help="folders or files under src/dragoman")
    parser.add_argument("--sample", type=int, default=700, help="number of mutants, 0: all (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=15, help="seed of the sample (default: %(default)s)")
    parser.add_argument("--minutes", type=float, default=60, help="stop after this time (default: %(default)s)")
    parser.add_argument("--budget", type=float, default=60, help="seconds for each mutant (default: %(default)s)")
    parser.add_argument("--cases", type=int, default=100, help="cases recorded of each test (default: %(default)s)")
    parser.add_argument("--only", nargs="*", default=TESTS, metavar="TESTS", help="test files besides the golden pages")
    parser.add_argument("--without", nargs="*", default=[], metavar="TESTS", help="test files that are not used")
    parser.add_argument("--share", default="1/1", metavar="I/N", help="every Nth mutant, from the Ith: for N processes")
    parser.add_argument("--again", action="store_true", help="run survivors of earlier runs once more")
    parser.add_argument("--listed", action="store_true", help=f"run the mutants listed in {LISTED.name}, no sample")
    parser.add_argument("--show", action="store_true", help="list the mutants, run nothing")
    parser.add_argument("--report", action="store_true", help="report earlier results, run nothing")
    options = parser.parse_args()
    options.deadline = time.monotonic() + 60 * options.minutes
    os.chdir(ROOT)
    files = [file for place in options.places for file in _files(SOURCE / place)]
    modules = {path: found for path in files if (found := mutants_of(path.read_text()))}
    tasks = listed(modules, LISTED.read_text()) if options.listed else sampled(modules, options.sample, options.seed)
    if options.show:
        for task in tasks:
            print(task)
        return 0
    records = {path: Record(path) for path in modules}
    missing = {None, "survived"} if options.again else {None}
    waiting = [task for task in tasks if records[task.path].results.get(task.mutant.id) in missing]
    waiting.sort(key=lambda task: records[task.path].results.get(task.mutant.id) is None)  # survivors first
    first, _, every_nth = options.share.partition("/")
    waiting = waiting[int(first) - 1 :: int(every_nth)]
    if waiting and not options.report:
        every = _files(SOURCE / "codecs") + _files(SOURCE / "passes")
        Session(work(waiting, records, options), every, options.cases, options.only, options.without).run()
    return report(tasks, records)


def _files(place: Path) -> list[Path]:
    return sorted(place.rglob("*.py")) if place.is_dir() else [place]


if __name__ == "__main__":
    sys.exit(main())
