"""MCP servers that answer as no server should: the other tools stay usable, and memory and time stay bounded."""

import asyncio
import gzip
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import mcp_types
import pytest

from dragoman.agent import mcp_http
from dragoman.agent.mcp import HttpServer, McpFailed, McpServers, tool_names
from dragoman.agent.mcp_requests import ServerRequests
from dragoman.agent.tools import ToolContext
from dragoman.drivers import ScriptedDriver
from dragoman.ir import ToolCall
from tests.support.costs import growth
from tests.support.promises import promise

pytestmark = promise("agent:mcp-failures")

Answer = Callable[[str, Any, dict[str, Any]], object]
"""Method, id and parameters of a request -> the body of the answer; None leaves it unanswered."""


def schema() -> dict[str, Any]:
    return {"type": "object", "properties": {}}


def tool(name: str) -> dict[str, Any]:
    return {"name": name, "description": "d", "inputSchema": schema()}


def result(id: object, value: object) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "result": value}


def hostile(method: str, id: object, _given: dict[str, Any]) -> object:
    if method == "initialize":
        info = {"name": "x", "version": "1"}
        return result(id, {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info})
    return result(id, {"tools": [tool("a")]} if method == "tools/list" else {})


@contextmanager
def serving(answer: Answer, headers: dict[str, str] | None = None) -> Iterator[str]:
    stopped = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            given = json.loads(self.rfile.read(int(self.headers["content-length"])))
            body = answer(given.get("method", ""), given.get("id"), given.get("params") or {}) if "id" in given else b""
            if body is None:
                stopped.wait(30)
                return
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(202 if not data else 200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            for name, value in (headers or {}).items() if given.get("method") == "tools/call" else ():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        def do_GET(self) -> None:
            self.send_error(405)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/mcp"
    finally:
        stopped.set()
        server.shutdown()
        server.server_close()


def opened(url: str, **options: Any) -> McpServers:
    return McpServers({"x": HttpServer(url=url, protocol="legacy")}, **options)


async def called(url: str) -> tuple[str, str]:
    """Kind and text of what a call of the tool returns."""
    async with opened(url, timeout=2.0) as servers:
        (only,) = servers.tools()
        output = await only.run(only.decode({}), ToolContext(ToolCall("c", "a", {})))
        return output.kind, str(output.value)


def endless_pages(method: str, id: object, given: dict[str, Any]) -> object:
    if method != "tools/list":
        return hostile(method, id, given)
    place = int(given.get("cursor", 0))
    return result(id, {"tools": [tool(f"t{place}")], "nextCursor": str(place + 1)})


def the_same_page(method: str, id: object, given: dict[str, Any]) -> object:
    listed = {"tools": [], "nextCursor": "again"}
    return result(id, listed) if method == "tools/list" else hostile(method, id, given)


def a_huge_page(method: str, id: object, given: dict[str, Any]) -> object:
    listed = {"tools": [tool(f"t{number}") for number in range(10_001)]}
    return result(id, listed) if method == "tools/list" else hostile(method, id, given)


@pytest.mark.parametrize("answer", [endless_pages, the_same_page, a_huge_page])
def test_lists_of_tools_have_an_end(answer: Answer) -> None:
    async def session(url: str) -> None:
        with pytest.raises(McpFailed, match="MCP server 'x' lists more than 10000 tools, or more than 1000 pages"):
            async with opened(url, connect_timeout=60.0):
                pass
        assert [task for task in asyncio.all_tasks() if task is not asyncio.current_task()] == []

    with serving(answer) as url:
        asyncio.run(session(url))


def test_a_list_that_takes_too_long_is_not_read_further() -> None:
    """Also if the server was connected before: a call connects again when a server was gone."""
    asked = 0

    def slow(method: str, id: object, given: dict[str, Any]) -> object:
        nonlocal asked
        if method == "tools/list":
            asked += 1
            threading.Event().wait(0.3)
        return endless_pages(method, id, given)

    async def session(url: str) -> None:
        servers = opened(url, connect_timeout=1.0)
        with pytest.raises(McpFailed, match="gave no answer in 1 seconds"):
            await servers._server("x").open()  # noqa: SLF001 - as `_reconnected` does, which does not close
        await asyncio.sleep(0.5)
        before = asked
        await asyncio.sleep(1.0)
        assert asked == before
        await servers.close()

    with serving(slow) as url:
        asyncio.run(session(url))


def test_a_tool_that_is_listed_again_and_again_is_offered_once() -> None:
    def repeated(method: str, id: object, given: dict[str, Any]) -> object:
        listed = {"tools": [tool("a"), tool("b"), tool("a"), tool("a"), tool("a")]}
        return result(id, listed) if method == "tools/list" else hostile(method, id, given)

    async def session(url: str) -> None:
        async with opened(url) as servers:
            assert [one.name for one in servers.tools()] == ["a", "b"]

    with serving(repeated) as url:
        asyncio.run(session(url))


@promise("law:11-linear-cost")
def test_names_of_many_tools_are_chosen_in_linear_time() -> None:
    measured = growth(lambda n: lambda: tool_names([("s", f"t{number}") for number in range(n)]), 1_000, 4_000)
    assert not measured.is_steep, str(measured)


def test_oversized_answers_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_http, "MOST", 1 << 20)

    def bomb(method: str, id: object, given: dict[str, Any]) -> object:
        text = {"content": [{"type": "text", "text": "x" * (2 << 20)}]}
        return result(id, text) if method == "tools/call" else hostile(method, id, given)

    with serving(bomb) as url:
        kind, words = asyncio.run(called(url))
    assert kind == "error"
    assert len(words) < 500


def test_compressed_answers_are_refused() -> None:
    """Nothing asked for them, and some kilobytes may be gigabytes."""

    def packed(method: str, id: object, given: dict[str, Any]) -> object:
        text = json.dumps(result(id, {"content": [{"type": "text", "text": "x"}]})).encode()
        return gzip.compress(text) if method == "tools/call" else hostile(method, id, given)

    with serving(packed, {"content-encoding": "gzip"}) as url:
        assert asyncio.run(called(url))[0] == "error"


ODD: dict[str, Callable[[object], object]] = {
    "no answer": lambda _: None,
    "another id": lambda _: result(999, {"content": []}),
    "an id that is null": lambda _: result(None, {"content": []}),
    "not JSON": lambda _: b"<html>",
    "bad UTF-8": lambda _: b'{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"\xff"}]}}',
    "a list": lambda id: [result(id, {"content": []})],
    "deep": lambda _: b'{"jsonrpc":"2.0","id":1,"result":' + b"[" * 100_000,
    "content of another type": lambda id: result(id, {"content": 5}),
    "an unknown block": lambda id: result(id, {"content": [{"type": "surprise"}]}),
    "a request": lambda id: {"jsonrpc": "2.0", "id": id, "method": "sampling/createMessage", "params": {}},
    "an error without a message": lambda id: {"jsonrpc": "2.0", "id": id, "error": {}},
    "nothing": lambda _: b"",
}


@pytest.mark.parametrize("name", ODD)
def test_odd_answers_to_a_call_are_errors_for_the_model(name: str) -> None:
    def odd(method: str, id: object, given: dict[str, Any]) -> object:
        return ODD[name](id) if method == "tools/call" else hostile(method, id, given)

    with serving(odd) as url:
        assert asyncio.run(called(url))[0] == "error"


def test_a_server_requests_so_much_for_each_call_and_no_more() -> None:
    """Each request would cost the user time, or money for a model."""
    visited: list[str] = []

    def demanding(method: str, id: object, given: dict[str, Any]) -> object:
        pages = [{"url": f"https://example.org/{number}", "message": "m"} for number in range(500)]
        error = {"code": -32042, "message": "go there first", "data": {"elicitations": pages}}
        return {"jsonrpc": "2.0", "id": id, "error": error} if method == "tools/call" else hostile(method, id, given)

    def visit(_message: str, address: str) -> bool:
        visited.append(address)
        return True

    async def session(url: str) -> None:
        async with opened(url, open_url=visit) as servers:
            (only,) = servers.tools()
            for calls in (1, 2):
                await only.run(only.decode({}), ToolContext(ToolCall("c", "a", {})))
                assert len(visited) == 50 * calls

    with serving(demanding) as url:
        asyncio.run(session(url))

    async def sampled() -> None:
        requests = ServerRequests(ScriptedDriver(["yes"] * 60), lambda *_: {})
        message = mcp_types.SamplingMessage(role="user", content=mcp_types.TextContent(text="x"))
        asked = mcp_types.CreateMessageRequestParams(messages=[message], max_tokens=5)
        answers = [await requests.sample(None, asked) for _ in range(60)]
        assert [isinstance(one, mcp_types.ErrorData) for one in answers] == [False] * 50 + [True] * 10
        form = mcp_types.ElicitRequestFormParams(message="m", requested_schema={"type": "object", "properties": {}})
        assert await requests.elicit(None, form) == mcp_types.ElicitResult(action="decline")
        requests.start_call()
        assert await requests.elicit(None, form) == mcp_types.ElicitResult(action="accept", content={})

    asyncio.run(sampled())
