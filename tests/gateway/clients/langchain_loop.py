"""A tool loop with LangChain, for each case of the argument: answers as JSON. It knows nothing of dragoman."""

import json
import sys

from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_google_genai import ChatGoogleGenerativeAI
from langchain_openai import ChatOpenAI

MODELS = {
    "openai-chat": lambda model: ChatOpenAI(model=model),
    "openai-responses": lambda model: ChatOpenAI(model=model, use_responses_api=True),
    "anthropic-messages": lambda model: ChatAnthropic(model=model),
    "gemini": lambda model: ChatGoogleGenerativeAI(model=model),
}


def answer(asked, question, weather):
    @tool
    def get_weather(city: str) -> str:
        """Weather of a city."""
        return weather[city]

    model = MODELS[asked["client"]](asked["model"]).bind_tools([get_weather])
    history = [HumanMessage(question)]
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


def main():
    given = json.loads(sys.argv[1])
    print(json.dumps([answer(case, given["question"], given["weather"]) for case in given["cases"]]))


main()
