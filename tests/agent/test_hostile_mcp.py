"""MCP servers that answer as no server should: the other tools stay usable, and memory and time stay bounded."""

import asyncio
import codecs
import gzip
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import mcp_types
import pytest

from dragoman.agent import mcp_http, mcp_stdio
from dragoman.agent.mcp import HttpServer, McpFailed, McpServers, StdioServer, tool_names
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


@pytest.mark.parametrize("member", ["content", "structuredContent"])
def test_answers_of_very_many_values_are_given_up(member: str) -> None:
    """The SDK makes an object of each: seven megabytes of them took a hundred, and held up the event loop."""
    many: object = [{"type": "text", "text": "x"}] * 150_000 if member == "content" else {"a": [[]] * 400_000}

    def bomb(method: str, id: object, given: dict[str, Any]) -> object:
        answer = {"content": [], member: many}
        return result(id, answer) if method == "tools/call" else hostile(method, id, given)

    with serving(bomb) as url:
        kind, _ = asyncio.run(called(url))
    assert kind == "error"


def test_values_in_a_text_are_part_of_it() -> None:
    text = json.dumps([{"a": [number, '"', "\\"]} for number in range(100_000)])

    def long(method: str, id: object, given: dict[str, Any]) -> object:
        answer = {"content": [{"type": "text", "text": text}]}
        return result(id, answer) if method == "tools/call" else hostile(method, id, given)

    with serving(long) as url:
        assert asyncio.run(called(url)) == ("text", text)


def values(value: object) -> int:
    """How many marks separate the values of its JSON."""
    if isinstance(value, dict):
        value = list(value.values())
    return 1 + max(0, len(value) - 1) + sum(map(values, value)) if isinstance(value, list) else 0


def test_values_are_counted_in_any_pieces() -> None:
    odd = ['"', "\\", '\\"', "[{,", '","', "\\\\", 5, None, {}, [], {'b",': [1, {"c\\": "x"}]}]
    text = json.dumps([*odd, {"d": odd}]).encode()
    for size in range(1, 20):
        counted = mcp_http.JsonValues()
        for start in range(0, len(text), size):
            counted.feed(text[start : start + size])
        assert counted.count == values([*odd, {"d": odd}])


def test_values_are_counted_in_linear_time() -> None:
    def prepare(n: int, piece: bytes) -> Callable[[], object]:
        def count() -> None:
            counted = mcp_http.JsonValues()
            for _ in range(n):
                counted.feed(piece)

        return count

    for piece in (b"\\" * 1_000, b'\\"' * 500, b'"' * 1_000, b"[" * 1_000):
        measured = growth(lambda n, piece=piece: prepare(n, piece), 500, 2_000)  # type: ignore[misc]
        assert not measured.is_steep, f"{piece[:4]!r}: {measured}"


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


# ── programs ──

PROGRAM = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    name = (asked.get("params") or {}).get("name")
    info = {"name": "x", "version": "1"}
    answer = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
    if asked["method"] == "tools/list":
        answer = {"tools": [{"name": one, "inputSchema": {"type": "object"}} for one in ("long", "short")]}
    if asked["method"] == "tools/call":
        text = "x" * (100 << 20) if name == "long" else "ok"
        answer = {"content": [{"type": "text", "text": text}]}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": answer}), flush=True)
"""


def test_a_program_that_writes_a_line_without_end_holds_up_nothing() -> None:
    """The SDK joined such a line again for each of its pieces."""

    async def session() -> list[str]:
        server = StdioServer(command=sys.executable, args=["-c", PROGRAM])
        async with McpServers({"x": server}, timeout=5.0) as servers:
            tools = {tool.name: tool for tool in servers.tools()}
            outputs = [await tools[name].run({}, ToolContext(ToolCall("c", name, {}))) for name in ("long", "short")]
            return [str(getattr(one, "value", one)) for one in outputs]

    before = time.process_time()
    long, short = asyncio.run(session())
    assert "no answer within 5 seconds" in long
    assert short == "ok"
    assert time.process_time() - before < 4


def decoder() -> codecs.IncrementalDecoder:
    return codecs.getincrementaldecoder(mcp_stdio.ENCODING)("strict")


def test_lines_of_a_program_arrive_whole_whatever_the_pieces() -> None:
    text = '\n{"é€": "\\\\"}\nlonger than a piece\n\nlast'
    for size in range(1, 20):
        data, made = text.encode(), decoder()
        pieces = [made.decode(data[start : start + size]) for start in range(0, len(data), size)]
        assert all(not piece or piece.endswith("\n") for piece in pieces)
        assert "".join(pieces) + made.decode(b"", final=True) == text


def test_a_line_that_is_too_long_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_stdio, "MOST", 10)
    monkeypatch.setattr(mcp_stdio, "MOST_VALUES", 3)
    for data, left in ((b"x" * 20 + b"\nok\n", "ok\n"), (b"[[[[\nok\n", "ok\n"), (b"0123456789\n", "0123456789\n")):
        made = decoder()
        assert "".join(made.decode(data[at : at + 1]) for at in range(len(data))) == left


def test_lines_of_a_program_are_read_in_linear_time() -> None:
    def prepare(n: int) -> Callable[[], object]:
        def read() -> None:
            made = decoder()
            for _ in range(n):
                made.decode(b"x" * 10_000)
            made.decode(b"\n")

        return read

    measured = growth(prepare, 100, 1_000)
    assert not measured.is_steep, str(measured)
