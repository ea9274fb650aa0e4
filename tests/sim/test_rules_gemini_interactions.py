"""Every rule of the Interactions judge refuses something, and none refuses what is good."""

from typing import Any

import pytest

from dragoman.sim.rules.gemini_interactions import ANSWER_RULES, RULES, check_request, check_response
from tests.support.interactions_bodies import REQUESTS, RESPONSES

MODEL = "gemini-3-flash-preview"
QUESTION = {"type": "user_input", "content": [{"type": "text", "text": "Weather?"}]}
CALL = {"type": "function_call", "id": "a", "name": "f", "arguments": {}}
RESULT = {"type": "function_result", "call_id": "a", "result": "sunny"}
SIGNED = {"type": "thought", "signature": "c2ln"}
TOOL = {"type": "function", "name": "f"}
TUPLE = {"type": "object", "properties": {"p": {"type": "array", "items": [{"type": "string"}]}}}


def body(*steps: Any, **more: Any) -> dict[str, Any]:
    return {"model": MODEL, "input": list(steps) or "hi", **more}


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "model_or_agent": (body(agent="deep-research-preview-04-2026"), "$"),
    "input_is_there": ({"model": MODEL}, "$.input"),
    "turns_say_something": (body({"type": "user_input", "content": []}), "$.input[0].content"),
    "media_have_one_source": (
        body({"type": "user_input", "content": [{"type": "image", "data": "AA==", "uri": "https://x"}]}),
        "$.input[0].content[0]",
    ),
    "results_answer_calls": (body(QUESTION, RESULT), "$.input[1].call_id"),
    "calls_are_signed": (body(QUESTION, CALL, RESULT), "$.input[1]"),
    "ends_with_the_user": ({**body(QUESTION, {"type": "model_output"}), "model": "gemini-3.6-flash"}, "$.input[1]"),
    "state_is_kept": (body(store=False, background=True), "$.background"),
    "functions_have_names": (body(tools=[TOOL, TOOL]), "$.tools[1].name"),
    "schemas_have_no_tuples": (
        body(tools=[{**TOOL, "parameters": TUPLE}]),
        "$.tools[0].parameters.properties.p.items",
    ),
    "choice_names_functions": (
        body(tools=[TOOL], generation_config={"tool_choice": {"allowed_tools": {"mode": "any", "tools": ["g"]}}}),
        "$.generation_config.tool_choice",
    ),
    "levels_fit_the_model": (
        {**body(generation_config={"thinking_level": "minimal"}), "model": "gemini-3-pro-preview"},
        "$.generation_config.thinking_level",
    ),
}
MISSHAPEN: dict[str, dict[str, Any]] = {
    "a key of generateContent": body(generationConfig={}),
    "a choice at the top": body(tool_choice="auto"),
    "upper case": body(generation_config={"thinking_level": "LOW"}),
    "top_k": body(generation_config={"top_k": 4}),
    "content that is text": body({"type": "user_input", "content": "hi"}),
    "steps and contents": body(QUESTION, {"type": "text", "text": "hi"}),
    "arguments that are text": body(QUESTION, SIGNED, {**CALL, "arguments": "{}"}, RESULT),
    "a result inside the user's content": body({"type": "user_input", "content": [RESULT]}),
    "category for type": body(safety_settings=[{"category": "hate_speech", "threshold": "off"}]),
}
BAD_ANSWERS: dict[str, dict[str, Any]] = {
    "usage_adds_up": {"status": "completed", "steps": [], "usage": {"total_input_tokens": 1, "total_tokens": 5}},
    "calls_have_ids": {"status": "requires_action", "steps": [CALL, CALL]},
    "action_is_required_by_a_call": {"status": "requires_action", "steps": []},
    "ended_answers_have_steps": {"status": "completed"},
}


def test_every_rule_has_a_case() -> None:
    assert {rule.__name__ for rule in RULES} == BAD.keys()
    assert {rule.__name__ for rule in ANSWER_RULES} == BAD_ANSWERS.keys()


@pytest.mark.parametrize("rule", BAD)
def test_a_rule_refuses(rule: str) -> None:
    given, path = BAD[rule]
    found = check_request(given)
    assert path in {violation.path for violation in found}
    assert {violation.status for violation in found} == {400}


@pytest.mark.parametrize("name", MISSHAPEN)
def test_a_shape_refuses(name: str) -> None:
    assert check_request(MISSHAPEN[name])


@pytest.mark.parametrize("rule", BAD_ANSWERS)
def test_a_client_trips(rule: str) -> None:
    assert check_response(BAD_ANSWERS[rule])


@pytest.mark.parametrize("name", REQUESTS)
def test_good_requests_pass(name: str) -> None:
    assert check_request(REQUESTS[name]) == ()


@pytest.mark.parametrize("name", RESPONSES)
def test_good_answers_pass(name: str) -> None:
    assert check_response(RESPONSES[name]) == ()
