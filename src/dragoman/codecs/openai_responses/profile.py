"""What Responses accepts, and what its models refuse.

The family is not Chat's. The two APIs share a vendor, not a vocabulary: what one keeps on a node (names of fields,
spellings, item ids) is refused as an unknown parameter by the other, and encrypted reasoning is minted and read by
Responses alone; Chat has no field for it. One family for both would hand each the private data of the other.
"""

from __future__ import annotations

import re

from dragoman.codecs.shared_settings import ANSWERED_BY_OPENAI
from dragoman.ir import FinishReason
from dragoman.profile import HostedRule, Profile

FAMILY = "openai-responses"

PROFILE = Profile(
    name="openai-responses",
    answer_tiers=ANSWERED_BY_OPENAI,
    family=FAMILY,
    says_logprobs=True,
    # The server's words: string too long, expected a string with maximum length 64.
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
"""They refuse sampling settings while they reason, and only they can be asked for encrypted reasoning."""

SAMPLING = ("temperature", "top_p", "logprobs", "top_logprobs")

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
"""In rising order. A model we do not know takes them all."""

_CLASSIC = ("low", "medium", "high")
# The first row that matches counts.
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
    """What `reasoning.effort` may say to this model; nothing for a model that does not reason."""
    name = model.removeprefix("openai/")
    return next((efforts for pattern, efforts in _EFFORTS_OF if pattern.match(name) is not None), EFFORTS)


def nearest_effort(effort: str, known: tuple[str, ...]) -> str:
    """The effort itself, or the one of the model's own that is next to it."""
    if effort in known or effort not in EFFORTS or not known:
        return effort
    return min(known, key=lambda other: abs(EFFORTS.index(other) - EFFORTS.index(effort)))


LEAST_OUTPUT_TOKENS = 16
"""`max_output_tokens` below this is refused (`integer_below_min_value`)."""

ENDED_EARLY: dict[str, FinishReason] = {
    "max_output_tokens": "length",
    "max_tokens": "length",
    "content_filter": "content_filter",
    "max_messages": "pause",
    "steered": "pause",
}
"""Why an answer ended early, in the words of `incomplete_details`."""
