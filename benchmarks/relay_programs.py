"""Source of small relays on HTTP libraries: benchmarks/relays.py runs each in its own Python process.

`TRANSLATION` or `BLIND` is prepended and decides what they do to a body.

They do less than a relay has to: of the headers only `content-type` is passed on, and every answer has status 200. So
their cost is a lower bound. Passing on status and all headers costs uvicorn + aiohttp 2 % more instructions with the
three headers of the load generator, and 17 % more with those of a vendor's SDK.
"""

# ruff: noqa: E501 - programs as text

from __future__ import annotations

from typing import Final

BLIND: Final = """
def convert_request(path, body):
    return body
def convert_answer(path, body):
    return body
def stream_converter(path):
    return (lambda data: data), (lambda: b"")
"""
TRANSLATION: Final = """
from dragoman import StreamTranslator, translate_request, translate_response
FORMATS = {"source": "anthropic-messages", "target": "openai-chat"}
def convert_request(path, body):
    return translate_request(body, **FORMATS).json() if path == "/v1/messages" else body
def convert_answer(path, body):
    if path != "/v1/messages":
        return body
    return translate_response(body, source="openai-chat", target="anthropic-messages").json()
def stream_converter(path):
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
        request = client.post(url).header("content-type", "application/json").body_bytes(convert_request(scope.path, body))
        async with request.build_streamed() as answer:
            kind = answer.get_header("content-type")
            if kind == "application/json":
                whole = convert_answer(scope.path, bytes(await answer.bytes()))
                proto.response_bytes(200, [("content-type", kind)], whole)
                return
            feed, close = stream_converter(scope.path)
            out = proto.response_stream(200, [("content-type", kind)])
            reader = answer.body_reader
            while (data := await reader.read_chunk()) is not None:
                if chunk := feed(bytes(data)):
                    await out.send_bytes(chunk)
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
    async with session.post(url, data=convert_request(path, body), headers={"content-type": "application/json"}) as answer:
        kind = answer.headers["content-type"]
        head = [(b"content-type", kind.encode())]
        if kind == "application/json":
            whole = convert_answer(path, await answer.read())
            head.append((b"content-length", b"%d" % len(whole)))
            await send({"type": "http.response.start", "status": 200, "headers": head})
            return await send({"type": "http.response.body", "body": whole})
        await send({"type": "http.response.start", "status": 200, "headers": head})
        feed, close = stream_converter(path)
        async for chunk in answer.content.iter_any():
            await send({"type": "http.response.body", "body": feed(chunk), "more_body": True})
        await send({"type": "http.response.body", "body": close()})
"""
UVICORN: Final = """
import uvicorn
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[2]), loop="uvloop", http="httptools", log_level="error", access_log=False)
"""
UVICORN_ON_ASYNCIO: Final = """
import uvicorn
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[2]), loop="asyncio", http="h11", log_level="error", access_log=False)
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
        async with session.post(url, data=convert_request(path, body), headers={"content-type": "application/json"}) as answer:
            kind = answer.headers["content-type"]
            if kind == "application/json":
                return web.Response(body=convert_answer(path, await answer.read()), content_type=kind)
            response = web.StreamResponse(headers={"content-type": kind})
            await response.prepare(request)
            feed, close = stream_converter(path)
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
            self.feed, self.close = stream_converter(self.down.path)
            self.down.transport.write(b"HTTP/1.1 200 OK\\r\\ntransfer-encoding: chunked\\r\\ncontent-type: %b\\r\\n\\r\\n" % self.kind)
    def on_body(self, data):
        self.pieces.append(data)
    def buffer_updated(self, nbytes):
        self.parser.feed_data(room[:nbytes])
        if self.pieces and self.down is not None and self.streams:
            self.flush(b"".join(self.pieces))
    def flush(self, data):
        self.pieces.clear()
        if chunk := self.feed(data):
            self.down.transport.write(b"%x\\r\\n%b\\r\\n" % (len(chunk), chunk))
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
            whole = convert_answer(down.path, b"".join(self.pieces))
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
        body = convert_request(self.path, body)
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
