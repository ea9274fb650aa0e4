"""All formats by name. A codec is imported when it is first used, so `import dragoman` stays cheap."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from dragoman.errors import UnknownFormat

if TYPE_CHECKING:
    from dragoman.codecs.encoded import Encoded
    from dragoman.codecs.layout import Layout
    from dragoman.ir import Completion, Failure, Request
    from dragoman.losses import JsonPaths, LossLog
    from dragoman.profile import Profile

_FORMATS: dict[str, tuple[str, str]] = {
    "openai-chat": ("openai_chat", "PROFILE"),
    "openai-responses": ("openai_responses", "PROFILE"),
    "anthropic-messages": ("anthropic_messages", "PROFILE"),
    "gemini": ("gemini", "PROFILE"),
    "vertex": ("gemini", "VERTEX_PROFILE"),
    "bedrock-converse": ("bedrock_converse", "PROFILE"),
    "ollama-chat": ("ollama_chat", "PROFILE"),
    "cohere-chat": ("cohere_chat", "PROFILE"),
    "gemini-interactions": ("gemini_interactions", "PROFILE"),
}
"""Format -> its folder, and which profile of that folder it uses."""

_COMPATIBLE: dict[str, tuple[str, str]] = {
    "groq": ("openai_chat", "GROQ"),
    "mistral": ("openai_chat", "MISTRAL"),
    "deepseek": ("openai_chat", "DEEPSEEK"),
    "xai": ("openai_chat", "XAI"),
    "openrouter": ("openai_chat", "OPENROUTER"),
    "gemini-openai": ("openai_chat", "GEMINI_OPENAI"),
    "copilot": ("openai_chat", "COPILOT"),
    "vertex-interactions": ("gemini_interactions", "VERTEX_PROFILE"),
    "vllm": ("openai_chat", "VLLM"),
    "llama-cpp": ("openai_chat", "LLAMA_CPP"),
    "ollama-openai": ("openai_chat", "OLLAMA_OPENAI"),
}
"""Servers that use the format of another API. What each adds, refuses or needs is in its profile."""

_RECORDS: dict[str, tuple[str, str]] = {
    "universal": ("records.universal", "PROFILE"),
    "modular-prompt": ("records.modular_prompt", "PROFILE"),
    "agent-sdk": ("records.agent_sdk", "PROFILE"),
    "multi-llm-chat": ("records.multi_llm_chat", "PROFILE"),
}
"""Formats of stored histories, which no API uses: they have no streams and no errors."""


_READ_BY_PROFILE = frozenset({"gemini"})
"""Folders whose decoder of requests notes which of their services a request was written for."""

DATASETS = (
    "openai-finetuning", "trl", "message-list", "sharegpt", "hermes", "gemini-tuning", "bedrock-tuning",
    "claude-code", "codex", "gemini-cli", "langchain", "openai-agents", "pydantic-ai", "vercel-ui", "opentelemetry",
    "tau-bench", "bfcl", "toolbench", "swe-agent", "openhands", "llm", "chatgpt-export", "claude-export",
    "alpaca", "glaive", "xlam", "toolace", "openassistant", "langsmith", "langfuse", "anthropic-message-list",
    "bedrock-message-list", "haystack", "llama-index", "autogen", "langchain4j", "dotnet-ai", "inspect", "atif", "adk",
    "goose", "pi", "opencode", "qwen-code", "ms-swift", "nemotron", "semantic-kernel", "smolagents", "letta",
    "open-webui", "librechat",
)  # fmt: skip
"""Formats of stored conversations (codecs/datasets): training sets, logs, dumps. They have requests only."""


class Codec(Struct, frozen=True):
    """One format: its profile, the six functions that decode and encode, and the lookups of JSON paths."""

    name: str
    profile: Profile
    decode_request: Callable[[bytes], Request]
    encode_request: Callable[[Request, LossLog], Encoded]
    decode_response: Callable[[bytes], Completion]
    encode_response: Callable[[Completion, LossLog], Encoded]
    decode_error: Callable[[bytes, int | None, Mapping[str, str] | None], Failure]
    encode_error: Callable[[Failure], Encoded]
    request_paths: JsonPaths
    response_paths: JsonPaths


def formats(kind: Literal["wire", "compatible", "record", "dataset"] | None = "wire") -> tuple[str, ...]:
    """Return the names of the formats of APIs, of servers with a variant of one, of records, or (None) of all these.

    `dataset` returns those of stored conversations: training sets, logs of agents, dumps of frameworks.
    """
    if kind == "dataset":
        return DATASETS
    kinds = {"wire": _FORMATS, "compatible": _COMPATIBLE, "record": _RECORDS}
    return tuple(kinds[kind]) if kind is not None else tuple(name for names in kinds.values() for name in names)


def folder_of(name: str) -> str:
    """Return the codec folder of a format, or the module of a record format."""
    return _entry(name)[0]


def _entry(name: str) -> tuple[str, str]:
    entry = _FORMATS.get(name) or _COMPATIBLE.get(name) or _RECORDS.get(name)
    if entry is None:
        raise UnknownFormat(name, formats(None))
    return entry


def layout(name: str) -> Layout:
    """Return where the pieces of a conversation are in a request body of this format."""
    found: Layout = _module(folder_of(name), "profile").LAYOUT
    return found


def variation(name: str) -> dict[str, Profile]:
    """Return the extra arguments of an encoder for a format that is another one with a different profile."""
    folder, profile_name = _entry(name)
    return {} if profile_name == "PROFILE" else {"profile": getattr(_module(folder, "profile"), profile_name)}


@cache
def codec(name: str) -> Codec:
    """Return the codec of a format."""
    if name in DATASETS:
        return _dataset_codec(name)
    folder, profile_name = _entry(name)
    request, response, errors, profiles = (
        _module(folder, part) for part in ("request", "response", "errors", "profile")
    )
    profile: Profile = getattr(profiles, profile_name)
    variations = variation(name)
    return Codec(
        name,
        profile,
        _with_profile(request.decode_request, variations if folder in _READ_BY_PROFILE else {}),
        _with_profile(request.encode_request, variations),
        response.decode_response,
        _with_profile(response.encode_response, variations),
        errors.decode_error,
        errors.encode_error,
        _paths_in(folder, "request"),
        _paths_in(folder, "response"),
    )


def _dataset_codec(name: str) -> Codec:
    catalogue = import_module("dragoman.codecs.datasets.catalogue")
    found: Codec = catalogue.codec_of(name)
    return found


def _with_profile(encode: Any, variations: dict[str, Profile]) -> Any:
    return partial(encode, **variations) if variations else encode


def stream_module(name: str) -> Any:
    """Return the module with the `PayloadDecoder` and `EventEncoder` of a format."""
    return _module(folder_of(name), "stream")


def _module(folder: str, name: str) -> Any:
    """Import a module of a format: API formats are folders of modules, record formats one module each."""
    return import_module(
        f"dragoman.codecs.{folder}" if folder.startswith("records.") else f"dragoman.codecs.{folder}.{name}"
    )


def _paths_in(folder: str, kind: str) -> JsonPaths:
    paths: JsonPaths = getattr(_module(folder, "json_paths"), f"{kind}_paths")
    return paths
