"""The loop: ask the model, run the tools it calls, send it the results, until an answer calls no tool.

Whether it continues is decided by the calls in the answer, never by the stop reason. A run ends in one of the ways that
`EndReason` lists, always with a history that is valid in the next request. `model_turns` makes the requests, `steps`
runs the calls.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from msgspec import UNSET, Struct

from dragoman.agent import result_text as texts
from dragoman.agent.conversation import make_hidden_message
from dragoman.agent.events import (
    FinalEvent,
    HandOffEvent,
    HiddenUserMessageEvent,
    LimitEvent,
    PendingEvent,
)
from dragoman.agent.limits import LimitReached, check_price
from dragoman.agent.model_turns import ModelTurns
from dragoman.agent.outputs import validate_output
from dragoman.agent.pending import Decision, PendingCall
from dragoman.agent.run_state import RunState
from dragoman.agent.steps import Steps, Turn
from dragoman.agent.tools import HandOff, Retry
from dragoman.agent.tracing import trace_agent
from dragoman.drivers.base import QueryResult
from dragoman.drivers.connect import connect
from dragoman.drivers.query import read_choice
from dragoman.drivers.typed_output import CALL_NEEDED, CORRECTION, TOOL_NAME, BadOutput
from dragoman.errors import DragomanError
from dragoman.ir import Message, ToolCall, ToolChoice, split_calls, withholds_calls

EndReason: TypeAlias = Literal[
    "answer", "done", "stopped", "blocked", "max_iterations", "cancelled", "limit", "pending", "invalid_output"
]
"""`blocked`: the answer ended in a way that forbids running its calls (see `QueryResult.withheld_calls`).
`limit`: one of `Limits`. `pending`: calls wait for a decision. `invalid_output`: no answer of the output type came."""
_AUTO = ToolChoice("auto")
_REQUIRED = ToolChoice("required")
_ANSWER = ToolChoice("required", (TOOL_NAME,))


class Ending(Struct, frozen=True):
    """How a run ended."""

    content: str
    reason: EndReason
    output: Any = UNSET
    limit: LimitReached | None = None
    pending: tuple[PendingCall, ...] = ()


class Loop:
    """One run."""

    def __init__(self, state: RunState) -> None:
        self.state = state
        self._setup = state.setup
        self._conversation = state.conversation
        self._model = ModelTurns(state)
        self._steps = Steps(state)
        self._corrections = 0
        self._task: asyncio.Task[Any] | None = None
        self._cancelled = False
        self._ended = False

    async def run(self, opening: Message | None, decisions: Mapping[str, Decision] | None = None) -> Ending:
        self._task = asyncio.current_task()
        self._conversation.heal()
        if self._setup.output_cache is not None:
            self._setup.output_cache.notice(self._conversation.messages)
        if opening is not None:
            self._conversation.add(opening)
        try:
            if self._cancelled:
                raise asyncio.CancelledError  # noqa: TRY301 - cancelled before it began
            with trace_agent(self._setup, self._conversation.driver.name) as span:
                ending = await self._until_it_ends(decisions)
                span.record_end(ending.reason, self.state.spent.usage)
            self._ended = True
            await self._report_end(ending)
        except asyncio.CancelledError:
            await self._steps.close()
            if not self._cancelled:
                raise
            if self._task is not None:
                self._task.uncancel()
            ending = Ending("", "cancelled")
        finally:
            self._steps.answer_rest("the run ended before it")
        return ending

    def cancel(self) -> None:
        """Cancel the run; no effect once its last event has been sent."""
        if not self._cancelled and not self._ended:
            self._cancelled = True
            if self._task is not None:
                _cancel(self._task)

    async def compact(self) -> bool:
        self._conversation.heal()
        return await self._model.compactor.compact()

    # ── turns ─────────────────────────────────────────────────────────────────────────────────────────────────

    async def _until_it_ends(self, decisions: Mapping[str, Decision] | None) -> Ending:
        state, limits = self.state, self._setup.limits
        if decisions is not None:
            ending = await self._after_steps(await self._steps.resume(decisions))
            if ending is not None:
                return ending
        choice = read_choice(self._setup.tool_choice)
        while state.turns < self._setup.max_iterations:
            if limits is not None:
                check_price(limits, self._conversation.driver.name)
                reached = state.spent.find_reached(limits)
                if reached is not None:
                    return self._end_by_limit(reached)
            state.turns += 1
            answer = await self._model.next_answer(self._forcing_choice(choice))
            # A choice that forces a call must not force one in every turn.
            choice = _AUTO if choice is not None and choice.mode == "required" else choice
            message = answer.message
            added = self._conversation.add(message) if message.parts else message
            calls = added.tool_calls
            if calls:
                self._steps.owe(calls)  # each of these calls needs an answer from here on
                ending = await self._after_calls(answer, added, calls)
            else:
                ending = await self._after_words(answer, added)
            if ending is not None:
                return ending
        return await self._summarise()

    def _forcing_choice(self, choice: ToolChoice | None) -> ToolChoice | None:
        """Return a choice that forces a call if the answer itself is a call (output mode `tool`)."""
        state = self.state
        if self._setup.output_tool is None or state.output_mode() != "tool" or choice not in {None, _AUTO}:
            return choice
        return _REQUIRED if state.tools else _ANSWER

    async def _after_calls(self, answer: QueryResult, message: Message, calls: tuple[ToolCall, ...]) -> Ending | None:
        """Run the calls that may run. A truncated call becomes an error for the model; a blocked answer ends the run.

        The history keeps withheld calls with an answer for each, so that the next request is valid.
        """
        finish = answer.completion.finish
        withheld = split_calls(message, finish)[1]
        self._steps.owe(calls, withheld)
        blocked = withholds_calls(finish)
        await self._model.report(answer, message, is_last=blocked)
        limited = self._too_many(calls)
        if limited is not None:
            return limited
        ending = await self._after_steps(await self._steps.run(calls))
        if not blocked:
            return ending
        content = message.text or message.refusal or texts.WITHHELD.format(reason=withheld[0].explanation)
        return Ending(content, "blocked")

    async def _after_steps(self, turn: Turn) -> Ending | None:
        """Return how the calls of a turn end the run, or None if they do not."""
        if turn.stopped is not None:
            return Ending(turn.stopped, "stopped")
        if turn.output is not UNSET:
            return Ending(turn.done or "", "answer", turn.output)
        if turn.done is not None:
            return Ending(turn.done, "done")
        if turn.hand_off is not None:
            await self._hand_off(turn.hand_off)
        if turn.pending:
            names = ", ".join(one.tool for one in turn.pending)
            return Ending(texts.WAITING.format(names=names), "pending", pending=turn.pending)
        return self._count_correction(turn.output_problem) if turn.output_problem else None

    async def _after_words(self, answer: QueryResult, message: Message) -> Ending | None:
        """End the run with an answer without calls, unless it is not of the output type or a hook continues the run."""
        content = message.text or message.refusal or texts.NO_ANSWER
        paused = answer.completion.finish_reason == "pause"  # the provider asks for the same request again
        output, follow_up = UNSET, None
        if not paused and self._setup.output is not None:
            output, follow_up = await self._read_output(message)
            if (
                follow_up is not None
                and (ending := self._count_correction(follow_up, refusal=message.refusal)) is not None
            ):
                await self._model.report(answer, message, is_last=True)
                return ending
        if not paused and follow_up is None:
            follow_up = await self._follow_up(content)
        goes_on = paused or follow_up is not None
        await self._model.report(answer, message, is_last=not goes_on)
        if follow_up is not None:
            self._conversation.add(make_hidden_message(follow_up))
            await self.state.emit(HiddenUserMessageEvent(follow_up))
        return None if goes_on else Ending(content, "answer", output)

    async def _follow_up(self, content: str) -> str | None:
        if self._setup.require_done:
            name = next((tool.name for tool in self.state.tools.values() if tool.ends_run), "done")
            return texts.CONTINUE.format(done=name)
        if self._setup.on_stop is None:
            return None
        follow_up = self._setup.on_stop(content)
        return await follow_up if inspect.isawaitable(follow_up) else follow_up

    # ── typed output ──────────────────────────────────────────────────────────────────────────────────────────

    async def _read_output(self, message: Message) -> tuple[Any, str | None]:
        """Return the value of an answer in text, or the correction to send to the model."""
        output = self._setup.output
        if output is None or self.state.output_mode() == "tool":
            return UNSET, CALL_NEEDED
        try:
            return await validate_output(output.read(message.text), self._setup.output_validators), None
        except (BadOutput, Retry) as error:
            return UNSET, CORRECTION.format(problem=error)

    def _count_correction(self, problem: str, *, refusal: str | None = None) -> Ending | None:
        """Count a correction. Returns the ending if no more are left, or the model refused."""
        self._corrections += 1
        if self._corrections <= self._setup.output_retries and not refusal:
            return None
        return Ending(refusal or problem, "invalid_output")

    # ── other endings ─────────────────────────────────────────────────────────────────────────────────────────

    def _too_many(self, calls: tuple[ToolCall, ...]) -> Ending | None:
        limits = self._setup.limits
        reached = None if limits is None else self.state.spent.find_reached_by_calls(limits, len(calls))
        if reached is None:
            return None
        self._steps.answer_rest("the limit of tool calls was reached")
        return self._end_by_limit(reached)

    def _end_by_limit(self, reached: LimitReached) -> Ending:
        last_text = next((one.text for one in reversed(self._conversation.messages) if one.role == "assistant"), "")
        return Ending(last_text, "limit", limit=reached)

    async def _hand_off(self, hand_off: HandOff) -> None:
        before, driver, connected = self._conversation.driver, hand_off.driver, self._conversation.connected
        if isinstance(driver, str):
            if driver not in connected:
                connected[driver] = connect(driver)
            driver = connected[driver]
        self._conversation.driver = driver
        await self.state.emit(HandOffEvent(before.name, driver.name, hand_off.reason))

    async def _summarise(self) -> Ending:
        """Make one request without tools, as no turns are left. Its question is not kept in the history."""
        mark = texts.MAX_ITERATIONS.format(count=self.state.turns)
        try:
            text = await self._model.summarise(Message("user", texts.SUMMARISE)) or texts.SUMMARY_FAILED
        except DragomanError:
            text = texts.SUMMARY_FAILED
        content = f"{mark}\n\n{text}"
        self._conversation.add(Message("assistant", content))
        return Ending(content, "max_iterations")

    async def _report_end(self, ending: Ending) -> None:
        if ending.limit is not None:
            reached = ending.limit
            await self.state.emit(LimitEvent(reached.limit, reached.allowed, reached.used, ending.content))
        elif ending.reason == "pending":
            await self.state.emit(PendingEvent(ending.pending))
        else:
            await self.state.emit(FinalEvent(ending.content))


def _cancel(task: asyncio.Task[Any]) -> None:
    """Cancel the task, also from another thread, where the user interface may run."""
    loop = task.get_loop()
    try:
        running = asyncio.get_running_loop()
    except RuntimeError:
        running = None
    if running is loop:
        task.cancel()
    else:
        loop.call_soon_threadsafe(task.cancel)
