"""Endpoints of the Interactions API that do not generate: get, resume a stream, cancel, delete."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from dragoman.drivers.providers import Target
from dragoman.gateway.endpoints import Endpoint, Operation
from dragoman.gateway.exchange import Exchange
from dragoman.gateway.other_endpoints import JSON, Handler, pass_to_owner, query_for_upstream
from dragoman.gateway.request_records import Record
from dragoman.gateway.running_events import RunningEvents, UnknownEvent
from dragoman.gateway.state.base import Kept
from dragoman.gateway.stored_interactions import FORMAT, no_interaction, unknown_event
from dragoman.gateway.stored_responses import Noted
from dragoman.gateway.upstream_calls import upstream_path

if TYPE_CHECKING:
    from dragoman.gateway.app import Gateway

_EVENTS = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}


async def _find_stored(gateway: Gateway, endpoint: Endpoint, exchange: Exchange, record: Record) -> Kept | None:
    """Return the stored interaction; None if the upstream keeps it and its answer was passed on."""
    caller = await gateway.admit(endpoint, exchange, record)
    found = await gateway.interactions.find(endpoint.id, caller.id)
    if isinstance(found, Noted):
        await _elsewhere(gateway, found, endpoint, exchange, record)
        return None
    return found


def _put(exchange: Exchange, record: Record, body: bytes, headers: Mapping[str, str] = JSON) -> None:
    record.status = 200
    exchange.send(200, {**headers, **record.id_headers}, body)


async def _interaction(gateway: Gateway, endpoint: Endpoint, exchange: Exchange, record: Record) -> None:
    found = await _find_stored(gateway, endpoint, exchange, record)
    if found is None:
        return
    query = parse_qs(exchange.head.query)
    if query.get("stream") == ["true"]:
        last = query.get("last_event_id", [""])[0]
        await _resume(gateway, found, last, exchange, record)
    else:
        whole = query.get("include_input") == ["true"]
        _put(exchange, record, await gateway.interactions.timeline(found, include_input=whole))


async def _resume(gateway: Gateway, found: Kept, last_event_id: str, exchange: Exchange, record: Record) -> None:
    """Send the events after the last one that the client saw: stored ones immediately, the rest as they come."""
    events = gateway.interactions.watch(found)
    if events is None:
        ended = await gateway.interactions.wait_for_end(found)
        _put(exchange, record, await gateway.interactions.events_after(ended, last_event_id), _EVENTS)
        return
    try:
        place = events.place_after(last_event_id)
    except UnknownEvent:
        raise unknown_event(last_event_id) from None
    await follow(events, place, exchange, record)


async def follow(events: RunningEvents, place: int, exchange: Exchange, record: Record) -> None:
    """Send the events from this place on as they come. A client that falls behind the buffer is cut off."""
    record.status = 200
    exchange.start(200, {**_EVENTS, **record.id_headers})
    with suppress(UnknownEvent):
        async for batch in events.read(place):
            if exchange.write(batch):
                await exchange.drain()
        exchange.finish()


async def _delete(gateway: Gateway, endpoint: Endpoint, exchange: Exchange, record: Record) -> None:
    if found := await _find_stored(gateway, endpoint, exchange, record):
        await gateway.interactions.forget(found)
        _put(exchange, record, b"{}")


async def _cancel(gateway: Gateway, endpoint: Endpoint, exchange: Exchange, record: Record) -> None:
    if found := await _find_stored(gateway, endpoint, exchange, record):
        _put(exchange, record, (await gateway.interactions.cancel(found)).response)


async def _elsewhere(gateway: Gateway, noted: Noted, endpoint: Endpoint, exchange: Exchange, record: Record) -> None:
    upstream = gateway.router.upstream(noted.upstream, FORMAT)
    if upstream is None:  # it is no longer configured
        raise no_interaction(endpoint.id)
    channel = upstream.channel
    rest = exchange.head.path.partition("/interactions/")[2]
    target = Target(upstream_path(channel, "", stream=False), "", stream=False, place=channel.place)
    url = f"{channel.base_url}{channel.provider.path(target)}/{rest}{query_for_upstream(exchange.head)}"
    await pass_to_owner(gateway, upstream, url, exchange, record)


INTERACTIONS_ENDPOINTS: Mapping[Operation, Handler] = {
    "interaction": _interaction,
    "delete_interaction": _delete,
    "cancel_interaction": _cancel,
}
