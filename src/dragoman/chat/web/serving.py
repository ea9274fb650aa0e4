"""Runs the page until somebody stops it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import web

from dragoman.agent import Tool
from dragoman.agent.mcp import McpServers, ServerAddress
from dragoman.agent.permissions import Hook
from dragoman.chat.participants import Participant
from dragoman.chat.service import Options
from dragoman.chat.stores import ConversationStore
from dragoman.chat.web.app import build_app
from dragoman.chat.web.guard import Guard, is_loopback
from dragoman.chat.web.rooms import Furnishing, Rooms


@asynccontextmanager
async def serving_page(
    rooms: Rooms, *, host: str = "127.0.0.1", port: int = 0, password: str | None = None
) -> AsyncIterator[str]:
    """The page at the address it gives."""
    if not is_loopback(host) and not password:
        raise ValueError("beyond this machine the page needs a password: --password-file, or DRAGOMAN_CHAT_PASSWORD")
    app = build_app(rooms, Guard(host, password))
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=1.0)
    await runner.setup()
    try:
        listening = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
        await web.SockSite(runner, listening).start()
        shown = f"[{host}]" if ":" in host else host
        yield f"http://{shown}:{listening.getsockname()[1]}"
    finally:
        await rooms.close()
        await runner.cleanup()


async def serve_forever(  # noqa: PLR0913 - what the command line may say, all by name
    participants: Sequence[Participant],
    store: ConversationStore,
    folder: Path,
    *,
    tools: Sequence[Tool],
    servers: Mapping[str, ServerAddress],
    permissions: Hook,
    options: Options,
    address: tuple[str, int],
    password: str | None,
) -> int:
    async with McpServers(servers) as connected:
        every = (*tools, *connected.tools(taken=[one.name for one in tools]))
        rooms = Rooms(
            participants, store, folder, furnishing=Furnishing(tools=every, permissions=permissions), options=options
        )
        recovered = rooms.recover()
        async with serving_page(rooms, host=address[0], port=address[1], password=password) as url:
            print(f"{url}  the chat, until Ctrl-C", flush=True)  # noqa: T201 - the address is what one waits for
            if recovered:
                print(f"  {recovered} conversations that were left behind are in the list again", flush=True)  # noqa: T201
            await asyncio.Event().wait()
    return 0
