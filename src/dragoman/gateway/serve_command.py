"""The command `serve`."""

from __future__ import annotations

import asyncio
import secrets
import socket
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from msgspec import Struct, field, structs

from dragoman.drivers.model_listing import Reached, reach
from dragoman.drivers.remote import Channel
from dragoman.errors import NotConfigured
from dragoman.gateway.access import Access
from dragoman.gateway.config import Config, ConfigError, load_config
from dragoman.gateway.local_servers import find_local_servers
from dragoman.gateway.other_workers import OtherWorkers
from dragoman.gateway.recipes import RECIPES, recipe
from dragoman.gateway.routing import Router
from dragoman.gateway.serving import (
    Front,
    Running,
    Setting,
    WorkerLink,
    check_exposure,
    environment,
    has_keys,
    listening_socket,
    run,
    simulators,
)
from dragoman.gateway.state.connect import open_ledger
from dragoman.gateway.upstreams import ONCE, Upstream
from dragoman.gateway.workers import WorkerPool, run_loop

_CHECK_SECONDS = 5.0


class ServeOptions(Struct, frozen=True, kw_only=True):
    file: Path | None = None
    host: str | None = None
    port: int | None = None
    tls_cert: str | None = None
    tls_key: str | None = None
    workers: int = 1
    simulate: bool = False
    quiet: bool = False
    agents: tuple[str, ...] = ()
    """Agents to serve as models: MODULE:NAME each."""
    front: Front | None = None
    """The page in front of the first worker; the other workers report to it."""
    page_key: str = field(default_factory=lambda: secrets.token_urlsafe(32))

    def config(self) -> Config:
        """Return the configuration of the file with the options of the command line."""
        config = load_config(self.file)
        given: dict[str, object] = {"host": self.host, "port": self.port, "log": "off" if self.quiet else None}
        given |= {"tls_cert": self.tls_cert, "tls_key": self.tls_key}
        changes = {name: value for name, value in given.items() if value is not None}
        return structs.replace(config, server=structs.replace(config.server, **changes))


class Checked(Struct, frozen=True):
    lines: tuple[str, ...]
    reachable: bool


def check_configuration(options: ServeOptions, *, offline: bool = False) -> Checked:
    """Read the configuration (raises `ConfigError`), and ask every upstream in it for its models."""
    config = options.config()
    known = environment()
    router = Router(config, known)
    counts = [_count(len(config.providers), "provider"), _count(len(config.routes), "route")]
    summary = f"{options.file or 'no file'}: {', '.join(counts)}, no mistakes"
    if offline:
        return Checked((summary,), reachable=True)
    reached = asyncio.run(_reach_all(router))
    lines = [f"  {name}: {one.state}: {one.detail}" for name, one in reached.items()]
    # Without any key, simulators answer.
    unusable = dict(router.unusable_targets()) if has_keys(config, known) else {}
    lines += [f"  route {target}: {problem}" for target, problem in unusable.items()]
    is_reachable = all(one.state in {"works", "not asked"} for one in reached.values())
    return Checked((summary, *lines), is_reachable and not unusable)


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


async def _reach_all(router: Router) -> dict[str, Reached]:
    reached: dict[str, Reached] = {}
    upstreams: list[Upstream] = []
    for place in router.available():
        try:
            upstreams += router.upstreams_of(place)
        except NotConfigured as error:
            reached[place.name] = Reached("fails", str(error))
    found = await asyncio.gather(*(_reach_one(upstream.channel) for upstream in upstreams))
    return reached | {upstream.name: one for upstream, one in zip(upstreams, found, strict=True)}


async def _reach_one(channel: Channel) -> Reached:
    limits = structs.replace(channel.timeouts, first_byte=_CHECK_SECONDS, total=_CHECK_SECONDS)
    try:
        return await reach(structs.replace(channel, timeouts=limits, retry=ONCE))
    finally:
        await channel.transport.close()


# The address at which clients on this machine reach a gateway that listens on all interfaces.
_LOOPBACK_OF = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - compared, not listened on


def environment_for(client: str, options: ServeOptions, model: str) -> str:
    if client == "list":
        return "\n".join(RECIPES)
    if client not in RECIPES:
        raise ConfigError(f"unknown client {client!r}; known clients: {', '.join(RECIPES)}")
    server = options.config().server
    near = _LOOPBACK_OF.get(server.host, server.host)
    host = f"[{near}]" if ":" in near else near
    key = "YOUR_KEY" if server.keys or server.database else "any"
    scheme = "https" if server.tls_cert else "http"
    return "\n".join(recipe(client, url=f"{scheme}://{host}:{server.port}", key=key, model=model))


def serve(options: ServeOptions) -> int:
    config = options.config()
    asyncio.run(_check(config))
    with listening_socket(config.server.host, config.server.port) as listening:
        if options.workers <= 1:
            run_loop(_work(options, config, listening, speaks=True))
            return 0
        with tempfile.TemporaryDirectory(prefix="dragoman-") as folder:
            return _with_workers(options, config, listening, Path(folder))


async def _check(config: Config) -> None:
    """Check the configuration before anything listens, so that an error ends the command with one line."""
    found = environment()
    ledger = await open_ledger(config.server, found)
    try:
        check_exposure(config.server.host, Access(config.server.keys, found, ledger))
    finally:
        await ledger.close()


def _with_workers(options: ServeOptions, config: Config, listening: socket.socket, folder: Path) -> int:
    if not config.server.database:  # workers must share what each of them stores
        shared = structs.replace(config.server, database=str(folder / "gateway.db"), usage=False)
        config = structs.replace(config, server=shared)

    async def work(place: int, is_new: bool) -> None:  # noqa: FBT001 - called by WorkerPool
        other_workers = OtherWorkers(folder, place, options.workers)
        await _work(options, config, listening, speaks=is_new and place == 0, other_workers=other_workers)

    return WorkerPool(options.workers, work).run()


async def _work(
    options: ServeOptions,
    config: Config,
    listening: socket.socket,
    *,
    speaks: bool,
    other_workers: OtherWorkers | None = None,
) -> None:
    found = environment()
    local = await find_local_servers(found)
    offline = options.simulate or not has_keys(config, found)
    async with AsyncExitStack() as stack:
        simulated: Mapping[str, str] = {}
        if offline:
            simulated = await stack.enter_async_context(simulators())
            simulated = {name: url for name, url in simulated.items() if name not in local}
        setting = Setting(config=config, environment=found, simulated=simulated, local=local, page_key=options.page_key)
        worker_link: WorkerLink | None = None if other_workers is None else other_workers.link
        named: tuple[str, ...] = ()
        if options.agents:
            from dragoman.gateway.served_agents import load_agent, serve_agents  # noqa: PLC0415 - rarely needed

            agents = dict(load_agent(place) for place in options.agents)
            named = tuple(agents)
            setting, worker_link = await stack.enter_async_context(serve_agents(agents, setting, worker_link))

        def ready(running: Running) -> None:
            if speaks:
                simulated_why = "" if not offline else _WANTED if options.simulate else _NO_KEYS
                lines = _greeting(running, setting, named, simulated_why)
                sys.stderr.write("".join(f"{line}\n" for line in lines))
                sys.stderr.flush()

        await run(
            setting, file=options.file, listening=listening, ready=ready, front=options.front, worker_link=worker_link
        )


_WANTED = "simulators answer (--simulate)"
_NO_KEYS = "no provider keys found: simulators answer (add a key: dragoman keys set anthropic)"


def _greeting(running: Running, setting: Setting, agents: Sequence[str], simulated_why: str) -> Iterable[str]:
    yield f"{running.url}  dragoman gateway, until Ctrl-C"
    yield "  in a browser: requests as they happen, chat, playground, usage, keys"
    if simulated_why:
        yield f"  {simulated_why}"
    if agents:
        yield f"  agents, served as models: {', '.join(agents)}"
    names = ", ".join(place.name for place in running.gateway.router.available())
    yield f"  providers: {names or 'none'}"
    here = sorted(name for name, models in setting.local.items() if models)
    if here:
        yield f"  on this machine: {', '.join(here)}"
    yield f"  OpenAI: {running.url}/v1   Anthropic, Gemini, Ollama, Bedrock: {running.url}"
