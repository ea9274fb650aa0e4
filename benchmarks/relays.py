"""Relays between client and upstream for benchmarks/gateway.py: dragoman, bare relays, and peers.

The upstream and the bare relays are small programs, each run in its own Python process.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks.relay_programs import ASGI, BLIND, GRANIAN, UVICORN, UVICORN_ON_ASYNCIO

PIECES: Final = 200
SCHEMA: Final = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
ANSWER: Final = "It is 18 degrees with light rain in Paris today. Take an umbrella."
USAGE: Final = {"prompt_tokens": 90, "completion_tokens": 40, "total_tokens": 130}
PACED: Final = "Slowly, please."
"""A request with this header gets a chunk every two milliseconds, with the time it was sent in it."""

# Each piece is sent separately, to all streams in turn. Only sockets and epoll: an upstream that takes more CPU time
# than the relay would be the bottleneck.
UPSTREAM: Final = """
import select, socket, sys, time
whole, paced, *pieces = [bytes.fromhex(word) for word in sys.stdin.readline().split()]
listening = socket.create_server(("127.0.0.1", 0), backlog=512)
listening.setblocking(False)
poll = select.epoll()
poll.register(listening, select.EPOLLIN)
lines, asked, flowing = {}, {}, {}
def stamped():
    yield pieces[0]
    due = time.perf_counter()
    for _ in range(len(pieces) - 3):
        due += 0.002
        while time.perf_counter() < due:
            yield b""
        data = paced % (b"%.6f" % time.perf_counter())
        yield b"%x\\r\\n%b\\r\\n" % (len(data), data)
    yield pieces[-2] + pieces[-1]
def received(fd):
    try:
        data = lines[fd].recv(1 << 16)
    except OSError:
        data = b""
    if not data:
        poll.unregister(fd)
        lines.pop(fd).close()
        flowing.pop(fd, None)
        return
    asked[fd] += data
    head, found, body = asked[fd].partition(b"\\r\\n\\r\\n")
    _, sized, length = head.lower().partition(b"content-length: ")
    if not found or len(body) < (int(length.split(b"\\r\\n", 1)[0]) if sized else 0):
        return
    asked[fd] = b""
    if b'"stream":true' in body or b'"stream": true' in body:
        flowing[fd] = stamped() if b"Slowly, please." in body else iter(pieces)
    else:
        flowing[fd] = iter([whole])
print(listening.getsockname()[1], flush=True)
while True:
    for fd, _ in poll.poll(0 if flowing else -1):
        if fd == listening.fileno():
            line, _ = listening.accept()
            line.setblocking(False)
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            lines[line.fileno()], asked[line.fileno()] = line, b""
            poll.register(line, select.EPOLLIN)
        else:
            received(fd)
    for fd, left in list(flowing.items()):
        piece = next(left, None)
        try:
            if piece is None:
                del flowing[fd]
            elif piece and lines[fd].send(piece) != len(piece):
                raise SystemExit("a client that does not read")
        except OSError:
            flowing.pop(fd, None)
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
    site = web.TCPSite(runner, "127.0.0.1", int(sys.argv[2]))
    await site.start()
    await asyncio.Event().wait()
asyncio.run(main(sys.argv[1] + "/v1/chat/completions"))
"""
RAW: Final = """
import asyncio, sys
port = int(sys.argv[1].rpartition(":")[2])
class Up(asyncio.Protocol):
    def __init__(self, down):
        self.down = down
    def connection_made(self, transport):
        self.down.up = transport
        transport.write(self.down.waiting)
    def data_received(self, data):
        self.down.transport.write(data)
    def connection_lost(self, error):
        self.down.transport.close()
class Down(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport, self.up, self.waiting = transport, None, b""
        self.connecting = asyncio.ensure_future(loop.create_connection(lambda: Up(self), "127.0.0.1", port))
    def data_received(self, data):
        if self.up:
            self.up.write(data)
        else:
            self.waiting += data
    def connection_lost(self, error):
        if self.up:
            self.up.close()
async def main():
    global loop
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Down, "127.0.0.1", int(sys.argv[2]))
    await server.serve_forever()
asyncio.run(main())
"""
DRAGOMAN: Final = """
[server]
port = {port}
log = "off"
[providers.up]
kind = "openai-chat"
base_url = "{upstream}/v1"
api_key = "k"
"""


# ── requests and answers ──


def chat(*, stream: bool, words: str = "Weather in Paris?") -> bytes:
    tools = [{"type": "function", "function": {"name": "get_weather", "description": "Weather", "parameters": SCHEMA}}]
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": words}]
    return json.dumps({"model": "up/gpt-5.6", "stream": stream, "messages": messages, "tools": tools}).encode()


def messages(*, stream: bool, words: str = "Weather in Paris?") -> bytes:
    tools = [{"name": "get_weather", "description": "Weather", "input_schema": SCHEMA}]
    turns = [{"role": "user", "content": words}]
    body = {"model": "up/gpt-5.6", "max_tokens": 500, "system": "Be brief.", "messages": turns, "tools": tools}
    return json.dumps({**body, "stream": stream}).encode()


def request(path: str, body: bytes) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode() + body


def answers() -> str:
    """For the upstream: a whole answer, a piece with a place for the time, and the pieces of a stream."""
    message = {"role": "assistant", "content": ANSWER}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    head = {"id": "chatcmpl-1", "created": 1, "model": "gpt-5.6"}
    body = json.dumps({**head, "object": "chat.completion", "choices": [choice], "usage": USAGE}).encode()
    whole = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)
    pieces = [b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"]
    deltas: list[dict[str, object]] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": f"word {number} "} for number in range(PIECES)]
    chunks = [{**head, "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": one}]} for one in deltas]
    pieces.extend(chunk(event(one)) for one in chunks)
    ended = {"index": 0, "delta": {}, "finish_reason": "stop"}
    pieces.append(chunk(event({**head, "object": "chat.completion.chunk", "choices": [ended], "usage": USAGE})))
    pieces.append(b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")
    paced = event(chunks[1]).replace(b"word 0 ", b"<%b> ")
    return " ".join(piece.hex() for piece in (whole, paced, *pieces))


def event(body: object) -> bytes:
    return b"data: " + json.dumps(body).encode() + b"\n\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


# ── processes ──


@contextmanager
def process(*command: str, input: str = "", piped: bool = False) -> Iterator[subprocess.Popen[str]]:
    environment = {"PYTHONPATH": str(Path(__file__).parents[1] / "src"), **os.environ}
    environment["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # otherwise it downloads prices first
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE if piped else subprocess.DEVNULL}
    running: subprocess.Popen[str] = subprocess.Popen(  # type: ignore[call-overload]  # noqa: S603 - our own
        command, text=True, env=environment, stderr=None if piped else subprocess.DEVNULL, **streams
    )
    assert running.stdin is not None  # noqa: S101 - it is piped
    try:
        if input:
            running.stdin.write(input + "\n")
            running.stdin.flush()
        yield running
    finally:
        running.terminate()
        running.wait()
        running.stdin.close()
        if running.stdout is not None:
            running.stdout.close()


@contextmanager
def upstream() -> Iterator[str]:
    with process(sys.executable, "-c", UPSTREAM, input=answers(), piped=True) as running:
        assert running.stdout is not None  # noqa: S101 - it is piped
        yield f"http://127.0.0.1:{int(running.stdout.readline())}"


@dataclass(frozen=True)
class Relay:
    name: str
    command: Callable[[str, int, Path], list[str]]
    """The command, given the upstream's URL, a port and a folder for its configuration."""
    translates: bool = True
    rounds: int = 1 << 20
    """Limit of requests, for relays that take seconds per answer."""


def _dragoman(upstream: str, port: int, folder: Path) -> list[str]:
    file = folder / f"gateway-{port}.toml"
    file.write_text(DRAGOMAN.format(port=port, upstream=upstream))
    return [sys.executable, "-m", "dragoman", "serve", "--config", str(file), "--quiet"]


def _several(upstream: str, port: int, folder: Path) -> list[str]:
    return [*_dragoman(upstream, port, folder), "--workers", "2"]


def _blind(*texts: str, more: tuple[str, ...] = ()) -> Callable[[str, int, Path], list[str]]:
    return lambda up, port, _: [sys.executable, "-c", "".join((BLIND, *texts)), up, str(port), *more]


RELAYS: Final = (
    Relay("dragoman", _dragoman),
    Relay("bare granian + pyreqwest relay", _blind(GRANIAN, more=("uvloop",)), translates=False),
    # As `pip install 'uvicorn[standard]' aiohttp` leaves them, and as `pip install uvicorn aiohttp` does.
    Relay("bare uvicorn + aiohttp relay (uvloop, httptools)", _blind(ASGI, UVICORN), translates=False),
    Relay("bare uvicorn + aiohttp relay (asyncio, h11)", _blind(ASGI, UVICORN_ON_ASYNCIO), translates=False),
    Relay("bare aiohttp relay", lambda up, port, _: [sys.executable, "-c", BARE, up, str(port)], translates=False),
    Relay("raw asyncio relay", lambda up, port, _: [sys.executable, "-c", RAW, up, str(port)], translates=False),
)
TWO_WORKERS: Final = Relay("dragoman, 2 workers", _several)


def peers(pythons: list[Path]) -> Iterator[Relay]:
    """Other gateways, started as in their documentation, if one of these interpreters has them."""
    programs: dict[str, tuple[str, Callable[[Path, str, int, Path], list[str]]]] = {
        "llm-rosetta": ("llm-rosetta-gateway", _rosetta),
        "litellm": ("litellm", _litellm),
    }
    for name, (program, command) in programs.items():
        # The last one counts: a dedicated environment follows the general one.
        found = [python.parent / program for python in pythons if _runs(python.parent / program)]
        if found:
            file = found[-1]
            yield Relay(name, partial(command, file), rounds=3)
        else:
            print(f"{name} is not measured: no --peer-python has a {program} that runs")


def _runs(program: Path) -> bool:
    command = [str(program), "--help"]
    return program.exists() and subprocess.run(command, check=False, capture_output=True).returncode == 0  # noqa: S603


def _rosetta(program: Path, upstream: str, port: int, folder: Path) -> list[str]:
    config = {
        "providers": {"openai_chat": {"api_key": "k", "base_url": f"{upstream}/v1"}},
        "models": {"up/gpt-5.6": "openai_chat"},
        "server": {"host": "127.0.0.1", "port": port, "open_on_no_keys": True},
    }
    file = folder / "rosetta.json"
    file.write_text(json.dumps(config))
    quiet = ["--no-banner", "--log-level", "error", "--data-dir", str(folder)]
    return [str(program), "--config", str(file), *quiet]


def _litellm(program: Path, upstream: str, port: int, folder: Path) -> list[str]:
    settings = {"model": "openai/gpt-5.6", "api_base": f"{upstream}/v1", "api_key": "k"}
    config = {
        "model_list": [{"model_name": "up/gpt-5.6", "litellm_params": settings}],
        # The upstream uses Chat; an abandoned request must not cause a cool-down.
        "litellm_settings": {"telemetry": False, "use_chat_completions_url_for_anthropic_messages": True},
        "router_settings": {"disable_cooldowns": True},
        "general_settings": {"dangerously_permit_weak_or_unset_master_key": True},  # it listens on loopback only
    }
    file = folder / "litellm.yaml"
    file.write_text(json.dumps(config))  # JSON is YAML
    return [str(program), "--config", str(file), "--host", "127.0.0.1", "--port", str(port)]


@contextmanager
def started(relay: Relay, upstream: str, folder: Path) -> Iterator[tuple[int, int]]:
    """Starts the relay on a free port; yields the port and the process id."""
    port = free_port()
    with process(*relay.command(upstream, port, folder)) as running:
        wait_for(port, running)
        yield port, running.pid


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


def wait_for(port: int, running: subprocess.Popen[str]) -> None:
    end = time.monotonic() + 180
    while time.monotonic() < end and running.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise SystemExit(f"nothing listens on {port}: {running.args!r}")
