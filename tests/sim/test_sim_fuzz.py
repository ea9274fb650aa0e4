"""No request crashes a simulator: whatever JSON comes, an answer or a refusal in the API's own shape goes out."""

import copy
import json
from typing import Any
from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.sim.exchange import Exchange, Reply
from dragoman.sim.service import Service, Settings
from tests.sim.test_rules_fuzz import VALUES, places
from tests.sim.test_sim_rules import GOOD, TABLES, address
from tests.sim.wire import DOORS, SCHEMA
from tests.support.cases import each

BODIES: dict[str, list[tuple[dict[str, Any], dict[str, Any]]]] = {
    api: [(case.body, case.beside) for case in table if case.rule != "images_are_countable"] + GOOD.get(api, [])
    for api, table in TABLES.items()
}


def serve(api: str, body: Any, beside: dict[str, Any]) -> None:
    place, headers = address(api, beside)
    path, _, query = place.partition("?")
    # Numbers that JSON does not have never reach a rule; the simulator refuses them as text already.
    exchange = Exchange("POST", path, dict(parse_qsl(query)), headers, json.dumps(body).encode())
    answered = Service(Settings(any_model=True, any_signature=True)).respond(exchange).answered
    if not isinstance(answered, Reply):
        assert b"".join(answered.events)
    elif answered.status != 200:
        assert DOORS[api].message_of(json.loads(answered.body))


@given(data=st.data())
@each("api", BODIES)
def test_a_body_with_one_place_spoiled_is_answered(api: str, data: st.DataObject) -> None:
    chosen, beside = data.draw(st.sampled_from(BODIES[api]))
    body = copy.deepcopy(chosen)
    if spots := places(body):
        container, key = data.draw(st.sampled_from(spots))
        container[key] = data.draw(VALUES)
    serve(api, body, beside)


@given(text=st.text())
@each("api", DOORS)
def test_any_question_is_answered(api: str, text: str) -> None:
    serve(api, DOORS[api].ask_with_tool(text), {})


def deep(levels: int, inside: str) -> Any:
    value: Any = {"type": "string"}
    for _ in range(levels):
        value = {"type": "object", "properties": {inside: value}, "required": [inside]}
    return value


SELF: dict[str, Any] = {"type": "object", "properties": {"x": {"$ref": "#"}}, "required": ["x"]}


@pytest.mark.parametrize("schema", [deep(40, "x"), deep(150, "x"), SELF], ids=["deep", "deeper", "endless"])
@pytest.mark.parametrize("api", DOORS)
def test_schemas_without_a_bottom_are_answered(api: str, schema: Any) -> None:
    body = json.dumps(DOORS[api].ask_with_tool("Call get_weather")).replace(json.dumps(SCHEMA), json.dumps(schema))
    serve(api, json.loads(body), {})
