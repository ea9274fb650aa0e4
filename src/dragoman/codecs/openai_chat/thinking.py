"""How much the model reasons, and the settings that depend on it."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from msgspec import UNSET, structs

from dragoman.codecs.openai_chat.messages import FAMILY
from dragoman.codecs.openai_chat.profile import PLAIN_MODELS, REASONING_MODELS, SAMPLING
from dragoman.codecs.reading import WireValue
from dragoman.codecs.reasoning_effort import effort_asked
from dragoman.ir import ReasoningSettings, Request
from dragoman.losses import LossLog


def decode_reasoning(effort: str) -> ReasoningSettings:
    return ReasoningSettings("off" if effort == "none" else None, effort)


def encode_reasoning(settings: ReasoningSettings, request: Request, log: LossLog) -> WireValue:
    if request.origin != FAMILY and request.model is not None and PLAIN_MODELS.match(request.model) is not None:
        log.drop(request, "reasoning", "reasoning settings", "this model does not reason")
        return UNSET
    if settings.visible and FAMILY not in (settings.metadata or {}):
        log.drop(request, "reasoning.visible", "visible reasoning", "this API does not show reasoning")
    effort = effort_asked(settings, request, log)
    if effort is not None:
        return effort
    if settings.mode == "off":
        return "none"
    if settings.mode is not None:
        log.degrade(request, "reasoning.mode", f"reasoning {settings.mode}", "the model's own default effort applies")
    return UNSET


@lru_cache(maxsize=256)
def _reasons(model: str) -> bool:
    return REASONING_MODELS.match(model) is not None


def without_sampling(request: Request, effort: WireValue, log: LossLog) -> Request:
    """Drop what reasoning models refuse: sampling settings while they reason, and stop sequences always."""
    if not (request.stop or _samples(request)) or request.model is None or not _reasons(request.model):
        return request
    changes: dict[str, Any] = {}
    why = "this model refuses it while it reasons"
    for name in SAMPLING if effort != "none" else ():
        if getattr(request, name) is not None:
            log.drop(request, name, name, why)
            changes[name] = None
    if request.stop:
        log.drop(request, "stop", "stop sequences", "this model takes none")
        changes["stop"] = ()
    if not changes:
        return request
    changed = structs.replace(request, **changes)
    log.replaced(changed, request)
    return changed


def _samples(request: Request) -> bool:
    return (
        request.temperature is not None
        or request.top_p is not None
        or request.presence_penalty is not None
        or request.frequency_penalty is not None
        or request.logprobs is not None
        or request.top_logprobs is not None
    )
