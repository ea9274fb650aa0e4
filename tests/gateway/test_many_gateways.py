"""Two gateways behind a load balancer share limits, and one that dies loses only its own requests."""

import asyncio
import itertools
import json
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from msgspec import Struct

from dragoman.gateway.access import digest_of
from dragoman.gateway.state.base import Grant
from dragoman.gateway.state.connect import open_store
from dragoman.sim.server import Simulator
from tests.gateway.running import TIMEOUT, Got, connected, send
from tests.gateway.test_command import served
from tests.gateway.test_failures import chat, provider
from tests.support.databases import Postgres, Redis
from tests.support.promises import promise
from tests.support.waiting import until

LEASE = 3.0
MODEL = "p/claude-sonnet-5"
SLOW = "slow/claude-sonnet-5"
"""A model whose stream lasts until it is cut off."""
BRIEF = "brief/claude-sonnet-5"
"""A model that answers in two seconds, so that requests overlap."""


class Balancer:
    """Forwards connections to the reachable gateways in turn."""

    def __init__(self, urls: list[str]) -> None:
        self._ports = [urlsplit(url).port or 0 for url in urls]
        self._turns = itertools.count()
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=200)
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self.served: dict[int, int] = {}
        """Port of the client -> port of the gateway that served it."""
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, (_, port) = self._listening.accept()
                threading.Thread(target=self._serve, args=(client, port), daemon=True).start()

    def _serve(self, client: socket.socket, port: int) -> None:
        with client:
            turn = next(self._turns)
            for offset in range(len(self._ports)):
                chosen = self._ports[(turn + offset) % len(self._ports)]
                try:
                    server = socket.create_connection(("127.0.0.1", chosen), timeout=TIMEOUT)
                except OSError:
                    continue
                server.settimeout(None)  # the limit is for the connection: an answer may take longer
                self.served[port] = chosen
                with server:
                    up = threading.Thread(target=pump, args=(client, server), daemon=True)
                    up.start()
                    pump(server, client)
                return

    def close(self) -> None:
        self._listening.close()


def pump(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)


class Pair(Struct):
    urls: list[str]
    processes: list["subprocess.Popen[str]"]
    address: str
    balancer: Balancer

    def rows(self, key: str) -> list[tuple[Any, ...]]:
        async def read() -> list[tuple[Any, ...]]:
            store, database = await open_store(self.address)
            try:
                return await database.rows("SELECT id, status, cost FROM gateway_usage WHERE key = ?", (key,))
            finally:
                await store.close()

        return asyncio.run(read())

    def spent(self, key: str) -> float:
        async def read() -> float:
            store, _ = await open_store(self.address)
            try:
                return await store.spent(key)
            finally:
                await store.close()

        return asyncio.run(read())


@contextmanager
def pair(address: str, limits: str, folder: Path, simulator: str, *grants: Grant) -> Iterator[Pair]:
    async def create() -> None:
        store, _ = await open_store(address)
        for grant in grants:
            await store.create(grant)
        await store.close()

    asyncio.run(create())
    (folder / "dragoman.toml").write_text(
        f'[server]\ndatabase = "{address}"\nlimits = "{limits}"\nlease_seconds = {LEASE}\n'
        + provider("p", simulator)
        + provider("slow", simulator, fault="drip=0.2")
        + provider("brief", simulator, fault="drip=0.02")
        + '[prices."claude-sonnet-5"]\ninput = 1000\noutput = 1000\n'
    )
    with ExitStack() as stack:
        started = [stack.enter_context(served("--quiet", cwd=folder)) for _ in range(2)]
        urls = [url for url, _ in started]
        balancer = Balancer(urls)
        stack.callback(balancer.close)
        yield Pair(urls, [process for _, process in started], address, balancer)


@pytest.fixture
def homes(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, str]:
    """The addresses of the stores of keys and of limits."""
    home: str = request.param
    if home == "sqlite":
        return str(tmp_path / "gateway.db"), ""
    server: Postgres = request.getfixturevalue("postgres_server")
    if home == "postgres":
        return server.fresh(), ""
    redis: Redis = request.getfixturevalue("redis_server")
    return server.fresh(), redis.fresh()


def key(name: str, **limits: Any) -> Grant:
    return Grant(name=name, digest=digest_of(f"k-{name}"), **limits)


def ask(url: str, name: str, model: str = MODEL, **more: Any) -> Got:
    return send(url, "/v1/messages", {**chat(model, max_tokens=50), **more}, {"x-api-key": f"k-{name}"})


def all_at_once(count: int, url: str, name: str) -> list[int]:
    statuses: list[int] = []
    threads = [threading.Thread(target=lambda: statuses.append(ask(url, name).status)) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return statuses


@promise("gateway:limits-exact", "gateway:costs-exact", "gateway:many-gateways")
@pytest.mark.parametrize("homes", ["sqlite", "postgres"], indirect=True)
def test_two_gateways_share_limits(homes: tuple[str, str], tmp_path: Path, dragoman_simulator: Simulator) -> None:
    grants = (key("rate", requests_per_minute=20), key("free"), key("poor", budget=1.0), key("narrow", concurrent=2))
    with pair(*homes, tmp_path, dragoman_simulator.url, *grants) as both:
        statuses = all_at_once(60, both.balancer.url, "rate")
        assert (statuses.count(200), statuses.count(429)) == (20, 40)
        assert len(set(both.balancer.served.values())) == 2, "both were asked"
        assert ask(both.balancer.url, "free").status == 200
        price = both.spent("free")
        assert price > 0
        passed = 0
        while ask(both.balancer.url, "poor").status == 200:
            passed += 1
        assert passed == int(1.0 / price) + 1, "admitted while spent < budget, whichever gateway recorded it"
        assert both.spent("poor") == pytest.approx(passed * price)
        assert ask(both.balancer.url, "poor").json["error"]["type"] == "billing_error"
        # Sequential requests are always admitted, although another gateway served the previous one.
        assert {ask(both.balancer.url, "narrow").status for _ in range(10)} == {200}


class Load:
    """Clients that send requests without pause, whole and streamed, and count complete answers."""

    def __init__(self, url: str, name: str, clients: int) -> None:
        self.ended: list[str] = []
        self.failed: list[tuple[float, int]] = []
        """The start of each failed request, and the client's port."""
        self._url = url
        self._name = name
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._ask, args=(number,)) for number in range(clients)]
        for thread in self._threads:
            thread.start()

    def _ask(self, number: int) -> None:
        parts = urlsplit(self._url)
        while not self._over.is_set():
            number += 1
            body = json.dumps({**chat(MODEL, max_tokens=50), "stream": number % 2 == 0})
            connection = HTTPConnection(parts.hostname or "", parts.port, timeout=TIMEOUT)
            connection.connect()
            began, (_, port) = time.monotonic(), connection.sock.getsockname()
            try:
                connection.request("POST", "/v1/messages", body, {"x-api-key": f"k-{self._name}"})
                answer = connection.getresponse()
                content = answer.read()
            except (OSError, HTTPException):
                self.failed.append((began, port))
                continue
            finally:
                connection.close()
            whole = b"message_stop" in content if number % 2 == 0 else b"end_turn" in content
            assert (answer.status, whole) == (200, True), content
            self.ended.append(answer.headers["x-request-id"])

    def stop(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()


def hold(url: str, name: str, stack: ExitStack) -> socket.socket:
    """Open a stream and read only its beginning."""
    body = json.dumps({**chat(SLOW, max_tokens=50), "stream": True}).encode()
    head = f"POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: k-{name}\r\ncontent-length: {len(body)}\r\n\r\n"
    sock = stack.enter_context(connected(url))
    sock.sendall(head.encode() + body)
    assert sock.recv(15) == b"HTTP/1.1 200 OK"
    return sock


@promise("gateway:many-gateways", "gateway:costs-exact", "gateway:leases")
@pytest.mark.parametrize("homes", ["postgres", "redis"], indirect=True)
def test_a_killed_gateway_loses_only_its_own_requests(
    homes: tuple[str, str], tmp_path: Path, dragoman_simulator: Simulator
) -> None:
    clients = 6
    grants = (key("ada", budget=1000.0), key("narrow", concurrent=2))
    with pair(*homes, tmp_path, dragoman_simulator.url, *grants) as both, ExitStack() as stack:
        load = Load(both.balancer.url, "ada", clients)
        try:
            open_answers = [hold(both.urls[0], "narrow", stack) for _ in range(2)]
            assert ask(both.urls[1], "narrow").status == 429
            until(lambda: len(load.ended) > clients)
            before = len(load.ended)
            os.kill(both.processes[0].pid, signal.SIGKILL)
            both.processes[0].wait(TIMEOUT)
            killed = time.monotonic()
            assert ask(both.urls[1], "narrow").status == 429, "its requests still count"
            end = killed + 2 * LEASE + 5
            while ask(both.urls[1], "narrow").status == 429:
                assert time.monotonic() < end, "a dead gateway keeps its slots forever"
                time.sleep(0.05)
            assert time.monotonic() - killed > LEASE / 2
        finally:
            load.stop()
        assert len(load.ended) > before > clients
        assert {both.balancer.served[port] for _, port in load.failed} <= {urlsplit(both.urls[0]).port}
        assert all(began < killed for began, _ in load.failed), "later requests were served by the other"
        for sock in open_answers:
            with suppress(ConnectionResetError):
                while sock.recv(65536):
                    pass
        rows = [row for row in both.rows("ada") if row[1] == 200]
        prices = {cost for _, _, cost in rows}
        assert len(prices) == 1, "every answer costs the same here"
        assert len(set(load.ended)) == len(load.ended)
        assert set(load.ended) <= {id for id, _, _ in rows}, "each complete answer was recorded"
        assert len(rows) - len(load.ended) <= len(load.failed), "and besides them only answers that broke off"
        assert both.spent("ada") == pytest.approx(len(rows) * prices.pop())
