"""Finds model servers on this machine, at the ports on which they usually listen."""

from __future__ import annotations

import asyncio

from dragoman.drivers.connect import Environment, Options, is_local, open_channel
from dragoman.drivers.model_listing import list_models
from dragoman.drivers.providers import PROVIDERS, Provider
from dragoman.drivers.transport import Timeouts
from dragoman.errors import DragomanError
from dragoman.gateway.upstream_http import UpstreamHttp
from dragoman.gateway.upstreams import ONCE
from dragoman.local.models import installed_models

_TIMEOUTS = Timeouts(connect=0.3, first_byte=1.0, total=1.5)
OWN = "local"
"""The provider whose server dragoman starts itself."""


async def find_local_servers(environment: Environment) -> dict[str, tuple[str, ...]]:
    """Return the providers whose server runs on this machine or is started on demand, with their models."""
    possible = [one for one in PROVIDERS.values() if not one.key_required and is_local(one.base_url) and one.listing]
    found = await asyncio.gather(*(_models(provider, environment) for provider in possible))
    running = {provider.name: names for provider, names in zip(possible, found, strict=True) if names}
    return {OWN: tuple(installed_models()), **running}


async def _models(provider: Provider, environment: Environment) -> tuple[str, ...]:
    """Return the server's models. A listener on its port is not enough: it must list models as that server does."""
    options: Options = {"environment": environment, "timeouts": _TIMEOUTS, "retry": ONCE}
    # The gateway's own HTTP client: the drivers' would load aiohttp, which takes 9 MB that nothing else here needs.
    channel = open_channel(provider, {**options, "transport": UpstreamHttp()})
    try:
        return tuple(await list_models(channel))
    except (DragomanError, OSError):
        return ()
    finally:
        await channel.transport.close()
