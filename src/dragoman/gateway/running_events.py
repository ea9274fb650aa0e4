"""The events of running interactions: those received so far, and a way to wait for the next ones.

Any number of clients read the same list, each from its own place, so a slow or late client costs no memory. The bytes
of one interaction and of all together are bounded: beyond that the oldest events of an interaction are dropped, and a
client that asks for what follows one of them gets an error.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec
from msgspec import Raw, Struct

from dragoman.codecs.framing import ServerSentEvents
from dragoman.codecs.stream_limits import Limits

_object = msgspec.json.Decoder(dict[str, Raw]).decode
_encode = msgspec.json.encode
_DONE = b"event: done\ndata: [DONE]\n\n"
_ENDS = frozenset({"interaction.completed", "error"})
_MEBIBYTE = 1 << 20
_BATCH = 256 << 10
"""Bytes that are written to a client at a time."""
_MOST_EVENTS = 1_000


class UnknownEvent(Exception):
    """No event of this stream has the id, or it is no longer held."""


class EventMemory:
    """The memory limit for events: of one interaction, and of all of them."""

    def __init__(self, each: int = 8 * _MEBIBYTE, together: int = 64 * _MEBIBYTE) -> None:
        self.each = each
        self.together = together
        self.used = 0


class _Head(Struct):
    event_type: str = ""
    event_id: str = ""


_head = msgspec.json.Decoder(_Head).decode


class RunningEvents:
    """The events of one interaction. `id` is set if the client got an id before the answer began."""

    def __init__(self, shared: EventMemory, id: str = "") -> None:
        self.id = id
        self._is_promised = bool(id)
        self._shared = shared
        self._framing = ServerSentEvents(Limits(), "gemini-interactions")
        self._events: list[tuple[str, bytes]] = []
        self._dropped = 0
        self._numbered = 0
        self._size = 0
        self._ending: int | None = None
        """Place of the final event. It is sent once the answer is stored, because clients may then fetch it."""
        self._has_ended = False
        self._changed = asyncio.Event()

    # ── writing ──

    def feed(self, data: bytes) -> None:
        """Add bytes of the stream, in the client's format."""
        for payload in self._framing.feed(data):
            self._add(bytes(payload))
        self._wake()

    def _add(self, payload: bytes) -> None:
        if payload[:6] == b"[DONE]":
            self._append("", _DONE)
            return
        head = _head(payload)
        if head.event_type in _ENDS and self._ending is None:
            self._ending = self._dropped + len(self._events)
        self._numbered += 1
        id = head.event_id or f"e{self._numbered}"
        if not head.event_id or head.event_type.startswith("interaction."):
            payload = self._with_ids(payload, id)
        self._append(id, b"event: %b\ndata: %b\n\n" % (head.event_type.encode(), payload))

    def _with_ids(self, payload: bytes, event_id: str) -> bytes:
        """Return the event with an id to resume from, and with the interaction id that the client already has."""
        fields: dict[str, Any] = _object(payload)
        changed = "event_id" not in fields
        fields["event_id"] = event_id
        if "interaction" in fields:
            interaction = _object(fields["interaction"])
            if self._is_promised:
                changed = True
                fields["interaction"] = {**interaction, "id": self.id}
            else:
                self.id = self.id or str(msgspec.json.decode(interaction.get("id", b'""')))
        elif self._is_promised and "interaction_id" in fields:
            changed = True
            fields["interaction_id"] = self.id
        return _encode(fields) if changed else payload

    def _append(self, id: str, event: bytes) -> None:
        self._events.append((id, event))
        self._size += len(event)
        self._shared.used += len(event)
        if self._size > self._shared.each or self._shared.used > self._shared.together:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        """Drop a quarter of the events at once, so that the cost per event does not grow with their number."""
        count = max(1, len(self._events) // 4)
        dropped = sum(len(event) for _, event in self._events[:count])
        del self._events[:count]
        self._dropped += count
        self._size -= dropped
        self._shared.used -= dropped

    def end(self, status: str) -> None:
        """End the stream; add a final event with this status if there was none."""
        if self._ending is None:
            interaction = {"id": self.id, "object": "interaction", "status": status}
            self._add(_encode({"interaction": interaction, "event_type": "interaction.completed"}))
            self._add(b"[DONE]")
        self._has_ended = True
        self._wake()

    def release(self) -> None:
        """Return the memory to the budget; clients that are still reading can finish."""
        self._shared.used -= self._size
        self._size = 0

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    # ── reading ──

    def whole(self) -> bytes | None:
        """Return the stream from its first event on; None if events were dropped."""
        return None if self._dropped else b"".join(event for _, event in self._events)

    def place_after(self, last_event_id: str) -> int:
        """Return the place after the event with this id; the first place if no id is given."""
        if not last_event_id:
            if self._dropped:
                raise UnknownEvent
            return 0
        for index in range(len(self._events) - 1, -1, -1):
            if self._events[index][0] == last_event_id:
                return self._dropped + index + 1
        raise UnknownEvent

    def _batch(self, place: int) -> list[bytes]:
        """Return some of the events from this place on that may be sent already."""
        end = self._ending if self._ending is not None and not self._has_ended else place + _MOST_EVENTS
        batch: list[bytes] = []
        size = 0
        for _, event in self._events[place - self._dropped : max(place, end) - self._dropped]:
            batch.append(event)
            size += len(event)
            if size >= _BATCH:
                break
        return batch

    async def read(self, place: int) -> AsyncIterator[bytes]:
        """Yield the events from this place on, as they come, until the interaction has ended.

        Raises `UnknownEvent` if the reader is so slow that its next event was dropped.
        """
        while True:
            changed = self._changed
            if place < self._dropped:
                raise UnknownEvent
            batch = self._batch(place)
            if batch:
                place += len(batch)
                yield b"".join(batch)
            elif self._has_ended:
                return
            else:
                await changed.wait()
