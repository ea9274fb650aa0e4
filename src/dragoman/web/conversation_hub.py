"""Conversations open in the page. All tabs share them, so no tab can overwrite another's work."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, structs

from dragoman.agent import Tool
from dragoman.agent.permissions import Hook
from dragoman.chat.drafts import Draft, discard, find_left_drafts
from dragoman.chat.entries import Conversation, entry_document, new_id, now
from dragoman.chat.events import AnyChatEvent, Changed, Said, TurnEnded
from dragoman.chat.importing import import_document
from dragoman.chat.participants import Participant, participant
from dragoman.chat.service import Busy, ChatService, Options
from dragoman.chat.stores import AlreadyThere, ConversationStore, UnknownConversation
from dragoman.chat.stores import Changed as ChangedElsewhere

_LONGEST_NAME = 60
_MOST_MODELS = 100
_LONGEST_MODEL = 300
"""Maximum characters of the name of a model, and of the name that it has in conversations."""
_LARGEST = 16 << 20
"""Maximum bytes of a conversation of a user with limits: every turn writes all of it, which holds up other requests."""
_MOST_EMPTY = 20
"""Conversations without an entry that stay open although no tab shows them."""


class NoRoom(ValueError):
    """The user has stored as much as is allowed."""


class HubSettings(Struct, frozen=True, kw_only=True):
    """Settings of all conversations of a hub."""

    tools: Sequence[Tool] = ()
    permissions: Hook | None = None
    catalogue: Callable[[], Awaitable[Sequence[str]]] | None = None
    """Known models to choose from."""
    in_format: Callable[[Participant, str], Participant] | None = None
    """The same model, addressed in another wire format; None without a gateway to translate."""
    warning: str = ""
    """Warning shown to every user of the page."""
    room: Callable[[], int] | None = None
    """How many more bytes the user may store; None if conversations are not limited."""


class OpenConversation:
    """One conversation, saved after every turn, with a draft in between."""

    def __init__(self, service: ChatService, store: ConversationStore, folder: Path) -> None:
        self.service = service
        self._store = store
        self._draft = Draft(folder)
        service.keeper = self._draft
        self._watching = service.watch(self._on_event)
        self._watching.__enter__()
        self._saving = False
        self._saved: Conversation | None = None
        """What was saved last. A turn without an answer ends with the same conversation: it is written once."""

    @property
    def id(self) -> str:
        return self.service.conversation.id

    @property
    def size(self) -> int:
        """About how many bytes the entries have."""
        parts = (part for entry in self.service.conversation.entries for part in entry.content)
        return sum(len(value) for part in parts for value in part.values() if isinstance(value, str))

    @property
    def is_unused(self) -> bool:
        """Whether nothing would be lost without it: it is empty, and no tab shows it."""
        conversation, service = self.service.conversation, self.service
        is_empty = not (conversation.entries or conversation.name or conversation.system_prompt)
        return is_empty and not service.running and service.watchers == 1

    def _on_event(self, event: AnyChatEvent) -> None:
        if isinstance(event, Said | TurnEnded | Changed) and not self._saving:
            # Keep the draft while an answer is in progress: its journal belongs to the draft.
            self.save(answered=not isinstance(event, Said))

    def save(self, *, answered: bool = True) -> None:
        conversation = self.service.conversation
        if not conversation.entries and not conversation.name and not conversation.system_prompt:
            return
        self._saving = True
        try:
            if conversation is not self._saved:
                self._take_over(self._save_under_free_name(conversation))
                self._saved = self.service.conversation
            if answered and not self.service.running:
                self._draft.discard()
        except OSError as error:
            self.service.notice(f"the conversation could not be saved: {error.strerror or error}", warning=True)
        finally:
            self._saving = False

    def _save_under_free_name(self, conversation: Conversation) -> Conversation:
        try:
            return self._store.save(
                structs.replace(conversation, name=conversation.name or free_name(self._store, conversation.title))
            )
        except AlreadyThere:
            return self._store.save(structs.replace(conversation, name=free_name(self._store, conversation.name)))
        except ChangedElsewhere:
            # Another program changed it: keep both, under two names.
            self.service.notice("this conversation was changed elsewhere; yours continues as a copy", warning=True)
            name = free_name(self._store, f"{conversation.name} (copy)")
            return self._store.save(structs.replace(conversation, name=name, revision=0, id=new_id()))

    def _take_over(self, saved: Conversation) -> None:
        """Takes over what the store assigned; newer entries stay."""
        conversation = self.service.conversation
        decided = {name: getattr(saved, name) for name in ("id", "name", "revision", "created")}
        self.service.conversation = structs.replace(conversation, **decided)
        if saved.id != conversation.id:
            self.service.change()  # tell the pages

    def snapshot(self) -> dict[str, Any]:
        """All that a page needs to start, or to resume in the middle of an answer."""
        service = self.service
        conversation = service.conversation
        return {
            "id": conversation.id,
            "name": conversation.name,
            "title": conversation.title,
            "system_prompt": conversation.system_prompt,
            "entries": [entry_document(entry) for entry in conversation.entries],
            "running": [
                {
                    "answer": one.id,
                    "turn": one.turn,
                    "model": one.name,
                    "replaces": one.replaces,
                    "entries": [entry_document(entry) for entry in one.so_far()],
                }
                for one in service.running
            ],
            "questions": [msgspec.to_builtins(question) for question in service.open_questions],
            "gauges": [msgspec.to_builtins(gauge) for gauge in service.gauges()],
        }

    async def close(self) -> None:
        await self.service.close()
        self.save()
        self.forget()

    def forget(self) -> None:
        self._draft.discard()
        self._watching.__exit__(None, None, None)


class ConversationHub:
    """The open conversations of one user, with shared models and options."""

    def __init__(
        self,
        participants: Sequence[Participant],
        store: ConversationStore,
        folder: Path,
        *,
        settings: HubSettings = HubSettings(),  # noqa: B008 - a frozen value
        options: Options = Options(),  # noqa: B008 - a frozen value
        make: Callable[[str, str], Participant] = participant,
    ) -> None:
        self.participants = {one.name: one for one in participants}
        self.store = store
        self.settings = settings
        self.options = options
        self._folder = folder
        self._make = make
        self._open_conversations: list[OpenConversation] = []

    def set_tools(self, tools: Sequence[Tool]) -> None:
        """Sets the tools of conversations opened from now on."""
        self.settings = structs.replace(self.settings, tools=tuple(tools))

    def recover(self) -> int:
        """Saves drafts of programs that died as conversations; returns how many.

        Those that cannot be saved, because the disk is full or read-only, are left for the next start.
        """
        recovered = 0
        for left in find_left_drafts(self._folder):
            names = {row.id: row.name for row in self.store.list()}
            name = names.get(left.conversation.id) or free_name(self.store, f"{left.conversation.title} (recovered)")
            with suppress(OSError):
                self.store.save(structs.replace(left.conversation, name=name), replace=True)
                discard(left)
                recovered += 1
        return recovered

    def list_rows(self, words: str = "") -> list[dict[str, Any]]:
        rows = self.store.search(words) if words else self.store.list()
        running = {opened.id for opened in self._open_conversations if opened.service.running}
        return [{**msgspec.to_builtins(row), "running": row.id in running} for row in rows]

    def get(self, conversation: str) -> OpenConversation:
        known = next((opened for opened in self._open_conversations if opened.id == conversation), None)
        if known is not None:
            return known
        name = next((row.name for row in self.store.list() if row.id == conversation), None)
        if name is None:
            raise UnknownConversation("there is no such conversation")
        return self._open(self.store.load(name))

    def check_room(self, size: int, conversation: str | None = None) -> None:
        """Raise `NoRoom` if so many more bytes are too many, for this conversation or for all of the user."""
        if self.settings.room is None:
            return
        if conversation is not None and self.get(conversation).size + size > _LARGEST:
            raise NoRoom(f"a conversation has at most {_LARGEST} bytes: begin another one")
        if size > self.settings.room():
            raise NoRoom("there is no more room for your conversations: delete some first")

    def new(self, system_prompt: str = "") -> OpenConversation:
        unused = [opened for opened in self._open_conversations if opened.is_unused]
        for opened in unused[: -_MOST_EMPTY + 1]:
            self._open_conversations.remove(opened)
            opened.forget()
        return self._open(Conversation(created=now(), system_prompt=system_prompt))

    def import_document(self, document: Any, name: str = "") -> OpenConversation:
        found = import_document(document, name=name)
        imported = structs.replace(found, id=new_id(), revision=0, name=free_name(self.store, found.title))
        opened = self._open(imported)
        opened.save()
        return opened

    def branch(self, conversation: str, entry: str, *, before: bool = False) -> OpenConversation:
        """Copies a conversation up to an entry, or to just before it."""
        source = self.get(conversation).service.conversation
        place = next((i for i, one in enumerate(source.entries) if one.id == entry), None)
        if place is None:
            raise UnknownConversation("there is no such entry")
        self.check_room(self.get(conversation).size)
        turn = source.entries[place].turn
        last = place if before else max(i for i, one in enumerate(source.entries) if one.turn == turn) + 1
        name = free_name(self.store, f"{source.title} (branch)")
        opened = self._open(
            structs.replace(source, id=new_id(), revision=0, name=name, entries=source.entries[:last], created=now())
        )
        opened.save()
        return opened

    async def delete(self, conversation: str) -> None:
        opened = self.get(conversation)
        if opened.service.running:
            raise Busy("answers are in progress; stop them first")
        name = opened.service.conversation.name
        await opened.close()
        self._open_conversations.remove(opened)
        if name:
            self.store.delete(name)

    def rename(self, conversation: str, name: str) -> None:
        opened = self.get(conversation)
        current = opened.service.conversation
        if current.name and current.name != name:
            saved = self.store.rename(current.name, name)
            opened.service.conversation = structs.replace(current, revision=saved.revision)
        opened.service.change(name=name)

    def set_model(self, name: str, model: str) -> None:
        """Replaces the model of this name, or adds one. Names are case-insensitive."""
        _check_lengths(name, model)
        name = next((one for one in self.participants if one.casefold() == name.casefold()), name)
        if name not in self.participants and len(self.participants) >= _MOST_MODELS:
            raise NoRoom(f"a conversation has at most {_MOST_MODELS} models")
        chosen = self._make(name, model)
        self.participants[name] = chosen
        self._for_each_service(lambda service: service.set_participant(chosen))

    def configure(self, **options: Any) -> None:
        default = options.get("default", ())
        if len(default) > _MOST_MODELS:
            raise NoRoom(f"a conversation has at most {_MOST_MODELS} models")
        _check_lengths(*default)
        self.options = structs.replace(self.options, **options)
        self._for_each_service(lambda service: service.configure(**options))

    async def close(self) -> None:
        for opened in self._open_conversations:
            await opened.close()
        self._open_conversations.clear()

    def _for_each_service(self, change: Callable[[ChatService], None]) -> None:
        for opened in self._open_conversations:
            change(opened.service)

    def _open(self, conversation: Conversation) -> OpenConversation:
        service = ChatService(
            self.participants.values(),
            conversation=conversation,
            tools=self.settings.tools,
            permissions=self.settings.permissions,
            options=self.options,
        )
        opened = OpenConversation(service, self.store, self._folder)
        self._open_conversations.append(opened)
        return opened


def _check_lengths(*names: str) -> None:
    if any(len(name) > _LONGEST_MODEL for name in names):
        raise ValueError(f"the name of a model has at most {_LONGEST_MODEL} characters")


def free_name(store: ConversationStore, wanted: str) -> str:
    taken = {row.name for row in store.list()}
    wanted = " ".join(wanted.split())[:_LONGEST_NAME].strip() or "Conversation"
    if wanted not in taken:
        return wanted
    return next(name for number in range(2, len(taken) + 3) if (name := f"{wanted} ({number})") not in taken)
