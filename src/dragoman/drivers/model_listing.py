"""Lists the models of a provider."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from dragoman.drivers.connect import is_local
from dragoman.drivers.providers import Listing
from dragoman.drivers.remote import Call, Channel, send
from dragoman.drivers.transport import HttpRequest, read_whole, transport_error
from dragoman.errors import NotConfigured, ProviderError
from dragoman.ir.values import parse_json

_LARGEST, _MOST_COMMAS = 16 << 20, 250_000
"""Of a list. The longest real ones have half a megabyte and 50,000 commas; entries take far more memory than bytes."""
_MOST_MODELS, _LONGEST_NAME = 20_000, 300
_LARGE = 256 << 10
"""Bytes whose parsing would hold up the event loop."""


async def list_models(channel: Channel) -> list[str]:
    """Model names for `provider/NAME`, in the provider's order. Reads one page, which holds all current lists.

    Names that no client could send, and that would spoil a terminal or another API's list, are left out.
    """
    listing = channel.provider.listing
    if listing is None:
        raise NotConfigured(f"{channel.provider.name} has no list of its models", missing="listing")
    base = channel.base_url
    if listing.base_url and base == channel.provider.base_url.format(**channel.place, host=""):
        base = listing.base_url.format(**channel.place)
    headers = {**channel.provider.headers, **channel.headers, "accept": "application/json"}
    call = Call.about(HttpRequest(method="GET", url=base + listing.path, headers=headers), channel.timeouts)
    try:
        body = await read_whole(await send(channel, call), _LARGEST)
        names = partial(_names_in, body, listing)
        return names() if len(body) <= _LARGE else await asyncio.to_thread(names)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise transport_error(
            "server", f"{channel.provider.name} answered with something that is not a list of models"
        ) from error


def _names_in(body: bytes, listing: Listing) -> list[str]:
    if body.count(b",") > _MOST_COMMAS:
        raise ValueError("the list is too long")
    entries = parse_json(body)[listing.items]
    if len(entries) > _MOST_MODELS:
        raise ValueError("the list is too long")
    names = [_bare(entry[listing.id]) for entry in entries]
    return [name for name in names if name.isprintable() and 0 < len(name) <= _LONGEST_NAME]


def _bare(name: Any) -> str:
    """The name without Google's prefix, `models/` or `publishers/google/models/`."""
    if not isinstance(name, str):
        raise TypeError(name)
    return name.rpartition("models/")[2]


Reach: TypeAlias = Literal["works", "fails", "silent", "not asked"]


class Reached(Struct, frozen=True):
    """Result of asking a provider for its models."""

    state: Reach
    detail: str


async def reach(channel: Channel) -> Reached:
    """Asks for the list of models, which checks the URL, the connection and the key.

    `silent`: nothing listens at a local URL, which is an error only if it was configured.
    `not asked`: the provider has no list.
    """
    if channel.provider.listing is None:
        return Reached("not asked", f"{channel.base_url}, which has no list of models to ask for")
    try:
        names = await list_models(channel)
    except ProviderError as error:
        if is_local(channel.base_url) and error.status is None:
            return Reached("silent", f"nothing answers at {channel.base_url}")
        return Reached("fails", str(error))
    return Reached("works", f"{len(names)} models; {channel.base_url}")
