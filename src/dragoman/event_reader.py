"""Decodes the bytes of a stream to events, for all formats.

`streams.py` is the public API, whose classes programs may subclass; this module is compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import structs

from dragoman.codecs.accumulate import Accumulator
from dragoman.codecs.framing import BoundedFraming
from dragoman.codecs.reading import MALFORMED, check_text, misread
from dragoman.codecs.stream_codec import EventDecoder, StreamCodec, Texts
from dragoman.codecs.stream_limits import Limits
from dragoman.errors import DecodeError, InvalidType, LimitExceeded
from dragoman.ir import AnyEvent, Failure, FailureKind, PartDelta, PartEnd, PartStart, StreamFailed

_BROKEN = (DecodeError, *MALFORMED)

_NO_TEXTS: Texts = {}
_NOTHING = b"null"
"""Some servers put it between their events."""

Change = Callable[[list[AnyEvent]], list[AnyEvent]]


def held_by(change: object) -> Mapping[int, object] | None:
    """Return the parts that a change of events holds back, by index; None if it may change the text of any part."""
    held: Mapping[int, object] | None = getattr(change, "held", None)
    return held


def _bytes_of(data: object) -> bytes:
    if isinstance(data, bytearray | memoryview):
        return bytes(data)
    hint = "pass the chunks as they arrive, such as those of response.iter_bytes()"
    raise InvalidType(path="feed.data", expected="the bytes of a stream", found=type(data).__name__, hint=hint)


class EventReader:
    """Bytes of one stream in, events out. Faults become a last `StreamFailed`, after the ends of open parts."""

    failed: bool
    decoder: EventDecoder
    framing: BoundedFraming
    _source: str
    _restore: Change | None
    _account: Accumulator | None
    _texts: Texts
    _held: Mapping[int, object]
    _is_plain: bool
    """Whether text of parts that are not held goes to the account unchanged."""

    def __init__(
        self, source: str, codec: StreamCodec, account: Accumulator | None, restore: Change | None, limits: Limits
    ) -> None:
        texts = None if account is None else account.texts
        self.failed = False
        self._source = source
        self.decoder = codec.decoder(texts)
        self.framing = codec.framing(limits)
        self._restore = restore
        self._account = account
        self._texts = _NO_TEXTS if texts is None else texts
        held = _NO_TEXTS if restore is None else held_by(restore)
        self._held = _NO_TEXTS if held is None else held
        self._is_plain = account is not None and held is not None

    def feed(self, data: Any) -> list[AnyEvent]:
        """Return the events that end in these bytes. `Any`: compiled code would refuse text with a bare TypeError."""
        events: list[AnyEvent] = []
        if self.failed:
            return events
        chunk: bytes = data if type(data) is bytes else _bytes_of(data)
        decoder = self.decoder
        try:
            for payload in self.framing.feed(chunk):
                if not payload.isascii():
                    check_text(payload, self._source)  # pieces that are passed on unparsed must be text too
                try:
                    decoded = decoder.decode(payload)
                except _BROKEN:
                    if payload != _NOTHING:
                        raise
                    continue
                if decoded:
                    # Added to the account at once: decoding the next payload may refer to this text.
                    event = decoded[0]
                    if (
                        type(event) is PartDelta
                        and self._is_plain
                        and len(decoded) == 1
                        and event.citation is None
                        and event.index not in self._held
                    ):
                        self._texts[event.index].append(event.text)
                    else:
                        decoded = self.publish(decoded)
                    if events:
                        events += decoded
                    else:
                        events = decoded
        except _BROKEN as error:
            return events + self._break_off(error)
        return events

    def publish(self, events: list[AnyEvent]) -> list[AnyEvent]:
        """Restores the client's names of tools, and passes the events to the account."""
        if self._restore is not None:
            events = self._restore(events)
        if self._account is not None:
            self._account.add(events)
        return events

    def close(self) -> list[AnyEvent]:
        if self.failed:
            return []
        events: list[AnyEvent] = []
        if not self.framing.clean:
            try:
                payloads = self.framing.close()
            except _BROKEN as error:
                return self._break_off(error)
            try:
                for payload in payloads:
                    check_text(payload, self._source)
                    events += self.publish(self.decoder.decode(payload))
            except _BROKEN as error:
                # A last event that has no end and cannot be read was cut off.
                return events + self._break_off(error, "truncated")
        try:
            decoded = self.decoder.close()
            if decoded:
                events += self.publish(decoded)
        except _BROKEN as error:
            events += self._break_off(error)
        return events

    def _break_off(self, error: Exception, kind: FailureKind = "server") -> list[AnyEvent]:
        """Ends open and held-back parts, then reports the failure."""
        self.failed = True
        if not isinstance(error, DecodeError):
            error = misread(error, self._source)
        kind = "too_large" if isinstance(error, LimitExceeded) else kind
        ends = [
            structs.replace(event, signature=None, incomplete=True) if isinstance(event, PartEnd) else event
            for event in self.decoder.close()
            if isinstance(event, PartStart | PartDelta | PartEnd)
        ]
        return self.publish([*ends, StreamFailed(Failure(kind, str(error), raw_type=type(error).__name__))])
