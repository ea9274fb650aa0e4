"""What a target accepts, as data. Passes and translate read these flags instead of comparing names."""

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
    """Its name in a tool choice; None if a choice cannot name it."""
    options: frozenset[str] = frozenset()
    """Fields of `ProviderTool` that the target's tool of this kind has."""
    one_domain_list: bool = False
    """Whether allowed and blocked domains may not be given together; the allowed ones are sent."""
    most_results: int | None = None
    """The largest accepted `max_results`."""
    https_only: bool = False
    """Whether the address of an MCP server must begin with https://."""


REASONING_OWED_MODELS = re.compile(r"deepseek", re.IGNORECASE)
"""Models that refuse a tool turn if its unsigned reasoning was not returned ("must be passed back to the API")."""


class Profile(Struct, frozen=True, kw_only=True, eq=False):
    """One target. The defaults are the most permissive."""

    name: str
    family: str
    """The family that writes and reads its metadata and usually its signatures. gemini and vertex are one family."""

    signature_family: str = ""
    """The family of its signatures, if it differs from `family`: two APIs of one vendor sign alike."""
    translates: Mapping[str, frozenset[str]] = {}
    """Keys of another family's metadata that this API has under other names; its codec translates them."""

    legalises_own_family: bool = False
    """Whether bodies of its own family are also made legal, because this server is stricter than the vendor's."""

    system: Literal["messages", "field"] = "messages"
    """Whether system text is a message or a separate field; with a field, later system messages are hoisted."""
    inline_system_models: re.Pattern[str] = NEVER
    """Models that accept a system message in the middle although there is a field."""

    answer_keys: frozenset[str] = frozenset()
    """Keys of which every whole answer has one, if the decoder accepts answers without them: what has none, such as
    the 200 of another service behind the same address, is not an empty answer."""
    usage_details: frozenset[str] = frozenset()
    """Which further counts its usage has fields for (`ir.completions.USAGE_DETAILS`)."""
    usage_members: frozenset[str] = frozenset()
    """Members of another family's usage that its own usage has under other names; its codec translates them."""
    citation_keys: Mapping[str, frozenset[str]] = MappingProxyType({})
    """Keys of another family's citations of documents that this API has under other names."""
    answer_tiers: Mapping[str, str] = MappingProxyType({})
    """Our name for the tier of an answer -> the target's; empty if its answers do not name their tier."""
    shows_reasoning_unasked: bool = True
    """Whether its clients expect reasoning in an answer although their request did not ask for it."""
    names_speakers: bool = False
    """Whether an answer can name the model that gave it (multi-llm-chat and other stores of several models)."""
    message_names: bool = True
    """Whether a message of a request can name its speaker."""
    merge_model_turns: bool = False
    """Whether adjacent assistant messages are merged (Gemini counts calls per model turn)."""
    first_turn_user: bool = False
    """Whether a history that begins with the assistant gets an empty user turn before it (Gemini)."""
    final_assistant: Literal["any", "trimmed"] = "any"
    """Whether a trailing assistant message (prefill) must not end in white space (Anthropic)."""
    no_prefill_models: re.Pattern[str] = NEVER
    """Models that refuse a conversation ending with the assistant."""
    blank_text: bool = True
    """Whether an empty or white-space-only text may be sent."""

    call_id: re.Pattern[str] | None = None
    """What a call id must match; others get a deterministic alias on call and result."""
    call_id_length: int | None = None
    """The exact length of an alias, if all ids must have the same length (Mistral)."""
    tool_name: re.Pattern[str] = re.compile(r"[a-zA-Z0-9_-]{1,64}")
    unanswered_calls: bool = False
    """Whether a call may have no result (stored conversations: the call is often what a model is to learn)."""
    tools_with_calls: bool = False
    """Whether a history with calls needs tool definitions (Anthropic)."""
    sends_foreign_ids: bool = True
    """Whether call ids that this family did not mint may be sent to it (Vertex v1 refuses them)."""

    stop_limit: int | None = None
    blank_stop: bool = True
    cache_marks: int = 0
    """How many cache marks one request may have."""
    no_forced_choice_models: re.Pattern[str] = NEVER
    """Models that refuse a tool choice that forces a call."""
    no_output_schema_models: re.Pattern[str] = NEVER
    """Models without a JSON Schema for answers: a forced tool call or the prompt is used instead."""
    no_output_schema_beside_tools_models: re.Pattern[str] = NEVER
    """Models that accept a JSON Schema for answers only without tools."""
    placeholder_signature_models: re.Pattern[str] = NEVER
    """Models that refuse a turn whose first call is unsigned (Gemini 3 and later)."""
    counts_searches: bool = False
    """Whether its usage counts web searches."""
    has_logprobs: bool = False
    """Whether its answers can have log probabilities."""
    hosted: Mapping[str, HostedRule] = {}
    """Kinds of tools that this provider runs itself (`ir.HostedKind`)."""
    limits_all_calls: bool = False
    """Whether one setting limits the calls of all hosted tools together (`max_tool_calls`)."""
    hosted_models: re.Pattern[str] = ALWAYS
    """Models with hosted tools."""
    shares_tool_names: bool = False
    """Whether a function cannot have the name of a hosted tool beside it."""

    @property
    def signs_as(self) -> str:
        """The family of signatures that may be sent to this API."""
        return self.signature_family or self.family


STRICTEST_NAMES = Profile(name="aliases", family="")
"""Aliases of names fit the narrowest rule, so that they can be reversed without knowing the target."""
