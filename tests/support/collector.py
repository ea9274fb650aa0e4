"""The garbage collector of a process in which `tests/conftest.py` has frozen what was there before the first test."""

import gc
from typing import Any


def tracked_objects() -> list[Any]:
    """Every object that the collector tracks, frozen ones included."""
    gc.collect()
    gc.unfreeze()
    found = gc.get_objects()
    gc.freeze()
    return found
