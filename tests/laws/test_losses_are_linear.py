"""The paths of losses are worked out in one pass, however many there are (laws 2 and 11)."""

import json
from time import process_time
from typing import Any

import pytest

import dragoman
from tests.support.promises import promise

pytestmark = promise("core:linear-losses")


def chat(count: int) -> dict[str, Any]:
    """Every message loses a key, every call a signature."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "go", "x_key": 1}]
    for index in range(count):
        call = {"id": f"call_{index}", "type": "function", "function": {"name": "f", "arguments": "{}"}, "x_key": 2}
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [call], "x_key": 3},
            {"role": "tool", "tool_call_id": f"call_{index}", "content": "ok", "x_key": 4},
        ]
    return {"model": "gpt-4o", "messages": messages, "max_tokens": 5}


def messages(count: int) -> dict[str, Any]:
    turns: list[dict[str, Any]] = [{"role": "user", "content": "go", "x_key": 1}]
    for index in range(count):
        use = {"type": "tool_use", "id": f"toolu_{index}", "name": "f", "input": {}, "x_key": 2}
        result = {"type": "tool_result", "tool_use_id": f"toolu_{index}", "content": "ok", "x_key": 3}
        turns += [{"role": "assistant", "content": [use], "x_key": 4}, {"role": "user", "content": [result]}]
    return {"model": "claude-sonnet-4-5", "max_tokens": 5, "messages": turns}


def one_message(count: int) -> dict[str, Any]:
    """All in one message: what comes before a part must not be counted again for each."""
    calls = [
        {"id": f"call_{index}", "type": "function", "function": {"name": "f", "arguments": "{}"}, "x_key": 2}
        for index in range(count)
    ]
    results = [{"role": "tool", "tool_call_id": call["id"], "content": "ok"} for call in calls]
    turn = {"role": "assistant", "content": None, "tool_calls": calls}
    return {"model": "gpt-4o", "messages": [{"role": "user", "content": "go"}, turn, *results], "max_tokens": 5}


def seconds(body: bytes, source: str, target: str) -> tuple[float, float, int]:
    """Of a conversion and of its losses; the best of a few, because others share the machine."""
    best = [9.0, 9.0]
    count = 0
    for _ in range(4):
        start = process_time()
        encoded = dragoman.translate_request(body, source=source, target=target)
        middle = process_time()
        count = len(encoded.losses)
        best = [min(best[0], middle - start), min(best[1], process_time() - middle)]
    return best[0], best[1], count


@pytest.mark.parametrize(
    ("build", "source", "target"),
    [
        (chat, "openai-chat", "anthropic-messages"),
        (one_message, "openai-chat", "anthropic-messages"),
        (messages, "anthropic-messages", "openai-chat"),
    ],
)
def test_many_losses_cost_no_more_than_the_conversion(build: Any, source: str, target: str) -> None:
    body = json.dumps(build(1600)).encode()
    conversion, losses, count = seconds(body, source, target)
    assert count >= 1600
    assert losses <= 2 * conversion + 0.005
