"""Agents as tools of other agents, and tools that hand the conversation to another model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from dragoman.agent.events import AnyAgentEvent, NestedEvent, UsageEvent
from dragoman.agent.tools import (
    HandOff,
    Output,
    Suspended,
    Tool,
    ToolContext,
    call_function,
    check_name,
    schema_decoder,
)
from dragoman.drivers.base import Driver
from dragoman.ir import Message, ToolDefinition

if TYPE_CHECKING:
    from dragoman.agent.agent import Agent

_TASK = {
    "type": "object",
    "properties": {"task": {"type": "string", "description": "what to do, with everything needed to know"}},
    "required": ["task"],
    "additionalProperties": False,
}
_NOTHING = {"type": "object", "properties": {}, "additionalProperties": False}


def agent_tool(
    make: Agent[Any] | Callable[[], Agent[Any]], *, name: str | None = None, description: str, **options: Any
) -> Tool:
    """Return a tool that gives a task to another agent.

    Each call has its own history: `make` is an agent, of which a copy without its history works, or a function that
    returns the agent. Its tokens count for the caller, and its events are `nested` with the path of tools that leads to
    them. Its calls that wait for a decision pause the caller, too: they are in the caller's `pending`, with their path.
    """
    first = None if callable(make) else make
    own = name or (first.name if first is not None else str(getattr(make, "__name__", "agent")))
    check_name(own)

    async def worker_with(history: Sequence[Message]) -> Agent[Any]:
        if first is not None:
            return first.fork(history)
        worker: Agent[Any] = await call_function(make)  # type: ignore[arg-type]
        if history:
            worker.history = history
        return worker

    async def run(arguments: dict[str, Any], context: ToolContext) -> Any:
        resumed = context.resumed
        worker = await worker_with(() if resumed is None else resumed.history)
        started = (
            worker.run_stream(arguments["task"])
            if resumed is None
            else worker.resume_stream(decisions=resumed.decisions)
        )
        async with aclosing(started) as events:
            async for event in events:
                await _pass_on(event, context)
        result = worker.last_result
        if result is not None and result.pending:
            raise Suspended(worker.history)
        return _answer(result, own)

    definition = ToolDefinition(own, description, _TASK)
    return Tool(definition=definition, run=run, decode=schema_decoder(_TASK), agent=worker_with, **options)


async def _pass_on(event: AnyAgentEvent, context: ToolContext) -> None:
    inner, path, calls = (event.event, event.path, event.calls) if isinstance(event, NestedEvent) else (event, (), ())
    if isinstance(inner, UsageEvent) and context.count is not None:
        context.count(inner.model, inner.usage)
    if context.emit is not None:
        call = context.call
        await context.emit(NestedEvent((call.name, *path), inner, (call.id, *calls)))


def _answer(result: Any, name: str) -> Any:
    if result is None:
        return Output("error", f"{name} was cancelled")
    if result.reason in {"answer", "done"}:
        return result.output if result.reason == "answer" else result.text
    return Output("error", f"{name} did not finish ({result.reason}). {result.text}".strip())


def hand_off_tool(driver: Driver | str, *, name: str, description: str, reason: str = "") -> Tool:
    """Return a tool that hands the conversation to another model: from the next request on, `driver` answers."""
    check_name(name)

    async def run(_arguments: dict[str, Any], _context: ToolContext) -> HandOff:
        return HandOff(driver, reason)

    definition = ToolDefinition(name, description, _NOTHING)
    return Tool(definition=definition, run=run, decode=schema_decoder(_NOTHING), sequential=True)
