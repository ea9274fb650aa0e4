"""Settings for thinking and sampling in the terms of a Claude model, behind any API.

What each model accepts is in `claude_models.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import UNSET, UnsetType

from dragoman.codecs.claude_models import (
    ALL_EFFORTS,
    FAMILY,
    NO_FORCED_CHOICE,
    TAKEN_BY_ALL,
    ModelLimits,
    ThinkingConfig,
    limits_of,
)
from dragoman.codecs.reading import WireValue
from dragoman.codecs.wire_values import MaybeNumber
from dragoman.ir import Message, Reasoning, ReasoningSettings, Request
from dragoman.losses import LossLog


def forces_call(request: Request) -> bool:
    """Whether the request, as sent, forces a call."""
    choice = request.tool_choice
    if choice is None or choice.mode != "required" or not request.tools:
        return False
    return NO_FORCED_CHOICE.search(request.model or "") is None


_THINKS = frozenset({"enabled", "adaptive"})


class Settings:
    """A request's settings for thinking and sampling, as they are sent."""

    max_tokens: int | None
    temperature: MaybeNumber
    top_p: MaybeNumber
    top_k: int | None
    thinking: WireValue = UNSET
    effort: str | UnsetType = UNSET

    def __init__(self, max_tokens: int | None, temperature: MaybeNumber, top_p: MaybeNumber, top_k: int | None) -> None:
        self.max_tokens = max_tokens
        self.temperature = temperature
        self.top_p = top_p
        self.top_k = top_k

    @property
    def thinks(self) -> bool:
        config = self.thinking
        return type(config) is ThinkingConfig and config.type in _THINKS


def legal_settings(request: Request, log: LossLog, unsent: Sequence[Message] | None, *, wants_limit: bool) -> Settings:
    """Return the settings of another family's request that the model accepts.

    `unsent`: messages of which nothing can be sent. `wants_limit`: the API requires a limit.
    """
    maximum, temperature, top_p, top_k = request.max_output_tokens, request.temperature, request.top_p, request.top_k
    settings = Settings(maximum, temperature, top_p, top_k)
    limits = limits_of(request.model)
    if maximum is not None and maximum < 1:
        log.drop(request, "max_output_tokens", f"limit of {maximum} tokens", "this API requires at least one token")
        settings.max_tokens = None
    if request.reasoning is not None:
        _Thinking(request, request.reasoning, limits, log, unsent, wants_limit=wants_limit).apply(settings)
    if settings.max_tokens is None and wants_limit:
        settings.max_tokens = limits.invented_max_tokens
        log.invent(request, "max_output_tokens", f"max_tokens {settings.max_tokens}", "this API requires a limit")
    if temperature is not None or top_p is not None or top_k is not None:
        _legal_sampling(settings, request, limits, log)
    return settings


# ── thinking ──────────────────────────────────────────────────────────────────────────────────────────────────

_LEAST_BUDGET = 1024
_NO_LIMIT = 1 << 30
"""For an API that does not require a limit: an answer may be as long as the model can write."""
_BUDGET_OF_EFFORT = {"minimal": 1024, "low": 2048, "medium": 8192, "high": 16384, "xhigh": 32768, "max": 49152}
_EFFORT_OF_BUDGET = ((2048, "low"), (8192, "medium"), (24576, "high"))
_OFF = {"none", "off", "disabled"}


class _Thinking:
    """Converts reasoning settings of another family to the terms of this model."""

    def __init__(
        self,
        request: Request,
        reasoning: ReasoningSettings,
        limits: ModelLimits,
        log: LossLog,
        unsent: Sequence[Message] | None,
        *,
        wants_limit: bool,
    ) -> None:
        self._request = request
        self._reasoning = reasoning
        self._limits = limits
        self._log = log
        self._unsent = unsent
        self._wants_limit = wants_limit

    def apply(self, settings: Settings) -> None:
        reasoning = self._reasoning
        if reasoning.mode == "off" or reasoning.effort in _OFF or reasoning.budget_tokens == 0:
            self._switch_off(settings)
            return
        asked = (reasoning.mode, reasoning.effort, reasoning.budget_tokens) != (None, None, None)
        if not asked and reasoning.visible is False and not self._limits.thinks_unasked:
            return  # nothing is thought, so nothing is to be hidden
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
        """Return why a budget may not be sent, or ""; these rules do not apply to adaptive thinking."""
        if forces_call(self._request):
            return "thinking may not be enabled when a tool call is forced"
        if _loops_without_thinking(self._sent_messages()):
            return "thinking may not be enabled while calls that came without thinking are answered"
        return ""

    def _sent_messages(self) -> tuple[Message, ...]:
        messages = self._request.messages
        if not self._unsent:
            return messages
        unsent = {id(message) for message in self._unsent}
        return tuple([message for message in messages if id(message) not in unsent])

    def _switch_off(self, settings: Settings) -> None:
        off = next((word for word in ("disabled", "between_tools") if word in self._limits.thinking), None)
        if off is not None:
            settings.thinking = ThinkingConfig(off)
            if off != "disabled":
                why = "this model always thinks between tool calls"
                self._log.degrade(self._request, "reasoning", "reasoning switched off", why)
        elif self._limits.thinks_unasked:
            self._log.drop(self._request, "reasoning", "reasoning switched off", "this model always thinks")
        budget, effort = self._reasoning.budget_tokens, self._reasoning.effort
        if budget:
            what = f"budget of {budget} tokens"
            self._log.drop(self._request, "reasoning.budget_tokens", what, "reasoning is switched off")
        if effort is not None and effort not in _OFF:
            known = [word for word in self._limits.efforts if word in self._limits.efforts_without_thinking]
            settings.effort = self._nearest(effort, tuple(known))

    def _adapt(self, settings: Settings) -> None:
        """Let the model decide how much it thinks; effort and display are sent with it."""
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
        # If thinking is on by default, effort alone is enough.
        if not self._limits.thinks_unasked or reasoning.visible is not None or reasoning.mode is not None:
            settings.thinking = ThinkingConfig("adaptive", None, self._display())

    def _enable(self, settings: Settings) -> None:
        """Set a budget in tokens: at least 1024, and below the limit of the answer."""
        reasoning, limit = self._reasoning, settings.max_tokens
        wanted = reasoning.budget_tokens
        if wanted is None or wanted < 0:
            wanted = _BUDGET_OF_EFFORT.get(reasoning.effort or "", _BUDGET_OF_EFFORT["medium"])
        if limit is None and not self._wants_limit:
            limit = _NO_LIMIT
        if limit is None:
            most = self._limits.most_tokens
            settings.max_tokens = limit = wanted + TAKEN_BY_ALL if most is None else most
            what, why = f"max_tokens {limit}", "this API requires a limit, above the thinking budget"
            self._log.invent(self._request, "max_output_tokens", what, why)
        if limit <= _LEAST_BUDGET:
            why = f"thinking takes at least {_LEAST_BUDGET} tokens, and the answer may have only {limit}"
            self._log.drop(self._request, "reasoning", "reasoning", why)
            return
        # Half of the limit is left for the answer itself.
        budget = max(_LEAST_BUDGET, wanted if wanted < limit else limit // 2)
        settings.thinking = ThinkingConfig("enabled", budget, self._display())
        if reasoning.effort is not None and reasoning.budget_tokens is not None:
            settings.effort = self._nearest(reasoning.effort, self._limits.efforts)
        if reasoning.budget_tokens is None:
            field, what = "reasoning", "reasoning"
            if reasoning.effort:
                field, what = "reasoning.effort", f"effort {reasoning.effort!r}"
            self._log.degrade(self._request, field, what, f"sent as a budget of {budget} tokens")
            return
        if budget != reasoning.budget_tokens:
            what = f"budget of {reasoning.budget_tokens} tokens"
            self._log.degrade(self._request, "reasoning.budget_tokens", what, f"sent as {budget} tokens")
        if reasoning.effort is not None:
            settings.effort = self._nearest(reasoning.effort, self._limits.efforts)

    def _display(self) -> str | None:
        return {True: "summarized", False: "omitted"}.get(self._reasoning.visible)  # type: ignore[arg-type]

    def _nearest(self, effort: str, known: tuple[str, ...]) -> str | UnsetType:
        """Return the effort, or the next lower one that the model has."""
        if effort in known:
            return effort
        rank = ALL_EFFORTS.index(effort) if effort in ALL_EFFORTS else 0 if effort == "minimal" else None
        if rank is None or not known:
            self._log.drop(self._request, "reasoning.effort", f"effort {effort!r}", "this model has no such level")
            return UNSET
        lower = [word for word in known if ALL_EFFORTS.index(word) <= rank]
        nearest = lower[-1] if lower else known[0]
        what = f"effort {effort!r}"
        self._log.degrade(self._request, "reasoning.effort", what, f"sent as {nearest!r}: this model lacks the level")
        return nearest


def _loops_without_thinking(messages: tuple[Message, ...]) -> bool:
    """Whether the turn that is answered lacks thinking.

    The API: «Expected `thinking` or `redacted_thinking`, but found `tool_use`».
    """
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
