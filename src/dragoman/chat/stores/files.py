"""Conversations as files: one JSON file each, in a folder per user.

Files of the earlier program are read, and unchanged until they are saved.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
from msgspec import structs

from dragoman.chat.entries import Conversation, read_conversation, to_document
from dragoman.chat.stores.base import (
    DEFAULT_USER,
    AlreadyThere,
    StoredInfo,
    UnknownConversation,
    check_name,
    default_folder,
    excerpt_of,
    file_stem,
    info_of,
    next_version,
)
from dragoman.chat.stores.earlier import earlier_folders, is_draft, read_document
from dragoman.file_locks import take_lock

PRIVATE = 0o700
"""Mode of new folders: conversations are private on a shared machine."""


class FileStore:
    """Conversations as files."""

    def __init__(self, folder: str | Path | None = None, user: str = DEFAULT_USER) -> None:
        base = None if folder is None else Path(folder)
        self.folder = (base or default_folder()) / file_stem(user)
        self.folder.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
        self.earlier = tuple(one for one in earlier_folders(base, user) if not one.samefile(self.folder))
        """Folders of the earlier program: files are only read or deleted there."""
        # Cache by file and its modification state, so that a list of a thousand conversations is read once.
        self._read: dict[Path, tuple[int, int, Conversation | None]] = {}

    def list(self) -> Sequence[StoredInfo]:
        return _newest_first(info_of(one) for _, one in self._one_per_name())

    def load(self, name: str) -> Conversation:
        return self._find(name)[1]

    def save(self, conversation: Conversation, *, replace: bool = False) -> Conversation:
        named = structs.replace(conversation, name=check_name(conversation.name))
        with self._lock():
            path, old = self._lookup(named.name)
            written = next_version(named, old, replace=replace)
            self._write(path if path.parent == self.folder else self._free_path(named.name), written)
        return written

    def _write(self, path: Path, conversation: Conversation) -> None:
        """Write the file, and remember what it contains: the next save compares with it and need not read it again."""
        write_json(path, to_document(conversation))
        state = path.stat()  # no other program writes it: the folder is locked
        self._read[path] = (state.st_mtime_ns, state.st_size, conversation)

    def rename(self, name: str, new: str) -> Conversation:
        target = check_name(new)
        with self._lock():
            path, old = self._find(name)
            target_file = self._lookup(target)[1]
            if target_file is not None and target_file.name != old.name:
                raise AlreadyThere(f"there is another conversation named {target!r}")
            written = next_version(structs.replace(old, name=target), None, replace=False)
            # Write the new name first: a failure between the two steps leaves two copies instead of none.
            place = path if target == old.name else self._free_path(target)
            self._write(place, written)
            self._remove(old.name, besides=place)
        return written

    def delete(self, name: str) -> None:
        with self._lock():
            self._remove(self._find(name)[1].name)

    def _remove(self, name: str, besides: Path | None = None) -> None:
        """Deletes all files of this name, including those of the earlier program."""
        for path, found in list(self._files()):
            if found.name == name and path != besides:
                path.unlink()
                self._read.pop(path, None)  # otherwise it would stay in memory

    def search(self, words: str) -> Sequence[StoredInfo]:
        found = ((one, excerpt_of(one, words)) for _, one in self._one_per_name())
        return _newest_first(info_of(one, excerpt) for one, excerpt in found if excerpt is not None)

    @property
    def size(self) -> int:
        """The bytes of all conversations."""
        size = 0
        for path in self.folder.glob("*.json"):
            with suppress(FileNotFoundError):  # another program has just deleted it
                size += path.stat().st_size
        return size

    # ── files ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _find(self, name: str) -> tuple[Path, Conversation]:
        path, found = self._lookup(" ".join(name.split()))
        if found is None:
            raise UnknownConversation(f"there is no conversation named {name!r}")
        return path, found

    def _lookup(self, name: str) -> tuple[Path, Conversation | None]:
        """The file of this name; the earlier program named files in its own way."""
        path = self.folder / f"{file_stem(name)}.json"
        found = self._conversation(path)
        if found is not None and found.name == name:
            return path, found
        for other, conversation in self._one_per_name():
            if conversation.name == name:
                return other, conversation
        return self._free_path(name), None

    def _free_path(self, name: str) -> Path:
        """A path to write to: never overwrites a file that is not ours or not readable."""
        path = self.folder / f"{file_stem(name)}.json"
        if not path.exists():
            return path
        return next(free for n in range(2, 10_000) if not (free := path.with_stem(f"{path.stem}-{n}")).exists())

    def _one_per_name(self) -> Iterator[tuple[Path, Conversation]]:
        """One file per name: ours takes precedence over the earlier program's."""
        seen: set[str] = set()
        for path, found in self._files():
            if found.name not in seen or path.parent == self.folder:
                seen.add(found.name)
                yield path, found

    def _files(self) -> Iterator[tuple[Path, Conversation]]:
        for folder in (self.folder, *self.earlier):
            for path in sorted(folder.glob("*.json")):
                found = None if path.name.startswith(".") else self._conversation(path)
                if found is not None:
                    yield path, found

    def _conversation(self, path: Path) -> Conversation | None:
        try:
            state = path.stat()
            known = self._read.get(path)
            if known is not None and known[:2] == (state.st_mtime_ns, state.st_size):
                return known[2]
            document = read_document(path)
            found = None if is_draft(path, document) else read_conversation(document, name=path.stem)
        except (OSError, ValueError, RecursionError):  # Unreadable and invalid JSON are both ValueErrors
            return None
        self._read[path] = (state.st_mtime_ns, state.st_size, found)
        return found

    @contextmanager
    def _lock(self) -> Iterator[None]:
        """Holds the lock of the folder between reading and writing."""
        with (self.folder / ".lock").open("a") as file:
            take_lock(file, wait=True)
            yield


def _newest_first(rows: Iterable[StoredInfo]) -> list[StoredInfo]:
    return sorted(rows, key=lambda row: (row.updated, row.name), reverse=True)


def write_json(path: Path, document: Any) -> None:
    """Writes atomically: to a temporary file, synced to disk, then renamed."""
    body = _json(document)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem[:40]}.", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(body)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(temporary).unlink()
        raise


def _json(document: Any) -> bytes:
    """Indented JSON. Lone surrogates, which models sometimes send, are kept."""
    try:
        return msgspec.json.format(msgspec.json.encode(document), indent=1)
    except UnicodeEncodeError:
        return json.dumps(document, ensure_ascii=False, indent=1).encode("utf-8", "surrogatepass")
