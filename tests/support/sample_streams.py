"""One streamed answer in every format, as a list of events: reasoning, text, a call with its arguments, usage.

The events are written by hand, with the members that the vendor's own service sends.
"""

import json
from typing import Any

from tests.support import converse_streams, gemini_streams, messages_streams

Json = dict[str, Any]

_CALL = {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {}}
_MESSAGES = [
    messages_streams.started(),
    {"type": "ping"},
    *messages_streams.thinking(0, "Hm", ", yes"),
    *messages_streams.text(1, "Let me", " look."),
    messages_streams.start(2, **_CALL),
    messages_streams.delta(2, "input_json_delta", partial_json='{"city":'),
    messages_streams.delta(2, "input_json_delta", partial_json='"Oslo"}'),
    messages_streams.stop(2),
    *messages_streams.ended("tool_use"),
]


def _chat(delta: Json, finish: str | None = None) -> Json:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return _chat_chunk([choice])


def _chat_chunk(choices: list[Json], **more: Any) -> Json:
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": "gpt-5"}
    return {**head, "choices": choices, **more}


def _chat_arguments(text: str, **more: Any) -> Json:
    return {"tool_calls": [{"index": 0, **more, "function": {"arguments": text, **more.get("function", {})}}]}


_CHAT = [
    _chat({"role": "assistant", "content": ""}),
    _chat({"content": "Let me"}),
    _chat({"content": " look."}),
    _chat(_chat_arguments("", id="call_1", type="function", function={"name": "get_weather"})),
    _chat(_chat_arguments('{"city":')),
    _chat(_chat_arguments('"Oslo"}')),
    _chat({}, "tool_calls"),
    _chat_chunk([], usage={"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14}),
]

_GEMINI = [
    gemini_streams.chunk(gemini_streams.thought("Hm")),
    gemini_streams.chunk(gemini_streams.thought(", yes")),
    gemini_streams.chunk(gemini_streams.text("Let me")),
    gemini_streams.chunk(gemini_streams.text(" look.")),
    gemini_streams.chunk(gemini_streams.call("get_weather", {"city": "Oslo"}, signature="c2ln")),
    gemini_streams.chunk(gemini_streams.text(""), finish="STOP")
    | {"usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 5, "totalTokenCount": 14}},
]


def _event(kind: str, **fields: Any) -> Json:
    return {"type": kind, **fields}


def _responses() -> list[Json]:
    head = {"id": "resp_1", "object": "response", "created_at": 1_700_000_000, "model": "gpt-5"}
    part = {"type": "output_text", "text": "", "annotations": []}
    message = {"type": "message", "id": "msg_1", "role": "assistant"}
    call = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "get_weather"}
    text_part = {**part, "text": "Let me look."}
    whole = {**message, "status": "completed", "content": [text_part]}
    called = {**call, "arguments": '{"city":"Oslo"}', "status": "completed"}
    text: Json = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    arguments: Json = {"item_id": "fc_1", "output_index": 1}
    usage = {"input_tokens": 9, "output_tokens": 5, "total_tokens": 14}
    events = [
        _event("response.created", response={**head, "status": "in_progress", "output": []}),
        _event("response.in_progress", response={**head, "status": "in_progress", "output": []}),
        _event("response.output_item.added", output_index=0, item={**message, "status": "in_progress", "content": []}),
        _event("response.content_part.added", **text, part=part),
        _event("response.output_text.delta", **text, delta="Let me", logprobs=[]),
        _event("response.output_text.delta", **text, delta=" look.", logprobs=[]),
        _event("response.output_text.done", **text, text="Let me look.", logprobs=[]),
        _event("response.content_part.done", **text, part=text_part),
        _event("response.output_item.done", output_index=0, item=whole),
        _event("response.output_item.added", output_index=1, item={**call, "arguments": "", "status": "in_progress"}),
        _event("response.function_call_arguments.delta", **arguments, delta='{"city":'),
        _event("response.function_call_arguments.delta", **arguments, delta='"Oslo"}'),
        _event("response.function_call_arguments.done", **arguments, arguments='{"city":"Oslo"}'),
        _event("response.output_item.done", output_index=1, item=called),
        _event(
            "response.completed",
            response={**head, "status": "completed", "output": [whole, called], "usage": usage},
        ),
    ]
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


def _frame(name: str, **payload: Any) -> Json:
    return {name: {**payload, "p": "abc"}}


_CONVERSE = [
    _frame("messageStart", role="assistant"),
    _frame("contentBlockDelta", contentBlockIndex=0, delta={"reasoningContent": {"text": "Hm"}}),
    _frame("contentBlockDelta", contentBlockIndex=0, delta={"reasoningContent": {"text": ", yes"}}),
    _frame("contentBlockDelta", contentBlockIndex=0, delta={"reasoningContent": {"signature": "c2ln"}}),
    _frame("contentBlockStop", contentBlockIndex=0),
    _frame("contentBlockDelta", contentBlockIndex=1, delta={"text": "Let me"}),
    _frame("contentBlockDelta", contentBlockIndex=1, delta={"text": " look."}),
    _frame("contentBlockStop", contentBlockIndex=1),
    _frame("contentBlockStart", contentBlockIndex=2, start={"toolUse": {"toolUseId": "t1", "name": "get_weather"}}),
    _frame("contentBlockDelta", contentBlockIndex=2, delta={"toolUse": {"input": '{"city":'}}),
    _frame("contentBlockDelta", contentBlockIndex=2, delta={"toolUse": {"input": '"Oslo"}'}}),
    _frame("contentBlockStop", contentBlockIndex=2),
    _frame("messageStop", stopReason="tool_use"),
    _frame("metadata", usage={"inputTokens": 9, "outputTokens": 5, "totalTokens": 14}, metrics={"latencyMs": 12}),
]


def _line(message: Json, **more: Any) -> Json:
    head = {"model": "qwen3", "created_at": "2025-01-01T00:00:00Z"}
    return {**head, "message": {"role": "assistant", "content": "", **message}, "done": False, **more}


_OLLAMA = [
    _line({"thinking": "Hm"}),
    _line({"thinking": ", yes"}),
    _line({"content": "Let me"}),
    _line({"content": " look."}),
    _line({"tool_calls": [{"function": {"name": "get_weather", "arguments": {"city": "Oslo"}}}]}),
    _line({}, done=True, done_reason="stop", prompt_eval_count=9, eval_count=5, total_duration=7),
]


def _cohere(kind: str, index: int | None = None, **message: Any) -> Json:
    event: Json = {"type": kind} if index is None else {"type": kind, "index": index}
    return {**event, "delta": {"message": message}} if message else event


_COHERE = [
    {"id": "c1", **_cohere("message-start", role="assistant", content=[], tool_plan="", tool_calls=[], citations=[])},
    _cohere("content-start", 0, content={"type": "thinking", "thinking": ""}),
    _cohere("content-delta", 0, content={"thinking": "Hm"}),
    _cohere("content-delta", 0, content={"thinking": ", yes"}),
    _cohere("content-end", 0),
    _cohere("content-start", 1, content={"type": "text", "text": ""}),
    _cohere("content-delta", 1, content={"text": "Let me"}),
    _cohere("content-delta", 1, content={"text": " look."}),
    _cohere("content-end", 1),
    _cohere(
        "tool-call-start",
        0,
        tool_calls={"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": ""}},
    ),
    _cohere("tool-call-delta", 0, tool_calls={"function": {"arguments": '{"city":'}}),
    _cohere("tool-call-delta", 0, tool_calls={"function": {"arguments": '"Oslo"}'}}),
    _cohere("tool-call-end", 0),
    {
        "type": "message-end",
        "id": "c1",
        "delta": {
            "finish_reason": "TOOL_CALL",
            "usage": {"billed_units": {"input_tokens": 9}, "tokens": {"input_tokens": 9, "output_tokens": 5}},
        },
    },
]


def _interaction(kind: str, **fields: Any) -> Json:
    return {"event_type": kind, **fields, "event_id": "e1"}


_ANSWER = {"id": "int_1", "model": "gemini-3-flash", "object": "interaction"}
_INTERACTIONS = [
    _interaction("interaction.created", interaction={**_ANSWER, "status": "in_progress"}),
    _interaction("interaction.status_update", interaction_id="int_1", status="in_progress"),
    _interaction("step.start", index=0, step={"type": "thought"}),
    _interaction("step.delta", index=0, delta={"type": "thought_summary", "content": {"type": "text", "text": "Hm"}}),
    _interaction("step.delta", index=0, delta={"type": "thought_summary", "content": {"type": "text", "text": "so"}}),
    _interaction("step.delta", index=0, delta={"type": "thought_signature", "signature": "c2ln"}),
    _interaction("step.stop", index=0),
    _interaction("step.start", index=1, step={"type": "model_output"}),
    _interaction("step.delta", index=1, delta={"type": "text", "text": "Let me"}),
    _interaction("step.delta", index=1, delta={"type": "text", "text": " look."}),
    _interaction("step.stop", index=1),
    _interaction("step.start", index=2, step={"type": "function_call", "id": "call_1", "name": "get_weather"}),
    _interaction("step.delta", index=2, delta={"type": "arguments_delta", "arguments": '{"city":'}),
    _interaction("step.delta", index=2, delta={"type": "arguments_delta", "arguments": '"Oslo"}'}),
    _interaction("step.stop", index=2),
    _interaction(
        "interaction.completed",
        interaction={
            **_ANSWER,
            "status": "requires_action",
            "usage": {"total_input_tokens": 9, "total_output_tokens": 5, "total_tokens": 14},
        },
    ),
]

STREAMS: dict[str, list[Json]] = {
    "anthropic-messages": _MESSAGES,
    "gemini": _GEMINI,
    "openai-responses": _responses(),
    "openai-chat": _CHAT,
    "bedrock-converse": _CONVERSE,
    "ollama-chat": _OLLAMA,
    "cohere-chat": _COHERE,
    "gemini-interactions": _INTERACTIONS,
}


def framed(source: str, events: list[Json]) -> bytes:
    """The bytes of a stream with these events."""
    if source == "bedrock-converse":
        return converse_streams.stream(*((name, payload) for event in events for name, payload in event.items()))
    if source == "ollama-chat":
        return b"".join(json.dumps(event).encode() + b"\n" for event in events)
    return b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)
