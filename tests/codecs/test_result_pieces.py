"""Every piece that a tool result may hold, as a result and as an error, alone and beside a text, in every format."""

from itertools import product
from typing import Any

import pytest

import dragoman
from dragoman import ir
from dragoman.codecs.registry import codec
from dragoman.passes.names import name_alias
from tests.support.bodies import PIXEL
from tests.support.cases import each
from tests.support.formats import FAMILY, FORMATS, MODELS, refusals
from tests.support.promises import promise
from tests.support.trees import reaches

PIECES: dict[str, tuple[ir.ContentBlock, tuple[str, ...]]] = {
    "text": (ir.Text("a word"), ("a word",)),
    "text document": (ir.Document("text/plain", text="a page"), ("a page",)),
    "JSON document": (ir.Document("application/json", text="[17]"), ("[17]",)),
    "search result": (ir.SearchResult("https://example.org", "a title", ("an excerpt",)), ("a title", "an excerpt")),
    "image": (ir.Image("image/png", PIXEL), (PIXEL,)),
}
KINDS: tuple[ir.ResultKind, ...] = ("multimodal", "error")


def conversation(kind: ir.ResultKind, parts: tuple[ir.ContentBlock, ...], model: str) -> ir.Request:
    messages = (
        ir.Message.user("Go on"),
        ir.Message("assistant", (ir.ToolCall("call_1", "f", {}),)),
        ir.Message("tool", (ir.ToolResult("call_1", "f", kind, None, parts),)),
    )
    return ir.Request(model, messages, (ir.ToolDefinition("f", "A tool"),))


@promise("law:2-nothing-vanishes", "law:3-legality")
@each("target", FORMATS)
@pytest.mark.parametrize("name", PIECES)
def test_every_piece_of_a_result_arrives_or_is_reported(name: str, target: str) -> None:
    piece, words = PIECES[name]
    for kind, before in product(KINDS, ((), (ir.Text("first"),))):
        encoded = dragoman.encode_request(conversation(kind, (*before, piece), MODELS[target]), target)
        text = encoded.json().decode().replace('\\"', '"')
        dropped = [loss for loss in encoded.losses if loss.severity == "dropped"]
        assert dropped or all(word in text for word in words), (kind, before)
        assert not before or "first" in text, (kind, before)
        assert refusals(encoded, target, model=MODELS[target]) == (), (kind, before)


@promise("law:8-pairs-hold")
@each("name", ["text document", "JSON document", "search result"])
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_text_stays_in_the_message_of_its_call(kind: ir.ResultKind, name: str) -> None:
    piece, words = PIECES[name]
    for target in ("openai-chat", "cohere-chat", "ollama-chat"):
        encoded = dragoman.encode_request(conversation(kind, (ir.Text("first"), piece), MODELS[target]), target)
        assert encoded.body["messages"][-1]["role"] == "tool", target
        assert all(word in encoded.json().decode() for word in words), target
        assert not any("media" in loss.what for loss in encoded.losses), target


# ── calls without arguments ───────────────────────────────────────────────────────────────────────────────────


def _request(source: str, text: str) -> dict[str, Any]:
    function = {"name": "f", "arguments": text}
    if source == "openai-responses":
        call: dict[str, Any] = {"type": "function_call", "call_id": "call_1", **function}
        result = {"type": "function_call_output", "call_id": "call_1", "output": "1"}
        return {"model": "m", "input": [{"role": "user", "content": "Go"}, call, result]}
    calls = [{"id": "call_1", "type": "function", "function": function}]
    return {
        "model": "m",
        "messages": [
            {"role": "user", "content": "Go"},
            {"role": "assistant", "tool_calls": calls},
            {"role": "tool", "tool_call_id": "call_1", "content": "1"},
        ],
    }


def _spelled(body: dict[str, Any]) -> str:
    if "input" in body:
        return str(next(item["arguments"] for item in body["input"] if item.get("type") == "function_call"))
    return str(body["messages"][1]["tool_calls"][0]["function"]["arguments"])


@promise("law:1-identity", "law:7-no-guessing")
@each(("source", "target"), list(product(("openai-chat", "openai-responses", "cohere-chat"), repeat=2)))
@pytest.mark.parametrize("text", ["", "null", " null\n"])
def test_no_arguments_are_an_object_elsewhere_and_as_they_were_at_home(text: str, source: str, target: str) -> None:
    encoded = dragoman.translate_request(_request(source, text), source=source, target=target)
    assert _spelled(encoded.body) == (text if source == target else "{}")


# ── paths of what is lost inside a result ─────────────────────────────────────────────────────────────────────

PDF = "JVBERi0xLjQK"
FETCHED = "https://example.org/a.png"
ODD: dict[str, Any] = {"odd": 1}


def _calling(call: dict[str, Any], result: dict[str, Any], **more: Any) -> dict[str, Any]:
    called = {"role": "assistant", **call}
    return {"model": "m", "messages": [{"role": "user", "content": "Go"}, called, result], **more}


def _chat(*content: Any) -> dict[str, Any]:
    function = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    result = {"role": "tool", "tool_call_id": "c", "content": list(content)}
    return _calling({"tool_calls": [function]}, result)


def _messages(*content: Any) -> dict[str, Any]:
    use = {"type": "tool_use", "id": "c", "name": "f", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "c", "content": list(content)}
    return _calling({"content": [use]}, {"role": "user", "content": [result]}, max_tokens=99)


def _converse(*content: Any) -> dict[str, Any]:
    use = {"toolUse": {"toolUseId": "c", "name": "f", "input": {}}}
    result = {"toolResult": {"toolUseId": "c", "content": list(content)}}
    return {
        "messages": [
            {"role": "user", "content": [{"text": "Go"}]},
            {"role": "assistant", "content": [use]},
            {"role": "user", "content": [result]},
        ]
    }


def _generate(*parts: Any) -> dict[str, Any]:
    result = {"name": "f", "response": {"output": "x"}, "parts": list(parts)}
    return {
        "contents": [
            {"role": "user", "parts": [{"text": "Go"}]},
            {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]},
            {"role": "user", "parts": [{"functionResponse": result}]},
        ]
    }


def _items(result: dict[str, Any]) -> dict[str, Any]:
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    return {"model": "m", "input": [{"role": "user", "content": "Go"}, call, {"call_id": "c", **result}]}


def _steps(*content: Any) -> dict[str, Any]:
    call = {"type": "function_call", "id": "c", "name": "f", "arguments": {}}
    result = {"type": "function_result", "call_id": "c", "name": "f", "result": list(content)}
    return {"model": "m", "input": [{"type": "user_input", "content": "Go"}, call, result]}


_MARK = {"cache_control": {"type": "ephemeral"}}
_PNG = {"mimeType": "image/png", "data": PIXEL}
_MESSAGES_CONTENT = (
    {"type": "text", "text": "a", **_MARK, **ODD},
    {"type": "image", "source": {"type": "file", "file_id": "f"}},
    {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": PDF}, "title": "t"},
    {"type": "search_result", "source": "u", "title": "t", "content": [{"type": "text", "text": "q"}], **_MARK, **ODD},
    {"type": "tool_reference", "tool_name": "g"},
    {"type": "odd"},
)
# format -> (a request, the path of the result's content in it, keys that no other format has)
RESULTS: dict[str, tuple[dict[str, Any], str, tuple[str, ...]]] = {
    "anthropic-messages": (
        _messages(*_MESSAGES_CONTENT),
        "$.messages[2].content[0].content",
        ("[0].odd", "[3].odd", "[4]", "[5]"),
    ),
    "bedrock-converse": (
        _converse(
            {"text": "a"},
            {"json": {"a": 1}},
            {"image": {"format": "png", "source": {"s3Location": {"uri": "s3://a/b.png"}}}},
            {"document": {"format": "pdf", "name": "n", "source": {"bytes": PDF}, "context": "c"}},
            {"odd": {"a": 1}},
        ),
        "$.messages[2].content[0].toolResult.content",
        ("[4]",),
    ),
    "gemini": (
        _generate(
            {"inlineData": {**_PNG, "displayName": "d"}, **ODD},
            {"fileData": {"fileUri": FETCHED, "mimeType": "image/png"}},
            {"inlineData": {"mimeType": "video/mp4", "data": PDF}},
            {"odd": 1},
        ),
        "$.contents[2].parts[0].functionResponse.parts",
        ("[0].inlineData.displayName", "[0].odd", "[3]"),
    ),
    "openai-chat": (
        _chat(
            {"type": "text", "text": "a", **ODD},
            {"type": "image_url", "image_url": {"url": FETCHED, "detail": "high"}},
            {"type": "file", "file": {"file_id": "f"}},
            {"type": "odd"},
        ),
        "$.messages[2].content",
        ("[0].odd", "[2]", "[3]"),
    ),
    "openai-responses": (
        _items(
            {
                "type": "function_call_output",
                "output": [
                    {"type": "input_text", "text": "a"},
                    {"type": "input_image", "image_url": FETCHED, "detail": "high"},
                    {"type": "input_image", "file_id": "f"},
                    {"type": "input_file", "file_url": "https://example.org/a.docx"},
                    {"type": "odd"},
                ],
            }
        ),
        "$.input[2].output",
        ("[2]", "[4]"),
    ),
    "gemini-interactions": (
        _steps(
            {"type": "text", "text": "a", **ODD},
            {"type": "image", "uri": FETCHED, "resolution": "high"},
            {"type": "video", "uri": "https://example.org/a.mp4", "mime_type": "video/mp4"},
        ),
        "$.input[2].result",
        ("[0].odd",),
    ),
    "cohere-chat": (
        _chat(
            {"type": "text", "text": "a", **ODD},
            {"type": "document", "document": {"id": "d", "data": {"text": "x", "title": "t", "z": 1}}},
            {"type": "document", "document": {"data": "hi"}, **ODD},
        ),
        "$.messages[2].content",
        ("[0].odd",),
    ),
}


@promise("law:2-nothing-vanishes")
@each("source", list(RESULTS))
def test_a_loss_inside_a_result_points_to_the_part(source: str) -> None:
    body, content, keys = RESULTS[source]
    back = dragoman.translate_request(body, source=source, target=source)
    assert (back.body, back.losses) == (body, ())
    for target in FORMATS:
        if FAMILY[target] == FAMILY[source]:
            continue
        losses = dragoman.translate_request(body, source=source, target=target, model=MODELS[target]).losses
        paths = {loss.path for loss in losses if loss.severity != "invented"}
        assert {content + key for key in keys} - paths == set(), target
        assert [path for path in paths if path.startswith(content) and not reaches(body, path)] == [], target


@promise("law:2-nothing-vanishes")
def test_what_is_lost_inside_a_result_of_the_intermediate_format_has_a_path_there() -> None:
    parts = (ir.Text("a"), ir.Image(None, file_id="f"))
    encoded = dragoman.encode_request(conversation("multimodal", parts, "m"), "anthropic-messages")
    assert "$.messages[2].parts[0].parts[1]" in {loss.path for loss in encoded.losses}


@promise("law:8-pairs-hold")
@each("target", ["openai-chat", "openai-responses", "gemini", "bedrock-converse"])
def test_a_reference_to_a_tool_follows_its_new_name(target: str) -> None:
    found = "crm.find customer"
    tools = [{"name": "f", "input_schema": {"type": "object"}}]
    tools.append({"name": found, "input_schema": {"type": "object"}})
    body = {**_messages({"type": "tool_reference", "tool_name": found}), "tools": tools}
    encoded = dragoman.translate_request(body, source="anthropic-messages", target=target, model=MODELS[target])
    alias = name_alias(found, codec(target).profile)
    assert alias != found
    assert encoded.json().decode().count(f'"{alias}"') == 2
    assert found not in encoded.json().decode()
