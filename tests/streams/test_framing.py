"""Bytes to payloads: the same payloads and the same fault for every cut of the bytes, in linear time, within limits."""

import base64
import gzip
import json
import struct
import time
import zlib
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.codecs.framing import AwsEventStream, Framing, JsonArray, Lines, ServerSentEvents, SniffedJson
from dragoman.codecs.stream_limits import Limits
from dragoman.errors import DecodeError, LimitExceeded
from tests.support.cases import each
from tests.support.promises import promise
from tests.support.recordings import recordings_dir

BOM = b"\xef\xbb\xbf"

Kind = Callable[[Limits, str], Framing]


def payloads_and_error(kind: Kind, chunks: list[bytes], limits: Limits | None = None) -> tuple[list[bytes], str | None]:
    """The payloads, and the fault after them."""
    framing = kind(limits or Limits(), "test")
    payloads: list[bytes] = []
    try:
        for chunk in chunks:
            payloads += framing.feed(chunk)
        payloads += framing.close()
    except DecodeError as error:
        return payloads, str(error)
    return payloads, None


def payloads_of(kind: Kind, data: bytes) -> list[bytes]:
    payloads, fault = payloads_and_error(kind, [data])
    assert fault is None
    return payloads


def every_cut(data: bytes) -> Iterator[list[bytes]]:
    """Byte by byte, and every way to cut in two."""
    yield [data[place : place + 1] for place in range(len(data))]
    for place in range(len(data) + 1):
        yield [data[:place], data[place:]]


def chopped(data: bytes, places: list[int]) -> list[bytes]:
    bounds = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[start:end] for start, end in pairwise(bounds)]


PLACES = st.lists(st.integers(0, 10**6), max_size=8)

# ── server-sent events ────────────────────────────────────────────────────────────────────────────────────────

EVENTS: tuple[tuple[str, bytes, list[bytes]], ...] = (
    ("LF", b"data: 1\n\ndata: 2\n\n", [b"1", b"2"]),
    ("CRLF", b"data: 1\r\n\r\ndata: 2\r\n\r\n", [b"1", b"2"]),
    ("CR", b"data: 1\r\rdata: 2\r\r", [b"1", b"2"]),
    ("mixed line ends", b"data: 1\n\r\ndata: 2\r\n\ndata: 3\r\n\rdata: 4\r\n\r\n", [b"1", b"2", b"3", b"4"]),
    ("byte order mark", BOM + b"data: 1\n\n", [b"1"]),
    ("byte order mark, inside: no field of that name", b"data: 1\n\n" + BOM + b"data: 2\n\ndata: 3\n\n", [b"1", b"3"]),
    ("no space", b"data:1\n\n", [b"1"]),
    ("one space belongs to the field, the second to the data", b"data:  1\n\n", [b" 1"]),
    ("several lines of data", b'data: {"a":\ndata: 1}\n\n', [b'{"a":\n1}']),
    ("comments", b": ping\n\ndata: 1\n: in between\ndata: 2\n\n:\n", [b"1\n2"]),
    ("other fields", b"id: 7\nevent: message_start\nretry: 3\ndata: 1\n\n", [b"1"]),
    ("a field that only begins like data", b"database: 1\ndata: 2\n\n", [b"2"]),
    ("an event without data", b"event: ping\n\ndata: 1\n\n", [b"1"]),
    ("an event of empty data", b"data:\n\ndata: \n\ndata:   \n\ndata: 1\n\n", [b"1"]),
    ("blank lines", b"\n\n\r\n\n\ndata: 1\n\n\n\n\n", [b"1"]),
    ("no blank line at the end", b"data: 1\n\ndata: 2\n", [b"1", b"2"]),
    ("no line end at the end", b"data: 1\n\ndata: 2", [b"1", b"2"]),
    ("[DONE]", b"data: 1\n\ndata: [DONE]\n\n", [b"1", b"[DONE]"]),
    ("[DONE] at the very end", b"data: 1\n\ndata: [DONE]", [b"1", b"[DONE]"]),
    ("nothing", b"", []),
    ("only a comment", b": hello", []),
    (
        "an error outside an event",
        b'data: 1\r\n\r\n{\n  "error": {\n    "code": 499\n  }\n}\n',
        [b"1", b'{\n  "error": {\n    "code": 499\n  }\n}'],
    ),
    (
        "an error on one line",
        b'data: 1\n\n{"error":{"message":"data: no"}}',
        [b"1", b'{"error":{"message":"data: no"}}'],
    ),
    ("an event behind such an error", b'{"error":1}\n\ndata: 2\n\n', [b'{"error":1}', b"2"]),
    ("a brace within an event is not an error", b"data: 1\n{\ndata: 2\n\n", [b"1\n2"]),
    ("bytes that are not UTF-8", b"data: \xff\xfe\n\n", [b"\xff\xfe"]),
    (
        "three ends of a line that only Python knows",
        "data: a\u2028b\x85c\x0bd\n\n".encode(),
        ["a\u2028b\x85c\x0bd".encode()],
    ),
)


@promise("law:5-streams-tell-the-same-story")
@each(("data", "payloads"), [row[1:] for row in EVENTS], ids=[row[0] for row in EVENTS])
def test_server_sent_events_for_every_cut(data: bytes, payloads: list[bytes]) -> None:
    for chunks in every_cut(data):
        assert payloads_and_error(ServerSentEvents, chunks) == (payloads, None), chunks


@promise("law:5-streams-tell-the-same-story")
def test_an_event_may_begin_otherwise_than_the_one_before() -> None:
    events = (
        (b"event: a\ndata: 1\n\n", b"1"),
        (b"event: a\ndata: data: 2\n\n", b"data: 2"),
        (b"data: 3\n\n", b"3"),
        (b"data: event: a\r\n\r\n", b"event: a"),
        (b"event: ab\ndata: 5\n\n", b"5"),
        (b"event: b\r\ndata: 6\r\n\r\n", b"6"),
        (b"event: a\ndata: \n\n", None),
        (b"event: data: a\ndata: 7\n\n", b"7"),
        (b"event: a\n\n", None),
        (b"event: data: 8\n\n", None),
        (b"metadata: 8\n\n", None),
        (b"event: a\ndata: 8\ndata: 9\n\n", b"8\n9"),
    )
    for first in events:  # after any other, and after itself
        for event in events:
            chunks = [first[0], event[0], event[0]]
            expected = [payload for payload in (first[1], event[1], event[1]) if payload is not None]
            assert payloads_and_error(ServerSentEvents, chunks) == (expected, None), chunks


LINE_ENDS = st.sampled_from((b"\n", b"\r\n", b"\r"))
DATA_LINES = st.sampled_from((b"", b"x", b'{"a": 1}', b" lead", b"{", b":", "é\u2028".encode()))
OTHER_LINES = st.sampled_from((b": comment", b"event: e", b"id", b"dat: a", b":"))
SSE_LINES = st.tuples(DATA_LINES.map(lambda line: b"data: " + line) | OTHER_LINES | st.just(b""), LINE_ENDS)


def reference(lines: list[bytes]) -> list[bytes]:
    """The specification, word by word; only events whose data is blank are left out as well."""
    payloads: list[bytes] = []
    data: list[bytes] = []
    for line in [*lines, b""]:
        name, _, value = line.partition(b":")
        if not line:
            if data and b"\n".join(data).strip():
                payloads.append(b"\n".join(data))
            data = []
        elif name == b"data":
            data.append(value.removeprefix(b" "))
    return payloads


@promise("law:5-streams-tell-the-same-story")
@given(st.lists(SSE_LINES, max_size=12), PLACES)
def test_server_sent_events_as_specified(lines: list[tuple[bytes, bytes]], places: list[int]) -> None:
    # An empty line that ends in LF behind one that ends in CR would be the other half of its CRLF.
    written, ends = [], b""
    for line, end in lines:
        fused = not line and end[:1] == b"\n" and ends[-1:] == b"\r"
        written.append((line, b"\r" if fused else end))
        ends = written[-1][1]
    data = b"".join(line + end for line, end in written)
    expected = reference([line for line, _ in lines])
    assert payloads_and_error(ServerSentEvents, chopped(data, places)) == (expected, None)
    assert payloads_and_error(ServerSentEvents, [line + end for line, end in written]) == (expected, None)


# ── lines ─────────────────────────────────────────────────────────────────────────────────────────────────────

NDJSON: tuple[tuple[str, bytes, list[bytes]], ...] = (
    ("lines", b'{"a":1}\n{"a":2}\n', [b'{"a":1}', b'{"a":2}']),
    ("no line end at the end", b'{"a":1}\n{"a":2}', [b'{"a":1}', b'{"a":2}']),
    ("blank lines", b'\n\n{"a":1}\n \t\n\r\n{"a":2}\n\n', [b'{"a":1}', b'{"a":2}']),
    ("byte order mark", BOM + b"1\n2\n", [b"1", b"2"]),
    ("nothing", b"", []),
)


@promise("law:5-streams-tell-the-same-story")
@pytest.mark.parametrize(("data", "payloads"), [row[1:] for row in NDJSON], ids=[row[0] for row in NDJSON])
def test_lines_for_every_cut(data: bytes, payloads: list[bytes]) -> None:
    for chunks in every_cut(data):
        assert payloads_and_error(Lines, chunks) == (payloads, None), chunks


def test_lines_with_returns_are_still_json() -> None:
    assert [json.loads(line) for line in payloads_of(Lines, b'{"a":1}\r\n{"a":2}\r\n')] == [{"a": 1}, {"a": 2}]


# ── JSON arrays ───────────────────────────────────────────────────────────────────────────────────────────────

ARRAYS: tuple[tuple[str, bytes, list[bytes]], ...] = (
    ("as the service writes it", b'[{\n "a": 1\n}\n,\r\n{\n "a": 2\n}\n]', [b'{\n "a": 1\n}', b'{\n "a": 2\n}']),
    ("compact", b'[{"a":[1,{"b":2}]},{}]', [b'{"a":[1,{"b":2}]}', b"{}"]),
    ("brackets and commas in strings", rb'[{"a":"]},[{\"\\"},{"b":"\\\""}]', [rb'{"a":"]},[{\"\\"}', rb'{"b":"\\\""}']),
    ("elements without brackets", b' [1, "a,]" ,null,[2,3]] ', [b"1", b'"a,]"', b"null", b"[2,3]"]),
    ("empty", b"[]", []),
    ("empty, with space", b" \r\n[ \n]\n", []),
    ("nothing", b"", []),
    ("one object instead", b'{"a":1,"b":[2]}', [b'{"a":1,"b":[2]}']),
    ("objects one behind the other", b'{"a":1}\n{"a":2}', [b'{"a":1}', b'{"a":2}']),
    ("byte order mark", BOM + b"[{}]", [b"{}"]),
    ("the bracket at the end is missing", b'[{"a":1},{"a":2}', [b'{"a":1}', b'{"a":2}']),
    ("cut inside an element", b'[{"a":1},{"a":', [b'{"a":1}', b'{"a":']),
    ("cut inside an escape", b'[{"a":1},{"a":"\\', [b'{"a":1}', b'{"a":"\\']),
)


@promise("law:5-streams-tell-the-same-story")
@pytest.mark.parametrize(("data", "payloads"), [row[1:] for row in ARRAYS], ids=[row[0] for row in ARRAYS])
def test_json_arrays_for_every_cut(data: bytes, payloads: list[bytes]) -> None:
    for chunks in every_cut(data):
        assert payloads_and_error(JsonArray, chunks) == (payloads, None), chunks


JSON_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text('ab"\\{}[],é\n\u2028', max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('a"\\]', max_size=2), inner, max_size=3),
    max_leaves=8,
)


@promise("law:5-streams-tell-the-same-story")
@given(st.lists(JSON_VALUES, max_size=4), st.sampled_from((None, 1)), st.booleans(), PLACES)
def test_the_elements_of_any_array(values: list[Any], indent: int | None, ascii_only: bool, places: list[int]) -> None:  # noqa: FBT001
    data = json.dumps(values, indent=indent, ensure_ascii=ascii_only).encode()
    payloads, fault = payloads_and_error(JsonArray, chopped(data, places))
    assert fault is None
    assert [json.loads(payload) for payload in payloads] == values


def test_an_element_is_emitted_with_its_last_bracket() -> None:
    framing = JsonArray(Limits(), "test")
    assert framing.feed(b'[{"a":1') == []
    assert framing.feed(b"}") == [b'{"a":1}']


def test_a_bracket_too_many_is_reported_after_the_elements() -> None:
    for chunks in every_cut(b"[{}]]"):
        payloads, fault = payloads_and_error(JsonArray, chunks)
        assert payloads == [b"{}"]
        assert fault is not None
        assert "a bracket too many" in fault


# ── either of the two ─────────────────────────────────────────────────────────────────────────────────────────


@promise("law:5-streams-tell-the-same-story")
@each("before", [b"", b"\r\n \n", BOM, BOM + b"\n"], ids=["", "space", "mark", "mark and space"])
@each(
    ("data", "payloads"),
    [
        (b'data: {"a":1}\r\n\r\n', [b'{"a":1}']),
        (b': hello\n\ndata: {"a":1}\n\n', [b'{"a":1}']),
        (b'event: x\ndata: {"a":1}\n\n', [b'{"a":1}']),
        (b'[{"a":1}\n,\r\n{"a":2}]', [b'{"a":1}', b'{"a":2}']),
        (b'{"error":{"code":400,"message":"no"}}', [b'{"error":{"code":400,"message":"no"}}']),
        (b"", []),
    ],
)
def test_events_or_array_by_the_first_byte(before: bytes, data: bytes, payloads: list[bytes]) -> None:
    for chunks in every_cut(before + data):
        assert payloads_and_error(SniffedJson, chunks) == (payloads, None), chunks


# ── AWS event streams ─────────────────────────────────────────────────────────────────────────────────────────


def header(name: str, kind: int, value: bytes) -> bytes:
    return bytes([len(name)]) + name.encode() + bytes([kind]) + value


def text_header(name: str, value: str) -> bytes:
    return header(name, 7, struct.pack(">H", len(value.encode())) + value.encode())


def frame(headers: bytes, payload: bytes) -> bytes:
    prelude = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
    body = prelude + struct.pack(">I", zlib.crc32(prelude)) + headers + payload
    return body + struct.pack(">I", zlib.crc32(body))


def event_frame(name: str, payload: bytes) -> bytes:
    return frame(text_header(":message-type", "event") + text_header(":event-type", name), payload)


EVERY_KIND = b"".join(
    (
        header("t", 0, b""),
        header("f", 1, b""),
        header("b", 2, b"\x01"),
        header("s", 3, b"\x00\x01"),
        header("i", 4, bytes(4)),
        header("l", 5, bytes(8)),
        header("y", 6, b"\x00\x03abc"),
        header("d", 8, bytes(8)),
        header("u", 9, bytes(16)),
    )
)
FRAMES: tuple[tuple[str, bytes, list[Any]], ...] = (
    ("events", event_frame("a", b'{"x":1}') + event_frame("b", b"[2]"), [{"a": {"x": 1}}, {"b": [2]}]),
    ("no payload", event_frame("a", b""), [{"a": {}}]),
    ("an exception", frame(text_header(":exception-type", "gone"), b'{"message":"m"}'), [{"gone": {"message": "m"}}]),
    (
        "an error",
        frame(text_header(":error-code", "5") + text_header(":error-message", '"'), b""),
        [{"5": {"message": '"'}}],
    ),
    ("a name with quotes", event_frame('a"b', b"1"), [{'a"b': 1}]),
    ("headers of every kind", frame(EVERY_KIND + text_header(":event-type", "a"), b"1"), [{"a": 1}]),
    ("nothing", b"", []),
)


@promise("law:5-streams-tell-the-same-story")
@pytest.mark.parametrize(("data", "payloads"), [row[1:] for row in FRAMES], ids=[row[0] for row in FRAMES])
def test_aws_frames_for_every_cut(data: bytes, payloads: list[Any]) -> None:
    for chunks in every_cut(data):
        found, fault = payloads_and_error(AwsEventStream, chunks)
        assert fault is None
        assert [json.loads(payload) for payload in found] == payloads, chunks


def damaged(data: bytes, place: int) -> bytes:
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


@promise("law:10-bad-input-good-words")
def test_any_flipped_bit_of_a_frame_is_noticed() -> None:
    good, bad = event_frame("a", b"{}"), event_frame("b", b'{"x":1}')
    for place in range(len(bad)):
        data = good + damaged(bad, place)
        payloads, fault = payloads_and_error(AwsEventStream, [data])
        assert payloads[0] == b'{"a":{}}'
        assert fault is not None
        assert "CRC" in fault
        assert payloads_and_error(AwsEventStream, [data[i : i + 1] for i in range(len(data))]) == (payloads, fault)


def sealed(total: int, header_bytes: int, rest: bytes) -> bytes:
    """A frame with wrong lengths or headers, and the right checksums."""
    prelude = struct.pack(">II", total, header_bytes)
    body = prelude + struct.pack(">I", zlib.crc32(prelude)) + rest
    return body + struct.pack(">I", zlib.crc32(body))


@promise("law:10-bad-input-good-words")
@pytest.mark.parametrize(
    "data",
    [
        sealed(0, 0, b""),
        sealed(15, 0, b""),
        sealed(17, 2, b"x"),
        frame(b"\x05ab", b""),
        frame(b"\x01a", b""),
        frame(b"\x01a\x07\x00", b""),
        frame(b"\x01a\x0a", b""),
        frame(b"\x01\xff\x00", b""),
    ],
    ids=["no length", "too short", "more headers than frame", "name", "no kind", "length", "kind", "UTF-8"],
)
def test_frames_with_wrong_lengths_or_headers_are_refused(data: bytes) -> None:
    payloads, fault = payloads_and_error(AwsEventStream, [data])
    assert payloads == []
    assert fault is not None


def test_a_frame_that_was_cut_reads_as_nothing() -> None:
    data = event_frame("a", b"{}") + event_frame("b", b"{}")
    for place in range(len(event_frame("a", b"{}")) + 1, len(data)):
        payloads, fault = payloads_and_error(AwsEventStream, [data[:place]])
        assert fault is None
        assert len(payloads) == 2
        with pytest.raises(msgspec.DecodeError):
            msgspec.json.decode(payloads[1])


def recorded_frames() -> Iterator[tuple[str, bytes, list[str]]]:
    directory = recordings_dir()
    assert directory is not None
    for name in ("bedrock-converse", "anthropic-bedrock"):
        with gzip.open(directory / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
            for record in map(json.loads, lines):
                if record.get("frames_b64"):
                    yield record["id"], base64.b64decode(record["frames_b64"]), record["events"]


@promise("law:5-streams-tell-the-same-story")
@pytest.mark.usefixtures("recordings")
def test_recorded_frames() -> None:
    seen = 0
    for identity, data, events in recorded_frames():
        payloads, fault = payloads_and_error(AwsEventStream, [data])
        assert fault is None, identity
        names = [event.split("\n")[0].removeprefix("event: ") for event in events]
        # Messages in frames are all of type "chunk"; what they are stands in the bytes inside.
        found = [next(iter(json.loads(payload))) for payload in payloads]
        assert found == names or found == ["chunk"] * len(names), identity
        step = 1 if len(data) < 5000 else 777
        assert (
            payloads_and_error(AwsEventStream, [data[i : i + step] for i in range(0, len(data), step)])[0] == payloads
        ), identity
        seen += 1
    assert seen > 10


# ── limits ────────────────────────────────────────────────────────────────────────────────────────────────────

KINDS: dict[str, tuple[Kind, bytes, bytes]] = {
    "events": (ServerSentEvents, b'data: {"a":1}\n\n', b"data: " + b"x" * 200 + b"\n\n"),
    "events of many lines": (ServerSentEvents, b'data: {"a":1}\n\n', b"data: xxxxxxx\n" * 20 + b"\n"),
    "a comment": (ServerSentEvents, b'data: {"a":1}\n\n', b": " + b"x" * 200 + b"\n\n"),
    "an error outside an event": (ServerSentEvents, b'data: {"a":1}\n\n', b"{" + b" \n" * 200 + b"}\n\n"),
    "lines": (Lines, b'{"a":1}\n', b"x" * 200 + b"\n"),
    "array": (JsonArray, b'[{"a":1},', b'{"a":"' + b"x" * 200 + b'"}]'),
    "sniffed events": (SniffedJson, b'data: {"a":1}\r\n\r\n', b"data: " + b"x" * 200 + b"\r\n\r\n"),
    "sniffed array": (SniffedJson, b'[{"a":1},', b'{"a":"' + b"x" * 200 + b'"}]'),
    "frames": (AwsEventStream, event_frame("a", b"{}"), event_frame("b", b'{"x":"' + b"x" * 200 + b'"}')),
}
LIMITED = [pytest.param(*row, id=name) for name, row in KINDS.items()]


@promise("law:10-bad-input-good-words")
@pytest.mark.parametrize(("kind", "small", "large"), LIMITED)
def test_an_event_beyond_the_limit_is_reported_after_what_came_before(kind: Kind, small: bytes, large: bytes) -> None:
    data = small + large + small
    for chunks in every_cut(data):
        payloads, fault = payloads_and_error(kind, chunks, Limits(event_bytes=100))
        assert len(payloads) == 1, chunks
        assert fault == "test: expected event of at most 100 bytes, got more - at $", chunks


@promise("law:10-bad-input-good-words")
@pytest.mark.parametrize(("kind", "small", "large"), LIMITED)
def test_a_stream_beyond_the_limit_is_reported_after_what_came_before(kind: Kind, small: bytes, large: bytes) -> None:
    limits = Limits(stream_bytes=len(small) + 1)
    for chunks in every_cut(small + large):
        payloads, fault = payloads_and_error(kind, chunks, limits)
        assert len(payloads) == 1, chunks
        assert fault == f"test: expected stream of at most {len(small) + 1} bytes, got more - at $", chunks


@pytest.mark.parametrize(("kind", "small", "large"), LIMITED)
def test_streams_within_the_limits_pass(kind: Kind, small: bytes, large: bytes) -> None:
    data = small + large
    unlimited = payloads_and_error(kind, [data])
    assert unlimited[1] is None
    assert payloads_and_error(kind, [data], Limits(event_bytes=len(data), stream_bytes=len(data))) == unlimited


def test_events_one_per_chunk_are_counted_too() -> None:
    event = b"data: " + b"x" * 10 + b"\n\n"
    framing = ServerSentEvents(Limits(event_bytes=30, stream_bytes=100), "test")
    for _ in range(5):
        assert framing.feed(event) == [b"x" * 10]
    with pytest.raises(LimitExceeded, match="stream of at most 100 bytes"):
        framing.feed(event)


def test_a_fault_is_raised_again_on_every_later_call() -> None:
    framing = ServerSentEvents(Limits(event_bytes=10), "test")
    assert framing.feed(b"data: 1\n\ndata: 1234567890\n\n") == [b"1"]
    with pytest.raises(LimitExceeded):
        framing.feed(b"data: 2\n\n")
    with pytest.raises(LimitExceeded):
        framing.close()


# ── time ──────────────────────────────────────────────────────────────────────────────────────────────────────


def seconds(kind: Kind, data: bytes, step: int) -> float:
    chunks = [data[i : i + step] for i in range(0, len(data), step)]
    best = float("inf")
    for _ in range(4):
        start = time.process_time()  # what other processes take does not count
        framing = kind(Limits(), "test")
        for chunk in chunks:
            framing.feed(chunk)
        framing.close()
        best = min(best, time.process_time() - start)
    return best


def large(kind: str, size: int) -> tuple[Kind, bytes]:
    text = b"x" * size
    return {
        "one line": (ServerSentEvents, b"data: " + text + b"\n\n"),
        "many lines of one event": (ServerSentEvents, b"data: 12345678\n" * (size // 15) + b"\n"),
        "many events": (ServerSentEvents, b"data: 12\r\n\r\n" * (size // 12)),
        "NDJSON": (Lines, text + b"\n"),
        "array": (JsonArray, b'[{"a":"' + text + b'"}]'),
        "array of escapes": (JsonArray, b'[{"a":"' + rb"\"" * (size // 2) + b'"}]'),
        "white space first": (SniffedJson, b" " * size + b"[1]"),
        "frame": (AwsEventStream, event_frame("a", text)),
    }[kind]  # fmt: skip


@promise("law:10-bad-input-good-words")
@pytest.mark.parametrize(
    "kind",
    [
        "one line",
        "many lines of one event",
        "many events",
        "NDJSON",
        "array",
        "array of escapes",
        "white space first",
        "frame",
    ],
)
@pytest.mark.parametrize("step", [1, 7])
def test_time_grows_with_the_bytes_and_no_faster(kind: str, step: int) -> None:
    """Thirty-two times the bytes take about thirty-two times the time; joining them at every step, over a hundred."""
    few = seconds(*large(kind, 8_000), step)
    many = seconds(*large(kind, 256_000), step)
    assert many < 80 * few
