"""Law 11 for lists of what is stored: a page has a bounded size, and its cost grows no faster than what is stored.

Each list is measured with n, 2n and 4n stored objects: the CPU time of the gateway's process for the first page and for
the last one.
"""

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from dragoman.sim.server import Simulator
from tests.gateway.served import served
from tests.gateway.test_failures import provider
from tests.gateway.test_keys import create, key
from tests.laws.test_law_11_endpoints import FORM, ITEM, Client, form
from tests.support.costs import MOST
from tests.support.promises import promise

pytestmark = [
    promise("law:11-linear-cost"),
    pytest.mark.skipif(sys.platform != "linux", reason="the CPU time of another process is read from Linux's clocks"),
]

HERE = {"x-dragoman-provider": "dragoman"}
SIZES = (100, 200, 400)
"""n, 2n and 4n."""
ROUNDS = 12
"""Repetitions of a page; the least of them is without noise."""
AGAIN = 5
"""Times that the largest list is measured again while it looks steep: noise only ever adds to a cost."""
MOST_ON_A_PAGE = 100
MOST_OF_TWICE = 3.0
"""Growth of the cost when twice as much is stored: 2 is linear, 4 quadratic."""
LEAST = 0.001
"""CPU seconds below which everything is noise: part of a stream's cost falls after its head, where it is not measured.

One step of Python for each pair of 400 objects takes more than `MOST_OF_TWICE` times this."""


class Stored(NamedTuple):
    """A list of one kind of object."""

    add: Callable[[Client, int], Any]
    """Stores one more; its number."""
    page: Callable[[Any], str]
    """The address of the list, from what `add` returned first."""
    listed: Callable[[Any], list[Any]]
    """The objects of a page."""
    next: Callable[[Any], str] = lambda page: f"after={page['last_id']}" if page.get("has_more") else ""
    """The parameter with which the next page is asked for; empty at the end."""
    headers: Mapping[str, str] = MappingProxyType({})
    is_counted: bool = True
    """Whether a page lists the objects themselves."""


def _sent(client: Client, path: str, body: bytes, kind: str = "application/json") -> Any:
    status, answer = client.send("POST", path, body, **{"content-type": kind, **HERE})
    assert status == 200, answer[:500]
    return json.loads(answer)


def _file(client: Client, number: int) -> Any:
    return _sent(client, "/v1/files", form(b'{"custom_id":"%d"}\n' % number, purpose="batch"), FORM)


def _batch(client: Client, number: int) -> Any:
    file = _file(client, number)["id"]
    body = {"input_file_id": file, "endpoint": "/v1/chat/completions", "completion_window": "24h"}
    return _sent(client, "/v1/batches", json.dumps(body).encode())


_conversations: list[str] = []


def _item(client: Client, _number: int) -> Any:
    if not _conversations:
        _conversations.append(_sent(client, "/v1/conversations", b"{}")["id"])
    _sent(client, f"/v1/conversations/{_conversations[0]}/items", json.dumps({"items": [ITEM]}).encode())
    return {"id": _conversations[0]}


def _request(client: Client, number: int) -> Any:
    body = {"model": "p/claude-sonnet-5", "messages": [{"role": "user", "content": f"hi {number}"}]}
    return _sent(client, "/v1/chat/completions", json.dumps(body).encode())


LISTS: dict[str, Stored] = {
    "files": Stored(_file, lambda _: "/v1/files", lambda page: page["data"], headers=HERE),
    "batches": Stored(_batch, lambda _: "/v1/batches", lambda page: page["data"], headers=HERE),
    "items": Stored(_item, lambda one: f"/v1/conversations/{one['id']}/items", lambda page: page["data"]),
    "usage": Stored(_request, lambda _: "/_/api/live/usage", lambda _: [], is_counted=False),
    "requests": Stored(_request, lambda _: "/_/api/live/feed", lambda _: [], is_counted=False),
    "metrics": Stored(_request, lambda _: "/metrics", lambda _: [], is_counted=False),
}


@pytest.fixture(scope="module")
def client(dragoman_simulator: Simulator, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    folder = tmp_path_factory.mktemp("gateway")
    text = f'[server]\ndatabase = "{folder / "gateway.db"}"\n{provider("p", dragoman_simulator.url)}'
    with served(folder, text, "--quiet") as running:
        yield Client(running)


def _page(client: Client, stored: Stored, target: str) -> Any:
    status, answer = client.send("GET", target, None, **stored.headers)
    assert status == 200, answer[:500]
    return json.loads(answer) if answer.startswith(b"{") else {}


def _last_page(client: Client, stored: Stored, target: str) -> tuple[str, int]:
    """The address of the last page, and the number of objects on all pages."""
    address, count = target, 0
    while True:
        page = _page(client, stored, address)
        found = stored.listed(page)
        assert len(found) <= MOST_ON_A_PAGE, f"{len(found)} objects on one page"
        count += len(found)
        following = stored.next(page) if found else ""
        if not following:
            return address, count
        address = f"{target}?{following}"


def _cost(client: Client, stored: Stored, target: str) -> float:
    return min(client.cpu_seconds(lambda: _page(client, stored, target)) for _ in range(ROUNDS))


def _is_steep(costs: list[float]) -> bool:
    return costs[2] >= MOST * max(costs[0], LEAST) or costs[2] >= MOST_OF_TWICE * max(costs[1], LEAST)


@pytest.mark.parametrize("name", LISTS)
def test_pages_are_bounded_and_cost_no_more_than_what_is_stored(client: Client, name: str) -> None:
    stored = LISTS[name]
    first: list[float] = []
    last: list[float] = []
    made = 0
    one: Any = None
    target = ending = ""
    for size in SIZES:
        while made < size:
            one = one or stored.add(client, made)
            if made:
                stored.add(client, made)
            made += 1
        target = stored.page(one)
        ending, count = _last_page(client, stored, target)
        assert count >= size or not stored.is_counted
        first.append(_cost(client, stored, target))
        last.append(_cost(client, stored, ending))
    for costs, address in ((first, target), (last, ending)):
        for _ in range(AGAIN):
            if not _is_steep(costs):
                break
            costs[2] = min(costs[2], _cost(client, stored, address))
        shown = ", ".join(f"{cost * 1000:.2f} ms" for cost in costs)
        assert not _is_steep(costs), f"{name}: n, 2n, 4n: {shown}"


def test_a_list_of_keys_costs_no_more_than_there_are_keys(
    dragoman_simulator: Simulator, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """One of them is checked with every request, so that their number must not slow requests down."""
    costs: list[float] = []
    for size in SIZES:
        folder = tmp_path_factory.mktemp("keys")
        database = str(folder / "gateway.db")
        create(database, *(key(f"k{number}") for number in range(size)))
        text = f'[server]\ndatabase = "{database}"\n{provider("p", dragoman_simulator.url)}'
        with served(folder, text, "--quiet") as running:
            asking = Client(running)

            def ask(asking: Client = asking) -> None:
                assert asking.send("GET", "/v1/models", None, **{"x-api-key": "k-k7"})[0] == 200

            costs.append(min(asking.cpu_seconds(ask) for _ in range(ROUNDS)))
    assert costs[2] < MOST * max(costs[0], LEAST), costs
    assert costs[2] < MOST_OF_TWICE * max(costs[1], LEAST), costs
