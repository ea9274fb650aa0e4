"""Typed answers: what a type checker knows about them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, assert_type

from dragoman.agent import Agent, RunResult
from dragoman.drivers import ScriptedDriver
from dragoman.drivers.base import QueryResult, StreamResult
from dragoman.drivers.sync import SyncDriver
from dragoman.drivers.typed_output import TypedResult
from dragoman.drivers.typed_queries import TypedStream


@dataclass
class City:
    name: str
    degrees: float


ANSWER = '{"name": "Rome", "degrees": 18.5}'


async def main() -> None:
    agent = Agent(ScriptedDriver([ANSWER]), output_type=City)
    assert_type(agent, Agent[City])
    result = await agent.run("How warm is it in Rome?")
    assert_type(result, RunResult[City])
    assert_type(result.output, City)

    plain = Agent(ScriptedDriver(["Hello."]))
    assert_type(plain, Agent[str])
    assert_type((await plain.run("Hi")).output, str)

    driver = ScriptedDriver([ANSWER, ANSWER, "Hi."])
    assert_type((await driver.query("How warm?", output_type=City)).output, City)
    assert_type(await driver.query("Hi", output_type=City | None), TypedResult[Any])
    assert_type(await driver.query("Hi"), QueryResult)

    streaming = ScriptedDriver([ANSWER, ANSWER, "Hi."])
    typed = streaming.stream_query("How warm?", output_type=City)
    assert_type(typed, TypedStream[City])
    async for partial in typed.partials():
        assert_type(partial, City)
    assert_type((await typed.result).output, City)
    assert_type(streaming.stream_query("Hi", output_type=City | None), TypedStream[Any])
    assert_type(streaming.stream_query("Hi"), StreamResult)


def by_waiting() -> None:
    driver = SyncDriver(ScriptedDriver([ANSWER] * 2))
    assert_type(driver.query("How warm?", output_type=City).output, City)
    assert_type(driver.stream_query("How warm?", output_type=City).result.output, City)


if __name__ == "__main__":
    asyncio.run(main())
    by_waiting()
