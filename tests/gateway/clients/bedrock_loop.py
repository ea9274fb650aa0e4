"""A tool loop with ChatBedrock of langchain-aws, by InvokeModel: answers as JSON. It does not import dragoman."""

from every_case import try_each_case
from langchain_aws import ChatBedrock
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool


def answer(asked, questions, weather):
    @tool
    def get_weather(city: str) -> str:
        """Weather of a city."""
        return weather[city]

    # As for an inference profile, whose name contains neither vendor nor model: without both it sends no tools.
    named = {"provider": "anthropic", "base_model": "anthropic.claude-sonnet-4-5-20250929-v1:0"}
    model = ChatBedrock(model=asked["model"], max_tokens=2000, **named).bind_tools([get_weather])
    history = [*map(HumanMessage, questions)]
    while True:
        message = _streamed(model, history) if asked["streamed"] else model.invoke(history)
        history.append(message)
        if not message.tool_calls:
            return message.text
        history.extend(
            ToolMessage(get_weather.invoke(call["args"]), tool_call_id=call["id"], name=call["name"])
            for call in message.tool_calls
        )


def _streamed(model, history):
    whole = None
    for chunk in model.stream(history):
        whole = chunk if whole is None else whole + chunk
    return whole


try_each_case(answer)
