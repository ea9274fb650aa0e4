"""The compiled wheel: what may be compiled, and (DRAGOMAN_COMPILED=1, `make check-compiled`) that it is what runs."""

import ast
import importlib
import os
import re
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

from compiling.core import REQUIREMENTS
from compiling.modules import compiled_modules

ROOT = Path(__file__).resolve().parent.parent
MODULES = compiled_modules(ROOT / "src")


def _text(module: str) -> str:
    return (ROOT / "src" / module).read_text(encoding="utf-8")


def test_compiled_modules_define_no_structs() -> None:
    """Msgspec reads the annotations of a struct when its class is made, and mypyc leaves none."""
    structs = [
        f"{module}: {node.name}"
        for module in MODULES
        for node in ast.parse(_text(module)).body
        if isinstance(node, ast.ClassDef) and {ast.unparse(base) for base in node.bases} & {"Struct", "Wire"}
    ]
    assert structs == []


def test_compiled_modules_import_what_their_annotations_name() -> None:
    """Mypyc evaluates annotations that Python leaves alone."""
    assert [
        module for module in MODULES if "TYPE_CHECKING" in (ROOT / "src" / module).read_text(encoding="utf-8")
    ] == []


def test_each_codec_has_compiled_modules() -> None:
    folders = {path.parent.name for path in (ROOT / "src/dragoman/codecs").glob("*/wire.py")}
    for name in ("messages.py", "request.py", "response.py", "stream.py", "stream_encoding.py"):
        assert {Path(module).parent.name for module in MODULES if Path(module).name == name} >= folders


def test_the_build_uses_the_locked_compiler() -> None:
    locked = re.findall(r"^(mypy==[\d.]+)", (ROOT / "requirements.lock").read_text(encoding="utf-8"), re.MULTILINE)
    assert set(locked) <= set(REQUIREMENTS)
    assert locked


def test_the_core_runs_as_it_was_asked_for() -> None:
    """Compiled under `make check-compiled`, otherwise source: no compiled module shadows an edited one."""
    wanted = os.environ.get("DRAGOMAN_COMPILED") == "1"
    files = {
        module: importlib.import_module(module.removesuffix(".py").replace("/", ".")).__file__ for module in MODULES
    }
    compiled = {module for module, file in files.items() if str(file).endswith(tuple(EXTENSION_SUFFIXES))}
    assert compiled == (set(MODULES) if wanted else set())
