"""The page before a gateway, or alone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from dragoman.gateway.access import Denied
from dragoman.gateway.app import Gateway
from dragoman.gateway.http11 import Head
from dragoman.gateway.server import Application
from dragoman.gateway.serving import Setting
from dragoman.gateway.state.base import Unavailable
from dragoman.web.guard import Guard, Keys
from dragoman.web.live import live
from dragoman.web.playground import playground
from dragoman.web.site import Site
from dragoman.web.streams import Streams

_PASSWORD = "DRAGOMAN_PAGE_PASSWORD"  # noqa: S105 - the name of a variable


@asynccontextmanager
async def page_before(gateway: Gateway, setting: Setting) -> AsyncIterator[Application]:
    """For `dragoman serve`: the page at `/`, the gateway everywhere else."""
    streams = Streams()
    guard = Guard(setting.config.server.host, setting.environment.get(_PASSWORD), _keys_of(gateway))
    try:
        yield Site(guard, [live(gateway, guard, streams, setting.environment), playground()], next=gateway)
    finally:
        streams.close()


def _keys_of(gateway: Gateway) -> Keys:
    """Those of the moment: a new configuration may bring others."""

    async def check(key: str) -> str | None:
        shown = Head("GET", "/", "", {"x-api-key": key}, 0, keep_alive=False, chunks=True)
        try:
            return (await gateway.access.visitor("openai-chat", shown)).name
        except (Denied, Unavailable):
            return None

    return Keys(required=lambda: gateway.access.required, check=check)
