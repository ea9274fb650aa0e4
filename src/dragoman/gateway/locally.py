"""Models on this machine: servers that answer where such servers usually listen."""

from __future__ import annotations

import asyncio

import msgspec

from dragoman.drivers.connecting import Environment, Options, is_local, open_channel
from dragoman.drivers.providers import PROVIDERS, Provider
from dragoman.drivers.transport import HttpRequest, Timeouts, read_whole
from dragoman.errors import DragomanError

_TIMEOUTS = Timeouts(connect=0.3, first_byte=1.0, total=1.5)
_LARGEST = 1 << 20


async def local_servers(environment: Environment) -> frozenset[str]:
    """Names of the providers whose server runs here."""
    possible = [one for one in PROVIDERS.values() if not one.key_required and is_local(one.base_url) and one.listing]
    found = await asyncio.gather(*(_answers(provider, environment) for provider in possible))
    return frozenset(provider.name for provider, there in zip(possible, found, strict=True) if there)


async def _answers(provider: Provider, environment: Environment) -> bool:
    """Something that listens on its port is not enough: it has to list models as that server does."""
    options: Options = {"environment": environment, "proxy": ""}
    channel = open_channel(provider, options)
    listing = provider.listing
    assert listing is not None  # noqa: S101 - only those were chosen
    try:
        request = HttpRequest(method="GET", url=channel.base_url + listing.path)
        response = await channel.transport.send(request, timeouts=_TIMEOUTS)
        body = msgspec.json.decode(await read_whole(response, _LARGEST))
    except (DragomanError, msgspec.DecodeError, OSError):
        return False
    finally:
        await channel.transport.close()
    return isinstance(body, dict) and isinstance(body.get(listing.items), list)
