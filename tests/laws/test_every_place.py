"""Law 2 by construction: the JSON path of every value leads to the place that the value was read from.

Losses are noted on values of the intermediate format; each format has its own lookup of their paths. Here every part of
every message, every tool and every setting is looked up, not only those that some target loses: in the samples of each
format, in bodies that combine what several samples have, and in what constructed requests become in the format. What is
found at the path must say what the value says.
"""

import json
import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from msgspec import structs

import dragoman
from dragoman import ir
from dragoman.codecs.registry import codec
from dragoman.errors import DragomanError
from tests.support import varied_values
from tests.support.cases import each
from tests.support.formats import FORMATS
from tests.support.golden import STORED, bodies_of, decoded_samples
from tests.support.mixed_values import Vocabulary, grafted, merged_requests
from tests.support.promises import promise
from tests.support.records import RECORDS

pytestmark = promise("law:2-nothing-vanishes")

GRAFTS = 12
"""Bodies with values of other bodies, for each sample."""
MERGED = 120
"""Requests joined from others."""
EVERY = 5
"""Of the constructed requests one in so many."""
FIELDS = ("text", "name", "arguments", "data", "url", "file_id", "title")
"""Fields of a part whose value is in the body as it is in the part."""
SETTINGS = ("model", "temperature", "top_p", "top_k", "seed", "max_output_tokens", "user", "service_tier", "verbosity")
NOT_A_SETTING = {"messages", "tools", "metadata", "origin", "finishes"}

_NUMBERED = "attributes numbered by message and field have no place for a message"
# (format, kind, field): why the value is elsewhere, or in another form.
KNOWN: dict[str, dict[tuple[str, str, str], str]] = {
    "request": {
        ("openai-responses", "ToolCall", "name"): "the type of a `computer_call` is its name",
        ("ollama-chat", "Request", "stream"): "a request without the key streams",
        ("sharegpt", "Image", "data"): "the path is that of the placeholder in the text",
        ("trl", "Image", "url"): "the path is that of the placeholder among the contents",
        ("ms-swift", "ToolCall", "arguments"): "in the text of a call, as a Python literal",
        **{
            ("opentelemetry", kind, field): _NUMBERED
            for kind, fields in {
                "Text": ("", "text"),
                "ToolCall": ("", "name", "arguments"),
                "ToolResult": ("",),
            }.items()
            for field in fields
        },
    },
    "response": {
        ("openai-responses", "ToolCall", "name"): "the type of an `mcp_approval_request` is its name",
        ("ollama-chat", "Completion", "finish"): "an answer that is `done` without a reason has ended",
        ("ollama-chat", "Finish", "reason"): "an answer that is `done` without a reason has ended",
        ("ollama-chat", "Finish", "raw"): "an answer that is `done` without a reason has ended",
        ("anthropic-messages", "Opaque", ""): "a content that is an object instead of a list",
    },
}

_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]|\['([^']*)'\]")
_ABSENT = object()


def value_at(body: Any, path: str) -> Any:
    """What is at a path. A field without a key of its own is at what holds it, so the last step may be missing.

    Some formats hold JSON as text, and their paths go on inside it.
    """
    steps = _STEP.findall(path)
    for number, (key, index, quoted) in enumerate(steps, 1):
        body = _parsed(body)
        if isinstance(body, dict) and (key or quoted) in body:
            body = body[key or quoted]
        elif isinstance(body, list) and index and int(index) < len(body):
            body = body[int(index)]
        else:
            return body if number == len(steps) > 1 and not index else _ABSENT
    return body


def _parsed(value: Any) -> Any:
    """What a text of JSON says; anything else as it is."""
    if not isinstance(value, str) or value[:1] not in {"{", "[", '"'}:
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


def _inside(value: Any) -> Iterator[Any]:
    waiting = [value]
    while waiting:
        found = waiting.pop()
        yield found
        if isinstance(found, dict):
            waiting += found.values()
        elif isinstance(found, list):
            waiting += found
        elif (parsed := _parsed(found)) is not found:
            waiting.append(parsed)


def contains(value: Any, wanted: Any) -> bool:
    """Whether a JSON value, or something in it, is or contains what is wanted."""
    if isinstance(wanted, str):
        return any(isinstance(one, str) and wanted in one for one in _inside(value))
    return any(one == wanted and type(one) is type(wanted) for one in _inside(value))


def is_elsewhere(wanted: Any, body: Any, path: str) -> bool:
    """Whether the body has this value, but not at the path. What was derived from other values has no place."""
    return bool(wanted) and not contains(value_at(body, path), wanted) and contains(body, wanted)


def values_of(part: ir.AnyPart) -> Iterator[tuple[str, Any]]:
    """(field, value) of what a part says."""
    if isinstance(part, ir.ToolResult):
        yield from (("", piece.text) for piece in part.parts if isinstance(piece, ir.Text))
        return
    if isinstance(part, ir.ServerToolCall | ir.ServerToolResult):
        return
    for field in FIELDS:
        if field in part.__struct_fields__ and (field != "arguments" or part.parsed):  # type: ignore[union-attr]
            yield field, getattr(part, field)


def misplaced(value: Any, body: Any, lookup: Any) -> Iterator[tuple[str, str]]:
    """(kind, field) of everything whose path does not lead to it."""
    for place, message in enumerate(value.messages):
        for number, part in enumerate(message.parts):
            if value_at(body, lookup(place, number, "")) is _ABSENT:
                yield type(part).__name__, ""
            for field, wanted in values_of(part):
                if is_elsewhere(wanted, body, lookup(place, number, field)):
                    yield type(part).__name__, field
    for number, tool in enumerate(getattr(value, "tools", ())):
        for field in ("name", "description"):
            if is_elsewhere(getattr(tool, field, None), body, lookup(None, number, field)):
                yield type(tool).__name__, field
    yield from _misplaced_settings(value, body, lookup)


def _misplaced_settings(value: Any, body: Any, lookup: Any) -> Iterator[tuple[str, str]]:
    for field, given in _given(value):
        path = lookup(None, None, field)
        if value_at(body, path) is _ABSENT or (field in SETTINGS and is_elsewhere(given, body, path)):
            yield type(value).__name__, field
        if isinstance(given, ir.Usage | ir.StructuredOutput | ir.ReasoningSettings | ir.Finish):
            for inner, counted in _given(given):
                if counted and value_at(body, lookup(None, None, f"{field}.{inner}")) is _ABSENT:
                    yield type(given).__name__, inner


def _given(value: Any) -> list[tuple[str, Any]]:
    found = [(field, getattr(value, field)) for field in value.__struct_fields__ if field not in NOT_A_SETTING]
    return [(field, given) for field, given in found if given not in (None, ())]


def _all_misplaced(kind: str, name: str, bodies: Iterable[Any]) -> set[tuple[str, str, str]]:
    found: set[tuple[str, str, str]] = set()
    lookups = getattr(codec(name), f"{kind}_paths")
    read = getattr(dragoman, f"decode_{kind}")
    for body in bodies:
        try:
            value = read(body, name)
        except DragomanError:
            continue
        found.update((name, *row) for row in misplaced(value, body, lookups(value)))
    return found


def combined(kind: str, name: str) -> Iterator[Any]:
    bodies = bodies_of(kind, name)
    yield from bodies
    words = Vocabulary(bodies)
    for number, body in enumerate(bodies):
        yield from (changed for _, changed in grafted(body, words, GRAFTS, f"{kind} {name} {number}"))


@cache
def constructed() -> tuple[ir.Request, ...]:
    """Requests in which no two texts are the same, so that a text shows where it came from."""
    made = [request for *_, request in varied_values.requests(("some-model",), varied_values.ABOUT_MESSAGES)]
    merged = merged_requests([*made, *decoded_samples("request")], ("some-model",), MERGED, "places")
    return tuple(_numbered(request) for request in (*made[::EVERY], *merged))


def _numbered(request: ir.Request) -> ir.Request:
    count = iter(range(10**6))

    def numbered(part: ir.AnyPart) -> ir.AnyPart:
        says_words = isinstance(part, ir.Text | ir.Reasoning) and part.text.strip()
        return structs.replace(part, text=f"{part.text} w{next(count)}w") if says_words else part  # type: ignore[union-attr]

    messages = tuple(
        structs.replace(message, parts=tuple(map(numbered, message.parts))) for message in request.messages
    )
    return structs.replace(request, messages=messages)


def written(name: str) -> Iterator[Any]:
    for request in constructed():
        try:
            yield json.loads(dragoman.encode_request(request, name).json())
        except DragomanError:
            continue


NAMES = (*FORMATS, *RECORDS, *dragoman.formats("dataset"))


@each("name", NAMES)
def test_what_a_request_says_is_where_its_path_leads(name: str) -> None:
    bodies = [*combined("request", name), *(written(name) if name in {*FORMATS, *STORED} else ())]
    assert _all_misplaced("request", name, bodies) == {row for row in KNOWN["request"] if row[0] == name}


@each("name", (*FORMATS, *RECORDS))
def test_what_an_answer_says_is_where_its_path_leads(name: str) -> None:
    found = _all_misplaced("response", name, combined("response", name))
    assert found == {row for row in KNOWN["response"] if row[0] == name}
