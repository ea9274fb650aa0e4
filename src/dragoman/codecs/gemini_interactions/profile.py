"""What the Interactions API accepts: the developer API and Vertex AI.

The family is not that of generateContent: keys, enums and places differ, and an unknown key is refused. What both
APIs express differently (signatures, safety settings, built-in tools, code that Google ran) is in the intermediate
format as generateContent writes it, under the family `google`, and is translated here (codecs/google_vocabulary.py).
"""

from __future__ import annotations

import re

from msgspec import structs

from dragoman.codecs.google_media_keys import KEYS_OF_MEDIA
from dragoman.codecs.google_models import BEFORE_3, HOSTED, NO_PREFILL, SINCE_3, TOOL_NAME
from dragoman.codecs.google_settings import TRANSLATED
from dragoman.codecs.google_signatures import GOOGLE
from dragoman.codecs.google_usage import AUDIO_COUNTS, DETAILS_OF_GENERATE
from dragoman.codecs.layout import Layout
from dragoman.codecs.shared_settings import ANSWERED_BY_GOOGLE
from dragoman.ir import FinishReason
from dragoman.profile import NEVER, HostedRule, Profile

FAMILY = "gemini-interactions"


class InteractionsProfile(Profile, frozen=True, kw_only=True):
    path: str
    """The URL path; model and streaming are in the body."""
    unreachable_files: re.Pattern[str] = NEVER
    """URIs that the service does not fetch."""


PROFILE = InteractionsProfile(
    name="gemini-interactions",
    answer_tiers=ANSWERED_BY_GOOGLE,
    usage_details=AUDIO_COUNTS,
    family=FAMILY,
    answer_keys=frozenset({"steps", "outputs"}),
    message_names=False,
    signature_family=GOOGLE,
    system="field",
    no_prefill_models=NO_PREFILL,
    tool_name=TOOL_NAME,
    stop_limit=5,
    cache_marks=0,
    no_output_schema_beside_tools_models=BEFORE_3,
    placeholder_signature_models=SINCE_3,
    translates={
        GOOGLE: frozenset(
            {
                *TRANSLATED,
                *KEYS_OF_MEDIA,
                "tool_choice.mode",
                # Their steps are always included here.
                "toolConfig.includeServerSideToolInvocations",
                *(f"usage.{name}" for name in DETAILS_OF_GENERATE),
            }
        )
    },
    hosted={
        **HOSTED,
        "mcp": HostedRule(options=frozenset({"server_url", "authorization", "headers", "allowed_tools"})),
    },
    path="/v1beta/interactions",
    unreachable_files=re.compile(r"gs://|s3://|file:|(?!files/)[^:]*$|[A-Za-z]:\\"),
)

VERTEX_PROFILE = structs.replace(
    PROFILE,
    name="vertex-interactions",
    path="/v1beta1/interactions",
    unreachable_files=re.compile(
        r"https://generativelanguage\.googleapis\.com/|s3://|file:|(?!files/)[^:]*$|[A-Za-z]:\\"
    ),
)

STATUSES: dict[str, FinishReason] = {
    "completed": "stop",
    "requires_action": "tool_calls",
    "incomplete": "length",
    "budget_exceeded": "length",
    "failed": "error",
    "cancelled": "error",
    "requires_continuation": "pause",
}
"""How an answer ended. There is no finish reason: a filtered answer, for one, looks like a complete one."""
UNFINISHED = frozenset({"queued", "in_progress"})

LAYOUT = Layout(
    messages="input",
    calls=None,
    call_sign=("type", "function_call"),
    tool_choice=("generation_config", "tool_choice"),
    system="system_instruction",
    message_signs=("content",),
    result_names="kept",
)
"""Where calls, results and tools are in an Interactions request: everything is a step of `input`."""
