"""Reasoning settings and thinkingConfig, both ways: a level since Gemini 3, a token budget in 2.5, nothing before."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from msgspec import UNSET, Raw, structs

from dragoman.codecs.gemini.profile import FAMILY, GeminiProfile
from dragoman.codecs.gemini.wire import ALIASES, ThinkingConfig, keep_whole
from dragoman.codecs.google_models import BUDGET_OF_EFFORT, ThinkingRule, fit_level, thinking_rule
from dragoman.codecs.reading import WireReader, WireValue
from dragoman.codecs.reasoning_effort import report_unsent
from dragoman.errors import DecodeError
from dragoman.ir import ReasoningSettings, Request
from dragoman.ir.notes import Extra
from dragoman.losses import LossLog

_reader = WireReader(
    ThinkingConfig, "gemini/vertex thinkingConfig", aliases=ALIASES, path="$.generationConfig.thinkingConfig"
)

WHOLE_CONFIG = "~config"
"""Note: the whole thinkingConfig as written."""

_DYNAMIC = -1


def decode_reasoning(raw: Raw, entries: Extra) -> ReasoningSettings | None:
    data = bytes(raw)
    if data == b"null":
        keep_whole(entries, "thinkingConfig", raw)
        return None
    return _remembered(data) if len(data) <= _LONGEST_REMEMBERED else _read(data)


_LONGEST_REMEMBERED = 256


def _read(data: bytes) -> ReasoningSettings:
    wire = _reader.read(data)
    settings = _settings(wire)
    unread = {} if wire.extra is UNSET else {key: raw for key, raw in wire.extra.items() if not key.startswith("~")}
    if wire.thinking_level is not UNSET and settings.effort is None:
        unread["thinkingLevel"] = Raw(str(wire.thinking_level).encode())
    return structs.replace(settings, metadata={FAMILY: {WHOLE_CONFIG: Raw(data), **unread}})


_remembered = lru_cache(maxsize=256)(_read)
"""Cached, because a client sends the same settings with every request."""


def _settings(wire: ThinkingConfig) -> ReasoningSettings:
    mode: Any = None
    tokens = None
    if wire.thinking_budget is not UNSET:
        try:
            tokens = int(float(wire.thinking_budget))
        except (ValueError, OverflowError):
            path = "$.generationConfig.thinkingConfig.thinkingBudget"
            got = repr(wire.thinking_budget)
            raise DecodeError(path=path, expected="whole number", got=got, source="gemini/vertex request") from None
        mode = {0: "off", _DYNAMIC: "adaptive"}.get(tokens, "on")
    return ReasoningSettings(
        mode,
        wire.thinking_level.lower() if isinstance(wire.thinking_level, str) else None,
        tokens if mode == "on" else None,
        None if wire.include_thoughts is UNSET else wire.include_thoughts,
    )


def encode_reasoning(request: Request, profile: GeminiProfile, log: LossLog) -> WireValue:
    """Return the thinkingConfig, or UNSET."""
    settings = request.reasoning
    if settings is None:
        return UNSET
    raw = (settings.metadata or {}).get(FAMILY, {}).get(WHOLE_CONFIG)
    if raw is not None and _settings(_reader.read(bytes(raw))) == structs.replace(settings, metadata=None):
        return raw
    rule = thinking_rule(request.model, profile.thinking)
    if rule.by == "nothing":
        if settings.mode != "off":
            log.drop(request, "reasoning", "reasoning settings", "this model does not think")
        return UNSET
    level, budget = (
        _level(settings, rule, request, log) if rule.by == "level" else _budget(settings, rule, request, log)
    )
    config = ThinkingConfig(True if _is_visible(settings, request) else UNSET, budget, level)
    return UNSET if config == ThinkingConfig() else config


def _is_visible(settings: ReasoningSettings, request: Request) -> bool:
    """Whether to ask for thoughts: other APIs return thinking that was enabled, this one only on request."""
    if settings.visible is not None or request.origin == FAMILY:
        return bool(settings.visible)
    is_off = settings.mode == "off" or settings.effort == "none"
    return not is_off and (settings.mode is not None or settings.effort is not None)


def _level(settings: ReasoningSettings, rule: ThinkingRule, request: Request, log: LossLog) -> tuple[Any, Any]:
    if settings.mode == "off":
        report_unsent(settings, "mode", request, log)
        log.degrade(request, "reasoning.mode", "reasoning off", f"always on here: level {rule.lowest}")
        return rule.lowest.upper(), UNSET
    effort = settings.effort
    if effort is None:
        return UNSET, UNSET if settings.budget_tokens is None else settings.budget_tokens
    if settings.budget_tokens is not None:
        log.drop(request, "reasoning.budget_tokens", "reasoning budget", "this API takes a level or a budget, not both")
    level = fit_level(effort, rule, request, log)
    return UNSET if level is None else level.upper(), UNSET


def _budget(settings: ReasoningSettings, rule: ThinkingRule, request: Request, log: LossLog) -> tuple[Any, Any]:
    if settings.mode == "off":
        report_unsent(settings, "mode", request, log)
        if rule.can_switch_off:
            return UNSET, 0
        log.degrade(request, "reasoning.mode", "reasoning off", f"this model always thinks; {rule.minimum} tokens")
        return UNSET, rule.minimum
    if settings.budget_tokens is not None:
        tokens = min(max(settings.budget_tokens, rule.minimum), rule.maximum)
        if tokens != settings.budget_tokens:
            what = f"budget of {settings.budget_tokens} tokens"
            log.degrade(request, "reasoning.budget_tokens", what, f"this model takes {tokens}")
        if settings.effort is not None:
            log.drop(request, "reasoning.effort", f"effort {settings.effort!r}", "the budget says it")
        return UNSET, tokens
    if settings.effort is not None:
        tokens = BUDGET_OF_EFFORT.get(settings.effort.lower(), _DYNAMIC)
        sent = "sent as a budget of its own choice" if tokens == _DYNAMIC else f"sent as a budget of {tokens} tokens"
        log.degrade(request, "reasoning.effort", f"effort {settings.effort!r}", sent)
        return UNSET, tokens
    return UNSET, UNSET if settings.mode is None else _DYNAMIC
