"""Estimates what a request will cost before it is sent. Budgets reserve the amount while the request runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct, structs

from dragoman.gateway.access import Caller, Denied
from dragoman.gateway.client_request import ClientRequest
from dragoman.gateway.costs import CURRENCY, PriceList
from dragoman.gateway.request_records import Record
from dragoman.gateway.routing import Candidate, Plan
from dragoman.gateway.token_counting import estimate
from dragoman.ir import Completion, Failure, Usage
from dragoman.ir.values import encode_json

_MARGIN = 4 / 3
"""Input token estimates are off by up to about 20 %; a reservation should rather be too large than too small."""
EXPECTED_OUTPUT = 4_096
"""Output tokens to expect if neither the client nor the route limits them."""
_MOST_TOKENS = 1 << 40
"""More than any model writes; databases hold no larger numbers than 2^63."""
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
    # Some servers take a negative limit for none. As a reservation it would make room for other requests.
    given = [limit for limit in limits if limit is not None and limit > 0]
    output = min((min(given) if given else EXPECTED_OUTPUT) * max(request.candidates or 1, 1), _MOST_TOKENS)
    return expected_at(plan.candidates, round(estimate(client_request.body) * _MARGIN), output, prices)


def expected_at(candidates: Iterable[Candidate], input: int, output: int, prices: PriceList) -> Expected:
    """Return this use, and its cost at the most expensive candidate."""
    usage = Usage(input=input, output=output)
    costs = [prices.cost(one.upstream.name, one.model, usage) for one in candidates]
    return Expected(input, output, max((cost for cost in costs if cost is not None), default=None))


def tokens_of_size(size: int) -> int:
    """Return how many tokens a body has, or more: text has four bytes for each, and lists of tokens five."""
    return 1 + size // 4


def everything_left(caller: Caller) -> Expected:
    """Reserve the whole budget of a key, for use without a bound: nothing else is admitted beside it."""
    grant = caller.grant
    if grant is None or not caller.has_budget:
        return NOTHING_EXPECTED
    return Expected(grant.token_budget or 0, 0, grant.budget)


def with_prices(caller: Caller, candidates: Sequence[Candidate], prices: PriceList, what: str) -> tuple[Candidate, ...]:
    """Return the candidates whose cost counts towards the budget of the key. Raises `Denied` if there are none."""
    if caller.grant is None or caller.grant.budget is None:
        return tuple(candidates)
    some = Usage(input=1, output=1)
    priced = tuple(one for one in candidates if prices.cost(one.upstream.name, one.model, some) is not None)
    if not priced:
        named = ", ".join(dict.fromkeys(one.model for one in candidates if one.model)) or "an unnamed model"
        raise unmetered(f"{what} by {named} has no price here (see [prices])")
    return priced


def unmetered(reason: str) -> Denied:
    """A key with a budget may not spend what cannot be counted."""
    return Denied(Failure("permission", f"This key has a budget, and {reason}: its cost could not be counted.", 403))


def note_use(record: Record, completion: Completion) -> None:
    """Record the usage of an answer. Where the upstream reports none, or not yet, a budget counts an estimate."""
    record.usage = usage = completion.usage
    if record.expected is None or (usage is not None and completion.finish is not None):
        return
    output = estimate(encode_json(completion.messages)) if completion.messages else 0
    if usage is None:
        record.expected = structs.replace(record.expected, output=output)
    elif output > usage.output:
        record.usage = structs.replace(usage, output=output)


def charge_expected(record: Record) -> None:
    """Charge what was expected, if an upstream was sent the request and its usage is unknown."""
    if record.usage is None and record.cost is None and record.upstream:
        record.usage = record.expected
