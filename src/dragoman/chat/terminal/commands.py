"""Slash commands of the terminal chat, as rows of a table, which `/help` prints."""

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
from dragoman.chat.terminal.inputs import is_interactive
from dragoman.chat.terminal.session import Session, describe_gauge
from dragoman.errors import DragomanError
from dragoman.loss import render_losses

Ask: TypeAlias = Callable[[], str]
"""Starts a turn and returns its id."""
Run: TypeAlias = Callable[[Session, str], Ask | None]
_BAR = 20


class Command(NamedTuple):
    usage: str
    help: str
    run: Run
    words: tuple[str, ...] = ()
    """Arguments offered for completion."""


# ── the conversation ──────────────────────────────────────────────────────────────────────────────────────────


def _system(session: Session, text: str) -> None:
    if text:
        session.service.change(system_prompt="" if text == "clear" else text)
    session.screen.line(session.conversation.system_prompt or "(no system prompt)")


def _model(session: Session, text: str) -> None:
    service = session.service
    name, _, model = text.partition(" ")
    if name == "default":
        names = [one.lstrip("@") for one in model.split() if one != "none"]
        strangers = [one for one in names if one != ALL and one not in service.participants]
        if strangers:
            raise ValueError(f"there is no model named {', '.join(strangers)}")
        service.configure(default=tuple(names))
    elif model:
        service.set_participant(participant(name.lstrip("@"), model.strip()))
    elif name:
        raise ValueError("which model? /model NAME PROVIDER/MODEL")
    session.screen.rows(
        [(f"@{one.name}", f"{one.model}, {one.window:,} tokens") for one in service.participants.values()]
    )
    default = " ".join(f"@{one}" for one in service.options.default)
    session.screen.line(f"without a mention: {default or 'stored as a memo'}", "dim")


def _share(session: Session, text: str) -> None:
    if text not in {"", "on", "off"}:
        raise ValueError("use /share on or /share off")
    if text:
        session.service.configure(share=text == "on")
    session.screen.line(f"answers are shared between models: {'yes' if session.service.options.share else 'no'}")


def _reset(session: Session, _: str) -> None:
    if session.may_leave():
        session.open(Conversation(created=now(), system_prompt=session.conversation.system_prompt))
        session.screen.line("forgotten; the system prompt stays", "dim")


def _retry(session: Session, text: str) -> Ask:
    name = text.lstrip("@")
    answers = [
        entry.answer
        for entry in session.conversation.entries
        if entry.answer and not entry.replaced and entry.speaker == (name or entry.speaker)
    ]
    if not answers:
        raise ValueError("there is no answer to retry yet")
    return lambda: session.service.retry(answers[-1])


def _memo(session: Session, text: str) -> Ask:
    if not text:
        raise ValueError("nothing to store; use /memo TEXT")
    return lambda: session.service.start(text, memo=True)


def _copy(session: Session, text: str) -> None:
    entries = session.conversation.entries
    answers = [one for one in entries if one.speaker == one.role and one.text and not one.replaced]
    number = int(text or 0)
    if not 0 <= number < len(answers):
        raise ValueError(f"there are {len(answers)} answers; 0 is the newest")
    answer = answers[-1 - number]
    if is_interactive():
        by = copy(answer.text, sys.stdout)
        session.screen.line(f"copied {len(answer.text)} characters of {answer.role}, by {by}", "dim")
    else:
        session.screen.line(answer.text)


def _export(session: Session, text: str) -> None:
    kind, _, rest = text.partition(" ")
    name, target = _split_mention(rest.strip())
    if name and name not in session.conversation.models:
        raise ValueError(f"{name} has not answered in this conversation")
    exported = export(session.conversation, kind or "markdown", name or None)
    if target:
        path = Path(target).expanduser()
        if path.exists() and not session.confirm(f"{path} exists. Overwrite it?"):
            return
        path.write_text(exported.content, encoding="utf-8")
        session.screen.line(f"written to {path}", "dim")
    else:
        session.screen.line(exported.content)
    if exported.losses:
        session.screen.line(render_losses(exported.losses), "yellow")


def _split_mention(text: str) -> tuple[str, str]:
    """Splits `@NAME REST`; the name is empty if there is none."""
    if not text.startswith("@"):
        return "", text
    name, _, rest = text.partition(" ")
    return name.removeprefix("@"), rest.strip()


def _tools(session: Session, _: str) -> None:
    rows = []
    for tool in session.service.tools:
        first = (tool.definition.description or "").partition("\n")[0]
        rows.append((tool.name, f"{'' if tool.read_only else '(asks before it runs) '}{first}"))
    session.screen.rows(rows)
    if not rows:
        session.screen.line("(no tools; add some with --tools FILE or --mcp FILE)")


def _tokens(session: Session, _: str) -> None:
    rows = []
    for gauge in session.service.gauges():
        full = round(min(gauge.share, 1) * _BAR)
        rows.append((f"@{gauge.model}", f"{'█' * full}{'░' * (_BAR - full)} {describe_gauge(gauge)}"))
    session.screen.rows(rows)


def _help(session: Session, _: str) -> None:
    session.screen.rows([(command.usage, command.help) for command in COMMANDS.values()])
    session.screen.line('End a line with \\ to continue it; put """ around a block. Ctrl-C stops answers.', "dim")


def _exit(session: Session, _: str) -> None:
    session.leaving = True


# ── saved conversations ───────────────────────────────────────────────────────────────────────────────────────


def _list(session: Session, words: str) -> None:
    found = session.store.search(words) if words else session.store.list()
    rows = [(row.updated[:16].replace("T", " "), f"{row.name} ({row.entries})  {row.excerpt}") for row in found]
    session.screen.rows(rows)
    if not rows:
        session.screen.line("(nothing)")


def _save(session: Session, name: str) -> None:
    conversation = session.conversation
    named = structs.replace(conversation, name=name or conversation.name)
    if not named.name:
        raise ValueError("give it a name: /history save NAME")
    if named.name != conversation.name and conversation.name:  # a new name makes a new conversation
        named = structs.replace(named, id=Conversation().id, revision=0)
    saved = _save_or_ask(session, named)
    if saved is not None:
        session.open(saved)
        session.screen.line(f"saved as {saved.name!r}", "dim")


def _save_or_ask(session: Session, named: Conversation) -> Conversation | None:
    """Saves, and asks before it overwrites what another process saved. None if the user declined."""
    try:
        return session.store.save(named)
    except AlreadyThere as error:
        return session.store.save(named, replace=True) if session.confirm(f"{error}. Overwrite it?") else None
    except Changed as error:
        question = f"{error}. [o]verwrite it, save a [c]opy, or [n]either? "
        word = session.choose(question, frozenset({"o", "c", "n"}), unasked="c")
        if word == "o":
            return session.store.save(named, replace=True)
        return session.store.save(_copy_of(session, named)) if word == "c" else None


def _copy_of(session: Session, conversation: Conversation) -> Conversation:
    taken = {row.name for row in session.store.list()}
    names = (f"{conversation.name} ({number})" for number in count(2))
    name = next(name for name in names if name not in taken)
    return structs.replace(conversation, name=name, id=Conversation().id, revision=0)


def _load(session: Session, name: str) -> None:
    if not name:
        raise ValueError("give a name: /history load NAME; /history list shows them")
    if session.may_leave():
        conversation = load_conversation(session, name)
        session.open(conversation)
        session.screen.entries(conversation.entries)


def load_conversation(session: Session, name: str) -> Conversation:
    """Loads a conversation from the store or from a JSON file."""
    path = Path(name).expanduser()
    return read_file(path) if path.suffix == ".json" and path.is_file() else session.store.load(name)


def _new(session: Session, _: str) -> None:
    if session.may_leave():
        session.open(Conversation(created=now()))
        session.screen.line("a new conversation", "dim")


def _rename(session: Session, name: str) -> None:
    if not session.conversation.revision:
        raise ValueError("this conversation is not saved; /history save NAME gives it a name")
    session.take_new_name(session.store.rename(session.conversation.name, name))
    session.screen.line(f"renamed to {session.conversation.name!r}", "dim")


def _delete(session: Session, name: str) -> None:
    if session.confirm(f"Delete {name!r} for good?"):
        session.store.delete(name)
        session.screen.line(f"deleted {name!r}", "dim")


_HISTORY: Mapping[str, Callable[[Session, str], None]] = {
    "list": _list,
    "save": _save,
    "load": _load,
    "new": _new,
    "rename": _rename,
    "delete": _delete,
    "search": _list,
}


def _history(session: Session, text: str) -> None:
    word, _, rest = text.partition(" ")
    action = _HISTORY.get(word or "list")
    if action is None:
        raise ValueError(f"unknown action {word!r}; use one of {', '.join(_HISTORY)}")
    action(session, rest.strip())


# ── the table ─────────────────────────────────────────────────────────────────────────────────────────────────

COMMANDS: Mapping[str, Command] = {
    "/help": Command("/help", "this list", _help),
    "/system": Command("/system [TEXT | clear]", "show or set the system prompt", _system, ("clear",)),
    "/model": Command(
        "/model [NAME PROVIDER/MODEL | default NAME...]",
        "show or set models",
        _model,
        ("default",),
    ),
    "/memo": Command("/memo TEXT", "store a note that models see later; none answers", _memo),
    "/share": Command("/share [on | off]", "let models see each other's answers", _share, ("on", "off")),
    "/history": Command(
        "/history list|save|load|new|rename|delete|search", "saved conversations", _history, tuple(_HISTORY)
    ),
    "/reset": Command("/reset", "forget the conversation, keep the system prompt", _reset),
    "/copy": Command("/copy [N]", "copy an answer to the clipboard; 0 is the newest", _copy),
    "/export": Command(
        "/export [FORMAT] [@NAME] [FILE]", "Markdown, JSON, or a wire format as one model sees it", _export, kinds()
    ),
    "/tools": Command("/tools", "tools that models may call", _tools),
    "/tokens": Command("/tokens", "how full each model's window is", _tokens),
    "/retry": Command("/retry [NAME]", "ask for the last answer again", _retry),
    "/exit": Command("/exit", "leave (also /quit or Ctrl-D); unsaved text is kept as a draft", _exit),
}
ALIASES: Mapping[str, str] = {"/quit": "/exit", "exit": "/exit", "quit": "/exit"}


def run_command(session: Session, text: str) -> Ask | None:
    """Runs a command; returns the turn to start, if the command asks models something."""
    word, _, rest = text.partition(" ")
    command = COMMANDS.get(ALIASES.get(word, word))
    if command is None:
        session.problem(f"Unknown command: {word}; /help lists them")
        return None
    try:
        return command.run(session, rest.strip())
    except (
        DragomanError,
        LookupError,
        ValueError,
        OSError,
    ) as error:
        session.problem(f"{word}: {error}")
        return None


def is_command(text: str) -> bool:
    return text.startswith("/") or text in ALIASES


def completion_phrases(session: Session) -> Iterator[str]:
    """All phrases offered for completion."""
    names = tuple(session.service.participants)
    yield from (f"@{name} " for name in (*names, ALL))
    for name, command in COMMANDS.items():
        yield from (f"{name} {word}".rstrip() for word in command.words or ("",))
    for name in names:
        yield from (f"/retry {name}", f"/model {name}", f"/model default {name}")
    for row in session.store.list():
        yield from (f"/history load {row.name}", f"/history delete {row.name}")
