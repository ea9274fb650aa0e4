"""Law 7. Arguments are never repaired, and a failed answer never looks like a success."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

import dragoman
from dragoman import ir
from dragoman.codecs.arguments import read_arguments
from dragoman.errors import UnparsedArguments
from tests import strategies
from tests.support.calls import all_calls
from tests.support.cases import each
from tests.support.formats import FORMATS, PAIRS
from tests.support.promises import promise

pytestmark = promise("law:7-no-guessing")

BROKEN = st.one_of(
    strategies.BROKEN_TEXTS,
    st.text(max_size=12).filter(lambda text: read_arguments_fails(text) and text.isprintable()),
)


def read_arguments_fails(text: str) -> bool:
    return not ir.ToolCall("c", "f", read_arguments(text), text).parsed


def history(call: ir.ToolCall) -> ir.Request:
    result = ir.ToolResult(call.id, call.name, "error", "not run: the arguments are no JSON object")
    tool = ir.ToolDefinition(call.name, parameters={"type": "object", "properties": {}})
    messages = (ir.Message("user", "go"), ir.Message("assistant", (call,)), ir.Message("tool", (result,)))
    return ir.Request("some-model", messages, (tool,))


def only_call(request: ir.Request) -> ir.ToolCall:
    (call,) = (call for message in request.messages for call in message.tool_calls)
    return call


@promise("report:59")
@given(text=BROKEN)
@each(("first", "second"), PAIRS)
def test_broken_argument_text_crosses_two_formats_to_the_letter(first: str, second: str, text: str) -> None:
    request = history(ir.ToolCall("call_1", "f", read_arguments(text), text))
    for target in (first, second):
        body = dragoman.encode_request(structs.replace(request, origin=None), target).json()
        request = dragoman.decode_request(body, target)
        call = only_call(request)
        assert not call.parsed
        assert call.arguments_text == text
        with pytest.raises(UnparsedArguments, match="not a JSON object") as raised:
            call.arguments  # noqa: B018
        assert raised.value.text == text
        assert raised.value.call_id == call.id


@promise("report:59")
@given(text=strategies.BROKEN_TEXTS)
@each("target", FORMATS)
def test_broken_argument_text_of_an_answer_reaches_the_client_to_the_letter(target: str, text: str) -> None:
    message = ir.Message("assistant", (ir.ToolCall("call_1", "f", read_arguments(text), text),))
    completion = ir.Completion((message,), ir.Finish("tool_calls"), ir.Usage(), "r", "m")
    again = dragoman.decode_response(dragoman.encode_response(completion, target).json(), target)
    assert not again.tool_calls[0].parsed
    assert again.tool_calls[0].arguments_text == text


def test_text_formats_get_the_very_text() -> None:
    call = ir.ToolCall("call_1", "f", read_arguments('{"a": 1.0, "a":2'), '{"a": 1.0, "a":2')
    body = dragoman.encode_request(history(call), "openai-chat").body
    assert body["messages"][1]["tool_calls"][0]["function"]["arguments"] == '{"a": 1.0, "a":2'


@pytest.mark.parametrize(
    ("target", "path"),
    [
        pytest.param("anthropic-messages", ("messages", 1, "content", 0, "input"), id="anthropic-messages"),
        pytest.param("gemini", ("contents", 1, "parts", 0, "functionCall", "args"), id="gemini"),
        pytest.param("vertex", ("contents", 1, "parts", 0, "functionCall", "args"), id="vertex"),
        pytest.param("bedrock-converse", ("messages", 1, "content", 0, "toolUse", "input"), id="bedrock-converse"),
        pytest.param("gemini-interactions", ("input", 1, "arguments"), id="gemini-interactions"),
        pytest.param("ollama-chat", ("messages", 1, "tool_calls", 0, "function", "arguments"), id="ollama-chat"),
    ],
)
def test_object_formats_get_one_documented_wrapper(target: str, path: tuple[str | int, ...]) -> None:
    found: object = dragoman.encode_request(history(ir.ToolCall("c", "f", read_arguments("{a"), "{a")), target).body
    for step in path:
        found = found[step]  # type: ignore[index]
    assert found == {"unparsed_arguments": "{a"}


@each("target", FORMATS)
@each(
    "lookalike",
    [
        {"unparsed_arguments": 1},
        {"unparsed_arguments": "{}", "more": 1},
        {"more": 1, "unparsed_arguments": "{}"},
        {"unparsed": "{}"},
    ],
    ids=str,
)
def test_only_our_own_wrapper_is_undone(target: str, lookalike: dict[str, object]) -> None:
    call = ir.ToolCall("call_1", "f", lookalike)
    again = only_call(dragoman.decode_request(dragoman.encode_request(history(call), target).json(), target))
    assert again.parsed
    assert again.arguments == lookalike


@promise("report:58")
@given(value=strategies.JSON_OBJECTS)
@each(("source", "target"), PAIRS)
def test_arguments_that_parse_stay_the_same_mapping(source: str, target: str, value: dict[str, object]) -> None:
    request = history(ir.ToolCall("call_1", "f", value))
    body = dragoman.encode_request(request, source).json()
    there = dragoman.translate_request(body, source=source, target=target).json()
    assert only_call(dragoman.decode_request(there, target)).arguments == value


@promise("report:58")
@each("text", ["", " ", "null", "{}"])
@each("target", FORMATS)
def test_no_arguments_at_all_are_an_empty_object(target: str, text: str) -> None:
    call = ir.ToolCall("call_1", "f", read_arguments(text), text)
    assert call.arguments == {}
    again = only_call(dragoman.decode_request(dragoman.encode_request(history(call), target).json(), target))
    assert again.arguments == {}
    assert again.arguments_text in {text, "{}", None}


@promise("report:48")
@pytest.mark.parametrize("target", FORMATS)
def test_a_call_without_a_result_gets_an_error_never_a_success(target: str) -> None:
    request = structs.replace(
        history(ir.ToolCall("call_1", "f", {})), messages=history(ir.ToolCall("call_1", "f", {})).messages[:2]
    )
    encoded = dragoman.encode_request(request, target)
    (result,) = dragoman.decode_request(encoded.json(), target).messages[-1].tool_results
    assert result.is_error
    assert [loss.severity for loss in encoded.losses if "result" in loss.what] == ["invented"]


@promise("report:17")
@pytest.mark.parametrize(
    ("source", "body"),
    [
        pytest.param(
            "openai-chat",
            {
                "id": "c",
                "object": "chat.completion",
                "created": 1,
                "model": "m",
                "choices": [
                    {
                        "index": 0,
                        "message": {
                            "role": "assistant",
                            "content": None,
                            "tool_calls": [
                                {
                                    "id": "call_1",
                                    "type": "function",
                                    "function": {"name": "f", "arguments": '{"city": "Par'},
                                }
                            ],
                        },
                        "finish_reason": "length",
                    }
                ],
            },
            id="openai-chat",
        ),
    ],
)
def test_a_call_cut_off_by_the_token_limit_is_kept_as_incomplete(source: str, body: dict[str, object]) -> None:
    completion = dragoman.decode_response(body, source)
    assert completion.finish_reason == "length"
    assert all_calls(completion)[0].arguments_text == '{"city": "Par'
    assert all_calls(completion)[0].incomplete
    for target in FORMATS:
        again = dragoman.decode_response(dragoman.encode_response(completion, target).json(), target)
        assert again.finish_reason == "length"
        assert all_calls(again)[0].arguments_text == '{"city": "Par'
        assert not all_calls(again)[0].parsed
