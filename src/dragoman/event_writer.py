"""Encodes events to the bytes of a stream, for all formats, and relays one stream as another.

`streams.py` is the public API, whose classes programs may subclass; this module is compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from dragoman.codecs.accumulate import Accumulator
from dragoman.codecs.stream_codec import BaseEventEncoder, StreamCodec, Texts
from dragoman.codecs.stream_limits import Limits
from dragoman.event_reader import Change as ReaderChange
from dragoman.event_reader import EventReader, held_by
from dragoman.ir import AnyEvent, PartDelta, StreamFailed, StreamStart
from dragoman.losses import LossLog
from dragoman.passes.private import PrivateEvents

Change = Callable[[Iterable[AnyEvent]], list[AnyEvent]]
Opening = Callable[[StreamStart], StreamStart]


class EventWriter:
    """Events in, bytes out. Losses are reported first, then the events are changed, then they are encoded."""

    log: LossLog
    encoder: BaseEventEncoder
    opening: Opening | None
    """Changes how the answer begins; None once it has begun."""
    is_plain: bool
    """Whether text of parts that are not held is encoded unchanged."""
    held: tuple[Mapping[int, object], ...]
    """The parts that changes hold back."""
    _private: PrivateEvents
    _changes: tuple[Change, ...]

    def __init__(self, codec: StreamCodec, texts: Texts | None, options: dict[str, Any]) -> None:
        # Read for every event: a default of the class would take three times as long to read in the interpreter.
        self.opening = None
        self.held = self._changes = ()
        self.log = log = LossLog()
        self.is_plain = True
        self.encoder = codec.encoder(log, texts, options)
        self._private = PrivateEvents(codec.profile, log)

    def change_events(self, change: Change) -> None:
        """Add a change of events before the existing ones."""
        self._changes = (change, *self._changes)
        held = held_by(change)
        if held is None:
            self.is_plain = False
        else:
            self.held = (held, *self.held)

    def encode(self, events: list[AnyEvent]) -> bytes:
        if self.opening is not None:
            events = self._apply_opening(events, self.opening)
        events = self._private.report(events)
        for change in self._changes:
            events = change(events)
        return self.encoder.encode(events)

    def _apply_opening(self, events: list[AnyEvent], opening: Opening) -> list[AnyEvent]:
        shown = [opening(event) if isinstance(event, StreamStart) else event for event in events]
        if shown:
            if not isinstance(shown[0], StreamStart | StreamFailed):
                shown.insert(0, opening(StreamStart()))
            self.opening = None
        return shown


class EventRelay(EventReader):
    """Bytes of one stream in, the same stream in another format out; with a `writer` of None, the same bytes.

    It makes all objects of a stream, because it is compiled: many streams are so short that making them counts.
    """

    account: Accumulator
    """The answer so far."""
    writer: EventWriter | None = None

    def __init__(
        self,
        source: str,
        codec: StreamCodec,
        target: StreamCodec | None,
        restore: ReaderChange | None,
        limits: Limits,
        options: dict[str, Any],
    ) -> None:
        """`options` are those of the target's encoder."""
        self.account = account = Accumulator()
        super().__init__(source, codec, account, restore, limits)
        if target is not None:
            self.writer = EventWriter(target, account.texts, options)

    def relay(self, data: Any) -> bytes:
        events = self.feed(data)
        writer = self.writer
        if writer is None:
            return bytes(data)
        if not events:
            return b""
        event = events[0]
        if type(event) is PartDelta and len(events) == 1 and event.citation is None and writer.is_plain:
            for held in writer.held:
                if event.index in held:
                    break
            else:
                return writer.encoder.fragment(event.index, event.text)  # most events are text, which needs no report
        return writer.encode(events)

    def end(self) -> bytes:
        """End the stream; return the last bytes."""
        events = self.close()
        writer = self.writer
        if writer is None:
            return b""
        return writer.encode(events) + writer.encoder.close() if events else writer.encoder.close()
