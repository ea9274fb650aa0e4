"""Times as JSON text (RFC 3339), and as seconds since 1970."""

from __future__ import annotations

import datetime as dt
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import Raw


def read_time(raw: Raw) -> int | None:
    """Return seconds since 1970; None for a value that is not a time."""
    try:
        return int(msgspec.json.decode(raw, type=dt.datetime).timestamp())
    except (msgspec.DecodeError, OverflowError, ValueError):
        return None


def whole_seconds(created: Any) -> int | None:
    """Return a time in seconds without the fraction that some servers send."""
    if type(created) is not float:
        seconds: int | None = created
        return seconds
    return int(created) if abs(created) < _LATEST else None


_LATEST = 1e12
"""In seconds: later than any time that `write_time` can express."""


@lru_cache(maxsize=64)  # the events of a stream, and its answer, share one
def write_time(created: int | None) -> str:
    try:
        moment = dt.datetime.fromtimestamp(created or 0, dt.UTC)
    except (OverflowError, ValueError, OSError):
        moment = dt.datetime.fromtimestamp(0, dt.UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}Z"
