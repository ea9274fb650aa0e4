"""The OpenAPI description of the gateway, which it serves at `/openapi.json`.

Vendors document the bodies of their formats; here they are plain objects, tagged with the name of the format.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from dragoman import __version__
from dragoman.gateway.endpoints import Operation

_VARIABLE = re.compile(r"{(\w+)}")


class Described(Struct, frozen=True):
    """One path and its operation in `endpoints.py`."""

    method: str
    path: str
    operation: Operation
    summary: str
    format: str = ""
    """The format of the bodies, if they are those of a vendor's API."""


_GENERATE = "Generate an answer"
_BATCH = "Start a batch of requests"
_EMBED = "Embed texts"
_COUNT = "Count the tokens of a request"
_VERTEX = "/v1/projects/{project}/locations/{location}"
_PASSED: tuple[tuple[str, str, str, str], ...] = (
    ("POST", "/v1/images/generations", "Generate an image", "openai-chat"),
    ("POST", "/v1/images/edits", "Edit an image", "openai-chat"),
    ("POST", "/v1/images/variations", "Generate variations of an image", "openai-chat"),
    ("POST", "/v1/audio/speech", "Convert text to speech", "openai-chat"),
    ("POST", "/v1/audio/transcriptions", "Transcribe audio", "openai-chat"),
    ("POST", "/v1/audio/translations", "Translate audio into English text", "openai-chat"),
    ("POST", "/v1/moderations", "Classify a text", "openai-chat"),
    ("POST", "/v1/rerank", "Rank documents for a query", "openai-chat"),
    ("POST", "/v2/rerank", "Rank documents for a query", "cohere-chat"),
    ("POST", "/v1/files", "Upload a file", "openai-chat"),
    ("GET", "/v1/files", "List files of the caller's key", "openai-chat"),
    ("GET", "/v1/files/{id}", "Get a file's metadata", "openai-chat"),
    ("DELETE", "/v1/files/{id}", "Delete a file", "openai-chat"),
    ("GET", "/v1/files/{id}/content", "Get a file's content", "openai-chat"),
    ("POST", "/v1/uploads", "Start an upload in parts", "openai-chat"),
    ("POST", "/v1/fine_tuning/jobs", "Start a fine-tuning job", "openai-chat"),
    ("GET", "/v1/fine_tuning/jobs", "List fine-tuning jobs of the caller's key", "openai-chat"),
    ("GET", "/v1/fine_tuning/jobs/{id}", "Get a fine-tuning job", "openai-chat"),
    ("POST", "/upload/v1beta/files", "Upload a file", "gemini"),
    ("GET", "/v1beta/files", "List files of the caller's key", "gemini"),
    ("GET", "/v1beta/files/{id}", "Get a file's metadata", "gemini"),
    ("DELETE", "/v1beta/files/{id}", "Delete a file", "gemini"),
    ("POST", "/v1beta/cachedContents", "Cache contents", "gemini"),
    ("GET", "/v1beta/cachedContents", "List cached contents of the caller's key", "gemini"),
    ("GET", "/v1beta/cachedContents/{id}", "Get cached contents", "gemini"),
    ("PATCH", "/v1beta/cachedContents/{id}", "Change the expiry of cached contents", "gemini"),
    ("DELETE", "/v1beta/cachedContents/{id}", "Delete cached contents", "gemini"),
)
"""Method, path, summary and format of endpoints whose bytes pass unchanged."""
DESCRIBED: tuple[Described, ...] = (
    *(Described(method, path, "pass", summary, format) for method, path, summary, format in _PASSED),
    Described("GET", "/health", "health", "State of the gateway and of each upstream that it has called"),
    Described("GET", "/ready", "ready", "Readiness: whether a load balancer should send requests here"),
    Described("GET", "/metrics", "metrics", "Metrics for Prometheus"),
    Described("POST", "/mcp", "mcp", "The gateway as an MCP server (streamable HTTP), where `mcp.serve` is set"),
    Described("GET", "/openapi.json", "openapi", "This description"),
    Described("GET", "/", "front", "The page in a browser, or a line of text if the page is disabled"),
    Described("GET", "/v1/models", "models", "List models that the caller's key may use", "openai-chat"),
    Described("GET", "/v1/models/{model}", "model", "Get a model", "openai-chat"),
    Described("POST", "/v1/chat/completions", "generate", _GENERATE, "openai-chat"),
    Described("POST", "/v1/completions", "generate", "Complete one prompt", "openai-chat"),
    Described("POST", "/v1/responses", "generate", _GENERATE, "openai-responses"),
    Described("POST", "/v1/responses/input_tokens", "count", _COUNT, "openai-responses"),
    Described("POST", "/v1/responses/compact", "compact", "Summarise a conversation", "openai-responses"),
    Described("GET", "/v1/responses/{id}", "response", "Get a stored response", "openai-responses"),
    Described("DELETE", "/v1/responses/{id}", "delete_response", "Delete a stored response", "openai-responses"),
    Described(
        "GET",
        "/v1/responses/{id}/input_items",
        "input_items",
        "List the input items of a stored response",
        "openai-responses",
    ),
    Described("POST", "/v1/responses/{id}/cancel", "cancel_response", "Cancel a response", "openai-responses"),
    Described("POST", "/v1/conversations", "create_conversation", "Create a conversation", "openai-responses"),
    Described("GET", "/v1/conversations/{id}", "conversation", "Get a conversation", "openai-responses"),
    Described(
        "POST",
        "/v1/conversations/{id}",
        "update_conversation",
        "Change the metadata of a conversation",
        "openai-responses",
    ),
    Described("DELETE", "/v1/conversations/{id}", "delete_conversation", "Delete a conversation", "openai-responses"),
    Described("GET", "/v1/conversations/{id}/items", "conversation_items", "List items", "openai-responses"),
    Described("POST", "/v1/conversations/{id}/items", "create_items", "Add items", "openai-responses"),
    Described("GET", "/v1/conversations/{id}/items/{item}", "conversation_item", "Get an item", "openai-responses"),
    Described("DELETE", "/v1/conversations/{id}/items/{item}", "delete_item", "Delete an item", "openai-responses"),
    Described("POST", "/v1/batches", "pass", _BATCH, "openai-chat"),
    Described("GET", "/v1/batches/{id}", "pass", "Get a batch", "openai-chat"),
    Described("POST", "/v1/batches/{id}/cancel", "pass", "Cancel a batch", "openai-chat"),
    Described("POST", "/v1/messages", "generate", _GENERATE, "anthropic-messages"),
    Described("POST", "/v1/messages/batches", "pass", _BATCH, "anthropic-messages"),
    Described("GET", "/v1/messages/batches/{id}", "pass", "Get a batch", "anthropic-messages"),
    Described("GET", "/v1/messages/batches/{id}/results", "pass", "Get the results of a batch", "anthropic-messages"),
    Described("POST", "/v1/messages/batches/{id}/cancel", "pass", "Cancel a batch", "anthropic-messages"),
    Described("POST", "/v1/messages/count_tokens", "count", _COUNT, "anthropic-messages"),
    Described("POST", "/v1beta/models/{model}:generateContent", "generate", _GENERATE, "gemini"),
    Described("POST", "/v1beta/models/{model}:streamGenerateContent", "generate", f"{_GENERATE}, streamed", "gemini"),
    Described("POST", "/v1beta/models/{model}:countTokens", "count", _COUNT, "gemini"),
    Described("POST", "/v1beta/models/{model}:batchGenerateContent", "pass", _BATCH, "gemini"),
    Described("GET", "/v1beta/batches/{id}", "pass", "Get a batch", "gemini"),
    Described("POST", "/v1beta/interactions", "generate", _GENERATE, "gemini-interactions"),
    Described("GET", "/v1beta/interactions/{id}", "interaction", "Get a stored interaction", "gemini-interactions"),
    Described(
        "DELETE", "/v1beta/interactions/{id}", "delete_interaction", "Delete an interaction", "gemini-interactions"
    ),
    Described(
        "POST", "/v1beta/interactions/{id}/cancel", "cancel_interaction", "Cancel an interaction", "gemini-interactions"
    ),
    Described("POST", f"{_VERTEX}/publishers/google/models/{{model}}:generateContent", "generate", _GENERATE, "vertex"),
    Described("POST", "/model/{model}/converse", "generate", _GENERATE, "bedrock-converse"),
    Described("POST", "/model/{model}/converse-stream", "generate", f"{_GENERATE}, streamed", "bedrock-converse"),
    Described("POST", "/model/{model}/count-tokens", "count", _COUNT, "bedrock-converse"),
    Described("POST", "/model/{model}/invoke", "generate", f"{_GENERATE} (Claude on Bedrock)", "anthropic-messages"),
    Described("POST", "/v1/embeddings", "embed", _EMBED, "openai-chat"),
    Described("POST", "/v1beta/models/{model}:embedContent", "embed", _EMBED, "gemini"),
    Described("POST", "/v1beta/models/{model}:batchEmbedContents", "embed", _EMBED, "gemini"),
    Described("POST", f"{_VERTEX}/publishers/google/models/{{model}}:predict", "embed", _EMBED, "vertex"),
    Described("POST", "/api/embed", "embed", _EMBED, "ollama-chat"),
    Described("POST", "/api/embeddings", "embed", "Embed one text", "ollama-chat"),
    Described("POST", "/v2/embed", "embed", _EMBED, "cohere-chat"),
    Described("POST", "/v2/chat", "generate", _GENERATE, "cohere-chat"),
    Described("POST", "/api/chat", "generate", _GENERATE, "ollama-chat"),
    Described("POST", "/api/generate", "generate", "Complete one prompt", "ollama-chat"),
    Described("GET", "/api/tags", "tags", "List models", "ollama-chat"),
    Described("GET", "/api/ps", "running", "List loaded models", "ollama-chat"),
    Described("POST", "/api/show", "show", "Get capabilities of a model", "ollama-chat"),
    Described("GET", "/api/version", "version", "The version of the Ollama API", "ollama-chat"),
)
_OPEN: frozenset[Operation] = frozenset({"health", "ready", "openapi", "front", "version"})
"""Operations that need no key."""
_TEXT: frozenset[Operation] = frozenset({"metrics", "front"})
_STATUS = {"type": "string", "enum": ["healthy", "unhealthy"]}
_COUNTS = {"type": "object", "additionalProperties": {"type": "integer"}}
_SCHEMAS: dict[str, Any] = {
    "Object": {"type": "object"},
    "Ready": {
        "type": "object",
        "required": ["status"],
        "properties": {"status": _STATUS, "problem": {"type": "string"}},
    },
    "Health": {
        "type": "object",
        "required": ["status", "in_flight", "upstreams"],
        "properties": {
            "status": _STATUS,
            "problem": {"type": "string", "description": "Why the gateway is unhealthy"},
            "in_flight": {"type": "integer", "description": "Requests in progress"},
            "workers": {"type": "integer", "description": "Processes that share the port"},
            "unrecorded": {**_COUNTS, "description": "Counts of usage records and log lines that could not be written"},
            "upstreams": {
                "type": "object",
                "additionalProperties": {
                    "type": "object",
                    "required": ["status", "breaker"],
                    "properties": {
                        "status": _STATUS,
                        "breaker": {"type": "string", "enum": ["closed", "half-open", "open"]},
                    },
                },
            },
        },
    },
}
_ANSWERS: dict[Operation, str] = {"health": "Health", "ready": "Ready"}
_HEADERS = {
    "x-request-id": "Request id, as in the log",
    "x-dragoman-upstream": "Provider and model that answered",
    "x-dragoman-losses": "Number of losses of the conversion; absent if there are none",
    "x-dragoman-lost": "The first five losses",
    "x-dragoman-cache": "Result of the response cache: hit, miss or bypass; absent without a cache",
    "age": "With a cache hit: seconds since the answer was generated",
    "x-dragoman-cost": "Cost of the answer; only if a price is known and the answer is not streamed",
}


def description() -> dict[str, Any]:
    paths: dict[str, dict[str, Any]] = {}
    for row in DESCRIBED:
        paths.setdefault(row.path, {})[row.method.lower()] = _operation(row)
    schemes = {
        "bearer": {"type": "http", "scheme": "bearer"},
        "x-api-key": {"type": "apiKey", "in": "header", "name": "x-api-key"},
        "x-goog-api-key": {"type": "apiKey", "in": "header", "name": "x-goog-api-key"},
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "dragoman gateway",
            "version": __version__,
            "description": "Any client in, any model out: each vendor's endpoints, at its own paths.",
            "license": {"name": "Apache 2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {"schemas": _SCHEMAS, "securitySchemes": schemes},
        "security": [{name: []} for name in schemes],
    }


def _operation(row: Described) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "summary": row.summary,
        "operationId": _operation_id(row),
        "tags": [row.format or "gateway"],
    }
    if variables := _VARIABLE.findall(row.path):
        operation["parameters"] = [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in variables
        ]
    if row.method == "POST":
        operation["requestBody"] = {"required": True, "content": _json("Object")}
    if row.operation in _OPEN:
        operation["security"] = []
    operation["responses"] = dict(_responses(row))
    return operation


def _operation_id(row: Described) -> str:
    words = re.findall(r"\w+", row.path)
    return "_".join([row.method.lower(), *words]) if words else f"{row.method.lower()}_root"


def _responses(row: Described) -> Iterator[tuple[str, Any]]:
    answer: dict[str, Any] = {"description": "An answer in the vendor's format" if row.format else row.summary}
    if row.operation in _TEXT:
        answer["content"] = {"text/plain": {"schema": {"type": "string"}}}
    else:
        answer["content"] = _json(_ANSWERS.get(row.operation, "Object"))
    if row.operation == "generate":
        answer["content"]["text/event-stream"] = {"schema": {"type": "string"}}
        answer["headers"] = {
            name: {"description": words, "schema": {"type": "string"}} for name, words in _HEADERS.items()
        }
    yield "200", answer
    if row.operation == "ready":
        yield "503", {"description": "The key database cannot be reached", "content": _json("Ready")}
    elif row.operation not in _OPEN:
        yield "default", {"description": "An error in the client's format", "content": _json("Object")}


def _json(schema: str) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}}
