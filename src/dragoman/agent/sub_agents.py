"""Agents as tools of other agents, and tools that hand the conversation to another model."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dragoman.agent.events import AnyAgentEvent, NestedEvent, UsageEvent
from dragoman.agent.tools import HandOff, Output, Tool, ToolContext, called, check_name, checking
from dragoman.drivers.base import Driver
from dragoman.ir import ToolDefinition

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
    """A tool that gives a task to another agent.

    Each call has a history of its own: given an agent, a copy without its history works; given a function, what it
    makes. Its tokens count for the caller, and its events come as `nested` with the path of tools that leads to them.
    """
    first = None if callable(make) else make
    own = name or (first.name if first is not None else str(getattr(make, "__name__", "agent")))
    check_name(own)

    async def run(arguments: dict[str, Any], context: ToolContext) -> Any:
        worker = first.fork() if first is not None else await called(make)  # type: ignore[arg-type]
        async for event in worker.run_stream(arguments["task"]):
            await _pass_on(event, own, context)
        return _answer(worker.last_result, own)

    definition = ToolDefinition(own, description, _TASK)
    return Tool(definition=definition, run=run, decode=checking(_TASK), **options)


async def _pass_on(event: AnyAgentEvent, name: str, context: ToolContext) -> None:
    inner, path = (event.event, event.path) if isinstance(event, NestedEvent) else (event, ())
    if isinstance(inner, UsageEvent) and context.count is not None:
        context.count(inner.model, inner.usage)
    if context.emit is not None:
        await context.emit(NestedEvent((name, *path), inner))


def _answer(result: Any, name: str) -> Any:
    if result is None:
        return Output("error", f"{name} was cancelled")
    if result.reason in {"answer", "done"}:
        return result.output if result.reason == "answer" else result.text
    waiting = ", ".join(one.tool for one in result.pending)
    why = f"it needs decisions about {waiting}, which only a run of its own can wait for" if waiting else result.reason
    return Output("error", f"{name} did not finish ({why}). {result.text}".strip())


def hand_off_tool(driver: Driver | str, *, name: str, description: str, reason: str = "") -> Tool:
    """A tool by which a model hands the conversation to another one: from the next request on, `driver` answers."""
    check_name(name)

    async def run(_arguments: dict[str, Any], _context: ToolContext) -> HandOff:
        return HandOff(driver, reason)

    definition = ToolDefinition(name, description, _NOTHING)
    return Tool(definition=definition, run=run, decode=checking(_NOTHING), sequential=True)
