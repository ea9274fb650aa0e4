"""Conversations that a page has open. All tabs look at the same one, so none can destroy another's work."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, structs

from dragoman.agent import Tool
from dragoman.agent.permissions import Hook
from dragoman.chat.drafts import Draft, discard, left_drafts
from dragoman.chat.entries import Conversation, new_id, now, stored_entry
from dragoman.chat.events import AnyChatEvent, Changed, Said, TurnEnded
from dragoman.chat.importing import imported
from dragoman.chat.participants import Participant, participant
from dragoman.chat.service import Busy, ChatService, Options
from dragoman.chat.stores import AlreadyThere, ConversationStore, UnknownConversation
from dragoman.chat.stores import Changed as ChangedElsewhere

_LONGEST_NAME = 60


class Furnishing(Struct, frozen=True, kw_only=True):
    """What all rooms have in common."""

    tools: Sequence[Tool] = ()
    permissions: Hook | None = None
    catalogue: Callable[[], Awaitable[Sequence[str]]] | None = None
    """Models that could be chosen, as far as they are known."""
    in_format: Callable[[Participant, str], Participant] | None = None
    """The same model asked in another wire format; None where no gateway translates."""
    warning: str = ""
    """Notes for every user who opens the page."""


class Room:
    """One conversation, saved after every turn, with a draft for what comes in between."""

    def __init__(self, service: ChatService, store: ConversationStore, folder: Path) -> None:
        self.service = service
        self._store = store
        self._draft = Draft(folder)
        service.keeper = self._draft
        self._watching = service.watched(self._on_event)
        self._watching.__enter__()
        self._saving = False

    @property
    def id(self) -> str:
        return self.service.conversation.id

    def _on_event(self, event: AnyChatEvent) -> None:
        if isinstance(event, Said | TurnEnded | Changed) and not self._saving:
            # What was just said is about to be answered, and the answer's journal belongs to the draft.
            self.save(answered=not isinstance(event, Said))

    def save(self, *, answered: bool = True) -> None:
        here = self.service.conversation
        if not here.entries and not here.name and not here.system_prompt:
            return
        self._saving = True
        try:
            self._keep(self._saved(here))
            if answered and not self.service.running:
                self._draft.discard()
        except OSError as error:
            self.service.notice(f"the conversation could not be saved: {error}", warning=True)
        finally:
            self._saving = False

    def _saved(self, here: Conversation) -> Conversation:
        try:
            return self._store.save(structs.replace(here, name=here.name or free_name(self._store, here.title)))
        except AlreadyThere:
            return self._store.save(structs.replace(here, name=free_name(self._store, here.name)))
        except ChangedElsewhere:
            # Another program has gone on with it: both are kept, under two names.
            self.service.notice("this conversation was changed elsewhere; yours goes on as a copy", warning=True)
            name = free_name(self._store, f"{here.name} (copy)")
            return self._store.save(structs.replace(here, name=name, revision=0, id=new_id()))

    def _keep(self, saved: Conversation) -> None:
        """What the store decides; what has been said since stays."""
        here = self.service.conversation
        decided = {name: getattr(saved, name) for name in ("id", "name", "revision", "created")}
        self.service.conversation = structs.replace(here, **decided)
        if saved.id != here.id:
            self.service.change()  # pages have to know

    def snapshot(self) -> dict[str, Any]:
        """All that a page needs to begin, or to begin again in the middle of an answer."""
        service = self.service
        here = service.conversation
        return {
            "id": here.id,
            "name": here.name,
            "title": here.title,
            "system_prompt": here.system_prompt,
            "entries": [stored_entry(entry) for entry in here.entries],
            "running": [
                {
                    "answer": one.id,
                    "turn": one.turn,
                    "model": one.name,
                    "replaces": one.replaces,
                    "entries": [stored_entry(entry) for entry in one.so_far()],
                }
                for one in service.running
            ],
            "questions": [msgspec.to_builtins(asked) for asked in service.open_questions],
            "gauges": [msgspec.to_builtins(gauge) for gauge in service.gauges()],
        }

    async def close(self) -> None:
        await self.service.close()
        self.save()
        self._draft.discard()
        self._watching.__exit__(None, None, None)


class Rooms:
    """Rooms by the id of their conversation; models and options are the same in all of them."""

    def __init__(
        self,
        participants: Sequence[Participant],
        store: ConversationStore,
        folder: Path,
        *,
        furnishing: Furnishing = Furnishing(),  # noqa: B008 - a frozen value
        options: Options = Options(),  # noqa: B008 - a frozen value
        make: Callable[[str, str], Participant] = participant,
    ) -> None:
        self.participants = {one.name: one for one in participants}
        self.store = store
        self.furnishing = furnishing
        self.options = options
        self._folder = folder
        self._make = make
        self._rooms: list[Room] = []

    def furnish(self, tools: Sequence[Tool]) -> None:
        """Tools for the rooms that are opened from now on."""
        self.furnishing = structs.replace(self.furnishing, tools=tuple(tools))

    def recover(self) -> int:
        """What programs that died left behind becomes part of the list again."""
        drafts = left_drafts(self._folder)
        for left in drafts:
            names = {row.id: row.name for row in self.store.list()}
            name = names.get(left.conversation.id) or free_name(self.store, f"{left.conversation.title} (recovered)")
            self.store.save(structs.replace(left.conversation, name=name), replace=True)
            discard(left)
        return len(drafts)

    def listed(self, words: str = "") -> list[dict[str, Any]]:
        rows = self.store.search(words) if words else self.store.list()
        running = {room.id for room in self._rooms if room.service.running}
        return [{**msgspec.to_builtins(row), "running": row.id in running} for row in rows]

    def room(self, conversation: str) -> Room:
        known = next((room for room in self._rooms if room.id == conversation), None)
        if known is not None:
            return known
        name = next((row.name for row in self.store.list() if row.id == conversation), None)
        if name is None:
            raise UnknownConversation("there is no such conversation")
        return self._opened(self.store.load(name))

    def new(self, system_prompt: str = "") -> Room:
        return self._opened(Conversation(created=now(), system_prompt=system_prompt))

    def imported(self, document: Any, name: str = "") -> Room:
        found = imported(document, name=name)
        kept = structs.replace(found, id=new_id(), revision=0, name=free_name(self.store, found.title))
        room = self._opened(kept)
        room.save()
        return room

    def branched(self, conversation: str, entry: str, *, before: bool = False) -> Room:
        """A copy up to an entry, or to just before it."""
        here = self.room(conversation).service.conversation
        place = next((i for i, one in enumerate(here.entries) if one.id == entry), None)
        if place is None:
            raise UnknownConversation("there is no such entry")
        turn = here.entries[place].turn
        last = place if before else max(i for i, one in enumerate(here.entries) if one.turn == turn) + 1
        name = free_name(self.store, f"{here.title} (branch)")
        room = self._opened(
            structs.replace(here, id=new_id(), revision=0, name=name, entries=here.entries[:last], created=now())
        )
        room.save()
        return room

    async def delete(self, conversation: str) -> None:
        room = self.room(conversation)
        if room.service.running:
            raise Busy("answers are under way; stop them first")
        name = room.service.conversation.name
        await room.close()
        self._rooms.remove(room)
        if name:
            self.store.delete(name)

    def rename(self, conversation: str, name: str) -> None:
        room = self.room(conversation)
        here = room.service.conversation
        if here.name and here.name != name:
            saved = self.store.rename(here.name, name)
            room.service.conversation = structs.replace(here, revision=saved.revision)
        room.service.change(name=name)

    def set_model(self, name: str, model: str) -> None:
        """Another model under a name, or one more. Case tells no names apart."""
        name = next((one for one in self.participants if one.casefold() == name.casefold()), name)
        chosen = self._make(name, model)
        self.participants[name] = chosen
        self._everywhere(lambda service: service.set_participant(chosen))

    def configure(self, **options: Any) -> None:
        self.options = structs.replace(self.options, **options)
        self._everywhere(lambda service: service.configure(**options))

    async def close(self) -> None:
        for room in self._rooms:
            await room.close()
        self._rooms.clear()

    def _everywhere(self, change: Callable[[ChatService], None]) -> None:
        for room in self._rooms:
            change(room.service)

    def _opened(self, conversation: Conversation) -> Room:
        service = ChatService(
            self.participants.values(),
            conversation=conversation,
            tools=self.furnishing.tools,
            permissions=self.furnishing.permissions,
            options=self.options,
        )
        room = Room(service, self.store, self._folder)
        self._rooms.append(room)
        return room


def free_name(store: ConversationStore, wish: str) -> str:
    taken = {row.name for row in store.list()}
    wish = " ".join(wish.split())[:_LONGEST_NAME].strip() or "Conversation"
    if wish not in taken:
        return wish
    return next(name for number in range(2, len(taken) + 3) if (name := f"{wish} ({number})") not in taken)
