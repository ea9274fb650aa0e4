"""Access control: which keys are valid, which models they may use, and their limits."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import re
import time
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from dragoman.drivers.connect import Environment
from dragoman.gateway.gateway_errors import missing_key, unknown_model, wrong_key
from dragoman.gateway.http_request import Head
from dragoman.gateway.request_records import Record
from dragoman.gateway.routing import revealed_key
from dragoman.gateway.state.base import Entry, Exceeded, Grant, Limit, OverBudget, Ticket, day_of
from dragoman.gateway.state.ledger import Ledger
from dragoman.ir import Failure

_ID_LENGTH = 32
_HEADERS = ("x-api-key", "x-goog-api-key", "api-key")
_LIMITS: Mapping[Limit, tuple[str, str]] = {
    "requests": ("requests_per_minute", "more than {} requests a minute with this key"),
    "concurrent": ("concurrent", "more than {} requests at a time with this key"),
    "tokens": ("tokens_per_minute", "more than {} tokens a minute with this key"),
}

_SPENT = Failure("billing", "the budget of this key is used up", 402)
_RESERVED = Failure(
    "rate_limit", "requests in progress have reserved the rest of this key's budget", 429, retry_after=1.0
)
_SIGNED = re.compile(r"AWS4-HMAC-SHA256 Credential=([^/,\s]+)/")


class Denied(Exception):
    def __init__(self, failure: Failure) -> None:
        self.failure = failure
        super().__init__(failure.message)


def digest_of(key: str) -> str:
    """Return the SHA-256 of a key. Keys are long and random, so one round is enough."""
    return hashlib.sha256(key.encode()).hexdigest()


def presented_key(head: Head) -> str:
    """Return the key that the client sent, in whichever place its SDK puts it; empty if there is none."""
    for name in _HEADERS:
        if value := head.headers.get(name):
            return value.strip()
    scheme, _, token = head.headers.get("authorization", "").partition(" ")
    if scheme.lower() in {"bearer", "basic"} and token:
        return token.strip()
    # Amazon's SDKs send a bearer token only over TLS. Without it they sign requests, and the key is the access key id.
    if signed := _SIGNED.match(head.headers.get("authorization", "")):
        return signed[1]
    return head.parameters.get("key", "") if "key=" in head.query else ""


class Caller:
    """The key or address that made this request."""

    __slots__ = ("_access", "_format", "_ticket", "grant", "id", "name")

    def __init__(self, access: Access, grant: Grant | None, format: str) -> None:
        self._access = access
        self.grant = grant
        self._format = format
        self._ticket: Ticket | None = None
        self.name = "" if grant is None else grant.name
        self.id = "" if grant is None else grant.id
        """The owner under which this client's data is stored."""

    @property
    def has_budget(self) -> bool:
        grant = self.grant
        return grant is not None and not (grant.budget is None and grant.token_budget is None)

    @property
    def is_restricted(self) -> bool:
        """Whether the key is limited to some models, or has a budget."""
        return self.grant is not None and (bool(self.grant.models) or self.has_budget)

    def allows(self, model: str) -> bool:
        grant = self.grant
        return grant is None or not grant.models or any(fnmatchcase(model, one) for one in grant.models)

    def may_use(self, model: str) -> None:
        """Check that the key may use this model. Raises `Denied`."""
        if self.grant is not None and not self.allows(model.removeprefix("models/")):
            raise Denied(unknown_model(self._format, model))

    async def enter(self, request: str, cost: float, tokens: int) -> None:
        """Admit a request under the limits of its key, with its expected cost and tokens. Raises `Denied`."""
        if self.grant is not None:
            self._ticket = await self._access.enter(self.grant, request, cost, tokens)

    async def enter_free(self) -> None:
        """Admit a request that costs nothing under the rates of its key. Raises `Denied`.

        Nothing is reserved: a reservation ends when the usage of its request is recorded, and this one has none.
        """
        if self.grant is not None:
            self._ticket = await self._access.meter(self.grant)

    async def settle(self, record: Record) -> None:
        """Record the cost and free the slot for the next request, before the last byte is sent."""
        if self.grant is None:
            return
        await self._access.settle(record)
        ticket, self._ticket = self._ticket, None
        if ticket is not None:
            usage = record.usage
            await asyncio.shield(self._access.leave(ticket, 0 if usage is None else usage.input + usage.output))

    def leave(self) -> asyncio.Task[None] | None:
        """Free the slot, even if nothing was settled; return the task that does it, if there was a slot."""
        ticket, self._ticket = self._ticket, None
        return None if ticket is None else self._access.leave(ticket, 0)

    def hand_over(self) -> Caller:
        """Return a caller that takes over the slot, for work that continues after this request is answered."""
        other = Caller(self._access, self.grant, self._format)
        other._ticket, self._ticket = self._ticket, None
        return other


class Access:
    """Checks keys. `house` is the key of the gateway's page: always valid, but it does not make keys required."""

    def __init__(
        self, keys: Sequence[str], environment: Environment, ledger: Ledger | None = None, house: str = ""
    ) -> None:
        grants = [_configured_grant(number, key, environment) for number, key in enumerate(keys, 1)]
        self._grants: Mapping[str, Grant] = {grant.digest: grant for grant in grants}
        self._ledger = ledger
        self._house = Grant(name="page", digest=digest_of(house), id="config:page") if house else None
        self._leaving: set[asyncio.Task[None]] = set()
        self._anonymous: dict[str, Caller] = {}

    @property
    def required(self) -> bool:
        return bool(self._grants) or (self._ledger is not None and self._ledger.locked)

    async def refresh(self) -> None:
        """Refresh the ledger, so that a first key that was just created counts immediately."""
        if self._ledger is not None:
            await self._ledger.refresh()

    async def caller(self, format: str, head: Head, digest: str = "") -> Caller:
        """Return the caller of a request. Raises `Denied`.

        `digest` identifies a key that was checked earlier, for a request made on behalf of its owner.
        """
        if not self.required:
            return self.anonymous(format)
        key = presented_key(head)
        if not key and not digest:
            raise Denied(missing_key(format))
        grant = await self.find(digest or digest_of(key))
        if grant is None:
            raise Denied(wrong_key(format))
        return Caller(self, grant, format)

    def anonymous(self, format: str) -> Caller:
        """Return the caller of requests without a key, where none is required. It has no state, so it is shared."""
        return self._anonymous.get(format) or self._anonymous.setdefault(format, Caller(self, None, format))

    async def find(self, digest: str) -> Grant | None:
        """Return the key with this digest if it is valid now."""
        if self._house is not None and hmac.compare_digest(self._house.digest, digest):
            return self._house
        found = None
        for known, grant in self._grants.items():  # always all of them: the time taken reveals nothing
            if hmac.compare_digest(known, digest):
                found = grant
        if found is None and self._ledger is not None and self._ledger.locked:
            found = await self._ledger.grant(digest)
        expired = found is not None and found.expires is not None and time.time() >= found.expires
        return None if expired else found

    @property
    def unrecorded(self) -> Mapping[str, int]:
        """How many requests have usage that waits for an unreachable database, and how many have lost it."""
        ledger = self._ledger
        return {"usage_waiting": ledger.unwritten, "usage_lost": ledger.dropped} if ledger is not None else {}

    @property
    def problem(self) -> str:
        """Why keys cannot be checked; empty if they can."""
        ledger = self._ledger
        return ledger.away if ledger is not None and ledger.locked else ""

    # ── limits ──

    async def enter(self, grant: Grant, request: str, cost: float, tokens: int) -> Ticket | None:
        if self._ledger is None:
            return None
        if not (grant.budget is None and grant.token_budget is None):
            try:
                await self._ledger.reserve(grant, request, cost, tokens)
            except OverBudget as over:
                raise Denied(_SPENT if over.is_spent else _RESERVED) from None
        return await self.meter(grant) if grant.metered else None

    async def meter(self, grant: Grant) -> Ticket | None:
        """Admit a request under the rates of its key. Raises `Denied`."""
        if self._ledger is None or not grant.metered:
            return None
        try:
            return await self._ledger.enter(grant)
        except Exceeded as exceeded:
            field, words = _LIMITS[exceeded.limit]
            message = words.format(getattr(grant, field))
            wait = round(max(exceeded.retry_after, 0.1), 1)
            raise Denied(Failure("rate_limit", message, 429, retry_after=wait)) from None

    def leave(self, ticket: Ticket, tokens: int) -> asyncio.Task[None]:
        """Free the slot in a separate task, so that a cancelled request frees it too."""
        assert self._ledger is not None  # noqa: S101 - tickets come from there
        task = asyncio.ensure_future(self._ledger.leave(ticket, tokens))
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)
        return task

    # ── usage ──

    async def settle(self, record: Record) -> None:
        if self._ledger is not None and not record.settled:
            record.settled = True
            await self._ledger.settle(_entry(record))

    def account(self, record: Record) -> None:
        """Record the usage of requests that were not settled: those without a key, and those that failed."""
        if self._ledger is not None and not record.settled and (self._ledger.keeps_all or record.key):
            record.settled = True
            self._ledger.add(_entry(record))


def _entry(record: Record) -> Entry:
    usage, now = record.usage, time.time()
    return Entry(
        id=record.id,
        time=now,
        day=day_of(now),
        key=record.key,
        key_id=record.key_id,
        client=record.client,
        model=record.model,
        upstream=record.upstream,
        target=record.target,
        status=record.status,
        seconds=record.seconds,
        input=None if usage is None else usage.input,
        output=None if usage is None else usage.output,
        cached=None if usage is None else usage.cached,
        cost=record.cost,
    )


def _configured_grant(number: int, key: str, environment: Environment) -> Grant:
    """Return the grant of a configured key.

    It is named by its position but identified by its digest, so that reordering the file does not change who owns
    which data.
    """
    hashed = key.startswith("sha256:")
    digest = key.removeprefix("sha256:").lower() if hashed else digest_of(revealed_key(key, environment))
    return Grant(name=f"key-{number}", digest=digest, id=f"config:{digest[:_ID_LENGTH]}")
