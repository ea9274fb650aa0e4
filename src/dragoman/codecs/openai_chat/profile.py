"""What Chat Completions accepts, and what its models refuse."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Literal

from msgspec import structs

from dragoman.codecs.layout import Envelope, Layout
from dragoman.codecs.shared_settings import ANSWERED_BY_OPENAI
from dragoman.profile import ALWAYS, REASONING_OWED_MODELS, HostedRule, Profile

PATH = "/chat/completions"


class ChatProfile(Profile, frozen=True, kw_only=True):
    """One server that speaks this format. The defaults are OpenAI itself."""

    maximum: Literal["max_completion_tokens", "max_tokens"] = "max_completion_tokens"
    """The key that limits the answer's length."""
    seed: str = "seed"
    required: str = "required"
    """The word for a forced call."""
    developer: bool = True
    """Whether it knows the role `developer`; the others know `system`."""
    custom_tools: bool = True
    strict_schemas: bool = True
    """Whether `strict` requires every object closed and every property required."""
    text_only: bool = False
    """Whether content must be one string: no media, no parts."""
    fetches_images: bool = True
    parsed_arguments: bool = False
    """Whether the arguments of calls in a history must be JSON."""
    returns_reasoning: bool = False
    """Whether it requires reasoning to be sent back together with the calls it led to."""
    reasoning_key: str = "reasoning_content"
    """The field in which answers carry reasoning."""
    minted: str | None = None
    """The family whose signatures it accepts; None: the model name decides."""
    modalities: tuple[str, ...] = ("text", "audio")
    """The output modalities it accepts."""
    refuses: tuple[str, ...] = ()
    """Settings it refuses, or accepts and ignores."""
    sampling: Mapping[str, str] = MappingProxyType({})
    """Settings of sampling that it has and OpenAI does not, and their keys."""
    cache_control: bool = False
    """Whether it takes Anthropic's cache marks."""
    hosted_entries: tuple[str, Mapping[str, str]] | None = None
    """Prefix of the types of its hosted tools, and the rest of the type for each kind; None: as OpenAI."""
    known_keys: frozenset[str] | None = None
    """If unknown keys of requests and messages are refused: the request keys that are known."""


PROFILE = ChatProfile(
    name="openai-chat",
    answer_tiers=ANSWERED_BY_OPENAI,
    family="openai",
    has_logprobs=True,
    counts_searches=True,
    # Longer ids were refused in some fields ("maximum length 40"), so ours never exceed it.
    call_id=re.compile(r"[^\s]{1,40}"),
    stop_limit=4,
    usage_details=frozenset(
        {"audio_input", "audio_output", "accepted_prediction", "rejected_prediction", "cache_written_1h"}
    ),
    # A choice names functions only. Other models answer «Web search options not supported with this model.»
    hosted={"web_search": HostedRule(options=frozenset({"location", "context_size"}))},
    hosted_models=re.compile(r"-search-(?:preview|api)"),
)

REASONING_MODELS = re.compile(r"^(o[1-9]|gpt-5(?!.*chat)|gpt-[6-9])")
"""These refuse stop sequences, and sampling settings unless the effort is "none"."""

SAMPLING = ("temperature", "top_p", "presence_penalty", "frequency_penalty", "logprobs", "top_logprobs")

AUDIO_MODELS = re.compile(r"audio|realtime|voxtral|gemini|omni")
"""Other models answer audio parts with "Content blocks are expected to be either text or image_url type"."""

SPEAKER = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""The name of a message's author."""

_MINTED_BEHIND = (
    (re.compile(r"^anthropic/"), "anthropic"),
    (re.compile(r"^(google/|models/)?gemini|^google/"), "google"),
    (re.compile(r"^openai/"), "openai-responses"),
    (re.compile(r"^x-ai/"), "xai"),
)


@lru_cache(maxsize=256)
def relayed_family_of(model: str) -> str | None:
    """Return the family whose signatures this model accepts behind a relay or compatible endpoint, if any."""
    return next((family for pattern, family in _MINTED_BEHIND if pattern.search(model) is not None), None)


@lru_cache(maxsize=256)
def takes_plain_reasoning(model: str) -> bool:
    """Whether this model requires unsigned reasoning to be sent back."""
    return REASONING_OWED_MODELS.search(model) is not None


PLAIN_MODELS = re.compile(r"^(gpt-3|gpt-4|chatgpt-4)")
"""Models that do not reason, and refuse a reasoning effort."""

# ── servers that speak this format ────────────────────────────────────────────────────────────────────────────

_OF_THE_PLATFORM = (
    "verbosity",
    "labels",
    "safety_identifier",
    "service_tier",
    "store",
    "prompt_cache_key",
    "prompt_cache_retention",
    "prompt_cache_options",
    "moderation",
    "obfuscation",
)
"""Settings of OpenAI's own platform; servers with their own models or hardware have no use for them."""

_SAMPLING = {"top_k": "top_k", "min_p": "min_p", "repetition_penalty": "repetition_penalty"}

_COMPATIBLE = structs.replace(
    PROFILE,
    # Only OpenAI and Mistral are known to limit ids: ids that another server minted go back unchanged.
    call_id=None,
    legalises_own_family=True,
    developer=False,
    custom_tools=False,
    strict_schemas=False,
    hosted={},
    hosted_models=ALWAYS,
    hosted_entries=("", {}),
)

COMPATIBLE = structs.replace(_COMPATIBLE, name="openai-compatible")
"""A server of which nothing more is known."""
GROQ = structs.replace(
    _COMPATIBLE,
    name="groq",
    reasoning_key="reasoning",
    hosted={"web_search": HostedRule(), "code_execution": HostedRule()},
    hosted_models=re.compile("gpt-oss"),
    hosted_entries=("", {"web_search": "browser_search", "code_execution": "code_interpreter"}),
)
MISTRAL = structs.replace(
    _COMPATIBLE,
    name="mistral",
    maximum="max_tokens",
    seed="random_seed",
    required="any",
    call_id=re.compile(r"[a-zA-Z0-9]{9}"),
    call_id_length=9,
    refuses=("user",),
    # «extra_forbidden»: any other key is a 422.
    known_keys=frozenset(
        {
            "frequency_penalty",
            "guardrails",
            "max_tokens",
            "metadata",
            "n",
            "parallel_tool_calls",
            "prediction",
            "presence_penalty",
            "prompt_cache_key",
            "prompt_mode",
            "random_seed",
            "reasoning_effort",
            "response_format",
            "safe_prompt",
            "service_tier",
            "stop",
            "stream",
            "temperature",
            "tool_choice",
            "tools",
            "top_p",
        }
    ),
)
DEEPSEEK = structs.replace(
    _COMPATIBLE,
    name="deepseek",
    maximum="max_tokens",
    returns_reasoning=True,
    no_output_schema_models=ALWAYS,
    text_only=True,
)
XAI = structs.replace(_COMPATIBLE, name="xai")
_SITES = frozenset({"max_uses", "allowed_domains", "blocked_domains"})
OPENROUTER = structs.replace(
    _COMPATIBLE,
    name="openrouter",
    developer=True,
    sampling=_SAMPLING,
    cache_control=True,
    reasoning_key="reasoning",
    hosted={
        "web_search": HostedRule(options=_SITES | {"location", "context_size"}),
        "web_fetch": HostedRule(options=_SITES),
    },
    hosted_entries=("openrouter:", {"web_search": "web_search", "web_fetch": "web_fetch"}),
    modalities=("text", "audio", "image"),
)
GEMINI_OPENAI = structs.replace(
    _COMPATIBLE,
    name="gemini-openai",
    minted="google",
    refuses=("seed", "parallel_tool_calls", "presence_penalty", "frequency_penalty", "user", *_OF_THE_PLATFORM),
)
COPILOT = structs.replace(_COMPATIBLE, name="copilot", minted="copilot", reasoning_key="reasoning_text")
VLLM = structs.replace(_COMPATIBLE, name="vllm", parsed_arguments=True, reasoning_key="reasoning", sampling=_SAMPLING)
LLAMA_CPP = structs.replace(
    _COMPATIBLE,
    name="llama-cpp",
    maximum="max_tokens",
    sampling={**_SAMPLING, "repetition_penalty": "repeat_penalty"},
    refuses=("candidates", "user", *_OF_THE_PLATFORM),
)
OLLAMA_OPENAI = structs.replace(
    _COMPATIBLE,
    name="ollama-openai",
    maximum="max_tokens",
    parsed_arguments=True,
    fetches_images=False,
    reasoning_key="reasoning",
    refuses=("tool_choice", "parallel_tool_calls", "candidates", "user", *_OF_THE_PLATFORM),
)

LAYOUT = Layout(
    call_envelope=Envelope("function", ("function", "custom", "type"), beside=(("type", "function"),)),
    tool_envelope=Envelope("function", ("function", "custom", "type"), beside=(("type", "function"),)),
)
"""Where calls, results, tools and the tool choice are in a Chat Completions request."""
