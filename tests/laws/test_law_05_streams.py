"""Law 5: streams mean the same for any cut of the bytes, in any format, and never end early without an error."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dragoman
from dragoman.ir import (
    AnyEvent,
    Completion,
    Failure,
    Finish,
    Finished,
    PartDelta,
    PartEnd,
    PartStart,
    Reasoning,
    Signature,
    StreamFailed,
    StreamStart,
    Text,
    ToolCall,
    Usage,
    UsageUpdate,
)
from dragoman.ir.values import compact_text
from tests.support import converse_streams
from tests.support.calls import all_calls
from tests.support.cases import each
from tests.support.promises import promise
from tests.support.recordings import Record, load, recordings_dir, shares
from tests.support.sample_streams import STREAMS, framed

FORMATS = (
    "openai-chat",
    "openai-responses",
    "anthropic-messages",
    "gemini",
    "vertex",
    "bedrock-converse",
    "ollama-chat",
    "cohere-chat",
)
TARGETS = (*FORMATS, "gemini-interactions")  # of which no stream is recorded
RECORDED = {
    "openai-chat": ("openai-chat", "openrouter-chat", "deepseek-chat", "groq-chat", "mistral-chat", "xai-chat"),
    "openai-responses": ("openai-responses", "responses-compat"),
    "anthropic-messages": ("anthropic-messages",),
    "gemini": ("gemini-generate",),
    "vertex": ("vertex-generate",),
    "bedrock-converse": ("bedrock-converse",),
    "ollama-chat": ("ollama-chat",),
    "cohere-chat": ("cohere-chat",),
}


FEWEST = {"cohere-chat": 25}
"""Where fewer streams were recorded than elsewhere."""


def story(completion: Completion) -> tuple[object, ...]:
    """What must be the same on both sides: the texts, the reasoning, and every call with its arguments."""
    message = completion.messages[0]
    calls = [(call.name, call.arguments if call.parsed else call.arguments_text) for call in message.tool_calls]
    return (message.text, message.reasoning, calls)


def decoded(source: str, data: bytes, size: int | None = None) -> list[AnyEvent]:
    decoder = dragoman.StreamDecoder(source)
    if size is None:
        return [*decoder.feed(data), *decoder.close()]
    events = [event for start in range(0, len(data), size) for event in decoder.feed(data[start : start + size])]
    return [*events, *decoder.close()]


def body_of(source: str, record: Record) -> bytes:
    """The bytes of a recorded stream. Those of Bedrock are binary, and were written down as text."""
    events = record.events or ()
    return converse_streams.recorded(events) if source == "bedrock-converse" else "".join(events).encode()


def randomly_cut(source: str, data: bytes, seed: str) -> list[AnyEvent]:
    chance = random.Random(seed)  # noqa: S311  a reproducible cut, not a secret
    decoder = dragoman.StreamDecoder(source)
    events: list[AnyEvent] = []
    place = 0
    while place < len(data):
        size = chance.choice((1, 2, 3, 7, 31, 200, 1500))
        events += decoder.feed(data[place : place + size])
        place += size
    return [*events, *decoder.close()]


def streams(source: str) -> Iterator[Record]:
    if recordings_dir() is None:
        pytest.skip("no recordings here")
    for name in RECORDED[source]:
        yield from (record for record in load(name) if record.events)


@promise("law:5-streams-tell-the-same-story")
@pytest.mark.parametrize("source", FORMATS)
def test_recorded_streams_are_the_same_for_any_cut(source: str) -> None:
    seen = 0
    for number, record in enumerate(streams(source)):
        data = body_of(source, record)
        whole = decoded(source, data)
        assert randomly_cut(source, data, record.id) == whole, record.id
        if number % 40 == 0 and len(data) < 40_000:
            assert decoded(source, data, size=1) == whole, record.id
        assert isinstance(whole[-1], Finished | StreamFailed), record.id
        assert sum(isinstance(event, Finished | StreamFailed) for event in whole) == 1, record.id
        seen += 1
    assert seen > FEWEST.get(source, 40)


@promise("law:5-streams-tell-the-same-story")
@pytest.mark.parametrize("source", FORMATS)
def test_recorded_streams_tell_the_same_story_in_every_format(source: str) -> None:
    compared = {target: 0 for target in TARGETS if target != source}
    for record, target in shares(streams(source), compared):
        data = body_of(source, record)
        translator = dragoman.StreamTranslator(source=source, target=target)
        out = translator.feed(data) + translator.close()
        if translator.failure is not None or translator.completion.refusal is not None:
            continue  # failures are tested below; a refusal crosses as text, which is reported as a loss
        if translator.completion.finish_reason in {"error", "content_filter", "refusal"} and isinstance(
            decoded(target, out)[-1], StreamFailed
        ):
            continue  # an answer that failed is an error where no answer can say so
        if any(loss.what.startswith("corrected ") for loss in translator.losses):
            continue  # the provider corrected what it had streamed, which no other format can say
        arrived = dragoman.accumulate(decoded(target, out))
        assert story(arrived) == story(translator.completion), (record.id, target)
        assert arrived.finish_reason is not None
        compared[target] += 1
    assert min(compared.values()) > FEWEST.get(source, 40) // 8


@promise("law:5-streams-tell-the-same-story")
@pytest.mark.parametrize("source", FORMATS)
def test_the_same_format_passes_bytes_unchanged(source: str) -> None:
    for record in streams(source):
        data = body_of(source, record)
        translator = dragoman.StreamTranslator(source=source, target=source)
        out = (
            b"".join(translator.feed(data[start : start + 97]) for start in range(0, len(data), 97))
            + translator.close()
        )
        assert out == data, record.id
        assert translator.losses == ()


@promise("report:16", "law:5-streams-tell-the-same-story")
@pytest.mark.parametrize("source", FORMATS)
def test_a_stream_cut_at_any_event_is_an_error_and_offers_no_unfinished_call(source: str) -> None:
    encoder = dragoman.StreamEncoder(source)
    data = encoder.encode(INTERLEAVED) + encoder.close()
    separator = {"gemini": b"\r\n\r\n", "vertex": b"\r\n\r\n", "ollama-chat": b"\n"}.get(source, b"\n\n")
    pieces = [piece + separator for piece in data.split(separator) if piece]
    if source == "bedrock-converse":
        pieces = converse_streams.split(data)
    clean = decoded(source, data)
    assert isinstance(clean[-1], Finished)
    for count in range(len(pieces) - 1):
        events = decoded(source, b"".join(pieces[:count]))
        if isinstance(events[-1], Finished):
            # Everything was said; only the farewell is missing ([DONE], a trailing usage chunk).
            assert count >= len(pieces) - 2
            continue
        with pytest.raises(dragoman.TruncatedStream) as caught:
            dragoman.accumulate(events)
        whole = {call.id for call in all_calls(dragoman.accumulate(clean))}
        assert all(call.id in whole or call.incomplete for call in all_calls(caught.value.partial))
        for call in all_calls(caught.value.partial):
            assert call.incomplete or (call.parsed and call.arguments in ({"a": 1, "b": [2, 3]}, {"a": "x"}, {}))


@promise("law:5-streams-tell-the-same-story", "gateway:own-words-midstream")
@each("target", TARGETS)
@each("source", TARGETS)
def test_a_connection_that_is_lost_anywhere_is_an_error_in_every_format(source: str, target: str) -> None:
    encoder = dragoman.StreamEncoder(source)
    data = encoder.encode(INTERLEAVED) + encoder.close()
    ends = [place + 1 for place, byte in enumerate(data) if byte == ord("\n")]  # also those of events
    for cut in sorted({0, *ends, *range(0, len(data), 97)}):
        translator = dragoman.StreamTranslator(source=source, target=target)
        received = translator.feed(data[:cut])
        if translator.completion.finish is not None:
            break  # only the farewell is missing
        received += translator.fail(Failure("server", "the connection broke", 502))
        assert translator.failure is not None, cut
        if source != target:
            last = decoded(target, received)[-1]
            assert isinstance(last, StreamFailed), cut
            assert "the connection broke" in last.failure.message, cut


INTERLEAVED: list[AnyEvent] = [
    StreamStart("msg-1", "model-1", 1700000000),
    PartStart(0, Reasoning("")),
    PartDelta(0, "Two places, "),
    PartDelta(0, "two calls."),
    PartEnd(0),
    PartStart(1, Text("")),
    PartDelta(1, "Let me "),
    PartDelta(1, "look."),
    PartEnd(1),
    PartStart(2, ToolCall("call_a", "f", signature=Signature("google", "c2lnbmF0dXJl"))),
    PartStart(3, ToolCall("call_b", "g")),
    PartStart(4, ToolCall("call_c", "h")),
    PartDelta(2, '{"a":1,'),
    PartDelta(3, '{"a":'),
    PartDelta(2, '"b":[2,3]}'),
    PartDelta(3, '"x"}'),
    PartEnd(2),
    PartEnd(3),
    PartEnd(4),
    UsageUpdate(Usage(10, 5, total=15)),
    Finished(Finish("tool_calls")),
]


@promise("law:5-streams-tell-the-same-story")
@each("source", [source for source in STREAMS if source != "bedrock-converse"])  # its frames hold objects
def test_null_between_events_says_nothing(source: str) -> None:
    """Some servers put it between their events."""
    events: list[Any] = STREAMS[source]
    noisy: list[Any] = [one for event in events for one in (None, event, None)]
    data = framed(source, noisy)
    for size in (None, 1, 7):
        assert decoded(source, data, size) == decoded(source, framed(source, events))


@promise("law:5-streams-tell-the-same-story", "report:5", "report:6", "report:1", "report:18")
@pytest.mark.parametrize("target", FORMATS)
def test_interleaved_calls_arrive_whole_in_order_with_their_signature(target: str) -> None:
    encoder = dragoman.StreamEncoder(target)
    arrived = dragoman.accumulate(decoded(target, encoder.encode(INTERLEAVED) + encoder.close()))
    assert [(call.name, call.arguments) for call in arrived.tool_calls] == [
        ("f", {"a": 1, "b": [2, 3]}),
        ("g", {"a": "x"}),
        ("h", {}),
    ]
    assert arrived.tool_calls[0].signature == Signature("google", "c2lnbmF0dXJl")
    assert all(call.signature is None for call in arrived.tool_calls[1:])
    assert arrived.text == "Let me look."
    assert arrived.reasoning == "Two places, two calls."
    assert arrived.finish_reason == "tool_calls"
    assert arrived.usage is not None
    assert (arrived.usage.input, arrived.usage.output) == (10, 5)


@st.composite
def event_streams(draw: st.DrawFn) -> list[AnyEvent]:
    """A legal stream: running parts one after the other, calls that overlap at the end."""
    words = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1, max_size=12)
    events: list[AnyEvent] = [StreamStart("id", "model", 1)]
    index = 0
    kinds = draw(st.lists(st.sampled_from(("text", "reasoning")), max_size=3).filter(_alternates))
    for kind in kinds:
        events.append(PartStart(index, Text("") if kind == "text" else Reasoning("")))
        events += [PartDelta(index, word) for word in draw(st.lists(words, min_size=1, max_size=3))]
        events.append(PartEnd(index))
        index += 1
    count = draw(st.integers(0, 4))
    pieces: list[list[AnyEvent]] = []
    for number in range(count):
        value = draw(st.dictionaries(words, st.integers() | words, max_size=3))
        text = compact_text(value)
        cut = draw(st.integers(0, len(text)))
        place = index + number
        start: list[AnyEvent] = [PartStart(place, ToolCall(f"call_{number}", f"tool_{number}"))]
        pieces.append([*start, PartDelta(place, text[:cut]), PartDelta(place, text[cut:]), PartEnd(place)])
    while any(pieces):
        events.append(draw(st.sampled_from([piece for piece in pieces if piece])).pop(0))
    events.append(Finished(Finish("tool_calls" if count else "stop")))
    return events


def _alternates(kinds: list[str]) -> bool:
    return all(before != after for before, after in pairwise(kinds))


@promise("law:5-streams-tell-the-same-story")
@given(events=event_streams(), size=st.integers(1, 60))
@each("target", FORMATS)
def test_generated_streams_survive_encoding_and_any_cut(target: str, events: list[AnyEvent], size: int) -> None:
    ordered = _in_order_of_start(events)
    encoder = dragoman.StreamEncoder(target)
    data = encoder.encode(ordered) + encoder.close()
    whole = decoded(target, data)
    assert decoded(target, data, size) == whole
    assert story(dragoman.accumulate(whole)) == story(dragoman.accumulate(ordered))


def _in_order_of_start(events: list[AnyEvent]) -> list[AnyEvent]:
    """Indexes count parts in the order in which they start, on every wire."""
    places: dict[int, int] = {}
    for event in events:
        if isinstance(event, PartStart):
            places[event.index] = len(places)
    return [_moved(event, places) for event in events]


def _moved(event: AnyEvent, places: dict[int, int]) -> AnyEvent:
    if isinstance(event, PartStart):
        return PartStart(places[event.index], event.part, event.candidate)
    if isinstance(event, PartDelta):
        return PartDelta(places[event.index], event.text, event.citation)
    if isinstance(event, PartEnd):
        return PartEnd(places[event.index], event.signature, event.incomplete)
    return event


def test_text_only_view_gives_text_and_keeps_calls_for_the_end() -> None:
    encoder = dragoman.StreamEncoder("openai-chat")
    view = dragoman.TextStream("openai-chat")
    seen = view.feed(encoder.encode(INTERLEAVED) + encoder.close()) + view.close()
    assert seen == "Let me look."
    assert [call.name for call in view.completion.tool_calls] == ["f", "g", "h"]
