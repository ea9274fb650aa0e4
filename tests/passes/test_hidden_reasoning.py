"""A client of the Messages API that did not ask for thinking gets only thinking blocks that it must return."""

import json
from typing import Any

import pytest

import dragoman
from tests.support.promises import promise

THINKING = [{"type": "enabled", "budget_tokens": 2048}, {"type": "adaptive"}]
NOT_ASKED = [None, {"type": "disabled"}, {"type": "adaptive", "display": "omitted"}]
MODEL = "qwen3"


def client_request(thinking: Any) -> dragoman.Request:
    body: dict[str, Any] = {
        "model": "claude-sonnet-4-6",
        "max_tokens": 4096,
        "messages": [{"role": "user", "content": "hi"}],
    }
    return dragoman.decode_request(body if thinking is None else {**body, "thinking": thinking}, "anthropic-messages")


def about_reasoning(losses: tuple[dragoman.Loss, ...]) -> list[str]:
    return [loss.severity for loss in losses if loss.what == "reasoning"]


def whole(model: str, request: dragoman.Request) -> tuple[list[str], list[str]]:
    message = {"role": "assistant", "content": "Four.", "reasoning_content": "Two and two."}
    answer = {"id": "c", "object": "chat.completion", "created": 1, "model": model, "choices": [
        {"index": 0, "message": message, "finish_reason": "stop"}]}  # fmt: skip
    answered = dragoman.translate_response(answer, source="openai-chat", target="anthropic-messages", request=request)
    return [block["type"] for block in answered.body["content"]], about_reasoning(answered.losses)


def streamed(model: str, request: dragoman.Request) -> tuple[list[str], list[str]]:
    deltas = [
        {"role": "assistant", "reasoning_content": "Two "},
        {"reasoning_content": "and two."},
        {"content": "Four."},
        {},
    ]
    chunks = [
        {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": model,
         "choices": [{"index": 0, "delta": delta, "finish_reason": None if delta else "stop"}]}
        for delta in deltas
    ]  # fmt: skip
    translator = dragoman.StreamTranslator(source="openai-chat", target="anthropic-messages", request=request)
    data = b"".join(b"data: %b\n\n" % json.dumps(chunk).encode() for chunk in chunks) + b"data: [DONE]\n\n"
    out = translator.feed(data) + translator.close()
    events = [json.loads(line[6:]) for line in out.splitlines() if line.startswith(b"data: ")]
    types = [event["content_block"]["type"] for event in events if event["type"] == "content_block_start"]
    assert [event["index"] for event in events if event["type"] == "content_block_start"] == list(range(len(types)))
    return types, about_reasoning(translator.losses)


@promise("law:6-owed-back")
@pytest.mark.parametrize("answered", [whole, streamed])
def test_thinking_is_shown_if_asked_for(answered: Any) -> None:
    for thinking in THINKING:
        assert answered(MODEL, client_request(thinking)) == (["thinking", "text"], [])
    for thinking in NOT_ASKED:
        assert answered(MODEL, client_request(thinking)) == (["text"], ["noted"])


@promise("law:6-owed-back")
@pytest.mark.parametrize("answered", [whole, streamed])
def test_a_model_that_wants_its_reasoning_back_gets_a_carrier(answered: Any) -> None:
    """DeepSeek refuses a tool turn without it."""
    assert answered("deepseek-v4", client_request(None)) == (["thinking", "text"], [])


@promise("law:6-owed-back")
def test_signed_reasoning_stays() -> None:
    signature = dragoman.ir.Signature("openai-responses", "encrypted")
    parts = (dragoman.ir.Reasoning("Two and two.", signature=signature), dragoman.ir.Text("Four."))
    completion = dragoman.Completion((dragoman.Message("assistant", parts),), dragoman.ir.Finish("stop"))
    body = dragoman.encode_response(completion, "anthropic-messages", request=client_request(None)).body
    assert [block["type"] for block in body["content"]] == ["thinking", "text"]
