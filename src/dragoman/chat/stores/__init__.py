"""Where conversations are kept: files for one machine, SQLite and PostgreSQL for many users."""

from dragoman.chat.stores.base import (
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
    "user_from",
]
