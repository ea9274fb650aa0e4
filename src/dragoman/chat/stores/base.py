"""The interface of conversation stores. Users choose the names; each store maps them to files or rows."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from msgspec import Struct, structs

from dragoman.chat.entries import Conversation, now
from dragoman.chat.history import content_to_text

DEFAULT_USER = "default"
_UNSAFE = re.compile(r"[^a-z0-9._-]+")
_LONGEST = 60
_DEVICES = frozenset({"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(1, 10))})
_RESERVED = _DEVICES | {"_autosave"}  # the draft of the earlier program
_SUMMED = re.compile(r"-[0-9a-f]{8}$")
"""A name that already ends like a checksum gets one too, so that two names never share a file."""


class UnknownConversation(LookupError):
    """There is no conversation with this name."""


class AlreadyThere(ValueError):
    """Another conversation has that name."""


class Changed(ValueError):
    """Another writer saved it in the meantime."""


class StoredInfo(Struct, frozen=True):
    """One row of a list."""

    name: str
    id: str
    created: str
    updated: str
    entries: int
    models: tuple[str, ...] = ()
    excerpt: str = ""
    """Text around the first match of a search."""


class ConversationStore(Protocol):
    """The conversations of one user."""

    def list(self) -> Sequence[StoredInfo]:
        """Newest first."""
        ...

    def load(self, name: str) -> Conversation: ...

    def save(self, conversation: Conversation, *, replace: bool = False) -> Conversation:
        """Saves atomically under the conversation's name; returns what was saved, with its new revision.

        Raises `AlreadyThere` for the name of another conversation unless `replace`, and `Changed` when it was saved by
        another writer since it was read.
        """
        ...

    def rename(self, name: str, new: str) -> Conversation: ...
    def delete(self, name: str) -> None: ...
    def search(self, words: str) -> Sequence[StoredInfo]: ...


def next_version(new: Conversation, old: Conversation | None, *, replace: bool) -> Conversation:
    """The conversation to write, given the stored one."""
    if old is not None and not replace:
        if old.id != new.id:
            raise AlreadyThere(f"there is another conversation named {new.name!r}")
        if old.revision != new.revision:
            raise Changed(f"{new.name!r} was changed elsewhere in the meantime")
    created = (old.created if old is not None else "") or new.created or now()
    before = new.revision if old is None else max(old.revision, new.revision)
    return structs.replace(new, created=created, updated=now(), revision=before + 1)


def check_name(name: str) -> str:
    trimmed = " ".join(name.split())
    if not trimmed or trimmed in {".", ".."} or not trimmed.isprintable():
        raise ValueError(f"{name!r} is not a valid name for a conversation")
    return trimmed


def file_stem(name: str) -> str:
    """A name as a file name that is valid on every system; a checksum is added if it had to be changed.

    >>> file_stem("notes"), file_stem("Notes!"), file_stem("notes?")
    ('notes', 'notes_-6565c38c', 'notes_-947e94ee')
    """
    safe = _UNSAFE.sub("_", name.lower())[:_LONGEST].strip(".")
    if safe == name and safe not in _RESERVED and _SUMMED.search(safe) is None:
        return safe
    return f"{safe or '_'}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def info_of(conversation: Conversation, excerpt: str = "") -> StoredInfo:
    return StoredInfo(
        conversation.name,
        conversation.id,
        conversation.created,
        conversation.updated,
        len(conversation.entries),
        conversation.models,
        excerpt,
    )


_AROUND = 40


def excerpt_of(conversation: Conversation, words: str) -> str | None:
    """Text around the first word, if the conversation contains all words. Case does not matter."""
    wanted = words.casefold().split()
    text = search_text(conversation)
    folded = text.casefold()
    if not wanted or not all(word in folded for word in wanted):
        return None
    place = folded.find(wanted[0])
    piece = text[max(0, place - _AROUND) : place + _AROUND]
    return " ".join(piece.split())


def search_text(conversation: Conversation) -> str:
    """The text that a search looks through: the name and all entries, including tools."""
    texts = (content_to_text(entry.content, include_tool_data=True) for entry in conversation.entries)
    return "\n".join([conversation.name, *texts])


def default_folder(environment: Mapping[str, str] | None = None) -> Path:
    """`CHAT_HISTORY_DIR`, or a folder in the XDG data directory."""
    known = os.environ if environment is None else environment
    if known.get("CHAT_HISTORY_DIR"):
        return Path(known["CHAT_HISTORY_DIR"])
    base = known.get("XDG_DATA_HOME")
    return (Path(base) if base else Path.home() / ".local" / "share") / "dragoman" / "chat"


def user_from(environment: Mapping[str, str] | None = None) -> str:
    known = os.environ if environment is None else environment
    return known.get("CHAT_HISTORY_USER_ID") or DEFAULT_USER
