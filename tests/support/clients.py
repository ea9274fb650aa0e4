"""The first requests of clients that echo what they received (`dragoman.fidelity.echo.CONTINUE`)."""

from collections.abc import Mapping
from typing import Any

Body = dict[str, Any]

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
