from typing import Any

import cohere
import pytest

from dragoman.sim.rules.cohere_chat import ANSWER_RULES, check_request, check_response
from tests.sim.rule_cases import SHAPE, Case

Body = dict[str, Any]
MODEL = "command-a-03-2025"


def ask(*messages: Any, **settings: Any) -> Body:
    return {"model": MODEL, "messages": list(messages) or [user("hi")], **settings}


def user(content: Any) -> Body:
    return {"role": "user", "content": content}


def calling(*ids: str) -> Body:
    calls = [{"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}} for id in ids]
    return {"role": "assistant", "tool_calls": calls}


def result(id: str, content: Any = "1") -> Body:
    return {"role": "tool", "tool_call_id": id, "content": content}


def tool(name: str = "f", **parameters: Any) -> Body:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}} | parameters
    return {"type": "function", "function": {"name": name, "description": "x", "parameters": schema}}


def form(**schema: Any) -> Body:
    return {
        "type": "json_object",
        "json_schema": {"type": "object", "properties": {"a": {}}, "required": ["a"]} | schema,
    }


BAD = [
    Case(SHAPE, ask(n=1), "$.n", "unknown field: parameter 'n'"),
    Case(SHAPE, ask(tools=[{**tool(), "strict": True}]), "$.tools[0].strict", "unknown field: parameter 'strict'"),
    Case(SHAPE, ask({**user("x"), "name": "ann"}), "$.messages[0].name", "unknown field"),
    Case(SHAPE, {"messages": [user("x")]}, "$.model", "model is required"),
    Case(SHAPE, {"model": MODEL, "messages": []}, "$.messages", "at least 1"),
    Case(SHAPE, ask(tool_choice="auto"), "$.tool_choice", "must be one of 'REQUIRED', 'NONE'"),
    Case(SHAPE, ask(tool_choice={"type": "function"}), "$.tool_choice", "should be of type string"),
    Case(SHAPE, ask(p=1.5), "$.p", "less than or equal to 1"),
    Case(SHAPE, ask(k=501), "$.k", "less than or equal to 500"),
    Case(SHAPE, ask(presence_penalty=-0.1), "$.presence_penalty", "greater than or equal to 0"),
    Case(SHAPE, ask(stop_sequences=list("abcdef")), "$.stop_sequences", "at most 5"),
    Case(SHAPE, ask(thinking={"token_budget": 5}), "$.thinking.type", "is required"),
    Case(SHAPE, ask(thinking={"type": "enabled", "token_budget": 0}), "$.thinking.token_budget", "greater than"),
    Case(SHAPE, ask(tools=[tool("a-b")]), "$.tools[0].function.name", "must match"),
    Case(SHAPE, ask(tools=[tool("1a")]), "$.tools[0].function.name", "must match"),
    Case(SHAPE, ask(user([{"type": "document", "document": {}}])), "$.messages[0].content[0].type", "must be one of"),
    Case("turns_say_something", ask(user(" ")), "$.messages[0].content", "message must not be empty in a turn"),
    Case(
        "turns_say_something",
        ask(user("x"), {"role": "assistant", "content": []}, user("y")),
        "$.messages[1]",
        "content or tool calls",
    ),
    Case(
        "last_turn_is_answered",
        ask(user("x"), {"role": "assistant", "content": "y"}),
        "$.messages[1]",
        "the last message",
    ),
    Case(
        "results_answer_calls",
        ask(user("x"), result("c")),
        "$.messages[1].tool_call_id",
        "not found in previous tool calls",
    ),
    Case("results_answer_calls", ask(user("x"), result("")), "$.messages[1].tool_call_id", "must be provided"),
    Case(
        "results_answer_calls",
        ask(user("x"), calling("c", "c"), result("c")),
        "$.messages[1].tool_calls[1].id",
        "duplicate tool ids",
    ),
    Case("results_answer_calls", ask(user("x"), calling("c"), user("y")), "$.messages[2]", "without results: c"),
    Case("results_answer_calls", ask(user("x"), calling("c", "d"), result("c")), "$.messages", "without results: d"),
    Case(
        "images_are_readable",
        ask(user([{"type": "image_url", "image_url": {"url": "file:///a"}}])),
        "$.messages[0].content[0].image_url.url",
        "data URI",
    ),
    Case("tools_are_described", ask(tools=[tool(), tool()]), "$.tools[1].function.name", "duplicate tool name"),
    Case(
        "tools_are_described",
        ask(tools=[{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]),
        "$.tools[0].function",
        "must have a description or inputs",
    ),
    Case(
        "parameters_are_objects",
        ask(tools=[tool(type="string")]),
        "$.tools[0].function.parameters",
        "schema must be an object",
    ),
    Case(
        "parameters_are_objects",
        ask(tools=[tool(properties={"a": {}})]),
        "$.tools[0].function.parameters.properties.a",
        "must have a type",
    ),
    Case(
        "parameters_are_objects",
        ask(tools=[tool(required=["b"])]),
        "$.tools[0].function.parameters.required",
        "required field b not found",
    ),
    Case("choice_has_tools", ask(tool_choice="REQUIRED"), "$.tool_choice", "needs tools"),
    Case(
        "choice_has_tools",
        {**ask(tools=[tool()], tool_choice="NONE"), "model": "command-r-08-2024"},
        "$.tool_choice",
        "not supported by model",
    ),
    Case(
        "strict_tools_are_small",
        ask(tools=[tool(properties={f"p{n}": {"type": "string"} for n in range(201)})], strict_tools=True),
        "$.strict_tools",
        "at most 200 fields",
    ),
    Case(
        "documents_have_their_own_ids",
        ask(documents=[{"id": "a", "data": "x"}, {"id": "a", "data": "y"}]),
        "$.documents",
        "unique",
    ),
    Case(
        "format_stands_alone",
        ask(tools=[tool()], response_format={"type": "json_object"}),
        "$.response_format",
        "with tools",
    ),
    Case(
        "format_stands_alone",
        ask(documents=["x"], response_format={"type": "json_object"}),
        "$.response_format",
        "with RAG",
    ),
    Case(
        "schema_is_supported",
        ask(response_format=form(oneOf=[])),
        "$.response_format.json_schema.oneOf",
        "oneOf is not supported",
    ),
    Case(
        "schema_is_supported",
        ask(response_format=form(required=[])),
        "$.response_format.json_schema",
        "at least one required",
    ),
    Case("temperature_is_small", ask(temperature=1.1), "$.temperature", "between 0 and 1.0 inclusive"),
]
GOOD: list[Body] = [
    ask(),
    ask(user([{"type": "text", "text": "x"}]), stream=True, temperature=1, p=0.99, k=0, seed=2**64 - 1),
    ask(user("x"), {"role": "assistant", "content": "y"}, {"role": "system", "content": "z"}, user("w")),
    ask(user("x"), {**calling("c"), "content": None, "tool_plan": "p", "citations": []}, result("c"), tools=[tool()]),
    ask(user("x"), calling("c", "d"), result("c", [{"type": "document", "document": {"data": {"a": 1}}}]), result("d")),
    ask(documents=["x", {"data": {"a": "b"}}], citation_options={"mode": "FAST"}, safety_mode="STRICT", priority=3),
    ask(response_format={"type": "text"}, tools=[tool()], tool_choice="NONE", strict_tools=True, logprobs=True),
    ask(thinking={"type": "disabled"}, response_format=form()),
]
GOOD_ANSWERS: list[Body] = [
    {
        "id": "x",
        "message": {"role": "assistant", "content": [{"type": "text", "text": "y"}]},
        "finish_reason": "COMPLETE",
    },
    {
        "id": "x",
        "message": {**calling("c"), "tool_plan": "p"},
        "finish_reason": "TOOL_CALL",
        "usage": {"tokens": {"input_tokens": 3.0, "output_tokens": 1}, "cached_tokens": 1},
    },
]
BAD_ANSWERS: list[tuple[Body, str]] = [
    ({"message": "no"}, "$"),
    ({**GOOD_ANSWERS[0], "finish_reason": "stop"}, "$.finish_reason"),
    ({**GOOD_ANSWERS[0], "finish_reason": "TOOL_CALL"}, "$.finish_reason"),
    ({**GOOD_ANSWERS[0], "message": {"role": "assistant", "content": "text"}}, "$.message.content"),
    ({**GOOD_ANSWERS[1], "message": calling("c", "c")}, "$.message.tool_calls"),
    (
        {**GOOD_ANSWERS[0], "message": {**GOOD_ANSWERS[0]["message"], "citations": [{"start": 0, "end": 9}]}},
        "$.message.citations[0].end",
    ),
]


def test_unknown_keys_are_422() -> None:
    assert [violation.status for violation in check_request(ask(n=1))] == [422]


@pytest.mark.parametrize("body", GOOD_ANSWERS)
def test_good_answers_are_good_for_the_vendors_client(body: Body) -> None:
    assert check_response(body) == ()
    assert cohere.V2ChatResponse(**body).message is not None


@pytest.mark.parametrize(("body", "path"), BAD_ANSWERS)
def test_bad_answers(body: Body, path: str) -> None:
    assert [violation.path for violation in check_response(body)] == [path]


def test_every_rule_of_answers_is_broken_once() -> None:
    assert {rule.__name__ for rule in ANSWER_RULES} == {"calls_end_the_answer", "citations_stand_in_the_text"}
