"""What Google's models accept, in all of Google's APIs: names of tools, thinking, last turns."""

from __future__ import annotations

import re
from typing import Literal

from msgspec import Struct

from dragoman.ir import Request
from dragoman.losses import LossLog
from dragoman.profile import HostedRule

TOOL_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}")
BEFORE_3 = re.compile(r"gemini-[12](?:\.|-|$)")
SINCE_3 = re.compile(r"gemini-(?:[3-9]|[1-9]\d|(?:pro|flash|flash-lite)-latest)")
# «Developer instruction is not enabled for models/gemma-3-27b-it»
NO_SYSTEM = re.compile(r"gemma-[123]n?-")
# «Requests ending with a model turn are not supported», since 3.6.
NO_PREFILL = re.compile(r"gemini-(?:3\.(?:[6-9]|\d\d)|[4-9]|[1-9]\d|(?:pro|flash|flash-lite)-latest)")


# A choice names functions only.
HOSTED: dict[str, HostedRule] = {
    "web_search": HostedRule(),
    "web_fetch": HostedRule(),
    "code_execution": HostedRule(),
    "file_search": HostedRule(options=frozenset({"stores", "max_results"})),
}


class ThinkingRule(Struct, frozen=True, kw_only=True):
    """How the thinking of some models is set."""

    models: re.Pattern[str]
    by: Literal["level", "budget", "nothing"]
    lowest: str = "minimal"
    """The lowest level that these models accept. Thinking that is set by level cannot be switched off."""
    minimum: int = 0
    """The lowest budget that thinks, if thinking is set by budget; 0 switches it off where `can_switch_off`."""
    maximum: int = 24576
    can_switch_off: bool = True


THINKING: tuple[ThinkingRule, ...] = (
    # «Thinking is not enabled for models/gemini-2.5-flash-image-preview»
    ThinkingRule(
        models=re.compile(r"gemini-(?:1\.|2\.0|2\.5-[\w-]*(?:image|tts))|gemma-[123]n?-|learnlm"), by="nothing"
    ),
    ThinkingRule(
        models=re.compile(r"gemini-2\.5-pro"),
        by="budget",
        lowest="low",
        minimum=128,
        maximum=32768,
        can_switch_off=False,
    ),
    ThinkingRule(models=re.compile(r"gemini-2\.5-flash-lite"), by="budget", lowest="low", minimum=512),
    ThinkingRule(models=re.compile(r"gemini-2\.5"), by="budget", lowest="low"),
    # 400 for the level `minimal`: 3 Pro, 3.1 Pro, 3.7 and 3.8 Flash, 4 Argon.
    ThinkingRule(models=re.compile(r"gemini-(?:3(?:\.1)?-pro|3\.[78]-flash|4-argon)"), by="level", lowest="low"),
    ThinkingRule(models=re.compile(r""), by="level"),
)
"""By model name: the first matching row counts."""

_LEVEL_OF_EFFORT = {
    "none": "minimal",
    "minimal": "minimal",
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "high",
    "max": "high",
}
# Few models take `xhigh`. A client that wrote it for one of Google's APIs knows that its model does.
_LEVELS_OF_OWN_CLIENTS = frozenset({"xhigh"})
_OWN_FAMILIES = frozenset({"google", "gemini-interactions"})
# The budgets that Google's own compatible endpoint uses for these words.
BUDGET_OF_EFFORT = {"minimal": 1024, "low": 1024, "medium": 8192, "high": 24576, "xhigh": 24576, "max": 24576}


def thinking_rule(model: str | None, rules: tuple[ThinkingRule, ...] = THINKING) -> ThinkingRule:
    return next(rule for rule in rules if rule.models.search(model or ""))


def fit_level(effort: str, rule: ThinkingRule, request: Request, log: LossLog) -> str | None:
    """Return the level for this effort, in lower case; None (logged) if there is none."""
    if effort.lower() in _LEVELS_OF_OWN_CLIENTS and request.origin in _OWN_FAMILIES:
        return effort.lower()
    level = _LEVEL_OF_EFFORT.get(effort.lower())
    if level is None:
        log.drop(request, "reasoning.effort", f"effort {effort!r}", "this API has no such level")
        return None
    least = rule.lowest if level == "minimal" else level
    if least != effort.lower():
        log.degrade(request, "reasoning.effort", f"effort {effort!r}", f"sent as level {least}")
    return least
