"""An agent as a model: a request in, an answer out, as one turn of a model that happens to think with tools.

What the agent does on the way is shown as reasoning; its last answer is the text.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from dragoman.agent.agent import Agent
from dragoman.agent.events import (
    AnyAgentEvent,
    FinalEvent,
    LimitEvent,
    NestedEvent,
    PendingEvent,
    ReasoningDeltaEvent,
    ReasoningEvent,
    TextDeltaEvent,
    TextEvent,
    ToolCallEvent,
    ToolResultEvent,
)
from dragoman.agent.front_ends import without_reasoning
from dragoman.agent.result_text import WAITING
from dragoman.ir import (
    AnyEvent,
    Finish,
    Finished,
    Message,
    PartDelta,
    PartEnd,
    PartStart,
    Reasoning,
    Request,
    StreamStart,
    Text,
    UsageUpdate,
)
from dragoman.ir.values import compact_text

_SHOWN = 2_000
"""Characters of one result that are shown."""


async def answer_as_model(agent: Agent[Any], request: Request) -> AsyncGenerator[list[AnyEvent], None]:
    """The events of a stream that answers the request. The agent uses its own tools, not those of the request."""
    system = "\n\n".join(message.text for message in request.messages if message.role == "system")
    history = [without_reasoning(message) for message in request.messages if message.role != "system"]
    before, opening = opening_of(history)
    worker = agent.fork(before, instructions=system)
    writer = _Writer(agent.name)
    yield writer.start()
    async with aclosing(worker.run_stream(opening)) as events:
        async for event in events:
            told = writer.write(event)
            if told:
                yield told
    result = worker.last_result
    if result is not None:
        finish = Finish("length" if result.reason in {"limit", "max_iterations"} else "stop")
        yield [*writer.close(), UsageUpdate(result.usage), Finished(finish)]


class _Writer:
    """One part at a time: reasoning for what happens, text for the answer."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._index = -1
        self._kind: type[Text | Reasoning] | None = None
        self._held: list[str] = []
        """Text of the current turn: the answer if no call follows, else something said on the way."""

    def start(self) -> list[AnyEvent]:
        return [StreamStart(None, self._model, None)]

    def write(self, event: AnyAgentEvent) -> list[AnyEvent]:
        match event:
            case TextDeltaEvent(content=text):
                self._held.append(text)
                return self._say(Text, text)
            case ReasoningDeltaEvent(content=text):
                return self._say(Reasoning, text)
            case TextEvent(content=text):
                told = [] if self._held else self._say(Reasoning, f"{text}\n")
                self._held = []
                return told
            case ReasoningEvent(content=text):
                return [] if self._kind is Reasoning else self._say(Reasoning, f"{text}\n")
            case FinalEvent(content=text):
                return [] if self._held else self._say(Text, text)
            case LimitEvent(limit=limit):
                return self._say(Text, f"[The limit of {limit} was reached.]")
            case PendingEvent(calls=calls):
                return self._say(Text, WAITING.format(names=", ".join(one.tool for one in calls)))
        return self._activity(event, "")

    def _activity(self, event: AnyAgentEvent, path: str) -> list[AnyEvent]:
        match event:
            case NestedEvent(path=names, event=inner):
                return self._activity(inner, "/".join(names) + ": ")
            case ToolCallEvent(tool=tool, args=arguments):
                return self._say(Reasoning, f"{path}{tool} {compact_text(arguments)}\n")
            case ToolResultEvent(tool=tool, result=result, is_error=is_error):
                shown = result if len(result) <= _SHOWN else f"{result[:_SHOWN]}…"
                return self._say(Reasoning, f"{path}{tool} {'failed' if is_error else 'returned'}: {shown}\n")
        return []

    def _say(self, kind: type[Text | Reasoning], text: str) -> list[AnyEvent]:
        if not text:
            return []
        if self._kind is kind:
            return [PartDelta(self._index, text)]
        opening = [*self.close()]
        self._index += 1
        self._kind = kind
        return [*opening, PartStart(self._index, kind("")), PartDelta(self._index, text)]

    def close(self) -> list[AnyEvent]:
        if self._kind is None:
            return []
        self._kind = None
        return [PartEnd(self._index)]


def opening_of(messages: list[Message]) -> tuple[list[Message], Message | None]:
    """(the history, what the user says now)."""
    if messages and messages[-1].role == "user":
        return messages[:-1], messages[-1]
    return messages, None
