"""The gateway as an MCP server at `/mcp` (streamable HTTP): ask a model, convert a body, call tools of other servers.

The official SDK implements the protocol, over ASGI. It is stateless, so that any worker can answer a request. The
client's key is checked first, and calls to models are made with that key.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

import dragoman
from dragoman.codecs.registry import codec
from dragoman.errors import DragomanError, NotConfigured
from dragoman.gateway.access import Caller
from dragoman.gateway.endpoints import Endpoint
from dragoman.gateway.exchange import Exchange
from dragoman.gateway.http_request import BadBody, Head
from dragoman.gateway.request_records import Record
from dragoman.installation import install_command
from dragoman.ir import Failure, ToolCall

if TYPE_CHECKING:
    import mcp_types

    from dragoman.gateway.app import Gateway

_ASK: dict[str, Any] = {
    "type": "object",
    "properties": {
        "model": {"type": "string", "description": "provider/model, or a route of the gateway"},
        "prompt": {"type": "string"},
        "system": {"type": "string", "description": "Instructions before the prompt"},
        "max_output_tokens": {"type": "integer", "minimum": 1},
    },
    "required": ["model", "prompt"],
}
_CONVERT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "body": {"type": "object", "description": "A request body of the source's API"},
        "source": {"type": "string", "description": "Its format, such as openai-chat"},
        "target": {"type": "string", "description": "The format to convert it to"},
    },
    "required": ["body", "source", "target"],
}
_LARGEST = 4 << 20
"""Maximum bytes of one message: the SDK parses it on the event loop."""
_BAD_ARGUMENTS = (
    *(DragomanError, msgspec.MsgspecError, KeyError, TypeError, ValueError),
    *(OverflowError, RecursionError),  # `int` of an infinite number, deep values
)


class _McpRequest(Struct, frozen=True):
    """The request that the SDK's handlers run for."""

    gateway: Any
    caller: Caller
    head: Head
    record: Record


_current: ContextVar[_McpRequest] = ContextVar("mcp request")


class McpEndpoint:
    """The SDK's server, open as long as the gateway runs."""

    def __init__(self) -> None:
        try:
            from mcp.server.lowlevel import Server  # noqa: PLC0415 - an extra
            from mcp.server.streamable_http_manager import StreamableHTTPSessionManager  # noqa: PLC0415
        except ImportError as error:
            words = f"{error.name} is not installed: {install_command('mcp')}"
            raise NotConfigured(words, missing="mcp") from None
        server: Any = Server(
            "dragoman", version=dragoman.__version__, on_list_tools=_list_tools, on_call_tool=_call_tool
        )
        self._manager = StreamableHTTPSessionManager(server, json_response=True, stateless=True)
        self._closing = asyncio.Event()
        self._keeper: asyncio.Task[None] | None = None

    async def open(self) -> None:
        ready = asyncio.Event()
        self._keeper = asyncio.create_task(self._keep(ready))
        await ready.wait()

    async def _keep(self, ready: asyncio.Event) -> None:
        """Open and close the SDK's manager in one task, as its task groups require."""
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self._manager.run())
            ready.set()
            await self._closing.wait()

    async def close(self) -> None:
        self._closing.set()
        if self._keeper is not None:
            await asyncio.wait([self._keeper])

    async def serve(self, exchange: Exchange) -> int:
        """Answer a request; return the status of the answer."""
        answer = _Answer(exchange)
        await self._manager.handle_request(_scope(exchange.head), _receiver(exchange.body), answer.send)
        return answer.status


async def mcp(gateway: Gateway, endpoint: Endpoint, exchange: Exchange, record: Record) -> None:
    if gateway.mcp_endpoint is None:
        await gateway.none(endpoint, exchange, record)
        return
    caller = await gateway.admit(endpoint, exchange, record)
    if exchange.head.method == "GET":  # this server sends no messages: the stream would only be held open
        raise BadBody(Failure("invalid_request", "This MCP server has no stream of its own: use POST.", 405))
    if len(exchange.body) > _LARGEST:
        raise BadBody(Failure("too_large", f"An MCP message may have at most {_LARGEST} bytes.", 413))
    await gateway.enter_free(caller)
    _current.set(_McpRequest(gateway, caller, exchange.head, record))
    try:
        record.status = await gateway.mcp_endpoint.serve(exchange)
    finally:
        caller.leave()


# ── ASGI ──


def _scope(head: Head) -> dict[str, Any]:
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": head.method,
        "scheme": "https" if head.secure else "http",
        "path": head.path,
        "raw_path": head.path.encode(),
        "query_string": head.query.encode(),
        "headers": [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in head.headers.items()],
        "client": None,
        "server": None,
    }


def _receiver(body: bytes) -> Callable[[], Awaitable[dict[str, Any]]]:
    given = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> dict[str, Any]:
        if given:
            return given.pop()
        await asyncio.Event().wait()  # the task is cancelled when the client disconnects
        raise AssertionError("never set")

    return receive


class _Answer:
    def __init__(self, exchange: Exchange) -> None:
        self.status = 0
        self._exchange = exchange
        self._headers: dict[str, str] = {}
        self._pieces: list[bytes] = []

    async def send(self, message: Mapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in message["headers"]}
            self._headers = {name: value for name, value in headers.items() if name != "content-length"}
            return
        self._pieces.append(message.get("body", b""))
        if not message.get("more_body", False):
            self._exchange.send(self.status, self._headers, b"".join(self._pieces))


class _InnerRequest(Exchange):
    """A request that the gateway makes to itself on behalf of a client, with the client's key."""

    __slots__ = ("answer", "status")

    def __init__(self, head: Head, body: bytes) -> None:
        super().__init__(head)
        self.body = body
        self.status = 0
        self.answer = b""

    async def receive(self, limit: int | None = None) -> bytes:  # noqa: ARG002 - the body is complete
        return self.body

    def send(self, status: int, headers: Mapping[str, str], body: bytes = b"") -> None:  # noqa: ARG002
        self.started = self.whole = True
        self.status, self.answer = status, body


# ── tools ──


async def _list_tools(_context: Any, _parameters: Any) -> mcp_types.ListToolsResult:
    import mcp_types as types  # noqa: PLC0415 - an extra

    request = _current.get()
    own = [
        types.Tool(name="ask_model", description="Ask a model of this gateway a question", input_schema=_ASK),
        types.Tool(
            name="convert_body",
            description="Convert a request body from one vendor's API to another's, with what is lost",
            input_schema=_CONVERT,
        ),
    ]
    servers = request.gateway.mcp_tools
    offered = servers.offered(request.caller) if servers is not None else ()
    others = [
        types.Tool(
            name=one.tool.name,
            description=one.tool.definition.description or "",
            input_schema=dict(one.tool.definition.parameters or {"type": "object"}),
        )
        for one in offered
    ]
    return types.ListToolsResult(tools=[*own, *others])


async def _call_tool(_context: Any, parameters: Any) -> mcp_types.CallToolResult:
    import mcp_types as types  # noqa: PLC0415 - an extra

    request, arguments = _current.get(), dict(parameters.arguments or {})
    try:
        text, failed = await _TOOLS.get(parameters.name, _other_tool)(request, parameters.name, arguments)
    except _BAD_ARGUMENTS as error:
        text, failed = f"{type(error).__name__}: {error}", True
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=failed)


async def _ask_model(request: _McpRequest, _name: str, given: Mapping[str, Any]) -> tuple[str, bool]:
    chat = codec("openai-chat")
    system = [{"role": "system", "content": str(given["system"])}] if given.get("system") else []
    body: dict[str, Any] = {
        "model": str(given["model"]),
        "messages": [*system, {"role": "user", "content": str(given["prompt"])}],
    }
    if given.get("max_output_tokens"):
        body["max_completion_tokens"] = int(given["max_output_tokens"])
    head = Head("POST", "/v1/chat/completions", "", {"content-type": "application/json"})
    inner = _InnerRequest(head, msgspec.json.encode(body))
    inner.digest = "" if request.caller.grant is None else request.caller.grant.digest
    leaving = request.caller.leave()  # the inner request takes a slot of the same key, which may have only one
    if leaving is not None:
        await leaving
    await request.gateway(inner)
    if inner.status != 200:  # noqa: PLR2004 - an HTTP status
        return chat.decode_error(inner.answer, inner.status, {}).message, True
    messages = chat.decode_response(inner.answer).messages
    return messages[0].text if messages else "", False


async def _convert_body(_request: _McpRequest, _name: str, given: Mapping[str, Any]) -> tuple[str, bool]:
    def convert() -> str:
        encoded = dragoman.translate_request(given["body"], source=str(given["source"]), target=str(given["target"]))
        converted = {"path": encoded.path, "body": encoded.body, "losses": [str(loss) for loss in encoded.losses]}
        return msgspec.json.encode(converted).decode()

    return await asyncio.to_thread(convert), False


async def _other_tool(request: _McpRequest, name: str, given: dict[str, Any]) -> tuple[str, bool]:
    servers = request.gateway.mcp_tools
    found = next((one for one in servers.offered(request.caller) if one.tool.name == name), None) if servers else None
    if found is None:
        return f"no tool is named {name!r}", True
    result = await servers.call(ToolCall("mcp", name, given), found, request.record)
    text = result.value if isinstance(result.value, str) else msgspec.json.encode(result.value).decode()
    return text, result.kind == "error"


_TOOLS: Mapping[str, Callable[[_McpRequest, str, dict[str, Any]], Awaitable[tuple[str, bool]]]] = {
    "ask_model": _ask_model,
    "convert_body": _convert_body,
}
