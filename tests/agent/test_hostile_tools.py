"""Schemas from an MCP server, arguments from a model, values from a tool: none of them stops or breaks an agent."""

import asyncio
import random
import re
import sys
import time
from typing import Any

import pytest
from msgspec import Raw

from dragoman.agent import Tool, tool, tool_from_schema
from dragoman.agent.execution import execute, prepare
from dragoman.agent.linear_patterns import matches
from dragoman.agent.output_tools import read_lines, search_lines
from dragoman.agent.tools import ToolContext
from dragoman.agent.validation import problems_of
from dragoman.drivers import Scripted
from dragoman.ir import ToolCall, ToolResult
from tests.support.agents import agent_of, results_in, run
from tests.support.promises import promise

pytestmark = promise("law:10-bad-input-good-words", "law:11-linear-cost")


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"a": value}
    return value


RECURSIVE = {"type": "object", "properties": {"a": {"anyOf": [{"$ref": "#"}, {"type": "integer"}]}}}

FINE: tuple[tuple[Any, Any], ...] = (
    ({"multipleOf": 0.01}, 1e300),
    ({"multipleOf": 0.1}, 0.3),
    ({"multipleOf": 7}, 7 * 10**5_000),
    ({"multipleOf": 1e300}, 3e300),
    ({"enum": 5}, "anything"),
    ({"enum": {"a": 1}}, "anything"),
    ({"type": 5}, 1),
    ({"type": [{}]}, 1),
    ({"pattern": {}}, "x"),
    ({"pattern": "("}, "x"),
    ({"pattern": r"(?=a)b"}, "x"),
    ({"properties": 3, "patternProperties": [], "dependentRequired": [], "required": 1}, {"a": 1}),
    ({"dependentRequired": {"a": 5}}, {"a": 1}),
    ({"allOf": 9, "anyOf": 0, "oneOf": "x", "prefixItems": {}}, [1]),
    ({"contains": {}, "minContains": "many"}, [1]),
    ({"$ref": 5}, 1),
    ({"$ref": "#/9" + "9" * 5_000}, 1),
    (RECURSIVE, nested(20)),
)
WRONG: tuple[tuple[Any, Any, str], ...] = (
    ({"multipleOf": 0.01}, 0.001, "multiple"),
    ({"multipleOf": 3}, 1e300, "multiple"),
    ({"multipleOf": 1e300}, 1, "multiple"),
    ({"maximum": 5}, int("9" * 4_000 + "1"), "at most 5"),
    ({"type": "string"}, int("9" * 4_000), "expected string"),
    ({"enum": [1, 2]}, int("9" * 4_000), "one of 1, 2"),
    (RECURSIVE, nested(400), "levels deep"),
    ({"const": 1}, nested(400), "expected 1"),
)


@pytest.mark.parametrize(("schema", "value"), FINE, ids=lambda row: type(row).__name__)
def test_a_keyword_that_makes_no_sense_says_nothing(schema: Any, value: Any) -> None:
    assert problems_of(schema, value) == []


@pytest.mark.parametrize(
    ("schema", "value", "words"), WRONG, ids=lambda row: row if isinstance(row, str) else type(row).__name__
)
def test_arguments_that_are_hard_to_check_are_answered(schema: Any, value: Any, words: str) -> None:
    (problem,) = problems_of(schema, value)
    assert words in problem
    assert len(problem) < 500


def test_numbers_of_thousands_of_digits_reach_the_check() -> None:
    given = tool_from_schema(str, name="f", parameters={"properties": {"n": {"maximum": 5}}})
    call = ToolCall("c", "f", Raw(b'{"n":' + b"9" * 5_000 + b"}"))
    refused = prepare(call, given, list)
    assert isinstance(refused, ToolResult)
    assert "at most 5" in refused.value


def test_arguments_nested_too_deeply_for_a_function_are_refused() -> None:
    @tool
    def take(a: dict[str, Any]) -> str:
        return str(len(a))

    deep = b'{"a":' * 900 + b"{}" + b"}" * 900
    refused = prepare(ToolCall("c", "take", Raw(deep)), take, list)
    assert not isinstance(refused, ToolResult) or "nested" in refused.value


# ── patterns ──

SLOW = ("^(a+)+$", "(a|a)*b", "(a*)*c", "^(([a-z])+.)+[A-Z]([a-z])+$", "(.*)*x", "a*a*a*a*b", "(x+x+)+y", ".*.*=.*")


@pytest.mark.parametrize("pattern", SLOW)
def test_patterns_that_backtrack_are_matched_in_linear_time(pattern: str) -> None:
    began = time.process_time()
    assert problems_of({"pattern": pattern}, "a" * 2_000 + "!") != []
    assert time.process_time() - began < 5


PIECES = ("a", "b", ".", "[ab]", "[^a]", r"\d", r"\w", r"\s", "(a|b)", "(?:ab)", "^", "$", r"\b", "a|b", "[a-c]")
TIMES = ("", "*", "+", "?", "{2}", "{1,2}", "{0,3}", "*?", "{2,}")


def test_both_ways_of_matching_agree() -> None:
    chance = random.Random(5)  # noqa: S311
    compared = 0
    for _ in range(3_000):
        pieces = [chance.choice(PIECES) for _ in range(chance.randrange(1, 5))]
        pattern = "".join(
            piece + ("" if piece in {"^", "$", r"\b", "a|b"} else chance.choice(TIMES)) for piece in pieces
        )
        for _ in range(4):
            text = "".join(chance.choice("ab1 _\n") for _ in range(chance.randrange(7)))
            assert matches(pattern, text) is (re.search(pattern, text) is not None), (pattern, text)
            compared += 1
    assert compared == 12_000


# ── work ──


def test_alternatives_within_alternatives_do_not_multiply() -> None:
    schema: Any = {"type": "string"}
    for _ in range(60):
        schema = {"anyOf": [schema, schema]}
    began = time.process_time()
    assert problems_of(schema, 1) != []
    assert time.process_time() - began < 20


def test_alternatives_of_repeated_values_do_not_multiply() -> None:
    """Equal small values are one object, so that each alternative is checked once but looked up each time."""
    schema = {"items": {"anyOf": [{"const": number} for number in range(4_000)]}}
    assert "too complex" in problems_of(schema, [3_999] * 4_000)[0]
    assert problems_of(schema, [10] * 4_000) == []


def test_references_to_references_do_not_multiply() -> None:
    definitions: dict[str, Any] = {"d0": {"type": "integer"}}
    for number in range(1, 60):
        previous = {"$ref": f"#/$defs/d{number - 1}"}
        definitions[f"d{number}"] = {"allOf": [previous, previous]}
    began = time.process_time()
    assert "too complex" in problems_of({"$ref": "#/$defs/d59", "$defs": definitions}, 1)[0]
    assert time.process_time() - began < 20


# ── what a tool returns ──


def cyclic() -> Any:
    value: dict[str, Any] = {}
    value["self"] = value
    return value


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


def leave() -> Any:
    sys.exit(3)


def fail() -> Any:
    raise Unspeakable


BAD_TOOLS = {
    "cyclic": (cyclic, "contains itself"),
    # Python 3.14 looks at the size of the stack, and takes tens of thousands of levels.
    "deep": (lambda: nested(200_000), "nested too deeply"),
    "exit": (leave, "SystemExit"),
    "unspeakable": (fail, "Unspeakable"),
    "foreign": (lambda: {"a": object()}, "JSON cannot express"),
}


@pytest.mark.parametrize("name", BAD_TOOLS)
@pytest.mark.parametrize("blocks", [False, True], ids=["async", "in a thread"])
def test_a_tool_that_misbehaves_gets_an_error_result(name: str, *, blocks: bool) -> None:
    function, words = BAD_TOOLS[name]

    async def misbehave() -> Any:
        return function()

    def misbehave_in_a_thread() -> Any:
        return function()

    given = tool(name="bad")(misbehave_in_a_thread if blocks else misbehave)
    outcome = run(execute_one(given))
    assert outcome.kind == "error"
    assert words in outcome.value


async def execute_one(given: Tool) -> ToolResult:
    ready = prepare(ToolCall("c", "bad", {}), given, list)
    assert not isinstance(ready, ToolResult)
    return (await execute(ready, ToolContext(ready.call), None)).result


@pytest.mark.parametrize("leaving", [SystemExit(1), KeyboardInterrupt()], ids=repr)
@pytest.mark.parametrize("blocks", [False, True], ids=["async", "in a thread"])
def test_a_tool_that_exits_does_not_end_the_run(leaving: BaseException, *, blocks: bool) -> None:
    async def quit_in_the_loop() -> str:
        raise leaving

    def quit_in_a_thread() -> str:
        raise leaving

    quit_now = tool(name="quit_now")(quit_in_a_thread if blocks else quit_in_the_loop)
    agent = agent_of([Scripted(calls=[("quit_now", {})]), "Done."], tools=[quit_now])
    agent.run_sync("Go")
    assert agent.history[-1].text == "Done."
    assert [kind for _, kind, _ in results_in(agent.history)] == ["error"]


# ── stored output ──


@pytest.mark.parametrize("context", [10**12, sys.maxsize * 4])
def test_a_context_beyond_the_text_shows_the_text(context: int) -> None:
    text = "\n".join(f"line {number}" for number in range(30))
    shown = asyncio.run(search_lines(text, "line 1", regex=False, context=context, limit=50))
    assert shown.splitlines()[:-1] == [f"{number}: line {number}" for number in range(30)]
    assert read_lines(text, 0, context).count("\n") == 29


def test_lines_near_several_matches_are_shown_once() -> None:
    text = "\n".join("x" if number in {2, 4, 9} else "-" for number in range(12))
    shown = asyncio.run(search_lines(text, "x", regex=False, context=2, limit=50))
    assert [int(line.split(":")[0]) for line in shown.splitlines()[:-1]] == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]
