"""Images that a model draws, between APIs whose models draw by themselves and those that have a tool for it."""

from __future__ import annotations

import json
from typing import Any

import dragoman
from tests.support.bodies import PIXEL
from tests.support.cases import each
from tests.support.formats import FORMATS
from tests.support.promises import promise

SHOWS_IMAGES = frozenset(
    {"openai-chat", "openai-responses", "gemini", "vertex", "gemini-interactions", "bedrock-converse"}
)
"""Formats whose clients find an image in an answer."""

BY_A_TOOL: dict[str, Any] = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "status": "completed",
    "model": "gpt-5.6",
    "output": [
        {
            "id": "ig_1",
            "type": "image_generation_call",
            "status": "completed",
            "revised_prompt": "a cat",
            "output_format": "webp",
            "result": PIXEL,
        }
    ],
}
BY_THE_MODEL: dict[str, Any] = {
    "candidates": [
        {
            "content": {
                "role": "model",
                "parts": [
                    {"text": "there:"},
                    {"inlineData": {"mimeType": "image/jpeg", "data": PIXEL}, "thoughtSignature": "c2ln"},
                    {"inlineData": {"mimeType": "image/png", "data": PIXEL}},
                ],
            },
            "finishReason": "STOP",
            "index": 0,
        }
    ],
    "responseId": "r",
    "modelVersion": "gemini-3-pro-image",
}
QUESTION, FURTHER = {"role": "user", "content": "draw"}, {"role": "user", "content": "larger"}


def items_of_the_answer() -> list[dict[str, Any]]:
    written = dragoman.translate_response(BY_THE_MODEL, source="gemini", target="openai-responses")
    assert not [loss for loss in written.losses if loss.severity != "noted"]
    items: list[dict[str, Any]] = json.loads(written.json())["output"]
    return items


def next_request(items: list[dict[str, Any]]) -> dict[str, Any]:
    return {"model": "gemini-3-pro-image", "input": [QUESTION, *items, FURTHER], "store": False}


@promise("law:2-nothing-vanishes")
@each("target", FORMATS)
def test_what_a_tool_drew_is_an_image_or_a_loss(target: str) -> None:
    written = dragoman.translate_response(BY_A_TOOL, source="openai-responses", target=target)
    assert (PIXEL.encode() in written.json()) == (target in SHOWS_IMAGES)
    if target != "openai-responses":
        results = [loss for loss in written.losses if loss.what == "result of a call run by the provider"]
        severity = "degraded" if target in SHOWS_IMAGES else "dropped"
        assert [(loss.path, loss.severity) for loss in results] == [("$.output[0]", severity)]


@each("target", sorted(SHOWS_IMAGES))
def test_a_streamed_drawing_is_the_one_of_the_whole_answer(target: str) -> None:
    done = {"type": "response.completed", "sequence_number": 2, "response": BY_A_TOOL}
    item = {
        "type": "response.output_item.done",
        "sequence_number": 1,
        "output_index": 0,
        "item": BY_A_TOOL["output"][0],
    }
    begun = {"type": "response.output_item.added", "sequence_number": 0, "output_index": 0, "item": item["item"]}
    stream = dragoman.StreamTranslator(source="openai-responses", target=target)
    out = b"".join(stream.feed(b"data: " + json.dumps(event).encode() + b"\n\n") for event in (begun, item, done))
    assert PIXEL.encode() in out + stream.close()


def test_clients_of_responses_find_images_where_its_own_models_leave_them() -> None:
    items = [item for item in items_of_the_answer() if item["type"] == "image_generation_call"]
    assert [(item["result"], item.get("output_format")) for item in items] == [(PIXEL, "jpeg"), (PIXEL, None)]
    assert len({item["id"] for item in items}) == 2
    stream = dragoman.StreamTranslator(source="gemini", target="openai-responses")
    out = stream.feed(b"data: " + json.dumps(BY_THE_MODEL).encode() + b"\r\n\r\n") + stream.close()
    events = [json.loads(line[6:]) for line in out.decode().splitlines() if line.startswith("data: ")]
    streamed = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    drawn = [item for item in streamed if item["type"] == "image_generation_call"]
    assert [item["result"] for item in drawn] == [PIXEL, PIXEL]
    assert len({item["id"] for item in drawn}) == 2
    assert not stream.losses


@promise("law:6-owed-back")
def test_an_image_returns_to_gemini_with_its_signature() -> None:
    sent = dragoman.translate_request(next_request(items_of_the_answer()), source="openai-responses", target="gemini")
    assert json.loads(sent.json())["contents"][1] == BY_THE_MODEL["candidates"][0]["content"]
    assert not sent.losses


@each("target", FORMATS)
def test_an_image_of_another_model_is_sent_or_is_a_loss(target: str) -> None:
    items = items_of_the_answer()
    places = [index for index, item in enumerate(items, 1) if item["type"] == "image_generation_call"]
    sent = dragoman.translate_request(next_request(items), source="openai-responses", target=target)
    lost = [loss.path for loss in sent.losses if loss.what == "image"]
    assert sent.json().count(PIXEL.encode()) == 2 or lost == [f"$.input[{place}]" for place in places]
    assert b"dragoman1_" not in sent.json()


def test_an_item_made_for_a_client_is_read_and_written_again() -> None:
    body = {**BY_A_TOOL, "output": items_of_the_answer()}
    again = dragoman.encode_response(dragoman.decode_response(body, "openai-responses"), "openai-responses")
    assert json.loads(again.json())["output"] == body["output"]


@promise("law:2-nothing-vanishes")
def test_the_loss_of_a_signature_points_to_the_item_that_carries_it() -> None:
    items = items_of_the_answer()
    carrier = 1 + next(index for index, item in enumerate(items) if item["type"] == "reasoning")
    text = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "there"}]}
    body = next_request([items[carrier - 1], text])
    sent = dragoman.translate_request(body, source="openai-responses", target="openai-chat")
    assert [loss.path for loss in sent.losses if loss.what == "signature"] == ["$.input[1].encrypted_content"]
