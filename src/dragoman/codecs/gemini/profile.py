"""What Gemini accepts: the developer API and Vertex AI, which use the same format."""

from __future__ import annotations

import re
from types import MappingProxyType

from msgspec import structs

from dragoman.codecs.google_models import (
    BEFORE_3,
    HOSTED,
    NO_PREFILL,
    NO_SYSTEM,
    SINCE_3,
    THINKING,
    TOOL_NAME,
    ThinkingRule,
)
from dragoman.codecs.google_services import UNKNOWN_TO_DEVELOPER_API, UNKNOWN_TO_VERTEX, UnknownKeys
from dragoman.codecs.google_usage import AUDIO_COUNTS, DETAILS_OF_INTERACTIONS
from dragoman.codecs.layout import Envelope, Layout
from dragoman.codecs.shared_settings import ANSWERED_BY_GOOGLE
from dragoman.profile import NEVER, HostedRule, Profile

FAMILY = "google"


class GeminiProfile(Profile, frozen=True, kw_only=True):
    path: str
    """URL path before the model's resource name."""
    model_prefix: str
    """Resource path of a bare model name."""
    other_publishers: str = ""
    """Resource path of {publisher}/{model}, if there are several publishers."""
    older_models: re.Pattern[str] = NEVER
    """Models that take no media in results, no JSON answer beside tools, no built-in tool beside functions."""
    no_system_models: re.Pattern[str] = NEVER
    """Models that refuse a system instruction."""
    image_detail_models: re.Pattern[str] = NEVER
    """Models that take a resolution for each image."""
    single_answer_models: re.Pattern[str] = NEVER
    """Models that return only one candidate."""
    server_calls_flag: bool = False
    """Built-in tools beside functions must be enabled by `includeServerSideToolInvocations`."""
    unknown_keys: UnknownKeys = MappingProxyType({})
    """Keys of the other service that this one refuses."""
    needs_role: bool = False
    """A content without a role is refused."""
    unreachable_files: re.Pattern[str] = NEVER
    """URIs that the service does not fetch."""
    thinking: tuple[ThinkingRule, ...] = THINKING
    tier_header: str = ""
    """Header that holds the service tier, if the body does not."""


PROFILE = GeminiProfile(
    name="gemini",
    family=FAMILY,
    message_names=False,
    has_logprobs=True,
    answer_tiers=ANSWERED_BY_GOOGLE,
    usage_details=AUDIO_COUNTS,
    usage_members=DETAILS_OF_INTERACTIONS,
    system="field",
    merge_model_turns=True,
    first_turn_user=True,
    no_prefill_models=NO_PREFILL,
    tool_name=TOOL_NAME,
    stop_limit=5,
    cache_marks=0,
    placeholder_signature_models=SINCE_3,
    # «Function calling with a response mime type: 'application/json' is unsupported»
    no_output_schema_beside_tools_models=BEFORE_3,
    path="/v1beta/",
    model_prefix="models/",
    older_models=BEFORE_3,
    no_system_models=NO_SYSTEM,
    image_detail_models=SINCE_3,
    single_answer_models=SINCE_3,
    server_calls_flag=True,
    unknown_keys=UNKNOWN_TO_DEVELOPER_API,
    unreachable_files=re.compile(r"gs://|s3://|file:|(?!files/)[^:]*$|[A-Za-z]:\\"),
    hosted={
        **HOSTED,
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
    needs_role=True,
    unknown_keys=UNKNOWN_TO_VERTEX,
    unreachable_files=re.compile(
        r"https://generativelanguage\.googleapis\.com/|s3://|file:|(?!files/)[^:]*$|[A-Za-z]:\\"
    ),
    hosted={
        "web_search": HostedRule(options=frozenset({"blocked_domains"})),
        "web_fetch": HostedRule(),
        "code_execution": HostedRule(),
    },
    tier_header="X-Vertex-AI-LLM-Shared-Request-Type",
)

OWN_REQUESTS: dict[str, GeminiProfile] = {
    profile.name: structs.replace(
        profile,
        hosted={**PROFILE.hosted, **VERTEX_PROFILE.hosted},
        older_models=NEVER,
        no_system_models=NEVER,
        unknown_keys=MappingProxyType({}),
        needs_role=False,
        tier_header="",
    )
    for profile in (PROFILE, VERTEX_PROFILE)
}
"""Service -> its profile for requests that were written for it: they return unchanged, even what it refuses."""


LAYOUT = Layout(
    messages="contents",
    tool_choice=("toolConfig",),
    system="systemInstruction",
    assistant="model",
    message_signs=("role", "parts"),
    calls="parts",
    call_sign=("functionCall", None),
    call_envelope=Envelope("functionCall", ("functionCall", "function_call")),
    results=("user", "parts"),
    result_envelope=Envelope("functionResponse", ("functionResponse", "function_response")),
    result_names="needed",
    declarations="functionDeclarations",
    choice_envelope=Envelope(
        "functionCallingConfig", ("functionCallingConfig", "function_calling_config"), inner="mode"
    ),
)
"""Where calls, results, tools and the tool choice are in a generateContent request."""
