"""Measures the overhead of a driver over the bare HTTP client: CPU time of a request, and of a stream of 200 pieces.

    python benchmarks/drivers.py [--check]

The server is a process of its own that answers with prepared bytes. Bare means aiohttp as its documentation
shows it: `post(url, json=...)`, `await response.json()`, and a stream read and parsed line by line. `bytes only` is the
floor below that: a prepared body, an answer that is not parsed. The sides alternate, and the fastest batch of
each counts, because noise only adds time.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Final

import aiohttp

from dragoman.drivers.connect import connect
from dragoman.drivers.remote import RemoteDriver
from dragoman.ir import Message, Text, ToolCall, ToolResult

LIMIT: Final = 1.25
PIECES: Final = 200
BATCH: Final = 40
ROUNDS: Final = 60
SWEEPS: Final = 4
QUESTION: Final = "What is the weather in Paris?"
TOOL: Final = {
    "name": "get_weather",
    "description": "The weather of a city",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
HISTORY: Final = [
    Message("assistant", (Text("I'll look."), ToolCall("call_1", "get_weather", {"city": "Paris"}))),
    Message("tool", (ToolResult("call_1", "get_weather", "text", "18 degrees, light rain"),)),
]
USAGE: Final = {"prompt_tokens": 90, "completion_tokens": 40, "total_tokens": 130}
HEAD: Final = {"id": "chatcmpl-1", "created": 1, "model": "gpt-5.6"}

SERVER: Final = """
import asyncio, sys
answers = {b"0": bytes.fromhex(sys.stdin.readline()), b"1": bytes.fromhex(sys.stdin.readline())}
async def serve(reader, writer):
    try:
        while True:
            head = await reader.readuntil(b"\\r\\n\\r\\n")
            lines = dict(l.lower().split(b": ", 1) for l in head.split(b"\\r\\n")[1:-2])
            await reader.readexactly(int(lines[b"content-length"]))
            for piece in answers[lines[b"x-kind"]].split(b"\\0"):
                writer.write(piece)
                await asyncio.sleep(0)
    except asyncio.IncompleteReadError:
        writer.close()
async def listen():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
asyncio.run(listen())
"""


def whole_answer() -> bytes:
    message = {"role": "assistant", "content": "It is 18 degrees with light rain in Paris today. Take an umbrella."}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    body = json.dumps({**HEAD, "object": "chat.completion", "choices": [choice], "usage": USAGE}).encode()
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nx-request-id: r\r\ncontent-length: %d\r\n\r\n"
    return head % len(body) + body


def streamed_answer() -> bytes:
    """One transfer chunk per event, as servers write them; a zero byte makes our server pause."""

    def event(delta: dict[str, str], **more: object) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": None, **more}
        data = json.dumps({**HEAD, "object": "chat.completion.chunk", "choices": [choice]}, separators=(",", ":"))
        return b"data: " + data.encode() + b"\n\n"

    usage = {**HEAD, "object": "chat.completion.chunk", "choices": [], "usage": USAGE}
    events = [event({"role": "assistant", "content": ""})]
    events += [event({"content": f" word{number % 10}"}) for number in range(PIECES)]
    events += [event({}, finish_reason="stop"), b"data: " + json.dumps(usage).encode() + b"\n\n", b"data: [DONE]\n\n"]
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    return head + b"\0".join(b"%x\r\n%s\r\n" % (len(one), one) for one in events) + b"0\r\n\r\n"


class Bare:
    """aiohttp as in its documentation, with a prepared body."""

    def __init__(self, url: str, body: bytes, headers: dict[str, str]) -> None:
        self._url = f"{url}/chat/completions"
        self._bytes = body
        self._values = json.loads(body)
        self._whole = {**headers, "x-kind": "0"}
        self._streamed = {**headers, "x-kind": "1"}
        self._session = aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar())

    async def bytes_only(self) -> None:
        headers = {**self._whole, "content-type": "application/json"}
        async with self._session.post(self._url, data=self._bytes, headers=headers) as response:
            await response.read()

    async def whole(self) -> None:
        async with self._session.post(self._url, json=self._values, headers=self._whole) as response:
            await response.json()

    async def streamed(self) -> None:
        async with self._session.post(self._url, json=self._values, headers=self._streamed) as response:
            async for line in response.content:
                if line.startswith(b"data: {"):
                    json.loads(line[6:])

    async def close(self) -> None:
        await self._session.close()


async def ask(driver: RemoteDriver) -> None:
    await driver.query(QUESTION, tools=[TOOL], messages=HISTORY, headers={"x-kind": "0"})


async def listen(driver: RemoteDriver) -> None:
    stream = driver.stream_query(QUESTION, tools=[TOOL], messages=HISTORY, headers={"x-kind": "1"})
    async for _ in stream:
        pass
    await stream.result


@dataclass(slots=True)
class Side:
    run: Callable[[], Awaitable[None]]
    best: float = inf
    """Seconds of CPU for one call."""


@dataclass(frozen=True, slots=True)
class Row:
    name: str
    bare: Side
    driver: Side
    limit: float | None

    @property
    def ratio(self) -> float:
        return inf if self.driver.best == inf else self.driver.best / self.bare.best

    @property
    def kept(self) -> bool:
        return self.limit is None or self.ratio <= self.limit

    def __str__(self) -> str:
        times = f"bare {self.bare.best * 1e6:8.1f} µs   driver {self.driver.best * 1e6:8.1f} µs"
        limit = "" if self.limit is None else f"   (limit {self.limit})"
        return f"{self.name:18}  {times}   ratio {self.ratio:.2f}{limit}"


async def race(sides: Sequence[Side], batch: int) -> None:
    gc.disable()
    for _ in range(ROUNDS):
        for side in sides:
            started = time.process_time()
            for _ in range(batch):
                await side.run()
            side.best = min(side.best, (time.process_time() - started) / batch)
        gc.collect()
    gc.enable()


async def measure(port: int) -> list[Row]:
    url = f"http://127.0.0.1:{port}/v1"
    driver = connect("openai-chat/gpt-4.1", base_url=url, api_key="k", environment={})
    sent = await driver.query(QUESTION, tools=[TOOL], messages=HISTORY, headers={"x-kind": "0"}, raw=True)
    assert sent.raw is not None  # noqa: S101 - asked for
    bare = Bare(url, sent.raw.request_body, {"authorization": "Bearer k", "user-agent": "bare"})
    floor, whole, asking = Side(bare.bytes_only), Side(bare.whole), Side(lambda: ask(driver))
    streamed, listening = Side(bare.streamed), Side(lambda: listen(driver))
    request = Row("a request", whole, asking, LIMIT)
    stream = Row(f"a stream of {PIECES}", streamed, listening, LIMIT)
    for _ in range(SWEEPS):
        # Measure again if a number is over its limit.
        if not request.kept:
            await race([floor, whole, asking], BATCH)
        if not stream.kept:
            await race([streamed, listening], BATCH // 8)
    await bare.close()
    await driver.close()
    return [request, stream, Row("bytes only", floor, asking, None)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help=f"exit with 1 if a ratio is over {LIMIT}")
    options = parser.parse_args()
    with subprocess.Popen(  # noqa: S603 - our own script
        [sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdin is not None  # noqa: S101
        assert server.stdout is not None  # noqa: S101
        server.stdin.write(f"{whole_answer().hex()}\n{streamed_answer().hex()}\n")
        server.stdin.flush()
        try:
            found = asyncio.run(measure(int(server.stdout.readline())))
        finally:
            server.terminate()
    for row in found:
        print(row)
    return 1 if options.check and not all(row.kept for row in found) else 0


if __name__ == "__main__":
    raise SystemExit(main())
