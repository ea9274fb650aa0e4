"""The clipboard of the terminal's user."""

from __future__ import annotations

import base64
import os
import subprocess
from collections.abc import Sequence
from shutil import which
from typing import TextIO

# Program, the variable that tells that it would work, and the encoding it reads.
_PROGRAMS: tuple[tuple[Sequence[str], str, str], ...] = (
    (("wl-copy",), "WAYLAND_DISPLAY", "utf-8"),
    (("xclip", "-selection", "clipboard"), "DISPLAY", "utf-8"),
    (("xsel", "--clipboard", "--input"), "DISPLAY", "utf-8"),
    (("pbcopy",), "", "utf-8"),
    (("clip.exe",), "", "utf-16-le"),
)
_PATIENCE = 5.0  # seconds


def copy(text: str, terminal: TextIO) -> str:
    """By a program of this machine, or by the terminal itself (OSC 52), also from another machine; who did it."""
    for command, variable, encoding in _PROGRAMS:
        if (not variable or os.environ.get(variable)) and which(command[0]) and _given(command, text.encode(encoding)):
            return command[0]
    code = base64.b64encode(text.encode("utf-8", "replace")).decode()
    terminal.write(f"\x1b]52;c;{code}\a")
    terminal.flush()
    return "the terminal"


def _given(command: Sequence[str], data: bytes) -> bool:
    try:
        # Where it reads nothing of ours but its input: some of these stay, to hand out what they were given.
        done = subprocess.run(  # noqa: S603 - a name of the table above
            command,
            input=data,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_PATIENCE,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
