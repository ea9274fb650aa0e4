"""A search for tools that a client of Responses runs: other models get it as a function, and what it found as tools."""

import json
from typing import Any

import pytest

import dragoman
from dragoman import ir
from dragoman.streams import StreamTranslator
from tests.support.formats import FORMATS, MODELS, refusals
from tests.support.promises import promise
from tests.support.trees import reaches

pytestmark = promise("law:2-nothing-vanishes")

SEARCH: dict[str, Any] = {
    "type": "tool_search",
    "execution": "client",
    "description": "Find tools.",
    "parameters": {"type": "object", "properties": {"q": {"type": "string"}}},
}
FOUND: dict[str, Any] = {
    "type": "function",
    "name": "found",
    "description": "d",
    "parameters": {"type": "object", "properties": {"z": {"type": "string"}}},
    "strict": False,
}
MEMBER: dict[str, Any] = {"type": "function", "name": "member", "parameters": {"type": "object"}, "strict": False}
SPACE: dict[str, Any] = {"type": "namespace", "name": "space", "description": "s", "tools": [MEMBER]}
CALL: dict[str, Any] = {
    "type": "tool_search_call",
    "id": "tsc_1",
    "call_id": "call_1",
    "execution": "client",
    "arguments": {"q": "x"},
    "status": "completed",
}
OUTPUT: dict[str, Any] = {
    "type": "tool_search_output",
    "call_id": "call_1",
    "execution": "client",
    "status": "completed",
    "tools": [FOUND, SPACE],
}
USED = [
    {"type": "function_call", "call_id": "call_2", "name": "found", "namespace": "found", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "call_2", "output": "r"},
]
BODY: dict[str, Any] = {
    "model": "gpt-5.4",
    "store": False,
    "input": [{"role": "user", "content": "hi"}, CALL, OUTPUT, *USED],
    "tools": [SEARCH],
}
OTHERS = tuple(name for name in FORMATS if name != "openai-responses")


def crossed(body: dict[str, Any], target: str) -> dragoman.Encoded:
    return dragoman.translate_request(body, source="openai-responses", target=target, model=MODELS[target])


def test_the_request_comes_back_as_it_was() -> None:
    again = crossed({**BODY, "model": MODELS["openai-responses"]}, "openai-responses")
    assert again.body == {**BODY, "model": MODELS["openai-responses"]}
    assert again.losses == ()


@pytest.mark.parametrize("target", OTHERS)
def test_what_was_found_is_declared_and_named(target: str) -> None:
    encoded = crossed(BODY, target)
    request = dragoman.decode_request(encoded.json(), target)
    assert [tool.name for tool in request.tools] == ["tool_search", "found", "space__member"]
    results = [part for message in request.messages for part in message.parts if isinstance(part, ir.ToolResult)]
    assert [(one.name, one.value) for one in results] == [("tool_search", "found, space__member"), ("found", "r")]
    (call, *_) = [part for message in request.messages for part in message.parts if isinstance(part, ir.ToolCall)]
    assert (call.name, call.arguments) == ("tool_search", {"q": "x"})
    assert refusals(encoded, target, model=MODELS[target]) == ()
    assert all(reaches(BODY, loss.path) or loss.severity == "invented" for loss in encoded.losses)
    assert not [loss for loss in encoded.losses if loss.severity == "dropped" and loss.path.startswith("$.input")]


def test_tools_that_were_found_twice_are_declared_once() -> None:
    found = [CALL, OUTPUT, {**CALL, "call_id": "call_3"}, {**OUTPUT, "call_id": "call_3"}]
    encoded = crossed({**BODY, "input": [BODY["input"][0], *found], "tools": [SEARCH, FOUND]}, "anthropic-messages")
    assert [tool["name"] for tool in encoded.body["tools"]] == ["tool_search", "found", "space__member"]


ANSWER: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [{"type": "tool_use", "id": "toolu_1", "name": "tool_search", "input": {"q": "y"}}],
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": {"input_tokens": 1, "output_tokens": 1},
}


def test_a_call_of_the_function_becomes_the_item_that_the_client_expects() -> None:
    request = dragoman.decode_request(BODY, "openai-responses")
    answer = dragoman.translate_response(
        ANSWER, source="anthropic-messages", target="openai-responses", request=request
    )
    (item,) = answer.body["output"]
    assert item.pop("id").startswith("tsc_")
    assert item == {**{key: CALL[key] for key in CALL if key != "id"}, "call_id": "toolu_1", "arguments": {"q": "y"}}


def test_a_streamed_call_becomes_the_item_that_the_client_expects() -> None:
    block = {"type": "tool_use", "id": "toolu_1", "name": "tool_search", "input": {}}
    events = (
        {"type": "message_start", "message": ANSWER | {"content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": '{"q":'}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": '"y"}'}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    )
    request = dragoman.decode_request(BODY, "openai-responses")
    translator = StreamTranslator(source="anthropic-messages", target="openai-responses", request=request)
    written = b"".join(
        translator.feed(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()) for event in events
    )
    payloads = [json.loads(line[6:]) for line in (written + translator.close()).splitlines() if line[:6] == b"data: "]
    (item,) = payloads[-1]["response"]["output"]
    assert (item["type"], item["execution"], item["arguments"]) == ("tool_search_call", "client", {"q": "y"})


def test_an_answer_that_searches_is_a_call_for_clients_of_other_formats() -> None:
    answer = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "status": "completed",
        "model": "m",
        "output": [CALL],
    }
    encoded = dragoman.translate_response(answer, source="openai-responses", target="openai-chat")
    (choice,) = encoded.body["choices"]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["tool_calls"][0]["function"] == {"name": "tool_search", "arguments": '{"q":"x"}'}


@pytest.mark.parametrize(
    "items",
    [
        [{**CALL, "execution": "server", "call_id": None}, {**OUTPUT, "execution": "server", "call_id": None}],
        [{**CALL, "arguments": "x"}, {**OUTPUT, "tools": None}],
        [{**CALL, "arguments": None}, {**OUTPUT, "call_id": None}],
    ],
)
def test_other_searches_are_no_calls_of_the_client(items: list[dict[str, Any]]) -> None:
    body = {**BODY, "input": [BODY["input"][0], *items, {"role": "user", "content": "go on"}], "tools": []}
    request = dragoman.decode_request(body, "openai-responses")
    assert not [part for message in request.messages for part in message.parts if isinstance(part, ir.ToolCall)]
    assert request.tools == ()
    assert dragoman.encode_request(request, "openai-responses").body == body


def test_a_search_of_the_provider_stays_one() -> None:
    encoded = crossed(
        {**BODY, "input": "hi", "tools": [{"type": "tool_search"}, FOUND | {"defer_loading": True}]},
        "anthropic-messages",
    )
    assert [tool["name"] for tool in encoded.body["tools"]] == ["tool_search_tool_bm25", "found"]


def test_a_search_may_be_answered_like_a_function() -> None:
    output = {"type": "function_call_output", "call_id": "call_1", "output": "one tool"}
    body = {**BODY, "input": [*BODY["input"][:2], output]}
    request = dragoman.decode_request(body, "openai-responses")
    assert dragoman.encode_request(request, "openai-responses").body == body
    claude = crossed(body, "anthropic-messages").body["messages"]
    assert claude[2]["content"] == [{"type": "tool_result", "tool_use_id": "call_1", "content": "one tool"}]
