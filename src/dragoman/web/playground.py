"""A body, in every format."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

import msgspec
from msgspec import Struct

from dragoman.codecs.registry import formats
from dragoman.gateway.exchange import Exchange
from dragoman.gateway.http_request import Head
from dragoman.web.crossing import Given, Unclear, cross
from dragoman.web.models import Asking
from dragoman.web.site import API, Place, Route, send_json
from dragoman.web.trial import Trial, try_out


class Trials(Struct, frozen=True):
    """How the playground sends requests to models."""

    asking: Callable[[Head], Awaitable[Asking]]
    models: Callable[[], Awaitable[Sequence[str]]]
    is_simulated: Callable[[str], bool]


def playground(trials: Trials | None = None) -> Place:
    """Without `trials` bodies are converted, and no model can be asked."""
    shown = _Playground(trials)
    routes = (
        Route("GET", f"{API}/playground/models", shown.models),
        Route("POST", f"{API}/playground/run", shown.run),
        Route("GET", f"{API}/playground/formats", shown.formats),
        Route("POST", f"{API}/playground/crossings", shown.cross),
    )
    return Place("playground", routes)


class _Playground:
    def __init__(self, trials: Trials | None) -> None:
        self._crossing = asyncio.Lock()
        self._trials = trials

    async def models(self, exchange: Exchange, _: Mapping[str, str]) -> None:
        """Names to choose from; none where nothing can be sent."""
        send_json(exchange, [] if self._trials is None else sorted(set(await self._trials.models())))

    async def run(self, exchange: Exchange, _: Mapping[str, str]) -> None:
        if self._trials is None:
            raise LookupError("this page asks no models: start it with `dragoman serve`")
        trial = msgspec.json.decode(exchange.body, type=Trial)
        try:
            asking = await self._trials.asking(exchange.head)
            tried = await try_out(trial, asking, is_simulated=self._trials.is_simulated(trial.model))
        except Unclear as unclear:
            send_json(exchange, {"error": str(unclear), "problem": unclear.problem, "place": unclear.place}, 422)
            return
        send_json(exchange, tried)

    async def formats(self, exchange: Exchange, _: Mapping[str, str]) -> None:
        send_json(exchange, {group: formats(group) for group in ("wire", "record", "compatible")})

    async def cross(self, exchange: Exchange, _: Mapping[str, str]) -> None:
        given = msgspec.json.decode(exchange.body, type=Given)
        try:
            async with self._crossing:  # one at a time, off the event loop
                understood = await asyncio.to_thread(cross, given)
        except Unclear as unclear:
            told = {"error": str(unclear), "problem": unclear.problem, "place": unclear.place}
            send_json(exchange, told, unclear.status)
            return
        send_json(exchange, understood)
