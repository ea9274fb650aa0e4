"""Streams: decode, encode and translate between any two formats. Bytes in, bytes out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache, partial
from typing import Any, NamedTuple, Protocol

from msgspec import structs

from dragoman.codecs.accumulate import Accumulator
from dragoman.codecs.framing import Framing
from dragoman.codecs.reading import MALFORMED, check_text, misread
from dragoman.codecs.registry import codec, stream_module, variation
from dragoman.codecs.stream_limits import Limits
from dragoman.errors import DecodeError, LimitExceeded
from dragoman.ir import (
    AnyEvent,
    Completion,
    Failure,
    FailureKind,
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

_BROKEN = (DecodeError, *MALFORMED)
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
        partial(encoder, **variation(name)),
        hasattr(encoder, "texts"),
        codec(name).profile,
    )


class StreamDecoder:
    """Bytes of one stream in, events out, for any cut of the bytes.

    A fault in the stream (bad JSON, an event out of order, a limit, an early end) is reported as a last `StreamFailed`.
    With the client's `request`, names of tools are as it declared them. An `account` gets all events before they are
    handed out; a wire on which later events speak of earlier text finds that text there, and keeps no copy.
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
        codec = _stream_codec(source)
        decoder = codec.decoder()
        if joins_calls and hasattr(decoder, "joins_calls"):
            decoder.joins_calls = True
        if account is not None and codec.decoder_reads_texts:
            decoder.texts = account.texts
        self._source = source
        self._decoder: PayloadDecoder = decoder
        self._framing = decoder.framing(limits or _LIMITS)
        self._frame = self._framing.feed
        self._decode = decoder.decode
        self._restore = None if request is None or not request.tools else RestoredEvents(request)
        self._account = None if account is None else account.add
        self._failed = False

    def feed(self, data: bytes) -> list[AnyEvent]:
        if self._failed:
            return []
        events: list[AnyEvent] = []
        try:
            for payload in self._frame(data):
                if not payload.isascii():
                    check_text(payload, self._source)  # payloads that are passed on unparsed must be text too
                told = self._decode(payload)
                if told:
                    if self._restore is not None:
                        told = self._restore(told)
                    if self._account is not None:
                        self._account(told)  # at once: decoding the next payload may refer to this text
                    events += told
        except _BROKEN as error:
            events += self._break_off(error)
        return events

    def _publish(self, events: list[AnyEvent]) -> list[AnyEvent]:
        if self._restore is not None:
            events = self._restore(events)
        if self._account is not None:
            self._account(events)
        return events

    @property
    def sends_whole_calls(self) -> bool:
        """Whether calls of this format arrive complete, before the answer ends."""
        return hasattr(self._decoder, "settle")

    def settle(self) -> list[AnyEvent] | None:
        """Events of calls that have arrived whole, where the wire sends whole calls (Gemini, Vertex).

        None where a call is complete only when the answer ends, and once the stream has announced its end.
        """
        settle = getattr(self._decoder, "settle", None)
        if settle is None or self._failed:
            return None
        events: list[AnyEvent] | None = settle()
        return None if events is None else self._publish(events)

    @property
    def clean(self) -> bool:
        """Whether the last bytes were the end of an event."""
        clean: bool = self._framing.clean
        return clean

    def close(self) -> list[AnyEvent]:
        """Ends the stream; returns the last events."""
        if self._failed:
            return []
        events: list[AnyEvent] = []
        try:
            payloads = () if self._framing.clean else self._framing.close()
        except _BROKEN as error:
            return self._break_off(error)
        try:
            for payload in payloads:
                check_text(payload, self._source)
                events += self._publish(self._decode(payload))
        except _BROKEN as error:
            # A last event without its end that cannot be read was cut.
            return events + self._break_off(error, "truncated")
        try:
            events += self._publish(self._decoder.close())
        except _BROKEN as error:
            events += self._break_off(error)
        return events

    def _break_off(self, error: Exception, kind: FailureKind = "server") -> list[AnyEvent]:
        """Ends open and held-back parts, then reports the failure."""
        self._failed = True
        if not isinstance(error, DecodeError):
            error = misread(error, self._source)
        kind = "too_large" if isinstance(error, LimitExceeded) else kind
        ends = [
            structs.replace(event, signature=None, incomplete=True) if isinstance(event, PartEnd) else event
            for event in self._decoder.close()
            if isinstance(event, PartStart | PartDelta | PartEnd)
        ]
        return self._publish([*ends, StreamFailed(Failure(kind, str(error), raw_type=type(error).__name__))])


class StreamEncoder:
    """Events in, bytes out that a strict client of the format accepts.

    An `account` must have heard the events before; a format that tells earlier text again finds it there.
    """

    def __init__(self, target: str, *, account: Accumulator | None = None, **options: Any) -> None:
        self.log = LossLog()
        codec = _stream_codec(target)
        encoder = codec.encoder(self.log, **options)
        if account is not None and codec.encoder_reads_texts:
            encoder.texts = account.texts
        self.write: Callable[[Iterable[AnyEvent]], bytes] = encoder.encode
        """Encodes events without reporting losses."""
        self._report = PrivateEvents(codec.profile, self.log).report
        self.close: Callable[[], bytes] = encoder.close

    def change_events(self, change: Callable[[Iterable[AnyEvent]], list[AnyEvent]]) -> None:
        """Adds a change of events before the existing ones."""
        write = self.write
        self.write = lambda events: write(change(events))

    def encode(self, events: Iterable[AnyEvent]) -> bytes:
        told = events if type(events) is list else list(events)
        for place, event in enumerate(told):
            if type(event) is not PartDelta or event.citation is not None:
                # Text needs no report, and most events are text.
                told = [*told[:place], *map(self._report, told[place:])]
                break
        return self.write(told)

    @property
    def losses(self) -> tuple[Loss, ...]:
        """Losses with paths in the whole answer, because a part is spread over many events."""
        return tuple(
            Loss(f"$.{field}" if field and type(node) in _OF_THE_ANSWER else "$", what, severity, why)
            for node, field, what, severity, why in self.log.entries
        )


class StreamTranslator:
    """A stream of one format in, the same stream in another format out; the completion is built on the way.

    With the same format on both sides the bytes pass unchanged. Otherwise `opening` may say in other words how the
    answer begins: a relay gives it an id and a time of its own, where the client's format wants them. `outgoing` may
    change events before they are written; the completion is built from those that came.
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
        codec(source), codec(target)
        self._accumulator = account = Accumulator()
        self._decoder = StreamDecoder(source, request=request, limits=limits, account=account)
        self._encoder = None if source == target else StreamEncoder(target, account=account, **options)
        if self._encoder is not None:
            if hides_reasoning(request, codec(target).profile):
                self._encoder.change_events(HiddenReasoning(self._encoder.log))
            if outgoing is not None:
                self._encoder.change_events(outgoing)
        self._decode = self._decoder.feed
        self._encode = None if self._encoder is None else self._encoder.encode
        self._opening = opening
        self._write = None if self._encoder is None else self._encoder.write
        if self._encoder is not None and opening is not None:
            self._encode = self._write = self._encode_opening

    def feed(self, data: bytes) -> bytes:
        events = self._decode(data)
        if self._encode is None or self._write is None:
            return data
        if not events:
            return b""
        if len(events) == 1 and type(events[0]) is PartDelta and events[0].citation is None:
            return self._write(events)  # most events are text, which needs no report
        return self._encode(events)

    def close(self) -> bytes:
        events = self._decoder.close()
        if self._encode is None or self._encoder is None:
            return b""
        return self._encode(events) + self._encoder.close() if events else self._encoder.close()

    @property
    def clean(self) -> bool:
        """Whether the last bytes of the source were the end of an event."""
        return self._decoder.clean

    def fail(self, failure: Failure) -> bytes:
        """Ends the stream with a failure that is not in the source's bytes, such as a lost connection."""
        ends = [event for event in self._decoder.close() if isinstance(event, PartEnd)]
        events: list[AnyEvent] = [*ends, StreamFailed(failure)]
        self._accumulator.add(events[-1:])
        return b"" if self._encode is None else self._encode(events)

    def _encode_opening(self, events: Iterable[AnyEvent]) -> bytes:
        """Encodes until the answer has begun; then replaces itself by the encoder."""
        assert self._encoder is not None  # noqa: S101 - see __init__
        assert self._opening is not None  # noqa: S101
        told = list(events)
        for place, event in enumerate(told):
            if isinstance(event, StreamStart):
                told[place] = self._opening(event)
        if told:
            if not isinstance(told[0], StreamStart | StreamFailed):
                told.insert(0, self._opening(StreamStart()))
            self._encode, self._write = self._encoder.encode, self._encoder.write
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
