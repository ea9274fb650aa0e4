"""Reasoning settings and `think`, both ways: a switch, or one of a few levels."""

from __future__ import annotations

from msgspec import UNSET

from dragoman.codecs.ollama_chat.profile import FAMILY, LEVEL_OF_EFFORT, PLAIN_MODELS
from dragoman.codecs.reading import WireValue
from dragoman.codecs.reasoning_effort import report_unsent
from dragoman.ir import ReasoningSettings, Request
from dragoman.losses import LossLog

_ON = ReasoningSettings("on", visible=True)
_OFF = ReasoningSettings("off")


def decode_reasoning(think: bool | str) -> ReasoningSettings:  # noqa: FBT001
    """Decode `think`. Thinking is always shown. Without the key, models that can think do."""
    if isinstance(think, bool):
        return _ON if think else _OFF
    return ReasoningSettings(None, think, visible=True)


def encode_reasoning(settings: ReasoningSettings, request: Request, log: LossLog) -> WireValue:
    """Return the switch or level, or UNSET."""
    if request.origin == FAMILY:
        return settings.effort if settings.effort is not None else settings.mode != "off"
    if settings.mode == "off":
        report_unsent(settings, "mode", request, log)
        return False
    if PLAIN_MODELS.search(request.model or "") is not None:
        log.drop(request, "reasoning", "reasoning settings", "this model does not think")
        return UNSET
    if settings.visible is False:
        log.drop(request, "reasoning.visible", "hidden reasoning", "this API always shows it")
    if settings.budget_tokens is not None:
        what = f"budget of {settings.budget_tokens} tokens"
        log.degrade(request, "reasoning.budget_tokens", what, "this API takes a level, not a budget")
    if settings.effort is not None:
        return _level(settings.effort, request, log)
    if settings.mode == "adaptive":
        log.degrade(request, "reasoning.mode", "reasoning adaptive", "the model's own default applies")
        return UNSET
    return True if settings.mode == "on" or settings.budget_tokens else UNSET


def _level(effort: str, request: Request, log: LossLog) -> WireValue:
    if effort.lower() == "none":
        return False
    level = LEVEL_OF_EFFORT.get(effort.lower())
    if level is None:
        log.degrade(request, "reasoning.effort", f"effort {effort!r}", "no level of this API says that: switched on")
        return True
    if level != effort:
        log.degrade(request, "reasoning.effort", f"effort {effort!r}", f"sent as level {level}")
    return level
