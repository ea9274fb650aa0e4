"""Locks on files, so that two programs do not write the same conversation or the same output."""

from __future__ import annotations

from importlib import import_module
from typing import IO, Any


def take_lock(file: IO[Any], *, wait: bool = False) -> bool:
    """Returns whether the lock was acquired. It is held until the file is closed or the program ends.

    Always True on Windows, and on file systems that have no locks.
    """
    try:
        system: Any = import_module("fcntl")
    except ImportError:  # Windows
        return True
    try:
        system.flock(file, system.LOCK_EX | (0 if wait else system.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError:  # some network file systems
        return True
    return True
