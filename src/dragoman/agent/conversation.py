"""What an agent keeps between runs: history, driver, token totals. Every change is passed on to the session."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from msgspec import Raw, structs

from dragoman.agent.events import AnyAgentEvent
from dragoman.agent.history_repair import heal
from dragoman.agent.result_text import result_text
from dragoman.agent.token_totals import Account, tokens_of
from dragoman.drivers.base import Driver
from dragoman.ir import AnyPart, Message, ToolCall, ToolResult, Usage
from dragoman.ir.values import note

FAMILY = "dragoman"
_BYTES_PER_TOKEN = 4
HIDDEN = "~hidden"
"""Marks a user message that the loop added."""


class Record(Protocol):
    """Stores a conversation as it proceeds (see `sessions`)."""

    def append(self, message: Message) -> None: ...
    def rewrite(self, messages: Sequence[Message]) -> None: ...
    def log_event(self, event: AnyAgentEvent) -> None: ...
    def count(self, model: str, usage: Usage) -> None: ...


class Conversation:
    def __init__(
        self,
        driver: Driver,
        messages: Iterable[Message] = (),
        record: Record | None = None,
        connected: dict[str, Driver] | None = None,
    ) -> None:
        self.driver = driver
        self.connected = {} if connected is None else connected
        """Drivers by the names for which the agent connected them: the agent closes them."""
        self.record = record
        self.accounts: dict[str, Account] = {}
        self.tokens: int | None = None
        """Tokens of the context window that the last request used; None if not known."""
        self._unread = 0
        """Approximate number of bytes added since."""
        self.messages: list[Message] = []
        self._ids: set[str] = set()
        given = tuple(messages)
        self._hold(heal(given))
        if record is not None and self.messages != list(getattr(record, "messages", ())):
            record.rewrite(self.messages)

    def heal(self) -> None:
        healed = heal(self.messages)
        if healed != self.messages:
            self.rewrite(healed)

    def add(self, message: Message) -> Message:
        """Add a message and return it as stored. A call whose id is taken gets a new one: results are paired by id."""
        added = self._with_own_ids(message) if message.role == "assistant" else message
        self.messages.append(added)
        self._unread += len(added.text) if added.role == "user" else 0
        if self.record is not None:
            self.record.append(added)
        return added

    def note_result(self, result: ToolResult) -> None:
        """Store a result as soon as it arrives, so that it survives a crash of the program."""
        if self.record is not None:
            self.record.append(Message("tool", (result,)))

    def add_results(self, results: Sequence[ToolResult]) -> None:
        """Add all results of a turn as one message; each has already been noted."""
        self.messages.append(Message("tool", tuple(results)))
        self._unread += sum(len(result_text(one)) for one in results)

    @property
    def fill(self) -> int | None:
        """Estimated tokens of the window that the next request will use: those counted, and what was added since."""
        return None if self.tokens is None else self.tokens + self._unread // _BYTES_PER_TOKEN

    def rewrite(self, messages: Sequence[Message]) -> None:
        self._hold(messages)
        if self.record is not None:
            self.record.rewrite(self.messages)

    def count(self, model: str, usage: Usage) -> None:
        self.accounts[model] = self.accounts.get(model, Account()).plus(usage)
        self.tokens = tokens_of(usage)
        self._unread = 0
        if self.record is not None:
            self.record.count(model, usage)

    def count_nested(self, model: str, usage: Usage) -> None:
        """Count tokens of another conversation that this one started: they use none of its window."""
        self.accounts[model] = self.accounts.get(model, Account()).plus(usage)
        if self.record is not None:
            self.record.count(model, usage)

    def reopen(self, waiting: frozenset[str]) -> tuple[tuple[ToolCall, ...], tuple[ToolResult, ...]]:
        """Remove the results of calls that waited. Returns (the calls of the last turn, the results that stay)."""
        calls, results = self.messages[-2].tool_calls, self.messages[-1].tool_results
        settled = tuple(one for one in results if one.tool_call_id not in waiting)
        before = self.messages[:-1]
        if self.record is not None:
            self.record.rewrite([*before, Message("tool", settled)] if settled else before)
        self.messages = before
        return calls, settled

    def log_event(self, event: AnyAgentEvent) -> None:
        if self.record is not None:
            self.record.log_event(event)

    def _hold(self, messages: Sequence[Message]) -> None:
        self.messages = list(messages)
        self._ids = {call.id for message in self.messages for call in message.tool_calls}

    def _with_own_ids(self, message: Message) -> Message:
        calls = message.tool_calls
        if not calls:
            return message
        parts: list[AnyPart] = []
        for part in message.parts:
            if isinstance(part, ToolCall):
                fresh = self._make_fresh_id(part.id)
                self._ids.add(fresh)
                parts.append(part if fresh == part.id else structs.replace(part, id=fresh))
            else:
                parts.append(part)
        return structs.replace(message, parts=tuple(parts))

    def _make_fresh_id(self, call_id: str) -> str:
        fresh, repetition = call_id, 1
        while fresh in self._ids:
            repetition += 1
            fresh = f"{call_id}_{repetition}"
        return fresh


def make_hidden_message(text: str) -> Message:
    return Message("user", text, metadata={FAMILY: {HIDDEN: Raw(b"true")}})


def is_hidden(message: Message) -> bool:
    return note(message.metadata, FAMILY, HIDDEN) is True
