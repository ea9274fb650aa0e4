"""What Responses accepts, and what its models refuse.

The family is not Chat's. The two APIs share a vendor, not a vocabulary: notes of one on a node (names of fields,
spellings, item ids) are refused as unknown parameters by the other, and encrypted reasoning is minted and read by
Responses alone; Chat has no field for it. One family for both would send each the private data of the other.
"""

from __future__ import annotations

import re

from dragoman.codecs.layout import Layout
from dragoman.codecs.shared_settings import ANSWERED_BY_OPENAI
from dragoman.ir import FinishReason
from dragoman.profile import HostedRule, Profile

FAMILY = "openai-responses"

PROFILE = Profile(
    name="openai-responses",
    answer_tiers=ANSWERED_BY_OPENAI,
    family=FAMILY,
    answer_keys=frozenset({"output"}),
    message_names=False,
    has_logprobs=True,
    # The server's message: string too long, expected a string with maximum length 64.
    call_id=re.compile(r"[^\s]{1,64}"),
    counts_searches=True,
    limits_all_calls=True,
    hosted={
        "web_search": HostedRule(
            name="web_search",
            options=frozenset({"allowed_domains", "blocked_domains", "location", "context_size"}),
        ),
        "code_execution": HostedRule(name="code_interpreter", options=frozenset({"file_ids"})),
        "file_search": HostedRule(name="file_search", options=frozenset({"stores", "max_results"}), most_results=50),
        "mcp": HostedRule(
            name="",
            options=frozenset({"server_url", "authorization", "headers", "allowed_tools", "approval"}),
        ),
        "image_generation": HostedRule(name="image_generation"),
        "shell": HostedRule(name="shell"),
        "tool_search": HostedRule(),
    },
)

REASONING_MODELS = re.compile(r"^(?:openai/)?(o[1-9]|gpt-5(?!.*chat)|gpt-[6-9]|codex)")
"""These refuse sampling settings while they reason, and only they can be asked for encrypted reasoning."""

SAMPLING = ("temperature", "top_p", "logprobs", "top_logprobs")

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
"""In rising order. An unknown model is assumed to accept all of them."""

_CLASSIC = ("low", "medium", "high")
# The first matching row counts.
_EFFORTS_OF: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...] = tuple(
    (re.compile(pattern), efforts)
    for pattern, efforts in (
        (r"gpt-5[\d.]*-chat|gpt-[34]|chatgpt-", ()),
        (r"o[1-9]|gpt-5-codex", _CLASSIC),
        (r"gpt-5\.1(?!\d|-codex)", ("none", *_CLASSIC)),
        (r"gpt-5\.2(?!\d|-codex)", ("none", *_CLASSIC, "xhigh")),
        (r"gpt-5\.\d", tuple(effort for effort in EFFORTS if effort != "minimal")),
        (r"gpt-5", ("minimal", *_CLASSIC)),
    )
)


def efforts_of(model: str) -> tuple[str, ...]:
    """Return the values of `reasoning.effort` that this model accepts; none for a model that does not reason."""
    name = model.removeprefix("openai/")
    return next((efforts for pattern, efforts in _EFFORTS_OF if pattern.match(name) is not None), EFFORTS)


LEAST_OUTPUT_TOKENS = 16
"""`max_output_tokens` below this is refused (`integer_below_min_value`)."""

ENDED_EARLY: dict[str, FinishReason] = {
    "max_output_tokens": "length",
    "max_tokens": "length",
    "content_filter": "content_filter",
    "max_messages": "pause",
    "steered": "pause",
}
"""Reasons in `incomplete_details` why an answer ended early."""

LAYOUT = Layout(messages="input", calls=None, call_sign=("call_id", None))
"""Where calls, results, tools and the tool choice are in a Responses request: calls and results are `input` items."""
