"""The interfaces of the stores for keys, usage, responses and limits."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from msgspec import Struct, structs

if TYPE_CHECKING:
    from dragoman.gateway.state.objects import ObjectStore

Limit: TypeAlias = Literal["requests", "concurrent", "tokens"]
Group: TypeAlias = Literal["key", "model", "day"]


class Unavailable(Exception):
    """The database cannot be reached, cannot be written, or does not answer in time."""


class DiskFailed(Unavailable):
    """The database is a file whose disk is full, read-only or broken: perhaps it can be read, but not written."""


class Unwritable(Unavailable):
    """A value that this database can never store: a text with a null character, a number too large."""


class NameTaken(Exception):
    """Another key has that name."""


class Exceeded(Exception):
    """The request would exceed a limit of its key."""

    def __init__(self, limit: Limit, retry_after: float) -> None:
        self.limit: Limit = limit
        self.retry_after = retry_after
        super().__init__(limit)


class OverBudget(Exception):
    """The request would exceed the budget of its key."""

    def __init__(self, *, is_spent: bool) -> None:
        self.is_spent = is_spent
        """Whether the budget is spent; if not, running requests have reserved the rest."""
        super().__init__("spent" if is_spent else "reserved")


class Grant(Struct, frozen=True, kw_only=True):
    """A key with its limits, without its secret."""

    name: str
    """The display name. Not unique: a key of the configuration and one of the database may share a name."""
    digest: str
    id: str = ""
    """The owner id of the key's data, which never changes. Defaults to the name."""
    models: tuple[str, ...] = ()
    """Names or patterns; empty means every model."""
    expires: float | None = None
    requests_per_minute: int | None = None
    concurrent: int | None = None
    tokens_per_minute: int | None = None
    budget: float | None = None
    """In the currency of the prices, for the key's whole life."""
    token_budget: int | None = None
    """Tokens of requests and answers, for the key's whole life."""

    def __post_init__(self) -> None:
        if not self.id:
            structs.force_setattr(self, "id", self.name)

    @property
    def metered(self) -> bool:
        return not (self.requests_per_minute is None and self.concurrent is None and self.tokens_per_minute is None)


class KeyRow(Struct, frozen=True, kw_only=True):
    """A key in the list of keys."""

    name: str
    models: tuple[str, ...]
    created: float
    expires: float | None
    revoked: float | None
    requests_per_minute: int | None
    concurrent: int | None
    tokens_per_minute: int | None
    budget: float | None
    spent: float
    token_budget: int | None = None
    spent_tokens: int = 0

    @property
    def state(self) -> Literal["revoked", "expired", "good"]:
        if self.revoked is not None:
            return "revoked"
        return "expired" if self.expires is not None and self.expires <= time.time() else "good"


class Entry(Struct, frozen=True, kw_only=True):
    """The usage of one finished request. An id is written only once, even if writing is retried."""

    id: str
    time: float
    day: str
    key: str
    client: str
    model: str
    upstream: str
    target: str
    status: int
    seconds: float
    input: int | None
    output: int | None
    cached: int | None
    cost: float | None
    key_id: str = ""

    @property
    def tokens(self) -> int:
        return (self.input or 0) + (self.output or 0)


class Reservation(Struct, frozen=True, kw_only=True):
    """What a request is expected to cost, counted as spent until its actual cost is written."""

    id: str
    """The id of the request."""
    key_id: str
    budget: float | None
    amount: float
    seconds: float
    """How long it counts unless renewed, so that the reservations of a crashed gateway expire."""
    token_budget: int | None = None
    tokens: int = 0


class Amounts(Struct, frozen=True):
    """What a key has spent or reserved."""

    cost: float = 0.0
    tokens: int = 0


class UsageRow(Struct, frozen=True, kw_only=True):
    """Totals of requests; the fields that they are not grouped by are empty."""

    key: str
    upstream: str
    model: str
    day: str
    requests: int
    failed: int
    input: int
    output: int
    cost: float


LONGEST_CHAIN = 1000
"""Maximum number of earlier responses that a request may continue in one chain."""


class Kept(Struct, frozen=True):
    """A stored response that a client may fetch later."""

    id: str
    owner: str
    previous: str | None
    input: bytes
    """Items, as a JSON array."""
    response: bytes
    upstream: str = ""
    """The upstream that created and stores it, in which case only this note is stored here."""


class Ticket(Struct, frozen=True):
    """One request that was admitted under the limits of its key."""

    key: str
    lease: str
    """Empty if requests in progress are not counted."""
    counts_tokens: bool


class Timing(Struct, frozen=True, kw_only=True):
    window: float = 60.0
    """Seconds of the rate window, a minute; shorter in tests."""
    lease: float = 15.0
    """Seconds for which a request in progress counts after its last renewal."""

    @property
    def beat(self) -> float:
        return self.lease / 3


class Meters(Protocol):
    """Rates and concurrency. `enter` is atomic: concurrent requests never exceed a limit."""

    async def enter(self, grant: Grant) -> Ticket:
        """Admit a request. Raises `Exceeded`, in which case nothing is counted, and `Unavailable`."""
        ...

    async def leave(self, ticket: Ticket, tokens: int) -> None: ...

    async def beat(self) -> None:
        """Renew the leases of this process's running requests."""
        ...

    async def close(self) -> None: ...


class Store(Protocol):
    """Keys, usage and responses. All methods raise `Unavailable` if the database cannot be reached."""

    shared: bool
    """Whether other processes can read and write the store, now or later."""
    objects: ObjectStore
    """Files and batch jobs."""

    @property
    def database(self) -> Any:
        """The underlying `sql.Database`, for other tables in it."""
        ...

    async def create(self, grant: Grant) -> None:
        """Add a key. Raises `NameTaken`."""
        ...

    async def revoke(self, name: str) -> bool: ...

    async def rotate(self, name: str, digest: str) -> bool:
        """Replace the secret of a key; its limits, budget and spending stay."""
        ...

    async def list_keys(self) -> list[KeyRow]: ...

    async def any_keys(self) -> bool:
        """Return whether there are keys, including revoked ones: a gateway that had keys must keep requiring them."""
        ...

    async def grant(self, digest: str) -> Grant | None: ...

    async def spent(self, key_id: str) -> float: ...

    async def spent_tokens(self, key_id: str) -> int: ...

    async def reserve(self, reservation: Reservation) -> None:
        """Reserve the cost of a request, atomically among all gateways. Raises `OverBudget` and then reserves nothing.

        A request is admitted if it fits into the budget beside everything spent and reserved. The only running request
        of a key is admitted while anything is left, so a budget is overspent by at most one request (and by the error
        of the estimates).
        """
        ...

    async def renew(self, ids: Sequence[str], seconds: float) -> None:
        """Renew the reservations of requests that are still running."""
        ...

    async def add(self, entries: Sequence[Entry]) -> None:
        """Write usage, and add it to what its key has spent in place of its reservation.

        Ids that exist already are ignored.
        """
        ...

    async def usage(
        self, since: float = 0.0, by: Sequence[Group] = ("key", "model"), key_id: str | None = None
    ) -> list[UsageRow]:
        """Return usage totals of all keys, or of one."""
        ...

    async def keep(self, kept: Kept) -> None: ...

    async def find_response(self, id: str, owner: str) -> Kept | None: ...

    async def chain(self, id: str, owner: str) -> list[Kept]:
        """Return a response and those before it, `LONGEST_CHAIN` at most, the latest first."""
        ...

    async def forget(self, id: str, owner: str) -> bool: ...

    async def add_items(self, id: str, owner: str, items: Sequence[tuple[str, bytes]]) -> None:
        """Append items, each with its id, to a conversation. Ids that exist already are ignored."""
        ...

    async def items(self, id: str, owner: str) -> list[tuple[str, bytes]]:
        """Return the items of a conversation, oldest first."""
        ...

    async def forget_item(self, id: str, owner: str, item: str) -> bool: ...

    async def remember(self, owner: str, key: str, message: bytes) -> None:
        """Store a signed message; the oldest ones are evicted if there are too many."""
        ...

    async def recall(self, owner: str, keys: Sequence[str], seconds: float) -> dict[str, bytes]:
        """Return signed messages that are not older than this, by their keys."""
        ...

    async def touch(self, id: str) -> None:
        """Renew the lease of a stored response, because work on it continues."""
        ...

    async def age(self, id: str) -> float:
        """Return the seconds since it was stored or touched."""
        ...

    async def close(self) -> None: ...


def day_of(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).date().isoformat()


def check_budget(new: Reservation, *, spent: Amounts, reserved: Amounts, others: int) -> None:
    """Raise `OverBudget` if the reservation does not fit. `others` is the number of reservations in `reserved`."""
    for budget, used, reserved_amount, expected in (
        (new.budget, spent.cost, reserved.cost, new.amount),
        (new.token_budget, spent.tokens, reserved.tokens, new.tokens),
    ):
        if budget is None:
            continue
        if used >= budget:
            raise OverBudget(is_spent=True)
        if others and used + reserved_amount + expected > budget:
            raise OverBudget(is_spent=False)
