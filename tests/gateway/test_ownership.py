"""What belongs to a key: its responses, models and budget; and files that only the gateway's owner may read."""

import asyncio
import json
import os
import sqlite3
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from dragoman.agent.output_stores import SqliteStore
from dragoman.agent.sessions import SessionStore
from dragoman.chat.stores.sql import Sqlite
from dragoman.gateway.client_protocols import CLIENT_PROTOCOLS
from dragoman.gateway.client_request import ClientRequest
from dragoman.gateway.config import read_config
from dragoman.gateway.costs import PriceList
from dragoman.gateway.expected_cost import EXPECTED_OUTPUT, expected_use
from dragoman.gateway.routing import Router
from dragoman.gateway.state.connect import open_store
from dragoman.sim.server import Simulator
from tests.cli.command import run
from tests.gateway.running import RunningGateway, configured, connected, send, simulated
from tests.gateway.scripted_upstream import Reply, ScriptedUpstream, completion, reply, scripted
from tests.gateway.test_failures import chat, provider
from tests.gateway.test_keys import MODEL, create, in_store, key
from tests.gateway.test_many_gateways import BRIEF, pair
from tests.gateway.test_state import entry
from tests.support.databases import Postgres
from tests.support.promises import promise
from tests.support.waiting import until

OWNER_ONLY = 0o600
PRICES = '[prices."claude-sonnet-5"]\ninput = 1000\noutput = 1000\n'


# ── ownership ──


def kept_response(gateway: RunningGateway, shown: str) -> str:
    got = send(gateway.url, "/v1/responses", {"model": MODEL, "input": "Hello"}, {"x-api-key": shown})
    assert got.status == 200, got.body
    return str(got.json["id"])


def may_read(gateway: RunningGateway, id: str, shown: str) -> bool:
    return send(gateway.url, f"/v1/responses/{id}", None, {"x-api-key": shown}, "GET").status == 200


@promise("gateway:key-ids")
def test_reordered_keys_of_the_configuration_keep_their_data(dragoman_simulator: Simulator, tmp_path: Path) -> None:
    text = f'[server]\ndatabase = "{tmp_path / "gateway.db"}"\nkeys = ["{{}}", "{{}}"]\n'
    id = ""
    for first, second in (("ada-key", "bob-key"), ("bob-key", "ada-key")):
        config = configured(text.format(first, second)).config
        with RunningGateway(simulated(dragoman_simulator.url, config)) as gateway:
            id = id or kept_response(gateway, "ada-key")
            assert may_read(gateway, id, "ada-key")
            assert not may_read(gateway, id, "bob-key")


@promise("gateway:key-ids", "gateway:costs-exact")
def test_a_key_of_the_database_may_have_the_name_of_a_configured_one(
    dragoman_simulator: Simulator, tmp_path: Path
) -> None:
    """Keys of the configuration are named key-1, key-2 and so on. Keys of the database may have such names, too."""
    address = str(tmp_path / "gateway.db")
    create(address, key("key-1", budget=100.0))
    text = f'[server]\ndatabase = "{address}"\nkeys = ["configured-key"]\n{PRICES}'
    with RunningGateway(simulated(dragoman_simulator.url, configured(text).config)) as gateway:
        id = kept_response(gateway, "configured-key")
        assert may_read(gateway, id, "configured-key")
        assert not may_read(gateway, id, "k-key-1")
        gateway.requests(1)
    assert in_store(address, lambda store: store.spent("key-1")) == 0.0, "paid by the other key"


@promise("gateway:key-ids")
def test_ids_of_keys_are_random_and_never_change(tmp_path: Path) -> None:
    address = str(tmp_path / "gateway.db")
    for action in (("create", "ada"), ("create", "bob"), ("rotate", "ada")):
        run("keys", *action, "--database", address)
    with closing(sqlite3.connect(address)) as database, database:
        ids = dict(database.execute("SELECT name, id FROM gateway_keys").fetchall())
    assert len({*ids.values(), *ids}) == 4
    run("keys", "rotate", "ada", "--database", address)
    with closing(sqlite3.connect(address)) as database, database:
        assert dict(database.execute("SELECT name, id FROM gateway_keys").fetchall()) == ids


@promise("gateway:key-ids")
def test_a_database_of_an_earlier_version(tmp_path: Path) -> None:
    file = tmp_path / "gateway.db"
    with closing(sqlite3.connect(file)) as old, old:
        old.executescript(
            "CREATE TABLE gateway_keys (name TEXT PRIMARY KEY, digest TEXT UNIQUE NOT NULL, models TEXT NOT NULL, "
            "created DOUBLE PRECISION NOT NULL, expires DOUBLE PRECISION, revoked DOUBLE PRECISION, "
            "requests_per_minute BIGINT, concurrent BIGINT, tokens_per_minute BIGINT, budget DOUBLE PRECISION, "
            "spent DOUBLE PRECISION NOT NULL);"
            "CREATE TABLE gateway_usage (id TEXT PRIMARY KEY, time DOUBLE PRECISION NOT NULL, day TEXT NOT NULL, "
            "key TEXT NOT NULL, client TEXT NOT NULL, model TEXT NOT NULL, upstream TEXT NOT NULL, "
            "target TEXT NOT NULL, status BIGINT NOT NULL, "
            "seconds DOUBLE PRECISION NOT NULL, input BIGINT, output BIGINT, cached BIGINT, "
            "cost DOUBLE PRECISION);"
            "INSERT INTO gateway_keys VALUES ('ada', 'd1', '[]', 1, NULL, NULL, NULL, NULL, NULL, 5, 0.5);"
        )
    old.close()

    async def scenario() -> None:
        for _ in range(2):
            store, _ = await open_store(str(file))
            grant = await store.grant("d1")
            assert grant is not None
            assert (grant.id, grant.budget, await store.spent(grant.id)) == ("ada", 5, 0.5)
            await store.close()
        store, _ = await open_store(str(file))
        await store.add([entry("1")])
        assert await store.spent("ada") == 0.75
        await store.close()

    asyncio.run(scenario())


# ── models ──

LISTS: dict[str, tuple[str, dict[str, str], Callable[[Any], list[str]]]] = {
    "openai-chat": ("/v1/models", {}, lambda body: [one["id"] for one in body["data"]]),
    "anthropic-messages": (
        "/v1/models",
        {"anthropic-version": "2023-06-01"},
        lambda body: [one["id"] for one in body["data"]],
    ),
    "gemini": ("/v1beta/models", {}, lambda body: [one["name"].removeprefix("models/") for one in body["models"]]),
    "ollama-chat": ("/api/tags", {}, lambda body: [one["name"] for one in body["models"]]),
}


@promise("gateway:key-models")
@pytest.mark.parametrize("format", LISTS)
def test_lists_have_the_models_that_the_key_may_use(format: str, dragoman_simulator: Simulator, tmp_path: Path) -> None:
    address = str(tmp_path / "gateway.db")
    create(
        address,
        key("all"),
        key("narrow", models=("anthropic/claude-sonnet-5", "mine")),
        key("bare", models=("claude-*",)),
        key("none", models=("nothing/*",)),
    )
    tables = "".join(
        f'[providers.{name}]\nbase_url = "{dragoman_simulator.url}/{mount}"\napi_key = "k"\nmodels = {models}\n'
        for name, mount, models in (
            ("anthropic", "anthropic", '["claude-sonnet-5", "claude-haiku-5"]'),
            ("gemini", "gemini", '["gemini-3.6-flash"]'),
        )
    )
    routes = '[routes.mine]\nto = "anthropic/claude-haiku-5"\n[routes.other]\nto = "gemini/gemini-3.6-flash"\n'
    path, headers, names = LISTS[format]
    with RunningGateway(configured(f'[server]\ndatabase = "{address}"\n{tables}{routes}')) as gateway:

        def listed(name: str) -> set[str]:
            shown = {**headers, "authorization": f"Bearer k-{name}"}
            return set(names(send(gateway.url, path, None, shown, "GET").json))

        assert {"mine", "other", "anthropic/claude-haiku-5", "gemini/gemini-3.6-flash"} <= listed("all")
        assert listed("narrow") == {"mine", "anthropic/claude-sonnet-5"}
        assert listed("bare") == {"claude-sonnet-5", "claude-haiku-5"}
        assert listed("none") == set()
        for model, status in (("mine", 200), ("other", 404), ("gemini%2Fgemini-3.6-flash", 404)):
            shown = {**headers, "authorization": "Bearer k-narrow"}
            if format == "ollama-chat":
                got = send(gateway.url, "/api/show", {"model": model.replace("%2F", "/")}, shown)
            else:
                got = send(gateway.url, f"{path}/{model}", None, shown, "GET")
            assert got.status == status, (model, got.body)


# ── counting ──

COUNTED = {
    "/v1/messages/count_tokens": {"model": MODEL, "messages": chat("")["messages"]},
    "/v1/responses/input_tokens": {"model": MODEL, "input": "Hello"},
    "/v1beta/models/anthropic%2Fclaude-sonnet-5:countTokens": {"contents": [{"parts": [{"text": "Hello"}]}]},
    "/model/anthropic%2Fclaude-sonnet-5/count-tokens": {
        "input": {"converse": {"messages": [{"role": "user", "content": [{"text": "Hello"}]}]}}
    },
}


@promise("gateway:limits", "gateway:count-tokens")
@pytest.mark.parametrize("path", COUNTED)
def test_token_counting_counts_towards_the_limits_of_a_key(
    path: str, dragoman_simulator: Simulator, tmp_path: Path
) -> None:
    address = str(tmp_path / "gateway.db")
    create(address, key("slow", requests_per_minute=2), key("poor", budget=0.0), key("one", concurrent=1))
    config = configured(f'[server]\ndatabase = "{address}"\n').config
    with RunningGateway(simulated(dragoman_simulator.url, config)) as gateway:

        def status(name: str) -> int:
            return send(gateway.url, path, COUNTED[path], {"x-api-key": f"k-{name}"}).status

        assert [status("slow") for _ in range(3)] == [200, 200, 429]
        assert status("poor") in {402, 400}, "Bedrock has no 402"
        assert {status("one") for _ in range(5)} == {200}, "each leaves room for the next"


@pytest.mark.parametrize("second", ["Model", "MODEL"])
@pytest.mark.parametrize("limits", [{"models": ["p/small"]}, {"budget": 1.0}], ids=["models", "budget"])
def test_a_second_model_in_another_case_is_refused(second: str, limits: dict[str, Any], tmp_path: Path) -> None:
    """Servers in Go, such as Ollama, ignore the case of keys. With the same bytes, the other model would answer."""
    address = str(tmp_path / "gateway.db")
    create(address, key("ada", **limits), key("free"))
    body = {"model": "p/small", "messages": [{"role": "user", "content": "hi"}], second: "large"}
    with scripted(reply(completion())) as upstream:
        text = f'[server]\ndatabase = "{address}"\n{upstream.table("p")}'
        with RunningGateway(configured(text)) as gateway:
            refused = send(gateway.url, "/v1/chat/completions", body, {"x-api-key": "k-ada"})
            assert (refused.status, upstream.count) == (400, 0), refused.body
            assert send(gateway.url, "/v1/chat/completions", body, {"x-api-key": "k-free"}).status == 200


# ── keys are not forwarded ──


@promise("gateway:no-secrets")
def test_a_key_in_the_query_is_not_forwarded() -> None:
    """Google's clients send it there. An upstream of the Responses API gets the rest of the query."""
    answer = {"id": "resp_1", "object": "response", "status": "completed", "model": "m", "output": []}
    with scripted(reply(answer)) as upstream:
        text = f'[server]\nkeys = ["gateway-secret"]\n{upstream.table("p", "openai")}'
        with RunningGateway(configured(text)) as gateway:
            query = "key=gateway-secret"
            assert send(gateway.url, f"/v1/responses?{query}", {"model": "p/m", "input": "Hello"}).status == 200
            more = f"{query}&include%5B%5D=reasoning&%6bey=gateway-secret&after=gateway-secret"
            assert send(gateway.url, f"/v1/responses/resp_1?{more}", None, method="GET").status == 200
    assert len(upstream.heads) == 2
    assert "include%5B%5D=reasoning" in upstream.heads[1]
    assert not any("gateway-secret" in head for head in upstream.heads)


# ── private files ──


def modes(folder: Path) -> dict[str, int]:
    return {file.name: stat.S_IMODE(file.stat().st_mode) for file in folder.rglob("*") if file.is_file()}


@promise("gateway:private-files")
def test_only_the_owner_may_read_databases(dragoman_simulator: Simulator, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        address = str(tmp_path / "gateway.db")
        create(address, key("ada"))
        config = configured(f'[server]\ndatabase = "{address}"\n').config
        with RunningGateway(simulated(dragoman_simulator.url, config)) as gateway:
            assert send(gateway.url, "/v1/chat/completions", chat(MODEL), {"x-api-key": "k-ada"}).status == 200
            found = modes(tmp_path)
    finally:
        os.umask(before)
    assert set(found) == {"gateway.db", "gateway.db-wal", "gateway.db-shm"}
    assert set(found.values()) == {OWNER_ONLY}


@promise("gateway:private-files")
def test_only_the_owner_may_read_histories(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        SessionStore(tmp_path / "new" / "sessions")
        SqliteStore(tmp_path / "outputs.sqlite").close()
        Sqlite(tmp_path / "chats" / "chats.sqlite")
        found = modes(tmp_path)
        folders = {folder: stat.S_IMODE(folder.stat().st_mode) for folder in tmp_path.rglob("*") if folder.is_dir()}
    finally:
        os.umask(before)
    assert {"sessions.sqlite", "outputs.sqlite", "chats.sqlite"} <= set(found)
    assert set(found.values()) == {OWNER_ONLY}
    assert len(folders) == 3
    assert set(folders.values()) == {0o700}


# ── budgets ──


@pytest.fixture
def shared_home(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "gateway.db")
    server: Postgres = request.getfixturevalue("postgres_server")
    return server.fresh()


@promise("gateway:budget-reserved", "gateway:many-gateways")
@pytest.mark.parametrize("shared_home", ["sqlite", "postgres"], indirect=True)
def test_concurrent_requests_do_not_overspend_a_budget(
    shared_home: str, tmp_path: Path, dragoman_simulator: Simulator
) -> None:
    """Two gateways, forty concurrent requests, and a budget for five."""
    grants = (key("free"), key("poor", budget=1.0))
    with pair(shared_home, "", tmp_path, dragoman_simulator.url, *grants) as both:

        def ask(name: str, model: str = "p/claude-sonnet-5") -> int:
            body = chat(model, max_tokens=50)
            return send(both.balancer.url, "/v1/messages", body, {"x-api-key": f"k-{name}"}).status

        assert ask("free") == 200
        price = both.spent("free")
        statuses: list[int] = []
        threads = [threading.Thread(target=lambda: statuses.append(ask("poor", BRIEF))) for _ in range(40)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert set(statuses) <= {200, 402, 429}
        assert statuses.count(200) >= 1
        assert both.spent("poor") == pytest.approx(statuses.count(200) * price)
        assert both.spent("poor") <= 1.0 + 2 * price, "at most one request more for each gateway"
        while ask("poor") == 200:
            pass
        assert 1.0 <= both.spent("poor") <= 1.0 + 2 * price, "and what was only reserved is free again"
        assert ask("poor") == 402


@promise("gateway:costs-exact", "gateway:attacks")
@pytest.mark.parametrize("shared_home", ["sqlite", "postgres"], indirect=True)
def test_names_with_null_characters_are_recorded_and_charged(shared_home: str) -> None:
    """PostgreSQL refuses them in texts, so a request for a model with one in its name would not be charged."""
    create(shared_home, key("ada", budget=5.0))
    priced = '[prices."m"]\ninput = 1000\noutput = 1000\n[routes."*"]\nto = "p/m"\n'
    keyed = {"authorization": "Bearer k-ada", "x-dragoman-provider": "dragoman"}
    with scripted(reply(completion())) as upstream:
        text = f'[server]\ndatabase = "{shared_home}"\n{upstream.table("p")}{priced}'
        with RunningGateway(configured(text)) as gateway:
            assert send(gateway.url, "/v1/chat/completions", chat("m\0"), {"x-api-key": "k-ada"}).status == 200
            item = {"id": "a\0b", "type": "message", "role": "user", "content": "x"}
            made = {"items": [item], "metadata": {"\0": "\0"}}
            assert send(gateway.url, "/v1/conversations", made, keyed).status == 200
            for path in ("/v1/files?after=%00", "/v1/batches?after=%00"):
                assert send(gateway.url, path, headers=keyed, method="GET").status == 200
    (row,) = in_store(shared_home, lambda store: store.list_keys())
    assert row.spent == pytest.approx(0.007)


IMAGE = {"model": "p/priced", "prompt": "x", "n": 2}
REPORTED = {"data": [], "usage": {"input_tokens": 10, "output_tokens": 20}}
FORM = {"content-type": "multipart/form-data; boundary=b"}


def form(*fields: tuple[str, str]) -> bytes:
    parts = [f'--b\r\ncontent-disposition: form-data; name="{name}"\r\n\r\n{value}\r\n' for name, value in fields]
    return ("".join(parts) + "--b--\r\n").encode()


@pytest.fixture
def budgets(tmp_path: Path) -> Iterator[tuple[RunningGateway, ScriptedUpstream, str]]:
    """Keys with a budget in currency and in tokens, and upstreams with the endpoints that pass unchanged."""
    home = str(tmp_path / "gateway.db")
    create(home, key("ada", budget=100.0), key("tom", token_budget=1_000_000), key("eve"))
    priced = '[prices."p/priced"]\ninput = 1000\noutput = 1000\n'
    with scripted(reply(REPORTED)) as upstream:
        tables = upstream.table("p") + upstream.table("g", "gemini") + upstream.table("a", "anthropic")
        text = f'[server]\ndatabase = "{home}"\nbatch_concurrency = 0\n{tables}{priced}'
        with RunningGateway(configured(text)) as gateway:
            yield gateway, upstream, home


def spent(home: str, name: str) -> tuple[float, int]:
    rows = {row.name: row for row in in_store(home, lambda store: store.list_keys())}
    return rows[name].spent, rows[name].spent_tokens


@promise("gateway:budget-reserved", "gateway:attacks")
def test_what_passes_unchanged_counts_towards_a_budget(budgets: tuple[RunningGateway, ScriptedUpstream, str]) -> None:
    gateway, upstream, home = budgets

    def ask(path: str, body: Any, name: str = "ada", headers: dict[str, str] | None = None) -> int:
        return send(gateway.url, path, body, {"x-api-key": f"k-{name}", **(headers or {})}).status

    assert ask("/v1/images/generations", IMAGE) == 200
    assert spent(home, "ada") == (0.03, 30)
    upstream.replies[:] = [reply(b"sound", headers={"content-type": "audio/mpeg"})]
    for used, path, body, headers in (
        (4096, "/v1/audio/speech", {"model": "p/priced", "input": "x"}, {}),
        (4096 * 3, "/v1/images/edits", form(("model", "p/priced"), ("n", "3")), FORM),
        (4096 * 1_000, "/v1/images/generations", {**IMAGE, "n": 10**9}, {}),
    ):
        cost, before = spent(home, "ada")
        assert cost < 100.0
        assert ask(path, body, "ada", headers) == 200
        cost, after = spent(home, "ada")
        assert used < after - before < used + 100, "what is not reported is estimated"
        assert ask(path, body, "tom", headers) in {200, 402}
    assert ask("/v1/images/generations", IMAGE) == 402
    assert ask("/v1/images/generations", IMAGE, "tom") == 402
    assert ask("/v1/images/edits", form(("model", "p/priced"), ("n", "1"), ("n", "2")), "tom", FORM) == 400
    assert ask("/v1/images/generations", IMAGE, "eve") == 200


UNCOUNTED: tuple[tuple[str, Any, bool], ...] = (
    ("/v1/images/generations", {"model": "p/other", "prompt": "x"}, True),
    ("/v1/images/generations", {"prompt": "x"}, True),
    ("/v1/audio/speech", {"model": "p/other", "input": "x"}, True),
    ("/v1/fine_tuning/jobs", {"model": "p/priced", "training_file": "f"}, False),
    ("/v1/batches", {"input_file_id": "f", "endpoint": "/v1/chat/completions", "completion_window": "24h"}, False),
    ("/v1/messages/batches", {"requests": []}, False),
    ("/v1beta/models/g/priced:batchGenerateContent", {"batch": {}}, False),
    ("/v1beta/cachedContents", {"model": "g/priced", "ttl": "999999s"}, False),
)


@promise("gateway:budget-reserved", "gateway:attacks")
def test_what_cannot_be_counted_is_refused_to_keys_with_a_budget(
    budgets: tuple[RunningGateway, ScriptedUpstream, str],
) -> None:
    gateway, upstream, home = budgets
    for path, body, by_price in UNCOUNTED:
        before = upstream.count
        got = send(gateway.url, path, body, {"x-api-key": "k-ada"})
        assert (got.status, b"budget" in got.body) == (403, True), (path, got.body)
        if not by_price:
            assert send(gateway.url, path, body, {"x-api-key": "k-tom"}).status == 403, path
        assert upstream.count == before, path
        if "other" in str(body):
            assert send(gateway.url, path, body, {"x-api-key": "k-tom"}).status == 200, path
        assert send(gateway.url, path, body, {"x-api-key": "k-eve"}).status == 200, path
    assert send(gateway.url, "/v1/moderations", {"input": "x"}, {"x-api-key": "k-ada"}).status == 200
    assert spent(home, "ada")[0] == 0


@promise("gateway:budget-reserved", "gateway:attacks")
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages"])
def test_an_answer_that_its_client_leaves_is_paid_for(
    budgets: tuple[RunningGateway, ScriptedUpstream, str], path: str
) -> None:
    """Its usage is reported at its end, which the client did not wait for."""
    gateway, upstream, home = budgets
    delta = {"id": "c", "choices": [{"index": 0, "delta": {"role": "assistant", "content": "word " * 80}}]}
    events = b"data: " + json.dumps(delta).encode() + b"\n\n"
    endless = reply(events, headers={"content-type": "text/event-stream", "content-length": "1000000"})
    upstream.replies[:] = [Reply(endless.data, keeps_open=True)]
    messages = [{"role": "user", "content": "long " * 400}]
    body = json.dumps(chat("p/priced", messages=messages, stream=True, max_tokens=9_000)).encode()
    head = f"POST {path} HTTP/1.1\r\nhost: a\r\nx-api-key: k-ada\r\ncontent-length: {len(body)}\r\n\r\n".encode()
    with connected(gateway.url) as sock:
        sock.sendall(head + body)
        received = b""
        while b"word" not in received:
            received += sock.recv(65536)
    until(lambda: spent(home, "ada")[1] > 0)
    assert 500 + 80 < spent(home, "ada")[1] < 1_000


@promise("gateway:budget-reserved")
def test_embeddings_reserve_what_they_may_cost(budgets: tuple[RunningGateway, ScriptedUpstream, str]) -> None:
    gateway, upstream, home = budgets
    upstream.replies[:] = [reply({"object": "list", "data": [{"index": 0, "embedding": [1.0]}], "model": "m"})]
    body = {"model": "p/priced", "input": [list(range(10_000, 11_000))]}
    assert send(gateway.url, "/v1/embeddings", body, {"x-api-key": "k-ada"}).status == 200
    assert 1_000 < spent(home, "ada")[1] < 2_500, "the answer does not say how many tokens there were"


@promise("gateway:budget-reserved")
def test_the_expected_cost_is_that_of_the_most_expensive_candidate() -> None:
    config = read_config(
        provider("p", "http://127.0.0.1:1").replace('api_key = "any-key"', 'api_keys = ["k1", "k2"]')
        + '[routes.mine]\nto = "p/cheap"\nfallback = ["p/dear"]\n'
        + '[routes.short]\nto = "p/dear"\nmax_output_tokens = 10\n[routes.unpriced]\nto = "p/other"\n'
        + '[prices."p/cheap"]\ninput = 1\noutput = 1\n[prices.dear]\ninput = 0\noutput = 1000000\n'
    )
    router = Router(config, {})

    def expected(model: str, **more: int) -> float | None:
        body = json.dumps(chat(model, **more)).encode()
        client_request = ClientRequest(
            protocol=CLIENT_PROTOCOLS["openai-chat"], body=body, model=model, stream=False, headers={}
        )
        return expected_use(client_request, router.plan(model, "openai-chat"), PriceList(config)).cost

    assert expected("mine", max_completion_tokens=7) == 7
    assert expected("mine", max_completion_tokens=7, n=2) == 14
    assert expected("mine") == EXPECTED_OUTPUT
    assert expected("short") == 10
    assert expected("short", max_completion_tokens=7) == 7
    assert expected("unpriced") is None
    assert 0 < (expected("p/cheap", max_completion_tokens=1) or 0) < 0.001, "by provider/model, whichever key it has"
