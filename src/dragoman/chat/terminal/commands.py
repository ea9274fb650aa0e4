"""What can be done in the terminal besides talking. Commands are rows of a table, which `/help` prints."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import NamedTuple, TypeAlias

from msgspec import structs

from dragoman.chat.entries import Conversation, now
from dragoman.chat.exporting import export, kinds
from dragoman.chat.importing import read_file
from dragoman.chat.mentions import ALL
from dragoman.chat.participants import participant
from dragoman.chat.stores import AlreadyThere, Changed
from dragoman.chat.terminal.clipboard import copy
from dragoman.chat.terminal.inputs import is_typed
from dragoman.chat.terminal.session import Desk, gauge_words
from dragoman.errors import DragomanError
from dragoman.loss import render_losses

Ask: TypeAlias = Callable[[], str]
"""Begins a turn; its id."""
Run: TypeAlias = Callable[[Desk, str], Ask | None]
_BAR = 20


class Command(NamedTuple):
    usage: str
    help: str
    run: Run
    words: tuple[str, ...] = ()
    """What may follow, for completion."""


# ── the conversation ──────────────────────────────────────────────────────────────────────────────────────────


def _system(desk: Desk, text: str) -> None:
    if text:
        desk.service.change(system_prompt="" if text == "clear" else text)
    desk.screen.line(desk.conversation.system_prompt or "(no system prompt)")


def _model(desk: Desk, text: str) -> None:
    service = desk.service
    name, _, model = text.partition(" ")
    if name == "default":
        names = [one.lstrip("@") for one in model.split() if one != "none"]
        strangers = [one for one in names if one != ALL and one not in service.participants]
        if strangers:
            raise ValueError(f"there is no model called {', '.join(strangers)}")
        service.configure(default=tuple(names))
    elif model:
        service.set_participant(participant(name.lstrip("@"), model.strip()))
    elif name:
        raise ValueError("which model? /model NAME PROVIDER/MODEL")
    desk.screen.rows([(f"@{one.name}", f"{one.model}, {one.window:,} tokens") for one in service.participants.values()])
    default = " ".join(f"@{one}" for one in service.options.default)
    desk.screen.line(f"without a mention: {default or 'stored as a memo'}", "dim")


def _share(desk: Desk, text: str) -> None:
    if text not in {"", "on", "off"}:
        raise ValueError("on or off?")
    if text:
        desk.service.configure(share=text == "on")
    desk.screen.line(f"answers are shared between models: {'yes' if desk.service.options.share else 'no'}")


def _reset(desk: Desk, _: str) -> None:
    if desk.may_leave():
        desk.open(Conversation(created=now(), system_prompt=desk.conversation.system_prompt))
        desk.screen.line("forgotten; the system prompt stays", "dim")


def _retry(desk: Desk, text: str) -> Ask:
    name = text.lstrip("@")
    answers = [
        entry.answer
        for entry in desk.conversation.entries
        if entry.answer and not entry.replaced and entry.speaker == (name or entry.speaker)
    ]
    if not answers:
        raise ValueError("there is no answer to ask for again")
    return lambda: desk.service.retry(answers[-1])


def _memo(desk: Desk, text: str) -> Ask:
    if not text:
        raise ValueError("what is to be remembered? /memo TEXT")
    return lambda: desk.service.start(text, memo=True)


def _copy(desk: Desk, text: str) -> None:
    entries = desk.conversation.entries
    answers = [one for one in entries if one.speaker == one.role and one.text and not one.replaced]
    number = int(text or 0)
    if not 0 <= number < len(answers):
        raise ValueError(f"there are {len(answers)} answers; 0 is the newest")
    answer = answers[-1 - number]
    if is_typed():
        by = copy(answer.text, sys.stdout)
        desk.screen.line(f"copied {len(answer.text)} characters of {answer.role}, by {by}", "dim")
    else:
        desk.screen.line(answer.text)


def _export(desk: Desk, text: str) -> None:
    kind, _, rest = text.partition(" ")
    name, target = _named(rest.strip())
    if name and name not in desk.conversation.models:
        raise ValueError(f"{name} has said nothing here")
    exported = export(desk.conversation, kind or "markdown", name or None)
    if target:
        path = Path(target).expanduser()
        if path.exists() and not desk.confirm(f"{path} exists. Overwrite it?"):
            return
        path.write_text(exported.content, encoding="utf-8")
        desk.screen.line(f"written to {path}", "dim")
    else:
        desk.screen.line(exported.content)
    if exported.losses:
        desk.screen.line(render_losses(exported.losses), "yellow")


def _named(text: str) -> tuple[str, str]:
    """A model at the start, and the rest."""
    if not text.startswith("@"):
        return "", text
    name, _, rest = text.partition(" ")
    return name.removeprefix("@"), rest.strip()


def _tools(desk: Desk, _: str) -> None:
    rows = []
    for tool in desk.service.tools:
        first = (tool.definition.description or "").partition("\n")[0]
        rows.append((tool.name, f"{'' if tool.read_only else '(asks before it runs) '}{first}"))
    desk.screen.rows(rows)
    if not rows:
        desk.screen.line("(no tools; --tools and --mcp bring some)")


def _tokens(desk: Desk, _: str) -> None:
    rows = []
    for gauge in desk.service.gauges():
        full = round(min(gauge.share, 1) * _BAR)
        rows.append((f"@{gauge.model}", f"{'█' * full}{'░' * (_BAR - full)} {gauge_words(gauge)}"))
    desk.screen.rows(rows)


def _help(desk: Desk, _: str) -> None:
    desk.screen.rows([(command.usage, command.help) for command in COMMANDS.values()])
    desk.screen.line('A line that ends in \\ goes on; """ begins and ends a block. Ctrl-C stops answers.', "dim")


def _exit(desk: Desk, _: str) -> None:
    desk.leaving = True


# ── saved conversations ───────────────────────────────────────────────────────────────────────────────────────


def _list(desk: Desk, words: str) -> None:
    found = desk.store.search(words) if words else desk.store.list()
    rows = [(row.updated[:16].replace("T", " "), f"{row.name} ({row.entries})  {row.excerpt}") for row in found]
    desk.screen.rows(rows)
    if not rows:
        desk.screen.line("(nothing)")


def _save(desk: Desk, name: str) -> None:
    here = desk.conversation
    named = structs.replace(here, name=name or here.name)
    if not named.name:
        raise ValueError("under which name?")
    if named.name != here.name and here.name:  # another name: another conversation
        named = structs.replace(named, id=Conversation().id, revision=0)
    saved = _saved(desk, named)
    if saved is not None:
        desk.open(saved)
        desk.screen.line(f"saved as {saved.name!r}", "dim")


def _saved(desk: Desk, named: Conversation) -> Conversation | None:
    """None if the user declined. What another process saved in the meantime is never overwritten unasked."""
    try:
        return desk.store.save(named)
    except AlreadyThere as error:
        return desk.store.save(named, replace=True) if desk.confirm(f"{error}. Overwrite it?") else None
    except Changed as error:
        question = f"{error}. [o]verwrite it, save a [c]opy, or [n]either? "
        word = desk.choose(question, frozenset({"o", "c", "n"}), unasked="c")
        if word == "o":
            return desk.store.save(named, replace=True)
        return desk.store.save(_copy_of(desk, named)) if word == "c" else None


def _copy_of(desk: Desk, conversation: Conversation) -> Conversation:
    taken = {row.name for row in desk.store.list()}
    names = (f"{conversation.name} ({number})" for number in count(2))
    name = next(name for name in names if name not in taken)
    return structs.replace(conversation, name=name, id=Conversation().id, revision=0)


def _load(desk: Desk, name: str) -> None:
    if not name:
        raise ValueError("which one? /history list names them")
    if desk.may_leave():
        conversation = found(desk, name)
        desk.open(conversation)
        desk.screen.entries(conversation.entries)


def found(desk: Desk, name: str) -> Conversation:
    """A conversation of the store, or a file."""
    path = Path(name).expanduser()
    return read_file(path) if path.suffix == ".json" and path.is_file() else desk.store.load(name)


def _new(desk: Desk, _: str) -> None:
    if desk.may_leave():
        desk.open(Conversation(created=now()))
        desk.screen.line("a new conversation", "dim")


def _rename(desk: Desk, name: str) -> None:
    if not desk.conversation.revision:
        raise ValueError("this conversation is not saved; /history save NAME gives it a name")
    desk.renamed(desk.store.rename(desk.conversation.name, name))
    desk.screen.line(f"it is called {desk.conversation.name!r} now", "dim")


def _delete(desk: Desk, name: str) -> None:
    if desk.confirm(f"Delete {name!r} for good?"):
        desk.store.delete(name)
        desk.screen.line(f"{name!r} is deleted", "dim")


_HISTORY: Mapping[str, Callable[[Desk, str], None]] = {
    "list": _list,
    "save": _save,
    "load": _load,
    "new": _new,
    "rename": _rename,
    "delete": _delete,
    "search": _list,
}


def _history(desk: Desk, text: str) -> None:
    word, _, rest = text.partition(" ")
    action = _HISTORY.get(word or "list")
    if action is None:
        raise ValueError(f"one of {', '.join(_HISTORY)}")
    action(desk, rest.strip())


# ── the table ─────────────────────────────────────────────────────────────────────────────────────────────────

COMMANDS: Mapping[str, Command] = {
    "/help": Command("/help", "this list", _help),
    "/system": Command("/system [TEXT | clear]", "show or set the system prompt", _system, ("clear",)),
    "/model": Command("/model [NAME PROVIDER/MODEL | default NAME...]", "models and who answers", _model, ("default",)),
    "/memo": Command("/memo TEXT", "store a note that models see later, and ask none", _memo),
    "/share": Command("/share [on | off]", "let models see each other's answers", _share, ("on", "off")),
    "/history": Command(
        "/history list|save|load|new|rename|delete|search", "saved conversations", _history, tuple(_HISTORY)
    ),
    "/reset": Command("/reset", "forget the conversation, keep the system prompt", _reset),
    "/copy": Command("/copy [N]", "put an answer into the clipboard; 0 is the newest", _copy),
    "/export": Command(
        "/export [FORMAT] [@NAME] [FILE]", "Markdown, JSON, or a wire format as one model sees it", _export, kinds()
    ),
    "/tools": Command("/tools", "what models may call", _tools),
    "/tokens": Command("/tokens", "how full each model's window is", _tokens),
    "/retry": Command("/retry [NAME]", "ask for the last answer again", _retry),
    "/exit": Command("/exit", "leave, as /quit and Ctrl-D do; what is not saved is kept as a draft", _exit),
}
ALIASES: Mapping[str, str] = {"/quit": "/exit", "exit": "/exit", "quit": "/exit"}


def run_command(desk: Desk, text: str) -> Ask | None:
    """Do what was typed; what is left to be asked of models, if anything."""
    word, _, rest = text.partition(" ")
    command = COMMANDS.get(ALIASES.get(word, word))
    if command is None:
        desk.problem(f"Unknown command: {word}; /help lists them")
        return None
    try:
        return command.run(desk, rest.strip())
    except (
        DragomanError,
        LookupError,
        ValueError,
        OSError,
    ) as error:
        desk.problem(f"{word}: {error}")
        return None


def is_command(text: str) -> bool:
    return text.startswith("/") or text in ALIASES


def phrases(desk: Desk) -> Iterator[str]:
    """All that can be completed."""
    names = tuple(desk.service.participants)
    yield from (f"@{name} " for name in (*names, ALL))
    for name, command in COMMANDS.items():
        yield from (f"{name} {word}".rstrip() for word in command.words or ("",))
    for name in names:
        yield from (f"/retry {name}", f"/model {name}", f"/model default {name}")
    for row in desk.store.list():
        yield from (f"/history load {row.name}", f"/history delete {row.name}")
