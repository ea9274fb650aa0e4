"""Law 11 for the lists and maps that only one vendor has: log probabilities, safety ratings, grounding, documents.

Each is translated to another format and to Gemini, which has more rules than others.
"""

import json
from collections.abc import Callable
from typing import Any, TypeAlias

import pytest

import dragoman
from dragoman.errors import DragomanError
from tests.support.costs import FAR, Work, growth
from tests.support.promises import promise

pytestmark = promise("law:11-linear-cost")

Rows: TypeAlias = dict[str, dict[str, Callable[[int], dict[str, Any]]]]
SMALL, LARGEST = 64, 512
LINK = "https://a.example/"
TOKEN = {"token": "x", "logprob": -1.0, "bytes": [120], "top_logprobs": []}
ASKED: dict[str, dict[str, Any]] = {
    "gemini": {"contents": [{"role": "user", "parts": [{"text": "x"}]}]},
    "openai-responses": {"model": "m", "input": "x"},
    "bedrock-converse": {"messages": [{"role": "user", "content": [{"text": "x"}]}]},
    "anthropic-messages": {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]},
}
"""What every request of a format has; of other formats that of Chat Completions."""
CHAT = {"model": "m", "messages": [{"role": "user", "content": "x"}]}


def messages(*content: Any, role: str = "user") -> dict[str, Any]:
    return {"messages": [{"role": role, "content": list(content)}]}


def pdf(_: int) -> dict[str, Any]:
    return {"document": {"format": "pdf", "name": "same", "source": {"bytes": "eA=="}}}


def search(number: int) -> list[dict[str, Any]]:
    found = {"type": "web_search_result", "url": LINK, "title": "t", "encrypted_content": "e"}
    return [
        {"type": "server_tool_use", "id": f"s{number}", "name": "web_search", "input": {"query": "x"}},
        {"type": "web_search_tool_result", "tool_use_id": f"s{number}", "content": [found]},
    ]


def function(number: int, **members: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": f"f{number}", **members}}


REQUESTS: Rows = {
    "openai-chat": {
        "logit_bias": lambda n: {"logit_bias": {str(i): 1 for i in range(n)}},
        "metadata": lambda n: {"metadata": {f"k{i}": "v" for i in range(n)}},
        "functions": lambda n: {"functions": [{"name": f"f{i}", "parameters": {"type": "object"}} for i in range(n)]},
        "allowed tools": lambda n: {
            "tools": [function(i) for i in range(n)],
            "tool_choice": {
                "type": "allowed_tools",
                "allowed_tools": {"mode": "auto", "tools": [function(i) for i in range(n)]},
            },
        },
        "names of one long beginning": lambda n: {"tools": [function(10**130 + i) for i in range(n)]},
        "names that become one": lambda n: {
            "tools": [{"type": "function", "function": {"name": f"a{chr(0x4E00 + i)}"}} for i in range(n)]
        },
        "names like those that are made": lambda n: {
            "tools": [{"type": "function", "function": {"name": f"a_b_{i}" if i else "a b"}} for i in range(n)]
        },
        "definitions that refer in circles": lambda n: {"tools": [function(0, parameters={
            "type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": {
                f"d{i}": {"type": "object", "properties": {
                    "a": {"$ref": f"#/$defs/d{(i + 1) % n}"}, "b": {"$ref": f"#/$defs/d{(i + 7) % n}"}}}
                for i in range(n)}})]},
        "schemas of one place": lambda n: {"tools": [function(0, parameters={"type": "object", "allOf": [
            {"properties": {f"p{i}": {"type": "string"}}, "required": [f"p{i}"]} for i in range(n)]})]},
        "schemas of one property": lambda n: {"tools": [function(0, parameters={"type": "object", "allOf": [
            {"properties": {"p": {"const": i}}} for i in range(n)]})]},
        "options in two lists": lambda n: {"tools": [function(0, parameters={"type": "object", "allOf": [
            {"properties": {"p": {"enum": [f"v{i}" for i in range(n)]}}},
            {"properties": {"p": {"enum": [f"v{n - i}" for i in range(n)]}}}]})]},
        "alternatives of the root": lambda n: {"tools": [function(0, parameters={"type": "object", "anyOf": [
            {"type": "object", "properties": {"p": {"const": i}}, "required": ["p"]} for i in range(n)]})]},
        "places of an array": lambda n: {"tools": [function(0, parameters={"type": "object", "properties": {
            "p": {"type": "array", "prefixItems": [{"const": i} for i in range(n)]}}})]},
        "patterns": lambda n: {"tools": [function(0, parameters={
            "type": "object",
            "properties": {f"p{i}": {"type": "string", "pattern": "^(a+)+$", "format": "uri"} for i in range(n)}})]},
        "calls of old clients": lambda n: {"messages": [one for _ in range(n) for one in (
            {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
            {"role": "function", "name": "f", "content": "x"})]},
    },
    "openai-responses": {
        "include": lambda n: {"include": [f"x{i}" for i in range(n)]},
        "references to items": lambda n: {"input": [{"type": "item_reference", "id": f"i{i}"} for i in range(n)]},
        "tools of a server": lambda n: {"tools": [
            {"type": "mcp", "server_label": "l", "server_url": LINK, "allowed_tools": [f"t{i}" for i in range(n)]}]},
        "vector stores": lambda n: {"tools": [
            {"type": "file_search", "vector_store_ids": [f"v{i}" for i in range(n)]}]},
        "calls of servers": lambda n: {"input": [{"type": "mcp_call", "id": f"c{i}", "server_label": "l", "name": "a",
                                                  "arguments": "{}", "output": "x"} for i in range(n)]},
        "sealed reasoning": lambda n: {"input": [one for i in range(n) for one in (
            {"type": "reasoning", "id": f"r{i}", "summary": [], "encrypted_content": "e"},
            {"role": "assistant", "content": "y"})]},
    },
    "anthropic-messages": {
        "servers": lambda n: {"mcp_servers": [{"type": "url", "url": LINK, "name": f"s{i}"} for i in range(n)]},
        "edits": lambda n: {"context_management": {"edits": [{"type": "clear_tool_uses_20250919"}] * n}},
        "marks": lambda n: {"system": [{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}] * n},
        "searches": lambda n: messages(*(block for i in range(n) for block in search(i)), role="assistant"),
        "search results": lambda n: messages(*({"type": "search_result", "source": f"s{i}", "title": "t", "content": [
            {"type": "text", "text": "x"}]} for i in range(n))),
    },
    "gemini": {
        "safety settings": lambda n: {"safetySettings": [
            {"category": f"C{i}", "threshold": "BLOCK_NONE"} for i in range(n)]},
        "order of properties": lambda n: {"tools": [{"functionDeclarations": [{"name": "f", "parameters": {
            "type": "OBJECT", "properties": {f"p{i}": {"type": "STRING"} for i in range(n)},
            "propertyOrdering": [f"p{n - 1 - i}" for i in range(n)]}}]}]},
        "calls without ids": lambda n: {"contents": [
            {"role": "model", "parts": [{"functionCall": {"name": f"f{i}", "args": {}}} for i in range(n)]},
            {"role": "user", "parts": [{"functionResponse": {"name": f"f{n - 1 - i}", "response": {}}}
                                       for i in range(n)]}]},
        "lists of tools": lambda n: {"tools": [{"functionDeclarations": [{"name": f"f{i}"}]} for i in range(n)]},
        "programs": lambda n: {"contents": [{"role": "model", "parts": [
            {"executableCode": {"language": "PYTHON", "code": "x"}},
            {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "y"}}] * n}]},
    },
    "bedrock-converse": {
        "fields": lambda n: {"additionalModelRequestFields": {f"k{i}": 1 for i in range(n)},
                             "additionalModelResponseFieldPaths": [f"/k{i}" for i in range(n)]},
        "documents of one name": lambda n: messages(*(pdf(i) for i in range(n))),
        "guarded texts": lambda n: messages(*[{"guardContent": {"text": {"text": "x", "qualifiers": ["query"]}}}] * n),
    },
    "cohere-chat": {
        "documents": lambda n: {"documents": [{"id": f"d{i}", "data": {"text": "x"}} for i in range(n)]},
    },
    "ollama-chat": {
        "options": lambda n: {"options": {f"o{i}": 1 for i in range(n)}},
        "calls without ids": lambda n: {"messages": [
            {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": {}}}] * n},
            *[{"role": "tool", "content": "x"}] * n]},
    },
}  # fmt: skip


def chat(message: dict[str, Any], **members: Any) -> dict[str, Any]:
    text = {"role": "assistant", "content": "x" * 50, **message}
    choice = {"index": 0, "finish_reason": "stop", "message": text, "logprobs": members.pop("logprobs", None)}
    return {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], **members}


def gemini(text: str = "x é" * 20, **members: Any) -> dict[str, Any]:
    content = {"role": "model", "parts": [{"text": text}]}
    return {"candidates": [{"content": content, "finishReason": "STOP", **members}]}


def message(*content: dict[str, Any]) -> dict[str, Any]:
    usage = {"input_tokens": 1, "output_tokens": 1}
    return {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": list(content),
            "stop_reason": "end_turn", "usage": usage}  # fmt: skip


def response(*output: dict[str, Any]) -> dict[str, Any]:
    return {"id": "r", "object": "response", "created_at": 1, "status": "completed", "model": "m", "output": [*output]}


def grounded(n: int, chunks: int) -> dict[str, Any]:
    supports = [
        {"segment": {"startIndex": 8 * i, "endIndex": 8 * i + 4}, "groundingChunkIndices": [i % chunks]}
        for i in range(n)
    ]
    return {"groundingChunks": [{"web": {"uri": f"{LINK}{i}", "title": "t"}} for i in range(chunks)],
            "groundingSupports": supports, "webSearchQueries": [f"q{i}" for i in range(n)]}  # fmt: skip


ANSWERS: Rows = {
    "openai-chat": {
        "log probabilities": lambda n: chat({}, logprobs={"content": [TOKEN] * n}),
        "annotations": lambda n: chat({"annotations": [{"type": "url_citation", "url_citation": {
            "start_index": 0, "end_index": 5, "url": f"{LINK}{i}", "title": "t"}} for i in range(n)]}),
        "marks of citations": lambda n: chat({"content": "".join(f"a[{i}]" for i in range(n))},
                                             citations=[f"{LINK}{i}" for i in range(n)]),
        "details of reasoning": lambda n: chat({"reasoning_details": [
            {"type": "reasoning.text", "text": "x", "index": i} for i in range(n)]}),
        "tags of reasoning": lambda n: chat({"content": "<think>" * n + "</think>" * n}),
    },
    "openai-responses": {
        "annotations": lambda n: response({"type": "message", "id": "m", "role": "assistant", "content": [{
            "type": "output_text", "text": "é" * 50, "logprobs": [TOKEN] * n, "annotations": [
                {"type": "url_citation", "start_index": 0, "end_index": 5, "url": f"{LINK}{i}", "title": "t"}
                for i in range(n)]}]}),
        "searches": lambda n: response(*({"type": "web_search_call", "id": f"w{i}", "status": "completed",
                                          "action": {"type": "search", "query": "x"}} for i in range(n))),
        "files found": lambda n: response({"type": "file_search_call", "id": "w", "status": "completed", "queries": [
            "x"], "results": [{"file_id": f"f{i}", "text": "x", "score": 0.5} for i in range(n)]}),
    },
    "anthropic-messages": {
        "citations": lambda n: message({"type": "text", "text": "é" * 50, "citations": [{
            "type": "char_location", "cited_text": "x", "document_index": 0, "document_title": "t",
            "start_char_index": 0, "end_char_index": 5}] * n}),
        "cited texts": lambda n: message(*[{"type": "text", "text": "é" * 5, "citations": [{
            "type": "web_search_result_location", "cited_text": "x", "url": LINK, "title": "t",
            "encrypted_index": "e"}]}] * n),
        "searches": lambda n: message(*(block for i in range(n) for block in search(i))),
    },
    "gemini": {
        "safety ratings": lambda n: gemini(safetyRatings=[
            {"category": f"C{i}", "probability": "LOW"} for i in range(n)]),
        "grounding": lambda n: gemini("é" * 4 * n, groundingMetadata=grounded(n, n)),
        "grounding in one page": lambda n: gemini("é" * 4 * n, groundingMetadata=grounded(n, 1)),
        "sources": lambda n: gemini(citationMetadata={"citationSources": [
            {"startIndex": 0, "endIndex": 5, "uri": f"{LINK}{i}"} for i in range(n)]}),
        "log probabilities": lambda n: gemini(logprobsResult={"chosenCandidates": [
            {"token": "x", "logProbability": -1}] * n}),
        "counts": lambda n: {**gemini(), "usageMetadata": {"promptTokenCount": 1, "promptTokensDetails": [
            {"modality": "TEXT", "tokenCount": 1}] * n}},
        "reasons to refuse": lambda n: {"promptFeedback": {"blockReason": "SAFETY", "safetyRatings": [
            {"category": f"C{i}", "probability": "LOW"} for i in range(n)]}},
    },
    "bedrock-converse": {
        "citations": lambda n: {"output": {"message": {"role": "assistant", "content": [{"citationsContent": {
            "content": [{"text": "x"}], "citations": [{"title": "t", "sourceContent": [{"text": "x"}]}] * n}}]}},
            "stopReason": "end_turn", "usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}},
    },
    "cohere-chat": {
        "citations": lambda n: {"id": "c", "finish_reason": "COMPLETE", "message": {"role": "assistant", "content": [
            {"type": "text", "text": "é" * 50}], "citations": [{"start": 0, "end": 5, "text": "x", "sources": [
                {"type": "document", "id": f"d{i}", "document": {"id": f"d{i}"}}]} for i in range(n)]}},
    },
}  # fmt: skip
TARGETS = ("gemini", "openai-chat", "anthropic-messages")


def tolerant(translate: Callable[..., Any], body: bytes, source: str, target: str, **options: Any) -> Work:
    def work() -> None:
        try:
            encoded = translate(body, source=source, target=target, **options)
        except DragomanError:
            return
        _ = encoded.losses, encoded.body

    return work


def asked(source: str, members: dict[str, Any]) -> bytes:
    return json.dumps({**ASKED.get(source, CHAT), **members}).encode()


@pytest.mark.parametrize("source", sorted({*REQUESTS, *ANSWERS}))
def test_cost_grows_linearly(source: str) -> None:
    steep = []
    for target in [target for target in TARGETS if target != source][:2]:
        for name, build in REQUESTS.get(source, {}).items():

            def request(n: int, build: Any = build, target: str = target) -> Work:
                return tolerant(dragoman.translate_request, asked(source, build(n)), source, target, model="m")

            if (found := growth(request, SMALL, LARGEST, leap=FAR)).is_steep:
                steep.append(f"request, {name} to {target}: {found}")
        for name, build in ANSWERS.get(source, {}).items():

            def answer(n: int, build: Any = build, target: str = target) -> Work:
                return tolerant(dragoman.translate_response, json.dumps(build(n)).encode(), source, target)

            if (found := growth(answer, SMALL, LARGEST, leap=FAR)).is_steep:
                steep.append(f"answer, {name} to {target}: {found}")
    assert steep == []


@pytest.mark.parametrize("source", sorted({*REQUESTS, *ANSWERS}))
def test_the_rows_are_read(source: str) -> None:
    """A row that is refused at once would measure nothing."""
    for build in REQUESTS.get(source, {}).values():
        dragoman.decode_request(asked(source, build(8)), source)
    for build in ANSWERS.get(source, {}).values():
        dragoman.decode_response(json.dumps(build(8)).encode(), source)
