"""Typed input: with history, completion and multi-line messages."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from dragoman.private_files import create_private_file, create_private_folder

_MORE = "\\"
_BLOCK = '"""'
_GNU = ("tab: complete", "set enable-bracketed-paste on")
_LOCAL_MODES, _SPECIAL_KEYS = 3, 6
"""Indices in the list from `tcgetattr`."""
_DISABLED = b"\0"
"""No key has this special meaning (`_POSIX_VDISABLE`)."""
_LIBEDIT = ("bind ^I rl_complete",)


def is_interactive() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()


class TerminalModes:
    """How the terminal treats keys while no line is being edited.

    Ctrl-D stays a key like any other: the kernel would keep it as the end of a line, and turn that into a NUL when
    readline takes the terminal over. That can happen at any moment before readline does, not only during an answer.
    """

    def __init__(self) -> None:
        self._termios: Any = import_module("termios") if is_interactive() and find_spec("termios") is not None else None
        self._usual: list[Any] = [] if self._termios is None else self._termios.tcgetattr(sys.stdin)

    def while_chatting(self) -> AbstractContextManager[None]:
        """For the whole chat. Where GNU readline does not read the lines, the kernel must know Ctrl-D."""
        if self._termios is None or not _is_gnu_readline():
            return nullcontext()
        return self._set(self._ordinary_eof_key())

    def while_answering(self) -> AbstractContextManager[None]:
        """Nothing typed is echoed, so that it does not disturb the drawing; all of it is read at the next prompt."""
        if self._termios is None:
            return nullcontext()
        modes = self._ordinary_eof_key()
        modes[_LOCAL_MODES] &= ~self._termios.ECHO
        return self._set(modes)

    def _ordinary_eof_key(self) -> list[Any]:
        modes = [*self._usual]
        modes[_SPECIAL_KEYS] = [*modes[_SPECIAL_KEYS]]
        modes[_SPECIAL_KEYS][self._termios.VEOF] = _DISABLED
        return modes

    def while_asking(self) -> AbstractContextManager[None]:
        """The usual modes again, for a question within an answer."""
        return nullcontext() if self._termios is None else self._set(self._usual)

    @contextmanager
    def _set(self, modes: list[Any]) -> Iterator[None]:
        before = self._termios.tcgetattr(sys.stdin)
        self._termios.tcsetattr(sys.stdin, self._termios.TCSANOW, modes)
        try:
            yield
        finally:
            self._termios.tcsetattr(sys.stdin, self._termios.TCSANOW, before)


def _is_gnu_readline() -> bool:
    return find_spec("readline") is not None and "libedit" not in str(import_module("readline").__doc__)


class LineReader:
    """Reads messages. A backslash at the end continues a line; three quotes begin and end a block."""

    def __init__(self, words: Callable[[], Iterable[str]], history: Path | None = None) -> None:
        self._words = words
        self._history = history
        self._readline: Any = None
        if is_interactive():
            self._prepare()

    def _prepare(self) -> None:
        try:
            self._readline = import_module("readline")
        except ImportError:  # Windows
            return
        self._readline.set_completer_delims(" \t\n")
        self._readline.set_completer(self._complete)
        self._readline.set_auto_history(False)  # answers to prompts do not belong in the history
        for line in _GNU if _is_gnu_readline() else _LIBEDIT:
            self._readline.parse_and_bind(line)
        if self._history is not None and self._history.exists():
            try:
                self._readline.read_history_file(self._history)
            except OSError:
                self._history = None

    def _complete(self, text: str, state: int) -> str | None:
        """Completes mentions and commands at the start of a line, and arguments of commands after them."""
        line = str(self._readline.get_line_buffer())
        fitting = completions(line, text, self._words())
        return fitting[state] if state < len(fitting) else None

    def read(self, prompt: str) -> str | None:
        """The next message; None at the end of input."""
        message = self._message(prompt)
        if message and self._readline is not None:
            for line in message.splitlines():
                self._readline.add_history(line)
        return message

    def _message(self, prompt: str) -> str | None:
        line = self._line(prompt)
        if line is None:
            return None
        if line.strip().startswith(_BLOCK):
            return self._block(line.strip().removeprefix(_BLOCK))
        lines = [line]
        while lines[-1].endswith(_MORE):
            lines[-1] = lines[-1].removesuffix(_MORE)
            more = self._line("… ")
            if more is None:
                break
            lines.append(more)
        return "\n".join(lines)

    def _block(self, first: str) -> str:
        lines = [first] if first else []
        while not (lines and lines[-1].rstrip().endswith(_BLOCK)):
            more = self._line("… ")
            if more is None:
                return "\n".join(lines)
            lines.append(more)
        lines[-1] = lines[-1].rstrip().removesuffix(_BLOCK)
        return "\n".join(lines).rstrip("\n")

    def _line(self, prompt: str) -> str | None:
        if is_interactive():
            try:
                return input(prompt)
            except EOFError:
                return None
        line = sys.stdin.readline() if sys.stdin is not None else ""
        return line.removesuffix("\n") if line else None

    def close(self) -> None:
        if self._readline is not None and self._history is not None:
            try:
                create_private_folder(self._history.parent)
                create_private_file(self._history)
                self._readline.set_history_length(1000)
                self._readline.write_history_file(self._history)
            except OSError:
                return


def completions(line: str, text: str, words: Iterable[str]) -> list[str]:
    """Completions of the current word: next words of the phrases that start with the line.

    >>> completions("/history l", "l", ["/history list", "/history load", "/help"])
    ['list ', 'load ']
    """
    start = len(line) - len(text)
    fitting = [word for word in words if word.startswith(line) and word != line]
    ends = dict.fromkeys(word[start:].split(" ")[0] + " " for word in fitting)
    return sorted(ends)
