"""Blocks of one vendor that are text for the model reach models of other vendors as text."""

import json
from typing import Any

import pytest

import dragoman
from tests.support.cases import each
from tests.support.formats import FAMILY, FORMATS, MODELS, refusals
from tests.support.promises import promise

SUMMARY = {"type": "compaction", "content": "The user is called Ann.", "cache_control": {"type": "ephemeral"}}
NARRATION = {"type": "connector_text", "text": "Now for the second file."}
EMPTY = {"type": "compaction", "content": None}
UNKNOWN = {"type": "of_tomorrow", "content": "unknown words", "text": "unknown words"}
HELLO = {"type": "text", "text": "Hello"}


def body(*messages: tuple[str, list[dict[str, Any]]]) -> dict[str, Any]:
    turns = [{"role": role, "content": content} for role, content in messages]
    return {"model": "claude-opus-4-8", "max_tokens": 9, "messages": turns}


BODIES = {
    "first of all": body(("user", [SUMMARY, HELLO])),
    "in an answer": body(("user", [HELLO]), ("assistant", [SUMMARY, NARRATION, HELLO]), ("user", [HELLO])),
}


@promise("law:1-identity", "law:2-nothing-vanishes", "law:3-legality")
@each("target", FORMATS)
@pytest.mark.parametrize("name", BODIES)
def test_a_summary_of_the_conversation_reaches_every_model(name: str, target: str) -> None:
    given = BODIES[name]
    model = given["model"] if target == "anthropic-messages" else MODELS[target]
    encoded = dragoman.translate_request(given, source="anthropic-messages", target=target, model=model)
    if FAMILY[target] == "anthropic":
        assert (encoded.body, encoded.losses) == (given, ())
        return
    words = [str(block.get("content") or block.get("text")) for one in given["messages"] for block in one["content"]]
    assert all(word in json.dumps(encoded.body) for word in words)
    assert refusals(encoded, target, model=MODELS[target]) == ()
    message = len(given["messages"]) // 2
    found = [(loss.severity, loss.path) for loss in encoded.losses if "compaction" in loss.what]
    assert found == [("degraded", f"$.messages[{message}].content[0]")]


@promise("law:2-nothing-vanishes")
@each("target", [name for name in FORMATS if FAMILY[name] != "anthropic"])
def test_other_blocks_of_the_vendor_are_dropped(target: str) -> None:
    given = body(("user", [HELLO]), ("assistant", [EMPTY, UNKNOWN, HELLO]), ("user", [HELLO]))
    encoded = dragoman.translate_request(given, source="anthropic-messages", target=target, model=MODELS[target])
    assert "unknown words" not in json.dumps(encoded.body)
    dropped = {loss.path for loss in encoded.losses if loss.severity == "dropped"}
    assert {"$.messages[1].content[0]", "$.messages[1].content[1]"} <= dropped


@promise("law:1-identity", "law:2-nothing-vanishes", "law:3-legality")
@each("target", FORMATS)
def test_tools_that_a_search_of_the_client_found_are_named(target: str) -> None:
    """Claude Code answers its own tool search this way; an empty result reads as if nothing was found."""
    call = {"type": "tool_use", "id": "toolu_1", "name": "find_tools", "input": {"query": "mail"}}
    found = [{"type": "tool_reference", "tool_name": name} for name in ("send_mail", "read_mail")]
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": found}
    names = ("find_tools", "send_mail", "read_mail")
    tools = [{"name": name, "description": "A tool", "input_schema": {"type": "object"}} for name in names]
    given = body(("user", [HELLO]), ("assistant", [call]), ("user", [result])) | {
        "tools": [tools[0], *({**tool, "defer_loading": True} for tool in tools[1:])]
    }
    model = given["model"] if target == "anthropic-messages" else MODELS[target]
    encoded = dragoman.translate_request(given, source="anthropic-messages", target=target, model=model)
    if FAMILY[target] == "anthropic":
        assert (encoded.body, encoded.losses) == (given, ())
        return
    assert refusals(encoded, target, model=MODELS[target]) == ()
    request = dragoman.decode_request(encoded.json(), target)
    (back,) = [part for message in request.messages for part in message.tool_results]
    assert all(name in json.dumps(back.value) + "".join(map(str, back.parts)) for name in names[1:])
    assert [loss.severity for loss in encoded.losses if "tool_reference" in loss.what] == ["dropped"] * len(found)
