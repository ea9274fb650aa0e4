"""Events that tell more of a part that is being told already.

They differ in their text, their number and a padding against listeners who count bytes, so no two have the same bytes
around the text (see codecs/event_templates.py). But they begin alike, with their name; so the name alone is compared,
and the rest is read by the one type that it can be. Everything else takes the usual way: nothing is guessed here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec

from dragoman.codecs.event_templates import MOST, Ring, Template, Templates
from dragoman.codecs.framing import CR, LF
from dragoman.codecs.openai_responses.stream_wire import DELTA_KINDS, Delta

Key: TypeAlias = tuple[type[Any], int, int]
"""Kind of event, item, and place in the item."""

_END = b"\n\n"


def key_of(event: Delta) -> Key:
    return type(event), event.output_index, event.place


_READERS: dict[type[Any], Callable[[bytes], Any]] = {kind: msgspec.json.Decoder(kind).decode for kind in DELTA_KINDS}


class KnownFlow(Template):
    """The bytes before the payload of an event, and which part's text it holds."""

    __slots__ = ("decode", "output_index", "place", "rest", "start")

    def __init__(self, head: bytes, key: Key, index: int, pieces: list[str]) -> None:
        super().__init__(head, _END, index, pieces)
        kind, self.output_index, self.place = key
        self.decode = _READERS[kind]
        self.start = len(head)
        self.rest = slice(len(head), None)


class KnownEvents(Ring):
    """Reads whole events of the parts that are being told."""

    def __init__(self) -> None:
        super().__init__()
        self._flows: dict[Key, KnownFlow] = {}
        self._heads: dict[bytes, KnownFlow] = {}

    def know(self, head: bytes, key: Key, index: int, pieces: list[str]) -> None:
        if len(self._flows) == MOST:
            self.clear()
        flow = self._flows[key] = self._heads[head] = KnownFlow(head, key, index, pieces)
        self.add(flow)

    def clear(self) -> None:
        super().clear()
        self._flows.clear()
        self._heads.clear()

    def read(self, data: bytes) -> str | None:
        flow: Any = self.last.follower
        if flow is None:
            return None
        if data[flow.head_place] != flow.head:
            flow = next((other for head, other in self._heads.items() if data.startswith(head)), None)
            if flow is None:
                return None
        passed = self.passed + len(data)
        # One event of one line: a line break between its tokens would end the payload.
        if passed > self.room or data.find(LF, flow.start) != len(data) - 2 or CR in data:
            return None
        try:
            event = flow.decode(data[flow.rest])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        if event.output_index != flow.output_index or event.place != flow.place:
            flow = self._flows.get(key_of(event))
            if flow is None:
                return None
        text: str | None = event.delta
        if not text:
            return None
        self.passed = passed
        self.last = flow
        flow.pieces.append(text)
        return text

    def read_several(self, data: bytes) -> list[str] | None:
        flow: Any = self.last.follower
        passed = self.passed + len(data)
        events = data.split(_END)
        if flow is None or events.pop() or passed > self.room or CR in data:
            return None
        if not all(event[flow.head_place] == flow.head and event.find(LF, flow.start) < 0 for event in events):
            return None
        try:
            told = [flow.decode(event[flow.rest]) for event in events]
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        texts: list[str] = [one.delta for one in told if one.output_index == flow.output_index]
        if not all(texts) or len(texts) < len(told) or any(one.place != flow.place for one in told):
            return None
        self.passed = passed
        self.last = flow
        flow.pieces += texts
        return texts


class Knowledge(Templates):
    """What the decoder of a stream has learnt about its events."""

    def __init__(self) -> None:
        super().__init__()
        self.events = KnownEvents()
        self.framed = self.events
        self._flow: tuple[Key, int, list[str]] | None = None

    def forget(self) -> None:
        """For every event that is more than a fragment: it may change what fragments mean."""
        self._flow = self.news = None
        self.events.clear()

    def flows(self, key: Key, index: int, pieces: list[str]) -> None:
        """The event that was just read says more of this part, and nothing else."""
        self._flow = (key, index, pieces)
        self.news = _NEWS

    def learn_frame(self, data: bytes, payload: bytes) -> None:
        self.news = None
        head, _, end = data.partition(payload)
        if self._flow is not None and end == _END and head.endswith(b"data: "):
            self.events.know(head, *self._flow)


_NEWS = Template(b"", b"")
