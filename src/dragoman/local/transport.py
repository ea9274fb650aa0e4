"""Transport of `local/...`: starts the server of a model and sends requests to it on loopback."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

import msgspec
from msgspec import structs

from dragoman.drivers.http import HttpTransport
from dragoman.drivers.replay import Replayed, ReplayedResponse
from dragoman.drivers.transport import HttpRequest, HttpResponse, Timeouts, transport_error
from dragoman.errors import NotConfigured
from dragoman.installation import install_command
from dragoman.local.calling import CallingResponse, prepare_request
from dragoman.local.models import Plan, installed_models, plan_for
from dragoman.local.servers import SERVERS, Server
from dragoman.local.serving import Ready

_FIRST_ERROR = 300


class LocalTransport:
    def __init__(self, base_url: str, environment: Mapping[str, str]) -> None:
        if find_spec("xllamacpp") is None:
            raise NotConfigured(f"xllamacpp is not installed: {install_command('local')}", missing="local")
        self._base_url = base_url
        self._environment = environment
        self._network = HttpTransport()
        self._servers: dict[Plan, Server] = {}

    async def send(self, request: HttpRequest, *, timeouts: Timeouts) -> HttpResponse:
        if request.method == "GET":
            listed = {"data": [{"id": name} for name in installed_models()]}
            return ReplayedResponse(Replayed(chunks=[msgspec.json.encode(listed)]))
        body: dict[str, Any] = msgspec.json.decode(request.body)
        server = self._server_of(body["model"])
        ready = await _start(server, timeouts)
        prepared = None if ready.knows_tools else prepare_request(body)
        sent = structs.replace(
            request,
            url=request.url.replace(self._base_url, f"{ready.url}/v1", 1),
            headers={**request.headers, "authorization": f"Bearer {server.key}"},
            body=request.body if prepared is None else msgspec.json.encode(prepared.body),
        )
        response = await self._network.send(sent, timeouts=timeouts)
        if prepared is None or not prepared.calls or response.status >= _FIRST_ERROR:
            return response
        return CallingResponse(response, stream=bool(body.get("stream")))

    async def close(self) -> None:
        await self._network.close()
        servers, self._servers = list(self._servers.values()), {}
        for server in servers:
            await asyncio.to_thread(SERVERS.leave, server)

    def _server_of(self, model: str) -> Server:
        plan = plan_for(model, self._environment)
        if plan not in self._servers:
            self._servers[plan] = SERVERS.join(plan)
        return self._servers[plan]


async def _start(server: Server, timeouts: Timeouts) -> Ready:
    """Starts the server; loading the model counts as waiting for the first byte."""
    waits = [seconds for seconds in (timeouts.first_byte, timeouts.total) if seconds is not None]
    try:
        return await asyncio.wait_for(asyncio.to_thread(server.start), min(waits, default=None))
    except TimeoutError as error:
        raise transport_error("timeout", f"the model was not loaded within {min(waits):g} s") from error
