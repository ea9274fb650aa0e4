"""An agent with two tools, and its events as they happen.

python examples/agent.py anthropic/claude-sonnet-5 "What is the weather in Oslo?"
"""

import asyncio
import sys

import dragoman


@dragoman.tool
def get_weather(city: str) -> dict[str, object]:
    """Weather of a city."""
    return {"city": city, "degrees": 12, "sky": "rain"}


@dragoman.tool
def get_time(city: str) -> str:
    """Local time of a city."""
    return f"It is noon in {city}"


async def main(model: str = "anthropic/claude-sonnet-5", question: str = "What is the weather in Oslo?") -> None:
    async with dragoman.Agent(dragoman.connect(model), tools=[get_weather, get_time]) as agent:
        async for event in agent.run_stream(question):
            match event.type:
                case "tool_call":
                    print("->", event.tool, event.args)
                case "tool_result":
                    print("<-", event.result)
                case "final":
                    print(event.content)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
