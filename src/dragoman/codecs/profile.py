"""What a target accepts, as data. Passes and translate read these flags; nobody asks which provider it is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

NEVER = re.compile(r"(?!)")


class Profile(Struct, frozen=True, kw_only=True):
    """One target. The defaults are the most permissive."""

    name: str
    family: str
    """Who mints and reads its signatures and metadata. gemini and vertex are one family."""

    system: Literal["messages", "field"] = "messages"
    """Whether system text is a message or a field of its own; a field means: hoist what comes later."""
    inline_system_models: re.Pattern[str] = NEVER
    """Models that take a system message in the middle although there is a field."""

    results_together: bool = False
    """All results of one assistant turn in one message: Anthropic, Gemini, Bedrock."""
    results_alone: bool = False
    """Results share their message with nothing else (Vertex refuses a functionResponse beside text)."""
    merge_model_turns: bool = False
    """Adjacent assistant messages become one (Gemini counts calls per model turn)."""

    blank_text: bool = True
    """Whether an empty or white-space-only text may be sent."""
    ending_turns: Literal["any", "user"] = "any"

    call_id: re.Pattern[str] | None = None
    """What a call id must match; others get a deterministic alias on call and result."""
    invented_ids: bool = True
    """Whether ids that we made up may be sent. APIs that match by order refuse or misread them."""
    tool_name: re.Pattern[str] = re.compile(r"[a-zA-Z0-9_-]{1,64}")

    stop_limit: int | None = None
    cache_marks: int | None = None
    """How many cache marks one request may carry; 0 when the API has none, None when unlimited."""
    forced_choice: bool = True
    no_forced_choice_models: re.Pattern[str] = NEVER
    tool_sets: bool = True
    """Whether a tool choice can name a set; otherwise the tools themselves are filtered."""
    placeholder_signature_models: re.Pattern[str] = NEVER
    """Models that refuse a turn whose first call is unsigned."""

    paths: Mapping[str, str] = {}
    """Intermediate field -> JSON path in the wire body, for losses."""
