"""An agent as a model: a request in, an answer out, like one turn of a model that uses tools while it thinks.

What the agent does on the way is shown as reasoning; its last answer is the text. Functions of the client are offered
to the model beside the agent's own tools. A call of one ends the answer, as with any model, and the request that brings
its result continues the run.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from msgspec import Struct, structs

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
from dragoman.agent.front_end_input import opening_of, without_reasoning
from dragoman.agent.paused_runs import PausedRun, PausedRuns
from dragoman.agent.pending import PendingCall
from dragoman.agent.result_text import WAITING
from dragoman.agent.tools import Tool, client_tool
from dragoman.codecs.ids import is_invented
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
    ToolCall,
    ToolChoice,
    ToolDefinition,
    ToolResult,
    UsageUpdate,
)
from dragoman.ir.values import compact_text, encode_json

_SHOWN = 2_000
"""How many characters of one result are shown."""
_CALL_ID = re.compile(r"call_([0-9a-f]{24})_\d+")
"""Ids sent to clients: they cannot be guessed, and identify the run."""


async def answer_as_model(
    agent: Agent[Any], request: Request, runs: PausedRuns
) -> AsyncGenerator[list[AnyEvent], None]:
    """Yield the stream events that answer the request. A run that waits for the client is kept in `runs`."""
    system = "\n\n".join(message.text for message in request.messages if message.role == "system")
    messages = [without_reasoning(message) for message in request.messages if message.role != "system"]
    tools, choice = _client_tools(request, agent.tools)
    turn = await _find_returned_turn(agent.name, messages, runs)
    history, opening = opening_of(messages) if turn is None else (turn.history, turn.opening)
    worker = agent.fork(history, instructions=system, tools=tools, tool_choice=choice if turn is None else None)
    writer = _Writer(agent.name, frozenset(one.name for one in tools))
    yield writer.start()
    async with aclosing(worker.run_stream(opening)) as events:
        async for event in events:
            written = writer.write(event)
            if written:
                yield written
    result = worker.last_result
    if result is None:
        return
    if writer.client_calls:
        keys = [writer.token, _turn_key(agent.name, messages, writer.client_calls.values())]
        calls = {given: one.call_id for given, one in writer.client_calls.items()}
        await runs.keep(keys, PausedRun(worker.history, calls))
        finish = Finish("tool_calls")
    else:
        finish = Finish("length" if result.reason in {"limit", "max_iterations"} else "stop")
    yield [*writer.close(), UsageUpdate(result.usage), Finished(finish)]


def _client_tools(request: Request, own: Iterable[Tool]) -> tuple[tuple[Tool, ...], ToolChoice | None]:
    """Return the client's functions that the model may call, and the client's tool choice among them."""
    choice = request.tool_choice
    if choice is not None and choice.mode == "none":
        return (), None
    taken = {one.name for one in own}
    definitions = [one for one in request.tools if isinstance(one, ToolDefinition) and one.name not in taken]
    names = {one.name for one in definitions}
    is_possible = choice is not None and bool(names) and names.issuperset(choice.names)
    return tuple(map(client_tool, definitions)), choice if is_possible else None


# ── continuing a paused run ───────────────────────────────────────────────────────────────────────────────────


class _Returned(Struct, frozen=True):
    """A paused run to continue: its history with the client's results, and the user's message that came with them."""

    history: list[Message]
    opening: Message | None


async def _find_returned_turn(agent: str, messages: Sequence[Message], runs: PausedRuns) -> _Returned | None:
    """Return the run that this request continues; None if it brings no results of a known run."""
    place = max((index for index, one in enumerate(messages) if one.role == "assistant"), default=None)
    if place is None:
        return None
    calls, after = messages[place].tool_calls, messages[place + 1 :]
    results = {result.tool_call_id: result for message in after for result in message.tool_results}
    if not calls or not results:
        return None
    tokens = [found[1] for call in calls if (found := _CALL_ID.fullmatch(call.id)) is not None]
    # Some clients lose the ids of calls: then the run is found by what was said and called.
    lost = all(is_invented(call.id) for call in calls)
    run = await runs.find([*dict.fromkeys(tokens), *([_turn_key(agent, messages[:place], calls)] if lost else [])])
    if run is None:
        return None
    own_ids = dict(zip((call.id for call in calls), run.calls.values(), strict=False)) if lost else run.calls
    given = {own_ids[call_id]: result for call_id, result in results.items() if call_id in own_ids}
    return _Returned(_with_results(run.history, given), opening_of(list(after))[1])


def _with_results(history: Sequence[Message], given: Mapping[str, ToolResult]) -> list[Message]:
    """Return the history with the given results in place of the placeholders of the waiting calls."""
    parts = tuple(
        structs.replace(given[one.tool_call_id], tool_call_id=one.tool_call_id, name=one.name)
        if one.tool_call_id in given
        else one
        for one in history[-1].tool_results
    )
    return [*history[:-1], Message("tool", parts)]


def _turn_key(agent: str, before: Sequence[Message], calls: Iterable[ToolCall | PendingCall]) -> str:
    """Return a key for a turn, from its calls and the user messages before it (without white space)."""
    texts = ["".join(message.text.split()) for message in before if message.role == "user"]
    called = [(one.name if isinstance(one, ToolCall) else one.tool, dict(one.arguments)) for one in calls]
    return f"turn:{hashlib.blake2s(encode_json([agent, texts, called]), digest_size=16).hexdigest()}"


# ── the answer ────────────────────────────────────────────────────────────────────────────────────────────────


class _Writer:
    """Writes one part at a time: reasoning for what happens, text for the answer, calls for the client at the end."""

    def __init__(self, model: str, client_tools: frozenset[str]) -> None:
        self._model = model
        self._client_tools = client_tools
        self.token = secrets.token_hex(12)
        self.client_calls: dict[str, PendingCall] = {}
        """Calls that the client has to run, by the ids sent to the client."""
        self._index = -1
        self._kind: type[Text | Reasoning] | None = None
        self._buffered: list[str] = []
        """Text of the current turn: the answer if no call follows, else an intermediate remark."""

    def start(self) -> list[AnyEvent]:
        return [StreamStart(None, self._model, None)]

    def write(self, event: AnyAgentEvent) -> list[AnyEvent]:
        match event:
            case TextDeltaEvent(content=text):
                self._buffered.append(text)
                return self._say(Text, text)
            case ReasoningDeltaEvent(content=text):
                return self._say(Reasoning, text)
            case TextEvent(content=text):
                written = [] if self._buffered else self._say(Reasoning, f"{text}\n")
                self._buffered = []
                return written
            case ReasoningEvent(content=text):
                return [] if self._kind is Reasoning else self._say(Reasoning, f"{text}\n")
            case FinalEvent(content=text):
                return [] if self._buffered else self._say(Text, text)
            case LimitEvent(limit=limit):
                return self._say(Text, f"[The limit of {limit} was reached.]")
            case PendingEvent(calls=calls):
                return self._wait(calls)
        return self._activity(event, "")

    def _activity(self, event: AnyAgentEvent, path: str) -> list[AnyEvent]:
        match event:
            case NestedEvent(path=names, event=inner):
                return self._activity(inner, "/".join(names) + ": ")
            case ToolCallEvent(tool=tool) if tool in self._client_tools and not path:
                return []
            case ToolCallEvent(tool=tool, args=arguments):
                return self._say(Reasoning, f"{path}{tool} {compact_text(arguments)}\n")
            case ToolResultEvent(tool=tool, result=result, is_error=is_error):
                shown = result if len(result) <= _SHOWN else f"{result[:_SHOWN]}…"
                return self._say(Reasoning, f"{path}{tool} {'failed' if is_error else 'returned'}: {shown}\n")
        return []

    def _wait(self, calls: Sequence[PendingCall]) -> list[AnyEvent]:
        """Pass calls of the client's tools to the client. Others wait for a person, and a model cannot ask one."""
        clients = [one for one in calls if not one.path and one.tool in self._client_tools]
        others = [one.tool for one in calls if one not in clients]
        written = self._say(Text, WAITING.format(names=", ".join(others))) if others else []
        for one in clients:
            written += self.close()
            self._index += 1
            call_id = f"call_{self.token}_{len(self.client_calls)}"
            self.client_calls[call_id] = one
            written += [
                PartStart(self._index, ToolCall(call_id, one.tool)),
                PartDelta(self._index, compact_text(one.arguments)),
                PartEnd(self._index),
            ]
        return written

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
