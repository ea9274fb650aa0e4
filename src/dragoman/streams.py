"""The front of streaming: decode any format, encode any format, translate between any two. Bytes in, bytes out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import structs

from dragoman.codecs.assembly import Accumulator
from dragoman.codecs.framing import Framing, Limits
from dragoman.codecs.registry import codec, folder_of
from dragoman.errors import DecodeError, LimitExceeded
from dragoman.ir import AnyEvent, Completion, Failure, FailureKind, PartDelta, PartEnd, PartStart, StreamFailed, Text
from dragoman.losses import Loss, LossLog, intermediate_path
from dragoman.passes.answers import restored_events

if TYPE_CHECKING:
    from dragoman.ir import Request


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
    """

    def __init__(self, source: str, *, limits: Limits | None = None) -> None:
        self._decoder: PayloadDecoder = _stream_module(source).PayloadDecoder()
        self._framing = self._decoder.framing(limits or Limits())
        self._frame = self._framing.feed
        self._decode: Callable[[bytes], list[AnyEvent]] = self._decoder.decode
        self._failed = False

    def feed(self, data: bytes) -> list[AnyEvent]:
        if self._failed:
            return []
        events: list[AnyEvent] = []
        try:
            payloads = self._frame(data)
            if len(payloads) == 1:
                return self._decode(payloads[0])
            for payload in payloads:
                events += self._decode(payload)
        except DecodeError as error:
            events += self._broken_off(error)
        return events

    def close(self) -> list[AnyEvent]:
        """The bytes have ended."""
        if self._failed:
            return []
        events: list[AnyEvent] = []
        try:
            payloads = self._framing.close()
        except DecodeError as error:
            return self._broken_off(error)
        try:
            for payload in payloads:
                events += self._decode(payload)
        except DecodeError as error:
            # What no end of an event followed, and does not read, was cut.
            return events + self._broken_off(error, "truncated")
        try:
            events += self._decoder.close()
        except DecodeError as error:
            events += self._broken_off(error)
        return events

    def _broken_off(self, error: DecodeError, kind: FailureKind = "server") -> list[AnyEvent]:
        """The parts that were open or waiting come to an end, then our own word on what went wrong."""
        self._failed = True
        kind = "too_large" if isinstance(error, LimitExceeded) else kind
        ends = [
            structs.replace(event, signature=None, incomplete=True) if isinstance(event, PartEnd) else event
            for event in self._decoder.close()
            if isinstance(event, PartStart | PartDelta | PartEnd)
        ]
        return [*ends, StreamFailed(Failure(kind, str(error), raw_type=type(error).__name__))]


class StreamEncoder:
    """Events in, bytes out that a strict client of the format accepts."""

    def __init__(self, target: str, **options: Any) -> None:
        self._log = LossLog()
        self._encoder: EventEncoder = _stream_module(target).EventEncoder(self._log, **options)

    def encode(self, events: Iterable[AnyEvent]) -> bytes:
        return self._encoder.encode(events)

    def close(self) -> bytes:
        return self._encoder.close()

    @property
    def losses(self) -> tuple[Loss, ...]:
        return self._log.resolve(Completion(()), intermediate_path)


class StreamTranslator:
    """A stream of one format in, the same stream in another format out; the completion is built on the way.

    With the same format on both sides the bytes pass unchanged.
    """

    def __init__(
        self,
        *,
        source: str,
        target: str,
        request: Request | None = None,
        limits: Limits | None = None,
        **options: Any,
    ) -> None:
        codec(source), codec(target)
        self._decoder = StreamDecoder(source, limits=limits)
        self._encoder = None if source == target else StreamEncoder(target, **options)
        self._accumulator = Accumulator()
        self._restore = _restorer(request)

    def feed(self, data: bytes) -> bytes:
        return self._pass_on(self._decoder.feed(data), data)

    def close(self) -> bytes:
        out = self._pass_on(self._decoder.close(), b"")
        return out if self._encoder is None else out + self._encoder.close()

    def _pass_on(self, events: list[AnyEvent], data: bytes) -> bytes:
        if self._restore is not None:
            events = self._restore(events)
        self._accumulator.add(events)
        return data if self._encoder is None else self._encoder.encode(events)

    @property
    def completion(self) -> Completion:
        """The answer as far as it has come."""
        return self._accumulator.completion()

    @property
    def failure(self) -> Failure | None:
        failed = self._accumulator.failed
        return None if failed is None else failed.failure

    @property
    def losses(self) -> tuple[Loss, ...]:
        return () if self._encoder is None else self._encoder.losses


def _restorer(request: Request | None) -> Callable[[list[AnyEvent]], list[AnyEvent]] | None:
    """Names and kinds of tools as the client declared them, where its request is known."""
    if request is None or not request.tools:
        return None
    return lambda events: restored_events(events, request)


class TextStream:
    """Only the text, as it comes; calls, usage and the rest in the completion at the end."""

    def __init__(self, source: str, *, limits: Limits | None = None) -> None:
        self._decoder = StreamDecoder(source, limits=limits)
        self._accumulator = Accumulator()
        self._texts: set[int] = set()

    def feed(self, data: bytes) -> str:
        return self._read(self._decoder.feed(data))

    def close(self) -> str:
        return self._read(self._decoder.close())

    def _read(self, events: list[AnyEvent]) -> str:
        self._accumulator.add(events)
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
        return self._accumulator.completion()
