"""Every word with which an API says that an answer is not whole, to every other API, whole and streamed."""

import json
from typing import Any

import pytest

import dragoman
from dragoman import ir
from tests.support import converse_streams, messages_streams
from tests.support.cases import each
from tests.support.endings import is_success
from tests.support.formats import FAMILY, FORMATS
from tests.support.promises import promise

pytestmark = promise("core:honest-endings")

Json = dict[str, Any]
TEXT = "The first"
ENDINGS: dict[str, tuple[str, ...]] = {
    "openai-chat": ("length", "content_filter", "error", "a_new_word"),
    "openai-responses": (
        "failed", "max_output_tokens", "content_filter", "max_messages", "steered", "max_tool_calls", "a_new_word",
    ),
    "anthropic-messages": (
        "max_tokens", "pause_turn", "compaction", "refusal", "model_context_window_exceeded", "a_new_word",
    ),
    "gemini": (
        "MAX_TOKENS", "SAFETY", "RECITATION", "LANGUAGE", "OTHER", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII",
        "MALFORMED_FUNCTION_CALL", "IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION", "IMAGE_OTHER",
        "NO_IMAGE", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MISSING_THOUGHT_SIGNATURE", "MALFORMED_RESPONSE",
        "MODEL_ARMOR", "CONTINUATION", "FINISH_REASON_UNSPECIFIED", "A_NEW_WORD",
    ),
    "bedrock-converse": (
        "max_tokens", "content_filtered", "guardrail_intervened", "malformed_model_output", "malformed_tool_use",
        "model_context_window_exceeded", "a_new_word",
    ),
    "ollama-chat": ("length", "a_new_word"),
    "cohere-chat": ("MAX_TOKENS", "ERROR", "TIMEOUT", "ERROR_TOXIC", "ERROR_LIMIT", "USER_CANCEL", "A_NEW_WORD"),
    "gemini-interactions": (
        "failed", "cancelled", "incomplete", "budget_exceeded", "requires_continuation", "a_new_word",
    ),
}  # fmt: skip
"""The words for answers that failed, were blocked, or are cut or paused; and one that no codec knows."""
USAGE = {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}


# ── real bodies: one text, then the word ──


def chat(word: str, *, streamed: bool) -> bytes:
    usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
    if not streamed:
        choice = {"index": 0, "finish_reason": word, "message": {"role": "assistant", "content": TEXT}}
        return compact(
            {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}
        )
    head: Json = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    chunks = [
        {**head, "choices": [{"index": 0, "delta": {"role": "assistant", "content": TEXT}, "finish_reason": None}]},
        {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": word}]},
        {**head, "choices": [], "usage": usage},
    ]
    return b"".join(b"data: " + compact(chunk) + b"\n\n" for chunk in chunks) + b"data: [DONE]\n\n"


def responses(word: str, *, streamed: bool) -> bytes:
    status = "failed" if word == "failed" else "incomplete"
    item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "incomplete", "content": []}
    part = {"type": "output_text", "text": TEXT, "annotations": []}
    body: Json = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m"}
    whole = {**body, "status": status, "output": [{**item, "content": [part]}], "usage": USAGE}
    if status == "failed":
        whole["error"] = {"code": "server_error", "message": "The server had an error."}
    else:
        whole["incomplete_details"] = {"reason": word}
    if not streamed:
        return compact(whole)
    place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    events: list[tuple[str, Json]] = [
        ("response.created", {"response": {**body, "status": "in_progress", "output": []}}),
        ("response.output_item.added", {"output_index": 0, "item": item}),
        ("response.content_part.added", {**place, "part": {**part, "text": ""}}),
        ("response.output_text.delta", {**place, "delta": TEXT}),
        ("response.output_text.done", {**place, "text": TEXT}),
        ("response.content_part.done", {**place, "part": part}),
        ("response.output_item.done", {"output_index": 0, "item": {**item, "content": [part]}}),
        (f"response.{status}", {"response": whole}),
    ]
    numbered = [{"type": name, "sequence_number": index, **data} for index, (name, data) in enumerate(events)]
    return messages_streams.sse(numbered)


def messages(word: str, *, streamed: bool) -> bytes:
    if streamed:
        parts = messages_streams.text(0, TEXT)
        return messages_streams.sse([messages_streams.started(), *parts, *messages_streams.ended(word)])
    return compact(messages_streams.message(content=[{"type": "text", "text": TEXT}], stop_reason=word))


def gemini(word: str, *, streamed: bool) -> bytes:
    part_of: Json = {"content": {"role": "model", "parts": [{"text": TEXT}]}, "index": 0}
    counts = {"promptTokenCount": 3, "candidatesTokenCount": 2, "totalTokenCount": 5}
    if not streamed:
        return compact({"candidates": [{**part_of, "finishReason": word}], "usageMetadata": counts})
    last = {"candidates": [{"finishReason": word, "index": 0}], "usageMetadata": counts}
    return b"".join(b"data: " + compact(chunk) + b"\r\n\r\n" for chunk in ({"candidates": [part_of]}, last))


def converse(word: str, *, streamed: bool) -> bytes:
    usage = {"inputTokens": 3, "outputTokens": 2, "totalTokens": 5}
    if not streamed:
        message = {"role": "assistant", "content": [{"text": TEXT}]}
        return compact(
            {"output": {"message": message}, "stopReason": word, "usage": usage, "metrics": {"latencyMs": 1}}
        )
    return converse_streams.stream(
        ("messageStart", {"role": "assistant"}),
        ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": TEXT}}),
        ("contentBlockStop", {"contentBlockIndex": 0}),
        ("messageStop", {"stopReason": word}),
        ("metadata", {"usage": usage, "metrics": {"latencyMs": 1}}),
    )


def ollama(word: str, *, streamed: bool) -> bytes:
    head = {"model": "qwen3", "created_at": "2026-11-18T00:00:00Z"}
    counts = {"done": True, "done_reason": word, "total_duration": 5, "prompt_eval_count": 3, "eval_count": 2}
    part_of = {**head, "message": {"role": "assistant", "content": TEXT}, "done": False}
    if not streamed:
        return compact({**part_of, **counts})
    last = {**head, "message": {"role": "assistant", "content": ""}, **counts}
    return compact(part_of) + b"\n" + compact(last) + b"\n"


def cohere(word: str, *, streamed: bool) -> bytes:
    usage = {"tokens": {"input_tokens": 3, "output_tokens": 2}}
    if not streamed:
        message = {"role": "assistant", "content": [{"type": "text", "text": TEXT}]}
        return compact({"id": "c", "finish_reason": word, "message": message, "usage": usage})
    return messages_streams.sse(
        [
            {"type": "message-start", "id": "c", "delta": {"message": {"role": "assistant", "content": []}}},
            {"type": "content-start", "index": 0, "delta": {"message": {"content": {"type": "text", "text": ""}}}},
            {"type": "content-delta", "index": 0, "delta": {"message": {"content": {"text": TEXT}}}},
            {"type": "content-end", "index": 0},
            {"type": "message-end", "delta": {"finish_reason": word, "usage": usage}},
        ]
    )


def interactions(word: str, *, streamed: bool) -> bytes:
    body: Json = {"id": "i", "object": "interaction", "model": "gemini-2.5-flash"}
    step = {"type": "model_output", "content": [{"type": "text", "text": TEXT}]}
    if not streamed:
        return compact({**body, "status": word, "steps": [step]})
    events: list[Json] = [
        {"event_type": "interaction.created", "interaction": {**body, "status": "in_progress"}},
        {"event_type": "step.start", "index": 0, "step": {"type": "model_output"}},
        {"event_type": "step.delta", "index": 0, "delta": {"type": "text", "text": TEXT}},
        {"event_type": "step.stop", "index": 0},
        {"event_type": "interaction.completed", "interaction": {**body, "status": word}},
    ]
    return b"".join(b"data: " + compact(event) + b"\n\n" for event in events) + b"data: [DONE]\n\n"


def compact(body: Json) -> bytes:
    return json.dumps(body, separators=(",", ":")).encode()


BODIES = {
    "openai-chat": chat,
    "openai-responses": responses,
    "anthropic-messages": messages,
    "gemini": gemini,
    "bedrock-converse": converse,
    "ollama-chat": ollama,
    "cohere-chat": cohere,
    "gemini-interactions": interactions,
}
WORDS = [(source, word) for source, words in ENDINGS.items() for word in words]


@each(("source", "word"), WORDS)
def test_every_ending_of_a_whole_answer(source: str, word: str) -> None:
    body = BODIES[source](word, streamed=False)
    for target in FORMATS:
        encoded = dragoman.translate_response(body, source=source, target=target)
        assert not is_success(encoded.body, target), target
        assert TEXT in encoded.json().decode(), target
        if FAMILY[source] == FAMILY[target]:
            assert encoded.body == json.loads(body)


@each(("source", "word"), WORDS)
def test_every_ending_of_a_stream(source: str, word: str) -> None:
    data = BODIES[source](word, streamed=True)
    for target in FORMATS:
        translator = dragoman.StreamTranslator(source=source, target=target)
        out = translator.feed(data) + translator.close()
        decoder = dragoman.StreamDecoder(target)
        events = [*decoder.feed(out), *decoder.close()]
        texts = [event.text for event in events if isinstance(event, ir.PartDelta)]
        texts += [
            event.part.text for event in events if isinstance(event, ir.PartStart) and isinstance(event.part, ir.Text)
        ]
        assert "".join(texts) == TEXT, target
        last = events[-1]
        if isinstance(last, ir.Finished):
            assert last.finish.reason not in {"stop", "tool_calls"}, target
        else:
            assert isinstance(last, ir.StreamFailed), target


@each("streamed", [False, True], ids=["whole", "streamed"])
@each(("source", "word"), WORDS)
def test_whole_and_streamed_end_alike(source: str, word: str, *, streamed: bool) -> None:
    """What the source says is read as the same end in both."""
    data = BODIES[source](word, streamed=streamed)
    if not streamed:
        finish = dragoman.decode_response(data, source).finish
    else:
        decoder = dragoman.StreamDecoder(source)
        last = [*decoder.feed(data), *decoder.close()][-1]
        finish = last.finish if isinstance(last, ir.Finished) else ir.Finish("error", word)
    assert finish is not None
    assert (finish.reason, finish.raw) == (READ_AS[source].get(word, "unknown"), word)


READ_AS: dict[str, dict[str, str]] = {
    "openai-chat": {"length": "length", "content_filter": "content_filter", "error": "error"},
    "openai-responses": {
        "failed": "error", "max_output_tokens": "length", "content_filter": "content_filter",
        "max_messages": "pause", "steered": "pause",
    },
    "anthropic-messages": {
        "max_tokens": "length", "model_context_window_exceeded": "length", "refusal": "refusal",
        "pause_turn": "pause", "compaction": "pause",
    },
    "gemini": {
        "MAX_TOKENS": "length", "CONTINUATION": "pause",
        **dict.fromkeys(
            ("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY", "MODEL_ARMOR",
             "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION"), "content_filter"
        ),
        **dict.fromkeys(
            ("LANGUAGE", "OTHER", "MALFORMED_FUNCTION_CALL", "IMAGE_OTHER", "NO_IMAGE", "UNEXPECTED_TOOL_CALL",
             "TOO_MANY_TOOL_CALLS", "MISSING_THOUGHT_SIGNATURE", "MALFORMED_RESPONSE"), "error"
        ),
    },
    "bedrock-converse": {
        "max_tokens": "length", "model_context_window_exceeded": "length", "content_filtered": "content_filter",
        "guardrail_intervened": "content_filter", "malformed_model_output": "error", "malformed_tool_use": "error",
    },
    "ollama-chat": {"length": "length"},
    "cohere-chat": {
        "MAX_TOKENS": "length", "ERROR_LIMIT": "length", "ERROR": "error", "TIMEOUT": "error",
        "ERROR_TOXIC": "content_filter", "USER_CANCEL": "error",
    },
    "gemini-interactions": {
        "failed": "error", "cancelled": "error", "incomplete": "length", "budget_exceeded": "length",
        "requires_continuation": "pause",
    },
}  # fmt: skip


def test_a_full_context_is_reported_in_the_wording_that_anthropic_and_bedrock_share() -> None:
    word = "model_context_window_exceeded"
    there = dragoman.translate_response(
        messages(word, streamed=False), source="anthropic-messages", target="bedrock-converse"
    )
    assert there.body["stopReason"] == word
    back = dragoman.translate_response(
        converse(word, streamed=False), source="bedrock-converse", target="anthropic-messages"
    )
    assert back.body["stop_reason"] == word


def test_a_line_that_more_was_to_follow_is_no_whole_answer() -> None:
    line = ollama("stop", streamed=True).splitlines()[0]
    for target in FORMATS:
        if target != "ollama-chat":
            encoded = dragoman.translate_response(line, source="ollama-chat", target=target)
            assert not is_success(encoded.body, target), target


@pytest.mark.parametrize("word", ["load", "unload"])
def test_a_model_that_was_only_loaded_gave_no_text_and_did_not_fail(word: str) -> None:
    body = {"model": "qwen3", "created_at": "2026-11-18T00:00:00Z", "done": True, "done_reason": word}
    body["message"] = {"role": "assistant", "content": ""}
    for target in FORMATS:
        encoded = dragoman.translate_response(body, source="ollama-chat", target=target)
        assert encoded.status == 200
        assert is_success(encoded.body, target) == (target != "ollama-chat")
        assert dragoman.decode_response(encoded.json(), target).text == ""


# ── refusals in words ──

REFUSED_BY: dict[str, dict[str, Any]] = {
    "openai-chat": {
        "id": "c", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [
            {
                "index": 0, "finish_reason": "stop",
                "message": {"role": "assistant", "content": None, "refusal": "I will not."},
            }
        ],
    },
    "openai-responses": {
        "id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": "m",
        "output": [
            {
                "type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
                "content": [{"type": "refusal", "refusal": "I will not."}],
            }
        ],
    },
}  # fmt: skip


@each("target", ["anthropic-messages", "gemini", "vertex"])
@each("source", REFUSED_BY)
def test_a_refusal_in_words_is_repeated_where_the_end_is_explained_and_returns(source: str, target: str) -> None:
    there = dragoman.translate_response(REFUSED_BY[source], source=source, target=target)
    assert not is_success(there.body, target)
    if target == "anthropic-messages":
        assert there.body["content"] == [{"type": "text", "text": "I will not."}]
        assert there.body["stop_details"] == {"type": "refusal", "category": None, "explanation": "I will not."}
    else:
        (candidate,) = there.body["candidates"]
        assert candidate["finishMessage"] == candidate["content"]["parts"][0]["text"] == "I will not."
    answer = dragoman.decode_response(there.json(), target)
    assert answer.messages[0].parts == (ir.Refusal("I will not."),)
    assert answer.finish_reason == "refusal"
    again = dragoman.translate_response(there.json(), source=target, target=target)
    assert (again.body, again.losses) == (there.body, ())
    back = dragoman.translate_response(there.json(), source=target, target="openai-chat")
    assert back.body["choices"][0]["message"]["refusal"] == "I will not."
    assert back.body["choices"][0]["finish_reason"] == "stop"


def test_what_a_classifier_stopped_is_no_refusal_in_words() -> None:
    details = {"type": "refusal", "category": "cyber", "explanation": "This asks for malware."}
    body = {**json.loads(messages("refusal", streamed=False)), "stop_details": details}
    answer = dragoman.decode_response(body, "anthropic-messages")
    assert (answer.text, answer.refusal) == (TEXT, None)
    there = dragoman.translate_response(body, source="anthropic-messages", target="openai-chat")
    assert there.body["choices"][0]["finish_reason"] == "content_filter"
    assert {"$.stop_details.category", "$.stop_details.explanation"} <= {loss.path for loss in there.losses}


# ── refusals in words ──

REFUSAL_STREAMS: dict[str, bytes] = {
    "openai-chat": b"".join(
        b"data: %b\n\n" % json.dumps(chunk).encode()
        for chunk in (
            {"id": "c", "model": "m", "choices": [{"index": 0, "delta": {"role": "assistant", "refusal": ""}}]},
            {"id": "c", "model": "m", "choices": [{"index": 0, "delta": {"refusal": "I cannot "}}]},
            {"id": "c", "model": "m", "choices": [{"index": 0, "delta": {"refusal": "help."}}]},
            {"id": "c", "model": "m", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        )
    )
    + b"data: [DONE]\n\n",
    "openai-responses": b"".join(
        b"data: %b\n\n" % json.dumps(event).encode()
        for event in (
            {"type": "response.created", "response": {"id": "r", "model": "m", "status": "in_progress", "output": []}},
            {"type": "response.output_item.added", "output_index": 0, "item": {"type": "message", "id": "m"}},
            {
                "type": "response.content_part.added", "item_id": "m", "output_index": 0, "content_index": 0,
                "part": {"type": "refusal", "refusal": ""},
            },
            {
                "type": "response.refusal.delta", "item_id": "m", "output_index": 0, "content_index": 0,
                "delta": "I cannot help.",
            },
            {
                "type": "response.completed",
                "response": {
                    "id": "r", "model": "m", "status": "completed",
                    "output": [
                        {
                            "type": "message", "id": "m", "role": "assistant", "status": "completed",
                            "content": [{"type": "refusal", "refusal": "I cannot help."}],
                        }
                    ],
                },
            },
        )
    ),
}  # fmt: skip
TOLD_BY_THE_END = {"anthropic-messages": "stop_details", "gemini": "finishMessage", "vertex": "finishMessage"}
"""APIs without a refusal part, and where they repeat its words."""


@each("target", FORMATS)
@each("source", REFUSAL_STREAMS)
def test_a_refusal_in_words_crosses_in_streams_as_in_whole_answers(source: str, target: str) -> None:
    if source == target:
        return
    translator = dragoman.StreamTranslator(source=source, target=target)
    out = translator.feed(REFUSAL_STREAMS[source]) + translator.close()
    decoder = dragoman.StreamDecoder(target)
    there = dragoman.accumulate(decoder.feed(out) + decoder.close())
    assert "".join(part.text for part in there.messages[0].parts if isinstance(part, ir.Text | ir.Refusal)) == (
        "I cannot help."
    )
    whole = dragoman.encode_response(translator.completion, target)
    again = dragoman.decode_response(whole.json(), target)
    assert [type(part) for part in there.messages[0].parts] == [type(part) for part in again.messages[0].parts]
    assert there.finish is not None
    assert again.finish is not None
    assert there.finish.reason == again.finish.reason
    if target in {"openai-chat", "openai-responses", *TOLD_BY_THE_END}:
        assert there.messages[0].refusal == "I cannot help."
        assert there.finish.reason == "refusal"
    if target in TOLD_BY_THE_END:
        assert TOLD_BY_THE_END[target].encode() in out


def test_a_refusal_after_text_is_distinguished_where_a_stream_joins_them() -> None:
    events: list[ir.AnyEvent] = [
        ir.StreamStart("a", "m"),
        ir.PartStart(0, ir.Text("")),
        ir.PartDelta(0, "Let me see. "),
        ir.PartEnd(0),
        ir.PartStart(1, ir.Refusal("")),
        ir.PartDelta(1, "No."),
        ir.PartEnd(1),
        ir.Finished(ir.Finish("refusal")),
    ]
    for target in TOLD_BY_THE_END:
        encoder, decoder = dragoman.StreamEncoder(target), dragoman.StreamDecoder(target)
        there = dragoman.accumulate(decoder.feed(encoder.encode(events) + encoder.close()) + decoder.close())
        assert there.messages[0].parts == (ir.Text("Let me see. "), ir.Refusal("No."))


@each("target", ["gemini", "vertex", "anthropic-messages"])
def test_why_claude_refused_reaches_apis_that_explain_an_end(target: str) -> None:
    details = {"type": "refusal", "category": "cyber", "explanation": "It asks for an exploit."}
    body: Json = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-opus-4-7", "content": [],
        "stop_reason": "refusal", "stop_sequence": None, "stop_details": details,
        "usage": {"input_tokens": 5, "output_tokens": 0},
    }  # fmt: skip
    there = dragoman.translate_response(body, source="anthropic-messages", target=target)
    if target == "anthropic-messages":
        assert there.body == body
        return
    assert there.body["candidates"][0]["finishMessage"] == "It asks for an exploit."
    assert "$.stop_details.category" in {loss.path for loss in there.losses}


def test_reasoning_before_a_part_without_a_signature_is_not_doubled() -> None:
    """A client of Gemini gets it on the part behind it, which may be a refusal, a document or a search result."""
    parts: tuple[ir.AnyPart, ...] = (
        ir.Refusal("No."),
        ir.SearchResult("https://example.com", "Rain", ("It rains.",)),
        ir.Document("text/plain", text="Rain."),
    )
    for part in parts:
        answer = ir.Completion((ir.Message("assistant", (ir.Reasoning("Hm."), part)),), ir.Finish("stop"))
        there = dragoman.encode_response(answer, "gemini")
        back = dragoman.decode_response(there.json(), "gemini")
        assert [type(one) for one in back.messages[0].parts] == [ir.Reasoning, ir.Text]
