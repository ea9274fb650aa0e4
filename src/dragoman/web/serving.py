"""The page before a gateway, and the chat's page alone."""

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
from dragoman.gateway.http_request import Head
from dragoman.gateway.http_server import Server
from dragoman.gateway.serving import Setting, is_loopback, listening_socket
from dragoman.gateway.state.base import Unavailable
from dragoman.web.chat import chat
from dragoman.web.conversation_hub import Furnishing, Rooms
from dragoman.web.guard import Guard, Keys, Person
from dragoman.web.key_admin import key_admin
from dragoman.web.live import live
from dragoman.web.models import Asking, reachable
from dragoman.web.playground import Trials, playground
from dragoman.web.site import Place, Site
from dragoman.web.streams import Streams

_PASSWORD = "DRAGOMAN_PAGE_PASSWORD"  # noqa: S105 - the name of a variable
_MAX_BODY = 40 << 20
_PATIENCE = 1.0

# ── before a gateway ──────────────────────────────────────────────────────────────────────────────────────────


@asynccontextmanager
async def page_before(gateway: Gateway, setting: Setting, url: str) -> AsyncIterator[Application]:
    """For `dragoman serve`: the page at `/`, the gateway everywhere else."""
    streams = Streams()
    guard = Guard(setting.config.server.host, setting.environment.get(_PASSWORD) or None, _keys_of(gateway))
    houses = _Houses(gateway, setting, url)

    async def rooms_of(head: Head) -> Rooms:
        return houses.of(await guard.person(head) or Person())

    async def asking_of(head: Head) -> Asking:
        return houses.asking(await guard.person(head) or Person())

    trials = Trials(asking_of, houses.catalogue, houses.is_simulated)
    places = [
        live(gateway, guard, streams, setting.environment),
        chat(rooms_of, streams),
        playground(trials),
        Place("usage"),  # asks what the live place answers
        key_admin(gateway, guard),
    ]
    try:
        yield Site(guard, places, next=gateway)
    finally:
        streams.close()
        await houses.close()


class _Houses:
    """Everybody's conversations. Each key has its own, and pays for its own questions."""

    def __init__(self, gateway: Gateway, setting: Setting, url: str) -> None:
        self._gateway = gateway
        self._setting = setting
        self._url = url
        self._rooms: dict[Person, Rooms] = {}
        self._passing: TemporaryDirectory[str] | None = None

    def of(self, person: Person) -> Rooms:
        if person not in self._rooms:
            self._rooms[person] = self._furnished(person)
        return self._rooms[person]

    def asking(self, person: Person) -> Asking:
        """With the key of the person who asks and pays for it."""
        return Asking(self._url, person.key or self._setting.page_key or "none", self.is_simulated)

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

    def _furnished(self, person: Person) -> Rooms:
        setting = self._setting
        # A key may have any name, also that of a user of this machine: it does not get his conversations.
        user = f"gateway key {person.id}" if person.id else user_from(setting.environment)
        if setting.simulated:  # what simulators say is not mixed with real conversations
            user = demo_user(user)
        store, warning = self._store(user)
        asking = self.asking(person)
        models = reachable(self._gateway.router, setting.environment)
        rooms = Rooms(
            [asking.participant(name, model) for name, model in models.items()],
            store,
            store.folder,
            furnishing=Furnishing(
                tools=TOOLS if setting.simulated else (),
                catalogue=self.catalogue,
                warning=warning,
                in_format=asking.in_format,
            ),
            options=Options(default=tuple(models)[:1]),
            make=asking.participant,
        )
        rooms.recover()
        return rooms

    def _store(self, user: str) -> tuple[FileStore, str]:
        """A gateway may run where nothing can be written: its chat works, and says what that means."""
        folder = default_folder(self._setting.environment)
        try:
            return FileStore(folder, user), ""
        except OSError as error:
            self._passing = self._passing or TemporaryDirectory(prefix="dragoman-chat-")
            words = f"conversations cannot be kept in {folder} ({error.strerror}): they end with the gateway"
            return FileStore(self._passing.name, user), words

    async def catalogue(self) -> list[str]:
        return [one.id for one in await self._gateway.catalogue.models()]

    async def close(self) -> None:
        for rooms in self._rooms.values():
            await rooms.close()
        if self._passing is not None:
            self._passing.cleanup()


def _keys_of(gateway: Gateway) -> Keys:
    """Those of the moment: a new configuration may bring others."""

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
    rooms: Rooms, *, host: str = "127.0.0.1", port: int = 0, password: str | None = None
) -> AsyncIterator[str]:
    """The page at the address it gives."""
    if not is_loopback(host) and not password:
        raise ValueError("beyond this machine the page needs a password: --password-file, or DRAGOMAN_CHAT_PASSWORD")
    streams = Streams()

    async def rooms_of(_: Head) -> Rooms:
        return rooms

    site = Site(Guard(host, password), [chat(rooms_of, streams), playground()])
    server = Server(site, ServerLimits(body=_MAX_BODY))
    with listening_socket(host, port) as listening:
        try:
            await server.listen(listening)
            shown = f"[{host}]" if ":" in host else host
            yield f"http://{shown}:{listening.getsockname()[1]}"
        finally:
            streams.close()
            await rooms.close()
            await server.close(_PATIENCE)


async def serve_forever(
    rooms: Rooms,
    *,
    tools: Sequence[Tool],
    servers: Mapping[str, ServerAddress],
    address: tuple[str, int],
    password: str | None,
) -> int:
    """Serves until it is stopped. Tools of MCP servers join the conversation's own."""
    async with McpServers(servers) as connected:
        rooms.furnish((*tools, *connected.tools(taken=[one.name for one in tools])))
        recovered = rooms.recover()
        async with serving_page(rooms, host=address[0], port=address[1], password=password) as url:
            print(f"{url}  the chat, until Ctrl-C", flush=True)  # noqa: T201 - the address is what one waits for
            if recovered:
                print(f"  {recovered} conversations that were left behind are in the list again", flush=True)  # noqa: T201
            await asyncio.Event().wait()
    return 0
