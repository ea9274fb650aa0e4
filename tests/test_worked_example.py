"""The weather example of the specification, byte for byte: one call, one result, three vendors.

The model asks for get_weather in Tokyo; the application answers {temp: 22, condition: sunny}.
"""

from typing import Any

import pytest

import dragoman
from dragoman import ir
from tests.support.cases import each
from tests.support.formats import FORMATS, PAIRS

CALL = ir.ToolCall("call_123", "get_weather", {"location": "Tokyo"})
RESULT = ir.ToolResult("call_123", "get_weather", "data", {"temp": 22, "condition": "sunny"})
TEXT = '{"temp":22,"condition":"sunny"}'
SCHEMA = {"type": "object", "properties": {"location": {"type": "string"}}, "required": ["location"]}
CONVERSATION = ir.Request(
    "some-model",
    (ir.Message("user", "Weather in Tokyo?"), ir.Message("assistant", (CALL,)), ir.Message("tool", (RESULT,))),
    (ir.ToolDefinition("get_weather", "Current weather", SCHEMA),),
)

# ── phase 1: from the model ───────────────────────────────────────────────────────────────────────────────────

ANSWERS: dict[str, dict[str, Any]] = {
    "openai-chat": {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {
                            "id": "call_123",
                            "type": "function",
                            "function": {"name": "get_weather", "arguments": '{"location":"Tokyo"}'},
                        }
                    ],
                },
                "finish_reason": "tool_calls",
            }
        ],
    },
    "anthropic-messages": {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [{"type": "tool_use", "id": "call_123", "name": "get_weather", "input": {"location": "Tokyo"}}],
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    },
    "gemini": {
        "candidates": [
            {
                "content": {
                    "role": "model",
                    "parts": [
                        {"functionCall": {"id": "call_123", "name": "get_weather", "args": {"location": "Tokyo"}}}
                    ],
                },
                "finishReason": "STOP",
            }
        ],
    },
}
ANSWERS["vertex"] = ANSWERS["gemini"]
ANSWERS["bedrock-converse"] = {
    "output": {
        "message": {
            "role": "assistant",
            "content": [
                {"toolUse": {"toolUseId": "call_123", "name": "get_weather", "input": {"location": "Tokyo"}}},
            ],
        }
    },
    "stopReason": "tool_use",
    "usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2},
    "metrics": {"latencyMs": 1},
}
ANSWERS["openai-responses"] = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "status": "completed",
    "model": "m",
    "output": [
        {
            "id": "fc_1",
            "type": "function_call",
            "status": "completed",
            "call_id": "call_123",
            "name": "get_weather",
            "arguments": '{"location":"Tokyo"}',
        }
    ],
}
ANSWERS["gemini-interactions"] = {
    "id": "v1_1",
    "object": "interaction",
    "status": "requires_action",
    "model": "m",
    "steps": [{"type": "function_call", "id": "call_123", "name": "get_weather", "arguments": {"location": "Tokyo"}}],
}
ANSWERS["ollama-chat"] = {
    "model": "m",
    "created_at": "2026-08-21T10:00:00Z",
    "message": {
        "role": "assistant",
        "content": "",
        "tool_calls": [
            {"id": "call_123", "function": {"index": 0, "name": "get_weather", "arguments": {"location": "Tokyo"}}}
        ],
    },
    "done": True,
    "done_reason": "stop",
}

ANSWERS["cohere-chat"] = {
    "id": "6a25b227-ab2f-4049-95cb-15e8fb05d116",
    "message": {
        "role": "assistant",
        "tool_plan": "I will look.",
        "tool_calls": [
            {
                "id": "call_123",
                "type": "function",
                "function": {"name": "get_weather", "arguments": '{"location":"Tokyo"}'},
            }
        ],
    },
    "finish_reason": "TOOL_CALL",
}


@pytest.mark.parametrize("name", FORMATS)
def test_the_call_reads_the_same_from_every_vendor(name: str) -> None:
    completion = dragoman.decode_response(ANSWERS[name], name)
    (call,) = completion.tool_calls
    assert (call.id, call.name, call.arguments) == ("call_123", "get_weather", {"location": "Tokyo"})
    assert completion.finish_reason == "tool_calls"


# ── phase 3: to the model ─────────────────────────────────────────────────────────────────────────────────────


def test_for_openai_the_result_is_json_text() -> None:
    messages = dragoman.encode_request(CONVERSATION, "openai-chat").body["messages"]
    assert messages[1]["tool_calls"][0]["function"] == {"name": "get_weather", "arguments": '{"location":"Tokyo"}'}
    assert messages[2] == {"role": "tool", "tool_call_id": "call_123", "content": TEXT}


def test_for_anthropic_it_is_a_block_of_json_text() -> None:
    messages = dragoman.encode_request(CONVERSATION, "anthropic-messages").body["messages"]
    assert messages[1]["content"] == [
        {"type": "tool_use", "id": "call_123", "name": "get_weather", "input": {"location": "Tokyo"}}
    ]
    (block,) = messages[2]["content"]
    assert messages[2]["role"] == "user"
    assert block.pop("is_error", False) is False
    assert block == {"type": "tool_result", "tool_use_id": "call_123", "content": TEXT}


@pytest.mark.parametrize("name", ["gemini", "vertex"])
def test_for_gemini_it_is_the_object_itself(name: str) -> None:
    contents = dragoman.encode_request(CONVERSATION, name).body["contents"]
    response = contents[2]["parts"][0]["functionResponse"]
    response.pop("id", None)
    assert response == {"name": "get_weather", "response": {"temp": 22, "condition": "sunny"}}
    assert contents[2]["role"] == "user"


def test_is_error_false_is_accepted_and_kept() -> None:
    """The specification's own example spells the flag out."""
    turn = {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "call_123", "content": TEXT, "is_error": False}],
    }
    body = dragoman.encode_request(CONVERSATION, "anthropic-messages").body
    body["messages"][2] = turn
    request = dragoman.decode_request(body, "anthropic-messages")
    (result,) = request.messages[2].tool_results
    assert not result.is_error
    assert result.name == "get_weather"
    assert dragoman.encode_request(request, "anthropic-messages").body["messages"][2] == turn


@each(("source", "target"), PAIRS)
def test_the_whole_conversation_crosses_without_a_loss(source: str, target: str) -> None:
    body = dragoman.encode_request(CONVERSATION, source).json()
    encoded = dragoman.translate_request(body, source=source, target=target)
    assert [loss for loss in encoded.losses if loss.severity != "invented"] == []
    there = dragoman.decode_request(encoded.json(), target)
    (call,) = there.messages[1].tool_calls
    assert (call.name, call.arguments) == ("get_weather", {"location": "Tokyo"})
    (result,) = there.messages[2].tool_results
    assert result.tool_call_id == call.id
    assert result.value in (TEXT, {"temp": 22, "condition": "sunny"})
