"""The base class of the stream encoders of all formats."""

from __future__ import annotations

from collections.abc import Iterable

from dragoman.ir import AnyEvent


class BaseEventEncoder:
    """Encodes the events of one stream as bytes that a strict client of the format accepts."""

    def encode(self, events: Iterable[AnyEvent]) -> bytes:
        raise NotImplementedError

    def fragment(self, index: int, text: str) -> bytes:
        """Return what `encode` does for a `PartDelta` without a citation, as most events are."""
        raise NotImplementedError

    def close(self) -> bytes:
        """Return what follows the last event."""
        return b""
