"""A tool loop with pydantic-ai, for each case of the argument: answers as JSON. It does not import dragoman."""

from every_case import try_each_case
from pydantic_ai import Agent

NAMES = {
    "openai-chat": "openai-chat",
    "openai-responses": "openai-responses",
    "anthropic-messages": "anthropic",
    "gemini": "google",
}


async def listen(_context, events):
    """Do nothing. An event handler makes the agent use streams."""
    async for _ in events:
        pass


def answer(asked, questions, weather):
    def get_weather(city: str) -> str:
        """Weather of a city."""
        return weather[city]

    agent = Agent(f"{NAMES[asked['client']]}:{asked['model']}", tools=[get_weather])
    history = None
    for question in questions:
        handler = listen if asked["streamed"] else None
        result = agent.run_sync(question, event_stream_handler=handler, message_history=history)
        history = result.all_messages()
    return result.output


try_each_case(answer)
