"""Conversion of a budget of thinking tokens to an effort, for APIs that take only efforts."""

from __future__ import annotations

from dragoman.ir import ReasoningSettings, Request
from dragoman.losses import LossLog

_BUDGETS = ((2048, "low"), (8192, "medium"))


def effort_asked(settings: ReasoningSettings, request: Request, log: LossLog) -> str | None:
    """Return the effort, or the one that a budget stands for; a budget beside an effort is lost."""
    budget = settings.budget_tokens
    if budget is None or budget <= 0:
        return settings.effort
    if settings.effort is None:
        return effort_of_budget(budget, request, log)
    log.drop(request, "reasoning.budget_tokens", f"budget of {budget} tokens", "this API takes an effort, not a budget")
    return settings.effort


def effort_of_budget(budget: int, request: Request, log: LossLog) -> str:
    effort = next((name for limit, name in _BUDGETS if budget <= limit), "high")
    log.degrade(request, "reasoning.budget_tokens", f"budget of {budget} tokens", f"sent as effort {effort}")
    return effort
