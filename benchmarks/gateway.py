"""What the gateway costs: requests per second, CPU time of its process, added latency to the first byte, memory.

    python benchmarks/gateway.py [--seconds 4] [--concurrency 16] [--memory 10000]

Three kinds of processes: an upstream that answers with bytes made beforehand, the gateway (or a bare pass-through on
aiohttp, for comparison), and this one, which asks. Requests are a Messages or a Chat body with a tool; the upstream
speaks Chat. CPU time is that of the gateway's process alone, from the kernel's own account.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PIECES: Final = 200
TICKS: Final = os.sysconf("SC_CLK_TCK")
PAGE: Final = os.sysconf("SC_PAGE_SIZE")
SCHEMA: Final = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
SAID: Final = "It is 18 degrees with light rain in Paris today. Take an umbrella."
USAGE: Final = {"prompt_tokens": 90, "completion_tokens": 40, "total_tokens": 130}

UPSTREAM: Final = """
import asyncio, sys
whole, *pieces = [bytes.fromhex(word) for word in sys.stdin.readline().split()]
class Upstream(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport, self.buffer = transport, b""
    def data_received(self, data):
        self.buffer += data
        head, found, body = self.buffer.partition(b"\\r\\n\\r\\n")
        if not found:
            return
        lower = head.lower()
        at = lower.index(b"content-length: ") + 16
        if len(body) < int(lower[at:].split(b"\\r\\n", 1)[0]):
            return
        self.buffer = b""
        if b'"stream":true' in body or b'"stream": true' in body:
            asyncio.ensure_future(self.flow())
        else:
            self.transport.write(whole)
    async def flow(self):
        for piece in pieces:
            self.transport.write(piece)
            await asyncio.sleep(0)
async def listen():
    server = await asyncio.get_running_loop().create_server(Upstream, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
asyncio.run(listen())
"""
BARE: Final = """
import asyncio, sys
import aiohttp
from aiohttp import web
async def main(url):
    session = aiohttp.ClientSession(auto_decompress=False)
    async def relay(request):
        body = await request.read()
        async with session.post(url, data=body, headers={"content-type": "application/json"}) as answer:
            kind = answer.headers["content-type"]
            if kind == "application/json":
                return web.Response(body=await answer.read(), content_type=kind)
            response = web.StreamResponse(headers={"content-type": kind})
            await response.prepare(request)
            async for chunk in answer.content.iter_any():
                await response.write(chunk)
            await response.write_eof()
            return response
    runner = web.ServerRunner(web.Server(relay))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    print(site._server.sockets[0].getsockname()[1], flush=True)
    await asyncio.Event().wait()
asyncio.run(main(sys.argv[1]))
"""
CONFIG: Final = """
[server]
port = {port}
log = "off"
[providers.up]
kind = "openai-chat"
base_url = "http://127.0.0.1:{upstream}/v1"
api_key = "k"
"""


# ── what is said ──


def chat(*, stream: bool) -> bytes:
    tools = [{"type": "function", "function": {"name": "get_weather", "description": "Weather", "parameters": SCHEMA}}]
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Weather in Paris?"}]
    return json.dumps({"model": "up/gpt-5.6", "stream": stream, "messages": messages, "tools": tools}).encode()


def messages(*, stream: bool) -> bytes:
    tools = [{"name": "get_weather", "description": "Weather", "input_schema": SCHEMA}]
    said = [{"role": "user", "content": "Weather in Paris?"}]
    body = {"model": "up/gpt-5.6", "max_tokens": 500, "system": "Be brief.", "messages": said, "tools": tools}
    return json.dumps({**body, "stream": stream}).encode()


def request(path: str, body: bytes) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode() + body


def answers() -> str:
    message = {"role": "assistant", "content": SAID}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    head = {"id": "chatcmpl-1", "created": 1, "model": "gpt-5.6"}
    body = json.dumps({**head, "object": "chat.completion", "choices": [choice], "usage": USAGE}).encode()
    whole = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)
    pieces = [b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"]
    deltas: list[dict[str, object]] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": f"word {number} "} for number in range(PIECES)]
    told = ({**head, "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": one}]} for one in deltas)
    pieces.extend(map(event, told))
    ended = {"index": 0, "delta": {}, "finish_reason": "stop"}
    pieces.append(event({**head, "object": "chat.completion.chunk", "choices": [ended], "usage": USAGE}))
    pieces.append(b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")
    return " ".join(piece.hex() for piece in (whole, *pieces))


def event(body: object) -> bytes:
    data = b"data: " + json.dumps(body).encode() + b"\n\n"
    return b"%x\r\n%b\r\n" % (len(data), data)


# ── processes ──


@contextmanager
def process(*command: str, told: str = "", heard: bool = True) -> Iterator[subprocess.Popen[str]]:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1] / "src")}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE if heard else subprocess.DEVNULL}
    pipes |= {} if heard else {"stderr": subprocess.DEVNULL}
    running = subprocess.Popen(command, text=True, env=environment, **pipes)  # type: ignore[call-overload]  # noqa: S603 - our own
    try:
        if told:
            running.stdin.write(told + "\n")
            running.stdin.flush()
        yield running
    finally:
        running.terminate()
        running.wait()
        running.stdin.close()
        if running.stdout is not None:
            running.stdout.close()


@contextmanager
def rosetta(program: Path, folder: Path, upstream: int) -> Iterator[tuple[int, int]]:
    """Another gateway, as its own template configures it."""
    port = free_port()
    config = {
        "providers": {"openai_chat": {"api_key": "k", "base_url": f"http://127.0.0.1:{upstream}/v1"}},
        "models": {"up/gpt-5.6": "openai_chat"},
        "server": {"host": "127.0.0.1", "port": port, "open_on_no_keys": True},
    }
    (folder / "rosetta.json").write_text(json.dumps(config))
    quiet = ("--no-banner", "--log-level", "error", "--data-dir", str(folder))
    with process(str(program), "--config", str(folder / "rosetta.json"), *quiet, heard=False) as running:
        wait_for(port)
        yield port, running.pid


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def megabytes(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE / (1 << 20)


# ── asking ──


class Client(asyncio.Protocol):
    """Asks again as soon as the answer is whole."""

    def __init__(self, sent: bytes, end: float, account: Account) -> None:
        self.sent, self.end, self.account = sent, end, account
        self.done = asyncio.get_running_loop().create_future()
        self.head = b""
        self.left: int | None = None
        self.asked = 0.0
        self.told = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: asyncio.Transport = transport  # type: ignore[assignment]
        self.ask()

    def ask(self) -> None:
        self.head, self.left, self.told = b"", None, False
        self.asked = time.perf_counter()
        self.transport.write(self.sent)

    def data_received(self, data: bytes) -> None:
        """Looks at each byte once: a slow client would measure itself."""
        if not self.told:
            self.head += data
            head, _, data = self.head.partition(b"\r\n\r\n")
            if not data:
                return
            self.open(head)
        if self.left is not None:
            self.left -= len(data)
        if self.left == 0 or (self.left is None and data.endswith(b"0\r\n\r\n")):
            self.answered()

    def open(self, head: bytes) -> None:
        # The first byte of the body counts: a relay may send the head at once.
        self.told = True
        self.account.first_bytes.append(time.perf_counter() - self.asked)
        if not head.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(head)
        _, found, length = head.lower().partition(b"content-length: ")
        self.left = int(length.split(b"\r\n", 1)[0]) if found else None

    def answered(self) -> None:
        self.account.count += 1
        if time.perf_counter() < self.end and self.account.count < self.account.most:
            self.ask()
        else:
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.done.done():
            self.done.set_result(exc)


@dataclass
class Account:
    count: int
    first_bytes: list[float]
    most: int


async def load(port: int, sent: bytes, seconds: float, concurrency: int, most: int = 1 << 60) -> Account:
    account = Account(0, [], most)
    end = time.perf_counter() + seconds
    loop = asyncio.get_running_loop()
    made = [
        await loop.create_connection(lambda: Client(sent, end, account), "127.0.0.1", port) for _ in range(concurrency)
    ]
    await asyncio.gather(*(client.done for _, client in made))
    return account


@dataclass(frozen=True)
class Result:
    rate: float
    cpu: float
    first: float


def measure(port: int, pid: int, sent: bytes, seconds: float, concurrency: int) -> Result:
    asyncio.run(load(port, sent, seconds / 4, concurrency))
    before, started = cpu_seconds(pid), time.perf_counter()
    account = asyncio.run(load(port, sent, seconds, concurrency))
    elapsed, used = time.perf_counter() - started, cpu_seconds(pid) - before
    alone = asyncio.run(load(port, sent, seconds / 4, 1)).first_bytes
    median = sorted(alone)[len(alone) // 2]
    return Result(account.count / elapsed, used / account.count, median)


CASES: Final = (
    ("JSON, the same bytes", "/v1/chat/completions", chat, False),
    ("JSON, translated", "/v1/messages", messages, False),
    (f"{PIECES} pieces, the same bytes", "/v1/chat/completions", chat, True),
    (f"{PIECES} pieces, translated", "/v1/messages", messages, True),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--concurrency", type=int, default=16)
    parser.add_argument("--memory", type=int, default=10_000, help="requests after which memory is looked at")
    parser.add_argument("--rosetta", type=Path, metavar="PROGRAM", help="llm-rosetta-gateway, to be measured too")
    arguments = parser.parse_args()
    with process(sys.executable, "-c", UPSTREAM, told=answers()) as upstream, tempfile.TemporaryDirectory() as folder:
        target = int(upstream.stdout.readline())  # type: ignore[union-attr]
        straight = f"http://127.0.0.1:{target}/v1/chat/completions"
        with process(sys.executable, "-c", BARE, straight) as bare:
            show("bare aiohttp pass-through", int(bare.stdout.readline()), bare.pid, arguments, target)  # type: ignore[union-attr]
        file = Path(folder) / "gateway.toml"
        port = free_port()
        file.write_text(CONFIG.format(port=port, upstream=target))
        if arguments.rosetta:
            with rosetta(arguments.rosetta, Path(folder), target) as (port, pid):
                show("llm-rosetta-gateway", port, pid, arguments, target)
            port = free_port()
            file.write_text(CONFIG.format(port=port, upstream=target))
        with process(sys.executable, "-m", "dragoman", "serve", "--config", str(file), "--quiet") as gateway:
            wait_for(port)
            show("dragoman gateway", port, gateway.pid, arguments, target)
            memory(port, gateway.pid, arguments.memory)


def show(name: str, port: int, pid: int, arguments: argparse.Namespace, target: int) -> None:
    print(f"\n{name} (concurrency {arguments.concurrency})")
    for title, path, body, stream in CASES:
        if "bare" in name and "translated" in title:
            continue
        result = measure(port, pid, request(path, body(stream=stream)), arguments.seconds, arguments.concurrency)
        direct = asyncio.run(load(target, request(path, chat(stream=stream)), 0.5, 1)).first_bytes
        added = result.first - sorted(direct)[len(direct) // 2]
        print(
            f"  {title:<28} {result.rate:8.0f} requests/s   {result.cpu * 1000:6.3f} ms CPU each"
            f"   first byte +{added * 1000:.2f} ms"
        )


def memory(port: int, pid: int, count: int) -> None:
    sent = request("/v1/messages", messages(stream=False))
    before = megabytes(pid)
    asyncio.run(load(port, sent, 600.0, 16, count))
    after = megabytes(pid)
    print(f"\n  memory: {before:.1f} MB before, {after:.1f} MB after {count} requests")


def free_port() -> int:
    import socket  # noqa: PLC0415

    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


def wait_for(port: int) -> None:
    import socket  # noqa: PLC0415

    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.05)
        else:
            return


if __name__ == "__main__":
    main()
