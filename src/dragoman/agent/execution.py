"""One call, from the arguments the model wrote to the result it gets. What goes wrong on the way is a result, too."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from msgspec import Struct

from dragoman.agent.tools import BadArguments, Done, Tool, ToolContext, error_of, result_of
from dragoman.ir import ToolCall, ToolResult


class Outcome(Struct, frozen=True):
    result: ToolResult
    done: str | None = None
    """The answer of the run, where the tool says that it is finished."""
    ended: float | None = None
    """When, by the monotonic clock."""


class Ready(Struct, frozen=True):
    """A call that may run: the tool is known and the arguments are valid."""

    call: ToolCall
    tool: Tool
    arguments: dict[str, Any]


def prepare(call: ToolCall, tool: Tool | None, known: Callable[[], Iterable[str]]) -> Ready | ToolResult:
    """The call made ready, or the error that says why it cannot run."""
    if tool is None:
        names = ", ".join(known())
        return error_of(call, f"there is no tool {call.name!r}; available: {names or 'none'}")
    if not call.parsed:
        wrote = (call.arguments_text or "")[:200]
        problem = f"expected a JSON object, got {wrote!r}"
        return error_of(call, f"invalid arguments for {call.name}: {problem}; it did not run")
    try:
        return Ready(call, tool, tool.decode(call.arguments))
    except BadArguments as error:
        return error_of(call, f"invalid arguments for {call.name}: {error}; it did not run")
    except RecursionError:
        return error_of(call, f"invalid arguments for {call.name}: they are nested too deeply; it did not run")


async def execute(ready: Ready, context: ToolContext, timeout: float | None) -> Outcome:  # noqa: ASYNC109 - per tool
    call, tool = ready.call, ready.tool
    seconds = tool.timeout if tool.timeout is not None else timeout
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            value = await tool.run(ready.arguments, context)
    except Done as signal:
        return Outcome(result_of(call, signal.message), signal.message)
    except TimeoutError as error:
        if limit.expired():
            return Outcome(error_of(call, f"TimeoutError: {call.name} did not finish within {seconds:g} seconds"))
        return Outcome(error_of(call, _told(error)))
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        return Outcome(error_of(call, _told(error)))  # the tool's own doing
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a tool may fail in any way; it never ends the program
        return Outcome(error_of(call, _told(error)))
    return _returned(ready, value)


def _returned(ready: Ready, value: Any) -> Outcome:
    call = ready.call
    try:
        result = result_of(call, value)
    except RecursionError:
        problem = "it is nested too deeply, or contains itself"
    except Exception as error:  # noqa: BLE001 - the value is the tool's own: reading it may fail in any way, too
        problem = str(error)
    else:
        # A done tool that simply returns is finished, too; what it returns is the answer.
        done = value if ready.tool.ends_run and isinstance(value, str) else "" if ready.tool.ends_run else None
        return Outcome(result, done)
    return Outcome(error_of(call, f"{call.name} returned what cannot be said in JSON: {problem}"))


def _told(error: BaseException) -> str:
    """Type and message; no traceback reaches the model."""
    try:
        message = str(error)
    except Exception:  # noqa: BLE001 - a message of the tool's own making may fail, too
        message = ""
    return f"{type(error).__name__}: {message}" if message else type(error).__name__
