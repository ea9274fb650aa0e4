"""Conversations that outlive the program: a log of what happened, and a state to continue from.

The state (messages and tokens) is in SQLite and complete after every message: after a crash, a conversation continues
from the last one. The log is one JSON Lines file per session, only ever appended to. Results are written one by one as
they arrive, and brought together when the session is opened again.
"""

from __future__ import annotations

import os
import re
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import msgspec
from msgspec import Struct

from dragoman.agent.clock import Clock
from dragoman.agent.conversation import is_hidden
from dragoman.agent.events import AnyAgentEvent, NestedEvent, PartialOutputEvent, ReasoningDeltaEvent, TextDeltaEvent
from dragoman.agent.history_repair import heal
from dragoman.agent.token_totals import Account, add_usage
from dragoman.ir import Message, Usage
from dragoman.ir.values import encode_json
from dragoman.private_files import create_private_file, create_private_folder

VERSION = 1
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")
_TABLES = """
create table if not exists sessions (name text primary key, created real not null, updated real not null);
create table if not exists messages (
    session text not null references sessions(name) on delete cascade,
    position integer not null,
    role text not null,
    body blob not null,
    primary key (session, position)
) without rowid;
create table if not exists usage (
    session text not null references sessions(name) on delete cascade,
    model text not null,
    calls integer not null,
    body blob not null,
    primary key (session, model)
) without rowid;
"""
_PASSING = (TextDeltaEvent, ReasoningDeltaEvent, PartialOutputEvent)
"""Transient events: a later event has their whole content."""
_message = msgspec.json.Decoder(Message).decode
_usage = msgspec.json.Decoder(Usage).decode


class SessionInfo(Struct, frozen=True):
    """One row of a list of sessions."""

    name: str
    created: float
    """Seconds since 1970."""
    updated: float
    messages: int
    last_user_message: str


class LogLine(Struct, frozen=True, omit_defaults=True):
    """One line of the log: an event, or the user's message."""

    seq: int
    time: float
    """Milliseconds since 1970."""
    event: AnyAgentEvent | None = None
    message: Message | None = None


class UnknownSession(LookupError):
    """There is no session of that name."""


def default_folder() -> Path:
    base = os.environ.get("XDG_DATA_HOME")
    return (Path(base) if base else Path.home() / ".local" / "share") / "dragoman" / "sessions"


class SessionStore:
    """All sessions in a folder."""

    def __init__(self, folder: str | Path | None = None, *, clock: Clock = Clock()) -> None:  # noqa: B008 - frozen
        self._folder = Path(folder) if folder is not None else default_folder()
        create_private_folder(self._folder)
        create_private_file(self._folder / "sessions.sqlite")
        self._clock = clock
        # Agents of the sync API run in their own thread.
        self._database = sqlite3.connect(
            self._folder / "sessions.sqlite", isolation_level=None, check_same_thread=False, timeout=10
        )
        for pragma in ("journal_mode = wal", "synchronous = normal", "foreign_keys = on"):
            self._database.execute(f"pragma {pragma}")
        self._database.executescript(_TABLES)
        self._lock = threading.Lock()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            self._database.execute("begin immediate")
            try:
                yield self._database
            except BaseException:
                self._database.execute("rollback")
                raise
            self._database.execute("commit")

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        with self._lock:
            return self._database.execute(query, values).fetchall()

    def open(self, name: str) -> Session:
        """Return the session of that name, created if it does not exist."""
        if _NAME.fullmatch(name) is None:
            raise ValueError(f"{name!r} is not a valid session name: use 1 to 100 letters, digits, '.', '_' and '-'")
        now = self._clock.wall()
        with self.transaction() as database:
            database.execute("insert or ignore into sessions values (?, ?, ?)", (name, now, now))
        return Session(name, self, Log(self._folder / f"{name}.jsonl", name, self._clock), self._clock)

    def resume(self, name: str) -> Session:
        if not self.rows("select 1 from sessions where name = ?", name):
            raise UnknownSession(f"there is no session {name!r}")
        return self.open(name)

    def list(self) -> list[SessionInfo]:
        """Return all sessions, newest first."""
        rows = self.rows(
            "select name, created, updated, (select count(*) from messages where session = name) from sessions"
            " order by updated desc, name"
        )
        return [
            SessionInfo(name, began, changed, count, self._last_words(name)) for name, began, changed, count in rows
        ]

    def delete(self, name: str) -> None:
        with self.transaction() as database:
            database.execute("delete from sessions where name = ?", (name,))
        if _NAME.fullmatch(name) is not None:
            (self._folder / f"{name}.jsonl").unlink(missing_ok=True)

    def close(self) -> None:
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def _last_words(self, name: str) -> str:
        rows = self.rows("select body from messages where session = ? and role = 'user' order by position desc", name)
        visible = (message for (body,) in rows if not is_hidden(message := _message(body)))
        return next((message.text for message in visible if message.text), "")


class Session:
    """One conversation on disk. An agent that is given one stores every change in it."""

    def __init__(self, name: str, store: SessionStore, log: Log, clock: Clock) -> None:
        self.name = name
        self._store = store
        self._log = log
        self._clock = clock

    @property
    def messages(self) -> list[Message]:
        """The history. Calls that a killed run left without results are answered by errors."""
        rows = self._store.rows("select body from messages where session = ? order by position", self.name)
        return heal([_message(body) for (body,) in rows])

    @property
    def usage(self) -> dict[str, Account]:
        rows = self._store.rows("select model, calls, body from usage where session = ?", self.name)
        return {model: Account(calls, _usage(body)) for model, calls, body in rows}

    def log(self, last: int | None = None) -> list[LogLine]:
        """Return what happened, in order; with `last`, only that many of the last lines."""
        lines = list(self._log.lines())
        return lines if last is None else lines[max(0, len(lines) - last) :]

    # ── called by the agent ───────────────────────────────────────────────────────────────────────────────────

    def append(self, message: Message) -> None:
        with self._store.transaction() as database:
            self._insert(database, message)
        if message.role == "user":
            self._log.write(message=message)

    def rewrite(self, messages: Sequence[Message]) -> None:
        with self._store.transaction() as database:
            database.execute("delete from messages where session = ?", (self.name,))
            for message in messages:
                self._insert(database, message)

    def log_event(self, event: AnyAgentEvent) -> None:
        if not isinstance(event.event if isinstance(event, NestedEvent) else event, _PASSING):
            self._log.write(event=event)

    def count(self, model: str, usage: Usage) -> None:
        before = self.usage.get(model, Account())
        row = (self.name, model, before.calls + 1, encode_json(add_usage(before.usage, usage)))
        with self._store.transaction() as database:
            database.execute("insert or replace into usage values (?, ?, ?, ?)", row)

    def _insert(self, database: sqlite3.Connection, message: Message) -> None:
        database.execute(
            "insert into messages select ?, coalesce(max(position), -1) + 1, ?, ? from messages where session = ?",
            (self.name, message.role, encode_json(message), self.name),
        )
        database.execute("update sessions set updated = ? where name = ?", (self._clock.wall(), self.name))


class Log:
    """A file of JSON lines. Each line is written at once, so that only the last one can be incomplete."""

    def __init__(self, path: Path, name: str, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        remove_unfinished_line(path)
        self._next = max((line.seq for line in self.lines()), default=0) + 1
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        if os.fstat(self._file).st_size == 0:
            self._write({"session": name, "version": VERSION, "created": clock.milliseconds()})

    def write(self, **fields: Any) -> None:
        self._write(LogLine(self._next, self._clock.milliseconds(), **fields))
        self._next += 1

    def _write(self, line: Any) -> None:
        os.write(self._file, encode_json(line) + b"\n")

    def lines(self) -> Iterator[LogLine]:
        """Yield the lines that this version can read; the header and lines of later versions are skipped."""
        if not self._path.exists():
            return
        with self._path.open("rb") as file:
            for line in file:
                try:
                    yield _log_line(line)
                except msgspec.DecodeError:
                    continue

    def __del__(self) -> None:
        file = self.__dict__.get("_file")
        if file is not None:
            os.close(file)


_log_line = msgspec.json.Decoder(LogLine).decode


def remove_unfinished_line(path: Path) -> int:
    """Remove an unfinished last line. Returns how many bytes it had."""
    if not path.exists():
        return 0
    with path.open("r+b") as file:
        end = file.seek(0, os.SEEK_END)
        place = end
        while place > 0:
            start = max(0, place - 65536)
            file.seek(start)
            newline = file.read(place - start).rfind(b"\n")
            if newline >= 0:
                place = start + newline + 1
                break
            place = start
        file.truncate(place)
    return end - place
