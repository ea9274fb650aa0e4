"""Many streams at once, upstreams that fail, clients that disconnect: each event arrives once, each request is counted.

python -m tests.gateway.soak --seconds 600 --streams 100
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import sys
from collections import Counter
from pathlib import Path

from dragoman.gateway.serving import Running, Setting, serving
from tests.gateway.running import Lines, configured

PIECES = 30
KINDS = (
    ("steady/m", "messages"),
    ("steady/m", "chat/completions"),
    ("saved", "messages"),
    ("breaks/m", "messages"),
    ("breaks/m", "chat/completions"),
    ("refused", "messages"),
)
_WORD = re.compile(rb"<(\d+)>")


class Upstream(asyncio.Protocol):
    """Streams numbered pieces of a chat completion. The API key selects how it fails."""

    open = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.buffer = b""
        self.flowing: asyncio.Task[None] | None = None
        Upstream.open += 1

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        Upstream.open -= 1
        if self.flowing is not None:
            self.flowing.cancel()

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        head, found, body = self.buffer.partition(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head.lower())
        if not found or length is None or len(body) < int(length[1]):
            return
        self.buffer = b""
        kind = re.search(rb"bearer (\w+)", head.lower())
        assert kind is not None
        self.flowing = asyncio.ensure_future(self.answer(kind[1].decode()))

    async def answer(self, kind: str) -> None:
        if kind == "refuses":
            body = b'{"error":{"message":"no","type":"server_error","param":null,"code":null}}'
            self.transport.write(b"HTTP/1.1 500 X\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body))
            return
        self.transport.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        )
        for number in range(PIECES):
            if kind == "breaks" and number == PIECES // 2:
                self.transport.abort()
                return
            self.piece({"index": 0, "delta": {"content": f"<{number}>"}})
            await asyncio.sleep(random.random() * 0.004)  # noqa: S311 - no secret
        self.piece({"index": 0, "delta": {}, "finish_reason": "stop"})
        self.transport.write(b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")

    def piece(self, choice: object) -> None:
        chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
        data = b"data: " + json.dumps(chunk).encode() + b"\n\n"
        self.transport.write(b"%x\r\n%b\r\n" % (len(data), data))


def setting(port: int) -> Setting:
    tables = ["[server]\nmax_body = 1000000\n"]
    tables += [
        f'[providers.{kind}]\nkind = "openai-chat"\nbase_url = "http://127.0.0.1:{port}"\napi_key = "{kind}"\n'
        "breaker = { failures = 1000000 }\n"
        for kind in ("steady", "breaks", "refuses")
    ]
    tables.append('[routes.saved]\nto = "refuses/m"\nfallback = ["steady/m"]\n')
    tables.append('[routes.refused]\nto = "refuses/m"\nattempts = 1\n')
    return configured("\n".join(tables))


async def client(port: int, outcome: Counter[str]) -> None:
    model, path = random.choice(KINDS)  # noqa: S311 - no secret
    leaves = random.random() < 0.2  # noqa: S311
    messages = [{"role": "user", "content": "count"}]
    body = json.dumps({"model": model, "max_tokens": 9, "stream": True, "messages": messages}).encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = b"POST /v1/%b HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: %d\r\n\r\n"
    writer.write(head % (path.encode(), len(body)) + body)
    try:
        received = await (reader.read(600) if leaves else reader.read())
    finally:
        writer.close()
    outcome["asked"] += 1
    if leaves:
        outcome["left"] += 1
        return
    numbers = [int(number) for number in _WORD.findall(received)]
    expected = {"refused": 0, "breaks/m": PIECES // 2}.get(model, PIECES)
    if numbers != list(range(expected)):
        outcome["wrong"] += 1
    elif expected == PIECES // 2 and b"error" not in received:
        outcome["untold"] += 1
    else:
        outcome["right"] += 1


async def soak(seconds: float, streams: int) -> tuple[Counter[str], Running, list[dict[str, object]]]:
    loop = asyncio.get_running_loop()
    upstream = await loop.create_server(Upstream, "127.0.0.1", 0)
    log = Lines()
    outcome: Counter[str] = Counter()
    async with serving(setting(upstream.sockets[0].getsockname()[1]), log=log) as running:
        port = int(running.url.rpartition(":")[2])
        end = loop.time() + seconds

        async def ask_on() -> None:
            while loop.time() < end:
                await client(port, outcome)

        await asyncio.gather(*(ask_on() for _ in range(streams)))
        for _ in range(100):
            if len(log.lines) >= outcome["asked"] and not running.gateway.metrics.in_flight:
                break
            await asyncio.sleep(0.02)
        outcome["logged"] = len(log.lines)
        outcome["in flight"] = running.gateway.metrics.in_flight
        outcome["held upstream"] = sum(one.in_flight for one in running.gateway.router.upstreams_in_use())
        outcome["connections"] = len(running.server.connections)
    upstream.close()
    return outcome, running, log.lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--streams", type=int, default=100)
    arguments = parser.parse_args()
    outcome, _, _ = asyncio.run(soak(arguments.seconds, arguments.streams))
    memory = int(Path("/proc/self/statm").read_text().split()[1]) * 4 // 1024
    sys.stdout.write(f"{dict(outcome)} memory {memory} MB\n")
    return int(bool(outcome["wrong"] or outcome["untold"] or outcome["asked"] != outcome["logged"]))


if __name__ == "__main__":
    sys.exit(main())
