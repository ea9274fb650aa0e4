from typing import Any

import pytest
from openai.types.responses import Response
from openai.types.responses.response_create_params import (
    ResponseCreateParamsNonStreaming,
    ResponseCreateParamsStreaming,
)

from dragoman.sim.rules.openai_responses import check_request, check_response
from tests.judges.typed import complaints
from tests.sim.rule_cases import SHAPE, Case
from tests.support.cases import each

Body = dict[str, Any]

CLOSED = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
PNG = "data:image/png;base64,AAAA"
PDF = "data:application/pdf;base64,JVBERi0="


def ask(*items: Body, **settings: Any) -> Body:
    return {"model": "gpt-4o", "input": list(items) or [user("hi")], **settings}


def think(*items: Body, **settings: Any) -> Body:
    return ask(*items, **settings) | {"model": "gpt-5"}


def user(content: Any) -> Body:
    return {"role": "user", "content": content}


def assistant(*parts: Body, **more: Any) -> Body:
    return {"type": "message", "role": "assistant", "content": list(parts), "status": "completed", **more}


def words(text: str) -> Body:
    return {"type": "output_text", "text": text, "annotations": []}


def call(identifier: str = "call_1", **more: Any) -> Body:
    return {"type": "function_call", "call_id": identifier, "name": "f", "arguments": "{}", **more}


def result(identifier: str = "call_1", output: Any = "42") -> Body:
    return {"type": "function_call_output", "call_id": identifier, "output": output}


def thought(identifier: str = "rs_1", **more: Any) -> Body:
    return {"type": "reasoning", "id": identifier, "summary": [], **more}


def tool(name: str = "f", **more: Any) -> Body:
    return {"type": "function", "name": name, "parameters": CLOSED, "strict": False, **more}


def strict(schema: Body) -> Body:
    return ask(tools=[tool(strict=True, parameters=schema)])


def deep(levels: int) -> Body:
    schema: Body = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"x": schema}, "required": ["x"], "additionalProperties": False}
    return schema


def image(**more: Any) -> Body:
    return {"type": "input_image", "detail": "auto", **more}


def file(**more: Any) -> Body:
    return {"type": "input_file", **more}


def text(value: str) -> Body:
    return {"type": "input_text", "text": value}


CUSTOM_CALL = {"type": "custom_tool_call", "call_id": "call_1", "name": "sql", "input": "SELECT 1"}
CUSTOM_RESULT = {"type": "custom_tool_call_output", "call_id": "call_1", "output": "1"}
SPACE = {"type": "namespace", "name": "crm", "description": "d", "tools": [tool("find")]}
MCP = {"type": "mcp", "server_label": "s", "server_url": "https://example.com/mcp"}
PARAMETERS = "$.tools[0].parameters"

BAD = [
    Case(SHAPE, ask(stop=["x"]), "$.stop", "Unknown parameter: 'stop'."),
    Case(SHAPE, ask(max_tokens=50), "$.max_tokens", "Unknown parameter: 'max_tokens'."),
    Case(SHAPE, ask(response_format={"type": "text"}), "$.response_format", "Unknown parameter"),
    Case(SHAPE, ask(stream=True, stream_options={"include_usage": True}), "$.stream_options.include_usage", "Unknown"),
    Case(SHAPE, ask(max_output_tokens=10), "$.max_output_tokens", "Expected a value >= 16, but got 10 instead."),
    Case(SHAPE, ask(temperature=-0.5), "$.temperature", "decimal below minimum value"),
    Case(SHAPE, ask(include=["logprobs"]), "$.include[0]", "Invalid value: 'logprobs'. Supported values are: "),
    Case(SHAPE, ask(reasoning={"effort": "extreme"}), "$.reasoning.effort", "Invalid value: 'extreme'"),
    Case(SHAPE, ask(metadata={"k": "v" * 513}), "$.metadata.k", "a string with maximum length 512"),
    Case(SHAPE, ask(client_metadata={"turn": 1}), "$.client_metadata.turn", "expected a string, but got an integer"),
    Case(SHAPE, ask(context_management=[]), "$.context_management", "empty array"),
    Case(SHAPE, ask({"role": "tool", "content": "x"}), "$.input[0].role", "Invalid value: 'tool'"),
    Case(SHAPE, ask({"content": "x"}), "$.input[0].role", "Missing required parameter: 'input[0].role'"),
    Case(SHAPE, ask({"role": "user", "content": "x", "name": "Ann"}), "$.input[0].name", "'input[0].name'"),
    Case(SHAPE, ask({"role": "user", "content": None}), "$.input[0].content", "but got null instead"),
    Case(SHAPE, ask({"role": "user", "content": "x", "phase": "final_answer"}), "$.input[0].phase", "Unknown"),
    Case(SHAPE, ask(user([{"type": "text", "text": "x"}])), "$.input[0].content[0].type", "Invalid value: 'text'"),
    Case(
        SHAPE,
        ask(user([{"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}}])),
        "$.input[0].content[0].type",
        "Supported values are: 'input_text', 'input_image', and 'input_file'.",
    ),
    Case(
        SHAPE,
        ask(user("x"), assistant(text("y"))),
        "$.input[1].content[0].type",
        "Invalid value: 'input_text'. Supported values are: 'output_text' and 'refusal'.",
    ),
    Case(SHAPE, ask(user([words("x")])), "$.input[0].content[0].type", "Invalid value: 'output_text'"),
    Case(
        SHAPE,
        ask({"role": "system", "content": [image(image_url=PNG)]}),
        "$.input[0].content[0].type",
        "Invalid value: 'input_image'",
    ),
    Case(
        SHAPE,
        ask(user([image(image_url={"url": PNG})])),
        "$.input[0].content[0].image_url",
        "expected a string, but got an object instead",
    ),
    Case(SHAPE, ask(call(parsed_arguments={}), result()), "$.input[0].parsed_arguments", "Unknown parameter"),
    Case(SHAPE, ask(call() | {"arguments": {}}, result()), "$.input[0].arguments", "expected a string, but got an obj"),
    Case(
        SHAPE,
        ask(call(), result("c" * 65)),
        "$.input[1].call_id",
        "Expected a string with maximum length 64, but got a string with length 65 instead.",
    ),
    Case(SHAPE, ask(call() | {"name": "a.b"}, result()), "$.input[0].name", "matches the pattern '^[a-zA-Z0-9_-]+$'"),
    Case(SHAPE, think(thought(status="completed"), call(), result()), "$.input[0].status", "'input[0].status'"),
    Case(SHAPE, think({"type": "reasoning", "id": "rs_1"}, call(), result()), "$.input[0].summary", "Missing required"),
    Case(
        SHAPE,
        ask({"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "x": 1}}),
        "$.input[0].action.x",
        "Unknown parameter: 'input[0].action.x'",
    ),
    Case(SHAPE, ask({"type": "tool_search_call", "arguments": "{}"}), "$.input[0].arguments", "expected an object"),
    Case(SHAPE, ask({"type": "a_new_item"}), "$.input[0].type", "Invalid value: 'a_new_item'"),
    Case(SHAPE, ask(tools=[{"type": "function", "function": {"name": "f"}}]), "$.tools[0].name", "Missing required"),
    Case(SHAPE, ask(tools=[tool("x" * 65)]), "$.tools[0].name", "string too long"),
    Case(SHAPE, ask(tools=[{"type": "web_browser"}]), "$.tools[0].type", "Invalid value: 'web_browser'"),
    Case(
        SHAPE,
        ask(tools=[{"type": "custom", "name": "c", "format": {"type": "grammar", "syntax": "lark"}}]),
        "$.tools[0].format.definition",
        "Missing required parameter: 'tools[0].format.definition'",
    ),
    Case(SHAPE, ask(tools=[tool()], tool_choice="any"), "$.tool_choice", "'none', 'auto', and 'required'"),
    Case(SHAPE, ask(tools=[tool()], tool_choice={"type": "function"}), "$.tool_choice.name", "Missing required"),
    Case(
        SHAPE,
        ask(tools=[{"type": "web_search"}], tool_choice={"type": "web_search"}),
        "$.tool_choice.type",
        "Invalid value: 'web_search'",
    ),
    Case(SHAPE, ask(text={"format": {"type": "json_schema", "name": "x"}}), "$.text.format.schema", "Missing required"),
    Case("input_is_given", {"model": "gpt-4o", "instructions": "x"}, "$.input", "must be provided"),
    Case("input_is_given", {"model": "gpt-4o", "input": []}, "$.input", "must be provided"),
    Case("calls_are_answered", ask(call()), "$.input", "No tool output found for function call call_1."),
    Case(
        "calls_are_answered", ask(call(), call(), result()), "$.input", "No tool output found for function call call_1."
    ),
    Case("calls_are_answered", ask(CUSTOM_CALL), "$.input", "No tool output found for custom tool call call_1."),
    Case(
        "outputs_have_calls",
        ask(user("x"), result()),
        "$.input",
        "No tool call found for function call output with call_id call_1.",
    ),
    Case(
        "outputs_have_calls",
        ask(call(), result(), result()),
        "$.input",
        "No tool call found for function call output with call_id call_1.",
    ),
    Case(
        "reasoning_is_followed",
        think(user("x"), thought(), user("y")),
        "$.input",
        "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
    ),
    Case("reasoning_is_followed", think(user("x"), thought()), "$.input", "without its required following item"),
    Case(
        "reasoning_is_followed",
        think(user("x"), thought(), {"role": "assistant", "content": "mine"}, user("y")),
        "$.input",
        "without its required following item",
    ),
    Case(
        "ids_have_their_form",
        ask(call(id="call_1"), result()),
        "$.input[0].id",
        "Invalid 'input[0].id': 'call_1'. Expected an ID that begins with 'fc'.",
    ),
    Case(
        "ids_have_their_form",
        ask(assistant(words("x"), id="item_1")),
        "$.input[0].id",
        "Expected an ID that begins with 'msg'.",
    ),
    Case("ids_have_their_form", ask(assistant(words("x"), id="")), "$.input[0].id", "letters, numbers, underscores"),
    Case(
        "ids_differ",
        ask(assistant(words("x"), id="msg_1"), user("y"), assistant(words("z"), id="msg_1")),
        "$.input",
        "Duplicate item found with id msg_1.",
    ),
    Case(
        "references_are_stored",
        ask({"type": "item_reference", "id": "msg_1"}, store=False),
        "$.input",
        "Item with id 'msg_1' not found. Items are not persisted when `store` is set to false.",
    ),
    Case(
        "stored_ids_have_their_form",
        ask(previous_response_id="chatcmpl-1"),
        "$.previous_response_id",
        "Expected an ID that begins with 'resp'.",
    ),
    Case(
        "one_kind_of_stored_state",
        ask(previous_response_id="resp_1", conversation="conv_1"),
        "$.previous_response_id",
        "Mutually exclusive parameters",
    ),
    Case(
        "encrypted_content_is_genuine",
        think(thought(encrypted_content="ErUBCkYIARgC"), call(), result()),
        "$.input[0].encrypted_content",
        "could not be verified",
    ),
    Case(
        "compaction_is_asked_for_last",
        ask({"type": "compaction_trigger"}, user("x")),
        "$.input[0]",
        "must be the last item",
    ),
    Case("images_come_one_way", ask(user([image()])), "$.input[0].content[0]", "Missing mutually exclusive"),
    Case(
        "images_come_one_way",
        ask(user([image(image_url=PNG, file_id="file-1")])),
        "$.input[0].content[0]",
        "only providing one of",
    ),
    Case(
        "images_are_readable",
        ask(user([image(image_url="data:image/tiff;base64,AAAA")])),
        "$.input[0].content[0].image_url",
        "unsupported MIME type 'image/tiff'",
    ),
    Case(
        "images_are_readable",
        ask(call(), result(output=[image(image_url="AAAA")])),
        "$.input[1].output[0].image_url",
        "Expected a valid URL",
    ),
    Case("files_come_one_way", ask(user([file(filename="a.pdf")])), "$.input[0].content[0]", "exactly one of"),
    Case("files_come_one_way", ask(user([file(file_data=PDF)])), "$.input[0].content[0].filename", "Missing required"),
    Case(
        "files_are_readable",
        ask(user([file(filename="a.mp3", file_data="data:audio/mpeg;base64,AAAA")])),
        "$.input[0].content[0].file_data",
        "unsupported MIME type 'audio/mpeg'",
    ),
    Case(
        "files_are_readable",
        ask(user([file(filename="a.pdf", file_data="JVBERi0=")])),
        "$.input[0].content[0].file_data",
        "without the 'data:' prefix",
    ),
    Case(
        "files_are_readable",
        ask(user([file(file_url="https://example.com/a.mp3")])),
        "$.input",
        "The file type you uploaded is not supported. Please try again with a pdf",
    ),
    Case("model_is_named", {"input": "x"}, "$.model", "Missing required parameter: 'model'."),
    Case(
        "model_responds",
        ask() | {"model": "o1-mini"},
        "$.model",
        "The requested model 'o1-mini' is not supported with the Responses API.",
    ),
    Case(
        "chosen_tools_exist",
        ask(tools=[tool()], tool_choice={"type": "function", "name": "g"}),
        "$.tool_choice",
        "Tool choice 'g' not found in 'tools' parameter.",
    ),
    Case(
        "chosen_tools_exist",
        ask(
            tools=[tool()],
            tool_choice={"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "g"}]},
        ),
        "$.tool_choice.tools[0]",
        "'g'",
    ),
    Case("required_choice_has_tools", ask(tool_choice="required"), "$.tool_choice", "'tools'"),
    Case(
        "deferred_tools_can_be_found",
        ask(tools=[tool(defer_loading=True)]),
        "$.tools[0].defer_loading",
        "Deferred tools require tools.tool_search.",
    ),
    Case(
        "client_searches_are_described",
        ask(tools=[{"type": "tool_search", "execution": "client"}]),
        "$.tools[0].description",
        "description",
    ),
    Case("mcp_servers_have_an_address", ask(tools=[{"type": "mcp", "server_label": "s"}]), "$.tools[0]", "server_url"),
    Case(
        "calls_name_their_namespace",
        ask(call() | {"name": "find"}, result(), tools=[SPACE]),
        "$.input[0]",
        "Missing namespace for function_call 'find'. It does not exist in the default namespace.",
    ),
    Case("schemas_describe_objects", ask(tools=[tool(parameters={"type": "string"})]), PARAMETERS, 'type: "object"'),
    Case(
        "arrays_have_items",
        ask(tools=[tool(parameters={"type": "object", "properties": {"x": {"type": "array"}}})]),
        f"{PARAMETERS}.properties.x",
        "array schema missing items",
    ),
    Case(
        "strict_schemas_are_strict",
        strict({"type": "object", "properties": {}}),
        PARAMETERS,
        "Invalid schema for function 'f': In context=(), 'additionalProperties' is required to be supplied",
    ),
    Case("strict_schemas_are_strict", strict(CLOSED | {"required": []}), PARAMETERS, "Missing 'city'"),
    Case("strict_schemas_are_strict", strict(CLOSED | {"allOf": []}), PARAMETERS, "'allOf' is not permitted"),
    Case("strict_schemas_are_strict", strict(CLOSED | {"anyOf": []}), PARAMETERS, "the root must be an object"),
    Case(
        "strict_schemas_are_strict",
        strict(CLOSED | {"properties": {"city": {"type": "string", "format": "uri"}}}),
        f"{PARAMETERS}.properties.city",
        "'uri' is not a valid format",
    ),
    Case(
        "strict_schemas_are_strict",
        strict(CLOSED | {"properties": {"city": {"type": "string", "pattern": "(?=x)"}}}),
        f"{PARAMETERS}.properties.city",
        "look-around",
    ),
    Case(
        "strict_schemas_are_strict",
        ask(text={"format": {"type": "json_schema", "name": "x", "strict": True, "schema": {"type": "object"}}}),
        "$.text.format.schema",
        "Invalid schema for response_format 'x'",
    ),
    Case("strict_schemas_are_small", strict(deep(11)), PARAMETERS, "11 levels of nesting exceed the limit of 10"),
    Case("stream_options_need_stream", ask(stream_options={}), "$.stream_options", "'stream' is enabled"),
    Case("metadata_keys_are_short", ask(metadata={"k" * 65: "v"}), f"$.metadata.{'k' * 65}", "maximum length 64"),
    Case(
        "json_mode_is_announced",
        ask(instructions="answer in json", text={"format": {"type": "json_object"}}),
        "$.input",
        "Response input messages must contain the word 'json'",
    ),
    Case(
        "model_reasons",
        ask(reasoning={"effort": "low"}) | {"model": "gpt-5-chat-latest"},
        "$.reasoning.effort",
        "Unsupported parameter: 'reasoning.effort' is not supported with this model.",
    ),
    Case("model_reasons", ask(reasoning={"summary": "auto"}), "$.reasoning.summary", "'reasoning.summary'"),
    Case(
        "model_supports_effort",
        ask(reasoning={"effort": "minimal"}) | {"model": "o4-mini"},
        "$.reasoning.effort",
        "Unsupported value: 'minimal' is not supported with the 'o4-mini' model. "
        "Supported values are: 'low', 'medium', and 'high'.",
    ),
    Case("model_supports_effort", think(reasoning={"effort": "none"}), "$.reasoning.effort", "'gpt-5' model"),
    Case(
        "reasoning_fixes_sampling",
        think(temperature=0.2),
        "$.temperature",
        "Unsupported parameter: 'temperature' is not supported with this model.",
    ),
    Case(
        "model_encrypts_reasoning",
        ask(include=["reasoning.encrypted_content"]),
        "$.include",
        "Encrypted content is not supported with this model.",
    ),
    Case(
        "deep_research_takes_its_tools",
        ask(tools=[{"type": "web_search_preview"}, tool()]) | {"model": "o3-deep-research"},
        "$.tools",
        "only support the 'web_search_preview', 'code_interpreter', 'mcp', and 'file_search' tools.",
    ),
]

# Legal, and the SDK's types say so too.
GOOD = [
    {"model": "gpt-4o", "input": "hi"},
    ask({"role": "developer", "content": "be brief"}, user([text("what is it?"), image(image_url=PNG)])),
    ask(user([text("read it"), file(filename="a.pdf", file_data=PDF), file(file_id="file-1")])),
    ask(user("x"), {"role": "assistant", "content": "mine"}, user("y")),
    ask(user("x"), assistant(words("y"), id="msg_1", phase="final_answer"), user("z")),
    ask(user("x"), assistant({"type": "refusal", "refusal": "no"}, id="msg_1"), user("why?")),
    ask(call("call_1"), call("call_2"), result("call_2"), result("call_1", [text("see"), image(image_url=PNG)])),
    ask(CUSTOM_CALL, CUSTOM_RESULT),
    think(user("x"), thought("rs_1", encrypted_content="gAAAAABo4A=="), call(id="fc_1"), result()),
    think(user("x"), thought("rs_1"), thought("rs_2"), assistant(words("y"), id="msg_1"), user("z")),
    think(user("x"), thought(), assistant(words("mine"), id="msg_2"), user("y"), store=False),
    ask(result(), previous_response_id="resp_1"),
    ask({"type": "item_reference", "id": "fc_1"}, result()),
    ask({"id": "fc_1"}, result(), store=True),
    {"prompt": {"id": "pmpt_1", "version": "2", "variables": {"city": "Paris"}}},
    ask(tools=[tool(strict=True)], tool_choice="required", parallel_tool_calls=False),
    ask(tools=[tool(parameters=None, strict=None)], tool_choice={"type": "function", "name": "f"}),
    ask(
        tools=[tool(), tool("g")],
        tool_choice={"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "g"}]},
    ),
    ask(tools=[SPACE, {"type": "tool_search"}, tool(defer_loading=True)]),
    ask(call(namespace="crm") | {"name": "find"}, result(), tools=[SPACE]),
    ask(tools=[MCP, {"type": "web_search"}, {"type": "code_interpreter", "container": {"type": "auto"}}]),
    ask(
        tools=[
            {
                "type": "custom",
                "name": "sql",
                "format": {"type": "grammar", "syntax": "lark", "definition": "start: /a/"},
            }
        ]
    ),
    ask(text={"format": {"type": "json_schema", "name": "x", "schema": CLOSED, "strict": True}, "verbosity": "low"}),
    ask(user("in JSON please"), text={"format": {"type": "json_object"}}),
    ask(stream=True, stream_options={"include_obfuscation": False}, metadata={"k": "v"}),
    ask(include=["message.output_text.logprobs"], top_logprobs=3, temperature=0.2, max_output_tokens=16),
    think(reasoning={"effort": "minimal", "summary": "auto"}, include=["reasoning.encrypted_content"]),
    ask(temperature=0.2, reasoning={"effort": "none"}) | {"model": "gpt-5.4"},
    ask(user("x"), {"type": "compaction_trigger"}),
    strict(deep(10)),
]
# Recorded as accepted, though the SDK's types would have it otherwise.
GOOD_BUT_UNTYPED = [
    think(user("x"), thought(content=None), call(), result(), store=False),
    ask(client_metadata={"session_id": "1", "x-codex-turn-metadata": "{" + " " * 1000 + "}"}),
    ask(user("x"), {"role": "assistant", "content": [{"type": "output_text", "text": "y"}]}, user("z")),
    ask(user("x"), {"role": "assistant", "content": []}),
    think(user("x"), {"type": "reasoning", "summary": [], "encrypted_content": "gAAAA"}, user("y"), store=False),
    ask(tools=[{"type": "function", "name": "f", "function": {"name": "f", "parameters": CLOSED}}]),
    ask(tool_choice=None, tools=[]),
    ask(user([{"type": "input_image", "image_url": PNG}])),
    ask({"type": "image_generation_call", "id": "ig_1"}, user("again")),
]


@each("body", GOOD)
def test_a_legal_body_is_of_the_sdks_types(body: Body) -> None:
    kind = ResponseCreateParamsStreaming if body.get("stream") else ResponseCreateParamsNonStreaming
    assert complaints(body, kind) == []


def test_a_model_in_the_url_counts() -> None:
    assert check_request({"input": "x"}, model="gpt-4.1") == ()
    assert check_request({"input": "x", "temperature": 0}, model="o3")[0].path == "$.temperature"


def test_statuses_and_codes_are_the_servers() -> None:
    reference = ask({"type": "item_reference", "id": "msg_1"}, store=False)
    assert check_request(reference)[0].status == 404
    assert check_request(ask() | {"model": "o1-mini"})[0].code == "model_not_found"
    assert check_request(ask(max_output_tokens=1))[0].code == "integer_below_min_value"
    # Chat would say unsupported_parameter.
    assert check_request(think(top_p=0.5))[0].code is None


@pytest.mark.parametrize(
    "settings",
    [
        {"tools": [tool()], "tool_choice": {"type": "function", "function": {"name": "f"}}},
        {"text": {"format": {"type": "json_schema", "json_schema": {"name": "x", "schema": CLOSED}}}},
        {"tools": [{"type": "custom", "name": "c", "format": {"type": "grammar", "grammar": {"syntax": "lark"}}}]},
    ],
)
def test_what_chat_nests_is_flat_here(settings: Body) -> None:
    assert check_request(ask(**settings))[0].code == "unknown_parameter"


def test_a_call_answered_by_the_wrong_kind_of_output_leaves_both_alone() -> None:
    messages = [violation.message for violation in check_request(ask(call(), CUSTOM_RESULT))]
    assert messages == [
        "No tool output found for function call call_1.",
        "No tool call found for custom tool call output with call_id call_1.",
    ]


def test_an_output_before_its_call_answers_nothing() -> None:
    assert len(check_request(ask(result(), call()))) == 2


# --- responses ----------------------------------------------------------------------------------------------------

ECHO = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "instructions": None, "metadata": {}}
USAGE = {
    "input_tokens": 5,
    "input_tokens_details": {"cached_tokens": 2, "cache_write_tokens": 0},
    "output_tokens": 7,
    "output_tokens_details": {"reasoning_tokens": 3},
    "total_tokens": 12,
}


def answer(*items: Body, **more: Any) -> Body:
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "gpt-5",
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "output": list(items) or [assistant(words("hello"), id="msg_1")],
        "usage": USAGE,
        **ECHO,
        **more,
    }


BAD_ANSWERS = [
    Case(SHAPE, answer(object="chat.completion"), "$.object", "expected one of 'response'"),
    Case(SHAPE, answer(status="done"), "$.status", "expected one of 'completed'"),
    Case(SHAPE, answer(assistant(words("x"))), "$.output[0].id", "missing required key"),
    Case(SHAPE, answer(call(id="fc_1") | {"arguments": {}}), "$.output[0].arguments", "expected string, got object"),
    Case(SHAPE, answer({"type": "reasoning", "id": "rs_1"}), "$.output[0].summary", "missing required key"),
    Case(
        SHAPE,
        answer(assistant({"type": "output_text", "text": "x"}, id="msg_1")),
        "$.output[0].content[0].annotations",
        "missing required key",
    ),
    Case("usage_adds_up", answer(usage=USAGE | {"total_tokens": 13}), "$.usage.total_tokens", "input_tokens + output"),
    Case(
        "usage_adds_up",
        answer(usage=USAGE | {"output_tokens_details": {"reasoning_tokens": 8}}),
        "$.usage.output_tokens_details.reasoning_tokens",
        "a part of output_tokens",
    ),
    Case("status_is_explained", answer(status="incomplete"), "$.incomplete_details", "a reason"),
    Case("status_is_explained", answer(status="failed"), "$.error", "an error"),
    Case("items_have_their_own_ids", answer(call(id="fc_1"), call(id="fc_2")), "$.output", "a different call_id"),
    Case("items_have_their_own_ids", answer(thought(), thought()), "$.output", "a different id"),
]
GOOD_ANSWERS = [
    answer(),
    answer(thought(), call(id="fc_1", status="completed"), call("call_2", id="fc_2", status="completed")),
    answer(assistant({"type": "refusal", "refusal": "no"}, id="msg_1"), a_new_key={"any": 1}),
    answer(status="incomplete", incomplete_details={"reason": "max_output_tokens"}),
    answer(status="failed", error={"code": "server_error", "message": "no"}, output=[]),
    answer(status="queued", output=[], usage=None),
]
ERROR = {"error": {"message": "no", "type": "x", "param": None, "code": None}}


@pytest.mark.parametrize("body", GOOD_ANSWERS)
def test_an_answer_is_of_the_sdks_types(body: Body) -> None:
    Response.model_validate(body)


def test_a_new_kind_of_item_is_carried_along() -> None:
    assert check_response(answer({"type": "a_new_item", "id": "x_1"})) == ()
