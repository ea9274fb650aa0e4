"""What we encode is what the vendors' own types describe."""

from typing import Any

import pytest
from anthropic.types.beta.message_create_params import MessageCreateParamsNonStreaming as AnthropicBetaOnce
from anthropic.types.beta.message_create_params import MessageCreateParamsStreaming as AnthropicBetaStream
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming as AnthropicOnce
from anthropic.types.message_create_params import MessageCreateParamsStreaming as AnthropicStream
from google.genai import types
from hypothesis import given
from msgspec import structs
from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming as OpenaiOnce
from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming as OpenaiStream

import dragoman
from dragoman import ir
from dragoman.errors import EncodeError
from tests import strategies
from tests.judges.typed import complaints
from tests.support.bodies import REQUESTS, Sample
from tests.support.cases import each
from tests.support.formats import FAMILY, MODELS
from tests.support.promises import promise

pytestmark = promise("law:3-legality")


def sent(request: ir.Request, target: str) -> dragoman.Encoded | None:
    named = structs.replace(strategies.public(request, FAMILY[target]), model=MODELS[target])
    try:
        return dragoman.encode_request(named, target)
    except EncodeError:
        return None


def openai_complaints(body: dict[str, Any]) -> list[str]:
    found = complaints(body, OpenaiStream if body.get("stream") else OpenaiOnce)
    # The types do not name it, but the service takes its own annotations back (103 recordings, e.g. 3ffa2202f0ba).
    return [complaint for complaint in found if not complaint.endswith(".annotations: unknown")]


# Still taken under the older version of the API, which our header then names; the SDK leaves them to `extra_body`.
OLD_SETTINGS = {"temperature", "top_p", "top_k"}


def anthropic_complaints(encoded: dragoman.Encoded) -> list[str]:
    body = encoded.body
    if encoded.headers["anthropic-version"] == "2023-06-01":
        body = {key: value for key, value in body.items() if key not in OLD_SETTINGS}
    if "anthropic-beta" in encoded.headers:  # what a beta adds stands in its own types, e.g. MCP servers
        return complaints(body, AnthropicBetaStream if body.get("stream") else AnthropicBetaOnce)
    return complaints(body, AnthropicStream if body.get("stream") else AnthropicOnce)


def assert_genai_takes(body: dict[str, Any]) -> None:
    """The SDK spells a body as contents and one flat configuration, and its types refuse unknown keys."""
    for content in body["contents"]:
        types.Content.model_validate(content)
    rest = {key: value for key, value in body.items() if key not in {"contents", "generationConfig"}}
    config = rest | body.get("generationConfig", {})
    types.GenerateContentConfig.model_validate(config)


@given(request=strategies.ANY_REQUESTS)
def test_openai_types_know_every_key(request: ir.Request) -> None:
    encoded = sent(request, "openai-chat")
    assert encoded is None or openai_complaints(encoded.body) == []


@given(request=strategies.ANY_REQUESTS)
def test_anthropic_types_know_every_key(request: ir.Request) -> None:
    encoded = sent(request, "anthropic-messages")
    assert encoded is None or anthropic_complaints(encoded) == []


@given(request=strategies.ANY_REQUESTS)
@each("target", ["gemini", "vertex"])
def test_genai_types_know_every_key(target: str, request: ir.Request) -> None:
    encoded = sent(request, target)
    if encoded is not None:
        assert_genai_takes(encoded.body)


@each("sample", REQUESTS, ids=str)
def test_sample_requests_in_every_vendors_types(sample: Sample) -> None:
    for target in ("openai-chat", "anthropic-messages", "gemini"):
        if FAMILY[target] == FAMILY[sample.format]:
            continue
        encoded = dragoman.translate_request(sample.body, source=sample.format, target=target, model=MODELS[target])
        if target == "openai-chat":
            assert openai_complaints(encoded.body) == []
        elif target == "anthropic-messages":
            assert anthropic_complaints(encoded) == []
        else:
            assert_genai_takes(encoded.body)


# ── the judge itself ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"x": 1}, "$.x: unknown"),
        ({"temperature": "hot"}, "$.temperature: expected"),
        ({"messages": [{"role": "user", "content": 5}]}, "$.messages[0].content: expected"),
        (
            {"messages": [{"role": "tool", "content": "x", "tool_call_id": "c", "name": "f"}]},
            "$.messages[0].name: unknown",
        ),
        ({"tools": [{"type": "function", "function": {"name": "f", "x": 1}}]}, "$.tools[0].function.x: unknown"),
        ({"stream": "yes"}, "$.stream: expected"),
    ],
)
def test_the_judge_sees_what_is_wrong(change: dict[str, Any], complaint: str) -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    assert openai_complaints(body) == []
    assert any(found.startswith(complaint) for found in openai_complaints(body | change))
