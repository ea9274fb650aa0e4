"""The base class of the stream decoders of all formats."""

from __future__ import annotations

from dragoman.ir import AnyEvent


class EventDecoder:
    """Decodes the payloads of one stream to events. The caller owns the returned lists."""

    def decode(self, payload: bytes) -> list[AnyEvent]:
        raise NotImplementedError

    def close(self) -> list[AnyEvent]:
        """Handle the end of bytes; return the last events."""
        raise NotImplementedError
