"""Reasoning and sampling settings, which each vendor behind this API spells differently.

`inferenceConfig` is common to all; the rest is in `additionalModelRequestFields`, which is merged into the vendor's
own request: Claude's `thinking` and `top_k`, Nova's `reasoningConfig`, the `reasoning_effort` of gpt-oss.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from dragoman.codecs import claude_settings
from dragoman.codecs.bedrock_converse.profile import FAMILY, ModelLimits, limits_of
from dragoman.codecs.reading import WireValue
from dragoman.codecs.reasoning_effort import report_unsent
from dragoman.ir import Message, ReasoningSettings, Request
from dragoman.ir.notes import Extra, family_notes
from dragoman.ir.values import encode_json, parse_json
from dragoman.losses import LossLog

_entries = msgspec.json.Decoder(dict[str, Raw]).decode

FIELDS = "~fields"
"""Note: the additional fields that held these settings, as they were spelled."""
TYPED = "~typed"
"""Note: the effort was in `outputConfig`."""
TOP_K = "~top_k"
"""Note: `topK` in Nova's place."""

# ── decoding ──────────────────────────────────────────────────────────────────────────────────────────────────

_MODES = {"enabled": "on", "adaptive": "adaptive", "disabled": "off", "between_tools": "off"}
_VISIBLE = {"summarized": True, "updates": True, "omitted": False}
_SETTING_KEYS = {"type", "budget_tokens", "display", "maxReasoningEffort"}


def decode_reasoning(fields: Extra, effort: str | UnsetType) -> ReasoningSettings | None:
    """Remove the reasoning settings from the additional fields and return them.

    A field that another one overrides stays: other formats lose it.
    """
    sent: Extra = {}
    notes: Extra = {}
    settings: dict[str, Any] = {}
    for key in ("thinking", "reasoning_config", "reasoningConfig"):
        value = parse_json(fields[key]) if key in fields else None
        if settings:
            break
        if isinstance(value, dict):
            settings = _settings(value)
            sent[key] = fields.pop(key)
            unknown = {name: entry for name, entry in _entries(sent[key]).items() if name not in _SETTING_KEYS}
            notes.update({name: entry for name, entry in unknown.items() if name[:1] != "~"})
        elif isinstance(value, str) and key == "reasoning_config":
            settings, sent[key] = {"effort": value}, fields.pop(key)
    if effort is not UNSET:
        settings["effort"] = effort
        notes[TYPED] = Raw(b"true")
    else:
        _take_effort(fields, settings, sent)
    if sent:
        notes[FIELDS] = Raw(encode_json(sent))
    return ReasoningSettings(**settings, metadata={FAMILY: notes}) if notes else None


def _take_effort(fields: Extra, settings: dict[str, Any], sent: Extra) -> None:
    """Remove the effort from the additional fields, in either spelling."""
    config = parse_json(fields["output_config"]) if "output_config" in fields else None
    if isinstance(config, dict) and set(config) == {"effort"} and isinstance(config["effort"], str):
        settings["effort"], sent["output_config"] = config["effort"], fields.pop("output_config")
        return
    effort = parse_json(fields["reasoning_effort"]) if "reasoning_effort" in fields else None
    if isinstance(effort, str):
        settings["effort"], sent["reasoning_effort"] = effort, fields.pop("reasoning_effort")


def _settings(value: dict[str, Any]) -> dict[str, Any]:
    mode, budget, effort = value.get("type"), value.get("budget_tokens"), value.get("maxReasoningEffort")
    display = value.get("display")
    return {
        "mode": _MODES.get(mode) if isinstance(mode, str) else None,
        "effort": effort if isinstance(effort, str) else None,
        "budget_tokens": budget if type(budget) is int else None,
        "visible": _VISIBLE.get(display) if isinstance(display, str) else None,
    }


def decode_top_k(fields: Extra, notes: Extra) -> int | None:
    value = parse_json(fields["top_k"]) if "top_k" in fields else None
    if type(value) is int:
        del fields["top_k"]
        return value
    nested = parse_json(fields["inferenceConfig"]) if "inferenceConfig" in fields else None
    if isinstance(nested, dict) and set(nested) == {"topK"} and type(nested["topK"]) is int:
        del fields["inferenceConfig"]
        notes[TOP_K] = Raw(b'"nested"')
        return int(nested["topK"])
    return None


# ── encoding ──────────────────────────────────────────────────────────────────────────────────────────────────


class ModelSettings:
    """The reasoning and sampling settings of a request, as they are sent."""

    max_tokens: int | None
    temperature: WireValue
    top_p: WireValue
    effort: WireValue = UNSET
    fields: dict[str, Any] | None = None
    """For `additionalModelRequestFields`."""
    thinks: bool = False

    def __init__(self, max_tokens: int | None, temperature: WireValue, top_p: WireValue) -> None:
        self.max_tokens = max_tokens
        self.temperature = temperature
        self.top_p = top_p


def encode_reasoning(request: Request, log: LossLog, unsent: Sequence[Message] | None) -> ModelSettings:
    """Return the settings of reasoning, and of sampling and length, which depend on them and on the messages sent."""
    settings = ModelSettings(request.max_output_tokens, request.temperature, request.top_p)
    reasoning = request.reasoning
    if request.origin == FAMILY and (reasoning is None or family_notes(FAMILY, reasoning.metadata)):
        _write_unchanged(settings, request, reasoning)
        return settings
    limits = limits_of(request.model)
    if limits.thinking == "claude":
        _as_claude(settings, request, limits, log, unsent)
    else:
        _as_others(settings, request, limits, log)
    return settings


def _write_unchanged(settings: ModelSettings, request: Request, reasoning: ReasoningSettings | None) -> None:
    """Write the settings back as they came: the request is in this format."""
    fields: dict[str, Any] = {}
    if reasoning is not None:
        notes = family_notes(FAMILY, reasoning.metadata)
        fields.update(_entries(notes[FIELDS]) if FIELDS in notes else {})
        settings.effort = reasoning.effort if TYPED in notes else UNSET
    if request.top_k is not None:
        _tell_top_k(fields, request.top_k, nested=TOP_K in family_notes(FAMILY, request.metadata))
    settings.fields = fields


def _tell_top_k(fields: dict[str, Any], top_k: int, *, nested: bool) -> None:
    if nested:
        fields["inferenceConfig"] = {"topK": top_k}
    else:
        fields["top_k"] = top_k


def _as_claude(
    settings: ModelSettings, request: Request, limits: ModelLimits, log: LossLog, unsent: Sequence[Message] | None
) -> None:
    """Apply Claude's own rules: which kinds of thinking, which efforts, which sampling beside them."""
    legal = claude_settings.legal_settings(request, log, unsent, wants_limit=False)
    settings.max_tokens = legal.max_tokens
    settings.temperature, settings.top_p, settings.effort = legal.temperature, legal.top_p, legal.effort
    settings.thinks = legal.thinks
    fields: dict[str, Any] = {}
    if legal.thinking is not UNSET:
        fields["thinking"] = legal.thinking
    if legal.top_k is not None:
        _tell_top_k(fields, legal.top_k, nested=False)
    if not limits.is_claude:
        _bound_sampling(settings, request, log)
    settings.fields = fields


def _bound_sampling(settings: ModelSettings, request: Request, log: LossLog) -> None:
    temperature, top_p = settings.temperature, settings.top_p
    if temperature is not None and temperature > 1:
        log.degrade(request, "temperature", f"temperature {temperature}", "sent as 1: the most this API takes")
        settings.temperature = 1
    if top_p is not None and top_p > 1:
        log.degrade(request, "top_p", f"top_p {top_p}", "sent as 1: the most this API takes")
        settings.top_p = 1


_EFFORTS = {"minimal": "low", "low": "low", "medium": "medium", "high": "high", "xhigh": "high", "max": "high"}
_OFF = {"none", "off", "disabled"}
_EFFORT_OF_BUDGET = ((2048, "low"), (8192, "medium"))


def _as_others(settings: ModelSettings, request: Request, limits: ModelLimits, log: LossLog) -> None:
    if settings.max_tokens is not None and settings.max_tokens < 1:
        log.drop(request, "max_output_tokens", f"limit of {settings.max_tokens} tokens", "it allows no answer")
        settings.max_tokens = None
    _bound_sampling(settings, request, log)
    fields: dict[str, Any] = {}
    if request.top_k is not None:
        if limits.top_k == "none":
            log.drop(request, "top_k", "top_k", "this model has no such setting")
        else:
            _tell_top_k(fields, request.top_k, nested=limits.top_k == "nested")
    if request.reasoning is not None:
        fields.update(_reasoning_fields(request, request.reasoning, limits, log))
    settings.fields = fields


def _reasoning_fields(
    request: Request, reasoning: ReasoningSettings, limits: ModelLimits, log: LossLog
) -> dict[str, Any]:
    if limits.thinking == "none":
        log.drop(request, "reasoning", "reasoning settings", "this model has none")
        return {}
    if reasoning.visible is not None:
        log.drop(request, "reasoning.visible", "visibility of the reasoning", "this model has no such setting")
    if reasoning.mode == "off" or reasoning.effort in _OFF or reasoning.budget_tokens == 0:
        if limits.thinking == "nova":
            report_unsent(reasoning, "mode", request, log)
            return {"reasoningConfig": {"type": "disabled"}}
        log.drop(request, "reasoning", "reasoning switched off", "this model always thinks")
        return {}
    effort = _EFFORTS.get(_effort_asked(reasoning), "medium")
    if effort != reasoning.effort:
        what = reasoning.effort or "reasoning without an effort"
        log.degrade(request, "reasoning.effort", f"{what!r}", f"sent as effort {effort!r}")
    if reasoning.effort is not None and reasoning.budget_tokens is not None:
        what = f"budget of {reasoning.budget_tokens} tokens"
        log.drop(request, "reasoning.budget_tokens", what, "this model takes an effort, not a budget")
    if limits.thinking == "nova":
        return {"reasoningConfig": {"type": "enabled", "maxReasoningEffort": effort}}
    return {"reasoning_effort": effort}


def _effort_asked(reasoning: ReasoningSettings) -> str:
    budget = reasoning.budget_tokens
    if reasoning.effort is not None or budget is None:
        return reasoning.effort or ""
    return next((word for limit, word in _EFFORT_OF_BUDGET if budget <= limit), "high")
