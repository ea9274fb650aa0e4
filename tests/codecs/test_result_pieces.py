"""Every piece that a tool result may hold, as a result and as an error, alone and beside a text, in every format."""

from itertools import product
from typing import Any

import pytest

import dragoman
from dragoman import ir
from tests.support.bodies import PIXEL
from tests.support.cases import each
from tests.support.formats import FORMATS, MODELS, refusals
from tests.support.promises import promise

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
