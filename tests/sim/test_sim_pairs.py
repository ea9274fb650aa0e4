"""Both halves at once: a client of one format talks through dragoman to the simulator of another.

What dragoman writes has to pass the target's rules (law 3); what the target signed has to come back to it through a
client that knows nothing of it (law 6); and the conversation has to end with the answer that a native client gets.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

import dragoman
from dragoman.sim.server import Simulator
from tests.sim.wire import DOORS, SCHEMA, Body, send
from tests.support.promises import promise

FORMATS = sorted(set(dragoman.formats()) & set(DOORS))
QUESTION = "What is the weather in Paris and in Oslo?"
WEATHER = {"Paris": "clear sky", "Oslo": "heavy rain"}
ANSWER = "get_weather (Paris) says: clear sky. get_weather (Oslo) says: heavy rain."

# Models that reason, and therefore sign, where there are such.
MODELS: Mapping[str, str] = {
    "openai-chat": "gpt-5",
    "openai-responses": "gpt-5",
    "anthropic-messages": "claude-sonnet-5",
    "gemini": "gemini-3.6-flash",
    "vertex": "gemini-3.6-flash",
    "ollama-chat": "qwen3",
    "cohere-chat": "command-a-reasoning-08-2025",
    "gemini-interactions": "gemini-3.6-flash",
    "bedrock-converse": "anthropic.claude-opus-4-8",
}


# --- how a client of each format asks, and goes on ----------------------------------------------------------------


def _chat_next(body: Body, answer: Any) -> Body:
    message = answer["choices"][0]["message"]
    results = [
        {"role": "tool", "tool_call_id": call["id"], "content": _weather(call["function"]["arguments"])}
        for call in message["tool_calls"]
    ]
    return {**body, "messages": [*body["messages"], _without_nulls(message), *results]}


def _responses_next(body: Body, answer: Any) -> Body:
    items = [{key: value for key, value in item.items() if key != "status"} for item in answer["output"]]
    outputs = [
        {"type": "function_call_output", "call_id": item["call_id"], "output": _weather(item["arguments"])}
        for item in items
        if item["type"] == "function_call"
    ]
    return {**body, "input": [*body["input"], *items, *outputs]}


def _interactions_next(body: Body, answer: Any) -> Body:
    results = [
        {
            "type": "function_result",
            "call_id": step["id"],
            "name": step["name"],
            "result": _weather(step["arguments"]),
        }
        for step in answer["steps"]
        if step["type"] == "function_call"
    ]
    return {**body, "input": [*body["input"], *answer["steps"], *results]}


def _messages_next(body: Body, answer: Any) -> Body:
    results = [
        {"type": "tool_result", "tool_use_id": block["id"], "content": _weather(block["input"])}
        for block in answer["content"]
        if block["type"] == "tool_use"
    ]
    turns = [{"role": "assistant", "content": answer["content"]}, {"role": "user", "content": results}]
    return {**body, "messages": [*body["messages"], *turns]}


def _gemini_next(body: Body, answer: Any) -> Body:
    content = answer["candidates"][0]["content"]
    calls = [part["functionCall"] for part in content["parts"] if "functionCall" in part]
    results = [
        {
            "functionResponse": {
                **({"id": call["id"]} if "id" in call else {}),
                "name": call["name"],
                "response": {"output": _weather(call["args"])},
            }
        }
        for call in calls
    ]
    return {**body, "contents": [*body["contents"], content, {"role": "user", "parts": results}]}


def _ollama_next(body: Body, answer: Any) -> Body:
    message = answer["message"]
    results = [
        {
            "role": "tool",
            "tool_name": call["function"]["name"],
            **({"tool_call_id": call["id"]} if "id" in call else {}),
            "content": _weather(call["function"]["arguments"]),
        }
        for call in message["tool_calls"]
    ]
    return {**body, "messages": [*body["messages"], message, *results]}


def _cohere_next(body: Body, answer: Any) -> Body:
    message = answer["message"]
    results = [
        {"role": "tool", "tool_call_id": call["id"], "content": _weather(call["function"]["arguments"])}
        for call in message["tool_calls"]
    ]
    return {**body, "messages": [*body["messages"], message, *results]}


def _converse_next(body: Body, answer: Any) -> Body:
    message = answer["output"]["message"]
    results = [
        {
            "toolResult": {
                "toolUseId": block["toolUse"]["toolUseId"],
                "content": [{"text": _weather(block["toolUse"]["input"])}],
            }
        }
        for block in message["content"]
        if "toolUse" in block
    ]
    return {**body, "messages": [*body["messages"], message, {"role": "user", "content": results}]}


def _weather(arguments: Any) -> str:
    return WEATHER[(json.loads(arguments) if isinstance(arguments, str) else arguments)["city"]]


def _without_nulls(message: Body) -> Body:
    """As SDKs send an answer back."""
    kept = ("annotations", "refusal", "audio")
    return {key: value for key, value in message.items() if key not in kept and value is not None}


NEXT: dict[str, Callable[[Body, Any], Body]] = {
    "openai-chat": _chat_next,
    "openai-responses": _responses_next,
    "anthropic-messages": _messages_next,
    "gemini": _gemini_next,
    "vertex": _gemini_next,
    "ollama-chat": _ollama_next,
    "cohere-chat": _cohere_next,
    "gemini-interactions": _interactions_next,
    "bedrock-converse": _converse_next,
}


def first(source: str) -> Body:
    body = DOORS[source].ask_with_tool(QUESTION)
    if source == "openai-responses":
        body |= {"input": [{"role": "user", "content": QUESTION}], "store": False}
    if source in ("gemini", "vertex"):
        body["tools"] = [{"functionDeclarations": [{"name": "get_weather", "parametersJsonSchema": SCHEMA}]}]
    return body | {"model": MODELS[source]} if "model" in body else body


def exchange(simulator: Simulator, body: Body, source: str, target: str, *, streamed: bool) -> Any:
    """One round through dragoman, as its gateway would do it."""
    sent = {**body, "stream": True} if streamed and source not in ("gemini", "vertex", "bedrock-converse") else body
    request = dragoman.decode_request(sent, source)
    encoded = dragoman.translate_request(sent, source=source, target=target, model=MODELS[target])
    path = encoded.path
    if streamed and target in ("gemini", "vertex"):
        path = path.replace(":generateContent", ":streamGenerateContent").split("?")[0] + "?alt=sse"
    if streamed and target == "bedrock-converse":
        path = path.replace("/converse-stream", "/converse").replace("/converse", "/converse-stream")
    path = _address(path, target)
    answer = send(simulator, path, encoded.content, {**DOORS[target].headers, **encoded.headers})
    assert answer.status == 200, (encoded.content, answer.body)
    if streamed and answer.headers["content-type"] != "application/json":
        decoder = dragoman.StreamDecoder(target)
        completion = dragoman.accumulate([*decoder.feed(answer.body), *decoder.close()])
        return json.loads(dragoman.encode_response(completion, source).content)
    return json.loads(dragoman.translate_response(answer.body, source=target, target=source, request=request).content)


def _address(path: str, target: str) -> str:
    """What comes before the path in a base URL, and the places that a user fills in."""
    base = "/v1" if target.startswith("openai-") else ""
    return base + path.replace("{project}", "p").replace("{location}", "global")


@promise("law:3-legality", "law:6-owed-back")
@pytest.mark.parametrize("target", FORMATS)
@pytest.mark.parametrize("source", FORMATS)
@pytest.mark.parametrize("streamed", [False, True])
def test_a_tool_conversation_crosses(dragoman_sim: Simulator, source: str, target: str, *, streamed: bool) -> None:
    body = first(source)
    called = exchange(dragoman_sim, body, source, target, streamed=streamed)
    following = NEXT[source](body, called)
    answered = exchange(dragoman_sim, following, source, target, streamed=streamed)
    assert DOORS[source].text_of(answered) == ANSWER


# --- an error and a picture among the results ---------------------------------------------------------------------

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
FAILED = "no station there"


def _rich_messages(body: Body, answer: Any) -> Body:
    following = _messages_next(body, answer)
    first_result, second_result = following["messages"][-1]["content"]
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
    first_result["content"] = [{"type": "text", "text": "see the picture"}, picture]
    second_result |= {"content": FAILED, "is_error": True}
    return following


def _rich_gemini(body: Body, answer: Any) -> Body:
    following = _gemini_next(body, answer)
    first_result, second_result = following["contents"][-1]["parts"]
    picture = {"inlineData": {"mimeType": "image/png", "data": PIXEL}}
    first_result["functionResponse"] |= {"response": {"output": "see the picture"}, "parts": [picture]}
    second_result["functionResponse"]["response"] = {"error": FAILED}
    return following


def _rich_responses(body: Body, answer: Any) -> Body:
    following = _responses_next(body, answer)
    picture = {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}", "detail": "auto"}
    following["input"][-2]["output"] = [{"type": "input_text", "text": "see the picture"}, picture]
    following["input"][-1]["output"] = json.dumps({"error": FAILED})
    return following


def _rich_converse(body: Body, answer: Any) -> Body:
    following = _converse_next(body, answer)
    first_result, second_result = (block["toolResult"] for block in following["messages"][-1]["content"])
    first_result["content"] = [
        {"text": "see the picture"},
        {"image": {"format": "png", "source": {"bytes": PIXEL}}},
    ]
    second_result |= {"content": [{"text": FAILED}], "status": "error"}
    return following


RICH: dict[str, Callable[[Body, Any], Body]] = {
    "anthropic-messages": _rich_messages,
    "gemini": _rich_gemini,
    "vertex": _rich_gemini,
    "openai-responses": _rich_responses,
    "bedrock-converse": _rich_converse,
}


@promise("law:3-legality", "law:6-owed-back")
@pytest.mark.parametrize("target", FORMATS)
@pytest.mark.parametrize("source", RICH)
@pytest.mark.parametrize("streamed", [False, True])
def test_an_error_and_a_picture_cross(dragoman_sim: Simulator, source: str, target: str, *, streamed: bool) -> None:
    body = first(source)
    following = RICH[source](body, exchange(dragoman_sim, body, source, target, streamed=streamed))
    answered = DOORS[source].text_of(exchange(dragoman_sim, following, source, target, streamed=streamed))
    assert "see the picture" in answered
    assert FAILED in answered
    assert PIXEL in dragoman_sim.requests[-1].body.decode()
