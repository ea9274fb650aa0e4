"""Raw requests to the simulators: what no SDK would send, and what came back, byte for byte."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

from dragoman.sim.server import Simulator

Body = dict[str, Any]

SCHEMA: Body = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
TIMEOUT = 20


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True, slots=True)
class Door:
    """How one API is asked: where, with which headers, in which shape."""

    path: str
    streaming_path: str
    headers: Body
    # A question, with a tool for weather or without.
    ask: Callable[[str], Body]
    ask_with_tool: Callable[[str], Body]
    message_of: Callable[[Any], str]
    text_of: Callable[[Any], str]
    streams: Body = field(default_factory=dict)


def send(simulator: Simulator, path: str, body: object, headers: Body | None = None, method: str = "POST") -> Answer:
    parts = urlsplit(simulator.url)
    connection = HTTPConnection(parts.hostname or "", parts.port, timeout=TIMEOUT)
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    try:
        connection.request(method, path, raw, {"content-type": "application/json", **(headers or {})})
        response = connection.getresponse()
        received = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, received, response.read())
    finally:
        connection.close()


def ask(simulator: Simulator, door: Door, body: object, *, stream: bool = False, **headers: str) -> Answer:
    path = door.streaming_path if stream else door.path
    sent = {**body, **door.streams} if stream and isinstance(body, dict) else body
    return send(simulator, path, sent, {**door.headers, **{name.replace("_", "-"): it for name, it in headers.items()}})


def _chat(text: str) -> Body:
    return {"model": "gpt-4o", "messages": [{"role": "user", "content": text}]}


def _function() -> Body:
    return {"name": "get_weather", "description": "Weather of a city", "parameters": SCHEMA}


def _responses(text: str) -> Body:
    return {"model": "gpt-4o", "input": text}


def _messages(text: str) -> Body:
    return {"model": "claude-sonnet-5", "max_tokens": 2000, "messages": [{"role": "user", "content": text}]}


def _contents(text: str) -> Body:
    return {"contents": [{"role": "user", "parts": [{"text": text}]}]}


def _interactions(text: str) -> Body:
    content = [{"type": "text", "text": text}]
    return {"model": "gemini-3.6-flash", "input": [{"type": "user_input", "content": content}], "store": False}


def _ollama(text: str) -> Body:
    return {"model": "llama3.2", "stream": False, "messages": [{"role": "user", "content": text}]}


def _cohere(text: str) -> Body:
    return {"model": "command-a-03-2025", "stream": False, "messages": [{"role": "user", "content": text}]}


def _cohere_text(body: Any) -> str:
    return "".join(block.get("text", "") for block in body["message"].get("content", ()))


def _converse(text: str) -> Body:
    return {"messages": [{"role": "user", "content": [{"text": text}]}]}


def _declared() -> Body:
    function = _function()
    return {"functionDeclarations": [{**function, "parametersJsonSchema": SCHEMA} | {"parameters": None}]}


def _gemini_tool(text: str) -> Body:
    return {**_contents(text), "tools": [_declared()]}


def _texts(parts: list[Body]) -> str:
    return "".join(part.get("text", "") for part in parts if part.get("thought") is not True)


def _predict(text: str) -> Body:
    turns = [{"role": "user", "content": text}]
    return {"anthropic_version": "vertex-2023-10-16", "max_tokens": 2000, "messages": turns}


_CLAUDE_ON_VERTEX = "/v1/projects/p/locations/global/publishers/anthropic/models/claude-sonnet-4-5@20250929"
BEARER = {"authorization": "Bearer any-key"}
GOOGLE = Door(
    path="/v1beta/models/gemini-3.6-flash:generateContent",
    streaming_path="/v1beta/models/gemini-3.6-flash:streamGenerateContent?alt=sse",
    headers={"x-goog-api-key": "any-key"},
    ask=_contents,
    ask_with_tool=_gemini_tool,
    message_of=lambda body: body["error"]["message"],
    text_of=lambda body: _texts(body["candidates"][0]["content"]["parts"]),
)
_VERTEX = "/v1beta1/projects/p/locations/us-central1/publishers/google/models/gemini-3.6-flash"
_VERTEX_INTERACTIONS = "/v1beta1/projects/p/locations/global/interactions"
_AZURE = "/openai/deployments/gpt-4o/chat/completions?api-version=2026-06-01"
CHAT = Door(
    path="/v1/chat/completions",
    streaming_path="/v1/chat/completions",
    headers=BEARER,
    ask=_chat,
    ask_with_tool=lambda text: {**_chat(text), "tools": [{"type": "function", "function": _function()}]},
    message_of=lambda body: body["error"]["message"],
    text_of=lambda body: body["choices"][0]["message"]["content"],
    streams={"stream": True},
)
INTERACTIONS = Door(
    path="/v1beta/interactions",
    streaming_path="/v1beta/interactions",
    headers={"x-goog-api-key": "any-key"},
    ask=_interactions,
    ask_with_tool=lambda text: {**_interactions(text), "tools": [{"type": "function", **_function()}]},
    message_of=GOOGLE.message_of,
    text_of=lambda body: _texts([part for step in body["steps"] for part in step.get("content", [])]),
    streams={"stream": True},
)

DOORS: dict[str, Door] = {
    "openai-chat": CHAT,
    "azure-openai": replace(CHAT, path=_AZURE, streaming_path=_AZURE, headers={"api-key": "any-key"}),
    "openai-responses": Door(
        path="/v1/responses",
        streaming_path="/v1/responses",
        headers=BEARER,
        ask=_responses,
        ask_with_tool=lambda text: {
            **_responses(text),
            "tools": [{"type": "function", "strict": False, **_function()}],
        },
        message_of=lambda body: body["error"]["message"],
        text_of=lambda body: _texts([part for item in body["output"] for part in item.get("content", [])]),
        streams={"stream": True},
    ),
    "anthropic-messages": Door(
        path="/v1/messages",
        streaming_path="/v1/messages",
        headers={"x-api-key": "any-key", "anthropic-version": "2026-10-21"},
        ask=_messages,
        ask_with_tool=lambda text: {**_messages(text), "tools": [{"name": "get_weather", "input_schema": SCHEMA}]},
        message_of=lambda body: body["error"]["message"],
        text_of=lambda body: _texts(body["content"]),
        streams={"stream": True},
    ),
    "anthropic-vertex": Door(
        path=f"{_CLAUDE_ON_VERTEX}:rawPredict",
        streaming_path=f"{_CLAUDE_ON_VERTEX}:streamRawPredict",
        headers=BEARER,
        ask=_predict,
        ask_with_tool=lambda text: {**_predict(text), "tools": [{"name": "get_weather", "input_schema": SCHEMA}]},
        message_of=lambda body: body["error"]["message"],
        text_of=lambda body: _texts(body["content"]),
    ),
    "gemini": GOOGLE,
    "vertex": replace(
        GOOGLE,
        path=f"{_VERTEX}:generateContent",
        streaming_path=f"{_VERTEX}:streamGenerateContent?alt=sse",
        headers=BEARER,
    ),
    "gemini-interactions": INTERACTIONS,
    "vertex-interactions": replace(
        INTERACTIONS, path=_VERTEX_INTERACTIONS, streaming_path=_VERTEX_INTERACTIONS, headers=BEARER
    ),
    "ollama-chat": Door(
        path="/api/chat",
        streaming_path="/api/chat",
        headers={},
        ask=_ollama,
        ask_with_tool=lambda text: {**_ollama(text), "tools": [{"type": "function", "function": _function()}]},
        message_of=lambda body: body["error"],
        text_of=lambda body: body["message"]["content"],
        streams={"stream": True},
    ),
    "cohere-chat": Door(
        path="/v2/chat",
        streaming_path="/v2/chat",
        headers=BEARER,
        ask=_cohere,
        ask_with_tool=lambda text: {**_cohere(text), "tools": [{"type": "function", "function": _function()}]},
        message_of=lambda body: body["message"],
        text_of=_cohere_text,
        streams={"stream": True},
    ),
    "bedrock-converse": Door(
        path="/model/amazon.nova-lite-v1%3A0/converse",
        streaming_path="/model/amazon.nova-lite-v1%3A0/converse-stream",
        headers=BEARER,
        ask=_converse,
        ask_with_tool=lambda text: {
            **_converse(text),
            "toolConfig": {"tools": [{"toolSpec": {"name": "get_weather", "inputSchema": {"json": SCHEMA}}}]},
        },
        message_of=lambda body: body["message"],
        text_of=lambda body: _texts(body["output"]["message"]["content"]),
    ),
}
