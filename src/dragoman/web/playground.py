"""A body, in every format."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import msgspec

from dragoman.codecs.registry import formats
from dragoman.gateway.exchange import Exchange
from dragoman.web.crossing import Given, Unclear, cross
from dragoman.web.site import API, Place, Route, send_json


def playground() -> Place:
    shown = _Playground()
    routes = (
        Route("GET", f"{API}/playground/formats", shown.formats),
        Route("POST", f"{API}/playground/crossings", shown.cross),
    )
    return Place("playground", routes)


class _Playground:
    def __init__(self) -> None:
        self._crossing = asyncio.Lock()

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
