"""All formats of stored conversations, by name, and which of them a record is."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from dragoman.codecs.datasets.conversation import Dataset, dataset_paths
from dragoman.losses import JsonPaths

_MODULES: dict[str, tuple[str, str]] = {
    "openai-finetuning": ("openai_finetuning", "DATASET"),
    "trl": ("trl", "DATASET"),
    "message-list": ("message_list", "DATASET"),
    "sharegpt": ("sharegpt", "DATASET"),
    "hermes": ("hermes", "DATASET"),
    "gemini-tuning": ("tuning", "GEMINI_TUNING"),
    "bedrock-tuning": ("tuning", "BEDROCK_TUNING"),
    "claude-code": ("agent_sessions", "CLAUDE_CODE_SESSION"),
    "codex": ("agent_sessions", "CODEX_SESSION"),
    "gemini-cli": ("agent_sessions", "GEMINI_CLI_SESSION"),
    "langchain": ("langchain", "DATASET"),
    "openai-agents": ("openai_agents", "DATASET"),
    "pydantic-ai": ("pydantic_ai", "DATASET"),
    "vercel-ui": ("vercel_ui", "DATASET"),
    "opentelemetry": ("opentelemetry", "DATASET"),
    "tau-bench": ("benchmarks", "TAU_BENCH_RUN"),
    "bfcl": ("benchmarks", "BFCL_TASK"),
    "toolbench": ("benchmarks", "TOOLBENCH_ANSWER"),
    "swe-agent": ("benchmarks", "SWE_AGENT_RUN"),
    "openhands": ("openhands", "DATASET"),
    "chatgpt-export": ("exports", "CHATGPT_EXPORT"),
    "claude-export": ("exports", "CLAUDE_EXPORT"),
}
NAMES = tuple(_MODULES)


def dataset(name: str) -> Dataset:
    """One format."""
    module, attribute = _MODULES[name]
    found: Dataset = getattr(_module(module), attribute)
    return found


def _module(name: str) -> Any:
    return import_module(f"dragoman.codecs.datasets.{name}")


def paths_of(name: str) -> JsonPaths:
    """How losses of this format find their place."""
    module, _ = _MODULES[name]
    own: Callable[..., Any] | None = getattr(_module(module), f"{name.replace('-', '_')}_paths", None) or getattr(
        _module(module), "request_paths", None
    )
    return dataset_paths if own is None else own


def known_dataset(data: Any) -> str | None:
    """The format of a parsed record, or None when it is none of these or could be several."""
    found = [name for name in NAMES if dataset(name).is_record(data)]
    return found[0] if len(found) == 1 else None
