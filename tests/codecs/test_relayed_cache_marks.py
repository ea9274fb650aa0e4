"""Anthropic's cache marks in chat requests, where relays take them: in every place, read, sent on and returned."""

import json
from typing import Any

import pytest

import dragoman
from dragoman import ir
from tests.support.promises import promise
from tests.support.trees import reaches

pytestmark = promise("law:2-nothing-vanishes")

SHORT: dict[str, Any] = {"type": "ephemeral"}
LONG: dict[str, Any] = {"type": "ephemeral", "ttl": "1h"}
CALL = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
RESULT = {"role": "tool", "tool_call_id": "call_1", "content": "r"}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
FILE = {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0="}}
IMAGE = {"type": "image_url", "image_url": {"url": "https://e.org/a.png"}}
USER: dict[str, Any] = {"role": "user", "content": "hi"}


def parts_of(role: str, *parts: dict[str, Any], **further: Any) -> dict[str, Any]:
    return {"role": role, "content": list(parts), **further}


def text(mark: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"type": "text", "text": "words", **({"cache_control": mark} if mark else {})}


_FIRST, _SECOND = "messages[0].content[0]", "messages[0].content[1]"
# place: (messages, tools, the mark's path, its path in a request of Messages)
PLACES: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]], str, str]] = {
    "text of the user": ([parts_of("user", text(), text(LONG))], [], f"$.{_SECOND}", _SECOND),
    "image": ([parts_of("user", {**IMAGE, "cache_control": LONG})], [], f"$.{_FIRST}", _FIRST),
    "file": ([parts_of("user", {**FILE, "cache_control": LONG})], [], f"$.{_FIRST}", _FIRST),
    "text of the system": ([parts_of("system", text(LONG)), USER], [], f"$.{_FIRST}", "system[0]"),
    "message of the user": ([{**USER, "cache_control": LONG}], [], "$.messages[0]", _FIRST),
    "message in parts": ([parts_of("user", text(), text(), cache_control=LONG)], [], "$.messages[0]", _SECOND),
    "system message": (
        [{"role": "system", "content": "s", "cache_control": LONG}, USER], [], "$.messages[0]", "system[0]",
    ),
    "developer message": (
        [{"role": "developer", "content": "s", "cache_control": LONG}, USER], [], "$.messages[0]", "system[0]",
    ),
    "answer": (
        [USER, {"role": "assistant", "content": "a", "cache_control": LONG}, USER],
        [], "$.messages[1]", "messages[1].content[0]",
    ),
    "answer in parts": (
        [USER, parts_of("assistant", text(LONG)), USER], [], "$.messages[1].content[0]", "messages[1].content[0]",
    ),
    "message with a call": (
        [USER, {"role": "assistant", "content": "a", "tool_calls": [CALL], "cache_control": LONG}, RESULT],
        [TOOL], "$.messages[1]", "messages[1].content[1]",
    ),
    "call": (
        [USER, {"role": "assistant", "content": None, "tool_calls": [{**CALL, "cache_control": LONG}]}, RESULT],
        [TOOL], "$.messages[1].tool_calls[0]", "messages[1].content[0]",
    ),
    "result": (
        [USER, {"role": "assistant", "content": None, "tool_calls": [CALL]}, {**RESULT, "cache_control": LONG}],
        [TOOL], "$.messages[2]", "messages[2].content[0]",
    ),
    "text of a result": (
        [USER, {"role": "assistant", "content": None, "tool_calls": [CALL]}, {**RESULT, "content": [text(LONG)]}],
        [TOOL], "$.messages[2].content[0]", "messages[2].content[0].content[0]",
    ),
    "tool": ([USER], [{**TOOL, "cache_control": LONG}], "$.tools[0]", "tools[0]"),
    "function of a tool": (
        [USER], [{"type": "function", "function": {**TOOL["function"], "cache_control": LONG}}],  # type: ignore[dict-item]
        "$.tools[0].function", "tools[0]",
    ),
    "tool as Messages has it": (
        [USER], [{"name": "f", "input_schema": {"type": "object"}, "cache_control": LONG}], "$.tools[0]", "tools[0]",
    ),
}  # fmt: skip


def body_of(place: str) -> dict[str, Any]:
    messages, tools, _, _ = PLACES[place]
    return {"model": "m", "messages": messages, **({"tools": tools} if tools else {})}


def marks(value: Any, path: str = "") -> dict[str, Any]:
    found = {}
    if isinstance(value, dict):
        if "cache_control" in value:
            found[path.removeprefix(".")] = value["cache_control"]
        for key, inner in value.items():
            found |= marks(inner, f"{path}.{key}")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            found |= marks(inner, f"{path}[{index}]")
    return found


def crossed(body: dict[str, Any], target: str, source: str = "openai-chat") -> dragoman.Encoded:
    model = {"anthropic-messages": "claude-sonnet-4-5", "openai-responses": "gpt-4.1"}.get(target, "m")
    return dragoman.translate_request(json.dumps(body).encode(), source=source, target=target, model=model)


@pytest.mark.parametrize("place", PLACES)
def test_a_mark_reaches_claude_from_every_place(place: str) -> None:
    encoded = crossed(body_of(place), "anthropic-messages")
    assert marks(encoded.body) == {PLACES[place][3]: LONG}
    assert not [loss for loss in encoded.losses if "cache" in loss.path]


@pytest.mark.parametrize("target", ["openai-chat", "openai-responses", "gemini"])
@pytest.mark.parametrize("place", PLACES)
def test_where_prompts_are_cached_automatically_the_mark_is_a_loss_at_its_place(place: str, target: str) -> None:
    body, path = body_of(place), f"{PLACES[place][2]}.cache_control"
    if target == "openai-chat":
        assert crossed(body, target).body == {**body, "model": "m"}
        return
    encoded = crossed(body, target)
    assert [loss.path for loss in encoded.losses if "cache" in loss.path] == [path]
    assert reaches(body, path)
    assert marks(encoded.body) == {}


@pytest.mark.parametrize("place", PLACES)
def test_a_request_with_a_mark_comes_back_as_it_was(place: str) -> None:
    body = body_of(place)
    again = dragoman.translate_request(json.dumps(body).encode(), source="openai-chat", target="openai-chat")
    assert (again.body, again.losses) == (body, ())
    if place == "tool as Messages has it":
        return  # a relay gets the tool in the usual shape
    relayed = dragoman.encode_request(dragoman.decode_request(body, "openai-chat"), "openrouter")
    assert (relayed.body, relayed.losses) == (body, ())


@pytest.mark.parametrize("place", PLACES)
def test_marks_of_claudes_clients_reach_a_relay_and_return(place: str) -> None:
    claude = crossed(body_of(place), "anthropic-messages").body
    relayed = crossed(claude, "openrouter", source="anthropic-messages")
    assert list(marks(relayed.body).values()) == [LONG]
    assert not [loss for loss in relayed.losses if "cache" in loss.path]
    again = crossed(relayed.body, "anthropic-messages")
    assert list(marks(again.body).values()) == [LONG]


@pytest.mark.parametrize("mark", [{"type": "ephemeral", "scope": "all"}, {"type": "persistent"}, True, None])
def test_a_mark_that_says_something_else_is_only_passed_on(mark: Any) -> None:
    body = {"model": "m", "messages": [{**USER, "cache_control": mark}]}
    request = dragoman.decode_request(body, "openai-chat")
    assert request.messages[0].content_held == "hi"
    assert dragoman.encode_request(request, "openai-chat").body == body
    if mark is not None:
        assert "$.messages[0].cache_control" in {loss.path for loss in crossed(body, "anthropic-messages").losses}


def test_a_lifetime_that_a_relay_does_not_have_is_reported() -> None:
    marked = ir.Message("user", (ir.Text("x", cache=ir.Cache("12h")),))
    encoded = dragoman.encode_request(ir.Request("m", (marked,)), "openrouter")
    assert marks(encoded.body) == {"messages[0].content[0]": SHORT}
    assert [loss.severity for loss in encoded.losses] == ["degraded"]


def test_an_empty_message_has_no_place_for_a_mark() -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": " ", "cache_control": SHORT}]}
    assert dragoman.encode_request(dragoman.decode_request(body, "openai-chat"), "openai-chat").body == body


@pytest.mark.parametrize("mark", [SHORT, LONG])
def test_automatic_marks_cross_between_relays_and_claude(mark: dict[str, Any]) -> None:
    body = {"model": "m", "messages": [USER], "cache_control": mark}
    request = dragoman.decode_request(body, "openai-chat")
    assert dragoman.encode_request(request, "openai-chat").body == body
    claude = crossed(body, "anthropic-messages")
    assert marks(claude.body) == {"": mark}
    assert marks(crossed(claude.body, "openrouter", source="anthropic-messages").body) == {"": mark}
    assert [loss.path for loss in crossed(body, "gemini").losses] == ["$.cache_control"]
    elsewhere = crossed(claude.body, "openai-chat", source="anthropic-messages")
    assert (marks(elsewhere.body), [loss.path for loss in elsewhere.losses]) == ({}, ["$.cache_control"])
