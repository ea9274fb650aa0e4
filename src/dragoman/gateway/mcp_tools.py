"""Tools of MCP servers for clients that ask for them: the gateway offers them to the model and runs its calls.

A client asks with the header `x-dragoman-mcp: files, search` (or `*`), or with a hosted `mcp` tool that names a server
of the configuration instead of an address. The request then goes to the model with these tools as functions, in as many
rounds as the model calls them, and the client gets the answer that follows the last of them, in its own format, whole
or as a stream. Each call is checked against the permissions of its server, limited in time and size, and logged.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct, structs

from dragoman.agent.mcp import HttpServer, McpServers, ServerAddress, StdioServer, tool_names
from dragoman.agent.token_totals import add_usage
from dragoman.agent.tools import Tool, ToolContext, error_of, result_of
from dragoman.drivers.connect import Environment
from dragoman.errors import DragomanError
from dragoman.gateway.access import Caller
from dragoman.gateway.client_request import ClientRequest
from dragoman.gateway.config import McpServerTable, McpTable
from dragoman.gateway.http_request import BadBody
from dragoman.gateway.request_log import Log
from dragoman.gateway.request_records import Record
from dragoman.gateway.routing import Plan, revealed_key
from dragoman.gateway.upstream_answers import WholeAnswer
from dragoman.ir import (
    Completion,
    Failure,
    Finish,
    Message,
    ProviderTool,
    Request,
    ToolCall,
    ToolChoice,
    ToolResult,
    Usage,
)
from dragoman.loss import Loss

if TYPE_CHECKING:
    from dragoman.gateway.relay import Relay

HEADER = "x-dragoman-mcp"
OWN_SCHEME = "dragoman:"
"""The URL scheme for servers of this gateway, for client APIs that require a URL."""
_AT_A_TIME = 8
_CUT = "… [cut by the gateway: {} characters in all]"


class Offered(Struct, frozen=True):
    """One tool of a server."""

    server: str
    tool: Tool


class McpTools:
    """The servers of one gateway, open as long as it runs."""

    def __init__(self, table: McpTable, environment: Environment, log: Log) -> None:
        self.table = table
        self._environment = environment
        self._log = log
        self._stack = AsyncExitStack()
        self._offered: tuple[Offered, ...] = ()

    async def open(self) -> None:
        """Connect to the servers, to all at a time. One that cannot be reached is logged and left out."""
        found = [one for offered in await asyncio.gather(*map(self._connect, self.table.servers)) for one in offered]
        names = tool_names([(one.server, one.tool.name) for one in found])
        self._offered = tuple(
            Offered(one.server, _with_name(one.tool, name)) for one, name in zip(found, names, strict=True)
        )

    async def _connect(self, name: str) -> list[Offered]:
        table = self.table.servers[name]
        try:
            servers = McpServers(
                {name: _address(table, self._environment)},
                timeout=self.table.call_seconds,
                connect_timeout=self.table.connect_seconds,
            )
            await self._stack.enter_async_context(servers)
        except (DragomanError, ValueError) as error:
            self._log.event("mcp_server_failed", server=name, error=str(error))
            return []
        return [Offered(name, one) for one in servers.tools() if _matches(one.name, table.allow)]

    async def close(self) -> None:
        await self._stack.aclose()

    def offered(self, caller: Caller, servers: Sequence[str] | None = None) -> tuple[Offered, ...]:
        """Return the tools that this key may use, of these servers or of all."""
        tables = self.table.servers
        return tuple(
            one
            for one in self._offered
            if (servers is None or one.server in servers)
            and (not tables[one.server].keys or _matches(caller.name, tables[one.server].keys))
        )

    # ── what a client asks for ──

    def requested_servers(self, client_request: ClientRequest) -> tuple[str, ...]:
        """Return the servers whose tools the client asks for. Raises `BadBody` for one that is not configured."""
        header = client_request.headers.get(HEADER)
        if header is not None:
            names = tuple(name.strip() for name in header.split(",") if name.strip())
            if "*" in names:
                return tuple(self.table.servers)
            if unknown := [name for name in names if name not in self.table.servers]:
                words = f"no MCP server is named {unknown[0]!r} here; known servers: {', '.join(self.table.servers)}"
                raise BadBody(Failure("invalid_request", words, 400, parameter=HEADER))
            return names
        if b'"mcp' not in client_request.body:
            return ()
        return tuple(tool.name for tool in client_request.decode().tools if self._is_ours(tool))

    def _is_ours(self, tool: object) -> bool:
        if not isinstance(tool, ProviderTool) or tool.kind != "mcp" or tool.name not in self.table.servers:
            return False
        return not tool.server_url or tool.server_url.startswith(OWN_SCHEME)

    # ── the loop ──

    async def run(
        self, relay: Relay, client_request: ClientRequest, plan: Plan, caller: Caller, record: Record
    ) -> Completion:
        """Return the answer after the last call of these tools.

        Raises `Failed`, and `DecodeError` for an invalid body of the client.
        """
        request = client_request.decode()
        own = [tool for tool in request.tools if not self._is_ours(tool)]
        taken = {getattr(tool, "name", "") for tool in own}
        allowed = self._tools_for(request, caller, client_request)
        tools = {one.tool.name: one for one in allowed if one.tool.name not in taken}
        request = structs.replace(request, tools=(*own, *(one.tool.definition for one in tools.values())), stream=None)
        used: Usage | None = None
        calls_left = self.table.calls
        for rounds_left in range(self.table.rounds, -1, -1):
            if not rounds_left:
                request = structs.replace(request, tool_choice=ToolChoice("none"))
            completion = await self._ask(relay, client_request, request, plan, record)
            if completion.usage is not None:
                used = record.usage = completion.usage if used is None else add_usage(used, completion.usage)
            ours = [call for call in completion.tool_calls if call.name in tools]
            if not ours or not rounds_left or len(ours) < len(completion.messages[0].tool_calls):
                why = (
                    "the same turn calls functions of the client"
                    if rounds_left
                    else "the limit of tool rounds is reached"
                )
                record.losses += tuple(
                    Loss("$", f"call of the gateway's tool {call.name!r}", "dropped", why) for call in ours
                )
                return structs.replace(_without(completion, ours), usage=used)
            calls_left -= len(ours)
            results = await self._run_all(ours, tools, record, is_over=calls_left < 0)
            turn = (Message("assistant", completion.messages[0].parts), Message("tool", tuple(results)))
            request = structs.replace(request, messages=(*request.messages, *turn))
        raise AssertionError("the last round returns")

    async def _ask(
        self, relay: Relay, client_request: ClientRequest, request: Request, plan: Plan, record: Record
    ) -> Completion:
        sent = structs.replace(client_request, request=request, stream=False, options={}, is_changed=True)
        started = await relay.ask(sent, plan, record)
        assert isinstance(started, WholeAnswer)  # noqa: S101 - the call does not stream
        assert started.completion is not None  # noqa: S101 - the answer is not an error
        return started.completion

    def _tools_for(self, request: Request, caller: Caller, client_request: ClientRequest) -> tuple[Offered, ...]:
        hosted = {tool.name: tool for tool in request.tools if isinstance(tool, ProviderTool) and self._is_ours(tool)}
        if any(tool.approval == "always" for tool in hosted.values()):
            words = "The gateway runs these tools without asking, so it does not offer them for calls to be approved."
            raise BadBody(Failure("invalid_request", words, 400, parameter="tools"))
        found = self.offered(caller, self.requested_servers(client_request))
        wanted = {name: tool.allowed_tools for name, tool in hosted.items() if tool.allowed_tools}
        return tuple(one for one in found if one.server not in wanted or one.tool.name in wanted[one.server])

    async def _run_all(
        self, calls: Sequence[ToolCall], tools: Mapping[str, Offered], record: Record, *, is_over: bool
    ) -> list[ToolResult]:
        turns = asyncio.Semaphore(_AT_A_TIME)

        async def run(call: ToolCall) -> ToolResult:
            if is_over:
                return error_of(call, f"more than {self.table.calls} calls in one request: answer with what you have")
            async with turns:
                return await self.call(call, tools[call.name], record)

        return list(await asyncio.gather(*map(run, calls)))

    async def call(self, call: ToolCall, offered: Offered, record: Record) -> ToolResult:
        """Run one call. Errors become the result; the log has the key and the tool, never the arguments."""
        began = time.monotonic()
        try:
            value = await offered.tool.run(offered.tool.decode(call.arguments), ToolContext(call))
            result = _cut(result_of(call, value), self.table.max_result)
        except Exception as error:  # noqa: BLE001 - the model gets the error, and the request continues
            result = error_of(call, f"{type(error).__name__}: {error}")
        self._log.event(
            "mcp_call",
            id=record.id,
            key=record.key,
            server=offered.server,
            tool=offered.tool.name,
            outcome=result.kind,
            seconds=round(time.monotonic() - began, 4),
        )
        record.mcp_calls += 1
        return result


def _address(table: McpServerTable, environment: Environment) -> ServerAddress:
    """Return the address of a server. Values `env:NAME` are read from the environment. Raises `ConfigError`."""
    if table.url:
        headers = {name: revealed_key(value, environment) for name, value in table.headers.items()}
        return HttpServer(url=table.url, headers=headers)
    env = {name: revealed_key(value, environment) for name, value in table.env.items()}
    return StdioServer(command=table.command, args=table.args, env=env, cwd=table.cwd or None)


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _with_name(tool: Tool, name: str) -> Tool:
    return tool if tool.name == name else structs.replace(tool, definition=structs.replace(tool.definition, name=name))


def _cut(result: ToolResult, most: int) -> ToolResult:
    """Truncate a long result. Data becomes truncated text, because part of a JSON value is not valid JSON."""
    value: Any = result.value
    if result.kind == "multimodal" or value is None:
        return result
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    if len(text) <= most:
        return result
    cut = text[:most] + _CUT.format(len(text))
    if result.kind == "error":
        return ToolResult(result.tool_call_id, result.name, "error", cut)
    return ToolResult(result.tool_call_id, result.name, "text", cut)


def _without(completion: Completion, calls: Sequence[ToolCall]) -> Completion:
    """Remove calls of tools that the client does not know; the model repeats them if it needs them."""
    if not calls:
        return completion
    ids = {call.id for call in calls}
    message = completion.messages[0]
    parts = tuple(part for part in message.parts if not (isinstance(part, ToolCall) and part.id in ids))
    finish = completion.finish
    if not any(isinstance(part, ToolCall) for part in parts):  # the removed calls were to be followed by an answer
        finish = Finish("length")
    messages = (structs.replace(message, parts=parts), *completion.messages[1:])
    return structs.replace(completion, messages=messages, finish=finish)
