"""A client that returns everything unchanged: its next request, with the answer in it.

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
    return encode_json(_NEXT[format](parse_json(answer), model))


def _parameters() -> Json:
    return {"type": "object", "properties": {"city": {"type": "string"}}}


_TOOL_NAMES = ("get_weather", "get_time")


def _chat_request(model: str, message: Json, results: list[Json]) -> Json:
    functions = [{"name": name, "parameters": _parameters()} for name in _TOOL_NAMES]
    return {
        "model": model,
        "messages": [{"role": "user", "content": "Go."}, message, *(results or [{"role": "user", "content": "On."}])],
        "tools": [{"type": "function", "function": function} for function in functions],
    }


def _chat(answer: Json, model: str) -> Json:
    message = answer["choices"][0]["message"]
    results = [
        {"role": "tool", "tool_call_id": call["id"], "content": "done"} for call in message.get("tool_calls") or ()
    ]
    return _chat_request(model, message, results)


def _responses(answer: Json, model: str) -> Json:
    items = answer["output"]
    outputs = [
        {"type": "function_call_output", "call_id": item["call_id"], "output": "done"}
        for item in items
        if item["type"] == "function_call"
    ]
    tools = [{"type": "function", "name": name, "parameters": _parameters(), "strict": False} for name in _TOOL_NAMES]
    follow = outputs or [{"role": "user", "content": "On."}]
    return {"model": model, "input": [{"role": "user", "content": "Go."}, *items, *follow], "tools": tools}


def _messages(answer: Json, model: str) -> Json:
    blocks = answer["content"]
    results = [
        {"type": "tool_result", "tool_use_id": block["id"], "content": "done"}
        for block in blocks
        if block["type"] == "tool_use"
    ]
    turns = [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": blocks},
        {"role": "user", "content": results or "On."},
    ]
    tools = [{"name": name, "input_schema": _parameters()} for name in _TOOL_NAMES]
    return {"model": model, "max_tokens": 4000, "messages": turns, "tools": tools}


def _gemini(answer: Json, _model: str) -> Json:
    content = answer["candidates"][0]["content"]
    called = [part["functionCall"] for part in content["parts"] if "functionCall" in part]
    results: list[Json] = [{"functionResponse": {**_identity(call), "response": {"output": "done"}}} for call in called]
    contents = [
        {"role": "user", "parts": [{"text": "Go."}]},
        content,
        {"role": "user", "parts": results or [{"text": "On."}]},
    ]
    declarations = [{"name": name, "parameters": _parameters()} for name in _TOOL_NAMES]
    return {"contents": contents, "tools": [{"functionDeclarations": declarations}]}


def _identity(call: Json) -> Json:
    return {key: call[key] for key in ("id", "name") if key in call}


def _converse(answer: Json, _model: str) -> Json:
    message = answer["output"]["message"]
    results: list[Json] = [
        {"toolResult": {"toolUseId": block["toolUse"]["toolUseId"], "content": [{"text": "done"}]}}
        for block in message["content"]
        if "toolUse" in block
    ]
    turns = [
        {"role": "user", "content": [{"text": "Go."}]},
        message,
        {"role": "user", "content": results or [{"text": "On."}]},
    ]
    tools = [{"toolSpec": {"name": name, "inputSchema": {"json": _parameters()}}} for name in _TOOL_NAMES]
    return {"messages": turns, "toolConfig": {"tools": tools}}


def _ollama(answer: Json, model: str) -> Json:
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
    return _chat_request(model, message, results)


def _cohere(answer: Json, model: str) -> Json:
    message = answer["message"]
    results = [
        {"role": "tool", "tool_call_id": call["id"], "content": "done"} for call in message.get("tool_calls") or ()
    ]
    return _chat_request(model, message, results)


def _interactions(answer: Json, model: str) -> Json:
    steps = answer["steps"]
    results: list[Json] = [
        {"type": "function_result", "call_id": step["id"], "name": step["name"], "result": "done"}
        for step in steps
        if step["type"] == "function_call"
    ]
    follow: list[Json] = results or [{"type": "user_input", "content": [{"type": "text", "text": "On."}]}]
    return {
        "model": model,
        "input": [{"type": "user_input", "content": [{"type": "text", "text": "Go."}]}, *steps, *follow],
        "tools": [{"type": "function", "name": name, "parameters": _parameters()} for name in _TOOL_NAMES],
        "store": False,
    }


_NEXT: Mapping[str, Callable[[Json, str], Json]] = {
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
