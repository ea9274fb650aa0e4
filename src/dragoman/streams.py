"""Streams: decode, encode and translate between any two formats. Bytes in, bytes out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache, partial
from typing import Any

from dragoman.codecs.accumulate import Accumulator
from dragoman.codecs.registry import codec, stream_module, variation
from dragoman.codecs.stream_codec import StreamCodec
from dragoman.codecs.stream_limits import Limits
from dragoman.event_reader import EventReader
from dragoman.event_writer import EventRelay, EventWriter
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

_LIMITS = Limits()


@cache
def _stream_codec(name: str) -> StreamCodec:
    module = stream_module(name)
    encoder = module.EventEncoder
    if variations := variation(name):  # a format that is another one with a different profile
        encoder = partial(encoder, **variations)
    return StreamCodec(module.PayloadDecoder, encoder, codec(name).profile)


def _restore(request: Request | None) -> RestoredEvents | None:
    """Return the change that restores the client's names of its tools; None if it declared none."""
    return None if request is None or not request.tools else RestoredEvents(request)


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
        self._reader = EventReader(source, _stream_codec(source), account, _restore(request), limits or _LIMITS)
        decoder: Any = self._reader.decoder
        if joins_calls and hasattr(decoder, "joins_calls"):
            decoder.joins_calls = True

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
        return self._reader.framing.clean

    def close(self) -> list[AnyEvent]:
        """End the stream; return the last events."""
        return self._reader.close()


class StreamEncoder:
    """Events in, bytes out that a strict client of the format accepts.

    An `account` must have received the events before; formats that repeat earlier text read it there.
    """

    def __init__(self, target: str, *, account: Accumulator | None = None, **options: Any) -> None:
        self._writer = EventWriter(_stream_codec(target), None if account is None else account.texts, options)

    @property
    def log(self) -> LossLog:
        return self._writer.log

    def change_events(self, change: Callable[[Iterable[AnyEvent]], list[AnyEvent]]) -> None:
        """Add a change of events before the existing ones."""
        self._writer.change_events(change)

    def encode(self, events: Iterable[AnyEvent]) -> bytes:
        return self._writer.encode(events if type(events) is list else list(events))

    def close(self) -> bytes:
        return self._writer.encoder.close()

    @property
    def losses(self) -> tuple[Loss, ...]:
        """Losses with paths in the whole answer, because a part is spread over many events."""
        return self._writer.log.resolve_streamed()


class StreamTranslator:
    """A stream of one format in, the same stream in another format out; the completion is built on the way.

    With the same format on both sides the bytes pass unchanged. Otherwise `opening` may change how the answer begins: a
    gateway sets its own id and time if the client's format has them. `outgoing` may change events before they are
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
        read, shown = _stream_codec(source), None if source == target else _stream_codec(target)
        restore = None if request is None else _restore(request)
        self._relay = relay = EventRelay(source, read, shown, restore, limits or _LIMITS, options)
        if shown is not None and relay.writer is not None:
            writer = relay.writer
            if opening is not None:
                writer.opening = opening
            if request is not None and hides_reasoning(request, shown.profile):
                writer.change_events(HiddenReasoning(writer.log))
            if outgoing is not None:
                writer.change_events(outgoing)
        if type(self).feed is StreamTranslator.feed:
            # Called for every event: without the Python frame of `feed`, it costs a tenth less in a compiled core.
            self.feed = relay.relay  # type: ignore[method-assign]

    def feed(self, data: bytes) -> bytes:
        return self._relay.relay(data)

    def close(self) -> bytes:
        return self._relay.end()

    @property
    def clean(self) -> bool:
        """Whether the last bytes of the source were the end of an event."""
        return self._relay.framing.clean

    def fail(self, failure: Failure) -> bytes:
        """End the stream with a failure that is not in the source's bytes, such as a lost connection."""
        relay = self._relay
        held = relay.close()
        # Calls that a decoder held back until now (Gemini's) are left out, with their ends.
        begun = {event.index for event in held if isinstance(event, PartStart)}
        ends = [event for event in held if isinstance(event, PartEnd) and event.index not in begun]
        events: list[AnyEvent] = [*ends, StreamFailed(failure)]
        relay.account.add(events[-1:])
        return b"" if relay.writer is None else relay.writer.encode(events)

    @property
    def completion(self) -> Completion:
        """The answer so far."""
        return self._relay.account.so_far()

    @property
    def failure(self) -> Failure | None:
        failed = self._relay.account.failed
        return None if failed is None else failed.failure

    @property
    def losses(self) -> tuple[Loss, ...]:
        writer = self._relay.writer
        return () if writer is None else writer.log.resolve_streamed()


class TextStream:
    """Only the text as it arrives; calls, usage and the rest are in the completion at the end."""

    def __init__(self, source: str, *, limits: Limits | None = None) -> None:
        self._account = Accumulator()
        self._decoder = StreamDecoder(source, limits=limits, account=self._account)
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
        return self._account.so_far()
