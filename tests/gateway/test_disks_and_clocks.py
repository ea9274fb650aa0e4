"""Full disks, read-only disks and clocks that jump: requests are answered, and what was not recorded is reported."""

import asyncio
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from dragoman.gateway.config import Server
from dragoman.gateway.signature_memory import SignatureMemory
from dragoman.gateway.state.base import Exceeded, Grant, Ticket
from dragoman.gateway.state.connect import open_ledger, open_store
from dragoman.gateway.state.objects import ObjectStore, Stored
from dragoman.ir import Completion, Finish, Message, Request, Signature, ToolCall
from dragoman.sim.server import Simulator
from tests.cli.command import COMMAND, environment
from tests.gateway.running import Got, RunningGateway, configured, send, simulated
from tests.gateway.test_command import served
from tests.gateway.test_failures import chat, provider
from tests.gateway.test_keys import create, in_store, key
from tests.gateway.test_state import meters_of
from tests.support.databases import Postgres, Redis, free_port
from tests.support.promises import promise
from tests.support.waiting import PATIENCE, until

MODEL = "p/claude-sonnet-5"
PRICES = '[prices."claude-sonnet-5"]\ninput = 1000\noutput = 1000\n'
DAY = 86_400.0
linux = pytest.mark.skipif(sys.platform != "linux", reason="limits of another process can be set on Linux only")


def ask(url: str, name: str, **more: Any) -> Got:
    body = {**chat(MODEL, max_tokens=50), **more}
    return send(url, "/v1/messages", body, {"x-api-key": f"k-{name}"})


def write_config(folder: Path, address: str, simulator: str) -> None:
    (folder / "dragoman.toml").write_text(f'[server]\ndatabase = "{address}"\n' + provider("p", simulator) + PRICES)


def unrecorded(url: str) -> dict[str, int]:
    found: dict[str, int] = send(url, "/health", None, method="GET").json.get("unrecorded", {})
    return found


# ── full ──


@contextmanager
def full_disk(process: int) -> Iterator[None]:
    """Limit the size of the process's files, so that appending fails as on a full disk."""
    before = resource.prlimit(process, resource.RLIMIT_FSIZE)
    resource.prlimit(process, resource.RLIMIT_FSIZE, (1, before[1]))
    try:
        yield
    finally:
        resource.prlimit(process, resource.RLIMIT_FSIZE, before)


@promise("gateway:disk-failures", "gateway:costs-exact")
@linux
def test_requests_are_served_while_the_disk_is_full(dragoman_simulator: Simulator, tmp_path: Path) -> None:
    address = str(tmp_path / "gateway.db")
    limits: dict[str, dict[str, Any]] = {
        "plain": {},
        "rich": {"budget": 1000.0},
        "rate": {"requests_per_minute": 3},
        "one": {"concurrent": 1},
    }
    create(address, *(key(name, **limit) for name, limit in limits.items()), key("poor", budget=0.25))
    write_config(tmp_path, address, dragoman_simulator.url)
    log = tmp_path / "log"
    with log.open("wb") as errors, served_with_log(tmp_path, errors) as (url, process):
        assert {ask(url, name).status for name in limits} == {200}
        price = in_store(address, lambda store: store.spent("rich"))
        with full_disk(process.pid):
            assert [ask(url, "plain").status for _ in range(3)] == [200, 200, 200]
            assert [ask(url, "rich", stream=True).status for _ in range(3)] == [200, 200, 200]
            assert [ask(url, "one").status for _ in range(3)] == [200, 200, 200]
            assert [ask(url, "rate").status for _ in range(4)] == [200, 200, 200, 429], "limits hold, in memory"
            afforded = [ask(url, "poor").status for _ in range(int(0.25 / price) + 3)]
            assert afforded[0] == 200
            assert afforded[-1] == 402, "budgets hold, too"
            waiting = unrecorded(url)
            assert waiting["usage_waiting"] >= 12
            assert waiting["log_lines_lost"] >= 12
            metrics = send(url, "/metrics", None, {"x-api-key": "k-plain"}, "GET").body.decode()
            assert f"dragoman_usage_waiting {waiting['usage_waiting']}" in metrics
        until(lambda: not unrecorded(url).get("usage_waiting"), "written when there is space again")
        assert ask(url, "plain").status == 200
    assert in_store(address, lambda store: store.spent("rich")) == pytest.approx(4 * price)
    rows = {row.key: row for row in in_store(address, lambda store: store.usage(0.0, ["key"]))}
    assert rows["plain"].requests - rows["plain"].failed == 5
    assert in_store(address, lambda store: store.spent("poor")) == pytest.approx(afforded.count(200) * price)
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines() if line.startswith("{")]
    assert any(line["event"] == "log_lines_lost" and line["lost"] >= 12 for line in lines)


@contextmanager
def served_with_log(folder: Path, errors: Any) -> Iterator[tuple[str, "subprocess.Popen[bytes]"]]:
    """Start a gateway that logs to a file, and wait until its health endpoint answers."""
    port = free_port()
    process = subprocess.Popen(  # noqa: S603
        [*COMMAND, "serve", "--port", str(port)], stderr=errors, cwd=folder, env=environment()
    )
    url = f"http://127.0.0.1:{port}"

    def is_up() -> bool:
        try:
            return send(url, "/health", None, method="GET").status == 200
        except OSError:
            return False

    try:
        until(is_up, "the gateway does not start")
        yield url, process
    finally:
        process.terminate()
        process.wait(PATIENCE)


# ── read-only ──


@contextmanager
def read_only_disk(folder: Path) -> Iterator[Path]:
    """Mount a small disk for the test to write to; on leaving the block it is unmounted."""
    disk = folder / "disk"
    disk.mkdir()
    mount = subprocess.run(  # noqa: S603
        ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", disk],  # noqa: S607
        capture_output=True,
        check=False,
    )
    if mount.returncode:
        pytest.skip("disks can be mounted by root only")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "-l", disk], check=True)  # noqa: S603, S607


@promise("gateway:disk-failures")
@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="disks can be mounted by root only")
def test_a_database_on_a_read_only_disk(dragoman_simulator: Simulator, tmp_path: Path) -> None:
    with read_only_disk(tmp_path) as disk:
        address = str(disk / "gateway.db")
        create(address, key("plain"), key("rate", requests_per_minute=2), key("rich", budget=1000.0))
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)  # noqa: S603, S607
        write_config(tmp_path, address, dragoman_simulator.url)
        with served(cwd=tmp_path) as (url, process):
            assert [ask(url, "plain").status for _ in range(2)] == [200, 200]
            assert ask(url, "rich").status == 200
            assert [ask(url, "rate").status for _ in range(3)] == [200, 200, 429]
            assert ask(url, "nobody").status == 401
            assert unrecorded(url)["usage_waiting"] >= 5
            process.terminate()
            assert process.stderr is not None
            log = process.stderr.read()
        assert "attempt to write a readonly database" in log or "unable to open database file" in log
        assert "is counted in memory" in log
        assert "was never written" in log, "usage lost at shutdown is logged"
        created = subprocess.run(  # noqa: S603
            [sys.executable, "-m", "dragoman", "keys", "create", "new", "--database", address],
            capture_output=True,
            text=True,
            check=False,
        )
        assert created.returncode != 0
        assert "SQLite: " in created.stderr
        assert "Traceback" not in created.stderr


# ── clocks ──


@promise("gateway:clock-jumps")
@pytest.mark.parametrize("jump", [DAY, -DAY], ids=["forward", "back"])
def test_the_clock_of_this_machine_jumps(
    jump: float, dragoman_simulator: Simulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = str(tmp_path / "gateway.db")
    create(
        address,
        key("rate", requests_per_minute=3),
        key("one", concurrent=1),
        key("words", tokens_per_minute=10_000),
        key("rich", budget=1000.0),
    )
    text = f'[server]\ndatabase = "{address}"\n{PRICES}'
    real, offset = time.time, 0.0
    monkeypatch.setattr(time, "time", lambda: real() + offset)
    config = configured(text + provider("p", dragoman_simulator.url)).config
    with RunningGateway(simulated(dragoman_simulator.url, config)) as gateway:
        assert [ask(gateway.url, "rate").status for _ in range(2)] == [200, 200]
        assert {ask(gateway.url, name).status for name in ("one", "words", "rich")} == {200}
        offset = jump
        assert [ask(gateway.url, "rate").status for _ in range(2)] == [200, 429], "a minute stays a minute"
        for name in ("one", "words", "rich"):
            assert [ask(gateway.url, name).status for _ in range(3)] == [200, 200, 200], name
        gateway.requests(16)
    rows = {row.key: row for row in in_store(address, lambda store: store.usage(-DAY, ["key"]))}
    assert rows["rich"].requests == 4
    assert in_store(address, lambda store: store.spent("rich")) == pytest.approx(rows["rich"].cost)


SET_BACK_BY_A_DAY = (
    "UPDATE gateway_arrivals SET time = time + 86400",
    "UPDATE gateway_leases SET until = until + 86400",
    "UPDATE gateway_tokens SET second = second + 86400",
    "UPDATE gateway_reservations SET until = until + 86400",
)
LIMITS: tuple[dict[str, Any], ...] = ({"requests_per_minute": 1}, {"concurrent": 1}, {"tokens_per_minute": 1})


async def used_up(meters: Any) -> None:
    for limit in LIMITS:
        grant = Grant(name=str(limit), digest="", **limit)
        ticket = await meters.enter(grant)
        if "tokens_per_minute" in limit:
            await meters.leave(ticket, 100)
        with pytest.raises(Exceeded):
            await meters.enter(grant)


async def entered_again(meters: Any) -> None:
    for limit in LIMITS:
        assert isinstance(await meters.enter(Grant(name=str(limit), digest="", **limit)), Ticket), limit


@promise("gateway:clock-jumps")
@pytest.mark.parametrize("home", ["sqlite", "postgres"])
def test_counters_with_a_time_in_the_future_do_not_block_a_key(
    home: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """As if the clock of the database's machine had been set back by a day, or the machine restarted."""
    postgres: Postgres | None = request.getfixturevalue("postgres_server") if home == "postgres" else None
    address = str(tmp_path / "gateway.db") if postgres is None else postgres.fresh()

    async def scenario() -> None:
        ledger = await open_ledger(Server(database=address), {})
        try:
            rich = Grant(name="rich", digest="d1", budget=1.0)
            await ledger.store.create(rich)
            await ledger.reserve(rich, "r1", 1.0)
            await used_up(meters_of(ledger))
            for statement in SET_BACK_BY_A_DAY:
                await ledger.store._database.rows(statement)  # type: ignore[attr-defined]  # noqa: SLF001
            await entered_again(meters_of(ledger))
            await ledger.reserve(rich, "r2", 1.0)
        finally:
            await ledger.close()

    asyncio.run(scenario())


@promise("gateway:clock-jumps")
@pytest.mark.parametrize("home", ["sqlite", "postgres"])
def test_a_batch_of_a_dead_worker_is_claimed_after_the_clock_was_set_back(
    home: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    postgres: Postgres | None = request.getfixturevalue("postgres_server") if home == "postgres" else None
    address = str(tmp_path / "gateway.db") if postgres is None else postgres.fresh()

    async def scenario() -> None:
        store, database = await open_store(address)
        try:
            objects, now = ObjectStore(database), time.time()
            batch = Stored(id="b", owner="o", kind="gemini batch", created=now, expires=now + DAY, state="open")
            await objects.put(batch, b"")
            assert [one.id for one in await objects.claim("first", 15.0, 5)] == ["b"]
            assert await objects.claim("second", 15.0, 5) == [], "its worker lives"
            await database.rows("UPDATE gateway_objects SET claimed = claimed + 60")  # clocks of two machines differ
            assert await objects.claim("second", 15.0, 5) == []
            await database.rows("UPDATE gateway_objects SET claimed = claimed + 86400")
            assert [one.id for one in await objects.claim("second", 15.0, 5)] == ["b"]
            assert await objects.renew(["b"], "first", 15.0) == {}, "one worker at a time"
        finally:
            await store.close()

    asyncio.run(scenario())


@promise("gateway:clock-jumps")
@pytest.mark.parametrize("jump", [-DAY, DAY / 2, 8 * DAY], ids=["back", "forward", "far forward"])
def test_signatures_are_remembered_when_the_clock_jumps(
    jump: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are stored for a week: if the clock is set back, for longer; if it jumps ahead by more, they are gone."""
    real, offset = time.time, 0.0
    monkeypatch.setattr(time, "time", lambda: real() + offset)
    call = ToolCall("call_1", "f", {}, signature=Signature("google", "sig"))
    unsigned = Request("m", (Message("assistant", (structs.replace(call, signature=None),)),))

    async def scenario() -> bool:
        nonlocal offset
        store, _ = await open_store(str(tmp_path / "gateway.db"))
        try:
            memory = SignatureMemory(store, 7 * DAY)
            await memory.remember(Completion((Message("assistant", (call,)),), Finish("tool_calls")), "me")
            assert await memory.recall(unsigned, "me")
            offset = jump
            found = bool(await memory.recall(unsigned, "me"))
            await memory.remember(Completion((Message("assistant", (call,)),), Finish("tool_calls")), "me")
            assert await memory.recall(unsigned, "me"), "what is signed now is remembered"
            return found
        finally:
            await store.close()

    assert asyncio.run(scenario()) is (jump < 7 * DAY)


@promise("gateway:clock-jumps")
def test_counters_of_redis_with_a_time_in_the_future(redis_server: Redis, tmp_path: Path) -> None:
    server = Server(database=str(tmp_path / "gateway.db"), limits=redis_server.fresh())

    async def scenario() -> None:
        ledger = await open_ledger(server, {})
        try:
            await used_up(meters_of(ledger))
            client: Any = meters_of(ledger)._client  # type: ignore[attr-defined]  # noqa: SLF001
            async for name in client.scan_iter("dragoman:*"):
                if b":tokens:" in name:
                    for second, count in (await client.hgetall(name)).items():
                        await client.hdel(name, second)
                        await client.hset(name, int(second) + int(DAY), count)
                    continue
                for member, score in await client.zrange(name, 0, -1, withscores=True):
                    await client.zadd(name, {member: score + DAY})
            await entered_again(meters_of(ledger))
        finally:
            await ledger.close()

    asyncio.run(scenario())
