"""The TypedDicts of `dragoman.records` against the codecs: what they write is of these types, and they read them."""

from __future__ import annotations

import types
import typing
from typing import Any, Literal, NotRequired, Union, get_args, get_origin, is_typeddict

from hypothesis import given
from msgspec import structs

import dragoman
from dragoman import ir
from dragoman.records import agent_sdk, modular_prompt, multi_llm_chat, universal
from tests import strategies
from tests.support.cases import each
from tests.support.promises import promise

pytestmark = promise("seed:002-records")

REQUESTS: dict[str, Any] = {
    "universal": universal.History,
    "modular-prompt": modular_prompt.Prompt,
    "agent-sdk": agent_sdk.History,
    "multi-llm-chat": multi_llm_chat.History | multi_llm_chat.StoredChat,
}
ANSWERS: dict[str, Any] = {
    "universal": universal.Message,
    "modular-prompt": modular_prompt.QueryResult,
    "agent-sdk": agent_sdk.ChatInvokeCompletion,
    "multi-llm-chat": multi_llm_chat.Entry,
}


def problems(value: Any, kind: Any, place: str = "$") -> list[str]:  # noqa: PLR0911 - one branch per kind of type
    """Where the value is not of the type; keys that the type does not have are problems as well."""
    origin = get_origin(kind)
    if kind is Any:
        return []
    if origin in {Union, types.UnionType}:
        found = [problems(value, one, place) for one in get_args(kind)]
        return [] if [] in found else min(found, key=len)
    if origin is Literal:
        return [] if value in get_args(kind) else [f"{place}: {value!r} is none of {get_args(kind)}"]
    if origin is list:
        if not isinstance(value, list):
            return [f"{place}: no list"]
        return [
            one for index, item in enumerate(value) for one in problems(item, get_args(kind)[0], f"{place}[{index}]")
        ]
    if origin is dict:
        return [] if isinstance(value, dict) else [f"{place}: no object"]
    if is_typeddict(kind):
        return _problems_of_mapping(value, kind, place)
    if kind is int and isinstance(value, bool):
        return [f"{place}: no number"]
    return [] if isinstance(value, type(None) if kind is None else kind) else [f"{place}: {value!r} is no {kind}"]


def _problems_of_mapping(value: Any, kind: Any, place: str) -> list[str]:
    if not isinstance(value, dict):
        return [f"{place}: no object"]
    hints = typing.get_type_hints(kind, include_extras=True)
    missing = [name for name, hint in hints.items() if get_origin(hint) is not NotRequired and name not in value]
    found = [f"{place}: no key {name}" for name in missing] + [
        f"{place}: unknown key {name}" for name in value if name not in hints
    ]
    for name in value.keys() & hints.keys():
        hint = hints[name]
        inner = get_args(hint)[0] if get_origin(hint) is NotRequired else hint
        found += problems(value[name], inner, f"{place}.{name}")
    return found


@given(request=strategies.REQUESTS)
@each("format", REQUESTS)
def test_what_is_written_is_of_the_types(format: str, request: ir.Request) -> None:
    body = dragoman.encode_request(structs.replace(request, origin=None, tool_choice=None), format).body
    assert problems(body, REQUESTS[format]) == []


@given(completion=strategies.COMPLETIONS)
@each("format", ANSWERS)
def test_answers_that_are_written_are_of_the_types(format: str, completion: ir.Completion) -> None:
    assert problems(dragoman.encode_response(completion, format).body, ANSWERS[format]) == []


def test_values_of_the_types_are_read_and_written_again() -> None:
    call: agent_sdk.ToolCall = {"id": "c", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
    result: agent_sdk.ToolMessage = {
        "role": "tool",
        "tool_call_id": "c",
        "tool_name": "ls",
        "content": "a.txt",
        "output_ref": {"id": "out_1"},
        "trimmed": True,
    }
    history: agent_sdk.History = {
        "messages": [
            {"role": "system", "content": "Be brief.", "cache": True},
            {"role": "user", "content": [{"type": "text", "text": "List"}]},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            result,
        ]
    }
    universal_result: universal.ToolResult = {"tool_call_id": "c", "name": "f", "result": {"a": 1}}
    older: modular_prompt.AssistantToolCallMessage = {
        "role": "assistant",
        "content": "",
        "toolCalls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
    }
    entry: multi_llm_chat.Entry = {
        "role": "gemini",
        "content": [{"type": "tool_call", "content": {"name": "f", "arguments": {}, "tool_call_id": "c"}}],
    }
    bodies: dict[str, Any] = {
        "agent-sdk": history,
        "universal": {"messages": [universal_result]},
        "modular-prompt": {"messages": [older]},
        "multi-llm-chat": [entry],
    }
    for format, body in bodies.items():
        assert problems(body, REQUESTS[format]) == []
        assert dragoman.encode_request(dragoman.decode_request(body, format), format).body == body


def test_the_checker_of_these_tests_finds_problems() -> None:
    assert problems({"role": "tool"}, agent_sdk.ToolMessage)
    assert problems({"role": "user", "content": 5}, agent_sdk.UserMessage)
    assert problems({"role": "user", "content": "x", "more": 1}, agent_sdk.UserMessage)


@promise("seed:002-order")
def test_an_answer_keeps_the_order_of_text_and_calls() -> None:
    first, second = ir.ToolCall("c1", "f", {"a": 1}), ir.ToolCall("c2", "g", {})
    parts = (ir.Text("one"), first, ir.Text("two"), second, ir.Text("three"))
    encoded = dragoman.encode_response(
        ir.Completion((ir.Message("assistant", parts),), ir.Finish("tool_calls")), "agent-sdk"
    )
    assert encoded.losses == ()
    messages = encoded.body["messages"]
    assert [message["content"] for message in messages] == ["one", "two", "three"]
    assert [[call["id"] for call in message.get("tool_calls", ())] for message in messages] == [["c1"], ["c2"], []]
    again = dragoman.decode_response(encoded.json(), "agent-sdk")
    assert [getattr(part, "text", None) or getattr(part, "id", None) for part in again.messages[0].parts] == [
        "one", "c1", "two", "c2", "three",
    ]  # fmt: skip
