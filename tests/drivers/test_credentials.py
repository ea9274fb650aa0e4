"""Tokens of Google and signatures of Amazon, as their own packages make them."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from botocore.auth import SigV4Auth  # type: ignore[import-untyped]
from botocore.awsrequest import AWSRequest  # type: ignore[import-untyped]
from botocore.credentials import Credentials  # type: ignore[import-untyped]
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from dragoman.drivers.connect import connect
from dragoman.drivers.replay import Replayed, ReplayTransport
from dragoman.drivers.transport import HttpRequest
from dragoman.errors import AuthenticationFailed, NotConfigured, ProviderError

REFUSED = Replayed(status=418, chunks=[b"{}"])


class TokenServer(BaseHTTPRequestHandler):
    received: list[dict[str, list[str]]] = []  # noqa: RUF012 - one server at a time
    status = 200

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.received.append(parse_qs(body.decode()))
        answer = {"access_token": f"token-number-{len(self.received)}", "expires_in": 3600, "token_type": "Bearer"}
        self.send_response(self.status)
        self.end_headers()
        self.wfile.write(json.dumps(answer if self.status == 200 else {"error": "invalid_grant"}).encode())

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def account(tmp_path: Path) -> Iterator[Path]:
    """The file of a service account whose tokens come from next door."""
    TokenServer.received, TokenServer.status = [], 200
    server = HTTPServer(("127.0.0.1", 0), TokenServer)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file = tmp_path / "account.json"
    fields = {
        "type": "service_account",
        "project_id": "account-project",
        "private_key_id": "1",
        "private_key": key.decode(),
        "client_email": "tests@account-project.iam.gserviceaccount.com",
        "token_uri": f"http://127.0.0.1:{server.server_port}/token",
    }
    file.write_text(json.dumps(fields))
    yield file
    server.shutdown()
    server.server_close()
    thread.join()


def sent_requests(model: str, times: int = 1, **options: Any) -> list[HttpRequest]:
    transport = ReplayTransport(lambda _: REFUSED)

    async def run() -> None:
        driver = connect(model, transport=transport, **options)
        for _ in range(times):
            with pytest.raises(ProviderError):
                await driver.query("x")

    asyncio.run(run())
    return transport.requests


def test_a_service_account_asks_for_a_token_and_keeps_it(account: Path) -> None:
    requests = sent_requests("vertex/gemini-3.8-flash", 3, credentials_file=str(account), environment={})
    assert {request.headers["authorization"] for request in requests} == {"Bearer token-number-1"}
    assert "/projects/account-project/locations/global/" in requests[0].url
    assert len(TokenServer.received) == 1
    assert TokenServer.received[0]["grant_type"] == ["urn:ietf:params:oauth:grant-type:jwt-bearer"]


def test_many_at_once_ask_for_one_token(account: Path) -> None:
    transport = ReplayTransport(lambda _: REFUSED)

    async def run() -> None:
        driver = connect("vertex/m", transport=transport, credentials_file=str(account), environment={})
        await asyncio.gather(*(driver.query("x", errors="result") for _ in range(20)))

    asyncio.run(run())
    assert len(transport.requests) == 20
    assert len(TokenServer.received) == 1


def test_application_default_credentials(account: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(account))
    environment = {"GOOGLE_CLOUD_PROJECT": "another-project"}
    request = sent_requests("vertex-anthropic/claude-sonnet-5", environment=environment)[0]
    assert request.headers["authorization"] == "Bearer token-number-1"
    assert "/projects/another-project/" in request.url


def test_a_refused_token_is_an_authentication_error(account: Path) -> None:
    TokenServer.status = 400

    async def run() -> None:
        driver = connect("vertex/m", transport=ReplayTransport([]), credentials_file=str(account), environment={})
        with pytest.raises(AuthenticationFailed, match="no token from Google"):
            await driver.query("x")

    asyncio.run(run())


def test_no_credentials_at_all(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "none.json"))
    with pytest.raises(NotConfigured, match="no Google credentials"):
        connect("vertex/m", environment={"GOOGLE_CLOUD_PROJECT": "p"})


def test_a_signature_is_what_amazon_expects() -> None:
    credentials = Credentials("AKIDEXAMPLE", "secret-access-key", "session-token")
    request = sent_requests(
        "bedrock/anthropic.claude-x-v1:0", credentials=credentials, region="eu-central-1", environment={}
    )[0]
    assert request.headers["X-Amz-Security-Token"] == "session-token"
    scheme = request.headers["Authorization"]
    assert scheme.startswith("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/")
    assert "/eu-central-1/bedrock/aws4_request" in scheme
    # The same request, signed afresh at the time it names.
    signing = SigV4Auth(credentials, "bedrock", "eu-central-1")
    unsigned = {name: value for name, value in request.headers.items() if name != "Authorization"}
    again = AWSRequest("POST", request.url, unsigned, request.body)
    again.context["timestamp"] = request.headers["X-Amz-Date"]
    string = signing.string_to_sign(again, signing.canonical_request(again))
    assert signing.signature(string, again) in scheme
    assert "%253A" in signing.canonical_request(again)


def test_the_environment_of_amazon(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDENVIRONMENT")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret-access-key")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    (tmp_path / "config").write_text("[default]\nregion = ap-southeast-2\n")
    monkeypatch.delenv("AWS_REGION", raising=False)
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    request = sent_requests("bedrock/amazon.nova-lite-v1:0")[0]
    assert "Credential=AKIDENVIRONMENT/" in request.headers["Authorization"]
    assert request.url.startswith("https://bedrock-runtime.ap-southeast-2.amazonaws.com/")
