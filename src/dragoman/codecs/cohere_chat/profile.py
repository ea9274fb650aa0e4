"""What Cohere's chat v2 accepts, and what its models refuse."""

from __future__ import annotations

import re

from dragoman.codecs.layout import Envelope, Layout
from dragoman.profile import ALWAYS, Profile

FAMILY = "cohere"

PATH = "/v2/chat"

PROFILE = Profile(
    name="cohere-chat",
    family=FAMILY,
    answer_keys=frozenset({"message"}),
    message_names=False,
    # No hyphen, no dot, no leading digit.
    tool_name=re.compile(r"[a-zA-Z_][a-zA-Z0-9_]{0,63}"),
    call_id=re.compile(r"\S+"),
    # «message must not be empty in a turn»
    blank_text=False,
    # The last message is the user's or a tool's: there is no prefill.
    no_prefill_models=re.compile(""),
    stop_limit=5,
    # «response_format is not supported with tools»
    no_output_schema_beside_tools_models=ALWAYS,
    # `tool_choice` is for command-r7b and newer.
    no_forced_choice_models=re.compile(r"^(command(-light|-nightly)?|command-r(-plus)?(-\d\d-2024)?)$"),
)

PLAIN_MODELS = re.compile(r"^(command-r|command-a-(03-2025|vision|translate)|c4ai-|command(-light|-nightly)?$)")
"""Models that do not reason. The others do unless it is disabled."""

BUDGET_OF_EFFORT = {"minimal": 512, "low": 2048, "medium": 8192}
"""Budget of thinking tokens for an effort. Higher efforts leave the budget to the model."""

MOST_TOP_K = 500
LEAST_TOP_P, MOST_TOP_P = 0.01, 0.99
MOST_SEED = 2**64 - 1

LAYOUT = Layout(
    call_envelope=Envelope("function", ("function", "type"), beside=(("type", "function"),)),
    tool_envelope=Envelope("function", ("function", "type"), beside=(("type", "function"),)),
)
"""Where calls, results, tools and the tool choice are in a Cohere request."""
