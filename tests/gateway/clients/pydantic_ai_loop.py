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
    """A listener makes it stream."""
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


def main():
    given = json.loads(sys.argv[1])
    answers = []
    for case in given["cases"]:
        try:
            answers.append(answer(case, given["questions"], given["weather"]))
        except Exception as error:  # noqa: BLE001 - the test reads what went wrong, and in which case
            answers.append(f"{type(error).__name__}: {error}"[:600])
    print(json.dumps(answers))


main()
