"""The features, and for each the examples that have it."""

from __future__ import annotations

from dragoman.fidelity.cases import KINDS, Case, Feature, Kind
from dragoman.fidelity.catalogue.answers import ANSWERS, PLAIN_ANSWER
from dragoman.fidelity.catalogue.hosted import HOSTED
from dragoman.fidelity.catalogue.requests import PLAIN_REQUESTS, REQUESTS
from dragoman.fidelity.catalogue.streams import PLAIN_STREAM, STREAMS

FEATURES: tuple[Feature, ...] = tuple(
    Feature(name, group, title)
    for group, rows in {
        "calls": {
            "parallel-calls": "parallel calls, each with its result",
            "interleaved-calls": "interleaved fragments of parallel calls",
            "call-ids": "call ids, unchanged",
            "argument-text": "argument text, exactly",
            "argument-numbers": "numbers in arguments, exactly (2^53+1, 1.0)",
            "no-arguments": "a call without arguments",
            "unparsable-arguments": "arguments that are not JSON, unchanged",
            "odd-tool-names": "tool names outside [a-zA-Z0-9_-]",
            "text-before-calls": "text before a call",
            "text-between-calls": "text between two calls, in place",
            "custom-calls": "custom calls (free text)",
        },
        "hosted tools": {
            "web-search": "web search",
            "web-search-sites": "web search: blocked domains",
            "web-search-only": "web search: allowed domains",
            "web-search-place": "web search: user location",
            "web-search-size": "web search: context size",
            "hosted-tool-uses": "maximum uses of a hosted tool",
            "web-fetch": "web fetch",
            "code-execution": "code execution",
            "file-search": "file search",
            "mcp-servers": "MCP servers",
            "mcp-tools": "MCP servers: allowed tools",
            "image-generation": "image generation",
            "hosted-shell": "shell (hosted)",
            "tool-search": "tool search",
            "deferred-tools": "tool search: deferred tools",
            "client-tools": "vendor-defined tools that the client runs",
            "computer-use": "computer use",
            "search-calls": "past web searches, with results",
            "code-calls": "past code executions, with output",
            "hosted-history": "hosted calls of another vendor, in the history",
        },
        "results": {
            "text-results": "text results",
            "data-results": "object results, as objects",
            "error-results": "error results",
            "image-results": "results with images",
        },
        "tools": {
            "strict-tools": "strict tools",
            "schema-references": "schemas with $ref",
            "schema-keywords": "schema keywords",
            "bare-tools": "a tool without description or parameters",
            "custom-tools": "custom tools (free text)",
            "forced-tool": "tool choice: one tool",
            "required-tool": "tool choice: required",
            "no-tool": "tool choice: none",
            "allowed-tools": "tool choice: a set of tools",
            "parallel-switch": "parallel calls off",
        },
        "content": {
            "system-prompt": "system prompt",
            "system-in-the-middle": "system message in the middle",
            "prefill": "prefilled answer",
            "image-data": "images as data",
            "image-addresses": "images by URL",
            "image-detail": "image detail",
            "documents": "PDF documents",
            "text-documents": "text documents",
            "audio": "audio",
            "search-results": "search results to cite",
            "cache-marks": "prompt cache marks",
            "cache-marks-of-openai": "prompt cache marks, OpenAI models with them",
            "citations": "citations",
            "speaker-names": "speaker names",
            "refusals": "refusal text",
        },
        "reasoning": {
            "reasoning-text": "readable reasoning",
            "reasoning-between-calls": "reasoning between two calls, in place",
            "signatures": "signed reasoning and signed calls",
            "signed-text": "signed text",
            "redacted-reasoning": "redacted reasoning",
            "reasoning-effort": "reasoning effort",
            "reasoning-budget": "reasoning budget (tokens)",
            "reasoning-off": "reasoning off",
        },
        "settings": {
            "sampling": "temperature",
            "nucleus": "top-p",
            "top-k": "top-k",
            "penalties": "presence and frequency penalties",
            "token-limit": "maximum output tokens",
            "stop-sequences": "stop sequences",
            "seed": "seed",
            "several-candidates": "several candidates",
            "verbosity": "verbosity",
            "user-ids": "end-user id",
            "safety-identifiers": "safety identifier",
            "request-labels": "request labels",
            "service-tier": "service tier: cheaper or faster",
            "standard-tier": "service tier: standard",
            "stored-answers": "store (or do not store) the answer",
            "prompt-cache-keys": "prompt cache key",
            "prompt-cache-options": "prompt cache lifetime and mode",
            "moderation": "moderation of input and output",
            "log-probabilities": "log probabilities",
            "modalities": "output modalities",
            "stream-padding": "padding in streams",
            "structured-output": "structured output (JSON Schema)",
            "schema-names": "structured output: schema name",
            "json-mode": "JSON mode",
        },
        "endings": {
            "answer-ids": "id and model of the answer",
            "stop-length": "finish reason: token limit",
            "stop-calls": "finish reason: tool calls",
            "stop-filter": "finish reason: content filter",
            "stop-refusal": "finish reason: refusal",
            "stop-pause": "finish reason: pause",
            "stop-sequence": "which stop sequence ended the answer",
            "truncated-stream": "stream cut inside a call",
            "error-in-the-stream": "error in the middle of a stream",
            "overload-in-the-stream": "overload error in a stream",
        },
        "usage": {
            "usage": "input, output and total tokens",
            "usage-cached": "tokens read from the prompt cache",
            "usage-cache-written": "tokens written to the prompt cache",
            "usage-reasoning": "reasoning tokens",
            "usage-searches": "number of web searches",
            "usage-tier": "service tier of the answer",
            "usage-cache-hour": "tokens cached for an hour",
        },
    }.items()
    for name, title in rows.items()
)

_ORDER = {feature.name: place for place, feature in enumerate(FEATURES)}


CASES: tuple[Case, ...] = tuple(
    sorted(
        (*REQUESTS, *ANSWERS, *STREAMS, *HOSTED),
        key=lambda case: (KINDS.index(case.kind), _ORDER[case.feature]),
    )
)

PLAIN: dict[Kind, tuple[Case, ...]] = {
    "request": PLAIN_REQUESTS,
    "response": (PLAIN_ANSWER,),
    "stream": (PLAIN_STREAM,),
}
"""Plain examples: losses in them are not due to a feature."""
