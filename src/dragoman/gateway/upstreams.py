"""The upstreams of the gateway: a driver's channel for each key, with a circuit breaker for each model."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct, structs

import dragoman
from dragoman.drivers.connect import Options, open_channel
from dragoman.drivers.providers import Provider
from dragoman.drivers.remote import Channel
from dragoman.drivers.retries import RetryPolicy
from dragoman.drivers.transport import proxy_of_environment
from dragoman.errors import ConnectionFailed, NoAnswer, ProviderError
from dragoman.gateway.upstream_http import UpstreamHttp
from dragoman.ir import Failure, FailureKind

ONCE = RetryPolicy(attempts=1)
# Failures of the model or its server. Other errors concern one request and do not predict the next.
_MODEL_FAILURES: frozenset[FailureKind] = frozenset({"server", "overloaded", "timeout", "truncated"})
# Errors that every upstream would return.
FINAL: frozenset[FailureKind] = frozenset({"invalid_request", "too_large", "cancelled"})
# Errors that are returned before a model works on the request. All vendors document 503 and 529 as such; a 500, 502 or
# 504 may come after minutes of work.
_REFUSED_UNPROCESSED: frozenset[FailureKind] = frozenset(
    {"rate_limit", "overloaded", "authentication", "permission", "billing", "not_found"}
)
_SHORTEST_PAUSE = 1.0
_LONGEST_PAUSE = 60.0
_MOST_BREAKERS = 1_000
BreakerState: TypeAlias = Literal["closed", "half-open", "open"]
_USUAL_HEADERS = {
    "content-type": "application/json",
    "user-agent": f"dragoman/{dragoman.__version__}",
    "accept-encoding": "identity",
}
BREAKER_STATES: tuple[BreakerState, ...] = ("closed", "half-open", "open")


def was_processed(error: ProviderError) -> bool:
    """Whether the upstream may have worked on the request, so that a retry could run it twice."""
    if isinstance(error, ConnectionFailed):
        return isinstance(error, NoAnswer)
    return error.kind not in _REFUSED_UNPROCESSED


class BreakerSettings(Struct, frozen=True, kw_only=True):
    failures: int = 5
    """Failures in a row that open the breaker."""
    seconds: float = 10.0
    """How long it stays open."""


class Breaker:
    """The circuit breaker of one model: closed, open for a while, then half open, when one request may try."""

    __slots__ = ("_clock", "_failures", "_settings", "_trying", "_until", "limited")

    def __init__(self, settings: BreakerSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self._settings = settings
        self._clock = clock
        self._failures = 0
        self._trying = False
        self._until = 0.0
        self.limited: tuple[float, Failure] | None = None
        """Set while the model is rate limited: when that ends, and the provider's error."""

    @property
    def state(self) -> BreakerState:
        if not self._until:
            return "closed"
        return "open" if self._clock() < self._until else "half-open"

    @property
    def is_idle(self) -> bool:
        """Whether this breaker has no state and can be dropped."""
        return not self._until and not self._failures

    def admits(self) -> bool:
        return not self._until or (self._clock() >= self._until and not self._trying)

    def refusal(self, name: str) -> Failure:
        """Return the error for requests while the breaker is open; `name` is the model's."""
        now = self._clock()
        if self.limited is not None:
            until, failure = self.limited
            wait = max(until - now, 1.0)
            return structs.replace(failure, message=f"{name}: {failure.message}", status=429, retry_after=round(wait))
        wait = max(self._until - now, 1.0)
        message = f"{name} failed too often; the gateway tries it again in {wait:.0f} s"
        return Failure("overloaded", message, 503, retry_after=float(round(wait)))

    def begin(self) -> None:
        self._trying = bool(self._until)

    def record_success(self) -> None:
        self._failures, self._until, self._trying, self.limited = 0, 0.0, False, None

    def release(self) -> None:
        """End an attempt that shows nothing about the model: the client left, or the request could not be encoded."""
        self._trying = False

    def record_failure(self, error: ProviderError) -> None:
        self._trying = False
        if error.kind == "rate_limit":
            self._open_while_limited(error)
        elif error.kind in _MODEL_FAILURES or isinstance(error, ConnectionFailed):
            self._failures += 1
            self.limited = None
            if self._failures >= self._settings.failures or self._until:
                self._until = self._clock() + self._settings.seconds
        else:
            self.record_success()

    def _open_while_limited(self, error: ProviderError) -> None:
        """Open the breaker for as long as the provider asks; without `retry_after` the next request may try."""
        wait = error.retry_after or 0.0
        if wait < _SHORTEST_PAUSE:
            self.record_success()
            return
        self._until = self._clock() + min(wait, _LONGEST_PAUSE)
        self.limited = (self._clock() + wait, error.failure)


class ModelBreakers:
    """A breaker for each model of an upstream, created on first use.

    Clients choose the names, so their number is bounded: breakers without failures are dropped first.
    """

    def __init__(self, settings: BreakerSettings, *, most: int = _MOST_BREAKERS) -> None:
        self._settings = settings
        self._most = most
        self._breakers: dict[str, Breaker] = {}

    def __getitem__(self, model: str) -> Breaker:
        breaker = self._breakers.get(model)
        if breaker is None:
            if len(self._breakers) >= self._most:
                self._forget()
            breaker = self._breakers[model] = Breaker(self._settings)
        return breaker

    def _forget(self) -> None:
        busy = {model: breaker for model, breaker in self._breakers.items() if not breaker.is_idle}
        while len(busy) >= self._most:
            busy.pop(next(iter(busy)))
        self._breakers = busy

    def states(self) -> dict[str, BreakerState]:
        return {model: breaker.state for model, breaker in self._breakers.items()}

    @property
    def worst(self) -> BreakerState:
        """The worst state of any model."""
        return max(self.states().values(), key=BREAKER_STATES.index, default="closed")


class Upstream:
    """One provider with one key."""

    __slots__ = ("breakers", "channel", "headers", "in_flight", "name", "place")

    def __init__(self, place: str, name: str, channel: Channel, breakers: ModelBreakers) -> None:
        self.place = place
        """The provider's name in the configuration."""
        self.name = name
        """`place`, with the number of the key if there are several."""
        self.channel = channel
        self.breakers = breakers
        self.in_flight = 0
        self.headers: dict[str, str] = {**_USUAL_HEADERS, **channel.provider.headers, **channel.headers}
        """Headers of every request, before it is signed."""

    def __repr__(self) -> str:
        return f"Upstream({self.name!r})"


def _open_channel(provider: Provider, options: Options) -> Channel:
    """Open a channel with the gateway's own HTTP client, except behind a proxy or for a model in this process.

    Those use the drivers' transports, whose packages are loaded only when needed.
    """
    channel = open_channel(provider, {**options, "transport": UpstreamHttp(options.get("tls"))})
    proxy = options.get("proxy")
    if proxy is None:
        proxy = proxy_of_environment(channel.base_url)
    return open_channel(provider, options) if proxy or channel.base_url.startswith("local://") else channel


def open_upstreams(
    name: str, provider: Provider, options: Options, keys: Sequence[str], breaker: BreakerSettings
) -> tuple[Upstream, ...]:
    """Open an upstream per key; without keys, one with the key of the environment. Raises `NotConfigured`."""
    once: Options = {**options, "retry": ONCE}
    given: list[Options] = [{**once, "api_key": key} for key in keys] or [once]
    channels = [_open_channel(provider, one) for one in given]
    single = len(channels) == 1
    return tuple(
        Upstream(name, name if single else f"{name}#{number}", channel, ModelBreakers(breaker))
        for number, channel in enumerate(channels, 1)
    )
