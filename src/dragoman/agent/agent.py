"""The agent: a driver, tools and a history, and the ways to run them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from types import AsyncGeneratorType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeAlias, TypedDict, Unpack, overload
from weakref import ref

from msgspec import UNSET, Struct, UnsetType, structs

from dragoman.agent.clock import Clock
from dragoman.agent.compaction import Compaction
from dragoman.agent.conversation import Conversation, Record
from dragoman.agent.event_channel import Channel
from dragoman.agent.events import AnyAgentEvent
from dragoman.agent.limits import LimitReached, Limits
from dragoman.agent.loop import Ending, EndReason, Loop
from dragoman.agent.output_cache import OutputCache
from dragoman.agent.outputs import output_tool
from dragoman.agent.pending import (
    BadDecisions,
    Decision,
    PendingCall,
    agents_waiting,
    check_decisions,
    pending_in,
)
from dragoman.agent.permissions import Asker, Hook
from dragoman.agent.run_state import RunState
from dragoman.agent.setup import HistoryProcessor, Instruction, Setup, StopHook, Validator
from dragoman.agent.token_totals import Account
from dragoman.agent.tools import Tool, done, tool
from dragoman.agent.tracing import Tracer
from dragoman.drivers.base import Choice, Driver, Settings
from dragoman.drivers.connect import connect
from dragoman.drivers.sync import SyncDriver, in_background
from dragoman.drivers.typed_output import NoOutput, OutputMode, output_of
from dragoman.errors import InvalidType, InvalidValue, unknown_options
from dragoman.ir import AnyPart, Audio, Document, Image, Message, ProviderTool, Text, Usage

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    OutputT = TypeVar("OutputT", default=str)
else:
    from typing import TypeVar

    OutputT = TypeVar("OutputT")

Opening: TypeAlias = str | Message | AnyPart | Sequence[AnyPart] | None
"""The user's input: a text, parts or a message. None continues from the history as it is."""
AnyTool: TypeAlias = Tool | ProviderTool | Callable[..., Any]


class AgentOptions(TypedDict, total=False):
    """All options of an agent besides its driver and its output type."""

    name: str
    """Names the agent in spans, and as a tool of other agents."""
    tools: Iterable[AnyTool]
    system_prompt: str | None
    instructions: Instruction | Iterable[Instruction]
    """Texts, and functions of dependencies that are called before every request; sent after the system prompt."""
    history_processors: HistoryProcessor | Iterable[HistoryProcessor]
    """Compute what is sent instead of the history; the history itself does not change."""
    max_iterations: int
    limits: Limits | None
    tool_choice: Choice
    require_done: bool
    parallel: bool | int
    tool_timeout: float | None
    tool_retries: int
    """How often the model may repeat a call after `Retry`, unless the tool sets its own limit."""
    permissions: Hook | None
    ask: Asker | None
    output_mode: OutputMode | None
    output_retries: int
    """How often the model may correct an answer that is not of the output type."""
    output_validators: Validator | Iterable[Validator]
    output_cache: OutputCache | None | bool
    compaction: Compaction | None
    on_stop: StopHook | None
    overrides: Mapping[Callable[..., Any], Callable[..., Any]] | None
    deltas: bool
    history: Iterable[Message]
    session: Record | None
    settings: Settings | None
    clock: Clock
    tracer: Tracer | None


class RunResult(Struct, Generic[OutputT], frozen=True, kw_only=True):
    """How a run ended. `str(result)` is the answer as text, `result.output` its value."""

    text: str
    reason: EndReason
    turns: int
    """Answers of the model."""
    steps: int
    """Tool calls."""
    value: OutputT | UnsetType = UNSET
    usage: Usage = Usage()
    """Tokens of this run, including those of agents that it called."""
    cost: Decimal | None = None
    """What these tokens cost; None if a price is not known."""
    limit: LimitReached | None = None
    """The limit that ended the run."""
    pending: tuple[PendingCall, ...] = ()
    """Calls that wait for a decision (see `Agent.resume`)."""

    def __str__(self) -> str:
        return self.text

    @property
    def output(self) -> OutputT:
        """Return the answer as a value of the output type. Raises `NoOutput` if the run ended without one."""
        if isinstance(self.value, UnsetType):
            raise NoOutput(_WHY.get(self.reason, f"the run ended with reason {self.reason!r}"), self.text)
        return self.value

    @property
    def cancelled(self) -> bool:
        return self.reason == "cancelled"


_WHY = {
    "pending": "calls wait for a decision; continue with Agent.resume",
    "limit": "the run reached one of its limits",
    "invalid_output": "the model gave no answer of the output type; see `text` for the last problem",
}


class AlreadyRunning(RuntimeError):
    """Raised for a second run at the same time: an agent has one history, and so one run at a time."""


class Agent(Generic[OutputT]):
    """Lets a model use tools until it has an answer.

    `driver` is a connected driver, or a model name as `connect` and `dragoman run` take it:
    `Agent("anthropic/claude-sonnet-5")`. With `output_type`, `result.output` is a value of that type.

    The history is kept between runs. `driver` may be set at any time, also during a run: the next request goes to the
    new driver.

    >>> from dragoman.drivers import EchoDriver
    >>> Agent(EchoDriver()).run_sync("Good morning").text
    'Good morning'
    """

    @overload
    def __init__(self: Agent[str], driver: Driver | str, **options: Unpack[AgentOptions]) -> None: ...
    @overload
    def __init__(
        self, driver: Driver | str, *, output_type: type[OutputT], **options: Unpack[AgentOptions]
    ) -> None: ...
    @overload
    def __init__(
        self: Agent[Any], driver: Driver | str, *, output_type: Any, **options: Unpack[AgentOptions]
    ) -> None: ...
    def __init__(self, driver: Driver | str, *, output_type: Any = str, **options: Unpack[AgentOptions]) -> None:
        unknown = options.keys() - AgentOptions.__annotations__.keys()
        if unknown:
            raise unknown_options(unknown, AgentOptions.__annotations__)
        self._tools: dict[str, Tool] = {}
        self._hosted: list[ProviderTool] = []
        self.add_tools(options.get("tools", ()))
        if options.get("require_done") and not any(one.ends_run for one in self._tools.values()):
            self.add_tools([done])
        connected: dict[str, Driver] = {}
        if isinstance(driver, str):
            name, driver = driver, connect(driver)
            connected[name] = driver
        _check_driver(driver)
        session = options.get("session")
        self._conversation = Conversation(
            driver, options.get("history", ()) or getattr(session, "messages", ()), session, connected
        )
        self._setup = _setup(options, output_type)
        if self._setup.output_tool is not None and self._setup.output_tool.name in self._tools:
            raise ValueError(f"a tool named {self._setup.output_tool.name!r} would hide the one for typed output")
        self._run: _Run[OutputT] | None = None
        self._last: RunResult[OutputT] | None = None

    # ── state ─────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def driver(self) -> Driver:
        return self._conversation.driver

    @driver.setter
    def driver(self, driver: Driver) -> None:
        self._conversation.driver = driver

    @property
    def history(self) -> tuple[Message, ...]:
        return tuple(self._conversation.messages)

    @history.setter
    def history(self, messages: Iterable[Message]) -> None:
        self._conversation.rewrite(tuple(messages))
        self._conversation.heal()

    @property
    def usage(self) -> Mapping[str, Account]:
        """Tokens used since this agent was created, by driver name."""
        return dict(self._conversation.accounts)

    @property
    def name(self) -> str:
        return self._setup.name

    @property
    def pending(self) -> tuple[PendingCall, ...]:
        """Calls of the conversation that wait for a decision."""
        return pending_in(self._conversation.messages)

    @property
    def last_result(self) -> RunResult[OutputT] | None:
        """How the last run ended; None if it failed or was abandoned."""
        return self._last

    @property
    def tools(self) -> tuple[Tool, ...]:
        return tuple(self._tools.values())

    def add_tools(self, tools: Iterable[AnyTool]) -> None:
        """Add tools: functions, `Tool` objects, and tools that the provider runs itself (`ProviderTool`)."""
        if isinstance(tools, str | Tool) or not isinstance(tools, Iterable):
            raise InvalidType(path="tools", expected="a list", found=type(tools).__name__, hint="put it into a list")
        for place, given in enumerate(tools):
            if isinstance(given, ProviderTool):
                self._hosted.append(given)
                continue
            one = given if isinstance(given, Tool) else tool(_checked_function(given, place))
            if one.name in self._tools:
                raise ValueError(f"two tools are named {one.name!r}")
            self._tools[one.name] = one

    # ── running ───────────────────────────────────────────────────────────────────────────────────────────────

    async def run(self, opening: Opening = None) -> RunResult[OutputT]:
        """Run until the model has answered the user. Raises what the driver raises; the history stays valid."""
        return await self._finish(await self._begin(self._first_message(opening)))

    def run_stream(self, opening: Opening = None, *, partials: bool = False) -> AsyncGenerator[AnyAgentEvent, None]:
        """Run like `run`, but yield the events. Leaving the iteration ends the run.

        With `partials`, values of the output type are sent as `partial_output` while the answer is written.
        """
        return self._events(lambda: self._begin(self._first_message(opening), partials=partials))

    async def resume(self, session: Record | None = None, *, decisions: Mapping[str, Decision]) -> RunResult[OutputT]:
        """Continue after `pending`, possibly in another process: one decision for each waiting call.

        `Allow()` runs the call, `Deny("why")` refuses it, anything else is taken as its result. Raises `BadDecisions`,
        without changing anything, if the decisions do not fit.
        """
        return await self._finish(await self._begin_again(session, decisions))

    async def check(self, decisions: Mapping[str, Decision]) -> None:
        """Raise `BadDecisions` if `resume` would: for unknown or missing decisions, and for tools that are gone."""
        check_decisions(self.pending, decisions, self._tools)
        for name, resumed in agents_waiting(self._conversation.messages, decisions).values():
            make = self._tools[name].agent
            if make is not None:
                worker: Agent[Any] = await make(resumed.history)
                try:
                    await worker.check(resumed.decisions)
                except BadDecisions as error:
                    raise BadDecisions(f"in {name}: {error}") from None

    def resume_stream(
        self, session: Record | None = None, *, decisions: Mapping[str, Decision]
    ) -> AsyncGenerator[AnyAgentEvent, None]:
        return self._events(lambda: self._begin_again(session, decisions))

    def run_sync(self, opening: Opening = None) -> RunResult[OutputT]:
        return in_background(self.run(opening))

    def resume_sync(self, session: Record | None = None, *, decisions: Mapping[str, Decision]) -> RunResult[OutputT]:
        return in_background(self.resume(session, decisions=decisions))

    def run_stream_sync(self, opening: Opening = None, *, partials: bool = False) -> Iterator[AnyAgentEvent]:
        events = self.run_stream(opening, partials=partials)
        try:
            while (event := in_background(_next(events))) is not None:
                yield event
        finally:
            in_background(events.aclose())

    def fork(
        self,
        history: Iterable[Message] = (),
        *,
        instructions: str = "",
        tools: Iterable[Tool] = (),
        tool_choice: Choice = None,
    ) -> Agent[OutputT]:
        """Return an agent with the same driver, tools and setup, and its own history.

        `instructions` and `tools` are added; on a name clash the agent's own tool is kept.
        """
        twin: Agent[OutputT] = object.__new__(type(self))
        twin._tools, twin._hosted = dict(self._tools), list(self._hosted)
        own = self._setup.output_tool
        twin.add_tools(one for one in tools if one.name not in twin._tools and (own is None or one.name != own.name))
        further = (*self._setup.instructions, instructions) if instructions else self._setup.instructions
        choice = self._setup.tool_choice if tool_choice is None else tool_choice
        twin._setup = structs.replace(self._setup, instructions=further, tool_choice=choice)
        twin._conversation = Conversation(self.driver, history, connected=self._conversation.connected)
        twin._run = twin._last = None
        return twin

    def cancel(self) -> None:
        """Cancel the current run. Open steps end, waiting calls get an error result, and there is no event `final`."""
        if self._run is not None:
            self._run.loop.cancel()

    async def compact(self) -> bool:
        """Summarise the conversation now, whatever its size. False if there was nothing to summarise, or it failed."""
        run = await self._begin(None)
        run.channel.close()
        try:
            return await run.loop.compact()
        finally:
            self._run = None

    async def close(self) -> None:
        connected = self._conversation.connected
        for driver in (self.driver, *connected.values()):
            await driver.close()
        connected.clear()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        in_background(self.close())

    def _first_message(self, opening: Opening) -> Message | None:
        if opening is None and not self._conversation.messages:
            raise InvalidValue(path="opening", expected="a text or a message", found="nothing, and there is no history")
        return _message(opening)

    async def _begin(self, opening: Message | None, *, partials: bool = False) -> _Run[OutputT]:
        await self._leave_old_run()
        channel: Channel[AnyAgentEvent] = Channel()
        setup = structs.replace(self._setup, hosted=tuple(self._hosted)) if self._hosted else self._setup
        state = RunState(setup, self._conversation, self._tools, channel, partials=partials)
        self._run = _Run(Loop(state), channel, opening)
        self._last = None
        return self._run

    async def _begin_again(self, session: Record | None, decisions: Mapping[str, Decision]) -> _Run[OutputT]:
        if session is not None and session is not self._conversation.record:
            await self._leave_old_run()
            messages, connected = getattr(session, "messages", ()), self._conversation.connected
            self._conversation = Conversation(self.driver, messages, session, connected)
        await self.check(decisions)
        run = await self._begin(None)
        run.decisions = decisions
        return run

    async def _finish(self, run: _Run[OutputT]) -> RunResult[OutputT]:
        run.channel.close()
        try:
            self._last = run.result_of(await run.loop.run(run.opening, run.decisions))
            return self._last
        finally:
            self._run = None

    def _events(self, begin: Callable[[], Awaitable[_Run[OutputT]]]) -> AsyncGenerator[AnyAgentEvent, None]:
        # A weak reference: a run must not keep its own reader alive after the reader has gone away.
        cell: list[ref[AsyncGenerator[AnyAgentEvent, None]]] = []
        events = self._stream_run(begin, cell)
        cell.append(ref(events))
        return events

    async def _leave_old_run(self) -> None:
        """End a run whose reader went away without closing it, before the next run begins."""
        old = self._run
        if old is None:
            return
        events = old.reader() if old.reader is not None else None
        if old.task is None or (isinstance(events, AsyncGeneratorType) and events.ag_running):
            raise AlreadyRunning("a run of this agent is under way; wait for its end, or cancel it")
        old.channel.close()
        await _cancel_and_wait(old.task)

    async def _stream_run(
        self,
        begin: Callable[[], Awaitable[_Run[OutputT]]],
        cell: Sequence[ref[AsyncGenerator[AnyAgentEvent, None]]],
    ) -> AsyncGenerator[AnyAgentEvent, None]:
        run = await begin()
        task = asyncio.create_task(run.loop.run(run.opening, run.decisions))
        task.add_done_callback(lambda _: run.channel.close())
        run.task, run.reader = task, cell[0]
        try:
            while (event := await run.channel.take()) is not None:
                yield event
            self._last = run.result_of(await task)
        finally:
            run.channel.close()
            await _cancel_and_wait(task)
            if self._run is run:
                self._run = None


class _Run(Generic[OutputT]):
    """A run in progress."""

    def __init__(self, loop: Loop, channel: Channel[AnyAgentEvent], opening: Message | None) -> None:
        self.loop = loop
        self.channel = channel
        self.opening = opening
        self.decisions: Mapping[str, Decision] | None = None
        self.task: asyncio.Task[Ending] | None = None
        self.reader: ref[AsyncGenerator[AnyAgentEvent, None]] | None = None

    def result_of(self, ending: Ending) -> RunResult[OutputT]:
        state = self.loop.state
        value: Any = ending.output
        if state.setup.output is None:
            value = ending.content
        return RunResult(
            text=ending.content,
            reason=ending.reason,
            turns=state.turns,
            steps=state.steps,
            value=value,
            usage=state.spent.usage,
            cost=state.spent.cost,
            limit=ending.limit,
            pending=ending.pending,
        )


def _check_driver(driver: object) -> None:
    if isinstance(driver, SyncDriver) or not hasattr(driver, "query"):
        found = type(driver).__name__
        raise InvalidType(path="driver", expected="provider/model, or a driver of connect()", found=found)


def _checked_function(given: Any, place: int) -> Any:
    if callable(given):
        return given
    found = type(given).__name__
    raise InvalidType(path=f"tools[{place}]", expected="a function, or a tool made of one", found=found)


def _setup(options: AgentOptions, output_type: Any) -> Setup:
    if options.get("max_iterations", 1) < 1:
        raise InvalidValue(
            path="max_iterations", expected="at least 1", found=repr(options.get("max_iterations")), hint=""
        )
    given: dict[str, Any] = {name: value for name, value in options.items() if name in Setup.__struct_fields__}
    for name in ("instructions", "history_processors", "output_validators"):
        one = given.get(name, ())
        given[name] = (one,) if isinstance(one, str) or callable(one) else tuple(one)
    cache = given.get("output_cache", True)
    given["output_cache"] = OutputCache() if cache is True else cache or None
    given["overrides"] = given.get("overrides") or {}
    given["settings"] = given.get("settings") or {}
    given.setdefault("compaction", Compaction())
    if output_type is not str:
        given["output"] = output_of(output_type)
        given["output_tool"] = output_tool(given["output"], given["output_validators"])
    return Setup(**given)


async def _cancel_and_wait(task: asyncio.Task[Ending]) -> None:
    """Cancel the task if it still runs, and wait for its end."""
    if not task.done():
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _next(events: AsyncIterator[AnyAgentEvent]) -> AnyAgentEvent | None:
    return await anext(events, None)


def _message(opening: Opening) -> Message | None:
    if opening is None or isinstance(opening, Message):
        return opening
    if isinstance(opening, str):
        return Message("user", opening)
    given: Sequence[Any] = opening if isinstance(opening, Sequence) else (opening,)
    parts = tuple(Text(part) if isinstance(part, str) else part for part in given)
    for part in parts:
        if not isinstance(part, Text | Image | Document | Audio):
            hint = "earlier messages go into Agent(history=...)" if isinstance(part, Message | Mapping) else ""
            expected = "a text, a message, or texts, images, documents and audio"
            raise InvalidType(path="opening", expected=expected, found=type(part).__name__, hint=hint)
    return Message("user", parts)
