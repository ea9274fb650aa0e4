"""What only the newest SDKs know survives its own format exactly, and is reported everywhere else."""

from typing import Any

import pytest

import dragoman
from tests.support.cases import each
from tests.support.formats import FAMILY, FORMATS
from tests.support.promises import promise

USER = {"role": "user", "content": "Hello"}
TRIGGER = {"type": "refusal", "category": None}
ADVICE = [
    {"type": "server_tool_use", "id": "srvtoolu_1", "name": "advisor", "input": {}},
    {
        "type": "advisor_tool_result",
        "tool_use_id": "srvtoolu_1",
        "content": {"type": "advisor_result", "text": "Think again."},
    },
    {"type": "text", "text": "I did."},
]
FALLBACK = [
    {"type": "text", "text": "One."},
    {"type": "fallback", "from": {"model": "claude-a"}, "to": {"model": "claude-b"}, "trigger": TRIGGER},
    {"type": "text", "text": "Two."},
]
MESSAGES: dict[str, dict[str, Any]] = {
    "browser toolset": {"tools": [{"type": "browser_toolset_20260801", "configs": {"navigate": {"enabled": False}}}]},
    "computer toolset": {"tools": [{"type": "computer_toolset_20260801", "configs": {}}]},
    "advisor": {"tools": [{"type": "advisor_20260301", "name": "advisor", "model": "claude-opus-5"}]},
    "advice": {"messages": [USER, {"role": "assistant", "content": ADVICE}, USER]},
    "fallbacks": {"fallbacks": [{"model": "claude-b", "max_tokens": 10}]},
    "fallback block": {"messages": [USER, {"role": "assistant", "content": FALLBACK}, USER]},
    "thread": {"thread": {"type": "continue", "previous_message_id": "msg_1"}},
}
RESPONSES: dict[str, dict[str, Any]] = {
    "configuration_update": {
        "input": [
            {"role": "user", "content": "Hello"},
            {"type": "configuration_update", "id": "cu_1", "reasoning": {"effort": "high"}},
        ]
    },
}
CASES = [
    *(
        ("anthropic-messages", name, {"model": "m", "max_tokens": 9, "messages": [USER]} | body)
        for name, body in MESSAGES.items()
    ),
    *(("openai-responses", name, {"model": "m", "input": "Hello"} | body) for name, body in RESPONSES.items()),
]
IDS = [name for _, name, _ in CASES]


@promise("law:1-identity")
@pytest.mark.parametrize(("source", "name", "body"), CASES, ids=IDS)
def test_new_blocks_survive_their_own_format(source: str, name: str, body: dict[str, Any]) -> None:
    encoded = dragoman.translate_request(body, source=source, target=source)
    assert (encoded.body, encoded.losses) == (body, ()), name


@promise("law:2-nothing-vanishes")
@each("target", FORMATS)
@each(("source", "name", "body"), CASES, ids=IDS)
def test_new_blocks_are_reported_elsewhere(source: str, name: str, body: dict[str, Any], target: str) -> None:
    if FAMILY[target] == FAMILY[source]:
        return
    assert dragoman.translate_request(body, source=source, target=target).losses, name
