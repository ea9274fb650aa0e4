"""An agent's events in the protocols of front ends: AG-UI, the Vercel AI SDK's UI message stream, JSON Lines.

Events in, bytes out: whatever serves them over HTTP is not known here.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import Any, Literal, Protocol, TypeAlias

import msgspec

from dragoman.agent.agent import Agent, Opening
from dragoman.agent.events import (
    AnyAgentEvent,
    FinalEvent,
    HiddenUserMessageEvent,
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
from dragoman.errors import DragomanError
from dragoman.ir import Message, Reasoning, Text, ToolCall, ToolResult

Payload: TypeAlias = dict[str, Any]
ProtocolName: TypeAlias = Literal["ag-ui", "ui-messages", "json-lines"]
_encode = msgspec.json.Encoder(decimal_format="number").encode
_HIDDEN = (StepStartEvent, StepCompleteEvent, HiddenUserMessageEvent)


class FrontEnd(Protocol):
    """One run in one protocol."""

    headers: Mapping[str, str]

    def start(self) -> bytes: ...
    def feed(self, event: AnyAgentEvent) -> bytes: ...
    def fail(self, error: str) -> bytes: ...
    def finish(self) -> bytes: ...


_SSE = {"content-type": "text/event-stream", "cache-control": "no-store", "x-accel-buffering": "no"}


class _Blocks:
    """Text and reasoning as blocks that are opened, continued and closed.

    Where deltas come, the event with the whole text only closes the block; else it is the block.
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


class _Told:
    """What both protocols share: a table from events to payloads."""

    headers: Mapping[str, str] = _SSE

    def __init__(self) -> None:
        self._blocks = _Blocks(self._open_block, self._close_block)
        self._table: dict[type, Callable[[Any], list[Payload]]] = {
            TextDeltaEvent: lambda event: self._blocks.delta("text", event.content, self._piece),
            ReasoningDeltaEvent: lambda event: self._blocks.delta("reasoning", event.content, self._piece),
            TextEvent: lambda event: self._blocks.whole("text", event.content, self._piece),
            ReasoningEvent: lambda event: self._blocks.whole("reasoning", event.content, self._piece),
            FinalEvent: lambda event: self._blocks.whole("text", event.content, self._piece),
            ToolCallEvent: lambda event: [*self._blocks.next_turn(), *self._call(event)],
            ToolResultEvent: self._result,
        }

    def feed(self, event: AnyAgentEvent) -> bytes:
        tell = self._table.get(type(event))
        if tell is not None:
            return _lines(tell(event))
        if isinstance(event, HiddenUserMessageEvent):
            return _lines(self._blocks.next_turn())
        return b"" if isinstance(event, _HIDDEN) else _lines(self._other(event))

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


class AgUi(_Told):
    """https://docs.ag-ui.com/concepts/events"""  # noqa: D400, D415 - an address

    def __init__(self, thread: str = "", run: str = "") -> None:
        super().__init__()
        self._ids = {"threadId": thread or uuid.uuid4().hex, "runId": run or uuid.uuid4().hex}
        self._message = uuid.uuid4().hex
        self._pending: list[Payload] = []
        self._result_value: Any = None

    def start(self) -> bytes:
        return _lines([{"type": "RUN_STARTED", **self._ids}])

    def finish(self) -> bytes:
        last: Payload = {"type": "RUN_FINISHED", **self._ids}
        if self._pending:
            last["outcome"] = {"type": "interrupt", "interrupts": self._pending}
        return _lines([*self._blocks.close(), last])

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
            self._pending = [
                {"id": one.call_id, "reason": "tool_call", "toolCallId": one.call_id, "message": one.reason}
                for one in event.calls
            ]
        return [*self._blocks.close(), {"type": "CUSTOM", "name": event.type, "value": _data(event)}]


# ── Vercel's UI message stream ────────────────────────────────────────────────────────────────────────────────


class UiMessages(_Told):
    """https://ai-sdk.dev/docs/ai-sdk-ui/stream-protocol"""  # noqa: D400, D415 - an address

    headers: Mapping[str, str] = {**_SSE, "x-vercel-ai-ui-message-stream": "v1"}

    def __init__(self, message: str = "") -> None:
        super().__init__()
        self._message = message or uuid.uuid4().hex

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
        call = {"toolCallId": event.tool_call_id, "toolName": event.tool, "dynamic": True}
        return [{"type": "tool-input-start", **call}, {"type": "tool-input-available", **call, "input": event.args}]

    def _result(self, event: ToolResultEvent) -> list[Payload]:
        call = {"toolCallId": event.tool_call_id, "dynamic": True}
        if event.is_error:
            return [{"type": "tool-output-error", **call, "errorText": event.result}]
        return [{"type": "tool-output-available", **call, "output": event.result}]

    def _other(self, event: AnyAgentEvent) -> list[Payload]:
        found: list[Payload] = self._blocks.close()
        if isinstance(event, PendingEvent):
            approvals = [one for one in event.calls if one.kind == "approval"]
            found += [
                {"type": "tool-approval-request", "approvalId": one.call_id, "toolCallId": one.call_id}
                for one in approvals
            ]
        return [*found, {"type": f"data-{event.type.replace('_', '-')}", "data": _data(event)}]


def _data(event: AnyAgentEvent) -> Any:
    return msgspec.json.decode(encode_event(event))


# ── JSON Lines ────────────────────────────────────────────────────────────────────────────────────────────────


class JsonLines:
    """Each event as it is, on a line of its own; a failure is a last line of type `error`."""

    headers: Mapping[str, str] = {"content-type": "application/jsonl", "cache-control": "no-store"}

    def start(self) -> bytes:
        return b""

    def feed(self, event: AnyAgentEvent) -> bytes:
        return encode_event(event) + b"\n"

    def fail(self, error: str) -> bytes:
        return _encode({"type": "error", "message": error}) + b"\n"

    def finish(self) -> bytes:
        return b""


async def stream_bytes(agent: Agent[Any], opening: Opening, front_end: FrontEnd) -> AsyncGenerator[bytes, None]:
    """A run of the agent in the protocol. Leaving the iteration ends the run."""
    yield front_end.start()
    async with aclosing(agent.run_stream(opening)) as events:
        try:
            async for event in events:
                data = front_end.feed(event)
                if data:
                    yield data
        except DragomanError as error:
            yield front_end.fail(str(error))
            return
    yield front_end.finish()


# ── what front ends send ──────────────────────────────────────────────────────────────────────────────────────


def read_input(protocol: ProtocolName, body: bytes) -> tuple[list[Message], FrontEnd]:
    """The conversation that a front end sends, and how it is answered. Raises `ValueError`."""
    given = msgspec.json.decode(body)
    if not isinstance(given, dict) or not isinstance(given.get("messages"), list):
        raise ValueError("expected an object with messages")  # noqa: TRY004 - the content is wrong, not the call
    try:
        messages = [one for entry in given["messages"] for one in _READERS[protocol](entry)]
    except (AttributeError, TypeError, LookupError, DragomanError) as error:
        raise ValueError(f"messages that cannot be read: {type(error).__name__}: {error}") from None
    if not messages:
        raise ValueError("expected at least one message")
    if protocol == "ag-ui":
        return messages, AgUi(str(given.get("threadId") or ""), str(given.get("runId") or ""))
    return messages, UiMessages() if protocol == "ui-messages" else JsonLines()


def _from_ag_ui(entry: Mapping[str, Any]) -> list[Message]:
    role, content = entry.get("role"), entry.get("content")
    if role == "tool":
        return [Message("tool", (ToolResult(str(entry.get("toolCallId")), "", "text", str(content or "")),))]
    if role not in {"user", "assistant", "system", "developer"}:
        return []  # reasoning and activity are shown, not sent back
    text = content if isinstance(content, str) else "".join(_texts(content or []))
    calls = [
        ToolCall(str(call["id"]), call["function"]["name"], msgspec.json.decode(call["function"]["arguments"] or "{}"))
        for call in entry.get("toolCalls") or []
    ]
    parts = ((Text(text),) if text else ()) + tuple(calls)
    return [Message("system" if role == "developer" else role, parts)] if parts else []


def _from_ui(entry: Mapping[str, Any]) -> list[Message]:
    role = entry.get("role")
    if role not in {"user", "assistant", "system"}:
        return []
    found: list[Message] = []
    for part in entry.get("parts") or []:
        kind = str(part.get("type"))
        if kind == "text" and part.get("text"):
            found.append(Message(role, (Text(part["text"]),)))
        elif kind == "dynamic-tool" or kind.startswith("tool-"):
            found += _ui_call(part, part.get("toolName") or kind.removeprefix("tool-"))
    return found


def _ui_call(part: Mapping[str, Any], name: str) -> list[Message]:
    if "toolCallId" not in part:
        return []
    call = ToolCall(part["toolCallId"], name, part.get("input") or {})
    failed = part.get("errorText")
    value = failed if failed is not None else part.get("output")
    result = ToolResult(call.id, name, "error" if failed is not None else "data", value)
    return [Message("assistant", (call,)), Message("tool", (result,))]


def _texts(parts: list[Any]) -> list[str]:
    return [str(part.get("text") or "") for part in parts if isinstance(part, Mapping) and part.get("type") == "text"]


def _from_lines(entry: Mapping[str, Any]) -> list[Message]:
    return [Message(entry["role"], str(entry.get("content") or ""))]


_READERS: Mapping[ProtocolName, Callable[[Mapping[str, Any]], list[Message]]] = {
    "ag-ui": _from_ag_ui,
    "ui-messages": _from_ui,
    "json-lines": _from_lines,
}


def without_reasoning(message: Message) -> Message:
    """A message as an agent's history takes it from a client: what was shown as reasoning was not its model's."""
    kept = tuple(part for part in message.parts if not isinstance(part, Reasoning))
    return message if len(kept) == len(message.parts) else Message(message.role, kept)
