"""Runs a gateway in a separate thread; tests use its URL, as clients do."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager, suppress
from typing import Any, Self
from urllib.parse import urlsplit

from msgspec import structs

from dragoman.agent import Agent
from dragoman.drivers.providers import PROVIDERS
from dragoman.gateway.config import Config, read_config
from dragoman.gateway.exchange import ServerLimits
from dragoman.gateway.request_log import Log
from dragoman.gateway.served_agents import serve_agents
from dragoman.gateway.serving import Front, Running, Setting, WorkerLink, serving, simulators_at

TIMEOUT = 60.0


def simulated(url: str, config: Config | None = None) -> Setting:
    return Setting(config=on_any_port(config or Config()), simulated=simulators_at(url))


def configured(text: str, environment: Mapping[str, str] | None = None) -> Setting:
    return Setting(config=on_any_port(read_config(text)), environment=environment or {})


def every_format(url: str) -> Config:
    """Return a configuration with a provider named after each format, so that no API stands in for another."""
    tables = []
    for name, base in simulators_at(url).items():
        region = 'region = "us-east-1"\n' if name == "bedrock" else ""
        format = PROVIDERS[name].format
        tables.append(f'[providers."as-{format}"]\nkind = "{name}"\nbase_url = "{base}"\napi_key = "any"\n{region}')
    return read_config("\n".join(tables))


def on_any_port(config: Config) -> Config:
    return structs.replace(config, server=structs.replace(config.server, port=0, drain_seconds=1.0))


class Lines(Log):
    """Keeps the log lines for assertions."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[dict[str, Any]] = []

    def write(self, line: Mapping[str, object]) -> None:
        self.lines.append(dict(line))

    def clear(self) -> None:
        self.lines.clear()


class RunningGateway:
    def __init__(
        self,
        setting: Setting,
        limits: ServerLimits | None = None,
        *,
        front: Front | None = None,
        worker_link: WorkerLink | None = None,
        agents: Mapping[str, Agent[Any]] | None = None,
    ) -> None:
        self.url = ""
        self.log = Lines()
        self._setting = setting
        self._limits = limits
        self._front = front
        self._worker_link = worker_link
        self._agents = agents
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.running: Running | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait()
        if self._failure is not None:
            raise self._failure
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._thread.join()

    def stop(self) -> None:
        if self._loop is not None and self._stop is not None:
            with suppress(RuntimeError):  # it has ended already
                self._loop.call_soon_threadsafe(self._stop.set)

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:  # noqa: BLE001 - the waiting thread raises it
            self._failure = error
            self._ready.set()

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        setting, worker_link = self._setting, self._worker_link
        async with AsyncExitStack() as stack:
            if self._agents is not None:
                setting, worker_link = await stack.enter_async_context(serve_agents(self._agents, setting, worker_link))
            running = await stack.enter_async_context(
                serving(setting, log=self.log, limits=self._limits, front=self._front, worker_link=worker_link)
            )
            self.url, self.running = running.url, running
            self._ready.set()
            await self._stop.wait()

    def requests(self, count: int) -> list[dict[str, Any]]:
        """Wait for the log lines of this many requests: each is written a moment after the client has its answer."""
        end = time.monotonic() + TIMEOUT
        while True:
            records = [line for line in self.log.lines if line["event"] == "request"]
            if len(records) >= count or time.monotonic() > end:
                assert len(records) == count, records
                return records
            time.sleep(0.002)

    def reload(self, text: str) -> None:
        assert self._loop is not None
        running, done = self.running, threading.Event()
        assert running is not None

        def change() -> None:
            running.reload(on_any_port(read_config(text)))
            done.set()

        self._loop.call_soon_threadsafe(change)
        assert done.wait(TIMEOUT)


class Got:
    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def send(
    url: str, path: str, body: object = None, headers: Mapping[str, str] | None = None, method: str = "POST"
) -> Got:
    """Send one request and read the whole answer."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=TIMEOUT)
    raw = body if isinstance(body, bytes | None) else json.dumps(body).encode()
    try:
        connection.request(method, path, raw, {"content-type": "application/json", **(headers or {})})
        response = connection.getresponse()
        received = {name.lower(): value for name, value in response.getheaders()}
        return Got(response.status, received, response.read())
    finally:
        connection.close()


@contextmanager
def connected(url: str) -> Iterator[socket.socket]:
    """Open a plain connection for raw bytes."""
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=TIMEOUT) as sock:
        yield sock


def until_closed(sock: socket.socket) -> bytes:
    received = bytearray()
    try:
        while data := sock.recv(65536):
            received += data
    except ConnectionResetError:
        pass
    return bytes(received)
