"""Runs one call, from the arguments the model wrote to the result it gets. Every failure becomes a result."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable
from typing import Any

from msgspec import UNSET, Struct

from dragoman.agent.outputs import Accepted
from dragoman.agent.pending import placeholder
from dragoman.agent.result_text import result_text
from dragoman.agent.tools import (
    BadArguments,
    Deferred,
    Done,
    HandOff,
    Retry,
    Suspended,
    Tool,
    ToolContext,
    error_of,
    result_of,
)
from dragoman.ir import ToolCall, ToolResult


class Outcome(Struct, frozen=True):
    result: ToolResult
    done: str | None = None
    """The answer of the run, if the tool ended it."""
    ended: float | None = None
    """When the call ended, by the monotonic clock."""
    output: Any = UNSET
    """The value of the run, if the output tool accepted one."""
    pending: bool = False
    """The result is a placeholder: the call waits, or calls of the agent behind it do."""
    retry: bool = False
    """The tool wants the model to try again."""
    hand_off: HandOff | None = None
    failed: bool = False
    """The call itself failed or timed out, so another attempt may succeed."""


class Ready(Struct, frozen=True):
    """A call that may run: the tool is known and the arguments are valid."""

    call: ToolCall
    tool: Tool
    arguments: dict[str, Any]


def prepare(call: ToolCall, tool: Tool | None, known: Callable[[], Iterable[str]]) -> Ready | ToolResult:
    """Return the call ready to run, or the error that says why it cannot run."""
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


async def execute(ready: Ready, context: ToolContext, timeout: float | None, retries: int = 0) -> Outcome:  # noqa: ASYNC109 - per tool
    """Return the outcome of a call. An idempotent tool is retried after an error or a time-out."""
    outcome = await _attempt(ready, context, timeout)
    while outcome.failed and ready.tool.idempotent and retries:
        retries -= 1
        outcome = await _attempt(ready, context, timeout)
    return outcome


async def _attempt(ready: Ready, context: ToolContext, timeout: float | None) -> Outcome:  # noqa: ASYNC109
    call, tool = ready.call, ready.tool
    seconds = tool.timeout if tool.timeout is not None else timeout
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            value = await tool.run(ready.arguments, context)
    except Done as signal:
        return Outcome(result_of(call, signal.message), signal.message)
    except Retry as signal:
        return Outcome(error_of(call, signal.message), retry=True)
    except Deferred as signal:
        return Outcome(placeholder(call, "deferred", signal.reason), pending=True)
    except Suspended as signal:
        return Outcome(placeholder(call, "agent", history=signal.history), pending=True)
    except TimeoutError as error:
        problem = _describe(error)
        if limit.expired():
            problem = f"TimeoutError: {call.name} did not finish within {seconds:g} seconds"
        return Outcome(error_of(call, problem), failed=True)
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        return Outcome(error_of(call, _describe(error)))  # the tool cancelled itself
    except (Exception, SystemExit, KeyboardInterrupt) as error:
        # Ctrl-C arrives in the main thread alone. In another one a tool raised it, and it would end the loop there.
        if isinstance(error, KeyboardInterrupt) and threading.current_thread() is threading.main_thread():
            raise
        return Outcome(
            error_of(call, _describe(error)), failed=True
        )  # a tool may fail in any way; the program continues
    return _outcome_of(ready, value)


def _outcome_of(ready: Ready, value: Any) -> Outcome:
    call = ready.call
    if isinstance(value, Accepted):
        return Outcome(result_of(call, "accepted"), _value_as_text(call, value.value), output=value.value)
    if isinstance(value, HandOff):
        name = value.driver if isinstance(value.driver, str) else value.driver.name
        return Outcome(result_of(call, f"{name} continues from here"), hand_off=value)
    try:
        result = result_of(call, value)
    except RecursionError:
        problem = "it is nested too deeply, or contains itself"
    except Exception as error:  # noqa: BLE001 - the value comes from the tool: reading it may fail in any way, too
        problem = str(error)
    else:
        # A done tool that returns normally ends the run, too; its return value is the answer.
        done = value if ready.tool.ends_run and isinstance(value, str) else "" if ready.tool.ends_run else None
        return Outcome(result, done)
    return Outcome(error_of(call, f"{call.name} returned a value that JSON cannot express: {problem}"))


def _value_as_text(call: ToolCall, value: Any) -> str:
    """Return the value of the run as text. A validator may have returned a value that JSON cannot express."""
    try:
        return result_text(result_of(call, value))
    except (TypeError, ValueError, NotImplementedError, RecursionError):
        return repr(value)


def _describe(error: BaseException) -> str:
    """Return the type and message of an error; no traceback reaches the model."""
    try:
        message = str(error)
    except Exception:  # noqa: BLE001 - the tool's own exception may fail here, too
        message = ""
    return f"{type(error).__name__}: {message}" if message else type(error).__name__
