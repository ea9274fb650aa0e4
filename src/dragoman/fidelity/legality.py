"""Whether the API of a format accepts a body; a body that its server refuses has not arrived.

The judge is `dragoman.sim.rules`, written from the vendors' documents and recorded refusals, without the codecs.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from dragoman.fidelity.cases import Kind
from dragoman.ir.values import exact_json, parse_json

_RULES: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "openai-chat": ("openai_chat", {}),
    "openai-responses": ("openai_responses", {}),
    "anthropic-messages": ("anthropic_messages", {"version": "2023-06-01"}),
    "gemini": ("gemini", {"backend": "gemini"}),
    "vertex": ("gemini", {"backend": "vertex"}),
    "bedrock-converse": ("bedrock_converse", {}),
    "ollama-chat": ("ollama_chat", {}),
    "cohere-chat": ("cohere_chat", {}),
    "gemini-interactions": ("gemini_interactions", {}),
}


def complaints(content: bytes, kind: Kind, format: str, model: str) -> frozenset[str]:
    """What the server refuses in a request, and a strict client in an answer. Streams are not checked."""
    if kind == "stream" or format not in _RULES:
        return frozenset()
    exact = exact_json(content)
    body: Any = None if exact is None else parse_json(exact)
    if not isinstance(body, dict):
        return frozenset({"the body is not a JSON object"})
    name, options = _RULES[format]
    rules = import_module(f"dragoman.sim.rules.{name}")
    found = rules.check_request(body, model=model, **options) if kind == "request" else rules.check_response(body)
    return frozenset(f"{violation.path}: {violation.message}" for violation in found)
