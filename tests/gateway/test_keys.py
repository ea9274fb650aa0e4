"""Keys as clients see them: allowed models, limits, budgets, and the error if the store is unreachable."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

import dragoman
from dragoman.gateway.access import digest_of
from dragoman.gateway.state.base import Grant, Store, UsageRow
from dragoman.gateway.state.connect import open_store
from dragoman.sim.server import Simulator
from tests.gateway.running import RunningGateway, configured, connected, send, simulated
from tests.gateway.test_failures import chat
from tests.gateway.test_pairs import path_of
from tests.gateway.test_safety import KEYED
from tests.sim.test_sim_pairs import FORMATS, MODELS, first
from tests.support.databases import Postgres, Redis
from tests.support.promises import promise
from tests.support.waiting import until

PRICES = '[prices."claude-sonnet-5"]\ninput = 3\noutput = 15\n'
MODEL = "anthropic/claude-sonnet-5"
Result = TypeVar("Result")


def in_store(address: str, work: Callable[[Store], Awaitable[Result]]) -> Result:
    async def run() -> Result:
        store, _ = await open_store(address)
        try:
            return await work(store)
        finally:
            await store.close()

    return asyncio.run(run())


def create(address: str, *grants: Grant) -> None:
    async def work(store: Store) -> None:
        for grant in grants:
            await store.create(grant)

    in_store(address, work)


def key(name: str, **limits: Any) -> Grant:
    return Grant(name=name, digest=digest_of(f"k-{name}"), **limits)


@pytest.fixture(params=["sqlite", "postgres", "redis"])
def homes(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, str]:
    """The addresses of the stores of keys and of limits."""
    home: str = request.param
    if home == "postgres":
        server: Postgres = request.getfixturevalue("postgres_server")
        return server.fresh(), ""
    redis: Redis | None = request.getfixturevalue("redis_server") if home == "redis" else None
    return str(tmp_path / "gateway.db"), "" if redis is None else redis.fresh()


@promise("gateway:keys", "gateway:limits")
def test_models_limits_and_budgets_of_keys(homes: tuple[str, str], dragoman_simulator: Simulator) -> None:
    address, limits = homes
    create(
        address,
        key("ada", models=("anthropic/*",)),
        key("old", expires=time.time() - 1),
        key("slow", requests_per_minute=2),
        key("wordy", tokens_per_minute=1),
        key("poor", budget=0.000001),
    )
    text = f'[server]\ndatabase = "{address}"\nlimits = "{limits}"\n' + PRICES
    with RunningGateway(simulated(dragoman_simulator.url, configured(text).config)) as gateway:

        def status(name: str, model: str = MODEL) -> int:
            headers = {"authorization": f"Bearer k-{name}"}
            return send(gateway.url, "/v1/chat/completions", chat(model), headers).status

        assert (status("ada"), status("ada", "gemini/gemini-3.6-flash")) == (200, 404)
        assert (status("old"), status("nobody")) == (401, 401)
        assert [status("slow") for _ in range(3)] == [200, 200, 429]
        assert [status("wordy") for _ in range(2)] == [200, 429]
        assert [status("poor") for _ in range(2)] == [200, 402]
        assert in_store(address, lambda store: store.rotate("slow", digest_of("k-new")))
        assert in_store(address, lambda store: store.revoke("ada"))
        changed = sent = time.monotonic()
        while (status("ada"), status("slow"), status("new")) != (401, 401, 429):
            assert sent - changed < 2.1, "a request that was sent two seconds later is checked against the new keys"
            time.sleep(0.05)
            sent = time.monotonic()
    rows: dict[str, UsageRow] = {row.key: row for row in in_store(address, lambda store: store.usage()) if row.upstream}
    assert (rows["slow"].requests, rows["poor"].requests) == (2, 1)
    assert rows["poor"].cost == in_store(address, lambda store: store.spent("poor")) > 0
    if not address.startswith("postgresql"):
        assert b"k-ada" not in Path(address).read_bytes()


@promise("gateway:keys")
def test_a_gateway_requires_keys_from_the_first_one_on(dragoman_simulator: Simulator, tmp_path: Path) -> None:
    address = str(tmp_path / "gateway.db")
    text = f'[server]\ndatabase = "{address}"\n'
    with RunningGateway(simulated(dragoman_simulator.url, configured(text).config)) as gateway:
        assert send(gateway.url, "/v1/chat/completions", chat(MODEL)).status == 200
        create(address, key("ada"))
        until(lambda: send(gateway.url, "/v1/chat/completions", chat(MODEL)).status == 401)
        assert send(gateway.url, "/v1/chat/completions", chat(MODEL), {"x-api-key": "k-ada"}).status == 200


@promise("gateway:database-away", "gateway:own-words")
def test_an_unreachable_database_of_keys(postgres_server: Postgres, dragoman_simulator: Simulator) -> None:
    address = postgres_server.fresh()
    create(address, key("sesame-key"), key("ada", requests_per_minute=100))
    configured_key = digest_of("configured")
    text = f'[server]\ndatabase = "{address}"\nkeys = ["sha256:{configured_key}"]\n'
    with RunningGateway(simulated(dragoman_simulator.url, configured(text).config)) as gateway:

        def status(shown: str) -> int:
            return send(gateway.url, "/v1/chat/completions", chat(MODEL), {"x-api-key": shown}).status

        try:
            assert (status("k-ada"), status("configured")) == (200, 200)
            postgres_server.stop()
            assert status("k-ada") == 503, "limits cannot be asked about"
            assert status("configured") == 200, "keys of the configuration need no database"
            for format in FORMATS:
                path, body = path_of(format, MODELS[format], streamed=False), first(format)
                shown = {name: value.replace("sesame-key", "k-sesame-key") for name, value in KEYED[format].items()}
                got = send(gateway.url, path, body, shown)
                failure = dragoman.decode_error(got.body, format, status=got.status, headers=got.headers)
                assert got.status == (529 if format == "anthropic-messages" else 503), got.body
                assert failure.kind in {"overloaded", "server"}, "some formats have one word for both"
                assert "database" in failure.message
        finally:
            postgres_server.start()
        assert status("k-ada") == 200
        gateway.requests(5 + len(FORMATS))
    rows = in_store(address, lambda store: store.usage())
    assert sum(row.requests for row in rows if row.upstream) == 4, "what went on without it was written afterwards"
    assert any(line["event"] == "database_away" for line in gateway.log.lines)


@promise("gateway:limits")
def test_the_slot_of_a_request_is_freed_however_it_ends(dragoman_sim: Simulator, tmp_path: Path) -> None:
    """With one concurrent request per key: after success, failure, a stream and a background response."""
    address = str(tmp_path / "gateway.db")
    create(address, key("one", concurrent=1))
    text = f'[server]\ndatabase = "{address}"\n[routes.mine]\nto = "{MODEL}"\nattempts = 1\n'
    with RunningGateway(simulated(dragoman_sim.url, configured(text).config)) as gateway:

        def got(path: str, body: Any) -> Any:
            return send(gateway.url, path, body, {"x-api-key": "k-one"})

        dragoman_sim.play({"error": "server"})
        assert got("/v1/chat/completions", chat("mine")).status == 500
        until(lambda: got("/v1/chat/completions", chat("mine")).status == 200)
        assert got("/v1/chat/completions", chat("mine", stream=True)).status == 200
        promised = got("/v1/responses", {"model": "mine", "input": "Hello", "background": True})
        assert (promised.status, promised.json["status"]) == (200, "in_progress")
        until(lambda: got("/v1/chat/completions", chat("mine")).status == 200)


@promise("gateway:costs-exact", "gateway:limits")
def test_a_client_that_disconnects_after_the_last_event_is_charged(
    homes: tuple[str, str], dragoman_simulator: Simulator
) -> None:
    """SDKs close the connection at the last event, perhaps while the cost is being written."""
    address, limits = homes
    create(address, key("one", concurrent=1, budget=100.0), key("free"))
    prices = '[prices."claude-sonnet-5"]\ninput = 1000\noutput = 1000\n'
    text = f'[server]\ndatabase = "{address}"\nlimits = "{limits}"\n{prices}'
    request_body = {"model": "claude-sonnet-5", "max_tokens": 20, "stream": True, "messages": chat("")["messages"]}
    body = json.dumps(request_body)
    head = f"POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: k-one\r\ncontent-length: {len(body)}\r\n\r\n"
    ended = refused = 0
    with RunningGateway(simulated(dragoman_simulator.url, configured(text).config)) as gateway:
        assert send(gateway.url, "/v1/messages", request_body, {"x-api-key": "k-free"}).status == 200
        price = in_store(address, lambda store: store.spent("free"))
        while ended < 12:
            with connected(gateway.url) as sock:
                sock.sendall((head + body).encode())
                received = b""
                while b"message_stop" not in received and b" 429 " not in received:
                    received += sock.recv(65536)
            ended += b"message_stop" in received
            refused += b" 429 " in received
    rows = {row.key: row for row in in_store(address, lambda store: store.usage(0.0, ["key"]))}
    assert rows["one"].requests == ended + refused
    assert in_store(address, lambda store: store.spent("one")) == pytest.approx(ended * price)
