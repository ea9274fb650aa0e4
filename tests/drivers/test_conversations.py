"""The same conversation with every provider: two calls at once, one of them fails, the other shows a picture."""

from __future__ import annotations

import asyncio
from typing import Any

from dragoman.drivers.base import QueryResult
from dragoman.drivers.remote import RemoteDriver
from dragoman.ir import Image, Message, Text, ToolCall, ToolResult
from dragoman.sim.server import Simulator
from tests.drivers.partners import EACH, FORMATS, STREAMED, Partner, talking

PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = (
    {"name": "get_weather", "description": "The weather of a city", "parameters": CITY},
    {"name": "get_map", "description": "A map of a city", "parameters": CITY},
)
LONG = "Tell me a very long story about the sea, please."
QUESTION = "Get the weather and the map of Paris."


async def ask(driver: RemoteDriver, streamed: bool, **more: Any) -> QueryResult:  # noqa: FBT001
    settings: dict[str, Any] = {"tools": TOOLS, "reasoning": "medium", **more}
    found: QueryResult = await (
        driver.stream_query(QUESTION, **settings).result if streamed else driver.query(QUESTION, **settings)
    )
    return found


def answered(call: ToolCall) -> ToolResult:
    if call.name == "get_map":
        return ToolResult(call.id, call.name, "multimodal", parts=(Text("a map"), Image("image/png", data=PICTURE)))
    return ToolResult(call.id, call.name, "error", "the station does not answer")


@EACH
@STREAMED
def test_a_tool_conversation_completes(partner: Partner, streamed: bool, dragoman_sim: Simulator) -> None:  # noqa: FBT001
    async def run() -> None:
        async with talking(partner, dragoman_sim) as driver:
            first = await ask(driver, streamed)
            assert first.finish_reason == "tool_calls"
            assert first.tool_calls is not None
            assert [call.name for call in first.tool_calls] == ["get_weather", "get_map"]
            assert all(call.arguments == {"city": "Paris"} for call in first.tool_calls)
            results = Message("tool", tuple(answered(call) for call in first.tool_calls))
            second = await ask(driver, streamed, messages=[first.message, results])
            assert (second.finish_reason, second.tool_calls) == ("stop", None)
            assert second.content
            assert second.usage is not None
            assert second.usage.output > 0

    asyncio.run(run())
    assert [recorded.status for recorded in dragoman_sim.requests] == [200, 200]


@STREAMED
def test_a_conversation_moves_from_provider_to_provider(streamed: bool, dragoman_sim: Simulator) -> None:  # noqa: FBT001
    """Each turn is another vendor's: its calls, its signed reasoning and its ids are in the history of the next."""

    async def run() -> None:
        history: list[Message] = []
        for partner in FORMATS:
            async with talking(partner, dragoman_sim) as driver:
                question = Message("user", QUESTION)
                first = await driver_asks(driver, [*history, question], streamed)
                assert first.tool_calls is not None, partner.name
                results = Message("tool", tuple(answered(call) for call in first.tool_calls))
                second = await driver_asks(driver, [*history, question, first.message, results], streamed)
                history += [question, first.message, results, second.message]

    asyncio.run(run())
    assert {recorded.status for recorded in dragoman_sim.requests} == {200}


async def driver_asks(driver: RemoteDriver, messages: list[Message], streamed: bool) -> QueryResult:  # noqa: FBT001
    stream = driver.stream_query if streamed else None
    if stream is not None:
        return await stream(messages=messages, tools=TOOLS, reasoning="medium").result
    return await driver.query(messages=messages, tools=TOOLS, reasoning="medium")


@EACH
def test_streamed_or_not_it_is_the_same_answer(partner: Partner, dragoman_sim: Simulator) -> None:
    async def run() -> None:
        async with talking(partner, dragoman_sim) as driver:
            whole = await driver.query(LONG)
            stream = driver.stream_query(LONG)
            texts = [text async for text in stream]
            result = await stream.result
            assert "".join(texts) == result.content == whole.content
            assert len(texts) > 1
            assert result.usage is not None
            assert whole.usage is not None
            assert (result.usage.input, result.usage.output) == (whole.usage.input, whole.usage.output)
            assert (result.finish_reason, result.finish_raw) == (whole.finish_reason, whole.finish_raw)
            assert result.metadata.attempts == 1

    asyncio.run(run())


@EACH
def test_settings_reach_the_provider_and_defaults_stand_behind_them(partner: Partner, dragoman_sim: Simulator) -> None:
    async def run() -> None:
        async with talking(partner, dragoman_sim, defaults={"tools": TOOLS}) as driver:
            assert (await driver.query(QUESTION)).tool_calls is not None
            assert (await driver.query(QUESTION, tools=())).tool_calls is None
        async with talking(partner, dragoman_sim, defaults={"max_output_tokens": 20}) as driver:
            short = await driver.query(LONG)
            assert short.finish_reason == "length"
            again = await driver.query("Say hello.", max_output_tokens=2000)
            assert again.finish_reason == "stop"

    asyncio.run(run())


@EACH
def test_the_bytes_of_both_directions_are_available(partner: Partner, dragoman_sim: Simulator) -> None:
    async def run() -> None:
        async with talking(partner, dragoman_sim) as driver:
            whole = await driver.query("Say hello.", raw=True)
            streamed = await driver.stream_query("Say hello.", raw=True).result
            for result in (whole, streamed):
                assert result.raw is not None
                assert b"Say hello." in result.raw.request_body
                assert result.raw.status == 200
                assert result.raw.response_body
                assert "sk-test" not in repr(result.raw)
            assert (await driver.query("Say hello.")).raw is None

    asyncio.run(run())
