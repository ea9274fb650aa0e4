"""Tool loops with litellm's SDK, for each case of the argument: answers as JSON. It does not import dragoman."""

import gc
import json
import os

import litellm
from every_case import try_each_case

litellm.telemetry = False
# litellm leaves a stream's iterator to the garbage collector. If that runs while httpcore holds the lock of its pool,
# closing the iterator waits for this lock forever, so the collector runs only between requests. Imported modules are
# frozen, because examining litellm's modules before each request took most of the time.
gc.disable()
gc.freeze()
PREFIXES = {"openai-chat": "openai/", "anthropic-messages": "anthropic/", "gemini": "gemini/"}
BASES = {
    "openai-chat": "OPENAI_BASE_URL",
    "anthropic-messages": "ANTHROPIC_BASE_URL",
    "gemini": "GOOGLE_GEMINI_BASE_URL",
}
TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Weather of a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


def ask(asked, messages):
    thinks = {"reasoning_effort": "low"} if asked.get("thinks") else {}
    base = os.environ[BASES[asked["client"]]]
    if asked["client"] == "gemini":
        base += "/v1beta"
    gc.collect()
    answer = litellm.completion(
        model=PREFIXES[asked["client"]] + asked["model"],
        messages=messages,
        tools=[TOOL],
        stream=asked["streamed"],
        api_base=base,
        api_key="any",
        num_retries=0,
        drop_params=True,
        **thinks,
    )
    if asked["streamed"]:
        answer = litellm.stream_chunk_builder(list(answer), messages=messages)
    return answer.choices[0].message


def answer(asked, questions, weather):
    messages = []
    for question in questions:
        messages.append({"role": "user", "content": question})
        while True:
            message = ask(asked, messages)
            messages.append(message.model_dump(exclude_none=True))
            if not message.tool_calls:
                break
            for call in message.tool_calls:
                city = json.loads(call.function.arguments)["city"]
                messages.append({"role": "tool", "tool_call_id": call.id, "content": weather[city]})
    return message.content


try_each_case(answer)
