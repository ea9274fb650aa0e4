"""The Interactions API at the gateway, which stores the state for upstreams without any."""

import json
from typing import Any

import pytest
from google.genai import Client, types

from tests.gateway.running import Got, RunningGateway, send
from tests.sim.test_sim_pairs import MODELS
from tests.support.promises import promise
from tests.support.waiting import until

pytestmark = promise("gateway:interactions")

KEY = {"x-goog-api-key": "any-key"}
FOREIGN = f"as-anthropic-messages/{MODELS['anthropic-messages']}"
NATIVE = f"as-gemini-interactions/{MODELS['gemini-interactions']}"
PATH = "/v1beta/interactions"


def create(gateway: RunningGateway, model: str = FOREIGN, **more: Any) -> Got:
    return send(gateway.url, PATH, {"model": model, "input": "My name is Ann.", **more}, KEY)


def get(gateway: RunningGateway, id: str, query: str = "") -> Got:
    return send(gateway.url, f"{PATH}/{id}{query}", b"", KEY, "GET")


def steps_of(got: Got) -> list[str]:
    return [step["type"] for step in got.json["steps"]]


@pytest.mark.parametrize("model", [FOREIGN, NATIVE], ids=["foreign", "native"])
def test_an_interaction_is_stored_continued_and_deleted(gateway: RunningGateway, model: str) -> None:
    first = create(gateway, model)
    assert first.status == 200, first.body
    second = create(gateway, model, input="What is my name?", previous_interaction_id=first.json["id"])
    assert second.status == 200, second.body
    assert second.json["previous_interaction_id"] == first.json["id"]
    found = get(gateway, second.json["id"])
    kinds = [kind for kind in steps_of(found) if kind != "thought"]
    assert kinds == ["user_input", "model_output", "user_input", "model_output"]
    assert send(gateway.url, f"{PATH}/{second.json['id']}", b"", KEY, "DELETE").status == 200
    gone = get(gateway, second.json["id"])
    assert (gone.status, gone.json["error"]["status"]) == (404, "NOT_FOUND")


def test_interactions_that_are_not_stored_have_no_id(gateway: RunningGateway) -> None:
    assert "id" not in create(gateway, store=False).json
    streamed = create(gateway, store=False, stream=True)
    assert b'"id":""' in streamed.body
    assert b"event_id" not in streamed.body


def test_an_unknown_previous_interaction_is_not_found(gateway: RunningGateway) -> None:
    got = create(gateway, previous_interaction_id="v1_nothing")
    assert (got.status, got.json["error"]["status"]) == (404, "NOT_FOUND")


def test_the_input_is_included_on_request(gateway: RunningGateway) -> None:
    id = create(gateway).json["id"]
    wanted = [{"type": "user_input", "content": [{"type": "text", "text": "My name is Ann."}]}]
    assert get(gateway, id, "?include_input=true").json["input"] == wanted


@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
def test_a_stream_is_resumed_after_the_last_event(gateway: RunningGateway, *, streamed: bool) -> None:
    made = create(gateway, stream=streamed)
    if streamed:
        whole = made.body
        (ended,) = [
            json.loads(line[6:])
            for line in whole.split(b"\n")
            if b'"interaction.completed"' in line and line[:6] == b"data: "
        ]
        id = ended["interaction"]["id"]
    else:
        id = made.json["id"]
        whole = get(gateway, id, "?stream=true").body
    events = [event + b"\n\n" for event in whole.split(b"\n\n") if event]
    third = json.loads(events[2].partition(b"data: ")[2])["event_id"]
    resumed = get(gateway, id, f"?stream=true&last_event_id={third}")
    assert resumed.headers["content-type"].startswith("text/event-stream")
    assert resumed.body == b"".join(events[3:])
    assert get(gateway, id, "?stream=true&last_event_id=e999").status == 400


def test_an_interaction_in_the_background_has_an_id_before_its_answer(gateway: RunningGateway) -> None:
    promised = create(gateway, background=True)
    assert (promised.status, promised.json["status"]) == (200, "in_progress")
    until(lambda: get(gateway, promised.json["id"]).json["status"] != "in_progress")
    assert get(gateway, promised.json["id"]).json["status"] == "completed"
    cancelled = send(gateway.url, f"{PATH}/{promised.json['id']}/cancel", b"", KEY)
    assert (cancelled.status, cancelled.json["status"]) == (200, "completed")
    assert create(gateway, background=True, store=False).status == 400


def test_googles_own_client_creates_resumes_and_deletes(gateway: RunningGateway) -> None:
    with Client(api_key="any", http_options=types.HttpOptions(base_url=gateway.url)) as client:
        made: Any = client.interactions.create(model=FOREIGN, input="My name is Ann.")
        found: Any = client.interactions.get(made.id)
        assert found.steps[0].type == "user_input"
        assert made.output_text
        client.interactions.delete(made.id)
        with pytest.raises(Exception, match=r"404|not found"):
            client.interactions.get(made.id)


@promise("gateway:addresses")
@pytest.mark.parametrize(
    "path",
    [
        "/v1/interactions",
        "/v1beta/interactions",
        "/v1beta1/interactions",
        "/v1beta1/projects/p/locations/global/interactions",
    ],
)
def test_every_path_that_googles_client_uses(gateway: RunningGateway, path: str) -> None:
    made = send(gateway.url, path, {"model": FOREIGN, "input": "Hello"}, KEY)
    assert made.status == 200, made.body
    assert send(gateway.url, f"{path}/{made.json['id']}", b"", KEY, "GET").status == 200
    assert send(gateway.url, f"{path}/nothing", b"", KEY, "GET").json["error"]["status"] == "NOT_FOUND"
