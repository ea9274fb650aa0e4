"""The last requests, held for the page: within limits, without keys, and none if the page is off."""

import asyncio
import gc
import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from dragoman.drivers.secret import HIDDEN
from dragoman.gateway.capture import Capture, CapturedRequest, Feed, hidden_headers, hidden_query, without_keys
from dragoman.gateway.captured_values import CaptureLimits
from dragoman.gateway.http_request import Head
from dragoman.gateway.request_records import Record
from dragoman.gateway.serving import Setting, serving
from dragoman.sim.server import Simulator
from tests.gateway.running import Lines, every_format, on_any_port, send
from tests.support.promises import promise

KEY = "sk-very-secret-0123456789"


def head(**headers: str) -> Head:
    return Head("POST", "/v1/messages", "", headers)


def begun(capture: Capture, number: int = 0) -> CapturedRequest:
    record = Record(id=f"req_{number}", client="openai-chat", operation="generate", started=time.perf_counter())
    return capture.begin(record, head())


# ── limits ──


@promise("gateway:page-bounds")
def test_only_the_last_requests_are_held() -> None:
    capture = Capture(CaptureLimits(requests=3))
    for number in range(10):
        begun(capture, number).record_request(b"x" * 10)
    assert [captured.record.id for captured in capture] == ["req_9", "req_8", "req_7"]
    assert capture.total == 30
    assert capture.find("req_0") is None


@promise("gateway:page-bounds")
def test_held_bytes_stay_within_the_limit_while_requests_run() -> None:
    capture = Capture(CaptureLimits(requests=100, total=10_000, body=4_000))
    under_way = [begun(capture, number) for number in range(8)]
    for turn in range(300):
        for captured in under_way:
            captured.piece(b"a" * 100, b"b" * 120)
        assert capture.total <= 10_000, turn
    assert len(capture) < 8
    gone = [captured for captured in under_way if captured.is_gone]
    assert all(captured.pieces == [] and captured.size == 0 for captured in gone)
    kept = under_way[-1]
    assert kept.unheld > 0
    assert len(kept.pieces) + kept.unheld == 300


@promise("gateway:page-bounds")
def test_long_bodies_are_cut_and_marked_as_cut() -> None:
    capture = Capture(CaptureLimits(body=1_000, pieces=5))
    captured = begun(capture)
    captured.record_request(b"x" * 5_000)
    assert captured.body is not None
    assert (len(captured.body.content), captured.body.size, captured.body.is_cut) == (1_000, 5_000, True)
    for _ in range(9):
        captured.piece(b"12", b"3456")
    assert (len(captured.pieces), captured.unheld, captured.unheld_bytes) == (5, 4, 24)


@promise("gateway:page-bounds", "gateway:admission")
def test_long_heads_are_cut_and_count_towards_the_limit() -> None:
    """Requests without a key are captured too, and their heads may be large."""
    capture = Capture()
    long = {"host": "x", "x-long": "y" * 50_000, "x-other": "z"}
    for number in range(300):
        record = Record(id=f"req_{number}", client="openai-chat", operation="generate", started=time.perf_counter())
        capture.begin(record, Head("POST", "/v1/" + "p" * 9_000, "q=" + "r" * 9_000, long)).record_end()
    assert 200 * 2_000 < capture.total < 200 * 4_000
    captured = next(iter(capture))
    assert captured.headers == {"host": "x", "…": "2 more, too long to be held"}
    assert captured.path.startswith("/v1/ppp")
    assert len(captured.path) < 2_100
    usual = begun(capture)
    usual.record_end()
    assert (usual.headers, usual.size) == ({}, len("/v1/messages"))


@promise("gateway:page-bounds")
def test_bodies_are_held_by_reference() -> None:
    capture = Capture()
    captured = begun(capture)
    body = json.dumps({"model": "m", "messages": []}).encode()
    captured.record_request(body)
    assert captured.body is not None
    assert captured.body.content is body
    same = b"data: {}\n\n"
    captured.piece(same, same)
    assert captured.pieces[0][1] is captured.pieces[0][2] is same
    assert captured.size < len(body) + len(same) + 300


def test_a_released_request_holds_nothing_more() -> None:
    capture = Capture(CaptureLimits(requests=1))
    first = begun(capture, 1)
    begun(capture, 2)
    first.record_request(b"{}")
    first.record_answer(200, b"{}")
    first.piece(b"a", b"b")
    first.began_to_answer()
    first.record_end()
    assert capture.total == 0
    assert first.is_gone


# ── keys ──


@promise("gateway:page-no-secrets")
def test_keys_in_headers_and_queries_are_hidden() -> None:
    given = {"authorization": "Bearer x", "x-api-key": KEY, "X-Goog-Api-Key": KEY, "cookie": "a=b", "accept": "*/*"}
    kept = dict(hidden_headers(given))
    assert kept.pop("accept") == "*/*"
    assert set(kept.values()) == {HIDDEN}
    assert hidden_query(f"alt=sse&key={KEY}&access_token=y&flag") == f"alt=sse&key={HIDDEN}&access_token={HIDDEN}&flag"
    assert hidden_query(f"k%65y={KEY}") == f"k%65y={HIDDEN}"


BODIES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("anthropic-messages", {"mcp_servers": [{"type": "url", "url": "https://x", "authorization_token": KEY}]}),
    ("openai-responses", {"tools": [{"type": "mcp", "server_url": "https://x", "authorization": KEY}]}),
    ("openai-responses", {"tools": [{"type": "mcp", "headers": {"Authorization": f"Bearer {KEY}", "x-tenant": "7"}}]}),
    ("openai-chat", {"data_sources": [{"parameters": {"authentication": {"type": "api_key", "api_key": KEY}}}]}),
    ("vertex", {"tools": [{"retrieval": {"externalApi": {"apiAuth": {"apiKeyConfig": {"apiKeyString": f'{KEY}"'}}}}}]}),
    ("gemini", {"tools": [{"mcpServers": [{"streamableHttpTransport": {"headers": {"X-Api-Key": KEY}}}]}]}),
)


@promise("gateway:page-no-secrets")
@pytest.mark.parametrize(("format", "body"), BODIES)
@pytest.mark.parametrize("indent", [None, 2])
def test_keys_in_bodies_are_hidden(format: str, body: dict[str, Any], indent: int | None) -> None:
    text = json.dumps({"model": "m", **body, "metadata": {"a": 1}}, indent=indent).encode()
    record = Record(id="req_1", client=format, operation="generate", started=0.0)
    captured = Capture().begin(record, head())
    captured.record_request(text)
    assert captured.body is not None
    hidden = captured.body.content
    assert KEY.encode() not in hidden
    assert HIDDEN.encode() in hidden
    assert json.loads(hidden)["metadata"] == {"a": 1}
    assert b"x-tenant" not in text or b'"7"' in hidden


@promise("gateway:page-no-secrets")
@given(st.integers(0, 200))
def test_a_key_at_the_place_of_the_cut_is_hidden(cut: int) -> None:
    text = json.dumps({"mcp_servers": [{"authorization_token": KEY, "name": "n"}], "model": "m"}).encode()
    assert KEY.encode()[:6] not in without_keys(text[:cut])


def test_text_that_only_resembles_a_key_is_kept() -> None:
    schema = {"type": "object", "properties": {"headers": {"type": "object"}, "api_key": {"type": "string"}}}
    text = json.dumps({"tools": [{"function": {"parameters": schema}}], "messages": ["the password is: swordfish"]})
    body = text.encode()
    assert without_keys(body) is body or json.loads(without_keys(body)) == json.loads(body)


# ── the feed ──


@promise("gateway:page-feed")
def test_a_feed_returns_each_changed_request_once() -> None:
    async def run() -> None:
        capture = Capture()
        feed = Feed(lambda captured: captured.record.model != "private")
        capture.feeds.add(feed)
        captured = begun(capture, 1)
        captured.began_to_answer()
        captured.record_end()
        other = begun(capture, 2)
        assert await feed.changes() == [captured, other]
        waiting = asyncio.ensure_future(feed.changes())
        await asyncio.sleep(0)
        assert not waiting.done()
        private = begun(capture, 3)
        other.record_end()
        assert await waiting == [private, other]  # it became private after it had begun
        private.record.model = "private"
        private.record_end()
        other.record_end()
        assert await feed.changes() == [other]

    asyncio.run(run())


# ── a gateway ──

BODY = {"model": "as-anthropic-messages/claude-sonnet-5", "messages": [{"role": "user", "content": "hi"}], "seed": 1}


async def ask(setting: Setting, *, times: int, looked_at: bool) -> Capture | None:
    from dragoman.web.serving import page_before  # noqa: PLC0415 - above the gateway

    async with serving(setting, log=Lines(), front=page_before if looked_at else None) as running:
        for _ in range(times):
            got = await asyncio.to_thread(
                send, running.url, "/v1/chat/completions", BODY, {"authorization": f"Bearer {KEY}"}
            )
            assert got.status == 200
        return running.gateway.capture


@promise("gateway:page-off")
def test_without_a_viewer_nothing_is_captured(dragoman_sim: Simulator) -> None:
    config = on_any_port(every_format(dragoman_sim.url))
    off = structs.replace(config, server=structs.replace(config.server, page=False))
    assert asyncio.run(ask(Setting(config=config), times=2, looked_at=False)) is None
    assert asyncio.run(ask(Setting(config=off), times=2, looked_at=True)) is None
    gc.collect()
    assert [one for one in gc.get_objects() if isinstance(one, CapturedRequest)] == []


@promise("gateway:page-views", "gateway:page-no-secrets")
def test_requests_and_answers_of_both_sides_are_captured(dragoman_sim: Simulator) -> None:
    setting = Setting(config=on_any_port(every_format(dragoman_sim.url)))
    capture = asyncio.run(ask(setting, times=3, looked_at=True))
    assert capture is not None
    assert len(capture) == 3
    captured = next(iter(capture))
    assert captured.phase == "ended"
    assert captured.headers["authorization"] == HIDDEN
    assert captured.body is not None
    assert captured.answer is not None
    assert json.loads(captured.body.content) == BODY
    assert json.loads(captured.answer.content)["object"] == "chat.completion"
    (attempt,) = captured.attempts
    assert attempt.answer is not None
    assert json.loads(attempt.body.content)["max_tokens"] > 0
    assert json.loads(attempt.answer.content)["type"] == "message"
    assert attempt.status == 200
    assert attempt.url.endswith("/anthropic/v1/messages")
    assert [loss.path for loss in attempt.losses] == ["$.max_completion_tokens", "$.seed"]


@promise("gateway:page-bounds")
def test_ten_thousand_requests_leave_no_more_objects_than_the_last_ones() -> None:
    """Released requests are freed by reference counting, without waiting for the garbage collector."""
    capture = Capture(CaptureLimits(requests=50))

    def one(number: int) -> None:
        captured = begun(capture, number)
        captured.record.capture = captured
        captured.record_request(b'{"model":"m"}')
        for _ in range(3):
            captured.piece(b"a", b"b")
        captured.record_end()
        captured.record.capture = None

    gc.collect()
    gc.disable()
    try:
        for number in range(200):
            one(number)
        before = sum(isinstance(each, CapturedRequest) for each in gc.get_objects())
        for number in range(200, 10_000):
            one(number)
        after = sum(isinstance(each, CapturedRequest) for each in gc.get_objects())
    finally:
        gc.enable()
    assert before == after == 50


@promise("gateway:page-no-secrets")
@pytest.mark.parametrize("most", [50, 150, 300, 10_000])
@pytest.mark.parametrize("model", ["as-anthropic-messages/claude-sonnet-5", "as-openai-responses/gpt-5.6"])
def test_keys_are_hidden_in_the_upstream_request(model: str, most: int, dragoman_sim: Simulator) -> None:
    """Also if the client's body or its translation is held only in part."""
    server = {"type": "url", "name": "n", "url": "https://x", "authorization_token": KEY}
    asked = {"model": model, "max_tokens": 5, "mcp_servers": [server], "messages": BODY["messages"]}
    setting = Setting(config=on_any_port(every_format(dragoman_sim.url)))

    async def run() -> CapturedRequest:
        from dragoman.web.serving import page_before  # noqa: PLC0415 - above the gateway

        async with serving(setting, log=Lines(), front=page_before) as running:
            running.gateway.capture = Capture(CaptureLimits(body=most))
            await asyncio.to_thread(send, running.url, "/v1/messages", asked)
            return next(iter(running.gateway.capture))

    held = asyncio.run(run())
    assert held.attempts
    assert held.body is not None
    shown = [held.body, *(attempt.body for attempt in held.attempts)]
    assert all(KEY.encode()[:6] not in body.content for body in shown)
