"""Stream events as the unified dicts of multi-llm-chat: text as it comes, every call once and whole.

Calls wait for the end of the answer: only its finish reason says whether they may be run (law 7). A call of an answer
that was blocked, cut inside the call, or broke off is never a chunk.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

from dragoman.codecs.accumulate import Accumulator
from dragoman.codecs.arguments import UNPARSED_KEY
from dragoman.ir import AnyEvent, Finished, PartDelta, PartEnd, PartStart, Reasoning, StreamFailed, Text, ToolCall

Chunk: TypeAlias = dict[str, Any]


class ChunkWriter:
    """Events of one stream in, chunks out: `text`, `reasoning`, `tool_call` and, at a failure, `error`."""

    def __init__(self) -> None:
        self._kinds: dict[int, str] = {}
        self._calls: set[int] = set()
        self._outline = Accumulator()
        """The calls whole, and of every other part only that it is there and whether it has text."""

    def write(self, events: Iterable[AnyEvent]) -> Iterator[Chunk]:
        for event in events:
            if isinstance(event, PartStart) and not event.candidate:
                yield from self._begin(event)
            elif isinstance(event, PartDelta):
                yield from self._more(event)
            elif isinstance(event, PartEnd) and event.index in self._calls:
                self._outline.add([event])
            elif isinstance(event, Finished):
                self._outline.add([event])
                for call in self._outline.completion().tool_calls:
                    yield {"type": "tool_call", "content": describe_call(call)}
            elif isinstance(event, StreamFailed):
                yield {"type": "error", "content": event.failure.message}

    def _begin(self, event: PartStart) -> Iterator[Chunk]:
        self._outline.add([event])
        if isinstance(event.part, ToolCall):
            self._calls.add(event.index)
        elif isinstance(event.part, Text | Reasoning):
            kind = self._kinds[event.index] = "text" if isinstance(event.part, Text) else "reasoning"
            if event.part.text:
                yield {"type": kind, "content": event.part.text}

    def _more(self, event: PartDelta) -> Iterator[Chunk]:
        if event.index in self._calls:
            self._outline.add([event])
        elif event.index in self._kinds and event.text:
            if not self._outline.texts[event.index]:
                self._outline.add([event])
            yield {"type": self._kinds[event.index], "content": event.text}


def describe_call(call: ToolCall) -> dict[str, Any]:
    """Text that is no JSON object is handed on as text; an id that the API did not give is left out."""
    arguments = call.arguments if call.parsed else {UNPARSED_KEY: call.arguments_text}
    described = {"name": call.name, "arguments": arguments}
    return described if call.invented_id else {**described, "tool_call_id": call.id}
