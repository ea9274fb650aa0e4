"""The openai-chat codec: tables that drive both directions, and what compatible servers say.

A row gives a piece of wire and the intermediate value it stands for. Reading the wire gives the value (spelling notes
aside); writing the value gives the canonical wire; and the wire itself, read and written, comes back as it was.
"""

import json
from typing import Any

import pytest
from msgspec import structs

import dragoman
from dragoman import ir
from dragoman.errors import DecodeError, StreamError
from tests.support.cases import each
from tests.support.formats import FORMATS
from tests.support.promises import promise
from tests.support.trees import difference, without_notes
from tests.support.ugly import chat_answer, chat_call

NAME = "openai-chat"
PIXEL = "iVBORw0KGgo="
PDF = "JVBERi0="


def request_body(**fields: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": "hi"}], **fields}


def returns(body: dict[str, Any]) -> str | None:
    again = dragoman.encode_request(dragoman.decode_request(body, NAME), NAME)
    return difference(body, json.loads(again.json()))


# ── messages ──────────────────────────────────────────────────────────────────────────────────────────────────

USER = ir.Message("user", "hi")
CALL = ir.ToolCall("call_1", "f", {"a": 1}, '{"a": 1}')
WIRE_CALL = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
CALLING: dict[str, Any] = {"role": "assistant", "content": None, "tool_calls": [WIRE_CALL]}
CALLED = ir.Message("assistant", (CALL,))
CITED = {"url": "https://e.org", "title": "E", "start_index": 0, "end_index": 2}
QUOTED = {"type": "url_citation", "url_citation": CITED}
ANNEXED = {"type": "file", "file": {"hash": "h", "name": "a.pdf", "content": [{"type": "text", "text": "x"}]}}
OPAQUE = ir.Signature("copilot", "b3A=")
DRAWN: dict[str, Any] = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}

# name: (wire messages, intermediate messages). Canonical: both directions give exactly the other side.
MESSAGES: dict[str, tuple[list[dict[str, Any]], tuple[ir.Message, ...]]] = {
    "user text": ([{"role": "user", "content": "hi"}], (USER,)),
    "empty text": ([{"role": "user", "content": ""}], (ir.Message("user", ""),)),
    "system": (
        [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}],
        (ir.Message("system", "Be brief."), USER),
    ),
    "system in the middle": (
        [{"role": "user", "content": "hi"}, {"role": "system", "content": "Be brief."}],
        (USER, ir.Message("system", "Be brief.")),
    ),
    "a named speaker": ([{"role": "user", "content": "hi", "name": "ann"}], (ir.Message("user", "hi", "ann"),)),
    "text parts": (
        [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}],
        (ir.Message("user", (ir.Text("a"), ir.Text("b"))),),
    ),
    "image by URL": (
        [
            {
                "role": "user",
                "content": [{"type": "image_url", "image_url": {"url": "https://example.org/a.png", "detail": "high"}}],
            }
        ],
        (ir.Message("user", (ir.Image(url="https://example.org/a.png", detail="high"),)),),
    ),
    "image as data": (
        [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}]}],
        (ir.Message("user", (ir.Image("image/png", PIXEL),)),),
    ),
    "audio": (
        [{"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "AAAA", "format": "mp3"}}]}],
        (ir.Message("user", (ir.Audio("audio/mpeg", "AAAA"),)),),
    ),
    "file as data": (
        [
            {
                "role": "user",
                "content": [
                    {"type": "file", "file": {"file_data": f"data:application/pdf;base64,{PDF}", "filename": "a.pdf"}}
                ],
            }
        ],
        (ir.Message("user", (ir.Document("application/pdf", PDF, title="a.pdf"),)),),
    ),
    "file by id": (
        [{"role": "user", "content": [{"type": "file", "file": {"file_id": "file-1"}}]}],
        (ir.Message("user", (ir.Document(file_id="file-1"),)),),
    ),
    "assistant text": (
        [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}],
        (USER, ir.Message("assistant", "ho")),
    ),
    "assistant refusal": (
        [{"role": "user", "content": "hi"}, {"role": "assistant", "content": None, "refusal": "no"}],
        (USER, ir.Message("assistant", (ir.Refusal("no"),))),
    ),
    "call and result": (
        [CALLING, {"role": "tool", "content": "42", "tool_call_id": "call_1"}],
        (CALLED, ir.Message("tool", (ir.ToolResult("call_1", "f", "text", "42"),))),
    ),
    "call after text": (
        [
            {**CALLING, "content": "Let me see."},
            {"role": "tool", "content": "42", "tool_call_id": "call_1"},
        ],
        (
            ir.Message("assistant", (ir.Text("Let me see."), CALL)),
            ir.Message("tool", (ir.ToolResult("call_1", "f", "text", "42"),)),
        ),
    ),
    "an error as result": (
        [CALLING, {"role": "tool", "content": '{"error":"no such city"}', "tool_call_id": "call_1"}],
        (CALLED, ir.Message("tool", (ir.ToolResult("call_1", "f", "error", "no such city"),))),
    ),
    "text parts as result": (
        [CALLING, {"role": "tool", "content": [{"type": "text", "text": "42"}], "tool_call_id": "call_1"}],
        (CALLED, ir.Message("tool", (ir.ToolResult("call_1", "f", "multimodal", None, (ir.Text("42"),)),))),
    ),
    "custom call": (
        [
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "call_1", "type": "custom", "custom": {"name": "sql", "input": "SELECT 1"}}],
            },
            {"role": "tool", "content": "1", "tool_call_id": "call_1"},
        ],
        (
            ir.Message("assistant", (ir.ToolCall("call_1", "sql", {"input": "SELECT 1"}, "SELECT 1", custom=True),)),
            ir.Message("tool", (ir.ToolResult("call_1", "sql", "text", "1"),)),
        ),
    ),
}


@each("name", MESSAGES)
def test_messages_are_read(name: str) -> None:
    wire, messages = MESSAGES[name]
    request = dragoman.decode_request({"model": "m", "messages": wire}, NAME)
    assert without_notes(request.messages) == messages


@each("name", MESSAGES)
def test_messages_are_written(name: str) -> None:
    wire, messages = MESSAGES[name]
    encoded = dragoman.encode_request(ir.Request("m", messages, origin="openai"), NAME)
    assert difference(wire, encoded.body["messages"]) is None
    assert encoded.losses == ()


@each("name", MESSAGES)
def test_messages_come_back(name: str) -> None:
    assert returns({"model": "m", "messages": MESSAGES[name][0]}) is None


# ── compatible servers ────────────────────────────────────────────────────────────────────────────────────────

# name: (wire message, what the intermediate message must say). Reading only; but every one comes back as it was.
TOLERATED: dict[str, tuple[dict[str, Any], ir.Message]] = {
    "developer": ({"role": "developer", "content": "Be brief."}, ir.Message("system", "Be brief.")),
    "image_url as a bare string": (
        {"role": "user", "content": [{"type": "image_url", "image_url": "https://example.org/a.png"}]},
        ir.Message("user", (ir.Image(url="https://example.org/a.png"),)),
    ),
    "content absent beside calls": ({"role": "assistant", "tool_calls": [WIRE_CALL]}, CALLED),
    "content empty beside calls": (
        {"role": "assistant", "content": "", "tool_calls": [WIRE_CALL]},
        ir.Message("assistant", (ir.Text(""), CALL)),
    ),
    "calls null": ({"role": "assistant", "content": "ho", "tool_calls": None}, ir.Message("assistant", "ho")),
    "calls empty": ({"role": "assistant", "content": "ho", "tool_calls": []}, ir.Message("assistant", "ho")),
    "call without type (Mistral)": (
        {"role": "assistant", "content": None, "tool_calls": [{"id": "call_1", "function": WIRE_CALL["function"]}]},
        CALLED,
    ),
    "call of another type (Kimi)": (
        {"role": "assistant", "content": None, "tool_calls": [{**WIRE_CALL, "type": "builtin_function"}]},
        CALLED,
    ),
    "call with index (DeepSeek)": (
        {"role": "assistant", "content": None, "tool_calls": [{"index": 0, **WIRE_CALL}]},
        CALLED,
    ),
    "arguments as an object (llama.cpp)": (
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "f", "arguments": {"a": 1}}}],
        },
        ir.Message("assistant", (ir.ToolCall("call_1", "f", {"a": 1}),)),
    ),
    "arguments absent (OpenRouter)": (
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "f"}}],
        },
        ir.Message("assistant", (ir.ToolCall("call_1", "f", {}),)),
    ),
    "arguments empty": (
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "f", "arguments": ""}}],
        },
        ir.Message("assistant", (ir.ToolCall("call_1", "f", {}, ""),)),
    ),
    "every optional member filled (Snowflake)": (
        {
            "role": "assistant",
            "content": "",
            "refusal": "",
            "function_call": {"name": "", "arguments": ""},
            "tool_calls": [{**WIRE_CALL, "custom": {"name": "", "input": ""}}],
        },
        ir.Message("assistant", (ir.Text(""), CALL)),
    ),
    "reasoning_content (DeepSeek)": (
        {"role": "assistant", "content": "ho", "reasoning_content": "hm"},
        ir.Message("assistant", (ir.Reasoning("hm"), ir.Text("ho"))),
    ),
    "reasoning (Groq, vLLM)": (
        {"role": "assistant", "content": "ho", "reasoning": "hm"},
        ir.Message("assistant", (ir.Reasoning("hm"), ir.Text("ho"))),
    ),
    "reasoning_text (Copilot)": (
        {"role": "assistant", "content": "ho", "reasoning_text": "hm", "reasoning_opaque": "b3A="},
        ir.Message("assistant", (ir.Reasoning("hm", OPAQUE), ir.Text("ho"))),
    ),
    "reasoning_opaque alone (Copilot)": (
        {"role": "assistant", "content": "ho", "reasoning_opaque": "b3A="},
        ir.Message("assistant", (ir.Reasoning("", OPAQUE, redacted=True), ir.Text("ho"))),
    ),
    "a call in both spellings (llama-cpp-python)": (
        {"role": "assistant", "content": None, "function_call": WIRE_CALL["function"], "tool_calls": [WIRE_CALL]},
        ir.Message("assistant", (CALL,)),
    ),
    "thinking parts (Mistral)": (
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}], "closed": True},
                {"type": "text", "text": "ho"},
            ],
        },
        ir.Message("assistant", (ir.Reasoning("hm"), ir.Text("ho"))),
    ),
    "signed call (Gemini's endpoint)": (
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{**WIRE_CALL, "extra_content": {"google": {"thought_signature": "c2ln"}}}],
        },
        ir.Message("assistant", (structs.replace(CALL, signature=ir.Signature("google", "c2ln")),)),
    ),
    "images (OpenRouter, LiteLLM)": (
        {
            "role": "assistant",
            "content": "ho",
            "tool_calls": [WIRE_CALL],
            "images": [{**DRAWN, "index": 0}, {"type": "image_url", "image_url": "https://e.org/a.png"}],
        },
        ir.Message(
            "assistant", (ir.Text("ho"), ir.Image("image/png", PIXEL), ir.Image(url="https://e.org/a.png"), CALL)
        ),
    ),
    "images beside those of the content": (
        {"role": "assistant", "content": [DRAWN, {"type": "text", "text": "ho"}], "images": [DRAWN]},
        ir.Message("assistant", (ir.Image("image/png", PIXEL), ir.Text("ho"), ir.Image("image/png", PIXEL))),
    ),
    "files among the annotations (OpenRouter)": (
        {"role": "assistant", "content": "ho", "annotations": [ANNEXED, QUOTED, ANNEXED, QUOTED, ANNEXED, ANNEXED]},
        ir.Message("assistant", (ir.Text("ho", (ir.Citation("https://e.org", "E", None, 0, 2),) * 2),)),
    ),
    "no images": ({"role": "assistant", "content": "ho", "images": []}, ir.Message("assistant", (ir.Text("ho"),))),
    "something else among the images": (
        {"role": "assistant", "content": "ho", "images": [DRAWN, {"type": "video_url", "video_url": {"url": "v"}}]},
        ir.Message("assistant", (ir.Text("ho"),)),
    ),
    "reasoning_details (OpenRouter)": (
        {
            "role": "assistant",
            "content": "ho",
            "reasoning": "hm",
            "reasoning_details": [
                {
                    "type": "reasoning.text",
                    "text": "hm",
                    "signature": "c2ln",
                    "format": "anthropic-claude-v1",
                    "index": 0,
                },
                {"type": "reasoning.encrypted", "data": "ZW5j", "id": "rs_1", "format": "openai-responses-v1"},
                {"type": "reasoning.summary", "summary": "in short", "format": "openai-responses-v1"},
            ],
        },
        ir.Message(
            "assistant",
            (
                ir.Reasoning("hm", ir.Signature("anthropic", "c2ln")),
                ir.Reasoning("", ir.Signature("openai-responses", "ZW5j", "rs_1"), redacted=True),
                ir.Reasoning("in short"),
                ir.Text("ho"),
            ),
        ),
    ),
}


@each("name", TOLERATED)
def test_what_compatible_servers_say_is_read(name: str) -> None:
    wire, message = TOLERATED[name]
    (read,) = dragoman.decode_request({"model": "m", "messages": [wire]}, NAME).messages
    assert without_notes(read) == message


@each("name", TOLERATED)
def test_what_compatible_servers_say_comes_back(name: str) -> None:
    assert returns({"model": "m", "messages": [TOLERATED[name][0]]}) is None
    if TOLERATED[name][0]["role"] == "assistant":
        body = chat_answer(TOLERATED[name][0])
        again = dragoman.encode_response(dragoman.decode_response(body, NAME), NAME)
        assert difference(body, json.loads(again.json())) is None


@promise("report:63", "report:62")
def test_calls_without_an_id_get_one_and_results_find_them_by_order() -> None:
    """Gemini's endpoint gives the id "" to every call."""
    calls = [{**WIRE_CALL, "id": ""}, {**WIRE_CALL, "id": "", "function": {"name": "g", "arguments": "{}"}}]
    body = {
        "model": "m",
        "messages": [
            {"role": "assistant", "content": None, "tool_calls": calls},
            {"role": "tool", "tool_call_id": "", "content": "1"},
            {"role": "tool", "tool_call_id": "", "content": "2"},
        ],
    }
    first, second = dragoman.decode_request(body, NAME).messages[0].tool_calls
    results = [message.tool_results[0] for message in dragoman.decode_request(body, NAME).messages[1:]]
    assert first.invented_id
    assert second.invented_id
    assert [(result.tool_call_id, result.name) for result in results] == [(first.id, "f"), (second.id, "g")]
    assert returns(body) is None


def test_legacy_functions() -> None:
    body = {
        "model": "m",
        "messages": [
            {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
            {"role": "function", "name": "f", "content": "42"},
        ],
    }
    calling, answering = dragoman.decode_request(body, NAME).messages
    (call,), (result,) = calling.tool_calls, answering.tool_results
    assert (call.name, call.arguments, result.tool_call_id, result.value) == ("f", {}, call.id, "42")
    assert returns(body) is None


# ── tools, choice, output ─────────────────────────────────────────────────────────────────────────────────────

SCHEMA = {"type": "object", "properties": {"b": {"type": "string"}, "a": {"type": "integer"}}, "required": ["b"]}
FUNCTION = {"type": "function", "function": {"name": "f", "description": "F", "parameters": SCHEMA, "strict": False}}

TOOLS: dict[str, tuple[dict[str, Any], ir.AnyTool]] = {
    "function": (FUNCTION, ir.ToolDefinition("f", "F", SCHEMA, strict=False)),
    "bare function": ({"type": "function", "function": {"name": "f"}}, ir.ToolDefinition("f")),
    "custom": (
        {"type": "custom", "custom": {"name": "sql", "description": "SQL"}},
        ir.CustomTool("sql", "SQL"),
    ),
    "custom with a grammar": (
        {
            "type": "custom",
            "custom": {
                "name": "sql",
                "format": {"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: /x/"}},
            },
        },
        ir.CustomTool("sql", format={"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: /x/"}}),
    ),
    "a provider's own": (
        {"type": "web_search", "search_context_size": "low"},
        ir.ProviderTool(
            "web_search",
            "openai",
            {"type": "web_search", "search_context_size": "low"},
            kind="web_search",
            context_size="low",
        ),
    ),
}


@promise("report:80")
@pytest.mark.parametrize("name", TOOLS)
def test_tools_both_ways(name: str) -> None:
    wire, tool = TOOLS[name]
    request = dragoman.decode_request(request_body(tools=[wire]), NAME)
    assert without_notes(request.tools) == (tool,)
    assert returns(request_body(tools=[wire])) is None
    written = dragoman.encode_request(ir.Request("m", (USER,), (tool,), origin="openai"), NAME).body
    assert json.dumps(written["tools"]) == json.dumps([wire])


CHOICES: dict[str, tuple[Any, ir.ToolChoice]] = {
    "auto": ("auto", ir.ToolChoice("auto")),
    "none": ("none", ir.ToolChoice("none")),
    "required": ("required", ir.ToolChoice("required")),
    "one": ({"type": "function", "function": {"name": "f"}}, ir.ToolChoice("required", ("f",))),
    "some, free": (
        {
            "type": "allowed_tools",
            "allowed_tools": {
                "mode": "auto",
                "tools": [
                    {"type": "function", "function": {"name": "f"}},
                    {"type": "function", "function": {"name": "g"}},
                ],
            },
        },
        ir.ToolChoice("auto", ("f", "g")),
    ),
    "some, forced": (
        {
            "type": "allowed_tools",
            "allowed_tools": {
                "mode": "required",
                "tools": [
                    {"type": "function", "function": {"name": "f"}},
                    {"type": "function", "function": {"name": "g"}},
                ],
            },
        },
        ir.ToolChoice("required", ("f", "g")),
    ),
}
F_AND_G = [FUNCTION, {"type": "function", "function": {"name": "g"}}]


@promise("report:68", "report:69")
@pytest.mark.parametrize("name", CHOICES)
def test_choices_both_ways(name: str) -> None:
    wire, choice = CHOICES[name]
    request = dragoman.decode_request(request_body(tools=F_AND_G, tool_choice=wire), NAME)
    assert without_notes(request.tool_choice) == choice
    assert returns(request_body(tools=F_AND_G, tool_choice=wire)) is None
    tools = (ir.ToolDefinition("f"), ir.ToolDefinition("g"))
    assert dragoman.encode_request(ir.Request("m", (USER,), tools, choice), NAME).body["tool_choice"] == wire


@pytest.mark.parametrize(
    ("wire", "choice"),
    [
        ("any", ir.ToolChoice("required")),
        ({"type": "custom", "custom": {"name": "f"}}, ir.ToolChoice("required", ("f",))),
        ({"function": {"name": "f"}}, ir.ToolChoice("required", ("f",))),
        ({"type": "tool", "name": "f"}, ir.ToolChoice("required", ("f",))),
    ],
    ids=str,
)
def test_other_spellings_of_a_choice(wire: Any, choice: ir.ToolChoice) -> None:
    assert (
        without_notes(dragoman.decode_request(request_body(tools=[FUNCTION], tool_choice=wire), NAME).tool_choice)
        == choice
    )
    assert returns(request_body(tools=[FUNCTION], tool_choice=wire)) is None


@promise("report:70")
def test_neither_a_choice_nor_the_parallel_switch_is_sent_without_tools() -> None:
    encoded = dragoman.encode_request(
        ir.Request("m", (USER,), (), ir.ToolChoice("required"), parallel_tool_calls=False), NAME
    )
    assert "tool_choice" not in encoded.body
    assert "parallel_tool_calls" not in encoded.body
    assert "$.tool_choice" in {loss.path for loss in encoded.losses}


@pytest.mark.parametrize(
    ("wire", "output"),
    [
        ({"type": "json_object"}, ir.StructuredOutput("json")),
        (
            {
                "type": "json_schema",
                "json_schema": {"name": "x", "schema": SCHEMA, "description": "X", "strict": False},
            },
            ir.StructuredOutput("schema", SCHEMA, "x", "X", strict=False),
        ),
    ],
    ids=["object", "schema"],
)
def test_structured_output_both_ways(wire: dict[str, Any], output: ir.StructuredOutput) -> None:
    request = dragoman.decode_request(request_body(response_format=wire), NAME)
    assert without_notes(request.output) == output
    assert returns(request_body(response_format=wire)) is None
    written = dragoman.encode_request(ir.Request("m", (USER,), output=output, origin="openai"), NAME).body
    assert written["response_format"] == wire


@each("kind", ["json_object", "json_schema"])
def test_a_schema_beside_the_type_of_the_format_is_the_schema(kind: str) -> None:
    """Together, Fireworks and llama.cpp."""
    body = request_body(response_format={"type": kind, "schema": SCHEMA})
    request = dragoman.decode_request(body, NAME)
    assert without_notes(request.output) == ir.StructuredOutput("schema", SCHEMA)
    assert returns(body) is None
    crossed = dragoman.translate_request(body, source=NAME, target="gemini")
    assert crossed.body["generationConfig"]["responseJsonSchema"] == SCHEMA
    named = {**body, "response_format": {**body["response_format"], "strict": True}}
    lost = dragoman.translate_request(named, source=NAME, target="gemini").losses
    assert [(loss.path, loss.severity) for loss in lost] == [("$.response_format.strict", "dropped")]
    assert returns(named) is None


@promise("law:2-nothing-vanishes")
@each(
    "wire",
    [
        {"type": "grammar", "grammar": "root ::= x"},
        {"type": "json_schema"},
        {"type": "json_schema", "schema": None},
        {"type": "json_schema", "schema": "x"},
    ],
)
def test_a_format_that_is_not_understood_is_a_loss(wire: dict[str, Any]) -> None:
    body = request_body(response_format=wire)
    assert returns(body) is None
    for target in FORMATS:
        if target != NAME:
            losses = dragoman.translate_request(body, source=NAME, target=target).losses
            assert "$.response_format" in {loss.path for loss in losses if loss.severity == "dropped"}


def test_text_format_is_the_default_written_out() -> None:
    assert dragoman.decode_request(request_body(response_format={"type": "text"}), NAME).output is None
    assert returns(request_body(response_format={"type": "text"})) is None


def test_a_schema_without_a_name_gets_one() -> None:
    encoded = dragoman.encode_request(ir.Request("m", (USER,), output=ir.StructuredOutput("schema", SCHEMA)), NAME)
    assert encoded.body["response_format"]["json_schema"]["name"] == "response"
    assert [loss.severity for loss in encoded.losses] == ["invented"]


# ── settings ──────────────────────────────────────────────────────────────────────────────────────────────────

SETTINGS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "max_completion_tokens": ({"max_completion_tokens": 5}, {"max_output_tokens": 5}),
    "temperature": ({"temperature": 0}, {"temperature": 0}),
    "top_p": ({"top_p": 0.5}, {"top_p": 0.5}),
    "penalties": (
        {"presence_penalty": 0.5, "frequency_penalty": -0.5},
        {"presence_penalty": 0.5, "frequency_penalty": -0.5},
    ),
    "top_k": ({"top_k": 5}, {"top_k": 5}),
    "n": ({"n": 2}, {"candidates": 2}),
    "stop": ({"stop": ["a", "b"]}, {"stop": ("a", "b")}),
    "seed": ({"seed": 7}, {"seed": 7}),
    "stream": ({"stream": True}, {"stream": True}),
    "user": ({"user": "u"}, {"user": "u"}),
    "effort": ({"reasoning_effort": "low"}, {"reasoning": ir.ReasoningSettings(effort="low")}),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_both_ways(name: str) -> None:
    wire, fields = SETTINGS[name]
    request = dragoman.decode_request(request_body(**wire), NAME)
    assert {key: without_notes(getattr(request, key)) for key in fields} == fields
    assert returns(request_body(**wire)) is None
    written = dragoman.encode_request(ir.Request("m", (USER,), origin="openai", **fields), NAME).body
    assert {key: written[key] for key in wire} == wire


@each(
    "wire",
    [
        {"max_tokens": 5},
        {"max_tokens": 5, "max_completion_tokens": 6},
        {"stop": "a"},
        {"stop": []},
        {"stop": None},
        {"tools": []},
        {"tools": None, "tool_choice": None},
        {"stream": True, "stream_options": {"include_usage": True}},
        {"stream": True, "stream_options": {"include_usage": True, "include_obfuscation": False}},
        {"logit_bias": {"50256": -100}, "logprobs": True, "top_logprobs": 5},
        {"metadata": {"a": "b"}, "store": True, "service_tier": "flex", "verbosity": "low"},
        {"temperature": None, "seed": None, "user": None, "n": None},
        {"functions": [{"name": "f"}], "function_call": "auto"},
        {"prediction": {"type": "content", "content": "x"}},
        {"web_search_options": {"user_location": None}},
        {"modalities": ["text", "audio"], "audio": {"format": "wav", "voice": "alloy"}},
    ],
    ids=str,
)
def test_other_settings_come_back(wire: dict[str, Any]) -> None:
    assert returns(request_body(**wire)) is None


@each("value", [0, -1, 5.0, "5", [5], {}])
def test_another_top_k_is_passed_on(value: object) -> None:
    """With 0 and -1, servers of this format mean all tokens."""
    body = request_body(top_k=value)
    assert dragoman.decode_request(body, NAME).top_k is None
    assert returns(body) is None


def test_openai_gets_no_top_k_of_another_format() -> None:
    body = {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "hi"}], "top_k": 5}
    crossed = dragoman.translate_request(body, source="anthropic-messages", target=NAME)
    assert "top_k" not in crossed.body
    assert "$.top_k" in {loss.path for loss in crossed.losses}


@each(
    ("wire", "settings"),
    [
        ({"thinking": {"type": "enabled"}}, ir.ReasoningSettings("on")),
        ({"thinking": {"type": "disabled"}}, ir.ReasoningSettings("off")),
        ({"thinking": {"type": "enabled", "budget_tokens": 2048}}, ir.ReasoningSettings("on", None, 2048)),
        ({"thinking": {"type": "enabled"}, "reasoning_effort": "high"}, ir.ReasoningSettings("on", "high")),
        ({"thinking": {"type": "enabled"}, "reasoning_effort": "none"}, ir.ReasoningSettings("off", "none")),
        ({"thinking": {"type": "enabled", "clear_thinking": False}}, ir.ReasoningSettings("on")),
        ({"thinking": {"type": "tomorrow"}}, None),
        ({"thinking": {"type": "enabled", "budget_tokens": 0}}, None),
        ({"thinking": True}, None),
        ({"thinking": {"type": "disabled"}, "reasoning": {"effort": "low"}}, ir.ReasoningSettings(None, "low")),
    ],
)
def test_the_switch_of_reasoning_is_read_and_comes_back(
    wire: dict[str, Any], settings: ir.ReasoningSettings | None
) -> None:
    """DeepSeek, GLM, Kimi and LiteLLM take Anthropic's object."""
    body = request_body(**wire)
    assert without_notes(dragoman.decode_request(body, NAME).reasoning) == settings
    assert returns(body) is None


SHAPED: list[dict[str, Any]] = [
    {"type": "function", "name": "f", "description": "F", "parameters": SCHEMA, "strict": True},
    {"name": "f", "description": "F", "input_schema": SCHEMA, "strict": True},
]


@each("shape", SHAPED)
def test_a_function_in_the_shape_of_another_api_is_that_function(shape: dict[str, Any]) -> None:
    """Cursor sends the tools of Responses, and for Claude those of Messages."""
    body = request_body(tools=[{**shape, "odd": 1}])
    (tool,) = dragoman.decode_request(body, NAME).tools
    assert without_notes(tool) == ir.ToolDefinition("f", "F", SCHEMA, strict=True)
    assert returns(body) is None
    lost = dragoman.translate_request(body, source=NAME, target="ollama-chat").losses
    schema = "parameters" if "parameters" in shape else "input_schema"
    assert {loss.path for loss in lost} >= {"$.tools[0].odd", "$.tools[0].strict"}
    assert all(loss.path.removeprefix("$.tools[0].").partition(".")[0] in {"odd", "strict", schema} for loss in lost)
    nested = dragoman.translate_request(request_body(tools=[shape]), source=NAME, target="vllm").body["tools"]
    function = {"name": "f", "description": "F", "parameters": SCHEMA, "strict": True}
    assert nested == [{"type": "function", "function": function}]


@each("shape", SHAPED)
def test_a_changed_function_is_written_in_the_shape_of_this_api(shape: dict[str, Any]) -> None:
    request = dragoman.decode_request(request_body(tools=[shape]), NAME)
    (tool,) = request.tools
    changed = structs.replace(request, tools=(structs.replace(tool, name="g"),))
    (written,) = dragoman.encode_request(changed, NAME).body["tools"]
    assert written["function"]["name"] == "g"


@promise("law:10-bad-input-good-words")
@each(
    ("tool", "path"),
    [
        ({"type": "function"}, "$.tools[0]"),
        ({"type": "function", "name": 5}, "$.tools[0].name"),
        ({"type": "function", "function": {}}, "$.tools[0].function"),
    ],
)
def test_a_function_without_a_name_is_an_error(tool: dict[str, Any], path: str) -> None:
    with pytest.raises(DecodeError) as error:
        dragoman.decode_request(request_body(tools=[tool]), NAME)
    assert error.value.path == path


@each(
    "tool",
    [
        {"type": "function", "function": {"name": "f", "odd": 1}, "name": "f", "description": "x", "odd": 2},
        {"name": "f", "input_schema": "x"},
        {"name": "f", "input_schema": SCHEMA, "description": 5},
        {"name": 5, "input_schema": SCHEMA},
    ],
)
def test_other_odd_tools_come_back(tool: dict[str, Any]) -> None:
    assert returns(request_body(tools=[tool])) is None


def test_losses_of_the_switch_of_reasoning_lead_to_its_keys() -> None:
    def lost(target: str, model: str, **fields: Any) -> list[str]:
        encoded = dragoman.translate_request(request_body(**fields), source=NAME, target=target, model=model)
        return [loss.path for loss in encoded.losses if loss.path != "$.max_completion_tokens"]

    limited = {"type": "enabled", "budget_tokens": 2048}
    assert lost("ollama-chat", "qwen3", thinking=limited) == ["$.thinking.budget_tokens"]
    assert lost("openai-responses", "gpt-5.1", thinking={"type": "enabled"}) == ["$.thinking.type"]
    assert lost("ollama-chat", "qwen3", thinking={"type": "enabled", "odd": 1}) == ["$.thinking.odd"]
    assert lost("gemini", "gemini-2.5-flash", thinking={"type": "enabled"}, reasoning_effort="high") == [
        "$.reasoning_effort"
    ]


def test_a_changed_switch_of_reasoning_becomes_an_effort() -> None:
    request = dragoman.decode_request(request_body(thinking={"type": "enabled", "odd": 1}), NAME)
    assert request.reasoning is not None
    changed = structs.replace(request, reasoning=structs.replace(request.reasoning, effort="low"))
    encoded = dragoman.encode_request(changed, NAME)
    assert "thinking" not in encoded.body
    assert encoded.body["reasoning_effort"] == "low"
    assert [loss.what for loss in encoded.losses] == ["odd"]


def test_reasoning_off_is_effort_none() -> None:
    assert dragoman.decode_request(request_body(reasoning_effort="none"), NAME).reasoning == ir.ReasoningSettings(
        "off", "none"
    )
    off = ir.Request("gpt-5.1", (USER,), reasoning=ir.ReasoningSettings("off"))
    assert dragoman.encode_request(off, NAME).body["reasoning_effort"] == "none"


def test_a_budget_becomes_an_effort_and_is_reported() -> None:
    budget = ir.Request("gpt-5.1", (USER,), reasoning=ir.ReasoningSettings("on", budget_tokens=1024))
    encoded = dragoman.encode_request(budget, NAME)
    assert encoded.body["reasoning_effort"] == "low"
    assert "$.reasoning.budget_tokens" in {loss.path for loss in encoded.losses}


# ── answers ───────────────────────────────────────────────────────────────────────────────────────────────────


def answer(message: dict[str, Any], finish: Any = "stop", **fields: Any) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "logprobs": None, "finish_reason": finish}
    return {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], **fields}


ANSWERS: dict[str, tuple[dict[str, Any], tuple[Any, ...], ir.FinishReason]] = {
    "text": (answer({"content": "hi", "refusal": None, "annotations": []}), (ir.Text("hi"),), "stop"),
    "calls": (answer({"content": None, "tool_calls": [WIRE_CALL]}, "tool_calls"), (CALL,), "tool_calls"),
    "calls under stop": (answer({"content": None, "tool_calls": [WIRE_CALL]}), (CALL,), "tool_calls"),
    "text and calls": (
        answer({"content": "hi", "tool_calls": [WIRE_CALL]}, "tool_calls"),
        (ir.Text("hi"), CALL),
        "tool_calls",
    ),
    "refusal": (answer({"content": None, "refusal": "no"}), (ir.Refusal("no"),), "refusal"),
    "length": (answer({"content": "h"}, "length"), (ir.Text("h"),), "length"),
    "filtered": (answer({"content": None}, "content_filter"), (), "content_filter"),
    "a word of tomorrow": (answer({"content": "hi"}, "because"), (ir.Text("hi"),), "unknown"),
    "model_length (Mistral)": (answer({"content": "h"}, "model_length"), (ir.Text("h"),), "length"),
}


@promise("report:79", "report:83")
@pytest.mark.parametrize("name", ANSWERS)
def test_answers_are_read_and_come_back(name: str) -> None:
    body, parts, reason = ANSWERS[name]
    completion = dragoman.decode_response(body, NAME)
    assert without_notes(completion.messages[0].parts) == parts
    assert completion.finish_reason == reason
    assert completion.finish is not None
    assert completion.finish.raw == body["choices"][0]["finish_reason"]
    assert difference(body, dragoman.encode_response(completion, NAME).body) is None


@pytest.mark.parametrize(
    "body",
    [
        answer({"content": "hi"}, ""),
        answer({"content": "hi"}, None),
        {"choices": [{"message": {"role": "assistant", "content": "hi"}}]},
        {"id": "c", "choices": []},
        answer({"content": "hi"}, usage=None, x_groq={"id": "r"}, system_fingerprint=""),
        answer({"content": "hi", "tool_calls": [], "function_call": None, "audio": None}),
        answer({"content": "hi", "annotations": [{"type": "file", "file": {"hash": "x"}}]}),
        {
            "id": "c",
            "object": "chat.completion",
            "created": 1,
            "model": "m",
            "choices": [
                {"index": 1, "message": {"role": "assistant", "content": "b"}, "finish_reason": "length"},
                {"index": 0, "message": {"role": "assistant", "content": "a"}, "finish_reason": "stop"},
            ],
        },
    ],
    ids=lambda body: json.dumps(body)[:60],
)
def test_odd_answers_come_back(body: dict[str, Any]) -> None:
    assert difference(body, dragoman.encode_response(dragoman.decode_response(body, NAME), NAME).body) is None


@pytest.mark.parametrize(
    "reason", ["stop", "length", "tool_calls", "content_filter", "refusal", "pause", "error", "unknown"]
)
def test_every_finish_reason_has_a_word(reason: ir.FinishReason) -> None:
    parts: Any = (CALL,) if reason == "tool_calls" else (ir.Text("hi"),)
    completion = ir.Completion((ir.Message("assistant", parts),), ir.Finish(reason), ir.Usage(), "r", "m", 1)
    encoded = dragoman.encode_response(completion, NAME)
    word = encoded.body["choices"][0]["finish_reason"]
    assert word in {"stop", "length", "tool_calls", "content_filter"}
    paths = {loss.path for loss in encoded.losses}
    assert ("$.finish" in paths) == (reason in {"pause", "error", "unknown", "refusal"})


@promise("report:82")
def test_citations_stay_with_their_text() -> None:
    cited = {
        "type": "url_citation",
        "url_citation": {"start_index": 0, "end_index": 2, "url": "https://example.org", "title": "E"},
    }
    completion = dragoman.decode_response(answer({"content": "hi there", "annotations": [cited]}), NAME)
    (text,) = completion.messages[0].parts
    assert isinstance(text, ir.Text)
    assert without_notes(text.citations) == (ir.Citation("https://example.org", "E", None, 0, 2),)
    foreign = ir.Completion(
        (ir.Message("assistant", (ir.Text("x"), without_notes(text))),), ir.Finish("stop"), None, "r", "m"
    )
    (annotation,) = dragoman.encode_response(foreign, NAME).body["choices"][0]["message"]["annotations"]
    assert annotation["url_citation"]["start_index"] == 1
    assert annotation["url_citation"]["end_index"] == 3


@promise("report:44")
def test_thoughts_of_others_are_readable() -> None:
    thought = ir.Completion((ir.Message("assistant", (ir.Reasoning("hm"), ir.Text("ho"))),), ir.Finish("stop"))
    message = dragoman.encode_response(thought, NAME).body["choices"][0]["message"]
    assert message["reasoning_content"] == "hm"
    assert message["content"] == "ho"


# ── errors ────────────────────────────────────────────────────────────────────────────────────────────────────

ERRORS: list[tuple[int | None, dict[str, str], dict[str, Any], ir.Failure]] = [
    (
        400,
        {"x-request-id": "req_1"},
        {"error": {"message": "bad", "type": "invalid_request_error", "param": "messages[0]", "code": "invalid_value"}},
        ir.Failure(
            "invalid_request", "bad", 400, "invalid_value", "messages[0]", None, "req_1", "invalid_request_error"
        ),
    ),
    (
        429,
        {"retry-after": "20"},
        {"error": {"message": "slow down", "type": "requests", "param": None, "code": "rate_limit_exceeded"}},
        ir.Failure("rate_limit", "slow down", 429, "rate_limit_exceeded", None, 20.0, None, "requests"),
    ),
    (
        429,
        {"retry-after-ms": "1500"},
        {"error": {"message": "no money", "type": "insufficient_quota", "param": None, "code": "insufficient_quota"}},
        ir.Failure("billing", "no money", 429, "insufficient_quota", None, 1.5, None, "insufficient_quota"),
    ),
    (
        403,
        {},
        {"error": {"message": "plan used up", "type": "usage_limit_reached"}},
        ir.Failure("rate_limit", "plan used up", 403, raw_type="usage_limit_reached"),
    ),
    (
        404,
        {},
        {
            "error": {
                "message": "no such model",
                "type": "invalid_request_error",
                "param": None,
                "code": "model_not_found",
            }
        },
        ir.Failure("not_found", "no such model", 404, "model_not_found", None, None, None, "invalid_request_error"),
    ),
    (None, {}, {"error": {"message": "upstream", "code": 502}}, ir.Failure("server", "upstream", 502, "502")),
    (503, {}, {"error": "down"}, ir.Failure("overloaded", "down", 503)),
    (401, {}, {"detail": "Invalid API Key"}, ir.Failure("authentication", "Invalid API Key", 401)),
    (
        400,
        {},
        {"object": "error", "message": "Invalid model", "type": "invalid_model", "param": None, "code": "1500"},
        ir.Failure("invalid_request", "Invalid model", 400, "1500", None, None, None, "invalid_model"),
    ),
    (500, {}, {"error": {"message": {"deep": 1}}}, ir.Failure("server", '{"error":{"message":{"deep":1}}}', 500)),
]


@pytest.mark.parametrize(("status", "headers", "body", "failure"), ERRORS, ids=[str(row[2])[:50] for row in ERRORS])
def test_errors_both_ways(
    status: int | None, headers: dict[str, str], body: dict[str, Any], failure: ir.Failure
) -> None:
    read = dragoman.decode_error(body, NAME, status=status, headers=headers)
    assert structs.replace(read, metadata=None) == failure
    written = dragoman.encode_error(read, NAME)
    assert difference(body, written.body) is None
    assert written.status == failure.status


def test_an_error_of_another_vendor_has_all_four_keys() -> None:
    failure = ir.Failure("overloaded", "busy", retry_after=2.5, request_id="req_1")
    encoded = dragoman.encode_error(failure, NAME)
    assert encoded.body == {"error": {"message": "busy", "type": "server_error", "param": None, "code": None}}
    assert encoded.status == 503
    assert encoded.headers == {"x-request-id": "req_1", "retry-after": "3", "retry-after-ms": "2500"}


# ── where it goes ─────────────────────────────────────────────────────────────────────────────────────────────


def test_where_a_request_goes() -> None:
    encoded = dragoman.encode_request(ir.Request("m", (USER,)), NAME)
    assert encoded.path == "/chat/completions"


def test_an_unknown_role_is_refused_by_name() -> None:
    with pytest.raises(DecodeError, match="expected system, developer, user") as raised:
        dragoman.decode_request({"messages": [{"role": "wizard", "content": "x"}]}, NAME)
    assert raised.value.path == "$.messages[0].role"


@promise("report:52")
def test_blocks_of_another_format_in_the_history_are_kept_and_reported() -> None:
    block = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}
    body = {
        "model": "m",
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": [block]},
            {"role": "user", "content": "go"},
        ],
    }
    assert returns(body) is None
    for target in ("anthropic-messages", "gemini"):
        encoded = dragoman.translate_request(body, source=NAME, target=target)
        assert "$.messages[1].content[0]" in {loss.path for loss in encoded.losses}


# ── spoken answers ────────────────────────────────────────────────────────────────────────────────────────────

WAV = "UklGRiQAAABXQVZFZm10IA=="
AUDIO = {"id": "audio_1", "data": WAV, "expires_at": 99, "transcript": "Hello there", "x_more": 1}
SPOKEN_ANSWER = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "gpt-audio",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": None, "refusal": None, "audio": AUDIO},
            "finish_reason": "stop",
        }
    ],
    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
}


def test_an_audio_answer_is_a_part_and_returns_as_it_was() -> None:
    completion = dragoman.decode_response(SPOKEN_ANSWER, "openai-chat")
    (part,) = completion.messages[0].parts
    assert isinstance(part, ir.Audio)
    assert (part.media_type, part.data, part.transcript) == ("audio/wav", WAV, "Hello there")
    assert dragoman.encode_response(completion, "openai-chat").body == SPOKEN_ANSWER


@pytest.mark.parametrize("target", ["anthropic-messages", "bedrock-converse", "ollama-chat", "openai-responses"])
def test_the_transcript_crosses_to_formats_without_audio(target: str) -> None:
    encoded = dragoman.translate_response(SPOKEN_ANSWER, source="openai-chat", target=target)
    assert dragoman.decode_response(encoded.json(), target).text == "Hello there"
    severities = {loss.path: loss.severity for loss in encoded.losses}
    assert severities["$.choices[0].message.audio"] == "degraded"
    assert severities["$.choices[0].message.audio.x_more"] == "dropped"
    assert severities["$.choices[0].message.audio.expires_at"] == "noted"


def test_the_next_request_names_it_by_its_id() -> None:
    (answer,) = dragoman.decode_response(SPOKEN_ANSWER, "openai-chat").messages
    history = ir.Request("gpt-audio", (ir.Message("user", "Hi"), answer, ir.Message("user", "Go on")))
    encoded = dragoman.encode_request(history, "openai-chat")
    message = encoded.body["messages"][1]
    assert (message["content"], message["audio"]) == ("", {"id": "audio_1"})
    assert dragoman.encode_request(history, "anthropic-messages").body["messages"][1]["content"] == [
        {"type": "text", "text": "Hello there"}
    ]


@pytest.mark.parametrize("audio", [{"id": "audio_1"}, None, AUDIO, {"id": "a", "data": None, "transcript": "x"}])
def test_audio_of_a_history_is_sent_as_it_came(audio: object) -> None:
    body = {"model": "gpt-audio", "messages": [{"role": "assistant", "content": None, "audio": audio}]}
    assert dragoman.translate_request(body, source="openai-chat", target="openai-chat").body == body


def test_sound_of_another_api_reaches_clients_and_not_the_provider() -> None:
    sound = ir.Audio("audio/L16;rate=24000", "AAAA", transcript="Hello")
    message = ir.Message("assistant", (sound,))
    answer = dragoman.encode_response(ir.Completion((message,), ir.Finish("stop"), None, "a", "m", 1), "openai-chat")
    audio = answer.body["choices"][0]["message"]["audio"]
    assert (audio["data"], audio["transcript"], audio["expires_at"]) == ("AAAA", "Hello", 0)
    assert [loss.path for loss in answer.losses if loss.refusable] == ["$.messages[0].parts[0].media_type"]
    request = dragoman.encode_request(ir.Request("m", (ir.Message("user", "Hi"), message)), "openai-chat")
    assert request.body["messages"][1] == {"role": "assistant", "content": "Hello"}
    assert [loss.severity for loss in request.losses] == ["degraded"]


# ── documents by address (Mistral) ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("part", "document"),
    [
        ({"document_url": "https://a/b.pdf"}, ir.Document(url="https://a/b.pdf")),
        ({"document_url": "https://a/b.pdf", "document_name": "b"}, ir.Document(url="https://a/b.pdf", title="b")),
        ({"document_url": "https://a/b.pdf", "document_name": None}, ir.Document(url="https://a/b.pdf")),
        ({"document_url": f"data:application/pdf;base64,{PDF}"}, ir.Document("application/pdf", PDF)),
        ({"document_url": f"data:;base64,{PDF}", "x": 1}, ir.Document(url=f"data:;base64,{PDF}")),
    ],
    ids=repr,
)
def test_a_document_by_address_is_a_document_and_returns(part: dict[str, Any], document: ir.Document) -> None:
    body = request_body(messages=[{"role": "user", "content": [{"type": "document_url", **part}]}])
    assert returns(body) is None
    (found,) = dragoman.decode_request(body, "mistral").messages[0].parts
    assert without_notes(found) == document


def test_losses_of_a_document_by_address_lead_to_its_keys() -> None:
    part = {"type": "document_url", "document_url": f"data:application/pdf;base64,{PDF}", "document_name": "b"}
    body = request_body(messages=[{"role": "user", "content": [part]}])
    crossed = dragoman.translate_request(body, source="mistral", target="gemini")
    assert json.loads(crossed.json())["contents"][0]["parts"][0]["inlineData"]["data"] == PDF
    assert [loss.path for loss in crossed.losses if "document_" in loss.path] == [
        "$.messages[0].content[0].document_name"
    ]


def test_a_call_in_both_spellings_runs_once() -> None:
    both = {"tool_calls": [chat_call("1")], "function_call": {"name": "f", "arguments": "{}"}}
    answer = dragoman.decode_response(chat_answer({"content": None, **both}, "tool_calls"), "openai-chat")
    assert [(call.id, call.name) for call in answer.tool_calls] == [("1", "f")]


@each(
    ("wire", "settings"),
    [
        ({"reasoning": {"effort": "high"}}, ir.ReasoningSettings(None, "high")),
        ({"reasoning": {"effort": "none"}}, ir.ReasoningSettings("off", "none")),
        ({"reasoning": {"max_tokens": 2000, "exclude": True}}, ir.ReasoningSettings("on", None, 2000, visible=False)),
        ({"reasoning": {"enabled": True, "exclude": False}}, ir.ReasoningSettings("on", visible=True)),
        ({"reasoning": {"enabled": False}}, ir.ReasoningSettings("off")),
        ({"reasoning": {"max_tokens": 2000}, "reasoning_effort": "low"}, ir.ReasoningSettings("on", "low", 2000)),
        ({"reasoning": {"effort": "high"}, "reasoning_effort": "low"}, ir.ReasoningSettings(None, "high")),
        ({"reasoning": {"max_tokens": 0}, "reasoning_effort": "low"}, ir.ReasoningSettings(None, "low")),
        ({"reasoning": {"effort": 5}}, None),
        ({"reasoning": {}}, None),
    ],
)
def test_reasoning_in_one_object_is_read_and_comes_back(
    wire: dict[str, Any], settings: ir.ReasoningSettings | None
) -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], **wire}
    request = dragoman.decode_request(body, "openai-chat")
    found = request.reasoning
    assert (found if found is None else structs.replace(found, metadata=None)) == settings
    for target in ("openai-chat", "openrouter"):
        assert dragoman.encode_request(request, target).body == body


@pytest.mark.parametrize(
    ("flags", "settings"),
    [
        ({"enable_thinking": True}, ir.ReasoningSettings("on")),
        ({"enable_thinking": False}, ir.ReasoningSettings("off")),
        ({"enable_thinking": True, "thinking_budget": 2000}, ir.ReasoningSettings("on", None, 2000)),
        ({"enable_thinking": False, "thinking_budget": 2000}, ir.ReasoningSettings("off", None, 2000)),
        ({"thinking_budget": 2000}, ir.ReasoningSettings("on", None, 2000)),
        ({"enable_thinking": True, "reasoning_effort": "low"}, ir.ReasoningSettings("on", "low")),
        ({"enable_thinking": True, "reasoning_effort": "none"}, ir.ReasoningSettings("off", "none")),
        ({"chat_template_kwargs": {"enable_thinking": False}}, ir.ReasoningSettings("off")),
        ({"chat_template_kwargs": {"thinking": True, "x": 1}}, ir.ReasoningSettings("on")),
        ({"enable_thinking": True, "chat_template_kwargs": {"enable_thinking": False}}, ir.ReasoningSettings("on")),
        ({"include_reasoning": False}, ir.ReasoningSettings(visible=False)),
        ({"include_reasoning": True, "enable_thinking": True}, ir.ReasoningSettings("on", visible=True)),
        # What we do not understand is only passed on.
        ({"enable_thinking": "yes"}, None),
        ({"thinking_budget": 0}, None),
        ({"thinking_budget": True}, None),
        ({"chat_template_kwargs": {"enable_thinking": 1}}, None),
        ({"chat_template_kwargs": ["enable_thinking"]}, None),
        ({"include_reasoning": None, "reasoning_effort": "low"}, ir.ReasoningSettings(effort="low")),
    ],
)
def test_flags_of_reasoning_are_read_and_come_back(
    flags: dict[str, Any], settings: ir.ReasoningSettings | None
) -> None:
    body = request_body(**flags)
    request = dragoman.decode_request(body, NAME)
    found = request.reasoning
    assert (found if found is None else structs.replace(found, metadata=None)) == settings
    for target in (NAME, "vllm", "openrouter"):
        assert dragoman.encode_request(request, target).body == body


@pytest.mark.parametrize(
    ("flags", "thinking", "paths"),
    [
        ({"enable_thinking": True, "thinking_budget": 2000}, {"type": "enabled", "budget_tokens": 2000}, []),
        ({"enable_thinking": True}, {"type": "enabled", "budget_tokens": 4000}, ["$.enable_thinking"]),
        ({"enable_thinking": False, "thinking_budget": 2000}, {"type": "disabled"}, ["$.thinking_budget"]),
        (
            {"chat_template_kwargs": {"thinking": False, "x": 1}},
            {"type": "disabled"},
            ["$.chat_template_kwargs.x"],
        ),
        (
            {"chat_template_kwargs": {"thinking": True}},
            {"type": "enabled", "budget_tokens": 4000},
            ["$.chat_template_kwargs.thinking"],
        ),
        ({"enable_thinking": True, "reasoning_effort": "none"}, {"type": "disabled"}, []),
        # To hide what is not thought asks for nothing.
        ({"include_reasoning": False}, None, []),
    ],
)
def test_flags_of_reasoning_cross(flags: dict[str, Any], thinking: Any, paths: list[str]) -> None:
    body = request_body(max_tokens=8000, **flags)
    encoded = dragoman.translate_request(body, source=NAME, target="anthropic-messages", model="claude-sonnet-4-5")
    assert encoded.body.get("thinking") == thinking
    assert [loss.path for loss in encoded.losses] == paths


def test_flags_that_a_server_refuses_become_an_effort() -> None:
    body = request_body(enable_thinking=True, thinking_budget=2000, chat_template_kwargs={"x": 1})
    mistral = dragoman.translate_request(body, source=NAME, target="mistral")
    assert (mistral.body["reasoning_effort"], "enable_thinking" in mistral.body) == ("low", False)
    assert {loss.path for loss in mistral.losses} == {"$.thinking_budget", "$.chat_template_kwargs"}


def test_changed_settings_replace_the_flags() -> None:
    request = dragoman.decode_request(request_body(enable_thinking=True, thinking_budget=2000), NAME)
    assert request.reasoning is not None
    changed = structs.replace(request, reasoning=structs.replace(request.reasoning, mode="off", budget_tokens=None))
    body = dragoman.encode_request(changed, NAME).body
    assert (body["reasoning_effort"], "enable_thinking" in body) == ("none", False)


SAMPLED = {"top_k": 5, "min_p": 0.1, "repetition_penalty": 1.5}
OLLAMA = {"options": {"top_k": 5, "min_p": 0.1, "repeat_penalty": 1.5}}


@pytest.mark.parametrize("key", ["repetition_penalty", "repeat_penalty"])
def test_sampling_of_open_models_crosses(key: str) -> None:
    body = request_body(top_k=5, min_p=0.1, **{key: 1.5})
    assert returns(body) is None
    ollama = dragoman.translate_request(body, source=NAME, target="ollama-chat")
    assert (ollama.body["options"], ollama.losses) == (OLLAMA["options"], ())
    claude = dragoman.translate_request(body, source=NAME, target="anthropic-messages", model="claude-sonnet-4-5")
    assert claude.body["top_k"] == 5
    assert {"$.min_p", f"$.{key}"} <= {loss.path for loss in claude.losses}


@pytest.mark.parametrize(
    ("server", "sent"),
    [
        ("vllm", SAMPLED),
        ("openrouter", SAMPLED),
        ("llama-cpp", OLLAMA["options"]),
        ("openai-chat", {}),
        ("mistral", {}),
        ("groq", {}),
    ],
)
def test_servers_of_open_models_get_the_sampling_of_other_apis(server: str, sent: dict[str, Any]) -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], **OLLAMA}
    encoded = dragoman.translate_request(body, source="ollama-chat", target=server)
    known = {*SAMPLED, *OLLAMA["options"]}
    assert {key: value for key, value in encoded.body.items() if key in known} == sent
    lost = {loss.path for loss in encoded.losses if loss.severity == "dropped"}
    assert lost == (set() if sent else {f"$.options.{key}" for key in OLLAMA["options"]})


@pytest.mark.parametrize(
    "options", [{"min_p": 1}, {"min_p": 0}, {"min_p": "x"}, {"repeat_penalty": True}, {"min_p": None}]
)
def test_odd_sampling_of_ollama_comes_back(options: dict[str, Any]) -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "options": options}
    again = dragoman.translate_request(body, source="ollama-chat", target="ollama-chat")
    assert json.loads(again.json()) == body


def test_reasoning_in_one_object_crosses() -> None:
    body = {
        "model": "claude-sonnet-4-5",
        "messages": [{"role": "user", "content": "hi"}],
        "max_tokens": 8000,
        "reasoning": {"max_tokens": 2000, "summary": "auto"},
        "reasoning_effort": "low",
    }
    claude = dragoman.translate_request(body, source="openai-chat", target="anthropic-messages")
    assert claude.body["thinking"] == {"type": "enabled", "budget_tokens": 2000}
    assert "$.reasoning.summary" in {loss.path for loss in claude.losses}
    gemini = dragoman.translate_request({**body, "model": "gemini-2.5-flash"}, source="openai-chat", target="gemini")
    assert gemini.body["generationConfig"]["thinkingConfig"]["thinkingBudget"] == 2000
    assert {"$.reasoning.summary", "$.reasoning_effort"} <= {loss.path for loss in gemini.losses}
    mistral = dragoman.translate_request(body, source="openai-chat", target="mistral")
    assert (mistral.body["reasoning_effort"], "reasoning" in mistral.body) == ("low", False)
    assert {"$.reasoning.summary", "$.reasoning.max_tokens"} == {loss.path for loss in mistral.losses}


def test_a_changed_effort_replaces_the_object() -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "reasoning": {"effort": "high"}}
    request = dragoman.decode_request(body, "openai-chat")
    assert request.reasoning is not None
    changed = structs.replace(request, reasoning=structs.replace(request.reasoning, effort="low"))
    written = dragoman.encode_request(changed, "openai-chat").body
    assert (written["reasoning_effort"], "reasoning" in written) == ("low", False)
    assert "reasoning" not in dragoman.encode_request(structs.replace(request, reasoning=None), "openai-chat").body


@each("members", [{"arguments": '{"a": 1}'}, {"arguments": {"a": 1}}, {"arguments": None}, {}])
def test_a_call_without_an_object_around_its_name_is_that_call(members: dict[str, Any]) -> None:
    call = {"id": "call_1", "type": "function", "name": "f", **members}
    body = chat_answer({"content": None, "tool_calls": [call]}, "tool_calls")
    answer = dragoman.decode_response(body, "openai-chat")
    (found,) = answer.tool_calls
    assert (found.id, found.name) == ("call_1", "f")
    assert found.arguments == ({"a": 1} if members.get("arguments") else {})
    assert dragoman.encode_response(answer, "openai-chat").body == body


def test_a_streamed_call_without_an_object_around_its_name_is_that_call() -> None:
    first = {"index": 0, "id": "call_1", "type": "function", "name": "f", "arguments": '{"a"'}
    deltas = [
        ({"tool_calls": [first]}, None),
        ({"tool_calls": [{"index": 0, "arguments": ":1}"}]}, None),
        ({}, "tool_calls"),
    ]
    translator = dragoman.StreamTranslator(source="openai-chat", target="anthropic-messages")
    for delta, finish in deltas:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
        translator.feed(b"data: " + json.dumps(chunk).encode() + b"\n\n")
    translator.feed(b"data: [DONE]\n\n")
    translator.close()
    (call,) = translator.completion.tool_calls
    assert (call.id, call.name, call.arguments) == ("call_1", "f", {"a": 1})


# ── images of an answer ───────────────────────────────────────────────────────────────────────────────────────

PAINTED = {
    "candidates": [
        {
            "content": {
                "role": "model",
                "parts": [
                    {"text": "ho"},
                    {"inlineData": {"mimeType": "image/png", "data": PIXEL}, "thoughtSignature": "c2ln"},
                ],
            },
            "finishReason": "STOP",
            "index": 0,
        }
    ],
    "responseId": "r",
    "modelVersion": "gemini-3-pro-image",
}
SIGNED = {**DRAWN, "extra_content": {"google": {"thought_signature": "c2ln"}}}


def painted_message() -> dict[str, Any]:
    answer = dragoman.translate_response(PAINTED, source="gemini", target=NAME)
    assert not [loss for loss in answer.losses if loss.severity != "noted"]
    message: dict[str, Any] = json.loads(answer.json())["choices"][0]["message"]
    return message


@promise("law:6-owed-back")
def test_an_image_of_gemini_reaches_clients_and_returns_with_its_signature() -> None:
    message = painted_message()
    assert (message["content"], message["images"]) == ("ho", [SIGNED])
    asked = request_body(messages=[{"role": "user", "content": "draw"}, message, {"role": "user", "content": "more"}])
    sent = dragoman.translate_request(asked, source=NAME, target="gemini")
    assert json.loads(sent.json())["contents"][1] == PAINTED["candidates"][0]["content"]  # type: ignore[index]
    assert not sent.losses


def test_a_streamed_image_is_the_image_of_the_whole_answer() -> None:
    stream = dragoman.StreamTranslator(source="gemini", target=NAME)
    out = stream.feed(b"data: " + json.dumps(PAINTED).encode() + b"\r\n\r\n") + stream.close()
    deltas = [
        choice["delta"]
        for line in out.decode().split("\n\n")
        if line.startswith("data: {")
        for choice in json.loads(line[6:])["choices"]
    ]
    assert [delta["images"] for delta in deltas if "images" in delta] == [painted_message()["images"]]


@each("target", FORMATS)
def test_images_of_an_answer_arrive_or_are_losses(target: str) -> None:
    images = [{**DRAWN, "index": 0}, {**SIGNED, "index": 1}]
    answer = chat_answer({"role": "assistant", "content": "ho", "images": images})
    written = dragoman.translate_response(answer, source=NAME, target=target)
    lost = [loss.path for loss in written.losses if "image" in loss.what]
    assert written.json().count(PIXEL.encode()) == 2 or lost == [f"$.choices[0].message.images[{n}]" for n in (0, 1)]
    asked = request_body(messages=[{"role": "user", "content": "draw"}, answer["choices"][0]["message"], *ASKED])
    sent = dragoman.translate_request(asked, source=NAME, target=target)
    lost = [loss.path for loss in sent.losses if "image" in loss.what]
    assert sent.json().count(PIXEL.encode()) == 2 or lost == [f"$.messages[1].images[{n}]" for n in (0, 1)]


ASKED = [{"role": "user", "content": "more"}]


@pytest.mark.parametrize("nothing", [None, []])
def test_a_chunk_without_images_says_nothing_of_them(nothing: object) -> None:
    chunks = [
        {"id": "c", "model": "m", "choices": [{"index": 0, "delta": {"content": "a", "images": nothing}}]},
        {"id": "c", "model": "m", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    ]
    stream = dragoman.StreamTranslator(source=NAME, target="gemini")
    stream.feed(b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks) + b"data: [DONE]\n\n")
    stream.close()
    assert not [loss for loss in stream.losses if "images" in loss.what]


@promise("law:2-nothing-vanishes")
def test_what_is_beside_a_signature_is_reported() -> None:
    content = {"google": {"thought_signature": "c2ln", "thought": True}, "other": {"a": 1}}
    signed = {**WIRE_CALL, "extra_content": content}
    answer = chat_answer({"role": "assistant", "content": None, "tool_calls": [signed]}, "tool_calls")
    written = dragoman.translate_response(answer, source=NAME, target="gemini")
    path = "$.choices[0].message.tool_calls[0].extra_content"
    assert {loss.path for loss in written.losses if loss.severity == "dropped"} == {
        f"{path}.other",
        f"{path}.google.thought",
    }
    delta = {"role": "assistant", "tool_calls": [{"index": 0, **signed}]}
    chunk = {"id": "c", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": "tool_calls"}]}
    stream = dragoman.StreamTranslator(source=NAME, target="gemini")
    stream.feed(b"data: " + json.dumps(chunk).encode() + b"\n\ndata: [DONE]\n\n")
    stream.close()
    assert [loss.what for loss in stream.losses if loss.severity == "dropped"] == ["extra_content"]


# ── what compatible servers answer ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("more", "cached", "written"),
    [
        ({"cached_tokens": 4}, 4, None),  # Kimi, Together
        ({"prompt_cache_hit_tokens": 4, "prompt_cache_miss_tokens": 6}, 4, None),  # DeepSeek
        ({"cache_read_input_tokens": 4, "cache_creation_input_tokens": 3}, 4, 3),  # LiteLLM
        ({"prompt_tokens_details": {"cached_tokens": 4, "cache_creation_tokens": 3}}, 4, 3),  # LiteLLM
        ({"prompt_tokens_details": {"cached_tokens": 0, "cache_creation_input_tokens": 3}}, 0, 3),  # Qwen
        ({"prompt_tokens_details": {"cached_tokens": 0}, "cached_tokens": 4}, 0, None),
        ({"prompt_tokens_details": None, "cached_tokens": 11}, None, None),  # it can be no part of the prompt
        ({"prompt_tokens_details": {"cached_tokens": None}, "cached_tokens": "many"}, None, None),
    ],
)
def test_cached_tokens_are_read_wherever_servers_count_them(
    more: dict[str, Any], cached: int | None, written: int | None
) -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15, **more}
    body = chat_answer({"role": "assistant", "content": "ho"}, usage=usage)
    read = dragoman.decode_response(body, NAME)
    assert read.usage is not None
    assert (read.usage.cached, read.usage.cache_written) == (cached, written)
    assert difference(body, json.loads(dragoman.encode_response(read, NAME).json())) is None
    chunk = {"id": "c", "model": "m", "choices": [{"index": 0, "delta": {"content": "a"}, "finish_reason": "stop"}]}
    decoder = dragoman.StreamDecoder(NAME)
    data = b"data: " + json.dumps({**chunk, "usage": usage}).encode() + b"\n\ndata: [DONE]\n\n"
    streamed = dragoman.accumulate([*decoder.feed(data), *decoder.close()])
    assert streamed.usage is not None
    assert (streamed.usage.cached, streamed.usage.cache_written) == (cached, written)


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("sensitive", "content_filter"),
        ("network_error", "error"),
        ("insufficient_system_resource", "error"),
        ("model_context_window_exceeded", "length"),
    ],
)
def test_how_compatible_servers_say_that_an_answer_broke_off(word: str, reason: str) -> None:
    body = chat_answer({"role": "assistant", "content": "ho"}, word)
    read = dragoman.decode_response(body, NAME)
    assert read.finish is not None
    assert read.finish.reason == reason
    assert difference(body, json.loads(dragoman.encode_response(read, NAME).json())) is None


@each("key", ["stop_reason", "matched_stop"])
@each(("value", "sequence"), [("END", "END"), (151645, None), ("end_turn", None), ("", None), (None, None)])
def test_the_stop_sequence_that_vllm_and_sglang_name_arrives(key: str, value: object, sequence: str | None) -> None:
    choice = {"index": 0, "logprobs": None, "finish_reason": "stop", key: value}
    body = {**chat_answer({"role": "assistant", "content": "a"}), "choices": [choice]}
    body["choices"][0]["message"] = {"role": "assistant", "content": "a"}
    whole = dragoman.translate_response(body, source=NAME, target="anthropic-messages")
    assert (whole.body["stop_reason"], whole.body["stop_sequence"]) == (
        "end_turn" if sequence is None else "stop_sequence",
        sequence,
    )
    assert not [loss for loss in whole.losses if loss.severity == "dropped"]
    read, lost = streamed({"delta": {"content": "a"}}, {"delta": {}, "finish_reason": "stop", key: value})
    assert read.finish is not None
    assert read.finish.stop_sequence == sequence
    assert lost == ([] if sequence is None else ["matched stop sequence"])
    assert dragoman.translate_response(body, source=NAME, target=NAME).body == body
    crossed = dragoman.translate_response(body, source=NAME, target="gemini")
    dropped = [loss.path for loss in crossed.losses if loss.severity == "dropped"]
    assert dropped == ([] if sequence is None else [f"$.choices[0].{key}"])


@each("word", ["length", "content_filter"])
def test_only_a_stop_has_a_stop_sequence(word: str) -> None:
    read, _ = streamed({"delta": {"content": "a"}, "finish_reason": word, "stop_reason": "END"})
    assert read.finish is not None
    assert read.finish.stop_sequence is None


def test_an_answer_that_names_its_speaker_comes_back() -> None:
    """MiniMax: the name has a space, which OpenAI refuses in a request."""
    body = chat_answer({"role": "assistant", "content": "ho", "name": "MiniMax AI"})
    written = dragoman.translate_response(body, source=NAME, target=NAME)
    assert difference(body, json.loads(written.json())) is None
    assert not written.losses
    crossed = dragoman.translate_response(body, source=NAME, target="gemini")
    assert [loss.path for loss in crossed.losses if loss.severity == "dropped"] == ["$.choices[0].message.name"]


def streamed(*choices: dict[str, Any], **last: Any) -> tuple[ir.Completion, list[str]]:
    """What a stream of these choices says, and what another format reports as dropped."""
    chunks = [{"id": "c", "model": "m", "choices": [{"index": 0, **choice}]} for choice in choices]
    chunks[-1] |= last
    data = b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks) + b"data: [DONE]\n\n"
    decoder = dragoman.StreamDecoder(NAME)
    stream = dragoman.StreamTranslator(source=NAME, target="gemini")
    stream.feed(data)
    stream.close()
    read = dragoman.accumulate([*decoder.feed(data), *decoder.close()])
    return read, [loss.what for loss in stream.losses if loss.severity == "dropped"]


@promise("law:5-streams-tell-the-same-story")
@each("key", ["delta", "message"])
@each("name", [name for name, (wire, _) in TOLERATED.items() if wire["role"] == "assistant"])
def test_what_compatible_servers_say_reads_alike_when_streamed(name: str, key: str) -> None:
    """As one delta, or as a message in place of a delta. Streams have no empty texts, and calls come last."""
    wire, message = TOLERATED[name]
    read, _ = streamed({key: wire, "finish_reason": "tool_calls" if message.tool_calls else "stop"})
    expected = [part for part in message.parts if part != ir.Text("")]
    expected.sort(key=lambda part: isinstance(part, ir.ToolCall))
    assert [_without_text(part) for part in without_notes(read.messages[0]).parts] == [*map(_without_text, expected)]


def _without_text(part: ir.AnyPart) -> ir.AnyPart:
    """A call without the spelling of its arguments, which a whole body may give as an object."""
    return structs.replace(part, arguments_text=None) if isinstance(part, ir.ToolCall) else part


def test_a_message_beside_deltas_repeats_the_answer() -> None:
    """Perplexity."""
    whole = {"message": {"role": "assistant", "content": "ab"}, "finish_reason": "stop"}
    for last in ({**whole, "delta": {"content": "b"}}, {**whole, "delta": {}}, whole):
        read, _ = streamed({"delta": {"content": "a"}, "message": {"content": "a"}}, {"delta": {}}, last)
        assert read.messages[0].text == ("ab" if last.get("delta") else "a")


def test_a_message_in_place_of_a_delta_reports_its_further_keys() -> None:
    message = {"role": "assistant", "content": "a", "executed_tools": [1]}
    read, lost = streamed({"message": message, "finish_reason": "stop"})
    assert (read.messages[0].text, lost) == ("a", ["executed_tools"])
    empty: tuple[Any, ...] = (None, {})
    for nothing in empty:
        read, lost = streamed({"message": nothing, "finish_reason": "stop"})
        assert (read.messages[0].parts, lost) == ((), [])


@promise("law:10-bad-input-good-words")
def test_a_message_in_place_of_a_delta_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises(StreamError, match="content"):
        streamed({"message": {"content": 5}, "finish_reason": "stop"})


def test_an_empty_refusal_refuses_nothing() -> None:
    """Snowflake sends every optional member."""
    message = {"role": "assistant", "content": "ho", "refusal": ""}
    whole = dragoman.decode_response(chat_answer(message), NAME)
    read, _ = streamed({"delta": message, "finish_reason": "stop"})
    for answer in (whole, read):
        assert (answer.messages[0].refusal, answer.finish) == (None, ir.Finish("stop", "stop"))


@promise("law:7-no-guessing")
@each(
    ("pieces", "expected"),
    [
        ([[("1", "f", '{"a"'), ("2", "g", '{"b"')], [":1}", ":2}"]], [("f", {"a": 1}), ("g", {"b": 2})]),
        ([[("1", "f", "")], [("2", "g", "")], ['{"a":1}', '{"b":2}']], [("f", {"a": 1}), ("g", {"b": 2})]),
        ([[("", "f", '{"a"'), ("", "g", '{"b"')], [":1}", ":2}"]], [("f", {"a": 1}), ("g", {"b": 2})]),
        ([[("1", "f", '{"a"')], [":1}"], [("2", "g", "{")], ["}"]], [("f", {"a": 1}), ("g", {})]),
        ([[("1", "f", "{")], ['"a"', ":1}"]], [("f", {"a": 1})]),
        ([[("1", "f", "{")], ["}", ("2", "g", "{}")]], [("f", {}), ("g", {})]),
    ],
)
def test_bare_fragments_of_several_calls_continue_them_in_their_order(
    pieces: list[list[Any]], expected: list[tuple[str, dict[str, int]]]
) -> None:
    """Without indexes, and with an id and a name only in the first fragment of each call."""
    deltas = [
        {"tool_calls": [_bare(piece) if isinstance(piece, str) else _opening(*piece) for piece in delta]}
        for delta in pieces
    ]
    read, _ = streamed(*({"delta": delta} for delta in deltas), {"delta": {}, "finish_reason": "tool_calls"})
    assert [(call.name, call.arguments) for call in read.tool_calls] == expected


def _bare(text: str) -> dict[str, Any]:
    return {"function": {"arguments": text}}


def _opening(call_id: str, name: str, text: str) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": text}}


def test_a_streamed_call_in_both_spellings_runs_once() -> None:
    """llama-cpp-python sends both in every delta, some servers with the name in each."""
    for names in (("f", None, None), ("f", "f", "f")):
        pieces = [{"name": name, "arguments": text} for name, text in zip(names, ("", '{"a":', "1}"), strict=True)]
        deltas = [
            {"function_call": piece, "tool_calls": [{"index": 0, "id": "1", "type": "function", "function": piece}]}
            for piece in pieces
        ]
        read, _ = streamed(*({"delta": delta} for delta in deltas), {"delta": {}, "finish_reason": "tool_calls"})
        assert [(call.id, call.name, call.arguments) for call in read.tool_calls] == [("1", "f", {"a": 1})]


COUNTS = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15, "cached_tokens": 3}


@pytest.mark.parametrize(
    ("choice", "last"),
    [({"usage": COUNTS}, {}), ({}, {"x_groq": {"id": "r", "usage": COUNTS}}), ({}, {"usage": COUNTS})],
    ids=["in the choice (Kimi)", "x_groq (Groq)", "usage"],
)
def test_usage_of_a_stream_is_read_wherever_servers_put_it(choice: dict[str, Any], last: dict[str, Any]) -> None:
    read, lost = streamed({"delta": {"content": "a"}}, {"delta": {}, "finish_reason": "stop", **choice}, **last)
    assert read.usage is not None
    assert (read.usage.input, read.usage.output, read.usage.cached) == (10, 5, 3)
    assert not lost


@pytest.mark.parametrize("usage", [None, 5, "x", [], {"prompt_tokens": "many"}])
def test_usage_in_another_place_that_cannot_be_read_is_no_error(usage: object) -> None:
    read, _ = streamed({"delta": {"content": "a"}, "finish_reason": "stop", "usage": usage})
    assert (read.usage, read.messages[0].text) == (None, "a")
    read, _ = streamed({"delta": {"content": "a"}, "finish_reason": "stop"}, x_groq={"usage": usage})
    assert (read.usage, read.messages[0].text) == (None, "a")


@promise("law:2-nothing-vanishes")
def test_parts_of_streamed_content_are_read_or_reported() -> None:
    """Mistral streams references and files among the texts."""
    content = [
        {"type": "text", "text": "a"},
        DRAWN,
        {"type": "reference", "reference_ids": [1]},
        {"type": "image_url"},
        {"type": "text", "text": "b"},
    ]
    read, lost = streamed({"delta": {"content": content}, "finish_reason": "stop"})
    kinds = [type(part).__name__ for part in read.messages[0].parts]
    assert kinds == ["Text", "Image", "Opaque", "Opaque", "Text"]
    assert lost == ["openai block 'reference'", "openai block 'image_url'"]


@promise("law:2-nothing-vanishes")
def test_files_among_streamed_annotations_are_reported() -> None:
    read, lost = streamed({"delta": {"content": "ho", "annotations": [ANNEXED, QUOTED]}, "finish_reason": "stop"})
    (text,) = read.messages[0].parts
    assert isinstance(text, ir.Text)
    assert [citation.url for citation in text.citations] == ["https://e.org"]
    assert lost == ["annotations"]


@promise("law:7-no-guessing")
def test_fragments_with_an_id_of_their_own_continue_the_call() -> None:
    """Older versions of vLLM: without this, the call would run without its arguments."""
    pieces = [("a", {"name": "f", "arguments": ""}), ("b", {"arguments": '{"x":'}), ("c", {"arguments": "{}}"})]
    pieces += [("d", {"name": "f", "arguments": "{}"}), ("e", {"name": "g", "arguments": '{"y":1}'})]
    fragments = [{"index": 0, "id": id, "type": "function", "function": function} for id, function in pieces]
    read, _ = streamed(*({"delta": {"tool_calls": [one]}} for one in fragments), {"finish_reason": "tool_calls"})
    calls = [(call.id, call.name, call.arguments, call.incomplete) for call in read.tool_calls]
    assert calls == [("a", "f", {"x": {}}, False), ("d", "f", {}, False), ("e", "g", {"y": 1}, False)]


def test_a_nameless_object_after_a_whole_call_is_a_call_that_cannot_run() -> None:
    pieces = [("a", {"name": "f", "arguments": "{}"}), ("b", {"arguments": '{"x":1}'})]
    fragments = [{"index": 0, "id": id, "type": "function", "function": function} for id, function in pieces]
    read, _ = streamed(*({"delta": {"tool_calls": [one]}} for one in fragments), {"finish_reason": "tool_calls"})
    calls = [part for part in read.messages[0].parts if isinstance(part, ir.ToolCall)]
    assert [(call.name, call.incomplete) for call in calls] == [("f", False), ("", True)]


@promise("law:6-owed-back")
@each("target", ["gemini", "vertex", "gemini-interactions"])
def test_a_signature_that_names_its_call_returns_to_gemini_on_that_call(target: str) -> None:
    """OpenRouter: without the signature on the call, Gemini 3 refuses the request."""
    details = [
        {"type": "reasoning.text", "text": "hm", "format": "google-gemini-v1", "index": 0},
        {"type": "reasoning.encrypted", "data": "c2ln", "format": "google-gemini-v1", "id": "call_1", "index": 0},
    ]
    calls = [WIRE_CALL, {**WIRE_CALL, "id": "call_2"}]
    called = {"role": "assistant", "content": None, "reasoning_details": details, "tool_calls": calls}
    results = [{"role": "tool", "tool_call_id": call["id"], "content": "x"} for call in calls]
    body = {"model": "gemini-3-pro", "messages": [{"role": "user", "content": "hi"}, called, *results]}
    sent = dragoman.translate_request(body, source=NAME, target=target)
    assert not [loss for loss in sent.losses if loss.severity == "invented"]
    read = dragoman.decode_request(sent.json(), target).messages[1]
    assert sent.json().count(b"c2ln") == 1
    assert [part for part in read.parts if getattr(part, "signature", None)] == [read.tool_calls[0]]
    assert returns(body) is None


# ── pages beside the answer ───────────────────────────────────────────────────────────────────────────────────────

PAGES = ["https://a.example", "https://b.example"]
RESULTS = [{"title": "B", "url": PAGES[1]}, {"title": "A", "url": PAGES[0], "date": "2026-01-01"}]
SOURCES: dict[str, tuple[str, dict[str, Any], list[tuple[str, str | None, int | None]], set[str]]] = {
    "marked": ("One[2], two[1][9].", {"citations": PAGES}, [(PAGES[1], None, 3), (PAGES[0], None, 11)], set()),
    "one marked": ("One[2].", {"citations": PAGES}, [(PAGES[1], None, 3)], {"citations"}),
    "not marked": ("One.", {"citations": PAGES}, [(PAGES[0], None, None), (PAGES[1], None, None)], set()),
    "with titles": (
        "One[1].",
        {"citations": PAGES[:1], "search_results": RESULTS},
        [(PAGES[0], "A", 3)],
        {"search_results"},
    ),
    "results only": ("One[1].", {"search_results": RESULTS[:1]}, [(PAGES[1], "B", 3)], set()),
    "of another shape": ("One[1].", {"citations": [1]}, [], {"citations"}),
    "without a text": ("", {"citations": PAGES}, [], {"citations"}),
}


@promise("law:2-nothing-vanishes")
@each("case", SOURCES)
def test_pages_beside_an_answer_are_citations(case: str) -> None:
    """Perplexity repeats them in every chunk, xAI has them in the last one; here, they are in the middle."""
    text, beside, expected, reported = SOURCES[case]
    body = {**chat_answer({"role": "assistant", "content": text}), **beside}
    assert difference(body, json.loads(dragoman.translate_response(body, source=NAME, target=NAME).json())) is None
    chunks = [
        {"id": "c", "choices": [{"index": 0, "delta": {"content": text[:4]}}]},
        {"id": "c", "choices": [{"index": 0, "delta": {"content": text[4:]}}], **beside},
        {"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    ]
    data = b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks)
    decoder = dragoman.StreamDecoder(NAME)
    events = [*decoder.feed(data), *decoder.close()]
    encoder = dragoman.StreamEncoder(NAME)
    again = dragoman.StreamDecoder(NAME)
    twice = again.feed(encoder.encode(events) + encoder.close())
    answers = [dragoman.decode_response(body, NAME), *map(dragoman.accumulate, (events, [*twice, *again.close()]))]
    for answer in answers:
        cited = [found for part in answer.messages[0].parts if isinstance(part, ir.Text) for found in part.citations]
        assert [(found.url, found.title, found.start) for found in cited] == expected
    for target in (name for name in FORMATS if name != NAME):
        crossed = dragoman.translate_response(body, source=NAME, target=target)
        translator = dragoman.StreamTranslator(source=NAME, target=target)
        streamed = translator.feed(data) + translator.close()
        for content, losses in ((crossed.content, crossed.losses), (streamed, translator.losses)):
            assert {loss.what for loss in losses if loss.what in {"citations", "search_results"}} >= reported, target
            shown = {url for url, _, _ in expected if url.encode() in content}
            assert shown == {url for url, _, _ in expected} or any("citation" in loss.what for loss in losses), target
        for loss in crossed.losses:
            assert "annotations" not in loss.path, "they are not in the body"


# ── LiteLLM's thinking blocks ─────────────────────────────────────────────────────────────────────────────────────

THINKING_BLOCKS = [
    {"type": "thinking", "thinking": "hmm", "signature": "c2ln", "cache_control": {"type": "ephemeral"}},
    {"type": "redacted_thinking", "data": "ZGF0YQ=="},
]


@promise("law:6-owed-back")
@each("beside", [{}, {"reasoning_content": "hmm"}])
def test_thinking_blocks_of_litellm_are_signed_thinking(beside: dict[str, Any]) -> None:
    message = {"role": "assistant", "content": "a", **beside, "thinking_blocks": THINKING_BLOCKS}
    body = {
        "model": "claude-sonnet-4-5",
        "messages": [{"role": "user", "content": "q"}, message, {"role": "user", "content": "r"}],
    }
    assert returns(body) is None
    sent = dragoman.translate_request(body, source=NAME, target="anthropic-messages")
    thinking = {"type": "thinking", "thinking": "hmm", "signature": "c2ln"}
    assert json.loads(sent.json())["messages"][1]["content"][:2] == [thinking, THINKING_BLOCKS[1]]
    assert "$.messages[1].thinking_blocks" in {loss.path for loss in sent.losses}  # the cache mark
    refused = dragoman.translate_request(body, source=NAME, target="openai-responses")
    assert [loss.path for loss in refused.losses].count("$.messages[1].thinking_blocks") >= 2
    answer = chat_answer({**message, "thinking_blocks": THINKING_BLOCKS})
    read = dragoman.decode_response(
        dragoman.translate_response(answer, source=NAME, target="anthropic-messages").json(), "anthropic-messages"
    )
    signatures = [
        part.signature.data for part in read.messages[0].parts if isinstance(part, ir.Reasoning) and part.signature
    ]
    assert signatures == ["c2ln", "ZGF0YQ=="]


@each("target", [name for name in FORMATS if name != NAME])
def test_blocks_of_other_vendors_in_thinking_blocks_are_reported(target: str) -> None:
    """For Gemini, LiteLLM writes the JSON of a part into a thinking block; its signature is not Anthropic's."""
    gemini = {"type": "thinking", "thinking": '{"text": "hmm"}', "signature": "Zm9yIGdlbWluaQ=="}
    for blocks in ([gemini], [{"type": "future"}], {"odd": 1}):
        answer = chat_answer({"role": "assistant", "content": "a", "thinking_blocks": blocks})
        written = dragoman.translate_response(answer, source=NAME, target=target)
        assert "$.choices[0].message.thinking_blocks" in {loss.path for loss in written.losses}
        assert b"Zm9yIGdlbWluaQ" not in written.content
        translator = dragoman.StreamTranslator(source=NAME, target=target)
        choice = {"index": 0, "delta": {"content": "a", "thinking_blocks": blocks}, "finish_reason": "stop"}
        translator.feed(b"data: " + json.dumps({"id": "c", "choices": [choice]}).encode() + b"\n\n")
        translator.close()
        assert "$.thinking_blocks" in {loss.path for loss in translator.losses}


def test_streamed_thinking_blocks_are_signed_thinking() -> None:
    deltas: list[dict[str, Any]] = [
        {"reasoning_content": "h", "thinking_blocks": [{"type": "thinking", "thinking": "h", "signature": None}]},
        {"reasoning_content": "m", "thinking_blocks": [{"type": "thinking", "thinking": "m"}]},
        {"reasoning_content": "", "thinking_blocks": [{"type": "thinking", "thinking": "", "signature": "c2ln"}]},
        {"thinking_blocks": [{"type": "redacted_thinking", "data": "ZGF0YQ=="}]},
        {"content": "a"},
    ]
    chunks = [{"id": "c", "choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    ending = {"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    decoder = dragoman.StreamDecoder(NAME)
    data = b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in [*chunks, ending])
    answer = dragoman.accumulate([*decoder.feed(data), *decoder.close()])
    assert answer.messages[0].parts == (
        ir.Reasoning("hm", ir.Signature("anthropic", "c2ln")),
        ir.Reasoning("", ir.Signature("anthropic", "ZGF0YQ=="), redacted=True),
        ir.Text("a"),
    )


# ── counts in other spellings ─────────────────────────────────────────────────────────────────────────────────────

ODD_COUNTS = {
    "openai-chat": [
        {"prompt_tokens": 12.0, "completion_tokens": "3", "prompt_tokens_details": {"cached_tokens": 4.0}},
        {"prompt_tokens": "12", "completion_tokens": 3.0, "prompt_tokens_details": {"cached_tokens": "4", "x": 1}},
    ],
    "openai-responses": [
        {"input_tokens": 12.0, "output_tokens": "3", "input_tokens_details": {"cached_tokens": 4.0}},
    ],
}


def streamed_usage(format: str, usage: Any) -> bytes:
    """A whole stream with this usage in its last event."""
    chunks: list[dict[str, Any]] = [
        {"id": "c", "choices": [{"index": 0, "delta": {"content": "a"}, "finish_reason": "stop", "odd": 1}]},
        {"id": "c", "choices": [], "usage": usage},
    ]
    if format == "openai-responses":
        chunks = [{"type": "response.completed", "response": answer_with_usage(format, usage)}]
    return b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks)


def answer_with_usage(format: str, usage: Any) -> dict[str, Any]:
    if format == NAME:
        return {**chat_answer({"role": "assistant", "content": "a"}), "usage": usage}
    return {"id": "r", "object": "response", "status": "completed", "output": [], "usage": usage}


@each("format", ODD_COUNTS)
def test_counts_that_are_fractions_or_texts_are_counts(format: str) -> None:
    for usage in ODD_COUNTS[format]:
        body = answer_with_usage(format, usage)
        whole = dragoman.decode_response(body, format)
        decoder = dragoman.StreamDecoder(format)
        streamed = dragoman.accumulate([*decoder.feed(streamed_usage(format, usage)), *decoder.close()])
        for answer in (whole, streamed):
            assert answer.usage is not None
            assert (answer.usage.input, answer.usage.output, answer.usage.cached) == (12, 3, 4)
            assert type(answer.usage.input) is int
        assert (
            difference(body, json.loads(dragoman.translate_response(body, source=format, target=format).json())) is None
        )


@each("count", [12.5, "x", "", True, [], {}])
def test_counts_that_are_none_are_typed_errors(count: Any) -> None:
    for format, name in ((NAME, "prompt_tokens"), ("openai-responses", "input_tokens")):
        usage = {name: count}
        with pytest.raises(DecodeError) as caught:
            dragoman.decode_response(answer_with_usage(format, usage), format)
        assert caught.value.path == f"$.usage.{name}"
        decoder = dragoman.StreamDecoder(format)
        events = [*decoder.feed(streamed_usage(format, usage)), *decoder.close()]
        assert isinstance(events[-1], ir.StreamFailed)
        assert f"usage.{name}" in events[-1].failure.message


# ── errors of compatible servers ──────────────────────────────────────────────────────────────────────────────

FOREIGN_ERRORS: dict[str, Any] = {
    "Gemini's endpoint": [{"error": {"code": 400, "message": "no", "status": "INVALID_ARGUMENT"}}],
    "older vLLM": {"object": "error", "message": "no", "type": "BadRequestError", "param": None, "code": 400},
    "Qwen": {"code": "InvalidParameter", "message": "no", "request_id": "r"},
    "FastAPI": {"detail": "no"},
    "MiniMax": {"id": "", "choices": None, "base_resp": {"status_code": 1004, "status_msg": "no"}},
    "Cloudflare": {"success": False, "errors": [{"code": 7, "message": "no"}], "result": {}},
    "Baidu": {"error_code": 18, "error_msg": "no"},
}


@each("server", FOREIGN_ERRORS)
def test_errors_of_compatible_servers_have_their_message_and_come_back(server: str) -> None:
    body = json.dumps(FOREIGN_ERRORS[server]).encode()
    failure = dragoman.decode_error(body, NAME, status=400)
    assert failure.message == "no"
    assert difference(FOREIGN_ERRORS[server], json.loads(dragoman.encode_error(failure, NAME).content)) is None
    assert "no" in dragoman.encode_error(failure, "anthropic-messages").content.decode()


@pytest.mark.parametrize("body", ["[]", "[1]", "[[]]", "[{}, {}]", '["no"]', "[" * 3000, '[{"error":' + "[" * 3000])
def test_other_lists_are_refused(body: str) -> None:
    with pytest.raises(DecodeError):
        dragoman.decode_error(body.encode(), NAME, status=400)


@each("server", ["older vLLM", "Qwen", "FastAPI", "MiniMax"])
def test_an_error_within_a_stream_has_its_message(server: str) -> None:
    opening = {"id": "c", "model": "m", "choices": [{"index": 0, "delta": {"content": "a"}}]}
    for chunks in ([FOREIGN_ERRORS[server]], [opening, FOREIGN_ERRORS[server]]):
        decoder = dragoman.StreamDecoder(NAME)
        data = b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks)
        (failed,) = [event for event in decoder.feed(data) if isinstance(event, ir.StreamFailed)]
        assert failed.failure.message == "no"


MINIMAX_ERRORS = {1001: "timeout", 1002: "rate_limit", 1004: "authentication", 1008: "billing", 2013: "invalid_request"}


@each("code", [*MINIMAX_ERRORS, 1013])
def test_errors_of_minimax_are_errors_whatever_is_beside_them(code: int) -> None:
    """MiniMax answers errors with status 200; the last chunk of a stream may also have choices and usage."""
    status = {"base_resp": {"status_code": code, "status_msg": "no"}}
    kind = MINIMAX_ERRORS.get(code, "server")
    failure = dragoman.decode_error(json.dumps(status).encode(), NAME)
    assert (failure.kind, failure.code, failure.message) == (kind, str(code), "no")
    answers: list[dict[str, Any]] = [{"choices": None}, {"choices": [{"delta": {"content": "a"}}]}, {"usage": {}}]
    for beside in answers:
        decoder = dragoman.StreamDecoder(NAME)
        opening = {"id": "c", "model": "m", "choices": [{"index": 0, "delta": {"content": "a"}}]}
        data = b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in (opening, {**beside, **status}))
        last = decoder.feed(data)[-1]
        assert isinstance(last, ir.StreamFailed)
        assert (last.failure.kind, last.failure.message) == (kind, "no")


def test_success_that_minimax_states_is_no_error() -> None:
    body = {**chat_answer({"role": "assistant", "content": "a"}), "base_resp": {"status_code": 0, "status_msg": ""}}
    written = dragoman.translate_response(body, source=NAME, target="anthropic-messages")
    assert [loss.severity for loss in written.losses if loss.path == "$.base_resp"] == ["noted"]
    assert difference(body, json.loads(dragoman.translate_response(body, source=NAME, target=NAME).json())) is None


def test_a_failed_choice_says_why() -> None:
    """OpenRouter puts the error of the provider into the choice."""
    body = chat_answer({"role": "assistant", "content": ""}, "error")
    body["choices"][0]["error"] = {"code": 502, "message": "upstream is gone"}
    written = dragoman.translate_response(body, source=NAME, target="anthropic-messages")
    assert json.loads(written.json())["error"]["message"] == "upstream is gone"
    assert difference(body, json.loads(dragoman.translate_response(body, source=NAME, target=NAME).json())) is None
    stream = dragoman.StreamTranslator(source=NAME, target="anthropic-messages")
    choice = {"index": 0, "delta": {"content": "a"}, "finish_reason": "error", "error": body["choices"][0]["error"]}
    data = b"data: " + json.dumps({"id": "c", "model": "m", "choices": [choice]}).encode() + b"\n\n"
    assert b"upstream is gone" in stream.feed(data + b"data: [DONE]\n\n") + stream.close()
