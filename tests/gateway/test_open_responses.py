"""What the public Open Responses compliance suite checks, in cases of our own, with upstreams of every family."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest
from openai import OpenAI
from openai.types.responses import Response, ResponsesServerEvent, ResponseStreamEvent
from pydantic import TypeAdapter
from websockets.exceptions import InvalidStatus
from websockets.sync.client import ClientConnection, connect

from dragoman.sim.server import Simulator
from tests.gateway.running import RunningGateway
from tests.judges import open_responses as judge
from tests.support.promises import promise
from tests.support.waiting import PATIENCE

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
MESSAGE: TypeAdapter[Any] = TypeAdapter(ResponsesServerEvent)

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
    """Return all events, each of them checked, and the response of the last one."""
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
SETTINGS: dict[str, Any] = {
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
def test_a_response_repeats_the_settings_of_its_request(http: httpx.Client, model: str, *, streamed: bool) -> None:
    form = {"type": "json_schema", "name": "f", "schema": SCHEMA}
    body = {**SETTINGS, "model": model, "input": "In JSON, please.", "tools": [WEATHER], "text": {"format": form}}
    events: list[dict[str, Any]] = []
    if streamed:
        events, _ = stream(http, **body)
        responses = [event["response"] for event in events if "response" in event]
        assert len(responses) == 3
    else:
        responses = [http.post("/responses", json=body).json()]
    for response in responses:
        judge.check_response(response)
        assert {name: response[name] for name in SETTINGS} == SETTINGS
        assert [tool["name"] for tool in response["tools"]] == ["get_weather"]
        assert response["text"]["format"] == {**form, "description": None, "strict": False}
        assert response["text"]["verbosity"] == "medium"


@pytest.mark.parametrize("name", ["anthropic", "gemini", "ollama"])
def test_a_response_repeats_sampling_settings(http: httpx.Client, name: str) -> None:
    settings = {
        "temperature": 0.5,
        "top_p": 0.25,
        "presence_penalty": 0.5,
        "frequency_penalty": 0.25,
        "top_logprobs": 2,
    }
    responses = http.post("/responses", json={"model": MODELS[name], "input": "Hello", **settings}).json()
    assert {key: responses[key] for key in settings} == settings


def test_a_response_does_not_repeat_credentials_of_tools(http: httpx.Client, dragoman_sim: Simulator) -> None:
    server = {"type": "mcp", "server_label": "s", "server_url": "https://a.example", "require_approval": "never"}
    secret = {"authorization": "secret-1", "headers": {"X-Key": "secret-2"}}
    body = {"model": MODELS["gemini"], "input": "Hello", "tools": [{**server, **secret}]}
    responses = http.post("/responses", json=body)
    assert dragoman_sim.requests
    assert "secret" not in responses.text
    assert responses.json()["tools"] == [{**server, "headers": {"X-Key": "<redacted>"}}]


# ── WebSocket mode ──


class Line:
    """One connection. Each turn reads up to its last event."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection

    def turn(self, **body: Any) -> list[dict[str, Any]]:
        self.connection.send(json.dumps({"type": "response.create", **body}))
        return self.rest()

    def rest(self) -> list[dict[str, Any]]:
        events: list[dict[str, Any]] = []
        while not events or events[-1]["type"] not in ENDS:
            events.append(json.loads(self.connection.recv(timeout=PATIENCE)))
            judge.check_event(events[-1])
            MESSAGE.validate_python(events[-1])
        return events

    def answer(self, **body: Any) -> judge.Resource:
        return judged(self.turn(**body))[1]

    def refusal(self, **body: Any) -> Any:
        return self.turn(**body)[-1]["error"]["code"]


ENDS = {"response.completed", "response.incomplete", "response.failed", "error"}


@pytest.fixture
def dial(shared_gateway: RunningGateway) -> Iterator[Callable[[], Line]]:
    url = shared_gateway.url.replace("http://", "ws://") + "/v1/responses"
    with ExitStack() as stack:
        yield lambda: Line(
            stack.enter_context(connect(url, additional_headers={"authorization": "Bearer any"}, proxy=None))
        )


def test_turns_of_one_connection(dial: Callable[[], Line], model: str) -> None:
    line = dial()
    for _ in range(2):
        response = line.answer(model=model, store=False, input=[say("Count to three.")])
        assert (response.status, bool(response.output)) == ("completed", True)


def test_unstored_responses_are_continued_over_the_same_connection_only(
    dial: Callable[[], Line], model: str, dragoman_sim: Simulator
) -> None:
    line = dial()
    first = line.answer(model=model, store=False, input="The word is cobalt.")
    second = line.answer(model=model, store=False, previous_response_id=first.id, input="Which word?")
    assert second.previous_response_id == first.id
    assert "cobalt" in dragoman_sim.requests[-1].body.decode()
    third = line.answer(model=model, store=False, previous_response_id=second.id, input="And?")
    assert third.status == "completed"
    assert "cobalt" in dragoman_sim.requests[-1].body.decode()

    other = dial()
    again = {"model": model, "store": False, "input": "Which word?"}
    assert other.refusal(previous_response_id=third.id, **again) == "previous_response_not_found"
    assert other.answer(**again).status == "completed"


def test_stored_responses_are_continued_over_another_connection(
    dial: Callable[[], Line], model: str, dragoman_sim: Simulator
) -> None:
    first = dial().answer(model=model, input="The word is cobalt.")
    second = dial().answer(model=model, input="Which word?", previous_response_id=first.id)
    sent = dragoman_sim.requests[-1]
    assert second.previous_response_id == first.id
    assert "cobalt" in sent.body.decode() or sent.json["previous_response_id"] == first.id


def test_generate_false_keeps_the_input_for_the_next_turn(
    dial: Callable[[], Line], model: str, dragoman_sim: Simulator
) -> None:
    line = dial()
    warm = line.answer(model=model, store=False, generate=False, input="The word is cobalt.")
    assert (warm.status, warm.output, dragoman_sim.requests) == ("completed", [], [])
    line.answer(model=model, store=False, previous_response_id=warm.id, input="Which word?")
    assert "cobalt" in dragoman_sim.requests[-1].body.decode()


def test_an_unknown_previous_response_is_refused(dial: Callable[[], Line], model: str) -> None:
    code = dial().refusal(model=model, store=False, previous_response_id="resp_missing", input="Hello")
    assert code == "previous_response_not_found"


def test_the_previous_response_of_a_failed_turn_is_forgotten(
    dial: Callable[[], Line], model: str, dragoman_sim: Simulator
) -> None:
    line = dial()
    first = line.answer(model=model, store=False, input="The word is cobalt.")
    dragoman_sim.play({"error": "server"}, {"error": "server"}, {"error": "server"})
    settings = {"model": model, "store": False, "previous_response_id": first.id}
    assert line.turn(**settings, input="Fail, please.")[-1]["type"] == "error"
    dragoman_sim.play()
    assert line.refusal(**settings, input="Which word?") == "previous_response_not_found"


def test_a_result_without_its_call_fails(dial: Callable[[], Line], model: str) -> None:
    line = dial()
    first = line.answer(model=model, store=False, input="The word is cobalt.")
    orphan = [{"type": "function_call_output", "call_id": "call_missing", "output": "No such call."}]
    settings = {"model": model, "store": False, "previous_response_id": first.id}
    assert line.turn(**settings, input=orphan)[-1]["type"] in {"error", "response.failed"}
    assert line.refusal(**settings, input="Which word?") == "previous_response_not_found"


def test_streams_of_one_connection(dial: Callable[[], Line], model: str, dragoman_sim: Simulator) -> None:
    dragoman_sim.play({"text": "late", "delay": 0.3}, {"text": "early"})
    line = dial()
    for lane in ("a", "b"):
        create = {"type": "response.create", "stream_id": lane, "model": model, "store": False, "input": "Hello"}
        line.connection.send(json.dumps(create))
    events = line.rest() + line.rest()
    assert {event["stream_id"] for event in events} == {"a", "b"}
    ended = [event["stream_id"] for event in events if event["type"] == "response.completed"]
    assert sorted(ended) == ["a", "b"]


def test_an_invalid_event_is_refused_and_the_connection_stays_open(dial: Callable[[], Line], model: str) -> None:
    line = dial()
    for message in ("nonsense", '{"type": "session.update"}', '{"type":"response.create","background":true}'):
        line.connection.send(message)
        assert line.rest()[-1]["error"]["type"] == "invalid_request_error"
    steer = {"type": "response.steer", "previous_response_id": "resp_x", "input": "Faster!"}
    line.connection.send(json.dumps(steer))
    failed = json.loads(line.connection.recv(timeout=PATIENCE))
    assert (failed["type"], failed["error"]["code"]) == ("response.steer.failed", "steering_not_supported")
    assert line.answer(model=model, store=False, input="Hello").status == "completed"


def test_compaction_begins_another_chain(
    http: httpx.Client, dial: Callable[[], Line], model: str, dragoman_sim: Simulator
) -> None:
    dragoman_sim.play({"text": "The word is slate."})
    history = [say("Remember a word."), say("Which one?", "assistant"), say("slate")]
    answer = http.post("/responses/compact", json={"model": model, "input": history})
    assert answer.status_code == 200, answer.text
    compacted = judge.check_compacted(answer.json())
    assert isinstance(compacted.output[-1], judge.Compaction)
    assert [item.role for item in compacted.output[:-1] if isinstance(item, judge.Message)] == ["user", "user"]
    dragoman_sim.play()
    line = dial()
    response = line.answer(model=model, store=False, input=[*answer.json()["output"], say("Go on.")], tools=[])
    assert response.status == "completed"
    sent = dragoman_sim.requests[-1].body.decode()
    assert "The word is slate." in sent or '"compaction"' in sent


@pytest.mark.filterwarnings("ignore:connect:DeprecationWarning")  # of websockets, about how the SDK opens it
def test_openais_own_client(shared_gateway: RunningGateway, model: str) -> None:
    with OpenAI(base_url=f"{shared_gateway.url}/v1", api_key="any", max_retries=0) as client:
        with client.responses.connect() as connection:
            connection.response.create(model=model, input="Hello", store=False)
            kinds = []
            for event in connection:
                kinds.append(event.type)
                if event.type == "response.completed":
                    break
        assert kinds[0] == "response.created"
        compacted = client.responses.compact(model=model, input="Remember slate.")
        assert compacted.output[-1].type == "compaction"


def test_only_responses_are_upgraded(shared_gateway: RunningGateway) -> None:
    url = shared_gateway.url.replace("http://", "ws://")
    for path, status in (("/v1/chat/completions", 405), ("/nothing", 404)):
        with pytest.raises(InvalidStatus) as caught, connect(url + path, proxy=None):
            pass
        assert caught.value.response.status_code == status
