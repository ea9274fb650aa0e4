"""Which models a provider has, by its own list."""

from __future__ import annotations

from typing import Any

from dragoman.drivers.remote import Call, Channel, send
from dragoman.drivers.transport import HttpRequest, failed, read_whole
from dragoman.errors import NotConfigured
from dragoman.ir.values import parse_json


async def list_models(channel: Channel) -> list[str]:
    """Names as `provider/NAME` takes them, in the provider's own order. One page: the lists of today fit."""
    listing = channel.provider.listing
    if listing is None:
        raise NotConfigured(f"{channel.provider.name} has no list of its models", missing="listing")
    base = channel.base_url
    if listing.base_url and base == channel.provider.base_url.format(**channel.place, host=""):
        base = listing.base_url.format(**channel.place)
    headers = {**channel.provider.headers, **channel.headers, "accept": "application/json"}
    call = Call.about(HttpRequest(method="GET", url=base + listing.path, headers=headers), channel.timeouts)
    body = await read_whole(await send(channel, call), channel.limits.response)
    try:
        found = parse_json(body)[listing.items]
        return [_bare(entry[listing.id]) for entry in found]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise failed("server", f"{channel.provider.name} answered with something that is no list of models") from error


def _bare(name: Any) -> str:
    """Google says `models/gemini-...` and `publishers/google/models/gemini-...`."""
    if not isinstance(name, str):
        raise TypeError(name)
    return name.rpartition("models/")[2]
