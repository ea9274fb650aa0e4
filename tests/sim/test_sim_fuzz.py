"""No request crashes a simulator: whatever JSON comes, an answer or a refusal in the API's own shape goes out."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.sim.exchange import Exchange, Reply
from dragoman.sim.service import Service, Settings
from tests.sim.test_rules_fuzz import VALUES, places
from tests.sim.test_sim_rules import GOOD, TABLES, address
from tests.sim.wire import DOORS

BODIES: dict[str, list[tuple[dict[str, Any], dict[str, Any]]]] = {
    api: [(case.body, case.beside) for case in table if case.rule != "images_are_countable"] + GOOD.get(api, [])
    for api, table in TABLES.items()
}


def serve(api: str, body: Any, beside: dict[str, Any]) -> None:
    path, headers = address(api, beside)
    # Numbers that JSON does not have never reach a rule; the simulator refuses them as text already.
    exchange = Exchange("POST", path, {}, headers, json.dumps(body).encode())
    answered = Service(Settings(any_model=True, any_seal=True)).respond(exchange).answered
    if not isinstance(answered, Reply):
        assert b"".join(answered.events)
    elif answered.status != 200:
        assert DOORS[api].message_of(json.loads(answered.body))


@pytest.mark.parametrize("api", BODIES)
@given(data=st.data())
def test_a_body_with_one_place_spoiled_is_answered(api: str, data: st.DataObject) -> None:
    chosen, beside = data.draw(st.sampled_from(BODIES[api]))
    body = copy.deepcopy(chosen)
    if spots := places(body):
        container, key = data.draw(st.sampled_from(spots))
        container[key] = data.draw(VALUES)
    serve(api, body, beside)


@pytest.mark.parametrize("api", DOORS)
@given(text=st.text())
def test_any_question_is_answered(api: str, text: str) -> None:
    serve(api, DOORS[api].ask_with_tool(text), {})
