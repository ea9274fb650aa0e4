"""What the public Open Responses compliance suite checks, in cases of our own, whatever the upstream."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from dragoman.sim.server import Simulator
from tests.gateway.running import RunningGateway
from tests.judges import open_responses as judge
from tests.support.promises import promise

MODELS = {
    "openai": "as-openai-responses/gpt-5",
    "anthropic": "as-anthropic-messages/claude-sonnet-5",
    "gemini": "as-gemini/gemini-3.6-flash",
    "ollama": "as-ollama-chat/qwen3-vl",
}
WEATHER = {
    "type": "function",
    "name": "get_weather",
    "description": "Weather of a place",
    "parameters": {"type": "object", "properties": {"location": {"type": "string"}}, "required": ["location"]},
}
PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5Er"
    "kJggg=="
)
EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)

pytestmark = [promise("gateway:open-responses"), pytest.mark.usefixtures("gateway")]


@pytest.fixture(params=MODELS, scope="module")
def model(request: pytest.FixtureRequest) -> str:
    return MODELS[request.param]


@pytest.fixture(scope="module")
def http(shared_gateway: RunningGateway) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"{shared_gateway.url}/v1", headers={"authorization": "Bearer any"}) as client:
        yield client


def say(text: str, role: str = "user") -> dict[str, Any]:
    return {"type": "message", "role": role, "content": text}


def create(http: httpx.Client, **body: Any) -> judge.Resource:
    answer = http.post("/responses", json=body)
    assert answer.status_code == 200, answer.text
    Response.model_validate(answer.json(), strict=False)
    return judge.check_response(answer.json())


def stream(http: httpx.Client, **body: Any) -> tuple[list[dict[str, Any]], judge.Resource]:
    """All events, each one judged, and the response of the last."""
    answer = http.post("/responses", json={**body, "stream": True})
    assert answer.status_code == 200, answer.text
    return judged(event_data(answer.text))


def event_data(text: str) -> list[dict[str, Any]]:
    return [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: ")]


def judged(events: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], judge.Resource]:
    for number, event in enumerate(events):
        judge.check_event(event)
        EVENT.validate_python(event)
        assert event["sequence_number"] == number
    return events, judge.check_response(events[-1]["response"])


def test_a_text(http: httpx.Client, model: str) -> None:
    response = create(http, model=model, input=[say("Greet me in three words.")])
    assert (response.status, bool(response.output)) == ("completed", True)


def test_a_streamed_text(http: httpx.Client, model: str) -> None:
    events, response = stream(http, model=model, input=[say("Count to five.")])
    assert response.status == "completed"
    assert {"response.created", "response.in_progress", "response.completed"} <= {event["type"] for event in events}


def test_a_system_message(http: httpx.Client, model: str) -> None:
    response = create(http, model=model, input=[say("Talk like a sailor.", "system"), say("Greet me.")])
    assert (response.status, bool(response.output)) == ("completed", True)


def test_a_call(http: httpx.Client, model: str, dragoman_sim: Simulator) -> None:
    dragoman_sim.play({"calls": [{"name": "get_weather", "arguments": {"location": "Lisbon"}}]})
    response = create(http, model=model, input=[say("Weather in Lisbon?")], tools=[WEATHER])
    calls = [item for item in response.output if isinstance(item, judge.FunctionCall)]
    assert [(call.name, json.loads(call.arguments)) for call in calls] == [("get_weather", {"location": "Lisbon"})]


def test_a_streamed_call(http: httpx.Client, model: str, dragoman_sim: Simulator) -> None:
    dragoman_sim.play({"calls": [{"name": "get_weather", "arguments": {"location": "Lisbon"}}]})
    events, _ = stream(http, model=model, input=[say("Weather in Lisbon?")], tools=[WEATHER])
    kinds = [event["type"] for event in events]
    assert {"response.function_call_arguments.delta", "response.function_call_arguments.done"} <= set(kinds)
    for step in ("added", "done"):
        items = [event["item"] for event in events if event["type"] == f"response.output_item.{step}"]
        assert "function_call" in [item["type"] for item in items]


def test_an_image(http: httpx.Client, model: str) -> None:
    image = {"type": "input_image", "image_url": PIXEL}
    content = [{"type": "input_text", "text": "What is this?"}, image]
    response = create(http, model=model, input=[{"type": "message", "role": "user", "content": content}])
    assert (response.status, bool(response.output)) == ("completed", True)


def test_several_turns(http: httpx.Client, model: str) -> None:
    history = [say("I am Ada."), say("Hello Ada.", "assistant"), say("Who am I?")]
    response = create(http, model=model, input=history)
    assert (response.status, bool(response.output)) == ("completed", True)


SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}
ASKED: dict[str, Any] = {
    "instructions": "Be brief.",
    "max_output_tokens": 300,
    "max_tool_calls": 3,
    "metadata": {"a": "b"},
    "parallel_tool_calls": False,
    "prompt_cache_key": "k",
    "reasoning": {"effort": "low", "summary": None},
    "safety_identifier": "s",
    "tool_choice": "none",
    "truncation": "auto",
    "user": "u",
    "store": False,
}


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_the_request_is_repeated(http: httpx.Client, model: str, *, streamed: bool) -> None:
    form = {"type": "json_schema", "name": "f", "schema": SCHEMA}
    body = {**ASKED, "model": model, "input": "In JSON, please.", "tools": [WEATHER], "text": {"format": form}}
    events: list[dict[str, Any]] = []
    if streamed:
        events, _ = stream(http, **body)
        told = [event["response"] for event in events if "response" in event]
        assert len(told) == 3
    else:
        told = [http.post("/responses", json=body).json()]
    for response in told:
        judge.check_response(response)
        assert {name: response[name] for name in ASKED} == ASKED
        assert [tool["name"] for tool in response["tools"]] == ["get_weather"]
        assert response["text"]["format"] == {**form, "description": None, "strict": False}
        assert response["text"]["verbosity"] == "medium"


@pytest.mark.parametrize("name", ["anthropic", "gemini", "ollama"])
def test_settings_of_sampling_are_repeated(http: httpx.Client, name: str) -> None:
    asked = {"temperature": 0.5, "top_p": 0.25, "presence_penalty": 0.5, "frequency_penalty": 0.25, "top_logprobs": 2}
    told = http.post("/responses", json={"model": MODELS[name], "input": "Hello", **asked}).json()
    assert {key: told[key] for key in asked} == asked


def test_credentials_of_tools_are_not_repeated(http: httpx.Client, dragoman_sim: Simulator) -> None:
    server = {"type": "mcp", "server_label": "s", "server_url": "https://a.example", "require_approval": "never"}
    secret = {"authorization": "secret-1", "headers": {"X-Key": "secret-2"}}
    body = {"model": MODELS["gemini"], "input": "Hello", "tools": [{**server, **secret}]}
    told = http.post("/responses", json=body)
    assert dragoman_sim.requests
    assert "secret" not in told.text
    assert told.json()["tools"] == [{**server, "headers": {"X-Key": "<redacted>"}}]
