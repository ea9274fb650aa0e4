"""All formats of stored conversations, by name, and detection of a record's format."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

from dragoman.codecs.datasets.conversation import dataset_paths
from dragoman.codecs.datasets.dataset import Dataset
from dragoman.codecs.records.refusals import no_errors
from dragoman.codecs.registry import Codec
from dragoman.ir.values import exact_json
from dragoman.losses import JsonPaths
from dragoman.profile import Profile

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
    "llm": ("llm_logs", "DATASET"),
    "alpaca": ("training_sets", "ALPACA_ROW"),
    "glaive": ("training_sets", "GLAIVE_CHAT"),
    "xlam": ("training_sets", "XLAM_ROW"),
    "toolace": ("training_sets", "TOOLACE_CHAT"),
    "openassistant": ("training_sets", "OPENASSISTANT_TREE"),
    "langsmith": ("traces", "LANGSMITH_RUN"),
    "langfuse": ("traces", "LANGFUSE_GENERATION"),
    "chatgpt-export": ("exports", "CHATGPT_EXPORT"),
    "claude-export": ("exports", "CLAUDE_EXPORT"),
    "anthropic-message-list": ("vendor_lists", "ANTHROPIC_LIST"),
    "bedrock-message-list": ("vendor_lists", "BEDROCK_LIST"),
    "ms-swift": ("message_rows", "SWIFT_ROW"),
    "nemotron": ("message_rows", "NEMOTRON_ROW"),
    "haystack": ("frameworks", "HAYSTACK_MESSAGES"),
    "llama-index": ("frameworks", "LLAMA_INDEX_MESSAGES"),
    "autogen": ("frameworks", "AUTOGEN_MESSAGES"),
    "langchain4j": ("frameworks", "LANGCHAIN4J_MESSAGES"),
    "dotnet-ai": ("frameworks", "DOTNET_AI_MESSAGES"),
    "inspect": ("agent_logs", "INSPECT_SAMPLE"),
    "atif": ("agent_logs", "ATIF_TRAJECTORY"),
    "adk": ("agent_logs", "ADK_SESSION"),
    "goose": ("agent_logs", "GOOSE_SESSION"),
    "pi": ("agent_logs", "PI_SESSION"),
    "opencode": ("agent_logs", "OPENCODE_SESSION"),
    "qwen-code": ("agent_logs", "QWEN_CODE_SESSION"),
    "semantic-kernel": ("agent_memory", "SEMANTIC_KERNEL_HISTORY"),
    "smolagents": ("agent_memory", "SMOLAGENTS_STEPS"),
    "letta": ("agent_memory", "LETTA_AGENT"),
    "open-webui": ("chat_apps", "OPEN_WEBUI_CHAT"),
    "librechat": ("chat_apps", "LIBRECHAT_EXPORT"),
}


def dataset(name: str) -> Dataset:
    """Return a format by name."""
    module, attribute = _MODULES[name]
    found: Dataset = getattr(_module(module), attribute)
    return found


def _module(name: str) -> Any:
    return import_module(f"dragoman.codecs.datasets.{name}")


def paths_of(name: str) -> JsonPaths:
    """Return the function that maps losses of this format to JSON paths."""
    module, _ = _MODULES[name]
    own: Callable[..., Any] | None = getattr(_module(module), f"{name.replace('-', '_')}_paths", None) or getattr(
        _module(module), "request_paths", None
    )
    return dataset_paths if own is None else own


def known_dataset(data: Any) -> str | None:
    """Return the format of a parsed record, or None if it is none of these or could be several."""
    found = [name for name in _MODULES if dataset(name).is_record(data)]
    return found[0] if len(found) == 1 else None


def is_session(name: str) -> bool:
    """Return whether a whole file of this format is one conversation."""
    return name in _MODULES and dataset(name).is_session


def session_of(line: Any) -> str | None:
    """Return the only format whose session files can have this line, or None."""
    found = [name for name in _MODULES if is_session(name) and dataset(name).is_record([line])]
    return found[0] if len(found) == 1 else None


_UNREADABLE_LINE = b'{"unreadable":"this line is not JSON"}'
"""Stands for a damaged line of a session: a key that no reader knows, so that it becomes a loss at its place."""


def readable_lines(lines: Iterable[bytes]) -> list[bytes]:
    """Return the lines of a session; those that were truncated when the program died are reported where they are."""
    return [line if exact_json(line) is not None else _UNREADABLE_LINE for line in lines]


def codec_of(name: str) -> Codec:
    """Return the format as a codec.

    It has only requests, with any name, any id, any order of turns, and calls without results.
    """
    found, paths = dataset(name), paths_of(name)
    decode_error, encode_error = no_errors(name)
    no_responses = no_errors(name, "responses")
    any_name = re.compile(r".*", re.DOTALL)
    profile = Profile(
        name=name,
        family=name,
        message_names=found.names_speakers,
        names_speakers=True,
        tool_name=any_name,
        unanswered_calls=True,
    )
    return Codec(
        name,
        profile,
        found.decode_request,
        found.encode_request,
        no_responses[0],
        no_responses[1],
        decode_error,
        encode_error,
        paths,
        paths,
    )
