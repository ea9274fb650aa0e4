"""Our answers and errors, read by the vendors' SDKs; their requests, read by us."""

import json
from typing import Any

import anthropic
import openai
import pytest
from google.genai import errors as genai_errors
from google.genai import types
from hypothesis import given
from msgspec import structs
from openai.types.chat import ChatCompletion, ChatCompletionMessageFunctionToolCall

import dragoman
from dragoman import ir
from tests import strategies
from tests.judges.vendors import (
    Wire,
    anthropic_client,
    genai_client,
    google_answer,
    openai_client,
    unknown_fields,
)
from tests.support.bodies import RESPONSES, Sample
from tests.support.calls import all_calls
from tests.support.cases import each
from tests.support.formats import FAMILY
from tests.support.promises import promise

pytestmark = promise("law:3-legality")

# Slots that clients of this API echo although its types do not name them (wire notes: compatible servers).
ECHOED = ("reasoning_content", "reasoning_details", "extra_content")


def openai_reads(body: bytes) -> ChatCompletion:
    completion = ChatCompletion.model_validate_json(body)
    unknown = [field for field in unknown_fields(completion) if not field.endswith(ECHOED)]
    assert unknown == []
    return completion


def anthropic_reads(body: bytes) -> anthropic.types.Message:
    message = anthropic.types.Message.model_validate_json(body)
    assert list(unknown_fields(message)) == []
    return message


def known(completion: ir.Completion) -> ir.Completion:
    """Without blocks of a provider's own, which only its own types know."""
    message = completion.messages[0]
    kept = tuple(part for part in message.parts if not isinstance(part, ir.ServerToolCall | ir.ServerToolResult))
    return structs.replace(completion, messages=(structs.replace(message, parts=kept or (ir.Text("x"),)),))


@given(completion=strategies.COMPLETIONS)
def test_openai_reads_our_answers(completion: ir.Completion) -> None:
    read = openai_reads(dragoman.encode_response(completion, "openai-chat").json())
    message = read.choices[0].message
    assert (message.content or "") == completion.text
    assert message.refusal == completion.refusal
    assert [call.id for call in message.tool_calls or ()] == [call.id for call in all_calls(completion)]
    assert read.usage is not None
    assert completion.usage is not None
    assert read.usage.prompt_tokens == completion.usage.input
    assert read.usage.total_tokens == completion.usage.input + completion.usage.output


@given(completion=strategies.COMPLETIONS)
def test_anthropic_reads_our_answers(completion: ir.Completion) -> None:
    read = anthropic_reads(dragoman.encode_response(known(completion), "anthropic-messages").json())
    calls = [block for block in read.content if block.type == "tool_use"]
    assert [block.id for block in calls] == [call.id for call in all_calls(completion)]
    assert read.stop_reason is not None
    assert (read.stop_reason == "tool_use") == (completion.finish_reason == "tool_calls")


@given(completion=strategies.COMPLETIONS)
def test_genai_reads_our_answers(completion: ir.Completion) -> None:
    read = google_answer(dragoman.encode_response(known(completion), "gemini").json())
    assert [call.name for call in read.function_calls or ()] == [call.name for call in all_calls(completion)]
    assert read.candidates
    assert read.candidates[0].finish_reason is not None


@each("sample", RESPONSES, ids=str)
def test_sample_answers_in_every_vendors_types(sample: Sample) -> None:
    readers = {"openai-chat": openai_reads, "anthropic-messages": anthropic_reads, "gemini": google_answer}
    for target, read in readers.items():
        if FAMILY[target] != FAMILY[sample.format]:
            read(dragoman.translate_response(sample.body, source=sample.format, target=target).json())


# ── conversations over the SDKs ───────────────────────────────────────────────────────────────────────────────

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
ANSWER = ir.Completion(
    (ir.Message("assistant", (ir.Text("Let me see."), ir.ToolCall("call_1", "get_weather", {"city": "Zürich"}))),),
    ir.Finish("tool_calls"),
    ir.Usage(10, 5),
    "answer_1",
    "some-model",
    1,
)


def test_the_openai_sdk_talks_through_us() -> None:
    wire = Wire(dragoman.encode_response(ANSWER, "openai-chat").json())
    client = openai_client(wire)
    messages: list[Any] = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Weather in Zürich?"},
    ]
    tools: list[Any] = [{"type": "function", "function": {"name": "get_weather", "parameters": SCHEMA}}]
    read = client.chat.completions.create(model="gpt-4.1", messages=messages, tools=tools, tool_choice="auto", seed=3)
    (call,) = read.choices[0].message.tool_calls or []
    assert isinstance(call, ChatCompletionMessageFunctionToolCall)
    assert json.loads(call.function.arguments) == {"city": "Zürich"}
    messages += [
        read.choices[0].message,
        {"role": "tool", "tool_call_id": call.id, "content": "22"},
    ]
    client.chat.completions.create(model="gpt-4.1", messages=messages, tools=tools)
    request = dragoman.decode_request(wire.sent, "openai-chat")
    assert [message.role for message in request.messages] == ["system", "user", "assistant", "tool"]
    assert request.messages[2].tool_calls[0].arguments == {"city": "Zürich"}
    assert request.messages[3].tool_results[0].name == "get_weather"
    assert dragoman.encode_request(request, "openai-chat").body == wire.body
    assert wire.path == dragoman.encode_request(request, "openai-chat").path


def test_the_anthropic_sdk_talks_through_us() -> None:
    wire = Wire(dragoman.encode_response(ANSWER, "anthropic-messages").json())
    client = anthropic_client(wire)
    messages: list[Any] = [{"role": "user", "content": "Weather in Zürich?"}]
    tools: list[Any] = [{"name": "get_weather", "input_schema": SCHEMA}]
    arguments: dict[str, Any] = {"model": "claude-sonnet-5", "max_tokens": 100, "system": "Be brief.", "tools": tools}
    read = client.messages.create(messages=messages, **arguments)
    (call,) = [block for block in read.content if block.type == "tool_use"]
    assert call.input == {"city": "Zürich"}
    messages += [
        {"role": "assistant", "content": [block.to_dict() for block in read.content]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "22"}]},
    ]
    client.messages.create(messages=messages, **arguments)
    request = dragoman.decode_request(wire.sent, "anthropic-messages")
    assert [message.role for message in request.messages] == ["system", "user", "assistant", "tool"]
    assert request.messages[3].tool_results[0].name == "get_weather"
    assert dragoman.encode_request(request, "anthropic-messages").body == wire.body


def test_the_genai_sdk_talks_through_us() -> None:
    wire = Wire(dragoman.encode_response(ANSWER, "gemini").json())
    client = genai_client(wire)
    config = types.GenerateContentConfig(
        system_instruction="Be brief.",
        temperature=0.5,
        tools=[
            types.Tool(
                function_declarations=[
                    types.FunctionDeclaration(name="get_weather", parameters_json_schema=SCHEMA, description="W")
                ]
            )
        ],
    )
    contents = [types.Content(role="user", parts=[types.Part(text="Weather in Zürich?")])]
    read = client.models.generate_content(model="gemini-2.5-flash", contents=contents, config=config)
    (call,) = read.function_calls or []
    assert call.args == {"city": "Zürich"}
    assert read.candidates
    assert read.candidates[0].content
    result = types.FunctionResponse(id=call.id, name=call.name, response={"output": "22"})
    contents += [read.candidates[0].content, types.Content(role="user", parts=[types.Part(function_response=result)])]
    client.models.generate_content(model="gemini-2.5-flash", contents=contents, config=config)
    request = dragoman.decode_request(wire.sent, "gemini")
    assert [message.role for message in request.messages] == ["system", "user", "assistant", "tool"]
    assert request.messages[3].tool_results[0].value == "22"
    assert request.temperature == 0.5
    assert dragoman.encode_request(request, "gemini").body == wire.body


@pytest.mark.parametrize("vendor", ["openai-chat", "anthropic-messages", "gemini"])
def test_an_encoded_body_is_what_the_sdk_itself_would_send(vendor: str) -> None:
    """`client.messages.create(**encoded.body)`: the SDK takes our body as its arguments and sends it unchanged."""
    request = ir.Request(
        "some-model",
        (ir.Message("system", "Be brief."), ir.Message("user", "hi")),
        (ir.ToolDefinition("f", "F", SCHEMA),),
        max_output_tokens=100,
        stop=("END",),
    )
    body = dragoman.encode_request(request, vendor).body
    wire = Wire(dragoman.encode_response(ANSWER, vendor).json())
    if vendor == "openai-chat":
        openai_client(wire).chat.completions.create(**body)
        assert wire.body == body
    elif vendor == "anthropic-messages":
        anthropic_client(wire).messages.create(**body)
        assert wire.body == body
    else:
        config = {key: value for key, value in body.items() if key not in {"contents", "generationConfig"}}
        genai_client(wire).models.generate_content(
            model="some-model", contents=body["contents"], config=config | body["generationConfig"]
        )
        ours, theirs = dragoman.decode_request(body, vendor), dragoman.decode_request(wire.sent, vendor)
        assert theirs.messages == ours.messages
        assert theirs.stop == ours.stop
        assert [tool.name for tool in theirs.tools] == ["f"]


# ── errors ────────────────────────────────────────────────────────────────────────────────────────────────────

OPENAI_CLASSES: dict[ir.FailureKind, type[openai.APIStatusError]] = {
    "invalid_request": openai.BadRequestError,
    "authentication": openai.AuthenticationError,
    "permission": openai.PermissionDeniedError,
    "not_found": openai.NotFoundError,
    "rate_limit": openai.RateLimitError,
    "server": openai.InternalServerError,
    "overloaded": openai.InternalServerError,
}
ANTHROPIC_CLASSES: dict[ir.FailureKind, type[anthropic.APIStatusError]] = {
    "invalid_request": anthropic.BadRequestError,
    "authentication": anthropic.AuthenticationError,
    "permission": anthropic.PermissionDeniedError,
    "not_found": anthropic.NotFoundError,
    "rate_limit": anthropic.RateLimitError,
    "server": anthropic.InternalServerError,
}


def failing(failure: ir.Failure, target: str) -> Wire:
    encoded = dragoman.encode_error(failure, target)
    return Wire(encoded.json(), encoded.status, encoded.headers)


@pytest.mark.parametrize("kind", OPENAI_CLASSES)
def test_openai_raises_what_we_mean(kind: ir.FailureKind) -> None:
    wire = failing(ir.Failure(kind, "no luck", request_id="req_1"), "openai-chat")
    with pytest.raises(OPENAI_CLASSES[kind], match="no luck") as raised:
        openai_client(wire).chat.completions.create(model="m", messages=[{"role": "user", "content": "hi"}])
    assert raised.value.request_id == "req_1"


@pytest.mark.parametrize("kind", ANTHROPIC_CLASSES)
def test_anthropic_raises_what_we_mean(kind: ir.FailureKind) -> None:
    wire = failing(ir.Failure(kind, "no luck", request_id="req_1"), "anthropic-messages")
    with pytest.raises(ANTHROPIC_CLASSES[kind], match="no luck"):
        anthropic_client(wire).messages.create(model="m", max_tokens=5, messages=[{"role": "user", "content": "hi"}])


@pytest.mark.parametrize("kind", strategies.FAILURE_KINDS)
def test_genai_raises_what_we_mean(kind: ir.FailureKind) -> None:
    wire = failing(ir.Failure(kind, "no luck"), "gemini")
    expected = genai_errors.ServerError if wire.status >= 500 else genai_errors.ClientError
    with pytest.raises(expected, match="no luck") as raised:
        genai_client(wire).models.generate_content(model="m", contents="hi")
    assert raised.value.code == wire.status
