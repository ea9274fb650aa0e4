"""Where conversations are kept: files for one machine, SQLite and PostgreSQL for many users."""

from __future__ import annotations

from pathlib import Path

from dragoman.chat.stores.base import (
    DEFAULT_USER,
    AlreadyThere,
    Changed,
    ConversationStore,
    StoredInfo,
    UnknownConversation,
    default_folder,
    user_from,
)
from dragoman.chat.stores.files import FileStore
from dragoman.chat.stores.sql import SqliteStore, SqlStore

__all__ = [
    "AlreadyThere",
    "Changed",
    "ConversationStore",
    "FileStore",
    "SqlStore",
    "SqliteStore",
    "StoredInfo",
    "UnknownConversation",
    "default_folder",
    "open_store",
    "user_from",
]


def open_store(address: str | None = None, user: str = DEFAULT_USER) -> ConversationStore:
    """None or a folder: files. `sqlite:PATH` or `postgresql://...`: a database."""
    if address is None:
        return FileStore(user=user)
    if address.startswith(("postgresql://", "postgres://")):
        from dragoman.chat.stores.postgres import PostgresStore  # noqa: PLC0415 - needs an extra

        return PostgresStore(address, user)
    if address.startswith("sqlite:"):
        return SqliteStore(address.removeprefix("sqlite:"), user)
    return FileStore(Path(address), user)
