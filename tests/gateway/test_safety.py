"""Bad input, keys and limits: the right status, no effect on other requests, no secrets in answers or logs."""

import gzip
import json
import re
import socket
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest
import zstandard

import dragoman
from dragoman.gateway.access import Access, digest_of
from dragoman.gateway.config import Config, ConfigError
from dragoman.gateway.exchange import ServerLimits
from dragoman.gateway.openapi import description
from dragoman.gateway.serving import check_exposure
from dragoman.sim.server import Simulator
from tests.gateway.running import RunningGateway, configured, connected, every_format, send, simulated, until_closed
from tests.gateway.test_failures import chat, provider
from tests.gateway.test_pairs import path_of
from tests.sim.test_sim_pairs import FORMATS, MODELS, first
from tests.sim.wire import DOORS
from tests.support.cases import each
from tests.support.promises import promise

GOOD = b'{"model": "as-anthropic-messages/claude-sonnet-5", "messages": [{"role": "user", "content": "Hello"}]}'


def raw(head: bytes, body: bytes = b"") -> bytes:
    return head.replace(b"\n", b"\r\n") + b"\r\n\r\n" + body


@pytest.fixture(scope="module")
def small(dragoman_simulator: Simulator) -> Iterator[RunningGateway]:
    """A gateway with limits that a test can reach."""
    limits = ServerLimits(body=100_000, head_seconds=1.0, body_window=1.0, idle_seconds=5)
    setting = simulated(dragoman_simulator.url, every_format(dragoman_simulator.url))
    with RunningGateway(setting, limits) as gateway:
        yield gateway


def status_of(gateway: RunningGateway, request: bytes) -> int:
    with connected(gateway.url) as sock:
        sock.sendall(request)
        answer = sock.recv(65536)
    return int(answer.split(b" ", 2)[1])


LENGTH = b"content-length: %d" % len(GOOD)
START = b"POST /v1/chat/completions HTTP/1.1\nhost: x\n"
HEADS = {
    "fine": (200, START + LENGTH),
    "doubled user agent": (200, START + b"user-agent: a\nuser-agent: b\n" + LENGTH),
    "two lengths": (400, START + LENGTH + b"\n" + LENGTH),
    "length and chunks": (400, START + LENGTH + b"\ntransfer-encoding: chunked"),
    "other coding": (501, START + b"transfer-encoding: gzip, chunked"),
    "signed length": (400, START + b"content-length: +5"),
    "space before colon": (400, START + b"x : y\n" + LENGTH),
    "folded line": (400, START + b"x: y\n z\n" + LENGTH),
    "no host": (400, b"POST /v1/chat/completions HTTP/1.1\n" + LENGTH),
    "two keys": (400, START + b"x-api-key: a\nx-api-key: b\n" + LENGTH),
    "no HTTP": (400, b"HELLO"),
    "HTTP/2": (505, b"POST / HTTP/2.0\nhost: x"),
    "long head": (431, START + b"x: " + b"y" * 70_000),
    "many headers": (431, START + b"\n".join(b"x%d: y" % n for n in range(300))),
    "null in a header": (400, START + b"x: \0\n" + LENGTH),
}


@promise("gateway:admission")
def test_the_time_limit_of_a_body_does_not_apply_to_its_answer(dragoman_simulator: Simulator) -> None:
    """The answer takes longer than the body was allowed to."""
    slow = configured(provider("p", dragoman_simulator.url, fault="delay=3"))
    body = json.dumps(chat("p/claude-sonnet-5")).encode()
    with RunningGateway(slow, ServerLimits(body_window=2.0)) as gateway, connected(gateway.url) as sock:
        sock.sendall(raw(START + b"content-length: %d" % len(body)))
        time.sleep(0.1)
        sock.sendall(body)
        assert sock.recv(65536).startswith(b"HTTP/1.1 200 ")


@promise("gateway:bad-input")
@pytest.mark.parametrize("name", HEADS)
def test_invalid_heads_are_refused_with_a_status(small: RunningGateway, name: str) -> None:
    status, head = HEADS[name]
    assert status_of(small, raw(head, GOOD)) == status


def test_a_bare_line_feed_does_not_end_a_line(small: RunningGateway) -> None:
    assert status_of(small, b"POST / HTTP/1.1\nhost: x\r\n\r\n") == 400


BODIES: dict[str, tuple[int, bytes]] = {
    "no JSON": (400, b"{"),
    "no object": (400, b"[1]"),
    "nothing": (400, b""),
    "invalid UTF-8": (400, b'{"model": "\xff\xfe", "messages": []}'),
    "deep": (400, b'{"model":"as-gemini/m","messages":' + b"[" * 40_000 + b"]" * 40_000 + b"}"),
    "wrong type": (400, b'{"model": 5}'),
    "no model": (400, b'{"messages": []}'),
    "half a surrogate": (400, b'{"model":"as-gemini/m","messages":[{"role":"user","content":"\\ud800"}]}'),
    "too large": (413, b'{"model": "' + b"x" * 200_000 + b'"}'),
}


@promise("gateway:bad-input", "gateway:own-words")
@pytest.mark.parametrize("format", ["openai-chat", "anthropic-messages", "ollama-chat"])
@pytest.mark.parametrize("name", BODIES)
def test_an_invalid_body_gets_an_error_in_the_clients_format(small: RunningGateway, name: str, format: str) -> None:
    status, body = BODIES[name]
    got = send(small.url, DOORS[format].path, body, DOORS[format].headers)
    assert got.status == status, got.body
    assert DOORS[format].message_of(got.json)
    assert send(small.url, "/v1/chat/completions", GOOD).status == 200


CHANGING = [
    (method.upper(), re.sub(r"{[^}]*}", "as-gemini", path))
    for path, operations in description()["paths"].items()
    for method in operations
    if method in {"post", "patch"}
]


@promise("gateway:bad-input")
@each("operation", CHANGING)
def test_an_invalid_body_never_fails_an_endpoint(
    gateway: RunningGateway, dragoman_sim: Simulator, operation: tuple[str, str]
) -> None:
    """What a simulator answers instead is its own."""
    method, path = operation
    for name, (_, body) in BODIES.items():
        before = len(dragoman_sim.requests)
        got = send(gateway.url, path, body, method=method)
        assert got.status < 500 or got.status == 501 or len(dragoman_sim.requests) > before, (name, got.body)
    assert [line for line in gateway.log.lines if line["event"] == "error"] == []


@promise("gateway:bad-input")
@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"model": "m", "messages": "\\ud83d"}', "half of a surrogate pair"),
        (b'{"model": 5}', "expected `str | null`, got `int` - at $.model"),
        (b"[]", "expected `object`, got `array` - at $"),
        (b'{"a":' + b"[" * 100_000, "nesting too deep"),
    ],
)
def test_errors_about_a_body_state_what_is_wrong(gateway: RunningGateway, body: bytes, words: str) -> None:
    for path in ("/v1/chat/completions", "/v1/messages"):
        assert words in send(gateway.url, path, body).json["error"]["message"]


@promise("gateway:bad-input")
def test_content_types_and_codings(small: RunningGateway) -> None:
    def status(body: bytes, **headers: str) -> int:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        return send(small.url, "/v1/chat/completions", body, sent).status

    assert status(GOOD, content_type="text/plain", sec_fetch_site="cross-site") == 415
    assert status(GOOD, content_type="multipart/form-data") == 415
    assert status(GOOD, content_type="application/json; charset=utf-8") == 200
    assert status(gzip.compress(GOOD), content_encoding="gzip") == 200
    assert status(GOOD, content_encoding="gzip") == 400
    assert status(GOOD, content_encoding="br") == 415
    assert status(gzip.compress(b" " * (65 << 20)), content_encoding="gzip") == 413


@promise("gateway:bad-input")
def test_zstd_bodies(small: RunningGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    """Codex compresses its requests with zstd."""

    def got(body: bytes) -> tuple[int, str]:
        answer = send(small.url, "/v1/responses", body, {"content-encoding": "zstd"})
        return answer.status, answer.body.decode()

    content = json.dumps({"model": "gpt-5.6", "input": "Hello " * 1000}).encode()
    packer = zstandard.ZstdCompressor()
    sizeless = packer.compressobj()
    assert got(packer.compress(content))[0] == 200
    assert got(sizeless.compress(content) + sizeless.flush())[0] == 200
    for broken in (content, b"", packer.compress(content)[:-3], packer.compress(content) + b"x"):
        assert got(broken)[0] == 400, broken[:9]
    assert got(packer.compress(b" " * (65 << 20)))[0] == 413
    wide = zstandard.ZstdCompressionParameters(window_log=27, enable_ldm=True)
    far = zstandard.ZstdCompressor(compression_params=wide).compressobj()
    assert got(far.compress(content) + far.flush())[0] == 400, "a window as large as that is not for HTTP"
    monkeypatch.setitem(sys.modules, "zstandard", None)
    status, words = got(packer.compress(content))
    assert status == 415
    assert "zstandard (extra gateway)" in words


@promise("gateway:bad-input")
@pytest.mark.parametrize("part", [raw(START).rstrip(), raw(START + b"content-length: 900", b"{")], ids=["head", "body"])
def test_a_client_that_sends_byte_by_byte_is_timed_out(small: RunningGateway, part: bytes) -> None:
    with connected(small.url) as sock:
        sock.sendall(part)
        answer = until_closed(sock)
    assert b" 408 " in answer.split(b"\r\n")[0]


@promise("gateway:bad-input")
def test_chunks_pipelines_and_continue(small: RunningGateway) -> None:
    chunks = b"5\r\n" + GOOD[:5] + b"\r\n%x;a=b\r\n" % (len(GOOD) - 5) + GOOD[5:] + b"\r\n0\r\nx: y\r\n\r\n"
    first_request = raw(START + b"transfer-encoding: chunked", chunks)
    second = raw(START + LENGTH + b"\nconnection: close", GOOD)
    with connected(small.url) as sock:
        for byte in first_request:
            sock.sendall(bytes([byte]))
        sock.sendall(second)
        answers = until_closed(sock)
    assert answers.count(b"HTTP/1.1 200 OK") == 2
    with connected(small.url) as sock:
        sock.sendall(raw(START + LENGTH + b"\nexpect: 100-continue"))
        assert sock.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        sock.sendall(GOOD)
        assert sock.recv(15) == b"HTTP/1.1 200 OK"
    with connected(small.url) as sock:
        sock.sendall(raw(START + b"content-length: 99999999\nexpect: 100-continue"))
        assert b" 413 " in sock.recv(100)


PLAIN = "arn:aws:bedrock:us-east-1::model@x_y.z-1"


@promise("gateway:no-ssrf")
@pytest.mark.parametrize(
    "name", [PLAIN, "../../_sim/requests", "x@evil.example/", "http://evil.example", "a?b#c", "%2e%2e/x", "a\r\nb: c"]
)
@pytest.mark.parametrize("target", ["gemini", "bedrock-converse"])
def test_model_names_do_not_change_the_upstream_url(
    gateway: RunningGateway, dragoman_sim: Simulator, target: str, name: str
) -> None:
    got = send(gateway.url, "/v1/chat/completions", chat(f"as-{target}/{name}"))
    if name == PLAIN:
        assert dragoman_sim.requests[-1].path.startswith(("/v1beta/models/arn", "/model/arn"))
    else:
        assert (got.status, dragoman_sim.requests) == (404, [])


@promise("gateway:loopback")
def test_only_allowed_origins_may_call_the_gateway(dragoman_simulator: Simulator) -> None:
    text = '[server]\norigins = ["https://good.example"]\n' + provider("p", dragoman_simulator.url)
    with RunningGateway(configured(text)) as gateway:
        for origin, status in (("https://good.example", 200), ("https://evil.example", 403), ("null", 403)):
            got = send(gateway.url, "/v1/chat/completions", chat("p/claude-sonnet-5"), {"origin": origin})
            assert (got.status, "access-control-allow-origin" in got.headers) == (status, status == 200)
        headers = {"origin": "https://good.example", "access-control-request-headers": "x-api-key"}
        preflight = send(gateway.url, "/v1/messages", headers=headers, method="OPTIONS")
        assert (preflight.status, preflight.headers["access-control-allow-headers"]) == (204, "x-api-key")
        assert send(gateway.url, "/v1/messages", headers={"origin": "https://x"}, method="OPTIONS").status == 403


@promise("gateway:limits")
def test_requests_beyond_the_limit_get_a_503(dragoman_simulator: Simulator) -> None:
    text = "[server]\nmax_requests = 0\n" + provider("p", dragoman_simulator.url)
    with RunningGateway(configured(text)) as gateway:
        got = send(gateway.url, "/v1/chat/completions", chat("p/claude-sonnet-5"))
    assert (got.status, got.headers["retry-after"]) == (503, "1")


# ── keys ──

KEYED: dict[str, Any] = {
    "openai-chat": {"authorization": "Bearer sesame-key"},
    "openai-responses": {"authorization": "Bearer sesame-key"},
    "anthropic-messages": {"x-api-key": "sesame-key", "anthropic-version": "2026-10-21"},
    "gemini": {"x-goog-api-key": "sesame-key"},
    "vertex": {"authorization": "Bearer sesame-key"},
    "gemini-interactions": {"x-goog-api-key": "sesame-key"},
    "ollama-chat": {"authorization": "Bearer sesame-key"},
    "cohere-chat": {"authorization": "Bearer sesame-key"},
    "bedrock-converse": {"authorization": "Bearer sesame-key"},
}


@pytest.fixture(scope="module")
def locked(dragoman_simulator: Simulator) -> Iterator[RunningGateway]:
    text = f'[server]\nkeys = ["sha256:{digest_of("sesame-key")}"]\n'
    setting = configured(text)
    with RunningGateway(simulated(dragoman_simulator.url, setting.config)) as gateway:
        yield gateway


@promise("gateway:auth-styles", "gateway:keys", "gateway:own-words")
@pytest.mark.parametrize("format", FORMATS)
def test_keys_are_accepted_wherever_an_sdk_sends_them(locked: RunningGateway, format: str) -> None:
    path, body = path_of(format, MODELS[format], streamed=False), first(format)
    assert send(locked.url, path, body, KEYED[format]).status == 200
    wrong = {name: value.replace("sesame", "other") for name, value in KEYED[format].items()}
    for headers in (wrong, {}):
        got = send(locked.url, path, body, headers)
        failure = dragoman.decode_error(got.body, format, status=got.status, headers=got.headers)
        assert got.status in {400, 401, 403}
        assert failure.kind in {"authentication", "permission", "invalid_request"}
        assert "key" not in KEYED or "sesame" not in got.body.decode()
    if format == "gemini":
        assert send(locked.url, f"{path}?key=sesame-key", body).status == 200
    if format == "bedrock-converse":
        signed = (
            "AWS4-HMAC-SHA256 Credential={}/20261116/us-east-1/bedrock/aws4_request, SignedHeaders=host, Signature=0"
        )
        assert send(locked.url, path, body, {"authorization": signed.format("sesame-key")}).status == 200
        assert send(locked.url, path, body, {"authorization": signed.format("other")}).status == 403


@promise("gateway:loopback")
def test_without_keys_only_loopback_addresses_are_allowed() -> None:
    check_exposure("127.0.0.1", Access((), {}))
    check_exposure("::1", Access((), {}))
    check_exposure("0.0.0.0", Access(("a-key",), {}))  # noqa: S104
    for host in ("0.0.0.0", "::", "192.168.1.5", "example.com"):  # noqa: S104
        with pytest.raises(ConfigError):
            check_exposure(host, Access((), {}))
    assert Config().server.host == "127.0.0.1"


@promise("gateway:no-secrets")
def test_keys_appear_in_no_answer_and_no_log(dragoman_simulator: Simulator) -> None:
    text = '[server]\nkeys = ["client-secret-key"]\n' + provider(
        "p", dragoman_simulator.url, fault="status=401; message=bad key any-key"
    ).replace('"any-key"', '"upstream-secret-key"').replace("any-key", "upstream-secret-key")
    with RunningGateway(configured(text)) as gateway:
        headers = {"authorization": "Bearer client-secret-key"}
        outputs = [
            send(gateway.url, "/v1/chat/completions", chat("p/claude-sonnet-5"), headers),
            send(gateway.url, "/v1/messages", {**first("anthropic-messages"), "model": "p/m"}, headers),
            send(gateway.url, "/metrics", headers=headers, method="GET"),
            send(gateway.url, "/health", method="GET"),
        ]
        log = json.dumps(gateway.log.lines)
    everything = log + "".join(got.body.decode() + str(got.headers) for got in outputs)
    assert "secret-key" not in everything


# ── endpoints ──

LISTS = {"/v1/models": ("data", "id"), "/v1beta/models": ("models", "name"), "/api/tags": ("models", "name")}


@promise("gateway:doors")
def test_models_are_listed_in_each_shape(gateway: RunningGateway) -> None:
    for path, (items, name) in LISTS.items():
        entries = send(gateway.url, path, method="GET").json[items]
        assert any("as-anthropic-messages/claude-sonnet-5" in entry[name] for entry in entries), path
    anthropic = send(gateway.url, "/v1/models", headers=DOORS["anthropic-messages"].headers, method="GET").json
    assert anthropic["data"][0]["type"] == "model"
    shown = send(gateway.url, "/api/show", {"model": "as-gemini/gemini-3.6-flash"}).json
    assert "tools" in shown["capabilities"]
    assert send(gateway.url, "/api/version", method="GET").json["version"]
    assert send(gateway.url, "/health", method="GET").json["status"] == "healthy"
    assert send(gateway.url, "/", method="HEAD").status == 200
    assert send(gateway.url, "/nowhere").status == 404
    assert send(gateway.url, "/v1/messages", method="GET").status == 405


@promise("gateway:doors")
@pytest.mark.parametrize(
    ("path", "format"),
    [
        ("/openai/deployments/as-gemini%2Fgemini-3.6-flash/chat/completions?api-version=1", "openai-chat"),
        ("/v1/projects/p/locations/l/publishers/anthropic/models/as-gemini%2Fgemini-3.6-flash:rawPredict", "anthropic"),
        ("/v1/projects/p/locations/l/publishers/anthropic/models/claude-sonnet-5:rawPredict", "anthropic"),
        ("/v1beta1/publishers/google/models/as-anthropic-messages%2Fclaude-sonnet-5:generateContent", "vertex"),
        ("/v1/models/as-anthropic-messages%2Fclaude-sonnet-5:generateContent", "gemini"),
        ("/v1beta/models/as-anthropic-messages/claude-sonnet-5:generateContent", "gemini"),
        # For names with a slash, as by the Vercel AI SDK, and by google-genai on Vertex AI.
        ("/v1beta/as-anthropic-messages/claude-sonnet-5:generateContent", "gemini"),
        ("/v1beta1/publishers/as-anthropic-messages/models/claude-sonnet-5:generateContent", "vertex"),
    ],
)
def test_alternative_paths_of_a_format_are_served(gateway: RunningGateway, path: str, format: str) -> None:
    body = first("anthropic-messages" if format == "anthropic" else format)
    body.pop("model", None)
    if format == "anthropic":
        body["anthropic_version"] = "vertex-2023-10-16"
    got = send(gateway.url, path, body)
    assert got.status == 200, got.body
    (record,) = gateway.requests(1)
    assert "as-" not in path or record["upstream"].startswith("as-")


@promise("gateway:count-tokens")
def test_tokens_are_counted_or_estimated(gateway: RunningGateway, dragoman_sim: Simulator) -> None:
    body = {"model": "claude-sonnet-5", "messages": [{"role": "user", "content": "How many tokens are these?"}]}
    headers = DOORS["anthropic-messages"].headers
    exact = send(gateway.url, "/v1/messages/count_tokens", body, headers)
    assert exact.json == send(dragoman_sim.url, "/v1/messages/count_tokens", body, headers).json
    other = send(gateway.url, "/v1/messages/count_tokens", {**body, "model": "gemini/m"}, headers)
    assert other.headers["x-dragoman-estimated"] == "true"
    assert 5 <= other.json["input_tokens"] <= 30
    contents = {"contents": [{"role": "user", "parts": [{"text": "How many tokens are these?"}]}]}
    for model in ("gemini-3.6-flash", "as-anthropic-messages%2Fm"):
        assert send(gateway.url, f"/v1beta/models/{model}:countTokens", contents).json["totalTokens"] > 4


def test_a_half_closed_connection_is_dropped(small: RunningGateway) -> None:
    with connected(small.url) as sock:
        sock.shutdown(socket.SHUT_WR)
        assert until_closed(sock) == b""
