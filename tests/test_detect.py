import json
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import dragoman
from dragoman.detection import Detected
from tests.support.cases import each
from tests.support.promises import promise
from tests.support.recordings import Record

HELLO = {"role": "user", "content": "hello"}

CASES: dict[str, tuple[Any, Detected | None]] = {
    "a server of Chat's format that switches thinking off": (
        {"model": "m", "max_tokens": 9, "messages": [HELLO], "thinking": {"type": "disabled"}},
        Detected("openai-chat", "request"),
    ),
    "thinking with a budget": (
        {"model": "m", "max_tokens": 9, "messages": [HELLO], "thinking": {"type": "enabled", "budget_tokens": 5}},
        Detected("anthropic-messages", "request"),
    ),
    "instructions to Claude between the turns": (
        {"model": "claude-opus-4-8", "max_tokens": 9, "messages": [HELLO, {"role": "system", "content": "Be brief."}]},
        Detected("anthropic-messages", "request"),
    ),
    "an item of the Responses API": (
        {"type": "message", "id": "a", "role": "assistant", "content": [{"type": "output_text", "text": "hi"}]},
        None,
    ),
    "text to embed": ({"model": "text-embedding-3-small", "input": "hello"}, None),
    "texts to embed": ({"model": "m", "input": ["hello", "you"]}, None),
    "text to speak": ({"model": "m", "input": "hello", "voice": "alloy", "response_format": "mp3"}, None),
    "a listing of files": ({"type": "directory", "contents": {"notes": {"type": "directory", "contents": {}}}}, None),
    "a message of another library": ({"role": "user", "contents": [{"$type": "text", "text": "hello"}]}, None),
    "a prompt that is kept": (
        {"name": "cachedContents/a", "model": "m", "createTime": "2026-11-18", "usageMetadata": {"totalTokenCount": 9}},
        None,
    ),
    "an event with counts only": ({"usageMetadata": {"totalTokenCount": 9}}, Detected("gemini", "response")),
    "candidates that are no answers": ({"candidates": {"first": 1}, "blockers": []}, None),
    "choices that are no answers": ({"choices": [{"choice": "net9.0", "description": "newest"}]}, None),
    "a record with an error": ({"instance_id": "a", "history": [], "error": "out of time"}, None),
    "an error of JSON-RPC": ({"jsonrpc": "2.0", "id": 1, "error": {"code": -32600, "message": "no"}}, None),
    "an error with a request id": (
        {"error": {"message": "no", "type": "invalid_request_error"}, "request_id": "a"},
        Detected("openai-chat", "error"),
    ),
    "messages without roles": ({"messages": [{"sender": "User", "text": "hello"}]}, None),
    "a request inside of content": (
        {"model": "m", "messages": [{"role": "user", "content": [{"role": "user", "content": "hello"}]}]},
        Detected("openai-chat", "request"),
    ),
    "input and output of a program": ({"input": {}, "output": {"message": {"role": "assistant", "content": []}}}, None),
    "nothing but messages": ({"model": "m", "messages": [HELLO]}, Detected("openai-chat", "request")),
    "a model only Anthropic has": (
        {"model": "claude-haiku-4-5", "max_tokens": 9, "messages": [HELLO]},
        Detected("anthropic-messages", "request"),
    ),
    "the same through a router": (
        {"model": "anthropic/claude-haiku-4.5", "messages": [HELLO]},
        Detected("openai-chat", "request"),
    ),
    "a compatible server that borrows `thinking`": (
        {"messages": [{"role": "system", "content": "x"}, HELLO], "thinking": {"type": "enabled"}, "stop": ["a"]},
        Detected("openai-chat", "request"),
    ),
    "a compatible server that borrows the tool choice": (
        {
            "messages": [HELLO],
            "tools": [{"type": "function", "function": {"name": "add"}}],
            "tool_choice": {"type": "tool", "name": "add"},
            "seed": 1,
        },
        Detected("openai-chat", "request"),
    ),
    "a dated tool": (
        {"messages": [HELLO], "tools": [{"type": "web_search_20250305", "name": "web_search"}]},
        Detected("anthropic-messages", "request"),
    ),
    "a tool use in the history": (
        {"messages": [{"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}]}]},
        Detected("anthropic-messages", "request"),
    ),
    "contents": ({"contents": [{"parts": [{"text": "hi"}]}]}, Detected("gemini", "request")),
    "candidates": ({"candidates": []}, Detected("gemini", "response")),
    "candidates with a time": ({"candidates": [], "createTime": "2026-01-01"}, Detected("vertex", "response")),
    "choices": ({"choices": []}, Detected("openai-chat", "response")),
    "a message": ({"type": "message", "content": []}, Detected("anthropic-messages", "response")),
    "an error with a type of its own": ({"type": "error", "error": {}}, Detected("anthropic-messages", "error")),
    "an error with a status word": ({"error": {"code": 400, "status": "X"}}, Detected("gemini", "error")),
    "an error in a list": ([{"error": {"code": 400, "status": "X"}}], Detected("gemini", "error")),
    "an error with a message": ({"error": {"message": "no"}}, Detected("openai-chat", "error")),
    "a key of Converse": ({"messages": [], "inferenceConfig": {}}, Detected("bedrock-converse", "request")),
    "untyped blocks": (
        {"messages": [{"role": "user", "content": [{"text": "hi"}]}]},
        Detected("bedrock-converse", "request"),
    ),
    "a message in an output": (
        {"output": {"message": {"role": "assistant", "content": []}}, "stopReason": "end_turn"},
        Detected("bedrock-converse", "response"),
    ),
    "an exception": ({"__type": "ThrottlingException", "message": "no"}, Detected("bedrock-converse", "error")),
    "a message alone": ({"message": "no"}, None),
    "a response": ({"object": "response", "error": None, "output": []}, Detected("openai-responses", "response")),
    "an input text": ({"model": "m", "input": "hi"}, Detected("openai-responses", "request")),
    "a row of Alpaca": ({"instruction": "Say hi.", "input": "Bob", "output": "Hi"}, Detected("alpaca", "request")),
    "a row of Alpaca without input": ({"instruction": "a", "input": "", "output": "b"}, Detected("alpaca", "request")),
    "a row of input and output": ({"input": "to Bob", "output": "Hi Bob"}, None),
    "a row of input": ({"input": "to Bob", "target": "Hi Bob"}, None),
    "instructions and input": ({"instructions": "Be brief.", "input": "hi"}, Detected("openai-responses", "request")),
    "input items": ({"model": "m", "input": [HELLO]}, Detected("openai-responses", "request")),
    "an event": ({"type": "response.created", "response": {"object": "response"}}, None),
    "a numbered error": ({"type": "error", "sequence_number": 2, "error": {}}, None),
    "options": ({"messages": [HELLO], "options": {"num_ctx": 4096}}, Detected("ollama-chat", "request")),
    "images beside the text": (
        {"messages": [{"role": "user", "content": "hi", "images": ["iVBORw0KGgo="]}]},
        Detected("ollama-chat", "request"),
    ),
    "arguments that are an object": (
        {"messages": [{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": {}}}]}]},
        Detected("ollama-chat", "request"),
    ),
    "a message that is done": ({"message": {"content": "hi"}, "done": True}, Detected("ollama-chat", "response")),
    "a line of a message": ({"message": {"content": "hi"}, "done": False}, None),
    "an error that is a text": ({"error": "no"}, Detected("ollama-chat", "error")),
    "a plan": (
        {"messages": [{"role": "assistant", "tool_plan": "x", "tool_calls": []}]},
        Detected("cohere-chat", "request"),
    ),
    "a choice in capitals": ({"messages": [HELLO], "tool_choice": "REQUIRED"}, Detected("cohere-chat", "request")),
    "documents with data": ({"messages": [HELLO], "documents": [{"data": "x"}]}, Detected("cohere-chat", "request")),
    "a dated model": ({"model": "command-a-03-2025", "messages": [HELLO]}, Detected("cohere-chat", "request")),
    "version 1 of it": ({"model": "command-r", "message": "hi", "chat_history": []}, None),
    "a message that is complete": (
        {"id": "x", "message": {"role": "assistant"}, "finish_reason": "COMPLETE"},
        Detected("cohere-chat", "response"),
    ),
    "a flat error": ({"id": "x", "message": "no"}, Detected("cohere-chat", "error")),
    "an empty object": ({}, None),
    "a number": (3, None),
    "a list": ([], None),
}


@each(("body", "expected"), CASES.values(), ids=CASES.keys())
def test_a_format_is_detected_by_keys_that_only_it_has(body: Any, expected: Detected | None) -> None:
    assert dragoman.detect(json.dumps(body)) == expected


@promise("law:10-bad-input-good-words")
@pytest.mark.parametrize(
    "body",
    [
        {"messages": 3, "tools": 4, "tool_choice": 5},
        {"messages": [1, None, {"content": 2}, {"content": [3, {"type": []}]}], "tools": [1, {"type": {}}]},
        {"messages": [], "tools": "x", "tool_choice": {"type": []}, "model": []},
        {"error": []},
    ],
)
def test_odd_shapes_do_not_crash(body: Any) -> None:
    dragoman.detect(json.dumps(body))


@promise("law:10-bad-input-good-words")
@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b"", dragoman.DecodeError),
        (b"{", dragoman.DecodeError),
        (b"nope", dragoman.DecodeError),
        (b"\xff", dragoman.DecodeError),
        (b'{"a": "\\ud800"}', dragoman.DecodeError),
        (b'{"a":' * 100_000, dragoman.LimitExceeded),
    ],
)
def test_input_that_is_not_json_is_a_typed_error(body: bytes, error: type[dragoman.DecodeError]) -> None:
    with pytest.raises(error) as raised:
        dragoman.detect(body)
    assert raised.value.path == "$"


OWN = {
    "openai-chat": {"openai-chat"},
    "groq-chat": {"openai-chat"},
    "mistral-chat": {"openai-chat"},
    "deepseek-chat": {"openai-chat"},
    "openrouter-chat": {"openai-chat"},
    "xai-chat": {"openai-chat"},
    "openai-responses": {"openai-responses"},
    "responses-compat": {"openai-responses"},
    "anthropic-messages": {"anthropic-messages"},
    "anthropic-bedrock": {"anthropic-messages"},
    "gemini-generate": {"gemini"},
    "vertex-generate": {"gemini", "vertex"},
    # A plain request of it is a plain request of Chat too.
    "ollama-chat": {"ollama-chat", "openai-chat"},
    "bedrock-converse": {"bedrock-converse"},
    "cohere-chat": {"cohere-chat", "openai-chat"},  # the same
}


@pytest.mark.parametrize("name", OWN)
def test_recorded_bodies_are_recognised(name: str, recordings: Callable[[str], Iterator[Record]]) -> None:
    """No body is taken for another format's, except a few plain requests of compatible servers."""
    seen: Counter[bool] = Counter()
    for record in recordings(name):
        for kind, body in (("request", record.request), ("response", record.response)):
            if not isinstance(body, dict) or (kind == "response" and record.status >= 400):
                continue
            found = dragoman.detect(json.dumps(body))
            wrong = OWN[name] and (found is None or found.format not in OWN[name] or found.kind != kind)
            seen[bool(wrong) or (not OWN[name] and found is not None)] += 1
    assert seen[False] > 0
    # DeepSeek's own thinking switch makes a bare request look like Anthropic's: the most ambiguous file we have.
    assert seen[True] / seen.total() <= 0.04
