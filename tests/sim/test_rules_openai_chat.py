from typing import Any

from dragoman.sim.rules.openai_chat import check_request
from tests.sim.rule_cases import SHAPE, Case

Body = dict[str, Any]

CLOSED = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}


def ask(*messages: Body, **settings: Any) -> Body:
    return {"model": "gpt-4o", "messages": list(messages) or [user("hi")], **settings}


def user(content: Any) -> Body:
    return {"role": "user", "content": content}


def calling(*ids: str, **more: Any) -> Body:
    return {"role": "assistant", "content": None, "tool_calls": [call(identifier) for identifier in ids], **more}


def call(identifier: str) -> Body:
    return {"id": identifier, "type": "function", "function": {"name": "f", "arguments": '{"x":1}'}}


def result(identifier: str, content: Any = "42") -> Body:
    return {"role": "tool", "tool_call_id": identifier, "content": content}


def tool(name: str = "f", **function: Any) -> Body:
    return {"type": "function", "function": {"name": name, **function}}


def strict(schema: Body) -> Body:
    return ask(tools=[tool(strict=True, parameters=schema)])


def deep(levels: int) -> Body:
    schema: Body = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"x": schema}, "required": ["x"], "additionalProperties": False}
    return schema


IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
AUDIO = {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}
FORMAT = {"type": "json_schema", "json_schema": {"name": "x", "schema": CLOSED, "strict": True}}
PARAMETERS = "$.tools[0].function.parameters"

BAD = [
    Case(SHAPE, {"model": "gpt-4o"}, "$.messages", "Missing required parameter: 'messages'"),
    Case(SHAPE, ask() | {"messages": []}, "$.messages", "empty array"),
    Case(SHAPE, ask(instructions="x"), "$.instructions", "Unknown parameter: 'instructions'"),
    Case(SHAPE, ask({"role": "robot", "content": "x"}), "$.messages[0].role", "Invalid value: 'robot'"),
    Case(SHAPE, ask({"role": "user", "content": "x", "cache_control": {}}), "$.messages[0].cache_control", "Unknown"),
    Case(SHAPE, ask(user([{"text": "x"}])), "$.messages[0].content[0].type", "Missing required parameter"),
    Case(
        SHAPE, ask(user([{"type": "video", "video": "x"}])), "$.messages[0].content[0].type", "Invalid value: 'video'"
    ),
    Case(SHAPE, ask(user([])), "$.messages[0].content", "empty array"),
    Case(SHAPE, ask(user(None)), "$.messages[0].content", "expected a string, got null"),
    Case(SHAPE, ask({"role": "user"}), "$.messages[0].content", "Missing required parameter"),
    Case(
        SHAPE, ask({"role": "user", "content": "x", "name": "Ann Lee"}), "$.messages[0].name", "does not match pattern"
    ),
    Case(SHAPE, ask({"role": "tool", "content": "x"}), "$.messages[0].tool_call_id", "Missing required parameter"),
    Case(SHAPE, ask(user("x"), calling("c" * 41), result("c" * 41)), "$.messages[1].tool_calls[0].id", "too long"),
    Case(
        SHAPE, ask({"role": "assistant", "content": "x", "tool_calls": []}), "$.messages[0].tool_calls", "empty array"
    ),
    Case(
        SHAPE,
        ask(
            {"role": "assistant", "tool_calls": [call("a") | {"function": {"name": "f", "arguments": {}}}]}, result("a")
        ),
        "$.messages[0].tool_calls[0].function.arguments",
        "expected a string, but got an object",
    ),
    Case(
        SHAPE,
        ask(
            {"role": "assistant", "tool_calls": [call("a") | {"function": {"name": "a.b", "arguments": ""}}]},
            result("a"),
        ),
        "$.messages[0].tool_calls[0].function.name",
        "does not match pattern",
    ),
    Case(SHAPE, ask(tools=[]), "$.tools", "empty array"),
    Case(SHAPE, ask(tools=[tool(str(n)) for n in range(129)]), "$.tools", "array too long"),
    Case(SHAPE, ask(tools=[{"type": "function", "name": "f"}]), "$.tools[0].function", "Missing required parameter"),
    Case(SHAPE, ask(tools=[tool("x" * 65)]), "$.tools[0].function.name", "too long"),
    Case(SHAPE, ask(tools=[tool(), {"type": "web_search"}]), "$.tools[1].type", "Invalid value: 'web_search'"),
    Case(
        SHAPE,
        ask(tools=[{"type": "custom", "custom": {"name": "sql", "format": {"type": "grammar"}}}]),
        "$.tools[0].custom.format.grammar",
        "Missing required parameter: 'tools[0].custom.format.grammar'",
    ),
    Case(SHAPE, ask(tools=[tool()], tool_choice="any"), "$.tool_choice", "Invalid value: 'any'"),
    Case(SHAPE, ask(tools=[tool()], tool_choice={"type": "function"}), "$.tool_choice.function", "Missing"),
    Case(SHAPE, ask(temperature=99.0), "$.temperature", "decimal above maximum value. Expected a value <= 2"),
    Case(SHAPE, ask(n=0), "$.n", "integer below minimum value"),
    Case(SHAPE, ask(top_p="1"), "$.top_p", "expected a decimal, but got a string"),
    Case(SHAPE, ask(stop=["a", "b", "c", "d", "e"]), "$.stop", "array too long"),
    Case(SHAPE, ask(reasoning_effort="extreme"), "$.reasoning_effort", "Invalid value: 'extreme'"),
    Case(
        SHAPE,
        ask(response_format={"type": "json_schema"}),
        "$.response_format.json_schema",
        "Missing required parameter",
    ),
    Case(SHAPE, ask(metadata={"k": "v" * 513}), "$.metadata.k", "string too long"),
    Case("model_is_named", {"messages": [user("x")]}, "$.model", "you must provide a model parameter"),
    Case("model_chats", ask() | {"model": "text-embedding-3-small"}, "$.model", "This is not a chat model"),
    Case(
        "parts_fit_their_role",
        ask(user("x"), calling("a"), result("a", [IMAGE])),
        "$.messages[2].content[0]",
        "Image URLs are only allowed for messages with role 'user', but this message with role 'tool'",
    ),
    Case(
        "parts_fit_their_role", ask(user([{"type": "refusal", "refusal": "no"}])), "$.messages[0].content[0]", "refusal"
    ),
    Case(
        "refusal_stands_alone",
        ask({"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}, {"type": "text", "text": "x"}]}),
        "$.messages[0].content",
        "only part",
    ),
    Case(
        "assistant_says_something",
        ask(user("x"), {"role": "assistant", "content": None}),
        "$.messages[1].content",
        "expected a string, got null",
    ),
    Case(
        "assistant_says_something",
        ask(user("x"), {"role": "assistant", "content": []}),
        "$.messages[1].content",
        "empty",
    ),
    Case(
        "results_follow_their_calls",
        ask(user("x"), result("a")),
        "$.messages[1].role",
        "must be a response to a preceding",
    ),
    Case(
        "results_follow_their_calls",
        ask(user("x"), calling("a", "b"), result("a")),
        "$.messages[1]",
        "did not have response messages: b",
    ),
    Case(
        "results_follow_their_calls",
        ask(user("x"), calling("a", "b"), result("a"), result("b"), result("b")),
        "$.messages[4].role",
        "must be a response",
    ),
    Case(
        "call_ids_differ",
        ask(user("x"), calling("a", "a"), result("a"), result("a")),
        "$.messages[1].tool_calls[1].id",
        "Duplicate value",
    ),
    Case(
        "images_are_readable",
        ask(user([IMAGE | {"image_url": {"url": "data:image/tiff;base64,AAAA"}}])),
        "$.messages[0].content[0].image_url.url",
        "unsupported image",
    ),
    Case(
        "images_are_readable",
        ask(user([IMAGE | {"image_url": {"url": "AAAA"}}])),
        "$.messages[0].content[0].image_url.url",
        "Expected an http(s) URL",
    ),
    Case(
        "audio_is_bare_base64",
        ask(user([AUDIO | {"input_audio": {"data": "data:audio/wav;base64,AA", "format": "wav"}}]))
        | {"model": "gpt-audio"},
        "$.messages[0].content[0].input_audio.data",
        "without a data URL prefix",
    ),
    Case(
        "files_come_one_way",
        ask(user([{"type": "file", "file": {"filename": "a.pdf"}}])),
        "$.messages[0].content[0].file",
        "either 'file_id' or 'file_data'",
    ),
    Case(
        "files_come_one_way",
        ask(user([{"type": "file", "file": {"file_data": "JVBERi0="}}])),
        "$.messages[0].content[0].file.file_data",
        "data URL",
    ),
    Case(
        "tool_settings_need_tools", ask(parallel_tool_calls=False), "$.parallel_tool_calls", "only allowed when 'tools'"
    ),
    Case("tool_settings_need_tools", ask(tool_choice="auto"), "$.tool_choice", "only allowed when 'tools'"),
    Case("tool_settings_need_tools", ask(function_call="auto"), "$.function_call", "only allowed when 'functions'"),
    Case(
        "chosen_tools_exist",
        ask(tools=[tool()], tool_choice={"type": "function", "function": {"name": "g"}}),
        "$.tool_choice",
        "'g' not found in 'tools'",
    ),
    Case(
        "chosen_function_exists", ask(functions=[{"name": "f"}], function_call={"name": "g"}), "$.function_call", "'g'"
    ),
    Case("schemas_describe_objects", ask(tools=[tool(parameters={"type": "string"})]), PARAMETERS, 'type: "object"'),
    Case(
        "arrays_have_items",
        ask(tools=[tool(parameters={"type": "object", "properties": {"x": {"type": "array"}}})]),
        f"{PARAMETERS}.properties.x",
        "array schema missing items",
    ),
    Case(
        "strict_objects_are_closed", strict({"type": "object", "properties": {}}), PARAMETERS, "'additionalProperties'"
    ),
    Case("strict_objects_require_all", strict(CLOSED | {"required": []}), PARAMETERS, "Missing 'city'"),
    Case("strict_schemas_use_known_keywords", strict(CLOSED | {"allOf": []}), PARAMETERS, "'allOf' is not permitted"),
    Case(
        "strict_schemas_use_known_keywords",
        strict(CLOSED | {"properties": {"city": {"type": "string", "format": "uri"}}}),
        f"{PARAMETERS}.properties.city",
        "'uri' is not a valid format",
    ),
    Case(
        "strict_schemas_use_known_keywords",
        strict(CLOSED | {"properties": {"city": {"type": "string", "pattern": "(?=x)"}}}),
        f"{PARAMETERS}.properties.city",
        "look-around",
    ),
    Case("strict_schemas_are_small", strict(deep(11)), PARAMETERS, "11 levels of nesting exceed the limit of 10"),
    Case("stream_options_need_stream", ask(stream_options={"include_usage": True}), "$.stream_options", "'stream'"),
    Case("one_token_limit", ask(max_tokens=5, max_completion_tokens=5), "$.max_tokens", "at the same time"),
    Case("top_logprobs_need_logprobs", ask(top_logprobs=3), "$.top_logprobs", "'logprobs'"),
    Case("audio_answers_need_a_voice", ask(modalities=["text", "audio"]), "$.audio", "Missing required parameter"),
    Case("metadata_keys_are_short", ask(metadata={"k" * 65: "v"}), f"$.metadata.{'k' * 65}", "64 characters"),
    Case("json_mode_is_announced", ask(response_format={"type": "json_object"}), "$.messages", "the word 'json'"),
    Case(
        "model_takes_tools",
        ask(tools=[tool()]) | {"model": "gpt-5-chat-latest"},
        "$.tools",
        "not supported in this model",
    ),
    Case(
        "model_takes_token_limit", ask(max_tokens=5) | {"model": "gpt-5-nano"}, "$.max_tokens", "max_completion_tokens"
    ),
    Case("model_takes_stop", ask(stop=["x"]) | {"model": "gpt-5-mini"}, "$.stop", "Unsupported parameter: 'stop'"),
    Case(
        "reasoning_fixes_sampling",
        ask(temperature=0.2) | {"model": "o4-mini"},
        "$.temperature",
        "Unsupported parameter",
    ),
    Case(
        "reasoning_fixes_sampling", ask(top_p=0.5, reasoning_effort="high") | {"model": "gpt-5.4"}, "$.top_p", "Unsupp"
    ),
    Case(
        "model_takes_role",
        ask({"role": "system", "content": "x"}) | {"model": "o1-mini"},
        "$.messages[0].role",
        "does not support 'system' with this model",
    ),
    Case("model_accepts_audio", ask(user([AUDIO])), "$.messages[0]", "either text or image_url type"),
    Case("model_searches", ask(web_search_options={}), "$.web_search_options", "not supported with this model"),
]

GOOD = [
    ask(),
    ask({"role": "system", "content": "be brief"}, user([{"type": "text", "text": "what is it?"}, IMAGE])),
    ask(user("x"), calling("a", "b"), result("b"), result("a", [{"type": "text", "text": "ok"}]), user("and?")),
    ask(user("x"), {"role": "assistant", "content": None, "refusal": "no"}, user("why?")),
    ask(user("x"), {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]}, user("why?")),
    ask(user("x"), calling("a") | {"content": []}, result("a")),
    ask(
        user("x"),
        {
            "role": "assistant",
            "tool_calls": [{"id": "c", "type": "custom", "custom": {"name": "sql", "input": "SELECT 1"}}],
        },
        result("c"),
    ),
    ask(tools=[tool(parameters=CLOSED, strict=True)], tool_choice="required", parallel_tool_calls=False),
    ask(tools=[tool()], tool_choice={"type": "function", "function": {"name": "f"}}),
    ask(
        tools=[tool(), tool("g")],
        tool_choice={
            "type": "allowed_tools",
            "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "g"}}]},
        },
    ),
    ask(response_format=FORMAT, stream=True, stream_options={"include_usage": True}, stop=["x"], seed=1),
    ask(user("in JSON please"), response_format={"type": "json_object"}),
    ask(user([AUDIO]), modalities=["text", "audio"], audio={"format": "mp3", "voice": "alloy"})
    | {"model": "gpt-audio"},
    ask(temperature=0.2) | {"model": "gpt-5.1"},
    ask(temperature=0.2, reasoning_effort="none") | {"model": "gpt-5.4"},
    ask(temperature=1) | {"model": "gpt-5-nano"},
    ask(functions=[{"name": "f", "parameters": CLOSED}], function_call={"name": "f"}),
    ask(user([{"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0="}}])),
    strict(deep(10)),
]


def test_a_message_between_call_and_result_leaves_both_alone() -> None:
    violations = check_request(ask(user("x"), calling("a"), user("wait"), result("a")))
    assert [violation.path for violation in violations] == ["$.messages[1]", "$.messages[3].role"]


def test_a_model_in_the_url_counts() -> None:
    assert check_request({"messages": [user("x")]}, model="gpt-4.1") == ()
    assert check_request({"messages": [user("x")], "max_tokens": 5}, model="o3")[0].code == "unsupported_parameter"


def test_statuses_and_codes_are_the_servers() -> None:
    assert check_request(ask() | {"model": "text-embedding-3-small"})[0].status == 404
    assert check_request(ask(temperature=3))[0].code == "decimal_above_max_value"
    assert check_request(ask(n=300))[0].code == "integer_above_max_value"


def answer(message: Body | None = None, *, finish_reason: str = "stop", **more: Any) -> Body:
    written: Body = {"role": "assistant", "content": "hi", "refusal": None, "annotations": []} | (message or {})
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "gpt-4o",
        "choices": [{"index": 0, "message": written, "finish_reason": finish_reason, "logprobs": None}],
        "usage": {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12},
        **more,
    }


CALLS = {"content": None, "tool_calls": [call("a"), call("b")]}
BAD_ANSWERS = [
    Case(SHAPE, answer() | {"object": "chat.completion.chunk"}, "$.object", "expected one of 'chat.completion'"),
    Case(SHAPE, answer() | {"choices": []}, "$.choices", "at least 1"),
    Case(SHAPE, answer(finish_reason="end_turn"), "$.choices[0].finish_reason", "got 'end_turn'"),
    Case(SHAPE, answer({"tool_calls": []}), "$.choices[0].message.tool_calls", "at least 1"),
    Case(
        SHAPE, answer({"content": [{"type": "text", "text": "x"}]}), "$.choices[0].message.content", "expected string"
    ),
    Case(
        SHAPE,
        answer({"tool_calls": [call("a") | {"function": {"name": "f", "arguments": {"x": 1}}}]}),
        "$.choices[0].message.tool_calls[0].function.arguments",
        "expected string, got object",
    ),
    Case(
        SHAPE,
        answer(usage={"prompt_tokens": 1, "completion_tokens": 1}),
        "$.usage.total_tokens",
        "missing required key",
    ),
    Case(
        "usage_adds_up",
        answer(usage={"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 13}),
        "$.usage.total_tokens",
        "prompt_tokens + completion_tokens",
    ),
    Case(
        "usage_adds_up",
        answer(
            usage={
                "prompt_tokens": 5,
                "completion_tokens": 7,
                "total_tokens": 12,
                "completion_tokens_details": {"reasoning_tokens": 8},
            }
        ),
        "$.usage.completion_tokens_details.reasoning_tokens",
        "a part of completion_tokens",
    ),
    Case("choices_are_numbered", answer(choices=[answer()["choices"][0] | {"index": 1}]), "$.choices", "0, 1, 2"),
    Case(
        "calls_have_their_own_ids",
        answer({"content": None, "tool_calls": [call("a"), call("a")]}, finish_reason="tool_calls"),
        "$.choices[0].message.tool_calls",
        "different id",
    ),
    Case(
        "finish_reason_has_calls", answer(finish_reason="tool_calls"), "$.choices[0].finish_reason", "there is no call"
    ),
]
GOOD_ANSWERS = [
    answer(),
    answer(CALLS, finish_reason="tool_calls"),
    answer(CALLS, finish_reason="stop"),
    answer({"content": None, "refusal": "no"}, a_new_key={"any": 1}),
    answer(usage=None),
]
ERROR = {"error": {"message": "no", "type": "x", "param": None, "code": None}}
