"""Locks that die with the program that holds them."""

from __future__ import annotations

from importlib import import_module
from typing import IO, Any


def take_lock(file: IO[Any], *, wait: bool = False) -> bool:
    """Whether the file is ours now, until it is closed. Where the system has no such locks, it always is."""
    try:
        system: Any = import_module("fcntl")
    except ImportError:  # Windows
        return True
    try:
        system.flock(file, system.LOCK_EX | (0 if wait else system.LOCK_NB))
    except OSError:
        return False
    return True
