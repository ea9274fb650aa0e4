"""What a target accepts, as data. Passes and translate read these flags; no code asks which provider it is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from msgspec import Struct

NEVER = re.compile(r"(?!)")
ALWAYS = re.compile("")


class HostedRule(Struct, frozen=True, kw_only=True):
    """A kind of hosted tool that a target has."""

    name: str | None = None
    """What a tool choice calls it; None where no choice can name it."""
    options: frozenset[str] = frozenset()
    """Fields of `ProviderTool` that the target's tool of this kind can say."""
    most_results: int | None = None
    """The largest `max_results` that it takes."""


REASONING_OWED_MODELS = re.compile(r"deepseek", re.IGNORECASE)
"""Models that refuse a tool turn whose unsigned reasoning did not come back ("must be passed back to the API")."""


class Profile(Struct, frozen=True, kw_only=True, eq=False):
    """One target. The defaults are the most permissive."""

    name: str
    family: str
    """Who mints and reads its metadata, and as a rule its signatures. gemini and vertex are one family."""

    signature_family: str = ""
    """Who mints and reads its signatures, where that is another family: two APIs of one vendor."""
    translates: Mapping[str, frozenset[str]] = {}
    """Keys of another family's metadata that this API has under other names: its codec translates them."""

    legalises_own_family: bool = False
    """Whether bodies of its own family are made legal too: this server is stricter than the format's owner."""

    system: Literal["messages", "field"] = "messages"
    """Whether system text is a message or a field of its own; a field means: hoist what comes later."""
    inline_system_models: re.Pattern[str] = NEVER
    """Models that take a system message in the middle although there is a field."""

    usage_details: frozenset[str] = frozenset()
    """Which further counts its usage has fields for (`ir.completions.USAGE_DETAILS`)."""
    answer_tiers: Mapping[str, str] = MappingProxyType({})
    """Our words for the tier of an answer -> its own; empty where an answer does not name its tier."""
    shows_reasoning_unasked: bool = True
    """Whether its clients expect reasoning in an answer although their request did not ask for it."""
    names_speakers: bool = False
    """Whether an answer can name the model that gave it (multi-llm-chat and other stores of several models)."""
    merge_model_turns: bool = False
    """Adjacent assistant messages become one (Gemini counts calls per model turn)."""
    first_turn_user: bool = False
    """A history that opens with the assistant gets an empty user turn before it (Gemini)."""
    final_assistant: Literal["any", "trimmed"] = "any"
    """Whether a trailing assistant message (prefill) must not end in white space (Anthropic)."""
    no_prefill_models: re.Pattern[str] = NEVER
    """Models that refuse a conversation ending with the assistant."""
    blank_text: bool = True
    """Whether an empty or white-space-only text may be sent."""

    call_id: re.Pattern[str] | None = None
    """What a call id must match; others get a deterministic alias on call and result."""
    call_id_length: int | None = None
    """How long an alias must be, where ids have one length only (Mistral)."""
    tool_name: re.Pattern[str] = re.compile(r"[a-zA-Z0-9_-]{1,64}")
    tools_with_calls: bool = False
    """A history with calls needs tool definitions (Anthropic)."""
    sends_foreign_ids: bool = True
    """Whether call ids that this family did not mint may be sent to it (Vertex v1 refuses them)."""

    stop_limit: int | None = None
    blank_stop: bool = True
    cache_marks: int | None = None
    """How many cache marks one request may carry; None when the API does not count."""
    no_forced_choice_models: re.Pattern[str] = NEVER
    """Models that refuse a tool choice which forces a call."""
    no_output_schema_models: re.Pattern[str] = NEVER
    """Models that take no JSON Schema for their answer: a forced call of a tool or the prompt has to say it."""
    no_output_schema_beside_tools_models: re.Pattern[str] = NEVER
    """Models that take a JSON Schema for their answer only in requests without tools."""
    placeholder_signature_models: re.Pattern[str] = NEVER
    """Models that refuse a turn whose first call is unsigned (Gemini 3 and later)."""
    counts_searches: bool = False
    """Whether an answer can say how often the web was searched."""
    says_logprobs: bool = False
    """Whether an answer can say how likely its tokens were."""
    hosted: Mapping[str, HostedRule] = {}
    """Kinds of tools that this provider runs itself (`ir.HostedKind`)."""
    limits_all_calls: bool = False
    """Whether one setting limits the calls of all hosted tools together (`max_tool_calls`)."""
    hosted_models: re.Pattern[str] = ALWAYS
    """Models for which it does."""

    @property
    def signs_as(self) -> str:
        """The family of the signatures that this API may be sent."""
        return self.signature_family or self.family


STRICTEST_NAMES = Profile(name="aliases", family="")
"""Aliases of names are made against the narrowest rule, so that they can be undone without knowing the target."""
