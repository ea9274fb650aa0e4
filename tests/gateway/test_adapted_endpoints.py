"""Upstreams that break their format, behind the endpoints that convert answers in the client's own format."""

import gc
import http.client
import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.gateway.running import Got, RunningGateway, configured, send
from tests.gateway.scripted_upstream import NO_ANSWER, Reply, ScriptedUpstream, completion, reply
from tests.support.cases import each
from tests.support.promises import promise
from tests.support.waiting import until

pytestmark = promise("gateway:attacks")

CLAUDE = {"max_tokens": 9, "messages": [{"role": "user", "content": "x"}]}
ON_BEDROCK = {**CLAUDE, "anthropic_version": "bedrock-2023-05-31"}
ON_VERTEX = {**CLAUDE, "anthropic_version": "vertex-2023-10-16"}
PUBLISHER = "/v1/projects/p/locations/l/publishers/anthropic/models/claude%2Fm"
WHOLE: dict[str, tuple[str, Mapping[str, Any]]] = {
    "completion": ("/v1/completions", {"model": "chat/m", "prompt": "x"}),
    "generate": ("/api/generate", {"model": "local/m", "prompt": "x", "stream": False}),
    "invoke": ("/model/claude%2Fm/invoke", ON_BEDROCK),
    "raw predict": (f"{PUBLISHER}:rawPredict", ON_VERTEX),
}
STREAMED: dict[str, tuple[str, Mapping[str, Any]]] = {
    "completion": ("/v1/completions", {"model": "chat/m", "prompt": "x", "stream": True}),
    "generate": ("/api/generate", {"model": "local/m", "prompt": "x"}),
    "invoke": ("/model/claude%2Fm/invoke-with-response-stream", ON_BEDROCK),
    "raw predict": (f"{PUBLISHER}:streamRawPredict", {**ON_VERTEX, "stream": True}),
}
CHUNK = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
TEXT = json.dumps({**CHUNK, "choices": [{"index": 0, "delta": {"role": "assistant", "content": "hello"}}]}).encode()
LINE = (
    b'{"model":"m","created_at":"2026-01-01T00:00:00Z","message":{"role":"assistant","content":"hello"},"done":false}'
)
MESSAGE = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": {}}
CLAUDE_EVENTS = (
    {"type": "message_start", "message": MESSAGE},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hello"}},
)

MALFORMED: dict[str, bytes] = {
    "broken": b"{broken",
    "a list": b"[]",
    "null": b"null",
    "a number": b"1",
    "text": b'"x"',
    "an empty object": b"{}",
    "not UTF-8": b"\xff\xfe",
    "deep lists": b"[" * 5_000 + b"]" * 5_000,
    "deep errors": b'{"error":' * 5_000 + b"1" + b"}" * 5_000,
    "an error of another type": b'{"error": 1}',
    "an error without a type": b'{"type": "error", "error": null}',
    "a number beyond all floats": b'{"x": 1e999}',
    "half a surrogate pair": b'{"a": "\\ud800"}',
    "choices are null": b'{"choices": null}',
    "choices are a number": b'{"choices": 1}',
    "a choice is a number": b'{"choices": [1]}',
    "a choice is empty": b'{"choices": [{}]}',
    "a delta is a list": b'{"choices": [{"delta": ["x"]}]}',
    "a text is a list": b'{"choices": [{"delta": {"content": [1]}, "finish_reason": "stop"}]}',
    "a message is a number": b'{"message": 1, "done": true}',
    "the end": b"[DONE]",
}


def events(*payloads: bytes) -> bytes:
    return b"".join(b"data: " + payload + b"\n\n" for payload in payloads)


def stream_of(name: str, payload: bytes) -> Reply:
    """Return a stream that begins well and contains this payload."""
    if name == "generate":
        return reply(LINE + b"\n" + payload + b"\n", headers={"content-type": "application/x-ndjson"})
    first = [json.dumps(event).encode() for event in CLAUDE_EVENTS] if name != "completion" else [TEXT]
    return reply(events(*first, payload), headers={"content-type": "text/event-stream"})


class Behind(RunningGateway):
    """A gateway with the upstream behind it."""

    def __init__(self) -> None:
        self.upstream = ScriptedUpstream(NO_ANSWER)
        more = "breaker = { failures = 1000000 }"
        tables = (("chat", "openai-chat"), ("claude", "anthropic"), ("local", "ollama"))
        super().__init__(configured("".join(self.upstream.table(name, kind, more) for name, kind in tables)))

    def problems(self) -> list[dict[str, Any]]:
        """Return errors of the gateway itself; the log is emptied."""
        found = [line for line in self.log.lines if line["event"] == "error"]
        self.log.clear()
        return found


@pytest.fixture(scope="module")
def behind() -> Iterator[Behind]:
    with Behind() as gateway:
        yield gateway
    gateway.upstream.close()


@each("name", WHOLE)
def test_a_malformed_answer_is_a_failure_of_the_upstream(behind: Behind, name: str) -> None:
    path, body = WHOLE[name]
    for status in ("200 OK", "400 Bad Request", "429 Too Many Requests", "500 Internal Server Error"):
        for what, data in MALFORMED.items():
            behind.upstream.replies = [reply(data, status)]
            got = send(behind.url, path, body)
            assert got.status != 500 or status.startswith("500"), what
            assert not behind.problems(), (status, what)


@each("name", ["completion", "generate"])
@each("more", [b'"x": 1e999', b'"x": "\\ud800"'])
def test_what_cannot_be_converted_is_not_sent(behind: Behind, name: str, more: bytes) -> None:
    """The gateway reads only the keys it knows of an answer in the client's own format; the conversion reads all."""
    path, body = WHOLE[name]
    good = LINE.replace(b"false", b"true") if name == "generate" else json.dumps(completion()).encode()
    behind.upstream.replies = [reply(b"{" + more + b"," + good[1:])]
    got = send(behind.url, path, body)
    assert (got.status, b"does not follow its format" in got.body) == (502, True)
    assert not behind.problems()


def stream(behind: Behind, name: str) -> Got | bytes:
    """Return the answer, or what came of one that was cut off."""
    path, body = STREAMED[name]
    try:
        return send(behind.url, path, body)
    except http.client.IncompleteRead as error:
        return error.partial


@each("name", STREAMED)
def test_a_malformed_event_is_a_failure_of_the_upstream(behind: Behind, name: str) -> None:
    for what, payload in MALFORMED.items():
        behind.upstream.replies = [stream_of(name, payload)]
        got = stream(behind, name)
        assert not behind.problems(), what
        assert isinstance(got, bytes) or got.status < 500 or got.status == 502, (what, got.status)


@each("name", ["completion", "generate"])
def test_what_came_before_a_malformed_event_arrives(behind: Behind, name: str) -> None:
    """The events come in two reads, because an answer whose first read is malformed fails before it begins."""
    good, bad = stream_of(name, b"").data.partition(b"\r\n\r\n")[2], MALFORMED["broken"]
    framed = good.rstrip() + (b"\n" if name == "generate" else b"\n\n")
    kind = "application/x-ndjson" if name == "generate" else "text/event-stream"
    later = (bad + b"\n") if name == "generate" else events(bad)
    head = f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\n\r\n".encode()
    behind.upstream.replies = [Reply(head + framed * 20_000 + later)]
    got = stream(behind, name)
    assert isinstance(got, bytes), "the connection was cut"
    assert got.count(b"hello") == 20_000
    [line] = behind.requests(1)
    assert (line["failure"], line["status"]) == ("server", 200)
    behind.log.clear()


# ── memory ──


def held_by_garbage() -> int:
    """Return the bytes of text and data that only the garbage collector would free."""
    gc.set_debug(gc.DEBUG_SAVEALL)
    gc.collect()
    gc.set_debug(0)
    found = {id(one): one for garbage in gc.garbage for one in gc.get_referents(garbage)}
    gc.garbage.clear()
    return sum(sys.getsizeof(one) for one in found.values() if isinstance(one, bytes | bytearray | str))


@each("path", ["/v1/messages", "/v1/completions"])
def test_a_stream_beyond_a_limit_leaves_nothing_in_memory(behind: Behind, path: str) -> None:
    """The error of such a stream once referred to itself, and kept what had arrived until the next collection."""
    body = {"model": "chat/m", "max_tokens": 9, "stream": True}
    asked = {"prompt": "x"} if path == "/v1/completions" else {"messages": CLAUDE["messages"]}
    endless = b'data: {"choices": [{"delta": {"content": "' + b"x" * (70 << 20)
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
    behind.upstream.replies = [Reply(head + events(TEXT) + endless)]
    gc.collect()
    gc.disable()
    try:
        try:
            answer = send(behind.url, path, {**body, **asked}).body
        except http.client.IncompleteRead as error:
            answer = error.partial
        assert b"hello" in answer
        behind.requests(1)
        running = behind.running
        assert running is not None
        until(lambda: not running.gateway.metrics.in_flight, "the request goes on")
        assert held_by_garbage() < 16 << 20
    finally:
        gc.enable()
        behind.log.clear()
