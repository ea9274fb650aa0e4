"""A request that does not fit into the context: clients know the error by the words or the code of their own API.

Coding agents compact the conversation when they see it: Codex and opencode by OpenAI's code, Claude Code by Anthropic's
message, Strands by Bedrock's.
"""

import json
from typing import Any

import pytest

import dragoman
from dragoman import ir
from dragoman.streams import StreamEncoder
from tests.support.cases import each
from tests.support.formats import FAMILY, FORMATS
from tests.support.promises import promise


def _openai(message: str) -> dict[str, Any]:
    error = {"message": message, "type": "invalid_request_error", "param": "messages"}
    return {"error": {**error, "code": "context_length_exceeded"}}


def _anthropic(message: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": "invalid_request_error", "message": message}}


def _google(message: str) -> dict[str, Any]:
    return {"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}


TOO_LONG: list[tuple[str, dict[str, Any]]] = [
    ("openai-chat", _openai("This model's maximum context length is 8192 tokens, however you requested 9000 tokens.")),
    ("openai-chat", {"error": {"message": "the request exceeds the available context size", "type": "invalid"}}),
    ("openai-responses", _openai("Your input exceeds the context window of this model.")),
    ("anthropic-messages", _anthropic("prompt is too long: 200001 tokens > 200000 maximum")),
    ("anthropic-messages", _anthropic("input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000")),
    ("gemini", _google("The input token count (1100000) exceeds the maximum number of tokens allowed (1048576).")),
    ("bedrock-converse", {"message": "Input is too long for requested model."}),
    ("cohere-chat", {"id": "1", "message": "too many tokens: size limit exceeded by 25836 tokens."}),
    ("ollama-chat", {"error": "the input length exceeds the context length"}),
]
OTHER: list[tuple[str, dict[str, Any]]] = [
    ("anthropic-messages", _anthropic("max_tokens: 99999 > 64000, which is the maximum allowed number of tokens")),
    ("openai-chat", {"error": {"message": "string too long", "type": "invalid_request_error", "code": "too_long"}}),
    ("bedrock-converse", {"message": "The text field in the ContentBlock object is blank."}),
]


def known(target: str, body: dict[str, Any]) -> bool | None:
    """Whether a client of this API knows the error; None if it has no word for it."""
    if target in {"openai-chat", "openai-responses"}:
        return bool(body["error"]["code"] == "context_length_exceeded")
    if target == "anthropic-messages":
        return "prompt is too long" in body["error"]["message"]
    if target == "bedrock-converse":
        return "Input is too long for requested model" in body["message"]
    return body.get("error_type") == "TOO_MANY_TOKENS" if target == "cohere-chat" else None


@promise("law:10-bad-input-good-words")
@each("target", FORMATS)
@each(("source", "body"), TOO_LONG)
def test_clients_know_that_the_context_is_exceeded(source: str, body: dict[str, Any], target: str) -> None:
    encoded = dragoman.translate_error(json.dumps(body), source=source, target=target, status=400)
    if FAMILY[source] == FAMILY[target]:
        assert encoded.body == body
        return
    assert known(target, encoded.body) in {True, None}
    message = dragoman.decode_error(json.dumps(body), source, status=400).message
    assert json.dumps(message)[1:-1] in encoded.json().decode()


@promise("law:10-bad-input-good-words")
@each("target", FORMATS)
@each(("source", "body"), OTHER)
def test_other_errors_are_not_taken_for_it(source: str, body: dict[str, Any], target: str) -> None:
    encoded = dragoman.translate_error(json.dumps(body), source=source, target=target, status=400)
    assert known(target, encoded.body) in {False, None}


@promise("law:5-streams-tell-the-same-story")
@pytest.mark.parametrize("target", ["openai-chat", "openai-responses", "anthropic-messages", "bedrock-converse"])
def test_streams_say_it_too(target: str) -> None:
    failure = ir.Failure("invalid_request", "the input length exceeds the context length")
    written = StreamEncoder(target).encode([ir.StreamStart(), ir.StreamFailed(failure)])
    words = b"context_length_exceeded" if target.startswith("openai") else b"too long"
    assert words in written
