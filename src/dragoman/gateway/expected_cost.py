"""Estimates what a request will cost before it is sent. Budgets reserve the amount while the request runs."""

from __future__ import annotations

from msgspec import Struct

from dragoman.gateway.client_request import ClientRequest
from dragoman.gateway.costs import CURRENCY, PriceList
from dragoman.gateway.routing import Plan
from dragoman.gateway.token_counting import estimate
from dragoman.ir import Usage

_MARGIN = 4 / 3
"""Input token estimates are off by up to about 20 %; a reservation should rather be too large than too small."""
EXPECTED_OUTPUT = 4_096
"""Output tokens to expect if neither the client nor the route limits them."""
ESTIMATE_HEADER = "x-dragoman-estimate"
"""A request with this header is not sent to a provider: the answer is what it would use and cost."""


class Expected(Struct, frozen=True):
    """What a request is expected to use."""

    input: int
    output: int
    cost: float | None = None
    """The cost at the most expensive candidate; None if no price is known."""


NOTHING_EXPECTED = Expected(0, 0)


class Estimate(Struct, frozen=True, kw_only=True):
    """The answer to a request that asks for an estimate."""

    object: str = "estimate"
    input_tokens: int
    output_tokens: int
    """The limit of the client or the route; `EXPECTED_OUTPUT` if neither sets one."""
    cost: float | None
    currency: str = CURRENCY
    models: list[str]
    """The models that would be tried, as `provider/model`, in order."""


def make_estimate(expected: Expected, plan: Plan) -> Estimate:
    models = list(dict.fromkeys(f"{one.upstream.place}/{one.model}" for one in plan.candidates))
    return Estimate(input_tokens=expected.input, output_tokens=expected.output, cost=expected.cost, models=models)


def expected_use(client_request: ClientRequest, plan: Plan, prices: PriceList) -> Expected:
    """Estimate what a request will use and cost. Raises `DecodeError` for an invalid request."""
    request = client_request.decode()
    limits = (request.max_output_tokens, plan.settings.max_output_tokens)
    given = [limit for limit in limits if limit is not None]
    output = (min(given) if given else EXPECTED_OUTPUT) * (request.candidates or 1)
    usage = Usage(input=round(estimate(client_request.body) * _MARGIN), output=output)
    costs = [prices.cost(one.upstream.name, one.model, usage) for one in plan.candidates]
    known = [cost for cost in costs if cost is not None]
    return Expected(usage.input, output, max(known) if known else None)
