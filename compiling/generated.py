"""Writes the functions generated from the tables of settings and keys as a module, so that they are compiled too.

The tables run in a process of their own, and the sources that they generate are collected. There is only one generator
(dragoman/codecs/generated_code.py); the module contains what it would have executed at import.
"""

import ast
import builtins
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from compiling.modules import compiled_modules

MODULE: Final = "dragoman/codecs/generated_functions.py"

_HEAD: Final = '''"""Made by the build from the tables of settings and keys (compiling/generated.py)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final
'''


def generated_module(source: Path) -> str:
    """The text of the module for the package below `source`."""
    paths = [str(source), str(Path(__file__).resolve().parent.parent), *filter(None, sys.path)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, "-m", "compiling.generated", str(source)]
    made = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)  # noqa: S603
    return made.stdout


def collected_sources(source: Path) -> list[str]:
    """The sources that the tables of all compiled modules generate, each once. Imports those modules."""
    generated_code = import_module("dragoman.codecs.generated_code")
    execute = generated_code.compile_function
    found: dict[str, None] = {}

    def collect(text: str, name: str, names: dict[str, Any]) -> Any:
        found[text] = None
        return execute(text, name, names)

    generated_code.compile_function = collect  # type: ignore[attr-defined]
    try:
        for path in compiled_modules(source):
            import_module(path.removesuffix(".py").replace("/", "."))
    finally:
        generated_code.compile_function = execute  # type: ignore[attr-defined]
    return list(found)


def module_of(sources: list[str]) -> str:
    """The text of the module: for each source a function that takes the globals and returns the generated function."""
    makers = [_maker(index, text) for index, text in enumerate(sources)]
    rows = [f"    {text!r}: _make_{index},\n" for index, text in enumerate(sources)]
    kind = "dict[str, Callable[[dict[str, Any]], Any]]"
    return f"{_HEAD}\n\n{''.join(makers)}MAKERS: Final[{kind}] = {{\n{''.join(rows)}}}\n"


def _maker(index: int, text: str) -> str:
    function = ast.parse(text).body[0]
    assert isinstance(function, ast.FunctionDef)  # noqa: S101
    anything = ast.Name("Any", ast.Load())
    for argument in function.args.args:
        argument.annotation = anything
    function.returns = anything
    used = [node for node in ast.walk(function) if isinstance(node, ast.Name)]
    own = {node.id for node in used if isinstance(node.ctx, ast.Store)} | {one.arg for one in function.args.args}
    known = own | {"Any"} | set(dir(builtins))
    free = sorted({node.id for node in used} - known)
    body = "".join(f"    {name} = names[{name!r}]\n" for name in free)
    lines = "".join(f"    {line}\n" for line in ast.unparse(function).splitlines())
    return f"def _make_{index}(names: dict[str, Any]) -> Any:\n{body}\n{lines}\n    return generated\n\n\n"


if __name__ == "__main__":
    sys.stdout.write(module_of(collected_sources(Path(sys.argv[1]))))
