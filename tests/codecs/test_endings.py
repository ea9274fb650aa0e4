"""An answer that failed, was blocked or is not finished never becomes a success: each target says it as it can."""

import json
from typing import Any

import pytest

import dragoman
from dragoman import ir
from tests.support.cases import each
from tests.support.endings import is_success
from tests.support.formats import FAMILY, FORMATS
from tests.support.promises import promise

pytestmark = promise("core:honest-endings")

RESPONSE: dict[str, Any] = {
    "id": "resp_68af1c", "object": "response", "created_at": 1_763_300_000, "model": "gpt-5.1", "output": [],
}  # fmt: skip
TEXT = {
    "type": "message", "id": "msg_1", "role": "assistant", "status": "incomplete",
    "content": [{"type": "output_text", "text": "The first", "annotations": []}],
}  # fmt: skip
CALL = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "call_1",
    "name": "f",
    "arguments": "{}",
    "status": "completed",
}
ERROR = {"code": "server_error", "message": "The server had an error."}


def candidate(reason: str, *parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"candidates": [{"content": {"role": "model", "parts": list(parts)}, "finishReason": reason, **more}]}


FAILED: dict[str, tuple[str, dict[str, Any]]] = {
    "failed": ("openai-responses", {**RESPONSE, "status": "failed", "error": ERROR}),
    "failed after text": ("openai-responses", {**RESPONSE, "status": "failed", "error": ERROR, "output": [TEXT]}),
    "failed after a call": ("openai-responses", {**RESPONSE, "status": "failed", "error": ERROR, "output": [CALL]}),
    "cancelled": ("openai-responses", {**RESPONSE, "status": "cancelled", "output": [TEXT]}),
    "in progress": ("openai-responses", {**RESPONSE, "status": "in_progress", "output": [TEXT]}),
    "in progress, with a call": ("openai-responses", {**RESPONSE, "status": "in_progress", "output": [CALL]}),
    "queued": ("openai-responses", {**RESPONSE, "status": "queued"}),
    "incomplete": ("openai-responses", {**RESPONSE, "status": "incomplete", "output": [TEXT]}),
    "incomplete, a new reason": (
        "openai-responses",
        {**RESPONSE, "status": "incomplete", "incomplete_details": {"reason": "max_tool_calls"}, "output": [TEXT]},
    ),
    "incomplete, filtered": (
        "openai-responses",
        {**RESPONSE, "status": "incomplete", "incomplete_details": {"reason": "content_filter"}, "output": [TEXT]},
    ),
    "malformed call": (
        "gemini",
        candidate("MALFORMED_FUNCTION_CALL", finishMessage="Malformed function call: print(default_api.f())"),
    ),
    "malformed call after text": ("gemini", candidate("MALFORMED_FUNCTION_CALL", {"text": "Let me see."})),
    "unexpected call": ("gemini", candidate("UNEXPECTED_TOOL_CALL", {"functionCall": {"name": "f", "args": {}}})),
    "blocked prompt": (
        "gemini",
        {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 3, "totalTokenCount": 3}},
    ),
    "blocked answer": ("gemini", candidate("SAFETY", {"text": "The first"})),
    "nothing": ("gemini", {"usageMetadata": {"promptTokenCount": 3, "totalTokenCount": 3}}),
    "malformed output": (
        "bedrock-converse",
        {
            "output": {"message": {"role": "assistant", "content": []}},
            "stopReason": "malformed_model_output",
            "usage": {"inputTokens": 3, "outputTokens": 0, "totalTokens": 3},
            "metrics": {"latencyMs": 1},
        },
    ),
}


@each("target", FORMATS)
@each("case", FAILED)
def test_no_target_calls_it_a_success(case: str, target: str) -> None:
    source, body = FAILED[case]
    encoded = dragoman.translate_response(body, source=source, target=target)
    assert not is_success(encoded.body, target)
    if FAMILY[source] == FAMILY[target]:
        assert encoded.body == body
        return
    is_error = "error" in encoded.body and encoded.body["error"] is not None and target != "openai-responses"
    assert (encoded.status >= 400) is is_error
    exact = {"openai-responses", "gemini", "vertex", "cohere-chat", "gemini-interactions"}
    if target not in exact and case not in {"nothing", "incomplete, filtered", "blocked prompt", "blocked answer"}:
        assert {"degraded", "dropped"} & {loss.severity for loss in encoded.losses}
    again = (
        dragoman.decode_error(encoded.json(), target) if is_error else dragoman.decode_response(encoded.json(), target)
    )
    if isinstance(again, ir.Completion):
        assert again.tool_calls == ()


def test_an_error_has_the_message_of_the_provider() -> None:
    source, body = FAILED["failed"]
    for target in ("openai-chat", "anthropic-messages", "ollama-chat"):
        encoded = dragoman.translate_response(body, source=source, target=target)
        assert encoded.status == 500
        assert ERROR["message"] in encoded.json().decode()
    source, body = FAILED["malformed call"]
    encoded = dragoman.translate_response(body, source=source, target="openai-responses")
    assert encoded.body["status"] == "failed"
    assert encoded.body["error"] == {"code": "server_error", "message": body["candidates"][0]["finishMessage"]}
    encoded = dragoman.translate_response(FAILED["failed"][1], source="openai-responses", target="gemini")
    assert encoded.body["candidates"][0]["finishMessage"] == ERROR["message"]


@pytest.mark.parametrize(
    ("source", "body", "place"),
    [
        (*FAILED["failed after text"], "$.error.message"),
        ("gemini", candidate("OTHER", {"text": "The first"}, finishMessage="no luck"), "$.candidates[0].finishMessage"),
        (
            "gemini-interactions",
            {
                "id": "i", "object": "interaction", "model": "gemini-2.5-flash", "status": "failed",
                "steps": [{"type": "model_output", "content": [{"type": "text", "text": "The first"}]}],
                "errors": [{"code": 500, "message": "no luck"}],
            },
            "$.errors[0].message",
        ),
    ],
)  # fmt: skip
@pytest.mark.parametrize("target", ["openai-chat", "anthropic-messages", "bedrock-converse", "cohere-chat"])
def test_words_about_a_failure_that_do_not_cross_are_reported_where_they_stand(
    source: str, body: dict[str, Any], place: str, target: str
) -> None:
    losses = dragoman.translate_response(body, source=source, target=target).losses
    assert [loss.path for loss in losses if loss.what == "explanation of the failure"] == [place]


@pytest.mark.parametrize("target", ["gemini", "vertex"])
def test_an_answer_without_choices_is_not_a_success_for_google(target: str) -> None:
    body = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": []}
    encoded = dragoman.translate_response(body, source="openai-chat", target=target)
    assert encoded.body["candidates"][0]["finishReason"] == "OTHER"
    assert "finish reason OTHER" in {loss.what for loss in encoded.losses}


def test_strict_refuses_an_answer_that_failed() -> None:
    source, body = FAILED["failed"]
    with pytest.raises(dragoman.LossRefused):
        dragoman.translate_response(body, source=source, target="openai-chat", strict=True)


# ── streams ──


def stream_of(*chunks: dict[str, Any]) -> bytes:
    return b"".join(b"data: " + json.dumps(chunk).encode() + b"\r\n\r\n" for chunk in chunks)


@pytest.mark.parametrize("target", ["openai-chat", "openai-responses", "anthropic-messages", "ollama-chat"])
@pytest.mark.parametrize("parts", [[], [{"text": "Let me see."}]])
def test_a_stream_that_fails_ends_in_an_error(target: str, parts: list[dict[str, Any]]) -> None:
    words = "Malformed function call: f("
    data = stream_of(
        *(candidate("", part) for part in parts), candidate("MALFORMED_FUNCTION_CALL", finishMessage=words)
    )
    data = data.replace(b'"finishReason": "", ', b"").replace(b', "finishReason": ""', b"")
    translator = dragoman.StreamTranslator(source="gemini", target=target)
    out = translator.feed(data) + translator.close()
    events = dragoman.StreamDecoder(target)
    last = [*events.feed(out), *events.close()][-1]
    assert isinstance(last, ir.StreamFailed)
    assert last.failure.message == words
    assert all(part["text"].encode() in out for part in parts)


def chat_chunk(delta: dict[str, Any], **more: Any) -> bytes:
    body = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return b"data: " + json.dumps({**body, "choices": [{"index": 0, "delta": delta}], **more}).encode() + b"\n\n"


USAGE = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
DONE = b"data: [DONE]\n\n"


def call_delta(arguments: str) -> dict[str, Any]:
    call = {"index": 0, "id": "c1", "type": "function", "function": {"name": "f", "arguments": arguments}}
    return {"tool_calls": [call]}


@pytest.mark.parametrize(
    ("chunks", "reason"),
    [
        ((chat_chunk({"content": "hi"}), chat_chunk({}, usage=USAGE), DONE), "stop"),
        ((chat_chunk(call_delta('{"a":1}')), chat_chunk({}, usage=USAGE), DONE), "tool_calls"),
        # A call that breaks off, an answer without counts, a stream without its end: not whole.
        ((chat_chunk(call_delta('{"a":')), chat_chunk({}, usage=USAGE), DONE), None),
        ((chat_chunk({"content": "hi"}), DONE), None),
        ((chat_chunk({"content": "hi"}), chat_chunk({}, usage=USAGE)), None),
    ],
)
def test_done_and_usage_without_a_finish_reason(chunks: tuple[bytes, ...], reason: str | None) -> None:
    decoder = dragoman.StreamDecoder("openai-chat")
    events = [*decoder.feed(b"".join(chunks)), *decoder.close()]
    if reason is None:
        assert isinstance(events[-1], ir.StreamFailed)
    else:
        assert isinstance(events[-1], ir.Finished)
        assert events[-1].finish.reason == reason
