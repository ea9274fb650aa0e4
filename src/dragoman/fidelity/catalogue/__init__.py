"""The features, and for each the examples that have it."""

from __future__ import annotations

from dragoman.fidelity.cases import Case, Feature, Kind
from dragoman.fidelity.catalogue.answers import ANSWERS, PLAIN_ANSWER
from dragoman.fidelity.catalogue.hosted import HOSTED
from dragoman.fidelity.catalogue.requests import PLAIN_REQUESTS, REQUESTS
from dragoman.fidelity.catalogue.streams import PLAIN_STREAM, STREAMS

FEATURES: tuple[Feature, ...] = tuple(
    Feature(name, group, title)
    for group, rows in {
        "calls": {
            "parallel-calls": "several calls in one turn, each with its answer",
            "interleaved-calls": "fragments of several calls in turns",
            "call-ids": "ids of calls, as the source minted them",
            "argument-text": "arguments to the letter",
            "argument-numbers": "numbers in arguments: 2^53+1, 1.0",
            "no-arguments": "a call without arguments",
            "unparsable-arguments": "arguments that are no JSON, as they are",
            "odd-tool-names": "names of tools outside [a-zA-Z0-9_-]",
            "text-before-calls": "text before a call",
            "text-between-calls": "text between two calls, in its place",
            "custom-calls": "calls with free text",
        },
        "hosted tools": {
            "web-search": "the provider searches the web",
            "web-search-sites": "sites that a search must leave out",
            "web-search-only": "sites that a search must keep to",
            "web-search-place": "where the user is, for searches",
            "web-search-size": "how much a search may bring",
            "hosted-tool-uses": "how often the provider may run a tool",
            "web-fetch": "the provider reads pages",
            "code-execution": "the provider runs code",
            "file-search": "the provider searches files that it stores",
            "mcp-servers": "the provider calls an MCP server",
            "mcp-tools": "the tools of an MCP server that the model may call",
            "image-generation": "the provider draws",
            "hosted-shell": "the provider runs a shell",
            "tool-search": "the model looks tools up",
            "deferred-tools": "tools that wait to be looked up",
            "client-tools": "tools that a vendor defines and the client runs",
            "computer-use": "a computer that the client lets the model use",
            "search-calls": "searches that the provider ran, with what they found",
            "code-calls": "code that the provider ran, with its output",
            "hosted-history": "what another provider ran, readable in the history",
        },
        "results": {
            "text-results": "results that are text",
            "data-results": "results that are objects, as objects",
            "error-results": "results that are errors",
            "image-results": "results with images",
        },
        "tools": {
            "strict-tools": "arguments held to the schema",
            "schema-references": "references within a schema",
            "schema-keywords": "keywords of a schema",
            "bare-tools": "a tool without description or parameters",
            "custom-tools": "tools that take free text",
            "forced-tool": "one tool is forced",
            "required-tool": "some tool is forced",
            "no-tool": "tools are there and forbidden",
            "allowed-tools": "a set of allowed tools",
            "parallel-switch": "one call at a time",
        },
        "content": {
            "system-prompt": "a system text at the start",
            "system-in-the-middle": "a system text in the middle",
            "prefill": "the beginning of the answer",
            "image-data": "images as bytes",
            "image-addresses": "images by address",
            "image-detail": "resolution of an image",
            "documents": "PDF documents",
            "text-documents": "documents that are text",
            "audio": "sound",
            "search-results": "results of a search, to be cited",
            "cache-marks": "marks of the prompt cache",
            "cache-marks-of-openai": "the same, with models of OpenAI that take them",
            "citations": "citations",
            "speaker-names": "names of speakers",
            "refusals": "a refusal in the model's words",
        },
        "reasoning": {
            "reasoning-text": "reasoning that can be read",
            "reasoning-between-calls": "reasoning between two calls, in its place",
            "signatures": "signed reasoning and signed calls",
            "signed-text": "signed text",
            "redacted-reasoning": "reasoning that is hidden",
            "reasoning-effort": "how hard to think",
            "reasoning-budget": "how many tokens to think with",
            "reasoning-off": "no thinking",
        },
        "settings": {
            "sampling": "temperature",
            "nucleus": "top-p",
            "top-k": "top-k",
            "penalties": "presence and frequency penalties",
            "token-limit": "most tokens of an answer",
            "stop-sequences": "texts that end the answer",
            "seed": "a seed",
            "several-candidates": "several answers at once",
            "verbosity": "how long the answer shall be",
            "user-ids": "the id of the end user",
            "safety-identifiers": "the end user, for abuse detection",
            "request-labels": "labels of a request",
            "service-tier": "a cheaper or faster service",
            "standard-tier": "the standard service",
            "stored-answers": "whether the provider keeps the answer",
            "prompt-cache-keys": "keys of the prompt cache",
            "prompt-cache-options": "lifetime and mode of the prompt cache",
            "moderation": "moderation of input and output",
            "log-probabilities": "log probabilities, asked for and given",
            "modalities": "what the answer may consist of",
            "stream-padding": "padding in streams",
            "structured-output": "an answer that follows a schema",
            "schema-names": "the name of that schema",
            "json-mode": "an answer that is JSON",
        },
        "endings": {
            "answer-ids": "id and model of the answer",
            "stop-length": "ended by the token limit",
            "stop-calls": "ended by calls",
            "stop-filter": "ended by a filter",
            "stop-refusal": "ended by a refusal",
            "stop-pause": "paused by the provider",
            "stop-sequence": "which text ended the answer",
            "truncated-stream": "a stream that breaks off inside a call",
            "error-in-the-stream": "an error in the middle of a stream",
            "overload-in-the-stream": "an error that says: come back later",
        },
        "usage": {
            "usage": "tokens in, out and in all",
            "usage-cached": "tokens read from a cache",
            "usage-cache-written": "tokens written to a cache",
            "usage-reasoning": "tokens of reasoning",
            "usage-searches": "searches of the web",
            "usage-tier": "the tier at which it was served",
            "usage-cache-hour": "tokens cached for an hour",
        },
    }.items()
    for name, title in rows.items()
)

_ORDER = {feature.name: place for place, feature in enumerate(FEATURES)}


def _by_kind() -> tuple[tuple[Case, ...], ...]:
    written: dict[Kind, tuple[Case, ...]] = {"request": REQUESTS, "response": ANSWERS, "stream": STREAMS}
    return tuple((*cases, *(case for case in HOSTED if case.kind == kind)) for kind, cases in written.items())


CASES: tuple[Case, ...] = tuple(
    case for cases in _by_kind() for case in sorted(cases, key=lambda case: _ORDER[case.feature])
)

PLAIN: dict[Kind, tuple[Case, ...]] = {
    "request": PLAIN_REQUESTS,
    "response": (PLAIN_ANSWER,),
    "stream": (PLAIN_STREAM,),
}
"""Plain examples: losses in them are not due to a feature."""
