"""The types of drivers, by the two drivers that need no network."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TypeVar

import pytest

from dragoman.drivers import EchoDriver, Scripted, ScriptedDriver
from dragoman.drivers.base import Choice, Driver
from dragoman.errors import CallCancelled, Overloaded, RateLimited, ScriptExhausted
from dragoman.ir import Failure, Finished, Message, Request, StreamFailed, ToolCall, ToolChoice, Usage
from tests.support.waiting import PATIENCE

T = TypeVar("T")
LOOK = ("get_weather", {"city": "Tokyo"})
WEATHER = {"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}


async def gather(pieces: AsyncIterator[T]) -> list[T]:
    return [piece async for piece in pieces]


def test_a_queue_is_answered_in_order_and_then_raises() -> None:
    async def run() -> None:
        driver: Driver = ScriptedDriver(["one", Scripted(text="two", usage=Usage(3, 4))])
        assert str(await driver.query("a")) == "one"
        second = await driver.query("b")
        assert (second.content, second.usage, second.finish_reason) == ("two", Usage(3, 4), "stop")
        with pytest.raises(ScriptExhausted, match="no answer left"):
            await driver.query("c")

    asyncio.run(run())


def test_calls_without_a_finish_reason_imply_tool_calls_and_no_calls_are_none() -> None:
    async def run() -> None:
        driver = ScriptedDriver([Scripted(calls=[LOOK, LOOK]), "done"])
        called = await driver.query("a", tools=[WEATHER])
        assert called.finish_reason == "tool_calls"
        assert called.tool_calls is not None
        assert [call.id for call in called.tool_calls] == ["call_1", "call_2"]
        answered = await driver.query("a", messages=[called.message])
        assert answered.tool_calls is None
        assert driver.requests[1].messages[-1] == called.message

    asyncio.run(run())


def test_a_function_sees_the_request() -> None:
    def say(request: Request) -> str:
        return f"{request.temperature} {request.messages[0].text} {request.messages[-1].text}"

    async def run() -> None:
        driver = ScriptedDriver(say, defaults={"temperature": 0.5, "system": "be brief"})
        assert (await driver.query("a")).content == "0.5 be brief a"
        assert (await driver.query("a", temperature=0.0)).content == "0.0 be brief a"
        assert (await EchoDriver().query("a", messages=[Message("user", "b")])).content == "b"

    asyncio.run(run())


def test_text_events_and_result_are_usable_alone_together_and_twice() -> None:
    async def run() -> None:
        driver = ScriptedDriver(lambda _: Scripted(text="a b c", calls=[LOOK]))
        assert "".join(await gather(aiter(driver.stream_query("x")))) == "a b c"
        assert (await driver.stream_query("x").result).content == "a b c"
        stream = driver.stream_query("x")
        texts, result, events = await asyncio.gather(gather(aiter(stream)), stream.result, gather(stream.events()))
        assert "".join(texts) == result.content == "a b c"
        assert isinstance(events[-1], Finished)
        assert await gather(aiter(stream)) == texts
        assert await stream.result is result
        assert len(driver.requests) == 3

    asyncio.run(run())


def test_nothing_is_sent_before_the_stream_is_read() -> None:
    async def run() -> None:
        driver = ScriptedDriver(["x"])
        stream = driver.stream_query("x")
        assert stream.result is not None
        assert driver.requests == []

    asyncio.run(run())


def test_a_failure_raises_or_is_a_result_with_what_had_come() -> None:
    async def run() -> None:
        failing = Scripted(text="half", failure=Failure("overloaded", "busy", status=529))
        driver = ScriptedDriver(lambda _: failing)
        with pytest.raises(Overloaded) as caught:
            await driver.query("x")
        assert caught.value.partial is not None
        assert (caught.value.partial.text, caught.value.status) == ("half", 529)
        result = await driver.query("x", errors="result")
        assert (result.finish_reason, result.content) == ("error", "half")
        assert result.failure is not None
        events = await gather(driver.stream_query("x").events())
        assert isinstance(events[-1], StreamFailed)
        assert await gather(aiter(driver.stream_query("x", errors="result"))) == ["half"]
        limited = RateLimited(Failure("rate_limit", "slow down", retry_after=2.0))
        with pytest.raises(RateLimited, match="slow down") as again:
            await ScriptedDriver([limited]).query("x")
        assert again.value.retry_after == 2.0

    asyncio.run(run())


def test_a_closed_stream_keeps_what_had_come() -> None:
    async def run() -> None:
        driver = ScriptedDriver(lambda _: "a b c")
        async with driver.stream_query("x") as stream:
            async for _ in stream:
                break
        with pytest.raises(CallCancelled) as caught:
            await stream.result
        assert caught.value.partial is not None
        assert caught.value.partial.text == "a"

    asyncio.run(run())


def test_closing_wakes_the_waiting_task() -> None:
    async def run() -> None:
        stream = ScriptedDriver([Scripted(text="a", delay=600.0)]).stream_query("x", errors="result")
        waiting = asyncio.ensure_future(stream.result)
        await asyncio.sleep(0.01)
        await stream.close()
        result = await asyncio.wait_for(waiting, PATIENCE)
        assert (result.finish_reason, result.content) == ("error", "")

    asyncio.run(run())


def test_a_cancelled_task_asks_nothing() -> None:
    async def run() -> None:
        driver = ScriptedDriver(["x"])

        async def cancelled() -> None:
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            await driver.query("x")

        with pytest.raises(asyncio.CancelledError):
            await asyncio.ensure_future(cancelled())
        assert driver.requests == []

    asyncio.run(run())


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (None, None),
        ("auto", ToolChoice("auto")),
        ("none", ToolChoice("none")),
        ("required", ToolChoice("required")),
        ("get_weather", ToolChoice("required", ("get_weather",))),
        ({"name": "get_weather"}, ToolChoice("required", ("get_weather",))),
        ({"type": "function", "function": {"name": "get_weather"}}, ToolChoice("required", ("get_weather",))),
    ],
)
def test_every_spelling_of_a_choice(given: Choice, meant: ToolChoice | None) -> None:
    async def run() -> None:
        driver = EchoDriver()
        await driver.query("x", tools=[{"type": "function", "function": WEATHER}], tool_choice=given)
        assert driver.requests[0].tool_choice == meant
        await driver.query("x", tool_choice=given)
        assert driver.requests[1].tool_choice is None

    asyncio.run(run())


def test_what_cannot_be_asked_is_refused() -> None:
    async def run() -> None:
        driver = EchoDriver()
        with pytest.raises(ValueError, match="expected a tool's name other than auto"):
            await driver.query("x", tools=[WEATHER], tool_choice={"name": "auto"})
        with pytest.raises(ValueError, match="nothing to ask"):
            await driver.query()
        with pytest.raises(TypeError, match="unknown settings: tempratur"):
            await driver.query("x", tempratur=1)  # type: ignore[call-overload]
        with pytest.raises(
            TypeError, match=r"expected known settings, found .*; for max_tokens use max_output_tokens$"
        ):
            await driver.query("x", max_tokens=1)  # type: ignore[call-overload]

    asyncio.run(run())


def test_calls_that_were_cut_are_not_offered() -> None:
    async def run() -> None:
        cut = ToolCall("c", "get_weather", {}, incomplete=True)
        result = await ScriptedDriver([Scripted(calls=[cut], finish_reason="length")]).query("x")
        assert result.tool_calls is None
        assert result.message.tool_calls == (cut,)

    asyncio.run(run())
