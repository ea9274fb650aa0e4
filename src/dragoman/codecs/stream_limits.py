"""Size limits of streams."""

from __future__ import annotations

from msgspec import Struct


class Limits(Struct, frozen=True):
    """Bytes of one event and of a stream. The largest recorded event has 212 KiB; a 10 MB argument is legal."""

    event_bytes: int = 64 << 20
    stream_bytes: int = 1 << 30
