"""A program in a real pseudo-terminal: keys go in, the screen comes out."""

import fcntl
import os
import pty
import re
import select
import struct
import sys
import termios
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
PATIENCE = 20.0
_SEQUENCES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\a]*\a|\x1b[=>]|\r")


class Program:
    """What it has written is in `screen`, without colours and movements."""

    def __init__(self, descriptor: int, process: int) -> None:
        self._descriptor = descriptor
        self.process = process
        self.written = ""
        self._read_to = 0

    @property
    def screen(self) -> str:
        return _SEQUENCES.sub("", self.written)

    def type(self, text: str) -> None:
        """Keys; what was on the screen before does not count for `wait`."""
        self._read_to = len(self.screen)
        os.write(self._descriptor, text.encode())

    def wait(self, words: str) -> str:
        """Until the words are there; what has come since the last keys."""
        end = time.monotonic() + PATIENCE
        while words not in self.screen[self._read_to :]:
            left = end - time.monotonic()
            assert left > 0, f"{words!r} is not in:\n{self.screen[self._read_to :]}"
            self._more(left)
        return self.screen[self._read_to :]

    def ended(self) -> int:
        while self._more(PATIENCE):
            pass
        return os.waitstatus_to_exitcode(os.waitpid(self.process, 0)[1])

    def _more(self, seconds: float) -> bool:
        ready, _, _ = select.select([self._descriptor], [], [], seconds)
        assert ready, f"nothing came any more:\n{self.screen[self._read_to :]}"
        try:
            data = os.read(self._descriptor, 65536)
        except OSError:  # how Linux tells that the other side is closed
            return False
        self.written += data.decode("utf-8", "replace")
        return bool(data)


@contextmanager
def terminal(
    arguments: Sequence[str], environment: Mapping[str, str], *, columns: int = 100, rows: int = 40
) -> Iterator[Program]:
    """`python -m dragoman ...` in a terminal of this size."""
    process, descriptor = pty.fork()
    if process == 0:  # pragma: no cover - another process
        known = {
            **os.environ,
            **environment,
            "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}",
            "TERM": "xterm-256color",
        }
        for name in ("COLUMNS", "LINES", "NO_COLOR"):
            known.pop(name, None)
        os.execve(sys.executable, [sys.executable, "-m", "dragoman", *arguments], known)  # noqa: S606
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    program = Program(descriptor, process)
    try:
        yield program
    finally:
        os.close(descriptor)
        try:
            os.kill(process, 9)
            os.waitpid(process, 0)
        except (ProcessLookupError, ChildProcessError):
            pass
