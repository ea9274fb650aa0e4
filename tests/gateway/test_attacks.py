"""Hostile clients, malformed answers of upstreams, and mistakes in a configuration do not harm the gateway."""

import gc
import json
import re
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from dragoman.codecs.stream_limits import Limits
from dragoman.gateway import app, relay, routing, upstream_calls
from dragoman.gateway.config import ConfigError, _mistakes, read_config
from dragoman.sim.exchange import Exchange, Reply
from dragoman.sim.script import load_script
from dragoman.sim.server import Simulator
from dragoman.sim.service import Service, Settings
from dragoman.web.serving import page_before
from tests.cli.command import environment, run
from tests.gateway import scripted_upstream
from tests.gateway.running import RunningGateway, configured, connected, send, simulated, until_closed
from tests.gateway.scripted_upstream import ScriptedUpstream, completion, reply, scripted
from tests.gateway.served import served
from tests.gateway.test_failures import chat
from tests.sim.test_sim_rules import address
from tests.sim.wire import DOORS
from tests.support.costs import growth
from tests.support.promises import promise
from tests.support.waiting import PATIENCE, until

pytestmark = promise("gateway:attacks")

# ── upstreams whose answers do not follow their format ──

CHUNK = {"id": "c", "choices": [{"index": 0, "delta": {"role": "assistant", "content": "x"}}]}
MALFORMED: dict[str, bytes] = {
    "bad UTF-8": json.dumps(completion("~")).encode().replace(b"~", b"\xff"),
    "bad UTF-8 in the usage": json.dumps({**completion(), "usage": {"~": 1}}).encode().replace(b"~", b"\xff"),
    "a wrong legacy call": json.dumps(
        {"choices": [{"message": {"role": "assistant", "content": None, "function_call": {"name": 5}}}]}
    ).encode(),
    "deep nesting": b'{"choices":' + b"[" * 5_000 + b"]" * 5_000 + b"}",
    "half a surrogate pair": json.dumps(completion("~")).encode().replace(b"~", b"\\ud800"),
}
MALFORMED_STREAMS: dict[str, bytes] = {
    "created is text": json.dumps({**CHUNK, "created": "1"}).encode(),
    "created is too large a float": json.dumps({**CHUNK, "created": 7}).encode().replace(b"7", b"1e999"),
    "created is huge": json.dumps({**CHUNK, "created": 7}).encode().replace(b"7", b"9" * 5_000),
    "id is a number": json.dumps({**CHUNK, "id": 5}).encode(),
    "id is not UTF-8": json.dumps({**CHUNK, "id": "~"}).encode().replace(b"~", b"\xff"),
}
EVENTS = {"content-type": "text/event-stream"}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_answer_is_a_502_in_the_clients_shape_and_permits_the_fallback(name: str) -> None:
    route = '[routes.mine]\nto = "bad/m"\nfallback = ["good/m"]\n'
    messages = {"model": "bad/m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
    with (
        scripted(reply(MALFORMED[name])) as bad,
        scripted(reply(completion())) as good,
        RunningGateway(configured(bad.table("bad") + good.table("good") + route)) as gateway,
    ):
        refused = send(gateway.url, "/v1/messages", messages)
        answered = send(gateway.url, "/v1/messages", {**messages, "model": "mine"})
    assert refused.status == 502, refused.body
    assert refused.json["type"] == "error"
    assert answered.status == 200, answered.body
    assert b"fine" in answered.body


@pytest.mark.parametrize("name", MALFORMED_STREAMS)
def test_a_malformed_stream_fails_before_it_begins_and_permits_the_fallback(name: str) -> None:
    route = '[routes.mine]\nto = "bad/m"\nfallback = ["good/m"]\n'
    bad_stream = b"data: " + MALFORMED_STREAMS[name] + b"\n\n"
    ended = {"id": "c", "choices": [{"index": 0, "delta": {"content": "fine"}, "finish_reason": "stop"}]}
    good_stream = f"data: {json.dumps(ended)}\n\ndata: [DONE]\n\n".encode()
    request_body = {"model": "mine", "max_tokens": 9, "stream": True, "messages": [{"role": "user", "content": "hi"}]}
    with (
        scripted(reply(bad_stream, headers=EVENTS)) as bad,
        scripted(reply(good_stream, headers=EVENTS)) as good,
        RunningGateway(configured(bad.table("bad") + good.table("good") + route)) as gateway,
    ):
        answered = send(gateway.url, "/v1/messages", request_body)
        refused = send(gateway.url, "/v1/messages", {**request_body, "model": "bad/m"})
    assert answered.status == 200, answered.body
    assert b"fine" in answered.body
    assert refused.status == 502, refused.body


def test_an_event_without_end_is_a_failure_of_the_upstream() -> None:
    """It is no failure of the client, whose request was small, so the fallback is tried."""
    route = '[routes.mine]\nto = "bad/m"\nfallback = ["good/m"]\n'
    request_body = {"model": "mine", "max_tokens": 9, "stream": True, "messages": [{"role": "user", "content": "hi"}]}
    ended = {"id": "c", "choices": [{"index": 0, "delta": {"content": "fine"}, "finish_reason": "stop"}]}
    good_stream = f"data: {json.dumps(ended)}\n\ndata: [DONE]\n\n".encode()
    with (
        scripted(reply(b"data: " + b"x" * (Limits().event_bytes + 1), headers=EVENTS)) as bad,
        scripted(reply(good_stream, headers=EVENTS)) as good,
        RunningGateway(configured(bad.table("bad") + good.table("good") + route)) as gateway,
    ):
        refused = send(gateway.url, "/v1/messages", {**request_body, "model": "bad/m"})
        answered = send(gateway.url, "/v1/messages", request_body)
    assert refused.status == 502, refused.body
    assert (answered.status, b"fine" in answered.body) == (200, True)


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages"])
def test_errors_do_not_keep_broken_answers_in_memory(path: str) -> None:
    """Not even until the next garbage collection, which may be many requests later."""
    breaker = "breaker = { failures = 100 }"
    request_body = {"model": "bad/m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
    with (
        scripted(reply(b"{" + b" " * (8 << 20))) as bad,
        RunningGateway(configured(bad.table("bad", more=breaker))) as gateway,
    ):
        assert send(gateway.url, path, request_body).status == 502
        gc.collect()
        gc.disable()
        tracemalloc.start()
        try:
            for _ in range(6):
                assert send(gateway.url, path, request_body).status == 502
            used, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
            gc.enable()
    assert used < 12 << 20, f"{used >> 20} MiB after six answers of 8 MiB"


# ── clients ──


def test_errors_quote_only_the_beginning_of_what_a_client_sent() -> None:
    """Neither in the answer nor in the log, so that a refused request costs little."""
    long = "x" * 1_000_000
    request_body: list[tuple[str, dict[str, Any]]] = [
        ("/v1/responses", {"model": "p/m", "input": "hi", "previous_response_id": long}),
        ("/v1/chat/completions", {"model": long, "messages": [{"role": "user", "content": "hi"}]}),
        ("/v1/chat/completions", {"model": f"p/{long}", "messages": [{"role": "user", "content": "hi"}]}),
        ("/v1/embeddings", {"model": f"p/{long}", "input": "hi"}),
    ]
    with scripted(reply(completion())) as upstream, RunningGateway(configured(upstream.table("p"))) as gateway:
        for path, body in request_body:
            refused = send(gateway.url, path, body)
            assert refused.status in {400, 404}, refused.body[:500]
            assert len(refused.body) < 10_000, path
    assert gateway.log.lines
    assert max(len(json.dumps(line)) for line in gateway.log.lines) < 10_000


NUMBERS = ("9" * 5_000, "1e999", "-1e999")


@pytest.mark.parametrize("number", NUMBERS)
def test_numbers_beyond_all_floats_are_counted(number: str) -> None:
    body = b'{"model":"p/m","max_tokens":9,"messages":[{"role":"user","content":"hi"}],"x":%b}' % number.encode()
    with scripted(reply(completion())) as upstream, RunningGateway(configured(upstream.table("p"))) as gateway:
        counted = send(gateway.url, "/v1/messages/count_tokens", body)
        refused = send(gateway.url, "/v1/messages/count_tokens", body.replace(b"hi", b"\xff"))
    assert counted.status == 200, counted.body
    assert refused.status == 400, refused.body


@pytest.mark.parametrize(
    "head",
    [b"Host: [::1\r\n", b"Host: a\r\nOrigin: http://[\r\n", b"Host: a\r\nReferer: http://[\r\n", b"Host: \xff\r\n"],
)
@pytest.mark.parametrize("path", [b"/", b"/v1/chat/completions", b"/v1/models", b"/nothing"])
def test_odd_headers_are_answered(gateway: RunningGateway, head: bytes, path: bytes) -> None:
    with connected(gateway.url) as sock:
        sock.sendall(b"GET " + path + b" HTTP/1.1\r\n" + head + b"Connection: close\r\n\r\n")
        assert until_closed(sock).startswith(b"HTTP/1.1 ")


def test_odd_headers_are_answered_by_the_page_in_front(dragoman_simulator: Simulator) -> None:
    with RunningGateway(simulated(dragoman_simulator.url), front=page_before) as gateway:
        for head in (b"Host: [::1\r\n", b"Host: a\r\nOrigin: http://[\r\n"):
            for path in (b"/", b"/live/requests", b"/chat/conversations", b"/v1/models"):
                with connected(gateway.url) as sock:
                    sock.sendall(b"GET " + path + b" HTTP/1.1\r\n" + head + b"Connection: close\r\n\r\n")
                    status = until_closed(sock).partition(b"\r\n")[0]
                assert status.startswith(b"HTTP/1.1 "), (head, path)
                assert not status.startswith(b"HTTP/1.1 5"), (head, path)


LOCAL = ("localhost", "LOCALHOST:8080", "127.0.0.1", "[::1]:80", "192.168.1.5", "gateway:8080", "host.docker.internal")
PUBLIC = ("evil.example", "evil.example:8080", "127.0.0.1.evil.example", "localhost.evil.example", "evil.example.")
READS = ("/v1/models", "/v1/files", "/v1/files/file-1/content", "/v1/responses/resp_1", "/v1/batches", "/metrics")


@pytest.mark.parametrize("path", READS)
def test_without_keys_public_host_names_are_refused(path: str) -> None:
    """DNS rebinding: to the browser, the page has the gateway's own origin, so its GETs have no `Origin` header."""
    text = '[server]\norigins = ["https://good.example"]\n'
    with scripted(reply(completion())) as upstream:
        with RunningGateway(configured(text + upstream.table("p"))) as gateway:
            for host in PUBLIC:
                refused = send(gateway.url, path, headers={"host": host}, method="GET")
                assert refused.status == 403, host
                assert b"server.keys" in refused.body, host
            for host in (*LOCAL, "good.example"):
                assert send(gateway.url, path, headers={"host": host}, method="GET").status in {200, 404}, host
        with RunningGateway(configured('[server]\nkeys = ["sesame"]\n' + upstream.table("p"))) as gateway:
            keyed = {"host": PUBLIC[0], "authorization": "Bearer sesame"}
            assert send(gateway.url, path, headers=keyed, method="GET").status in {200, 404}


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such limits on Windows")
def test_idle_connections_leave_file_descriptors_for_requests(tmp_path: Path) -> None:
    """Idle connections use at most half of the files that the process may open."""
    closing = reply(completion(), headers={"connection": "close"})  # each request needs a new connection upstream
    few = ("sh", "-c", 'ulimit -n 256 && exec "$@"', "sh")
    head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\n"
    body = json.dumps(chat("p/m")).encode()
    with (
        scripted(closing) as upstream,
        served(tmp_path, upstream.table("p"), "--quiet", within=few) as gateway,
        gateway.connect() as before,
        ExitStack() as others,
    ):
        for turn in range(300):
            others.enter_context(gateway.connect())
            if turn % 50 == 49:
                before.sendall(head + b"content-length: %d\r\n\r\n%b" % (len(body), body))
                assert before.recv(65536).startswith(b"HTTP/1.1 200 "), turn


# ── handlers that fail ──


class Planted(Exception):
    """A bug in the gateway."""


def fail(*_: object, **__: object) -> Any:
    raise Planted


@pytest.mark.parametrize("status", ["200 OK", "404 Not Found"])
def test_stored_files_cannot_run_scripts_in_the_origin_of_the_page(status: str) -> None:
    """The user, who is logged in to the page, opens a link to a file that an attacker stored with their own key."""
    html = b"""{"error": {"message": "<script>fetch('/_/api/keys')</script>"}}"""
    with (
        scripted(reply(html, status, {"content-type": "text/html"})) as upstream,
        RunningGateway(configured(upstream.table("openai", "openai"))) as gateway,
    ):
        for path in ("/v1/files/f1/content", "/v1/files/f1", "/v1/files"):
            got = send(gateway.url, path, method="GET")
            assert got.status == int(status[:3])
            assert got.headers["content-security-policy"] == "sandbox; default-src 'none'"
            assert got.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    ("module", "name"),
    [(app, "match_endpoint"), (app, "check_content_type"), (routing.Router, "plan"), (relay.Relay, "ask")],
    ids=["before the handler", "reading", "routing", "asking"],
)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_handler_that_fails_answers_500_and_closes(
    gateway: RunningGateway,
    monkeypatch: pytest.MonkeyPatch,
    module: object,
    name: str,
    stream: bool,  # noqa: FBT001
) -> None:
    body = json.dumps({**chat("gpt-5.1"), "stream": stream}).encode()
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
    request = head + b"Content-Length: %d\r\n\r\n" % len(body) + body
    with monkeypatch.context() as patch:
        patch.setattr(module, name, fail)
        with connected(gateway.url) as sock:
            sock.sendall(request)  # nothing asks for the connection to be closed
            answered = until_closed(sock)
        with connected(gateway.url) as sock:
            sock.sendall(request * 2)  # and no second request is answered on it
            pipelined = until_closed(sock)
    for answer in (answered, pipelined):
        opening, _, rest = answer.partition(b"\r\n\r\n")
        assert opening.startswith(b"HTTP/1.1 500 ")
        assert b"connection: close" in opening
        assert b"Planted" not in rest
        assert b"HTTP/1.1" not in rest
    assert send(gateway.url, "/v1/chat/completions", chat("gpt-5.1")).status == 200


def test_a_handler_that_fails_while_streaming_cuts_the_connection(
    gateway: RunningGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = json.dumps({**chat("gpt-5.1"), "stream": True}).encode()
    with monkeypatch.context() as patch, connected(gateway.url) as sock:
        patch.setattr(relay, "stream_to", fail)
        sock.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(body))
        sock.sendall(body)
        answered = until_closed(sock)
    assert not answered.endswith(b"0\r\n\r\n")  # a client must not take it for a whole answer
    assert send(gateway.url, "/v1/chat/completions", chat("gpt-5.1")).status == 200


def test_a_client_that_leaves_before_its_second_request_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    """The connection is broken by then, which must not end in a traceback."""
    left = threading.Event()

    class Waiting(ScriptedUpstream):
        def _choose(self, line: str, body: bytes) -> scripted_upstream.Reply:
            assert left.wait(PATIENCE)
            return super()._choose(line, body)

    upstream = Waiting(reply({"error": {"message": "no"}}, "400 Bad Request"))
    body = json.dumps(chat("p/m")).encode()
    first = b"POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
    with RunningGateway(configured(upstream.table("p"))) as gateway:
        for count in range(1, 6):
            left.clear()
            with connected(gateway.url) as sock:
                sock.sendall(first + b"\0\0 is not HTTP\r\n")
                until(lambda: upstream.count == count)  # noqa: B023 - called at once
            left.set()
            gateway.requests(count)
    upstream.close()
    gc.collect()
    assert [record.getMessage() for record in caplog.records if record.name == "asyncio"] == []


# ── work ──


def test_large_bodies_are_converted_off_the_event_loop(
    gateway: RunningGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[threading.Thread] = []
    prepare = upstream_calls.prepare_call

    def prepared(*given: Any) -> Any:
        threads.append(threading.current_thread())
        return prepare(*given)

    large = {**chat("gpt-5.1"), "user": "x" * relay.LARGE}
    with monkeypatch.context() as patch:
        patch.setattr(relay, "prepare_call", prepared)
        for body in (chat("gpt-5.1"), large, chat("gpt-5.1")):
            send(gateway.url, "/v1/chat/completions", body)
    small, other, again = threads
    assert small is again
    assert other is not small


def test_a_large_request_does_not_hold_up_small_ones() -> None:
    large = chat("p/m")
    large["messages"] = [{"role": "user", "content": "x", "name": "ann"} for _ in range(60_000)]
    with scripted(reply(completion())) as upstream:
        table = upstream.table("p", kind="anthropic")
        with RunningGateway(configured(table)) as gateway:
            worker = threading.Thread(target=send, args=(gateway.url, "/v1/chat/completions", large))
            worker.start()
            answered = 0
            began = time.monotonic()
            while worker.is_alive() and time.monotonic() - began < 60:
                assert send(gateway.url, "/health", method="GET").status == 200
                answered += 1
            worker.join()
    assert answered >= 2


# ── mistakes ──


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[routes.a]\nto = "a"\n', "a -> a"),
        ('[routes.a]\nto = "b"\n[routes.b]\nto = "openai/x"\nfallback = ["a"]\n', "a -> b -> a"),
        ('[routes.a]\nto = ["b", "c"]\n[routes.b]\nto = "openai/x"\n[routes.c]\nto = "a"\n', "a -> c -> a"),
    ],
)
def test_a_route_that_leads_back_to_itself_is_refused(text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=f"leads back to itself: {words}"):
        read_config(text)


def routes_in_a_row(count: int, last: str) -> str:
    """Return routes that each name the next one twice, so that 2 ** count ways lead to the last."""
    tables = [f'[routes.r{one}]\nto = "r{one + 1}"\nfallback = ["r{one + 1}"]\n' for one in range(count)]
    return "".join(tables) + f'[routes.r{count}]\nto = "{last}"\n'


def test_chains_of_thousands_of_routes_are_resolved() -> None:
    router = routing.Router(read_config(routes_in_a_row(5_000, "openai/x")), {"OPENAI_API_KEY": "k"})
    assert [one.model for one in router.plan("r0", "openai-chat").candidates] == ["x"]
    with pytest.raises(
        ConfigError, match=r"5002:1: .*leads back to itself: r0 -> r1 .* … .* -> r5000 -> r0$"
    ) as caught:
        read_config("\n" * 5_000 + routes_in_a_row(5_000, "r0"))
    assert len(str(caught.value)) < 500


@promise("law:11-linear-cost")
def test_chains_of_routes_are_checked_in_linear_time() -> None:
    def prepare(n: int) -> Callable[[], object]:
        config = read_config(routes_in_a_row(n, "openai/x"))
        return lambda: _mistakes(config)

    measured = growth(prepare, 250, 1_000)
    assert not measured.is_steep, str(measured)


@pytest.mark.parametrize("text", ["x = " + "[" * 50_000, "[server]\nport = " + "9" * 10_000])
def test_a_configuration_that_cannot_be_parsed_is_one_mistake(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^dragoman\.toml: "):
        read_config(text)


@pytest.mark.parametrize("command", ["serve", "sim", "chat"])
@pytest.mark.parametrize("port", ["99999", "-1", "http", "1e3", "٣"])
def test_an_invalid_port_is_refused(command: str, port: str) -> None:
    done = run(command, f"--port={port}")
    assert done.returncode == 2
    assert b"a number from 0 to 65535" in done.stderr
    assert b"Traceback" not in done.stderr


BARE = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        extras = "aiohttp httptools h2 uvloop zstandard yaml rich psycopg redis"
        if name.partition(".")[0] in extras.split():
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
from dragoman.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize(
    "arguments",
    [
        ("keys", "list", "--database", "gateway.db"),
        ("keys", "create", "alice", "--database", "gateway.db"),
        ("keys", "list", "--database", "postgresql://localhost/x"),
        ("serve", "--check"),
        ("usage", "--database", "gateway.db"),
    ],
    ids=" ".join,
)
def test_commands_of_a_bare_install_name_the_missing_package(arguments: tuple[str, ...], tmp_path: Path) -> None:
    import subprocess  # noqa: PLC0415

    command = [sys.executable, "-c", BARE, *arguments]
    done = subprocess.run(  # noqa: S603
        command, capture_output=True, cwd=tmp_path, env=environment(), timeout=60, check=False
    )
    assert b"Traceback" not in done.stderr
    assert done.returncode == 0 or re.search(rb" is not installed: .* install .*\[\w+\]", done.stderr)


KINDS = ("invalid", "too_long", "too_large", "rate_limit", "overloaded", "server", "no_model", "quota", "timeout")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("api", DOORS)
def test_every_scripted_error_has_a_message(api: str, kind: str, tmp_path: Path) -> None:
    script = tmp_path / "turns.json"
    script.write_text(json.dumps({"turns": [{"error": kind}]}))
    place, headers = address(api, {})
    path, _, _ = place.partition("?")
    body: Any = DOORS[api].ask("hi") if hasattr(DOORS[api], "ask") else DOORS[api].ask_with_tool("hi")
    service = Service(Settings(any_model=True, any_signature=True, script=load_script(script)))
    answered = service.respond(Exchange("POST", path, {}, headers, json.dumps(body).encode())).answered
    assert isinstance(answered, Reply)
    assert answered.status >= 400
    message = DOORS[api].message_of(json.loads(answered.body))
    assert message
    assert "{" not in message
