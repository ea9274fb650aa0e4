"""The simulated Interactions API keeps interactions: they are followed, looked at, resumed, cancelled and deleted."""

import json
from typing import Any

from dragoman.sim.server import Simulator
from tests.sim.wire import Answer, send

PATH = "/v1beta/interactions"
KEY = {"x-goog-api-key": "any-key"}


def create(simulator: Simulator, **more: Any) -> Answer:
    return send(simulator, PATH, {"model": "gemini-3.6-flash", "input": "Hello", **more}, KEY)


def look(simulator: Simulator, id: str, query: str = "", method: str = "GET") -> Answer:
    return send(simulator, f"{PATH}/{id}{query}", b"", KEY, method)


def test_an_interaction_is_followed_and_deleted(dragoman_sim: Simulator) -> None:
    first = create(dragoman_sim).json
    second = create(dragoman_sim, input="And again", previous_interaction_id=first["id"]).json
    steps = [step["type"] for step in look(dragoman_sim, second["id"]).json["steps"]]
    assert [kind for kind in steps if kind != "thought"] == ["user_input", "model_output"] * 2
    assert look(dragoman_sim, second["id"], method="DELETE").status == 200
    assert look(dragoman_sim, second["id"]).status == 404
    assert create(dragoman_sim, previous_interaction_id=second["id"]).status == 404


def test_what_is_not_stored_has_no_id(dragoman_sim: Simulator) -> None:
    assert "id" not in create(dragoman_sim, store=False).json


def test_a_background_stream_has_ids_and_is_resumed(dragoman_sim: Simulator) -> None:
    assert b"event_id" not in create(dragoman_sim, stream=True).body
    events = create(dragoman_sim, stream=True, background=True).body.split(b"\n\n")
    second = json.loads(events[1].partition(b"data: ")[2])
    id = json.loads(events[0].partition(b"data: ")[2])["interaction"]["id"]
    resumed = look(dragoman_sim, id, f"?stream=true&last_event_id={second['event_id']}")
    assert resumed.body.split(b"\n\n") == events[2:]
    assert look(dragoman_sim, id, "?stream=true&last_event_id=nonsense").status == 400


def test_what_runs_in_the_background_is_cancelled(dragoman_sim: Simulator) -> None:
    promised = create(dragoman_sim, background=True).json
    assert promised["status"] == "in_progress"
    assert look(dragoman_sim, promised["id"], "/cancel", "POST").json["status"] == "cancelled"
    other = create(dragoman_sim, background=True, input="Another").json
    assert look(dragoman_sim, other["id"]).json["status"] == "completed"
