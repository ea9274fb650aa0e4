"""What all stream decoders and encoders have in common, and how those of a format are made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from dragoman.codecs.framing import BoundedFraming
from dragoman.codecs.stream_limits import Limits
from dragoman.errors import DecodeError, IllegalEvent
from dragoman.ir import AnyEvent, Usage, UsageUpdate
from dragoman.losses import LossLog
from dragoman.profile import Profile

Texts = Mapping[int, list[str]]
"""The text of each part so far, by its index, as an accumulator keeps it."""

Moves = dict[tuple[str, str], str]
"""(state, event) -> the next state."""


class EventDecoder:
    """Decodes the payloads of one stream to events. The caller owns the returned lists.

    `moves` defines which event leads from which state to which; in each state, any other event is illegal.
    """

    source: ClassVar[str]
    moves: Moves
    texts: Texts | None = None
    """The text of each part, if an accumulator keeps it: formats whose later events refer to it read it there."""

    _state: str = ""

    def decode(self, payload: bytes) -> list[AnyEvent]:
        raise NotImplementedError

    def close(self) -> list[AnyEvent]:
        """Handle the end of bytes; return the last events."""
        raise NotImplementedError

    def _move(self, event: str, *, about: str = "") -> None:
        state = self.moves.get((self._state, event))
        if state is None:
            raise IllegalEvent(event=event + about, state=self._state, source=self.source)
        self._state = state


def not_an_event(error: Exception, source: str, expected: str = "an event") -> DecodeError:
    return DecodeError(path="$", expected=expected, got=str(error), source=source)


class BaseEventEncoder:
    """Encodes the events of one stream as bytes that a strict client of the format accepts."""

    texts: Texts | None = None
    """The text of each part, if an accumulator keeps it: formats that repeat earlier text read it there."""
    _usage: Usage | None = None
    """The token counts, which are written when the answer ends."""

    def encode(self, events: list[AnyEvent]) -> bytes:
        raise NotImplementedError

    def fragment(self, index: int, text: str) -> bytes:
        """Return what `encode` does for a `PartDelta` without a citation, as most events are."""
        raise NotImplementedError

    def close(self) -> bytes:
        """Return what follows the last event."""
        return b""

    def _on_usage(self, event: UsageUpdate) -> list[bytes]:
        self._usage = event.usage
        return []


class StreamCodec:
    """Makes the decoder, the encoder and the framing of a format's streams; looked up once per format."""

    framing: Callable[[Limits], BoundedFraming]
    profile: Profile
    _decoder: Callable[[], Any]
    _encoder: Callable[..., Any]

    def __init__(self, decoder: Any, encoder: Callable[..., Any], profile: Profile) -> None:
        # Record formats have no streams: their decoder is a function that refuses every call (records/refusals.py).
        self.framing = getattr(decoder, "framing", decoder)
        self.profile = profile
        self._decoder = decoder
        self._encoder = encoder

    def decoder(self, texts: Texts | None) -> EventDecoder:
        decoder: EventDecoder = self._decoder()
        decoder.texts = texts
        return decoder

    def encoder(self, log: LossLog, texts: Texts | None, options: dict[str, Any]) -> BaseEventEncoder:
        encoder: BaseEventEncoder = self._encoder(log, **options) if options else self._encoder(log)
        encoder.texts = texts
        return encoder
