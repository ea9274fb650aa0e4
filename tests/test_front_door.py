"""What `from dragoman import …` offers: complete, typed, and loaded only when it is used."""

import ast
import subprocess
import sys
from inspect import isfunction
from pathlib import Path

import pytest

import dragoman
from dragoman import ir
from dragoman.ir import checked
from tests.support.promises import promise

SOURCE = Path(dragoman.__file__)
TREE = ast.parse(SOURCE.read_text(encoding="utf-8"))

FOUR = ("ToolCall", "ToolResult", "ToolDefinition", "ToolChoice")


def names_for_type_checkers() -> list[str]:
    block = next(node for node in TREE.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    return sorted(alias.name for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names)


@promise("front:exports")
def test_type_checkers_the_loader_and_the_list_of_names_agree() -> None:
    assert names_for_type_checkers() == sorted(dragoman.__all__) == sorted(dragoman._HOME_OF)  # noqa: SLF001
    assert len(set(dragoman.__all__)) == len(dragoman.__all__)
    assert set(dragoman.__all__) <= set(dir(dragoman))


@promise("front:exports")
@pytest.mark.parametrize("name", dragoman.__all__)
def test_every_name_can_be_imported_and_is_documented(name: str) -> None:
    value = getattr(dragoman, name)
    assert getattr(dragoman, name) is value
    if isinstance(value, type) or isfunction(value):
        assert value.__doc__, name


@promise("front:exports")
def test_the_values_of_the_intermediate_format_are_exported() -> None:
    """Everything a person builds: stream events are read, not written."""
    built = {name for name in ir.__all__ if isinstance(kind := getattr(ir, name), type) and issubclass(kind, ir.Value)}
    bases = {"Media", "Part", "Value"}
    events = {kind.__name__ for kind in ir.AnyEvent.__args__}
    assert set(checked.NAMES) == built - bases - events
    assert set(checked.NAMES) <= set(dragoman.__all__)
    assert set(FOUR) <= set(dragoman.__all__)


@promise("front:exports")
@pytest.mark.parametrize("name", FOUR)
def test_one_type_loads_neither_codecs_nor_drivers(name: str) -> None:
    program = f"import sys; from dragoman import {name}; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)  # noqa: S603
    loaded = {module for module in ran.stdout.split() if module.startswith("dragoman.")}
    assert {module for module in loaded if not module.startswith(("dragoman.ir", "dragoman.errors"))} == set()
    assert "dragoman.ir.checks" not in loaded
    assert "asyncio" not in ran.stdout.split()


@promise("front:exports")
def test_decoding_loads_no_checks() -> None:
    program = """
import sys, dragoman
body = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
dragoman.translate_request(body, source="openai-chat", target="gemini").json()
print(*sys.modules)
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)  # noqa: S603
    assert not {"dragoman.ir.checks", "dragoman.ir.rules", "dragoman.ir.checked"} & set(ran.stdout.split())
