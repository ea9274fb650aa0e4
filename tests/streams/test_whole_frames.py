"""Frames and lines that arrive whole: never with another result than reading them byte by byte."""

from __future__ import annotations

import json
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dragoman
from dragoman.codecs.stream_limits import Limits
from dragoman.ir import AnyEvent, PartDelta, StreamFailed
from tests.support.cases import each
from tests.support.converse_streams import frame, stream

ALPHABET = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


def events_of(source: str, chunks: list[bytes], limits: Limits | None = None) -> list[AnyEvent]:
    decoder = dragoman.StreamDecoder(source, limits=limits)
    return [event for chunk in chunks for event in decoder.feed(chunk)] + decoder.close()


def read_in_full(source: str, chunks: list[bytes], limits: Limits | None = None) -> list[AnyEvent]:
    """Byte by byte, no event arrives whole."""
    data = b"".join(chunks)
    return events_of(source, [data[place : place + 1] for place in range(len(data))], limits)


def crossed(source: str, chunks: list[bytes], target: str) -> bytes:
    translator = dragoman.StreamTranslator(source=source, target=target)
    return b"".join(translator.feed(chunk) for chunk in chunks) + translator.close()


# ── frames ────────────────────────────────────────────────────────────────────────────────────────────────────

START = frame("messageStart", b'{"role":"assistant"}')
CALL = stream(("contentBlockStart", {"contentBlockIndex": 1, "start": {"toolUse": {"toolUseId": "t", "name": "f"}}}))
STOP = stream(("contentBlockStop", {"contentBlockIndex": 0}))
END = stream(("messageStop", {"stopReason": "end_turn"}), ("metadata", {"metrics": {"latencyMs": 1}}))


def text(content: str, padding: str | None = "abc", block: int = 0) -> bytes:
    return delta(b'{"text":' + json.dumps(content, ensure_ascii=False).encode() + b"}", padding, block)


def delta(content: bytes, padding: str | None = "abc", block: int = 0) -> bytes:
    tail = b"}" if padding is None else b',"p":"' + padding.encode() + b'"}'
    return frame("contentBlockDelta", b'{"contentBlockIndex":%d,"delta":' % block + content + tail)


def resealed(data: bytes) -> bytes:
    """The CRC of the whole as it should be."""
    return data[:-4] + zlib.crc32(data[:-4]).to_bytes(4, "big")


KNOWN = text("two")
ODD_FRAMES = {
    "malformed padding": text("x", 'a","q":"b'),
    "padding of another alphabet": text("x", "zyx"),
    "no padding": text("x", None),
    "the seam within the text": text('"},"p":"abc"}'),
    "a text twice": delta(b'{"text":"a","text":"b"}'),
    "a citation beside it": delta(b'{"text":"a","citation":{"title":"t"}}'),
    "escapes": delta(rb'{"text":"\u00e9\ud83d\ude00\n\""}'),
    "half a pair": delta(rb'{"text":"\ud83d"}'),
    "no UTF-8": delta(b'{"text":"\xff"}'),
    "not closed": delta(b'{"text":"a}'),
    "a number": delta(b'{"text":7}'),
    "null": delta(b'{"text":null}'),
    "nothing": text(""),
    "blanks": delta(b'{"text": "a" }'),
    "another block": text("x", block=7),
    "reasoning": delta(b'{"reasoningContent":{"text":"x"}}'),
    "another type of the same length": frame("contentBlockDelto", KNOWN[12 + KNOWN[7] : -4]),
    "another CRC": KNOWN[:-1] + bytes([KNOWN[-1] ^ 1]),
    "another text under the same CRC": KNOWN.replace(b"two", b"owt"),
    "another CRC of the prelude": resealed(KNOWN[:8] + b"\0\0\0\0" + KNOWN[12:]),
    "two frames at once": KNOWN + KNOWN,
    "half a frame": KNOWN[:50],
    "a byte more": KNOWN + b"\0",
}


@each("padding", ["abc", "", ALPHABET, None])
@each("odd", ODD_FRAMES.values(), ids=ODD_FRAMES.keys())
def test_odd_frames_read_as_they_would_in_full(odd: bytes, padding: str | None) -> None:
    chunks = [START, text("one", padding), text("two", padding), odd, text("three", padding), STOP, END]
    assert events_of("bedrock-converse", chunks) == read_in_full("bedrock-converse", chunks)


@pytest.mark.parametrize(
    "content_block", [b'{"signature":"s"}', b'{"text":"b","signature":"s"}', b'{"redactedContent":"eA=="}']
)
def test_keys_beside_a_thought_are_not_lost(content_block: bytes) -> None:
    thought = delta(b'{"reasoningContent":{"text":"a"}}')
    chunks = [START, thought, thought, delta(b'{"reasoningContent":' + content_block + b"}"), STOP, END]
    events = events_of("bedrock-converse", chunks)
    assert events == read_in_full("bedrock-converse", chunks)
    assert ("signature" in content_block.decode()) == any(
        getattr(event, "signature", None) is not None for event in events
    )


@given(st.lists(st.tuples(st.text(), st.integers(0, 62)), min_size=2, max_size=12))
def test_any_text_in_frames_is_decoded_unchanged(fragments: list[tuple[str, int]]) -> None:
    texts = [(word.encode("utf-8", "ignore").decode(), length) for word, length in fragments]
    calls = [delta(b'{"toolUse":{"input":' + json.dumps(word).encode() + b"}}", None, 1) for word, _ in texts]
    frames = [text(word, ALPHABET[:length]) for word, length in texts]
    chunks = [START, *frames, STOP, CALL, *calls, STOP, END]
    events = events_of("bedrock-converse", chunks)
    wanted = [word for word, _ in texts if word]
    assert [event.text for event in events if isinstance(event, PartDelta)][: len(wanted)] == wanted
    assert events == read_in_full("bedrock-converse", chunks)
    whole = [b"".join(chunks)]
    assert crossed("bedrock-converse", chunks, "openai-chat") == crossed("bedrock-converse", whole, "openai-chat")


def test_a_block_that_was_stopped_flows_no_more() -> None:
    chunks = [START, text("one"), text("two"), text("three"), STOP, text("four")]
    events = events_of("bedrock-converse", chunks)
    assert events == read_in_full("bedrock-converse", chunks)
    assert isinstance(events[-1], StreamFailed)


# ── lines ─────────────────────────────────────────────────────────────────────────────────────────────────────


def line(message: bytes, further: bytes = b'"done":false') -> bytes:
    return b'{"model":"m","created_at":"2026-11-15T08:00:00Z","message":' + message + b"," + further + b"}\n"


def content(text_: str) -> bytes:
    return line(b'{"role":"assistant","content":' + json.dumps(text_).encode() + b"}")


DONE = line(b'{"role":"assistant","content":""}', b'"done":true,"done_reason":"stop"')
ODD_LINES = {
    "two lines at once": content("x") + content("y"),
    "a line break within": content("x").replace(b",", b",\n"),
    "no line break": content("x").rstrip(),
    "an empty line": b"\n",
    "CRLF": content("x").replace(b"\n", b"\r\n"),
    "nothing": content(""),
    "a thought": line(b'{"role":"assistant","content":"","thinking":"hm"}'),
    "a thought beside text": line(b'{"role":"assistant","content":"x","thinking":"hm"}'),
    "a call": line(b'{"role":"assistant","content":"x","tool_calls":[{"function":{"name":"f","arguments":{}}}]}'),
    "an error": b'{"error":"no memory"}\n',
    "no UTF-8": line(b'{"role":"assistant","content":"\xff"}'),
    "half a pair": line(rb'{"role":"assistant","content":"\ud83d"}'),
    "not JSON": b"{oops\n",
    "done": DONE,
}


@pytest.mark.parametrize("odd", ODD_LINES.values(), ids=ODD_LINES.keys())
def test_odd_lines_read_as_they_would_in_full(odd: bytes) -> None:
    chunks = [content("one"), content("two"), odd, content("three"), content("four"), DONE]
    assert events_of("ollama-chat", chunks) == read_in_full("ollama-chat", chunks)


# ── limits ────────────────────────────────────────────────────────────────────────────────────────────────────

STREAMS = {
    "bedrock-converse": [START, *[text("x")] * 6, STOP, END],
    "ollama-chat": [*[content("x")] * 7, DONE],
}


@pytest.mark.parametrize(("source", "chunks"), STREAMS.items())
def test_limits_hold_for_events_that_arrive_whole(source: str, chunks: list[bytes]) -> None:
    limits = Limits(stream_bytes=sum(map(len, chunks[:4])))
    events = events_of(source, chunks, limits)
    assert events == read_in_full(source, chunks, limits)
    assert isinstance(events[-1], StreamFailed)
    assert events[-1].failure.kind == "too_large"
