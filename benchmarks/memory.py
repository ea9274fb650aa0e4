"""Measures the memory of a stream translation: the peak for a short and a long text.

Without the completion, which necessarily grows with the answer.
"""

import tracemalloc
from dataclasses import dataclass
from typing import Final

from benchmarks import conversations, streams
from benchmarks.bodies import Format
from benchmarks.cases import PAIRS

SHORT: Final = 1_000
LONG: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryUse:
    """Bytes at the peak, for `SHORT` and for `LONG` chunks of text."""

    source: Format
    target: Format
    short: int
    long: int

    @property
    def growth(self) -> float:
        return self.long / self.short


def measure() -> list[MemoryUse]:
    found = []
    for source, target in PAIRS:
        _peak(source, target, SHORT)  # imports and caches
        short, long = (_peak(source, target, count) for count in (SHORT, LONG))
        found.append(MemoryUse(source=source, target=target, short=short, long=long))
    return found


def _peak(source: Format, target: Format, count: int) -> int:
    from dragoman import StreamDecoder, StreamTranslator  # noqa: PLC0415 - its import is measured too
    from dragoman.codecs.accumulate import Accumulator  # noqa: PLC0415

    chunks = streams.chunks(conversations.assistant_turn(count), source, count)
    tracemalloc.start()
    try:
        translator = StreamTranslator(source=source, target=target)
        for chunk in chunks:
            translator.feed(chunk)
        translator.close()
        whole = tracemalloc.get_traced_memory()[1]
        del translator
        before = tracemalloc.get_traced_memory()[0]
        decoder, answer = StreamDecoder(source), Accumulator()
        for chunk in chunks:
            answer.add(decoder.feed(chunk))
        del decoder
        return whole - (tracemalloc.get_traced_memory()[0] - before)
    finally:
        tracemalloc.stop()
