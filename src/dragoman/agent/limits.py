"""Limits of one run, checked before the next request to the model and before tools run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Literal, TypeAlias

from msgspec import Struct

from dragoman.agent.token_totals import tokens_of
from dragoman.catalogue import Model, lookup
from dragoman.errors import InvalidValue, NotConfigured
from dragoman.ir import Usage

LimitName: TypeAlias = Literal[
    "requests", "tool_calls", "input_tokens", "output_tokens", "total_tokens", "cost", "seconds"
]

_NOTHING = Decimal(0)
_DETAILS = ("cached", "cache_written", "reasoning", "image", "total")


class LimitReached(Struct, frozen=True):
    """The limit that ended a run, and how much had been used."""

    limit: LimitName
    allowed: float
    used: float


class Limits(Struct, frozen=True, kw_only=True):
    """What one run may use; None means unlimited."""

    requests: int | None = None
    """Requests to the model, including those for compaction."""
    tool_calls: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    cost: Decimal | float | None = None
    """In the currency of the catalogue; a model without a price there cannot run under this limit."""
    seconds: float | None = None

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            allowed = getattr(self, name)
            if allowed is not None and not allowed > 0:
                hint = "leave it out for no limit; a run that may do nothing should not be started"
                raise InvalidValue(path=f"Limits.{name}", expected="a number above 0", found=repr(allowed), hint=hint)


class Spending:
    """What a run has used so far, including its sub-agents."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.requests = 0
        self.tool_calls = 0
        self.input_tokens = 0
        self.output_tokens = 0
        self.total_tokens = 0
        self.cost: Decimal | None = _NOTHING
        """None as soon as a model without a known price has answered."""
        self._details: dict[str, int] = {}
        """Counts that not every provider reports."""
        self._priced: tuple[str, Model | None] = ("", None)
        self._now = now
        self._started: float | None = None

    def count(self, model: str, usage: Usage) -> None:
        self.input_tokens += usage.input
        self.output_tokens += usage.output
        self.total_tokens += tokens_of(usage)
        for name in _DETAILS:
            found = getattr(usage, name)
            if found is not None:
                self._details[name] = self._details.get(name, 0) + found
        if self.cost is not None:
            if self._priced[0] != model:
                provider, _, name = model.partition("/")
                self._priced = (model, lookup(provider, name))
            row = self._priced[1]
            price = None if row is None else row.price_of(usage)
            self.cost = None if price is None else self.cost + price

    @property
    def usage(self) -> Usage:
        counts: dict[str, int] = dict(self._details)
        if "total" in counts:
            counts["total"] = self.total_tokens
        return Usage(self.input_tokens, self.output_tokens, **counts)  # type: ignore[arg-type]

    def find_reached(self, limits: Limits) -> LimitReached | None:
        """Return the first limit that leaves nothing for a further request."""
        for name, measure in _MEASURES.items():
            allowed = getattr(limits, name)
            if allowed is not None and measure(self) >= allowed:
                return LimitReached(name, float(allowed), float(measure(self)))
        return None

    def find_reached_by_calls(self, limits: Limits, calls: int) -> LimitReached | None:
        """Return the limit if this many further tool calls would exceed it."""
        if limits.tool_calls is None or self.tool_calls + calls <= limits.tool_calls:
            return None
        return LimitReached("tool_calls", limits.tool_calls, self.tool_calls)

    def start_clock(self) -> None:
        self._started = self._now()

    @property
    def seconds(self) -> float:
        return 0.0 if self._started is None else self._now() - self._started


_MEASURES: Mapping[LimitName, Callable[[Spending], float | Decimal]] = {
    "requests": lambda spent: spent.requests,
    "input_tokens": lambda spent: spent.input_tokens,
    "output_tokens": lambda spent: spent.output_tokens,
    "total_tokens": lambda spent: spent.total_tokens,
    "cost": lambda spent: spent.cost or _NOTHING,
    "seconds": lambda spent: spent.seconds,
}


def check_price(limits: Limits, model: str) -> None:
    """Raise `NotConfigured` if a cost limit is set and the price of the model is not known."""
    provider, _, name = model.partition("/")
    row = lookup(provider, name) if limits.cost is not None else None
    if limits.cost is not None and (row is None or row.prices is None):
        raise NotConfigured(
            f"the price of {model} is not known, so Limits(cost=…) cannot be enforced: add a row to the catalogue "
            "(dragoman.catalogue.register, or a file named by DRAGOMAN_CATALOGUE), or limit tokens instead",
            missing="price",
        )
