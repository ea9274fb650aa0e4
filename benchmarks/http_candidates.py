"""Which HTTP libraries a gateway should stand on: the same bare relay on each of them, measured side by side.

    python benchmarks/http_candidates.py [--seconds 0.6] [--rounds 5]

Every relay passes `/v1/chat/completions` on as it is and translates `/v1/messages` with the same calls of dragoman, so the difference between two rows is HTTP alone. No relay has limits, keys or time-outs, except the gateway itself.
The table is in Markdown; docs/decisions/0021-gateway-http.md quotes it. The libraries are in the group `bench`.
"""

# ruff: noqa: E501 - programs as text

from __future__ import annotations

import argparse
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # a script finds its own folder, not the one around it

from benchmarks.load import first_byte, measure, megabytes
from benchmarks.relays import RELAYS, Relay, chat, messages, request, started, upstream

TRANSLATION: Final = """
from dragoman import StreamTranslator, translate_request, translate_response
FORMATS = {"source": "anthropic-messages", "target": "openai-chat"}
def sent(path, body):
    return translate_request(body, **FORMATS).json() if path == "/v1/messages" else body
def answered(path, body):
    if path != "/v1/messages":
        return body
    return translate_response(body, source="openai-chat", target="anthropic-messages").json()
def feeding(path):
    if path != "/v1/messages":
        return (lambda data: data), (lambda: b"")
    translator = StreamTranslator(source="openai-chat", target="anthropic-messages")
    return translator.feed, translator.close
"""
GRANIAN: Final = """
import sys
from pyreqwest.client import ClientBuilder
url = sys.argv[1] + "/v1/chat/completions"
client = ClientBuilder().build()
class App:
    async def __rsgi__(self, scope, proto):
        body = await proto()
        asked = client.post(url).header("content-type", "application/json").body_bytes(sent(scope.path, body))
        async with asked.build_streamed() as answer:
            kind = answer.get_header("content-type")
            if kind == "application/json":
                whole = answered(scope.path, bytes(await answer.bytes()))
                proto.response_bytes(200, [("content-type", kind)], whole)
                return
            feed, close = feeding(scope.path)
            out = proto.response_stream(200, [("content-type", kind)])
            reader = answer.body_reader
            while (data := await reader.read_chunk()) is not None:
                if told := feed(bytes(data)):
                    await out.send_bytes(told)
            if last := close():
                await out.send_bytes(last)
app = App()
if __name__ == "__main__":
    import asyncio
    from granian.server.embed import Server
    server = Server(app, address="127.0.0.1", port=int(sys.argv[2]), interface="rsgi")
    if "uvloop" in sys.argv:
        import uvloop
        uvloop.install()
    asyncio.run(server.serve())
"""
ASGI: Final = """
import sys
import aiohttp
url = sys.argv[1] + "/v1/chat/completions"
session = None
async def app(scope, receive, send):
    global session
    if scope["type"] == "lifespan":
        await receive()
        session = aiohttp.ClientSession(auto_decompress=False)
        await send({"type": "lifespan.startup.complete"})
        await receive()
        return await send({"type": "lifespan.shutdown.complete"})
    body, more = b"", True
    while more:
        event = await receive()
        body, more = body + event["body"], event.get("more_body")
    path = scope["path"]
    async with session.post(url, data=sent(path, body), headers={"content-type": "application/json"}) as answer:
        kind = answer.headers["content-type"]
        head = [(b"content-type", kind.encode())]
        if kind == "application/json":
            whole = answered(path, await answer.read())
            head.append((b"content-length", b"%d" % len(whole)))
            await send({"type": "http.response.start", "status": 200, "headers": head})
            return await send({"type": "http.response.body", "body": whole})
        await send({"type": "http.response.start", "status": 200, "headers": head})
        feed, close = feeding(path)
        async for chunk in answer.content.iter_any():
            await send({"type": "http.response.body", "body": feed(chunk), "more_body": True})
        await send({"type": "http.response.body", "body": close()})
"""
UVICORN: Final = """
import uvicorn
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[2]), loop="uvloop", http="httptools", log_level="error", access_log=False)
"""
HYPERCORN: Final = """
import asyncio, uvloop
from hypercorn.asyncio import serve
from hypercorn.config import Config
config = Config()
config.bind = ["127.0.0.1:" + sys.argv[2]]
uvloop.install()
asyncio.run(serve(app, config))
"""
AIOHTTP: Final = """
import asyncio, sys
import aiohttp, uvloop
from aiohttp import web
async def main(url):
    session = aiohttp.ClientSession(auto_decompress=False)
    async def relay(request):
        path, body = request.path, await request.read()
        async with session.post(url, data=sent(path, body), headers={"content-type": "application/json"}) as answer:
            kind = answer.headers["content-type"]
            if kind == "application/json":
                return web.Response(body=answered(path, await answer.read()), content_type=kind)
            response = web.StreamResponse(headers={"content-type": kind})
            await response.prepare(request)
            feed, close = feeding(path)
            async for chunk in answer.content.iter_any():
                await response.write(feed(chunk))
            await response.write_eof(close())
            return response
    runner = web.ServerRunner(web.Server(relay))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", int(sys.argv[2])).start()
    await asyncio.Event().wait()
uvloop.install()
asyncio.run(main(sys.argv[1] + "/v1/chat/completions"))
"""
HTTPTOOLS: Final = """
import asyncio, sys
from httptools import HttpRequestParser, HttpResponseParser
port = int(sys.argv[1].rpartition(":")[2])
room = memoryview(bytearray(1 << 16))
idle = []
class Reading(asyncio.BufferedProtocol):
    def get_buffer(self, sizehint):
        return room
    def buffer_updated(self, nbytes):
        self.parser.feed_data(room[:nbytes])
    def connection_made(self, transport):
        self.transport = transport
        self.began()
class Up(Reading):
    def began(self):
        self.parser = HttpResponseParser(self)
    def ask(self, down, data):
        self.down, self.head, self.pieces, self.kind = down, False, [], b""
        self.transport.write(data)
    def on_header(self, name, value):
        if name.lower() == b"content-type":
            self.kind = value
    def on_headers_complete(self):
        self.streams = self.kind != b"application/json"
        if self.streams:
            self.feed, self.close = feeding(self.down.path)
            self.down.transport.write(b"HTTP/1.1 200 OK\\r\\ntransfer-encoding: chunked\\r\\ncontent-type: %b\\r\\n\\r\\n" % self.kind)
    def on_body(self, data):
        self.pieces.append(data)
    def buffer_updated(self, nbytes):
        self.parser.feed_data(room[:nbytes])
        if self.pieces and self.down is not None and self.streams:
            self.flush(b"".join(self.pieces))
    def flush(self, data):
        self.pieces.clear()
        if told := self.feed(data):
            self.down.transport.write(b"%x\\r\\n%b\\r\\n" % (len(told), told))
    def on_message_complete(self):
        down, self.down = self.down, None
        if self.streams:
            self.down = down
            if self.pieces:
                self.flush(b"".join(self.pieces))
            self.down = None
            last = self.close()
            down.transport.write((b"%x\\r\\n%b\\r\\n" % (len(last), last) if last else b"") + b"0\\r\\n\\r\\n")
        else:
            whole = answered(down.path, b"".join(self.pieces))
            down.transport.write(b"HTTP/1.1 200 OK\\r\\ncontent-type: application/json\\r\\ncontent-length: %d\\r\\n\\r\\n%b" % (len(whole), whole))
        idle.append(self)
class Down(Reading):
    def began(self):
        self.parser = HttpRequestParser(self)
    def on_message_begin(self):
        self.url, self.body = b"", []
    def on_url(self, url):
        self.url += url
    def on_header(self, name, value):
        pass
    def on_body(self, data):
        self.body.append(data)
    def on_message_complete(self):
        self.path = self.url.decode()
        self.task = loop.create_task(self.relay(b"".join(self.body)))
    async def relay(self, body):
        up = idle.pop() if idle else (await loop.create_connection(Up, "127.0.0.1", port))[1]
        body = sent(self.path, body)
        up.ask(self, b"POST /v1/chat/completions HTTP/1.1\\r\\nhost: x\\r\\ncontent-type: application/json\\r\\ncontent-length: %d\\r\\n\\r\\n%b" % (len(body), body))
async def main():
    global loop
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Down, "127.0.0.1", int(sys.argv[2]))
    await server.serve_forever()
if "uvloop" in sys.argv:
    import uvloop
    uvloop.install()
asyncio.run(main())
"""


def program(name: str, *texts: str, more: tuple[str, ...] = ()) -> Relay:
    text = "".join((TRANSLATION, *texts))
    return Relay(name, lambda up, port, _: [sys.executable, "-c", text, up, str(port), *more])


CANDIDATES: Final = (
    RELAYS[0],
    program("granian + pyreqwest", GRANIAN),
    program("granian + pyreqwest, uvloop", GRANIAN, more=("uvloop",)),
    program("uvicorn (httptools, uvloop) + aiohttp", ASGI, UVICORN),
    program("hypercorn (uvloop) + aiohttp", ASGI, HYPERCORN),
    program("aiohttp + aiohttp, uvloop", AIOHTTP),
    program("httptools, asyncio", HTTPTOOLS),
    program("httptools, uvloop", HTTPTOOLS, more=("uvloop",)),
)
CASES: Final = tuple(
    (what + (" stream" if stream else " JSON"), path, body, stream)
    for stream in (False, True)
    for what, path, body in (("same", "/v1/chat/completions", chat), ("translated", "/v1/messages", messages))
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=0.6, help="for each number and round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--concurrency", type=int, nargs="+", default=[1, 16, 64])
    parser.add_argument("--only", default="", help="candidates whose name contains this")
    arguments = parser.parse_args()
    best: dict[tuple[str, str, int], tuple[float, float]] = {}
    late: dict[tuple[str, str], float] = {}
    with ExitStack() as running:
        folder = Path(running.enter_context(tempfile.TemporaryDirectory()))
        target = running.enter_context(upstream())
        chosen = [one for one in CANDIDATES if arguments.only in one.name]
        places = {one.name: running.enter_context(started(one, target, folder)) for one in chosen}
        for number in range(arguments.rounds):
            print(f"round {number + 1}", file=sys.stderr)
            for title, path, body, stream in CASES:
                sent = request(path, body(stream=stream))
                for count in arguments.concurrency:
                    for name, (port, pid) in places.items():
                        seen = measure(port, pid, sent, arguments.seconds, count, stream=stream)
                        rate, cpu = best.get((name, title, count), (0.0, 1e9))
                        best[name, title, count] = max(rate, seen.rate), min(cpu, seen.cpu)
                for name, (port, _) in places.items():
                    seen_late = first_byte(port, sent, arguments.seconds / 3)
                    late[name, title] = min(late.get((name, title), 1e9), seen_late)
        memory = {name: megabytes(pid) for name, (_, pid) in places.items()}
    show(best, late, memory, arguments.concurrency)


def show(
    best: dict[tuple[str, str, int], tuple[float, float]],
    late: dict[tuple[str, str], float],
    memory: dict[str, float],
    counts: list[int],
) -> None:
    columns = [(title, count) for title, *_ in CASES for count in counts]
    print("CPU of the process per request, µs (requests/s)\n")
    print("| | " + " | ".join(f"{title}, c={count}" for title, count in columns) + " | MB |")
    print("|---|" + "---:|" * (len(columns) + 1))
    for name, size in memory.items():
        cells = [f"{best[name, *column][1] * 1e6:,.0f} ({best[name, *column][0]:,.0f})" for column in columns]
        print(f"| {name} | " + " | ".join(cells) + f" | {size:.0f} |")
    print("\nTime of a whole answer at c=1, µs\n")
    print("| | " + " | ".join(title for title, *_ in CASES) + " |")
    print("|---|" + "---:|" * len(CASES))
    for name in memory:
        print(f"| {name} | " + " | ".join(f"{late[name, title] * 1e6:,.0f}" for title, *_ in CASES) + " |")


if __name__ == "__main__":
    main()
