"""The network itself: pools, proxies, certificates, redirects, and pages that are not answers."""

from __future__ import annotations

import asyncio
import datetime as dt
import gc
import ipaddress
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from dragoman.drivers.connect import connect
from dragoman.drivers.remote import RemoteDriver
from dragoman.drivers.replay import Replayed, ReplayTransport
from dragoman.drivers.transport import Timeouts, Tls, proxy_of_environment
from dragoman.errors import (
    BillingRefused,
    ConnectionFailed,
    NotFound,
    Overloaded,
    ProviderError,
    RateLimited,
    RequestTooLarge,
    ScriptExhausted,
    ServerFailed,
    TimedOut,
)
from dragoman.sim.server import Simulator
from tests.drivers.partners import ONCE
from tests.support.waiting import until

ANSWER = (
    b'{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":'
    b'{"role":"assistant","content":"hi"},"finish_reason":"stop"}]}'
)


def speaking(**options: Any) -> RemoteDriver:
    return connect("openai-chat/m", api_key="k", environment={}, **options)


@asynccontextmanager
async def serving(
    handle: Callable[[web.BaseRequest], AsyncIterator[web.StreamResponse]], tls: ssl.SSLContext | None = None
) -> AsyncIterator[str]:
    async def one(request: web.BaseRequest) -> web.StreamResponse:
        return await anext(handle(request))

    runner = web.ServerRunner(web.Server(one), shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    port = runner.addresses[0][1]
    try:
        yield f"{'http' if tls is None else 'https'}://127.0.0.1:{port}"
    finally:
        await runner.cleanup()


async def answering(_request: web.BaseRequest) -> AsyncIterator[web.StreamResponse]:
    yield web.Response(body=ANSWER, content_type="application/json")


def test_connections_are_used_again() -> None:
    async def run() -> None:
        ports: set[object] = set()

        async def noting(request: web.BaseRequest) -> AsyncIterator[web.StreamResponse]:
            assert request.transport is not None
            ports.add(request.transport.get_extra_info("peername"))
            yield web.Response(body=ANSWER, content_type="application/json")

        async with (
            serving(noting) as url,
            connect("openai-chat/m", base_url=url, api_key="k", environment={}) as driver,
        ):
            for _ in range(5):
                await driver.query("x")
        assert len(ports) == 1

    asyncio.run(run())


@pytest.mark.parametrize("closes_loop", [False, True], ids=["in its loop", "after its loop"])
def test_a_driver_that_was_not_closed_closes_its_connections_without_a_warning(
    caplog: pytest.LogCaptureFixture, *, closes_loop: bool
) -> None:
    kept: list[RemoteDriver] = []
    connections: list[asyncio.Transport] = []

    async def noting(request: web.BaseRequest) -> AsyncIterator[web.StreamResponse]:
        assert request.transport is not None
        connections.append(request.transport)
        yield web.Response(body=ANSWER, content_type="application/json")

    async def run() -> None:
        async with serving(noting) as url:
            driver = connect("openai-chat/m", base_url=url, api_key="k", environment={})
            answer = driver.stream_query("x")
            if closes_loop:
                kept.append(driver)
            del driver
            gc.collect()
            # The stream still needs the connection.
            assert (await answer.result).content == "hi"
            del answer
            gc.collect()
            if not closes_loop:
                await asyncio.to_thread(until, connections[0].is_closing)

    asyncio.run(run())
    kept.clear()
    gc.collect()
    assert caplog.text == ""


def test_requests_go_through_the_proxy_that_is_named() -> None:
    async def run() -> None:
        seen: list[str] = []

        async def proxying(request: web.BaseRequest) -> AsyncIterator[web.StreamResponse]:
            seen.append(f"{request.method} {request.raw_path} {request.headers.get('proxy-authorization', '')}")
            yield web.Response(body=ANSWER, content_type="application/json")

        async with serving(proxying) as proxy:
            named = proxy.replace("//", "//user:word@")
            driver = connect(
                "openai-chat/m", base_url="http://far.example/v1", api_key="k", proxy=named, environment={}
            )
            assert (await driver.query("x")).content == "hi"
            await driver.close()
        assert seen[0].startswith("POST http://far.example/v1/chat/completions Basic ")

    asyncio.run(run())


def test_the_environment_names_proxies_too(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "HTTP_PROXY",
        "http_proxy",
        "HTTPS_PROXY",
        "https_proxy",
        "ALL_PROXY",
        "all_proxy",
        "NO_PROXY",
        "no_proxy",
    ):
        monkeypatch.delenv(name, raising=False)
    assert proxy_of_environment("https://api.openai.com/v1") is None
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    monkeypatch.setenv("NO_PROXY", "localhost,.internal")
    assert proxy_of_environment("https://api.openai.com/v1") == "http://proxy:3128"
    assert proxy_of_environment("https://llm.internal/v1") is None
    assert proxy_of_environment("http://api.openai.com/v1") is None


def _certificate(folder: Path) -> ssl.SSLContext:
    """A self-signed certificate for 127.0.0.1."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "dragoman tests")])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem, secret = folder / "ca.pem", folder / "key.pem"
    pem.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    secret.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem, secret)
    return context


def test_certificates_are_checked_and_own_authorities_trusted(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(answering, _certificate(tmp_path)) as url:
            trusts = ((None, False), (Tls(ca_file=str(tmp_path / "ca.pem")), True), (Tls(verify=False), True))
            for tls, good in trusts:
                async with speaking(base_url=url, tls=tls, retry=ONCE) as driver:
                    if good:
                        assert (await driver.query("x")).content == "hi"
                    else:
                        with pytest.raises(ConnectionFailed, match="Certificate"):
                            await driver.query("x")

    asyncio.run(run())


def test_a_redirect_is_not_followed_with_a_key_in_hand(dragoman_sim: Simulator) -> None:
    async def moved(_request: web.BaseRequest) -> AsyncIterator[web.StreamResponse]:
        yield web.Response(status=307, headers={"location": dragoman_sim.url + "/v1/chat/completions"})

    async def run() -> None:
        async with serving(moved) as url, speaking(base_url=url) as driver:
            with pytest.raises(ProviderError) as caught:
                await driver.query("x")
            assert caught.value.status == 307

    asyncio.run(run())
    assert dragoman_sim.requests == []


@pytest.mark.parametrize(
    ("status", "body", "kind", "words"),
    [
        (502, b"<html><body><h1>502 Bad Gateway</h1>\nnginx</body></html>", ServerFailed, "502 Bad Gateway"),
        (404, b"", NotFound, "HTTP 404 without a body"),
        (500, b"\xff\xfe\x00", ServerFailed, ""),
        (500, b"[" * 100_000, ServerFailed, ""),
        (500, b"x" * (2 << 20), ServerFailed, "xxx"),
        (500, b'{"error":{"message":""}}', ServerFailed, "HTTP 500 without an error message"),
    ],
)
@pytest.mark.parametrize("model", ["openai/m", "anthropic/m", "gemini/m", "ollama/m", "bedrock/m"])
def test_pages_of_machines_in_between_are_typed_errors_too(
    status: int, body: bytes, kind: type[ProviderError], words: str, model: str
) -> None:
    async def run() -> None:
        transport = ReplayTransport([Replayed(status=status, chunks=[body])])
        region = {"AWS_REGION": "eu"} if model.startswith("bedrock") else {}
        driver = connect(model, api_key="k", transport=transport, retry=ONCE, environment=region)
        with pytest.raises(kind) as caught:
            await driver.query("x")
        assert words in caught.value.message
        assert len(str(caught.value)) < 2000

    asyncio.run(run())


def test_an_unreadable_answer_is_a_server_error() -> None:
    async def run() -> None:
        for body in (b"", b"hello", b"{}", b"[]", b'{"choices":'):
            driver = connect(
                "openai-chat/m", api_key="k", transport=ReplayTransport([Replayed(chunks=[body])]), environment={}
            )
            with pytest.raises(ServerFailed, match="does not follow its format"):
                await driver.query("x")

    asyncio.run(run())


def test_a_host_that_does_not_take_calls_is_not_waited_for() -> None:
    async def run() -> None:
        # An address that no packet comes back from (RFC 5737).
        limits = Timeouts(connect=0.2)
        async with speaking(base_url="http://192.0.2.1/v1", timeouts=limits, proxy="", retry=ONCE) as driver:
            with pytest.raises(ConnectionFailed):
                await asyncio.wait_for(driver.query("x"), 3.0)

    asyncio.run(run())


def test_a_driver_belongs_to_one_loop(dragoman_sim: Simulator) -> None:
    driver = connect("ollama/qwen3", base_url=dragoman_sim.url, environment={})
    loop = asyncio.new_event_loop()
    try:
        loop.run_until_complete(driver.query("x"))
        with pytest.raises(RuntimeError, match="belongs to the event loop"):
            asyncio.run(_ask(driver))
        loop.run_until_complete(driver.close())
    finally:
        loop.close()
    # Once closed it may start again elsewhere.
    asyncio.run(_ask(driver))


async def _ask(driver: RemoteDriver) -> None:
    assert (await driver.query("x")).finish_reason == "stop"
    await driver.close()


def test_a_replay_ends() -> None:
    async def run() -> None:
        transport = ReplayTransport([])
        driver = speaking(transport=transport)
        with pytest.raises(ScriptExhausted, match="nothing left to replay"):
            await driver.query("x")
        await driver.close()
        assert transport.closed

    asyncio.run(run())


FAILED_RESPONSE = (
    b'{"id":"resp_1","object":"response","created_at":1,"status":"failed","model":"m","output":[],'
    b'"error":{"code":"server_error","message":"it broke"}}'
)


@pytest.mark.parametrize(
    ("model", "body", "kind"),
    [
        ("openrouter/m", b'{"error":{"message":"no credits left","code":402}}', BillingRefused),
        ("openai-chat/m", b'{"error":{"message":"slow down","code":"rate_limit_exceeded"}}', RateLimited),
        ("openai/m", FAILED_RESPONSE, ServerFailed),
        (
            "openrouter/m",
            b'{"id":"g","choices":[{"index":0,"message":{"role":"assistant","content":"half"},"finish_reason":"error"}]}',
            ServerFailed,
        ),
        ("ollama/m", b'{"error":"model runner has unexpectedly stopped"}', ServerFailed),
        ("gemini/m", b'{"error":{"code":503,"message":"overloaded","status":"UNAVAILABLE"}}', Overloaded),
        (
            "openai-chat/m",
            b'{"id":"","choices":null,"base_resp":{"status_code":1008,"status_msg":"no"}}',
            BillingRefused,
        ),
        ("openai-chat/m", b'{"id":"c","choices":[],"base_resp":{"status_code":1002,"status_msg":"no"}}', RateLimited),
        ("openai-chat/m", b'{"base_resp":{"status_code":1013,"status_msg":"no"}}', ServerFailed),
    ],
)
def test_an_error_inside_a_200_is_an_error(model: str, body: bytes, kind: type[ProviderError]) -> None:
    async def run() -> None:
        head = {"x-request-id": "r-1"}
        transport = ReplayTransport(lambda _: Replayed(headers=head, chunks=[body]))
        driver = connect(model, api_key="k", transport=transport, environment={})
        with pytest.raises(kind) as caught:
            await driver.query("x")
        assert caught.value.message
        result = await driver.query("x", errors="result")
        assert result.finish_reason == "error"
        assert result.content == ("half" if b"half" in body else "")

    asyncio.run(run())


@pytest.mark.parametrize(
    ("model", "status", "body", "headers", "kind"),
    [
        # Bedrock's word for a model that broke is more exact than the status under it.
        ("bedrock/m", 424, b'{"message":"the model broke"}', {"x-amzn-errortype": "ModelErrorException"}, ServerFailed),
        ("anthropic/m", 408, b'{"type":"error","error":{"type":"api_error","message":"late"}}', {}, TimedOut),
        ("openai/m", 413, b'{"error":{"message":"too much","type":"invalid_request_error"}}', {}, RequestTooLarge),
        ("openai/m", 404, b'{"error":{"message":"who?","type":"invalid_request_error"}}', {}, NotFound),
        ("groq/m", 413, b'{"error":{"message":"tokens","code":"rate_limit_exceeded"}}', {}, RateLimited),
    ],
)
def test_the_more_exact_of_error_type_and_status_counts(
    model: str, status: int, body: bytes, headers: dict[str, str], kind: type[ProviderError]
) -> None:
    async def run() -> None:
        transport = ReplayTransport([Replayed(status=status, headers=headers, chunks=[body])])
        driver = connect(model, api_key="k", transport=transport, retry=ONCE, environment={"AWS_REGION": "eu"})
        with pytest.raises(kind):
            await driver.query("x")

    asyncio.run(run())


def test_a_failure_in_a_stream_names_its_request() -> None:
    async def run() -> None:
        chunks = [b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"busy"}}\n\n']
        transport = ReplayTransport([Replayed(headers={"request-id": "req_9"}, chunks=chunks)])
        driver = connect("anthropic/m", api_key="k", transport=transport, environment={})
        with pytest.raises(Overloaded, match="busy") as caught:
            await driver.stream_query("x").result
        assert caught.value.request_id == "req_9"

    asyncio.run(run())


def test_a_large_body_goes_out_without_a_warning(dragoman_sim: Simulator) -> None:
    async def run() -> None:
        async with connect("ollama/qwen3", base_url=dragoman_sim.url, environment={}) as driver:
            assert (await driver.query("long " * 600_000, max_output_tokens=10)).usage is not None

    asyncio.run(run())
