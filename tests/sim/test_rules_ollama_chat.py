from typing import Any

import ollama
import pytest

from dragoman.sim.rules.ollama_chat import ANSWER_RULES, RULES, check_request, check_response
from tests.sim.rule_cases import SHAPE, Case, breaks_one_rule, rows, rules_without_case

Body = dict[str, Any]


def ask(*messages: Any, **settings: Any) -> Body:
    return {"model": "qwen3", "messages": list(messages) or [user("hi")], **settings}


def user(content: Any, **more: Any) -> Body:
    return {"role": "user", "content": content, **more}


def calling(**function: Any) -> Body:
    return {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": {}} | function}]}


def tool(**parameters: Any) -> Body:
    return {"type": "function", "function": {"name": "f", "parameters": {"type": "object"} | parameters}}


def field(path: str, found: str, kind: str) -> str:
    return f"json: cannot unmarshal {found} into Go struct field {path} of type {kind}"


SCHEMA = "ToolFunctionParameters.tools.function.parameters"
CALL = "ChatRequest.messages.tool_calls"
NO_OBJECT = "Value looks like object, but can't find closing '}' symbol"

BAD = [
    Case(SHAPE, ask() | {"model": 7}, "$.model", field("ChatRequest.model", "number", "string")),
    Case(SHAPE, ask() | {"messages": "hi"}, "$.messages", field("ChatRequest.messages", "string", "[]api.Message")),
    Case(SHAPE, ask("hi"), "$.messages[0]", field("ChatRequest.messages", "string", "api.Alias")),
    Case(
        SHAPE,
        ask(user([{"type": "text", "text": "hi"}])),
        "$.messages[0].content",
        field("ChatRequest.messages.content", "array", "string"),
    ),
    Case(SHAPE, ask(user({})), "$.messages[0].content", field("ChatRequest.messages.content", "object", "string")),
    Case(SHAPE, ask(user("x", images="AAAA")), "$.messages[0].images", "of type []api.ImageData"),
    Case(
        SHAPE,
        ask(user("x", images=["data:image/png;base64,AAAA"])),
        "$.messages[0].images[0]",
        "illegal base64 data at input byte 4",
    ),
    Case(SHAPE, ask(user("x", images=["AAAAA"])), "$.messages[0].images[0]", "illegal base64 data at input byte 4"),
    Case(SHAPE, ask(user("x", images=[{"url": "x"}])), "$.messages[0].images[0]", "of type api.ImageData"),
    Case(SHAPE, ask(user("x", images=[[256]])), "$.messages[0].images[0][0]", "of type uint8"),
    Case(
        SHAPE,
        ask(calling(arguments='{"a":1}')),
        "$.messages[0].tool_calls[0].function.arguments",
        NO_OBJECT,
    ),
    Case(SHAPE, ask(calling(arguments=[])), "$.messages[0].tool_calls[0].function.arguments", NO_OBJECT),
    Case(
        SHAPE,
        ask(calling(name=None, index="0")),
        "$.messages[0].tool_calls[0].function.index",
        field(f"{CALL}.function.index", "string", "int"),
    ),
    Case(
        SHAPE,
        ask(calling(index=1.0)),
        "$.messages[0].tool_calls[0].function.index",
        field(f"{CALL}.function.index", "number 1.0", "int"),
    ),
    Case(
        SHAPE,
        ask({"role": "assistant", "tool_calls": [{"id": 1}]}),
        "$.messages[0].tool_calls[0].id",
        field(f"{CALL}.id", "number", "string"),
    ),
    Case(SHAPE, ask({"role": "assistant", "tool_calls": {}}), "$.messages[0].tool_calls", "of type []api.ToolCall"),
    Case(
        SHAPE,
        ask({"role": "tool", "tool_name": ["f"], "content": "x"}),
        "$.messages[0].tool_name",
        field("ChatRequest.messages.tool_name", "array", "string"),
    ),
    Case(SHAPE, ask(tools={}), "$.tools", field("ChatRequest.tools", "object", "api.Tools")),
    Case(SHAPE, ask(tools=["f"]), "$.tools[0]", field("ChatRequest.tools", "string", "api.Tool")),
    Case(
        SHAPE,
        ask(tools=[{"function": {"name": "f", "description": 1}}]),
        "$.tools[0].function.description",
        field("ToolFunction.tools.function.description", "number", "string"),
    ),
    Case(
        SHAPE,
        ask(tools=[tool(type=["object", "null"])]),
        "$.tools[0].function.parameters.type",
        field(f"{SCHEMA}.type", "array", "string"),
    ),
    Case(
        SHAPE,
        ask(tools=[tool(required=True)]),
        "$.tools[0].function.parameters.required",
        field(f"{SCHEMA}.required", "bool", "[]string"),
    ),
    Case(SHAPE, ask(tools=[tool(properties=[])]), "$.tools[0].function.parameters.properties", NO_OBJECT),
    Case(
        SHAPE,
        ask(tools=[tool(properties={"a": True})]),
        "$.tools[0].function.parameters.properties.a",
        field(f"{SCHEMA}.properties", "bool", "api.ToolProperty"),
    ),
    Case(
        SHAPE,
        ask(tools=[tool(properties={"a": {"properties": {"b": {"enum": "x"}}}})]),
        "$.tools[0].function.parameters.properties.a.properties.b.enum",
        field(f"{SCHEMA}.properties.properties.enum", "string", "[]interface {}"),
    ),
    Case(
        SHAPE,
        ask(tools=[tool(properties={"a": {"anyOf": [{"type": 1}]}})]),
        "$.tools[0].function.parameters.properties.a.anyOf[0].type",
        field(f"{SCHEMA}.properties.anyOf.type", "number", "[]string"),
    ),
    Case(SHAPE, ask(options=[]), "$.options", field("ChatRequest.options", "array", "map[string]interface {}")),
    Case(SHAPE, ask(stream="yes"), "$.stream", field("ChatRequest.stream", "string", "bool")),
    Case(SHAPE, ask(think="none"), "$.think", 'invalid think value: "none" (must be "high", "medium", "low", "max"'),
    Case(SHAPE, ask(think=1), "$.think", "think must be a boolean or string"),
    Case(SHAPE, ask(keep_alive="forever"), "$.keep_alive", 'time: invalid duration "forever"'),
    Case(SHAPE, ask(keep_alive="10"), "$.keep_alive", 'time: missing unit in duration "10"'),
    Case(SHAPE, ask(keep_alive=True), "$.keep_alive", "Unsupported type: 'bool'"),
    Case(SHAPE, ask(top_logprobs=2.5), "$.top_logprobs", field("ChatRequest.top_logprobs", "number 2.5", "int")),
    Case("model_is_named", {"messages": []}, "$.model", "model is required"),
    Case("logprobs_are_few", ask(logprobs=True, top_logprobs=21), "$.top_logprobs", "between 0 and 20"),
    Case("options_have_their_type", ask(options={"stop": "x"}), "$.options.stop", '"stop" must be of type array'),
    Case("options_have_their_type", ask(options={"stop": [1]}), "$.options.stop", "must be of an array of strings"),
    Case("options_have_their_type", ask(options={"temperature": "0"}), "$.options.temperature", "of type float32"),
    Case("options_have_their_type", ask(options={"num_predict": True}), "$.options.num_predict", "of type integer"),
    Case("options_have_their_type", ask(options={"use_mmap": 1}), "$.options.use_mmap", "of type boolean"),
    Case("format_is_json", ask(format="yaml"), "$.format", 'invalid format: "\\"yaml\\""; expected "json"'),
    Case("format_is_json", ask(format=[{}]), "$.format", "or a valid JSON Schema object"),
]

CONVERSATION = ask(
    {"role": "system", "content": "be brief"},
    user("weather?", images=["iVBORw0KGgo="]),
    {
        "role": "assistant",
        "content": "",
        "thinking": "I should look",
        "tool_calls": [{"function": {"name": "f", "arguments": {"city": "Paris"}}}],
    },
    {"role": "tool", "tool_name": "f", "content": "21"},
    tools=[tool(properties={"city": {"type": ["string", "null"], "description": "d", "enum": ["Paris"]}})],
    format={"type": "object"},
    options={"temperature": 0, "num_predict": 16, "stop": ["x"], "seed": 1},
    think="high",
    keep_alive="5m",
    stream=False,
)
# Nothing of this is refused, however odd it looks.
LENIENT: list[Body] = [
    {"model": "qwen3"},
    {"MODEL": "qwen3", "Messages": [{"ROLE": "User", "Content": "x"}]},
    ask({}, {"role": "robot", "content": None}, {"role": "tool", "content": "nobody asked"}),
    ask({"role": "assistant", "content": "unanswered", "tool_calls": [{"function": {"name": "f", "arguments": None}}]}),
    ask({"role": "assistant", "content": "Once upon a"}),
    ask(user("x", images=[[137, 80], None, "", "AAAA\r\nAAAA"])),
    ask(max_tokens=5, tool_choice="required", response_format={}, system="x"),
    ask(options={"temperature": 7, "top_k": 1.5, "mirostat": "x", "num_ctx": None}, think=None, keep_alive=-1),
    ask(tools=[tool(additionalProperties="whatever", properties={"a": {"default": [], "oneOf": 1, "$ref": 2}})]),
    ask(tools=[{}], format=""),
    {"model": "qwen3", "messages": [], "format": "yaml"},
    ask(keep_alive="-1h30m", truncate=False, shift=True, logprobs=True, top_logprobs=20),
]


@pytest.mark.parametrize("case", rows(BAD))
def test_a_body_that_breaks_a_rule_is_refused_for_it(case: Case) -> None:
    breaks_one_rule(case, check_request)


@pytest.mark.parametrize("body", [CONVERSATION, *LENIENT])
def test_a_legal_body_passes(body: Body) -> None:
    assert check_request(body) == ()


def test_every_rule_has_a_case() -> None:
    assert not rules_without_case(RULES, BAD)


def test_an_error_while_the_model_runs_has_a_failure_status() -> None:
    assert check_request(ask(format="yaml"))[0].status == 500
    assert check_request(ask(options={"stop": "x"}))[0].status == 500
    assert check_request(ask(top_logprobs=-1))[0].status == 400


class Caught(Exception):
    pass


def test_what_the_sdk_sends_is_legal(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Body] = []

    def catch(_client: object, *_: object, **request: Any) -> None:
        sent.append(request["json"])
        raise Caught

    monkeypatch.setattr(ollama.Client, "_request", catch)
    arguments = {key: value for key, value in CONVERSATION.items() if key != "stream"}
    with pytest.raises(Caught):
        ollama.Client().chat(**arguments)
    assert sent[0]["messages"][2]["tool_calls"] == CONVERSATION["messages"][2]["tool_calls"]
    assert check_request(sent[0]) == ()


# --- responses ----------------------------------------------------------------------------------------------------

CALLS = [
    {"id": "call_1", "function": {"index": 0, "name": "f", "arguments": {"a": 1}}},
    {"id": "call_2", "function": {"index": 1, "name": "f", "arguments": {}}},
]


def answer(message: Body | None = None, **more: Any) -> Body:
    return {
        "model": "qwen3",
        "created_at": "2026-11-15T10:00:00.1Z",
        "message": {"role": "assistant", "content": "hello"} | (message or {}),
        "done": True,
        "done_reason": "stop",
        "prompt_eval_count": 5,
        "eval_count": 7,
        **more,
    }


BAD_ANSWERS = [
    Case(SHAPE, answer(model=None), "$.model", "expected string, got null"),
    Case(SHAPE, answer({"content": None}), "$.message.content", "expected string, got null"),
    Case(SHAPE, answer({"role": "user"}), "$.message.role", "expected one of 'assistant'"),
    Case(
        SHAPE,
        answer({"tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]}),
        "$.message.tool_calls[0].function.arguments",
        "expected object, got string",
    ),
    Case(
        SHAPE,
        answer({"tool_calls": [{"function": {"arguments": {}}}]}),
        "$.message.tool_calls[0].function.name",
        "missing required key",
    ),
    Case(SHAPE, answer(eval_count=-1), "$.eval_count", "expected at least 0"),
    Case("answer_is_done", answer(done=False), "$.done", "complete"),
    Case(
        "calls_have_their_own_ids",
        answer({"tool_calls": [CALLS[0], CALLS[0]]}),
        "$.message.tool_calls",
        "a different id",
    ),
]
GOOD_ANSWERS = [
    answer(),
    answer({"content": "", "thinking": "hm", "tool_calls": CALLS}),
    answer({"tool_calls": [{"function": call["function"]} for call in CALLS]}),
    answer({"content": ""}, done_reason="load", a_new_key=1),
]


@pytest.mark.parametrize("case", rows(BAD_ANSWERS))
def test_an_answer_a_strict_client_trips_over(case: Case) -> None:
    breaks_one_rule(case, check_response)


@pytest.mark.parametrize("body", GOOD_ANSWERS)
def test_an_answer_a_strict_client_reads(body: Body) -> None:
    assert check_response(body) == ()
    ollama.ChatResponse.model_validate(body)


def test_every_answer_rule_has_a_case() -> None:
    assert not rules_without_case(ANSWER_RULES, BAD_ANSWERS)


def test_an_error_body_is_not_an_answer() -> None:
    assert check_response({"error": "model 'x' not found"})[0].path == "$"
