"""The catalogue of models: every row is dated and sourced, prices count each token once, what is unknown is None."""

import json
import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from dragoman import catalogue
from dragoman.catalogue import CatalogueError, Model, Prices, Tier, lookup, price_of
from dragoman.drivers.providers import PROVIDERS
from dragoman.ir import Usage
from tests.cli.command import run
from tests.support.promises import promise

ROWS = catalogue.shipped().models


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    catalogue.reset()
    yield
    catalogue.reset()


@promise("agent:catalogue")
def test_every_row_names_its_source_and_its_date() -> None:
    for row in ROWS:
        assert re.fullmatch(r"20\d\d-[01]\d-[0-3]\d", row.checked), row.id
        assert row.source, row.id
        assert row.checked <= catalogue.shipped().date
        assert row.provider in PROVIDERS
    assert set(catalogue.shipped().hosts) <= set(PROVIDERS)


@promise("agent:catalogue")
def test_no_name_leads_to_two_rows_and_no_number_is_out_of_range() -> None:
    names = [(row.provider, name) for row in ROWS for name in (row.id, *row.aliases)]
    assert sorted(names) == sorted(set(names))
    for row in ROWS:
        assert row.context_window is None or row.output_limit is None or row.output_limit <= row.context_window, row.id
        for prices in (row.prices, *row.tiers):
            if prices is not None and prices.cache_read is not None and prices.input is not None:
                assert prices.cache_read <= prices.input, row.id


@promise("agent:catalogue")
def test_the_example_of_each_vendor_is_known() -> None:
    """The models that the documentation uses; servers on one's own machine and deployments have names of their own."""
    for name in ("openai", "openai-chat", "anthropic", "gemini", "vertex", "vertex-anthropic", "bedrock", "cohere"):
        found = lookup(name, PROVIDERS[name].example)
        assert found is not None, name
        assert found.context_window is not None, name
    for name in ("ollama", "azure", "openai-compatible", "local"):
        assert lookup(name, "gpt-5") is None


@promise("agent:catalogue")
@pytest.mark.parametrize(
    ("provider", "model", "found"),
    [
        ("anthropic", "claude-haiku-4-5-20251001", "claude-haiku-4-5"),
        ("bedrock", "eu.anthropic.claude-haiku-4-5-20251001-v1:0", "claude-haiku-4-5"),
        ("vertex-anthropic", "claude-opus-4@20250514", "claude-opus-4-0"),
        ("openrouter", "anthropic/claude-sonnet-5", "claude-sonnet-5"),
        ("openai-chat", "gpt-5-2025-08-07", "gpt-5"),
        ("gemini", "models/gemini-3.8-flash", "gemini-3.8-flash"),
        ("groq", "openai/gpt-oss-120b", "openai/gpt-oss-120b"),
    ],
)
def test_a_model_is_found_in_each_spelling(provider: str, model: str, found: str) -> None:
    row = lookup(provider, model)
    assert row is not None
    assert row.id == found


@promise("agent:catalogue")
@pytest.mark.parametrize("model", ["claude-opus-5-6", "claude-opus-50", "claude-opus-5-mini", "claude-tomorrow", ""])
def test_a_name_that_only_resembles_one_is_not_known(model: str) -> None:
    assert lookup("anthropic", model) is None
    assert price_of("anthropic", model, Usage(1, 1)) is None


@promise("agent:catalogue")
def test_what_another_host_charges_is_not_guessed() -> None:
    at_bedrock = lookup("bedrock", "anthropic.claude-opus-4-8")
    assert at_bedrock is not None
    assert (at_bedrock.context_window, at_bedrock.prices) == (1_000_000, None)
    assert price_of("bedrock", "anthropic.claude-opus-4-8", Usage(1, 1)) is None
    assert lookup("openai", "gpt-5").can("vision") is True  # type: ignore[union-attr]
    assert Model(provider="x", id="y").can("vision") is None


PRICES = Prices(
    input=Decimal(10),
    output=Decimal(50),
    cache_read=Decimal(1),
    cache_write=Decimal("12.5"),
    cache_write_1h=Decimal(20),
)


@promise("agent:catalogue-price")
def test_each_token_is_counted_once() -> None:
    usage = Usage(1000, 100, cached=300, cache_written=200, reasoning=40, details={"cache_written_1h": 50})
    by_hand = 500 * 10 + 300 * 1 + 150 * Decimal("12.5") + 50 * 20 + 100 * 50
    assert PRICES.cost_of(usage) == by_hand / Decimal(1_000_000)
    assert PRICES.cost_of(Usage(1_000_000, 0)) == 10
    assert PRICES.cost_of(Usage()) == 0


@promise("agent:catalogue-price")
@pytest.mark.parametrize(
    "usage",
    [Usage(10, 1, cached=5), Usage(10, 1, cache_written=5), Usage(10, 1, details={"audio_input": 3}), Usage(0, 1)],
)
def test_tokens_of_a_kind_without_a_price_make_it_unknown(usage: Usage) -> None:
    assert Prices(input=Decimal(1)).cost_of(usage) is None
    assert Prices(input=Decimal(1)).cost_of(Usage(10)) == Decimal("0.00001")


@promise("agent:catalogue-price")
def test_a_long_input_is_charged_by_its_tier() -> None:
    tiers = (Tier(above=300, input=Decimal(4), output=Decimal(4)), Tier(above=100, input=Decimal(2), output=Decimal(2)))
    row = Model(provider="x", id="y", prices=Prices(input=Decimal(1), output=Decimal(1)), tiers=tiers)
    costs = [row.price_of(Usage(count, 0)) for count in (100, 101, 300, 301)]
    assert [None if cost is None else cost * 1_000_000 for cost in costs] == [100, 202, 600, 1204]


@promise("agent:catalogue-own")
def test_rows_in_code_come_first() -> None:
    catalogue.register(Model(provider="anthropic", id="claude-sonnet-5", context_window=5))
    catalogue.register(Model(provider="mine", id="small", aliases=("tiny",), context_window=7))
    assert lookup("anthropic", "claude-sonnet-5").context_window == 5  # type: ignore[union-attr]
    assert lookup("mine", "tiny").context_window == 7  # type: ignore[union-attr]
    catalogue.reset()
    assert lookup("mine", "tiny") is None


@promise("agent:catalogue-own")
@pytest.mark.parametrize("kind", ["json", "toml"])
def test_rows_of_a_file_come_first(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {
        "json": '{"models": [{"provider": "azure", "id": "my-gpt", "prices": {"input": 1.5, "output": "3"}}]}',
        "toml": '[[models]]\nprovider = "azure"\nid = "my-gpt"\n[models.prices]\ninput = 1.5\noutput = "3"\n',
    }
    file = tmp_path / f"own.{kind}"
    file.write_text(rows[kind], encoding="utf-8")
    monkeypatch.setenv(catalogue.VARIABLE, str(file))
    assert price_of("azure", "my-gpt", Usage(1_000_000, 1_000_000)) == Decimal("4.5")
    assert lookup("anthropic", "claude-sonnet-5") is not None


@promise("agent:catalogue-own")
@pytest.mark.parametrize("text", ["", "{", '{"models": [{"provider": "a"}]}', '{"models": [], "modles": []}'])
def test_a_file_that_cannot_be_read_is_named(text: str, tmp_path: Path) -> None:
    file = tmp_path / "own.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(CatalogueError, match=r"own\.json: "):
        catalogue.use_file(file)
    with pytest.raises(CatalogueError, match="missing"):
        catalogue.use_file(tmp_path / "missing.json")


@promise("agent:catalogue")
def test_the_command_prints_it() -> None:
    table = run("models", "--catalogue", "anthropic")
    assert table.returncode == 0
    assert b"anthropic/claude-sonnet-5 " in table.stdout
    assert b"1,000,000" in table.stdout
    lines = run("models", "--catalogue", "--json").stdout.splitlines()
    assert len(lines) == len(ROWS)
    assert {json.loads(line)["id"]: json.loads(line) for line in lines}["claude-sonnet-5"]["prices"]["input"] == 2
    assert run("models", "--catalogue", "nonsense").returncode == 2
