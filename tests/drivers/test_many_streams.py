"""Many streams on one driver."""

from __future__ import annotations

import asyncio

from dragoman.sim.server import Simulator
from tests.drivers.partners import EACH_FORMAT, Partner, connections_in_use, talking

MANY = 200


@EACH_FORMAT
def test_two_hundred_streams_at_once(partner: Partner, dragoman_sim: Simulator) -> None:
    dragoman_sim.play({"text": "Once upon a time there was a sea. " * 5, "chunk": 20, "times": 0, "delay": 0.3})

    async def run() -> None:
        async with talking(partner, dragoman_sim) as driver:
            most = 0

            async def one(number: int) -> str:
                nonlocal most
                texts = []
                async for text in driver.stream_query(f"Story {number}"):
                    most = max(most, connections_in_use(driver))
                    texts.append(text)
                return "".join(texts)

            answers = await asyncio.gather(*map(one, range(MANY)))
            assert set(answers) == {"Once upon a time there was a sea. " * 5}
            assert most > MANY // 2

    asyncio.run(run())
    assert len(dragoman_sim.requests) == MANY
