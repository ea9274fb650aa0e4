"""The literal examples of two documents of the earlier systems: the comparison memo (universal records) and the
specification of structured content (multi-llm-chat).

Where they contradict each other or today's APIs, the ruling that applies is named beside the example.
"""

import json
from collections.abc import Callable
from typing import Any

import pytest

import dragoman
from dragoman import ir
from dragoman.chat.chunks import ChunkReader
from dragoman.chat.history import (
    content_to_text,
    format_history,
    normalize_history_turns,
    parse_tool_response_payload,
)
from dragoman.errors import EncodeError
from dragoman.ir.values import encode_json
from tests.support.gemini_streams import call, chunk, sse, text
from tests.support.promises import promise

# ── the memo: the weather example (5.4) ───────────────────────────────────────────────────────────────────────

RECEIVED = {"id": "call_123", "function": {"name": "get_weather", "arguments": '{"location":"Tokyo"}'}}
RESULT = {
    "tool_call_id": "call_123",
    "name": "get_weather",
    "result": {"temp": 22, "condition": "sunny"},
    "is_error": False,
}
TEXT = '{"temp":22,"condition":"sunny"}'
PIXEL = "iVBORw0KGgo="
PICTURE = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}


@promise("seed:weather")
def test_phase_1_the_call_is_decoded() -> None:
    seen = dragoman.decode_tool_call(RECEIVED, "openai-chat")
    assert dragoman.encode_tool_call(seen, "universal").value == {
        "id": "call_123",
        "name": "get_weather",
        "arguments": {"location": "Tokyo"},
    }


@promise("seed:weather")
def test_phase_3_the_result_for_openai() -> None:
    result = dragoman.decode_tool_result(RESULT, "universal")
    assert dragoman.encode_tool_result(result, "openai-chat").value == [
        {"role": "tool", "tool_call_id": "call_123", "content": TEXT}
    ]


@promise("seed:weather")
@pytest.mark.parametrize("target", ["gemini", "vertex"])
def test_phase_3_the_result_for_gemini(target: str) -> None:
    """The id of the call is not Gemini's own here: the Developer API takes it, Vertex does not (ruling 6)."""
    result = dragoman.decode_tool_result(RESULT, "universal")
    (content,) = dragoman.encode_tool_result(result, target).value
    (part,) = content["parts"]
    assert part["functionResponse"].pop("id", None) in ({"gemini": "call_123"}.get(target), None)
    assert part == {"functionResponse": {"name": "get_weather", "response": {"temp": 22, "condition": "sunny"}}}


@promise("seed:weather")
def test_phase_3_the_result_for_anthropic_states_that_it_is_not_an_error() -> None:
    result = dragoman.decode_tool_result(RESULT, "universal")
    block = {"type": "tool_result", "tool_use_id": "call_123", "content": TEXT, "is_error": False}
    assert dragoman.encode_tool_result(result, "anthropic-messages").value == [{"role": "user", "content": [block]}]


@promise("seed:weather")
@pytest.mark.parametrize(
    ("source", "record"),
    [
        ("universal", {"tool_call_id": "c", "name": "f", "result": "x"}),
        ("agent-sdk", {"role": "tool", "tool_call_id": "c", "tool_name": "f", "content": "x"}),
        ("multi-llm-chat", {"type": "tool_result", "tool_call_id": "c", "name": "f", "content": "x"}),
        ("anthropic-messages", {"type": "tool_result", "tool_use_id": "c", "content": "x"}),
    ],
)
def test_is_error_is_written_to_anthropic_if_and_only_if_it_was_stated(source: str, record: dict[str, Any]) -> None:
    call = ir.ToolCall("c", "f", {})
    for stated in ({}, {"is_error": False}, {"is_error": True}):
        result = dragoman.decode_tool_result({**record, **stated}, source, call=call)
        (message,) = dragoman.encode_tool_result(result, "anthropic-messages").value
        (block,) = message["content"]
        assert {key: block[key] for key in block if key == "is_error"} == stated
        # Other APIs have no such flag, and the record stays as it was.
        assert b"is_error" not in dragoman.encode_tool_result(result, "openai-chat").json()
        again = dragoman.encode_tool_result(result, source).json()
        for key, value in stated.items():
            assert encode_json({key: value})[1:-1] in again


@promise("seed:weather")
def test_a_whole_stored_history_states_it_too() -> None:
    history = [
        {"role": "user", "content": "Weather in Tokyo?"},
        {"role": "assistant", "tool_calls": [{"id": "call_123", "name": "get_weather", "arguments": {}}]},
        RESULT,
    ]
    body = dragoman.translate_request(history, source="universal", target="anthropic-messages", model="m").body
    assert body["messages"][2]["content"][0]["is_error"] is False


# ── the memo: multimodal_parts (5.3) ──────────────────────────────────────────────────────────────────────────


def gemini_answer(record: dict[str, Any], model: str) -> tuple[Any, list[Any]]:
    """The response object of a stored result, and all media of the request."""
    history = [
        {"role": "user", "content": "Look"},
        {"role": "assistant", "tool_calls": [{"id": "c", "name": "f", "arguments": {}}]},
        {"tool_call_id": "c", "name": "f", "is_error": False, **record},
    ]
    contents = dragoman.translate_request(history, source="universal", target="gemini", model=model).body["contents"]
    answer = contents[2]["parts"][0]["functionResponse"]
    beside = [*answer.get("parts", ()), *(part for content in contents[3:] for part in content["parts"])]
    return answer["response"], [part["inlineData"]["data"] for part in beside if "inlineData" in part]


@promise("seed:multimodal")
@pytest.mark.parametrize("model", ["gemini-3-pro-preview", "gemini-2.5-flash"])
@pytest.mark.parametrize(
    ("result", "response"),
    [
        ({"status": "success", "都市": "東京"}, {"status": "success", "都市": "東京"}),
        ({"output": {"nested": [1, 2.50]}}, {"output": {"nested": [1, 2.50]}}),
        ("a map", {"output": "a map"}),
        ('{"looks": "like JSON"}', {"output": '{"looks": "like JSON"}'}),
        ([1, 2], {"output": [1, 2]}),
        (25, {"output": 25}),
        (False, {"output": False}),
    ],
)
def test_a_result_beside_media_reaches_gemini_unchanged(model: str, result: Any, response: Any) -> None:
    assert gemini_answer({"result": result, "multimodal_parts": [PICTURE]}, model) == (response, [PIXEL])


@promise("seed:multimodal")
@pytest.mark.parametrize("result", ["no such city", {"code": 5}])
def test_an_error_beside_media_stays_an_error(result: Any) -> None:
    record = {"result": result, "is_error": True, "multimodal_parts": [PICTURE]}
    assert gemini_answer(record, "gemini-3-pro-preview") == ({"error": result}, [PIXEL])


@promise("seed:multimodal")
def test_an_object_that_gemini_would_take_for_references_is_sent_as_text() -> None:
    record = {**RESULT, "result": {"$ref": "a.png"}, "multimodal_parts": [PICTURE]}
    encoded = dragoman.encode_tool_result(dragoman.decode_tool_result(record, "universal"), "gemini")
    answer = encoded.value[0]["parts"][0]["functionResponse"]
    assert answer["response"] == {"output": '{"$ref":"a.png"}'}
    assert [(loss.path, loss.severity) for loss in encoded.losses] == [("$.value", "degraded")]


@promise("seed:multimodal")
@pytest.mark.parametrize("result", [{"status": "success"}, [1, 2], "a map", 25])
def test_a_result_beside_media_for_the_others(result: Any) -> None:
    """The memo's own example for Anthropic: the JSON text in a block before the image."""
    record = {**RESULT, "result": result, "multimodal_parts": [PICTURE]}
    decoded = dragoman.decode_tool_result(record, "universal")
    text = result if isinstance(result, str) else encode_json(result).decode()
    (message,) = dragoman.encode_tool_result(decoded, "anthropic-messages").value
    words, image = message["content"][0]["content"]
    assert words == {"type": "text", "text": text}
    assert image["source"]["data"] == PIXEL
    tool, follow = dragoman.encode_tool_result(decoded, "openai-chat").value
    assert tool["content"][0] == {"type": "text", "text": text}
    assert follow["content"][1] == PICTURE
    assert dragoman.encode_tool_result(decoded, "universal").value == [record]


@promise("seed:multimodal")
def test_an_object_beside_media_returns_from_gemini_to_the_record() -> None:
    record = {**RESULT, "multimodal_parts": [PICTURE]}
    decoded = dragoman.decode_tool_result(record, "universal")
    there = dragoman.encode_tool_result(decoded, "gemini", model="gemini-3-pro-preview")
    back = dragoman.decode_tool_result(there.value[0], "gemini")
    (again,) = dragoman.encode_tool_result(back, "universal").value
    assert again["result"] == RESULT["result"]
    assert again["multimodal_parts"] == [PICTURE]


# ── structured content: the examples of its parts ─────────────────────────────────────────────────────────────

HELLO = {"role": "user", "content": [{"type": "text", "content": "Hello, how are you?"}]}
CALLED = {
    "role": "gemini",
    "content": [
        {"type": "text", "content": "Let me check the weather for you."},
        {
            "type": "tool_call",
            "content": {"name": "get_weather", "arguments": {"location": "Tokyo"}, "tool_call_id": "call_abc123"},
        },
    ],
}
ANSWERED = {
    "role": "tool",
    "content": [
        {
            "type": "tool_result",
            "name": "get_weather",
            "content": '{"temperature": "25°C", "condition": "sunny"}',
            "tool_call_id": "call_abc123",
        }
    ],
}
HISTORY: list[dict[str, Any]] = [HELLO, CALLED, ANSWERED]


def test_the_examples_are_read_and_written_unchanged() -> None:
    request = dragoman.decode_request(HISTORY, "multi-llm-chat")
    assert [message.role for message in request.messages] == ["user", "assistant", "tool"]
    assert json.loads(dragoman.encode_request(request, "multi-llm-chat").json()) == HISTORY
    assert dragoman.decode_messages(HISTORY, "multi-llm-chat") == request.messages
    for index, entry in enumerate(HISTORY):
        again = dragoman.encode_messages(request.messages[index : index + 1], "multi-llm-chat")
        assert again.value == [entry]


def test_the_examples_as_gemini_sees_them() -> None:
    """Its role `function` is `user` today (ruling 5)."""
    weather = {"temperature": "25°C", "condition": "sunny"}
    response = {"name": "get_weather", "response": weather, "id": "call_abc123"}
    assert format_history(HISTORY, "gemini") == [
        {"role": "user", "parts": [{"text": "Hello, how are you?"}]},
        {
            "role": "model",
            "parts": [
                {"text": "Let me check the weather for you."},
                {"function_call": {"name": "get_weather", "args": {"location": "Tokyo"}}},
            ],
        },
        {"role": "user", "parts": [{"function_response": response}]},
    ]


def test_the_examples_as_chatgpt_sees_them() -> None:
    history = [HELLO, {**CALLED, "role": "chatgpt"}, ANSWERED]
    function = {"name": "get_weather", "arguments": '{"location":"Tokyo"}'}
    assert format_history(history, "chatgpt") == [
        {"role": "user", "content": "Hello, how are you?"},
        {
            "role": "assistant",
            "content": "Let me check the weather for you.",
            "tool_calls": [{"id": "call_abc123", "type": "function", "function": function}],
        },
        {
            "role": "tool",
            "tool_call_id": "call_abc123",
            "content": '{"temperature": "25°C", "condition": "sunny"}',
        },
    ]


def test_the_example_of_normalising() -> None:
    legacy = [{"role": "user", "content": "Hello"}, {"role": "gemini", "content": "Hi there"}]
    assert normalize_history_turns(legacy) == [
        {"role": "user", "content": [{"type": "text", "content": "Hello"}]},
        {"role": "gemini", "content": [{"type": "text", "content": "Hi there"}]},
    ]


def test_the_example_of_content_to_text() -> None:
    content = [
        {"type": "text", "content": "Let me search."},
        {"type": "tool_call", "content": {"name": "search", "arguments": {"query": "python"}}},
        {"type": "text", "content": "Here are the results."},
    ]
    assert content_to_text(content, include_tool_data=False) == "Let me search. Here are the results."
    assert content_to_text(content, include_tool_data=True) == (
        'Let me search. search {"query":"python"} Here are the results.'
    )


def test_the_example_of_an_error() -> None:
    expected = r"^History content must be a list or string \(actual type: dict\)$"
    with pytest.raises(ValueError, match=expected):
        format_history([{"role": "user", "content": {"text": "bad"}}], "gemini")


@pytest.mark.parametrize(
    ("payload", "response"),
    [
        (None, {}),
        ({"a": 1}, {"a": 1}),
        ('{"a": 1}', {"a": 1}),
        ("sunny", {"result": "sunny"}),
        ("[1]", {"result": [1]}),
        (5, {"result": 5}),
    ],
)
def test_payloads_follow_the_rules(payload: Any, response: Any) -> None:
    assert parse_tool_response_payload(payload) == response


# ── structured content: who spoke ─────────────────────────────────────────────────────────────────────────────

GEMINI_ANSWER = {
    "candidates": [{"content": {"role": "model", "parts": [{"text": "Sunny."}]}, "finishReason": "STOP"}],
    "modelVersion": "gemini-3-pro",
}


@promise("seed:speaker")
def test_a_stored_answer_keeps_its_speaker() -> None:
    stored = dragoman.translate_response(GEMINI_ANSWER, source="gemini", target="multi-llm-chat", speaker="gemini")
    assert stored.body == {"role": "gemini", "content": [{"type": "text", "content": "Sunny."}]}
    completion = dragoman.decode_response(GEMINI_ANSWER, "gemini")
    assert dragoman.encode_response(completion, "multi-llm-chat", speaker="gemini").body == stored.body
    again = dragoman.decode_response(stored.json(), "multi-llm-chat")
    assert again.messages[0].name == "gemini"


@promise("seed:speaker")
@pytest.mark.parametrize("source", dragoman.formats())
def test_a_speaker_for_an_answer_of_every_api(source: str) -> None:
    body = dragoman.encode_response(ir.Completion((ir.Message("assistant", "Hi"),), ir.Finish("stop")), source).json()
    stored = dragoman.translate_response(body, source=source, target="multi-llm-chat", speaker="chatgpt")
    assert stored.body["role"] == "chatgpt"
    with pytest.raises(EncodeError, match="do not name their speaker"):
        dragoman.translate_response(body, source=source, target=source, speaker="x")


@promise("seed:speaker", "law:2-nothing-vanishes")
@pytest.mark.parametrize("target", dragoman.formats())
def test_the_name_of_a_speaker_that_does_not_cross_is_a_loss(target: str) -> None:
    stored = {"role": "gemini", "content": [{"type": "text", "content": "Hi"}]}
    losses = dragoman.translate_response(stored, source="multi-llm-chat", target=target).losses
    assert [loss.path for loss in losses if loss.what == "name of the speaker"] == ["$.role"]


# ── structured content: results in separate entries ───────────────────────────────────────────────────────────


def scattered(speaker: str) -> list[dict[str, Any]]:
    """Two calls, answered out of order, each in an entry of its own, with a user message between them."""

    def calls(name: str, number: str) -> dict[str, Any]:
        return {"type": "tool_call", "content": {"name": name, "arguments": {}, "tool_call_id": number}}

    def answers(name: str, number: str) -> dict[str, Any]:
        part = {"type": "tool_result", "name": name, "content": f"of {name}", "tool_call_id": number}
        return {"role": "tool", "content": [part]}

    return [
        {"role": "user", "content": "Go"},
        {"role": speaker, "content": [calls("a", "c1"), calls("b", "c2")]},
        answers("b", "c2"),
        answers("a", "c1"),
        {"role": "user", "content": "And?"},
    ]


@promise("seed:one-turn")
@pytest.mark.parametrize("target", ["gemini", "vertex"])
def test_results_in_separate_entries_are_one_turn_in_call_order(target: str) -> None:
    contents = dragoman.translate_request(scattered("gemini"), source="multi-llm-chat", target=target).body["contents"]
    assert [content["role"] for content in contents] == ["user", "model", "user", "user"]
    assert [part["functionResponse"]["name"] for part in contents[2]["parts"]] == ["a", "b"]


@promise("seed:one-turn")
def test_results_in_separate_entries_are_one_turn_in_the_view_of_one_model() -> None:
    messages = format_history(scattered("gemini"), "gemini")
    assert [message["role"] for message in messages] == ["user", "model", "user", "user"]
    assert [part["function_response"]["name"] for part in messages[2]["parts"]] == ["a", "b"]
    messages = format_history(scattered("claude"), "claude")
    assert [block["tool_use_id"] for block in messages[2]["content"]] == ["c1", "c2"]
    messages = format_history(scattered("chatgpt"), "chatgpt")
    assert [message.get("tool_call_id") for message in messages] == [None, None, "c1", "c2", None]


@promise("seed:one-turn")
def test_text_between_results_does_not_separate_them() -> None:
    history = scattered("gemini")
    history[3], history[4] = history[4], history[3]
    messages = format_history(history, "gemini")
    assert [len(message["parts"]) for message in messages] == [1, 2, 2, 1]
    assert messages[3] == {"role": "user", "parts": [{"text": "And?"}]}


# ── structured content: chunks of Gemini ──────────────────────────────────────────────────────────────────────

SEARCH = {"type": "tool_call", "content": {"name": "search", "arguments": {"q": "test"}}}


def step_by_step(*chunks: dict[str, Any]) -> list[list[dict[str, Any]]]:
    """What a reader returns after each chunk, and at the end of the bytes."""
    reader = ChunkReader("gemini")
    return [*(reader.feed(sse([one])) for one in chunks), reader.close()]


def at_once(*chunks: dict[str, Any]) -> list[dict[str, Any]]:
    reader = ChunkReader("gemini")
    return reader.feed(sse(chunks)) + reader.close()


STOP = chunk(finish="STOP")


@promise("seed:whole-call")
@pytest.mark.parametrize("source", ["gemini", "vertex"])
def test_a_whole_call_is_emitted_when_it_arrives(source: str) -> None:
    reader = ChunkReader(source)
    assert reader.feed(sse([chunk(call("search", {"q": "test"}))])) == [SEARCH]
    assert reader.feed(sse([chunk(text("Done.")), STOP])) == [{"type": "text", "content": "Done."}]
    assert reader.close() == []


@promise("seed:whole-call")
def test_the_order_is_that_of_arrival_for_any_cut() -> None:
    chunks = [chunk(text("Hello")), chunk(call("search", {"q": "test"})), chunk(text("Well")), STOP]
    expected = [{"type": "text", "content": "Hello"}, SEARCH, {"type": "text", "content": "Well"}]
    assert [one for step in step_by_step(*chunks) for one in step] == expected
    assert at_once(*chunks) == expected


@promise("seed:whole-call", "law:7-no-guessing")
@pytest.mark.parametrize("finish", ["SAFETY", "PROHIBITED_CONTENT", "MALFORMED_FUNCTION_CALL", "MAX_TOKENS"])
def test_a_call_of_an_answer_that_ends_badly(finish: str) -> None:
    """If the bad end is known at once, the call is not emitted; otherwise an error follows that says not to run it."""
    chunks = [chunk(call("rm", {"p": "/"})), chunk(finish=finish)]
    assert [one["type"] for one in at_once(*chunks) if one["type"] == "tool_call"] == []
    first, second, last = step_by_step(*chunks)
    assert [one["type"] for one in first] == ["tool_call"]
    (error,) = [*second, *last]
    assert error["type"] == "error"
    assert "the call of rm must not be run" in error["content"]


@promise("seed:empty-arguments")
@pytest.mark.parametrize(
    "begun",
    [call("search"), call("search", {}), call("search", {}, id="c1")],
    ids=["no arguments", "empty arguments", "with an id"],
)
@pytest.mark.parametrize(
    "later", [lambda **more: call("search", {"q": "test"}, **more), lambda **more: call(None, {"q": "test"}, **more)]
)
def test_empty_arguments_are_followed_by_real_ones(begun: dict[str, Any], later: Callable[..., dict[str, Any]]) -> None:
    more = {key: value for key, value in begun["functionCall"].items() if key == "id"}
    chunks = [chunk(begun), chunk(later(**more)), STOP]
    steps = step_by_step(*chunks)
    assert [len(step) for step in steps] == [0, 1, 0, 0]
    (only,) = [one for step in steps for one in step]
    assert only["content"]["arguments"] == {"q": "test"}
    assert at_once(*chunks) == [only]


@promise("seed:empty-arguments")
def test_two_calls_are_not_merged() -> None:
    """Calls are two if they come in one chunk, both have arguments, or have different names."""
    both = [chunk(call("search", {}), call("search", {"q": "test"})), STOP]
    assert [one["content"]["arguments"] for one in at_once(*both)] == [{"q": "test"}, {}]
    twice = [chunk(call("search", {"q": "a"})), chunk(call("search", {"q": "b"})), STOP]
    assert [one["content"]["arguments"] for one in at_once(*twice)] == [{"q": "a"}, {"q": "b"}]
    others = [chunk(call("now", {})), chunk(call("search", {"q": "test"})), STOP]
    assert {one["content"]["name"] for one in at_once(*others)} == {"now", "search"}


def test_the_example_of_a_mock() -> None:
    """The unified chunks that tests of that system write by hand are what a reader returns."""
    mocked = [{"type": "text", "content": "Hello"}, SEARCH]
    assert at_once(chunk(text("Hello")), chunk(call("search", {"q": "test"})), STOP) == mocked
