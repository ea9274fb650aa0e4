"""Keys show up nowhere: not in reprs, not in errors, not in raw exchanges, not in logs."""

from __future__ import annotations

import asyncio
import logging
import pickle
import traceback

import pytest

from dragoman.drivers.connect import connect
from dragoman.drivers.replay import Replayed, ReplayTransport
from dragoman.drivers.secret import Secret, hidden_headers, hidden_url
from dragoman.errors import AuthenticationFailed, ConnectionFailed
from dragoman.sim.server import Simulator
from tests.drivers.partners import EACH, KEY, ONCE, Partner, talking


def test_a_secret_does_not_print_and_is_not_written_down() -> None:
    secret = Secret(f" {KEY}\n")
    assert KEY not in f"{secret} {secret!r} {[secret]}"
    assert secret.reveal() == KEY
    with pytest.raises(TypeError):
        pickle.dumps(secret)


def test_headers_and_addresses_are_shown_without_them() -> None:
    shown = hidden_headers({"Authorization": f"Bearer {KEY}", "x-api-key": KEY, "accept": "*/*"})
    assert KEY not in str(shown)
    assert shown["accept"] == "*/*"
    assert hidden_url(f"http://user:{KEY}@proxy:3128/") == "http://[hidden]@proxy:3128/"
    assert hidden_url("https://api.openai.com/v1") == "https://api.openai.com/v1"


def test_a_key_that_the_server_quotes_is_taken_out() -> None:
    quoted = f'{{"error":{{"message":"Incorrect API key provided: {KEY}","code":"invalid_api_key","extra":"{KEY}"}}}}'
    transport = ReplayTransport([Replayed(status=401, chunks=[quoted.encode()])])

    async def run() -> None:
        driver = connect("openai/m", api_key=KEY, transport=transport, environment={})
        with pytest.raises(AuthenticationFailed, match=r"Incorrect API key provided: \[hidden\]") as caught:
            await driver.query("x")
        assert KEY not in "".join(traceback.format_exception(caught.value)) + repr(vars(caught.value))

    asyncio.run(run())


@EACH
def test_no_log_and_no_result_holds_the_key(
    partner: Partner, dragoman_sim: Simulator, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)

    async def run() -> None:
        async with talking(partner, dragoman_sim, retry=ONCE) as driver:
            result = await driver.query("Say hello.", raw=True)
            assert KEY not in repr(driver) + repr(driver.channel) + repr(result)
            assert "a-secret-access-key" not in repr(driver) + repr(driver.channel) + repr(result)

    asyncio.run(run())
    assert KEY not in caplog.text
    assert KEY not in "".join(recorded.path + str(recorded.query) for recorded in dragoman_sim.requests)


def test_a_proxy_that_does_not_answer_is_named_without_its_password() -> None:
    async def run() -> None:
        proxy = f"http://user:{KEY}@127.0.0.1:9"
        driver = connect(
            "openai/m", base_url="http://box.example/v1", api_key="k", proxy=proxy, retry=ONCE, environment={}
        )
        with pytest.raises(ConnectionFailed) as caught:
            await driver.query("x")
        assert KEY not in str(caught.value) + repr(driver.channel.transport)
        await driver.close()

    asyncio.run(run())
