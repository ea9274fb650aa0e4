"""Content that only some APIs take: search results, media by address, files of others, blocks of others."""

import base64
import json
import re
import time
from typing import Any

import pytest

import dragoman
from dragoman import ir
from dragoman.codecs.registry import codec
from tests.support import formats
from tests.support.cases import each
from tests.support.formats import FORMATS, refusals
from tests.support.promises import promise
from tests.support.ugly import PNG

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
    question = {"role": "user", "content": [marked, {"type": "text", "text": "Why?"}]}
    body = {**MESSAGES, "messages": [question]}
    there = sent(body, "anthropic-messages", "bedrock-converse")
    point = {"cachePoint": {"type": "default", "ttl": "1h"}}
    assert there.body["messages"][0]["content"] == [OF_CONVERSE, point, {"text": "Why?"}]
    assert there.losses == ()
    back = dragoman.translate_request(
        there.body, source="bedrock-converse", target="anthropic-messages", model="claude-sonnet-4-5"
    )
    assert back.body["messages"] == [question]
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
    paths = [loss.path for loss in there.losses if loss.path.startswith("$.messages[0].content[0]")]
    assert bool(paths) == ("future" in str(odd)), paths
    assert all(path.startswith(f"$.messages[0].content[0].{key}") for path in paths)


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


@each("target", FORMATS)
@each("role", ["user", "assistant"])
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
    question = {"role": "user", "content": [upload]}
    body = {**MESSAGES, "messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, question]}
    there = sent(body, "anthropic-messages", target)
    turns = there.body.get("messages") or there.body.get("input") or there.body.get("contents")
    assert isinstance(turns, list)
    assert any(loss.severity == "dropped" for loss in there.losses)
    for turn in turns:
        assert turn.get("content") or turn.get("parts")


# ── media ──


def with_part(part: ir.AnyPart, target: str) -> dragoman.Encoded:
    question = ir.Message("user", (part, ir.Text("What is this?")))
    return dragoman.encode_request(ir.Request(MODELS[target], (question,), max_output_tokens=99), target)


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


@each(("case", "target"), [(case, target) for case in REFUSED for target in REFUSED[case][1]])
def test_what_an_api_refuses_is_a_loss_and_not_sent(case: str, target: str) -> None:
    part = REFUSED[case][0]
    encoded = with_part(part, target)
    assert "dropped" in {loss.severity for loss in encoded.losses}
    text = encoded.json().decode()
    assert not any(
        word in text for word in ("heic", "s3://", "gs://", "file:", "webm", "file_0", "file-6", "googleapis")
    )


# ── every media type to every target ──

SVG_TEXT = '<svg xmlns="http://www.w3.org/2000/svg"><title>Crossing</title></svg>'
BYTES = base64.b64encode(SVG_TEXT.encode()).decode()
WEB_IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")
GOOGLE_IMAGES = ("image/heic", "image/heif", "image/bmp", "image/tiff")
NO_IMAGES = ("image/avif", "image/x-icon", "image/jxl", "image/vnd.adobe.photoshop")
OFFICE = ("application/msword", "application/vnd.openxmlformats-officedocument.wordprocessingml.document")
BINARIES = ("application/zip", "application/octet-stream")
TEXTS = ("text/plain", "text/csv", "text/html", "text/markdown", "application/json", "application/xml")
SOUNDS = tuple(f"audio/{name}" for name in ("wav", "mpeg", "mp3", "flac", "opus", "aac", "ogg", "m4a", "aiff", "webm"))
FILMS = tuple(f"video/{name}" for name in ("mp4", "webm", "quicktime", "x-matroska", "mpeg", "3gpp"))
MEDIA_TYPES = (
    *WEB_IMAGES, "image/jpg", "image/svg+xml", *GOOGLE_IMAGES, *NO_IMAGES, "application/pdf", *OFFICE, *BINARIES,
    *TEXTS, *SOUNDS, *FILMS,
)  # fmt: skip
_OFFICE_TAKERS = ("openai-chat", "openai-responses", "bedrock-converse", "gemini-interactions")
ACCEPTED: dict[str, tuple[str, ...]] = {
    **dict.fromkeys((*WEB_IMAGES, "image/jpg"), FORMATS),
    "image/svg+xml": ("anthropic-messages", "cohere-chat", "ollama-chat", *GOOGLES),
    **dict.fromkeys(("image/heic", "image/heif"), GOOGLES),
    **dict.fromkeys(("image/bmp", "image/tiff"), (*GOOGLES, "ollama-chat")),
    **dict.fromkeys(NO_IMAGES, ()),
    "application/pdf": every_format_but("ollama-chat", "cohere-chat"),
    **dict.fromkeys(OFFICE, _OFFICE_TAKERS),
    **dict.fromkeys(BINARIES, ()),
    **dict.fromkeys(TEXTS, FORMATS),
    **dict.fromkeys((*SOUNDS, *FILMS), GOOGLES),
}
"""Media type -> the targets that get its content, as it is or as text: documented types, and those of vendors' SDKs.

OpenAI's sound models, Bedrock's models that take sound or film, and files of any type at OpenAI are left open."""
OPEN: dict[str, tuple[str, ...]] = {
    **dict.fromkeys((*SOUNDS, *FILMS), ("openai-chat", "openai-responses", "bedrock-converse", "ollama-chat")),
    **dict.fromkeys(BINARIES, ("openai-chat", "openai-responses")),
    **dict.fromkeys(NO_IMAGES, ("ollama-chat",)),
}


def medium(media_type: str, **given: Any) -> ir.Image | ir.Audio | ir.Document:
    if media_type.startswith("image/"):
        return ir.Image(media_type, **given)
    return ir.Audio(media_type, **given) if media_type.startswith("audio/") else ir.Document(media_type, **given)


@each("target", FORMATS)
@each("media_type", MEDIA_TYPES)
def test_every_media_type_is_taken_converted_or_a_reported_loss(media_type: str, target: str) -> None:
    encoded = with_part(medium(media_type, data=BYTES), target)
    text = encoded.json().decode()
    arrives = BYTES in text or "<title>Crossing</title>" in text
    dropped = [loss for loss in encoded.losses if loss.severity == "dropped" and "parts[0]" in loss.path]
    assert arrives is not bool(dropped)
    if target not in OPEN.get(media_type, ()):
        assert arrives is (target in ACCEPTED[media_type])
    assert not formats.refusals(encoded, target, model=MODELS[target])
    if arrives and BYTES not in text and media_type != "text/plain":
        assert "degraded" in {loss.severity for loss in encoded.losses}


@each("target", GOOGLES)
def test_google_gets_only_types_of_images_it_documents(target: str) -> None:
    for media_type in (*WEB_IMAGES, "image/jpg", "image/svg+xml", *GOOGLE_IMAGES, *NO_IMAGES):
        for given in ({"data": BYTES}, {"url": f"https://example.org/a.{media_type[6:].partition('+')[0]}"}):
            encoded = with_part(medium(media_type, **given), target)
            sent_types = set(re.findall(r'"mime_?[tT]ype":"([^"]+)"', encoded.json().decode()))
            assert sent_types <= {*WEB_IMAGES, *GOOGLE_IMAGES}
            assert sent_types or {"dropped", "degraded"} & {loss.severity for loss in encoded.losses}


@each("target", GOOGLES)
def test_a_drawing_in_a_tool_result_reaches_google_as_text(target: str) -> None:
    call = ir.ToolCall("call_1", "draw", {})
    drawn = (ir.Text("Done."), ir.Image("image/svg+xml", BYTES))
    result = ir.ToolResult("call_1", "draw", "multimodal", parts=drawn)
    turns = (ir.Message("user", "Draw."), ir.Message("assistant", (call,)), ir.Message("tool", (result,)))
    tool = ir.ToolDefinition("draw", parameters={"type": "object", "properties": {}})
    for model in (MODELS[target], "gemini-3-pro-preview"):
        encoded = dragoman.encode_request(ir.Request(model, turns, (tool,)), target)
        text = encoded.json().decode()
        assert "svg+xml" not in text
        assert BYTES in text or "<title>Crossing</title>" in text
        assert not formats.refusals(encoded, target, model=model)


def _picture(source: str, url: str) -> dict[str, Any]:
    if source == "openai-responses":
        item = {"role": "user", "content": [{"type": "input_image", "image_url": url, "detail": "auto"}]}
        return {"model": "m", "input": [item]}
    part = {"type": "image_url", "image_url": {"url": url}}
    return {"model": "m", "messages": [{"role": "user", "content": [part]}]}


@each("source", ["openai-chat", "openai-responses", "cohere-chat"])
@each("head", ["image/png;charset=utf-8", "image/png;a=b;c=d", "", ";charset=utf-8"])
def test_parameters_of_a_media_type_do_not_hide_the_picture(source: str, head: str) -> None:
    body = _picture(source, f"data:{head};base64,{PNG}")
    request = dragoman.decode_request(body, source)
    assert dragoman.encode_request(request, source).body == body
    (block,) = dragoman.encode_request(request, "anthropic-messages").body["messages"][0]["content"]
    assert block["source"] == {"type": "base64", "media_type": "image/png", "data": PNG}


def test_a_text_costs_the_same_with_the_name_of_its_speaker() -> None:
    """The parts of a message are looked at one by one; a text is not looked at character by character."""
    body: dict[str, Any] = {"messages": [{"role": "assistant", "content": "some words " * 100_000}]}
    plain = json.dumps(body).encode()
    body["messages"][0]["name"] = "helper"
    costs = {raw: min(_cost(raw) for _ in range(5)) for raw in (plain, json.dumps(body).encode())}
    assert max(costs.values()) < 5 * min(costs.values())


def _cost(raw: bytes) -> float:
    started = time.process_time()
    codec("openai-chat").decode_request(raw)
    return time.process_time() - started
