"""What Gemini accepts: the developer API and Vertex AI, which speak the same format."""

from __future__ import annotations

import re
from typing import Literal

from msgspec import Struct, structs

from dragoman.profile import NEVER, HostedRule, Profile

FAMILY = "google"


class ThinkingRule(Struct, frozen=True, kw_only=True):
    """How some models are told to think."""

    models: re.Pattern[str]
    by: Literal["level", "budget", "nothing"]
    lowest: str = "MINIMAL"
    """Where the level rules: the least one these models take. They cannot be switched off."""
    minimum: int = 0
    """Where the budget rules: the least one; 0 switches thinking off, so a minimum above 0 means they cannot."""
    maximum: int = 24576
    can_switch_off: bool = True


THINKING: tuple[ThinkingRule, ...] = (
    ThinkingRule(models=re.compile(r"gemini-(?:1\.|2\.0)"), by="nothing"),
    ThinkingRule(models=re.compile(r"gemini-2\.5-pro"), by="budget", minimum=128, maximum=32768, can_switch_off=False),
    ThinkingRule(models=re.compile(r"gemini-2\.5-flash-lite"), by="budget", minimum=512),
    ThinkingRule(models=re.compile(r"gemini-2\.5"), by="budget"),
    # 400 for MINIMAL: 3 Pro, 3.1 Pro, 3.7 and 3.8 Flash, 4 Argon.
    ThinkingRule(models=re.compile(r"gemini-(?:3(?:\.1)?-pro|3\.[78]-flash|4-argon)"), by="level", lowest="LOW"),
    ThinkingRule(models=re.compile(r""), by="level"),
)

LEVEL_OF_EFFORT = {
    "minimal": "MINIMAL",
    "low": "LOW",
    "medium": "MEDIUM",
    "high": "HIGH",
    "xhigh": "HIGH",
    "max": "HIGH",
}
# The budgets that Google's own compatible endpoint gives these words.
BUDGET_OF_EFFORT = {"minimal": 1024, "low": 1024, "medium": 8192, "high": 24576, "xhigh": 24576, "max": 24576}

_BEFORE_3 = re.compile(r"gemini-[12](?:\.|-|$)")
_SINCE_3 = re.compile(r"gemini-(?:[3-9]|[1-9]\d|(?:pro|flash|flash-lite)-latest)")


class GeminiProfile(Profile, frozen=True, kw_only=True):
    path: str
    """Before the model's resource name."""
    model_prefix: str
    """What a bare model name stands under."""
    other_publishers: str = ""
    """What {publisher}/{model} stands under, where there are several publishers."""
    older_models: re.Pattern[str] = NEVER
    """Models that take no media in results, no JSON answer beside functions, no built-in tool beside functions."""
    single_answer_models: re.Pattern[str] = NEVER
    """Models that give one candidate only."""
    server_calls_flag: bool = False
    """Built-in tools beside functions must be asked for by `includeServerSideToolInvocations`."""
    unknown_keys: frozenset[str] = frozenset()
    """Keys of the other service that this one refuses: of parts, and of tools."""
    unreachable_files: re.Pattern[str] = NEVER
    """URIs that the service does not fetch."""
    thinking: tuple[ThinkingRule, ...] = THINKING
    tier_header: str = ""
    """Where the service tier is said, if not in the body."""


PROFILE = GeminiProfile(
    name="gemini",
    family=FAMILY,
    says_logprobs=True,
    system="field",
    merge_model_turns=True,
    first_turn_user=True,
    # «Requests ending with a model turn are not supported», since 3.6.
    no_prefill_models=re.compile(r"gemini-(?:3\.(?:[6-9]|\d\d)|[4-9]|[1-9]\d|(?:pro|flash|flash-lite)-latest)"),
    tool_name=re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}"),
    stop_limit=5,
    cache_marks=0,
    placeholder_signature_models=_SINCE_3,
    # «Function calling with a response mime type: 'application/json' is unsupported»
    no_output_schema_beside_tools_models=_BEFORE_3,
    path="/v1beta/",
    model_prefix="models/",
    older_models=_BEFORE_3,
    single_answer_models=_SINCE_3,
    server_calls_flag=True,
    unreachable_files=re.compile(r"gs://|s3://"),
    # A choice names functions only.
    hosted={
        "web_search": HostedRule(),
        "web_fetch": HostedRule(),
        "code_execution": HostedRule(),
        "file_search": HostedRule(options=frozenset({"stores", "max_results"})),
        "mcp": HostedRule(options=frozenset({"server_url", "authorization", "headers"})),
    },
)

VERTEX_PROFILE = structs.replace(
    PROFILE,
    name="vertex",
    sends_foreign_ids=False,
    path="/v1beta1/",
    model_prefix="publishers/google/models/",
    other_publishers="publishers/{publisher}/models/{model}",
    server_calls_flag=False,
    unknown_keys=frozenset({"toolCall", "toolResponse", "fileSearch", "mcpServers"}),
    unreachable_files=re.compile(r"https://generativelanguage\.googleapis\.com/|s3://"),
    hosted={
        "web_search": HostedRule(options=frozenset({"blocked_domains"})),
        "web_fetch": HostedRule(),
        "code_execution": HostedRule(),
    },
    tier_header="X-Vertex-AI-LLM-Shared-Request-Type",
)


def path_of(model: str | None, profile: GeminiProfile, *, stream: bool | None) -> str:
    """Where a request goes: model and streaming are said there, not in the body."""
    method = "streamGenerateContent?alt=sse" if stream else "generateContent"
    name = model or "{model}"
    if "/" not in name:
        return f"{profile.path}{profile.model_prefix}{name}:{method}"
    name = name.removeprefix("models/")
    publisher, slash, bare = name.partition("/")
    if not slash:
        name = profile.model_prefix + name
    elif "/" not in bare and profile.other_publishers:
        name = profile.other_publishers.format(publisher=publisher, model=bare)
    return f"{profile.path}{name}:{method}"
