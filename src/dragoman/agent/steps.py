"""The calls of one turn: which may run, which run at the same time, and the result of each.

Every call of a turn has a result in the history; if the call did not run, the result says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from msgspec import UNSET, Struct, UnsetType

from dragoman.agent import result_text as texts
from dragoman.agent.events import StepCompleteEvent, StepStartEvent, ToolCallEvent, ToolResultEvent
from dragoman.agent.execution import Outcome, Ready, execute, prepare
from dragoman.agent.pending import Decision, PendingCall, agents_waiting, placeholder, waiting, waiting_ids
from dragoman.agent.permissions import ASK, Allow, Defer, Deny, PermissionRequest, decide
from dragoman.agent.run_state import RunState
from dragoman.agent.tools import HandOff, Resumed, ToolContext, error_of, result_of
from dragoman.agent.tracing import trace_tool
from dragoman.ir import ToolCall, ToolResult, WithheldCall

_GRACE = 1.0  # seconds for cancelled tools to end


class Step(Struct, frozen=True):
    """A call that has started."""

    call: ToolCall
    started: float


class Turn(Struct, frozen=True, kw_only=True):
    """The outcome of the calls of a turn."""

    done: str | None = None
    """The answer of the run, if a tool ended it."""
    output: object | UnsetType = UNSET
    """The value of the run, if the output tool accepted one."""
    stopped: str | None = None
    """The reason, if a refusal stopped the run."""
    pending: tuple[PendingCall, ...] = ()
    hand_off: HandOff | None = None
    output_problem: str = ""
    """Why the output tool rejected the answer."""


_NOTHING = Turn()


class Steps:
    def __init__(self, state: RunState) -> None:
        self._state = state
        self._setup = state.setup
        self._open: dict[str, Step] = {}
        """Steps that have started and not ended."""
        self._calls: Sequence[ToolCall] = ()
        """Calls of the current turn that the history does not answer yet; `_results` has their results so far."""
        self._results: dict[str, ToolResult] = {}
        self._withheld: Mapping[str, WithheldCall] = {}
        """Calls of the current turn that must not be run (law 7)."""
        self._decided: Mapping[str, Decision] = {}
        """Decisions about calls that had waited."""
        self._resumed: Mapping[str, Resumed] = {}
        """Calls whose agent had waited, and how to resume it."""
        self._failures: dict[str, int] = {}
        """How often in a row a tool has asked for another try."""

    def owe(self, calls: Sequence[ToolCall], withheld: Sequence[WithheldCall] = ()) -> None:
        """Register the calls: each of them needs an answer from here on."""
        self._calls = calls
        self._withheld = {one.call.id: one for one in withheld}

    async def run(self, calls: Sequence[ToolCall]) -> Turn:
        self._state.spent.tool_calls += len(calls)
        turn = _NOTHING
        for batch in self._batches(calls):
            turn = _merge_turns(turn, await self._run_batch(batch))
            if turn.done is not None or turn.stopped is not None:
                reason = "the run was finished" if turn.stopped is None else "the run was stopped"
                self.answer_rest(reason)
                return turn
        self.answer_rest("")
        return turn

    async def resume(self, decisions: Mapping[str, Decision]) -> Turn:
        """Run the calls of the last turn that had waited."""
        messages = self._state.conversation.messages
        waited = waiting_ids(messages)
        self._resumed = {call_id: resumed for call_id, (_, resumed) in agents_waiting(messages, decisions).items()}
        calls, settled = self._state.conversation.reopen(waited)
        self._calls, self._decided = calls, decisions
        self._results = {result.tool_call_id: result for result in settled}
        return await self.run([call for call in calls if call.id in waited])

    def _batches(self, calls: Sequence[ToolCall]) -> list[list[ToolCall]]:
        """Group the calls that may run at the same time. A done tool runs alone, after all calls before it."""
        batches: list[list[ToolCall]] = []
        joins = False
        for call in calls:
            tool = self._state.tool(call.name)
            alone = not self._setup.parallel or (tool is not None and (tool.ends_run or tool.sequential))
            if joins and not alone:
                batches[-1].append(call)
            else:
                batches.append([call])
            joins = not alone
        return batches

    async def _run_batch(self, calls: Sequence[ToolCall]) -> Turn:
        """Start the calls in order and run them together; results are reported in order, however long each takes."""
        running: list[tuple[ToolCall, asyncio.Task[Outcome]]] = []
        slots = asyncio.Semaphore(len(calls) if self._setup.parallel is True else max(1, int(self._setup.parallel)))
        turn = _NOTHING
        try:
            for call in calls:
                await self._start_step(call)
                outcome, stopped = await self._admit(call)
                work = self._execute(outcome, slots) if isinstance(outcome, Ready) else _at_once(outcome)
                running.append((call, asyncio.create_task(work)))
                if stopped is not None:
                    turn = Turn(stopped=stopped)
                    break
            for call, task in running:
                # Not `await task`: a cancellation there would wait for a tool that ignores it.
                await asyncio.wait([task])
                done = task.result()
                await self._end_step(call, done)
                turn = _merge_turns(turn, _turn_of(call, done))
        finally:
            await _cancel_all([task for _, task in running])
        return turn

    async def _admit(self, call: ToolCall) -> tuple[Ready | Outcome, str | None]:
        """Return the call ready to run or the outcome it gets instead, and the text that ends the run, if it stops."""
        if call.id in self._withheld:
            return Outcome(error_of(call, texts.not_run(self._withheld[call.id]))), None
        decided = self._decided.get(call.id)
        if decided is not None and not isinstance(decided, Allow | Deny):
            return Outcome(result_of(call, decided)), None
        ready = prepare(call, self._state.tool(call.name), lambda: [tool.name for tool in self._state.list_tools()])
        if not isinstance(ready, Ready):
            return Outcome(ready), None
        if (self._is_free(ready) and decided is None) or call.id in self._resumed:
            return ready, None
        tries = self._failures.get(call.name, 0)
        if tries > self._most_retries(ready):
            return Outcome(error_of(call, texts.GIVEN_UP.format(name=call.name, count=tries))), None
        decision = decided if isinstance(decided, Allow | Deny) else await self._decision(ready)
        if isinstance(decision, Defer):
            return Outcome(placeholder(call, "approval", decision.reason), pending=True), None
        if not isinstance(decision, Deny):
            return ready, None
        refused = error_of(call, f"{call.name} was not permitted: {decision.reason}; it did not run")
        stop = f"Stopped: {call.name} was not permitted ({decision.reason})."
        return Outcome(refused), stop if decision.stop else None

    def _is_free(self, ready: Ready) -> bool:
        """Return whether the call can run without any check: the usual case, and the output tool."""
        tool, setup = ready.tool, self._setup
        return tool is setup.output_tool or (
            setup.permissions is None and not tool.needs_approval and tool.name not in self._failures
        )

    async def _decision(self, ready: Ready) -> Allow | Deny | Defer:
        hook, asker = self._setup.permissions, self._setup.ask
        request = PermissionRequest(ready.call, ready.tool, ready.call.arguments)
        decision = await decide(request, hook, asker)
        if ready.tool.needs_approval and isinstance(decision, Allow):
            return Defer() if asker is None else await decide(request, lambda _: ASK, asker)
        return decision

    def _most_retries(self, ready: Ready) -> int:
        own = ready.tool.max_retries
        return self._setup.tool_retries if own is None else own

    async def _execute(self, ready: Ready, slots: asyncio.Semaphore) -> Outcome:
        """Run a call and return its outcome, with the result as it enters the context."""
        state = self._state
        context = ToolContext(
            ready.call,
            tuple(state.conversation.messages),
            self._setup.overrides,
            state.emit,
            state.count_nested,
            self._resumed.get(ready.call.id),
        )
        async with slots:
            with trace_tool(self._setup, ready.call) as span:
                outcome = await execute(ready, context, self._setup.tool_timeout, self._most_retries(ready))
                span.record_result(outcome.result)
        ended = self._setup.clock.monotonic()
        self._count_retry(ready, outcome)
        cache = self._setup.output_cache if ready.tool.keeps_output and not outcome.pending else None
        result = outcome.result if cache is None else await cache.for_context(outcome.result)
        self._answer(ready.call, result)  # the call has run, whatever happens from here on
        return Outcome(result, outcome.done, ended, outcome.output, outcome.pending, outcome.retry, outcome.hand_off)

    def _count_retry(self, ready: Ready, outcome: Outcome) -> None:
        name = ready.call.name
        if outcome.retry:
            self._failures[name] = self._failures.get(name, 0) + 1
        elif name in self._failures and not outcome.result.is_error:
            del self._failures[name]

    # ── steps as they are reported ────────────────────────────────────────────────────────────────────────────

    async def _start_step(self, call: ToolCall) -> None:
        state = self._state
        state.steps += 1
        tool = state.tool(call.name)
        title = tool.title if tool is not None and tool.title else call.name
        self._open[call.id] = Step(call, self._setup.clock.monotonic())
        await state.emit(StepStartEvent(call.id, title, state.steps))
        arguments = call.arguments if call.parsed else {"raw": call.arguments_text or ""}
        shown = tool.display_name if tool is not None and tool.display_name else title
        display = shown if shown != call.name else None
        await state.emit(ToolCallEvent(call.name, arguments, call.id, display))

    async def _end_step(self, call: ToolCall, outcome: Outcome) -> None:
        result, ended = outcome.result, outcome.ended
        if call.id not in self._results:
            self._answer(call, result)
        step = self._open.pop(call.id)
        duration = ((self._setup.clock.monotonic() if ended is None else ended) - step.started) * 1000
        if outcome.pending:
            await self._state.emit(StepCompleteEvent(call.id, "pending", duration))
            return
        text, screenshot = texts.result_text(result), texts.screenshot_of(result)
        complete = StepCompleteEvent(call.id, "error" if result.is_error else "completed", duration)
        try:
            await self._state.emit(ToolResultEvent(call.name, text, call.id, result.is_error, screenshot))
        finally:
            # The step has ended even if the run is cancelled at this point.
            await self._state.emit(complete)

    async def close(self) -> None:
        """End the steps that are open when a run is cancelled."""
        for step in [*self._open.values()]:
            finished = self._results.get(step.call.id)
            await self._end_step(step.call, Outcome(finished or error_of(step.call, texts.CANCELLED)))

    def _answer(self, call: ToolCall, result: ToolResult) -> None:
        self._results[call.id] = result
        self._state.conversation.note_result(result)

    def answer_rest(self, reason: str) -> None:
        """Answer all calls of the turn in the history, in their order."""
        if self._calls:
            for call in self._calls:
                if call.id not in self._results:
                    self._answer(call, error_of(call, texts.NOT_RUN.format(reason=reason)))
            self._state.conversation.add_results([self._results[call.id] for call in self._calls])
            self._calls, self._results, self._decided, self._resumed = (), {}, {}, {}


def _turn_of(call: ToolCall, outcome: Outcome) -> Turn:
    if outcome.done is None and not outcome.pending and outcome.hand_off is None and not outcome.result.is_error:
        return _NOTHING
    pending = waiting(call, outcome.result) if outcome.pending else ()
    problem = texts.result_text(outcome.result) if outcome.result.is_error and texts.is_final(call.name) else ""
    done = None if outcome.done is None else outcome.done or texts.NO_ANSWER
    return Turn(done=done, output=outcome.output, pending=pending, hand_off=outcome.hand_off, output_problem=problem)


def _merge_turns(turn: Turn, more: Turn) -> Turn:
    """Merge two turns; if both set a value, the first counts."""
    if more is _NOTHING or turn is _NOTHING:
        return turn if more is _NOTHING else more
    return Turn(
        done=turn.done if turn.done is not None else more.done,
        output=turn.output if turn.output is not UNSET else more.output,
        stopped=turn.stopped if turn.stopped is not None else more.stopped,
        pending=(*turn.pending, *more.pending),
        hand_off=turn.hand_off or more.hand_off,
        output_problem=turn.output_problem or more.output_problem,
    )


async def _at_once(outcome: Outcome) -> Outcome:
    return outcome


async def _cancel_all(tasks: Sequence[asyncio.Task[Outcome]]) -> None:
    """Cancel what still runs after the turn; a tool that ignores the cancellation is left behind."""
    left = [task for task in tasks if not task.done()]
    for task in left:
        task.cancel()
    if left:
        await asyncio.wait(left, timeout=_GRACE)
