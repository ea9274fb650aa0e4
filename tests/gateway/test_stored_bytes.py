"""What clients store is bounded in bytes too: they choose the size of responses, conversations and signatures."""

from pathlib import Path

import pytest

from dragoman.gateway.state.base import Kept, Store
from dragoman.gateway.state.sql import SqlStore
from tests.gateway.test_keys import in_store
from tests.support.databases import Postgres
from tests.support.promises import promise

pytestmark = promise("gateway:attacks")

SIZE = 10_000
MOST = 10 * SIZE


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def home(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgres":
        server: Postgres = request.getfixturevalue("postgres_server")
        return server.fresh()
    return "" if request.param == "memory" else str(tmp_path / "gateway.db")


def kept(number: int, size: int) -> Kept:
    return Kept(id=f"resp_{number}", owner="ada", previous=None, input=b"x" * (size // 2), response=b"y" * (size // 2))


def limited(store: Store) -> SqlStore:
    assert isinstance(store, SqlStore)
    assert store.most_bytes > 1 << 20
    store.most_bytes = MOST
    return store


def test_the_oldest_responses_are_deleted(home: str) -> None:
    async def work(store: Store) -> list[int]:
        small = limited(store)
        for number in range(40):
            await small.keep(kept(number, SIZE))
        return [number for number in range(40) if await small.find_response(f"resp_{number}", "ada")]

    left = in_store(home, work)
    assert left == list(range(left[0], 40)), "the newest are there"
    assert 10 <= len(left) <= 13


def test_items_of_conversations_count(home: str) -> None:
    async def work(store: Store) -> tuple[list[int], int]:
        small = limited(store)
        for number in range(20):
            await small.keep(kept(number, 10))
            await small.add_items(f"resp_{number}", "ada", [("item", b"z" * SIZE)])
        left = [number for number in range(20) if await small.find_response(f"resp_{number}", "ada")]
        items = [number for number in range(20) if await small.items(f"resp_{number}", "ada")]
        assert left == items
        return left, len(items)

    left, count = in_store(home, work)
    assert left[-1] == 19
    assert 9 <= count <= 13


def test_the_oldest_signatures_are_deleted(home: str) -> None:
    async def work(store: Store) -> list[int]:
        small = limited(store)
        for number in range(40):
            await small.remember("ada", f"call_{number}", b"s" * SIZE)
        found = await small.recall("ada", [f"call_{number}" for number in range(40)], 3600.0)
        return sorted(int(name.removeprefix("call_")) for name in found)

    left = in_store(home, work)
    assert left == list(range(left[0], 40))
    assert 10 <= len(left) <= 13
