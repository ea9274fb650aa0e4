"""The names of `from dragoman import …` are complete and typed, and their modules are loaded on first use."""

import ast
import re
import subprocess
import sys
from collections.abc import Callable
from inspect import isfunction
from pathlib import Path

import pytest

import dragoman
from dragoman import ir
from dragoman.ir import checked
from tests.support.cases import each
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
@each("name", dragoman.__all__)
def test_every_name_can_be_imported_and_is_documented(name: str) -> None:
    value = getattr(dragoman, name)
    assert getattr(dragoman, name) is value
    if isinstance(value, type) or isfunction(value):
        assert value.__doc__, name


@promise("front:exports")
def test_the_values_of_the_intermediate_format_are_exported() -> None:
    """Everything that users construct: stream events are only read."""
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


PAGE = (Path(__file__).parents[1] / "docs" / "intermediate-format.md").read_text(encoding="utf-8")
BUILDING = PAGE.partition("## Building values")[2].partition("\n## ")[0]


@promise("front:constructors")
def test_the_example_of_the_page_runs() -> None:
    (program,) = re.findall(r"^```python\n(.*?)^```$", BUILDING, re.MULTILINE | re.DOTALL)
    names: dict[str, object] = {}
    exec(compile(program, "intermediate-format.md", "exec"), names)  # noqa: S102 - our own page
    request = names["request"]
    assert isinstance(request, dragoman.Request)
    for target in dragoman.formats():
        assert dragoman.encode_request(request, target).json()


@promise("front:checked")
def test_the_errors_of_the_page_are_those_that_are_raised() -> None:
    quoted = BUILDING.partition("`hint`:\n\n```\n")[2].partition("```")[0]
    mistakes: list[Callable[[], object]] = [
        lambda: dragoman.ToolResult("c", "f", "bogus", "x"),  # type: ignore[arg-type]
        lambda: dragoman.ToolCall("c", "f", '{"city": "Tokyo"}'),  # type: ignore[arg-type]
        lambda: dragoman.Request("m", [{"role": "user", "content": [{"type": "text", "text": 5}]}]),
    ]
    for line, mistake in zip(quoted.splitlines(), mistakes, strict=True):
        with pytest.raises(dragoman.InvalidValue, match=re.escape(line.removesuffix("…"))):
            mistake()
