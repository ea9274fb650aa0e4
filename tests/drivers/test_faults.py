"""Each fault, from each provider, streamed or not: a typed error, in time, and nothing left behind."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

from dragoman import errors
from dragoman.drivers.base import QueryResult, StreamResult
from dragoman.drivers.remote import RemoteDriver
from dragoman.drivers.transport import SizeLimits, Timeouts
from dragoman.ir import StreamFailed
from dragoman.sim.server import Simulator
from tests.drivers.partners import EACH_FORMAT, KEY, ONCE, STREAMED, Partner, fault, talking
from tests.support.waiting import PATIENCE

LONG = "Tell me a very long story about the sea, please."
# Short only where the fault is that nothing comes: the machine may be busy.
PATIENT = Timeouts(connect=10.0, first_byte=10.0, between_bytes=10.0)
IMPATIENT = {
    "stall=0": Timeouts(first_byte=0.4),
    "delay": Timeouts(first_byte=0.4),
    "stall": Timeouts(between_bytes=0.4),
}


def limits_for(words: str) -> Timeouts:
    return next((limits for start, limits in IMPATIENT.items() if words.startswith(start)), PATIENT)


@dataclass(frozen=True, slots=True)
class Fault:
    words: str
    whole: tuple[type[errors.ProviderError], ...]
    streamed: tuple[type[errors.ProviderError], ...] = ()

    def expected(self, *, streamed: bool) -> tuple[type[errors.ProviderError], ...]:
        return self.streamed or self.whole if streamed else self.whole


FAULTS = (
    Fault("status=400", (errors.InvalidRequest,)),
    Fault("status=401", (errors.AuthenticationFailed,)),
    Fault("status=403", (errors.PermissionRefused,)),
    Fault("status=404", (errors.NotFound,)),
    Fault("status=408", (errors.TimedOut,)),
    Fault("status=409", (errors.Conflict,)),
    Fault("status=413", (errors.RequestTooLarge,)),
    Fault("status=429", (errors.RateLimited,)),
    Fault("status=429; retry_after=7", (errors.RateLimited,)),
    Fault("status=500", (errors.ServerFailed,)),
    Fault("status=502", (errors.ServerFailed,)),
    Fault("status=503", (errors.Overloaded, errors.ServerFailed)),
    Fault("status=504", (errors.TimedOut, errors.ServerFailed)),
    Fault("status=529", (errors.Overloaded, errors.ServerFailed)),
    # Hung up before the first byte, and in the middle.
    Fault("cut=0", (errors.ConnectionFailed,)),
    Fault("cut=1", (errors.AnswerCut,)),
    Fault("cut=3", (errors.AnswerCut,)),
    Fault("garbage=0", (errors.ServerFailed,)),
    Fault("garbage=2", (errors.ServerFailed,)),
    Fault("stall=0", (errors.TimedOut,)),
    Fault("stall=2", (errors.TimedOut,)),
    Fault("delay=5", (errors.TimedOut,)),
    Fault("fail=0; error=overloaded", (errors.Overloaded, errors.ServerFailed)),
    Fault("fail=2; error=overloaded", (errors.Overloaded, errors.ServerFailed)),
    # Ollama has no more than words for it by then.
    Fault("fail=2; error=rate_limit", (errors.RateLimited,), (errors.RateLimited, errors.ServerFailed)),
)


async def gather(stream: StreamResult, texts: list[str]) -> None:
    async for text in stream:
        texts.append(text)  # noqa: PERF401 - what came before the error counts


async def ask(driver: RemoteDriver, streamed: bool, words: str, **more: Any) -> QueryResult:  # noqa: FBT001
    settings: dict[str, Any] = {"headers": fault(words), **more}
    found: QueryResult = await (
        driver.stream_query(LONG, **settings).result if streamed else driver.query(LONG, **settings)
    )
    return found


@EACH_FORMAT
@STREAMED
@pytest.mark.parametrize("row", FAULTS, ids=lambda row: row.words)
def test_a_fault_is_a_typed_error(partner: Partner, streamed: bool, row: Fault, dragoman_sim: Simulator) -> None:  # noqa: FBT001
    async def run() -> None:
        async with (
            talking(partner, dragoman_sim, retry=ONCE, timeouts=limits_for(row.words)) as driver,
            asyncio.timeout(PATIENCE),
        ):
            with pytest.raises(errors.ProviderError) as caught:
                await ask(driver, streamed, row.words)
            error = caught.value
            assert isinstance(error, row.expected(streamed=streamed)), repr(error)
            assert error.message
            assert KEY not in str(error) + repr(error.failure)
            if "retry_after" in row.words:
                assert error.retry_after == 7.0
            result = await ask(driver, streamed, row.words, errors="result")
            assert (result.finish_reason, result.tool_calls) == ("error", None)
            assert result.failure is not None
            assert result.failure.kind == error.kind

    asyncio.run(run())


@EACH_FORMAT
@pytest.mark.parametrize("words", ["cut=12", "stall=12", "garbage=12", "fail=12; error=overloaded"])
def test_what_had_come_before_the_fault_is_kept(partner: Partner, words: str, dragoman_sim: Simulator) -> None:
    dragoman_sim.play({"text": "Once upon a time there was a sea. " * 20, "chunk": 10, "times": 0})

    async def run() -> None:
        async with talking(partner, dragoman_sim, retry=ONCE, timeouts=limits_for(words)) as driver:
            stream = driver.stream_query(LONG, headers=fault(words))
            texts: list[str] = []
            with pytest.raises(errors.ProviderError) as caught:
                await gather(stream, texts)
            assert "".join(texts)
            assert caught.value.partial is not None
            assert caught.value.partial.text == "".join(texts)
            events = [event async for event in stream.events()]
            assert isinstance(events[-1], StreamFailed)
            assert sum(isinstance(event, StreamFailed) for event in events) == 1
            kept = await driver.stream_query(LONG, headers=fault(words), errors="result").result
            assert (kept.content, kept.finish_reason) == ("".join(texts), "error")

    asyncio.run(run())


@EACH_FORMAT
def test_a_slow_answer_is_an_answer(partner: Partner, dragoman_sim: Simulator) -> None:
    async def run() -> None:
        async with talking(partner, dragoman_sim, retry=ONCE, timeouts=PATIENT) as driver:
            for streamed in (False, True):
                result = await ask(driver, streamed, "drip=0.0005; delay=0.1")
                assert result.finish_reason == "stop"

    asyncio.run(run())


@EACH_FORMAT
@STREAMED
def test_the_time_for_everything_holds(partner: Partner, streamed: bool, dragoman_sim: Simulator) -> None:  # noqa: FBT001
    async def run() -> None:
        async with talking(partner, dragoman_sim) as driver, asyncio.timeout(PATIENCE):
            with pytest.raises(errors.TimedOut, match="whole call"):
                await ask(driver, streamed, "drip=0.05", timeout=0.5)
            with pytest.raises(errors.ProviderError):
                # Two tries fit, a third one does not.
                await ask(driver, streamed, "status=503", timeout=1.0)

    asyncio.run(run())


@EACH_FORMAT
@STREAMED
def test_an_answer_beyond_the_limit_is_refused(partner: Partner, streamed: bool, dragoman_sim: Simulator) -> None:  # noqa: FBT001
    async def run() -> None:
        async with talking(partner, dragoman_sim, limits=SizeLimits(response=100)) as driver:
            with pytest.raises(errors.RequestTooLarge):
                await ask(driver, streamed, "")
        async with talking(partner, dragoman_sim, limits=SizeLimits(request=10)) as driver:
            with pytest.raises(errors.RequestTooLarge, match="more than the driver's limit"):
                await ask(driver, streamed, "")

    asyncio.run(run())


@EACH_FORMAT
def test_a_refused_connection(partner: Partner, dragoman_sim: Simulator) -> None:
    async def run() -> None:
        nowhere = {"base_url": "http://127.0.0.1:9"}
        async with talking(partner, dragoman_sim, retry=ONCE, **nowhere) as driver:
            for streamed in (False, True):
                with pytest.raises(errors.ConnectionFailed, match="no connection"):
                    await ask(driver, streamed, "")

    asyncio.run(run())


@EACH_FORMAT
def test_a_wrong_key_is_reported_without_the_key(partner: Partner, dragoman_sim: Simulator) -> None:
    async def run() -> None:
        async with talking(partner, dragoman_sim, retry=ONCE) as driver:
            with pytest.raises(errors.ProviderError) as caught:
                await ask(driver, False, f"status=401; message=Incorrect API key provided: {KEY}.")  # noqa: FBT003
            assert KEY not in f"{caught.value} {caught.value!r} {caught.value.failure!r} {caught.value.__cause__!r}"

    asyncio.run(run())
