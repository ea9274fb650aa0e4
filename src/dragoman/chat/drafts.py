"""What has not been saved, kept all the same: a draft per running program, offered again when the program died.

A draft is a snapshot of the conversation, and a journal of the answers that are under way: every piece of text is
appended as it is shown, so a program that is killed loses nothing of it. A lock that dies with the program tells the
drafts of those that live from those that were left behind.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from msgspec import Struct, structs

from dragoman.chat.answers import Tail
from dragoman.chat.entries import Conversation, Entry, new_id, read_conversation, read_entries, stored
from dragoman.chat.stores.earlier import DRAFT, read_document
from dragoman.chat.stores.files import PRIVATE, write_json
from dragoman.chat.stores.locks import take_lock

INTERRUPTED = "the program ended before the answer did"


class LeftDraft(Struct, frozen=True):
    """A draft that has been given up."""

    path: Path
    conversation: Conversation
    updated: float
    """Seconds since 1970."""


class Draft:
    """The draft of this program. Nothing is on disk before the first snapshot."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / ".drafts" / f"{new_id()}.json"
        self._journal: IO[bytes] | None = None

    def snapshot(self, conversation: Conversation, *, running: bool) -> None:
        if self._journal is None:
            self._path.parent.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
            self._journal = _locked_file(self._path.with_suffix(".jsonl"))
        write_json(self._path, stored(conversation))
        if not running:  # what other answers have said so far is in the journal only
            self._journal.truncate(0)

    def note(self, line: dict[str, Any]) -> None:
        if self._journal is not None:
            body = json.dumps(line, ensure_ascii=False).encode("utf-8", "surrogatepass")
            os.write(self._journal.fileno(), body + b"\n")

    def discard(self) -> None:
        """Everything is saved, or not wanted."""
        for path in (self._path, self._path.with_suffix(".jsonl")):
            path.unlink(missing_ok=True)
        self.leave()

    def leave(self) -> None:
        """Ends without a decision: the next session is offered the draft."""
        if self._journal is not None:
            self._journal.close()
            self._journal = None


def _locked_file(path: Path) -> IO[bytes]:
    file = path.open("ab", buffering=0)
    take_lock(file)
    return file


def left_drafts(folder: Path, earlier: Sequence[Path] = ()) -> list[LeftDraft]:
    """Drafts of programs that did not end well, the newest first. Those that cannot be read are passed over.

    `earlier` are folders of the earlier program, which kept one draft per user and never offered it.
    """
    paths = [*(folder / ".drafts").glob("*.json"), *(one / DRAFT for one in (folder, *earlier))]
    found = [draft for path in paths if (draft := _left(path)) is not None]
    return sorted(found, key=lambda draft: draft.updated, reverse=True)


def discard(draft: LeftDraft) -> None:
    draft.path.unlink(missing_ok=True)
    draft.path.with_suffix(".jsonl").unlink(missing_ok=True)


def _left(path: Path) -> LeftDraft | None:
    if path.name.startswith(".") or _is_kept(path.with_suffix(".jsonl")):
        return None
    try:
        conversation = read_conversation(read_document(path))
        journal = list(_lines(path.with_suffix(".jsonl")))
        updated = path.stat().st_mtime
    except (OSError, ValueError, RecursionError):
        return None
    whole = with_journal(conversation, journal)
    return LeftDraft(path, whole, updated) if whole.entries else None


def _is_kept(journal: Path) -> bool:
    if not journal.exists():
        return False
    with journal.open("rb") as file:
        return not take_lock(file)


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    """A last line that was not finished is left out."""
    if path.exists():
        for line in path.read_bytes().split(b"\n"):
            with suppress(ValueError):
                found = json.loads(line)
                if isinstance(found, dict) and found.get("answer"):
                    yield found


class _Rest:
    """An answer as far as the journal tells it."""

    def __init__(self, line: dict[str, Any]) -> None:
        self.entries: dict[str, Any] = {}
        self.tail = Tail()
        self.head = line

    def add(self, line: dict[str, Any]) -> None:
        if "entry" in line:
            if line["entry"].get("role") != "tool":
                self.tail.clear()
            self.entries[line["entry"].get("id")] = line["entry"]
        else:
            self.tail.add(line["kind"], line["text"])

    def finished(self) -> list[Entry]:
        entries = list(read_entries(self.entries.values()))
        entries.append(
            Entry(
                role=self.head["model"],
                content=self.tail.parts,
                answer=self.head["answer"],
                status="interrupted",
                error=INTERRUPTED,
            )
        )
        return [structs.replace(entry, turn=self.head["turn"]) for entry in entries]


def with_journal(conversation: Conversation, lines: list[dict[str, Any]]) -> Conversation:
    """The conversation with what the journal has beyond it, marked as interrupted."""
    ended = {entry.answer for entry in conversation.entries}
    rests: dict[str, _Rest] = {}
    for line in lines:
        if line["answer"] not in ended:
            rests.setdefault(line["answer"], _Rest(line)).add(line)
    more = [entry for rest in rests.values() for entry in rest.finished()]
    return structs.replace(conversation, entries=(*conversation.entries, *more)) if more else conversation
