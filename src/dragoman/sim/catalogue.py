"""Model names that the simulators accept: a family, optionally with a date, a size or a preview."""

from __future__ import annotations

import re
from dataclasses import dataclass

_DATED = (
    r"(?:-\d{4}-\d{2}-\d{2}|-\d{8}|@\d{8}|-\d{4}(?:-preview)?|-preview(?:-\d{2}-\d{4}|-\d{2}-\d{2})?|-latest|-\d{3})?"
)

_PATTERNS: dict[str, str] = {
    "openai": r"(?:ft:)?(?:gpt-3\.5-turbo(?:-16k|-instruct)?|gpt-4(?:-turbo|-32k)?|gpt-4o(?:-mini)?(?:-audio|-search)?"
    r"|gpt-audio(?:-mini)?|gpt-4\.1(?:-mini|-nano)?|gpt-4\.5|gpt-5(?:\.\d)?(?:-mini|-nano|-pro|-codex(?:-mini|-max)?"
    r"|-chat|-search-api)?|o1(?:-mini|-pro)?|o3(?:-mini|-pro)?|o4-mini|chatgpt-4o|gpt-oss-(?:20b|120b)"
    r"|text-embedding-[\w-]+)" + _DATED,
    "anthropic": r"claude-(?:(?:opus|sonnet|haiku|fable|mythos)-\d(?:-\d{1,2})?|mythos"
    r"|3(?:-[57])?-(?:opus|sonnet|haiku))" + _DATED,
    "google": r"gemini-(?:\d(?:\.\d)?(?:-(?:pro|flash|flash-lite|flash-8b|nano|argon|ultra))?(?:-image|-tts|-exp)?"
    r"|(?:pro|flash|flash-lite))" + _DATED + r"|gemma-[\w.-]+",
    "bedrock": r"(?:[a-z]{2,6}\.)?(?:anthropic|amazon|meta|mistral|cohere|ai21|deepseek|openai|qwen|writer|google"
    r"|minimax|moonshot|nvidia|zai|twelvelabs)\.[\w.:-]+|arn:aws[\w-]*:(?:bedrock|sagemaker):.+",
    "cohere": r"command-(?:a|r7b|r(?:-plus)?)(?:-[a-z]+)?(?:-\d{2}-\d{4})?|c4ai-aya-[\w-]+",
}


@dataclass(frozen=True, slots=True)
class LocalModel:
    """An Ollama model: `/api/show` lists its capabilities and `/api/chat` enforces them."""

    name: str
    family: str
    size: str
    capabilities: frozenset[str]


_CHATS = frozenset({"completion"})
LOCAL_MODELS: tuple[LocalModel, ...] = (
    LocalModel("qwen3:latest", "qwen3", "8.2B", _CHATS | {"tools", "thinking"}),
    LocalModel("qwen3:4b", "qwen3", "4.0B", _CHATS | {"tools", "thinking"}),
    LocalModel("qwen3-vl:latest", "qwen3vl", "8.8B", _CHATS | {"tools", "thinking", "vision"}),
    LocalModel("gpt-oss:20b", "gptoss", "20.9B", _CHATS | {"tools", "thinking"}),
    LocalModel("deepseek-r1:latest", "qwen2", "7.6B", _CHATS | {"thinking"}),
    LocalModel("llama3.2:latest", "llama", "3.2B", _CHATS | {"tools"}),
    LocalModel("llama3.2-vision:latest", "mllama", "10.7B", _CHATS | {"vision"}),
    LocalModel("mistral:latest", "llama", "7.2B", _CHATS | {"tools"}),
    LocalModel("gemma3:latest", "gemma3", "4.3B", _CHATS | {"vision"}),
    LocalModel("smollm2:latest", "llama", "1.7B", _CHATS | {"tools"}),
)

LISTED: dict[str, tuple[str, ...]] = {
    "openai": (
        "gpt-5.6",
        "gpt-5.6-mini",
        "gpt-5.1",
        "gpt-5",
        "gpt-5-mini",
        "gpt-4.1",
        "gpt-4.1-mini",
        "gpt-4o",
        "gpt-4o-mini",
        "o3",
        "o4-mini",
    ),
    "anthropic": (
        "claude-opus-5-5",
        "claude-sonnet-5-5",
        "claude-haiku-5-5",
        "claude-sonnet-5",
        "claude-opus-4-8",
        "claude-sonnet-4-6",
        "claude-sonnet-4-5-20250929",
        "claude-haiku-4-5-20251001",
    ),
    "google": (
        "gemini-4-argon",
        "gemini-3.8-flash",
        "gemini-3.6-flash",
        "gemini-3.5-flash",
        "gemini-3.1-pro-preview",
        "gemini-3-flash-preview",
        "gemini-2.5-pro",
        "gemini-2.5-flash",
        "gemini-2.5-flash-lite",
    ),
    "bedrock": (
        "anthropic.claude-opus-4-8",
        "anthropic.claude-sonnet-4-5-20250929-v1:0",
        "amazon.nova-pro-v1:0",
        "amazon.nova-lite-v1:0",
        "openai.gpt-oss-120b-1:0",
    ),
    "cohere": (
        "command-a-plus-05-2026",
        "command-a-reasoning-08-2025",
        "command-a-vision-07-2025",
        "command-a-03-2025",
        "command-r7b-12-2024",
    ),
}


def exists(vendor: str, model: str) -> bool:
    return re.fullmatch(_PATTERNS[vendor], model) is not None


def local_model(name: str) -> LocalModel | None:
    """A name without a tag means `:latest`."""
    full = (name if ":" in name else f"{name}:latest").lower()
    return next((model for model in LOCAL_MODELS if model.name == full), None)
