"""How much the model reasons, and whether the reasoning is shown."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Raw

from dragoman.codecs.openai_responses.profile import (
    EFFORTS,
    FAMILY,
    efforts_of,
)
from dragoman.codecs.openai_responses.wire import ReasoningWire
from dragoman.codecs.reading import WireValue, spliced
from dragoman.codecs.reasoning_effort import effort_asked, report_unsent
from dragoman.codecs.settings import collect_keys
from dragoman.ir import ReasoningSettings, Request
from dragoman.ir.notes import Extra, family_notes
from dragoman.ir.values import encode_json
from dragoman.losses import LossLog

_keys = collect_keys(ReasoningWire, ("context", "generate_summary", "mode"))
_EMPTY = ReasoningWire()


def decode_reasoning(wire: ReasoningWire) -> ReasoningSettings | None:
    """Return the settings; None for an empty object, which sets nothing."""
    if wire == _EMPTY:
        return None
    effort = None if wire.effort is UNSET else wire.effort
    notes: Extra = _keys(wire) or {}
    if wire.summary is not UNSET and wire.summary != "auto":
        notes["summary"] = Raw(encode_json(wire.summary))
    visible = None if wire.summary is UNSET else True
    return ReasoningSettings(
        "off" if effort == "none" else None, effort, None, visible, {FAMILY: notes} if notes else None
    )


def encode_reasoning(settings: ReasoningSettings, request: Request, log: LossLog) -> WireValue:
    notes = family_notes(FAMILY, settings.metadata)
    if request.origin == FAMILY:
        shown = settings.visible and "summary" not in notes
        wire = ReasoningWire(UNSET if settings.effort is None else settings.effort, "auto" if shown else UNSET)
        return spliced(wire, notes) if notes else wire
    known = efforts_of(request.model or "")
    if not known:
        if is_off(settings):
            report_unsent(settings, "mode", request, log)
        else:
            log.drop(request, "reasoning", "reasoning", "this model does not reason")
        return UNSET
    effort = _encode_effort(settings, known, request, log)
    # Other APIs return the thinking that a request asks for; this one only if a summary is requested.
    visible = settings.mode in {"on", "adaptive"} if settings.visible is None else settings.visible
    if effort is UNSET and not visible:
        return UNSET
    wire = ReasoningWire(effort, "auto" if visible else UNSET)
    return spliced(wire, notes) if notes else wire


def _encode_effort(settings: ReasoningSettings, known: tuple[str, ...], request: Request, log: LossLog) -> Any:
    asked = effort_asked(settings, request, log)
    if asked is None and settings.mode == "off":
        asked = "none"
    if asked is not None:
        effort = _nearest_effort(asked, known)
        if effort != asked:
            log.degrade(request, "reasoning.effort", f"effort {asked!r}", f"the nearest this model takes is {effort}")
        return effort
    if settings.mode is not None:
        log.degrade(request, "reasoning.mode", f"reasoning {settings.mode}", "the model's own default effort applies")
    return UNSET


def _nearest_effort(effort: str, known: tuple[str, ...]) -> str:
    """Return the effort itself, or the nearest one that the model has."""
    if effort in known or effort not in EFFORTS or not known:
        return effort
    return min(known, key=lambda other: abs(EFFORTS.index(other) - EFFORTS.index(effort)))


def is_off(settings: ReasoningSettings | None) -> bool:
    return settings is not None and (settings.effort == "none" or (settings.effort is None and settings.mode == "off"))
