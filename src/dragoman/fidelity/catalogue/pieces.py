"""Pieces that examples are made of."""

from __future__ import annotations

from typing import Any

from msgspec import Raw

from dragoman.ir import (
    AnyEvent,
    AnyPart,
    Citation,
    Completion,
    CustomTool,
    Finish,
    Finished,
    Message,
    PartDelta,
    PartEnd,
    PartStart,
    Reasoning,
    Request,
    StreamStart,
    Text,
    TokenLogprob,
    ToolCall,
    ToolDefinition,
    ToolResult,
    Usage,
    UsageUpdate,
)
from dragoman.ir.values import encode_json

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
PDF = "JVBERi0xLjQKJSVFT0YK"
WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA="
SECRET = "gAAAAABmMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzM="  # noqa: S105  # of the form vendors give theirs
SIGNED_BY_CLAUDE = "EiBjbGF1ZGUgc2lnbmVkIHRoaXMsIG5vdCBhIHNlY3JldA=="  # a message whose first field is number two
CITY: dict[str, Any] = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}

WEATHER = ToolDefinition("get_weather", "The weather in a city", CITY)
CLOCK = ToolDefinition("get_time", "The time in a city", CITY)
STREETS = ToolDefinition("get_map", "The map of a city", CITY)
SQL = CustomTool("run_sql", "Runs SQL")
TOOLS = (WEATHER, CLOCK, STREETS)

TOKYO = ToolCall("call_1", "get_weather", {"city": "Tokyo"})
OSLO = ToolCall("call_2", "get_time", {"city": "Oslo"})
QUESTION = Message("user", "What is it like in Tokyo, and how late is it in Oslo?")
THANKS = Message("user", "Thank you. And tomorrow?")
END = Finish("stop")
CALLS = Finish("tool_calls")
COUNTS = Usage(10, 5, total=15)
LIKELY = (
    TokenLogprob("Hel", -0.25, top_logprobs=(TokenLogprob("Hel", -0.25), TokenLogprob("Hi", -1.5))),
    TokenLogprob("lo.", -0.5, top_logprobs=(TokenLogprob("lo.", -0.5),)),
)

_PAGE: dict[str, Any] = {"url": "https://example.org", "title": "Example"}
_INDEXED = {"type": "web_search_result_location", **_PAGE, "encrypted_index": "aWR4", "cited_text": "rain"}
_LOCATED = {
    "title": "Example",
    "location": {"web": {"url": "https://example.org"}},
    "sourceContent": [{"text": "rain"}],
}


def _cite(**citation: Any) -> Text:
    return Text("It rains.", (Citation(**_PAGE, **citation),))


def _cite_as(family: str, citation: object) -> Text:
    return _cite(cited_text="rain", metadata={family: {"~citation": Raw(encode_json(citation))}})


CITED: dict[str, Text] = {
    "openai": _cite(start=0, end=9),
    "openai-responses": _cite(start=0, end=9),
    "google": _cite(start=0, end=9),
    "anthropic": _cite_as("anthropic", _INDEXED),
    "bedrock": _cite_as("bedrock", _LOCATED),
}
"""A page that is cited, as each family does it."""

THOUGHTS: dict[str, Reasoning] = {
    "google": Reasoning("Two places.", metadata={"google": {"~thought": Raw(b"true")}}),
    "ollama": Reasoning("Two places.", metadata={"ollama": {"~thinking": Raw(b"true")}}),
}
"""Reasoning that may be sent back unsigned."""


def ask(*messages: Message, **settings: Any) -> Request:
    """A request; by default one question."""
    return Request("a-model", messages or (QUESTION,), **settings)


def assistant(*parts: AnyPart) -> Message:
    return Message("assistant", parts)


def result(call: ToolCall, value: object, kind: Any = "text", **fields: Any) -> ToolResult:
    return ToolResult(call.id, call.name, kind, value, **fields)


def results(*answers: ToolResult) -> Message:
    return Message("tool", answers)


def history(*turn: AnyPart, answers: tuple[ToolResult, ...] = (), **settings: Any) -> Request:
    """A history with the assistant's parts, its calls answered."""
    called = tuple(part for part in turn if isinstance(part, ToolCall))
    given = answers or tuple(result(call, "22 degrees") for call in called)
    follow = (results(*given),) if given else (THANKS,)
    return ask(QUESTION, assistant(*turn), *follow, **{"tools": TOOLS if called else (), **settings})


def answer(*parts: AnyPart, finish: Finish | None = None, usage: Usage = COUNTS) -> Completion:
    called = any(isinstance(part, ToolCall) for part in parts)
    return Completion((assistant(*parts),), finish or (CALLS if called else END), usage)


def stream(*events: AnyEvent, finish: Finish = END, usage: Usage | None = None) -> tuple[AnyEvent, ...]:
    counted = (UsageUpdate(usage),) if usage is not None else ()
    return (StreamStart(), *events, *counted, Finished(finish))


def piecewise(index: int, part: AnyPart, *pieces: str, **end: Any) -> tuple[AnyEvent, ...]:
    """A part from start to end."""
    return (PartStart(index, part), *(PartDelta(index, piece) for piece in pieces), PartEnd(index, **end))
