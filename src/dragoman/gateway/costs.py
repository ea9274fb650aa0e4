"""Computes what requests cost, from the prices of the configuration or else of the catalogue."""

from __future__ import annotations

from decimal import Decimal

from msgspec import Struct

from dragoman.catalogue import Model, Prices, lookup
from dragoman.catalogue.models import tokens_by_price
from dragoman.drivers.providers import ALIASES
from dragoman.gateway.config import Config, Price
from dragoman.ir import Usage

CURRENCY = "USD"
"""The currency of all sums. A catalogue row in another currency counts as unknown."""
_MILLION = 1_000_000
_MOST_REMEMBERED = 1_000
"""Maximum number of models whose rates are cached: clients choose the names."""


class Rates(Struct, frozen=True, kw_only=True):
    """Prices of one token of each kind; None if unknown."""

    input: float | None
    output: float | None
    cache_read: float | None
    cache_write: float | None
    cache_write_1h: float | None
    audio_input: float | None
    audio_output: float | None
    above: int = 0
    """These rates apply to requests with more input tokens than this."""
    longer: Rates | None = None
    """The rates of the next tier."""

    def cost(self, usage: Usage) -> float | None:
        """Return the price of all tokens, each counted once; None if the price of some kind of token is unknown."""
        if self.longer is not None and usage.input > self.longer.above:
            return self.longer.cost(usage)
        if usage.cached or usage.cache_written or usage.details or self.input is None or self.output is None:
            return self._detailed_cost(usage)
        return usage.input * self.input + usage.output * self.output

    def _detailed_cost(self, usage: Usage) -> float | None:
        total = 0.0
        for kind, tokens in tokens_by_price(usage):
            if tokens:
                price: float | None = getattr(self, kind)
                if price is None:
                    return None
                total += tokens * price
        return total


class PriceList:
    """The prices of one configuration."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._rates: dict[tuple[str, str], Rates | None] = {}

    def rates(self, upstream: str, model: str) -> Rates | None:
        """Return rates configured for `provider/model` or the model alone, or else the catalogue's; None if unknown."""
        key = (upstream, model)
        if key in self._rates:
            return self._rates[key]
        if len(self._rates) >= _MOST_REMEMBERED:
            self._rates.clear()
        found = self._rates[key] = self._find(upstream.partition("#")[0], model)
        return found

    def cost(self, upstream: str, model: str, usage: Usage) -> float | None:
        found = self._rates.get((upstream, model)) or self.rates(upstream, model)
        cost = None if found is None else found.cost(usage)
        # Rounded, so that logs do not show 0.0007860000000000001. A token costs more than 1e-10.
        return None if cost is None else max(round(cost, 12), 0.0)

    def _find(self, place: str, model: str) -> Rates | None:
        prices = self._config.prices
        configured = prices.get(f"{place}/{model}") or prices.get(model)
        if configured is not None:
            return _rates_of_price(configured)
        table = self._config.providers.get(place)
        kind = table.kind if table is not None and table.kind else place
        row = lookup(ALIASES.get(kind, kind), model)
        return None if row is None or row.currency != CURRENCY else _rates_of_row(row)


def _rates_of_price(price: Price) -> Rates:
    """Return rates of a configured price; kinds that it does not name cost as much as other input or output."""
    written = price.input if price.cache_written is None else price.cache_written
    return Rates(
        input=price.input / _MILLION,
        output=price.output / _MILLION,
        cache_read=(price.input if price.cached is None else price.cached) / _MILLION,
        cache_write=written / _MILLION,
        cache_write_1h=written / _MILLION,
        audio_input=price.input / _MILLION,
        audio_output=price.output / _MILLION,
    )


def _rates_of_row(row: Model) -> Rates | None:
    longer: Rates | None = None
    for tier in sorted(row.tiers, key=lambda one: one.above, reverse=True):
        longer = _rates(tier, tier.above, longer)
    return None if row.prices is None else _rates(row.prices, 0, longer)


def _rates(prices: Prices, above: int, longer: Rates | None) -> Rates:
    return Rates(
        input=_per_token(prices.input),
        output=_per_token(prices.output),
        cache_read=_per_token(prices.cache_read),
        cache_write=_per_token(prices.cache_write),
        cache_write_1h=_per_token(prices.cache_write_1h),
        audio_input=_per_token(prices.audio_input),
        audio_output=_per_token(prices.audio_output),
        above=above,
        longer=longer,
    )


def _per_token(price: Decimal | None) -> float | None:
    return None if price is None else float(price) / _MILLION
