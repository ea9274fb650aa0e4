"""`dragoman chat`: reads what is typed, runs commands, shows answers."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from dragoman.chat.events import AnswerEnded, AnyChatEvent, PermissionAsked
from dragoman.chat.service import ChatService
from dragoman.chat.stores import ConversationStore
from dragoman.chat.terminal.commands import Ask, is_command, phrases, run_command
from dragoman.chat.terminal.inputs import Typing, is_typed, shown, silent
from dragoman.chat.terminal.screens import Screen
from dragoman.chat.terminal.session import Desk
from dragoman.errors import DragomanError
from dragoman.ir.values import compact_text

PROMPT = "> "
_ALLOWED = {"y": (True, False), "yes": (True, False), "a": (True, True), "always": (True, True)}
_REFUSED = frozenset({"", "n", "no"})


class TerminalChat:
    """The loop of reading and answering."""

    def __init__(self, service: ChatService, store: ConversationStore, screen: Screen, folder: Path) -> None:
        self._service = service
        self._screen = screen
        self._desk = Desk(service, store, screen, folder)
        self._typing = Typing(lambda: phrases(self._desk), folder / ".typed")
        self._questions: asyncio.Queue[PermissionAsked] = asyncio.Queue()

    def run(self, runner: asyncio.Runner) -> bool:
        """Until the user leaves; whether all answers were whole."""
        models = self._service.participants
        self._screen.simulated = frozenset(name for name, one in models.items() if one.is_simulated)
        if is_typed():
            names = " ".join(f"@{name}" for name in models)
            default = " ".join(f"@{name}" for name in self._service.options.default) or "no model (a memo)"
            self._screen.line(f"{names} @all; other text goes to {default}. /help tells more.", "dim")
            runner.run(self._tell_unready())
            self._desk.offer_drafts()
        with self._service.watched(self._on_event):
            while not self._desk.leaving:
                try:
                    self._next(runner)
                except KeyboardInterrupt:  # whenever it comes: it never ends the program
                    self._screen.line("")
        self._typing.close()
        self._desk.close()
        return not self._desk.failed

    async def _tell_unready(self) -> None:
        unready = self._service.unready()
        if unready:
            names = " ".join(f"@{name}" for name in unready)
            self._screen.line(f"{names} cannot answer yet: {next(iter(unready.values()))}", "yellow")
            self._screen.line("dragoman doctor tells more; dragoman chat --demo needs no keys.", "dim")

    def _next(self, runner: asyncio.Runner) -> None:
        typed = self._typing.read(PROMPT)
        text = "/exit" if typed is None else typed.strip()
        if is_command(text):
            ask = run_command(self._desk, text)
            if ask is not None:
                self._say(ask, runner)
        elif text:
            self._say(lambda: self._service.start(text), runner)

    def _say(self, ask: Ask, runner: asyncio.Runner) -> None:
        try:
            with silent():
                runner.run(self._answered(ask))
        except KeyboardInterrupt:  # what has come is kept and shown; the program goes on
            runner.run(self._service.halt())  # a second Ctrl-C may have come before the answers had ended
            self._screen.resume()
            self._screen.line("stopped", "yellow")
        except (DragomanError, LookupError, ValueError, RuntimeError) as error:
            self._screen.resume()
            self._desk.problem(str(error))

    async def _answered(self, ask: Ask) -> None:
        turn = ask()
        if not self._service.running:
            self._screen.line("(a memo: stored, and sent to no model)", "dim")
            return
        asker = asyncio.create_task(self._ask_questions())
        try:
            with _when_resized(self._screen.redraw):
                await self._service.wait(turn)
        finally:
            asker.cancel()

    def _on_event(self, event: AnyChatEvent) -> None:
        if isinstance(event, PermissionAsked):
            self._questions.put_nowait(event)
        if isinstance(event, AnswerEnded) and event.status != "ok":
            self._desk.failed = True
        self._screen.show(event, self._service.running)

    # ── permissions ───────────────────────────────────────────────────────────────────────────────────────────

    async def _ask_questions(self) -> None:
        """One after the other; what happens meanwhile is shown when they are answered."""
        while True:
            asked = await self._questions.get()
            self._screen.pause()
            allow, always = await self._permission(asked)
            self._service.permit(asked.id, allow=allow, always=always)
            if self._questions.empty():
                self._screen.resume()

    async def _permission(self, asked: PermissionAsked) -> tuple[bool, bool]:
        """Whether it may, and whether for good."""
        call = f"{asked.model} wants to run {asked.tool} {compact_text(asked.arguments)}"
        if all(one.id != asked.id for one in self._service.open_questions):  # `always`, or the answer was stopped
            return False, False
        if not is_typed():
            self._screen.line(f"{call}: no interactive user to allow it", "yellow")
            return False, False
        while True:
            self._screen.line(f"{call}. [y]es, [n]o, [a]lways?", "yellow")
            with shown():
                word = (await _typed_line()).strip().lower()
            if word in _ALLOWED:
                return _ALLOWED[word]
            if word in _REFUSED:
                return False, False


@contextmanager
def _when_resized(then: Callable[[], None]) -> Iterator[None]:
    """Where the system tells: Windows does not, and there the next words of a model do."""
    loop, change = asyncio.get_running_loop(), getattr(signal, "SIGWINCH", None)
    if change is None:
        yield
        return
    loop.add_signal_handler(change, then)
    try:
        yield
    finally:
        loop.remove_signal_handler(change)


async def _typed_line() -> str:
    """A line from the terminal, waited for without blocking the loop, so that Ctrl-C still works."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    loop.add_reader(sys.stdin.fileno(), _wake, ready)
    try:
        await ready
    finally:
        loop.remove_reader(sys.stdin.fileno())
    return sys.stdin.readline()


def _wake(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)
