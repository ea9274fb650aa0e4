"""Reads what front ends send: the conversation, tools that the client runs, and answers to calls that waited."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct

from dragoman.agent.pending import Decision, PendingCall
from dragoman.agent.permissions import Allow, Deny
from dragoman.agent.tools import Tool as AgentTool
from dragoman.agent.tools import check_name, client_tool
from dragoman.errors import DragomanError
from dragoman.ir import Message, Reasoning, Text, ToolCall, ToolDefinition, ToolResult

ProtocolName: TypeAlias = Literal["ag-ui", "ui-messages", "json-lines"]
_DENIED = "the user declined"
NESTED = "dragoman"
"""Key that marks a part of a UI message as a call of a sub-agent, not part of the conversation."""


class Answer(Struct, frozen=True):
    """A client's answer to a call that waited."""

    approved: bool | None = None
    reason: str = ""
    result: ToolResult | None = None

    def decide(self, call: PendingCall) -> Decision:
        """Return the decision. Deny by default: only an explicit approval runs a call, only a result counts as one."""
        if call.kind == "approval":
            return Allow() if self.approved is True else Deny(self.reason or _DENIED)
        return Deny(self.reason or _DENIED) if self.result is None else self.result


class FrontEndInput(Struct, frozen=True, kw_only=True):
    """One request from a front end."""

    messages: list[Message]
    thread: str = ""
    """Identifies the conversation; a paused run is found by it."""
    run: str = ""
    tools: tuple[AgentTool, ...] = ()
    answers: Mapping[str, Answer] = {}
    """By call id."""
    message_id: str = ""
    """Id of the message that the answer continues."""


def read_input(protocol: ProtocolName, body: bytes) -> FrontEndInput:
    """Parse the request of a front end. Raises `ValueError`."""
    given = msgspec.json.decode(body)
    if not isinstance(given, dict) or not isinstance(given.get("messages"), list):
        raise ValueError("expected an object with messages")  # noqa: TRY004 - the content is wrong, not the call
    try:
        found = _READERS[protocol](given)
    except (AttributeError, TypeError, LookupError, DragomanError) as error:
        raise ValueError(f"it cannot be read: {type(error).__name__}: {error}") from None
    if not found.messages and not found.answers:
        raise ValueError("expected at least one message")
    return found


def _client_tools(given: Any) -> tuple[AgentTool, ...]:
    """Return the client's tools, from a list of definitions or a mapping of names to them."""
    if isinstance(given, Mapping):
        given = [{"name": name, **one} for name, one in given.items()]
    found = {}
    for one in given or ():
        check_name(one["name"])
        definition = ToolDefinition(one["name"], one.get("description") or "", one.get("parameters") or _ANYTHING)
        found[definition.name] = client_tool(definition)
    return tuple(found.values())


_ANYTHING = {"type": "object"}


# ── AG-UI ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _from_ag_ui(given: Mapping[str, Any]) -> FrontEndInput:
    messages = [one for entry in given["messages"] for one in _ag_ui_message(entry)]
    answers = {result.tool_call_id: Answer(result=result) for message in messages for result in message.tool_results}
    for entry in given.get("resume") or ():
        answers[str(entry["interruptId"])] = _ag_ui_answer(entry)
    return FrontEndInput(
        messages=messages,
        thread=str(given.get("threadId") or ""),
        run=str(given.get("runId") or ""),
        tools=_client_tools(given.get("tools")),
        answers=answers,
    )


def _ag_ui_answer(entry: Mapping[str, Any]) -> Answer:
    payload = entry.get("payload")
    if entry.get("status") != "resolved":
        return Answer(approved=False, reason="the user cancelled it")
    answer = payload if isinstance(payload, Mapping) else {}
    return Answer(
        approved=payload is True or answer.get("approved") is True,
        reason=str(answer.get("reason") or ""),
        result=_result("", payload),
    )


def _ag_ui_message(entry: Mapping[str, Any]) -> list[Message]:
    role, content = entry.get("role"), entry.get("content")
    if role == "tool":
        call_id, failed = str(entry.get("toolCallId")), entry.get("error")
        value = str(content or "") if failed is None else str(failed)
        return [Message("tool", (ToolResult(call_id, "", "text" if failed is None else "error", value),))]
    if role not in {"user", "assistant", "system", "developer"}:
        return []  # reasoning and activity are shown, not sent back
    if not isinstance(content, str):
        texts = (part for part in content or [] if isinstance(part, Mapping) and part.get("type") == "text")
        content = "".join(str(part.get("text") or "") for part in texts)
    calls = [
        ToolCall(str(call["id"]), call["function"]["name"], msgspec.json.decode(call["function"]["arguments"] or "{}"))
        for call in entry.get("toolCalls") or []
    ]
    parts = ((Text(content),) if content else ()) + tuple(calls)
    return [Message("system" if role == "developer" else role, parts)] if parts else []


# ── Vercel's UI messages ──────────────────────────────────────────────────────────────────────────────────────


def _from_ui(given: Mapping[str, Any]) -> FrontEndInput:
    entries = given["messages"]
    last = entries[-1] if entries and entries[-1].get("role") == "assistant" else {}
    return FrontEndInput(
        messages=[one for entry in entries for one in _ui_messages(entry)],
        thread=str(given.get("id") or ""),
        tools=_client_tools(given.get("tools")),
        answers=dict(_ui_answers(last.get("parts") or ())),
        message_id=str(last.get("id") or ""),
    )


def _ui_messages(entry: Mapping[str, Any]) -> list[Message]:
    role = entry.get("role")
    if role not in {"user", "assistant", "system"}:
        return []
    found: list[Message] = []
    for part in entry.get("parts") or []:
        kind = str(part.get("type"))
        if kind == "text" and part.get("text"):
            found.append(Message(role, (Text(part["text"]),)))
        elif _is_call(part) and NESTED not in (part.get("callProviderMetadata") or {}):
            found += _ui_call(part, part.get("toolName") or kind.removeprefix("tool-"))
    return found


def _is_call(part: Mapping[str, Any]) -> bool:
    kind = str(part.get("type"))
    return (kind == "dynamic-tool" or kind.startswith("tool-")) and "toolCallId" in part


def _ui_call(part: Mapping[str, Any], name: str) -> list[Message]:
    """Return a call, and its result if there is one."""
    call = ToolCall(part["toolCallId"], name, part.get("input") or {})
    result = _ui_result(part)
    if result is None:
        return [Message("assistant", (call,))]
    return [Message("assistant", (call,)), Message("tool", (result,))]


def _ui_result(part: Mapping[str, Any]) -> ToolResult | None:
    state, call_id = part.get("state"), part["toolCallId"]
    if state == "output-denied":
        reason = (part.get("approval") or {}).get("reason")
        return ToolResult(call_id, "", "error", f"it was not permitted: {reason or _DENIED}; it did not run")
    if part.get("errorText") is not None:
        return ToolResult(call_id, "", "error", str(part["errorText"]))
    return _result(call_id, part["output"]) if "output" in part else None


def _ui_answers(parts: Iterable[Mapping[str, Any]]) -> Iterable[tuple[str, Answer]]:
    for part in parts:
        if _is_call(part):
            approval = part.get("approval") or {}
            result = _ui_result(part)
            if result is not None or isinstance(approval.get("approved"), bool):
                reason = str(approval.get("reason") or "")
                yield part["toolCallId"], Answer(approval.get("approved"), reason, result)


# ── JSON Lines ────────────────────────────────────────────────────────────────────────────────────────────────


def _from_lines(given: Mapping[str, Any]) -> FrontEndInput:
    answers = {}
    for call_id, decision in (given.get("decisions") or {}).items():
        result = _result("", decision["result"]) if "result" in decision else None
        answers[call_id] = Answer(decision.get("approved"), str(decision.get("reason") or ""), result)
    return FrontEndInput(
        messages=[_plain_message(entry) for entry in given["messages"]],
        thread=str(given.get("thread") or ""),
        tools=_client_tools(given.get("tools")),
        answers=answers,
    )


def _plain_message(entry: Mapping[str, Any]) -> Message:
    if entry["role"] not in {"user", "assistant", "system"}:
        raise ValueError(f"expected the role user, assistant or system, got {entry['role']!r}")
    return Message(entry["role"], str(entry.get("content") or ""))


def _result(call_id: str, value: Any) -> ToolResult:
    return ToolResult(call_id, "", "text" if isinstance(value, str) else "data", value)


_READERS: Mapping[ProtocolName, Callable[[Mapping[str, Any]], FrontEndInput]] = {
    "ag-ui": _from_ag_ui,
    "ui-messages": _from_ui,
    "json-lines": _from_lines,
}


def without_reasoning(message: Message) -> Message:
    """Return a client's message without reasoning, for an agent's history: its model did not write that reasoning."""
    parts = tuple(part for part in message.parts if not isinstance(part, Reasoning))
    return message if len(parts) == len(message.parts) else Message(message.role, parts)


def opening_of(messages: list[Message]) -> tuple[list[Message], Message | None]:
    """Return (the history, the user's new message)."""
    if messages and messages[-1].role == "user":
        return messages[:-1], messages[-1]
    return messages, None
