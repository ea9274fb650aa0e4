"""Strict type checkers accept programs of users: every file in tests/typing uses the public API and nothing else.

mypy runs with our own settings, which are strict. pyright is run as basedpyright, which is the same checker packed with
the Node.js it needs, so that it comes from PyPI alone; strict mode is pyright's own.
"""

import ast
import json
import os
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import dragoman
from tests.support.promises import promise

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "tests" / "typing"
PROGRAMS = sorted(FOLDER.glob("*.py"))

INTERNAL = ("dragoman.ir", "dragoman.codecs", "dragoman.passes")

MISTAKES = """
from dragoman import AnyPart, Message, Request, Text, ToolCall, ToolDefinition, ToolResult, tool
ToolCall("c", "f", '{"a": 1}')
ToolResult.text(5, "x")
ToolResult.text("c", "x")
ToolCall("c", "f", {}, metadata={"thoughtSignature": 5})
Message("usr", "hi")
ToolDefinition("f", parameters=[])
Request("m", "hi")
number: int = Text("a").text
part: AnyPart = Request("m", [])
length: str = tool(len)([])
"""


def mypy(*paths: Path) -> list[int]:
    """The lines that mypy reports."""
    ran = _run("mypy", "--config-file", str(ROOT / "pyproject.toml"), "--no-error-summary", *map(str, paths))
    return [int(line.split(":")[1]) for line in ran.stdout.splitlines() if ": error:" in line]


def pyright(folder: Path, *paths: Path) -> list[int]:
    """The lines that pyright reports in strict mode."""
    settings = {
        "typeCheckingMode": "strict",
        "pythonVersion": "3.11",
        "include": [str(path) for path in paths],
        "extraPaths": [str(ROOT / "src")],
    }
    (folder / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    ran = _run("basedpyright", "--outputjson", "--pythonpath", sys.executable, "--project", str(folder))
    found: dict[str, Any] = json.loads(ran.stdout)
    assert found["summary"]["filesAnalyzed"] >= len(paths)
    return [problem["range"]["start"]["line"] + 1 for problem in found["generalDiagnostics"]]


def _run(module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    ran = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-m", module, *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode in {0, 1}, ran.stdout + ran.stderr
    return ran


@promise("front:typed")
def test_mypy_finds_nothing_in_the_programs() -> None:
    assert mypy(*PROGRAMS) == []


@promise("front:typed")
def test_pyright_finds_nothing_in_the_programs(tmp_path: Path) -> None:
    assert pyright(tmp_path, *PROGRAMS) == []


@promise("front:typed")
def test_both_find_every_mistake(tmp_path: Path) -> None:
    """Without this, a checker that found no types at all would pass."""
    program = tmp_path / "mistakes.py"
    program.write_text(MISTAKES, encoding="utf-8")
    wrong = set(range(3, 3 + len(MISTAKES.strip().splitlines()) - 1))
    assert set(mypy(program)) == wrong
    assert set(pyright(tmp_path, program)) == wrong


@promise("front:typed")
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_a_program_uses_the_public_api_only(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            module = node.module or ""
            assert not module.startswith(INTERNAL), module
            assert not any(part.startswith("_") for part in module.removeprefix("__future__").split("."))
            if module == "dragoman":
                assert {alias.name for alias in node.names} <= set(dragoman.__all__)
        elif isinstance(node, ast.Import):
            assert not any(alias.name.startswith(INTERNAL) for alias in node.names)


@promise("front:typed")
def test_the_program_that_calls_tools_by_hand_runs() -> None:
    answer = runpy.run_path(str(FOLDER / "tools_by_hand.py"))["main"]()
    assert answer["refused"] == answer["again"] == answer["signed"] == "True"
    assert "18° in Tokyo" in answer["said"]
    assert answer["results"].count("https://example.org/map.png") == 2
    assert '"image_url"' in answer["sent"]
