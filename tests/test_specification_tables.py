"""The five conversion tables of the first specification, cell by cell, one value at a time, byte for byte.

Where the wire formats have changed since, the ruling that applies is named beside the cell.
"""

import json
from typing import Any

import pytest

import dragoman
from dragoman import ir
from tests.support.cases import each
from tests.support.promises import promise

pytestmark = promise("value:seed-tables")

ARGUMENTS = {"city": "東京", "days": 3}
TEXT = '{"city":"東京","days":3}'
CALL = ir.ToolCall("call_1", "get_weather", ARGUMENTS)

# ── table 1: a call received ──────────────────────────────────────────────────────────────────────────────────

RECEIVED: dict[str, dict[str, Any]] = {
    "openai-chat": {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": TEXT}},
    "anthropic-messages": {"type": "tool_use", "id": "call_1", "name": "get_weather", "input": ARGUMENTS},
    "gemini": {"functionCall": {"name": "get_weather", "args": ARGUMENTS}},
    "openai-responses": {"type": "function_call", "call_id": "call_1", "name": "get_weather", "arguments": TEXT},
    "bedrock-converse": {"toolUse": {"toolUseId": "call_1", "name": "get_weather", "input": ARGUMENTS}},
    "ollama-chat": {"function": {"name": "get_weather", "arguments": ARGUMENTS}},
    "universal": {"id": "call_1", "name": "get_weather", "arguments": ARGUMENTS},
    "modular-prompt": {"id": "call_1", "name": "get_weather", "arguments": ARGUMENTS},
    "agent-sdk": {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": TEXT}},
    "multi-llm-chat": {
        "type": "tool_call",
        "content": {"name": "get_weather", "arguments": ARGUMENTS, "tool_call_id": "call_1"},
    },
}
RECEIVED["vertex"] = RECEIVED["gemini"]
RECEIVED["cohere-chat"] = RECEIVED["openai-chat"]
INTERACTIONS = ("gemini-interactions", "vertex-interactions")
RECEIVED |= dict.fromkeys(dragoman.formats("compatible"), RECEIVED["openai-chat"])
RECEIVED |= {
    name: {"type": "function_call", "id": "call_1", "name": "get_weather", "arguments": ARGUMENTS}
    for name in INTERACTIONS
}
WITHOUT_IDS = {"gemini", "vertex", "ollama-chat"}


@each("source", dragoman.formats(None))
def test_a_call_received(source: str) -> None:
    call = dragoman.decode_tool_call(RECEIVED[source], source)
    assert call.name == "get_weather"
    assert call.arguments == ARGUMENTS  # native values, however the wire spelled them
    if source in WITHOUT_IDS:
        assert call.id
        assert call.invented_id
    else:
        assert call.id == "call_1"


def test_a_thought_signature_is_kept_with_its_call() -> None:
    part = {**RECEIVED["gemini"], "thoughtSignature": "c2lnbmVk"}
    call = dragoman.decode_tool_call(part, "gemini")
    assert call.signature is not None
    assert call.signature.data == "c2lnbmVk"
    assert dragoman.encode_tool_call(call, "gemini").value == part


def test_text_that_is_not_json_is_not_an_empty_object() -> None:
    broken = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{"city": '}}
    call = dragoman.decode_tool_call(broken, "openai-chat")
    assert not call.parsed
    assert call.arguments_text == '{"city": '
    with pytest.raises(dragoman.UnparsedArguments):
        call.arguments  # noqa: B018


# ── table 2: a definition sent ────────────────────────────────────────────────────────────────────────────────

SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string", "description": "都市"}},
    "required": ["city"],
    "additionalProperties": False,
}
DEFINITION = ir.ToolDefinition("get_weather", "天気を調べる", SCHEMA, strict=True)
PLAIN = {"name": "get_weather", "description": "天気を調べる"}

DEFINED: dict[str, Any] = {
    "openai-chat": {"type": "function", "function": {**PLAIN, "parameters": SCHEMA, "strict": True}},
    # When the table was written, only OpenAI had `strict`; Anthropic has it now.
    "anthropic-messages": {**PLAIN, "input_schema": SCHEMA, "strict": True},
    # Unchanged JSON Schema now has a field of its own; `parameters` takes a subset of OpenAPI's schemas.
    "gemini": {"functionDeclarations": [{**PLAIN, "parametersJsonSchema": SCHEMA}]},
    "openai-responses": {"type": "function", **PLAIN, "parameters": SCHEMA, "strict": True},
    "bedrock-converse": {"toolSpec": {**PLAIN, "inputSchema": {"json": SCHEMA}, "strict": True}},
    "ollama-chat": {"type": "function", "function": {**PLAIN, "parameters": SCHEMA}},
}
DEFINED["vertex"] = DEFINED["gemini"]
DEFINED["cohere-chat"] = DEFINED["ollama-chat"]
DEFINED |= {name: {"type": "function", **PLAIN, "parameters": SCHEMA} for name in INTERACTIONS}
DEFINED |= {name: {**PLAIN, "parameters": SCHEMA, "strict": True} for name in dragoman.formats("record")}


@pytest.mark.parametrize("target", DEFINED)
def test_a_definition_sent(target: str) -> None:
    encoded = dragoman.encode_tool_definition(DEFINITION, target)
    assert encoded.value == DEFINED[target]
    assert "天気を調べる" in encoded.json().decode()
    again = dragoman.decode_tool_definition(encoded.json(), target)
    assert isinstance(again, ir.ToolDefinition)
    assert (again.name, again.description, again.parameters) == ("get_weather", "天気を調べる", SCHEMA)


def test_anthropic_always_gets_an_object_schema() -> None:
    """`input_schema: {type: "object", ...parameters}`."""
    for parameters in (None, {}, {"properties": {"a": {"type": "string"}}}):
        encoded = dragoman.encode_tool_definition(ir.ToolDefinition("f", None, parameters), "anthropic-messages")
        assert encoded.value["input_schema"]["type"] == "object"
        properties = (parameters or {}).get("properties")
        assert encoded.value["input_schema"].get("properties", {}) == (properties or {})


def test_gemini_gets_all_declarations_in_one_element() -> None:
    tools = [ir.ToolDefinition("f"), ir.ToolDefinition("g", "G")]
    encoded = dragoman.encode_tool_definitions(tools, "gemini")
    assert encoded.value == [{"functionDeclarations": [{"name": "f"}, {"name": "g", "description": "G"}]}]
    assert dragoman.decode_tool_definitions(encoded.value, "gemini") == tuple(tools)


# ── table 3: a choice sent ────────────────────────────────────────────────────────────────────────────────────

ONE = ir.ToolChoice("required", ("get_weather",))
CHOICES: list[tuple[Any, str, Any]] = [
    ("auto", "openai-chat", "auto"),
    ("none", "openai-chat", "none"),
    ("required", "openai-chat", "required"),
    (ONE, "openai-chat", {"type": "function", "function": {"name": "get_weather"}}),
    ("auto", "anthropic-messages", {"type": "auto"}),
    ("none", "anthropic-messages", {"type": "none"}),
    ("required", "anthropic-messages", {"type": "any"}),
    (ONE, "anthropic-messages", {"type": "tool", "name": "get_weather"}),
    ("auto", "gemini", {"functionCallingConfig": {"mode": "AUTO"}}),
    ("none", "gemini", {"functionCallingConfig": {"mode": "NONE"}}),
    ("required", "gemini", {"functionCallingConfig": {"mode": "ANY"}}),
    (ONE, "gemini", {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["get_weather"]}}),
    (ONE, "vertex", {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["get_weather"]}}),
    ("required", "vertex", {"functionCallingConfig": {"mode": "ANY"}}),
    (ONE, "openai-responses", {"type": "function", "name": "get_weather"}),
    ("required", "openai-responses", "required"),
    ("auto", "bedrock-converse", {"auto": {}}),
    ("required", "bedrock-converse", {"any": {}}),
    (ONE, "bedrock-converse", {"tool": {"name": "get_weather"}}),
    (ONE, "universal", {"name": "get_weather"}),
    (ONE, "modular-prompt", {"name": "get_weather"}),
    (ONE, "agent-sdk", "get_weather"),
    (ONE, "multi-llm-chat", {"name": "get_weather"}),
]


@each(("choice", "target", "expected"), CHOICES)
def test_a_choice_sent(choice: Any, target: str, expected: Any) -> None:
    encoded = dragoman.encode_tool_choice(choice, target)
    assert encoded.value == expected
    assert encoded.losses == ()
    given = choice if isinstance(choice, ir.ToolChoice) else ir.ToolChoice(choice)
    again = dragoman.decode_tool_choice(encoded.value, target)
    assert (again.mode, again.names) == (given.mode, given.names)
    assert dragoman.decode_tool_choice(encoded.json(), target) == again


def test_a_choice_as_the_specification_spells_it() -> None:
    assert dragoman.encode_tool_choice({"name": "f"}, "anthropic-messages").value == {"type": "tool", "name": "f"}


# ── table 4: a call sent again ────────────────────────────────────────────────────────────────────────────────


@each("target", dragoman.formats(None))
def test_a_call_sent_again(target: str) -> None:
    """It is the call as received, in every format that accepts its id."""
    encoded = dragoman.encode_tool_call(CALL, target)
    assert encoded.losses == ()
    expected = RECEIVED[target]
    if target == "gemini":
        expected = {"functionCall": {**expected["functionCall"], "id": "call_1"}}
    elif target == "ollama-chat":
        expected = {**expected, "id": "call_1"}
    elif target == "mistral":
        expected = {**expected, "id": encoded.value["id"]}  # ids have nine characters there
    assert encoded.value == expected
    assert "東京" in encoded.json().decode()


@pytest.mark.parametrize("target", ["gemini", "vertex"])
def test_an_id_that_was_made_up_for_gemini_is_not_sent_to_it(target: str) -> None:
    call = dragoman.decode_tool_call(RECEIVED["gemini"], target)
    assert dragoman.encode_tool_call(call, target).value == RECEIVED["gemini"]
    result = ir.ToolResult(call.id, call.name, "data", {"temp": 22})
    (content,) = dragoman.encode_tool_result(result, target).value
    assert content == {
        "role": "user",
        "parts": [{"functionResponse": {"name": "get_weather", "response": {"temp": 22}}}],
    }


# ── table 5: results sent ─────────────────────────────────────────────────────────────────────────────────────

PIXEL = "iVBORw0KGgo="
SEEN = (ir.Text("地図"), ir.Image("image/png", PIXEL))
RESULTS: list[tuple[ir.ResultKind, Any, Any, Any, Any]] = [
    # kind, value, OpenAI's content, Anthropic's block, Gemini's response
    ("text", "晴れ", "晴れ", {"content": "晴れ"}, {"output": "晴れ"}),
    ("text", '{"a": 1}', '{"a": 1}', {"content": '{"a": 1}'}, {"output": '{"a": 1}'}),
    ("data", {"temp": 22}, '{"temp":22}', {"content": '{"temp":22}'}, {"temp": 22}),
    ("data", {"都市": ["東京"]}, '{"都市":["東京"]}', {"content": '{"都市":["東京"]}'}, {"都市": ["東京"]}),
    ("data", [1, 2], "[1,2]", {"content": "[1,2]"}, {"output": [1, 2]}),
    ("data", 42, "42", {"content": "42"}, {"output": 42}),
    ("data", True, "true", {"content": "true"}, {"output": True}),
    ("data", None, "null", {"content": "null"}, {"output": None}),
    ("data", "晴れ", '"晴れ"', {"content": '"晴れ"'}, {"output": "晴れ"}),
    ("error", "timeout", '{"error":"timeout"}', {"content": "timeout", "is_error": True}, {"error": "timeout"}),
]


@pytest.mark.parametrize(("kind", "value", "openai", "anthropic", "gemini"), RESULTS)
def test_a_result_sent(kind: ir.ResultKind, value: Any, openai: Any, anthropic: Any, gemini: Any) -> None:
    result = ir.ToolResult("call_1", "get_weather", kind, value)
    for target in ("openai-chat", *(name for name in dragoman.formats("compatible") if name not in INTERACTIONS)):
        (message,) = dragoman.encode_tool_result(result, target).value
        assert message.pop("tool_call_id")
        assert message == {"role": "tool", "content": openai}
    (message,) = dragoman.encode_tool_result(result, "anthropic-messages").value
    block = {"type": "tool_result", "tool_use_id": "call_1", **anthropic}
    assert message == {"role": "user", "content": [block]}
    for target in ("gemini", "vertex"):
        (content,) = dragoman.encode_tool_result(result, target).value
        content["parts"][0]["functionResponse"].pop("id", None)
        answer = {"name": "get_weather", "response": gemini}
        assert content == {"role": "user", "parts": [{"functionResponse": answer}]}
    (item,) = dragoman.encode_tool_result(result, "openai-responses").value
    assert item == {"type": "function_call_output", "call_id": "call_1", "output": openai}
    (message,) = dragoman.encode_tool_result(result, "ollama-chat").value
    assert (message["role"], message["tool_name"], message["content"]) == ("tool", "get_weather", openai)
    (message,) = dragoman.encode_tool_result(result, "modular-prompt").value
    assert message == {"role": "tool", "toolCallId": "call_1", "name": "get_weather", "kind": kind, "value": value}


@pytest.mark.parametrize(
    "result",
    [
        dragoman.ToolResult("call_1", "get_map", "multimodal", [*SEEN]),
        ir.ToolResult("call_1", "get_map", "multimodal", None, SEEN),
        dragoman.ToolResult.multimodal(CALL, [*SEEN]),
    ],
)
def test_a_multimodal_result_sent(result: ir.ToolResult) -> None:
    tool, follow = dragoman.encode_tool_result(result, "openai-chat").value
    assert tool["content"][0] == {"type": "text", "text": "地図"}
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}
    assert follow["role"] == "user"
    assert follow["content"][1] == image
    (message,) = dragoman.encode_tool_result(result, "anthropic-messages").value
    source = {"type": "base64", "media_type": "image/png", "data": PIXEL}
    assert message["content"][0]["content"] == [{"type": "text", "text": "地図"}, {"type": "image", "source": source}]
    (content,) = dragoman.encode_tool_result(result, "gemini", model="gemini-3-pro-preview").value
    answer = content["parts"][0]["functionResponse"]
    assert answer["response"] == {"output": "地図"}
    assert answer["parts"] == [{"inlineData": {"mimeType": "image/png", "data": PIXEL}}]


def test_all_results_of_a_turn_are_one_message_where_the_api_wants_that() -> None:
    results = [ir.ToolResult(f"call_{n}", "f", "text", f"{n}") for n in (1, 2, 3)]
    counts = {name: len(dragoman.encode_tool_results(results, name).value) for name in dragoman.formats(None)}
    together = {"anthropic-messages", "gemini", "vertex", "bedrock-converse", "multi-llm-chat"}
    assert counts == {name: 1 if name in together else 3 for name in dragoman.formats(None)}
    (message,) = dragoman.encode_tool_results(results, "anthropic-messages").value
    assert [block["tool_use_id"] for block in message["content"]] == ["call_1", "call_2", "call_3"]
    assert all(block["type"] == "tool_result" for block in message["content"])


def test_json_text_is_compact_and_unescaped() -> None:
    result = ir.ToolResult("call_1", "f", "data", {"b": "é", "a": [1, {"c": None}]})
    (message,) = dragoman.encode_tool_result(result, "openai-chat").value
    assert message["content"] == '{"b":"é","a":[1,{"c":null}]}'
    assert json.loads(message["content"]) == result.value
