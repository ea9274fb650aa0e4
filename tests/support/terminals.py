"""A program in a real pseudo-terminal: keys go in, and a terminal emulator renders what a user would see."""

import fcntl
import os
import pty
import re
import select
import struct
import sys
import termios
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyte

from tests.support.waiting import PATIENCE

ROOT = Path(__file__).parents[2]

_SEQUENCES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\a]*\a|\x1b[=>]|\r")


class Program:
    """`lines` is the screen as it is now; `screen` is all that was ever written, without colours and movements."""

    def __init__(self, descriptor: int, process: int, columns: int, rows: int) -> None:
        self._descriptor = descriptor
        self.process = process
        self.written = ""
        self._read_to = 0
        self._emulator = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self._emulator)
        self._set_size(columns, rows)

    @property
    def screen(self) -> str:
        return _SEQUENCES.sub("", self.written)

    @property
    def lines(self) -> list[str]:
        return [line.rstrip() for line in self._emulator.display]

    def colours(self) -> set[str]:
        """Of all signs on the screen."""
        cells = (cell for row in self._emulator.buffer.values() for cell in row.values())
        return {cell.fg for cell in cells} - {"default"}

    def resize(self, columns: int, rows: int) -> None:
        self._emulator.resize(rows, columns)
        self._set_size(columns, rows)

    def _set_size(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self._descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text: str) -> None:
        """Keys; what was on the screen before does not count for `wait`."""
        self._read_to = len(self.screen)
        os.write(self._descriptor, text.encode())

    def wait(self, words: str) -> str:
        """Until the words are there; what has come since the last keys."""
        self._until(lambda: words in self.screen[self._read_to :], words)
        return self.screen[self._read_to :]

    def see(self, *words: str) -> list[str]:
        """Until all the words are on the screen at the same time; its lines."""
        return self.until(lambda lines: all(any(word in line for line in lines) for word in words), str(words))

    def until(self, test: Callable[[list[str]], bool], what: str = "it") -> list[str]:
        self._until(lambda: test(self.lines), what)
        return self.lines

    def _until(self, test: Callable[[], bool], what: str) -> None:
        end = time.monotonic() + PATIENCE
        while not test():
            left = end - time.monotonic()
            assert left > 0, f"{what!r} is not in:\n" + "\n".join(self.lines)
            self._more(left, what)

    def read(self, seconds: float) -> None:
        """What comes within this time, if anything does."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if select.select([self._descriptor], [], [], left)[0]:
                self._more(PATIENCE, "more")

    def ended(self) -> int:
        while self._more(PATIENCE, "the end"):
            pass
        return os.waitstatus_to_exitcode(os.waitpid(self.process, 0)[1])

    def _more(self, seconds: float, what: str) -> bool:
        ready, _, _ = select.select([self._descriptor], [], [], seconds)
        assert ready, f"nothing came any more, waiting for {what!r}:\n" + "\n".join(self.lines)
        try:
            data = os.read(self._descriptor, 65536)
        except OSError:  # Linux reports the closed other side like this
            return False
        self.written += data.decode("utf-8", "replace")
        self._stream.feed(data)
        return bool(data)


@contextmanager
def terminal(
    arguments: Sequence[str], environment: Mapping[str, str], *, columns: int = 100, rows: int = 40
) -> Iterator[Program]:
    """`python -m dragoman ...` in a terminal of this size. An empty value in the environment takes a variable away."""
    process, descriptor = pty.fork()
    if process == 0:  # pragma: no cover - another process
        known = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}", "TERM": "xterm-256color"}
        for name in ("COLUMNS", "LINES", "NO_COLOR", "DISPLAY", "WAYLAND_DISPLAY"):
            known.pop(name, None)
        os.execve(sys.executable, [sys.executable, "-m", "dragoman", *arguments], {**known, **environment})  # noqa: S606
    program = Program(descriptor, process, columns, rows)
    try:
        yield program
    finally:
        os.close(descriptor)
        try:
            os.kill(process, 9)
            os.waitpid(process, 0)
        except (ProcessLookupError, ChildProcessError):
            pass
