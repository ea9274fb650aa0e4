"""The addresses that clients of each format use lead to endpoints of that format."""

import pytest

from dragoman.gateway.endpoints import match_endpoint
from dragoman.gateway.http_request import Head
from tests.support.promises import promise

pytestmark = promise("gateway:addresses")

PROJECT = "projects/p/locations/us-central1"
ADDRESSES = {
    "/v1/chat/completions": "openai-chat",
    "/chat/completions": "openai-chat",
    "/openai/deployments/gpt-4o/chat/completions": "openai-chat",
    "/v1/responses": "openai-responses",
    "/openai/v1/responses": "openai-responses",
    "/v1/messages": "anthropic-messages",
    f"/v1/{PROJECT}/publishers/anthropic/models/claude-sonnet-4-5:rawPredict": "anthropic-messages",
    "/v1beta/models/gemini-2.5-flash:generateContent": "gemini",
    "/v1beta/models/gemini-2.5-flash:streamGenerateContent": "gemini",
    f"/v1/{PROJECT}/publishers/google/models/gemini-2.5-flash:generateContent": "vertex",
    "/model/us.anthropic.claude-sonnet-4-5-20250929-v1:0/converse": "bedrock-converse",
    "/model/us.anthropic.claude-sonnet-4-5-20250929-v1:0/converse-stream": "bedrock-converse",
    "/api/chat": "ollama-chat",
    "/v2/chat": "cohere-chat",
    "/cohere/v2/chat": "cohere-chat",
}


@pytest.mark.parametrize(("path", "format"), ADDRESSES.items())
def test_addresses_of_real_clients_are_endpoints(path: str, format: str) -> None:
    endpoint = match_endpoint(Head("POST", path, "", {}))
    assert (endpoint.format, endpoint.operation) == (format, "generate")
