"""One JSON file per conversation, in a folder per user.

Files of the earlier program are read, and stay as they are until they are saved.
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

from dragoman.chat.entries import Conversation, read_conversation, stored
from dragoman.chat.stores.base import (
    DEFAULT_USER,
    AlreadyThere,
    StoredInfo,
    UnknownConversation,
    checked_name,
    default_folder,
    file_stem,
    found_in,
    info_of,
    next_version,
)
from dragoman.chat.stores.earlier import earlier_folders, is_draft, read_document
from dragoman.chat.stores.locks import take_lock

PRIVATE = 0o700
"""Mode of new folders: conversations are private on a shared machine."""


class FileStore:
    """Conversations as files."""

    def __init__(self, folder: str | Path | None = None, user: str = DEFAULT_USER) -> None:
        base = None if folder is None else Path(folder)
        self.folder = (base or default_folder()) / file_stem(user)
        self.folder.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
        self.earlier = tuple(one for one in earlier_folders(base, user) if not one.samefile(self.folder))
        """Folders of the earlier program: read, and written to only to take something away."""
        # By file, with what tells that it has not changed: a list of a thousand conversations is read once.
        self._read: dict[Path, tuple[int, int, Conversation | None]] = {}

    def list(self) -> Sequence[StoredInfo]:
        return _newest_first(info_of(one) for _, one in self._all())

    def load(self, name: str) -> Conversation:
        return self._find(name)[1]

    def save(self, conversation: Conversation, *, replace: bool = False) -> Conversation:
        named = structs.replace(conversation, name=checked_name(conversation.name))
        with self._locked():
            path, old = self._lookup(named.name)
            written = next_version(named, old, replace=replace)
            write_json(path if path.parent == self.folder else self._free(named.name), stored(written))
        return written

    def rename(self, name: str, new: str) -> Conversation:
        target = checked_name(new)
        with self._locked():
            path, old = self._find(name)
            there = self._lookup(target)[1]
            if there is not None and there.name != old.name:
                raise AlreadyThere(f"there is another conversation called {target!r}")
            written = next_version(structs.replace(old, name=target), None, replace=False)
            # Under its new name first: if something goes wrong between the two, it is there twice and not lost.
            place = path if target == old.name else self._free(target)
            write_json(place, stored(written))
            self._remove(old.name, besides=place)
        return written

    def delete(self, name: str) -> None:
        with self._locked():
            self._remove(self._find(name)[1].name)

    def _remove(self, name: str, besides: Path | None = None) -> None:
        """All files of that name: what was saved here, and what it came from."""
        for path, found in list(self._files()):
            if found.name == name and path != besides:
                path.unlink()

    def search(self, words: str) -> Sequence[StoredInfo]:
        found = ((one, found_in(one, words)) for _, one in self._all())
        return _newest_first(info_of(one, excerpt) for one, excerpt in found if excerpt is not None)

    # ── files ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _find(self, name: str) -> tuple[Path, Conversation]:
        path, found = self._lookup(" ".join(name.split()))
        if found is None:
            raise UnknownConversation(f"there is no conversation called {name!r}")
        return path, found

    def _lookup(self, name: str) -> tuple[Path, Conversation | None]:
        """The file of that name; files of the earlier program have names of its own making."""
        path = self.folder / f"{file_stem(name)}.json"
        found = self._conversation(path)
        if found is not None and found.name == name:
            return path, found
        for other, conversation in self._all():
            if conversation.name == name:
                return other, conversation
        return self._free(name), None

    def _free(self, name: str) -> Path:
        """Where it can be written: a file that is not ours, or not readable, is not written over."""
        path = self.folder / f"{file_stem(name)}.json"
        if not path.exists():
            return path
        return next(free for n in range(2, 10_000) if not (free := path.with_stem(f"{path.stem}-{n}")).exists())

    def _all(self) -> Iterator[tuple[Path, Conversation]]:
        """One file of every name: what was saved here stands before what it came from."""
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
        except (OSError, ValueError, RecursionError):  # Unreadable is a ValueError, and so is what is no JSON
            return None
        self._read[path] = (state.st_mtime_ns, state.st_size, found)
        return found

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Holds the lock between reading and writing."""
        with (self.folder / ".lock").open("a") as file:
            take_lock(file, wait=True)
            yield


def _newest_first(rows: Iterable[StoredInfo]) -> list[StoredInfo]:
    return sorted(rows, key=lambda row: (row.updated, row.name), reverse=True)


def write_json(path: Path, document: Any) -> None:
    """All or nothing: written beside, forced to disk, and put in place."""
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
    """For people to read. Half a surrogate, which models sometimes send, is kept as it is."""
    try:
        return msgspec.json.format(msgspec.json.encode(document), indent=1)
    except UnicodeEncodeError:
        return json.dumps(document, ensure_ascii=False, indent=1).encode("utf-8", "surrogatepass")
