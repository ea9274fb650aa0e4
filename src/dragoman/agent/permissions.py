"""Decides whether a call may run: by rules, by the user's own function, or by asking a person."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from fnmatch import fnmatchcase
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from dragoman.agent.tools import Tool
from dragoman.ir import ToolCall


class PermissionRequest(Struct, frozen=True):
    """A call whose arguments are valid, before it runs."""

    call: ToolCall
    tool: Tool
    arguments: dict[str, Any]
    """As the model gave them."""


class Allow(Struct, frozen=True):
    pass


class Deny(Struct, frozen=True):
    reason: str = "not permitted"
    stop: bool = False
    """End the run, too: the following calls do not run."""


class Ask(Struct, frozen=True):
    """Ask the user; without an interactive user, deny."""


class Defer(Struct, frozen=True):
    """Pause the run until a person has decided (`Agent.resume`)."""

    reason: str = ""


Decision: TypeAlias = Allow | Deny | Ask | Defer
Hook: TypeAlias = Callable[[PermissionRequest], Decision | Awaitable[Decision]]
Asker: TypeAlias = Callable[[PermissionRequest], bool | Allow | Deny | Defer | Awaitable[bool | Allow | Deny | Defer]]

ALLOW = Allow()
ASK = Ask()


def pause(_request: PermissionRequest) -> Defer:
    """Pause the run instead of waiting for an answer; used as `Agent(ask=pause)`."""
    return Defer()


class Rule(Struct, frozen=True):
    """Matches calls of tools with this name (`*` and `?` are wildcards) whose arguments `when` accepts."""

    tool: str
    when: Callable[[dict[str, Any]], bool] | None = None

    def covers(self, request: PermissionRequest) -> bool:
        return fnmatchcase(request.call.name, self.tool) and (self.when is None or self.when(request.arguments))


class Rules(Struct, frozen=True, kw_only=True):
    """Deny before allow before ask; `otherwise` applies to calls that no rule covers."""

    deny: Sequence[Rule | str] = ()
    allow: Sequence[Rule | str] = ()
    ask: Sequence[Rule | str] = ()
    allow_read_only: bool = True
    """Tools that change nothing are allowed unless a rule denies them or asks."""
    otherwise: Literal["allow", "deny", "ask"] = "ask"

    def __call__(self, request: PermissionRequest) -> Decision:
        if _any_covers(self.deny, request):
            return Deny(f"a rule denies {request.call.name}")
        if _any_covers(self.allow, request):
            return ALLOW
        if _any_covers(self.ask, request):
            return ASK
        if self.allow_read_only and request.tool.read_only:
            return ALLOW
        return _OTHERWISE[self.otherwise]


_OTHERWISE: dict[str, Decision] = {"allow": ALLOW, "deny": Deny("no rule allows it"), "ask": ASK}


def _any_covers(rules: Sequence[Rule | str], request: PermissionRequest) -> bool:
    return any((Rule(rule) if isinstance(rule, str) else rule).covers(request) for rule in rules)


async def decide(request: PermissionRequest, hook: Hook | None, asker: Asker | None) -> Allow | Deny | Defer:
    """Return the final decision. A check that fails denies the call."""
    if hook is None:
        return ALLOW
    try:
        decision = await _await_decision(hook(request))
        if isinstance(decision, Ask):
            if asker is None:
                return Deny("it needs approval, and there is no user to ask")
            decision = await _await_decision(asker(request))
    except Exception as error:  # noqa: BLE001 - whatever went wrong, the call was not permitted
        return Deny(f"the permission check failed: {type(error).__name__}: {error}")
    if isinstance(decision, bool):
        return ALLOW if decision else Deny("the user declined")
    if isinstance(decision, Allow | Deny | Defer):
        return decision
    return Deny(f"the permission check must return a decision, not {type(decision).__name__}")


async def _await_decision(decision: Any) -> Any:
    return await decision if inspect.isawaitable(decision) else decision
