"""Reasoning settings: a level, and summaries, which are off by default."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Raw

from dragoman.codecs.gemini_interactions.profile import FAMILY
from dragoman.codecs.gemini_interactions.wire import GenerationConfig
from dragoman.codecs.google_models import ThinkingRule, fit_level, thinking_rule
from dragoman.codecs.google_signatures import GOOGLE
from dragoman.codecs.reasoning_effort import effort_asked
from dragoman.ir import ReasoningSettings, Request
from dragoman.ir.notes import Extra, family_notes
from dragoman.ir.values import encode_json
from dragoman.losses import LossLog

_VISIBLE = {"auto": True, "none": False}
_SUMMARIES = {True: "auto", False: "none"}


def decode_reasoning(config: GenerationConfig) -> ReasoningSettings | None:
    level, summaries = config.thinking_level, config.thinking_summaries
    if level is summaries is UNSET:
        return None
    visible = None if summaries is UNSET else _VISIBLE.get(summaries)
    notes: Extra = {}
    if summaries is not UNSET and visible is None:
        notes["thinking_summaries"] = Raw(encode_json(summaries))
    effort = None if level is UNSET else level
    return ReasoningSettings(None, effort, None, visible, {FAMILY: notes} if notes else None)


def encode_reasoning(request: Request, log: LossLog) -> tuple[Any, Any]:
    """Return `thinking_level` and `thinking_summaries`."""
    settings = request.reasoning
    if settings is None:
        return UNSET, UNSET
    notes = family_notes(FAMILY, settings.metadata)
    if request.origin == FAMILY:
        summaries: Any = UNSET if settings.visible is None else _SUMMARIES[settings.visible]
        return UNSET if settings.effort is None else settings.effort, notes.get("thinking_summaries", summaries)
    rule = thinking_rule(request.model)
    if rule.by == "nothing":
        if settings.mode != "off":
            log.drop(request, "reasoning", "reasoning settings", "this model does not think")
        return UNSET, UNSET
    level = _level(settings, rule, request, log)
    visible = settings.visible
    if visible is None and level is UNSET and settings.mode in {"on", "adaptive"} and request.origin != GOOGLE:
        visible = True  # other APIs return thinking that was enabled, this one only on request
    return level, UNSET if visible is None else _SUMMARIES[visible]


def _level(settings: ReasoningSettings, rule: ThinkingRule, request: Request, log: LossLog) -> Any:
    effort = effort_asked(settings, request, log)
    if settings.mode == "off" and effort in {None, "none"}:
        log.degrade(request, "reasoning.mode", "reasoning off", f"this API has no such switch: level {rule.lowest}")
        return rule.lowest
    level = None if effort is None else fit_level(effort, rule, request, log)
    return UNSET if level is None else level
