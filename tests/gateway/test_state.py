"""The same contract for every store of keys, usage, responses and limits."""

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from dragoman.gateway.config import ConfigError, Server
from dragoman.gateway.state.base import (
    Entry,
    Exceeded,
    Grant,
    Kept,
    Meters,
    NameTaken,
    OverBudget,
    Reservation,
    Store,
    Ticket,
    Timing,
    Unavailable,
    day_of,
)
from dragoman.gateway.state.connect import open_ledger, open_store
from dragoman.gateway.state.ledger import Ledger
from dragoman.gateway.state.memory import MemoryMeters
from dragoman.gateway.state.postgres import PostgresDatabase
from tests.support.databases import Postgres, Redis
from tests.support.promises import promise
from tests.support.waiting import PATIENCE

TIMING = Timing(window=0.9, lease=0.9)
WHOLE = Timing()
STORES = ("memory", "sqlite", "postgres")
HOMES = ("memory", "sqlite", "postgres", "redis")
SHARED = ("sqlite", "postgres", "redis")


@pytest.fixture
def addresses(request: pytest.FixtureRequest, tmp_path: Path) -> Server:
    """The addresses of the stores that the test runs with."""
    home: str = request.param
    if home == "postgres":
        server: Postgres = request.getfixturevalue("postgres_server")
        return Server(database=server.fresh())
    if home == "redis":
        redis: Redis = request.getfixturevalue("redis_server")
        return Server(database=str(tmp_path / "gateway.db"), limits=redis.fresh())
    return Server(database=str(tmp_path / "gateway.db") if home == "sqlite" else "")


each_store = pytest.mark.parametrize("addresses", STORES, indirect=True)
each_home = pytest.mark.parametrize("addresses", HOMES, indirect=True)
each_shared = pytest.mark.parametrize("addresses", SHARED, indirect=True)


@asynccontextmanager
async def ledgers(addresses: Server, count: int = 1, timing: Timing = TIMING) -> AsyncIterator[list[Ledger]]:
    """Open the ledgers of this many gateways that share the state."""
    async with AsyncExitStack() as stack:
        opened = []
        for _ in range(count):
            ledger = await open_ledger(addresses, {}, timing)
            stack.push_async_callback(ledger.close)
            opened.append(ledger)
        yield opened


def meters_of(ledger: Ledger) -> Meters:
    return ledger._meters  # noqa: SLF001 - the contract is about them


def finish(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


async def tried(meters: Meters, grant: Grant) -> Ticket | Exceeded:
    try:
        return await meters.enter(grant)
    except Exceeded as exceeded:
        return exceeded


def entry(id: str, key: str = "ada", cost: float | None = 0.25, **more: Any) -> Entry:
    now = time.time()
    usual: dict[str, Any] = {
        "client": "openai-chat",
        "model": "m",
        "upstream": "p",
        "target": "m-1",
        "status": 200,
        "seconds": 0.1,
        "input": 3,
        "output": 4,
        "cached": None,
    }
    return Entry(id=id, time=now, day=day_of(now), key=key, key_id=key, cost=cost, **(usual | more))


# ── limits ──


@promise("gateway:limits", "gateway:limits-exact")
@each_home
def test_no_more_concurrent_requests_enter_than_the_limit(addresses: Server) -> None:
    async def scenario() -> None:
        async with ledgers(addresses, 1 if not addresses.database else 3, WHOLE) as opened:
            grant = Grant(name="ada", digest="", requests_per_minute=7)
            results = await asyncio.gather(*(tried(meters_of(opened[n % len(opened)]), grant) for n in range(40)))
            refused = [result for result in results if isinstance(result, Exceeded)]
            assert len(refused) == 40 - 7
            assert {one.limit for one in refused} == {"requests"}
            assert all(50 < one.retry_after <= 60 for one in refused)
            other = Grant(name="bob", digest="", requests_per_minute=7)
            assert isinstance(await tried(meters_of(opened[0]), other), Ticket), "keys do not share"

    finish(scenario())


@promise("gateway:limits-exact")
@each_home
def test_no_minute_has_more_requests_than_the_limit(addresses: Server) -> None:
    async def scenario() -> None:
        async with ledgers(addresses, 1 if not addresses.database else 2) as opened:
            grant = Grant(name="ada", digest="", requests_per_minute=5)
            times: list[float] = []
            admitted: list[float] = []

            async def hammer(meters: Meters) -> None:
                while len(admitted) < 15:
                    before = time.monotonic()
                    if isinstance(await tried(meters, grant), Ticket):
                        times.append(before)
                        admitted.append(time.monotonic())
                    await asyncio.sleep(0.007)

            async with asyncio.timeout(PATIENCE):
                await asyncio.gather(*(hammer(meters_of(one)) for one in opened))
            # Each request was admitted between call and return, however slow the machine is.
            spans = [later - earlier for earlier, later in zip(sorted(times), sorted(admitted)[5:], strict=False)]
            assert min(spans) > TIMING.window - 0.01

    finish(scenario())


@promise("gateway:limits", "gateway:limits-exact")
@each_home
def test_a_request_that_ends_frees_its_slot(addresses: Server) -> None:
    async def scenario() -> None:
        async with ledgers(addresses, 1 if not addresses.database else 2, WHOLE) as opened:
            one, other = meters_of(opened[0]), meters_of(opened[-1])
            grant = Grant(name="ada", digest="", concurrent=3)
            results = await asyncio.gather(*(tried(one if n % 2 else other, grant) for n in range(20)))
            tickets = [result for result in results if isinstance(result, Ticket)]
            assert len(tickets) == 3
            await one.leave(tickets[0], 0)
            assert isinstance(await tried(other, grant), Ticket)
            again = await tried(one, grant)
            assert isinstance(again, Exceeded)
            assert (again.limit, again.retry_after) == ("concurrent", 1.0)

    finish(scenario())


@promise("gateway:leases")
@each_shared
def test_a_slot_whose_lease_is_not_renewed_is_freed(addresses: Server) -> None:
    async def scenario() -> None:
        async with ledgers(addresses, 2, Timing(lease=2.0)) as (dead, alive):
            grant, kept = Grant(name="ada", digest="", concurrent=1), Grant(name="bob", digest="", concurrent=1)
            await meters_of(alive).enter(kept)  # without renewal it would expire before the other
            await meters_of(dead).enter(grant)
            assert isinstance(await tried(meters_of(alive), grant), Exceeded)
            async with asyncio.timeout(PATIENCE):
                while isinstance(await tried(meters_of(alive), grant), Exceeded):
                    await meters_of(alive).beat()
                    await asyncio.sleep(0.1)
            assert isinstance(await tried(meters_of(alive), kept), Exceeded), "its lease was renewed"

    finish(scenario())


@promise("gateway:limits")
@each_home
def test_tokens_of_finished_requests_count_for_a_minute(addresses: Server) -> None:
    async def scenario() -> None:
        grant = Grant(name="ada", digest="", tokens_per_minute=100)
        async with ledgers(addresses, timing=WHOLE) as (ledger,):
            meters = meters_of(ledger)
            for tokens in (60, 60):
                ticket = await meters.enter(grant)
                await meters.leave(ticket, tokens)
            refused = await tried(meters, grant)
            assert isinstance(refused, Exceeded)
            assert refused.limit == "tokens"
            assert 0 < refused.retry_after <= WHOLE.window + 1, "counted by the second"

        other = Grant(name="bob", digest="", tokens_per_minute=100)
        async with ledgers(addresses) as (ledger,):
            meters = meters_of(ledger)
            while isinstance(result := await tried(meters, other), Ticket):
                await meters.leave(result, 120)
            assert result.retry_after <= TIMING.window + 1
            await asyncio.sleep(result.retry_after + 0.05)
            assert isinstance(await tried(meters, other), Ticket)

    finish(scenario())


@each_home
def test_a_limit_may_be_zero(addresses: Server) -> None:
    async def scenario() -> None:
        async with ledgers(addresses) as (ledger,):
            limits: list[dict[str, Any]] = [{"requests_per_minute": 0}, {"concurrent": 0}, {"tokens_per_minute": 0}]
            for limit in limits:
                grant = Grant(name=str(limit), digest="", **limit)
                assert isinstance(await tried(meters_of(ledger), grant), Exceeded)

    finish(scenario())


# ── keys ──


@promise("gateway:keys")
@each_store
def test_keys_are_created_listed_rotated_and_revoked(addresses: Server) -> None:
    async def scenario() -> None:
        async with ledgers(addresses) as (ledger,):
            store: Store = ledger.store
            assert not await store.any_keys()
            grant = Grant(name="ada", digest="d1", models=("a/*", "b"), expires=9.5, concurrent=2, budget=1.5)
            await store.create(grant)
            await store.create(Grant(name="bob", digest="d2", requests_per_minute=3, tokens_per_minute=4))
            with pytest.raises(NameTaken):
                await store.create(Grant(name="ada", digest="d3"))
            assert await store.grant("d1") == grant
            assert await store.grant("d9") is None
            assert await store.rotate("ada", "d4")
            assert (await store.grant("d1"), (await store.grant("d4") or grant).name) == (None, "ada")
            assert await store.revoke("ada")
            assert not await store.revoke("ada")
            assert not await store.rotate("ada", "d5")
            assert await store.grant("d4") is None
            assert await store.any_keys()
            rows = await store.list_keys()
            assert [(row.name, row.state, row.models) for row in rows] == [
                ("ada", "revoked", ("a/*", "b")),
                ("bob", "good", ()),
            ]
            assert (rows[1].requests_per_minute, rows[1].tokens_per_minute, rows[1].spent) == (3, 4, 0.0)

    finish(scenario())


# ── usage ──


@promise("gateway:costs-exact", "gateway:usage")
@each_store
def test_each_request_is_written_once_and_its_key_pays_once(addresses: Server) -> None:
    async def scenario() -> None:
        async with ledgers(addresses) as (ledger,):
            store = ledger.store
            await store.create(Grant(name="ada", digest="d1", budget=10))
            await store.add([entry("1"), entry("2", cost=None), entry("3", key="", cost=5.0)])
            await store.add([entry("1"), entry("4", status=500, target="m-2")])
            await store.add([entry("1"), entry("1"), entry("4")])
            assert await store.spent("ada") == 0.5
            assert await store.spent("nobody") == 0.0
            rows = await store.usage()
            usage = [(row.key, row.model, row.requests, row.failed, row.input, row.output, row.cost) for row in rows]
            assert usage == [
                ("", "m-1", 1, 0, 3, 4, 5.0),
                ("ada", "m-1", 2, 0, 6, 8, 0.25),
                ("ada", "m-2", 1, 1, 3, 4, 0.25),
            ]
            (day,) = await store.usage(0.0, ["day"])
            assert (day.day, day.key, day.model, day.requests, day.cost) == (day_of(time.time()), "", "", 4, 5.5)
            (total,) = await store.usage(0.0, [])
            assert total.requests == 4
            assert await store.usage(time.time() + 60, ["key"]) == []

    finish(scenario())


@promise("gateway:usage")
@each_store
def test_an_entry_that_cannot_be_written_does_not_block_the_others(addresses: Server) -> None:
    async def scenario() -> None:
        async with ledgers(addresses) as (ledger,):
            await ledger.store.create(Grant(name="ada", digest="d1"))
            odd = [entry("2", model="a\0b"), entry("3", target="\ud800"), entry("4", input=1 << 70)]
            for one in (entry("1"), *odd, entry("5")):
                ledger.add(one)
            await ledger.flush()
            await ledger.flush()
            written = 5 - ledger.dropped
            assert 2 <= written <= 3, "SQLite keeps a zero in a text, PostgreSQL does not"
            assert await ledger.spent("ada") == written * 0.25
            for id in ("a\0b", "\ud800"):
                assert await ledger.store.find_response(id, "ada") is None
                assert not await ledger.store.forget(id, "ada")

    finish(scenario())


@promise("gateway:costs-exact")
@each_shared
def test_costs_written_concurrently_add_up(addresses: Server) -> None:
    async def scenario() -> None:
        async with ledgers(addresses, 3) as opened:
            for name in ("ada", "bob", "eve"):
                await opened[0].store.create(Grant(name=name, digest=name))
            names = ("eve", "ada", "bob")
            entries = [entry(f"{number}", key=names[number % 3]) for number in range(240)]
            await asyncio.gather(*(opened[number % 3].settle(one) for number, one in enumerate(entries)))
            for name in names:
                assert await opened[0].spent(name) == 80 * 0.25

    finish(scenario())


# ── budgets ──


def reservation(id: str, amount: float, *, budget: float = 10.0, seconds: float = 60.0) -> Reservation:
    return Reservation(id=id, key_id="ada", budget=budget, amount=amount, seconds=seconds)


@promise("gateway:budget-reserved")
@each_store
def test_reservations(addresses: Server) -> None:
    async def scenario() -> None:
        async with ledgers(addresses) as (ledger,):
            store = ledger.store
            await store.create(Grant(name="ada", digest="d1", budget=10.0))
            await store.reserve(reservation("first", 50.0))
            with pytest.raises(OverBudget) as caught:
                await store.reserve(reservation("second", 0.1))
            assert not caught.value.is_spent
            await store.add([entry("first", cost=2.0)])
            for number in range(4):
                await store.reserve(reservation(f"r{number}", 2.0))
            with pytest.raises(OverBudget):
                await store.reserve(reservation("r4", 2.0))
            await store.add([entry("r0", cost=None, status=500), entry("r1", cost=1.0)])
            await store.reserve(reservation("r5", 3.0))
            with pytest.raises(OverBudget):
                await store.reserve(reservation("r6", 0.1))
            await store.add([entry(f"r{number}", cost=3.0) for number in (2, 3, 5)])
            with pytest.raises(OverBudget) as caught:
                await store.reserve(reservation("last", 0.0))
            assert caught.value.is_spent
            assert await store.spent("ada") == 12.0

    finish(scenario())


@promise("gateway:budget-reserved", "gateway:leases")
@each_store
def test_reservations_of_a_dead_gateway_expire(addresses: Server) -> None:
    async def scenario() -> None:
        async with ledgers(addresses) as (ledger,):
            store = ledger.store
            await store.create(Grant(name="ada", digest="d1", budget=10.0))
            await store.reserve(reservation("alive", 1.0, seconds=0.6))
            await store.reserve(reservation("dead", 9.0, seconds=0.6))
            await store.renew(["alive"], 60.0)
            await asyncio.sleep(0.7)
            await store.reserve(reservation("next", 9.0))
            with pytest.raises(OverBudget):
                await store.reserve(reservation("one more", 0.1))

    finish(scenario())


# ── responses ──


@promise("gateway:responses-state")
@each_store
def test_responses_and_earlier_ones_are_found_by_their_owner(addresses: Server) -> None:
    async def scenario() -> None:
        async with ledgers(addresses) as (ledger,):
            store = ledger.store
            first = Kept("r1", "ada", None, b"[1]", b"{}")
            second = Kept("r2", "ada", "r1", b"[2]", b'{"a":"\x00\xff"}')
            await store.keep(Kept("r1", "ada", None, b"[0]", b"promised"))
            await store.keep(first)
            await store.keep(second)
            assert await store.find_response("r2", "ada") == second
            assert await store.find_response("r2", "bob") is None
            assert await store.chain("r2", "ada") == [second, first]
            assert await store.chain("r2", "bob") == []
            await store.keep(Kept("loop", "ada", "loop", b"[]", b"{}"))
            assert len(await store.chain("loop", "ada")) == 1
            assert not await store.forget("r1", "bob")
            assert await store.forget("r1", "ada")
            assert await store.chain("r2", "ada") == [second]

    finish(scenario())


# ── unreachable databases ──


@promise("gateway:conversations")
@each_store
def test_items_of_a_conversation_keep_their_order_and_their_owner(addresses: Server) -> None:
    async def run() -> None:
        async with ledgers(addresses, 1) as (ledger,):
            store = ledger.store
            await store.keep(Kept("conv", "ada", None, b"{}", b""))
            items = [(f"item_{number}", b'{"n": %d}' % number) for number in range(12)]
            await store.add_items("conv", "ada", items[:5])
            await store.add_items("conv", "ada", items[3:])
            assert await store.items("conv", "ada") == items
            assert await store.items("conv", "bob") == []
            assert not await store.forget_item("conv", "bob", "item_0")
            assert await store.forget_item("conv", "ada", "item_0")
            assert await store.items("conv", "ada") == items[1:]
            assert await store.items("with a \0 in it", "ada") == []
            assert not await store.forget_item("conv", "ada", "\0")
            assert await store.forget("conv", "ada")
            assert await store.items("conv", "ada") == []

    asyncio.run(run())


@promise("gateway:signature-memory")
@each_store
def test_signed_messages_are_found_by_their_owner_until_they_expire(addresses: Server) -> None:
    async def run() -> None:
        async with ledgers(addresses, 1) as (ledger,):
            store = ledger.store
            await store.remember("ada", "call:1", b"[1]")
            await store.remember("ada", "call:2", b"[2]")
            await store.remember("ada", "call:1", b"[3]")
            assert await store.recall("ada", ["call:1", "call:2", "call:3"], 60.0) == {
                "call:1": b"[3]",
                "call:2": b"[2]",
            }
            assert await store.recall("bob", ["call:1"], 60.0) == {}
            assert await store.recall("ada", ["call:1"], 0.0) == {}
            assert await store.recall("ada", ["\0"], 60.0) == {}

    asyncio.run(run())


@promise("gateway:database-away")
def test_usage_waits_for_an_unreachable_database(postgres_server: Postgres) -> None:
    address = Server(database=postgres_server.fresh())

    async def scenario() -> None:
        async with ledgers(address) as (ledger,):
            await ledger.store.create(Grant(name="ada", digest="d1"))
            warnings: list[str] = []
            ledger.problem = warnings.append
            await ledger.settle(entry("1"))
            await asyncio.to_thread(postgres_server.stop)
            started = time.monotonic()
            await ledger.settle(entry("2"))
            ledger.add(entry("3"))
            assert time.monotonic() - started < 3.5
            assert warnings
            assert warnings[0].startswith("PostgreSQL: ")
            for asking in (ledger.grant("d1"), ledger.spent("ada"), ledger.flush()):
                with pytest.raises(Unavailable):
                    await asking
            await asyncio.to_thread(postgres_server.start)
            assert await ledger.spent("ada") == 0.75
            assert (await ledger.store.usage())[0].requests == 3

    try:
        finish(scenario())
    finally:
        postgres_server.stop()
        postgres_server.start()


@promise("gateway:database-away")
def test_waiting_usage_is_bounded(tmp_path: Path) -> None:
    file = tmp_path / "gateway.db"

    async def scenario() -> None:
        store, _ = await open_store(str(file))
        ledger = Ledger(store, MemoryMeters(), most_waiting=3)
        await store.create(Grant(name="ada", digest="d1"))
        other = sqlite3.connect(file, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        settling = [asyncio.ensure_future(ledger.settle(entry(str(number)))) for number in range(3)]
        await asyncio.sleep(0)
        for number in range(3, 6):
            ledger.add(entry(str(number)))
        other.execute("ROLLBACK")
        other.close()
        await asyncio.gather(*settling)
        await ledger.flush()
        assert 3 <= (await store.usage())[0].requests == 6 - ledger.dropped < 6
        assert await ledger.spent("ada") == (6 - ledger.dropped) * 0.25
        await ledger.close()

    finish(scenario())


@promise("gateway:database-away")
def test_requests_are_refused_while_limits_cannot_be_checked(redis_server: Redis, tmp_path: Path) -> None:
    address = Server(database=str(tmp_path / "gateway.db"), limits=redis_server.fresh())

    async def scenario() -> None:
        async with ledgers(address) as (ledger,):
            grant = Grant(name="ada", digest="", concurrent=5)
            ticket = await ledger.enter(grant)
            redis_server.stop()
            with pytest.raises(Unavailable):
                await ledger.enter(grant)
            await ledger.leave(ticket, 0)
            redis_server.start()
            assert (await ledger.enter(grant)).key == "ada"

    try:
        finish(scenario())
    finally:
        redis_server.stop()
        redis_server.start()


def test_a_locked_database_file_does_not_block_the_event_loop(tmp_path: Path) -> None:
    """While another process holds the write lock, reads work, and writes wait without blocking the event loop."""
    file = tmp_path / "gateway.db"

    async def scenario() -> None:
        async with ledgers(Server(database=str(file))) as (ledger,):
            await ledger.store.create(Grant(name="ada", digest="d1"))
            other = sqlite3.connect(file, isolation_level=None)
            other.execute("BEGIN IMMEDIATE")
            writing = asyncio.ensure_future(ledger.settle(entry("1")))
            pauses = []
            for _ in range(20):
                started = time.monotonic()
                await asyncio.sleep(0.01)
                pauses.append(time.monotonic() - started)
            assert median(pauses) < 0.2
            assert await ledger.grant("d1")
            assert not writing.done()
            other.execute("ROLLBACK")
            other.close()
            await writing
            assert await ledger.spent("ada") == 0.25

    finish(scenario())


@pytest.mark.parametrize(
    ("server", "words"),
    [
        (Server(database="mysql://x/y"), "a file or postgresql"),
        (Server(database="/nowhere/at/all/gateway.db"), "unable to open"),
        (Server(limits="disk"), '"memory" or redis'),
        (Server(database="env:NO_SUCH_VARIABLE"), "NO_SUCH_VARIABLE"),
    ],
    ids=["scheme", "folder", "limits", "variable"],
)
def test_an_invalid_database_address_is_a_one_line_error(server: Server, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        asyncio.run(open_ledger(server, {}))
    assert words in str(caught.value)


@promise("gateway:no-secrets")
@pytest.mark.parametrize(
    ("package", "server"),
    [
        ("psycopg", Server(database="postgresql://gateway:secret-word@127.0.0.1:9/x")),
        ("redis", Server(limits="redis://:secret-word@127.0.0.1:9")),
        ("redis", Server(limits="redis://:secret-word@127.0.0.1:port")),
    ],
)
def test_an_unreachable_server_is_reported_without_its_password(package: str, server: Server) -> None:
    pytest.importorskip(package, reason=f"{package} is not installed here", exc_type=ImportError)
    with pytest.raises(ConfigError) as caught:
        asyncio.run(open_ledger(server, {}))
    assert "secret-word" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_existing_tables_suffice_without_the_privilege_to_create_them(postgres_server: Postgres) -> None:
    address = postgres_server.fresh()
    guest = address.replace("//gateway@", "//guest@")

    async def scenario() -> None:
        store, database = await open_store(address)
        for statement in (
            "CREATE ROLE guest LOGIN",
            "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO guest",
        ):
            await database.rows(statement)
        await store.create(Grant(name="ada", digest="d1"))
        async with ledgers(Server(database=guest)) as (ledger,):
            assert ledger.locked
            await ledger.enter(Grant(name="ada", digest="d1", concurrent=1, requests_per_minute=5))
            await ledger.settle(entry("1"))
        assert await store.spent("ada") == 0.25
        await store.close()
        empty = postgres_server.fresh().replace("//gateway@", "//guest@")
        with pytest.raises(ConfigError, match="permission denied"):
            await open_store(empty)

    finish(scenario())


def test_a_database_file_is_reused_by_the_next_gateway(tmp_path: Path) -> None:
    async def scenario() -> None:
        for number in range(2):
            store, _ = await open_store(str(tmp_path / "gateway.db"))
            assert await store.any_keys() == bool(number)
            if not number:
                await store.create(Grant(name="ada", digest="d1"))
            await store.close()

    finish(scenario())


@promise("gateway:leases")
def test_work_that_ends_after_closing_leaves_no_connection_open(postgres_server: Postgres) -> None:
    async def session() -> None:
        database = PostgresDatabase(postgres_server.fresh())
        connections = []
        has_begun = asyncio.Event()

        async def slow(connection: Any) -> None:
            connections.append(connection)
            has_begun.set()
            await asyncio.sleep(0.2)

        working = asyncio.create_task(database._run(slow))  # noqa: SLF001 - the pool is private
        await has_begun.wait()
        await database.close()
        await working
        assert connections[0].closed

    asyncio.run(session())
