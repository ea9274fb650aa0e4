"""Calls that wait for a person or an outside job: how the history represents them, and what decides them.

The history is always valid: a waiting call is answered by an error result that says so and carries a note. After the
decision, the real result replaces it (`Agent.resume`). If an agent that was called as a tool waits, the note of that
call holds its history, so that its calls can be found and decided from outside.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Raw, Struct, structs

from dragoman.agent.permissions import Allow, Deny
from dragoman.agent.tools import Resumed, Tool, result_of
from dragoman.errors import DragomanError
from dragoman.ir import Message, ToolCall, ToolResult
from dragoman.ir.values import encode_json

FAMILY = "dragoman"
PENDING = "~pending"
"""Note on the result of a call that waits."""
_WAITS = "This call waits for {what}; it has not run."
_WHAT: Mapping[str, str] = {
    "approval": "approval",
    "deferred": "an outside result",
    "agent": "decisions about calls of its own",
}

PendingKind: TypeAlias = Literal["approval", "deferred"]


class _Note(Struct, frozen=True, omit_defaults=True):
    kind: PendingKind | Literal["agent"]
    reason: str = ""
    history: tuple[Message, ...] = ()
    """History of the agent behind the call, whose own calls wait."""


class PendingCall(Struct, frozen=True):
    """A call that waits. Can be serialised with msgspec, like everything here."""

    call_id: str
    """For a call made by an agent behind a tool: the id of the outer call, a slash, and its own."""
    tool: str
    arguments: dict[str, Any]
    kind: PendingKind
    reason: str = ""
    path: tuple[str, ...] = ()
    """The tools that lead to the agent that made the call, the outermost first; empty for the agent itself."""


Decision: TypeAlias = Allow | Deny | ToolResult | str | Mapping[str, Any] | Sequence[Any]
"""The decision about a waiting call: run it, refuse it, or take this as its result."""


class BadDecisions(DragomanError, ValueError):
    """Decisions that do not fit the waiting calls: unknown, missing, or for a tool that no longer exists."""


def placeholder(
    call: ToolCall, kind: PendingKind | Literal["agent"], reason: str = "", history: Sequence[Message] = ()
) -> ToolResult:
    """Return the result that answers a call while it waits."""
    text = _WAITS.format(what=_WHAT[kind])
    note = {FAMILY: {PENDING: Raw(encode_json(_Note(kind, reason, tuple(history))))}}
    return ToolResult(call.id, call.name, "error", text, metadata=note)


def waiting(call: ToolCall, result: ToolResult) -> tuple[PendingCall, ...]:
    """Return what waits behind a call: nothing, the call itself, or calls of the agent it gave a task to."""
    note = _note_of(result)
    if note is None:
        return ()
    if note.kind == "agent":
        inner = pending_in(note.history)
        return tuple(structs.replace(one, call_id=_nested_id(call, one), path=(call.name, *one.path)) for one in inner)
    return (PendingCall(call.id, call.name, dict(call.arguments), note.kind, note.reason),)


def pending_in(messages: Sequence[Message]) -> tuple[PendingCall, ...]:
    """Return the waiting calls of the last turn; none once the conversation has continued."""
    return tuple(found for call, result in _last_turn(messages) for found in waiting(call, result))


def waiting_ids(messages: Sequence[Message]) -> frozenset[str]:
    """Return the ids of calls of the last turn whose results are still to come."""
    return frozenset(call.id for call, result in _last_turn(messages) if _note_of(result) is not None)


def agents_waiting(messages: Sequence[Message], decisions: Mapping[str, Decision]) -> dict[str, tuple[str, Resumed]]:
    """Return calls of the last turn behind which an agent waits: id -> name of the tool, how to resume the agent."""
    found: dict[str, tuple[str, Resumed]] = {}
    for call, result in _last_turn(messages):
        note = _note_of(result)
        if note is not None and note.kind == "agent":
            inner = pending_in(note.history)
            own = {one.call_id: decisions[given] for one in inner if (given := _nested_id(call, one)) in decisions}
            found[call.id] = (call.name, Resumed(note.history, own))
    return found


def check_decisions(
    pending: Sequence[PendingCall], decisions: Mapping[str, Decision], known_tools: Mapping[str, Tool]
) -> None:
    """Raise `BadDecisions` unless each waiting call has exactly one decision, and the tool to run exists."""
    waits = {one.call_id: one for one in pending}
    if not waits:
        raise BadDecisions("no call of this conversation waits for a decision")
    problems = []
    if unknown := sorted(set(decisions) - set(waits)):
        problems.append(f"unknown calls: {', '.join(unknown)}")
    if missing := [f"{one.call_id} ({one.tool})" for one in pending if one.call_id not in decisions]:
        problems.append(f"no decision for: {', '.join(missing)}; give Allow(), Deny('why') or a result for each")
    problems += [problem for call_id, given in decisions.items() if (problem := _problem_with(call_id, given))]
    for call_id, call in waits.items():
        if call.path:
            outer = known_tools.get(call.path[0])
            if outer is None or outer.agent is None:
                problems.append(
                    f"{call_id} was called by the agent of {call.path[0]!r}, which this agent no longer has: add it"
                )
        elif isinstance(decisions.get(call_id), Allow) and call.tool not in known_tools:
            gone = f"{call_id} is allowed, but this agent has no tool {call.tool!r}: add it, deny or give a result"
            problems.append(gone)
    if problems:
        raise BadDecisions("; ".join(problems))


def _problem_with(call_id: str, decision: Decision | None) -> str:
    if isinstance(decision, Allow | Deny):
        return ""
    if decision is None:
        return f"{call_id}: None is not a decision; give Allow(), Deny('why') or a result"
    try:
        result_of(ToolCall(call_id, ""), decision)
    except RecursionError:
        return f"{call_id}: its result is nested too deeply, or contains itself"
    except Exception as error:  # noqa: BLE001 - the value comes from the caller: reading it may fail in any way
        return f"{call_id}: its result cannot be expressed in JSON: {error}"
    return ""


def _note_of(result: ToolResult) -> _Note | None:
    pending = (result.metadata or {}).get(FAMILY, {}).get(PENDING)
    return None if pending is None else msgspec.json.decode(bytes(pending), type=_Note)


def _last_turn(messages: Sequence[Message]) -> Iterator[tuple[ToolCall, ToolResult]]:
    if len(messages) < 2 or messages[-1].role != "tool":  # noqa: PLR2004 - the calls and their results
        return
    calls = {call.id: call for call in messages[-2].tool_calls}
    for result in messages[-1].tool_results:
        if result.tool_call_id in calls:
            yield calls[result.tool_call_id], result


def _nested_id(call: ToolCall, inner: PendingCall) -> str:
    return f"{call.id}/{inner.call_id}"
