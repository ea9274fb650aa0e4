"""Clients of each API: each appends an answer to its history as it came, answers the calls, and asks again.

Vendors want their signatures back. A client of another format has no field for them but returns what it was given, so
the signatures must survive in that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dragoman.ir.values import encode_json, parse_json

Json = dict[str, Any]


def next_request(answer: bytes, format: str, model: str) -> bytes:
    """The request that a client of this format sends after the answer."""
    return encode_json(CONTINUE[format](_OPENING[format](model), parse_json(answer)))


def _chat(request: Json, answer: Json) -> Json:
    return _append_message(request, answer["choices"][0]["message"])


def _append_message(request: Json, message: Json) -> Json:
    results = [
        {"role": "tool", "tool_call_id": call["id"], "content": "done"} for call in message.get("tool_calls") or ()
    ]
    follow: list[Json] = results or [{"role": "user", "content": "go on"}]
    return {**request, "messages": [*request["messages"], message, *follow]}


def _messages(request: Json, answer: Json) -> Json:
    blocks = answer["content"]
    results = [
        {"type": "tool_result", "tool_use_id": block["id"], "content": "done"}
        for block in blocks
        if block["type"] == "tool_use"
    ]
    follow: Any = results or "go on"
    turns = [{"role": "assistant", "content": blocks}, {"role": "user", "content": follow}]
    return {**request, "messages": [*request["messages"], *turns]}


def _gemini(request: Json, answer: Json) -> Json:
    content = answer["candidates"][0]["content"]
    results: list[Json] = [
        {"functionResponse": {**_identity(part["functionCall"]), "response": {"output": "done"}}}
        for part in content["parts"]
        if "functionCall" in part
    ]
    parts: list[Json] = results or [{"text": "go on"}]
    follow = {"role": "user", "parts": parts}
    return {**request, "contents": [*request["contents"], content, follow]}


def _identity(call: Json) -> Json:
    return {key: call[key] for key in ("id", "name") if key in call}


def _ollama(request: Json, answer: Json) -> Json:
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
    follow: list[Json] = results or [{"role": "user", "content": "go on"}]
    return {**request, "messages": [*request["messages"], message, *follow]}


def _cohere(request: Json, answer: Json) -> Json:
    """The vendor's documentation appends the message of the answer unchanged."""
    return _append_message(request, answer["message"])


def _responses(request: Json, answer: Json) -> Json:
    """All items of the answer, in order, then the outputs; a bare text is one user message."""
    items = answer["output"]
    outputs = [
        {"type": "function_call_output", "call_id": item["call_id"], "output": "done"}
        for item in items
        if item["type"] == "function_call"
    ]
    follow: list[Json] = outputs or [{"role": "user", "content": "go on"}]
    return {**request, "input": [*request["input"], *items, *follow]}


def _converse(request: Json, answer: Json) -> Json:
    message = answer["output"]["message"]
    results: list[Json] = [
        {"toolResult": {"toolUseId": block["toolUse"]["toolUseId"], "content": [{"text": "done"}]}}
        for block in message["content"]
        if "toolUse" in block
    ]
    follow = {"role": "user", "content": results or [{"text": "go on"}]}
    return {**request, "messages": [*request["messages"], message, follow]}


def _interactions(request: Json, answer: Json) -> Json:
    """All steps of the answer, in order, then the results."""
    steps = answer["steps"]
    results = [
        {"type": "function_result", "call_id": step["id"], "name": step["name"], "result": "done"}
        for step in steps
        if step["type"] == "function_call"
    ]
    follow: list[Json] = results or [{"type": "user_input", "content": [{"type": "text", "text": "go on"}]}]
    return {**request, "input": [*request["input"], *steps, *follow]}


CONTINUE: Mapping[str, Callable[[Json, Json], Json]] = {
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

_NAMES = ("get_weather", "get_time")
_PARAMETERS: Json = {"type": "object", "properties": {"city": {"type": "string"}}}
_FUNCTIONS = [{"name": name, "parameters": _PARAMETERS} for name in _NAMES]


def _open_chat(model: str) -> Json:
    tools = [{"type": "function", "function": function} for function in _FUNCTIONS]
    return {"model": model, "messages": [{"role": "user", "content": "go"}], "tools": tools}


def _open_gemini(_model: str) -> Json:
    contents = [{"role": "user", "parts": [{"text": "go"}]}]
    return {"contents": contents, "tools": [{"functionDeclarations": _FUNCTIONS}]}


_OPENING: Mapping[str, Callable[[str], Json]] = {
    "openai-chat": _open_chat,
    "ollama-chat": _open_chat,
    "cohere-chat": _open_chat,
    "openai-responses": lambda model: {
        "model": model,
        "input": [{"role": "user", "content": "go"}],
        "tools": [{"type": "function", **function, "strict": False} for function in _FUNCTIONS],
    },
    "anthropic-messages": lambda model: {
        "model": model,
        "max_tokens": 4000,
        "messages": [{"role": "user", "content": "go"}],
        "tools": [{"name": name, "input_schema": _PARAMETERS} for name in _NAMES],
    },
    "gemini": _open_gemini,
    "vertex": _open_gemini,
    "bedrock-converse": lambda _model: {
        "messages": [{"role": "user", "content": [{"text": "go"}]}],
        "toolConfig": {
            "tools": [{"toolSpec": {"name": name, "inputSchema": {"json": _PARAMETERS}}} for name in _NAMES],
        },
    },
    "gemini-interactions": lambda model: {
        "model": model,
        "input": [{"type": "user_input", "content": [{"type": "text", "text": "go"}]}],
        "tools": [{"type": "function", **function} for function in _FUNCTIONS],
        "store": False,
    },
}
