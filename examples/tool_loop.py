"""One tool loop for every provider: each model that you name takes one turn of the same conversation.

python examples/tool_loop.py anthropic/claude-sonnet-5 openai/gpt-5.6
"""

import sys

from dragoman import Message, ToolDefinition, ToolResult, connect_sync

CITIES = {"Oslo": {"degrees": 12, "sky": "rain"}, "Paris": {"degrees": 21, "sky": "clear"}}
WEATHER = ToolDefinition(
    "get_weather",
    "Weather of a city",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)
MODELS = ("anthropic/claude-sonnet-5", "openai/gpt-5.6")
QUESTIONS = ("What is the weather in Oslo?", "And what is the weather in Paris?")


def main(*models: str) -> None:
    history: list[Message] = []
    for model, question in zip(models or MODELS, QUESTIONS, strict=False):
        history.append(Message.user(question))
        with connect_sync(model) as driver:
            answer = driver.query(history, tools=[WEATHER])
            while answer.tool_calls:
                results = [ToolResult.data(call, CITIES[call.arguments["city"]]) for call in answer.tool_calls]
                history += [answer.message, Message.tool(results)]
                answer = driver.query(history, tools=[WEATHER])
        history.append(answer.message)
        print(f"{model}: {answer.content}")


if __name__ == "__main__":
    main(*sys.argv[1:])
