"""An agent's events in the protocols of front ends: AG-UI, the Vercel AI SDK's UI message stream, JSON Lines.

Events in, bytes out: this module does not depend on what serves them over HTTP.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Protocol, TypeAlias

import msgspec

from dragoman.agent.agent import Agent, Opening
from dragoman.agent.events import (
    AnyAgentEvent,
    FinalEvent,
    HiddenUserMessageEvent,
    NestedEvent,
    PendingEvent,
    ReasoningDeltaEvent,
    ReasoningEvent,
    StepCompleteEvent,
    StepStartEvent,
    TextDeltaEvent,
    TextEvent,
    ToolCallEvent,
    ToolResultEvent,
    encode_event,
)
from dragoman.agent.front_end_input import NESTED, FrontEndInput, ProtocolName, opening_of, read_input
from dragoman.agent.paused_runs import PausedRun, PausedRuns
from dragoman.agent.pending import Decision, PendingCall, pending_in, waiting_ids
from dragoman.agent.permissions import Deny
from dragoman.agent.result_text import WAITING
from dragoman.errors import DragomanError
from dragoman.ir import Message

Payload: TypeAlias = dict[str, Any]
_encode = msgspec.json.Encoder(decimal_format="number").encode
_HIDDEN = (StepStartEvent, StepCompleteEvent, HiddenUserMessageEvent)


class FrontEnd(Protocol):
    """Encodes one run in one protocol."""

    headers: Mapping[str, str]

    def start(self) -> bytes: ...
    def resume(self, seen: Collection[str], decisions: Mapping[str, Decision]) -> None:
        """Continue the run after these decisions, with calls that the client has already received."""
        ...

    def feed(self, event: AnyAgentEvent) -> bytes: ...
    def fail(self, error: str) -> bytes: ...
    def finish(self) -> bytes: ...


_SSE = {"content-type": "text/event-stream", "cache-control": "no-store", "x-accel-buffering": "no"}


class _Blocks:
    """Encodes text and reasoning as blocks that are opened, continued and closed.

    With deltas, the event with the whole text only closes the block; without, it is the whole block.
    """

    def __init__(
        self, opened: Callable[[str, str], list[Payload]], closed: Callable[[str, str], list[Payload]]
    ) -> None:
        self._opened = opened
        self._closed = closed
        self._count = 0
        self._open: tuple[str, str] | None = None
        self._streamed: set[str] = set()

    def delta(self, kind: str, text: str, piece: Callable[[str, str, str], Payload]) -> list[Payload]:
        found: list[Payload] = []
        if self._open is None or self._open[0] != kind:
            found += self.close()
            self._count += 1
            self._open = (kind, f"{kind}-{self._count}")
            found += self._opened(*self._open)
        self._streamed.add(kind)
        return [*found, piece(kind, self._open[1], text)]

    def whole(self, kind: str, text: str, piece: Callable[[str, str, str], Payload]) -> list[Payload]:
        if kind in self._streamed or not text:
            return self.close()
        found = [*self.delta(kind, text, piece), *self.close()]
        self._streamed.discard(kind)
        return found

    def close(self) -> list[Payload]:
        if self._open is None:
            return []
        found = self._closed(*self._open)
        self._open = None
        return found

    def next_turn(self) -> list[Payload]:
        self._streamed.clear()
        return self.close()


class _EventTable:
    """What both protocols share: a table from events to payloads."""

    headers: Mapping[str, str] = _SSE

    def __init__(self) -> None:
        self._blocks = _Blocks(self._open_block, self._close_block)
        self._seen: Collection[str] = ()
        self._decisions: Mapping[str, Decision] = {}
        self._table: dict[type, Callable[[Any], list[Payload]]] = {
            TextDeltaEvent: lambda event: self._blocks.delta("text", event.content, self._piece),
            ReasoningDeltaEvent: lambda event: self._blocks.delta("reasoning", event.content, self._piece),
            TextEvent: lambda event: self._blocks.whole("text", event.content, self._piece),
            ReasoningEvent: lambda event: self._blocks.whole("reasoning", event.content, self._piece),
            FinalEvent: lambda event: self._blocks.whole("text", event.content, self._piece),
            ToolCallEvent: self._first_call,
            ToolResultEvent: self._result,
        }

    def resume(self, seen: Collection[str], decisions: Mapping[str, Decision]) -> None:
        self._seen, self._decisions = seen, decisions

    def feed(self, event: AnyAgentEvent) -> bytes:
        write = self._table.get(type(event))
        if write is not None:
            return _lines(write(event))
        if isinstance(event, HiddenUserMessageEvent):
            return _lines(self._blocks.next_turn())
        return b"" if isinstance(event, _HIDDEN) else _lines(self._other(event))

    def _first_call(self, event: ToolCallEvent) -> list[Payload]:
        """Encode a call, unless the client already has it: a call that waited is reported again when it runs."""
        return self._blocks.next_turn() + ([] if event.tool_call_id in self._seen else self._call(event))

    def _open_block(self, kind: str, block: str) -> list[Payload]:
        raise NotImplementedError

    def _close_block(self, kind: str, block: str) -> list[Payload]:
        raise NotImplementedError

    def _piece(self, kind: str, block: str, text: str) -> Payload:
        raise NotImplementedError

    def _call(self, event: ToolCallEvent) -> list[Payload]:
        raise NotImplementedError

    def _result(self, event: ToolResultEvent) -> list[Payload]:
        raise NotImplementedError

    def _other(self, event: AnyAgentEvent) -> list[Payload]:
        raise NotImplementedError


def _lines(payloads: list[Payload]) -> bytes:
    return b"".join(b"data: " + _encode(one) + b"\n\n" for one in payloads)


# ── AG-UI ─────────────────────────────────────────────────────────────────────────────────────────────────────

_AG_UI_BLOCKS = {
    "text": (("TEXT_MESSAGE_START",), "TEXT_MESSAGE_CONTENT", ("TEXT_MESSAGE_END",), "assistant"),
    "reasoning": (
        ("REASONING_START", "REASONING_MESSAGE_START"),
        "REASONING_MESSAGE_CONTENT",
        ("REASONING_MESSAGE_END", "REASONING_END"),
        "reasoning",
    ),
}


class AgUi(_EventTable):
    """https://docs.ag-ui.com/concepts/events"""  # noqa: D400, D415 - an address

    def __init__(self, thread: str = "", run: str = "", client_tools: frozenset[str] = frozenset()) -> None:
        super().__init__()
        self._ids = {"threadId": thread or uuid.uuid4().hex, "runId": run or uuid.uuid4().hex}
        self._message = uuid.uuid4().hex
        self._client_tools = client_tools
        self._pending: tuple[PendingCall, ...] = ()

    def start(self) -> bytes:
        return _lines([{"type": "RUN_STARTED", **self._ids}])

    def finish(self) -> bytes:
        last: Payload = {"type": "RUN_FINISHED", **self._ids}
        pending = [one for one in self._pending if not self._is_clients(one)]
        called = [one.call_id for one in self._pending if self._is_clients(one)]
        if pending:
            last["outcome"] = {"type": "interrupt", "interrupts": [_interrupt(one) for one in pending]}
        elif called:
            last["outcome"] = {"type": "success", "pendingToolCallIds": called}
        return _lines([*self._blocks.close(), last])

    def _is_clients(self, call: PendingCall) -> bool:
        return not call.path and call.tool in self._client_tools

    def fail(self, error: str) -> bytes:
        return _lines([*self._blocks.close(), {"type": "RUN_ERROR", "message": error}])

    def _open_block(self, kind: str, block: str) -> list[Payload]:
        names, _, _, role = _AG_UI_BLOCKS[kind]
        message = f"{self._message}-{block}"
        return [
            {"type": name, "messageId": message, **({} if name == "REASONING_START" else {"role": role})}
            for name in names
        ]

    def _close_block(self, kind: str, block: str) -> list[Payload]:
        return [{"type": name, "messageId": f"{self._message}-{block}"} for name in _AG_UI_BLOCKS[kind][2]]

    def _piece(self, kind: str, block: str, text: str) -> Payload:
        return {"type": _AG_UI_BLOCKS[kind][1], "messageId": f"{self._message}-{block}", "delta": text}

    def _call(self, event: ToolCallEvent) -> list[Payload]:
        call = {"toolCallId": event.tool_call_id}
        return [
            {"type": "TOOL_CALL_START", **call, "toolCallName": event.tool},
            {"type": "TOOL_CALL_ARGS", **call, "delta": _encode(event.args).decode()},
            {"type": "TOOL_CALL_END", **call},
        ]

    def _result(self, event: ToolResultEvent) -> list[Payload]:
        message = f"{self._message}-{event.tool_call_id}"
        result = {"messageId": message, "toolCallId": event.tool_call_id, "content": event.result, "role": "tool"}
        return [{"type": "TOOL_CALL_RESULT", **result}]

    def _other(self, event: AnyAgentEvent) -> list[Payload]:
        if isinstance(event, PendingEvent):
            self._pending = event.calls
        return [*self._blocks.close(), {"type": "CUSTOM", "name": event.type, "value": _data(event)}]


def _interrupt(call: PendingCall) -> Payload:
    is_approval = call.kind == "approval"
    known = {} if call.path else {"toolCallId": call.call_id}  # a sub-agent's call is not part of the conversation
    return {
        "id": call.call_id,
        "reason": "tool_call" if is_approval else "deferred",
        "message": call.reason or _QUESTIONS[call.kind].format(tool="/".join((*call.path, call.tool))),
        **known,
        **({"responseSchema": _APPROVAL} if is_approval else {}),
        "metadata": {"tool": call.tool, "arguments": call.arguments, "path": call.path},
    }


_QUESTIONS = {"approval": "May {tool} be called?", "deferred": "{tool} waits for its result."}
_APPROVAL = {
    "type": "object",
    "properties": {"approved": {"type": "boolean"}, "reason": {"type": "string"}},
    "required": ["approved"],
}


# ── Vercel's UI message stream ────────────────────────────────────────────────────────────────────────────────


class UiMessages(_EventTable):
    """https://ai-sdk.dev/docs/ai-sdk-ui/stream-protocol"""  # noqa: D400, D415 - an address

    headers: Mapping[str, str] = {**_SSE, "x-vercel-ai-ui-message-stream": "v1"}

    def __init__(self, message: str = "") -> None:
        super().__init__()
        self._message = message or uuid.uuid4().hex
        self._nested: set[str] = set()
        """Calls of sub-agents that are shown, because they wait or have waited."""
        self._called: set[str] = set()

    def resume(self, seen: Collection[str], decisions: Mapping[str, Decision]) -> None:
        super().resume(seen, decisions)
        self._nested |= decisions.keys() - set(seen)

    def start(self) -> bytes:
        return _lines([{"type": "start", "messageId": self._message}, {"type": "start-step"}])

    def finish(self) -> bytes:
        return _lines([*self._blocks.close(), {"type": "finish-step"}, {"type": "finish"}]) + b"data: [DONE]\n\n"

    def fail(self, error: str) -> bytes:
        return _lines([*self._blocks.close(), {"type": "error", "errorText": error}]) + b"data: [DONE]\n\n"

    def _open_block(self, kind: str, block: str) -> list[Payload]:
        return [{"type": f"{kind}-start", "id": block}]

    def _close_block(self, kind: str, block: str) -> list[Payload]:
        return [{"type": f"{kind}-end", "id": block}]

    def _piece(self, kind: str, block: str, text: str) -> Payload:
        return {"type": f"{kind}-delta", "id": block, "delta": text}

    def _call(self, event: ToolCallEvent) -> list[Payload]:
        self._called.add(event.tool_call_id)
        call = {"toolCallId": event.tool_call_id, "toolName": event.tool, "dynamic": True}
        return [{"type": "tool-input-start", **call}, {"type": "tool-input-available", **call, "input": event.args}]

    def _result(self, event: ToolResultEvent) -> list[Payload]:
        return [self._output(event.tool_call_id, event)]

    def _output(self, call_id: str, event: ToolResultEvent) -> Payload:
        if isinstance(self._decisions.get(call_id), Deny):
            return {"type": "tool-output-denied", "toolCallId": call_id}
        call = {"toolCallId": call_id, "dynamic": True}
        if event.is_error:
            return {"type": "tool-output-error", **call, "errorText": event.result}
        return {"type": "tool-output-available", **call, "output": event.result}

    def _other(self, event: AnyAgentEvent) -> list[Payload]:
        found: list[Payload] = self._blocks.close()
        if isinstance(event, PendingEvent):
            for one in event.calls:
                found += [] if not one.path else self._show_nested_call(one)
                if one.kind == "approval":
                    found.append(
                        {"type": "tool-approval-request", "approvalId": one.call_id, "toolCallId": one.call_id}
                    )
        elif isinstance(event, NestedEvent) and isinstance(event.event, ToolResultEvent):
            call_id = "/".join((*event.calls, event.event.tool_call_id))
            found += [self._output(call_id, event.event)] if call_id in self._nested else []
        return [*found, {"type": f"data-{event.type.replace('_', '-')}", "data": _data(event)}]

    def _show_nested_call(self, call: PendingCall) -> list[Payload]:
        """Show a call of a sub-agent, because the user has to answer it.

        The call that gave the sub-agent its task gets a provisional output, because a chat sends the user's decisions
        only when every call has an output or an answer. The real output replaces it.
        """
        if call.call_id in self._nested:
            return []
        self._nested.add(call.call_id)
        given = {
            "toolCallId": call.call_id,
            "toolName": call.tool,
            "dynamic": True,
            "title": "/".join((*call.path, call.tool)),
            "providerMetadata": {NESTED: {"path": call.path}},
        }
        waits = {"type": "tool-output-available", "dynamic": True, "output": WAITING.format(names=call.tool)}
        outer = [one for one in self._called if call.call_id.startswith(f"{one}/")]
        self._called.difference_update(outer)
        return [
            *({**waits, "toolCallId": one} for one in outer),
            {"type": "tool-input-start", **given},
            {"type": "tool-input-available", **given, "input": call.arguments},
        ]


def _data(event: AnyAgentEvent) -> Any:
    return msgspec.json.decode(encode_event(event))


# ── JSON Lines ────────────────────────────────────────────────────────────────────────────────────────────────


class JsonLines:
    """Each event unchanged, on its own line; a failure is a last line of type `error`."""

    headers: Mapping[str, str] = {"content-type": "application/jsonl", "cache-control": "no-store"}

    def start(self) -> bytes:
        return b""

    def resume(self, seen: Collection[str], decisions: Mapping[str, Decision]) -> None:
        """Do nothing: events are written unchanged."""

    def feed(self, event: AnyAgentEvent) -> bytes:
        return encode_event(event) + b"\n"

    def fail(self, error: str) -> bytes:
        return _encode({"type": "error", "message": error}) + b"\n"

    def finish(self) -> bytes:
        return b""


def front_end_of(protocol: ProtocolName, given: FrontEndInput) -> FrontEnd:
    """Return the encoder that answers a request in its protocol."""
    client_tools = frozenset(one.name for one in given.tools)
    if protocol == "ag-ui":
        return AgUi(given.thread, given.run, client_tools)
    return UiMessages(given.message_id) if protocol == "ui-messages" else JsonLines()


async def respond(
    agent: Agent[Any], protocol: ProtocolName, body: bytes, runs: PausedRuns, owner: str = ""
) -> tuple[Mapping[str, str], AsyncGenerator[bytes, None]]:
    """Answer a request of a front end with a copy of the agent. Returns (headers, chunks).

    Tools of the request are offered to the model beside the agent's own, which win where names clash; the client runs
    them. A run that pauses is kept in `runs` under `owner` and the thread, and continued by the request that answers
    its calls. Raises `ValueError` for a request that is not of the protocol, and for answers that do not fit.
    """
    given = read_input(protocol, body)
    system = "\n\n".join(one.text for one in given.messages if one.role == "system")
    messages = [one for one in given.messages if one.role != "system"]
    history, opening = opening_of(messages)
    keys = [f"{owner}/{agent.name}/{given.thread}"] if given.thread else []
    paused = await runs.find(keys) if keys else None
    decisions = {} if paused is None else _decisions(pending_in(paused.history), given)
    if not decisions and not messages:
        raise ValueError("expected a message, or decisions about calls of a thread that waits for them")
    worker = agent.fork(
        paused.history if paused is not None and decisions else history, instructions=system, tools=given.tools
    )
    if decisions:
        await worker.check(decisions)
    if paused is not None:
        await runs.forget(keys)
    front_end = front_end_of(protocol, given)
    return front_end.headers, _pieces(worker, opening, decisions, front_end, runs, keys)


def _decisions(pending: Sequence[PendingCall], given: FrontEndInput) -> dict[str, Decision]:
    """Return the client's decisions; empty if it answers none of the waiting calls and asks something else."""
    answers = given.answers
    return {one.call_id: answers[one.call_id].decide(one) for one in pending if one.call_id in answers}


async def _pieces(
    worker: Agent[Any],
    opening: Message | None,
    decisions: Mapping[str, Decision],
    front_end: FrontEnd,
    runs: PausedRuns,
    keys: Sequence[str],
) -> AsyncGenerator[bytes, None]:
    """Yield the reply: resume with the decisions, then run with the opening; a run that pauses is kept."""
    yield front_end.start()
    try:
        if decisions:
            front_end.resume(waiting_ids(worker.history), decisions)
            async for data in _encode_run(worker.resume_stream(decisions=decisions), front_end):
                yield data
        if not worker.pending and (not decisions or opening is not None):
            async for data in _encode_run(worker.run_stream(opening), front_end):
                yield data
    except DragomanError as error:
        yield front_end.fail(str(error))
        return
    if worker.pending and keys:
        await runs.keep(keys, PausedRun(worker.history))
    yield front_end.finish()


async def _encode_run(running: AsyncGenerator[AnyAgentEvent, None], front_end: FrontEnd) -> AsyncGenerator[bytes, None]:
    async with aclosing(running) as events:
        async for event in events:
            data = front_end.feed(event)
            if data:
                yield data


async def stream_bytes(agent: Agent[Any], opening: Opening, front_end: FrontEnd) -> AsyncGenerator[bytes, None]:
    """Run the agent and yield the run in the protocol. Leaving the iteration ends the run."""
    yield front_end.start()
    try:
        async with aclosing(_encode_run(agent.run_stream(opening), front_end)) as pieces:
            async for data in pieces:
                yield data
    except DragomanError as error:
        yield front_end.fail(str(error))
        return
    yield front_end.finish()
