"""Content that only some APIs take: search results, media by address, files of others, blocks of others."""

from typing import Any

import pytest

import dragoman
from dragoman import ir
from tests.support import formats
from tests.support.formats import FORMATS, refusals
from tests.support.promises import promise

pytestmark = promise("core:content-crosses")

MODELS = {**formats.MODELS, "openai-chat": "gpt-4o-audio-preview"}

# ── search results ──

FOUND = {"source": "kb://1", "title": "Rain", "content": [{"type": "text", "text": "Rain falls."}]}
OF_MESSAGES: dict[str, Any] = {"type": "search_result", **FOUND, "citations": {"enabled": True}}
OF_CONVERSE: dict[str, Any] = {
    "searchResult": {**FOUND, "content": [{"text": "Rain falls."}], "citations": {"enabled": True}}
}
MESSAGES = {
    "model": "claude-sonnet-4-5",
    "max_tokens": 99,
    "messages": [{"role": "user", "content": [OF_MESSAGES, {"type": "text", "text": "Why?"}]}],
}
CONVERSE = {"messages": [{"role": "user", "content": [OF_CONVERSE, {"text": "Why?"}]}]}


def sent(body: dict[str, Any], source: str, target: str) -> dragoman.Encoded:
    return dragoman.translate_request(body, source=source, target=target, model=MODELS[target])


def test_search_results_cross_exactly_between_anthropic_and_bedrock() -> None:
    there = sent(MESSAGES, "anthropic-messages", "bedrock-converse")
    assert (there.body["messages"], there.losses) == (CONVERSE["messages"], ())
    back = sent(CONVERSE, "bedrock-converse", "anthropic-messages")
    assert back.body["messages"] == MESSAGES["messages"]
    assert [loss.severity for loss in back.losses] == ["invented"]  # max_tokens


@pytest.mark.parametrize("target", [name for name in FORMATS if name not in {"anthropic-messages", "bedrock-converse"}])
@pytest.mark.parametrize(("source", "body"), [("anthropic-messages", MESSAGES), ("bedrock-converse", CONVERSE)])
def test_search_results_are_text_elsewhere(source: str, body: dict[str, Any], target: str) -> None:
    there = sent(body, source, target)
    assert r"Rain (kb://1)\nRain falls." in there.json().decode()
    assert ("$.messages[0].content[0]", "degraded") in {(loss.path, loss.severity) for loss in there.losses}


@pytest.mark.parametrize("target", [name for name in FORMATS if name != "anthropic-messages"])
def test_search_results_within_tool_results(target: str) -> None:
    call = {"type": "tool_use", "id": "t1", "name": "s", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": [OF_MESSAGES]}
    body = {
        **MESSAGES,
        "tools": [{"name": "s", "input_schema": {"type": "object"}}],
        "messages": [
            {"role": "user", "content": "Why?"},
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [result]},
        ],
    }
    assert "Rain falls." in sent(body, "anthropic-messages", target).json().decode()


@pytest.mark.parametrize("block", [{**OF_MESSAGES, "content": 5}, {**OF_MESSAGES, "source": None}])
def test_a_malformed_search_result_is_kept_whole_and_lost_elsewhere(block: dict[str, Any]) -> None:
    body = {**MESSAGES, "messages": [{"role": "user", "content": [block, {"type": "text", "text": "Why?"}]}]}
    assert sent(body, "anthropic-messages", "anthropic-messages").body["messages"] == body["messages"]
    assert "dropped" in {loss.severity for loss in sent(body, "anthropic-messages", "gemini").losses}


def test_a_search_result_is_a_part_with_the_same_fields_in_every_format() -> None:
    expected = ir.SearchResult("kb://1", "Rain", ("Rain falls.",), cite=True)
    assert dragoman.decode_request(MESSAGES, "anthropic-messages").messages[0].parts[0] == expected
    assert dragoman.decode_request(CONVERSE, "bedrock-converse").messages[0].parts[0] == expected


def test_the_cache_mark_of_a_search_result_crosses() -> None:
    marked = {**OF_MESSAGES, "cache_control": {"type": "ephemeral", "ttl": "1h"}}
    asked = {"role": "user", "content": [marked, {"type": "text", "text": "Why?"}]}
    body = {**MESSAGES, "messages": [asked]}
    there = sent(body, "anthropic-messages", "bedrock-converse")
    point = {"cachePoint": {"type": "default", "ttl": "1h"}}
    assert there.body["messages"][0]["content"] == [OF_CONVERSE, point, {"text": "Why?"}]
    assert there.losses == ()
    back = dragoman.translate_request(
        there.body, source="bedrock-converse", target="anthropic-messages", model="claude-sonnet-4-5"
    )
    assert back.body["messages"] == [asked]
    assert "$.messages[0].content[0].cache_control" in {
        loss.path for loss in sent(body, "anthropic-messages", "gemini").losses
    }


@pytest.mark.parametrize(
    "odd",
    [
        {"future": 1},
        {"citations": None},
        {"citations": {}},
        {"citations": {"enabled": True, "future": 1}},
        {"content": [{"type": "text", "text": "Rain falls.", "future": 1}]},
        {"content": []},
        {"cache_control": None},
        {"cache_control": {"type": "ephemeral", "future": 1}},
    ],
    ids=str,
)
def test_what_a_search_result_says_beyond_its_fields_returns_and_is_reported(odd: dict[str, Any]) -> None:
    body = {**MESSAGES, "messages": [{"role": "user", "content": [{**OF_MESSAGES, **odd}]}]}
    assert sent(body, "anthropic-messages", "anthropic-messages").body["messages"] == body["messages"]
    there = sent(body, "anthropic-messages", "bedrock-converse")
    result = there.body["messages"][0]["content"][0]["searchResult"]
    assert (result["source"], result["title"]) == ("kb://1", "Rain")
    (key,) = odd
    told = [loss.path for loss in there.losses if loss.path.startswith("$.messages[0].content[0]")]
    assert bool(told) == ("future" in str(odd)), told
    assert all(path.startswith(f"$.messages[0].content[0].{key}") for path in told)


def test_a_search_result_in_a_tool_result_crosses_exactly() -> None:
    call = {"type": "tool_use", "id": "t1", "name": "s", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": [OF_MESSAGES]}
    turns = [
        {"role": "user", "content": "Why?"},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result]},
    ]
    body = {**MESSAGES, "tools": [{"name": "s", "input_schema": {"type": "object"}}], "messages": turns}
    there = sent(body, "anthropic-messages", "bedrock-converse")
    assert there.body["messages"][2]["content"][0]["toolResult"]["content"] == [OF_CONVERSE]
    assert there.losses == ()
    back = dragoman.translate_request(
        there.body, source="bedrock-converse", target="anthropic-messages", model="claude-sonnet-4-5"
    )
    assert back.body["messages"][2]["content"][0]["content"] == [OF_MESSAGES]


@pytest.mark.parametrize("target", FORMATS)
@pytest.mark.parametrize("role", ["user", "assistant"])
def test_a_search_result_is_read_by_every_model_in_either_role(role: Any, target: str) -> None:
    part = ir.SearchResult("kb://1", "Rain", ("Rain falls.", "A lot."), cite=True)
    turns = [ir.Message("user", "Why?"), ir.Message(role, (part,)), ir.Message("user", "Go on.")]
    encoded = dragoman.encode_request(ir.Request(MODELS[target], tuple(turns), max_output_tokens=99), target)
    assert refusals(encoded, target, model=MODELS[target]) == ()
    text = encoded.json().decode()
    assert all(word in text for word in ("kb://1", "Rain", "Rain falls.", "A lot."))


# ── turns of which nothing crosses ──


@pytest.mark.parametrize("target", [name for name in FORMATS if name != "anthropic-messages"])
def test_opaque_items_never_leave_an_empty_turn(target: str) -> None:
    upload = {"type": "container_upload", "file_id": "file_1"}
    asked = {"role": "user", "content": [upload]}
    body = {**MESSAGES, "messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, asked]}
    there = sent(body, "anthropic-messages", target)
    turns = there.body.get("messages") or there.body.get("input") or there.body.get("contents")
    assert isinstance(turns, list)
    assert any(loss.severity == "dropped" for loss in there.losses)
    for turn in turns:
        assert turn.get("content") or turn.get("parts")


# ── media ──


def with_part(part: ir.AnyPart, target: str) -> dragoman.Encoded:
    asked = ir.Message("user", (part, ir.Text("What is this?")))
    return dragoman.encode_request(ir.Request(MODELS[target], (asked,), max_output_tokens=99), target)


@pytest.mark.parametrize("target", ["gemini", "vertex"])
@pytest.mark.parametrize(
    ("part", "media_type"),
    [
        (ir.Image(url="https://example.org/a.png?size=2"), "image/png"),
        (ir.Image(url="https://example.org/a.JPEG"), "image/jpeg"),
        (ir.Document(url="https://example.org/dir.d/a.pdf#page=2"), "application/pdf"),
        (ir.Image("image/webp", url="https://example.org/a.png"), "image/webp"),
    ],
)
def test_the_type_of_a_medium_is_inferred_from_its_address(part: ir.AnyPart, media_type: str, target: str) -> None:
    encoded = with_part(part, target)
    assert encoded.body["contents"][0]["parts"][0]["fileData"]["mimeType"] == media_type
    assert encoded.losses == ()


@pytest.mark.parametrize("address", ["https://example.org/a", "https://example.png", "https://example.org/a.xyz"])
def test_a_media_type_that_the_url_does_not_show_is_reported(address: str) -> None:
    encoded = with_part(ir.Image(url=address), "vertex")
    assert encoded.body["contents"][0]["parts"][0] == {"fileData": {"fileUri": address}}
    assert [(loss.path, loss.severity) for loss in encoded.losses] == [("$.messages[0].parts[0].url", "degraded")]


def test_a_bare_image_address_returns_as_an_image() -> None:
    part = {"type": "image_url", "image_url": "https://example.org/a.png"}
    body = {"model": "gpt-4.1", "messages": [{"role": "user", "content": [part, {"type": "text", "text": "?"}]}]}
    assert sent(body, "openai-chat", "openai-chat").body["messages"] == body["messages"]
    there = sent(body, "openai-chat", "gemini")
    back = sent(there.body, "gemini", "openai-chat")
    assert back.body["messages"][0]["content"][0] == {
        "type": "image_url",
        "image_url": {"url": "https://example.org/a.png"},
    }
    # Gemini's own bodies may leave the type out.
    own = {"contents": [{"role": "user", "parts": [{"fileData": {"fileUri": "https://example.org/a.png"}}]}]}
    assert type(dragoman.decode_request(own, "gemini").messages[0].parts[0]) is ir.Image
    assert dragoman.encode_request(dragoman.decode_request(own, "gemini"), "gemini").body == own


GOOGLES = ("gemini", "vertex", "gemini-interactions")


def every_format_but(*others: str) -> tuple[str, ...]:
    return tuple(name for name in FORMATS if name not in others)


REFUSED: dict[str, tuple[ir.AnyPart, tuple[str, ...]]] = {
    "HEIC": (ir.Image("image/heic", "AAAA"), every_format_but(*GOOGLES)),
    "HEIC by address": (ir.Image(url="https://example.org/a.heic"), every_format_but(*GOOGLES)),
    "an image in S3": (ir.Image("image/png", url="s3://bucket/a.png"), every_format_but("bedrock-converse")),
    "a document in S3": (ir.Document("application/pdf", url="s3://bucket/a.pdf"), every_format_but("bedrock-converse")),
    "an image at Google": (ir.Image("image/png", url="gs://bucket/a.png"), every_format_but("vertex")),
    "a document at Google": (ir.Document("application/pdf", url="gs://bucket/a.pdf"), every_format_but("vertex")),
    "a file of a disk": (ir.Image("image/png", url="file:///pictures/a.png"), FORMATS),
    "webm video": (ir.Document("video/webm", "AAAA"), every_format_but(*GOOGLES, "bedrock-converse")),
    "webm sound": (ir.Audio("audio/webm", "AAAA"), every_format_but(*GOOGLES)),
    "a file stored with Gemini": (
        ir.Document("application/pdf", url="https://generativelanguage.googleapis.com/v1beta/files/abc"),
        every_format_but("gemini", "gemini-interactions"),
    ),
    "an image stored with Gemini": (
        ir.Image("image/png", url="https://generativelanguage.googleapis.com/v1beta/files/abc"),
        every_format_but("gemini", "gemini-interactions"),
    ),
    "a file of Anthropic": (
        ir.Document(file_id="file_011CNha8iCJcU1wXNR6q4V8w"),
        every_format_but("anthropic-messages"),
    ),
    "a file of OpenAI": (
        ir.Document(file_id="file-6F2ksmvXxt4VdoqmHRw6kL"),
        every_format_but("openai-chat", "openai-responses"),
    ),
}


@pytest.mark.parametrize(("case", "target"), [(case, target) for case in REFUSED for target in REFUSED[case][1]])
def test_what_an_api_refuses_is_a_loss_and_not_sent(case: str, target: str) -> None:
    part = REFUSED[case][0]
    encoded = with_part(part, target)
    assert "dropped" in {loss.severity for loss in encoded.losses}
    text = encoded.json().decode()
    assert not any(
        word in text for word in ("heic", "s3://", "gs://", "file:", "webm", "file_0", "file-6", "googleapis")
    )
