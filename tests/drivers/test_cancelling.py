"""Cancelling a task stops its call: the connection closes at once, and a cancelled task sends nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from dragoman.drivers.connect import connect
from dragoman.drivers.remote import RemoteDriver
from dragoman.errors import CallCancelled
from dragoman.sim.server import Simulator
from tests.drivers.partners import EACH_FORMAT, STREAMED, Partner, fault, talking
from tests.support.waiting import PATIENCE

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
FIRST = (
    b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":'
    b'{"role":"assistant","content":"Once"}}]}\n\n'
)


class Listener:
    """A server that answers a little, and notes when the other side is gone."""

    def __init__(self, answer: bytes) -> None:
        self.answer = answer
        self.received = 0
        self.gone = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        self.received += 1
        writer.write(self.answer)
        await writer.drain()
        while await reader.read(1024):
            pass
        self.gone.set()
        writer.close()

    async def has_answered(self) -> None:
        """Wait until the request has come, and a moment for the answer to arrive."""
        async with asyncio.timeout(PATIENCE):
            while not self.received:  # noqa: ASYNC110 - counted, because some tests expect none
                await asyncio.sleep(0.005)
        await asyncio.sleep(0.1)


def chunked(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


@asynccontextmanager
async def listening(answer: bytes) -> AsyncIterator[tuple[Listener, RemoteDriver]]:
    listener = Listener(answer)
    server = await asyncio.start_server(listener.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    driver = connect("openai-chat/m", base_url=f"http://127.0.0.1:{port}/v1", api_key="k", environment={})
    try:
        yield listener, driver
    finally:
        await driver.close()
        server.close()


@pytest.mark.parametrize("answer", [b"", HEAD, HEAD + chunked(FIRST)], ids=["silence", "head", "first"])
@STREAMED
def test_cancelling_closes_the_connection_at_once(answer: bytes, streamed: bool) -> None:  # noqa: FBT001
    async def run() -> None:
        async with listening(answer) as (listener, driver):
            waiting = asyncio.ensure_future(_result(driver, streamed))
            await listener.has_answered()
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            await asyncio.wait_for(listener.gone.wait(), PATIENCE)

    asyncio.run(run())


async def _result(driver: RemoteDriver, streamed: bool) -> object:  # noqa: FBT001
    return await (driver.stream_query("x").result if streamed else driver.query("x"))


@pytest.mark.parametrize("answer", [b"", HEAD, HEAD + chunked(FIRST)], ids=["silence", "head", "first"])
def test_closing_a_stream_from_another_task_closes_its_connection(answer: bytes) -> None:
    async def run() -> None:
        async with listening(answer) as (listener, driver):
            stream = driver.stream_query("x")
            waiting = asyncio.ensure_future(_awaited(stream))
            await listener.has_answered()
            await stream.close()
            await asyncio.wait_for(listener.gone.wait(), PATIENCE)
            with pytest.raises(CallCancelled) as caught:
                await waiting
            assert caught.value.partial is not None
            assert caught.value.partial.text == ("Once" if FIRST in answer else "")

    asyncio.run(run())


async def _awaited(stream: object) -> object:
    return await stream.result  # type: ignore[attr-defined]


def test_leaving_the_block_closes_the_connection() -> None:
    async def run() -> None:
        async with listening(HEAD + chunked(FIRST)) as (listener, driver):
            async with driver.stream_query("x") as stream:
                async for text in stream:
                    assert text == "Once"
                    break
            await asyncio.wait_for(listener.gone.wait(), PATIENCE)

    asyncio.run(run())


@STREAMED
def test_a_cancelled_task_sends_nothing(streamed: bool) -> None:  # noqa: FBT001
    async def run() -> None:
        async with listening(b"") as (listener, driver):

            async def cancelled() -> None:
                task = asyncio.current_task()
                assert task is not None
                task.cancel()
                await _result(driver, streamed)

            with pytest.raises(asyncio.CancelledError):
                await asyncio.ensure_future(cancelled())
            await asyncio.sleep(0.05)
            assert listener.received == 0

    asyncio.run(run())


@EACH_FORMAT
@STREAMED
def test_nothing_is_left_behind(partner: Partner, streamed: bool, dragoman_sim: Simulator) -> None:  # noqa: FBT001
    async def run() -> None:
        async with talking(partner, dragoman_sim) as driver:
            options = {"headers": fault("stall=3")}
            waiting = asyncio.ensure_future(
                _awaited(driver.stream_query("x", **options)) if streamed else driver.query("x", **options)  # type: ignore[call-overload]
            )
            await asyncio.sleep(0.1)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            # The driver is as good as new.
            assert (await driver.query("Say hello.")).finish_reason == "stop"

    asyncio.run(run())


def test_a_wait_between_two_tries_can_be_cancelled(dragoman_sim: Simulator) -> None:
    dragoman_sim.play({"status": 503, "retry_after": 30, "times": 0})

    async def run() -> None:
        driver = connect("anthropic/claude-sonnet-4-6", base_url=dragoman_sim.url, api_key="k", environment={})
        stream = driver.stream_query("x")
        waiting = asyncio.ensure_future(_awaited(stream))
        async with asyncio.timeout(PATIENCE):
            while not dragoman_sim.requests:  # noqa: ASYNC110 - another thread
                await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        await stream.close()
        with pytest.raises(CallCancelled):
            await asyncio.wait_for(waiting, 20.0)
        await driver.close()

    asyncio.run(run())
    assert len(dragoman_sim.requests) == 1
