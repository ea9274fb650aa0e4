"""A translator keeps the text of a running stream once; what it keeps beside that does not grow with the stream."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable

import pytest

import dragoman
from dragoman.codecs.accumulate import Accumulator
from dragoman.ir import AnyEvent, Finish, Finished, PartDelta, PartEnd, PartStart, Reasoning, StreamStart, Text
from tests.support.promises import promise

FORMATS = ("openai-chat", "anthropic-messages", "gemini", "vertex")
SHORT, LONG = 100, 600
ROOM = 4 << 10  # bytes by which the two may differ; the shortest list of so many pieces takes 7 kB more


def events(pieces: int, part: Text | Reasoning) -> list[AnyEvent]:
    words = [PartDelta(0, f"word {number} of the answer ") for number in range(pieces)]
    return [StreamStart("id", "model", 7), PartStart(0, part), *words]


END: list[AnyEvent] = [PartEnd(0), PartStart(1, Text("")), PartDelta(1, "."), PartEnd(1), Finished(Finish("stop"))]


def written(source: str, events: list[AnyEvent]) -> list[bytes]:
    """One read of the network for each event."""
    encoder = dragoman.StreamEncoder(source)
    return [data for event in events if (data := encoder.encode([event]))]


def bytes_held_by(work: Callable[[], object]) -> int:
    """Bytes that are kept alive by what the work returns."""
    gc.collect()
    tracemalloc.start()
    try:
        result = work()
        size, _ = tracemalloc.get_traced_memory()
        del result
        return size
    finally:
        tracemalloc.stop()


def beside_the_answer(source: str, target: str, chunks: list[bytes]) -> int:
    """What a translator keeps in the middle of a stream, less what an accumulator keeps of the same."""

    def translated() -> object:
        translator = dragoman.StreamTranslator(source=source, target=target)
        for chunk in chunks:
            translator.feed(chunk)
        return translator

    def accumulated() -> object:
        decoder, answer = dragoman.StreamDecoder(source), Accumulator()
        for chunk in chunks:
            answer.add(decoder.feed(chunk))
        return answer

    return bytes_held_by(translated) - bytes_held_by(accumulated)


@promise("law:5-streams-tell-the-same-story")
@pytest.mark.parametrize("part", [Text(""), Reasoning("")], ids=["text", "reasoning"])
@pytest.mark.parametrize("target", FORMATS)
@pytest.mark.parametrize("source", FORMATS)
def test_memory_beside_the_answer_is_constant(source: str, target: str, part: Text | Reasoning) -> None:
    def size(pieces: int) -> int:
        return beside_the_answer(source, target, written(source, events(pieces, part)))

    size(SHORT)  # fills caches
    assert size(LONG) - size(SHORT) < ROOM


@pytest.mark.parametrize("target", FORMATS)
@pytest.mark.parametrize("source", FORMATS)
def test_nothing_of_a_text_is_held_when_it_has_ended(source: str, target: str) -> None:
    def size(pieces: int) -> int:
        return beside_the_answer(source, target, written(source, events(pieces, Text("")) + END))

    size(SHORT)
    assert size(LONG) - size(SHORT) < ROOM
