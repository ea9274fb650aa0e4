"""The terminal's session: a conversation, the store it comes from, and whether it is saved."""

from __future__ import annotations

from pathlib import Path

from dragoman.chat.drafts import Draft, LeftDraft, discard, find_left_drafts
from dragoman.chat.entries import Conversation
from dragoman.chat.service import ChatService
from dragoman.chat.stores import ConversationStore
from dragoman.chat.terminal.inputs import is_interactive
from dragoman.chat.terminal.screens import Screen
from dragoman.chat.tokens import Gauge, oldest

_YES = frozenset({"y", "yes", "はい"})
_NO = frozenset({"", "n", "no", "いいえ"})
_THROW = frozenset({"t", "throw"})


class Session:
    """One conversation at a time, with its service, store and screen."""

    def __init__(self, service: ChatService, store: ConversationStore, screen: Screen, folder: Path) -> None:
        self.service = service
        self.store = store
        self.screen = screen
        self.failed = False
        """Something failed; a piped chat then exits with an error code."""
        self.leaving = False
        self._folder = folder
        self._saved = service.conversation
        self._draft = Draft(folder)
        service.keeper = self._draft
        screen.gauge = self._gauge_of

    @property
    def conversation(self) -> Conversation:
        return self.service.conversation

    def problem(self, text: str) -> None:
        self.failed = True
        self.screen.line(text, "red")

    def _gauge_of(self, name: str) -> str:
        known = self.service.participants.get(name)
        return "" if known is None else describe_gauge(self.service.gauge(known))

    # ── questions ─────────────────────────────────────────────────────────────────────────────────────────────

    def confirm(self, question: str) -> bool:
        """Asks an interactive user; piped input confirms everything."""
        return self.choose(f"{question} [y/N] ", _YES | _NO, unasked="y") in _YES

    def choose(self, question: str, words: frozenset[str], *, unasked: str) -> str:
        """Asks until one of the words is typed; anything else is ignored."""
        if not is_interactive():
            return unasked
        while True:
            try:
                word = input(question).strip().lower()
            except (EOFError, KeyboardInterrupt):
                return ""
            if word in words:
                return word

    # ── saved or not ──────────────────────────────────────────────────────────────────────────────────────────

    @property
    def unsaved(self) -> bool:
        current, saved = self.conversation, self._saved
        return bool(current.entries) and (current.entries, current.system_prompt) != (
            saved.entries,
            saved.system_prompt,
        )

    def may_leave(self) -> bool:
        return not self.unsaved or self.confirm("This conversation is not saved. Leave it?")

    def open(self, conversation: Conversation) -> None:
        """Continues with a conversation as it is in the store."""
        self.service.replace(conversation)
        self._saved = conversation
        self._draft.discard()

    def take_new_name(self, stored: Conversation) -> None:
        """Takes over the new name from the store; unsaved changes stay."""
        self._saved = stored
        self.service.change(name=stored.name, revision=stored.revision)

    def offer_drafts(self) -> None:
        for left in find_left_drafts(self._folder, getattr(self.store, "earlier", ())):
            if self._offer(left):
                return

    def _offer(self, left: LeftDraft) -> bool:
        found = left.conversation
        self.screen.line(f"A conversation was left unsaved: {found.title!r}, {len(found.entries)} entries.", "yellow")
        word = self.choose("Continue it? [y]es, [n]ot now, [t]hrow away: ", _YES | _NO | _THROW, unasked="")
        if word in _YES:
            self.service.replace(found)
            self.service.change()
            self.screen.entries(found.entries)
        if word not in _NO:
            discard(left)
        return word in _YES

    def close(self) -> None:
        if self.unsaved and is_interactive():
            self._draft.leave()
            self.screen.line("not saved: the draft will be offered next time", "dim")
        else:
            self._draft.discard()


def describe_gauge(gauge: Gauge) -> str:
    """For example `~1,204 of 200,000 tokens`; without `~` it was counted by the model's own tokenizer."""
    dropped = f", without {oldest(gauge.dropped_turns)}" if gauge.dropped_turns else ""
    return f"{'' if gauge.exact else '~'}{gauge.used:,} of {gauge.window:,} tokens{dropped}"
