"""What a gateway holds in memory: unused formats are not loaded, and pieces of streams are packed."""

import subprocess
import sys
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.gateway.capture import Capture
from dragoman.gateway.client_protocols import CLIENT_PROTOCOLS
from dragoman.gateway.http_request import BadRequest, Head, RepeatedHeaders, characters_of, collect_headers
from dragoman.gateway.packed_pieces import PIECES, Piece, pack
from dragoman.gateway.request_records import Record

STARTED = """
import asyncio, sys
from dragoman.gateway.config import read_config
from dragoman.gateway.serving import Setting, serving
from dragoman.web.serving import page_before

async def start():
    provider = "kind = '{kind}'\\nbase_url = 'http://x'\\napi_key = 'k'\\n"
    config = read_config("[server]\\nport = 0\\n[providers.up]\\n" + provider)
    async with serving(Setting(config=config), front=page_before):
        pass

asyncio.run(start())
print(*(name for name in sys.modules if name.startswith("dragoman.codecs.") and name.endswith(".stream")))
"""


@pytest.mark.parametrize("kind", ["openai-chat", "anthropic", "gemini"])
def test_a_gateway_with_the_page_loads_only_the_format_of_its_provider(kind: str) -> None:
    command = [sys.executable, "-c", STARTED.format(kind=kind)]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()  # noqa: S603
    format = {"anthropic": "anthropic_messages"}.get(kind, kind.replace("-", "_"))
    assert loaded == [f"dragoman.codecs.{format}.stream"]
    assert len(CLIENT_PROTOCOLS) > 5, "there are more formats that could have been loaded"


NAMES = st.sampled_from([b"host", b"content-length", b"x-long", b"accept"])
VALUES = st.integers(0, 3).map(lambda digits: b"1" + b"0" * digits) | st.integers(0, 3_000).map(
    lambda size: b"v" * size
)


@given(st.lists(st.lists(st.tuples(NAMES, VALUES), max_size=4), max_size=6))
def test_remembered_headers_are_those_of_the_request_and_no_longer_than_counted(
    requests: list[list[tuple[bytes, bytes]]],
) -> None:
    """The count limits what is held of captured heads, so it must not be too small either."""
    repeated = RepeatedHeaders()
    for pairs in requests:
        try:
            expected = collect_headers(pairs)
        except BadRequest:
            continue
        assert repeated.collect(pairs) == expected
        assert repeated.size >= characters_of(expected)
        assert repeated.size == characters_of(expected) or "content-length" in expected


CONTENT = st.binary(max_size=20)
PIECE = st.tuples(st.floats(0, 1e6), CONTENT, CONTENT) | st.builds(lambda one: (1.0, one, one), CONTENT)


@given(st.lists(PIECE, min_size=1, max_size=2 * PIECES))
def test_packed_pieces_are_those_that_were_packed(pieces: list[Piece]) -> None:
    assert list(pack(pieces)) == pieces


def captured_stream(pieces: list[Piece]) -> tuple[Capture, list[Piece]]:
    """Record these pieces; return what holds them, and what is read of them without their times."""
    capture = Capture()
    captured = capture.begin(
        Record(id="req_1", client="openai-chat", operation="generate", started=0.0), Head("POST", "/", "", {})
    )
    for _, received, sent in pieces:
        captured.piece(received, sent)
    captured.record_end()
    return capture, captured.pieces


@given(st.lists(PIECE, min_size=1, max_size=3 * PIECES + 1))
def test_a_captured_stream_reads_as_it_was_recorded(pieces: list[Piece]) -> None:
    capture, read = captured_stream(pieces)
    assert [content for _, *content in read] == [content for _, *content in pieces]
    assert [time for time, *_ in read] == sorted(time for time, *_ in read)
    assert capture.total >= sum(len(sent) for _, _, sent in pieces)


@pytest.mark.parametrize("passes_unchanged", [True, False])
def test_a_captured_stream_takes_little_more_memory_than_its_bytes(*, passes_unchanged: bool) -> None:
    size, count = 150, 2_000
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        held = Capture().begin(
            Record(id="req_1", client="openai-chat", operation="generate", started=0.0), Head("POST", "/", "", {})
        )
        for number in range(count):
            received = b"%*d" % (size, number)
            held.piece(received, received if passes_unchanged else b"%*d" % (size, -number))
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    content = size * count * (1 if passes_unchanged else 2)
    assert content < after - before < 1.25 * content, (after - before) / content
    assert len(held.pieces) == count
