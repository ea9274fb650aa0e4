"""Where answers come from: channels of the drivers, each with a breaker, tried in order until one begins to answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from msgspec import Struct, structs

from dragoman.drivers.connecting import Options, open_channel
from dragoman.drivers.http import HttpTransport
from dragoman.drivers.providers import Provider
from dragoman.drivers.remote import Channel
from dragoman.drivers.retries import RetryPolicy
from dragoman.errors import ConnectionFailed, ProviderError
from dragoman.gateway.wire import WireTransport
from dragoman.ir import FailureKind

ONCE = RetryPolicy(attempts=1)
# What tells that the upstream itself is not well. A refusal of one request says nothing about the next.
_UNWELL: frozenset[FailureKind] = frozenset({"server", "overloaded", "timeout", "truncated"})
# What would be the same everywhere.
FINAL: frozenset[FailureKind] = frozenset({"invalid_request", "too_large", "cancelled"})
_LONGEST_REST = 60.0


class BreakerSettings(Struct, frozen=True, kw_only=True):
    failures: int = 5
    """In a row, after which nobody is sent there for a while."""
    seconds: float = 10.0


class Breaker:
    """Closed, open for a while, then half open: one request finds out."""

    __slots__ = ("_clock", "_failures", "_settings", "_trying", "until")

    def __init__(self, settings: BreakerSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self._settings = settings
        self._clock = clock
        self._failures = 0
        self._trying = False
        self.until = 0.0

    @property
    def state(self) -> str:
        if not self.until:
            return "closed"
        return "open" if self._clock() < self.until else "half-open"

    def admits(self) -> bool:
        return not self.until or (self._clock() >= self.until and not self._trying)

    def begin(self) -> None:
        self._trying = bool(self.until)

    def succeeded(self) -> None:
        self._failures, self.until, self._trying = 0, 0.0, False

    def released(self) -> None:
        """Nothing was learnt: the client went away, or the request itself was refused."""
        self._trying = False

    def failed(self, error: ProviderError) -> None:
        self._trying = False
        if error.kind == "rate_limit" and error.retry_after:
            self.until = self._clock() + min(error.retry_after, _LONGEST_REST)
        elif error.kind in _UNWELL or isinstance(error, ConnectionFailed):
            self._failures += 1
            if self._failures >= self._settings.failures or self.until:
                self.until = self._clock() + self._settings.seconds
        else:
            self.succeeded()


class Upstream:
    """One provider with one key."""

    __slots__ = ("breaker", "channel", "in_flight", "name")

    def __init__(self, name: str, channel: Channel, breaker: Breaker) -> None:
        self.name = name
        self.channel = channel
        self.breaker = breaker
        self.in_flight = 0

    def __repr__(self) -> str:
        return f"Upstream({self.name!r})"


def _direct(channel: Channel, options: Options) -> Channel:
    """Without a proxy in between, the gateway speaks to the upstream itself."""
    transport = channel.transport
    if not isinstance(transport, HttpTransport) or transport.proxied:
        return channel
    return structs.replace(channel, transport=WireTransport(options.get("tls")))


def open_upstreams(
    name: str, provider: Provider, options: Options, keys: Sequence[str], breaker: BreakerSettings
) -> tuple[Upstream, ...]:
    """One for each key; without any, one with the key that the environment has. Raises `NotConfigured`."""
    once: Options = {**options, "retry": ONCE}
    given: list[Options] = [{**once, "api_key": key} for key in keys] or [once]
    channels = [_direct(open_channel(provider, one), one) for one in given]
    single = len(channels) == 1
    return tuple(
        Upstream(name if single else f"{name}#{number}", channel, Breaker(breaker))
        for number, channel in enumerate(channels, 1)
    )
