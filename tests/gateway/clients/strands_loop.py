"""Tool loops with Strands Agents, for each case of the argument: answers as JSON. It does not import dragoman."""

import asyncio
import os

from every_case import try_each_case
from strands import Agent, tool
from strands.models.anthropic import AnthropicModel
from strands.models.gemini import GeminiModel
from strands.models.openai import OpenAIModel

THINKING = {"thinking": {"type": "enabled", "budget_tokens": 1024}}


def anthropic(asked):
    given = {"params": THINKING} if asked.get("thinks") else {}
    client = {"base_url": os.environ["ANTHROPIC_BASE_URL"], "api_key": "any", "max_retries": 0}
    return AnthropicModel(client_args=client, model_id=asked["model"], max_tokens=4000, **given)


def gemini(asked):
    given = {"params": {"thinking_config": {"include_thoughts": True}}} if asked.get("thinks") else {}
    client = {"api_key": "any", "http_options": {"base_url": os.environ["GOOGLE_GEMINI_BASE_URL"]}}
    return GeminiModel(client_args=client, model_id=asked["model"], **given)


def openai(asked):
    given = {"params": {"reasoning_effort": "low"}} if asked.get("thinks") else {}
    client = {"base_url": os.environ["OPENAI_BASE_URL"], "api_key": "any", "max_retries": 0}
    return OpenAIModel(client_args=client, model_id=asked["model"], **given)


MODELS = {"openai-chat": openai, "anthropic-messages": anthropic, "gemini": gemini}


def answer(asked, questions, weather):
    return asyncio.run(run(asked, questions, weather))


async def run(asked, questions, weather):
    @tool
    def get_weather(city: str) -> str:
        """Weather of a city."""
        return weather[city]

    agent = Agent(model=MODELS[asked["client"]](asked), tools=[get_weather], callback_handler=None)
    for question in questions:
        result = await agent.invoke_async(question)
    return str(result).strip()


try_each_case(answer)
