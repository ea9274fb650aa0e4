"""Drafts of unsaved conversations: one per running program, offered again if the program died.

A draft is a snapshot of the conversation and a journal of the answers in progress: every piece of text is
appended as it is shown, so a program that is killed loses nothing of it. The operating system releases a program's lock
when it dies, so an unlocked draft was left behind.
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
from dragoman.chat.entries import Conversation, Entry, new_id, read_conversation, read_entries, to_document
from dragoman.chat.stores.earlier import DRAFT, read_document
from dragoman.chat.stores.files import PRIVATE, write_json
from dragoman.file_locks import take_lock

INTERRUPTED = "the program ended before the answer did"


class LeftDraft(Struct, frozen=True):
    """A draft of a program that is no longer running."""

    path: Path
    conversation: Conversation
    updated: float
    """Unix time in seconds."""


class Draft:
    """The draft of this program. Nothing is written to disk before the first snapshot."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / ".drafts" / f"{new_id()}.json"
        self._journal: IO[bytes] | None = None

    def snapshot(self, conversation: Conversation, *, running: bool) -> None:
        if self._journal is None:
            self._path.parent.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
            self._journal = self._path.with_suffix(".jsonl").open("ab", buffering=0)
            take_lock(self._journal)
        write_json(self._path, to_document(conversation))
        if not running:  # text of answers in progress is only in the journal
            self._journal.truncate(0)

    def note(self, line: dict[str, Any]) -> None:
        if self._journal is not None:
            body = json.dumps(line, ensure_ascii=False).encode("utf-8", "surrogatepass")
            os.write(self._journal.fileno(), body + b"\n")

    def discard(self) -> None:
        """Deletes the draft: everything is saved, or the user does not want it."""
        for path in (self._path, self._path.with_suffix(".jsonl")):
            path.unlink(missing_ok=True)
        self.leave()

    def leave(self) -> None:
        """Keeps the draft: the next session is offered it."""
        if self._journal is not None:
            self._journal.close()
            self._journal = None


def find_left_drafts(folder: Path, earlier: Sequence[Path] = ()) -> list[LeftDraft]:
    """Drafts of programs that died, newest first. Unreadable ones are skipped.

    `earlier` are folders of the earlier program, which kept one draft per user and never offered it.
    """
    paths = [*(folder / ".drafts").glob("*.json"), *(one / DRAFT for one in (folder, *earlier))]
    found = [draft for path in paths if (draft := _read_left_draft(path)) is not None]
    return sorted(found, key=lambda draft: draft.updated, reverse=True)


def discard(draft: LeftDraft) -> None:
    draft.path.unlink(missing_ok=True)
    draft.path.with_suffix(".jsonl").unlink(missing_ok=True)


def _read_left_draft(path: Path) -> LeftDraft | None:
    if path.name.startswith(".") or _is_in_use(path.with_suffix(".jsonl")):
        return None
    try:
        conversation = read_conversation(read_document(path))
        journal = list(_journal_lines(path.with_suffix(".jsonl")))
        updated = path.stat().st_mtime
    except (OSError, ValueError, RecursionError):
        return None
    restored = with_journal(conversation, journal)
    return LeftDraft(path, restored, updated) if restored.entries else None


def _is_in_use(journal: Path) -> bool:
    if not journal.exists():
        return False
    with journal.open("rb") as file:
        return not take_lock(file)


def _journal_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Entries of the journal; an unfinished last line is skipped."""
    if path.exists():
        for line in path.read_bytes().split(b"\n"):
            with suppress(ValueError):
                found = json.loads(line)
                if isinstance(found, dict) and found.get("answer"):
                    yield found


class _UnfinishedAnswer:
    """An unfinished answer, rebuilt from the journal."""

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

    def finish(self) -> list[Entry]:
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
    """Adds answers that are only in the journal to the conversation, marked as interrupted."""
    ended = {entry.answer for entry in conversation.entries}
    rests: dict[str, _UnfinishedAnswer] = {}
    for line in lines:
        if line["answer"] not in ended:
            rests.setdefault(line["answer"], _UnfinishedAnswer(line)).add(line)
    more = [entry for rest in rests.values() for entry in rest.finish()]
    return structs.replace(conversation, entries=(*conversation.entries, *more)) if more else conversation
