"""Tools from a file: functions of a Python file, its `TOOLS`, or definitions in JSON."""

from __future__ import annotations

import inspect
import runpy
import typing
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FunctionType
from typing import Any

import msgspec

from dragoman.cli.problems import CommandError, system_reason
from dragoman.drivers.asking import read_tool
from dragoman.ir import AnyTool, ToolDefinition

_RUN_NAME = "dragoman_tools"


def load_tools(path: Path) -> list[AnyTool]:
    read = _READERS.get(path.suffix)
    if read is None:
        raise CommandError(f"{path}: tools are in a .py or a .json file")
    try:
        given = read(path)
        return [_tool(one) for one in given]
    except OSError as error:
        raise CommandError(f"cannot read {path}: {system_reason(error)}") from None
    except (TypeError, ValueError, msgspec.DecodeError) as error:
        raise CommandError(f"{path}: {error}") from None


def _of_python(path: Path) -> Sequence[Any]:
    path.read_bytes()  # where it cannot be read, the system's own word is the best
    try:
        names = runpy.run_path(str(path), run_name=_RUN_NAME)
    except Exception as error:
        raise ValueError(f"{type(error).__name__}: {error}") from error
    if "TOOLS" in names:
        return list(names["TOOLS"])
    functions = [one for name, one in names.items() if isinstance(one, FunctionType) and not name.startswith("_")]
    return [one for one in functions if one.__module__ == _RUN_NAME]


def _of_json(path: Path) -> Sequence[Any]:
    found = msgspec.json.decode(path.read_bytes())
    return found if isinstance(found, list) else [found]


_READERS: Mapping[str, Callable[[Path], Sequence[Any]]] = {".py": _of_python, ".json": _of_json}


def _tool(given: Any) -> AnyTool:
    return described(given) if isinstance(given, FunctionType) else read_tool(given)


def described(function: FunctionType) -> ToolDefinition:
    """A function by its name, the first paragraph of its docstring, and the types of its parameters."""
    hints = typing.get_type_hints(function)
    parameters = inspect.signature(function).parameters
    schemas, definitions = msgspec.json.schema_components(
        [hints.get(name, Any) for name in parameters], ref_template="#/$defs/{name}"
    )
    required = [name for name, one in parameters.items() if one.default is inspect.Parameter.empty]
    schema: dict[str, Any] = {"type": "object", "properties": dict(zip(parameters, schemas, strict=True))}
    schema |= {"required": required} if required else {}
    schema |= {"$defs": definitions} if definitions else {}
    words = inspect.getdoc(function)
    return ToolDefinition(function.__name__, words.split("\n\n")[0] if words else None, schema)
