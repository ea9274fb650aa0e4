"""Field reports on reasoning that must return or be readable, and on structured output."""

from __future__ import annotations

from typing import Any

import pytest

import dragoman
from tests.support.promises import promise

TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
CALL = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}


@promise("report:43")
def test_plain_reasoning_returns_with_its_tool_turn_only_to_the_servers_that_sent_it() -> None:
    turn = {"role": "assistant", "content": None, "reasoning_content": "I should call f.", "tool_calls": [CALL]}
    body = {
        "model": "deepseek-reasoner",
        "messages": [
            {"role": "user", "content": "go"},
            turn,
            {"role": "tool", "tool_call_id": "call_1", "content": "ok"},
        ],
        "tools": [TOOL],
    }
    back = dragoman.encode_request(dragoman.decode_request(body, "openai-chat"), "openai-chat")
    assert back.body == body
    for target in ("anthropic-messages", "gemini", "vertex"):
        encoded = dragoman.translate_request(body, source="openai-chat", target=target)
        assert b"I should call f." not in encoded.json()
        assert any("reasoning" in loss.what for loss in encoded.losses)


@promise("report:44")
@pytest.mark.parametrize("source", ["gemini", "vertex"])
def test_thoughts_of_gemini_are_readable_in_a_chat_answer(source: str) -> None:
    answer = {
        "candidates": [
            {
                "content": {"role": "model", "parts": [{"text": "Let me think.", "thought": True}, {"text": "Done."}]},
                "finishReason": "STOP",
                "index": 0,
            }
        ],
        "usageMetadata": {
            "promptTokenCount": 1,
            "candidatesTokenCount": 1,
            "thoughtsTokenCount": 2,
            "totalTokenCount": 4,
        },
        "modelVersion": "gemini-3-flash",
        "responseId": "r1",
    }
    message = dragoman.translate_response(answer, source=source, target="openai-chat").body["choices"][0]["message"]
    assert message["reasoning_content"] == "Let me think."
    assert message["content"] == "Done."


SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}


@promise("report:74")
@pytest.mark.parametrize("target", ["anthropic-messages", "gemini", "vertex"])
def test_structured_output_crosses_without_a_tool_in_disguise(target: str) -> None:
    body = {
        "model": "gpt-4.1",
        "messages": [{"role": "user", "content": "Where is Tokyo?"}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "place", "schema": SCHEMA, "strict": True}},
    }
    encoded = dragoman.translate_request(body, source="openai-chat", target=target, model=_MODEL[target])
    assert "tools" not in encoded.body
    assert b'"city"' in encoded.json()
    # No tool went out, so none has to be undone: the answer is text and its stop reason an ordinary one.
    answer = dragoman.translate_response(_ANSWER[target], source=target, target="openai-chat").body["choices"][0]
    assert answer["message"]["content"] == '{"city":"Tokyo"}'
    assert "tool_calls" not in answer["message"]
    assert answer["finish_reason"] == "stop"


_MODEL = {"anthropic-messages": "claude-sonnet-5", "gemini": "gemini-3-flash", "vertex": "gemini-3-flash"}
_GEMINI = {
    "candidates": [{"content": {"role": "model", "parts": [{"text": '{"city":"Tokyo"}'}]}, "finishReason": "STOP"}],
    "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
}
_ANSWER: dict[str, dict[str, Any]] = {
    "anthropic-messages": {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-5",
        "content": [{"type": "text", "text": '{"city":"Tokyo"}'}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    },
    "gemini": _GEMINI,
    "vertex": _GEMINI,
}
