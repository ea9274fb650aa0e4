"""The HTTP server, on aiohttp, and a thread to run it in for synchronous code."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from types import TracebackType
from typing import Self

from aiohttp import web

from dragoman.sim.exchange import Exchange, Reply, Streamed
from dragoman.sim.faults import Fault
from dragoman.sim.service import CONTROL, Recorded, Served, Service, Settings, control

LOOPBACK = "127.0.0.1"
# Bytes per piece of a body sent with faults; drips are smaller.
PIECE = 64
DRIP = 8
# Longer than any client waits; a stalled answer ends when the client disconnects.
STALL = 3600.0
READ = 64 << 10


class HttpHandler:
    """Reads HTTP requests, passes them to the service and writes answers, with faults if requested."""

    def __init__(self, service: Service) -> None:
        self.service = service

    async def handle(self, request: web.Request) -> web.StreamResponse:
        exchange = await self._read(request)
        if exchange.path.startswith(CONTROL + "/"):
            return _whole_response(control(self.service, exchange))
        served = self.service.respond(exchange)
        await asyncio.sleep(served.fault.delay)
        if served.fault.cut == 0:
            return _hang_up(request, web.Response())
        if isinstance(served.answered, Reply) and not _is_broken(served.fault):
            return _whole_response(served.answered)
        return await _stream_with_faults(request, served)

    async def _read(self, request: web.Request) -> Exchange:
        exchange = Exchange(
            method=request.method,
            path=request.rel_url.raw_path,
            query=dict(request.rel_url.query),
            headers={name.lower(): value for name, value in request.headers.items()},
            body=b"",
        )
        limit = self.service.max_body(exchange)
        body = bytearray()
        oversized = False
        # Read and discard a body over the limit: a client that still writes would not read our answer.
        async for chunk in request.content.iter_chunked(READ):
            oversized = oversized or len(body) + len(chunk) > limit
            body.extend(b"" if oversized else chunk)
        return replace(exchange, body=b"" if oversized else bytes(body), oversized=oversized)


def _whole_response(reply: Reply) -> web.Response:
    headers = {**reply.headers, "content-type": reply.content_type}
    return web.Response(status=reply.status, body=reply.body, headers=headers)


def _is_broken(fault: Fault) -> bool:
    return bool(fault.drip) or any(count is not None for count in (fault.cut, fault.garbage, fault.stall))


def _hang_up(request: web.Request, response: web.StreamResponse) -> web.StreamResponse:
    if request.transport is not None:
        request.transport.close()
    return response


async def _stream_with_faults(request: web.Request, served: Served) -> web.StreamResponse:
    answered, fault = served.answered, served.fault
    response = web.StreamResponse(headers={**answered.headers, "content-type": answered.content_type})
    if isinstance(answered, Reply):
        response.set_status(answered.status)
        body = b'{"unfinished": ' if fault.garbage is not None else answered.body
        response.content_length = len(body)
        fault = Fault(cut=fault.cut, stall=fault.stall, drip=fault.drip)
        events: Iterable[bytes] = (body[start : start + PIECE] for start in range(0, len(body), PIECE))
    else:
        response.headers["cache-control"] = "no-cache"
        events = _inject_faults(answered, fault)
    await response.prepare(request)
    for index, event in enumerate(events):
        if index == fault.cut:
            return _hang_up(request, response)
        if index == fault.stall:
            await asyncio.sleep(STALL)
        await _write(response, event, fault.drip)
    await response.write_eof()
    return response


def _inject_faults(streamed: Streamed, fault: Fault) -> Iterator[bytes]:
    for index, event in enumerate(streamed.events):
        if index == fault.garbage:
            yield streamed.garbage
        if index == fault.fail and streamed.failure is not None and fault.problem is not None:
            yield streamed.failure(fault.problem)
            return
        yield event


async def _write(response: web.StreamResponse, event: bytes, drip: float) -> None:
    if not drip:
        await response.write(event)
        return
    for start in range(0, len(event), DRIP):
        await response.write(event[start : start + DRIP])
        await asyncio.sleep(drip)


# --- running ------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def serving(
    service: Service, *, host: str = LOOPBACK, port: int = 0, tls: ssl.SSLContext | None = None
) -> AsyncIterator[str]:
    """Serves until the block is left; yields the URL. Port 0 selects a free port."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", HttpHandler(service).handle)
    # Requests carry keys: nothing of them is logged.
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=1.0)
    await runner.setup()
    try:
        listening = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
        await web.SockSite(runner, listening, ssl_context=tls).start()
        address = listening.getsockname()
        yield f"http{'s' if tls else ''}://{f'[{host}]' if ':' in host else host}:{address[1]}"
    finally:
        await runner.cleanup()


class Simulator:
    """The simulators in a thread of their own: `with Simulator() as simulator: ... simulator.url ...`."""

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        host: str = LOOPBACK,
        port: int = 0,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.service = Service(settings or Settings())
        self.host = host
        self.port = port
        self.tls = tls
        self.url = ""
        self._failure: BaseException | None = None
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._run, name="dragoman-sim", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait()
        if self._failure is not None:
            raise self._failure
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        if self._loop is not None and self._stop is not None:
            with suppress(RuntimeError):  # the loop has ended by itself
                self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:  # noqa: BLE001 - passed on to the waiting thread
            self._failure = error
            self._ready.set()

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        async with serving(self.service, host=self.host, port=self.port, tls=self.tls) as url:
            self.url = url
            self._ready.set()
            await self._stop.wait()

    # for tests

    @property
    def requests(self) -> list[Recorded]:
        return list(self.service.requests)

    def play(self, *turns: Mapping[str, object]) -> None:
        """Plays a script of these turns from now on."""
        self.service.play(turns)

    def play_batches(self, **script: object) -> None:
        """Scripts batch jobs created from now on: see `dragoman.sim.batches.BatchScript`."""
        self.service.play_batches(script)

    def reset(self) -> None:
        self.service.reset()
