"""The table of result kinds, cell by cell: what each kind of value becomes in each format, and what comes back."""

from typing import Any

import pytest

import dragoman
from dragoman import ir
from dragoman.ir.values import compact_text
from tests.support.cases import each
from tests.support.formats import FORMATS
from tests.support.promises import promise

CALL = ir.ToolCall("call_1", "f", {})


def encoded_content(result: ir.ToolResult, target: str) -> Any:
    """The content of the result in the body, without what only identifies it."""
    body = dragoman.encode_request(conversation(result), target).body
    if target == "openai-chat":
        return body["messages"][2]["content"]
    if target == "anthropic-messages":
        block = body["messages"][2]["content"][0]
        return {key: value for key, value in block.items() if key in {"content", "is_error"}}
    response = body["contents"][2]["parts"][0]["functionResponse"]
    assert response["name"] == "f"
    return response["response"]


def conversation(result: ir.ToolResult) -> ir.Request:
    messages = (ir.Message("user", "go"), ir.Message("assistant", (CALL,)), ir.Message("tool", (result,)))
    return ir.Request("some-model", messages, (ir.ToolDefinition("f"),))


NESTED = {"z": {"b": [1, 2.5, None], "a": "é"}, "y": True}
NESTED_TEXT = '{"z":{"b":[1,2.5,null],"a":"é"},"y":true}'

# kind, value, OpenAI's content, Anthropic's block, Gemini's response
ROWS: list[tuple[str, ir.ResultKind, Any, Any, Any, Any]] = [
    ("plain text", "text", "sunny", "sunny", {"content": "sunny"}, {"output": "sunny"}),
    ("text that looks like JSON", "text", '{"a": 1}', '{"a": 1}', {"content": '{"a": 1}'}, {"output": '{"a": 1}'}),
    ("text that looks like a number", "text", "42", "42", {"content": "42"}, {"output": "42"}),
    ("text that looks like null", "text", "null", "null", {"content": "null"}, {"output": "null"}),
    ("text that looks like an error", "text", "Error", "Error", {"content": "Error"}, {"output": "Error"}),
    ("a string as data", "data", "sunny", '"sunny"', {"content": '"sunny"'}, {"output": "sunny"}),
    ("a number", "data", 42, "42", {"content": "42"}, {"output": 42}),
    ("zero", "data", 0, "0", {"content": "0"}, {"output": 0}),
    ("a fraction", "data", 1.0, "1.0", {"content": "1.0"}, {"output": 1.0}),
    ("false", "data", False, "false", {"content": "false"}, {"output": False}),
    ("null", "data", None, "null", {"content": "null"}, {"output": None}),
    ("a list", "data", [1, "b", None], '[1,"b",null]', {"content": '[1,"b",null]'}, {"output": [1, "b", None]}),
    ("an empty list", "data", [], "[]", {"content": "[]"}, {"output": []}),
    ("an object", "data", {"temp": 22}, '{"temp":22}', {"content": '{"temp":22}'}, {"temp": 22}),
    ("an empty object", "data", {}, "{}", {"content": "{}"}, {}),
    ("a nested object", "data", NESTED, NESTED_TEXT, {"content": NESTED_TEXT}, NESTED),
    ("an error", "error", "no é", '{"error":"no é"}', {"content": "no é", "is_error": True}, {"error": "no é"}),
    ("a quote", "error", 'a "b"', '{"error":"a \\"b\\""}', {"content": 'a "b"', "is_error": True}, {"error": 'a "b"'}),
]
TABLE = [pytest.param(*row[1:], id=row[0]) for row in ROWS]


@promise("report:45", "report:50", "report:58")
@each(("kind", "value", "openai", "anthropic", "gemini"), TABLE)
def test_each_cell(kind: ir.ResultKind, value: Any, openai: Any, anthropic: Any, gemini: Any) -> None:
    result = ir.ToolResult("call_1", "f", kind, value)
    assert encoded_content(result, "openai-chat") == openai
    assert encoded_content(result, "anthropic-messages") == anthropic
    assert encoded_content(result, "gemini") == gemini
    assert encoded_content(result, "vertex") == gemini


@each(("kind", "value", "openai", "anthropic", "gemini"), TABLE)
@each("target", FORMATS)
def test_each_cell_decoded(
    kind: ir.ResultKind, value: Any, openai: Any, anthropic: Any, gemini: Any, target: str
) -> None:
    """Formats of text cannot distinguish data from text: both come back as text, and errors as errors."""
    del anthropic, gemini
    result = ir.ToolResult("call_1", "f", kind, value)
    body = dragoman.encode_request(conversation(result), target).json()
    (again,) = dragoman.decode_request(body, target).messages[2].tool_results
    assert again.is_error == (kind == "error")
    assert again.name == "f"
    assert again.tool_call_id == dragoman.decode_request(body, target).messages[1].tool_calls[0].id
    if kind == "error":
        assert again.value == value
    else:
        assert again.value in (value, openai)
        assert type(again.value) in (type(value), str)


@promise("report:45")
@each("source", FORMATS)
@each("target", FORMATS)
def test_every_format_shows_that_a_tool_failed(source: str, target: str) -> None:
    failed = conversation(ir.ToolResult("call_1", "f", "error", "no such city"))
    there = dragoman.translate_request(
        dragoman.encode_request(failed, source).json(), source=source, target=target
    ).json()
    (result,) = dragoman.decode_request(there, target).messages[2].tool_results
    assert result.is_error
    assert result.value == "no such city"


@promise("report:45")
@each("value", [{"code": 5, "reason": "é"}, ["a", 1], 404, True], ids=repr)
@each("target", FORMATS)
def test_errors_whose_value_is_not_text_cross(target: str, value: Any) -> None:
    body = dragoman.encode_request(conversation(ir.ToolResult("call_1", "f", "error", value)), target).json()
    (again,) = dragoman.decode_request(body, target).messages[2].tool_results
    assert again.is_error
    content = again.value if again.value is not None or not again.parts else again.parts[0].text  # type: ignore[union-attr]
    assert str(content) in {str(value), compact_text(value)}


# ── multimodal ────────────────────────────────────────────────────────────────────────────────────────────────

PIXEL = "iVBORw0KGgo="
SEEN = ir.ToolResult("call_1", "f", "multimodal", None, (ir.Text("a map"), ir.Image("image/png", PIXEL)))


@promise("report:56")
def test_an_image_for_openai_follows_in_a_tagged_user_turn() -> None:
    encoded = dragoman.encode_request(conversation(SEEN), "openai-chat")
    tool, follow = encoded.body["messages"][2:]
    assert tool["content"][0] == {"type": "text", "text": "a map"}
    assert "next user message" in tool["content"][1]["text"]
    assert follow["role"] == "user"
    assert "call_1" in follow["content"][0]["text"]
    assert follow["content"][1] == {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}
    assert [loss.severity for loss in encoded.losses] == ["degraded"]


@promise("report:56")
def test_an_image_for_anthropic_is_a_block_of_the_result() -> None:
    encoded = dragoman.encode_request(conversation(SEEN), "anthropic-messages")
    (block,) = encoded.body["messages"][2]["content"]
    assert block["content"] == [
        {"type": "text", "text": "a map"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}},
    ]


@promise("report:56")
@pytest.mark.parametrize("target", ["gemini", "vertex"])
def test_an_image_for_gemini_3_is_a_part_of_the_result(target: str) -> None:
    request = conversation(SEEN)
    encoded = dragoman.encode_request(ir.Request("gemini-3-pro-preview", request.messages, request.tools), target)
    response = encoded.body["contents"][2]["parts"][0]["functionResponse"]
    (part,) = response["parts"]
    assert part["inlineData"]["data"] == PIXEL
    assert "a map" in str(response["response"])


@promise("report:56")
@each("model", ["some-model", "gemini-2.5-flash", "gemini-3-pro-preview"])
@each("target", FORMATS)
def test_images_find_their_way_back(target: str, model: str) -> None:
    request = conversation(SEEN)
    body = dragoman.encode_request(ir.Request(model, request.messages, request.tools), target).json()
    again = dragoman.decode_request(body, target)
    assert [message.role for message in again.messages] == ["user", "assistant", "tool"]
    (result,) = again.messages[2].tool_results
    assert result.kind == "multimodal"
    assert [type(part).__name__ for part in result.parts] == ["Text", "Image"]
    assert result.parts[1].data == PIXEL  # type: ignore[union-attr]


@promise("report:51")
@pytest.mark.parametrize(
    "value", [{"$ref": "#/$defs/X"}, {"a": [{"$ref": "x"}]}, {"schema": {"$defs": {}, "$ref": "y"}}]
)
@pytest.mark.parametrize("target", ["gemini", "vertex"])
def test_a_result_with_references_reaches_gemini_as_text(target: str, value: Any) -> None:
    """Gemini reads `$ref` in a response as the name of an attached file, and refuses one it does not find."""
    encoded = dragoman.encode_request(conversation(ir.ToolResult("call_1", "f", "data", value)), target)
    response = encoded.body["contents"][2]["parts"][0]["functionResponse"]["response"]
    assert response == {"output": compact_text(value)}
    assert [loss.severity for loss in encoded.losses] == ["degraded"]


@promise("report:50")
@pytest.mark.parametrize(
    "response",
    [
        {"output": "x", "more": 1},
        {"result": "x"},
        {"output": {"output": 1}},
        {"error": "x", "code": 1},
        {"temp": 22},
        {},
        {"error": None},
    ],
    ids=str,
)
@pytest.mark.parametrize("name", ["gemini", "vertex"])
def test_only_our_own_wrapping_is_undone(name: str, response: dict[str, Any]) -> None:
    body = dragoman.encode_request(conversation(ir.ToolResult("call_1", "f", "text", "x")), name).body
    body["contents"][2]["parts"][0]["functionResponse"]["response"] = response
    again = dragoman.encode_request(dragoman.decode_request(body, name), name).body
    assert again["contents"][2]["parts"][0]["functionResponse"]["response"] == response
    (result,) = dragoman.decode_request(body, name).messages[2].tool_results
    if set(response) not in ({"output"}, {"error"}):
        assert result.value == response


@promise("law:2-nothing-vanishes")
@each("target", FORMATS)
def test_the_texts_of_an_error_do_not_run_together(target: str) -> None:
    """Formats with one text per error separate them, and report that they were several."""
    failed = ir.ToolResult("call_1", "f", "error", parts=(ir.Text("not found"), ir.Text("try again")))
    encoded = dragoman.encode_request(conversation(failed), target)
    written = encoded.json().decode()
    assert "not foundtry" not in written
    joined = r"not found\ntry again" in written.replace(r"\\n", r"\n")
    assert joined is any(loss.severity == "degraded" for loss in encoded.losses)
