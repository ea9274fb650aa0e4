"""What requests cost, by the catalogue or by configured prices: in headers, log, metrics, usage and budgets."""

import asyncio
from pathlib import Path

import aiohttp
import anthropic
import pytest

from dragoman import catalogue
from dragoman.catalogue import Model, Prices, Tier, lookup
from dragoman.gateway.config import Config, read_config
from dragoman.gateway.costs import PriceList
from dragoman.gateway.state.base import OverBudget, Reservation, Store
from dragoman.ir import Usage
from dragoman.sim.server import Simulator
from tests.gateway.running import RunningGateway, configured, send, simulated
from tests.gateway.scripted_upstream import completion, reply, scripted
from tests.gateway.test_failures import chat
from tests.gateway.test_keys import MODEL, PRICES, create, in_store, key
from tests.support.databases import Postgres
from tests.support.promises import promise
from tests.support.waiting import PATIENCE
from tests.web.upstream import page_and_simulators

ESTIMATE = {"x-dragoman-estimate": "1"}


@promise("gateway:costs")
def test_rates_are_those_of_the_catalogue() -> None:
    """The gateway computes the same amounts as the catalogue, for every kind of token."""
    prices = PriceList(Config())
    usages = [
        Usage(input=100, output=50),
        Usage(input=100, output=50, cached=40, cache_written=10),
        Usage(input=100, output=50, cache_written=30, details={"cache_written_1h": 20}),
        Usage(input=300_000, output=50, details={"audio_input": 10}),
    ]
    compared = 0
    for row in catalogue.catalogue().models:
        for usage in usages:
            expected, found = row.price_of(usage), prices.cost(row.provider, row.id, usage)
            if expected is not None and found is not None:
                compared += 1
                assert found == pytest.approx(float(expected))
            else:
                assert expected is None or row.prices is None or row.prices.input is None
    assert compared > 100


@promise("gateway:costs")
def test_amounts_are_rounded() -> None:
    prices = PriceList(Config())
    for tokens in range(1, 500):
        cost = prices.cost("anthropic", "claude-sonnet-5", Usage(input=tokens, output=66))
        assert cost is not None
        assert len(repr(cost)) <= 12, cost


@promise("gateway:costs")
def test_configured_prices_take_precedence_over_the_catalogue() -> None:
    config = read_config(
        '[providers.work]\nkind = "anthropic"\napi_key = "k"\n[prices."work/mine"]\ninput = 1\noutput = 2\n'
        '[prices."claude-opus-4-1"]\ninput = 7\noutput = 7\n'
    )
    prices, million = PriceList(config), Usage(input=1_000_000, output=1_000_000, cached=500_000)
    assert prices.cost("work#2", "mine", million) == pytest.approx(3)
    assert prices.cost("work", "claude-opus-4-1", million) == pytest.approx(14)
    row = lookup("anthropic", "claude-sonnet-5")
    assert row is not None
    assert prices.cost("work", "claude-sonnet-5", million) == pytest.approx(float(row.price_of(million) or 0)) != 0
    assert prices.cost("work", "unheard-of", million) is None


@promise("gateway:costs")
def test_rows_with_tiers_and_other_currencies() -> None:
    rows = (
        Model(
            provider="ollama",
            id="tiered",
            prices=Prices(input=1, output=1),  # type: ignore[arg-type]
            tiers=(Tier(above=20, input=3, output=3), Tier(above=10, input=2, output=2)),  # type: ignore[arg-type]
        ),
        Model(provider="ollama", id="abroad", currency="EUR", prices=Prices(input=1, output=1)),  # type: ignore[arg-type]
    )
    try:
        catalogue.register(*rows)
        prices = PriceList(Config())
        costs = [prices.cost("ollama", "tiered", Usage(input=tokens, output=0)) for tokens in (10, 11, 20, 21)]
        assert costs == pytest.approx([10e-6, 22e-6, 40e-6, 63e-6])
        assert prices.cost("ollama", "abroad", Usage(input=1, output=1)) is None
    finally:
        catalogue.reset()


@promise("gateway:costs")
def test_headers_log_and_metrics_agree(dragoman_simulator: Simulator) -> None:
    with RunningGateway(simulated(dragoman_simulator.url)) as gateway:
        with anthropic.Anthropic(base_url=gateway.url, api_key="any") as client:
            raw = client.messages.with_raw_response.create(
                model="claude-sonnet-5", max_tokens=9, messages=[{"role": "user", "content": "hi"}]
            )
            usage = raw.parse().usage
        row = lookup("anthropic", "claude-sonnet-5")
        assert row is not None
        price = float(row.price_of(Usage(input=usage.input_tokens, output=usage.output_tokens)) or 0)
        assert float(raw.headers["x-dragoman-cost"]) == pytest.approx(price) != 0
        send(gateway.url, "/v1/chat/completions", chat(MODEL, stream=True))
        lines = gateway.requests(2)
        assert lines[0]["cost"] == pytest.approx(price)
        assert lines[1]["cost"] > 0, "of a stream, too"
        text = send(gateway.url, "/metrics", method="GET").body.decode()
        assert "dragoman_cost_total" in text


@promise("gateway:limits")
def test_estimates_count_as_requests(dragoman_simulator: Simulator, tmp_path: Path) -> None:
    address = str(tmp_path / "gateway.db")
    create(address, key("ada", requests_per_minute=2))
    config = read_config(f'[server]\ndatabase = "{address}"\n')
    with RunningGateway(simulated(dragoman_simulator.url, config)) as gateway:
        headers = {**ESTIMATE, "x-api-key": "k-ada"}
        statuses = [send(gateway.url, "/v1/chat/completions", chat(MODEL), headers).status for _ in range(3)]
    assert statuses == [200, 200, 429]


@promise("gateway:costs", "gateway:limits")
def test_compaction_by_a_provider_counts_towards_the_budget(tmp_path: Path) -> None:
    address = str(tmp_path / "gateway.db")
    create(address, key("ada", budget=1.0))
    text = f'[server]\ndatabase = "{address}"\n[prices."m"]\ninput = 1000000\noutput = 1000000\n'
    usage = {"input_tokens": 2, "output_tokens": 1, "total_tokens": 3}
    answer = {"id": "resp_1", "object": "response.compaction", "created_at": 1, "output": [], "usage": usage}
    with (
        scripted(reply(answer)) as upstream,
        RunningGateway(configured(text + upstream.table("p", "openai"))) as gateway,
    ):
        body, headers = {"model": "p/m", "input": "x"}, {"x-api-key": "k-ada"}
        assert send(gateway.url, "/v1/responses/compact", body, headers).json == answer
        assert send(gateway.url, "/v1/responses/compact", body, headers).status == 402
        assert gateway.requests(2)[0]["cost"] == pytest.approx(3)


@promise("gateway:costs", "gateway:limits")
def test_an_empty_summary_is_paid_for(tmp_path: Path) -> None:
    """The client's instructions may ask for one."""
    address = str(tmp_path / "gateway.db")
    create(address, key("ada", budget=1.0))
    text = f'[server]\ndatabase = "{address}"\n[prices."m"]\ninput = 1000000\noutput = 1000000\n'
    with (
        scripted(reply(completion(""))) as upstream,
        RunningGateway(configured(text + upstream.table("p"))) as gateway,
    ):
        body, headers = {"model": "p/m", "input": "x"}, {"x-api-key": "k-ada"}
        statuses = [send(gateway.url, "/v1/responses/compact", body, headers).status for _ in range(2)]
        assert statuses == [502, 402]
        assert gateway.requests(2)[0]["cost"] == pytest.approx(7)


@promise("gateway:costs")
def test_an_estimate_calls_no_provider(dragoman_simulator: Simulator) -> None:
    with RunningGateway(simulated(dragoman_simulator.url)) as gateway:
        body = {**chat("claude-sonnet-5"), "max_tokens": 500}
        got = send(gateway.url, "/v1/chat/completions", body, ESTIMATE)
        assert got.status == 200
        estimate = got.json
        assert (estimate["object"], estimate["models"], estimate["output_tokens"]) == ("estimate", [MODEL], 500)
        row = lookup("anthropic", "claude-sonnet-5")
        assert row is not None
        price = row.price_of(Usage(input=estimate["input_tokens"], output=500))
        assert estimate["cost"] == pytest.approx(float(price or 0)) != 0
        assert send(gateway.url, "/v1/messages", {"model": "claude-sonnet-5", "messages": 1}, ESTIMATE).status == 400
        assert b"dragoman_requests_total{client" not in send(gateway.url, "/metrics", method="GET").body


@pytest.fixture(params=["sqlite", "postgres"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgres":
        server: Postgres = request.getfixturevalue("postgres_server")
        return server.fresh()
    return str(tmp_path / "gateway.db")


@promise("gateway:token-budget")
def test_a_budget_in_tokens(address: str, dragoman_simulator: Simulator) -> None:
    create(address, key("short", token_budget=1), key("both", token_budget=1_000_000, budget=0.0000001), key("rich"))
    text = f'[server]\ndatabase = "{address}"\n' + PRICES
    with RunningGateway(simulated(dragoman_simulator.url, configured(text).config)) as gateway:

        def status(name: str) -> int:
            return send(gateway.url, "/v1/chat/completions", chat(MODEL), {"x-api-key": f"k-{name}"}).status

        assert [status("short") for _ in range(2)] == [200, 402]
        assert [status("both") for _ in range(2)] == [200, 402]
        assert status("rich") == 200
    used = in_store(address, lambda store: store.spent_tokens("short"))
    (row,) = [one for one in in_store(address, lambda store: store.usage(key_id="short")) if one.upstream]
    assert used == row.input + row.output > 0
    assert [one.spent_tokens for one in in_store(address, lambda store: store.list_keys())].count(used) >= 1


@promise("gateway:token-budget")
def test_tokens_are_reserved_while_requests_run(address: str) -> None:
    create(address, key("ada", token_budget=100))

    def new(id: str, tokens: int) -> Reservation:
        return Reservation(id=id, key_id="ada", budget=None, amount=5.0, seconds=9.0, token_budget=100, tokens=tokens)

    async def work(store: Store) -> None:
        await store.reserve(new("first", 60))
        with pytest.raises(OverBudget):
            await store.reserve(new("second", 60))
        await store.reserve(new("third", 40))

    in_store(address, work)


@promise("gateway:costs")
def test_the_page_reads_cost_and_usage() -> None:
    async def run() -> None:
        async with asyncio.timeout(PATIENCE), page_and_simulators() as running, aiohttp.ClientSession() as client:
            async with client.get(f"{running.url}/_/api/live/usage?by=model,day&days=1") as answer:
                assert (await answer.json())["currency"] == "USD"
                assert answer.status == 200
            async with client.get(f"{running.url}/_/api/live/usage?days=soon") as answer:
                assert answer.status == 400

    asyncio.run(run())
