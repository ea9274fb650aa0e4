"""Where whole outputs are kept: in memory, or in a SQLite file."""

from __future__ import annotations

import sqlite3
import threading
from collections import OrderedDict
from pathlib import Path
from typing import Protocol

from dragoman.private_files import create_private_file


class OutputStore(Protocol):
    @property
    def blocks(self) -> bool:
        """Whether it accesses a disk or a network, and should be called from a thread."""
        ...

    def save(self, reference: str, text: str) -> None: ...
    def load(self, reference: str) -> str | None: ...


class MemoryStore:
    """Keeps the newest outputs, up to a total number of bytes."""

    blocks = False

    def __init__(self, capacity: int = 64 * 1024 * 1024) -> None:
        self._capacity = capacity
        self._size = 0
        self._texts: OrderedDict[str, str] = OrderedDict()

    def save(self, reference: str, text: str) -> None:
        self._size += len(text) - len(self._texts.pop(reference, ""))
        self._texts[reference] = text
        while self._size > self._capacity and len(self._texts) > 1:
            _, oldest = self._texts.popitem(last=False)
            self._size -= len(oldest)

    def load(self, reference: str) -> str | None:
        return self._texts.get(reference)


class SqliteStore:
    """Keeps outputs after the program ends. Texts are stored as bytes, so that SQLite cannot reject any content."""

    blocks = True

    def __init__(self, path: str | Path) -> None:
        self._lock = threading.Lock()
        if str(path) != ":memory:":
            create_private_file(Path(path))
        self._database = sqlite3.connect(path, check_same_thread=False, timeout=10)
        with self._lock, self._database:
            self._database.execute("pragma journal_mode = wal")
            self._database.execute("create table if not exists outputs (reference text primary key, text blob)")

    def save(self, reference: str, text: str) -> None:
        data = text.encode("utf-8", "surrogatepass")
        with self._lock, self._database:
            self._database.execute("insert or replace into outputs values (?, ?)", (reference, data))

    def load(self, reference: str) -> str | None:
        with self._lock:
            found = self._database.execute("select text from outputs where reference = ?", (reference,)).fetchone()
        return None if found is None else bytes(found[0]).decode("utf-8", "surrogatepass")

    def close(self) -> None:
        with self._lock:
            self._database.close()
