"""Clients of each API: each appends an answer to its history in its own format, answers the calls, and asks again.

They echo what they received, extra keys included, without interpreting it.
"""

from collections.abc import Callable, Mapping
from typing import Any

Body = dict[str, Any]


def _chat(request: Body, answer: Body) -> Body:
    message = answer["choices"][0]["message"]
    results = [
        {"role": "tool", "tool_call_id": call["id"], "content": "done"} for call in message.get("tool_calls") or ()
    ]
    follow: list[Body] = results or [{"role": "user", "content": "go on"}]
    return {**request, "messages": [*request["messages"], message, *follow]}


def _messages(request: Body, answer: Body) -> Body:
    blocks = answer["content"]
    results = [
        {"type": "tool_result", "tool_use_id": block["id"], "content": "done"}
        for block in blocks
        if block["type"] == "tool_use"
    ]
    follow: Any = results or "go on"
    turns = [{"role": "assistant", "content": blocks}, {"role": "user", "content": follow}]
    return {**request, "messages": [*request["messages"], *turns]}


def _gemini(request: Body, answer: Body) -> Body:
    content = answer["candidates"][0]["content"]
    results: list[Body] = [
        {"functionResponse": {**_identity(part["functionCall"]), "response": {"output": "done"}}}
        for part in content["parts"]
        if "functionCall" in part
    ]
    parts: list[Body] = results or [{"text": "go on"}]
    follow = {"role": "user", "parts": parts}
    return {**request, "contents": [*request["contents"], content, follow]}


def _identity(call: Body) -> Body:
    return {key: call[key] for key in ("id", "name") if key in call}


def _ollama(request: Body, answer: Body) -> Body:
    message = answer["message"]
    results = [
        {
            "role": "tool",
            "tool_name": call["function"]["name"],
            "content": "done",
            **({"tool_call_id": call["id"]} if "id" in call else {}),
        }
        for call in message.get("tool_calls") or ()
    ]
    follow: list[Body] = results or [{"role": "user", "content": "go on"}]
    return {**request, "messages": [*request["messages"], message, *follow]}


def _cohere(request: Body, answer: Body) -> Body:
    """The vendor's documentation appends the message of the answer unchanged."""
    message = answer["message"]
    results = [
        {"role": "tool", "tool_call_id": call["id"], "content": "done"} for call in message.get("tool_calls") or ()
    ]
    follow: list[Body] = results or [{"role": "user", "content": "go on"}]
    return {**request, "messages": [*request["messages"], message, *follow]}


def _responses(request: Body, answer: Body) -> Body:
    """All items of the answer, in order, then the outputs; a bare text is one user message."""
    items = answer["output"]
    outputs = [
        {"type": "function_call_output", "call_id": item["call_id"], "output": "done"}
        for item in items
        if item["type"] == "function_call"
    ]
    follow: list[Body] = outputs or [{"role": "user", "content": "go on"}]
    return {**request, "input": [*request["input"], *items, *follow]}


def _converse(request: Body, answer: Body) -> Body:
    message = answer["output"]["message"]
    results: list[Body] = [
        {"toolResult": {"toolUseId": block["toolUse"]["toolUseId"], "content": [{"text": "done"}]}}
        for block in message["content"]
        if "toolUse" in block
    ]
    follow = {"role": "user", "content": results or [{"text": "go on"}]}
    return {**request, "messages": [*request["messages"], message, follow]}


def _interactions(request: Body, answer: Body) -> Body:
    """All steps of the answer, in order, then the results."""
    steps = answer["steps"]
    results = [
        {"type": "function_result", "call_id": step["id"], "name": step["name"], "result": "done"}
        for step in steps
        if step["type"] == "function_call"
    ]
    follow: list[Body] = results or [{"type": "user_input", "content": [{"type": "text", "text": "go on"}]}]
    return {**request, "input": [*request["input"], *steps, *follow]}


CONTINUE: Mapping[str, Callable[[Body, Body], Body]] = {
    "openai-chat": _chat,
    "openai-responses": _responses,
    "anthropic-messages": _messages,
    "gemini": _gemini,
    "vertex": _gemini,
    "bedrock-converse": _converse,
    "ollama-chat": _ollama,
    "cohere-chat": _cohere,
    "gemini-interactions": _interactions,
}

OPENING: Mapping[str, Body] = {
    "openai-chat": {
        "model": "some-model",
        "messages": [{"role": "user", "content": "go"}],
        "tools": [
            {
                "type": "function",
                "function": {"name": name, "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}}},
            }
            for name in ("f", "g")
        ],
    },
    "openai-responses": {
        "model": "some-model",
        "input": [{"role": "user", "content": "go"}],
        "tools": [
            {
                "type": "function",
                "name": name,
                "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}},
                "strict": False,
            }
            for name in ("f", "g")
        ],
    },
    "anthropic-messages": {
        "model": "some-model",
        "max_tokens": 1000,
        "messages": [{"role": "user", "content": "go"}],
        "tools": [
            {"name": name, "input_schema": {"type": "object", "properties": {"n": {"type": "integer"}}}}
            for name in ("f", "g")
        ],
    },
    "bedrock-converse": {
        "messages": [{"role": "user", "content": [{"text": "go"}]}],
        "toolConfig": {
            "tools": [
                {
                    "toolSpec": {
                        "name": name,
                        "inputSchema": {"json": {"type": "object", "properties": {"n": {"type": "integer"}}}},
                    }
                }
                for name in ("f", "g")
            ]
        },
    },
    "gemini": {
        "contents": [{"role": "user", "parts": [{"text": "go"}]}],
        "tools": [
            {
                "functionDeclarations": [
                    {"name": name, "parametersJsonSchema": {"type": "object", "properties": {"n": {"type": "integer"}}}}
                    for name in ("f", "g")
                ]
            }
        ],
    },
}
OPENING = {
    **OPENING,
    "vertex": OPENING["gemini"],
    "ollama-chat": OPENING["openai-chat"],
    "cohere-chat": OPENING["openai-chat"],
    "gemini-interactions": {
        "model": "some-model",
        "input": [{"type": "user_input", "content": [{"type": "text", "text": "go"}]}],
        "tools": [
            {
                "type": "function",
                "name": name,
                "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}},
            }
            for name in ("f", "g")
        ],
        "store": False,
    },
}
