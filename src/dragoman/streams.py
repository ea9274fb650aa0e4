"""Streams: decode, encode and translate between any two formats. Bytes in, bytes out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache, partial
from typing import Any, NamedTuple, Protocol

from dragoman.codecs.accumulate import Accumulator
from dragoman.codecs.framing import Framing
from dragoman.codecs.registry import codec, stream_module, variation
from dragoman.codecs.stream_limits import Limits
from dragoman.event_reader import EventReader
from dragoman.ir import (
    AnyEvent,
    Completion,
    Failure,
    PartDelta,
    PartEnd,
    PartStart,
    Request,
    StreamFailed,
    StreamStart,
    Text,
)
from dragoman.loss import Loss
from dragoman.losses import LossLog
from dragoman.passes.answers import HiddenReasoning, RestoredEvents, hides_reasoning
from dragoman.passes.private import PrivateEvents
from dragoman.profile import Profile

_LIMITS = Limits()
_OF_THE_ANSWER = (StreamStart, Completion)


class PayloadDecoder(Protocol):
    """Interface of the decoder in each codec's stream module."""

    @staticmethod
    def framing(limits: Limits) -> Framing: ...

    def decode(self, payload: bytes) -> list[AnyEvent]: ...

    def close(self) -> list[AnyEvent]: ...


class EventEncoder(Protocol):
    """Interface of the encoder in each codec's stream module."""

    def encode(self, events: Iterable[AnyEvent]) -> bytes: ...

    def fragment(self, index: int, text: str) -> bytes:
        """Return what `encode` does for a `PartDelta` without a citation, as most events are."""

    def close(self) -> bytes: ...


class _StreamCodec(NamedTuple):
    """Decoder and encoder of a format's streams. `texts` holds the text of each part so far, for those that need it."""

    decoder: type[Any]
    decoder_reads_texts: bool
    encoder: Callable[..., Any]
    encoder_reads_texts: bool
    profile: Profile


@cache
def _stream_codec(name: str) -> _StreamCodec:
    module = stream_module(name)
    decoder, encoder = module.PayloadDecoder, module.EventEncoder
    return _StreamCodec(
        decoder,
        hasattr(decoder, "texts"),
        partial(encoder, **told) if (told := variation(name)) else encoder,
        hasattr(encoder, "texts"),
        codec(name).profile,
    )


class StreamDecoder:
    """Bytes of one stream in, events out, for any cut of the bytes.

    A fault in the stream (bad JSON, an event out of order, a limit, an early end) is reported as a last `StreamFailed`.
    With the client's `request`, names of tools are as it declared them. An `account` gets all events before they are
    returned; formats whose later events refer to earlier text read it there instead of keeping a copy.
    """

    def __init__(
        self,
        source: str,
        *,
        request: Request | None = None,
        limits: Limits | None = None,
        account: Accumulator | None = None,
        joins_calls: bool = False,
    ) -> None:
        decoder = _decoder(source, account)
        if joins_calls and hasattr(decoder, "joins_calls"):
            decoder.joins_calls = True
        self._reader = _reader(source, decoder, request, limits, account)

    def feed(self, data: bytes) -> list[AnyEvent]:
        return self._reader.feed(data)

    @property
    def sends_whole_calls(self) -> bool:
        """Whether calls of this format arrive complete, before the answer ends."""
        return hasattr(self._reader.decoder, "settle")

    def settle(self) -> list[AnyEvent] | None:
        """Return the events of complete calls, for formats that send calls whole (Gemini, Vertex).

        None if calls are complete only when the answer ends, and once the stream has announced its end.
        """
        settle = getattr(self._reader.decoder, "settle", None)
        if settle is None or self._reader.failed:
            return None
        events: list[AnyEvent] | None = settle()
        return None if events is None else self._reader.publish(events)

    @property
    def clean(self) -> bool:
        """Whether the last bytes were the end of an event."""
        clean: bool = self._reader.framing.clean
        return clean

    def close(self) -> list[AnyEvent]:
        """End the stream; return the last events."""
        return self._reader.close()


def _decoder(source: str, account: Accumulator | None) -> Any:
    codec = _stream_codec(source)
    decoder = codec.decoder()
    if account is not None and codec.decoder_reads_texts:
        decoder.texts = account.texts
    return decoder


def _reader(
    source: str, decoder: Any, request: Request | None, limits: Limits | None, account: Accumulator | None
) -> EventReader:
    restore = None if request is None or not request.tools else RestoredEvents(request)
    return EventReader(source, decoder, decoder.framing(limits or _LIMITS), restore, account)


class StreamEncoder:
    """Events in, bytes out that a strict client of the format accepts.

    An `account` must have received the events before; formats that repeat earlier text read it there.
    """

    fragment: Callable[[int, str], bytes] | None
    """Encodes more text of a part, given its index. None if something changes the events before they are written."""
    write: Callable[[Iterable[AnyEvent]], bytes]
    """Encodes events without reporting losses."""

    def __init__(self, target: str, *, account: Accumulator | None = None, **options: Any) -> None:
        codec = _stream_codec(target)
        self.log = log = LossLog()
        encoder = codec.encoder(log, **options)
        if account is not None and codec.encoder_reads_texts:
            encoder.texts = account.texts
        self.fragment = encoder.fragment
        self.write = encoder.encode
        self.close: Callable[[], bytes] = encoder.close
        self._report = PrivateEvents(codec.profile, log).report

    def change_events(self, change: Callable[[Iterable[AnyEvent]], list[AnyEvent]]) -> None:
        """Add a change of events before the existing ones."""
        write = self.write
        self.write = lambda events: write(change(events))
        self.fragment = None

    def encode(self, events: Iterable[AnyEvent]) -> bytes:
        report, write = self._report, self.write
        return write(report(events if type(events) is list else list(events)))

    @property
    def losses(self) -> tuple[Loss, ...]:
        """Losses with paths in the whole answer, because a part is spread over many events."""
        return tuple(
            Loss(f"$.{field}" if field and type(node) in _OF_THE_ANSWER else "$", what, severity, why)
            for node, field, what, severity, why in self.log.entries
        )


class StreamTranslator:
    """A stream of one format in, the same stream in another format out; the completion is built on the way.

    With the same format on both sides the bytes pass unchanged. Otherwise `opening` may change how the answer begins: a
    relay gives it its own id and time if the client's format has them. `outgoing` may change events before they are
    written; the completion is built from the original ones.
    """

    def __init__(
        self,
        *,
        source: str,
        target: str,
        request: Request | None = None,
        limits: Limits | None = None,
        opening: Callable[[StreamStart], StreamStart] | None = None,
        outgoing: Callable[[Iterable[AnyEvent]], list[AnyEvent]] | None = None,
        **options: Any,
    ) -> None:
        self._accumulator = account = Accumulator()
        self._reader = _reader(source, _decoder(source, account), request, limits, account)
        self._read = self._reader.feed
        self._opening = opening
        self._encoder: StreamEncoder | None = None
        self._encode: Callable[[Iterable[AnyEvent]], bytes] | None = None
        self._fragment: Callable[[int, str], bytes] | None = None
        if source != target:
            self._encoder = encoder = StreamEncoder(target, account=account, **options)
            if request is not None and hides_reasoning(request, _stream_codec(target).profile):
                encoder.change_events(HiddenReasoning(encoder.log))
            if outgoing is not None:
                encoder.change_events(outgoing)
            self._fragment = encoder.fragment
            self._encode = encoder.encode if opening is None else self._encode_opening

    def feed(self, data: bytes) -> bytes:
        # Local names: `self._read(data)` looks for a method first, which is slower in Python 3.11.
        read, encode = self._read, self._encode
        events = read(data)
        if encode is None:
            return data
        if not events:
            return b""
        event = events[0]
        if type(event) is PartDelta and len(events) == 1 and event.citation is None:
            fragment = self._fragment
            if fragment is not None:
                return fragment(event.index, event.text)  # most events are text, which needs no report
        return encode(events)

    def close(self) -> bytes:
        events = self._reader.close()
        if self._encode is None or self._encoder is None:
            return b""
        return self._encode(events) + self._encoder.close() if events else self._encoder.close()

    @property
    def clean(self) -> bool:
        """Whether the last bytes of the source were the end of an event."""
        clean: bool = self._reader.framing.clean
        return clean

    def fail(self, failure: Failure) -> bytes:
        """End the stream with a failure that is not in the source's bytes, such as a lost connection."""
        ends = [event for event in self._reader.close() if isinstance(event, PartEnd)]
        events: list[AnyEvent] = [*ends, StreamFailed(failure)]
        self._accumulator.add(events[-1:])
        return b"" if self._encode is None else self._encode(events)

    def _encode_opening(self, events: Iterable[AnyEvent]) -> bytes:
        """Encode until the answer has begun; then replace itself with the encoder."""
        assert self._encoder is not None  # noqa: S101 - see __init__
        assert self._opening is not None  # noqa: S101
        told = list(events)
        for place, event in enumerate(told):
            if isinstance(event, StreamStart):
                told[place] = self._opening(event)
        if told:
            if not isinstance(told[0], StreamStart | StreamFailed):
                told.insert(0, self._opening(StreamStart()))
            self._encode = self._encoder.encode
        return self._encoder.encode(told)

    @property
    def completion(self) -> Completion:
        """The answer so far."""
        return self._accumulator.so_far()

    @property
    def failure(self) -> Failure | None:
        failed = self._accumulator.failed
        return None if failed is None else failed.failure

    @property
    def losses(self) -> tuple[Loss, ...]:
        return () if self._encoder is None else self._encoder.losses


class TextStream:
    """Only the text as it arrives; calls, usage and the rest are in the completion at the end."""

    def __init__(self, source: str, *, limits: Limits | None = None) -> None:
        self._accumulator = Accumulator()
        self._decoder = StreamDecoder(source, limits=limits, account=self._accumulator)
        self._texts: set[int] = set()

    def feed(self, data: bytes) -> str:
        return self._read(self._decoder.feed(data))

    def close(self) -> str:
        return self._read(self._decoder.close())

    def _read(self, events: list[AnyEvent]) -> str:
        pieces = []
        for event in events:
            if isinstance(event, PartStart) and isinstance(event.part, Text) and not event.candidate:
                self._texts.add(event.index)
                pieces.append(event.part.text)
            elif isinstance(event, PartDelta) and event.index in self._texts:
                pieces.append(event.text)
        return "".join(pieces)

    @property
    def completion(self) -> Completion:
        return self._accumulator.so_far()
