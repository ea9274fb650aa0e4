"""Looks up the addresses of upstreams' hosts.

An event loop has few threads for lookups (uvloop four), and a slow name server holds each for many seconds, even if
its request was given up. So each host takes one thread at most, and a host that cannot be found delays no other.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from ipaddress import ip_address
from typing import TypeAlias, TypeVar
from weakref import WeakKeyDictionary

P = TypeVar("P", bound=asyncio.BaseProtocol)
_Lookups: TypeAlias = dict[str, asyncio.Future[list[str]]]
_running: WeakKeyDictionary[asyncio.AbstractEventLoop, _Lookups] = WeakKeyDictionary()
"""The lookups under way, by host. All connection pools of an event loop share them."""


async def connect_to_host(
    loop: asyncio.AbstractEventLoop, protocol: Callable[[], P], host: str, port: int, context: ssl.SSLContext | None
) -> P:
    """Connect to the first address of the host that accepts the connection. Raises `OSError`."""
    name = host if context is not None else None
    failed: OSError | None = None
    try:
        for address in await _addresses_of(loop, host):
            try:
                _, connected = await loop.create_connection(protocol, address, port, ssl=context, server_hostname=name)
            except OSError as error:
                failed = failed or error
            else:
                return connected
        raise failed or OSError(f"no address of {host}")
    finally:
        del failed  # it refers to this frame


async def _addresses_of(loop: asyncio.AbstractEventLoop, host: str) -> list[str]:
    try:
        ip_address(host)
    except ValueError:
        pass
    else:
        return [host]
    running = _running.setdefault(loop, {})
    lookup = running.get(host)
    if lookup is None:
        lookup = running[host] = loop.create_task(_look_up(loop, host))
        lookup.add_done_callback(lambda done: _end(running, host, done))
    return await asyncio.shield(lookup)


async def _look_up(loop: asyncio.AbstractEventLoop, host: str) -> list[str]:
    found = await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(where[0]) for *_, where in found))


def _end(running: _Lookups, host: str, done: asyncio.Future[list[str]]) -> None:
    del running[host]
    if not done.cancelled():
        done.exception()  # otherwise it is reported if its requests were given up
