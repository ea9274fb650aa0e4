"""Runs a gateway: its parts, its listeners, reload and shutdown."""

from __future__ import annotations

import asyncio
import gc
import ipaddress
import os
import signal
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct

from dragoman.codecs.registry import codec
from dragoman.drivers.connect import Environment
from dragoman.drivers.key_store import KeyStoreError, environment_with_stored_keys
from dragoman.drivers.providers import PROVIDERS
from dragoman.errors import NotConfigured
from dragoman.gateway.access import Access
from dragoman.gateway.answer_cache import AnswerCache
from dragoman.gateway.app import Gateway
from dragoman.gateway.body_log import capture_for_log
from dragoman.gateway.capture import Capture
from dragoman.gateway.config import Config, ConfigError, load_config
from dragoman.gateway.config import Server as ServerTable
from dragoman.gateway.exchange import MAX_CONNECTIONS, Application, ServerLimits
from dragoman.gateway.http_server import Server, server_context
from dragoman.gateway.mcp_endpoint import McpEndpoint
from dragoman.gateway.mcp_tools import McpTools
from dragoman.gateway.request_log import Log, open_log
from dragoman.gateway.routing import Router
from dragoman.gateway.state.connect import open_answers, open_ledger
from dragoman.gateway.state.ledger import Ledger
from dragoman.gateway.stored_responses import Responses
from dragoman.gateway.telemetry import open_tracing
from dragoman.streams import StreamDecoder, StreamEncoder

# The path of each provider's simulator under the URL of `dragoman sim`.
_SIMULATED: Mapping[str, str] = {
    "openai": "/openai/v1",
    "openai-chat": "/openai/v1",
    "anthropic": "/anthropic",
    "gemini": "/gemini",
    "vertex": "/vertex",
    "ollama": "/ollama",
    "bedrock": "/bedrock",
    "cohere": "/cohere",
    "gemini-interactions": "/gemini",
}
_YOUNG_OBJECTS = 5_000
"""Allocations before the garbage collector runs: about those of twenty concurrent requests."""


class Setting(Struct, frozen=True, kw_only=True):
    """Everything a gateway is made from."""

    config: Config = Config()
    environment: Environment = {}
    simulated: Mapping[str, str] = {}
    """Provider -> the URL of its simulator, for those that are simulated."""
    local: Mapping[str, tuple[str, ...]] = {}
    """Providers whose server runs on this machine, and the only models that clients may use there."""
    page_key: str = ""
    """The key that the page sends with its own requests, if keys are required."""
    extend: Callable[[Config], Config] | None = None
    """Extends every configuration, including reloaded ones."""

    def router(self, config: Config) -> Router:
        config = config if self.extend is None else self.extend(config)
        return Router(config, self.environment, self.simulated, local=self.local)


Front: TypeAlias = Callable[[Gateway, Setting, str], AbstractAsyncContextManager[Application]]
"""An application in front of a gateway, such as the page, that passes on requests that are not its own."""
WorkerLink: TypeAlias = Callable[[Gateway, Application, ServerLimits], AbstractAsyncContextManager[Application]]
"""Connects one worker to the others, and forwards requests that another worker must answer."""


def has_keys(config: Config, environment: Environment) -> bool:
    """Whether a real provider is configured or has a key in the environment."""
    return bool(config.providers) or any(
        environment.get(name)
        for provider in PROVIDERS.values()
        for name in (*provider.key_environment, *provider.base_url_environment)
    )


def simulators_at(url: str) -> dict[str, str]:
    return {name: url + mount for name, mount in _SIMULATED.items()}


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_exposure(host: str, access: Access) -> None:
    """Raise `ConfigError` if other machines could use the owner's keys through a gateway without keys."""
    if not is_loopback(host) and not access.required:
        raise ConfigError(
            f"refusing to listen on {host} without keys: set server.keys, or make one with `dragoman keys create`"
        )


def listening_socket(host: str, port: int, *, shared: bool = False) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=1024, reuse_port=shared)


@asynccontextmanager
async def serving(
    setting: Setting,
    *,
    listening: socket.socket | None = None,
    log: Log | None = None,
    limits: ServerLimits | None = None,
    front: Front | None = None,
    worker_link: WorkerLink | None = None,
) -> AsyncIterator[Running]:
    """Run a gateway until the block is left."""
    config = setting.config.server
    ledger = await open_ledger(config, setting.environment)
    access = Access(config.keys, setting.environment, ledger, setting.page_key)
    check_exposure(config.host, access)
    router = setting.router(setting.config)
    # In advance, so that the first client need not wait. Formats of clients alone are loaded with their first request:
    # each takes about a megabyte, and 10 to 35 ms once.
    for format in {place.provider.format for place in router.available()}:
        warm(format)
    request_log = log or _log(setting.config)
    ledger.problem = lambda words: request_log.event("database_away", error=words)
    responses = Responses(ledger.store)
    capture = Capture() if config.page and front is not None else None
    if capture is None and setting.config.log.bodies:
        capture = capture_for_log(config.max_requests)
    gateway = Gateway(router, access, log=request_log, responses=responses, capture=capture)
    gateway.cache = _answer_cache(setting, ledger, request_log)
    await _open_mcp(gateway, setting, request_log)
    gateway.tracing = open_tracing(setting.config.telemetry, setting.environment, request_log)
    bound = listening or listening_socket(config.host, config.port)
    host, port = bound.getsockname()[:2]
    tls = _tls(config)
    scheme = "http" if tls is None else "https"
    url = f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"
    fronts = AsyncExitStack()
    application: Application = gateway
    if front is not None and config.page:
        application = await fronts.enter_async_context(front(gateway, setting, url))
    limited = limits or _limits(config)
    if worker_link is not None:
        application = await fronts.enter_async_context(worker_link(gateway, application, limited))
    server = Server(application, limited)
    await server.listen(bound, tls)
    tending = asyncio.ensure_future(ledger.tend())
    gateway.batches.start()
    try:
        yield Running(gateway, server, url, ledger, setting)
    finally:
        await fronts.aclose()  # first, because streams to pages do not end by themselves
        await server.close(config.drain_seconds)
        await gateway.batches.close(config.drain_seconds)
        tending.cancel()
        await _close_parts(gateway)
        if gateway.tracing is not None:  # exporting the last spans may take a while
            await asyncio.to_thread(gateway.tracing.close)
        await asyncio.wait([tending])
        await ledger.close()
        request_log.close()


class Running:
    def __init__(
        self,
        gateway: Gateway,
        server: Server,
        url: str,
        ledger: Ledger,
        setting: Setting,
    ) -> None:
        self.gateway = gateway
        self.server = server
        self.url = url
        self._ledger = ledger
        self._setting = setting

    def reload(self, config: Config) -> None:
        """Use a new configuration for new requests; those in progress keep the old one. Raises `ConfigError`."""
        access = Access(config.server.keys, self._setting.environment, self._ledger, self._setting.page_key)
        check_exposure(self._setting.config.server.host, access)
        if self.gateway.access.required and not access.required:  # perhaps a file that is still being written
            words = "no keys are left, and a reload does not open a gateway that requires keys: restart it for that"
            raise ConfigError(f"server.keys: {words}")
        router = self._setting.router(config)
        if self.server.tls is not None and config.server.tls_cert:
            # A new context, because a certificate without its key, as in the middle of a renewal, ruins the old one.
            self.server.tls = _tls(config.server)
        self.gateway.replace(router, access)


def _answer_cache(setting: Setting, ledger: Ledger, log: Log) -> AnswerCache | None:
    table = setting.config.cache
    if not table.seconds:
        return None
    store = open_answers(table, setting.environment, ledger.store.database)
    return AnswerCache(table, store, lambda words: log.event("cache_away", error=words))


async def _close_parts(gateway: Gateway) -> None:
    """Close what the gateway has opened, once no client is served any more."""
    await gateway.responses.close()
    await gateway.interactions.close()
    await gateway.close()
    for opened in (gateway.cache, gateway.mcp_endpoint, gateway.mcp_tools):
        if opened is not None:
            await opened.close()


async def _open_mcp(gateway: Gateway, setting: Setting, log: Log) -> None:
    table = setting.config.mcp
    try:
        if table.servers:
            gateway.mcp_tools = McpTools(table, setting.environment, log)
            await gateway.mcp_tools.open()
        if table.serve:
            gateway.mcp_endpoint = McpEndpoint()
            await gateway.mcp_endpoint.open()
    except NotConfigured as error:
        raise ConfigError(f"mcp: {error}") from None


def _log(config: Config) -> Log:
    try:
        return open_log(config.server.log, config.log.file)
    except OSError as error:
        raise ConfigError(f"cannot write the log {config.log.file} (log.file): {error.strerror}") from None


def raise_file_limit() -> int:
    """Raise the limit of open files to the allowed maximum and return it. Many shells start with 1,024."""
    try:
        import resource  # noqa: PLC0415 - absent on Windows
    except ImportError:
        return 2 * MAX_CONNECTIONS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 4 * MAX_CONNECTIONS
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return wanted
    wanted = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    with suppress(OSError, ValueError):  # macOS may refuse the maximum that it reports
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return int(resource.getrlimit(resource.RLIMIT_NOFILE)[0])


def _limits(config: ServerTable) -> ServerLimits:
    return ServerLimits(
        body=config.max_body,
        buffered=config.max_buffered,
        unread=config.max_buffered,
        connections=min(MAX_CONNECTIONS, raise_file_limit() // 2),
        request_seconds=config.request_seconds,
        body_rate=config.body_rate,
    )


def _tls(config: ServerTable) -> ssl.SSLContext | None:
    if not config.tls_cert:
        return None
    context = server_context()
    load_certificate(context, config.tls_cert, config.tls_key)
    return context


def load_certificate(context: ssl.SSLContext, certificate: str, key: str) -> None:
    try:
        context.load_cert_chain(certificate, key or None)
    except OSError as error:
        reason = error.strerror or "no certificate and key in PEM format"
        raise ConfigError(
            f"cannot use the certificate {certificate} (server.tls_cert, server.tls_key): {reason}"
        ) from None


def warm(format: str) -> None:
    codec(format)
    StreamDecoder(format)
    StreamEncoder(format)


@asynccontextmanager
async def simulators() -> AsyncIterator[dict[str, str]]:
    """Run the strict simulators on a separate port, for a first run without keys."""
    from dragoman.sim import server, service  # noqa: PLC0415 - only where no real provider is configured

    simulated = service.Service(service.Settings(any_model=True))
    async with server.serving(simulated) as url:
        yield simulators_at(url)


async def run(
    setting: Setting,
    *,
    file: Path | None,
    listening: socket.socket | None,
    ready: Callable[[Running], None],
    front: Front | None = None,
    worker_link: WorkerLink | None = None,
) -> None:
    """Run a gateway until SIGINT or SIGTERM.

    SIGHUP reloads the configuration (one with errors changes nothing) and reopens the log file.
    """
    loop = asyncio.get_running_loop()
    over = asyncio.Event()
    async with serving(setting, listening=listening, front=front, worker_link=worker_link) as running:

        def reload() -> None:
            running.gateway.log.reopen()
            try:
                running.reload(load_config(file))
            except ConfigError as error:
                running.gateway.log.event("reload_refused", error=str(error))
            else:
                running.gateway.log.event("reloaded", file=str(file or ""))

        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, over.set)
        loop.add_signal_handler(signal.SIGHUP, reload)
        _tune_garbage_collector()
        ready(running)
        await over.wait()


def _tune_garbage_collector() -> None:
    """Exclude what was loaded at the start, which stays forever, from garbage collection.

    A full collection took 25 ms, in which no request was served, and all of them 3 % of the time of small requests.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG_OBJECTS, 20, 20)


def environment() -> Environment:
    """Return the environment of the process with the provider keys that the user has stored. Raises `ConfigError`."""
    try:
        return environment_with_stored_keys(os.environ)
    except KeyStoreError as error:
        raise ConfigError(str(error)) from None
