"""A translator of streams that records what goes through it, for the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.ir import Failure
from dragoman.streams import StreamTranslator

if TYPE_CHECKING:
    from dragoman.gateway.capture import CapturedRequest


class CapturingTranslator(StreamTranslator):
    """A translator that records what goes through it."""

    captured: CapturedRequest

    def feed(self, data: bytes) -> bytes:
        out = self._relay.relay(data)  # as the base class does, without its frame: this runs for every chunk
        self.captured.piece(data, out)
        return out

    def close(self) -> bytes:
        return self.capture_last(super().close())

    def fail(self, failure: Failure) -> bytes:
        return self.capture_last(super().fail(failure))

    def capture_last(self, last: bytes) -> bytes:
        """Record what the client is sent at the end, without input from the upstream."""
        if last:
            self.captured.piece(b"", last)
        return last
