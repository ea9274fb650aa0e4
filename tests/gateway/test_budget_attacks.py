"""Requests whose limits are absurd reserve as much of a budget as others."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.running import RunningGateway, configured, send
from tests.gateway.scripted_upstream import ScriptedUpstream, completion, reply, scripted
from tests.gateway.test_keys import create, key
from tests.support.cases import each
from tests.support.promises import promise
from tests.support.waiting import PATIENCE, until

pytestmark = promise("gateway:attacks", "gateway:budget-reserved")

PRICES = '[prices."p/m"]\ninput = 1\noutput = 1000\n'
ASKED = {"model": "p/m", "messages": [{"role": "user", "content": "hi"}]}
HUGE = 10**30
LIMITS: dict[str, tuple[str, dict[str, Any]]] = {
    "a negative limit": ("/v1/chat/completions", {"max_tokens": -1}),
    "a very negative limit": ("/v1/chat/completions", {"max_completion_tokens": -(10**12)}),
    "no tokens": ("/v1/chat/completions", {"max_tokens": 0}),
    "a negative number of answers": ("/v1/chat/completions", {"n": -5}),
    "two negative numbers": ("/v1/chat/completions", {"n": -5, "max_tokens": -5}),
    "more than a database holds": ("/v1/chat/completions", {"max_tokens": HUGE}),
    "many answers of many tokens": ("/v1/chat/completions", {"n": HUGE, "max_tokens": HUGE}),
    "a negative limit of Messages": ("/v1/messages", {"max_tokens": -7}),
}


class Slow(ScriptedUpstream):
    """Answers when the test says so."""

    def __init__(self) -> None:
        super().__init__(reply(completion()))
        self.may_answer = threading.Event()

    def _answer(self, client: socket.socket, incoming: Any) -> bool:
        line = incoming.readline()
        if not line:
            return False
        length = 0
        while (header := incoming.readline()) not in {b"\r\n", b""}:
            name, _, value = header.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        self.bodies.append(incoming.read(length))
        assert self.may_answer.wait(PATIENCE)
        client.sendall(self.replies[0].data)
        return True


@contextmanager
def slow() -> Iterator[Slow]:
    upstream = Slow()
    try:
        yield upstream
    finally:
        upstream.may_answer.set()
        upstream.close()


@each("name", LIMITS)
def test_the_expected_use_of_absurd_limits_is_positive(name: str) -> None:
    path, limits = LIMITS[name]
    with scripted(reply(completion())) as upstream, RunningGateway(configured(upstream.table("p") + PRICES)) as gateway:
        got = send(gateway.url, path, {**ASKED, **limits}, {"x-dragoman-estimate": "1"}).json
    assert 1 <= got["output_tokens"] < 1 << 63, got
    assert got["cost"] > 0


@pytest.mark.parametrize("budget", [{"budget": 0.1}, {"token_budget": 100}], ids=str)
@pytest.mark.parametrize("name", LIMITS)
def test_absurd_limits_make_no_room_in_a_budget(name: str, budget: dict[str, Any], tmp_path: Path) -> None:
    """Only one request of a key whose budget is nearly used up may run at a time."""
    path, limits = LIMITS[name]
    address = str(tmp_path / "gateway.db")
    create(address, key("poor", **budget))
    held: list[int] = []
    with slow() as upstream:
        table = f'[server]\ndatabase = "{address}"\n' + upstream.table("p") + PRICES
        with RunningGateway(configured(table)) as gateway:
            headers = {"authorization": "Bearer k-poor"}
            first = threading.Thread(
                target=lambda: held.append(send(gateway.url, path, {**ASKED, **limits}, headers).status)
            )
            first.start()
            until(lambda: bool(upstream.bodies), "the request has arrived")
            for sent_path, body in ((path, {**ASKED, **limits}), ("/v1/chat/completions", ASKED)):
                refused = send(gateway.url, sent_path, body, headers)
                assert refused.status == 429, refused.body
            upstream.may_answer.set()
            first.join(PATIENCE)
    assert held == [200]
    assert len(upstream.bodies) == 1
    assert json.loads(upstream.bodies[0])
