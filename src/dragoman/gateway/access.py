"""Who may ask: keys, what they are for, and how much."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from typing import Protocol

from msgspec import Struct

from dragoman.drivers.connecting import Environment
from dragoman.gateway.http11 import Head
from dragoman.gateway.records import Record
from dragoman.gateway.routing import revealed_key
from dragoman.gateway.wording import no_key, no_model, wrong_key
from dragoman.ir import Failure

_MINUTE = 60.0
_BEARERS = ("authorization",)
_HEADERS = ("x-api-key", "x-goog-api-key", "api-key")


class Denied(Exception):
    def __init__(self, failure: Failure) -> None:
        self.failure = failure
        super().__init__(failure.message)


class Grant(Struct, frozen=True, kw_only=True):
    """A key, as far as it is kept: never the key itself."""

    name: str
    digest: str
    models: tuple[str, ...] = ()
    """Names or patterns; none at all means every model."""
    expires: float | None = None
    requests_per_minute: int | None = None
    concurrent: int | None = None
    budget: float | None = None
    """In the currency of the prices, for the key's whole life."""


class Ledger(Protocol):
    """Where keys and usage are kept."""

    def grant(self, digest: str) -> Grant | None: ...

    def spent(self, key: str) -> float: ...

    def add(self, record: Record) -> None: ...

    def any_keys(self) -> bool: ...


def digest_of(key: str) -> str:
    """Keys are long and random, so one round of SHA-256 is enough: there is nothing to guess."""
    return hashlib.sha256(key.encode()).hexdigest()


def shown_key(head: Head) -> str:
    """The key that a client shows, wherever its SDK puts it."""
    for name in _HEADERS:
        if value := head.headers.get(name):
            return value.strip()
    scheme, _, token = head.headers.get("authorization", "").partition(" ")
    if scheme.lower() in {"bearer", "basic"} and token:
        return token.strip()
    return head.parameters.get("key", "") if "key=" in head.query else ""


class _Meter:
    """What one key is doing, and has done in the last minute. In this process: with several, each has its own."""

    __slots__ = ("arrivals", "working")

    def __init__(self) -> None:
        self.arrivals: deque[float] = deque()
        self.working = 0


class Visitor:
    """Whoever made this request."""

    __slots__ = ("_access", "_format", "_grant")

    def __init__(self, access: Access, grant: Grant | None, format: str) -> None:
        self._access = access
        self._grant = grant
        self._format = format

    @property
    def name(self) -> str:
        return "" if self._grant is None else self._grant.name

    def may_use(self, model: str) -> None:
        grant = self._grant
        if grant is not None and grant.models and not any(fnmatchcase(model, one) for one in grant.models):
            raise Denied(no_model(self._format, model))

    @contextmanager
    def working(self) -> Iterator[None]:
        """Within its limits, all along. Raises `Denied`."""
        if self._grant is None:
            yield
            return
        meter = self._access.enter(self._grant)
        try:
            yield
        finally:
            meter.working -= 1


class Access:
    def __init__(self, keys: Sequence[str], environment: Environment, ledger: Ledger | None = None) -> None:
        grants = [_configured(number, key, environment) for number, key in enumerate(keys, 1)]
        self._grants: Mapping[str, Grant] = {grant.digest: grant for grant in grants}
        self._ledger = ledger
        self._meters: dict[str, _Meter] = {}

    @property
    def required(self) -> bool:
        return bool(self._grants) or (self._ledger is not None and self._ledger.any_keys())

    def visitor(self, format: str, head: Head) -> Visitor:
        if not self.required:
            return Visitor(self, None, format)
        key = shown_key(head)
        if not key:
            raise Denied(no_key(format))
        grant = self._find(digest_of(key))
        if grant is None or (grant.expires is not None and time.time() >= grant.expires):
            raise Denied(wrong_key(format))
        return Visitor(self, grant, format)

    def _find(self, digest: str) -> Grant | None:
        found = None
        for known, grant in self._grants.items():  # all of them, always: how long it takes tells nothing
            if hmac.compare_digest(known, digest):
                found = grant
        if found is None and self._ledger is not None:
            found = self._ledger.grant(digest)
        return found

    def enter(self, grant: Grant) -> _Meter:
        meter = self._meters.setdefault(grant.name, _Meter())
        now = time.monotonic()
        while meter.arrivals and now - meter.arrivals[0] >= _MINUTE:
            meter.arrivals.popleft()
        if grant.requests_per_minute is not None and len(meter.arrivals) >= grant.requests_per_minute:
            wait = _MINUTE - (now - meter.arrivals[0]) if meter.arrivals else _MINUTE
            message = f"more than {grant.requests_per_minute} requests a minute with this key"
            raise Denied(Failure("rate_limit", message, 429, retry_after=round(wait, 1)))
        if grant.concurrent is not None and meter.working >= grant.concurrent:
            message = f"more than {grant.concurrent} requests at a time with this key"
            raise Denied(Failure("rate_limit", message, 429, retry_after=1.0))
        if grant.budget is not None and self._ledger is not None and self._ledger.spent(grant.name) >= grant.budget:
            raise Denied(Failure("billing", "the budget of this key is used up", 402))
        meter.arrivals.append(now)
        meter.working += 1
        return meter

    def account(self, record: Record) -> None:
        if self._ledger is not None:
            self._ledger.add(record)


def _configured(number: int, key: str, environment: Environment) -> Grant:
    if key.startswith("sha256:"):
        return Grant(name=f"key-{number}", digest=key.removeprefix("sha256:").lower())
    return Grant(name=f"key-{number}", digest=digest_of(revealed_key(key, environment)))
