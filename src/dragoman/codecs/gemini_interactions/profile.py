"""What the Interactions API accepts: the developer API and Vertex AI.

The family is not that of generateContent: keys, enums and places differ, and an unknown key is refused. What both APIs
say in different words (signatures, safety settings, built-in tools, code that Google ran) stands in the intermediate
format as generateContent says it, under the family `google`, and is translated here (generate_content.py).
"""

from __future__ import annotations

import re

from msgspec import structs

from dragoman.codecs.google_signatures import GOOGLE
from dragoman.ir import FinishReason
from dragoman.profile import NEVER, HostedRule, Profile

FAMILY = "gemini-interactions"


class InteractionsProfile(Profile, frozen=True, kw_only=True):
    path: str
    """Model and streaming are said in the body."""
    unreachable_files: re.Pattern[str] = NEVER
    """URIs that the service does not fetch."""


PROFILE = InteractionsProfile(
    name="gemini-interactions",
    family=FAMILY,
    signature_family=GOOGLE,
    system="field",
    # Requests that end with the model are refused, as by generateContent.
    no_prefill_models=re.compile(r"gemini-(?:3\.(?:[6-9]|\d\d)|[4-9]|[1-9]\d|(?:pro|flash|flash-lite)-latest)"),
    tool_name=re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}"),
    stop_limit=5,
    cache_marks=0,
    no_output_schema_beside_tools_models=re.compile(r"gemini-[12][.-]"),
    placeholder_signature_models=re.compile(r"gemini-(?:[3-9]|[1-9]\d|(?:pro|flash|flash-lite)-latest)"),
    translates={
        GOOGLE: frozenset(
            {
                "safetySettings",
                "cachedContent",
                "tool_choice.mode",
                # Their steps are always told here.
                "toolConfig.includeServerSideToolInvocations",
            }
        )
    },
    # A choice names functions only.
    hosted={
        "web_search": HostedRule(),
        "web_fetch": HostedRule(),
        "code_execution": HostedRule(),
        "file_search": HostedRule(options=frozenset({"stores", "max_results"})),
        "mcp": HostedRule(options=frozenset({"server_url", "headers", "allowed_tools"})),
    },
    path="/v1beta/interactions",
    unreachable_files=re.compile(r"gs://"),
)

VERTEX_PROFILE = structs.replace(
    PROFILE,
    name="vertex-interactions",
    path="/v1beta1/interactions",
    unreachable_files=re.compile(r"https://generativelanguage\.googleapis\.com/"),
)

LEVELS = ("minimal", "low", "medium", "high")
"""In rising order."""

LEVELS_OF: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...] = (
    (re.compile(r"gemini-(?:1\.|2\.0)"), ()),
    (re.compile(r"gemini-(?:2\.5|3(?:\.1)?-pro|3\.[78]-flash|4-argon)"), LEVELS[1:]),
    (re.compile(r""), LEVELS),
)
"""What `thinking_level` may say to a model, by its name: the first row that matches counts."""

STATUSES: dict[str, FinishReason] = {
    "completed": "stop",
    "requires_action": "tool_calls",
    "incomplete": "length",
    "budget_exceeded": "length",
    "failed": "error",
    "cancelled": "error",
    "requires_continuation": "pause",
}
"""How an answer ended. There is no finish reason: a filter, for one, is not told apart from a full answer."""
UNFINISHED = frozenset({"queued", "in_progress"})
