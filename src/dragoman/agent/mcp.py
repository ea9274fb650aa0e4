"""Tools of MCP servers (extra `mcp`: the official SDK).

    async with McpServers(read_servers("mcp.json")) as servers:
        agent = Agent(driver, tools=[*own_tools, *servers.tools(taken=[tool.name for tool in own_tools])])

Each server has its own task, in the event loop that opened it, and is closed by that task. A server that dies or hangs
gives error results; the run continues, and the next call connects again.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeAlias, TypeVar

from msgspec import Struct

from dragoman.agent.mcp_requests import Elicit, OpenUrl, ServerRequests
from dragoman.agent.tools import RESERVED, Content, Output, Tool, ToolContext, schema_decoder
from dragoman.drivers.base import Driver
from dragoman.errors import DragomanError, NotConfigured
from dragoman.installation import install_command
from dragoman.ir import Audio, Document, Image, Message, Text, ToolDefinition

if TYPE_CHECKING:
    import mcp_types
    from mcp import Client

T = TypeVar("T")
_NAME_LENGTH = 64
_CLOSING = 15.0
_MOST_PAGES = 1_000
_MOST_LISTED = 10_000
_URL_REQUIRED = -32042
_UNSAFE = re.compile(r"[^a-zA-Z0-9_-]")
_VARIABLE = re.compile(r"\$\{(?:env:)?(\w+)(?::-([^}]*))?\}")


class McpFailed(DragomanError):
    """A server could not be reached, or is gone."""


class StdioServer(Struct, frozen=True, kw_only=True):
    """A program that communicates over its standard input and output."""

    command: str
    args: Sequence[str] = ()
    env: Mapping[str, str] = {}
    cwd: str | None = None
    protocol: str = "auto"
    """`auto`, `legacy` (the handshake before 2026), or a version of the protocol."""


class HttpServer(Struct, frozen=True, kw_only=True):
    """A server behind a URL (streamable HTTP)."""

    url: str
    headers: Mapping[str, str] = {}
    protocol: str = "auto"


ServerAddress: TypeAlias = StdioServer | HttpServer


# ── mcp.json ──────────────────────────────────────────────────────────────────────────────────────────────────


def read_servers(
    source: str | Path | Mapping[str, Any], environment: Mapping[str, str] | None = None
) -> dict[str, ServerAddress]:
    """Return servers of an mcp.json: `{"mcpServers": {name: {"command", "args", "env", "cwd"} or {"url", "headers"}}}`.

    `${NAME}` and `${NAME:-default}` are replaced by environment variables; a server with `"disabled": true` is left
    out.
    """
    given = source if isinstance(source, Mapping) else json.loads(Path(source).read_text(encoding="utf-8"))
    entries = given.get("mcpServers", given.get("servers")) if isinstance(given, Mapping) else None
    if not isinstance(entries, Mapping):
        raise ValueError('expected {"mcpServers": {...}}')  # noqa: TRY004 - the content is wrong, not the call
    known = os.environ if environment is None else environment
    return {
        name: _address(name, _expand_variables(entry, known))
        for name, entry in entries.items()
        if not _is_disabled(name, entry)
    }


def _is_disabled(name: str, entry: Any) -> bool:
    if not isinstance(entry, Mapping):
        raise ValueError(f"server {name!r}: expected an object, got {type(entry).__name__}")  # noqa: TRY004 - see above
    return entry.get("disabled") is True


def _address(name: str, entry: Mapping[str, Any]) -> ServerAddress:
    kind = entry.get("type", entry.get("transport"))
    if kind == "sse":
        raise ValueError(f"server {name!r}: the sse transport is no longer supported; use the server's streamable HTTP")
    if "command" in entry:
        return StdioServer(
            command=entry["command"],
            args=tuple(entry.get("args", ())),
            env=dict(entry.get("env") or {}),
            cwd=entry.get("cwd"),
        )
    if "url" in entry:
        return HttpServer(url=entry["url"], headers=dict(entry.get("headers") or {}))
    raise ValueError(f"server {name!r}: expected a command or a url")


def _expand_variables(value: Any, environment: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return _VARIABLE.sub(lambda found: environment.get(found[1], found[2] or ""), value)
    if isinstance(value, Mapping):
        return {key: _expand_variables(inner, environment) for key, inner in value.items()}
    return [_expand_variables(inner, environment) for inner in value] if isinstance(value, list) else value


# ── servers ───────────────────────────────────────────────────────────────────────────────────────────────────


class McpServers:
    """Several servers, open for the duration of the `async with`."""

    def __init__(
        self,
        servers: Mapping[str, ServerAddress],
        *,
        timeout: float = 60.0,
        connect_timeout: float = 30.0,
        sampling: Driver | None = None,
        elicit: Elicit | None = None,
        open_url: OpenUrl | None = None,
    ) -> None:
        """Set what servers may request; any other request is refused.

        `sampling`: a model. `elicit`: a form for the user to fill in. `open_url`: an address for the user to visit, to
        log in or to pay.
        """
        self._servers = [
            _Server(name, address, timeout, connect_timeout, ServerRequests(sampling, elicit, open_url))
            for name, address in servers.items()
        ]

    async def __aenter__(self) -> Self:
        try:
            await asyncio.gather(*(server.open() for server in self._servers))
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()

    async def close(self) -> None:
        await asyncio.gather(*(server.close() for server in self._servers))

    def tools(self, taken: Collection[str] = ()) -> list[Tool]:
        """Return the tools of all servers, under names that any provider accepts and that are not in `taken`."""
        offered = [(server, listed) for server in self._servers for listed in server.listed]
        names = tool_names([(server.name, listed.name) for server, listed in offered], taken)
        return [_tool(server, listed, name) for (server, listed), name in zip(offered, names, strict=True)]

    async def resources(self) -> list[Resource]:
        """Return the resources of all servers that have any."""
        found: list[Resource] = []
        for server in self._servers:
            found += [
                Resource(server.name, str(one.uri), one.name, one.description or "", one.mime_type)
                for one in await server.listing("resources")
            ]
        return found

    async def read_resource(self, server: str, uri: str) -> tuple[Content, ...]:
        """Return a resource as parts that a message may contain."""
        result = await self._server(server).ask(lambda client: client.read_resource(uri))
        return tuple(_content_of(one) for one in result.contents)

    async def prompts(self) -> list[Prompt]:
        """Return the prompts of all servers that have any."""
        found: list[Prompt] = []
        for server in self._servers:
            for one in await server.listing("prompts"):
                names = tuple(argument.name for argument in one.arguments or ())
                found.append(Prompt(server.name, one.name, one.description or "", names))
        return found

    async def prompt(self, server: str, name: str, /, **arguments: str) -> list[Message]:
        """Return the messages of a prompt, for the start of an agent's history."""
        result = await self._server(server).ask(lambda client: client.get_prompt(name, arguments or None))
        return [Message(one.role, tuple(_parts([one.content]))) for one in result.messages]

    def _server(self, name: str) -> _Server:
        found = next((one for one in self._servers if one.name == name), None)
        if found is None:
            raise McpFailed(
                f"no MCP server is named {name!r}; known servers: {', '.join(one.name for one in self._servers)}"
            )
        return found


class Resource(Struct, frozen=True):
    """Something that a server offers to read."""

    server: str
    uri: str
    name: str
    description: str = ""
    media_type: str | None = None


class Prompt(Struct, frozen=True):
    """A prompt that a server offers."""

    server: str
    name: str
    description: str = ""
    arguments: tuple[str, ...] = ()


def tool_names(offered: Sequence[tuple[str, str]], taken: Collection[str] = ()) -> list[str]:
    """Return a name for each (server, tool): the tool's own if free and legal, else prefixed with the server's."""
    plain = [_safe(name) for _, name in offered]
    times = Counter(plain)
    used = set(taken) | RESERVED
    chosen: list[str] = []
    for (server, name), short in zip(offered, plain, strict=True):
        unique = times[short] == 1 and short not in used and len(name) <= _NAME_LENGTH and short
        chosen.append(short if unique else _with_prefix(server, name, used))
        used.add(chosen[-1])
    return chosen


def _safe(name: str) -> str:
    return _UNSAFE.sub("_", name)


def _with_prefix(server: str, name: str, used: Collection[str]) -> str:
    long = _safe(f"{server}__{name}")
    if len(long) <= _NAME_LENGTH and long not in used:
        return long
    digest = hashlib.blake2s(f"{server}/{name}".encode(), digest_size=4).hexdigest()
    return f"{long[: _NAME_LENGTH - 9]}_{digest}"


class _Server:
    """One server and the task that keeps its connection open."""

    def __init__(
        self, name: str, address: ServerAddress, timeout: float, connect_timeout: float, requests: ServerRequests
    ) -> None:
        self.name = name
        self._requests = requests
        self._reopening = asyncio.Lock()
        self.listed: list[mcp_types.Tool] = []
        self._address = address
        self._timeout = timeout
        self._connect_timeout = connect_timeout
        self._client: Client | None = None
        self._closed = False
        self._let_go = asyncio.Event()
        self._connection_task: asyncio.Task[None] | None = None
        self._former: list[asyncio.Task[None]] = []
        """Tasks of lost connections."""

    async def open(self) -> None:
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self._connection_task is not None and not self._connection_task.done():
            self._let_go.set()
            self._former.append(self._connection_task)
        self._let_go = asyncio.Event()
        self._connection_task = asyncio.create_task(self._keep(ready, self._let_go), name=f"mcp server {self.name}")
        try:
            async with asyncio.timeout(self._connect_timeout):
                await ready
        except TimeoutError:
            self._connection_task.cancel()  # it may still be reading a list without end
            raise McpFailed(f"MCP server {self.name!r} gave no answer in {self._connect_timeout:g} seconds") from None
        except DragomanError:
            raise
        except Exception as error:
            raise McpFailed(f"MCP server {self.name!r} cannot be reached: {_innermost(error)}") from error

    async def close(self) -> None:
        self._closed = True
        self._let_go.set()
        if self._connection_task is None:
            return
        if self._client is None:  # still connecting
            self._connection_task.cancel()
        # The SDK gives a program some seconds to exit, then terminates it.
        await asyncio.wait([self._connection_task, *self._former], timeout=_CLOSING)

    async def _keep(self, ready: asyncio.Future[None], let_go: asyncio.Event) -> None:
        """Open and close the connection in one task, as the SDK's task groups require."""
        try:
            async with AsyncExitStack() as stack:
                client = await stack.enter_async_context(_client(self._address, stack, self._requests))
                self.listed = _once_each(await _all_of(client, "tools", self.name))
                self._client = client
                if not ready.done():
                    ready.set_result(None)
                await let_go.wait()
        except Exception as error:  # noqa: BLE001 - reported when it is opened, or by a later call
            if not ready.done():
                ready.set_exception(error)
        finally:
            if let_go is self._let_go:
                self._client = None
            if not ready.done():
                ready.cancel()

    async def _reconnect(self) -> Client | None:
        """Return the client, a new one if the server was gone; None if it cannot be reached again."""
        async with self._reopening:
            if self._client is None and not self._closed:
                try:
                    await self.open()
                except DragomanError:
                    return None
            return self._client

    async def ask(self, question: Callable[[Client], Awaitable[T]]) -> T:
        """Return the server's reply to a request that is not a tool call. Raises `McpFailed`."""
        client = self._client or await self._reconnect()
        if client is None:
            raise McpFailed(f"MCP server {self.name!r} has disconnected")
        try:
            async with asyncio.timeout(self._timeout):
                return await question(client)
        except DragomanError:
            raise
        except Exception as error:
            raise McpFailed(f"MCP server {self.name!r} failed: {_innermost(error)}") from error

    async def listing(self, kind: str) -> list[Any]:
        """Return all resources or prompts; none if the server lacks the capability."""
        client = self._client or await self._reconnect()
        if client is None or getattr(client.server_capabilities, kind, None) is None:
            return []
        return await self.ask(lambda client: _all_of(client, kind, self.name))

    async def call(self, name: str, arguments: dict[str, Any]) -> Output:
        client = self._client or await self._reconnect()
        connection = self._connection_task
        if client is None or connection is None:
            return Output("error", f"MCP server {self.name!r} has disconnected")
        self._requests.start_call()
        task = asyncio.ensure_future(client.call_tool(name, arguments))
        try:
            await asyncio.wait([task, connection], timeout=self._timeout, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return output_of(task.result())
        except Exception as error:  # noqa: BLE001 - any failure of the server is reported to the model
            if _is_disconnected(error):
                self._client = None  # the next call connects again
            if addresses := _addresses_in(error):
                return Output("error", await self._send_user_away(addresses))
            return Output("error", f"MCP server {self.name!r} failed: {_innermost(error)}")
        finally:
            task.cancel()
        if connection.done():
            return Output("error", f"MCP server {self.name!r} has disconnected")
        return Output("error", f"MCP server {self.name!r} gave no answer within {self._timeout:g} seconds")

    async def _send_user_away(self, addresses: Sequence[tuple[str, str]]) -> str:
        """Return what the model reads if the user must first visit addresses of the server."""
        answers = [await self._requests.visit(message, url) for message, url in addresses]
        if set(answers) == {"accept"}:
            return f"MCP server {self.name!r} has sent the user to {addresses[0][1]}: call again when that is done"
        return f"MCP server {self.name!r} needs the user to go to {addresses[0][1]}, which the user did not do"


def _addresses_in(error: BaseException) -> list[tuple[str, str]]:
    """Return (message, address) of each page that a server requires to be visited before a call (error -32042)."""
    found = getattr(error, "error", None)
    if getattr(found, "code", None) != _URL_REQUIRED:
        return []
    data = getattr(found, "data", None)
    elicitations = data.get("elicitations", ()) if isinstance(data, Mapping) else ()
    return [
        (str(one.get("message") or ""), str(one["url"]))
        for one in elicitations
        if isinstance(one, Mapping) and "url" in one
    ]


def _client(address: ServerAddress, stack: AsyncExitStack, requests: ServerRequests) -> Client:
    try:
        import mcp  # noqa: PLC0415 - an extra
        from mcp.client.stdio import stdio_client  # noqa: PLC0415
        from mcp.client.streamable_http import streamable_http_client  # noqa: PLC0415

        from dragoman.agent.mcp_http import make_bounded_client  # noqa: PLC0415
        from dragoman.agent.mcp_stdio import ENCODING  # noqa: PLC0415
    except ImportError as error:
        words = f"{error.name} is not installed: {install_command('mcp')}"
        raise NotConfigured(words, missing="mcp") from None
    callbacks = {**requests.callbacks(), "mode": address.protocol}
    if isinstance(address, HttpServer):
        http = make_bounded_client(address.headers)
        stack.push_async_callback(http.aclose)
        return mcp.Client(streamable_http_client(address.url, http_client=http), **callbacks)
    parameters = mcp.StdioServerParameters(
        command=address.command, args=list(address.args), env=dict(address.env), cwd=address.cwd, encoding=ENCODING
    )
    # Not sys.stderr: it may have been replaced by an object without a file descriptor.
    return mcp.Client(stdio_client(parameters, errlog=sys.__stderr__ or sys.stderr), **callbacks)


async def _all_of(client: Client, kind: str, server: str) -> list[Any]:
    """Return all tools, resources or prompts. Raises `McpFailed` for a list that has no end."""
    found: list[Any] = []
    cursor: str | None = None
    for _ in range(_MOST_PAGES):
        page = await getattr(client, f"list_{kind}")(cursor=cursor)
        found += getattr(page, kind)
        cursor = page.next_cursor
        if not cursor or len(found) > _MOST_LISTED:
            break
    if cursor or len(found) > _MOST_LISTED:
        words = f"lists more than {_MOST_LISTED} {kind}, or more than {_MOST_PAGES} pages of them"
        raise McpFailed(f"MCP server {server!r} {words}")
    return found


def _once_each(tools: Sequence[mcp_types.Tool]) -> list[mcp_types.Tool]:
    """Return the tools without repetitions: a call can name only one of them."""
    first: dict[str, mcp_types.Tool] = {}
    for tool in tools:
        first.setdefault(tool.name, tool)
    return list(first.values())


def _is_disconnected(error: BaseException) -> bool:
    """Return whether the session is lost: closed stream, refused connection, or a session the server forgot."""
    words = _innermost(error)
    return not words.startswith(("MCPError", "ValidationError")) or "losed" in words or "terminated" in words


def _innermost(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    if isinstance(error, FileNotFoundError) and error.filename:
        return f"the command {str(error.filename)!r} was not found"
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _tool(server: _Server, listed: mcp_types.Tool, name: str) -> Tool:
    schema = dict(listed.input_schema)
    hints = listed.annotations

    async def run(arguments: dict[str, Any], _context: ToolContext) -> Output:
        return await server.call(listed.name, arguments)

    return Tool(
        definition=ToolDefinition(name, listed.description or "", schema),
        run=run,
        decode=schema_decoder(schema),
        title=listed.title or (hints.title if hints is not None else None),
        read_only=hints is not None and hints.read_only_hint is True,
    )


# ── results ───────────────────────────────────────────────────────────────────────────────────────────────────


def output_of(result: mcp_types.CallToolResult) -> Output:
    """Convert a result: structured content is data, texts are text, pictures are multimodal, errors stay errors."""
    parts = tuple(_parts(result.content))
    words = _words(parts)
    if result.is_error:
        return Output("error", words) if words is not None else Output("error", None, parts)
    structured = result.structured_content
    # A server that returns one string sends it twice: as text, and wrapped.
    if structured is not None and words is not None and structured != {"result": words}:
        return Output("data", structured)
    return Output("text", words) if words is not None else Output("multimodal", None, parts)


def _words(parts: Sequence[Content]) -> str | None:
    texts = [part.text for part in parts if isinstance(part, Text)]
    return "\n".join(texts) if len(texts) == len(parts) else None


def _parts(blocks: Iterable[Any]) -> Iterable[Content]:
    return (_PARTS.get(block.type, _unknown)(block) for block in blocks)


def _resource(block: Any) -> Content:
    return _content_of(block.resource)


def _content_of(resource: Any) -> Content:
    text = getattr(resource, "text", None)
    if text is not None:
        return Text(text)
    kind = (resource.mime_type or "").partition("/")[0]
    medium = _MEDIA.get(kind)
    if medium is not None:
        return medium(resource.mime_type, resource.blob)
    return Document(resource.mime_type or "application/octet-stream", resource.blob, title=str(resource.uri))


def _link(block: Any) -> Content:
    lines = [f"[resource {block.uri}]", block.title or block.name, block.description]
    return Text(" ".join(word for word in lines if word))


def _unknown(block: Any) -> Content:
    return Text(block.model_dump_json(by_alias=True, exclude_none=True))


_MEDIA: Mapping[str, Callable[[str, str], Content]] = {"image": Image, "audio": Audio}
_PARTS: Mapping[str, Callable[[Any], Content]] = {
    "text": lambda block: Text(block.text),
    "image": lambda block: Image(block.mime_type, block.data),
    "audio": lambda block: Audio(block.mime_type, block.data),
    "resource": _resource,
    "resource_link": _link,
}
