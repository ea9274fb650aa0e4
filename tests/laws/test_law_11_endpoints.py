"""Law 11 at the gateway: what a request costs grows linearly with each dimension of it, at every endpoint.

Every endpoint of the description and of the page is asked, over HTTP, with targets, headers and bodies that grow. What
is measured is the CPU time of the gateway's process, with all of its threads; tests/support/costs.py judges it.
"""

import base64
import json
import re
import socket
import struct
import sys
import time
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from types import SimpleNamespace
from typing import Any, get_args
from urllib.parse import urlsplit

import pytest

import dragoman
from dragoman.gateway.endpoints import Operation, match_endpoint
from dragoman.gateway.http_request import Head
from dragoman.gateway.openapi import DESCRIBED
from dragoman.gateway.serving import simulators_at
from dragoman.ir import Message, Request
from dragoman.sim.server import Simulator
from dragoman.web.chat import chat
from dragoman.web.key_admin import key_admin
from dragoman.web.live import live
from dragoman.web.playground import playground
from dragoman.web.site import API, PageSection
from tests.gateway.served import Served, served
from tests.laws.test_law_11_linear_cost import ODD_BODIES, REQUESTS
from tests.support.costs import Prepare, Work, growth
from tests.support.promises import promise
from tests.support.waiting import PATIENCE

pytestmark = [
    promise("law:11-linear-cost"),
    pytest.mark.skipif(sys.platform != "linux", reason="the CPU time of another process is read from Linux's clocks"),
]

MODEL = "p/claude-sonnet-5"
IN_TARGET, LARGEST_TARGET = 256, 1_024
"""Units of about ten bytes: four times as many fit into a head, which has 64 KiB."""
IN_BODY, LARGEST_BODY = 1_024, 4_096
IN_TEXT = 128
"""Messages, calls, tools, losses: each costs about as much as a hundred bytes."""
Row = tuple[str, str, Prepare]


# ── the gateway, and what it costs ──


@pytest.fixture(scope="module")
def gateway(dragoman_simulator: Simulator, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("gateway")
    base = simulators_at(dragoman_simulator.url)
    tables = [f'[server]\ndatabase = "{folder / "gateway.db"}"\n[mcp]\nserve = true\n']
    tables += [
        f'[providers.{name}]\nkind = "{kind}"\nbase_url = "{base[kind]}"\napi_key = "any"\n'
        for name, kind in (("p", "anthropic"), ("openai", "openai"), ("gemini", "gemini"))
    ]
    with served(folder, "\n".join(tables), "--quiet") as running:
        yield running


class Client:
    """Sends requests over one connection and knows the CPU time of the gateway's process."""

    def __init__(self, gateway: Served) -> None:
        self._address = urlsplit(gateway.url)
        self._clock = (~gateway.process.pid << 3) | 2  # clock_getcpuclockid(3)
        self._connection: HTTPConnection | None = None

    def cpu_seconds(self, work: Work) -> float:
        started = time.clock_gettime(self._clock)
        work()
        return time.clock_gettime(self._clock) - started

    def send(self, method: str, target: str, body: bytes | None = None, **headers: str) -> tuple[int, bytes]:
        if self._connection is None:
            self._connection = HTTPConnection(
                self._address.hostname or "", self._address.port, timeout=PATIENCE, blocksize=1 << 20
            )
        given = {"content-type": "application/json", "x-dragoman-page": "1", **headers}
        try:
            self._connection.request(method, target, body, given)
            answer = self._connection.getresponse()
            content = b"" if "event-stream" in answer.headers.get("content-type", "") else answer.read()
        except OSError:
            self._connection.close()
            self._connection = None
            raise
        if answer.will_close or not answer.isclosed():
            self._connection.close()
            self._connection = None
        return answer.status, content

    def talk(self, data: bytes) -> bytes:
        """Bytes as they are; what the gateway says until it closes."""
        received = bytearray()
        address = (self._address.hostname or "", self._address.port or 0)
        with socket.create_connection(address, timeout=PATIENCE) as sock:
            sock.sendall(data)
            try:
                while piece := sock.recv(1 << 16):
                    received += piece
            except ConnectionResetError:
                pass
        return bytes(received)


# ── endpoints ──


def page_routes() -> list[tuple[str, str]]:
    nothing: Any = SimpleNamespace(private={})
    sections: list[PageSection] = [
        live(nothing, nothing, nothing, {}), chat(nothing, nothing), playground(), key_admin(nothing, nothing)
    ]  # fmt: skip
    own = [("GET", "/_/login"), ("POST", "/_/login"), ("POST", f"{API}/logout"), ("GET", f"{API}/site")]
    return [*own, ("GET", "/_/static/{name}"), *((one.method, one.pattern) for s in sections for one in s.routes)]


ROUTES: list[tuple[str, str]] = [
    *dict.fromkeys((row.method, row.path) for row in DESCRIBED),
    *page_routes(),
    ("OPTIONS", "/v1/messages"),  # preflight
    ("GET", "/nothing/{id}"),  # none
    ("PUT", "/v1/messages"),  # method
]
FORMAT_OF = {row.path: row.format for row in DESCRIBED if row.operation in {"generate", "count"} and row.format}
FORM = "multipart/form-data; boundary=xyz"


def asked(format: str, request: Request | None = None) -> bytes:
    body = dragoman.encode_request(request or Request(MODEL, (Message("user", "hi"),)), format).body
    return json.dumps({**body, "model": MODEL}).encode()


def form(content: bytes, **fields: str) -> bytes:
    parts = [f'--xyz\r\ncontent-disposition: form-data; name="{k}"\r\n\r\n{v}\r\n'.encode() for k, v in fields.items()]
    file = b'--xyz\r\ncontent-disposition: form-data; name="file"; filename="f.jsonl"\r\n\r\n%b\r\n--xyz--\r\n'
    return b"".join(parts) + file % content


ITEM = {"type": "message", "role": "user", "content": "hi"}
MEMO = b'{"text":"hi","memo":true}'
BODIES: dict[str, bytes] = {
    "/v1/completions": json.dumps({"model": MODEL, "prompt": "hi"}).encode(),
    "/api/generate": json.dumps({"model": MODEL, "prompt": "hi", "stream": False}).encode(),
    "/v1/responses/compact": asked("openai-responses"),
    "/v1/conversations": json.dumps({"items": [ITEM]}).encode(),
    "/v1/conversations/{id}": b'{"metadata":{}}',
    "/v1/conversations/{id}/items": json.dumps({"items": [ITEM]}).encode(),
    "/v1/responses/{id}/cancel": b"{}",
    "/v1beta/interactions/{id}/cancel": b"{}",
    "/v1/messages/batches/{id}/cancel": b"{}",
    "/v1/batches/{id}/cancel": b"{}",
    "/v1/batches": b'{"input_file_id":"file-x","endpoint":"/v1/chat/completions","completion_window":"24h"}',
    "/v1/messages/batches": b'{"requests":[]}',
    "/v1beta/models/{model}:batchGenerateContent": b'{"batch":{}}',
    "/v1/files": b'{"purpose":"batch"}',
    "/upload/v1beta/files": b"hi",
    "/v1/uploads": b'{"purpose":"batch","bytes":5,"filename":"f","mime_type":"text/plain"}',
    "/v1/fine_tuning/jobs": b'{"model":"m","training_file":"file-x"}',
    "/v1beta/cachedContents": b'{"model":"models/m","contents":[]}',
    "/v1beta/cachedContents/{id}": b'{"ttl":"5s"}',
    "/v1/images/generations": b'{"model":"p/m","prompt":"hi"}',
    "/v1/images/edits": b'{"model":"p/m","prompt":"hi"}',
    "/v1/images/variations": b'{"model":"p/m"}',
    "/v1/audio/speech": b'{"model":"p/m","input":"hi"}',
    "/v1/audio/transcriptions": b'{"model":"p/m"}',
    "/v1/audio/translations": b'{"model":"p/m"}',
    "/v1/moderations": b'{"model":"p/m","input":"hi"}',
    "/v1/rerank": b'{"model":"p/m","query":"hi","documents":["x"]}',
    "/v2/rerank": b'{"model":"p/m","query":"hi","documents":["x"]}',
    "/v1/embeddings": b'{"model":"openai/m","input":"hi"}',
    "/v1beta/models/{model}:embedContent": b'{"content":{"parts":[{"text":"hi"}]}}',
    "/v1beta/models/{model}:batchEmbedContents": b'{"requests":[{"content":{"parts":[{"text":"hi"}]}}]}',
    "/v1/projects/{project}/locations/{location}/publishers/google/models/{model}:predict": (
        b'{"instances":[{"content":"hi"}]}'
    ),
    "/api/embed": b'{"model":"openai/m","input":["hi"]}',
    "/api/embeddings": b'{"model":"openai/m","prompt":"hi"}',
    "/v2/embed": b'{"model":"openai/m","texts":["hi"],"input_type":"search_query","embedding_types":["float"]}',
    "/api/show": json.dumps({"model": MODEL}).encode(),
    "/mcp": b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}',
    "/model/{model}/invoke": asked("anthropic-messages"),
    "/model/{model}/count-tokens": b'{"input":{"converse":{"messages":[{"role":"user","content":[{"text":"hi"}]}]}}}',
    "/v1beta/models/{model}:countTokens": b'{"contents":[{"parts":[{"text":"hi"}]}]}',
    "/_/login": b"{}",
    f"{API}/logout": b"{}",
    f"{API}/keys": b'{"name":"x"}',
    f"{API}/keys/{{name}}/rotate": b"{}",
    f"{API}/keys/{{name}}/revoke": b"{}",
    f"{API}/playground/run": json.dumps({"model": MODEL, "body": "{}"}).encode(),
    f"{API}/playground/crossings": json.dumps({"text": asked("openai-chat").decode()}).encode(),
    f"{API}/chat/options": b'{"share":true}',
    f"{API}/chat/models/{{name}}": json.dumps({"model": MODEL}).encode(),
    f"{API}/chat/conversations": b"{}",
    f"{API}/chat/conversations/{{id}}": b'{"title":"x"}',
    f"{API}/chat/conversations/{{id}}/messages": MEMO,
    f"{API}/chat/conversations/{{id}}/stop": b"{}",
    f"{API}/chat/conversations/{{id}}/retry": b"{}",
    f"{API}/chat/conversations/{{id}}/permissions/{{question}}": b'{"allowed":true}',
    f"{API}/chat/conversations/{{id}}/gauges": MEMO,
}
"""A small valid body of each endpoint that takes one."""
TAKES_BODY = frozenset({"POST", "PUT", "PATCH"})
WAITS = ("POST", "/_/login")
"""Attempts wait for seconds before they are looked at; the form has a row in test_law_11_linear_cost.py."""


def body_of(path: str) -> bytes:
    return BODIES[path] if path in BODIES else asked(FORMAT_OF[path])


def target_of(path: str) -> str:
    """An id that is not there: what is looked up may cost no more for its length."""
    return re.sub(r"{(\w+)}", lambda found: MODEL if found[1] == "model" else "x1", path)


# ── rows ──

TARGETS: dict[str, Callable[[str, int], str]] = {
    "parameters": lambda path, n: target_of(path) + "?" + "ab%20=cd&" * n,
    "one long parameter": lambda path, n: target_of(path) + "?key=" + "a" * 10 * n,
    "one long name in the path": lambda path, n: re.sub(r"{\w+}", "x" * 10 * n, path),
    "escapes in the path": lambda path, n: re.sub(r"{\w+}", "%41%2f%20" * n, path),
    "folders in the path": lambda path, n: target_of(path) + "/a/b/c/d/e" * n,
}
HEADERS: dict[str, Callable[[int], dict[str, str]]] = {
    "a cookie of escapes": lambda n: {"cookie": 'dragoman_page="' + "\\" * 10 * n},
    "cookies": lambda n: {"cookie": "abcdef=b; " * n},
    "a long key": lambda n: {"authorization": "Bearer " + "a" * 10 * n},
    "an accept header": lambda n: {"accept": "text/a;q=1," * n},
    "an origin": lambda n: {"origin": "http://" + "a." * 5 * n},
    "a content type": lambda n: {"content-type": "a/b; " + "c=d;  " * n},
    "a boundary": lambda n: {"content-type": "multipart/form-data; boundary=" + "a" * 10 * n},
}
OTHER_BODIES: dict[str, Callable[[int], bytes]] = {
    "not JSON": lambda n: b"x" * 20 * n,
    "brackets": lambda n: b"[" * 20 * n,
    "a list": lambda n: b"[" + b'{"a":"bcdefg"},' * n + b"0]",
    "one long string": lambda n: b'"' + b"\\u0041" * 4 * n + b'"',
    "fields of a form": lambda n: b"password=x&a=b&" * n,
}
FORMS: dict[str, Callable[[int], bytes]] = {
    "parts of a form": lambda n: b"".join(
        b'--xyz\r\ncontent-disposition: form-data; name="a%d"\r\n\r\nx\r\n' % i for i in range(n)) + b"--xyz--\r\n",
    "a long file": lambda n: form(b"x" * 20 * n, purpose="batch"),
    "almost boundaries": lambda n: form(b"\r\n--xy" * 4 * n, purpose="batch"),
    "lines of a file": lambda n: form(b'{"custom_id":"a"}\n' * n, purpose="batch"),
    "headers of a part": lambda n: b"--xyz\r\n" + b"a: bcdefghi\r\n" * n + b"\r\nx\r\n--xyz--\r\n",
    "parameters of a part": lambda n: (
        b"--xyz\r\ncontent-disposition: form-data" + b'; a="b"' * n + b"\r\n\r\nx\r\n--xyz--"),
    "a form without end": lambda n: b"--xyz\r\n\r\n" * 2 * n,
}  # fmt: skip
CONTENT = ("messages", "calls", "tools", "losses", "repeated ids in parallel", "properties of a schema")


def target_rows(client: Client) -> Iterator[Row]:
    for method, path in ROUTES:
        if (method, path) == WAITS:
            continue
        body = body_of(path) if method in TAKES_BODY and (path in BODIES or path in FORMAT_OF) else None
        for dimension, make in TARGETS.items():
            if "path" in dimension and "folders" not in dimension and "{" not in path:
                continue
            yield (
                f"{method} {path}",
                dimension,
                lambda n, m=method, p=path, b=body, make=make: _later(client.send, m, make(p, n), b),  # type: ignore[misc]
            )
    for method, path in (("GET", "/"), ("GET", f"{API}/site"), ("POST", "/v1/messages"), ("GET", "/v1/models")):
        for dimension, headers in HEADERS.items():

            def prepare(n: int, m: str = method, p: str = path, headers: Any = headers) -> Work:
                body = asked("anthropic-messages") if m == "POST" else None
                return lambda: client.send(m, p, body, **{"accept": "text/html", **headers(n)})

            yield f"{method} {path}", dimension, prepare


def body_rows(client: Client) -> Iterator[Row]:
    for method, path in ROUTES:
        if method not in TAKES_BODY or (method, path) == WAITS:
            continue
        valid = body_of(path)
        for dimension, spoil in ODD_BODIES.items():
            if valid.endswith(b"}"):
                yield f"{method} {path}", dimension, _sent(client, method, path, lambda n, s=spoil, v=valid: s(v, n))  # type: ignore[misc]
        for dimension, make in OTHER_BODIES.items():
            yield f"{method} {path}", dimension, _sent(client, method, path, make)
    for path in ("/v1/files", "/upload/v1beta/files", "/v1/images/edits", "/v1/audio/transcriptions"):
        for dimension, make in FORMS.items():
            yield f"POST {path}", dimension, _sent(client, "POST", path, make, FORM)


def _sent(
    client: Client, method: str, path: str, make: Callable[[int], bytes], kind: str = "application/json"
) -> Prepare:
    def prepare(n: int) -> Work:
        body = make(n)
        return lambda: client.send(method, target_of(path), body, **{"content-type": kind})

    return prepare


def content_rows(client: Client) -> Iterator[Row]:
    """What bodies are made of, in all formats, translated; and lists at endpoints of their own."""
    for path, format in FORMAT_OF.items():
        if path.endswith(("/completions", "/api/generate")) or ("{" in path and path in BODIES):
            continue
        for dimension in CONTENT:

            def make(n: int, dimension: str = dimension, format: str = format) -> bytes:
                return asked(format, REQUESTS[dimension](n))

            yield f"POST {path}", dimension, _sent(client, "POST", path, make)
    for path, dimension, listed in LISTS:
        yield f"POST {path}", dimension, _sent(client, "POST", path, listed)


def _json(value: object) -> bytes:
    return json.dumps(value).encode()


LISTS: list[tuple[str, str, Callable[[int], bytes]]] = [
    ("/v1/conversations", "items", lambda n: _json({"items": [ITEM] * min(n, 20)})),
    ("/v1/conversations", "a long item", lambda n: _json({"items": [{**ITEM, "content": "x" * 20 * n}]})),
    ("/v1/conversations", "parts of an item", lambda n: _json(
        {"items": [{**ITEM, "content": [{"type": "input_text", "text": "x"}] * n}]})),
    ("/v1/conversations", "metadata", lambda n: _json({"metadata": {f"k{i}": "v" for i in range(n)}})),
    ("/v1/embeddings", "texts", lambda n: _json({"model": "openai/m", "input": [f"t{i}" for i in range(n)]})),
    ("/v1/embeddings", "tokens", lambda n: _json({"model": "openai/m", "input": [list(range(4 * n))]})),
    ("/api/embed", "texts", lambda n: _json({"model": "openai/m", "input": [f"t{i}" for i in range(n)]})),
    ("/v2/embed", "texts", lambda n: _json({"model": "openai/m", "texts": ["t"] * n, "input_type": "search_query"})),
    ("/mcp", "messages", lambda n: _json([{"jsonrpc": "2.0", "id": i, "method": "ping"} for i in range(n)])),
    ("/mcp", "arguments", lambda n: _json({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "ask", "arguments": {f"k{i}": i for i in range(n)}}})),
    ("/v1/messages/batches", "requests", lambda n: _json({"requests": [
        {"custom_id": f"c{i}", "params": {"model": "nothing"}} for i in range(n)]})),
    ("/v1/messages/batches", "requests of one id", lambda n: _json({"requests": [
        {"custom_id": "c", "params": {"model": "nothing"}}] * n})),
    (f"{API}/playground/crossings", "messages", lambda n: _json(
        {"text": asked("openai-chat", REQUESTS["messages"](n // 4)).decode()})),
    (f"{API}/chat/conversations", "a document", lambda n: _json(
        {"document": asked("openai-chat", REQUESTS["messages"](n // 4)).decode()})),
]  # fmt: skip


# ── WebSockets ──


def frame(opcode: int, payload: bytes = b"", *, final: bool = True) -> bytes:
    """A frame of a client, with a mask of zeros (RFC 6455, 5.2)."""
    size = len(payload)
    short, more = (size, b"") if size < 126 else (126, struct.pack(">H", size)) if size < 65_536 else (
        127, struct.pack(">Q", size))  # fmt: skip
    return bytes([(0x80 if final else 0) | opcode, 0x80 | short]) + more + b"\x00\x00\x00\x00" + payload


CLOSE = frame(8, b"\x03\xe8")
FRAMES: dict[str, Callable[[int], bytes]] = {
    "pings": lambda n: frame(9, b"ping") * n,
    "frames of a byte": lambda n: frame(1, b"{", final=False) + frame(0, b" ", final=False) * n + frame(0, b"}"),
    "frames of none": lambda n: frame(1, b"{", final=False) + frame(0, b"", final=False) * n + frame(0, b"}"),
    "a long message": lambda n: frame(1, b'{"type":"' + b"x" * 20 * n + b'"}'),
    "messages": lambda n: frame(1, b'{"type":"x"}') * n,
    "messages that are not JSON": lambda n: frame(1, b"[[[[") * n,
    "pongs": lambda n: frame(10) * n,
}
LIVE = "/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent"
SOCKETS = ("/v1/responses", "/v1/realtime?model=openai/m", LIVE)


def upgrade(target: str) -> bytes:
    key = base64.b64encode(b"0123456789abcdef").decode()
    return (
        f"GET {target} HTTP/1.1\r\nhost: localhost\r\nupgrade: websocket\r\nconnection: upgrade\r\n"
        f"sec-websocket-version: 13\r\nsec-websocket-key: {key}\r\n\r\n"
    ).encode()


def socket_rows(client: Client) -> Iterator[Row]:
    for target in SOCKETS:
        for dimension, make in FRAMES.items():

            def prepare(n: int, target: str = target, make: Any = make) -> Work:
                data = upgrade(target) + make(n) + CLOSE
                return lambda: client.talk(data)

            yield f"WebSocket {target}", dimension, prepare


# ── the tests ──


def _later(function: Callable[..., Any], *given: Any) -> Work:
    return lambda: function(*given)


@pytest.mark.parametrize(
    ("rows", "size", "largest"),
    [
        (target_rows, IN_TARGET, LARGEST_TARGET),
        (body_rows, IN_BODY, LARGEST_BODY),
        (content_rows, IN_TEXT, LARGEST_TARGET),
        (socket_rows, IN_BODY, LARGEST_BODY),
    ],
    ids=["targets and headers", "bodies", "contents", "WebSockets"],
)
def test_cost_grows_linearly(gateway: Served, rows: Callable[[Client], Iterator[Row]], size: int, largest: int) -> None:
    client = Client(gateway)
    steep = []
    for entry, dimension, prepare in rows(client):
        found = growth(prepare, size, largest, measure=client.cpu_seconds)
        if found.is_steep:
            steep.append(f"{entry}, {dimension}: {found}")
    assert steep == []
    assert client.send("GET", "/health")[0] == 200


# ── completeness ──


def test_every_operation_is_asked() -> None:
    heads = [Head(method, target_of(path), "", {}) for method, path in ROUTES]
    opened = {"upgrade": "websocket", "sec-websocket-key": "x"}
    heads += [Head("GET", target.partition("?")[0], "", opened) for target in SOCKETS]
    assert {match_endpoint(head).operation for head in heads} == set(get_args(Operation))


def test_every_endpoint_that_takes_a_body_has_one() -> None:
    missing = [path for method, path in ROUTES if method in TAKES_BODY and path not in BODIES and path not in FORMAT_OF]
    assert missing == []
    assert set(BODIES) <= {path for _, path in ROUTES}


def test_the_bodies_reach_their_handlers(gateway: Served) -> None:
    """No request is refused for its path, its method or its form, and none fails in a way that has no answer."""
    client = Client(gateway)
    for method, path in ROUTES[:-3]:
        status, content = client.send(method, target_of(path), body_of(path) if method in TAKES_BODY else None)
        assert status not in {405, 415, 500}, (method, path, content)
