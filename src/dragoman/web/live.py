"""Live view of a gateway's requests."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias
from urllib.parse import urlencode

from msgspec import Raw
from msgspec.json import decode

from dragoman.drivers.connect import Environment
from dragoman.gateway.admin_commands import GROUPS
from dragoman.gateway.app import Gateway
from dragoman.gateway.capture import Capture, CapturedRequest, Feed
from dragoman.gateway.costs import CURRENCY
from dragoman.gateway.exchange import Exchange
from dragoman.web.connections import describe_connections
from dragoman.web.guard import Guard, PageUser
from dragoman.web.request_detail import Summary, request_detail, summary, usage_of
from dragoman.web.site import API, PageSection, Route, send_json
from dragoman.web.streams import Stream, Streams

_DAY = 86_400.0
_TOGETHER = 0.1
"""Seconds for which changes are batched: not noticeable, and less work for a busy gateway."""
# Paths for other workers; the user is named in the query.
_SNAPSHOT, _FEED, _REQUEST = "/_/own/snapshot", "/_/own/feed", "/_/own/request"

Allowed: TypeAlias = Callable[[], Awaitable[bool]]
"""Whether the viewer may still see it."""


def live(gateway: Gateway, guard: Guard, streams: Streams, environment: Environment) -> PageSection:
    shown = _Live(gateway, guard, streams, environment)
    gateway.private |= {
        _SNAPSHOT: shown.send_own_snapshot,
        _FEED: shown.send_own_feed,
        _REQUEST: shown.send_own_request,
    }
    routes = (
        Route("GET", f"{API}/live/connected", shown.describe_connections),
        Route("GET", f"{API}/live/feed", shown.feed),
        Route("GET", f"{API}/live/usage", shown.usage),
        Route("GET", f"{API}/live/requests/{{id}}", shown.request),
    )
    return PageSection("live", routes)


def _may_see(user: PageUser, request: CapturedRequest) -> bool:
    return user.sees_all or (bool(user.id) and request.record.key_id == user.id)


class _Live:
    def __init__(self, gateway: Gateway, guard: Guard, streams: Streams, environment: Environment) -> None:
        self._gateway = gateway
        self._guard = guard
        self._streams = streams
        self._environment = environment

    @property
    def _capture(self) -> Capture:
        if self._gateway.capture is None:
            raise LookupError("no requests are captured: the page is disabled")
        return self._gateway.capture

    async def _user(self, exchange: Exchange) -> PageUser:
        user = await self._guard.user(exchange.head)
        if user is None:  # the key was just revoked
            raise LookupError("log in first")
        return user

    async def describe_connections(self, exchange: Exchange, _: Mapping[str, str]) -> None:
        headers = exchange.head.headers
        url = f"{headers.get('x-forwarded-proto', 'http')}://{headers.get('host', 'localhost')}"
        send_json(exchange, describe_connections(self._gateway, self._environment, await self._user(exchange), url))

    async def usage(self, exchange: Exchange, _: Mapping[str, str]) -> None:
        """Requests, tokens and cost, added up: `?by=key,model,day&days=30`. An ordinary key sees its own."""
        user = await self._user(exchange)
        parameters = exchange.head.parameters
        wanted = parameters.get("by", "key,model,day").split(",")
        groups = [one for one in GROUPS if one in wanted]
        since = time.time() - float(parameters.get("days", "30")) * _DAY
        store = self._gateway.responses.store
        if store.shared:
            rows = await store.usage(since, groups, None if user.sees_all else user.id)
        else:  # no database: only the requests held for the page
            rows = usage_of([one for one in self._capture if _may_see(user, one)], groups, since)
        send_json(exchange, {"currency": CURRENCY, "kept": store.shared, "rows": rows})

    async def request(self, exchange: Exchange, names: Mapping[str, str]) -> None:
        user = await self._user(exchange)
        if await self._show(exchange, names["id"], user):
            return
        others = await self._ask(_REQUEST, user, id=names["id"])
        if not others:
            raise LookupError("this request is no longer available: only the latest ones are kept")
        send_json(exchange, Raw(others[0]))

    async def _show(self, exchange: Exchange, id: str, user: PageUser) -> bool:
        request = self._capture.find(id)
        if request is None or not _may_see(user, request):
            return False
        # Decoding may take long for megabytes: off the event loop.
        send_json(exchange, await asyncio.to_thread(request_detail, request))
        return True

    async def feed(self, exchange: Exchange, _: Mapping[str, str]) -> None:
        user = await self._user(exchange)
        others = [
            one for summaries in await self._ask(_SNAPSHOT, user) for one in decode(summaries, type=list[Summary])
        ]
        # Our own snapshot comes last, so that no change is missed between it and the feed.
        summaries = sorted([*self._snapshot(user), *others], key=lambda one: one.at, reverse=True)

        async def is_allowed() -> bool:  # the key may have been revoked
            return await self._guard.user(exchange.head) is not None

        stream = self._streams.stream()
        following = asyncio.ensure_future(self._follow(user, stream, is_allowed))
        try:
            await self._feed(exchange, user, stream, summaries, is_allowed)
        finally:
            following.cancel()

    def _snapshot(self, user: PageUser) -> list[Summary]:
        return [summary(request) for request in self._capture if _may_see(user, request)]

    async def _feed(
        self, exchange: Exchange, user: PageUser, stream: Stream, summaries: list[Summary], is_allowed: Allowed
    ) -> None:
        feed = Feed(lambda request: _may_see(user, request))
        stream.put("snapshot", summaries)
        self._capture.feeds.add(feed)
        telling = asyncio.ensure_future(self._send_changes(feed, stream, is_allowed))
        try:
            await stream.run(exchange)
        finally:
            telling.cancel()
            self._capture.feeds.discard(feed)

    async def _send_changes(self, feed: Feed, stream: Stream, is_allowed: Allowed) -> None:
        while changed := await feed.changes():
            if not await is_allowed():
                break
            stream.put("changes", [summary(request) for request in changed])
            await asyncio.sleep(_TOGETHER)
        stream.end()

    # ── several workers ──

    async def _ask(self, path: str, user: PageUser, **more: str) -> list[bytes]:
        other_workers = self._gateway.other_workers
        return [] if other_workers is None else await other_workers.ask(_path_for(path, user, **more))

    async def _follow(self, user: PageUser, stream: Stream, is_allowed: Allowed) -> None:
        """Forwards other workers' requests as changes, whether or not they were in the snapshot."""
        if self._gateway.other_workers is None:
            return
        async for event in self._gateway.other_workers.follow(_path_for(_FEED, user)):
            if not await is_allowed():
                break
            stream.put("changes", Raw(event))
        stream.end()

    async def send_own_snapshot(self, exchange: Exchange) -> None:
        send_json(exchange, self._snapshot(_user_in_query(exchange)))

    async def send_own_request(self, exchange: Exchange) -> None:
        if not await self._show(exchange, exchange.head.parameters["id"], _user_in_query(exchange)):
            send_json(exchange, {}, 404)

    async def send_own_feed(self, exchange: Exchange) -> None:
        user = _user_in_query(exchange)
        await self._feed(exchange, user, self._streams.stream(), self._snapshot(user), _always)


async def _always() -> bool:
    return True


def _path_for(path: str, user: PageUser, **more: str) -> str:
    return f"{path}?{urlencode({'key': user.id, 'all': '1' if user.sees_all else '', **more})}"


def _user_in_query(exchange: Exchange) -> PageUser:
    parameters = exchange.head.parameters
    return PageUser(id=parameters["key"], sees_all=bool(parameters["all"]))
