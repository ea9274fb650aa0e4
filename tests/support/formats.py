"""The formats under test, their pairs, and the judges of their bodies."""

from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib import import_module
from itertools import product
from typing import Any

import dragoman
from dragoman.codecs.registry import codec

FORMATS: tuple[str, ...] = dragoman.formats()
PAIRS: tuple[tuple[str, str], ...] = tuple(product(FORMATS, FORMATS))
CROSSINGS: tuple[tuple[str, str], ...] = tuple((source, target) for source, target in PAIRS if source != target)

FAMILY: Mapping[str, str] = {name: codec(name).profile.family for name in FORMATS}
FAMILIES = ("openai", "openai-responses", "anthropic", "google", "bedrock", "ollama", "cohere", "gemini-interactions")
SIGNED_AS: Mapping[str, str] = {name: codec(name).profile.signs_as for name in FORMATS}
"""Two APIs of one vendor take the signatures of each other."""

# Bodies are written for one model of each vendor: an ordinary, current one.
MODELS: Mapping[str, str] = {
    "openai-chat": "gpt-4.1",
    "openai-responses": "gpt-5.1",
    "anthropic-messages": "claude-sonnet-4-5",
    "gemini": "gemini-2.5-flash",
    "vertex": "gemini-2.5-flash",
    "bedrock-converse": "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
    "ollama-chat": "qwen3",
    "cohere-chat": "command-a-03-2025",
    "gemini-interactions": "gemini-2.5-flash",
}

# And several of each format, old and new, small and large: their rules differ.
VARIED_MODELS: Mapping[str, tuple[str, ...]] = {
    "openai-chat": ("gpt-4.1", "gpt-5.1", "o3", "gpt-5-pro"),
    "openai-responses": ("gpt-4.1", "gpt-5.1", "o3", "gpt-5-pro"),
    "anthropic-messages": ("claude-sonnet-4-5", "claude-opus-4-6", "claude-3-5-haiku-latest", "claude-opus-4-7"),
    "gemini": ("gemini-2.5-flash", "gemini-2.5-pro", "gemini-3-pro-preview", "gemini-3-flash-preview"),
    "vertex": ("gemini-2.5-flash", "gemini-2.5-pro", "gemini-3-pro-preview"),
    "gemini-interactions": ("gemini-2.5-flash", "gemini-3-flash-preview", "gemini-3-pro-preview"),
    "bedrock-converse": (
        "us.anthropic.claude-sonnet-4-5-20250929-v1:0", "us.anthropic.claude-opus-4-6-v1", "us.amazon.nova-2-lite-v1:0",
        "us.amazon.nova-pro-v1:0", "us.deepseek.r1-v1:0",
    ),
    "ollama-chat": ("qwen3", "gpt-oss"),
    "cohere-chat": ("command-a-reasoning-08-2025", "command-a-03-2025"),
}  # fmt: skip

# And one for each further rule about models in the code, tried only in mixed requests (tests/support/golden.py).
_OF_OPENAI = (
    "gpt-5.6",
    "gpt-4o-audio-preview",
    "gpt-4o-search-preview",
    "gpt-5-chat-latest",
    "o1",
    "gpt-3.5-turbo",
    "openai/gpt-6",
)
_OF_GOOGLE = ("gemini-2.0-flash", "gemini-2.5-flash-lite", "gemini-2.5-flash-image", "gemma-3-27b-it", "learnlm")
FURTHER_MODELS: Mapping[str, tuple[str, ...]] = {
    "openai-chat": (*_OF_OPENAI, "gpt-oss-120b"),
    "openai-responses": (*_OF_OPENAI, "codex-mini-latest", "computer-use-preview"),
    "anthropic-messages": (
        "claude-opus-4-20250514",
        "claude-3-7-sonnet-latest",
        "claude-2.1",
        "claude-haiku-4-5",
        "claude-opus-5-5",
        "claude-mythos-preview",
    ),
    "gemini": _OF_GOOGLE,
    "vertex": _OF_GOOGLE,
    "gemini-interactions": (*_OF_GOOGLE, "deep-research-pro-preview-12-2025"),
    "bedrock-converse": (
        "us.meta.llama3-3-70b-instruct-v1:0",
        "mistral.mistral-large-2402-v1:0",
        "cohere.command-r-plus-v1:0",
        "openai.gpt-oss-120b-1:0",
        "ai21.jamba-1-5-large-v1:0",
        "amazon.titan-text-express-v1",
        "us.anthropic.claude-3-5-haiku-20241022-v1:0",
    ),
    "ollama-chat": ("llama3.1", "deepseek-r1", "gemma3"),
    "cohere-chat": ("command-r-08-2024", "command-a-vision-07-2025", "command", "c4ai-aya-expanse-32b"),
}

_RULES: Mapping[str, tuple[str, dict[str, str]]] = {
    "openai-chat": ("openai_chat", {}),
    "openai-responses": ("openai_responses", {}),
    "anthropic-messages": ("anthropic_messages", {}),
    "gemini": ("gemini", {"backend": "gemini"}),
    "vertex": ("gemini", {"backend": "vertex"}),
    "bedrock-converse": ("bedrock_converse", {}),
    "ollama-chat": ("ollama_chat", {}),
    "cohere-chat": ("cohere_chat", {}),
    "gemini-interactions": ("gemini_interactions", {}),
}

STAND_IN = "some-model"

Verdict = tuple[Any, ...]


@cache
def _judge(name: str, verb: str) -> Callable[..., Verdict]:
    module, options = _RULES[name]
    check: Callable[..., Verdict] = getattr(import_module(f"dragoman.sim.rules.{module}"), verb)
    return partial(check, **options) if verb == "check_request" else check


def refusals(encoded: dragoman.Encoded, target: str, *, model: str | None = None) -> Verdict:
    """What the API of `target` would refuse in this request. The version is the one our own headers announce."""
    version = encoded.headers.get("anthropic-version")
    if target == "bedrock-converse" and model == STAND_IN:
        model = None  # model ids of Bedrock have another form, which the stand-in lacks
    return _judge(target, "check_request")(encoded.body, model=model, version=version)


def complaints(encoded: dragoman.Encoded, target: str) -> Verdict:
    """What a strict client of `target` would refuse in this response."""
    return _judge(target, "check_response")(encoded.body)
