"""HTTP handlers of the playground."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

from msgspec import Struct

from dragoman.codecs.registry import formats
from dragoman.gateway.exchange import Exchange
from dragoman.gateway.http_request import Head
from dragoman.web.all_formats import PlaygroundInput, UnreadableInput, convert_to_all
from dragoman.web.models import GatewayModels
from dragoman.web.site import API, PageSection, Route, read_body, send_json
from dragoman.web.trial import TrialRequest, try_out


class Trials(Struct, frozen=True):
    """How the playground sends requests to models."""

    gateway_models: Callable[[Head], Awaitable[GatewayModels]]
    models: Callable[[], Awaitable[Sequence[str]]]
    is_simulated: Callable[[str], bool]


def playground(trials: Trials | None = None) -> PageSection:
    """The playground section; without `trials` it only converts and cannot send."""
    shown = _Playground(trials)
    routes = (
        Route("GET", f"{API}/playground/models", shown.models),
        Route("POST", f"{API}/playground/run", shown.run),
        Route("GET", f"{API}/playground/formats", shown.formats),
        Route("POST", f"{API}/playground/crossings", shown.convert_to_all),
    )
    return PageSection("playground", routes)


class _Playground:
    def __init__(self, trials: Trials | None) -> None:
        self._crossing = asyncio.Lock()
        self._trials = trials

    async def models(self, exchange: Exchange, _: Mapping[str, str]) -> None:
        """Model names to suggest; none if nothing can be sent."""
        send_json(exchange, [] if self._trials is None else sorted(set(await self._trials.models())))

    async def run(self, exchange: Exchange, _: Mapping[str, str]) -> None:
        if self._trials is None:
            raise LookupError("this page cannot send requests: start it with `dragoman serve`")
        trial = read_body(exchange, TrialRequest)
        try:
            gateway_models = await self._trials.gateway_models(exchange.head)
            tried = await try_out(trial, gateway_models, is_simulated=self._trials.is_simulated(trial.model))
        except UnreadableInput as unclear:
            send_json(exchange, {"error": str(unclear), "problem": unclear.problem, "place": unclear.place}, 422)
            return
        send_json(exchange, tried)

    async def formats(self, exchange: Exchange, _: Mapping[str, str]) -> None:
        send_json(exchange, {group: formats(group) for group in ("wire", "record", "compatible")})

    async def convert_to_all(self, exchange: Exchange, _: Mapping[str, str]) -> None:
        given = read_body(exchange, PlaygroundInput)
        try:
            async with self._crossing:  # one at a time, off the event loop
                understood = await asyncio.to_thread(convert_to_all, given)
        except UnreadableInput as unclear:
            failure = {"error": str(unclear), "problem": unclear.problem, "place": unclear.place}
            send_json(exchange, failure, unclear.status)
            return
        send_json(exchange, understood)
