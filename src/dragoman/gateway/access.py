"""Who may ask: keys, what they are for, and how much."""

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
    "rate_limit", "requests under way have reserved the rest of this key's budget", 429, retry_after=1.0
)
_SIGNED = re.compile(r"AWS4-HMAC-SHA256 Credential=([^/,\s]+)/")


class Denied(Exception):
    def __init__(self, failure: Failure) -> None:
        self.failure = failure
        super().__init__(failure.message)


def digest_of(key: str) -> str:
    """Keys are long and random, so one round of SHA-256 is enough: there is nothing to guess."""
    return hashlib.sha256(key.encode()).hexdigest()


def presented_key(head: Head) -> str:
    """The key that a client shows, wherever its SDK puts it."""
    for name in _HEADERS:
        if value := head.headers.get(name):
            return value.strip()
    scheme, _, token = head.headers.get("authorization", "").partition(" ")
    if scheme.lower() in {"bearer", "basic"} and token:
        return token.strip()
    # Amazon's SDK shows a bearer token over TLS only, and signs elsewhere: the key stands where its key id would.
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
        """What belongs to this client is kept under this."""

    @property
    def has_budget(self) -> bool:
        grant = self.grant
        return grant is not None and not (grant.budget is None and grant.token_budget is None)

    @property
    def is_restricted(self) -> bool:
        """Whether it matters to this key which model answers."""
        return self.grant is not None and (bool(self.grant.models) or self.has_budget)

    def allows(self, model: str) -> bool:
        grant = self.grant
        return grant is None or not grant.models or any(fnmatchcase(model, one) for one in grant.models)

    def may_use(self, model: str) -> None:
        """Raises `Denied`."""
        if self.grant is not None and not self.allows(model.removeprefix("models/")):
            raise Denied(unknown_model(self._format, model))

    async def enter(self, request: str, cost: float, tokens: int) -> None:
        """Admit a request under the limits of its key, with its expected cost and tokens. Raises `Denied`."""
        if self.grant is not None:
            self._ticket = await self._access.enter(self.grant, request, cost, tokens)

    async def settle(self, record: Record) -> None:
        """Before the last byte leaves: record the cost and free the slot for the next request."""
        if self.grant is None:
            return
        await self._access.settle(record)
        ticket, self._ticket = self._ticket, None
        if ticket is not None:
            usage = record.usage
            await asyncio.shield(self._access.leave(ticket, 0 if usage is None else usage.input + usage.output))

    def leave(self) -> asyncio.Task[None] | None:
        """Free the slot, also where nothing was settled. The task that does it, if there was one to free."""
        ticket, self._ticket = self._ticket, None
        return None if ticket is None else self._access.leave(ticket, 0)

    def handed_over(self) -> Caller:
        """Who works on when this request has its answer, with its place."""
        other = Caller(self._access, self.grant, self._format)
        other._ticket, self._ticket = self._ticket, None
        return other


class Access:
    """`house` is a key of the gateway's own page: always good, and no reason to ask others for one."""

    def __init__(
        self, keys: Sequence[str], environment: Environment, ledger: Ledger | None = None, house: str = ""
    ) -> None:
        grants = [_configured(number, key, environment) for number, key in enumerate(keys, 1)]
        self._grants: Mapping[str, Grant] = {grant.digest: grant for grant in grants}
        self._ledger = ledger
        self._house = Grant(name="page", digest=digest_of(house), id="config:page") if house else None
        self._leaving: set[asyncio.Task[None]] = set()
        self._anonymous: dict[str, Caller] = {}

    @property
    def required(self) -> bool:
        return bool(self._grants) or (self._ledger is not None and self._ledger.locked)

    async def look(self) -> None:
        """A first key that was just made counts from now on, and not from the next look of the ledger."""
        if self._ledger is not None:
            await self._ledger.look()

    async def caller(self, format: str, head: Head, digest: str = "") -> Caller:
        """Raises `Denied`. `digest` is that of a key that was shown earlier, for a request made for its owner."""
        if not self.required:
            # Nothing changes in a caller without a key: one serves all.
            return self._anonymous.get(format) or self._anonymous.setdefault(format, Caller(self, None, format))
        key = presented_key(head)
        if not key and not digest:
            raise Denied(missing_key(format))
        grant = await self.find(digest or digest_of(key))
        if grant is None:
            raise Denied(wrong_key(format))
        return Caller(self, grant, format)

    async def find(self, digest: str) -> Grant | None:
        """A key that is good now."""
        if self._house is not None and hmac.compare_digest(self._house.digest, digest):
            return self._house
        found = None
        for known, grant in self._grants.items():  # all of them, always: how long it takes tells nothing
            if hmac.compare_digest(known, digest):
                found = grant
        if found is None and self._ledger is not None and self._ledger.locked:
            found = await self._ledger.grant(digest)
        expired = found is not None and found.expires is not None and time.time() >= found.expires
        return None if expired else found

    @property
    def unrecorded(self) -> Mapping[str, int]:
        """Requests whose usage waits for a database that cannot be written, and those whose usage is lost."""
        ledger = self._ledger
        return {"usage_waiting": ledger.unwritten, "usage_lost": ledger.dropped} if ledger is not None else {}

    @property
    def problem(self) -> str:
        """Why keys cannot be checked, where they cannot; empty if all is well."""
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
        if not grant.metered:
            return None
        try:
            return await self._ledger.enter(grant)
        except Exceeded as exceeded:
            field, words = _LIMITS[exceeded.limit]
            message = words.format(getattr(grant, field))
            wait = round(max(exceeded.retry_after, 0.1), 1)
            raise Denied(Failure("rate_limit", message, 429, retry_after=wait)) from None

    def leave(self, ticket: Ticket, tokens: int) -> asyncio.Task[None]:
        """In a task of its own: a cancelled request still frees its slot."""
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
        """Release what was not settled: requests without a key, and those that failed."""
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


def _configured(number: int, key: str, environment: Environment) -> Grant:
    """Named by its place, and known by its digest: reordering the file does not change who owns which data."""
    hashed = key.startswith("sha256:")
    digest = key.removeprefix("sha256:").lower() if hashed else digest_of(revealed_key(key, environment))
    return Grant(name=f"key-{number}", digest=digest, id=f"config:{digest[:_ID_LENGTH]}")
