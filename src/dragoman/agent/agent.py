"""The agent: a driver, tools and a history, and the ways to run them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from types import AsyncGeneratorType
from typing import Any, Self, TypeAlias, TypeVar
from weakref import ref

from msgspec import Struct

from dragoman.agent.clock import Clock
from dragoman.agent.compaction import Compaction
from dragoman.agent.conversation import Conversation, Record
from dragoman.agent.event_channel import Channel
from dragoman.agent.events import AnyAgentEvent
from dragoman.agent.loop import Ending, EndReason, Loop, Setup, StopHook
from dragoman.agent.output_cache import OutputCache
from dragoman.agent.permissions import Asker, Hook
from dragoman.agent.token_totals import Account
from dragoman.agent.tools import Tool, done, tool
from dragoman.drivers.base import Choice, Driver, Settings
from dragoman.drivers.connect import connect
from dragoman.drivers.sync import in_background
from dragoman.ir import AnyPart, Audio, Document, Image, Message, Text

T = TypeVar("T")
Opening: TypeAlias = str | Message | AnyPart | Sequence[AnyPart] | None
"""What the user says: a text, parts, a message; None goes on with the history as it is."""


class RunResult(Struct, frozen=True, kw_only=True):
    """How a run ended. `str(result)` is the answer."""

    text: str
    reason: EndReason
    turns: int
    """Calls of the model."""
    steps: int
    """Calls of tools."""

    def __str__(self) -> str:
        return self.text

    @property
    def cancelled(self) -> bool:
        return self.reason == "cancelled"


class AlreadyRunning(RuntimeError):
    """An agent has one history, and so one run at a time."""


class Agent:
    """Lets a model use tools until it has an answer.

    `driver` is one that was connected, or the name of a model as `connect` and `dragoman run` take it:
    `Agent("anthropic/claude-sonnet-5")`.

    The history is kept between runs; `driver` may be set at any time, also while a run is under way: the next call of
    the model goes there.

    >>> from dragoman.drivers import EchoDriver
    >>> Agent(EchoDriver()).run_sync("Good morning").text
    'Good morning'
    """

    def __init__(  # noqa: PLR0913 - the whole front door in one place, all by name
        self,
        driver: Driver | str,
        *,
        tools: Iterable[Tool | Callable[..., Any]] = (),
        system_prompt: str | None = None,
        max_iterations: int = 200,
        tool_choice: Choice = None,
        require_done: bool = False,
        parallel: bool | int = True,
        tool_timeout: float | None = None,
        permissions: Hook | None = None,
        ask: Asker | None = None,
        output_cache: OutputCache | None | bool = True,
        compaction: Compaction | None = Compaction(),  # noqa: B008 - a frozen value
        on_stop: StopHook | None = None,
        overrides: Mapping[Callable[..., Any], Callable[..., Any]] | None = None,
        deltas: bool = False,
        history: Iterable[Message] = (),
        session: Record | None = None,
        settings: Settings | None = None,
        clock: Clock = Clock(),  # noqa: B008 - a frozen value
    ) -> None:
        if max_iterations < 1:
            raise ValueError(f"max_iterations must be at least 1, got {max_iterations}")
        self._tools: dict[str, Tool] = {}
        self.add_tools(tools)
        if require_done and not any(one.ends_run for one in self._tools.values()):
            self.add_tools([done])
        if isinstance(driver, str):
            driver = connect(driver)
        self._conversation = Conversation(driver, history or getattr(session, "messages", ()), session)
        self._setup = Setup(
            system_prompt=system_prompt,
            max_iterations=max_iterations,
            tool_choice=tool_choice,
            require_done=require_done,
            parallel=parallel,
            tool_timeout=tool_timeout,
            permissions=permissions,
            ask=ask,
            output_cache=OutputCache() if output_cache is True else output_cache or None,
            compaction=compaction,
            on_stop=on_stop,
            overrides=overrides or {},
            deltas=deltas,
            settings=settings or {},
            clock=clock,
        )
        self._run: _Run | None = None
        self._last: RunResult | None = None

    # ── what it has ───────────────────────────────────────────────────────────────────────────────────────────

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
        """Tokens since this agent was made, by the name of the driver."""
        return dict(self._conversation.accounts)

    @property
    def last_result(self) -> RunResult | None:
        """How the last run ended; None if it failed, or was left."""
        return self._last

    @property
    def tools(self) -> tuple[Tool, ...]:
        return tuple(self._tools.values())

    def add_tools(self, tools: Iterable[Tool | Callable[..., Any]]) -> None:
        for given in tools:
            one = given if isinstance(given, Tool) else tool(given)
            if one.name in self._tools:
                raise ValueError(f"two tools are called {one.name!r}")
            self._tools[one.name] = one

    # ── running ───────────────────────────────────────────────────────────────────────────────────────────────

    async def run(self, opening: Opening = None) -> RunResult:
        """The answer to what the user says. Raises what the driver raises; the history stays valid."""
        run = await self._begin(opening)
        run.channel.close()
        try:
            self._last = run.told(await run.loop.run(run.opening))
            return self._last
        finally:
            self._run = None

    def run_stream(self, opening: Opening = None) -> AsyncGenerator[AnyAgentEvent, None]:
        """The same as a stream of events. Leaving the iteration ends the run."""
        # Weakly, because a reader that goes away must not be kept alive by its own run.
        cell: list[ref[AsyncGenerator[AnyAgentEvent, None]]] = []
        events = self._streamed(opening, cell)
        cell.append(ref(events))
        return events

    def run_sync(self, opening: Opening = None) -> RunResult:
        return in_background(self.run(opening))

    def run_stream_sync(self, opening: Opening = None) -> Iterator[AnyAgentEvent]:
        events = self.run_stream(opening)
        try:
            while (event := in_background(_next(events))) is not None:
                yield event
        finally:
            in_background(events.aclose())

    def cancel(self) -> None:
        """End the run that is under way, in order: steps are closed, calls answered, no `final`."""
        if self._run is not None:
            self._run.loop.cancel()

    async def compact(self) -> bool:
        """Sum up the conversation now, whatever its size. False: there was nothing to sum up, or it did not work."""
        run = await self._begin(None)
        run.channel.close()
        try:
            return await run.loop.compact()
        finally:
            self._run = None

    async def close(self) -> None:
        await self.driver.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        in_background(self.close())

    async def _begin(self, opening: Opening) -> _Run:
        await self._leave_old_run()
        channel: Channel[AnyAgentEvent] = Channel()
        loop = Loop(self._setup, self._conversation, self._tools, channel)
        self._run = _Run(loop, channel, _message(opening))
        self._last = None
        return self._run

    async def _leave_old_run(self) -> None:
        """A reader that went away without closing leaves its run behind: it ends here, before the next begins."""
        old = self._run
        if old is None:
            return
        events = old.reader() if old.reader is not None else None
        if old.task is None or (isinstance(events, AsyncGeneratorType) and events.ag_running):
            raise AlreadyRunning("a run of this agent is under way; wait for its end, or cancel it")
        old.channel.close()
        await _stopped(old.task)

    async def _streamed(
        self, opening: Opening, cell: Sequence[ref[AsyncGenerator[AnyAgentEvent, None]]]
    ) -> AsyncGenerator[AnyAgentEvent, None]:
        run = await self._begin(opening)
        task = asyncio.create_task(run.loop.run(run.opening))
        task.add_done_callback(lambda _: run.channel.close())
        run.task, run.reader = task, cell[0]
        try:
            while (event := await run.channel.take()) is not None:
                yield event
            self._last = run.told(await task)
        finally:
            run.channel.close()
            await _stopped(task)
            if self._run is run:
                self._run = None


class _Run:
    """A run under way."""

    def __init__(self, loop: Loop, channel: Channel[AnyAgentEvent], opening: Message | None) -> None:
        self.loop = loop
        self.channel = channel
        self.opening = opening
        self.task: asyncio.Task[Ending] | None = None
        self.reader: ref[AsyncGenerator[AnyAgentEvent, None]] | None = None

    def told(self, ending: Ending) -> RunResult:
        return RunResult(text=ending.content, reason=ending.reason, turns=self.loop.turns, steps=self.loop.steps)


async def _stopped(task: asyncio.Task[Ending]) -> None:
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
            raise TypeError(f"a user says text, images, documents and audio, not {type(part).__name__}")
    return Message("user", parts)
