"""Agents behind the gateway: as models in every wire format, and at endpoints for front ends.

Agents answer on a loopback address like Anthropic's API; the gateway routes their names there, so that every client
format can use them. `/agents/NAME/ag-ui`, `/agents/NAME/ui-messages` and `/agents/NAME/json-lines` of the gateway
stream an agent's events to front ends, with the same keys as everything else. Paused runs are kept in the gateway's
store, so that they can continue in another worker or after a restart.
"""

from __future__ import annotations

import importlib
import secrets
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, get_args

import msgspec

from dragoman.agent.agent import Agent
from dragoman.agent.as_model import answer_as_model
from dragoman.agent.front_end_input import ProtocolName
from dragoman.agent.front_ends import respond
from dragoman.agent.paused_runs import MemoryRuns, PausedRun, PausedRuns, pack, unpack
from dragoman.codecs.accumulate import Accumulator
from dragoman.codecs.registry import codec
from dragoman.errors import DecodeError, DragomanError, ProviderError
from dragoman.gateway.access import Denied
from dragoman.gateway.app import Gateway
from dragoman.gateway.config import Config, ConfigError, ProviderTable, RouteTable
from dragoman.gateway.exchange import Application, Exchange, ServerLimits
from dragoman.gateway.http_server import Server
from dragoman.gateway.serving import Setting, WorkerLink, listening_socket
from dragoman.gateway.state.base import Store, Unavailable
from dragoman.ir import Failure, StreamFailed
from dragoman.losses import LossLog
from dragoman.streams import StreamEncoder

_FORMAT = "anthropic-messages"
_PROVIDER = "agents"
_PREFIX = "/agents/"
_PATIENCE = 1.0
_KEPT_SECONDS = 30 * 86_400.0
"""How long a paused run can be continued."""
_STREAM = {"content-type": "text/event-stream", "cache-control": "no-store"}
_JSON = {"content-type": "application/json"}


def load_agent(place: str) -> tuple[str, Agent[Any]]:
    """Return the agent at `module:name` with its model name. Raises `ConfigError`."""
    module, _, name = place.partition(":")
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        found = getattr(importlib.import_module(module), name or "agent")
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"--agent {place}: {error}; expected MODULE:NAME, such as app:agent") from None
    except Exception as error:
        raise ConfigError(f"--agent {place}: {module} cannot be imported: {type(error).__name__}: {error}") from error
    try:
        made = found() if callable(found) and not isinstance(found, Agent) else found
    except Exception as error:
        raise ConfigError(f"--agent {place}: making the agent failed: {type(error).__name__}: {error}") from error
    if not isinstance(made, Agent):
        raise ConfigError(f"--agent {place}: expected an Agent or a function that makes one, got {type(made).__name__}")
    return (name or "agent") if made.name == "agent" else made.name, made


@asynccontextmanager
async def serve_agents(
    agents: Mapping[str, Agent[Any]], setting: Setting, worker_link: WorkerLink | None = None
) -> AsyncIterator[tuple[Setting, WorkerLink]]:
    """Return what `serving` needs to offer these agents as models and at endpoints for front ends."""
    served = ServedAgents(agents)

    @asynccontextmanager
    async def with_agents(
        gateway: Gateway, application: Application, limits: ServerLimits
    ) -> AsyncIterator[Application]:
        whole = served.before(gateway, application)
        if worker_link is None:
            yield whole
            return
        async with worker_link(gateway, whole, limits) as found:
            yield found

    async with served.serving():
        yield msgspec.structs.replace(setting, extend=served.add_to), with_agents


class ServedAgents:
    """Agents by name, and the loopback server that offers them as models."""

    def __init__(self, agents: Mapping[str, Agent[Any]]) -> None:
        self._agents = agents
        self._key = secrets.token_urlsafe(32)
        self._url = ""
        self._runs: PausedRuns = MemoryRuns()

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        with listening_socket("127.0.0.1", 0) as listening:
            server = Server(self._model, ServerLimits())
            await server.listen(listening)
            self._url = f"http://127.0.0.1:{listening.getsockname()[1]}"
            try:
                yield
            finally:
                await server.close(_PATIENCE)
                for agent in self._agents.values():
                    await agent.close()

    def add_to(self, config: Config) -> Config:
        """Return the configuration with a provider for the agents and a route for each."""
        names = tuple(self._agents)
        provider = ProviderTable(kind="anthropic", base_url=self._url, api_key=self._key, models=names)
        routes = {name: RouteTable(to=f"{_PROVIDER}/{name}", attempts=1) for name in names}
        return msgspec.structs.replace(
            config, providers={_PROVIDER: provider, **config.providers}, routes={**routes, **config.routes}
        )

    # ── as models ─────────────────────────────────────────────────────────────────────────────────────────────

    async def _model(self, exchange: Exchange) -> None:
        wire = codec(_FORMAT)
        try:
            if not secrets.compare_digest(exchange.head.headers.get("x-api-key", ""), self._key):
                raise _rejection(Failure("authentication", "not the gateway", 401))
            request = wire.decode_request(await exchange.receive())
            agent = self._agents.get(request.model or "")
            if agent is None:
                raise _rejection(Failure("not_found", f"no agent named {request.model!r}", 404))
        except ProviderError as error:
            encoded = wire.encode_error(error.failure)
            exchange.send(error.failure.status or 500, _JSON, encoded.content)
            return
        except DecodeError as error:
            exchange.send(400, _JSON, wire.encode_error(Failure("invalid_request", str(error), 400)).content)
            return
        if request.stream:
            await self._stream(exchange, agent, request)
        else:
            await self._whole(exchange, agent, request)

    async def _whole(self, exchange: Exchange, agent: Agent[Any], request: Any) -> None:
        wire, account = codec(_FORMAT), Accumulator()
        try:
            async with aclosing(answer_as_model(agent, request, self._runs)) as answer:
                async for events in answer:
                    account.add(events)
        except DragomanError as error:
            failure = _failure(error)
            exchange.send(failure.status or 500, _JSON, wire.encode_error(failure).content)
            return
        encoded = wire.encode_response(account.completion(), LossLog())
        exchange.send(200, _JSON, encoded.content)

    async def _stream(self, exchange: Exchange, agent: Agent[Any], request: Any) -> None:
        encoder = StreamEncoder(_FORMAT)
        exchange.start(200, _STREAM)
        try:
            async with aclosing(answer_as_model(agent, request, self._runs)) as answer:
                async for events in answer:
                    if exchange.write(encoder.encode(events)):
                        await exchange.drain()
        except DragomanError as error:
            exchange.write(encoder.encode([StreamFailed(_failure(error))]))
        exchange.finish()

    # ── for front ends ────────────────────────────────────────────────────────────────────────────────────────

    def before(self, gateway: Gateway, application: Application) -> Application:
        """Return an application that serves the front-end endpoints and passes the rest to this one."""
        self._runs = StoredRuns(gateway.responses.store)

        async def serve(exchange: Exchange) -> None:
            if exchange.head.path.startswith(_PREFIX):
                await self._front_end(gateway, exchange)
            else:
                await application(exchange)

        return serve

    async def _front_end(self, gateway: Gateway, exchange: Exchange) -> None:
        name, _, protocol = exchange.head.path.removeprefix(_PREFIX).partition("/")
        agent = self._agents.get(name)
        if agent is None or protocol not in get_args(ProtocolName) or exchange.head.method != "POST":
            known = ", ".join(f"POST {_PREFIX}{one}/{kind}" for one in self._agents for kind in get_args(ProtocolName))
            exchange.send(404, _JSON, msgspec.json.encode({"error": f"not found; available: {known}"}))
            return
        try:
            caller = await gateway.access.caller("openai-chat", exchange.head)
            caller.may_use(name)
            body = await exchange.receive()
            headers, answer = await respond(agent, protocol, body, self._runs, caller.id)  # type: ignore[arg-type]
        except Denied as error:
            exchange.send(error.failure.status or 401, _JSON, msgspec.json.encode({"error": error.failure.message}))
            return
        except (ValueError, DragomanError) as error:
            exchange.send(400, _JSON, msgspec.json.encode({"error": f"not a {protocol} request: {error}"}))
            return
        exchange.start(200, headers)
        # When the client disconnects, the run ends immediately and not when the generator is collected.
        async with aclosing(answer) as pieces:
            async for data in pieces:
                if exchange.write(data):
                    await exchange.drain()
        exchange.finish()


class StoredRuns:
    """Paused runs in the gateway's store. While it is unreachable, nothing is stored or found."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def keep(self, keys: Sequence[str], run: PausedRun) -> None:
        packed = pack(run)
        if packed is not None:
            await self._write(dict.fromkeys(keys, packed))

    async def find(self, keys: Sequence[str]) -> PausedRun | None:
        found: Mapping[str, bytes] = {}
        with suppress(Unavailable):
            found = await self._store.recall(_OWNER, list(keys), _KEPT_SECONDS) if keys else {}
        packed = next((found[key] for key in keys if found.get(key)), None)
        return None if packed is None else unpack(packed)

    async def forget(self, keys: Sequence[str]) -> None:
        await self._write(dict.fromkeys(keys, b""))

    async def _write(self, values: Mapping[str, bytes]) -> None:
        with suppress(Unavailable):
            for key, value in values.items():
                await self._store.remember(_OWNER, key, value)


_OWNER = "agents"
"""Owner of all paused runs in the store; the real owner is part of a run's key."""


def _rejection(failure: Failure) -> ProviderError:
    return ProviderError(failure)


def _failure(error: DragomanError) -> Failure:
    if isinstance(error, ProviderError):
        return error.failure
    return Failure("server", f"{type(error).__name__}: {error}", 500)
