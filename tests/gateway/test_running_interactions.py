"""Streams of interactions that are resumed while the answer is still being generated."""

import asyncio
import json
import queue
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection
from typing import Any, Self
from urllib.parse import urlsplit

import pytest

from dragoman.gateway.running_events import EventMemory, RunningEvents, UnknownEvent
from tests.gateway.running import Got, RunningGateway, configured, send
from tests.support.promises import promise
from tests.support.waiting import PATIENCE, until

pytestmark = promise("gateway:interactions")

PATH = "/v1beta/interactions"
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"


class HeldUpstream:
    """A Chat server that streams each piece as soon as the test provides it; None ends the answer."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self.pieces: queue.Queue[bytes | None] = queue.Queue()
        self.left = threading.Event()
        """Set when the gateway closes the connection before the end of the answer."""
        threading.Thread(target=self._serve, daemon=True).start()

    def say(self, text: str) -> None:
        delta = {"id": "c", "model": "m", "choices": [{"index": 0, "delta": {"role": "assistant", "content": text}}]}
        self.pieces.put(b"data: " + json.dumps(delta).encode() + b"\n\n")

    def end(self) -> None:
        last = {"id": "c", "model": "m", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
        self.pieces.put(b"data: " + json.dumps(last).encode() + b"\n\ndata: [DONE]\n\n")
        self.pieces.put(None)

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                with client:
                    self._answer(client)

    def _answer(self, client: socket.socket) -> None:
        data = b""
        while b"\r\n\r\n" not in data:
            data += client.recv(65536)
        client.sendall(HEAD)
        client.settimeout(0.02)
        while True:
            with suppress(queue.Empty):
                piece = self.pieces.get(timeout=0.02)
                if piece is None:
                    return
                client.sendall(piece)
            with suppress(TimeoutError):
                if not client.recv(65536):
                    self.left.set()
                    return

    def close(self) -> None:
        self._listening.close()


class Reader:
    """A client that reads a stream event by event."""

    def __init__(self, url: str, path: str, body: dict[str, Any] | None = None) -> None:
        self._connection = HTTPConnection(urlsplit(url).netloc, timeout=PATIENCE)
        data = None if body is None else json.dumps(body)
        headers = {"x-goog-api-key": "any", "content-type": "application/json"}
        self._connection.request("GET" if body is None else "POST", path, data, headers)
        self._answer = self._connection.getresponse()
        self.status = self._answer.status
        assert self.status == 200, self._answer.read()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.leave()

    def leave(self) -> None:
        self._answer.close()
        self._connection.close()

    def event(self) -> dict[str, Any] | None:
        """Return the next event; None at the end."""
        while line := self._answer.readline():
            if line.startswith(b"data: {"):
                found: dict[str, Any] = json.loads(line[6:])
                return found
        return None

    def until(self, kind: str) -> list[dict[str, Any]]:
        """Return the events up to the first of this kind."""
        found: list[dict[str, Any]] = []
        while (event := self.event()) is not None:
            found.append(event)
            if event["event_type"] == kind:
                return found
        raise AssertionError(f"no {kind} in {[one['event_type'] for one in found]}")

    def rest(self) -> list[dict[str, Any]]:
        return list(iter(self.event, None))


@contextmanager
def waiting_upstream() -> Iterator[tuple[HeldUpstream, RunningGateway]]:
    upstream = HeldUpstream()
    table = f'[providers.p]\nkind = "openai-chat"\nbase_url = "{upstream.url}"\napi_key = "k"\n'
    try:
        with RunningGateway(configured(table)) as gateway:
            yield upstream, gateway
    finally:
        upstream.close()


def request_body(**more: Any) -> dict[str, Any]:
    return {"model": "p/m", "input": "Hello", **more}


def look(gateway: RunningGateway, id: str) -> Got:
    return send(gateway.url, f"{PATH}/{id}", b"", {}, "GET")


def resume(gateway: RunningGateway, id: str, last_event_id: str = "") -> Reader:
    after = f"&last_event_id={last_event_id}" if last_event_id else ""
    return Reader(gateway.url, f"{PATH}/{id}?stream=true{after}")


def text_of(events: list[dict[str, Any]]) -> str:
    return "".join(event["delta"].get("text", "") for event in events if event["event_type"] == "step.delta")


def test_several_clients_resume_a_running_stream() -> None:
    with waiting_upstream() as (upstream, gateway):
        upstream.say("one ")
        with Reader(gateway.url, PATH, request_body(stream=True)) as first:
            seen = first.until("step.delta")
            id = seen[0]["interaction"]["id"]
            assert look(gateway, id).json["status"] == "in_progress"
            with resume(gateway, id) as whole, resume(gateway, id, seen[1]["event_id"]) as late:
                so_far = whole.until("step.delta")
                assert so_far == seen
                assert late.until("step.delta") == seen[2:]
                upstream.say("two ")
                assert text_of(whole.until("step.delta")) == text_of(late.until("step.delta")) == "two "
                upstream.end()
                remaining = first.rest()
                assert text_of(remaining) == "two "
                assert whole.rest() == late.rest() == remaining[1:]
        assert remaining[-1]["interaction"]["status"] == "completed"
        with resume(gateway, id) as after:
            assert after.rest() == seen + remaining


def test_an_unknown_event_of_a_running_stream_is_refused() -> None:
    with waiting_upstream() as (upstream, gateway):
        upstream.say("one ")
        with Reader(gateway.url, PATH, request_body(stream=True)) as first:
            id = first.until("step.delta")[0]["interaction"]["id"]
            refused = send(gateway.url, f"{PATH}/{id}?stream=true&last_event_id=e999", b"", {}, "GET")
            assert (refused.status, refused.json["error"]["status"]) == (400, "INVALID_ARGUMENT")
            cancelled = send(gateway.url, f"{PATH}/{id}/cancel", b"")
            assert cancelled.status == 400
            assert "in the background" in cancelled.json["error"]["message"]
            upstream.end()
            first.rest()


def test_a_watching_client_gets_the_status_when_the_first_client_disconnects() -> None:
    with waiting_upstream() as (upstream, gateway):
        upstream.say("one ")
        with Reader(gateway.url, PATH, request_body(stream=True)) as first:
            id = first.until("step.delta")[0]["interaction"]["id"]
            with resume(gateway, id) as watching:
                watching.until("step.delta")
                first.leave()
                assert watching.rest()[-1]["interaction"]["status"] == "cancelled"
        assert upstream.left.wait(PATIENCE)
        assert look(gateway, id).status == 404


def test_a_background_interaction_can_be_watched() -> None:
    with waiting_upstream() as (upstream, gateway):
        promised = send(gateway.url, PATH, request_body(background=True)).json
        assert promised["status"] == "in_progress"
        upstream.say("one ")
        with resume(gateway, promised["id"]) as one, resume(gateway, promised["id"]) as other:
            seen = one.until("step.delta")
            assert seen[0]["interaction"]["id"] == promised["id"], "the id that was promised, not the upstream's"
            one.leave()  # and comes back
            with resume(gateway, promised["id"], seen[-1]["event_id"]) as again:
                upstream.say("two ")
                assert text_of(again.until("step.delta")) == "two "
                upstream.end()
                assert again.rest()[-1]["interaction"]["status"] == "completed"
            assert text_of(other.rest()) == "one two "
        done = look(gateway, promised["id"]).json
        assert (done["id"], done["status"]) == (promised["id"], "completed")
        assert done["steps"][-1]["content"][0]["text"] == "one two "
        with resume(gateway, promised["id"], seen[-1]["event_id"]) as after:
            assert text_of(after.rest()) == "two "


def test_a_background_stream_continues_after_a_disconnect() -> None:
    with waiting_upstream() as (upstream, gateway):
        upstream.say("one ")
        with Reader(gateway.url, PATH, request_body(background=True, stream=True)) as first:
            seen = first.until("step.delta")
        id = seen[0]["interaction"]["id"]
        upstream.say("two ")
        with resume(gateway, id, seen[-1]["event_id"]) as again:
            assert text_of(again.until("step.delta")) == "two "
            upstream.end()
            assert again.rest()[-1]["interaction"]["status"] == "completed"
        assert not upstream.left.is_set()


@pytest.mark.parametrize("deletes", [False, True], ids=["cancel", "delete"])
def test_a_watcher_sees_a_cancelled_interaction_end(*, deletes: bool) -> None:
    with waiting_upstream() as (upstream, gateway):
        id = send(gateway.url, PATH, request_body(background=True)).json["id"]
        upstream.say("one ")
        with resume(gateway, id) as one, resume(gateway, id) as other:
            one.until("step.delta")
            other.until("step.delta")
            if deletes:
                assert send(gateway.url, f"{PATH}/{id}", b"", {}, "DELETE").status == 200
            else:
                assert send(gateway.url, f"{PATH}/{id}/cancel", b"").json["status"] == "cancelled"
            for watching in (one, other):
                assert watching.rest()[-1]["interaction"]["status"] == "cancelled"
        assert upstream.left.wait(PATIENCE)
        assert look(gateway, id).status == 404 if deletes else look(gateway, id).json["status"] == "cancelled"


def test_an_upstream_that_fails_ends_the_interaction_for_all_clients() -> None:
    with waiting_upstream() as (upstream, gateway):
        id = send(gateway.url, PATH, request_body(background=True)).json["id"]
        upstream.say("one ")
        with resume(gateway, id) as watching:
            watching.until("step.delta")
            upstream.pieces.put(None)  # in the middle of the answer
            assert watching.rest()[-1]["event_type"] in {"error", "interaction.completed"}
        until(lambda: look(gateway, id).json["status"] != "in_progress")
        assert look(gateway, id).json["status"] == "failed"


# ── memory ──


def event(number: int, size: int = 100) -> bytes:
    fields = {"index": 0, "delta": {"type": "text", "text": "x" * size}, "event_type": "step.delta"}
    return b"event: step.delta\ndata: " + json.dumps({**fields, "event_id": f"e{number}"}).encode() + b"\n\n"


def test_memory_for_events_is_limited_and_released() -> None:
    room = EventMemory(each=20_000, together=30_000)
    one, other = RunningEvents(room, "a"), RunningEvents(room, "b")
    for number in range(1, 1_001):
        one.feed(event(number))
        other.feed(event(number))
        assert room.used <= room.together + 200
    assert one.whole() is None
    with pytest.raises(UnknownEvent):
        one.place_after("e1")
    assert one.place_after("e1000") == 1_000
    one.end("completed")
    one.release()
    other.release()
    assert room.used == 0


def test_a_reader_that_falls_behind_is_cut_off() -> None:
    async def read() -> None:
        events = RunningEvents(EventMemory(each=2_000), "a")
        events.feed(event(1))
        reading = events.read(events.place_after(""))
        assert await anext(reading) == event(1)
        for number in range(2, 100):
            events.feed(event(number))
        with pytest.raises(UnknownEvent):
            await anext(reading)

    asyncio.run(read())


def test_events_get_ids_and_the_id_of_the_interaction() -> None:
    events = RunningEvents(EventMemory(), "v1_promised")
    fields = {"interaction": {"id": "theirs", "status": "in_progress"}, "event_type": "interaction.created"}
    data = b"event: interaction.created\r\ndata: " + json.dumps(fields).encode() + b"\r\n\r\n"
    for place in range(len(data)):
        events.feed(data[place : place + 1])
    events.end("completed")
    whole = events.whole() or b""
    assert b"theirs" not in whole
    assert whole.count(b"v1_promised") == 2
    assert whole.count(b'"event_id":"e1"') == 1
    assert events.place_after("e1") == 1
