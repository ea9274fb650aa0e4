"""What is known about a format's streams before one of them begins; looked up once per format."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dragoman.codecs.event_decoder import EventDecoder
from dragoman.codecs.event_encoder import BaseEventEncoder
from dragoman.codecs.framing import BoundedFraming
from dragoman.codecs.stream_limits import Limits
from dragoman.losses import LossLog
from dragoman.profile import Profile

Texts = Mapping[int, list[str]]
"""The text of each part so far, by its index, as an accumulator keeps it."""


class StreamCodec:
    """Makes the decoder, the encoder and the framing of a format's streams."""

    framing: Callable[[Limits], BoundedFraming]
    profile: Profile
    _decoder: Callable[[], Any]
    _encoder: Callable[..., Any]
    _decoder_reads_texts: bool
    _encoder_reads_texts: bool

    def __init__(self, decoder: Any, encoder: Any, profile: Profile, varied: Callable[..., Any]) -> None:
        """`varied`: the encoder, with the arguments of a format that is another one with a different profile."""
        # Record formats have no streams: their decoder is a function that refuses every call (records/refusals.py).
        self.framing = getattr(decoder, "framing", decoder)
        self.profile = profile
        self._decoder = decoder
        self._encoder = varied
        self._decoder_reads_texts = hasattr(decoder, "texts")
        self._encoder_reads_texts = hasattr(encoder, "texts")

    def decoder(self, texts: Texts | None) -> EventDecoder:
        decoder = self._decoder()
        if texts is not None and self._decoder_reads_texts:
            decoder.texts = texts
        made: EventDecoder = decoder
        return made

    def encoder(self, log: LossLog, texts: Texts | None, options: dict[str, Any]) -> BaseEventEncoder:
        encoder = self._encoder(log, **options) if options else self._encoder(log)
        if texts is not None and self._encoder_reads_texts:
            encoder.texts = texts
        made: BaseEventEncoder = encoder
        return made
