"""Copying to the user's clipboard."""

from __future__ import annotations

import base64
import os
import subprocess
from collections.abc import Sequence
from shutil import which
from typing import TextIO

# Program, the environment variable it needs, and the encoding it reads.
_PROGRAMS: tuple[tuple[Sequence[str], str, str], ...] = (
    (("wl-copy",), "WAYLAND_DISPLAY", "utf-8"),
    (("xclip", "-selection", "clipboard"), "DISPLAY", "utf-8"),
    (("xsel", "--clipboard", "--input"), "DISPLAY", "utf-8"),
    (("pbcopy",), "", "utf-8"),
    (("clip.exe",), "", "utf-16-le"),
)
_TIMEOUT = 5.0  # seconds


def copy(text: str, terminal: TextIO) -> str:
    """Copies by a program, or by the terminal itself (OSC 52), which also works over SSH; returns what copied it."""
    for command, variable, encoding in _PROGRAMS:
        if (
            (not variable or os.environ.get(variable))
            and which(command[0])
            and _pipe_to(command, text.encode(encoding))
        ):
            return command[0]
    code = base64.b64encode(text.encode("utf-8", "replace")).decode()
    terminal.write(f"\x1b]52;c;{code}\a")
    terminal.flush()
    return "the terminal"


def _pipe_to(command: Sequence[str], data: bytes) -> bool:
    try:
        # Some of these programs keep running to serve the clipboard, so they must not hold our output open.
        done = subprocess.run(  # noqa: S603 - from the table above
            command,
            input=data,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_TIMEOUT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
