"""Tools: schemas from signatures, arguments that are checked, results in four kinds."""

import asyncio
import enum
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal, TypedDict

import msgspec
import pydantic
import pytest

import dragoman
from dragoman.agent import Depends, Output, Tool, ToolContext, tool_from_schema
from dragoman.agent.tools import BadArguments, Options, ToolOptions
from dragoman.agent.validation import problems_of
from dragoman.drivers import Scripted
from dragoman.ir import Audio, Document, Image, Message, Text, ToolCall
from tests.support.agents import agent_of, driver_of, final, result, results_in, run, run_events, step, story_of
from tests.support.promises import promise
from tests.support.waiting import PATIENCE


@dataclass
class Point:
    x: int
    y: int = 0


@dataclass
class Circle:
    centre: Point
    radius: float


class Filter(TypedDict, total=False):
    query: str


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Place(msgspec.Struct):
    name: str


class Item(pydantic.BaseModel):
    name: str
    count: int = pydantic.Field(default=1, ge=1)
    made: date | None = None


class Basket(pydantic.BaseModel):
    items: list[Item]


def run_call(one: Tool, arguments: Any, **options: Any) -> Any:
    """(kind, value) of the result that the call gets."""
    call = arguments if isinstance(arguments, ToolCall) else ToolCall("c1", one.name, arguments)
    agent = agent_of([Message("assistant", (call,)), "."], tools=[one], **options)
    agent.run_sync("Go")
    ((_, kind, value),) = results_in(agent.history)
    return kind, value


# ── schemas ───────────────────────────────────────────────────────────────────────────────────────────────────


@promise("agent:tool-from-function")
def test_the_schema_comes_from_type_hints_and_the_docstring() -> None:
    @dragoman.tool
    def search(
        text: str,
        kind: Literal["web", "news"] = "web",
        limit: Annotated[int, msgspec.Meta(ge=1, le=50)] = 10,
        since: date | None = None,
    ) -> list[str]:
        """Search the web.

        Slow, but thorough.

        Args:
            text: what to look for
            kind (str): where to look,
                one of two
        Returns:
            titles
        """
        return [text, kind, str(limit), str(since)]

    assert search.definition.name == "search"
    assert search.definition.description == "Search the web.\n\nSlow, but thorough."
    assert search.definition.parameters == {
        "type": "object",
        "properties": {
            "text": {"type": "string", "description": "what to look for"},
            "kind": {"enum": ["news", "web"], "description": "where to look, one of two", "default": "web"},
            "limit": {"type": "integer", "minimum": 1, "maximum": 50, "default": 10},
            "since": {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}]},
        },
        "required": ["text"],
        "additionalProperties": False,
    }
    assert search("a") == ["a", "web", "10", "None"]  # still the function it was


@promise("agent:tool-from-function")
@pytest.mark.parametrize(
    "docstring",
    [
        "Find.\n\nArgs:\n    a: first\n    b: second, and\n        more of it\n",
        "Find.\n\n:param a: first\n:param int b: second, and\n    more of it\n:returns: nothing",
        "Find.\n\nParameters\n----------\na : str\n    first\nb\n    second, and\n    more of it\n\nReturns\n-------\n",
    ],
)
def test_docstrings_in_three_ways(docstring: str) -> None:
    def find(a: str, b: int) -> None: ...

    find.__doc__ = docstring
    made = dragoman.tool(find)
    parameters = made.definition.parameters or {}
    assert made.definition.description == "Find."
    assert {name: one["description"] for name, one in parameters["properties"].items()} == {
        "a": "first",
        "b": "second, and more of it",
    }


TYPED: list[tuple[Any, Any, Any]] = [
    (int, 5, 5),
    (float, 5, 5.0),
    (list[Point], [{"x": 1}], [Point(1)]),
    (Circle, {"centre": {"x": 1, "y": 2}, "radius": 0.5}, Circle(Point(1, 2), 0.5)),
    (Point | Circle, {"centre": {"x": 1}, "radius": 1}, Circle(Point(1), 1)),
    (int | str | None, "a", "a"),
    (Filter, {"query": "a"}, {"query": "a"}),
    (Colour, "red", Colour.RED),
    (Place, {"name": "Rome"}, Place("Rome")),
    (dict[str, int], {"a": 1}, {"a": 1}),
    (tuple[int, str], [1, "a"], (1, "a")),
    (Item, {"name": "pen", "made": "2026-01-02"}, Item(name="pen", made=date(2026, 1, 2))),
    (list[Item] | None, [{"name": "pen", "count": 2}], [Item(name="pen", count=2)]),
    (Basket, {"items": [{"name": "pen"}]}, Basket(items=[Item(name="pen")])),
    (Annotated[int, pydantic.Field(ge=3)], 4, 4),
    (Annotated[str, "which one"], "a", "a"),
    (Any, {"a": [1]}, {"a": [1]}),
    (Path, "notes/a.txt", Path("notes/a.txt")),
    (list[PurePosixPath] | None, ["/a"], [PurePosixPath("/a")]),
]


@promise("agent:tool-from-function", "agent:original-schema")
@pytest.mark.parametrize(("hint", "given", "value"), TYPED, ids=[str(row[0]) for row in TYPED])
def test_arguments_arrive_as_what_the_function_asks_for(hint: Any, given: Any, value: Any) -> None:
    seen = []

    def take(one: Any) -> None:
        seen.append(one)

    take.__annotations__ = {"one": hint, "return": None}
    made = dragoman.tool(take)
    assert run_call(made, {"one": given}) == ("data", None)
    assert seen == [value]
    assert problems_of(made.definition.parameters, {"one": given}) == []


@promise("agent:tool-from-function")
def test_async_functions_methods_and_names_of_ones_own() -> None:
    class Shop:
        @staticmethod
        async def price(item: str) -> float:
            """Price."""
            return len(item) / 2

        def stock(self, item: str) -> int:
            """Stock."""
            return len(item)

    assert run_call(dragoman.tool(Shop.price), {"item": "pen"}) == ("data", 1.5)
    assert run_call(dragoman.tool(Shop().stock), {"item": "pen"}) == ("data", 3)
    named = dragoman.tool(name="the-price", description="What it costs.", strict=True)(Shop.price)
    assert (named.name, named.definition.description, named.definition.strict) == ("the-price", "What it costs.", True)


@promise("agent:tool-from-function")
def test_a_partial_and_an_object_that_can_be_called_are_tools() -> None:
    def find(shelf: dict[str, int], item: str, unit: str = "pieces", *, limit: int = 9) -> str:
        """Find.

        Args:
            item: which one
            limit: how many at most
        """
        return f"{min(shelf[item], limit)} {unit}"

    class Search:
        def __call__(self, text: str, where: Path = Path("notes")) -> list[Path]:
            """Search."""
            return [where / text]

    bound = dragoman.tool(partial(partial(find, {"pen": 12}), unit="pens"))
    assert (bound.name, bound.definition.description) == ("find", "Find.")
    assert bound.definition.parameters == {
        "type": "object",
        "properties": {
            "item": {"type": "string", "description": "which one"},
            "limit": {"type": "integer", "description": "how many at most", "default": 9},
        },
        "required": ["item"],
        "additionalProperties": False,
    }
    assert run_call(bound, {"item": "pen"}) == ("text", "9 pens")
    search = dragoman.tool(name="search")(Search())
    assert search.definition.description == "Search."
    assert (search.definition.parameters or {})["properties"]["where"] == {"type": "string", "default": "notes"}
    assert run_call(search, {"text": "ink"}) == ("data", ["notes/ink"])


def nothing() -> None: ...


class Shelf:
    def find(self, item: str) -> str:
        return item

    def __call__(self, item: str) -> str:
        return item


def rows(text: str) -> Iterator[str]:
    yield text


async def arriving_rows(text: str) -> AsyncIterator[str]:
    yield text


def anything(*rest: object) -> object:
    return rest


@dragoman.tool
def echo(text: str) -> str:
    """Echo."""
    return text


def complex_number(x: complex) -> None: ...


class Unknown:
    pass


def unknown_class(x: int, y: Unknown | list[int]) -> None: ...


@promise("agent:tool-from-function")
def test_editors_know_the_options_of_a_tool() -> None:
    assert tuple(ToolOptions.__annotations__) == Options.__struct_fields__


@promise("agent:tool-from-function")
@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: dragoman.tool(anything), "cannot be passed by name"),
        (lambda: dragoman.tool(lambda x: x), r"with a name, found a lambda; give it one: tool\(name="),
        (lambda: dragoman.tool(Shelf()), "with a name, found an object of Shelf; give it one"),
        (lambda: dragoman.tool(Shelf.find), r"the method find without its object; .*tool\(thing.find\)"),
        (lambda: dragoman.tool(rows), "found rows, which is a generator; return a list"),
        (lambda: agent_of([], tools=[arriving_rows]), "found arriving_rows, which is a generator"),
        (
            lambda: dragoman.tool(name="no spaces")(nothing),
            "not a valid tool name",
        ),
        (lambda: dragoman.tool(name="auto")(nothing), "could not be chosen"),
        (lambda: dragoman.tool(name="x" * 65)(nothing), "1 to 64"),
        (lambda: agent_of([], tools=[echo, echo]), "two tools are named 'echo'"),
        (lambda: dragoman.tool(complex_number), "complex_number: parameter x: complex has no JSON Schema; use JSON"),
        (lambda: dragoman.tool(unknown_class), "unknown_class: parameter y: .*Unknown.* has no JSON Schema"),
        (lambda: dragoman.tool(nme="x"), r"unknown options: nme \(did you mean name\?\); known: name, description"),  # type: ignore[call-overload]
    ],
)
def test_values_that_are_not_tools_are_refused_at_once(make: Callable[[], Any], words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        make()


@promise("agent:tool-by-hand", "agent:original-schema")
def test_a_schema_written_by_hand_is_given_as_it_is_and_checked() -> None:
    schema = {
        "type": "object",
        "properties": {"size": {"type": "integer", "minimum": 1}, "name": {"type": "string", "pattern": "^[a-z]+$"}},
        "required": ["size"],
        "additionalProperties": False,
    }
    made = tool_from_schema(lambda arguments: arguments["size"] * 2, name="double", parameters=schema, description="2x")
    assert made.definition.parameters == schema
    assert run_call(made, {"size": 4}) == ("data", 8)
    kind, value = run_call(made, {"size": 0, "name": "A", "other": 1})
    assert kind == "error"
    assert "$.size: expected at least 1, got 0" in value
    assert '$.name: expected text that matches ^[a-z]+$, got "A"' in value
    assert "$: unknown name 'other'; known: size, name" in value


INVALID: list[tuple[Any, Any, str]] = [
    ({"type": "string"}, 1, "expected string, got integer"),
    ({"type": ["string", "null"]}, 1.5, "expected string or null, got number"),
    ({"type": "integer"}, True, "expected integer, got boolean"),
    ({"enum": [1, "a"]}, True, 'expected one of 1, "a", got true'),
    ({"const": 1}, 2, "expected 1, got 2"),
    ({"anyOf": [{"type": "string"}, {"type": "null"}]}, 1, "none of the alternatives fits"),
    ({"oneOf": [{"type": "integer"}, {"minimum": 0}]}, 1, "2 alternatives fit"),
    ({"allOf": [{"minimum": 5}]}, 1, "at least 5"),
    ({"not": {"type": "null"}}, None, "not allowed here"),
    ({"if": {"minimum": 5}, "then": {"multipleOf": 0.5}, "else": False}, 1, "nothing is allowed here"),
    ({"$ref": "#/$defs/a", "$defs": {"a": {"items": {"$ref": "#/$defs/a"}, "maxItems": 1}}}, [[1, 2]], "at most 1"),
    ({"prefixItems": [{"type": "string"}], "items": False}, ["a", 1], "[1]: nothing is allowed"),
    ({"items": [{"type": "string"}]}, [1], "[0]: expected string"),
    ({"uniqueItems": True}, [1, 1], "must differ"),
    ({"contains": {"type": "string"}}, [1], "0 elements"),
    (
        {"patternProperties": {"^x": {"type": "string"}}, "additionalProperties": {"type": "null"}},
        {"x": "", "y": 1},
        "$.y",
    ),
    ({"propertyNames": {"maxLength": 1}}, {"ab": 1}, "at most 1 characters"),
    ({"dependentRequired": {"a": ["b"]}}, {"a": 1}, "'a' needs 'b'"),
    ({"required": ["a"]}, {}, "'a' is missing"),
    ({"exclusiveMinimum": 1}, 1, "more than 1"),
    ({"multipleOf": 0.1}, 0.35, "a multiple of 0.1"),
]
VALID: list[tuple[Any, Any]] = [
    ({"type": "integer"}, 2.0),
    ({"multipleOf": 0.1}, 0.3),
    ({"$ref": "https://elsewhere.example/schema"}, 1),
    ({"$ref": "#/$defs/missing"}, 1),
    ({"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}, 1),
    ({"pattern": "\\p{L}"}, "a"),
    (True, 1),
]


@promise("agent:tool-by-hand")
@pytest.mark.parametrize(("schema", "value", "words"), INVALID)
def test_a_schema_error_is_a_sentence(schema: Any, value: Any, words: str) -> None:
    assert words in "; ".join(problems_of(schema, value))


@promise("agent:tool-by-hand")
@pytest.mark.parametrize(("schema", "value"), VALID)
def test_what_a_schema_accepts(schema: Any, value: Any) -> None:
    assert problems_of(schema, value) == []


# ── arguments ─────────────────────────────────────────────────────────────────────────────────────────────────


@promise("agent:bad-arguments")
@pytest.mark.parametrize(
    ("call", "words"),
    [
        (ToolCall("c1", "pay", arguments_text='{"amount": 1'), """expected a JSON object, got '{"amount": 1'"""),
        (ToolCall("c1", "pay", arguments_text="[1]"), "expected a JSON object, got '[1]'"),
        (ToolCall("c1", "pay", {"amount": "5"}), "Expected `int`, got `str` - at `$.amount`"),
        (ToolCall("c1", "pay", {}), "missing required field `amount`"),
        (ToolCall("c1", "pay", {"amount": 5, "to": "me"}), "unknown field `to`"),
        (ToolCall("c1", "pay", {"amount": 5, "item": {"name": "x", "count": "2"}}), "count"),
        (ToolCall("c1", "pay", {"amount": 5, "item": {"name": "x", "count": 0}}), "greater than or equal to 1"),
    ],
)
def test_bad_arguments_are_reported_and_nothing_runs(call: ToolCall, words: str) -> None:
    paid = []

    @dragoman.tool
    def pay(amount: int, item: Item | None = None) -> None:
        """Pay."""
        paid.append((amount, item))

    kind, value = run_call(pay, call)
    assert kind == "error"
    assert value.startswith("invalid arguments for pay: ")
    assert words in value
    assert value.endswith("; it did not run")
    assert paid == []


@promise("agent:original-schema")
def test_arguments_are_decoded_by_the_tool_itself() -> None:
    with pytest.raises(BadArguments, match="text"):
        echo.decode({"text": None})
    assert echo.decode({"text": "a"}) == {"text": "a"}


@promise("agent:unknown-tool")
def test_an_unknown_tool_is_answered_with_the_names_there_are() -> None:
    agent = agent_of([Scripted(calls=[("ecko", {"text": "a"})]), "Oh."], tools=[echo])
    assert run_events(agent) == [
        *step(1, "call_1", "ecko", {"text": "a"}),
        *result("call_1", "ecko", "there is no tool 'ecko'; available: echo", error=True),
        *final("Oh."),
    ]
    assert "available: none" in run_events(agent_of([Scripted(calls=[("x", {})]), "."]))[2]["result"]


# ── dependencies ──────────────────────────────────────────────────────────────────────────────────────────────


@promise("agent:dependencies")
def test_dependencies_are_made_for_each_call_and_can_be_put_in_place_by_tests() -> None:
    opened = []

    def settings() -> str:
        return "real"

    async def database(where: Annotated[str, Depends(settings)]) -> str:
        opened.append(where)
        return f"{where} database"

    @dragoman.tool
    def query(
        sql: str,
        source: Annotated[str, Depends(database)],
        *,
        again: str = Depends(database),  # type: ignore[assignment]
    ) -> str:
        """Query."""
        assert source is again  # one per call
        return f"{sql} on {source}"

    assert list((query.definition.parameters or {})["properties"]) == ["sql"]
    assert run_call(query, {"sql": "a"}) == ("text", "a on real database")
    assert run_call(query, {"sql": "b"}) == ("text", "b on real database")
    assert opened == ["real", "real"]
    assert run_call(query, {"sql": "c"}, overrides={settings: lambda: "test"}) == ("text", "c on test database")
    assert run_call(query, {"sql": "d"}, overrides={database: lambda: "fake"}) == ("text", "d on fake")
    kind, value = run_call(query, {"sql": "e", "source": "mine"})
    assert (kind, "unknown field" in value) == ("error", True)  # the model cannot give it


@promise("agent:dependencies")
def test_a_dependency_that_fails_is_an_error_result() -> None:
    def broken() -> str:
        raise ConnectionError("no database")

    @dragoman.tool
    def query(source: Annotated[str, Depends(broken)]) -> str:
        """Query."""
        return source

    assert run_call(query, {}) == ("error", "ConnectionError: no database")


@promise("agent:dependencies")
def test_a_tool_may_ask_for_its_call_and_the_history() -> None:
    @dragoman.tool
    def who(context: ToolContext) -> str:
        """Who."""
        return f"{context.call.id} after {len(context.history)}"

    assert run_call(who, {}) == ("text", "c1 after 2")


# ── results ───────────────────────────────────────────────────────────────────────────────────────────────────

PICTURE = Image("image/png", data="aGk=")
RETURNED: list[tuple[Any, str, Any]] = [
    ("words", "text", "words"),
    ("", "text", ""),
    ('{"looks": "like JSON"}', "text", '{"looks": "like JSON"}'),
    (PICTURE, "multimodal", (PICTURE,)),
    ([Text("see"), PICTURE], "multimodal", (Text("see"), PICTURE)),
    (5, "data", 5),
    (None, "data", None),
    (False, "data", False),
    ([], "data", []),
    (["a", 1], "data", ["a", 1]),
    ({"a": {"b": [1.0]}}, "data", {"a": {"b": [1.0]}}),
    (Point(1, 2), "data", {"x": 1, "y": 2}),
    (Item(name="pen", made=date(2026, 1, 2)), "data", {"name": "pen", "count": 1, "made": "2026-01-02"}),
    (Output("error", "no luck"), "error", "no luck"),
    (Output("data", "quoted"), "data", "quoted"),
    ({"kept": [Path("a/b")]}, "data", {"kept": ["a/b"]}),
]


@promise("agent:return-kinds")
@pytest.mark.parametrize(("value", "kind", "read"), RETURNED, ids=[repr(row[0])[:40] for row in RETURNED])
def test_what_a_tool_returns_has_a_kind(value: Any, kind: str, read: Any) -> None:
    @dragoman.tool
    def give() -> Any:
        """Give."""
        return value

    assert run_call(give, {}) == (kind, read)


@promise("agent:return-kinds")
@pytest.mark.parametrize("value", [object(), float("nan"), {"a": {1j}}])
def test_a_value_without_a_json_form_is_an_error_result(value: Any) -> None:
    @dragoman.tool
    def give() -> Any:
        """Give."""
        return value

    kind, text = run_call(give, {})
    assert kind == "error"
    assert text.startswith("give returned a value that JSON cannot express")


@promise("agent:tool-exception")
def test_an_exception_is_an_error_result_without_traceback() -> None:
    @dragoman.tool
    def fail(how: str) -> None:
        """Fail."""
        raise {"key": KeyError("lost"), "bare": ValueError(), "stop": StopIteration("over")}[how]

    calls = [("fail", {"how": how}) for how in ("key", "bare", "stop")]
    agent = agent_of([Scripted(calls=calls), "Pity."], tools=[fail])
    story = run_events(agent)
    assert [event["result"] for event in story if event["type"] == "tool_result"] == [
        "KeyError: 'lost'",
        "ValueError",
        "RuntimeError: the function raised StopIteration('over')",
    ]
    assert [event["status"] for event in story if event["type"] == "step_complete"] == ["error"] * 3
    assert story[-1]["content"] == "Pity."
    assert "Traceback" not in str(driver_of(agent).requests[-1])


@promise("agent:tool-exception")
def test_a_tool_that_cancels_itself_fails_alone() -> None:
    @dragoman.tool
    async def odd() -> None:
        """Odd."""
        raise asyncio.CancelledError

    assert run_call(odd, {}) == ("error", "CancelledError")


@promise("agent:tool-timeout")
@pytest.mark.parametrize("per_tool", [True, False])
@pytest.mark.parametrize("blocking", [True, False])
def test_a_tool_that_takes_too_long_gives_an_error_result(per_tool: bool, blocking: bool) -> None:  # noqa: FBT001
    async def sleep() -> str:
        """Sleep."""
        await asyncio.sleep(5)
        return "late"

    def block() -> str:
        """Block."""
        release.wait(PATIENCE)
        return "late"

    release = threading.Event()
    slow = dragoman.tool(timeout=0.02 if per_tool else None)(block if blocking else sleep)
    try:
        kind, value = run_call(slow, {}, tool_timeout=None if per_tool else 0.02)
    finally:
        release.set()
    assert (kind, value) == ("error", f"TimeoutError: {slow.name} did not finish within 0.02 seconds")


@promise("agent:tool-timeout")
def test_a_timeout_raised_by_the_tool_is_reported_unchanged() -> None:
    @dragoman.tool(timeout=5)
    def ask() -> None:
        """Ask."""
        raise TimeoutError("the server did not answer")

    assert run_call(ask, {}) == ("error", "TimeoutError: the server did not answer")


@promise("agent:result-text")
def test_results_become_text_with_marks_and_the_first_picture_a_screenshot() -> None:
    rows: list[tuple[Any, str, str | None]] = [
        ([Text("before "), PICTURE, Text(" after")], "before [image] after", "aGk="),
        ([Image("image/webp", data="d2VicA=="), Image("image/jpeg", data="anBn")], "[image][image]", "anBn"),
        ([Image(url="data:image/png;base64,cG5n")], "[image]", "cG5n"),
        (
            [Image(url="https://example.com/a.png"), Document(data="cGRm"), Audio(data="bXAz")],
            "[image][document][audio]",
            None,
        ),
        ({"ü": [1, 2.0]}, '{"ü":[1,2.0]}', None),
        ("plain", "plain", None),
    ]
    for value, text, screenshot in rows:

        @dragoman.tool
        def give(given: Any = Depends(lambda value=value: value)) -> Any:  # noqa: B008
            """Give."""
            return given

        event = run(story_of(agent_of([Scripted(calls=[("give", {})]), "."], tools=[give]).run_stream("Go")))[2]
        assert (event["result"], event.get("screenshot_base64")) == (text, screenshot)
