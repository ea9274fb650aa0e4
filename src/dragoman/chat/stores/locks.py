"""File locks, which the operating system releases when their program ends."""

from __future__ import annotations

from importlib import import_module
from typing import IO, Any


def take_lock(file: IO[Any], *, wait: bool = False) -> bool:
    """Returns whether the lock was acquired; it is held until the file is closed. Always True on Windows."""
    try:
        system: Any = import_module("fcntl")
    except ImportError:  # Windows
        return True
    try:
        system.flock(file, system.LOCK_EX | (0 if wait else system.LOCK_NB))
    except OSError:
        return False
    return True
