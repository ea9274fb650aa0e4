"""Accounts: counts that some providers keep apart cross where the target has a place, and are noted otherwise."""

import json
from typing import Any

import pytest

import dragoman
from dragoman import ir
from tests.support import converse_streams
from tests.support.cases import each
from tests.support.formats import FAMILY, FORMATS
from tests.support.promises import promise

pytestmark = promise("core:accounts")

CHAT: dict[str, Any] = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1_763_300_000,
    "model": "gpt-4o-audio-preview",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Hi."}}],
    "usage": {
        "prompt_tokens": 50,
        "completion_tokens": 40,
        "total_tokens": 90,
        "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 30},
        "completion_tokens_details": {
            "reasoning_tokens": 0,
            "audio_tokens": 20,
            "accepted_prediction_tokens": 7,
            "rejected_prediction_tokens": 3,
        },
    },
}
MESSAGE: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-sonnet-4-5",
    "content": [{"type": "text", "text": "Hi."}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {
        "input_tokens": 10,
        "output_tokens": 5,
        "cache_creation_input_tokens": 100,
        "cache_read_input_tokens": 0,
        "cache_creation": {"ephemeral_5m_input_tokens": 40, "ephemeral_1h_input_tokens": 60},
        "server_tool_use": {"web_search_requests": 2, "web_fetch_requests": 1},
    },
}


def test_counts_are_read() -> None:
    usage = dragoman.decode_response(CHAT, "openai-chat").usage
    assert usage is not None
    assert usage.details == {
        "audio_input": 30, "audio_output": 20, "accepted_prediction": 7, "rejected_prediction": 3
    }  # fmt: skip
    usage = dragoman.decode_response(MESSAGE, "anthropic-messages").usage
    assert usage is not None
    assert (usage.details, usage.searches) == ({"cache_written_1h": 60, "web_fetches": 1}, 2)


@pytest.mark.parametrize("value", [0, None, "3", 2.5, -1])
def test_counts_that_say_nothing_or_no_number_are_passed_over(value: Any) -> None:
    details = {"reasoning_tokens": 0, "audio_tokens": value}
    body = {**CHAT, "usage": {**CHAT["usage"], "prompt_tokens_details": {}, "completion_tokens_details": details}}
    usage = dragoman.decode_response(body, "openai-chat").usage
    assert usage is not None
    assert usage.details is None
    assert dragoman.translate_response(body, source="openai-chat", target="openai-chat").body == body


def test_counts_are_written_where_there_is_a_place() -> None:
    details = {"audio_input": 3, "accepted_prediction": 2, "cache_written_1h": 60, "web_fetches": 4}
    usage = ir.Usage(200, 9, cache_written=100, searches=1, details=details)
    answer = ir.Completion((ir.Message("assistant", "Hi."),), ir.Finish("stop"), usage, "x", "m")
    chat = dragoman.encode_response(answer, "openai-chat").body["usage"]
    assert chat["prompt_tokens_details"]["audio_tokens"] == 3
    assert chat["completion_tokens_details"]["accepted_prediction_tokens"] == 2
    message = dragoman.encode_response(answer, "anthropic-messages").body["usage"]
    assert message["cache_creation"] == {"ephemeral_1h_input_tokens": 60, "ephemeral_5m_input_tokens": 40}
    assert message["server_tool_use"] == {"web_search_requests": 1, "web_fetch_requests": 4}


@pytest.mark.parametrize("target", [name for name in FORMATS if name != "openai-chat"])
def test_counts_without_a_place_in_the_target_are_noted(target: str) -> None:
    losses = dragoman.translate_response(CHAT, source="openai-chat", target=target).losses
    noted = [loss.what for loss in losses if loss.severity == "noted" and loss.path == "$.usage"]
    assert any("tokens of a prediction" in what for what in noted)
    # Google's APIs count by modality.
    counts_sound = target in {"gemini", "vertex", "gemini-interactions"}
    assert any("audio tokens" in what for what in noted) is not counts_sound


def test_audio_tokens_of_gemini() -> None:
    counts = [{"modality": "TEXT", "tokenCount": 5}, {"modality": "AUDIO", "tokenCount": 20}]
    body = {
        "candidates": [{"content": {"role": "model", "parts": [{"text": "Hi."}]}, "finishReason": "STOP"}],
        "usageMetadata": {
            "promptTokenCount": 25, "candidatesTokenCount": 2, "totalTokenCount": 27, "promptTokensDetails": counts
        },
    }  # fmt: skip
    there = dragoman.translate_response(body, source="gemini", target="openai-chat")
    assert there.body["usage"]["prompt_tokens_details"]["audio_tokens"] == 20
    assert dragoman.translate_response(body, source="gemini", target="gemini").body == body


def test_more_cached_tokens_than_tokens_are_reported() -> None:
    usage = {**CHAT["usage"], "prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 12}}
    for target in FORMATS:
        losses = dragoman.translate_response({**CHAT, "usage": usage}, source="openai-chat", target=target).losses
        reported = [loss for loss in losses if loss.path == "$.usage.prompt_tokens_details.cached_tokens"]
        assert bool(reported) is (target != "openai-chat")  # its own format gets the counts back as they were


def test_answers_of_ollama_always_have_durations() -> None:
    names = ("total_duration", "load_duration", "prompt_eval_duration", "eval_duration")
    body = dragoman.translate_response(CHAT, source="openai-chat", target="ollama-chat").body
    assert all(body[name] > 0 for name in names)
    encoder = dragoman.StreamEncoder("ollama-chat")
    events: list[ir.AnyEvent] = [
        ir.StreamStart(id="x", model="m"),
        ir.PartStart(0, ir.Text("Hi.")),
        ir.PartEnd(0),
        ir.Finished(ir.Finish("stop")),
    ]
    last = json.loads((encoder.encode(events) + encoder.close()).splitlines()[-1])
    assert all(last[name] > 0 for name in names)
    assert body["eval_count"] / body["eval_duration"]


# ── the tier at which a request was served ──


def every_other(source: str) -> list[str]:
    return [name for name in FORMATS if name != source]


def _sse(*events: dict[str, Any], end: str = "") -> bytes:
    lines = [json.dumps(event) for event in events] + ([end] if end else [])
    return "".join(f"data: {line}\n\n" for line in lines).encode()


def _chunk(delta: dict[str, Any] | None, finish: str | None = None) -> dict[str, Any]:
    return {
        "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_763_300_000, "model": "gpt-5.1",
        "service_tier": "priority", "usage": None,
        "choices": [{"index": 0, "delta": delta or {}, "logprobs": None, "finish_reason": finish}],
    }  # fmt: skip


INTERACTION: dict[str, Any] = {
    "id": "i", "object": "interaction", "model": "gemini-2.5-flash", "created": "2026-11-18T00:00:00Z",
    "service_tier": "flex",
}  # fmt: skip
TIERED: dict[str, dict[str, Any]] = {
    "openai-chat": {**CHAT, "service_tier": "priority"},
    "openai-responses": {
        "id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": "gpt-5.1",
        "service_tier": "priority",
        "output": [
            {
                "type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": "Hi.", "annotations": []}],
            }
        ],
        "usage": {
            "input_tokens": 5, "output_tokens": 2, "total_tokens": 7,
            "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0},
        },
    },
    "anthropic-messages": {**MESSAGE, "usage": {**MESSAGE["usage"], "service_tier": "priority"}},
    "gemini": {
        "candidates": [{"content": {"role": "model", "parts": [{"text": "Hi."}]}, "finishReason": "STOP"}],
        "usageMetadata": {
            "promptTokenCount": 5, "candidatesTokenCount": 2, "totalTokenCount": 7, "serviceTier": "priority",
        },
    },
    "bedrock-converse": {
        "output": {"message": {"role": "assistant", "content": [{"text": "Hi."}]}}, "stopReason": "end_turn",
        "usage": {"inputTokens": 5, "outputTokens": 2, "totalTokens": 7}, "metrics": {"latencyMs": 1},
        "serviceTier": {"type": "priority"},
    },
    "gemini-interactions": {
        "id": "i", "object": "interaction", "model": "gemini-2.5-flash", "status": "completed",
        "service_tier": "priority", "steps": [{"type": "model_output", "content": [{"type": "text", "text": "Hi."}]}],
        "usage": {"total_input_tokens": 5, "total_output_tokens": 2, "total_tokens": 7},
    },
}  # fmt: skip
UNWRITTEN = ("cohere-chat", "ollama-chat")
"""Formats whose answers have no tier."""
WHERE = {
    "openai-chat": "$.service_tier",
    "openai-responses": "$.service_tier",
    "anthropic-messages": "$.usage.service_tier",
    "gemini": "$.usageMetadata.serviceTier",
    "bedrock-converse": "$.serviceTier.type",
    "gemini-interactions": "$.service_tier",
}


@each("target", FORMATS)
@each("source", TIERED)
def test_the_tier_of_an_answer_crosses(source: str, target: str) -> None:
    there = dragoman.translate_response(TIERED[source], source=source, target=target)
    noted = {loss.path for loss in there.losses if "tier" in loss.what}
    if FAMILY[source] != FAMILY[target] and target in UNWRITTEN:
        assert noted == {WHERE[source]}
        return
    assert noted == set()
    usage = dragoman.decode_response(there.json(), target).usage
    assert usage is not None
    assert usage.service_tier == "priority"
    if FAMILY[source] == FAMILY[target]:
        assert there.body == TIERED[source]


def test_a_tier_that_a_target_has_no_word_for_is_noted() -> None:
    flex = {**CHAT, "service_tier": "flex"}
    there = dragoman.translate_response(flex, source="openai-chat", target="anthropic-messages")
    assert "service_tier" not in there.body["usage"]
    assert ("$.service_tier", "noted") in {(loss.path, loss.severity) for loss in there.losses}
    odd = {**CHAT, "service_tier": "tomorrow"}
    assert dragoman.translate_response(odd, source="openai-chat", target="openai-chat").body == odd
    assert "$.service_tier" in {
        loss.path for loss in dragoman.translate_response(odd, source="openai-chat", target="gemini").losses
    }


TIERED_STREAMS: dict[str, bytes] = {
    "openai-chat": _sse(
        _chunk({"role": "assistant", "content": ""}), _chunk({"content": "Hi."}), _chunk({}, "stop"),
        {**_chunk(None), "choices": [], "usage": CHAT["usage"]}, end="[DONE]",
    ),
    "openai-responses": _sse(
        {"type": "response.created", "response": {**TIERED["openai-responses"], "service_tier": "auto", "output": []}},
        {"type": "response.completed", "response": TIERED["openai-responses"]},
    ),
    "anthropic-messages": _sse(
        {"type": "message_start", "message": {**TIERED["anthropic-messages"], "content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi."}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5}},
        {"type": "message_stop"},
    ),
    "gemini": _sse(TIERED["gemini"]),
    "bedrock-converse": converse_streams.stream(
        converse_streams.STARTED, converse_streams.delta(0, text="Hi."), converse_streams.stop(0),
        *converse_streams.ended(serviceTier={"type": "priority"}),
    ),
    "gemini-interactions": _sse(
        {"event_type": "interaction.created", "interaction": {**INTERACTION, "status": "in_progress"}},
        {"event_type": "step.start", "index": 0, "step": {"type": "model_output"}},
        {"event_type": "step.delta", "index": 0, "delta": {"type": "text", "text": "Hi."}},
        {"event_type": "step.stop", "index": 0},
        {"event_type": "interaction.completed", "interaction": TIERED["gemini-interactions"]}, end="[DONE]",
    ),
}  # fmt: skip


def test_every_format_with_a_tier_has_a_stream_here() -> None:
    assert TIERED_STREAMS.keys() == TIERED.keys()


@each("target", FORMATS)
@each("source", TIERED_STREAMS)
def test_the_tier_of_a_streamed_answer_crosses(source: str, target: str) -> None:
    if source == target:
        return
    translator = dragoman.StreamTranslator(source=source, target=target)
    out = translator.feed(TIERED_STREAMS[source]) + translator.close()
    usage = translator.completion.usage
    assert usage is not None
    assert usage.service_tier == "priority"
    noted = [loss for loss in translator.losses if "tier" in loss.what]
    if FAMILY[source] != FAMILY[target] and target in UNWRITTEN:
        assert [loss.severity for loss in noted] == ["noted"]
        return
    assert noted == []
    there = dragoman.StreamDecoder(target)
    usage = dragoman.accumulate(there.feed(out) + there.close()).usage
    assert usage is not None
    assert usage.service_tier == "priority"


@each("target", FORMATS)
def test_keys_of_chat_chunks_that_no_other_format_has_are_reported(target: str) -> None:
    """Perplexity's questions and pages, Azure's filters, the server's fingerprint in the first chunk or the last."""
    keys = {"system_fingerprint": "fp_1", "related_questions": ["Why?"], "service_tier": "tomorrow"}
    first = {**_chunk({"role": "assistant", "content": "Hi."}), **keys, "obfuscation": "xyz"}
    last = {**_chunk({}, "stop"), "search_results": [{"url": "https://a.example", "date": "2026-01-01"}], "p": "ab"}
    last["choices"][0]["content_filter_results"] = {"hate": {"filtered": False}}
    translator = dragoman.StreamTranslator(source="openai-chat", target=target)
    translator.feed(_sse(first, last, {**_chunk(None), "choices": [], "usage": CHAT["usage"]}, end="[DONE]"))
    translator.close()
    if target == "openai-chat":
        return
    reported = {loss.what for loss in translator.losses}
    assert {"system_fingerprint", "related_questions", "search_results", "content_filter_results"} <= reported
    assert not {"obfuscation", "p", "object"} & reported


@each("target", every_other("openai-chat"))
def test_keys_of_chat_deltas_that_no_other_format_has_are_reported(target: str) -> None:
    """Groq's own tools, Azure's judgement of the prompt, and log probabilities of a refusal."""
    judged = {"choices": [], "prompt_filter_results": [{"prompt_index": 0}]}
    likely: dict[str, Any] = {
        "content": None,
        "refusal": [{"token": "No", "logprob": -0.1, "bytes": None, "top_logprobs": []}],
    }
    refused = _chunk({"refusal": "No"})
    refused["choices"][0]["logprobs"] = likely
    ran = {"executed_tools": [{"type": "search", "index": 0, "output": "found"}], "channel": "final"}
    events = (judged, _chunk({"role": "assistant", "reasoning": "Hm."}), _chunk(ran), refused, _chunk({}, "stop"))
    translator = dragoman.StreamTranslator(source="openai-chat", target=target)
    translator.feed(_sse(*events, end="[DONE]"))
    translator.close()
    reported = {loss.what for loss in translator.losses if loss.severity in {"dropped", "noted"}}
    assert {"executed_tools", "channel", "prompt_filter_results", "logprobs"} <= reported
    assert not {"role", "refusal", "reasoning", "content", "message"} & reported
    assert translator.completion.messages[0].refusal == "No"


USAGE_AT = {"gemini": "usageMetadata"}


@each("target", FORMATS)
@each("source", TIERED)
def test_members_of_a_usage_object_that_nothing_models_are_noted(source: str, target: str) -> None:
    """OpenRouter's cost, Groq's times, Perplexity's searches, whatever tomorrow's servers count."""
    if FAMILY[source] == FAMILY[target]:
        return
    place = USAGE_AT.get(source, "usage")
    body = json.loads(json.dumps(TIERED[source]))
    body[place] |= {"cost": 0.25, "counted_tomorrow": {"a": 1}, "unused": None}
    noted = {loss.path for loss in dragoman.translate_response(body, source=source, target=target).losses}
    assert {f"$.{place}.cost", f"$.{place}.counted_tomorrow"} <= noted
    assert f"$.{place}.unused" not in noted


@each("target", FORMATS)
@each("source", FORMATS)
def test_counts_that_cross_are_not_reported(source: str, target: str) -> None:
    usage = ir.Usage(20, 9, 4, reasoning=3)
    answer = ir.Completion((ir.Message("assistant", "Hi."),), ir.Finish("stop"), usage, "x", "m", 5)
    body = dragoman.encode_response(answer, source).body
    losses = dragoman.translate_response(body, source=source, target=target).losses
    assert [loss for loss in losses if "reports it" in str(loss)] == []


@each("target", every_other("openai-chat"))
def test_the_same_for_a_stream(target: str) -> None:
    last = {**_chunk(None), "choices": [], "usage": {**CHAT["usage"], "cost": 0.25, "queue_time": 0.1}}
    translator = dragoman.StreamTranslator(source="openai-chat", target=target)
    translator.feed(_sse(_chunk({"content": "Hi."}), _chunk({}, "stop"), last, end="[DONE]"))
    translator.close()
    assert {"cost", "queue_time"} <= {loss.what for loss in translator.losses if loss.severity == "noted"}


def test_what_was_written_to_a_cache_for_an_hour_crosses_between_anthropic_and_bedrock() -> None:
    there = dragoman.translate_response(MESSAGE, source="anthropic-messages", target="bedrock-converse")
    assert there.body["usage"]["cacheDetails"] == [{"ttl": "5m", "inputTokens": 40}, {"ttl": "1h", "inputTokens": 60}]
    back = dragoman.translate_response(there.json(), source="bedrock-converse", target="anthropic-messages")
    assert back.body["usage"]["cache_creation"] == MESSAGE["usage"]["cache_creation"]


def test_durations_of_ollama_are_noted_elsewhere() -> None:
    body = {
        "model": "qwen3", "created_at": "2026-11-18T00:00:00Z", "message": {"role": "assistant", "content": "Hi."},
        "done": True, "done_reason": "stop", "total_duration": 9, "load_duration": 1, "prompt_eval_count": 3,
        "prompt_eval_duration": 4, "eval_count": 2, "eval_duration": 4,
    }  # fmt: skip
    durations = {f"$.{name}" for name in ("total_duration", "load_duration", "prompt_eval_duration", "eval_duration")}
    for target in FORMATS:
        encoded = dragoman.translate_response(body, source="ollama-chat", target=target)
        noted = {loss.path for loss in encoded.losses if loss.severity == "noted"}
        assert durations <= noted if target != "ollama-chat" else encoded.body == body


def test_lifetimes_of_cached_tokens_cross_as_compatible_servers_spell_them() -> None:
    usage = {"input_tokens": 5, "output_tokens": 5, "cache_creation_input_tokens": 50, "cache_read_input_tokens": 0}
    lifetimes = {"ephemeral_1h_input_tokens": 20, "ephemeral_5m_input_tokens": 30}
    body = {**MESSAGE, "usage": {**usage, "cache_creation": lifetimes}}
    chat = dragoman.translate_response(body, source="anthropic-messages", target="openai-chat")
    assert chat.body["usage"]["prompt_tokens_details"]["cache_creation_token_details"] == lifetimes
    back = dragoman.translate_response(chat.body, source="openai-chat", target="anthropic-messages")
    assert back.body["usage"]["cache_creation"] == lifetimes
    odd: Any
    for odd in (None, 5, [], {"ephemeral_1h_input_tokens": "x"}):
        details = {"cached_tokens": 1, "cache_creation_token_details": odd}
        read = dragoman.decode_response(
            {**CHAT, "usage": {**CHAT["usage"], "prompt_tokens_details": details}}, "openai-chat"
        )
        assert "cache_written_1h" not in ((read.usage and read.usage.details) or {})
