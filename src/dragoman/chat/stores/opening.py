"""A store by its address."""

from __future__ import annotations

from pathlib import Path

from dragoman.chat.stores.base import DEFAULT_USER, ConversationStore
from dragoman.chat.stores.files import FileStore
from dragoman.chat.stores.sql import SqliteStore


def open_store(address: str | None = None, user: str = DEFAULT_USER) -> ConversationStore:
    """Nothing or a folder: files. `sqlite:PATH` and `postgresql://...`: databases."""
    if address is None:
        return FileStore(user=user)
    if address.startswith(("postgresql://", "postgres://")):
        from dragoman.chat.stores.postgres import PostgresStore  # noqa: PLC0415 - needs an extra

        return PostgresStore(address, user)
    if address.startswith("sqlite:"):
        return SqliteStore(address.removeprefix("sqlite:"), user)
    return FileStore(Path(address), user)
