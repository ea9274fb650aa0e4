"""`dragoman chat` in the terminal: reads input, runs commands, shows answers."""

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
from dragoman.chat.terminal.commands import Ask, completion_phrases, is_command, run_command
from dragoman.chat.terminal.inputs import LineReader, TerminalModes, is_interactive
from dragoman.chat.terminal.screens import Screen
from dragoman.chat.terminal.session import Session
from dragoman.errors import DragomanError
from dragoman.ir.values import compact_text

PROMPT = "> "
_ALLOWED = {"y": (True, False), "yes": (True, False), "a": (True, True), "always": (True, True)}
_REFUSED = frozenset({"", "n", "no"})


class TerminalChat:
    """The read-answer loop of the terminal."""

    def __init__(self, service: ChatService, store: ConversationStore, screen: Screen, folder: Path) -> None:
        self._service = service
        self._screen = screen
        self._session = Session(service, store, screen, folder)
        self._reader = LineReader(lambda: completion_phrases(self._session), folder / ".typed")
        self._modes = TerminalModes()
        self._questions: asyncio.Queue[PermissionAsked] = asyncio.Queue()

    def run(self, runner: asyncio.Runner) -> bool:
        """Runs until the user leaves; returns whether all answers were complete."""
        models = self._service.participants
        self._screen.simulated = frozenset(name for name, one in models.items() if one.is_simulated)
        if is_interactive():
            names = " ".join(f"@{name}" for name in models)
            default = " ".join(f"@{name}" for name in self._service.options.default) or "no model (a memo)"
            self._screen.line(f"{names} @all; other text goes to {default}. Help: /help.", "dim")
            runner.run(self._warn_of_unready())
            self._session.offer_drafts()
        with self._service.watch(self._on_event), self._modes.while_chatting():
            while not self._session.leaving:
                try:
                    self._next(runner)
                except KeyboardInterrupt:  # Ctrl-C never ends the program
                    self._screen.line("")
        self._reader.close()
        self._session.close()
        return not self._session.failed

    async def _warn_of_unready(self) -> None:
        unready = self._service.unready()
        if unready:
            names = " ".join(f"@{name}" for name in unready)
            reason, _, _ = next(iter(unready.values())).partition(", or pass ")  # an argument of Python
            self._screen.line(f"{names} cannot answer yet: {reason}", "yellow")
            self._screen.line("Store a key: dragoman keys set PROVIDER. Without keys: dragoman chat --demo", "dim")

    def _next(self, runner: asyncio.Runner) -> None:
        typed = self._reader.read(PROMPT)
        text = "/exit" if typed is None else typed.strip()
        if is_command(text):
            ask = run_command(self._session, text)
            if ask is not None:
                self._say(ask, runner)
        elif text:
            self._say(lambda: self._service.start(text), runner)

    def _say(self, ask: Ask, runner: asyncio.Runner) -> None:
        try:
            with self._modes.while_answering():
                runner.run(self._run_turn(ask))
        except KeyboardInterrupt:  # the text so far is kept and shown
            runner.run(self._service.halt())  # a second Ctrl-C may arrive before the answers have ended
            self._screen.resume()
            self._screen.line("stopped", "yellow")
        except (DragomanError, LookupError, ValueError, RuntimeError) as error:
            self._screen.resume()
            self._session.problem(str(error))

    async def _run_turn(self, ask: Ask) -> None:
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
            self._session.failed = True
        self._screen.show(event, self._service.running)

    # ── permissions ───────────────────────────────────────────────────────────────────────────────────────────

    async def _ask_questions(self) -> None:
        """Asks one question at a time; events in the meantime are shown afterwards."""
        while True:
            question = await self._questions.get()
            self._screen.pause()
            allow, always = await self._ask_permission(question)
            self._service.permit(question.id, allow=allow, always=always)
            if self._questions.empty():
                self._screen.resume()

    async def _ask_permission(self, question: PermissionAsked) -> tuple[bool, bool]:
        """Returns whether the call is allowed, and whether it always is."""
        call = f"{question.model} wants to run {question.tool} {compact_text(question.arguments)}"
        if all(one.id != question.id for one in self._service.open_questions):  # `always`, or the answer was stopped
            return False, False
        if not is_interactive():
            self._screen.line(f"{call}: no interactive user to allow it", "yellow")
            return False, False
        while True:
            self._screen.line(f"{call}. [y]es, [n]o, [a]lways?", "yellow")
            with self._modes.while_asking():
                word = (await _read_line()).strip().lower()
            if word in _ALLOWED:
                return _ALLOWED[word]
            if word in _REFUSED:
                return False, False


@contextmanager
def _when_resized(then: Callable[[], None]) -> Iterator[None]:
    """Calls `then` when the terminal is resized. Windows has no such signal: there the next event redraws."""
    loop, change = asyncio.get_running_loop(), getattr(signal, "SIGWINCH", None)
    if change is None:
        yield
        return
    loop.add_signal_handler(change, then)
    try:
        yield
    finally:
        loop.remove_signal_handler(change)


async def _read_line() -> str:
    """Reads a line without blocking the event loop, so that Ctrl-C still works."""
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
