"""Streams of any API as the chunks that multi-llm-chat stores: text as it comes, every call once and whole.

A call is told when the wire has said that it is complete, in the order of arrival; one that was still open when the
stream broke, or was blocked, is told to nobody.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

from dragoman.codecs.accumulate import Accumulator
from dragoman.codecs.arguments import UNPARSED_KEY
from dragoman.ir import AnyEvent, PartDelta, PartEnd, PartStart, Reasoning, StreamFailed, Text, ToolCall
from dragoman.streams import StreamDecoder

Chunk: TypeAlias = dict[str, Any]


class ChunkReader:
    r"""Bytes of one stream in, chunks out, for any cut of the bytes.

    >>> reader = ChunkReader("ollama-chat")
    >>> reader.feed(b'{"model":"m","message":{"role":"assistant","content":"Hello"},"done":false}')
    []
    >>> reader.feed(b'\n')
    [{'type': 'text', 'content': 'Hello'}]
    """

    def __init__(self, source: str) -> None:
        self._decoder = StreamDecoder(source)
        self._kinds: dict[int, str] = {}
        self._calls: dict[int, Accumulator] = {}

    def feed(self, data: bytes) -> list[Chunk]:
        return list(self._chunks(self._decoder.feed(data)))

    def close(self) -> list[Chunk]:
        """The end of the bytes; whoever forgets it misses calls that were waiting for it."""
        return list(self._chunks(self._decoder.close()))

    def _chunks(self, events: Iterable[AnyEvent]) -> Iterator[Chunk]:
        for event in events:
            if isinstance(event, PartStart) and not event.candidate:
                yield from self._begin(event)
            elif isinstance(event, PartDelta):
                yield from self._more(event)
            elif isinstance(event, PartEnd) and event.index in self._calls:
                yield from self._end(event)
            elif isinstance(event, StreamFailed):
                yield {"type": "error", "content": event.failure.message}

    def _begin(self, event: PartStart) -> Iterator[Chunk]:
        if isinstance(event.part, ToolCall):
            self._calls[event.index] = Accumulator()
            self._calls[event.index].add([event])
        elif isinstance(event.part, Text | Reasoning):
            kind = self._kinds[event.index] = "text" if isinstance(event.part, Text) else "reasoning"
            if event.part.text:
                yield {"type": kind, "content": event.part.text}

    def _more(self, event: PartDelta) -> Iterator[Chunk]:
        if event.index in self._calls:
            self._calls[event.index].add([event])
        elif event.index in self._kinds and event.text:
            yield {"type": self._kinds[event.index], "content": event.text}

    def _end(self, event: PartEnd) -> Iterator[Chunk]:
        account = self._calls.pop(event.index)
        account.add([event])
        for call in account.completion().tool_calls:
            if not call.incomplete:
                yield {"type": "tool_call", "content": _described(call)}


def _described(call: ToolCall) -> dict[str, Any]:
    """Text that is no JSON object is handed on as text; an id that the API did not give is left out."""
    arguments = call.arguments if call.parsed else {UNPARSED_KEY: call.arguments_text}
    told = {"name": call.name, "arguments": arguments}
    return told if call.invented_id else {**told, "tool_call_id": call.id}
