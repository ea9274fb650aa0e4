"""The front of streaming: decode any format, encode any format, translate between any two. Bytes in, bytes out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import structs

from dragoman.codecs.accumulate import Accumulator
from dragoman.codecs.event_templates import Ring, Templates
from dragoman.codecs.framing import Framing, Limits
from dragoman.codecs.reading import MALFORMED, check_text, misread
from dragoman.codecs.registry import codec, folder_of, variation
from dragoman.errors import DecodeError, LimitExceeded
from dragoman.ir import (
    AnyEvent,
    Completion,
    Failure,
    FailureKind,
    PartDelta,
    PartEnd,
    PartStart,
    StreamFailed,
    StreamStart,
    Text,
)
from dragoman.losses import Loss, LossLog
from dragoman.passes.answers import RestoredEvents

if TYPE_CHECKING:
    from dragoman.ir import Request

_BROKEN = (DecodeError, *MALFORMED)
_LONG = 1 << 10
_MOST_PARTS = 8
_OF_THE_ANSWER = (StreamStart, Completion)


class PayloadDecoder(Protocol):
    """What each codec's stream module offers for reading."""

    @staticmethod
    def framing(limits: Limits) -> Framing: ...

    def decode(self, payload: bytes) -> list[AnyEvent]: ...

    def close(self) -> list[AnyEvent]: ...


class EventEncoder(Protocol):
    """What each codec's stream module offers for writing."""

    def encode(self, events: Iterable[AnyEvent]) -> bytes: ...

    def close(self) -> bytes: ...


@cache
def _stream_module(name: str) -> Any:
    return import_module(f"dragoman.codecs.{folder_of(name)}.stream")


class StreamDecoder:
    """Bytes of one stream in, events out, for any cut of the bytes.

    A fault in the stream (bad JSON, an event out of order, a limit, an early end) is told as a last `StreamFailed`.
    With the client's `request`, names of tools are as it declared them. An `account` hears all events before they are
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
        decoder = _stream_module(source).PayloadDecoder()
        if joins_calls and hasattr(decoder, "joins_calls"):
            decoder.joins_calls = True
        self._source = source
        _lend(account, decoder)
        self._decoder: PayloadDecoder = decoder
        self._framing = self._decoder.framing(limits or Limits())
        self._frame = self._framing.feed
        self._decode = self._decoder.decode
        self._templates: Templates | None = getattr(decoder, "templates", None)
        self.known = Ring() if self._templates is None else self._templates.framed
        self._restore = _restorer(request)
        self._account = account
        self._is_heard = account is not None or self._restore is not None
        self._failed = False
        if self._templates is None:  # nothing of these wires is known beforehand
            self.feed = self.feed_unknown  # type: ignore[method-assign]

    def feed(self, data: bytes) -> list[AnyEvent]:
        known = self.known
        text = known.read(data)
        if text is None:
            texts = known.read_several(data) if len(data) > known.last.long else None
            if texts is None:
                return self.feed_unknown(data)
            return self.heard([PartDelta(known.last.index, text) for text in texts if text])
        if text and not self._is_heard:
            return [PartDelta(known.last.index, text)]
        return self.heard([PartDelta(known.last.index, text)] if text else [])

    @property
    def sends_whole_calls(self) -> bool:
        """Whether a call of this wire is whole when it arrives, before the answer ends."""
        return hasattr(self._decoder, "settle")

    def settle(self) -> list[AnyEvent] | None:
        """Events of calls that have arrived whole, where the wire sends whole calls (Gemini, Vertex).

        None where a call is complete only when the answer ends, and once the stream has announced its end.
        """
        settle = getattr(self._decoder, "settle", None)
        if settle is None or self._failed:
            return None
        events: list[AnyEvent] | None = settle()
        return events if events is None or not self._is_heard else self.heard(events)

    def feed_unknown(self, data: bytes) -> list[AnyEvent]:
        """What is not like anything before."""
        if self._failed:
            return []
        if self._templates is not None:
            return self._feed_and_learn(data, self._templates)
        events: list[AnyEvent] = []
        try:
            payloads = self._frame(data)
            if len(payloads) == 1:
                events = self._read(payloads[0])
                return self.heard(events) if self._is_heard else events
            for payload in payloads:
                events += self.heard(self._read(payload))
        except _BROKEN as error:
            events += self._broken_off(error)
        return events

    def _feed_and_learn(self, data: bytes, templates: Templates) -> list[AnyEvent]:
        framing, known = self._framing, self.known
        framing.total += known.passed
        clean = framing.clean
        events: list[AnyEvent] = []
        try:
            payloads = framing.feed(data)
            self._tell(payloads, templates, events)
            if templates.news is not None and framing.clean and payloads:
                frame = data if clean and len(payloads) == 1 else self._last_frame(data, payloads)
                if frame:
                    templates.learn_frame(frame, payloads[-1])
        except _BROKEN as error:
            events += self._broken_off(error)
        # Only what begins where an event begins can be known, and only within the limits.
        known.passed = 0
        known.room = framing.small - framing.total if framing.clean else -1
        return events

    def _last_frame(self, data: bytes, payloads: list[bytes]) -> bytes:
        """The bytes of the last event alone, if they can be told from those before."""
        if len(payloads) == 1:
            return b""
        before, _, after = data.rpartition(payloads[-1])
        _, found, between = before.rpartition(payloads[-2])
        if not found or not after or not between.startswith(after):
            return b""
        frame = between[len(after) :] + payloads[-1] + after
        # Read alone, it has to say the same.
        alone = self._decoder.framing(Limits())
        return frame if alone.feed(frame) == payloads[-1:] and alone.clean else b""

    def _tell(self, payloads: list[bytes], templates: Templates, events: list[AnyEvent]) -> None:
        """What the payloads say. What was said is heard before a payload is read that may look back at it."""
        known = templates.payloads
        more: list[AnyEvent] = []
        for payload in payloads:
            text = known.read(payload)
            if text is None:
                events += self.heard(more)
                more = []
                events += self.heard(self._read(payload))
            elif text:
                more.append(PartDelta(known.last.index, text))
        events += self.heard(more)

    @property
    def clean(self) -> bool:
        """What came last was the end of an event."""
        clean: bool = self._framing.clean
        return clean

    def close(self) -> list[AnyEvent]:
        """The bytes have ended."""
        if self._failed:
            return []
        events: list[AnyEvent] = []
        try:
            payloads = self._framing.close()
        except _BROKEN as error:
            return self._broken_off(error)
        try:
            if self._templates is not None:
                self._tell(payloads, self._templates, events)
            else:
                for payload in payloads:
                    events += self.heard(self._read(payload))
        except _BROKEN as error:
            # What no end of an event followed, and does not read, was cut.
            return events + self._broken_off(error, "truncated")
        try:
            events += self.heard(self._decoder.close())
        except _BROKEN as error:
            events += self._broken_off(error)
        return events

    def _read(self, payload: bytes) -> list[AnyEvent]:
        """The events of one payload. Pieces that are carried unparsed are text too."""
        if not payload.isascii():
            check_text(payload, self._source)
        events: list[AnyEvent] = self._decode(payload)
        return events

    def heard(self, events: list[AnyEvent]) -> list[AnyEvent]:
        if self._restore is not None:
            events = self._restore(events)
        if self._account is not None:
            self._account.add(events)
        return events

    def _broken_off(self, error: Exception, kind: FailureKind = "server") -> list[AnyEvent]:
        """The parts that were open or waiting come to an end, then our own word on what went wrong."""
        self._failed = True
        self.known.clear()
        if not isinstance(error, DecodeError):
            error = misread(error, self._source)
        kind = "too_large" if isinstance(error, LimitExceeded) else kind
        ends = [
            structs.replace(event, signature=None, incomplete=True) if isinstance(event, PartEnd) else event
            for event in self._decoder.close()
            if isinstance(event, PartStart | PartDelta | PartEnd)
        ]
        return self.heard([*ends, StreamFailed(Failure(kind, str(error), raw_type=type(error).__name__))])


class StreamEncoder:
    """Events in, bytes out that a strict client of the format accepts.

    An `account` must have heard the events before; a format that tells earlier text again finds it there.
    """

    def __init__(self, target: str, *, account: Accumulator | None = None, **options: Any) -> None:
        self._log = LossLog()
        encoder = _stream_module(target).EventEncoder(self._log, **variation(target), **options)
        _lend(account, encoder)
        self.inner: EventEncoder = encoder
        self.fragment: Callable[[int, str], bytes] = getattr(encoder, "fragment", self._delta)
        """The bytes of one delta without citation, told without an event."""

    def _delta(self, index: int, text: str) -> bytes:
        return self.inner.encode([PartDelta(index, text)])

    def encode(self, events: Iterable[AnyEvent]) -> bytes:
        return self.inner.encode(events)

    def close(self) -> bytes:
        return self.inner.close()

    @property
    def losses(self) -> tuple[Loss, ...]:
        """Paths lead into the whole answer: a part is spread over many bodies and has no path of its own."""
        return tuple(
            Loss(f"$.{field}" if field and type(node) in _OF_THE_ANSWER else "$", what, severity, why)
            for node, field, what, severity, why in self._log.entries
        )


class StreamTranslator:
    """A stream of one format in, the same stream in another format out; the completion is built on the way.

    With the same format on both sides the bytes pass unchanged. Otherwise `opening` may say in other words how the
    answer begins: a relay gives it an id and a time of its own, where the client's format wants them.
    """

    def __init__(
        self,
        *,
        source: str,
        target: str,
        request: Request | None = None,
        limits: Limits | None = None,
        opening: Callable[[StreamStart], StreamStart] | None = None,
        **options: Any,
    ) -> None:
        codec(source), codec(target)
        self._accumulator = account = Accumulator()
        self._decoder = StreamDecoder(source, request=request, limits=limits, account=account)
        self._encoder = None if source == target else StreamEncoder(target, account=account, **options)
        self._known = self._decoder.known
        self._decode = self._decoder.feed_unknown
        self._encode = None if self._encoder is None else self._encoder.inner.encode
        self._opening = opening
        if self._encoder is not None and opening is not None:
            self._encode = self._encode_opening
        self._texts = account.texts
        self._parted = False
        self._fragment = None if self._encoder is None else self._encoder.fragment

    def feed(self, data: bytes) -> bytes:
        known = self._known
        text = known.read(data)
        if text is None:
            texts = known.read_several(data) if len(data) > known.last.long else None
            if texts is not None:
                return self._feed_several(data, texts)
            return self._feed_unknown(data) if len(data) < _LONG or self._parted else self._feed_in_parts(data)
        index = known.last.index
        pieces = self._texts.get(index)
        if pieces is None:  # a call that is held back until it is whole
            events = self._decoder.heard([PartDelta(index, text)])
            return data if self._encode is None else self._encode(events)
        pieces.append(text)
        return data if self._fragment is None else self._fragment(index, text)

    def _feed_unknown(self, data: bytes) -> bytes:
        events = self._decode(data)
        return data if self._encode is None else self._encode(events)

    def _feed_in_parts(self, data: bytes) -> bytes:
        """One cut is as good as another; and most of a long read is known once its first events are."""
        self._parted = True
        out = []
        for _ in range(_MOST_PARTS):
            cut = self._known.cut(data)
            if not 0 < cut < len(data):
                break
            out.append(self.feed(data[:cut]))
            data = data[cut:]
        out.append(self.feed(data))
        self._parted = False
        return b"".join(out)

    def _feed_several(self, data: bytes, texts: list[str]) -> bytes:
        index = self._known.last.index
        pieces, fragment = self._texts.get(index), self._fragment
        if pieces is None:
            events = self._decoder.heard([PartDelta(index, text) for text in texts])
            return data if self._encode is None else self._encode(events)
        pieces += texts
        return data if fragment is None else b"".join([fragment(index, text) for text in texts])

    def close(self) -> bytes:
        events = self._decoder.close()
        return b"" if self._encode is None or self._encoder is None else self._encode(events) + self._encoder.close()

    @property
    def clean(self) -> bool:
        """What the source sent last was the end of an event."""
        return self._decoder.clean

    def fail(self, failure: Failure) -> bytes:
        """The source has broken off for a reason that its own bytes do not tell: what was open ends here, in error."""
        ends = [event for event in self._decoder.close() if isinstance(event, PartEnd)]
        events: list[AnyEvent] = [*ends, StreamFailed(failure)]
        self._accumulator.add(events[-1:])
        return b"" if self._encode is None else self._encode(events)

    def _encode_opening(self, events: Iterable[AnyEvent]) -> bytes:
        """Until the answer has begun; then the encoder is asked without a detour."""
        assert self._encoder is not None  # noqa: S101 - see __init__
        assert self._opening is not None  # noqa: S101
        told = list(events)
        for place, event in enumerate(told):
            if isinstance(event, StreamStart):
                told[place] = self._opening(event)
        if told:
            if not isinstance(told[0], StreamStart | StreamFailed):
                told.insert(0, self._opening(StreamStart()))
            self._encode = self._encoder.inner.encode
        return self._encoder.inner.encode(told)

    @property
    def completion(self) -> Completion:
        """The answer as far as it has come."""
        return self._accumulator.so_far()

    @property
    def failure(self) -> Failure | None:
        failed = self._accumulator.failed
        return None if failed is None else failed.failure

    @property
    def losses(self) -> tuple[Loss, ...]:
        return () if self._encoder is None else self._encoder.losses


def _lend(account: Accumulator | None, half: Any) -> None:
    """What a half of a stream says again later, it need not keep where somebody does."""
    if account is not None and hasattr(half, "texts"):
        half.texts = account.texts


def _restorer(request: Request | None) -> Callable[[list[AnyEvent]], list[AnyEvent]] | None:
    """Names of tools as the client declared them, where its request is known."""
    if request is None or not request.tools:
        return None
    return RestoredEvents(request)


class TextStream:
    """Only the text, as it comes; calls, usage and the rest in the completion at the end."""

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
