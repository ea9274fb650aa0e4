"""What a request will probably cost, before it is sent: budgets reserve it while the request is under way."""

from __future__ import annotations

from collections.abc import Mapping

from dragoman.gateway.client_request import ClientRequest
from dragoman.gateway.config import Price
from dragoman.gateway.request_records import price_of
from dragoman.gateway.routing import Plan
from dragoman.gateway.token_counting import estimate

_MILLION = 1_000_000
_MARGIN = 4 / 3
"""Estimates of input tokens are within some 20 %; a reservation should rather be too large than too small."""
EXPECTED_OUTPUT = 4_096
"""Output tokens where neither the client nor the route limits them."""


def expected_cost(client_request: ClientRequest, plan: Plan, prices: Mapping[str, Price]) -> float:
    """At the price of the dearest candidate. Raises `DecodeError` for what the client sent."""
    priced = [price_of(prices, one.upstream.name, one.model) for one in plan.candidates]
    known = [price for price in priced if price is not None]
    if not known:
        return 0.0
    request = client_request.decoded()
    limits = (request.max_output_tokens, plan.settings.max_output_tokens)
    given = [limit for limit in limits if limit is not None]
    output = (min(given) if given else EXPECTED_OUTPUT) * (request.candidates or 1)
    tokens = estimate(client_request.body) * _MARGIN
    return max(tokens * price.input + output * price.output for price in known) / _MILLION
