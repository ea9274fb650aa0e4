"""How much the model thinks, and the settings that depend on it: budgets, effort, sampling, the token limit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from dragoman.codecs.anthropic_messages.caching import FAMILY
from dragoman.codecs.claude_models import ThinkingConfig
from dragoman.codecs.claude_settings import Settings, legal_settings
from dragoman.ir import Message, ReasoningSettings, Request
from dragoman.ir.notes import family_notes
from dragoman.losses import LossLog

_config = msgspec.json.Decoder(ThinkingConfig).decode

_DECODE_MODE = {"enabled": "on", "adaptive": "adaptive", "disabled": "off", "between_tools": "off"}
_VISIBLE = {"summarized": True, "updates": True, "omitted": False}


_KNOWN = {"type", "budget_tokens", "display"}
_entries = msgspec.json.Decoder(dict[str, Raw]).decode


def decode_reasoning(thinking: Raw | UnsetType, effort: str | UnsetType) -> ReasoningSettings | None:
    requested = None if effort is UNSET else effort
    if thinking is UNSET:
        return None if requested is None else ReasoningSettings(None, requested)
    notes = {FAMILY: {"~thinking": thinking}}
    try:
        config = _config(thinking)
    except msgspec.ValidationError:
        return ReasoningSettings(None, requested, metadata=notes)
    # Sent back within "~thinking"; also noted separately, so that other targets report them as losses.
    unknown = {key: value for key, value in _entries(thinking).items() if key not in _KNOWN and key[:1] != "~"}
    notes[FAMILY].update(unknown)
    mode: Any = _DECODE_MODE.get(config.type or "")
    return ReasoningSettings(mode, requested, config.budget_tokens, _VISIBLE.get(config.display or ""), notes)


def encode_reasoning(request: Request, log: LossLog, unsent: Sequence[Message] | None) -> Settings:
    """Return the settings of thinking, and of sampling and length, which depend on them and on the messages sent."""
    reasoning = request.reasoning
    if request.origin == FAMILY and (reasoning is None or _is_unchanged(reasoning)):
        settings = Settings(request.max_output_tokens, request.temperature, request.top_p, request.top_k)
        if reasoning is not None:
            settings.thinking = family_notes(FAMILY, reasoning.metadata).get("~thinking", UNSET)
            settings.effort = UNSET if reasoning.effort is None else reasoning.effort
        return settings
    return legal_settings(request, log, unsent, wants_limit=True)


def _is_unchanged(reasoning: ReasoningSettings) -> bool:
    """Whether these are the settings the wire gave, or only an effort: nothing needs a conversion."""
    is_spelled = "~thinking" in family_notes(FAMILY, reasoning.metadata)
    return is_spelled or (reasoning.mode, reasoning.visible) == (None, None)
