"""Calls that wait for a person or an outside job: how they stand in the history, and what decides them.

The history stays valid all the time: a waiting call is answered by an error result that says so and carries a note.
When the decision is there, the real result takes its place (`Agent.resume`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Raw, Struct

from dragoman.agent.permissions import Allow, Deny
from dragoman.errors import DragomanError
from dragoman.ir import Message, ToolCall, ToolResult
from dragoman.ir.values import encode_json

FAMILY = "dragoman"
PENDING = "~pending"
"""Note on the result of a call that waits."""
_WAITS = "This call waits for {what}; it has not run."
_WHAT: Mapping[str, str] = {"approval": "approval", "deferred": "an outside result"}

PendingKind: TypeAlias = Literal["approval", "deferred"]


class _Note(Struct, frozen=True, omit_defaults=True):
    kind: PendingKind
    reason: str = ""


class PendingCall(Struct, frozen=True):
    """A call that waits. Serialises with msgspec, as everything here does."""

    call_id: str
    tool: str
    arguments: dict[str, Any]
    kind: PendingKind
    reason: str = ""


Decision: TypeAlias = Allow | Deny | ToolResult | str | Mapping[str, Any] | Sequence[Any]
"""What becomes of a waiting call: run it, refuse it, or take this as its result."""


class BadDecisions(DragomanError, ValueError):
    """Decisions that do not fit the calls that wait: unknown ones, missing ones, or one for a tool that is gone."""


def placeholder(call: ToolCall, kind: PendingKind, reason: str = "") -> ToolResult:
    """What answers a call while it waits."""
    text = _WAITS.format(what=_WHAT[kind])
    note = {FAMILY: {PENDING: Raw(encode_json(_Note(kind, reason)))}}
    return ToolResult(call.id, call.name, "error", text, metadata=note)


def _note_of(result: ToolResult) -> _Note | None:
    held = (result.metadata or {}).get(FAMILY, {}).get(PENDING)
    return None if held is None else msgspec.json.decode(bytes(held), type=_Note)


def pending_in(messages: Sequence[Message]) -> tuple[PendingCall, ...]:
    """The calls of the last turn that wait; none once the conversation has gone on."""
    if len(messages) < 2 or messages[-1].role != "tool":  # noqa: PLR2004 - the calls and their results
        return ()
    calls = {call.id: call for call in messages[-2].tool_calls}
    found = [(calls[one.tool_call_id], _note_of(one)) for one in messages[-1].tool_results if one.tool_call_id in calls]
    return tuple(
        PendingCall(call.id, call.name, dict(call.arguments), note.kind, note.reason)
        for call, note in found
        if note is not None
    )


def check_decisions(
    pending: Sequence[PendingCall], decisions: Mapping[str, Decision], known_tools: Mapping[str, Any]
) -> None:
    """Raise `BadDecisions` unless there is exactly one decision for each waiting call, and its tool is there to run."""
    waiting = {one.call_id: one for one in pending}
    if not waiting:
        raise BadDecisions("no call of this conversation waits for a decision")
    problems = []
    if unknown := sorted(set(decisions) - set(waiting)):
        problems.append(f"unknown calls: {', '.join(unknown)}")
    if missing := [f"{one.call_id} ({one.tool})" for one in pending if one.call_id not in decisions]:
        problems.append(f"no decision for: {', '.join(missing)}; give Allow(), Deny('why') or a result for each")
    for call_id, decision in decisions.items():
        tool = waiting[call_id].tool if call_id in waiting else None
        if isinstance(decision, Allow) and tool is not None and tool not in known_tools:
            problems.append(f"{call_id} is allowed, but this agent has no tool {tool!r}: add it, deny or give a result")
    if problems:
        raise BadDecisions("; ".join(problems))
