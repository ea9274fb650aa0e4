"""What a gateway does, as it happens."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from dragoman.drivers.connecting import Environment
from dragoman.gateway.app import Gateway
from dragoman.gateway.capture import Capture, Feed, Held
from dragoman.gateway.server import Exchange
from dragoman.web.connected import connected
from dragoman.web.guard import Guard, Person
from dragoman.web.opened import opened, summary
from dragoman.web.site import API, Place, Route, send_json
from dragoman.web.streams import Stream, Streams

_TOGETHER = 0.1
"""Seconds for which changes are gathered: people see no difference, and a busy gateway has less to tell."""


def live(gateway: Gateway, guard: Guard, streams: Streams, environment: Environment) -> Place:
    shown = _Live(gateway, guard, streams, environment)
    routes = (
        Route("GET", f"{API}/live/connected", shown.connected),
        Route("GET", f"{API}/live/feed", shown.feed),
        Route("GET", f"{API}/live/requests/{{id}}", shown.request),
    )
    return Place("live", routes)


def _may_see(person: Person, held: Held) -> bool:
    return person.sees_all or (bool(person.name) and held.record.key == person.name)


class _Live:
    def __init__(self, gateway: Gateway, guard: Guard, streams: Streams, environment: Environment) -> None:
        self._gateway = gateway
        self._guard = guard
        self._streams = streams
        self._environment = environment

    @property
    def _capture(self) -> Capture:
        if self._gateway.capture is None:
            raise LookupError("no requests are held: the page is off")
        return self._gateway.capture

    async def _person(self, exchange: Exchange) -> Person:
        person = await self._guard.person(exchange.head)
        if person is None:  # the key was revoked in this very moment
            raise LookupError("log in first")
        return person

    async def connected(self, exchange: Exchange, _: Mapping[str, str]) -> None:
        send_json(exchange, connected(self._gateway, self._environment, await self._person(exchange)))

    async def request(self, exchange: Exchange, names: Mapping[str, str]) -> None:
        held = self._capture.find(names["id"])
        if held is None or not _may_see(await self._person(exchange), held):
            raise LookupError("this request is no longer held: only the last ones are")
        # Decoding what may be megabytes is no reason for others to wait.
        send_json(exchange, await asyncio.to_thread(opened, held))

    async def feed(self, exchange: Exchange, _: Mapping[str, str]) -> None:
        person = await self._person(exchange)
        feed = Feed(lambda held: _may_see(person, held))
        stream = self._streams.stream()
        stream.put("snapshot", [summary(held) for held in self._capture if _may_see(person, held)])
        self._capture.feeds.add(feed)
        telling = asyncio.ensure_future(self._tell(feed, stream, exchange))
        try:
            await stream.run(exchange)
        finally:
            telling.cancel()
            self._capture.feeds.discard(feed)

    async def _tell(self, feed: Feed, stream: Stream, exchange: Exchange) -> None:
        while changed := await feed.changes():
            if await self._guard.person(exchange.head) is None:  # the key has been revoked since
                break
            stream.put("changes", [summary(held) for held in changed])
            await asyncio.sleep(_TOGETHER)
        stream.end()
