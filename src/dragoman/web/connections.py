"""What a gateway is connected to: providers and their state, routes, and client settings."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct, structs

from dragoman.drivers.connect import Environment
from dragoman.drivers.providers import PROVIDERS
from dragoman.gateway.app import Gateway
from dragoman.gateway.config import ProviderTable, RouteTable
from dragoman.gateway.recipes import RECIPES, recipe
from dragoman.gateway.routing import Place
from dragoman.web.guard import PageUser

_ENVIRONMENT = "env:"
_WELL_KNOWN = "anthropic"


class UpstreamState(Struct, frozen=True, kw_only=True):
    """State of one key of a provider."""

    name: str
    breaker: str
    in_flight: int


class Connection(Struct, frozen=True, kw_only=True, omit_defaults=True):
    name: str
    provider: str
    format: str
    is_simulated: bool = False
    keys: list[str] = []
    """Sources of the keys, never the keys themselves."""
    models: Sequence[str] = ()
    upstreams: list[UpstreamState] = []


class RouteRow(Struct, frozen=True, kw_only=True, omit_defaults=True):
    name: str
    to: list[str]
    fallback: Sequence[str] = ()
    settings: dict[str, object] = {}


class ClientSetup(Struct, frozen=True, kw_only=True):
    """Shell commands that point a client to this gateway."""

    name: str
    lines: str


class Connections(Struct, frozen=True, kw_only=True):
    connections: list[Connection]
    routes: list[RouteRow]
    clients: list[ClientSetup]


def describe_connections(gateway: Gateway, environment: Environment, user: PageUser, url: str) -> Connections:
    """Connections as this user may see them: ordinary keys do not see the gateway's keys.

    `url` is the address of the gateway as the user sees it.
    """
    states = _states(gateway)
    tables = gateway.config.providers
    connections = [
        Connection(
            name=place.name,
            provider=place.provider.name,
            format=place.provider.format,
            is_simulated=gateway.router.is_simulated(place.name),
            keys=_keys(place, tables, environment) if user.sees_all else [],
            models=place.models,
            upstreams=states.get(place.name, []),
        )
        for place in gateway.router.available()
    ]
    return Connections(
        connections=connections,
        routes=[_route(name, route) for name, route in gateway.config.routes.items()],
        clients=list(_clients(gateway, url)),
    )


def _states(gateway: Gateway) -> dict[str, list[UpstreamState]]:
    states: dict[str, list[UpstreamState]] = {}
    for upstream in gateway.router.upstreams_in_use():
        state = UpstreamState(name=upstream.name, breaker=upstream.breakers.worst, in_flight=upstream.in_flight)
        states.setdefault(upstream.name.partition("#")[0], []).append(state)
    return states


def _keys(place: Place, tables: Mapping[str, ProviderTable], environment: Environment) -> list[str]:
    table = tables.get(place.name)
    if table is not None and place.keys:
        given = table.api_keys or (table.api_key or "",)
        return [
            key.removeprefix(_ENVIRONMENT) if key.startswith(_ENVIRONMENT) else "in the configuration" for key in given
        ]
    return [name for name in place.provider.key_environment if environment.get(name)]


_PLAIN = RouteTable(to="")


def _route(name: str, route: RouteTable) -> RouteRow:
    to = (route.to,) if isinstance(route.to, str) else route.to
    settings = {
        field: value
        for field, value in structs.asdict(route).items()
        if field not in {"to", "fallback"} and value != getattr(_PLAIN, field)
    }
    return RouteRow(
        name=name,
        to=[one if isinstance(one, str) else f"{one.model} ({one.weight:g})" for one in to],
        fallback=route.fallback,
        settings=settings,
    )


# ── clients ──


def _clients(gateway: Gateway, url: str) -> Iterator[ClientSetup]:
    model, key = _some_model(gateway), "YOUR_KEY" if gateway.access.required else "any"
    body = json.dumps({"model": model, "messages": [{"role": "user", "content": "Hello"}]})
    shown = f" -H 'authorization: Bearer {key}'" if gateway.access.required else ""
    address = shlex.quote(f"{url}/v1/chat/completions")
    yield ClientSetup(
        name="curl", lines=f"curl {address}{shown} -H 'content-type: application/json' -d {shlex.quote(body)}"
    )
    for name in RECIPES:
        yield ClientSetup(name=name, lines="\n".join(recipe(name, url=url, key=key, model=model)))


def _some_model(gateway: Gateway) -> str:
    """A model for the examples: one of Anthropic if possible, otherwise the first."""
    places = {place.name: place for place in gateway.router.available()}
    place = places.get(_WELL_KNOWN) or next(iter(places.values()), None)
    if place is None:
        return f"{_WELL_KNOWN}/{PROVIDERS[_WELL_KNOWN].example}"
    return f"{place.name}/{next(iter(place.models), place.provider.example)}"
