"""Many waits, one timer."""

from __future__ import annotations

import asyncio
import time
from math import inf

import pytest

from dragoman.drivers.deadlines import TICK, Deadlines
from tests.support.waiting import PATIENCE


def test_a_wait_ends_in_time_or_in_an_error() -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()
        deadlines = Deadlines(loop)
        assert await deadlines.wait(asyncio.sleep(0.01, "done"), loop.time() + 1) == "done"
        assert await deadlines.wait(asyncio.sleep(0.01, "done"), inf) == "done"
        waited = []
        for _ in range(5):
            started = time.monotonic()
            with pytest.raises(TimeoutError):
                await deadlines.wait(asyncio.sleep(PATIENCE), loop.time() + 0.1)
            waited.append(time.monotonic() - started)
        assert 0.1 <= min(waited) < 0.1 + 10 * TICK
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0
        # The task is as good as before.
        await asyncio.sleep(0)
        deadlines.close()

    asyncio.run(run())


def test_many_waits_end_each_in_its_own_time() -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()
        deadlines = Deadlines(loop)

        async def one(number: int) -> bool:
            try:
                is_late = number % 2 == 1
                await deadlines.wait(asyncio.sleep(60 if is_late else 0.3), loop.time() + (0.05 if is_late else 60))
            except TimeoutError:
                return False
            return True

        assert await asyncio.gather(*map(one, range(500))) == [number % 2 == 0 for number in range(500)]
        deadlines.close()

    asyncio.run(run())


def test_a_cancellation_from_outside_is_not_a_timeout() -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()
        deadlines = Deadlines(loop)
        waiting = asyncio.ensure_future(deadlines.wait(asyncio.sleep(60), loop.time() + 60))
        await asyncio.sleep(0.01)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

        async def swallowed_one() -> str:
            """An earlier cancellation that was caught is not a timeout of ours."""
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asyncio.sleep(0)
            try:
                await deadlines.wait(asyncio.sleep(60), loop.time() + 0.05)
            except TimeoutError:
                return "timed out"
            return "finished"

        assert await asyncio.ensure_future(swallowed_one()) == "timed out"
        async with asyncio.timeout(PATIENCE):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await deadlines.wait(asyncio.sleep(60), loop.time() + 60)
        deadlines.close()

    asyncio.run(run())


def test_without_waits_there_is_no_timer() -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()
        deadlines = Deadlines(loop)
        await deadlines.wait(asyncio.sleep(0), loop.time() + 60)
        await asyncio.sleep(3 * TICK)
        assert deadlines._timer is None  # noqa: SLF001 - the timer is not visible otherwise

    asyncio.run(run())
