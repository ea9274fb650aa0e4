"""The package redis is what says that no Redis answers."""

import asyncio

from dragoman.gateway.state.redis import RedisMeters


async def main() -> str:
    try:
        await RedisMeters("redis://127.0.0.1:1/0").prepare()
    except Exception as error:  # noqa: BLE001 - which one is asserted below
        return f"{type(error).__name__}: {error}"
    return "port 1 has answered"


answer = asyncio.run(main())
assert "127.0.0.1:1" in answer, answer
