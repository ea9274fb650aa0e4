"""What is tried again, how often, after how long; and what never is."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from dragoman.drivers.connect import connect
from dragoman.drivers.remote import RemoteDriver
from dragoman.drivers.replay import Replayed, ReplayTransport
from dragoman.drivers.retries import RetryNotice, RetryPolicy, may_retry
from dragoman.drivers.transport import connection_error, transport_error
from dragoman.errors import AnswerCut, BillingRefused, Overloaded, ProviderError, RateLimited, provider_error
from dragoman.ir import Failure, FailureKind
from dragoman.sim.server import Simulator
from tests.drivers.partners import EACH_FORMAT, FORMATS, STREAMED, Partner, talking

STATED = tuple(
    partner for partner in FORMATS if partner.name not in {"gemini", "vertex", "gemini-interactions", "ollama"}
)
QUICK = RetryPolicy(first_delay=0.01)
ANSWER = (
    b'{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":'
    b'{"role":"assistant","content":"hi"},"finish_reason":"stop"}]}'
)
OK = Replayed(chunks=[ANSWER])
START = (
    b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":'
    b'{"role":"assistant","content":"h"}}]}\n\n'
)


def refused(status: int, body: bytes = b'{"error":{"message":"no"}}', **headers: str) -> Replayed:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Replayed(status=status, headers=named, chunks=[body])


def driver_of(transport: ReplayTransport, notices: list[RetryNotice], retry: RetryPolicy = QUICK) -> RemoteDriver:
    return connect(
        "openai-chat/m", api_key="k", transport=transport, retry=retry, on_retry=notices.append, environment={}
    )


@EACH_FORMAT
@STREAMED
@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529])
def test_what_passes_is_tried_again(partner: Partner, streamed: bool, status: int, dragoman_sim: Simulator) -> None:  # noqa: FBT001
    dragoman_sim.play({"status": status}, {"status": status}, {"text": "Here I am again."})
    notices: list[RetryNotice] = []

    async def run() -> None:
        async with talking(partner, dragoman_sim, retry=QUICK, on_retry=notices.append) as driver:
            result = await (driver.stream_query("x").result if streamed else driver.query("x"))
            assert (result.content, result.metadata.attempts) == ("Here I am again.", 3)

    asyncio.run(run())
    assert [(notice.attempt, notice.error.status) for notice in notices] == [(1, status), (2, status)]
    assert [recorded.status for recorded in dragoman_sim.requests] == [status, status, 200]


@EACH_FORMAT
@STREAMED
@pytest.mark.parametrize("error", ["invalid", "wrong_key", "permission", "no_model"])
def test_what_does_not_pass_is_not(partner: Partner, streamed: bool, error: str, dragoman_sim: Simulator) -> None:  # noqa: FBT001
    dragoman_sim.play({"error": error, "times": 0})
    notices: list[RetryNotice] = []

    async def run() -> None:
        async with talking(partner, dragoman_sim, retry=QUICK, on_retry=notices.append) as driver:
            with pytest.raises(ProviderError):
                await (driver.stream_query("x").result if streamed else driver.query("x"))

    asyncio.run(run())
    assert notices == []
    assert len(dragoman_sim.requests) == 1


@pytest.mark.parametrize("partner", STATED, ids=lambda partner: partner.name)
def test_a_used_up_quota_is_not_retried(partner: Partner, dragoman_sim: Simulator) -> None:
    dragoman_sim.play({"error": "quota", "times": 0})

    async def run() -> None:
        async with talking(partner, dragoman_sim, retry=QUICK) as driver:
            with pytest.raises(ProviderError):
                await driver.query("x")

    asyncio.run(run())
    assert len(dragoman_sim.requests) == 1


def test_google_names_the_quota_that_is_used_up() -> None:
    def quota_error(quota: str) -> Replayed:
        violation = f'{{"quotaMetric":"m","quotaId":"{quota}","quotaValue":"50"}}'
        detail = f'{{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{violation}]}}'
        body = f'{{"error":{{"code":429,"message":"quota","status":"RESOURCE_EXHAUSTED","details":[{detail}]}}}}'
        return refused(429, body.encode())

    async def run() -> None:
        for quota, tries in (("RequestsPerDayPerProject", 1), ("RequestsPerMinutePerProject", 3)):
            transport = ReplayTransport(lambda _, quota=quota: quota_error(quota))  # type: ignore[misc]
            driver = connect("gemini/gemini-3.8-flash", api_key="k", transport=transport, retry=QUICK, environment={})
            with pytest.raises(BillingRefused if tries == 1 else RateLimited):
                await driver.query("x")
            assert len(transport.requests) == tries

    asyncio.run(run())


@EACH_FORMAT
def test_never_after_the_first_byte(partner: Partner, dragoman_sim: Simulator) -> None:
    dragoman_sim.play({"text": "Once upon a time. " * 9, "chunk": 5, "cut": 9}, {"text": "no"})

    async def run() -> None:
        async with talking(partner, dragoman_sim, retry=QUICK) as driver:
            with pytest.raises(AnswerCut):
                await driver.stream_query("x").result

    asyncio.run(run())
    assert len(dragoman_sim.requests) == 1


def test_a_lost_connection_is_tried_again_and_an_answer_that_broke_is_not() -> None:
    async def run() -> None:
        notices: list[RetryNotice] = []
        transport = ReplayTransport([connection_error("gone"), OK])
        assert (await driver_of(transport, notices).query("x")).content == "hi"
        assert len(transport.requests) == 2
        broken = ReplayTransport([Replayed(chunks=[START], breaks=True), OK])
        with pytest.raises(AnswerCut) as caught:
            await driver_of(broken, notices).stream_query("x").result
        assert caught.value.partial is not None
        assert caught.value.partial.text == "h"
        assert len(broken.requests) == 1
        assert len(notices) == 1

    asyncio.run(run())


def test_the_providers_hint_counts_more_than_ours() -> None:
    async def run() -> None:
        notices: list[RetryNotice] = []
        transport = ReplayTransport([refused(429, retry_after="0.05"), refused(503, retry_after_ms="20"), OK])
        started = time.monotonic()
        await driver_of(transport, notices).query("x")
        assert time.monotonic() - started >= 0.07
        assert [notice.delay for notice in notices] == [0.05, 0.02]

    asyncio.run(run())


def test_a_hint_may_be_a_date() -> None:
    async def run() -> None:
        date = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
        with pytest.raises(RateLimited) as caught:
            await driver_of(ReplayTransport([refused(429, retry_after=date)]), [], RetryPolicy(attempts=1)).query("x")
        assert caught.value.retry_after == pytest.approx(30, abs=2)
        gone = ReplayTransport([refused(429, retry_after="Sun, 06 Nov 1994 08:49:37 GMT"), OK])
        assert (await driver_of(gone, []).query("x")).metadata.attempts == 2

    asyncio.run(run())


def test_a_hint_beyond_our_patience_is_an_error_at_once() -> None:
    async def run() -> None:
        transport = ReplayTransport([refused(429, retry_after="3600"), OK])
        with pytest.raises(RateLimited) as caught:
            await driver_of(transport, []).query("x")
        assert caught.value.retry_after == 3600
        assert len(transport.requests) == 1

    asyncio.run(run())


def test_tries_come_to_an_end() -> None:
    async def run() -> None:
        transport = ReplayTransport(lambda _: refused(529))
        with pytest.raises(Overloaded):
            await driver_of(transport, []).query("x")
        assert len(transport.requests) == 3
        once = ReplayTransport(lambda _: refused(529))
        with pytest.raises(Overloaded):
            await driver_of(once, [], RetryPolicy(attempts=1)).query("x")
        assert len(once.requests) == 1

    asyncio.run(run())


def test_a_used_up_quota_is_not_a_rate_limit() -> None:
    async def run() -> None:
        body = b'{"error":{"message":"pay","type":"insufficient_quota","code":"insufficient_quota"}}'
        transport = ReplayTransport([refused(429, body), OK])
        with pytest.raises(BillingRefused):
            await driver_of(transport, []).query("x")
        assert len(transport.requests) == 1

    asyncio.run(run())


def test_delays_double_up_to_the_longest_and_chance_shortens_them() -> None:
    error = provider_error(Failure("server", "x", status=500))
    steady = RetryPolicy(attempts=9, chance=lambda: 0.0)
    assert [steady.delay_after(attempt, error) for attempt in range(1, 7)] == [0.5, 1.0, 2.0, 4.0, 8.0, 8.0]
    lucky = RetryPolicy(attempts=9, chance=lambda: 1.0)
    assert lucky.delay_after(1, error) == 0.375
    drawn = {RetryPolicy().delay_after(1, error) for _ in range(20)}
    assert len(drawn) > 10


@pytest.mark.parametrize(
    ("kind", "status", "again"),
    [
        ("rate_limit", 429, True),
        ("billing", 429, False),
        ("conflict", 409, True),
        ("timeout", 408, True),
        ("server", 500, True),
        ("authentication", 500, False),
        ("invalid_request", 400, False),
        ("not_found", 404, False),
        ("too_large", 413, False),
        ("overloaded", None, False),
    ],
)
def test_the_table_of_what_may_be_tried_again(kind: FailureKind, status: int | None, again: bool) -> None:  # noqa: FBT001
    assert may_retry(provider_error(Failure(kind, "x", status=status))) is again


def test_our_own_time_limits_are_not_retried() -> None:
    assert not may_retry(transport_error("timeout", "no data for 600 s before the answer began"))
    assert may_retry(connection_error("no connection within 10 s"))
