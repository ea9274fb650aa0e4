"""Several workers act as one gateway: shared metrics, limits and page, and workers that die are replaced."""

import json
import os
import re
import signal
import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest

from dragoman.gateway.merged_metrics import merge_health, merge_metrics, upstream_health
from dragoman.gateway.metrics import Metrics
from dragoman.gateway.other_workers import OtherWorkers
from dragoman.gateway.request_records import Record
from dragoman.gateway.workers import RestartDelay
from dragoman.sim.server import Simulator
from dragoman.web.serving import page_before
from tests.cli.command import run
from tests.gateway.running import RunningGateway, connected, send, simulated
from tests.gateway.test_command import served
from tests.gateway.test_failures import chat
from tests.support.promises import promise
from tests.support.waiting import PATIENCE, until

MODEL = "anthropic/claude-sonnet-5"
BROWSER = {"accept": "text/html,*/*"}


# ── two linked workers ──


@pytest.fixture
def two(dragoman_simulator: Simulator) -> Iterator[list[RunningGateway]]:
    """Two workers, each with its own address, so that a test can choose which one it asks."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        workers = []
        for place in range(2):
            worker_link = OtherWorkers(Path(folder), place, 2).link
            worker = RunningGateway(simulated(dragoman_simulator.url), front=page_before, worker_link=worker_link)
            workers.append(stack.enter_context(worker))
        yield workers


def counted(url: str) -> int:
    text = send(url, "/metrics", method="GET").body.decode()
    return sum(int(value) for value in re.findall(r"dragoman_requests_total\{[^}]*\} (\d+)", text))


@promise("gateway:workers", "gateway:metrics")
def test_each_worker_reports_the_counts_of_all(two: list[RunningGateway]) -> None:
    for number, worker in enumerate(two, 2):
        for _ in range(number):
            assert send(worker.url, "/v1/chat/completions", chat(MODEL)).status == 200
        worker.requests(number)
    for worker in two:
        assert counted(worker.url) == 5
        health = send(worker.url, "/health", method="GET").json
        assert (health["status"], health["workers"], health["in_flight"]) == ("healthy", 2, 0)
        assert health["upstreams"]["anthropic"] == {"status": "healthy", "breaker": "closed"}
    two[0].__exit__()
    assert counted(two[1].url) == 3, "of those that can be asked"


@promise("gateway:workers")
def test_the_page_is_served_by_the_first_worker(two: list[RunningGateway]) -> None:
    first, second = (worker.url for worker in two)
    for path in ("/", "/_/static/style.css", "/_/api/site", "/_/nothing"):
        ours, theirs = (send(url, path, headers=BROWSER, method="GET") for url in (first, second))
        assert (ours.status, ours.body) == (theirs.status, theirs.body), path
        assert theirs.headers["content-security-policy"] == ours.headers["content-security-policy"]
    assert send(second, "/", headers={"accept": "*/*"}, method="GET").body == b"dragoman is running\n"
    given = {"body": json.dumps(chat(MODEL)), "format": "openai-chat"}
    for headers, status in (({"x-dragoman-page": "1"}, 200), ({}, 403)):
        ours, theirs = (send(url, "/_/api/playground", given, headers) for url in (first, second))
        assert ours.status == theirs.status
        assert (ours.status == 403) == (status == 403)


def events(sock: socket.socket, url: str) -> Iterator[list[dict[str, Any]]]:
    """Yield what the live page receives, through any worker."""
    sock.sendall(f"GET /_/api/live/feed HTTP/1.1\r\nhost: {urlsplit(url).netloc}\r\n\r\n".encode())
    received = b""
    while data := sock.recv(65536):
        received += data
        while (found := re.search(rb"data: (.*)\n\n", received)) is not None:
            received = received[found.end() :]
            yield json.loads(found[1])


@promise("gateway:workers")
@pytest.mark.parametrize("looking", [0, 1])
def test_the_page_shows_requests_of_all_workers(two: list[RunningGateway], looking: int) -> None:
    ids = [send(worker.url, "/v1/chat/completions", chat(MODEL)).headers["x-request-id"] for worker in two]
    with connected(two[looking].url) as sock:
        feed = events(sock, two[looking].url)
        assert [one["id"] for one in next(feed)] == ids[::-1], "the newest first, whichever worker served it"
        for worker in two:
            new = send(worker.url, "/v1/chat/completions", chat(MODEL)).headers["x-request-id"]
            while not any(one["id"] == new and one["phase"] == "ended" for one in next(feed)):
                pass
            ids.append(new)
    for id in ids:
        got = send(two[looking].url, f"/_/api/live/requests/{id}", method="GET")
        assert (got.status, got.json["summary"]["id"]) == (200, id)
    assert send(two[looking].url, "/_/api/live/requests/none", method="GET").status == 404
    for worker in two:
        running = worker.running
        assert running is not None
        capture = running.gateway.capture
        assert capture is not None
        until(lambda feeds=capture.feeds: not feeds, "the disconnect was not noticed")  # type: ignore[misc]


@promise("gateway:workers", "gateway:no-secrets")
def test_messages_between_workers_are_private(two: list[RunningGateway]) -> None:
    for worker in two:
        for path in ("/_/own/feed", "/_/own/snapshot", "/_/own/request"):
            assert send(worker.url, f"{path}?key=&all=1&id=x", headers=BROWSER, method="GET").status == 404


@promise("gateway:workers")
def test_a_page_whose_worker_is_gone_is_unavailable(two: list[RunningGateway]) -> None:
    two[0].__exit__()
    got = send(two[1].url, "/", headers=BROWSER, method="GET")
    assert (got.status, got.headers["retry-after"]) == (503, "1")


def test_metrics_are_added_up_by_name_and_labels() -> None:
    several = []
    for status, seconds in ((200, 0.2), (200, 0.3), (429, 0.1)):
        metrics = Metrics()
        metrics.add(Record(id="", client="a", operation="generate", started=0.0, status=status, seconds=seconds))
        several.append(metrics.text({"x": "open", "y": "closed"}, {}))
    lines = merge_metrics(several).splitlines()
    assert 'dragoman_requests_total{client="a",upstream="",status="200"} 2' in lines
    assert 'dragoman_requests_total{client="a",upstream="",status="429"} 1' in lines
    assert 'dragoman_request_seconds_bucket{client="a",upstream="",le="0.25"} 2' in lines
    assert 'dragoman_request_seconds_count{client="a",upstream=""} 3' in lines
    assert 'dragoman_breaker_open{upstream="x"} 1' in lines
    one = [line.rpartition(" ")[0] for line in several[0].splitlines()]
    assert [line.rpartition(" ")[0] for line in lines if "429" not in line] == one
    merged = [
        msgspec.json.encode({"status": status, "in_flight": working, "upstreams": {"x": upstream_health(breaker)}})
        for status, working, breaker in (("healthy", 1, "closed"), ("unhealthy", 2, "open"))
    ]
    assert merge_health(merged) == {
        "status": "unhealthy",
        "in_flight": 3,
        "upstreams": {"x": {"status": "unhealthy", "breaker": "open"}},
        "workers": 2,
    }


# ── processes ──


def children(parent: int) -> list[int]:
    return [int(pid) for pid in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]


@promise("gateway:workers", "gateway:limits-exact", "gateway:reload", "gateway:shutdown")
def test_processes_share_limits_and_are_replaced(tmp_path: Path) -> None:
    file = tmp_path / "dragoman.toml"
    file.write_text('[server]\ndatabase = "gateway.db"\n')
    key = run("keys", "create", "ada", "--requests-per-minute", "10", cwd=tmp_path).stdout.decode().strip()
    other = run("keys", "create", "bob", cwd=tmp_path).stdout.decode().strip()
    with served("--workers", "3", "--quiet", cwd=tmp_path) as (url, process):
        headers = {"x-api-key": key}
        statuses: list[int] = []

        def ask() -> None:
            statuses.append(send(url, "/v1/chat/completions", chat(MODEL), headers).status)

        threads = [threading.Thread(target=ask) for _ in range(30)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (statuses.count(200), statuses.count(429)) == (10, 20)
        # Responses that one worker stores are found by the others and by its replacement.
        free = {"x-api-key": other}
        body = {"model": MODEL, "input": "Hello"}
        kept = [send(url, "/v1/responses", body, free).json["id"] for _ in range(4)]
        assert all(_kept(url, id, free) for id in kept for _ in range(3))
        until(lambda: b'"workers":3' in send(url, "/health", method="GET").body)
        before = children(process.pid)
        assert len(before) == 3
        os.kill(before[0], signal.SIGKILL)
        os.kill(before[1], signal.SIGTERM)  # a worker that exits normally is replaced too
        until(lambda: len(set(children(process.pid)) - set(before)) == 2, "the workers were not replaced")
        until(lambda: b'"workers":3' in send(url, "/health", method="GET").body)
        assert all(_kept(url, id, free) for id in kept)
        until(lambda: send(url, "/", headers=BROWSER, method="GET").status in {200, 303}, "the page is back")
        file.write_text('[server]\ndatabase = "gateway.db"\n[routes.other]\nto = "anthropic/claude-sonnet-5"\n')
        process.send_signal(signal.SIGHUP)
        until(lambda: all(_lists(url, "other", headers) for _ in range(10)), "all have reloaded it")
        process.terminate()
        assert process.wait(25) == 0, "earlier than requests in progress would be cut off"
        assert not any(Path(f"/proc/{pid}").exists() for pid in before)


def _kept(url: str, id: str, headers: dict[str, str]) -> bool:
    return send(url, f"/v1/responses/{id}", headers=headers, method="GET").status == 200


def _lists(url: str, model: str, headers: dict[str, str]) -> bool:
    return model.encode() in send(url, "/v1/models", headers=headers, method="GET").body


@promise("gateway:workers")
def test_workers_do_not_outlive_their_parent(tmp_path: Path) -> None:
    with served("--workers", "2", "--quiet", cwd=tmp_path) as (url, process):
        assert send(url, "/health", method="GET").status == 200
        until(lambda: len(children(process.pid)) == 2)
        left = children(process.pid)
        process.kill()
        process.wait(PATIENCE)
        until(lambda: not any(_runs(pid) for pid in left), "they still serve, without a parent to replace them")


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_workers_that_die_early_are_replaced_with_growing_delays() -> None:
    delay = RestartDelay()
    waits = []
    for moment in range(8):
        delay.record_start(moment)
        waits.append(delay.next_delay(moment + 0.5))
    assert waits == [0.0, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0]
    delay.record_start(100)
    assert delay.next_delay(200) == 0.0
