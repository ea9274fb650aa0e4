"""A tool loop with pydantic-ai, for each case of the argument: answers as JSON. It knows nothing of dragoman."""

import json
import sys

from pydantic_ai import Agent

NAMES = {
    "openai-chat": "openai-chat",
    "openai-responses": "openai-responses",
    "anthropic-messages": "anthropic",
    "gemini": "google",
}


async def listen(_context, events):
    """That somebody listens makes it stream."""
    async for _ in events:
        pass


def answer(asked, question, weather):
    def get_weather(city: str) -> str:
        """Weather of a city."""
        return weather[city]

    agent = Agent(f"{NAMES[asked['client']]}:{asked['model']}", tools=[get_weather])
    return agent.run_sync(question, event_stream_handler=listen if asked["streamed"] else None).output


def main():
    given = json.loads(sys.argv[1])
    print(json.dumps([answer(case, given["question"], given["weather"]) for case in given["cases"]]))


main()
