"""What the decoders of all streams are, whatever their format."""

from __future__ import annotations

from dragoman.ir import AnyEvent


class EventDecoder:
    """Payloads of one stream in, events out. The caller owns the lists it gets."""

    def decode(self, payload: bytes) -> list[AnyEvent]:
        raise NotImplementedError

    def close(self) -> list[AnyEvent]:
        """The end of bytes."""
        raise NotImplementedError
