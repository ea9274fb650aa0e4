"""Conversion of a budget of thinking tokens to an effort, for APIs that take only efforts."""

from __future__ import annotations

from dragoman.ir import Request
from dragoman.losses import LossLog

_BUDGETS = ((2048, "low"), (8192, "medium"))


def effort_of_budget(budget: int, request: Request, log: LossLog) -> str:
    effort = next((name for limit, name in _BUDGETS if budget <= limit), "high")
    log.degrade(request, "reasoning.budget_tokens", f"budget of {budget} tokens", f"sent as effort {effort}")
    return effort
