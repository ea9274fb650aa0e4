"""The loop: ask the model, run what it calls, tell it the results, until it calls nothing any more.

Whether it goes on is decided by the calls in the answer, never by the stop reason. Every call in the history is
answered whatever happens: what did not run says so.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from dragoman.agent import result_text
from dragoman.agent.clock import Clock
from dragoman.agent.compaction import Compaction, Compactor
from dragoman.agent.conversation import Conversation, hidden_message
from dragoman.agent.event_channel import Channel
from dragoman.agent.events import (
    AnyAgentEvent,
    FinalEvent,
    HiddenUserMessageEvent,
    ReasoningDeltaEvent,
    ReasoningEvent,
    RetryEvent,
    StepCompleteEvent,
    StepStartEvent,
    TextDeltaEvent,
    TextEvent,
    ToolCallEvent,
    ToolResultEvent,
    usage_event,
)
from dragoman.agent.execution import Outcome, Ready, execute, prepare
from dragoman.agent.output_cache import OutputCache
from dragoman.agent.permissions import Asker, Deny, Hook, PermissionRequest, decide
from dragoman.agent.tools import Tool, ToolContext, error_of
from dragoman.drivers.base import Choice, QueryResult, Settings, StreamResult
from dragoman.drivers.query import read_choice
from dragoman.drivers.retries import RetryNotice, listening
from dragoman.errors import DragomanError
from dragoman.ir import (
    Message,
    PartDelta,
    PartStart,
    Reasoning,
    Text,
    ToolCall,
    ToolChoice,
    ToolResult,
    WithheldCall,
    split_calls,
    withholds_calls,
)

StopHook: TypeAlias = Callable[[str], str | None | Awaitable[str | None]]
"""Asked with the answer that would be the last one; a text goes on, said to the model in the user's name."""
EndReason: TypeAlias = Literal["answer", "done", "stopped", "blocked", "max_iterations", "cancelled"]
"""`blocked`: the answer ended in a way that forbids running its calls (see `QueryResult.withheld_calls`)."""
_GRACE = 1.0  # seconds that cancelled tools have to end


class Setup(Struct, frozen=True, kw_only=True):
    """How an agent works; the same for all its runs."""

    system_prompt: str | None = None
    max_iterations: int = 200
    tool_choice: Choice = None
    require_done: bool = False
    parallel: bool | int = True
    tool_timeout: float | None = None
    permissions: Hook | None = None
    ask: Asker | None = None
    output_cache: OutputCache | None = None
    compaction: Compaction | None = None
    on_stop: StopHook | None = None
    overrides: Mapping[Callable[..., Any], Callable[..., Any]] = {}
    deltas: bool = False
    settings: Settings = {}
    clock: Clock = Clock()


class Ending(Struct, frozen=True):
    """How a run ended."""

    content: str
    reason: EndReason


class Step(Struct, frozen=True):
    """A call that was taken up."""

    call: ToolCall
    started: float


class Loop:
    """One run."""

    def __init__(
        self, setup: Setup, conversation: Conversation, tools: Mapping[str, Tool], channel: Channel[AnyAgentEvent]
    ) -> None:
        self.turns = 0
        self.steps = 0
        self._setup = setup
        self._conversation = conversation
        self._tools = tools
        self._channel = channel
        self._compactor = Compactor(setup.compaction, conversation, self._ask, self._emit)
        self._open: dict[str, Step] = {}
        """Steps that have begun and not ended."""
        self._calls: Sequence[ToolCall] = ()
        """Calls of the current turn that the history does not answer yet, and their results so far."""
        self._results: dict[str, ToolResult] = {}
        self._withheld: dict[str, WithheldCall] = {}
        """Calls of the current turn that must not be run (law 7)."""
        self._asked = conversation.driver.name
        """Whom the last question went to: a reader may switch the model at any event."""
        self._task: asyncio.Task[Any] | None = None
        self._cancelled = False
        self._ended = False

    # ── the run ───────────────────────────────────────────────────────────────────────────────────────────────

    async def run(self, opening: Message | None) -> Ending:
        self._task = asyncio.current_task()
        self._conversation.heal()
        if self._setup.output_cache is not None:
            self._setup.output_cache.notice(self._conversation.messages)
        if opening is not None:
            self._conversation.add(opening)
        try:
            if self._cancelled:
                raise asyncio.CancelledError  # noqa: TRY301 - cancelled before it began
            ending = await self._until_it_ends()
            self._ended = True
            await self._emit(FinalEvent(ending.content))
        except asyncio.CancelledError:
            await self._close_steps()
            if not self._cancelled:
                raise
            if self._task is not None:
                self._task.uncancel()
            ending = Ending("", "cancelled")
        finally:
            self._answer_calls("the run ended before it")
        return ending

    def cancel(self) -> None:
        """End here, in order. A run whose last word is said has ended already."""
        if not self._cancelled and not self._ended:
            self._cancelled = True
            if self._task is not None:
                _cancel(self._task)

    async def compact(self) -> bool:
        self._conversation.heal()
        return await self._compactor.compact()

    async def _until_it_ends(self) -> Ending:
        choice = read_choice(self._setup.tool_choice)
        while self.turns < self._setup.max_iterations:
            self.turns += 1
            await self._make_room()
            answer = await self._ask(self._conversation.messages, self._offered(), choice, live=self._setup.deltas)
            # A choice that forces a call would force one for ever.
            choice = ToolChoice("auto") if choice is not None and choice.mode == "required" else choice
            message = answer.message
            kept = self._conversation.add(message) if message.parts else message
            self._calls = kept.tool_calls  # from here on owed an answer each
            if kept.tool_calls:
                ending = await self._after_calls(answer, kept)
            else:
                ending = await self._after_words(answer, kept)
            if ending is not None:
                return ending
        return await self._summarise()

    async def _after_calls(self, answer: QueryResult, message: Message) -> Ending | None:
        """Run the calls that may be run. A cut call is an error that the model reads; a blocked answer is the end.

        The history keeps withheld calls and answers them, so that the next request is valid.
        """
        finish = answer.completion.finish
        withheld = split_calls(message, finish)[1]
        self._withheld = {one.call.id: one for one in withheld}
        blocked = withholds_calls(finish)
        await self._tell(answer, message, is_last=blocked)
        ending = await self._run_calls(message.tool_calls)
        if not blocked:
            return ending
        content = message.text or message.refusal or result_text.WITHHELD.format(reason=withheld[0].explanation)
        return Ending(content, "blocked")

    async def _after_words(self, answer: QueryResult, message: Message) -> Ending | None:
        """An answer without calls ends the run, unless the caller asked to continue."""
        content = message.text or message.refusal or result_text.NO_ANSWER
        paused = answer.completion.finish_reason == "pause"  # the provider asks for the same once more
        wish = None if paused else await self._wish(content)
        goes_on = paused or wish is not None
        await self._tell(answer, message, is_last=not goes_on)
        if wish is not None:
            self._conversation.add(hidden_message(wish))
            await self._emit(HiddenUserMessageEvent(wish))
        return None if goes_on else Ending(content, "answer")

    async def _wish(self, content: str) -> str | None:
        if self._setup.require_done:
            name = next((tool.name for tool in self._tools.values() if tool.ends_run), "done")
            return result_text.CONTINUE.format(done=name)
        if self._setup.on_stop is None:
            return None
        wish = self._setup.on_stop(content)
        return await wish if inspect.isawaitable(wish) else wish

    async def _summarise(self) -> Ending:
        """No turns are left: one call without tools. Its question is not kept, so that no later turn obeys it."""
        mark = result_text.MAX_ITERATIONS.format(count=self.turns)
        question = Message("user", result_text.SUMMARISE)
        try:
            answer = await self._ask([*self._conversation.messages, question])
            await self._count(answer)
            text = answer.message.text or result_text.SUMMARY_FAILED
        except DragomanError:
            text = result_text.SUMMARY_FAILED
        content = f"{mark}\n\n{text}"
        self._conversation.add(Message("assistant", content))
        return Ending(content, "max_iterations")

    # ── the model ─────────────────────────────────────────────────────────────────────────────────────────────

    def _offered(self) -> tuple[Tool, ...]:
        cache = self._setup.output_cache
        extra = () if cache is None else cache.tools
        return (*self._tools.values(), *(tool for tool in extra if tool.name not in self._tools))

    def _tool(self, name: str) -> Tool | None:
        return self._tools.get(name) or next((tool for tool in self._offered() if tool.name == name), None)

    async def _make_room(self) -> None:
        cache = self._setup.output_cache
        if cache is not None:
            thinner = cache.within_budget(self._conversation.messages)
            if thinner is not None:
                self._conversation.rewrite(thinner)
        await self._compactor.compact_if_full()

    async def _ask(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        choice: ToolChoice | None = None,
        *,
        live: bool = False,
    ) -> QueryResult:
        driver = self._conversation.driver
        self._asked = driver.name
        settings: Settings = {**self._setup.settings}
        if self._setup.system_prompt:
            settings["system"] = self._setup.system_prompt
        with listening(self._on_retry):
            if not live:
                return await driver.query(messages=messages, tools=tools, tool_choice=choice, **settings)
            stream = driver.stream_query(messages=messages, tools=tools, tool_choice=choice, **settings)
            return await self._streamed(stream)

    async def _streamed(self, stream: StreamResult) -> QueryResult:
        kinds: dict[int, type[TextDeltaEvent | ReasoningDeltaEvent]] = {}
        async with stream:
            async for event in stream.events():
                if isinstance(event, PartStart) and isinstance(event.part, Text | Reasoning) and not event.candidate:
                    kinds[event.index] = TextDeltaEvent if isinstance(event.part, Text) else ReasoningDeltaEvent
                    if event.part.text:
                        await self._emit(kinds[event.index](event.part.text))
                elif isinstance(event, PartDelta) and event.text and event.index in kinds:
                    await self._emit(kinds[event.index](event.text))
            return await stream.result

    def _on_retry(self, notice: RetryNotice) -> None:
        event = RetryEvent(notice.provider, notice.attempt, notice.delay, str(notice.error))
        self._conversation.tell(event)
        self._channel.push(event)

    async def _tell(self, answer: QueryResult, message: Message, *, is_last: bool) -> None:
        """What was thought and said, in order. The last words are not told here: they are `final`."""
        for part in message.parts:
            if isinstance(part, Reasoning) and part.text:
                await self._emit(ReasoningEvent(part.text, self._setup.clock.milliseconds()))
            elif isinstance(part, Text) and part.text and not is_last:
                await self._emit(TextEvent(part.text, self._setup.clock.milliseconds()))
        await self._count(answer)

    async def _count(self, answer: QueryResult) -> None:
        if answer.usage is not None:
            self._conversation.count(self._asked, answer.usage)
            await self._emit(usage_event(self._asked, answer.usage))

    # ── the calls ─────────────────────────────────────────────────────────────────────────────────────────────

    async def _run_calls(self, calls: Sequence[ToolCall]) -> Ending | None:
        for batch in self._batches(calls):
            ending = await self._run_batch(batch)
            if ending is not None:
                reason = "the run was finished" if ending.reason == "done" else "the run was stopped"
                self._answer_calls(reason)
                return ending
        self._answer_calls("")
        return None

    def _batches(self, calls: Sequence[ToolCall]) -> list[list[ToolCall]]:
        """What may run at the same time. A done tool runs alone, after all that was called before it."""
        batches: list[list[ToolCall]] = []
        joins = False
        for call in calls:
            tool = self._tool(call.name)
            alone = not self._setup.parallel or (tool is not None and tool.ends_run)
            if joins and not alone:
                batches[-1].append(call)
            else:
                batches.append([call])
            joins = not alone
        return batches

    async def _run_batch(self, calls: Sequence[ToolCall]) -> Ending | None:
        """Calls are taken up in order and run together; results come in order, however long each takes."""
        running: list[tuple[ToolCall, asyncio.Task[Outcome]]] = []
        slots = asyncio.Semaphore(len(calls) if self._setup.parallel is True else max(1, int(self._setup.parallel)))
        stopped: Ending | None = None
        finished: Ending | None = None
        try:
            for call in calls:
                await self._start_step(call)
                outcome, stopped = await self._admit(call)
                work = self._executed(outcome, slots) if isinstance(outcome, Ready) else _at_once(outcome)
                running.append((call, asyncio.create_task(work)))
                if stopped is not None:
                    break
            for call, task in running:
                # Not `await task`: being cancelled there would wait for a tool that will not be.
                await asyncio.wait([task])
                done = task.result()
                await self._end_step(call, done.result, done.ended)
                if done.done is not None and finished is None:
                    finished = Ending(done.done or result_text.NO_ANSWER, "done")
        finally:
            await _ended([task for _, task in running])
        return stopped or finished

    async def _admit(self, call: ToolCall) -> tuple[Ready | ToolResult, Ending | None]:
        if call.id in self._withheld:
            return error_of(call, result_text.not_run(self._withheld[call.id])), None
        ready = prepare(call, self._tool(call.name), lambda: [tool.name for tool in self._offered()])
        if not isinstance(ready, Ready):
            return ready, None
        request = PermissionRequest(call, ready.tool, call.arguments)
        decision = await decide(request, self._setup.permissions, self._setup.ask)
        if not isinstance(decision, Deny):
            return ready, None
        refused = error_of(call, f"{call.name} was not permitted: {decision.reason}; it did not run")
        stop = Ending(f"Stopped: {call.name} was not permitted ({decision.reason}).", "stopped")
        return refused, stop if decision.stop else None

    async def _executed(self, ready: Ready, slots: asyncio.Semaphore) -> Outcome:
        context = ToolContext(ready.call, tuple(self._conversation.messages), self._setup.overrides)
        async with slots:
            outcome = await execute(ready, context, self._setup.tool_timeout)
        ended = self._setup.clock.monotonic()
        cache = self._setup.output_cache if ready.tool.keeps_output else None
        result = outcome.result if cache is None else await cache.kept(outcome.result)
        self._answer(ready.call, result)  # whatever happens now, this was done
        return Outcome(result, outcome.done, ended)

    async def _start_step(self, call: ToolCall) -> None:
        self.steps += 1
        tool = self._tool(call.name)
        title = tool.title if tool is not None and tool.title else call.name
        self._open[call.id] = Step(call, self._setup.clock.monotonic())
        await self._emit(StepStartEvent(call.id, title, self.steps))
        arguments = call.arguments if call.parsed else {"raw": call.arguments_text or ""}
        shown = tool.display_name if tool is not None and tool.display_name else title
        display = shown if shown != call.name else None
        await self._emit(ToolCallEvent(call.name, arguments, call.id, display))

    async def _end_step(self, call: ToolCall, result: ToolResult, ended: float | None = None) -> None:
        if call.id not in self._results:
            self._answer(call, result)
        step = self._open.pop(call.id)
        duration = ((self._setup.clock.monotonic() if ended is None else ended) - step.started) * 1000
        text, screenshot = result_text.result_text(result), result_text.screenshot_of(result)
        complete = StepCompleteEvent(call.id, "error" if result.is_error else "completed", duration)
        try:
            await self._emit(ToolResultEvent(call.name, text, call.id, result.is_error, screenshot))
        finally:
            # Cancelled at this very point, the step has ended all the same.
            await self._emit(complete)

    async def _close_steps(self) -> None:
        for step in [*self._open.values()]:
            finished = self._results.get(step.call.id)
            await self._end_step(step.call, finished or error_of(step.call, result_text.CANCELLED))

    def _answer(self, call: ToolCall, result: ToolResult) -> None:
        self._results[call.id] = result
        self._conversation.note_result(result)

    def _answer_calls(self, reason: str) -> None:
        """All calls of the turn answered in the history, in their order."""
        if self._calls:
            for call in self._calls:
                if call.id not in self._results:
                    self._answer(call, error_of(call, result_text.NOT_RUN.format(reason=reason)))
            self._conversation.add_results([self._results[call.id] for call in self._calls])
            self._calls, self._results = (), {}

    async def _emit(self, event: AnyAgentEvent) -> None:
        self._conversation.tell(event)
        await self._channel.send(event)


def _cancel(task: asyncio.Task[Any]) -> None:
    """Thread-safe: a user interface may call it from its own thread."""
    loop = task.get_loop()
    try:
        here = asyncio.get_running_loop()
    except RuntimeError:
        here = None
    if here is loop:
        task.cancel()
    else:
        loop.call_soon_threadsafe(task.cancel)


async def _at_once(result: ToolResult) -> Outcome:
    return Outcome(result)


async def _ended(tasks: Sequence[asyncio.Task[Outcome]]) -> None:
    """Nothing runs on after its turn; a tool that does not let itself be cancelled is left behind."""
    left = [task for task in tasks if not task.done()]
    for task in left:
        task.cancel()
    if left:
        await asyncio.wait(left, timeout=_GRACE)
