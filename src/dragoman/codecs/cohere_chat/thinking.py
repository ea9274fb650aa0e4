"""Reasoning settings and `thinking`, both ways: a switch, and a budget of tokens."""

from __future__ import annotations

from msgspec import UNSET, Raw

from dragoman.codecs.cohere_chat.parts import report_keys
from dragoman.codecs.cohere_chat.profile import BUDGET_OF_EFFORT, FAMILY, PLAIN_MODELS
from dragoman.codecs.cohere_chat.wire import Thinking
from dragoman.codecs.reading import WireValue, keep, spliced
from dragoman.codecs.reasoning_effort import report_unsent
from dragoman.ir import Metadata, ReasoningSettings, Request
from dragoman.ir.notes import Extra
from dragoman.ir.values import encode_json
from dragoman.losses import LossLog

TYPE = "~type"
"""Note: the type as it was spelled, if it means neither on nor off; null if there was none."""


def decode_reasoning(wire: Thinking) -> ReasoningSettings:
    """Decode `thinking`. It is always shown. Without the key, models that can think do: only `disabled` means off."""
    metadata: Metadata | None = keep(FAMILY, wire.extra)
    if wire.type not in {"enabled", "disabled"}:
        spelled = Raw(b"null") if wire.type is None else Raw(encode_json(wire.type))
        metadata = {FAMILY: {**(metadata or {}).get(FAMILY, {}), TYPE: spelled}}
    mode = "off" if wire.type == "disabled" else "on" if wire.type == "enabled" else None
    visible = None if mode == "off" else True
    return ReasoningSettings(mode, None, wire.token_budget, visible, metadata)  # type: ignore[arg-type]


def encode_reasoning(settings: ReasoningSettings, request: Request, log: LossLog) -> WireValue:
    """Return the switch and the budget, or UNSET."""
    notes = (settings.metadata or {}).get(FAMILY, {})
    if request.origin == FAMILY:
        word = "disabled" if settings.mode == "off" else "enabled" if settings.mode is not None else None
        if TYPE in notes:
            spelled = bytes(notes[TYPE])
            word = None if spelled == b"null" else spelled[1:-1].decode()
        return _splice_notes(Thinking(word, settings.budget_tokens), notes)
    is_off = settings.mode == "off" or (settings.effort or "").lower() == "none"
    if PLAIN_MODELS.search(request.model or "") is not None:
        report_keys(request, settings.metadata, log, "reasoning.")
        if is_off:
            report_unsent(settings, "mode", request, log)
        else:
            log.drop(request, "reasoning", "reasoning settings", "this model does not think")
        return UNSET
    if settings.visible is False:
        log.drop(request, "reasoning.visible", "hidden reasoning", "this API always shows it")
    if is_off:
        report_unsent(settings, "mode", request, log)
        return _splice_notes(Thinking("disabled"), notes)
    budget = settings.budget_tokens
    if settings.effort is not None:
        budget = _budget(settings.effort, budget, request, log)
    if settings.mode == "adaptive":
        log.degrade(request, "reasoning.mode", "reasoning adaptive", "the model's own default applies")
    if budget is not None and budget < 1:
        what = f"budget of {budget} tokens"
        log.drop(request, "reasoning.budget_tokens", what, "a budget of this API is one token at least")
        budget = None
    if settings.mode is None and settings.effort is None and budget is None:
        report_keys(request, settings.metadata, log, "reasoning.")
        return UNSET
    return _splice_notes(Thinking("enabled", budget), notes)


def _splice_notes(wire: Thinking, notes: Extra) -> WireValue:
    return spliced(wire, notes) if notes else wire


def _budget(effort: str, budget: int | None, request: Request, log: LossLog) -> int | None:
    if budget is not None:
        log.drop(request, "reasoning.effort", f"effort {effort!r}", "this API takes a budget, which is written too")
        return budget
    budget = BUDGET_OF_EFFORT.get(effort.lower())
    sent = "switched on without a budget" if budget is None else f"sent as a budget of {budget} tokens"
    log.degrade(request, "reasoning.effort", f"effort {effort!r}", f"{sent}: this API takes a budget, not an effort")
    return budget
