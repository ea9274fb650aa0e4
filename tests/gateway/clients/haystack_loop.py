"""Tool loops with Haystack, for each case of the argument: answers as JSON. It does not import dragoman."""

import os

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"
from every_case import try_each_case
from haystack.components.generators.chat import OpenAIChatGenerator, OpenAIResponsesChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.tools import Tool
from haystack.utils import Secret
from haystack_integrations.components.generators.anthropic import AnthropicChatGenerator
from haystack_integrations.components.generators.google_genai import GoogleGenAIChatGenerator

KEY = Secret.from_token("any")
THINKING = {
    "anthropic-messages": {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 4000},
    "gemini": {"thinking_budget": -1},
    "openai-chat": {"reasoning_effort": "low"},
    "openai-responses": {"reasoning": {"effort": "low"}, "include": ["reasoning.encrypted_content"]},
}
MODELS = {
    "openai-chat": OpenAIChatGenerator,
    "openai-responses": OpenAIResponsesChatGenerator,
    "anthropic-messages": AnthropicChatGenerator,
    "gemini": GoogleGenAIChatGenerator,
}


def answer(asked, questions, weather):
    tool = Tool(
        name="get_weather",
        description="Weather of a city",
        parameters={"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        function=lambda city: weather[city],
    )
    extra = {"ignore_tools_thinking_messages": False} if asked["client"] == "anthropic-messages" else {}
    model = MODELS[asked["client"]](
        api_key=KEY,
        model=asked["model"],
        tools=[tool],
        streaming_callback=(lambda _: None) if asked["streamed"] else None,
        generation_kwargs=THINKING[asked["client"]] if asked.get("thinks") else None,
        **extra,
    )
    messages = []
    for question in questions:
        messages.append(ChatMessage.from_user(question))
        for _ in range(6):
            reply = model.run(messages=messages)["replies"][0]
            messages.append(reply)
            if not reply.tool_calls:
                break
            messages += [
                ChatMessage.from_tool(tool_result=weather[call.arguments["city"]], origin=call)
                for call in reply.tool_calls
            ]
    return reply.text


try_each_case(answer)
