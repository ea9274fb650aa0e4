"""Quirks of real clients and servers: what they send, and what becomes of it."""

from typing import Any

import pytest

import dragoman
from dragoman import ir
from tests.support.cases import each
from tests.support.promises import promise

pytestmark = promise("core:small-things")

QUESTION = {"role": "user", "content": "hi"}
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}]


def chat(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"model": "gpt-4.1", "messages": [QUESTION, *messages], **more}


def called(call_id: str, arguments: str = "{}", content: Any = "ok") -> dict[str, Any]:
    call = {"id": call_id, "type": "function", "function": {"name": "f", "arguments": arguments}}
    return chat(
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call_id, "content": content},
        tools=TOOLS,
    )


@each("server", ["openai-chat", "groq", "vllm", "deepseek", "xai", "openrouter", "llama-cpp"])
@each("call_id", ["chatcmpl-tool-" + "a" * 50, "call_1", "fc-9d3e#2", "functions.f:0"])
def test_ids_of_compatible_servers_are_not_rewritten(server: str, call_id: str) -> None:
    encoded = dragoman.translate_request(called(call_id), source="openai-chat", target=server)
    assert encoded.body["messages"][1]["tool_calls"][0]["id"] == call_id
    assert encoded.body["messages"][2]["tool_call_id"] == call_id


def test_a_refusal_beside_a_function_call_survives() -> None:
    message = {
        "role": "assistant",
        "content": None,
        "refusal": "No.",
        "function_call": {"name": "f", "arguments": "{}"},
    }
    body = chat(message, {"role": "function", "name": "f", "content": "ok"})
    assert dragoman.translate_request(body, source="openai-chat", target="openai-chat").body == body
    answer = {
        "id": "x", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
    }  # fmt: skip
    assert dragoman.translate_response(answer, source="openai-chat", target="openai-chat").body == answer


@pytest.mark.parametrize("target", ["anthropic-messages", "gemini", "bedrock-converse", "ollama-chat"])
def test_arguments_that_are_not_json_are_reported_where_they_are_wrapped(target: str) -> None:
    encoded = dragoman.translate_request(called("c1", '{"city": "Tok'), source="openai-chat", target=target)
    assert "unparsed_arguments" in encoded.json().decode()
    losses = {(loss.path, loss.severity) for loss in encoded.losses}
    assert ("$.messages[1].tool_calls[0].function.arguments", "degraded") in losses
    again = dragoman.translate_request(encoded.json(), source=target, target=target)
    assert not any("arguments" in loss.path for loss in again.losses)


@pytest.mark.parametrize("name", ["mpeg", "mp3", "mpga", "x-aac", "m4a", "opus", "webm"])
def test_formats_of_sound_stay_as_bedrock_spells_them(name: str) -> None:
    sound = {"audio": {"format": name, "source": {"bytes": "AAAA"}}}
    body = {"messages": [{"role": "user", "content": [sound, {"text": "?"}]}]}
    assert dragoman.translate_request(body, source="bedrock-converse", target="bedrock-converse").body == body


def test_a_mode_of_null_stays() -> None:
    body = {
        "contents": [{"role": "user", "parts": [{"text": "x"}]}],
        "tools": [{"functionDeclarations": [{"name": "f"}]}],
        "toolConfig": {"functionCallingConfig": {"mode": None}},
    }
    assert dragoman.translate_request(body, source="gemini", target="gemini").body == body
    encoded = dragoman.translate_request(body, source="gemini", target="openai-chat", model="gpt-4.1")
    assert (encoded.body["tool_choice"], encoded.losses) == ("auto", ())


def test_an_empty_list_of_a_tool_message() -> None:
    body = called("c1", content=[])
    assert dragoman.translate_request(body, source="openai-chat", target="openai-chat").body == body
    there = dragoman.translate_request(body, source="openai-chat", target="gemini")
    assert there.body["contents"][2]["parts"][0]["functionResponse"]["response"] == {"output": ""}
    assert there.losses == ()


NODE = {
    "type": "object",
    "properties": {"next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}},
    "required": ["next"],
    "additionalProperties": False,
}
SCHEMAS = {
    "recursive": {
        "type": "object",
        "properties": {"first": {"$ref": "#/$defs/node"}},
        "required": ["first"],
        "additionalProperties": False,
        "$defs": {"node": NODE},
    },
    "untyped": {"type": "object", "properties": {"a": {"description": "Anything."}}, "additionalProperties": False},
}


@pytest.mark.parametrize("target", ["anthropic-messages", "bedrock-converse"])
@pytest.mark.parametrize("case", SCHEMAS)
def test_a_schema_that_claude_does_not_take_refuses_no_request(case: str, target: str) -> None:
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMAS[case]}}
    encoded = dragoman.translate_request(chat(response_format=form), source="openai-chat", target=target)
    assert "output_config" not in encoded.body
    assert "outputConfig" not in encoded.body
    system = encoded.body["system"]
    text = system if isinstance(system, str) else system[0]["text"]
    assert text.startswith("Answer with JSON that follows this JSON Schema")
    assert ("$.response_format.json_schema.schema", "degraded") in {
        (loss.path, loss.severity) for loss in encoded.losses
    }


def test_wrapped_arguments_come_back_as_their_text() -> None:
    request = dragoman.decode_request(called("c1", '{"city": "Tok'), "openai-chat")
    wrapped = dragoman.encode_request(request, "anthropic-messages").body
    call = dragoman.decode_request(wrapped, "anthropic-messages").messages[1].tool_calls[0]
    assert isinstance(call, ir.ToolCall)
    assert (call.parsed, call.arguments_text) == (False, '{"city": "Tok')
