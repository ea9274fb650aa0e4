"""Events that come in one read, or in many: never with another result than reading them byte by byte."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dragoman
from dragoman.codecs.stream_limits import Limits
from dragoman.ir import AnyEvent, PartDelta, StreamFailed
from tests.support.cases import each

START = (
    b'event: message_start\ndata: {"type":"message_start","message":{"id":"m","model":"x","content":[]}}\n\n'
    b'event: content_block_start\ndata: {"type":"content_block_start","index":0,'
    b'"content_block":{"type":"text","text":""}}\n\n'
)
HEAD = b'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":'
TAIL = b"}}\n\n"


def delta(text: str) -> bytes:
    return HEAD + json.dumps(text).encode() + TAIL


def events_of(chunks: list[bytes]) -> list[AnyEvent]:
    decoder = dragoman.StreamDecoder("anthropic-messages")
    return [event for chunk in [START, *chunks] for event in decoder.feed(chunk)]


def read_in_full(chunks: list[bytes]) -> list[AnyEvent]:
    """Byte by byte, no event arrives whole."""
    decoder = dragoman.StreamDecoder("anthropic-messages")
    data = START + b"".join(chunks)
    return [event for place in range(len(data)) for event in decoder.feed(data[place : place + 1])]


ODD = [
    b'"a"}}\n\n' + HEAD + b'"b"',  # two events in one read
    b'"a"}},"more":{"x":{"y":"z"',  # the tail stands inside too
    b'"a","text":"b"',
    b'"a","type":"thinking_delta"',
    b'\n"a"',
    b'"a"\r\n',
    b' "a" ',
    b'"a\nb"',
    b'"a',
    b'"',
    b"",
    b"null",
    b"7",
    b'"\xff"',
    rb'"\u00e9\ud83d\ude00\n\""',
    rb'"\ud83d"',
    rb'"\"}}"',
    '"é \u2028"'.encode(),
    b'""',
]


@each("middle", ODD)
def test_odd_events_read_as_they_would_byte_by_byte(middle: bytes) -> None:
    chunks = [delta("one"), delta("two"), HEAD + middle + TAIL, delta("three")]
    assert events_of(chunks) == read_in_full(chunks)


@each("middle", [*ODD, rb'"a\"' + TAIL + HEAD + b'",","b"', b'"a",' + TAIL + HEAD + b',"b"', rb'"a\\"'])
@each("before", [1, 3])
def test_odd_events_among_several_in_one_read(middle: bytes, before: int) -> None:
    odd = [delta("three"), HEAD + middle + TAIL, delta("four")]
    chunks = [delta("one") * before, delta("two") * before, b"".join(odd), delta("five") * 2]
    assert events_of(chunks) == read_in_full(chunks)


def responses_event(kind: str, **fields: object) -> bytes:
    name = f"response.{kind}"
    return f"event: {name}\ndata: {json.dumps({'type': name, **fields})}\n\n".encode()


def chat_event(text: str) -> bytes:
    chunk = {"id": "c", "choices": [{"index": 0, "delta": {"content": text}}]}
    return b"data: " + json.dumps(chunk, ensure_ascii=False).encode() + b"\n\n"


def responses_delta(text: str) -> bytes:
    place = {"output_index": 0, "content_index": 0, "item_id": "m"}
    return responses_event("output_text.delta", **place, delta=text, obfuscation="x" * len(text))


RESPONSES_START = (
    responses_event("created", response={"id": "r", "model": "m", "status": "in_progress", "output": []})
    + responses_event("output_item.added", output_index=0, item={"type": "message", "id": "m", "content": []})
    + responses_event(
        "content_part.added", output_index=0, content_index=0, item_id="m", part={"type": "output_text", "text": ""}
    )
)
WAYS = {
    "anthropic-messages": (START, delta),
    "openai-chat": (chat_event(""), chat_event),
    "openai-responses": (RESPONSES_START, responses_delta),
}


@given(st.lists(st.text(min_size=1), min_size=4, max_size=12), st.lists(st.integers(1, 4), min_size=12, max_size=12))
@each("source", WAYS)
@each("target", ["openai-chat", "anthropic-messages", "gemini"])
def test_any_number_of_events_may_come_in_one_read(
    source: str, target: str, texts: list[str], sizes: list[int]
) -> None:
    start, event = WAYS[source]
    events = [event(text.encode("utf-8", "ignore").decode() or "x") for text in texts]
    one_by_one = dragoman.StreamTranslator(source=source, target=target)
    grouped = dragoman.StreamTranslator(source=source, target=target)
    expected = one_by_one.feed(start) + b"".join(map(one_by_one.feed, events))
    came, reads = grouped.feed(start), iter(sizes)
    while events:
        size = next(reads)
        came += grouped.feed(b"".join(events[:size]))
        events = events[size:]
    assert came == expected
    assert grouped.completion == one_by_one.completion


@pytest.mark.parametrize("source", WAYS)
@pytest.mark.parametrize("target", ["openai-chat", "anthropic-messages", "openai-responses"])
def test_a_long_read_with_something_unusual_in_it(source: str, target: str) -> None:
    start, event = WAYS[source]
    events = [event(f'word {number} \n\n "') for number in range(60)]
    events[30:30] = [b": a comment\n\n", event("").replace(b"data: ", b"data:")]
    for size in (7, 31, 40, 99):
        one_by_one = dragoman.StreamTranslator(source=source, target=target)
        expected = one_by_one.feed(start) + b"".join(map(one_by_one.feed, events))
        grouped = dragoman.StreamTranslator(source=source, target=target)
        reads = [start, *events]
        came = b"".join(grouped.feed(b"".join(reads[at : at + size])) for at in range(0, len(reads), size))
        assert came == expected
        assert grouped.completion == one_by_one.completion


@given(st.lists(st.text(), min_size=3, max_size=12))
def test_any_text_is_decoded_unchanged(texts: list[str]) -> None:
    texts = [text.encode("utf-8", "ignore").decode() for text in texts]
    texts_read = [event.text for event in events_of([delta(text) for text in texts]) if isinstance(event, PartDelta)]
    assert texts_read == [text for text in texts if text]


@pytest.mark.parametrize("text", ["index", "text", "text_delta", ",", ":", "~dragoman~probe~"])
def test_a_text_that_also_occurs_elsewhere_in_the_event_is_unchanged(text: str) -> None:
    chunks = [delta(text), delta(text), delta("other"), delta("more")]
    assert events_of(chunks) == read_in_full(chunks)


def test_a_delta_of_a_stopped_block_is_a_fault() -> None:
    stop = b'event: content_block_stop\ndata: {"type":"content_block_stop","index":0}\n\n'
    chunks = [delta("one"), delta("two"), delta("three"), stop, delta("four")]
    assert events_of(chunks) == read_in_full(chunks)
    assert isinstance(events_of(chunks)[-1], StreamFailed)


def test_limits_hold_for_events_that_arrive_whole() -> None:
    decoder = dragoman.StreamDecoder("anthropic-messages", limits=Limits(stream_bytes=len(START) + 4 * len(delta("x"))))
    events = [event for chunk in [START, *[delta("x")] * 5] for event in decoder.feed(chunk)]
    assert sum(isinstance(event, PartDelta) for event in events) == 4
    assert isinstance(events[-1], StreamFailed)
    assert events[-1].failure.kind == "too_large"


def test_calls_in_turns_keep_their_fragments_apart() -> None:
    def chunk(delta: dict[str, object]) -> bytes:
        return b"data: " + json.dumps({"id": "c", "choices": [{"index": 0, "delta": delta}]}).encode() + b"\n\n"

    def call(index: int, **fields: object) -> bytes:
        return chunk({"tool_calls": [{"index": index, **fields}]})

    calls = [f'{{"n": [{", ".join(map(str, range(start, start + 9)))}]}}' for start in (1, 20, 11)]
    chunks = [call(index, id=f"c{index}", function={"name": "f", "arguments": ""}) for index in range(3)]
    places = [(index, place) for place in range(60) for index in ((0, 1, 2) if place % 7 else (2, 0, 0, 1))]
    seen = [0, 0, 0]
    for index, _ in places:
        piece = calls[index][seen[index] : seen[index] + 1]
        seen[index] += 1
        chunks.append(call(index, function={"arguments": piece}))
    chunks.append(
        b'data: {"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}\n\ndata: [DONE]\n\n'
    )
    translator = dragoman.StreamTranslator(source="openai-chat", target="anthropic-messages")
    out = b"".join(translator.feed(data) for data in chunks) + translator.close()
    again = dragoman.StreamDecoder("anthropic-messages")
    arrived = dragoman.accumulate([*again.feed(out), *again.close()])
    for completion in (translator.completion, arrived):
        assert [one.arguments for one in completion.tool_calls] == [json.loads(text) for text in calls]


@pytest.mark.parametrize("source", WAYS)
@pytest.mark.parametrize("target", ["openai-chat", "anthropic-messages", "openai-responses"])
@pytest.mark.parametrize("size", [1, 2, 9])
def test_empty_fragments_are_skipped_in_any_cut(source: str, target: str, size: int) -> None:
    if source == target:
        pytest.skip("the bytes pass unchanged")
    start, event = WAYS[source]

    def written(texts: list[str]) -> bytes:
        translator = dragoman.StreamTranslator(source=source, target=target)
        events = [event(text) for text in texts]
        reads = [b"".join(events[at : at + size]) for at in range(0, len(events), size)]
        return translator.feed(start) + b"".join(map(translator.feed, reads))

    assert written(["one", "two", "", "three", "", "four"]) == written(["one", "two", "three", "four"])


@pytest.mark.parametrize("size", [1, 3])
def test_bytes_that_are_not_text_are_refused_in_any_cut(size: int) -> None:
    events = [responses_delta(text) for text in ("one", "two", "three", "four")]
    events[2] = events[2].replace(b"xxxxx", b"xx\xffxx")  # in a key that says nothing
    decoder = dragoman.StreamDecoder("openai-responses")
    reads = [RESPONSES_START, *[b"".join(events[at : at + size]) for at in range(0, 4, size)]]
    came = [event for data in reads for event in decoder.feed(data)]
    assert [event.text for event in came if isinstance(event, PartDelta)] == ["one", "two"]
    assert isinstance(came[-1], StreamFailed)
