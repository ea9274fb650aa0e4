"""The endpoints of the gateway: maps methods and paths to operations and formats."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, TypeAlias
from urllib.parse import unquote

from msgspec import Struct

from dragoman.gateway.http_request import Head, is_websocket
from dragoman.gateway.passed_endpoints import Passed, is_passed, match_passed

Operation: TypeAlias = Literal[
    "generate",
    "count",
    "models",
    "model",
    "tags",
    "running",
    "show",
    "version",
    "response",
    "delete_response",
    "input_items",
    "cancel_response",
    "interaction",
    "delete_interaction",
    "cancel_interaction",
    "compact",
    "websocket",
    "create_conversation",
    "conversation",
    "update_conversation",
    "delete_conversation",
    "conversation_items",
    "create_items",
    "conversation_item",
    "delete_item",
    "health",
    "ready",
    "openapi",
    "metrics",
    "front",
    "pass",
    "embed",
    "realtime",
    "mcp",
    "preflight",
    "none",
    "method",
]


class Endpoint(Struct, frozen=True):
    """The operation that a request asks for, derived from its request line and headers."""

    format: str
    operation: Operation
    model: str = ""
    """The model, if the path names it."""
    stream: bool | None = None
    """Whether to stream, if the path determines it."""
    id: str = ""
    version: str = ""
    item: str = ""
    adapter: str = ""
    """An adapter of `adapted_exchange`, if bodies have another envelope than the format's own."""
    passed: Passed | None = None
    """The row of an endpoint whose bytes pass unchanged."""
    path: str = ""
    """For passed endpoints and embeddings: the path after the base URL of a provider."""
    dialect: str = ""
    """The dialect of `dragoman.embeddings` or of a realtime API."""


_PATHS: tuple[tuple[str, tuple[str, ...], str, Operation], ...] = (
    (
        "POST",
        # OpenAI's own; Azure's newer address; Gemini's for clients of OpenAI.
        ("/v1/chat/completions", "/chat/completions", "/openai/v1/chat/completions", "/v1beta/openai/chat/completions"),
        "openai-chat",
        "generate",
    ),
    ("GET", ("/openai/v1/models", "/openai/models", "/v1beta/openai/models"), "openai-chat", "models"),
    ("POST", ("/v1/responses", "/responses"), "openai-responses", "generate"),
    ("POST", ("/v1/responses/input_tokens",), "openai-responses", "count"),
    ("POST", ("/v1/responses/compact", "/responses/compact"), "openai-responses", "compact"),
    ("POST", ("/v1/conversations",), "openai-responses", "create_conversation"),
    (
        "POST",
        ("/v1beta/interactions", "/v1/interactions", "/v1alpha/interactions", "/v1beta1/interactions"),
        "gemini-interactions",
        "generate",
    ),
    ("POST", ("/v1/messages", "/messages"), "anthropic-messages", "generate"),
    ("POST", ("/v1/messages/count_tokens",), "anthropic-messages", "count"),
    # vLLM serves the same format under /cohere.
    ("POST", ("/v2/chat", "/cohere/v2/chat"), "cohere-chat", "generate"),
    ("POST", ("/api/chat",), "ollama-chat", "generate"),
    ("GET", ("/api/tags",), "ollama-chat", "tags"),
    ("GET", ("/api/ps",), "ollama-chat", "running"),
    ("POST", ("/api/show",), "ollama-chat", "show"),
    ("GET", ("/api/version",), "ollama-chat", "version"),
    ("POST", ("/mcp",), "openai-chat", "mcp"),
    ("GET", ("/health", "/healthz"), "openai-chat", "health"),
    ("GET", ("/ready", "/readyz"), "openai-chat", "ready"),
    ("GET", ("/openapi.json",), "openai-chat", "openapi"),
    ("GET", ("/metrics",), "openai-chat", "metrics"),
    ("GET", ("/",), "ollama-chat", "front"),
    ("HEAD", ("/",), "ollama-chat", "front"),
)
_ADAPTED: tuple[tuple[tuple[str, ...], str, str], ...] = (
    (("/v1/completions", "/completions", "/openai/v1/completions"), "openai-chat", "completion"),
    (("/api/generate",), "ollama-chat", "ollama-generate"),
)
"""Paths of bodies in another envelope, the format inside, and the adapter."""
_PLAIN: Mapping[tuple[str, str], Endpoint] = {
    (method, path): Endpoint(format, operation) for method, paths, format, operation in _PATHS for path in paths
} | {
    ("POST", path): Endpoint(format, "generate", adapter=adapter)
    for paths, format, adapter in _ADAPTED
    for path in paths
}
_RESPONSES = re.compile(r"(?:/openai)?(?:/v1)?/responses")
_MODELS = frozenset({"/v1/models", "/models", "/v1beta/models", "/v1alpha/models"})

_GOOGLE_METHODS = r"(?P<method>generateContent|streamGenerateContent|countTokens)"
_PROJECT = r"(?:projects/[^/]+/locations/[^/]+/)"
_INTERACTIONS = rf"/v1(?:beta|alpha|beta1)?/{_PROJECT}?interactions"
# Google's SDK asks for `openai/gpt-5` as a model of the publisher openai.
_PUBLISHER = r"publishers/(?:google|(?P<publisher>[^/]+))"
_OPERATION_OF: Mapping[str, tuple[Operation, bool]] = {
    "generateContent": ("generate", False),
    "streamGenerateContent": ("generate", True),
    "countTokens": ("count", False),
    "rawPredict": ("generate", False),
    "streamRawPredict": ("generate", True),
    "converse": ("generate", False),
    "converse-stream": ("generate", True),
    "count-tokens": ("count", False),
    "invoke": ("generate", False),
    "invoke-with-response-stream": ("generate", True),
}


_EMBEDDING: tuple[tuple[str, str, str, str], ...] = (
    (r"/(?:openai/)?(?:v1/)?embeddings|/v1beta/openai/embeddings", "openai-chat", "openai", "/embeddings"),
    (r"/openai/deployments/(?P<model>[^/]+)/embeddings", "openai-chat", "openai", "/embeddings"),
    (r"/api/embed", "ollama-chat", "ollama", "/api/embed"),
    (r"/api/embeddings", "ollama-chat", "ollama", "/api/embeddings"),
    (r"/v2/embed", "cohere-chat", "cohere", "/v2/embed"),
    (
        r"/(?:v1|v1beta|v1alpha)/models/(?P<model>.+):embedContent",
        "gemini",
        "gemini",
        "/v1beta/models/{model}:embedContent",
    ),
    (
        r"/(?:v1|v1beta|v1alpha)/models/(?P<model>.+):batchEmbedContents",
        "gemini",
        "gemini",
        "/v1beta/models/{model}:batchEmbedContents",
    ),
    (
        rf"/(?:v1|v1beta1)/{_PROJECT}?{_PUBLISHER}/models/(?P<model>.+):embedContent",
        "vertex",
        "vertex",
        "/v1/publishers/google/models/{model}:embedContent",
    ),
    (
        rf"/(?:v1|v1beta1)/{_PROJECT}?{_PUBLISHER}/models/(?P<model>.+):predict",
        "vertex",
        "vertex",
        "/v1/publishers/google/models/{model}:predict",
    ),
    # Bedrock has one path for all models: embedding models are recognised by their names.
    (r"/model/(?P<model>[^/]*embed[^/]*)/invoke", "bedrock-converse", "bedrock", "/model/{model}/invoke"),
)
"""Paths of embeddings, the client's format, its dialect, and the path after a provider's base URL."""
_EMBEDDINGS = tuple((re.compile(pattern), format, dialect, path) for pattern, format, dialect, path in _EMBEDDING)


_REALTIME = re.compile(
    r"(?:/openai)?/v1/realtime|/realtime|(?P<live>/ws/google\.ai\.generativelanguage\.v1(?:beta|alpha)?"
    r"\.GenerativeService\.BidiGenerateContent)"
)


class _Pattern(Struct, frozen=True):
    method: str
    path: re.Pattern[str]
    format: str
    operation: Operation = "generate"
    adapter: str = ""


def _pattern(method: str, path: str, format: str, operation: Operation = "generate", adapter: str = "") -> _Pattern:
    return _Pattern(method, re.compile(path), format, operation, adapter)


_ITEMS, _ITEM = "/items", r"/items/(?P<item>[\w-]+)"
_CONVERSATIONS: tuple[tuple[str, str, Operation], ...] = (
    ("GET", "", "conversation"),
    ("POST", "", "update_conversation"),
    ("DELETE", "", "delete_conversation"),
    ("GET", _ITEMS, "conversation_items"),
    ("POST", _ITEMS, "create_items"),
    ("GET", _ITEM, "conversation_item"),
    ("DELETE", _ITEM, "delete_item"),
)
_PATTERNS: tuple[_Pattern, ...] = (
    _pattern("POST", rf"/(?P<version>v1|v1beta|v1alpha)/models/(?P<model>.+):{_GOOGLE_METHODS}", "gemini"),
    _pattern(
        "POST",
        rf"/(?P<version>v1|v1beta1)/{_PROJECT}?{_PUBLISHER}/models/(?P<model>.+):{_GOOGLE_METHODS}",
        "vertex",
    ),
    # The Vercel AI SDK treats a model name with a slash as a whole path.
    _pattern("POST", rf"/(?P<version>v1beta|v1alpha)/(?P<model>[^/]+/.+):{_GOOGLE_METHODS}", "gemini"),
    # Here the model is in the body, unlike at all other paths of this service.
    _pattern(
        "POST",
        rf"/v1/{_PROJECT}publishers/anthropic/models/count-tokens:rawPredict",
        "anthropic-messages",
        "count",
        "claude",
    ),
    _pattern(
        "POST",
        rf"/v1/{_PROJECT}publishers/anthropic/models/(?P<model>.+):(?P<method>rawPredict|streamRawPredict)",
        "anthropic-messages",
    ),
    # Claude's bodies in Amazon's envelope: Claude Code on Bedrock, AnthropicBedrock, boto3's invoke_model.
    _pattern(
        "POST",
        r"/model/(?P<model>.+)/(?P<method>invoke|invoke-with-response-stream)",
        "anthropic-messages",
        adapter="invoke-model",
    ),
    _pattern("POST", rf"/(?:v1|v1beta1)/{_PROJECT}endpoints/openapi/chat/completions", "openai-chat"),
    _pattern("POST", r"/model/(?P<model>.+)/(?P<method>converse|converse-stream|count-tokens)", "bedrock-converse"),
    _pattern("POST", rf"/v1(?:beta1)?/{_PROJECT}interactions", "gemini-interactions"),
    _pattern("GET", rf"{_INTERACTIONS}/(?P<id>[\w-]+)", "gemini-interactions", "interaction"),
    _pattern("DELETE", rf"{_INTERACTIONS}/(?P<id>[\w-]+)", "gemini-interactions", "delete_interaction"),
    _pattern("POST", rf"{_INTERACTIONS}/(?P<id>[\w-]+)/cancel", "gemini-interactions", "cancel_interaction"),
    _pattern("POST", r"/openai/deployments/(?P<model>[^/]+)/chat/completions", "openai-chat"),
    _pattern("POST", r"/openai/deployments/(?P<model>[^/]+)/completions", "openai-chat", adapter="completion"),
    _pattern("GET", r"/(?:openai/v1|openai|v1beta/openai)/models/(?P<model>.+)", "openai-chat", "model"),
    _pattern("POST", r"/openai(?:/v1)?/responses", "openai-responses"),
    _pattern("GET", r"/(?:openai/)?v1/responses/(?P<id>[\w-]+)", "openai-responses", "response"),
    _pattern("DELETE", r"/(?:openai/)?v1/responses/(?P<id>[\w-]+)", "openai-responses", "delete_response"),
    _pattern("GET", r"/(?:openai/)?v1/responses/(?P<id>[\w-]+)/input_items", "openai-responses", "input_items"),
    _pattern("POST", r"/(?:openai/)?v1/responses/(?P<id>[\w-]+)/cancel", "openai-responses", "cancel_response"),
    _pattern("POST", r"/openai(?:/v1)?/responses/compact", "openai-responses", "compact"),
    *(
        _pattern(method, rf"/(?:openai/)?v1/conversations/(?P<id>[\w-]+){rest}", "openai-responses", operation)
        for method, rest, operation in _CONVERSATIONS
    ),
    _pattern("GET", r"/(?:v1|v1beta|v1alpha)/models/(?P<model>.+)", "", "model"),
)
# Formats of errors for unknown paths, by the beginning of the path. If none matches, the client's headers decide.
_NEIGHBOURS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), format)
    for pattern, format in (
        (r"/v1/messages|/messages", "anthropic-messages"),
        (_INTERACTIONS, "gemini-interactions"),
        (r"/v1(?:beta1)?/(?:projects|publishers)/", "vertex"),
        (r"/v1(?:beta|alpha)/|/v1/models/[^/]+:", "gemini"),
        (r"/api/", "ollama-chat"),
        (r"/model/", "bedrock-converse"),
        (r"/v2/|/cohere/", "cohere-chat"),
        (r"/v1/responses|/responses|/v1/conversations", "openai-responses"),
        (r"/v1/chat/|/chat/|/openai/", "openai-chat"),
    )
)


def match_endpoint(head: Head) -> Endpoint:
    endpoint = _PLAIN.get((head.method, head.path))
    if endpoint is not None:
        return endpoint
    if is_websocket(head) and _RESPONSES.fullmatch(head.path):
        return Endpoint("openai-responses", "websocket")
    if is_websocket(head) and (found := _REALTIME.fullmatch(head.path)):
        is_live = found["live"] is not None
        format, dialect = ("gemini", "gemini-live") if is_live else ("openai-chat", "openai")
        return Endpoint(format, "realtime", path=head.path if is_live else "", dialect=dialect)
    if head.method == "OPTIONS":
        return Endpoint(_neighbour(head), "preflight")
    if head.path in _MODELS and head.method == "GET":
        return Endpoint(_format_by_headers(head), "models")
    if head.method == "POST" and ("mbed" in head.path or head.path.endswith(":predict")):
        embedding = _embedding(head.path)
        if embedding is not None:
            return embedding
    for pattern in _PATTERNS:
        found = pattern.path.fullmatch(head.path) if pattern.method == head.method else None
        if found is not None:
            return _endpoint_of(pattern, found.groupdict(""), head)
    return _match_passed(head) or Endpoint(_neighbour(head), "method" if _is_known_path(head) else "none")


def _embedding(path: str) -> Endpoint | None:
    for pattern, format, dialect, onward in _EMBEDDINGS:
        found = pattern.fullmatch(path)
        if found is not None:
            groups = found.groupdict("")
            publisher, model = groups.get("publisher", ""), groups.get("model", "")
            named = unquote(f"{publisher}/{model}" if publisher else model)
            return Endpoint(format, "embed", named, path=onward, dialect=dialect)
    return None


def _match_passed(head: Head) -> Endpoint | None:
    found = match_passed(head.method, head.path, _format_by_headers(head))
    if found is None:
        return None
    row, groups = found
    model, id = unquote(groups.get("model", "")), groups.get("id", "")
    path = groups.get("version", "") + groups["path"]
    return Endpoint(row.format, "pass", model, id=id, passed=row, path=path)


def _endpoint_of(pattern: _Pattern, groups: Mapping[str, str], head: Head) -> Endpoint:
    operation, stream = pattern.operation, None
    if groups.get("method"):
        operation, stream = _OPERATION_OF[groups["method"]]
    publisher = groups.get("publisher", "")
    model = groups.get("model", "")
    return Endpoint(
        pattern.format or _format_by_headers(head),
        operation,
        unquote(f"{publisher}/{model}" if publisher else model),
        stream,
        groups.get("id", ""),
        groups.get("version", ""),
        groups.get("item", ""),
        pattern.adapter,
    )


def _format_by_headers(head: Head) -> str:
    """Return the format of a request whose path several formats share, by headers that only one of them uses."""
    if "anthropic-version" in head.headers or "x-api-key" in head.headers:
        return "anthropic-messages"
    if head.path.startswith(("/v1beta", "/v1alpha")) or "x-goog-api-key" in head.headers or "key=" in head.query:
        return "gemini"
    # Cohere's client adds `endpoint=` when it lists models, and sends headers that name it.
    if "x-client-name" in head.headers or "endpoint=" in head.query or "x-fern-language" in head.headers:
        return "cohere-chat"
    return "bedrock-converse" if "x-amz-date" in head.headers else "openai-chat"


def _is_known_path(head: Head) -> bool:
    plain = any(path == head.path for _, path in _PLAIN) or head.path in _MODELS or _embedding(head.path) is not None
    return plain or any(pattern.path.fullmatch(head.path) for pattern in _PATTERNS) or is_passed(head.path)


def _neighbour(head: Head) -> str:
    """Return the format in which a request to an unknown path is answered."""
    known = next((format for pattern, format in _NEIGHBOURS if pattern.match(head.path)), None)
    return known or _format_by_headers(head)
