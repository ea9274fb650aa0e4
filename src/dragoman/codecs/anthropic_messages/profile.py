"""What Messages accepts, as data. For what each Claude model does, see codecs/claude_models.py."""

from __future__ import annotations

import re

from dragoman.codecs.claude_models import (
    ALL_EFFORTS,
    NO_FORCED_CHOICE,
    NO_OUTPUT_SCHEMA,
    NO_PREFILL,
    ModelLimits,
    limits_of,
)
from dragoman.codecs.document_citations import CONVERSE_KEYS
from dragoman.codecs.layout import Layout
from dragoman.codecs.shared_settings import ANSWERED_BY_ANTHROPIC
from dragoman.profile import HostedRule, Profile

__all__ = ["ALL_EFFORTS", "PROFILE", "ModelLimits", "limits_of"]

PATH = "/v1/messages"
NEWEST_VERSION = "2026-10-21"
SAMPLING_VERSION = "2023-06-01"
"""2026-10-21 refuses temperature, top_p and top_k, whatever their values."""

PROFILE = Profile(
    name="anthropic-messages",
    answer_tiers=ANSWERED_BY_ANTHROPIC,
    citation_keys={"bedrock": CONVERSE_KEYS},
    family="anthropic",
    message_names=False,
    usage_details=frozenset({"cache_written_1h", "web_fetches"}),
    # Without `thinking`, its models answer without thinking blocks, and the newest with blocks whose text is empty.
    shows_reasoning_unasked=False,
    system="field",
    inline_system_models=re.compile(r"(?:fable|mythos|opus)-[5-9](?!\d)|opus-4[-.]8(?!\d)|sonnet-5[-.]5(?!\d)"),
    final_assistant="trimmed",
    no_prefill_models=NO_PREFILL,
    no_output_schema_models=NO_OUTPUT_SCHEMA,
    blank_text=False,
    call_id=re.compile(r"[a-zA-Z0-9_-]+"),
    # The documentation says 64; the server's own message has said 128 since mid-2025.
    tool_name=re.compile(r"[a-zA-Z0-9_-]{1,128}"),
    blank_stop=False,
    cache_marks=4,
    no_forced_choice_models=NO_FORCED_CHOICE,
    counts_searches=True,
    hosted={
        "web_search": HostedRule(
            name="web_search",
            options=frozenset({"max_uses", "allowed_domains", "blocked_domains", "location"}),
            one_domain_list=True,
        ),
        "web_fetch": HostedRule(
            name="web_fetch",
            options=frozenset({"max_uses", "allowed_domains", "blocked_domains"}),
            one_domain_list=True,
        ),
        "code_execution": HostedRule(name="code_execution"),
        "mcp": HostedRule(options=frozenset({"server_url", "authorization", "allowed_tools"}), https_only=True),
        "tool_search": HostedRule(),
    },
    shares_tool_names=True,
)

LAYOUT = Layout(system="system", calls="content", call_sign=("type", "tool_use"), results=("user", "content"))
"""Where calls, results, tools and the tool choice are in a Messages request."""
