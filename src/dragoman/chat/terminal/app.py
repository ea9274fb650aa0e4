"""`dragoman chat`: reads what is typed, runs commands, shows answers."""

from __future__ import annotations

import asyncio
import base64
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from msgspec import structs

from dragoman.chat.drafts import Draft, discard, left_drafts
from dragoman.chat.entries import Conversation, Unreadable, now
from dragoman.chat.events import AnswerEnded, AnyChatEvent, PermissionAsked
from dragoman.chat.exporting import export, kinds
from dragoman.chat.participants import participant
from dragoman.chat.service import ChatService
from dragoman.chat.stores import AlreadyThere, Changed, ConversationStore, UnknownConversation
from dragoman.chat.stores.files import read_file
from dragoman.chat.terminal.inputs import Typing, is_typed
from dragoman.chat.terminal.screens import Screen
from dragoman.errors import DragomanError
from dragoman.ir.values import compact_text
from dragoman.losses import render_losses

PROMPT = "> "
_YES = frozenset({"y", "yes", "はい"})


class TerminalChat:
    """One conversation at a time, in front of a service and a store."""

    def __init__(self, service: ChatService, store: ConversationStore, screen: Screen, folder: Path) -> None:
        self._service = service
        self._store = store
        self._screen = screen
        self._folder = folder
        self._saved = service.conversation
        self._failed = False
        self._leaving = False
        self._draft = Draft(folder)
        service.keeper = self._draft
        self._typing = Typing(self._words, folder / ".typed")
        self._questions: list[PermissionAsked] = []

    # ── the loop ──────────────────────────────────────────────────────────────────────────────────────────────

    def run(self, runner: asyncio.Runner) -> bool:
        """Until the user leaves; whether all answers were whole."""
        if is_typed():
            names = " ".join(f"@{name}" for name in self._service.participants)
            self._screen.line(f"{names} @all; anything else is a memo. /help tells more.", "dim")
            self._offer_drafts()
        with self._service.watched(self._on_event):
            while not self._leaving:
                try:
                    self._next(runner)
                except KeyboardInterrupt:  # whenever it comes: it never ends the program
                    self._screen.line("")
        self._end()
        return not self._failed

    def _next(self, runner: asyncio.Runner) -> None:
        typed = self._typing.read(PROMPT)
        text = "exit" if typed is None else typed.strip()
        if text in {"exit", "quit"}:
            self._leaving = True
        elif text.startswith("/"):
            self._command(text, runner)
        elif text:
            self._say(lambda: self._service.start(text), runner)

    def _say(self, start: Callable[[], str], runner: asyncio.Runner) -> None:
        try:
            runner.run(self._answered(start))
        except KeyboardInterrupt:  # what has come is kept and shown; the program goes on
            self._screen.pause()
            self._screen.line("stopped", "yellow")
        except (DragomanError, LookupError, ValueError, RuntimeError) as error:
            self._screen.pause()
            self._problem(str(error))

    async def _answered(self, start: Callable[[], str]) -> None:
        turn = start()
        if not self._service.running:
            self._screen.line("(a memo: stored, and sent to nobody)", "dim")
            return
        asker = asyncio.create_task(self._ask_questions())
        try:
            await self._service.wait(turn)
        finally:
            asker.cancel()

    def _on_event(self, event: AnyChatEvent) -> None:
        if isinstance(event, PermissionAsked):
            self._questions.append(event)
        if isinstance(event, AnswerEnded) and event.status != "ok":
            self._failed = True
        if not self._questions:
            self._screen.show(event, self._service.running)

    def _problem(self, text: str) -> None:
        self._failed = True
        self._screen.line(text, "red")

    # ── questions ─────────────────────────────────────────────────────────────────────────────────────────────

    async def _ask_questions(self) -> None:
        while True:
            if self._questions:
                asked = self._questions[0]
                word = await self._permission(asked)
                self._service.permit(asked.id, allow=word[:1] in {"y", "a"}, always=word[:1] == "a")
                self._questions.pop(0)
            await asyncio.sleep(0.05)

    async def _permission(self, asked: PermissionAsked) -> str:
        self._screen.pause()
        call = f"{asked.model} wants to run {asked.tool} {compact_text(asked.arguments)}"
        if not is_typed():
            self._screen.line(f"{call}: nobody is there to allow it", "yellow")
            return "n"
        self._screen.line(f"{call}. [y]es, [n]o, [a]lways?", "yellow")
        return (await _typed_line()).strip().lower()

    def _confirm(self, question: str) -> bool:
        """Nobody is asked who is not there: piped input says what it means."""
        if not is_typed():
            return True
        try:
            return input(f"{question} [y/N] ").strip().lower() in _YES
        except (EOFError, KeyboardInterrupt):
            return False

    # ── unsaved work ──────────────────────────────────────────────────────────────────────────────────────────

    @property
    def _unsaved(self) -> bool:
        here = self._service.conversation
        return bool(here.entries) and here.entries != self._saved.entries

    def _may_leave(self) -> bool:
        return not self._unsaved or self._confirm("This conversation is not saved. Leave it?")

    def _open(self, conversation: Conversation) -> None:
        self._service.replace(conversation)
        self._saved = conversation
        self._draft.discard()

    def _offer_drafts(self) -> None:
        for left in left_drafts(self._folder):
            count = len(left.conversation.entries)
            if self._confirm(f"A conversation was left unsaved ({left.conversation.title!r}, {count} entries). Go on?"):
                self._service.replace(left.conversation)
                self._service.change()
                discard(left)
                self._screen.entries(left.conversation.entries)
                return
            if self._confirm("Throw it away?"):
                discard(left)

    def _end(self) -> None:
        self._typing.close()
        if self._unsaved and is_typed():
            self._draft.leave()
            self._screen.line("not saved: it will be offered the next time", "dim")
        else:
            self._draft.discard()

    # ── commands ──────────────────────────────────────────────────────────────────────────────────────────────

    def _command(self, text: str, runner: asyncio.Runner) -> None:
        word, _, rest = text.partition(" ")
        if word == "/retry":
            self._retry(rest.strip(), runner)
            return
        command = COMMANDS.get(word)
        if command is None:
            self._problem(f"{word} is no command; /help lists them")
            return
        try:
            command.run(self, rest.strip())
        except (UnknownConversation, AlreadyThere, Changed, Unreadable, DragomanError) as error:
            self._problem(str(error))
        except (ValueError, OSError) as error:
            self._problem(f"{word}: {error}")

    def _words(self) -> Iterable[str]:
        """All that can be completed."""
        yield from (f"@{name} " for name in (*self._service.participants, "all"))
        for name, command in COMMANDS.items():
            yield from (f"{name} {word}".rstrip() for word in command.words or ("",))
        yield from (f"/history load {row.name}" for row in self._store.list())

    def help(self, _: str) -> None:
        for command in COMMANDS.values():
            self._screen.line(f"{command.usage:<44}{command.help}")
        self._screen.line('A line that ends in \\ goes on; """ begins and ends a block. Ctrl-C stops answers.', "dim")

    def system(self, text: str) -> None:
        if text == "clear":
            self._service.change(system_prompt="")
        elif text:
            self._service.change(system_prompt=text)
        self._screen.line(self._service.conversation.system_prompt or "(no system prompt)")

    def model(self, text: str) -> None:
        name, _, model = text.partition(" ")
        if name == "default":
            self._service.configure(default=tuple(one.lstrip("@") for one in model.split() if one != "none"))
        elif model:
            self._service.set_participant(participant(name.lstrip("@"), model.strip()))
        for one in self._service.participants.values():
            self._screen.line(f"@{one.name:<12} {one.model:<36} {one.window:>9,} tokens")
        default = " ".join(f"@{name}" for name in self._service.options.default)
        self._screen.line(f"without a mention: {default or 'a memo, for nobody'}", "dim")

    def share(self, text: str) -> None:
        if text:
            self._service.configure(share=text == "on")
        self._screen.line(f"answers are shared between models: {'yes' if self._service.options.share else 'no'}")

    def history(self, text: str) -> None:
        word, _, rest = text.partition(" ")
        action = _HISTORY.get(word or "list")
        if action is None:
            raise ValueError(f"one of {', '.join(_HISTORY)}")
        action(self, rest.strip())

    def history_list(self, words: str) -> None:
        rows = self._store.search(words) if words else self._store.list()
        for row in rows:
            self._screen.line(f"{row.updated[:16]:<18}{row.entries:>5}  {row.name}  {row.excerpt}")
        if not rows:
            self._screen.line("(nothing)")

    def history_save(self, name: str) -> None:
        here = self._service.conversation
        named = structs.replace(here, name=name or here.name)
        if not named.name:
            raise ValueError("under which name?")
        if named.name != here.name and here.name:  # another name: another conversation
            named = structs.replace(named, id=Conversation().id, revision=0)
        try:
            saved = self._store.save(named)
        except (AlreadyThere, Changed) as error:
            if not self._confirm(f"{error}. Overwrite it?"):
                return
            saved = self._store.save(named, replace=True)
        self._open(saved)
        self._screen.line(f"saved as {saved.name!r}", "dim")

    def history_load(self, name: str) -> None:
        if not self._may_leave():
            return
        path = Path(name).expanduser()
        is_file = path.suffix == ".json" and path.is_file()
        conversation = read_file(path) if is_file else self._store.load(name)
        self._open(conversation)
        self._screen.entries(conversation.entries)

    def history_new(self, _: str) -> None:
        if self._may_leave():
            self._open(Conversation(created=now()))

    def history_rename(self, text: str) -> None:
        here = self._service.conversation
        self._open(self._store.rename(here.name, text))

    def history_delete(self, name: str) -> None:
        if self._confirm(f"Delete {name!r} for good?"):
            self._store.delete(name)

    def reset(self, _: str) -> None:
        """The system prompt stays."""
        if self._may_leave():
            self._open(Conversation(created=now(), system_prompt=self._service.conversation.system_prompt))

    def copy(self, text: str) -> None:
        answers = [entry for entry in self._service.conversation.entries if entry.speaker == entry.role and entry.text]
        number = int(text or 0)
        if not 0 <= number < len(answers):
            raise ValueError(f"there are {len(answers)} answers; 0 is the newest")
        answer = answers[-1 - number].text
        if is_typed():  # OSC 52: the terminal puts it into the clipboard, also from another machine
            code = base64.b64encode(answer.encode("utf-8", "replace")).decode()
            sys.stdout.write(f"\x1b]52;c;{code}\a")
            self._screen.line(f"copied {len(answer)} characters", "dim")
        else:
            self._screen.line(answer)

    def export(self, text: str) -> None:
        kind, _, target = text.partition(" ")
        exported = export(self._service.conversation, kind or "markdown")
        if target:
            Path(target).expanduser().write_text(exported.content, encoding="utf-8")
            self._screen.line(f"written to {target}", "dim")
        else:
            self._screen.line(exported.content)
        if exported.losses:
            self._screen.line(render_losses(exported.losses), "yellow")

    def tools(self, _: str) -> None:
        for tool in self._service.tools:
            kind = "reads" if tool.read_only else "asks "
            first = (tool.definition.description or "").partition("\n")[0]
            self._screen.line(f"{tool.name:<24}{kind}  {first}")
        if not self._service.tools:
            self._screen.line("(no tools; --tools and --mcp bring some)")

    def tokens(self, _: str) -> None:
        for gauge in self._service.gauges():
            bar = "█" * round(min(gauge.share, 1) * 20)
            about = "" if gauge.exact else "~"
            self._screen.line(f"@{gauge.model:<12} {bar:<20} {about}{gauge.used:,} of {gauge.window:,} tokens")

    def _retry(self, name: str, runner: asyncio.Runner) -> None:
        answers = [
            entry
            for entry in self._service.conversation.entries
            if entry.answer and not entry.replaced and entry.speaker == (name.lstrip("@") or entry.speaker)
        ]
        if not answers:
            self._problem("there is no answer to ask for again")
            return
        self._say(lambda: self._service.retry(answers[-1].answer), runner)

    def leave(self, _: str) -> None:
        self._leaving = True


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


class Command(NamedTuple):
    usage: str
    help: str
    run: Callable[[TerminalChat, str], None]
    words: tuple[str, ...] = ()
    """What may follow, for completion."""


_HISTORY: Mapping[str, Callable[[TerminalChat, str], None]] = {
    "list": TerminalChat.history_list,
    "save": TerminalChat.history_save,
    "load": TerminalChat.history_load,
    "new": TerminalChat.history_new,
    "rename": TerminalChat.history_rename,
    "delete": TerminalChat.history_delete,
    "search": TerminalChat.history_list,
}
COMMANDS: Mapping[str, Command] = {
    "/help": Command("/help", "this list", TerminalChat.help),
    "/system": Command("/system [TEXT | clear]", "show or set the system prompt", TerminalChat.system, ("clear",)),
    "/model": Command(
        "/model [NAME PROVIDER/MODEL | default NAME...]", "models and who answers", TerminalChat.model, ("default",)
    ),
    "/share": Command("/share [on | off]", "let models see each other's answers", TerminalChat.share, ("on", "off")),
    "/history": Command(
        "/history list|save|load|new|rename|delete|search", "saved conversations", TerminalChat.history, tuple(_HISTORY)
    ),
    "/reset": Command("/reset", "forget the conversation, keep the system prompt", TerminalChat.reset),
    "/copy": Command("/copy [N]", "put an answer into the clipboard; 0 is the newest", TerminalChat.copy),
    "/export": Command("/export [FORMAT] [FILE]", "Markdown, JSON or a wire format", TerminalChat.export, kinds()),
    "/tools": Command("/tools", "what models may call", TerminalChat.tools),
    "/tokens": Command("/tokens", "how full each model's window is", TerminalChat.tokens),
    "/retry": Command("/retry [NAME]", "ask for the last answer again", TerminalChat.leave),
    "/exit": Command("/exit", "leave; what is not saved is kept as a draft", TerminalChat.leave),
}
