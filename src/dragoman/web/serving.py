"""Serves the page in front of a gateway, or the chat page alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from tempfile import TemporaryDirectory

from dragoman.agent import Tool
from dragoman.agent.mcp import McpServers, ServerAddress
from dragoman.chat.demo import TOOLS, demo_user
from dragoman.chat.service import Options
from dragoman.chat.stores import FileStore, default_folder, user_from
from dragoman.drivers.providers import ALIASES
from dragoman.gateway.access import Denied
from dragoman.gateway.app import Gateway
from dragoman.gateway.exchange import Application, ServerLimits
from dragoman.gateway.http_request import ADMISSION, Head
from dragoman.gateway.http_server import Server
from dragoman.gateway.serving import Setting, is_loopback, listening_socket
from dragoman.gateway.state.base import Unavailable
from dragoman.web.chat import chat
from dragoman.web.conversation_hub import ConversationHub, HubSettings
from dragoman.web.guard import Guard, Keys, PageUser
from dragoman.web.key_admin import key_admin
from dragoman.web.live import live
from dragoman.web.models import GatewayModels, reachable_models
from dragoman.web.playground import Trials, playground
from dragoman.web.site import PageSection, Site
from dragoman.web.streams import Streams

_PASSWORD = "DRAGOMAN_PAGE_PASSWORD"  # noqa: S105 - the name of a variable
_MAX_BODY = 40 << 20
_PATIENCE = 1.0

# ── in front of a gateway ─────────────────────────────────────────────────────────────────────────────────────


@asynccontextmanager
async def page_before(gateway: Gateway, setting: Setting, url: str) -> AsyncIterator[Application]:
    """For `dragoman serve`: the page at `/`, the gateway everywhere else."""
    streams = Streams()
    guard = Guard(setting.config.server.host, setting.environment.get(_PASSWORD) or None, _keys_of(gateway))
    hubs = _HubPerUser(gateway, setting, url)

    async def hub_of(head: Head) -> ConversationHub:
        return hubs.of(await guard.user(head) or PageUser())

    async def models_of(head: Head) -> GatewayModels:
        return hubs.models_for(await guard.user(head) or PageUser())

    trials = Trials(models_of, hubs.catalogue, hubs.is_simulated)
    sections = [
        live(gateway, guard, streams, setting.environment),
        chat(hub_of, streams),
        playground(trials),
        PageSection("usage"),  # uses the live section's endpoints
        key_admin(gateway, guard),
    ]
    site = Site(guard, sections, next=gateway)
    gateway.private[ADMISSION] = site.own_admission
    try:
        yield site
    finally:
        streams.close()
        await hubs.close()


class _HubPerUser:
    """A hub of conversations per key; each key pays for its own requests."""

    def __init__(self, gateway: Gateway, setting: Setting, url: str) -> None:
        self._gateway = gateway
        self._setting = setting
        self._url = url
        self._hubs: dict[PageUser, ConversationHub] = {}
        self._passing: TemporaryDirectory[str] | None = None

    def of(self, page_user: PageUser) -> ConversationHub:
        if page_user not in self._hubs:
            self._hubs[page_user] = self._make_hub(page_user)
        return self._hubs[page_user]

    def models_for(self, page_user: PageUser) -> GatewayModels:
        """Models used with the key of this user, who pays for them."""
        return GatewayModels(self._url, page_user.key or self._setting.page_key or "none", self.is_simulated)

    def is_simulated(self, model: str) -> bool:
        """Whether a simulator on this machine answers for the model."""
        router = self._gateway.router
        seen: set[str] = set()
        while model in router.config.routes and model not in seen:
            seen.add(model)
            to = router.config.routes[model].to
            first = to if isinstance(to, str) else to[0]
            model = first if isinstance(first, str) else first.model
        head = model.partition("/")[0]
        return router.is_simulated(ALIASES.get(head, head))

    def _make_hub(self, page_user: PageUser) -> ConversationHub:
        setting = self._setting
        # Keys can have any name: the prefix keeps them apart from users of this machine.
        user = f"gateway key {page_user.id}" if page_user.id else user_from(setting.environment)
        if setting.simulated:  # conversations with simulators are kept apart from real ones
            user = demo_user(user)
        store, warning = self._store(user)
        gateway_models = self.models_for(page_user)
        models = reachable_models(self._gateway.router, setting.environment)
        hub = ConversationHub(
            [gateway_models.participant(name, model) for name, model in models.items()],
            store,
            store.folder,
            settings=HubSettings(
                tools=TOOLS if setting.simulated else (),
                catalogue=self.catalogue,
                warning=warning,
                room=(lambda: setting.config.server.chat_bytes - store.size) if page_user.id else None,
                in_format=gateway_models.in_format,
            ),
            options=Options(default=tuple(models)[:1]),
            make=gateway_models.participant,
        )
        hub.recover()
        return hub

    def _store(self, user: str) -> tuple[FileStore, str]:
        """Falls back to a temporary folder, with a warning, if the data folder is not writable."""
        folder = default_folder(self._setting.environment)
        try:
            return FileStore(folder, user), ""
        except OSError as error:
            self._passing = self._passing or TemporaryDirectory(prefix="dragoman-chat-")
            words = (
                f"conversations cannot be saved in {folder} ({error.strerror}): they are lost when the gateway stops"
            )
            return FileStore(self._passing.name, user), words

    async def catalogue(self) -> list[str]:
        return [one.id for one in await self._gateway.catalogue.models()]

    async def close(self) -> None:
        for hub in self._hubs.values():
            await hub.close()
        if self._passing is not None:
            self._passing.cleanup()


def _keys_of(gateway: Gateway) -> Keys:
    """Looks up current keys: a reloaded configuration may change them."""

    async def check(key: str) -> tuple[str, str] | None:
        shown = Head("GET", "/", "", {"x-api-key": key})
        try:
            caller = await gateway.access.caller("openai-chat", shown)
        except (Denied, Unavailable):
            return None
        return caller.name, caller.id

    return Keys(required=lambda: gateway.access.required, check=check)


# ── the chat alone ────────────────────────────────────────────────────────────────────────────────────────────


@asynccontextmanager
async def serving_page(
    hub: ConversationHub, *, host: str = "127.0.0.1", port: int = 0, password: str | None = None
) -> AsyncIterator[str]:
    """Serves the page; yields its URL."""
    if not is_loopback(host) and not password:
        raise ValueError("beyond this machine the page needs a password: --password-file, or DRAGOMAN_CHAT_PASSWORD")
    streams = Streams()

    async def hub_of(_: Head) -> ConversationHub:
        return hub

    site = Site(Guard(host, password), [chat(hub_of, streams), playground()])
    server = Server(site, ServerLimits(body=_MAX_BODY))
    with listening_socket(host, port) as listening:
        try:
            await server.listen(listening)
            shown = f"[{host}]" if ":" in host else host
            yield f"http://{shown}:{listening.getsockname()[1]}"
        finally:
            streams.close()
            await hub.close()
            await server.close(_PATIENCE)


async def serve_forever(
    hub: ConversationHub,
    *,
    tools: Sequence[Tool],
    servers: Mapping[str, ServerAddress],
    address: tuple[str, int],
    password: str | None,
) -> int:
    """Serves until it is stopped. Tools of MCP servers are added to the given ones."""
    async with McpServers(servers) as connected:
        hub.set_tools((*tools, *connected.tools(taken=[one.name for one in tools])))
        recovered = hub.recover()
        async with serving_page(hub, host=address[0], port=address[1], password=password) as url:
            print(f"{url}  the chat, until Ctrl-C", flush=True)  # noqa: T201 - the user needs the address
            if recovered:
                print(f"  {recovered} unsaved conversations were recovered", flush=True)  # noqa: T201
            await asyncio.Event().wait()
    return 0
