"""What every home of keys, usage, responses and limits does."""

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
    """The database is a file whose disk is full, read-only or broken: it can be read, perhaps, and not be written."""


class Unwritable(Unavailable):
    """What this database will never take, however often it is tried: a text with a zero in it, a number too large."""


class NameTaken(Exception):
    """Another key has that name."""


class Exceeded(Exception):
    """One request more than a key may have now."""

    def __init__(self, limit: Limit, retry_after: float) -> None:
        self.limit: Limit = limit
        self.retry_after = retry_after
        super().__init__(limit)


class OverBudget(Exception):
    """A request that the budget of its key does not allow now."""

    def __init__(self, *, is_spent: bool) -> None:
        self.is_spent = is_spent
        """Whether all is spent; if not, requests under way have reserved what is left."""
        super().__init__("spent" if is_spent else "reserved")


class Grant(Struct, frozen=True, kw_only=True):
    """A key, as far as it is kept: never the key itself."""

    name: str
    """What people call it. Not unique: a key of the configuration and one of the database may share a name."""
    digest: str
    id: str = ""
    """What belongs to the key is found by this; it never changes. The name, where none is given."""
    models: tuple[str, ...] = ()
    """Names or patterns; none at all means every model."""
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
    """A key as it is listed."""

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
    """One request that has ended. Its id is written once, however often it is tried."""

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
    """What a request is expected to cost, counted as spent until its true cost is written."""

    id: str
    """Of the request."""
    key_id: str
    budget: float | None
    amount: float
    seconds: float
    """For how long it counts unless it is renewed: a gateway that dies reserves nothing for ever."""
    token_budget: int | None = None
    tokens: int = 0


class Amounts(Struct, frozen=True):
    """What a key has spent or reserved."""

    cost: float = 0.0
    tokens: int = 0


class UsageRow(Struct, frozen=True, kw_only=True):
    """Requests added up; what they were not told apart by is empty."""

    key: str
    upstream: str
    model: str
    day: str
    requests: int
    failed: int
    input: int
    output: int
    cost: float


class Kept(Struct, frozen=True):
    """A stored response that a client may fetch later."""

    id: str
    owner: str
    previous: str | None
    input: bytes
    """Items, as a JSON array."""
    response: bytes
    upstream: str = ""
    """Who made and keeps it; then nothing of it is here."""


class Ticket(Struct, frozen=True):
    """One request that was let in under the limits of its key."""

    key: str
    lease: str
    """Empty where requests in progress are not counted."""
    counts_tokens: bool


class Timing(Struct, frozen=True, kw_only=True):
    window: float = 60.0
    """Seconds of a minute: tests have no time for a whole one."""
    lease: float = 15.0
    """Seconds for which a request in progress counts after its last renewal."""

    @property
    def beat(self) -> float:
        return self.lease / 3


class Meters(Protocol):
    """Rates and concurrency. `enter` is atomic: however many ask at once, no limit is ever exceeded."""

    async def enter(self, grant: Grant) -> Ticket:
        """Raises `Exceeded`; then nothing was counted. Raises `Unavailable`."""
        ...

    async def leave(self, ticket: Ticket, tokens: int) -> None: ...

    async def beat(self) -> None:
        """Those of ours that are under way still are."""
        ...

    async def close(self) -> None: ...


class Store(Protocol):
    """Keys, usage and responses. Everything raises `Unavailable` when its home cannot be reached."""

    shared: bool
    """Whether other processes can read and write it, now or later."""
    objects: ObjectStore
    """Files and batch jobs."""

    @property
    def database(self) -> Any:
        """What runs its statements (`sql.Database`), for tables of others beside its own."""
        ...

    async def create(self, grant: Grant) -> None:
        """Raises `NameTaken`."""
        ...

    async def revoke(self, name: str) -> bool: ...

    async def rotate(self, name: str, digest: str) -> bool:
        """Another secret for the same key: limits, budget and what it has spent stay."""
        ...

    async def listed(self) -> list[KeyRow]: ...

    async def any_keys(self) -> bool:
        """Also when all were revoked: a gateway that had keys does not open by itself."""
        ...

    async def grant(self, digest: str) -> Grant | None: ...

    async def spent(self, key_id: str) -> float: ...

    async def spent_tokens(self, key_id: str) -> int: ...

    async def reserve(self, reservation: Reservation) -> None:
        """Atomic, however many gateways ask at once. Raises `OverBudget`; then nothing is reserved.

        Admitted is what fits beside everything spent and reserved. A request that has the key to itself is admitted
        while anything is left, so a budget is overspent by one request at most (and by what estimates fall short).
        """
        ...

    async def renew(self, ids: Sequence[str], seconds: float) -> None:
        """The requests of these reservations are still under way."""
        ...

    async def add(self, entries: Sequence[Entry]) -> None:
        """Each together with what its key has spent, instead of what it had reserved.

        An id that is there already changes nothing.
        """
        ...

    async def usage(
        self, since: float = 0.0, by: Sequence[Group] = ("key", "model"), key_id: str | None = None
    ) -> list[UsageRow]:
        """Of all keys, or of one."""
        ...

    async def keep(self, kept: Kept) -> None: ...

    async def kept(self, id: str, owner: str) -> Kept | None: ...

    async def chain(self, id: str, owner: str) -> list[Kept]:
        """A response and all before it, the last one first."""
        ...

    async def forget(self, id: str, owner: str) -> bool: ...

    async def add_items(self, id: str, owner: str, items: Sequence[tuple[str, bytes]]) -> None:
        """Appends items, each with its id, to a conversation. An id that is there already changes nothing."""
        ...

    async def items(self, id: str, owner: str) -> list[tuple[str, bytes]]:
        """The items of a conversation, the first one first."""
        ...

    async def forget_item(self, id: str, owner: str, item: str) -> bool: ...

    async def remember(self, owner: str, key: str, message: bytes) -> None:
        """Keeps a signed message; the oldest ones make room."""
        ...

    async def recalled(self, owner: str, keys: Sequence[str], seconds: float) -> dict[str, bytes]:
        """Signed messages that are not older, by their keys."""
        ...

    async def touch(self, id: str) -> None:
        """Renew the lease: work on it continues."""
        ...

    async def age(self, id: str) -> float:
        """Seconds since it was kept or touched."""
        ...

    async def close(self) -> None: ...


def day_of(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).date().isoformat()


def check_budget(new: Reservation, *, spent: Amounts, reserved: Amounts, others: int) -> None:
    """Raises `OverBudget`. `others` are the reservations of the same key, which come to `reserved`."""
    for budget, used, held, expected in (
        (new.budget, spent.cost, reserved.cost, new.amount),
        (new.token_budget, spent.tokens, reserved.tokens, new.tokens),
    ):
        if budget is None:
            continue
        if used >= budget:
            raise OverBudget(is_spent=True)
        if others and used + held + expected > budget:
            raise OverBudget(is_spent=False)
