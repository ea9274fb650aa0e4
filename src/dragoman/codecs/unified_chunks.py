"""Stream events as the unified dicts of multi-llm-chat: text as it comes, every call once and whole.

Calls wait for the end of the answer: only its finish reason says whether they may be run (law 7). A call of an answer
that was blocked, cut inside the call, or broke off is never a chunk.

If a wire sends whole calls (Gemini), a reader may ask for them as they arrive. If the answer is blocked or cut later,
an `error` chunk names the calls that must not be run: such a reader runs calls only after an end without an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

from dragoman.codecs.accumulate import Accumulator
from dragoman.codecs.arguments import UNPARSED_KEY
from dragoman.ir import AnyEvent, Finished, PartDelta, PartEnd, PartStart, Reasoning, StreamFailed, Text, ToolCall

Chunk: TypeAlias = dict[str, Any]


class ChunkWriter:
    """Converts the events of one stream to chunks: `text`, `reasoning`, `tool_call` and, at a failure, `error`."""

    def __init__(self, *, in_order: bool = False) -> None:
        """`in_order`: whatever arrives after a call that is held back waits for it."""
        self._in_order = in_order
        self._waiting: list[Chunk | int] = []
        """Chunks, and indices of complete calls, from the first call that is held back."""
        self._written: set[int] = set()
        """Indices of the calls that were already written."""
        self._kinds: dict[int, str] = {}
        self._calls: set[int] = set()
        self._outline = Accumulator()
        """The calls whole; of every other part only that it exists and whether it has text."""

    def write(self, events: Iterable[AnyEvent], *, arrived: bool = False) -> Iterator[Chunk]:
        """Yield the chunks of these events. `arrived`: calls that are complete by now are written now."""
        for event in events:
            for chunk in self._read(event):
                if self._waiting:
                    self._waiting.append(chunk)
                else:
                    yield chunk
            if isinstance(event, Finished):
                yield from self._finish()
            elif isinstance(event, StreamFailed):
                yield from (item for item in self._waiting if not isinstance(item, int))
                yield {"type": "error", "content": event.failure.message}
        if arrived and self._waiting:
            yield from self._release({index for index, call in self._all_calls().items() if not call.incomplete})

    def _read(self, event: AnyEvent) -> Iterator[Chunk]:
        if isinstance(event, PartStart) and not event.candidate:
            yield from self._begin(event)
        elif isinstance(event, PartDelta):
            yield from self._more(event)
        elif isinstance(event, PartEnd) and event.index in self._calls:
            self._outline.add([event])
            if self._in_order:
                self._waiting.append(event.index)
        elif isinstance(event, Finished):
            self._outline.add([event])

    def _all_calls(self) -> dict[int, ToolCall]:
        calls = self._outline.completion().messages[0].tool_calls
        return dict(zip(sorted(self._calls), calls, strict=True))

    def _release(self, offered: set[int]) -> Iterator[Chunk]:
        """Yield what was held back, without the calls that are not offered."""
        calls = self._all_calls()
        waiting, self._waiting = self._waiting, []
        for item in waiting:
            if not isinstance(item, int):
                yield item
            elif item in offered:
                self._written.add(item)
                yield {"type": "tool_call", "content": describe_call(calls[item])}

    def _finish(self) -> Iterator[Chunk]:
        completion = self._outline.completion()
        withheld = {id(one.call): one for one in completion.withheld_calls}
        calls = dict(zip(sorted(self._calls), completion.messages[0].tool_calls, strict=True))
        offered = {index for index, call in calls.items() if id(call) not in withheld}
        yield from self._release(offered)
        self._waiting = [*sorted(offered - self._written)]
        yield from self._release(offered)
        for index in sorted(self._written - offered):
            one = withheld[id(calls[index])]
            yield {"type": "error", "content": f"{one.explanation}: the call of {one.call.name} must not be run"}

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
    """Return a call as a dict.

    Arguments that are not a JSON object stay text; an id that the API did not give is omitted.
    """
    arguments = call.arguments if call.parsed else {UNPARSED_KEY: call.arguments_text}
    described = {"name": call.name, "arguments": arguments}
    return described if call.invented_id else {**described, "tool_call_id": call.id}
