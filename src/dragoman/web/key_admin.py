"""Key management for the gateway's administrator: create, rotate and revoke keys. A key is shown once."""

from __future__ import annotations

import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from msgspec import Struct, structs

from dragoman.gateway.access import digest_of
from dragoman.gateway.admin_commands import new_key
from dragoman.gateway.app import Gateway
from dragoman.gateway.exchange import Exchange
from dragoman.gateway.state.base import Grant, NameTaken, Unavailable
from dragoman.web.guard import Guard
from dragoman.web.site import API, Handler, PageSection, Problems, Route, read_body, send_json

_DAY = 86_400.0
_LONGEST_NAME = 64
_MOST_MODELS = 100
_NO_DATABASE = (
    "This gateway has no database: to give out keys, start it with one, "
    'such as database = "gateway.db" under [server] in dragoman.toml.'
)
_NOT_YOURS = "Only the administrator manages keys: log in with the password of the page (DRAGOMAN_PAGE_PASSWORD)."


class Forbidden(Exception):
    """Only the administrator may do this."""


class KeyRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A new key. Omitted limits mean unlimited."""

    name: str
    models: tuple[str, ...] = ()
    days: float | None = None
    requests_per_minute: int | None = None
    concurrent: int | None = None
    tokens_per_minute: int | None = None
    budget: float | None = None
    token_budget: int | None = None

    def check(self) -> None:
        if not self.name.strip() or len(self.name) > _LONGEST_NAME or not self.name.isprintable():
            raise ValueError(f"a key needs a name of at most {_LONGEST_NAME} printable characters")
        if len(self.models) > _MOST_MODELS or not all(one.strip() for one in self.models):
            raise ValueError("models are names or patterns, such as anthropic/*")
        limits = {name: value for name, value in structs.asdict(self).items() if name not in {"name", "models"}}
        for name, value in limits.items():
            if value is not None and value <= 0:
                raise ValueError(f"{name.replace('_', ' ')}: a number above 0, or nothing for no limit")

    def grant(self, digest: str) -> Grant:
        return Grant(
            name=self.name.strip(),
            id=f"key:{secrets.token_hex(16)}",
            digest=digest,
            models=self.models,
            expires=None if self.days is None else time.time() + self.days * _DAY,
            requests_per_minute=self.requests_per_minute,
            concurrent=self.concurrent,
            tokens_per_minute=self.tokens_per_minute,
            budget=self.budget,
            token_budget=self.token_budget,
        )


_PROBLEMS: Problems = ((Forbidden, 403), (NameTaken, 409), (Unavailable, 503))


def key_admin(gateway: Gateway, guard: Guard) -> PageSection:
    admin = _KeyAdmin(gateway, guard)
    one = f"{API}/keys/{{name}}"
    routes = (
        Route("GET", f"{API}/keys", admin.list_keys),
        Route("POST", f"{API}/keys", admin.for_administrator(admin.create)),
        Route("POST", f"{one}/rotate", admin.for_administrator(admin.rotate)),
        Route("POST", f"{one}/revoke", admin.for_administrator(admin.revoke)),
    )
    return PageSection("keys", routes, _PROBLEMS)


class _KeyAdmin:
    def __init__(self, gateway: Gateway, guard: Guard) -> None:
        self._gateway = gateway
        self._guard = guard

    async def _refusal(self, exchange: Exchange) -> str:
        """Why keys cannot be managed; empty if they can."""
        user = await self._guard.user(exchange.head)
        if user is None or not user.sees_all:
            return _NOT_YOURS
        return "" if self._gateway.responses.store.shared else _NO_DATABASE

    def for_administrator(self, work: Callable[[Exchange, Mapping[str, str]], Awaitable[None]]) -> Handler:
        async def handle(exchange: Exchange, names: Mapping[str, str]) -> None:
            if refusal := await self._refusal(exchange):
                raise Forbidden(refusal)
            await work(exchange, names)

        return handle

    async def list_keys(self, exchange: Exchange, _: Mapping[str, str]) -> None:
        refusal = await self._refusal(exchange)
        rows = [] if refusal else await self._gateway.responses.store.list_keys()
        shown: list[dict[str, Any]] = [{**structs.asdict(row), "state": row.state} for row in rows]
        # With the first key, the page requires login, and a key does not make an administrator.
        locks = not refusal and not self._gateway.access.required and not self._guard.has_password
        send_json(exchange, {"refusal": refusal, "locks": locks, "keys": shown})

    async def create(self, exchange: Exchange, _: Mapping[str, str]) -> None:
        wanted = read_body(exchange, KeyRequest)
        wanted.check()
        key = new_key()
        try:
            await self._gateway.responses.store.create(wanted.grant(digest_of(key)))
        except NameTaken:
            raise NameTaken(f"there is a key named {wanted.name!r} already") from None
        await self._gateway.access.refresh()
        send_json(exchange, {"name": wanted.name.strip(), "key": key}, 201)

    async def rotate(self, exchange: Exchange, names: Mapping[str, str]) -> None:
        key = new_key()
        if not await self._gateway.responses.store.rotate(names["name"], digest_of(key)):
            raise LookupError(f"there is no active key named {names['name']!r}")
        send_json(exchange, {"name": names["name"], "key": key})

    async def revoke(self, exchange: Exchange, names: Mapping[str, str]) -> None:
        if not await self._gateway.responses.store.revoke(names["name"]):
            raise LookupError(f"there is no active key named {names['name']!r}")
        send_json(exchange, {"name": names["name"]})
