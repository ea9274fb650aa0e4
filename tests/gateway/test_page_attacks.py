"""Hostile requests to the page's own API: nothing is read before the login, nothing fails, memory stays bounded."""

import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from dragoman.gateway.other_workers import OtherWorkers
from dragoman.gateway.serving import Setting
from dragoman.sim.server import Simulator
from dragoman.web.chat import chat
from dragoman.web.guard import HEADER, LOGIN
from dragoman.web.playground import playground
from dragoman.web.serving import page_before
from dragoman.web.site import API
from dragoman.web.streams import Stream, Streams
from tests.gateway.running import RunningGateway, configured, connected, send
from tests.gateway.served import Served, served
from tests.support.cases import each
from tests.support.promises import promise
from tests.support.waiting import PATIENCE

pytestmark = promise("gateway:attacks", "web:chat")

MEBIBYTE = 1 << 20


async def no_hub(_: object) -> Any:
    raise LookupError("only the routes are of interest")


CHANGES = sorted(
    {(route.method, route.pattern) for section in (chat(no_hub, Streams()), playground()) for route in section.routes}
    | {("POST", f"{API}/keys"), ("POST", f"{API}/keys/{{name}}/rotate"), ("POST", f"{API}/keys/{{name}}/revoke")}
    | {("POST", f"{API}/logout"), ("POST", LOGIN), ("POST", f"{API}/nothing")}
)
"""The endpoints of the page that take a body; those that read get one here too."""


def filled(pattern: str, id: str = "x") -> str:
    return pattern.replace("{id}", id).replace("{name}", "x").replace("{question}", "x")


# ── before the login ──


@pytest.fixture(scope="module")
def locked_workers() -> Iterator[list[RunningGateway]]:
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        setting = configured('[server]\nkeys = ["sesame"]\n')
        workers = [
            RunningGateway(setting, front=page_before, worker_link=OtherWorkers(Path(folder), place, 2).link)
            for place in range(2)
        ]
        yield [stack.enter_context(worker) for worker in workers]


@promise("gateway:admission", "gateway:workers")
@each(("method", "pattern"), CHANGES)
def test_no_worker_reads_a_body_before_the_login(
    locked_workers: list[RunningGateway], method: str, pattern: str
) -> None:
    line = f"{method} {filled(pattern)} HTTP/1.1\r\nhost: x\r\n{HEADER}: 1\r\ncontent-length: 50000000\r\n\r\n"
    for worker in locked_workers:
        with connected(worker.url) as sock:
            sock.sendall(line.encode())
            sock.settimeout(PATIENCE)
            status = int(sock.recv(65536)[9:12])
        assert status in {401, 413}, "the login form has a small limit"
        assert worker.running is not None
        assert worker.running.server.budget.used == 0


@promise("gateway:workers")
def test_bodies_of_a_user_reach_the_page_through_any_worker(locked_workers: list[RunningGateway]) -> None:
    form = {"content-type": "application/x-www-form-urlencoded"}
    body = json.dumps({"text": json.dumps({"messages": [{"role": "user", "content": "x" * 100_000}]})}).encode()
    for worker in locked_workers:
        cookie = send(worker.url, LOGIN, b"password=sesame", form).headers["set-cookie"].partition(";")[0]
        answers = {
            send(other.url, f"{API}/playground/crossings", body, {"cookie": cookie, HEADER: "1"}).status
            for other in locked_workers
        }
        assert answers == {200}
    refused = send(locked_workers[1].url, f"{API}/keys", b"{}", {"origin": "http://elsewhere.example"})
    assert (refused.status, "another site" in refused.json["error"]) == (403, True)
    wrong = send(locked_workers[1].url, LOGIN, b"password=guess", form)
    assert (wrong.status, wrong.headers["location"]) == (303, f"{LOGIN}?wrong")


# ── bodies that no page sends ──

ODD_BODIES: dict[str, bytes] = {
    "nothing": b"",
    "broken": b"{",
    "a list": b"[]",
    "null": b"null",
    "text": b'"x"',
    "not UTF-8": b"\xff\xfe",
    "half a surrogate pair": b'{"text": "\\ud800", "model": "\\ud800", "name": "\\ud800"}',
    "a number beyond all floats": b'{"text": 1e999, "model": 1e999, "default": 1e999}',
    "deep lists": b"[" * 100_000 + b"]" * 100_000,
    "deep objects": b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
    "lists for texts": b'{"text": [], "model": [], "name": [], "branch": [], "entry": [], "document": [1]}',
    "objects for lists": b'{"attachments": {"a": 1}, "default": {"a": 1}, "document": {"a": 1}, "text": "x"}',
    "attachments of another type": b'{"attachments": [1], "default": [1], "text": "x"}',
    "numbers for texts": b'{"text": 1, "model": 1, "name": 1, "branch": 1, "entry": 1, "document": 1}',
}


@pytest.fixture(scope="module")
def open_page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RunningGateway, str]]:
    """A gateway without keys, and the id of a conversation on its page."""
    environment = {"CHAT_HISTORY_DIR": str(tmp_path_factory.mktemp("chat"))}
    with RunningGateway(Setting(config=configured("").config, environment=environment), front=page_before) as gateway:
        id = send(gateway.url, f"{API}/chat/conversations", {}, {HEADER: "1"}).json["id"]
        path = f"{API}/chat/conversations/{id}/messages"
        assert send(gateway.url, path, {"text": "kept", "memo": True}, {HEADER: "1"}).status == 202
        yield gateway, id


WRITING = [(method, pattern) for method, pattern in CHANGES if method in {"POST", "PATCH"}]


@each(("method", "pattern"), WRITING)
def test_odd_bodies_are_refused_by_the_page(open_page: tuple[RunningGateway, str], method: str, pattern: str) -> None:
    gateway, id = open_page
    for name, body in ODD_BODIES.items():
        got = send(gateway.url, filled(pattern, id), body, {HEADER: "1"}, method)
        assert got.status < 500, (name, got.body)


def test_names_of_models_are_short(open_page: tuple[RunningGateway, str]) -> None:
    gateway, _ = open_page
    long = "x" * 1_000
    for path, body in (
        ("/models/mine", {"model": f"openai/{long}"}),
        (f"/models/{long}", {"model": "openai/gpt-5.6"}),
        ("/options", {"default": [long]}),
        ("/options", {"default": ["x"] * 1_000}),
    ):
        got = send(gateway.url, f"{API}/chat{path}", body, {HEADER: "1"}, "PATCH")
        assert got.status in {400, 413}, path
    assert long not in send(gateway.url, f"{API}/chat/state", None, None, "GET").body.decode()


# ── memory ──


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dragoman_simulator: Simulator) -> Iterator[Served]:  # noqa: ARG001
    monkeypatch.setenv("CHAT_HISTORY_DIR", str(tmp_path / "chat"))
    with served(tmp_path, "", "--quiet") as gateway:
        yield gateway


def growth_of(page: Served, ask: Callable[[int], int], times: int) -> float:
    """Return by how many megabytes the gateway grows after the third request: the first fill memory pools."""
    before = 0.0
    for number in range(times):
        assert ask(number) == 200
        if number == 2:
            before = page.megabytes
    return page.megabytes - before


def begin(page: Served, size: int) -> str:
    id = send(page.url, f"{API}/chat/conversations", {}, {HEADER: "1"}).json["id"]
    body = {"text": "x" * size, "memo": True}
    path = f"{API}/chat/conversations/{id}"
    assert send(page.url, f"{path}/messages", body, {HEADER: "1"}).status == 202
    return path


@promise("gateway:slow-readers")
def test_a_tab_that_does_not_read_takes_no_memory(page: Served) -> None:
    """Each change sends the whole conversation to each tab."""
    path = begin(page, 4 * MEBIBYTE)
    with page.connect() as tab:
        tab.sendall(f"GET {path}/events HTTP/1.1\r\nhost: {urlsplit(page.url).netloc}\r\n\r\n".encode())
        assert tab.recv(4096).startswith(b"HTTP/1.1 200 ")

        def change(number: int) -> int:
            return send(page.url, path, {"system_prompt": f"prompt {number}"}, {HEADER: "1"}, "PATCH").status

        assert growth_of(page, change, 40) < 60


def test_counted_texts_do_not_stay_in_memory(page: Served) -> None:
    path = begin(page, 10)

    def measure(number: int) -> int:
        text = f"{number} {'x' * 4 * MEBIBYTE}"
        return send(page.url, f"{path}/gauges", {"text": text}, {HEADER: "1"}).status

    assert growth_of(page, measure, 30) < 50


def waiting(stream: Stream) -> tuple[int, int]:
    held = [event for _, event in stream._waiting]  # noqa: SLF001 - nothing else shows it
    return len(held), sum(map(len, held))


def test_events_that_wait_for_a_tab_are_bounded() -> None:
    stream = Streams().stream()
    stream.put("notice", "kept")
    stream.put("said", "x" * MEBIBYTE)
    stream.put_state("snapshot", "y" * 20 * MEBIBYTE, except_for={"notice"})
    stream.put("notice", "too much")
    assert waiting(stream) == (0, 0), "it ends, because an event is missing"
    other = Streams().stream()
    for _ in range(100):
        other.put("said", "x" * MEBIBYTE)
    assert waiting(other) == (0, 0)
    last = Streams().stream()
    last.put("notice", "kept")
    for number in range(100):
        last.put("said", number)
        last.put_state("snapshot", number, except_for={"notice"})
    assert waiting(last)[0] == 2, "the notice and the newest snapshot"
