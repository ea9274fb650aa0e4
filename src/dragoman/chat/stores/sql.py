"""Conversations in a database, for many users: SQLite here, PostgreSQL in `postgres`.

Documents are the same as in files. Both databases implement `Database`: run a statement with `?` for its values,
within a transaction.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from threading import RLock
from typing import Any, Protocol

import msgspec
from msgspec import structs

from dragoman.chat.entries import Conversation, read_conversation, to_document
from dragoman.chat.stores.base import (
    DEFAULT_USER,
    AlreadyThere,
    StoredInfo,
    UnknownConversation,
    check_name,
    excerpt_of,
    info_of,
    next_version,
    search_text,
)
from dragoman.private_files import create_private_file, create_private_folder

# `info` is the row shown in lists, so that lists read no documents; `folded` is the text that searches look through.
TABLES = (
    """create table if not exists conversations (
        owner text not null, name text not null, updated text not null, info text not null, folded text not null,
        document text not null, primary key (owner, name)
    )""",
    "create index if not exists conversations_by_time on conversations (owner, updated)",
)


class Database(Protocol):
    """The interface between the store and a database."""

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Runs a statement and returns its rows, if any."""
        ...

    def transaction(self, owner: str) -> AbstractContextManager[None]:
        """A transaction that holds the lock on this owner's conversations."""
        ...

    def close(self) -> None: ...


class SqlStore:
    """The conversations of one user in a shared database."""

    def __init__(self, database: Database, user: str = DEFAULT_USER) -> None:
        self._database = database
        self._user = user
        with database.transaction(""):
            for statement in TABLES:
                database.rows(statement)

    def list(self) -> Sequence[StoredInfo]:
        statement = "select info from conversations where owner = ? order by updated desc, name desc"
        return [msgspec.json.decode(info, type=StoredInfo) for (info,) in self._rows(statement)]

    def load(self, name: str) -> Conversation:
        found = self._lookup(" ".join(name.split()))
        if found is None:
            raise UnknownConversation(f"there is no conversation named {name!r}")
        return found

    def save(self, conversation: Conversation, *, replace: bool = False) -> Conversation:
        named = structs.replace(conversation, name=check_name(conversation.name))
        with self._database.transaction(self._user):
            written = next_version(named, self._lookup(named.name), replace=replace)
            self._write(written)
        return written

    def rename(self, name: str, new: str) -> Conversation:
        with self._database.transaction(self._user):
            old = self.load(name)
            target = check_name(new)
            if target != old.name and self._lookup(target) is not None:
                raise AlreadyThere(f"there is another conversation named {target!r}")
            written = next_version(structs.replace(old, name=target), None, replace=False)
            self._remove(old.name)
            self._write(written)
        return written

    def delete(self, name: str) -> None:
        with self._database.transaction(self._user):
            self._remove(self.load(name).name)

    def search(self, words: str) -> Sequence[StoredInfo]:
        wanted = words.casefold().split()
        if not wanted:
            return []
        tests = " ".join("and folded like ? escape '!'" for _ in wanted)
        statement = f"select document from conversations where owner = ? {tests} order by updated desc, name desc"  # noqa: S608 - only placeholders
        found = [_read(document) for (document,) in self._rows(statement, *map(_pattern, wanted))]
        return [info_of(one, excerpt_of(one, words) or "") for one in found]

    def close(self) -> None:
        self._database.close()

    def _rows(self, statement: str, *values: str) -> Sequence[tuple[Any, ...]]:
        """Runs a statement for this user."""
        return self._database.rows(statement, (self._user, *values))

    def _lookup(self, name: str) -> Conversation | None:
        rows = self._rows("select document from conversations where owner = ? and name = ?", name)
        return _read(rows[0][0]) if rows else None

    def _write(self, conversation: Conversation) -> None:
        info = msgspec.json.encode(info_of(conversation)).decode()
        self._rows(
            "insert into conversations (owner, name, updated, info, folded, document) values (?, ?, ?, ?, ?, ?) "
            "on conflict (owner, name) do update set updated = excluded.updated, info = excluded.info, "
            "folded = excluded.folded, document = excluded.document",
            conversation.name,
            conversation.updated,
            info,
            _storable(search_text(conversation).casefold()),
            _document(conversation),
        )

    def _remove(self, name: str) -> None:
        self._rows("delete from conversations where owner = ? and name = ?", name)


def _read(document: str) -> Conversation:
    return read_conversation(json.loads(document))


def _document(conversation: Conversation) -> str:
    """JSON text; escaped if it has lone surrogates, which databases refuse."""
    document = to_document(conversation)
    text = json.dumps(document, ensure_ascii=False)
    return text if _storable(text) == text else json.dumps(document)


def _storable(text: str) -> str:
    return text.encode("utf-8", "replace").decode().replace("\0", " ")


def _pattern(word: str) -> str:
    escaped = _storable(word).replace("!", "!!").replace("%", "!%").replace("_", "!_")
    return f"%{escaped}%"


class Sqlite:
    """SQLite as the database. One connection, used by one thread at a time."""

    def __init__(self, path: str | Path) -> None:
        if str(path) != ":memory:":
            create_private_folder(Path(path).parent)
            create_private_file(Path(path))
        self._turn = RLock()
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=10)
        self._connection.execute("pragma journal_mode = wal")

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with self._turn:
            return self._connection.execute(statement, tuple(values)).fetchall()

    @contextmanager
    def transaction(self, owner: str) -> Iterator[None]:
        del owner  # one writer at a time, for all owners
        with self._turn:
            self._connection.execute("begin immediate")
            try:
                yield
            except BaseException:
                self._connection.execute("rollback")
                raise
            self._connection.execute("commit")

    def close(self) -> None:
        self._connection.close()


class SqliteStore(SqlStore):
    def __init__(self, path: str | Path, user: str = DEFAULT_USER) -> None:
        super().__init__(Sqlite(path), user)
