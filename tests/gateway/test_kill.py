"""Two gateways on PostgreSQL, with and without Redis; one is killed while more than a thousand requests are served."""

import asyncio
import json
import os
import signal
import threading
import time
from collections import Counter
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from msgspec import Struct

from dragoman.gateway.state.connect import open_store
from dragoman.sim.server import Simulator
from dragoman.sim.service import Settings
from tests.gateway.running import TIMEOUT
from tests.gateway.test_failures import chat
from tests.gateway.test_many_gateways import LEASE, MODEL, Balancer, Pair, homes, key, pair
from tests.support.promises import promise

__all__ = ["homes"]
REQUESTS = 1_000
KILLED_AFTER = 400
CLIENTS = 6
PATIENCE = 180.0
PAUSE = 0.25
"""Seconds that a client waits after a refusal; otherwise clients over their limit would use most of the processor."""
BUDGET, RATE, AT_A_TIME = 2.0, 100, 2


class Outcome(Struct, frozen=True):
    name: str
    id: str
    """Empty if the connection broke."""
    status: int
    text: str
    """A text that only this request has."""
    server: int
    """The port of the gateway that it was sent to."""


class Traffic:
    """Clients that send requests without pause, whole and streamed, each with a text of its own."""

    def __init__(self, balancer: Balancer, names: tuple[str, ...]) -> None:
        self.outcomes: list[Outcome] = []
        self._balancer = balancer
        self._address = urlsplit(balancer.url)
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._threads = [
            threading.Thread(target=self._ask, args=(name, place), daemon=True)
            for name in names
            for place in range(CLIENTS)
        ]
        for thread in self._threads:
            thread.start()

    def _ask(self, name: str, place: int) -> None:
        number = place
        while not self._over.is_set():
            number += 1
            text = f"{name}-{place}-{number}"
            outcome = self._one(name, text, streamed=number % 2 == 0)
            with self._lock:
                self.outcomes.append(outcome)
            if outcome.status in {402, 429}:
                time.sleep(PAUSE)

    def _one(self, name: str, text: str, *, streamed: bool) -> Outcome:
        messages = [{"role": "user", "content": text}]
        body = json.dumps({**chat(MODEL, max_tokens=50), "messages": messages, "stream": streamed})
        connection = HTTPConnection(self._address.hostname or "", self._address.port, timeout=TIMEOUT)
        port = 0
        try:
            connection.connect()
            port = int(connection.sock.getsockname()[1])
            connection.request("POST", "/v1/messages", body, {"x-api-key": f"k-{name}"})
            answer = connection.getresponse()
            content = answer.read()
        except (OSError, HTTPException):
            return Outcome(name, "", 0, text, self._balancer.served.get(port, 0))
        finally:
            connection.close()
        ended = b"message_stop" in content if streamed else b"end_turn" in content
        assert ended or answer.status != 200, content
        return Outcome(name, answer.headers["x-request-id"], answer.status, text, 0)

    def count(self, name: str) -> int:
        with self._lock:
            return sum(1 for one in self.outcomes if one.name == name and one.status == 200)

    def wait_for(self, name: str, count: int) -> None:
        end = time.monotonic() + PATIENCE
        while self.count(name) < count:
            assert time.monotonic() < end, f"{self.count(name)} of {count} answers"
            time.sleep(0.05)

    def stop(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join(TIMEOUT)


def reserved(both: Pair) -> int:
    async def read() -> int:
        store, database = await open_store(both.address)
        try:
            rows = await database.rows(
                "SELECT count(*) FROM gateway_reservations WHERE until > extract(epoch FROM clock_timestamp())"
            )
            return int(rows[0][0])
        finally:
            await store.close()

    return asyncio.run(read())


def check_accounts(both: Pair, traffic: Traffic, name: str) -> float:
    """Each answer that a client received completely is recorded once; returns the price of one."""
    completed = [one.id for one in traffic.outcomes if one.name == name and one.status == 200]
    broken = [one for one in traffic.outcomes if one.name == name and not one.id]
    rows = [(id, cost) for id, status, cost in both.rows(name) if status == 200]
    assert len(set(completed)) == len(completed)
    assert set(completed) <= {id for id, _ in rows}, "lost: received completely, and not recorded"
    assert len(rows) == len({id for id, _ in rows})
    assert len(rows) - len(completed) <= len(broken), "duplicated: written without a request"
    prices = {cost for _, cost in rows}
    assert both.spent(name) == pytest.approx(sum(cost for _, cost in rows))
    return float(max(prices))


@promise("gateway:many-gateways", "gateway:costs-exact", "gateway:limits-exact", "gateway:budget-reserved")
@pytest.mark.parametrize("homes", ["postgres", "redis"], indirect=True)
def test_killing_one_of_two_gateways_loses_and_duplicates_nothing(
    homes: tuple[str, str],
    tmp_path: Path,
) -> None:
    grants: tuple[Any, ...] = (
        key("ada", budget=1e6),
        key("rate", requests_per_minute=RATE),
        key("poor", budget=BUDGET),
        key("narrow", concurrent=AT_A_TIME),
    )
    with (
        Simulator(Settings(remembered=100_000)) as simulator,
        pair(*homes, tmp_path, simulator.url, *grants) as both,
    ):
        began = time.monotonic()
        traffic = Traffic(both.balancer, ("ada", "rate", "poor", "narrow"))
        try:
            traffic.wait_for("ada", KILLED_AFTER)
            os.kill(both.processes[0].pid, signal.SIGKILL)
            both.processes[0].wait(TIMEOUT)
            after = traffic.count("narrow")
            traffic.wait_for("ada", REQUESTS)
            traffic.wait_for("narrow", after + 20)
            elapsed = time.monotonic() - began
        finally:
            traffic.stop()
        outcomes = list(traffic.outcomes)
        dead = urlsplit(both.urls[0]).port
        assert {one.server for one in outcomes if not one.id} <= {dead}, "the other served on"
        assert {one.status for one in outcomes} <= {0, 200, 402, 429}
        price = check_accounts(both, traffic, "ada")
        for name in ("rate", "poor", "narrow"):
            check_accounts(both, traffic, name)
        # The limit applies to each minute. The budget is overspent by at most one request of each gateway.
        assert traffic.count("rate") <= RATE * (int(elapsed / 60) + 1)
        assert traffic.count("rate") >= min(RATE, 50)
        assert BUDGET - 3 * price <= both.spent("poor") <= BUDGET + 2 * price
        sent = Counter(text_of(request) for request in simulator.requests)
        assert max(sent.values()) == 1, "nothing was sent upstream twice"
        assert {one.text for one in outcomes if one.status == 200} <= set(sent)
        end = time.monotonic() + 2 * LEASE + 5
        while reserved(both):
            assert time.monotonic() < end, "what the dead gateway had reserved is free again"
            time.sleep(0.1)


def text_of(request: Any) -> str:
    content = json.loads(request.body)["messages"][0]["content"]
    return str(content if isinstance(content, str) else content[0]["text"])
