"""Adds to tests/golden_cases what tests convert, if it reaches code that no golden page reaches.

    python scripts/collect_cases.py                                # all tests of conversions
    python scripts/collect_cases.py tests/codecs/test_gemini.py

Modules of codecs/ and passes/ are imported with notes: which statements run, which operand decides an `and` or `or`,
which comparisons of size meet equal values. First all golden pages are made. Then the tests run, without recordings,
and the bodies, streams and requests that they convert are noted. The shortest ones that reach more are added.
Afterwards `python scripts/golden.py` writes the pages.
"""

import argparse
import ast
import importlib.abc
import importlib.util
import json
import operator
import os
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.support.collected_cases import Collected

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]
PACKAGES = ("dragoman.codecs.", "dragoman.passes.")
TESTS = (
    "tests/codecs",
    "tests/streams",
    "tests/passes",
    "tests/datasets",
    "tests/records",
    "tests/laws/test_survivors.py",
)
LONGEST = 3000
"""Bytes of a case. Tests of limits have larger ones."""
_NESTED = (b"[[[[", b'{"a":{"a":{"a":')
"""In bodies of tests of deep nesting: how deep Python goes differs between its versions."""
_SIZES = {ast.Lt: "_lt", ast.LtE: "_le", ast.Gt: "_gt", ast.GtE: "_ge"}

Place = tuple[str, int, int, str]
"""Module, line, column, and what was seen there."""


# ── modules that note what is reached ─────────────────────────────────────────────────────────────────────────


class Noting(ast.NodeTransformer):
    """Adds notes around operands."""

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        name = "_falsy" if isinstance(node.op, ast.And) else "_truthy"
        self.generic_visit(node)
        node.values = [node.values[0], *(_call(name, value, value) for value in node.values[1:])]
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        name = _SIZES.get(type(node.ops[0])) if len(node.ops) == 1 else None
        self.generic_visit(node)
        return node if name is None else _call(name, node, node.left, node.comparators[0])


def noted(text: str) -> ast.Module:
    """The module with notes of its operands, and before each statement of its functions."""
    tree: ast.Module = Noting().visit(ast.parse(text))
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    inside = {id(inner): inner for function in functions for inner in ast.walk(function)}
    for inner in inside.values():
        for field in () if isinstance(inner, ast.ClassDef) else ("body", "orelse", "finalbody"):
            block = getattr(inner, field, None)
            if isinstance(block, list):
                setattr(inner, field, [added for statement in block for added in _with_note(statement)])
    return ast.fix_missing_locations(tree)


def _with_note(statement: ast.stmt) -> list[ast.stmt]:
    match statement:
        case ast.Nonlocal() | ast.Global() | ast.Expr(value=ast.Constant()):
            return [statement]
        case _:
            return [ast.copy_location(ast.Expr(_call("_ran", statement)), statement), statement]


def _call(name: str, at: ast.stmt | ast.expr, *arguments: ast.expr) -> ast.expr:
    place: list[ast.expr] = [ast.Constant(at.lineno), ast.Constant(at.col_offset)]
    return ast.copy_location(ast.Call(ast.Name(name, ast.Load()), [*place, *arguments], []), at)


class Reached(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports the modules, and holds what was reached in them."""

    def __init__(self) -> None:
        self.places: set[Place] = set()

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:  # noqa: ARG002
        file = ROOT.joinpath("src", *fullname.split(".")).with_suffix(".py")
        if not fullname.startswith(PACKAGES) or not file.exists():
            return None
        return importlib.util.spec_from_file_location(fullname, file, loader=self)

    def create_module(self, spec: Any) -> None:  # noqa: ARG002
        return None

    def exec_module(self, module: ModuleType) -> None:
        file = Path(str(module.__file__))
        module.__dict__.update(self._notes(module.__name__))
        exec(compile(noted(file.read_text()), file, "exec", dont_inherit=True), module.__dict__)  # noqa: S102

    def _notes(self, module: str) -> dict[str, Callable[..., Any]]:
        add = self.places.add

        def ran(line: int, column: int) -> None:
            add((module, line, column, "runs"))

        def falsy(line: int, column: int, value: Any) -> Any:
            if not value:
                add((module, line, column, "is false"))
            return value

        def truthy(line: int, column: int, value: Any) -> Any:
            if value:
                add((module, line, column, "is true"))
            return value

        def compared(compare: Callable[[Any, Any], Any]) -> Callable[[int, int, Any, Any], Any]:
            def of_size(line: int, column: int, left: Any, right: Any) -> Any:
                if left == right:
                    add((module, line, column, "is equal"))
                return compare(left, right)

            return of_size

        sizes = {name: compared(getattr(operator, name[1:])) for name in _SIZES.values()}
        return {"_ran": ran, "_falsy": falsy, "_truthy": truthy, **sizes}


# ── what tests convert ────────────────────────────────────────────────────────────────────────────────────────

Row = tuple[str, str, bytes, int | None, str]
"""Kind, format, bytes, status and headers (as JSON)."""


class Conversions:
    """Notes what is decoded and encoded, from now on."""

    def __init__(self) -> None:
        self._rows: dict[Row, None] = {}
        self._streams: dict[int, tuple[object, str, bytearray]] = {}
        self._note_codecs()
        self._note_requests()
        self._note_streams()

    def rows(self) -> list[Row]:
        """The shortest first."""
        streams = [("stream", name, bytes(data), None, "{}") for _, name, data in self._streams.values()]
        found = (row for row in dict.fromkeys([*self._rows, *streams]) if 1 < len(row[2]) < LONGEST)
        return sorted(found, key=lambda row: (len(row[2]), row[:3]))

    def _add(self, kind: str, name: str, raw: Any, status: int | None = None, headers: Any = None) -> None:
        if isinstance(raw, bytes):
            self._rows[kind, name, raw, status, json.dumps(dict(headers or {}), sort_keys=True)] = None

    def _note_codecs(self) -> None:
        from msgspec import structs  # noqa: PLC0415

        from dragoman.codecs import registry  # noqa: PLC0415 - imported with notes

        plain, known = registry.codec, {}

        def noting(kind: str, name: str, decode: Callable[..., Any]) -> Callable[..., Any]:
            def decoded(raw: Any, *about: Any) -> Any:
                self._add(kind, name, raw, *about)
                return decode(raw, *about)

            return decoded

        def codec(name: str) -> Any:
            if name not in known:
                found = plain(name)
                kinds = {kind: getattr(found, f"decode_{kind}") for kind in ("request", "response", "error")}
                changes = {f"decode_{kind}": noting(kind, name, decode) for kind, decode in kinds.items()}
                known[name] = structs.replace(found, **changes)
            return known[name]

        for module in list(sys.modules.values()):
            if getattr(module, "codec", None) is plain:
                module.codec = codec  # type: ignore[attr-defined]

    def _note_requests(self) -> None:
        import dragoman  # noqa: PLC0415
        from dragoman import translate  # noqa: PLC0415
        from dragoman.ir.values import encode_json  # noqa: PLC0415

        for kind in ("request", "response"):
            plain = getattr(translate, f"encode_{kind}")

            def encoded(
                value: Any, target: str, *about: Any, _kind: str = kind, _plain: Any = plain, **more: Any
            ) -> Any:
                with suppress(TypeError, ValueError, RecursionError):  # of tests of values that are refused
                    self._add(f"written-{_kind}", target, encode_json(value))
                return _plain(value, target, *about, **more)

            setattr(dragoman, f"encode_{kind}", encoded)

    def _note_streams(self) -> None:
        from dragoman.event_reader import EventReader  # noqa: PLC0415
        from dragoman.event_writer import EventRelay  # noqa: PLC0415

        for kind, read in ((EventReader, "feed"), (EventRelay, "relay")):
            begin, plain = kind.__init__, getattr(kind, read)

            def begun(reader: Any, source: str, *about: Any, _begin: Any = begin) -> None:
                _begin(reader, source, *about)
                self._streams[id(reader)] = reader, source, bytearray()  # which also keeps the id from being reused

            def fed(reader: Any, data: Any, _plain: Any = plain) -> Any:
                if isinstance(data, bytes) and id(reader) in self._streams:
                    self._streams[id(reader)][2].extend(data[:LONGEST])
                return _plain(reader, data)

            setattr(kind, "__init__", begun)  # noqa: B010 - mypy refuses the assignment
            setattr(kind, read, fed)


# ── choice ────────────────────────────────────────────────────────────────────────────────────────────────────


def chosen(rows: Iterable[Row], reached: Reached) -> "Iterator[tuple[str, Collected]]":
    """The cases, with their formats, that reach more than the pages and the cases before."""
    from tests.support.collected_cases import Collected  # noqa: PLC0415
    from tests.support.golden import COLLECTING, of_collected  # noqa: PLC0415

    for kind, name, raw, status, headers in rows:
        if name not in COLLECTING[kind] or any(nested in raw for nested in _NESTED):
            continue
        before = len(reached.places)
        case = Collected(kind, raw, status, json.loads(headers))
        for _ in of_collected(case, name):
            pass
        if len(reached.places) > before:
            yield name, case


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tests", nargs="*", default=TESTS, help="files or folders (default: %(default)s)")
    options = parser.parse_args()
    os.chdir(ROOT)
    reached = Reached()
    sys.meta_path.insert(0, reached)
    import pytest  # noqa: PLC0415

    from tests.support.collected_cases import FOLDER  # noqa: PLC0415 - after the hook
    from tests.support.golden import PAGES, cases_of  # noqa: PLC0415

    for name in PAGES:
        for _ in cases_of(name):
            pass
    by_pages = set(reached.places)
    conversions = Conversions()
    with tempfile.TemporaryDirectory() as empty:
        os.environ |= {"DRAGOMAN_RECORDINGS": empty, "HYPOTHESIS_PROFILE": "quick"}
        pytest.main(["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--assert=plain", "--tb=no", *options.tests])
    rows = conversions.rows()
    reached.places.intersection_update(by_pages)
    lines: dict[str, list[str]] = defaultdict(list)
    for name, case in chosen(rows, reached):
        lines[name].append(f"{case.line}\n")
    for name, found in lines.items():
        with (FOLDER / f"{name}.jsonl").open("a") as file:
            file.writelines(found)
    print(f"{sum(map(len, lines.values()))} of {len(rows)} cases added")


if __name__ == "__main__":
    main()
