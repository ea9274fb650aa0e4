"""Provider names of OpenTelemetry's conventions for generative AI."""

from __future__ import annotations

from collections.abc import Mapping

_VENDORS: Mapping[str, str] = {
    "openai-chat": "openai",
    "gemini": "gcp.gemini",
    "gemini-openai": "gcp.gemini",
    "vertex": "gcp.vertex_ai",
    "vertex-anthropic": "gcp.vertex_ai",
    "gemini-interactions": "gcp.gemini",
    "vertex-interactions": "gcp.vertex_ai",
    "bedrock": "aws.bedrock",
    "azure": "azure.ai.openai",
    "azure-responses": "azure.ai.openai",
    "mistral": "mistral_ai",
    "xai": "x_ai",
}


def vendor_of(provider: str) -> str:
    """The conventions' name of a provider, or its own name if they have none."""
    return _VENDORS.get(provider, provider)
