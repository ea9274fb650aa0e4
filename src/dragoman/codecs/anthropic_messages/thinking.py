"""How much the model thinks, and the settings that depend on it: budgets, effort, sampling, the token limit."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from dragoman.codecs.anthropic_messages.caching import FAMILY
from dragoman.codecs.anthropic_messages.parts import own
from dragoman.codecs.anthropic_messages.profile import ALL_EFFORTS, ModelLimits, limits_of
from dragoman.codecs.anthropic_messages.tools import forces_call
from dragoman.codecs.anthropic_messages.wire import ThinkingConfig
from dragoman.codecs.reading import WireValue
from dragoman.ir import Message, Reasoning, ReasoningSettings, Request
from dragoman.losses import LossLog

_config = msgspec.json.Decoder(ThinkingConfig).decode

_DECODE_MODE = {"enabled": "on", "adaptive": "adaptive", "disabled": "off", "between_tools": "off"}
_VISIBLE = {"summarized": True, "updates": True, "omitted": False}


_KNOWN = {"type", "budget_tokens", "display"}
_entries = msgspec.json.Decoder(dict[str, Raw]).decode


def decode_reasoning(thinking: Raw | UnsetType, effort: str | UnsetType) -> ReasoningSettings | None:
    said = None if effort is UNSET else effort
    if thinking is UNSET:
        return None if said is None else ReasoningSettings(None, said)
    notes = {FAMILY: {"~thinking": thinking}}
    try:
        config = _config(thinking)
    except msgspec.ValidationError:
        return ReasoningSettings(None, said, metadata=notes)
    # Sent back within "~thinking"; noted by themselves so that other targets can tell what they did not get.
    unknown = {key: held for key, held in _entries(thinking).items() if key not in _KNOWN and key[:1] != "~"}
    notes[FAMILY].update(unknown)
    mode: Any = _DECODE_MODE.get(config.type or "")
    return ReasoningSettings(mode, said, config.budget_tokens, _VISIBLE.get(config.display or ""), notes)


class Settings(Struct):
    """What a request says about thinking and sampling, as it is sent."""

    max_tokens: int | None
    temperature: float | None
    top_p: float | None
    top_k: int | None
    thinking: WireValue = UNSET
    effort: str | UnsetType = UNSET

    @property
    def thinks(self) -> bool:
        config = self.thinking
        return isinstance(config, ThinkingConfig) and config.type in {"enabled", "adaptive"}


def encode_settings(request: Request, log: LossLog) -> Settings:
    maximum, temperature, top_p, top_k = request.max_output_tokens, request.temperature, request.top_p, request.top_k
    settings = Settings(maximum, temperature, top_p, top_k)
    reasoning = request.reasoning
    if request.origin == FAMILY and (reasoning is None or _is_as_said(reasoning)):
        if reasoning is not None:
            settings.thinking = own(reasoning.metadata).get("~thinking", UNSET)
            settings.effort = UNSET if reasoning.effort is None else reasoning.effort
        return settings
    limits = limits_of(request.model)
    if maximum is not None and maximum < 1:
        log.drop(request, "max_output_tokens", f"limit of {maximum} tokens", "it allows no answer")
        settings.max_tokens = None
    if reasoning is not None:
        _Thinking(request, reasoning, limits, log).apply(settings)
    if settings.max_tokens is None:
        settings.max_tokens = limits.invented_max_tokens
        log.invent(request, "max_output_tokens", f"max_tokens {settings.max_tokens}", "this API wants a limit")
    if temperature is not None or top_p is not None or top_k is not None:
        _legal_sampling(settings, request, limits, log)
    return settings


def _is_as_said(reasoning: ReasoningSettings) -> bool:
    """Whether these are the settings the wire gave, or only an effort: nothing that would need a translation."""
    return "~thinking" in own(reasoning.metadata) or (reasoning.mode, reasoning.visible) == (None, None)


# ── thinking ──────────────────────────────────────────────────────────────────────────────────────────────────

_LEAST_BUDGET = 1024
_BUDGET_OF_EFFORT = {"minimal": 1024, "low": 2048, "medium": 8192, "high": 16384, "xhigh": 32768, "max": 49152}
_EFFORT_OF_BUDGET = ((2048, "low"), (8192, "medium"), (24576, "high"))
_OFF = {"none", "off", "disabled"}


class _Thinking:
    """Reasoning settings of another family, in the words that this model knows."""

    def __init__(self, request: Request, reasoning: ReasoningSettings, limits: ModelLimits, log: LossLog) -> None:
        self._request = request
        self._reasoning = reasoning
        self._limits = limits
        self._log = log

    def apply(self, settings: Settings) -> None:
        reasoning = self._reasoning
        if reasoning.mode == "off" or reasoning.effort in _OFF or reasoning.budget_tokens == 0:
            self._switch_off(settings)
            return
        if not self._limits.thinking:
            self._log.drop(self._request, "reasoning", "reasoning settings", "this model does not think")
            return
        cannot = "adaptive only" if "enabled" not in self._limits.thinking else self._cannot_enable()
        if "adaptive" in self._limits.thinking and (reasoning.budget_tokens is None or cannot):
            self._adapt(settings)
        elif cannot:
            self._log.drop(self._request, "reasoning", "reasoning", cannot)
        else:
            self._enable(settings)

    def _cannot_enable(self) -> str:
        """Why a budget may not be sent, in models that know budgets; adaptive thinking is free of these rules."""
        if forces_call(self._request):
            return "thinking may not be enabled when a tool call is forced"
        if _loops_without_thinking(self._request.messages):
            return "thinking may not be enabled while calls that came without thinking are answered"
        return ""

    def _switch_off(self, settings: Settings) -> None:
        off = next((word for word in ("disabled", "between_tools") if word in self._limits.thinking), None)
        if off is not None:
            settings.thinking = ThinkingConfig(off)
            if off != "disabled":
                why = "this model thinks between tool calls at least"
                self._log.degrade(self._request, "reasoning", "reasoning switched off", why)
        elif self._limits.thinks_unasked:
            self._log.drop(self._request, "reasoning", "reasoning switched off", "this model always thinks")
        effort = self._reasoning.effort
        if effort is not None and effort not in _OFF and self._limits.efforts:
            known = [word for word in self._limits.efforts if word in self._limits.efforts_without_thinking]
            settings.effort = self._nearest(effort, tuple(known))

    def _adapt(self, settings: Settings) -> None:
        """The model decides how much; effort and display are told beside."""
        reasoning = self._reasoning
        if reasoning.budget_tokens is not None:
            words = (word for limit, word in _EFFORT_OF_BUDGET if reasoning.budget_tokens <= limit)
            effort = reasoning.effort or next(words, "max")
            what = f"budget of {reasoning.budget_tokens} tokens"
            self._log.degrade(self._request, "reasoning.budget_tokens", what, f"sent as effort {effort!r}")
        else:
            effort = reasoning.effort or ""
        if effort:
            settings.effort = self._nearest(effort, self._limits.efforts)
        # Where thinking is on anyway, effort alone says it all.
        if not self._limits.thinks_unasked or reasoning.visible is not None or reasoning.mode is not None:
            settings.thinking = ThinkingConfig("adaptive", None, self._display())

    def _enable(self, settings: Settings) -> None:
        """A budget in tokens: at least 1024, and below the limit of the answer."""
        reasoning, limit = self._reasoning, settings.max_tokens
        wanted = reasoning.budget_tokens
        if wanted is None or wanted < 0:
            wanted = _BUDGET_OF_EFFORT.get(reasoning.effort or "", _BUDGET_OF_EFFORT["medium"])
        if limit is None:
            settings.max_tokens = limit = wanted + self._limits.invented_max_tokens
            what, why = f"max_tokens {limit}", "this API wants a limit, above the thinking budget"
            self._log.invent(self._request, "max_output_tokens", what, why)
        if limit <= _LEAST_BUDGET:
            why = f"thinking takes {_LEAST_BUDGET} tokens at least, and the answer may have {limit}"
            self._log.drop(self._request, "reasoning", "reasoning", why)
            return
        # Half of the room is left for the answer itself.
        budget = max(_LEAST_BUDGET, wanted if wanted < limit else limit // 2)
        settings.thinking = ThinkingConfig("enabled", budget, self._display())
        if reasoning.budget_tokens is None:
            what = f"effort {reasoning.effort!r}" if reasoning.effort else "reasoning"
            self._log.degrade(self._request, "reasoning.effort", what, f"sent as a budget of {budget} tokens")
        elif budget != reasoning.budget_tokens:
            what = f"budget of {reasoning.budget_tokens} tokens"
            self._log.degrade(self._request, "reasoning.budget_tokens", what, f"sent as {budget} tokens")

    def _display(self) -> str | None:
        return {True: "summarized", False: "omitted"}.get(self._reasoning.visible)  # type: ignore[arg-type]

    def _nearest(self, effort: str, known: tuple[str, ...]) -> str | UnsetType:
        """The effort, or the next lower one that the model knows."""
        if effort in known:
            return effort
        rank = ALL_EFFORTS.index(effort) if effort in ALL_EFFORTS else 0 if effort == "minimal" else None
        if rank is None or not known:
            self._log.drop(self._request, "reasoning.effort", f"effort {effort!r}", "this model knows no such level")
            return UNSET
        lower = [word for word in known if ALL_EFFORTS.index(word) <= rank]
        nearest = lower[-1] if lower else known[0]
        what = f"effort {effort!r}"
        self._log.degrade(self._request, "reasoning.effort", what, f"sent as {nearest!r}: this model lacks the level")
        return nearest


def _loops_without_thinking(messages: tuple[Message, ...]) -> bool:
    """«Expected `thinking` or `redacted_thinking`, but found `tool_use`»: the turn being answered starts otherwise."""
    last = len(messages) - 1
    while last >= 0 and messages[last].role != "assistant":
        last -= 1
    if not any(message.role == "tool" for message in messages[last + 1 :]):
        return False
    while last > 0 and messages[last - 1].role == "assistant":
        last -= 1
    for part in messages[last].parts if last >= 0 else ():
        if not isinstance(part, Reasoning):
            return True
        if part.signature is not None and part.signature.family == FAMILY:
            return False
    return True


# ── sampling ──────────────────────────────────────────────────────────────────────────────────────────────────

_DEFAULTS: dict[str, tuple[float, ...]] = {"temperature": (1,), "top_p": (0.99, 1), "top_k": ()}
_LEAST_TOP_P = 0.95


def _legal_sampling(settings: Settings, request: Request, limits: ModelLimits, log: LossLog) -> None:
    temperature = settings.temperature
    if temperature is not None and temperature > 1:
        log.degrade(request, "temperature", f"temperature {temperature}", "sent as 1: the most this API takes")
        settings.temperature = 1
    policy, thinks = limits.sampling, settings.thinks
    if policy == "free" and not thinks:
        return
    for name, defaults in _DEFAULTS.items():
        value = getattr(settings, name)
        if value is None:
            continue
        why = None
        if value not in defaults and policy.startswith("default"):
            why = "this model refuses it"
        elif value not in defaults and thinks and not (name == "top_p" and value >= _LEAST_TOP_P):
            why = "this model refuses it while it thinks"
        elif name == "top_p" and policy.endswith("one of two") and settings.temperature is not None:
            why = "this model refuses it together with temperature"
        if why is not None:
            log.drop(request, name, name, why)
            setattr(settings, name, None)
