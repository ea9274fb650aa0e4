"""Effort, budget and switch of reasoning, for APIs that take only one of them."""

from __future__ import annotations

from typing import Final

from dragoman.ir import ReasoningSettings, Request
from dragoman.losses import LossLog

_BUDGETS = ((2048, "low"), (8192, "medium"))


def effort_asked(settings: ReasoningSettings, request: Request, log: LossLog) -> str | None:
    """Return the effort, or that of a budget. A budget or switch beside an effort is lost, a budget beside off too."""
    budget = settings.budget_tokens
    if settings.effort is not None:
        report_unsent(settings, "effort", request, log)
    elif settings.mode == "off":
        report_unsent(settings, "mode", request, log)
    elif budget is not None and budget > 0:
        return effort_of_budget(budget, request, log)
    return settings.effort


def effort_of_budget(budget: int, request: Request, log: LossLog) -> str:
    effort = next((name for limit, name in _BUDGETS if budget <= limit), "high")
    log.degrade(request, "reasoning.budget_tokens", f"budget of {budget} tokens", f"sent as effort {effort}")
    return effort


def report_unsent(settings: ReasoningSettings, sent: str, request: Request, log: LossLog) -> None:
    """Report the reasoning settings beside the one that is sent, for APIs that take only one."""
    effort, budget = settings.effort, settings.budget_tokens
    if sent != "effort" and effort is not None and effort.lower() != "none":
        log.drop(request, "reasoning.effort", f"effort {effort!r}", _INSTEAD[sent])
    if sent != "budget_tokens" and budget:
        log.drop(request, "reasoning.budget_tokens", f"budget of {budget} tokens", _INSTEAD[sent])
    if sent != "mode" and settings.mode == "off" and effort != "none":
        log.degrade(request, "reasoning.mode", "reasoning off", _INSTEAD[sent])


_INSTEAD: Final = {
    "mode": "reasoning is switched off",
    "effort": "the effort is sent instead: this API takes only one of them",
    "budget_tokens": "the budget is sent instead: this API takes only one of them",
}
