"""One answer of one model while it streams in: finished entries, unfinished text, and how it ended."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Protocol

import msgspec
from msgspec import structs

from dragoman.agent import (
    Agent,
    AnyAgentEvent,
    FinalEvent,
    ReasoningDeltaEvent,
    TextDeltaEvent,
    UsageEvent,
)
from dragoman.chat.entries import Entry, Part, Status, entry_document, new_id, now
from dragoman.chat.participants import Participant
from dragoman.chat.tokens import ESTIMATED, count_entry, counter_of, estimate
from dragoman.chat.views import content_of
from dragoman.drivers.base import Driver, QueryResult, StreamResult
from dragoman.ir import Message, Usage

NO_ANSWER = "the model gave no answer"
REFUSED = "the model declined to answer"
CUT = "the answer reached its token limit"
STOPPED = "stopped by the user"


class Journal(Protocol):
    """Log of an answer as it streams in, so that a killed program loses nothing that was shown."""

    def note(self, line: dict[str, Any]) -> None: ...


class Tail:
    """Text and reasoning of the model's current turn that are not part of a finished message yet."""

    def __init__(self) -> None:
        self._parts: list[tuple[str, list[str]]] = []

    def add(self, kind: str, text: str) -> None:
        if not self._parts or self._parts[-1][0] != kind:
            self._parts.append((kind, []))
        self._parts[-1][1].append(text)

    def clear(self) -> None:
        self._parts.clear()

    @property
    def parts(self) -> list[Part]:
        return [{"type": kind, "content": "".join(pieces)} for kind, pieces in self._parts]


class LiveAnswer:
    """Follows an agent's run as its `Record` (see `dragoman.agent.conversation.Record`)."""

    def __init__(self, participant: Participant, turn: str, journal: Journal | None = None, replaces: str = "") -> None:
        self.id = new_id()
        self.participant = participant
        self.turn = turn
        self.replaces = replaces
        self.entries: list[Entry] = []
        self.messages: tuple[Message, ...] = ()
        self.tail = Tail()
        self.agent: Agent | None = None
        self.task: asyncio.Task[None] | None = None
        self.stopped = False
        self.final = ""
        self.usage: Usage | None = None
        """Usage of the last model call."""
        self.counted = 0
        """Our token count of the first request."""
        self._journal = journal

    @property
    def name(self) -> str:
        return self.participant.name

    def stop(self) -> None:
        self.stopped = True
        if self.agent is not None:
            self.agent.cancel()
        elif self.task is not None:
            self.task.cancel()

    def so_far(self) -> list[Entry]:
        """Entries received so far; the last one may be unfinished."""
        rest = self.tail.parts
        return [*self.entries, self._entry(self.name, rest)] if rest else list(self.entries)

    # ── called by the agent ───────────────────────────────────────────────────────────────────────────────────

    def append(self, message: Message) -> None:
        if message.role == "user":
            return
        if message.role == "tool" and self.entries and self.entries[-1].role == "tool":
            last = self.entries.pop()
            entry = structs.replace(last, content=[*last.content, *content_of(message)])
        else:
            role, owner = ("tool", self.name) if message.role == "tool" else (self.name, "")
            entry = self._entry(role, content_of(message), owner)
            self.tail.clear()
        self.entries.append(entry)
        self._note({"entry": entry_document(entry)})

    def rewrite(self, messages: Sequence[Message]) -> None:
        """Ignored: the agent rewrites its own copy of the history, and the conversation stays as it is."""

    def log_event(self, event: AnyAgentEvent) -> None:
        if isinstance(event, TextDeltaEvent | ReasoningDeltaEvent):
            kind = "text" if isinstance(event, TextDeltaEvent) else "reasoning"
            self.tail.add(kind, event.content)
            self._note({"kind": kind, "text": event.content})
        elif isinstance(event, UsageEvent):
            self.usage = event.usage
        elif isinstance(event, FinalEvent):
            self.final = event.content

    def count(self, model: str, usage: Usage) -> None:
        """Ignored: usage also arrives as an event."""

    def _note(self, line: dict[str, Any]) -> None:
        if self._journal is not None:
            self._journal.note({"answer": self.id, "turn": self.turn, "model": self.name, **line})

    def _entry(self, role: str, content: list[Part], owner: str = "") -> Entry:
        return Entry(
            role=role,
            content=content,
            turn=self.turn,
            answer=self.id,
            owner=owner,
            model=self.participant.model,
            time=now(),
        )

    # ── the end ───────────────────────────────────────────────────────────────────────────────────────────────

    def finish(self, status: Status, error: str = "") -> tuple[Entry, ...]:
        """Returns all entries. The last one holds the status; an empty one is added if no entry can hold it."""
        entries = self.so_far()
        if not entries or (status != "ok" and entries[-1].role == "tool"):
            entries.append(self._entry(self.name, []))
        usage = {} if self.usage is None else {**usage_fields(self.usage), ESTIMATED: self._count_sent(entries)}
        entries[-1] = structs.replace(entries[-1], status=status, error=error, usage=usage)
        return tuple(entries)

    def _count_sent(self, entries: Sequence[Entry]) -> int:
        """Our token count of the last request: the first request, and all entries before the last answer."""
        counter = counter_of(self.participant.model) or estimate
        return self.counted + sum(count_entry(entry, counter) for entry in entries[:-1])

    def judge(self, last: QueryResult | None) -> tuple[Status, str]:
        """Status and error text of an answer that did not raise."""
        entry = self.entries[-1] if self.entries else None
        if last is not None and last.finish_reason == "content_filter":
            return "refused", REFUSED
        if entry is not None and entry.role == "tool":  # a tool, or a denied permission, ended the run
            return "stopped", self.final
        if last is not None and last.message.refusal is not None:
            return "refused", REFUSED
        if last is not None and last.finish_reason == "length":
            return "cut", CUT
        return ("ok", "") if entry is not None and entry.text.strip() else ("empty", NO_ANSWER)


def usage_fields(usage: Usage) -> dict[str, Any]:
    known: dict[str, Any] = msgspec.to_builtins(structs.replace(usage, metadata=None))
    return {name: value for name, value in known.items() if value is not None}


class LastAnswerDriver:
    """A driver that remembers its last answer, because the agent does not report how it ended."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._stream: StreamResult | None = None

    @property
    def name(self) -> str:
        return self._driver.name

    # Same parameters as the wrapped driver.

    async def query(self, *arguments: Any, **settings: Any) -> QueryResult:
        return await self._driver.query(*arguments, **settings)

    def stream_query(self, *arguments: Any, **settings: Any) -> StreamResult:
        self._stream = self._driver.stream_query(*arguments, **settings)
        return self._stream

    async def close(self) -> None:
        await self._driver.close()

    async def last(self) -> QueryResult | None:
        return None if self._stream is None else await self._stream.result
