"""A tool loop with LangChain, for each case of the argument: answers as JSON. It does not import dragoman."""

from every_case import try_each_case
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_google_genai import ChatGoogleGenerativeAI
from langchain_openai import ChatOpenAI

MODELS = {
    "openai-chat": lambda model: ChatOpenAI(model=model),
    "openai-responses": lambda model: ChatOpenAI(model=model, use_responses_api=True),
    "anthropic-messages": lambda model, **more: ChatAnthropic(model=model, **more),
    "gemini": lambda model: ChatGoogleGenerativeAI(model=model),
}


THINKING = {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 4000}


def answer(asked, questions, weather):
    @tool
    def get_weather(city: str) -> str:
        """Weather of a city."""
        return weather[city]

    more = THINKING if asked.get("thinks") and asked["client"] == "anthropic-messages" else {}
    model = MODELS[asked["client"]](asked["model"], **more).bind_tools([get_weather])
    history = []
    for question in questions:
        history.append(HumanMessage(question))
        while True:
            message = _streamed(model, history) if asked["streamed"] else model.invoke(history)
            history.append(message)
            if not message.tool_calls:
                break
            history.extend(
                ToolMessage(get_weather.invoke(call["args"]), tool_call_id=call["id"], name=call["name"])
                for call in message.tool_calls
            )
    return message.text


def _streamed(model, history):
    whole = None
    for chunk in model.stream(history):
        whole = chunk if whole is None else whole + chunk
    return whole


try_each_case(answer)
