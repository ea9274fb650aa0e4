"""Loads tools: the functions of a Python file or module, its `TOOLS`, or definitions in JSON."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import msgspec

from dragoman.agent.tools import Tool, tool
from dragoman.cli.problems import CommandError, system_reason
from dragoman.drivers.query import read_tools
from dragoman.ir import AnyTool


def load_tools(name: str) -> list[Tool]:
    """Runnable tools of a Python file or module: its TOOLS, functions marked as tools, or all public functions."""
    try:
        return [one if isinstance(one, Tool) else tool(one) for one in _load_values(name)]
    except (TypeError, ValueError) as error:
        raise CommandError(f"{name}: {error}") from None


def load_definitions(name: str) -> list[AnyTool]:
    """Definitions of the same tools; or definitions, including hosted tools, from a JSON file or from TOOLS."""
    try:
        if Path(name).suffix == ".json":
            found = msgspec.json.decode(Path(name).read_bytes())
            given: Sequence[Any] = found if isinstance(found, list) else [found]
        else:
            given = _load_values(name)
        if not given:
            raise CommandError(f"{name} has no tools: the list is empty")
        return list(read_tools([tool(one) if isinstance(one, FunctionType) else one for one in given]))
    except OSError as error:
        raise CommandError(f"cannot read {name}: {system_reason(error)}") from None
    except (TypeError, ValueError, msgspec.DecodeError) as error:
        raise CommandError(f"{name}: {error}") from None


def _load_values(name: str) -> Sequence[Any]:
    module = _import(name)
    given = getattr(module, "TOOLS", None)
    if given is None:
        own = {key: one for key, one in vars(module).items() if not key.startswith("_")}
        given = [one for one in own.values() if isinstance(one, Tool)] or [
            one for one in own.values() if isinstance(one, FunctionType) and one.__module__ == module.__name__
        ]
    if not given:
        raise CommandError(
            f"{name} has no tools: write functions, mark some with @dragoman.tool, or list them in TOOLS"
        )
    return list(given)


def _import(name: str) -> ModuleType:
    path = Path(name)
    if path.suffix == ".py" and not path.is_file():
        raise CommandError(f"cannot read {name}: no such file")
    if path.suffix == ".json" and path.is_file():
        raise CommandError(f"{name} only describes tools; to run them, use the Python file with the functions")
    if path.suffix != ".py" and path.is_file():
        raise CommandError(f"{name}: expected a .py file, a .json file or a module")
    try:
        return _import_file(path) if path.suffix == ".py" else importlib.import_module(name)
    except Exception as error:
        raise CommandError(f"{name}: {type(error).__name__}: {error}") from error


def _import_file(path: Path) -> ModuleType:
    sys.path.insert(0, str(path.resolve().parent))  # as `python FILE` does
    name = f"dragoman_tools_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError("not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
