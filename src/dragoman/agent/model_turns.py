"""One request to the model: what it is sent, how its answer is received, and how both are reported."""

from __future__ import annotations

import inspect
from collections.abc import Sequence

from msgspec import UNSET

from dragoman.agent.compaction import Compactor, is_context_error
from dragoman.agent.events import (
    HostedCallEvent,
    PartialOutputEvent,
    ReasoningDeltaEvent,
    ReasoningEvent,
    RetryEvent,
    TextDeltaEvent,
    TextEvent,
    usage_event,
)
from dragoman.agent.history_repair import heal
from dragoman.agent.run_state import RunState
from dragoman.agent.tools import Tool, ToolContext, call_with_dependencies
from dragoman.agent.tracing import trace_model
from dragoman.drivers.base import QueryResult, Settings, StreamResult
from dragoman.drivers.partial_output import PartialValues
from dragoman.drivers.retries import RetryNotice, report_retries
from dragoman.drivers.typed_output import schema_refusal
from dragoman.errors import InvalidRequest, ProviderError
from dragoman.ir import (
    Message,
    PartDelta,
    PartStart,
    Reasoning,
    ServerToolCall,
    Text,
    ToolCall,
    ToolChoice,
)

_NOBODY = ToolContext(ToolCall("", "instructions", {}))


class ModelTurns:
    def __init__(self, state: RunState) -> None:
        self._state = state
        self._setup = state.setup
        self._conversation = state.conversation
        self.compactor = Compactor(state.setup.compaction, state.conversation, self.ask, self._report_usage, state.emit)
        self._driver_name = state.conversation.driver.name
        """The model of the last request, kept because a reader may switch the driver at any event."""
        self._static = self._setup.system_prompt if not self._setup.instructions else None

    async def next_answer(self, choice: ToolChoice | None) -> QueryResult:
        """Return the answer to the current conversation. A context that is too long is compacted, once."""
        await self._make_room()
        try:
            return await self._converse(choice)
        except ProviderError as error:
            if not is_context_error(error) or not await self.compactor.compact():
                raise
        return await self._converse(choice)

    async def _converse(self, choice: ToolChoice | None) -> QueryResult:
        messages: Sequence[Message] = self._conversation.messages
        for process in self._setup.history_processors:
            processed = process(tuple(messages))
            messages = heal(await processed if inspect.isawaitable(processed) else processed)
        live = self._setup.deltas or self._state.partials
        tools = (*self._state.list_tools(), *self._setup.hosted)
        return await self.ask(messages, tools, choice, live=live, typed=True)

    async def ask(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool | object] = (),
        choice: ToolChoice | None = None,
        *,
        live: bool = False,
        typed: bool = False,
    ) -> QueryResult:
        driver = self._conversation.driver
        self._driver_name = driver.name
        settings = await self._settings(typed=typed)
        self._state.spent.requests += 1
        with report_retries(self._on_retry), trace_model(self._setup, driver.name, messages) as span:
            try:
                if not live:
                    answer = await driver.query(messages=messages, tools=tools, tool_choice=choice, **settings)  # type: ignore[arg-type]
                else:
                    stream = driver.stream_query(messages=messages, tools=tools, tool_choice=choice, **settings)  # type: ignore[arg-type]
                    answer = await self._stream_answer(stream)
            except InvalidRequest as error:
                output = self._setup.output if typed and self._state.mode == "native" else None
                refusal = None if output is None else schema_refusal(error, output)
                if refusal is None:
                    raise
                raise refusal from error
            span.record_answer(answer)
        return answer

    async def _settings(self, *, typed: bool) -> Settings:
        settings: Settings = {**self._setup.settings}
        system = self._static if not self._setup.instructions else await self._instructions()
        output = self._setup.output if typed else None
        if output is not None:
            mode = self._state.output_mode()
            if mode == "native":
                settings["output"] = output.structured
            elif mode == "prompted":
                system = f"{system}\n\n{output.instruction}" if system else output.instruction
        if system:
            settings["system"] = system
        return settings

    async def _instructions(self) -> str | None:
        texts = [self._setup.system_prompt]
        for one in self._setup.instructions:
            if isinstance(one, str):
                texts.append(one)
                continue
            context = ToolContext(_NOBODY.call, tuple(self._conversation.messages), self._setup.overrides)
            texts.append(await call_with_dependencies(one, context))
        return "\n\n".join(text for text in texts if text) or None

    async def _make_room(self) -> None:
        """Replace old outputs beyond the budget, and compact the history if the context window is full."""
        cache = self._setup.output_cache
        if cache is not None:
            thinner = cache.within_budget(self._conversation.messages)
            if thinner is not None:
                self._conversation.rewrite(thinner)
        await self.compactor.compact_if_full()

    # ── the answer ────────────────────────────────────────────────────────────────────────────────────────────

    async def _stream_answer(self, stream: StreamResult) -> QueryResult:
        kinds: dict[int, type[TextDeltaEvent | ReasoningDeltaEvent]] = {}
        output, mode = self._setup.output, self._state.output_mode()
        values = (
            PartialValues(output, mode) if self._state.partials and output is not None and mode is not None else None
        )
        async with stream:
            async for event in stream.events():
                if values is not None and (value := values.feed(event)) is not UNSET:
                    await self._state.emit(PartialOutputEvent(value))
                if not self._setup.deltas:
                    continue
                if isinstance(event, PartStart) and isinstance(event.part, Text | Reasoning) and not event.candidate:
                    kinds[event.index] = TextDeltaEvent if isinstance(event.part, Text) else ReasoningDeltaEvent
                    if event.part.text:
                        await self._state.emit(kinds[event.index](event.part.text))
                elif isinstance(event, PartDelta) and event.text and event.index in kinds:
                    await self._state.emit(kinds[event.index](event.text))
            return await stream.result

    def _on_retry(self, notice: RetryNotice) -> None:
        event = RetryEvent(notice.provider, notice.attempt, notice.delay, str(notice.error))
        self._conversation.log_event(event)
        self._state.channel.push(event)

    async def report(self, answer: QueryResult, message: Message, *, is_last: bool) -> None:
        """Report reasoning, text and hosted calls in order, except the last text: that is `final`."""
        now = self._setup.clock.milliseconds
        for part in message.parts:
            if isinstance(part, Reasoning) and part.text:
                await self._state.emit(ReasoningEvent(part.text, now()))
            elif isinstance(part, Text) and part.text and not is_last:
                await self._state.emit(TextEvent(part.text, now()))
            elif isinstance(part, ServerToolCall):
                await self._state.emit(HostedCallEvent(part.name, part.id))
        await self._report_usage(answer)

    async def _report_usage(self, answer: QueryResult) -> None:
        if answer.usage is None:
            self._state.spent.cost = None
        else:
            self._state.count(self._driver_name, answer.usage)
            await self._state.emit(usage_event(self._driver_name, answer.usage))

    async def summarise(self, question: Message) -> str:
        """Return one answer without tools, to a question that the history does not keep."""
        answer = await self.ask([*self._conversation.messages, question])
        await self._report_usage(answer)
        return answer.message.text
