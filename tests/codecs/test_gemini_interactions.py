"""The Interactions API: its traps, one test or more for each."""

import json
from typing import Any

import pytest
from msgspec import structs

import dragoman
from dragoman import ir
from dragoman.codecs.google_signatures import PLACEHOLDER
from dragoman.codecs.signature_tags import in_base64, make_tag
from dragoman.errors import DecodeError
from dragoman.sim.rules import gemini_interactions as judge
from tests.support.cases import each
from tests.support.interactions_bodies import REQUESTS, RESPONSES

FORMAT = "gemini-interactions"
MODEL = "gemini-3-flash-preview"
QUESTION = {"type": "user_input", "content": [{"type": "text", "text": "Weather?"}]}
CALL = {"type": "function_call", "id": "zggxzq8r", "name": "f", "arguments": {"n": 1}}
RESULT = {"type": "function_result", "call_id": "zggxzq8r", "name": "f", "result": "sunny"}
TOOL = {"type": "function", "name": "f", "parameters": {"type": "object"}}


def body(*steps: Any, **more: Any) -> dict[str, Any]:
    return {"model": MODEL, "input": list(steps), "tools": [TOOL], "store": False, **more}


def answer(*steps: Any, status: str = "completed", **more: Any) -> dict[str, Any]:
    return {"id": "v1_a", "object": "interaction", "status": status, "model": MODEL, "steps": list(steps), **more}


def to(target: str, given: Any, source: str = FORMAT) -> dragoman.Encoded:
    return dragoman.translate_request(given, source=source, target=target, model=MODEL)


def losses(encoded: dragoman.Encoded) -> dict[str, str]:
    return {loss.path: loss.severity for loss in encoded.losses}


def sse(*events: Any, end: bool = True) -> bytes:
    lines = [f"event: {event['event_type']}\ndata: {json.dumps(event)}\n\n" for event in events]
    return ("".join(lines) + ("event: done\ndata: [DONE]\n\n" if end else "")).encode()


CREATED = {"event_type": "interaction.created", "interaction": {"id": "v1_a", "status": "in_progress", "model": MODEL}}
COMPLETED = {
    "event_type": "interaction.completed",
    "interaction": {"id": "v1_a", "status": "completed", "usage": {"total_input_tokens": 1, "total_output_tokens": 2}},
}


def start(index: int, **step: Any) -> dict[str, Any]:
    return {"event_type": "step.start", "index": index, "step": step}


def delta(index: int, kind: str, **fields: Any) -> dict[str, Any]:
    return {"event_type": "step.delta", "index": index, "delta": {"type": kind, **fields}}


def stop(index: int) -> dict[str, Any]:
    return {"event_type": "step.stop", "index": index}


def completion_of(data: bytes, size: int | None = None) -> ir.Completion:
    decoder = dragoman.StreamDecoder(FORMAT)
    pieces = [data] if size is None else [data[at : at + size] for at in range(0, len(data), size)]
    events = [event for piece in pieces for event in decoder.feed(piece)]
    return dragoman.accumulate([*events, *decoder.close()])


# ── signatures (traps 1, 2, 36) ───────────────────────────────────────────────────────────────────────────────


def test_a_signature_is_on_the_thought_here_and_on_the_call_in_generate_content() -> None:
    thought = {"type": "thought", "signature": "c2ln", "summary": [{"type": "text", "text": "hm"}]}
    given = body(QUESTION, thought, CALL, RESULT)
    there = to("gemini", given)
    parts = there.body["contents"][1]["parts"]
    assert [part.get("thoughtSignature") for part in parts] == [None, "c2ln"]
    back = to(FORMAT, there.json(), "gemini").body["input"]
    assert back[1:3] == [thought, {key: CALL[key] for key in ("type", "name", "id", "arguments")}]


def test_only_the_first_of_several_calls_is_signed() -> None:
    other = {**CALL, "id": "other123"}
    request = dragoman.decode_request(body(QUESTION, {"type": "thought", "signature": "c2ln"}, CALL, other), FORMAT)
    first, second = request.messages[1].tool_calls
    assert (first.signature, second.signature) == (ir.Signature("google", "c2ln"), None)


def _output(*texts: str) -> dict[str, Any]:
    return {"type": "model_output", "content": [{"type": "text", "text": text} for text in texts]}


_THOUGHT = {"type": "thought", "signature": "EtkBAdHt"}
_THOUGHTS = {
    "bare": _THOUGHT,
    "with a summary": {**_THOUGHT, "summary": [{"type": "text", "text": "Hm."}]},
    "of another family": {
        "type": "thought",
        "signature": in_base64(make_tag("next", ir.Signature("anthropic", "abcd"))),
    },
    "unsigned": {"type": "thought", "signature": ""},
}
_BLANK_STEPS = {
    "alone": [_output("")],
    "a string": [{"type": "model_output", "content": ""}],
    "before a text of its step": [_output("", "x")],
    "before another step": [_output(""), _output("x")],
    "before another thought": [_output(""), _THOUGHT, _output("x")],
    "before a call": [_output(""), CALL, RESULT],
}


@each("steps", _BLANK_STEPS.values(), ids=_BLANK_STEPS)
@each("thought", _THOUGHTS.values(), ids=_THOUGHTS)
def test_an_empty_text_after_a_thought_keeps_its_step(thought: Any, steps: list[Any]) -> None:
    given = body(QUESTION, thought, *steps, QUESTION)
    again = dragoman.encode_request(dragoman.decode_request(given, FORMAT), FORMAT)
    assert again.body == given
    assert again.losses == ()


def test_losses_after_a_signed_empty_text_name_their_step() -> None:
    private = {**CALL, "later": 1}
    reported = losses(to("openai-chat", body(QUESTION, _THOUGHT, _output(""), private, RESULT, QUESTION)))
    assert "$.input[3].later" in reported


def test_in_a_stream_the_signature_comes_as_a_delta_of_the_thought() -> None:
    data = sse(
        CREATED,
        start(0, type="thought"), delta(0, "thought_signature", signature="c2ln"), stop(0),
        start(1, **{**CALL, "arguments": {}, "signature": ""}),
        delta(1, "arguments_delta", arguments='{"n":1}'), stop(1),
        COMPLETED,
    )  # fmt: skip
    (call,) = completion_of(data).tool_calls
    assert call.signature == ir.Signature("google", "c2ln")


def test_an_empty_signature_of_a_call_is_ignored() -> None:
    given = body(QUESTION, {"type": "thought", "signature": "c2ln"}, {**CALL, "signature": ""}, RESULT)
    assert to(FORMAT, given).body == given
    (call,) = (
        dragoman.decode_request({**given, "input": [QUESTION, {**CALL, "signature": ""}]}, FORMAT)
        .messages[1]
        .tool_calls
    )
    assert call.signature is None


def test_a_filled_signature_on_a_call_returns_there() -> None:
    given = body(QUESTION, {**CALL, "signature": "b24tY2FsbA=="}, RESULT)
    assert to(FORMAT, given).body == given


def test_foreign_history_gets_a_placeholder_on_a_thought_before_the_first_call_of_each_turn() -> None:
    chat = {
        "model": "m",
        "messages": [
            {"role": "user", "content": "go"},
            {"role": "assistant", "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}},
                {"id": "c2", "type": "function", "function": {"name": "f", "arguments": "{}"}},
            ]},
            {"role": "tool", "tool_call_id": "c1", "content": "1"},
            {"role": "tool", "tool_call_id": "c2", "content": "2"},
        ],
        "tools": [{"type": "function", "function": {"name": "f"}}],
    }  # fmt: skip
    encoded = to(FORMAT, chat, "openai-chat")
    kinds = [step["type"] for step in encoded.body["input"]]
    assert kinds == ["user_input", "thought", "function_call", "function_call", "function_result", "function_result"]
    assert encoded.body["input"][1] == {"type": "thought", "signature": PLACEHOLDER}
    assert judge.check_request(encoded.body) == ()
    bare = {**encoded.body, "input": [step for step in encoded.body["input"] if step["type"] != "thought"]}
    assert judge.check_request(bare)


def test_a_placeholder_is_not_a_signature_for_others() -> None:
    given = body(QUESTION, {"type": "thought", "signature": PLACEHOLDER}, CALL, RESULT)
    assert to(FORMAT, given).body == given
    assert PLACEHOLDER not in to("anthropic-messages", given).json().decode()


# ── streams (traps 3, 4, 26, 27, 29) ──────────────────────────────────────────────────────────────────────────


def test_the_last_event_has_no_steps_and_the_answer_is_whole_nevertheless() -> None:
    data = sse(
        CREATED,
        start(0, type="thought"), delta(0, "thought_summary", content={"type": "text", "text": "hm"}), stop(0),
        start(1, type="model_output"), delta(1, "text", text="Zü"), delta(1, "text", text="rich"), stop(1),
        COMPLETED,
    )  # fmt: skip
    whole = completion_of(data)
    assert (whole.reasoning, whole.text, whole.finish_reason) == ("hm", "Zürich", "stop")
    assert whole.usage is not None
    assert whole.usage.output == 2
    assert all(completion_of(data, size) == whole for size in (1, 7, 100))


@pytest.mark.parametrize(
    "deltas",
    [
        [delta(0, "arguments_delta", arguments='{"n"'), delta(0, "arguments_delta", arguments=":1}")],
        [delta(0, "arguments", partial_arguments='{"n":1}')],
    ],
)
def test_arguments_are_fragments_of_text_and_the_empty_object_at_the_start_says_nothing(deltas: list[Any]) -> None:
    data = sse(CREATED, start(0, **{**CALL, "arguments": {}}), *deltas, stop(0), COMPLETED)
    (call,) = completion_of(data).tool_calls
    assert call.arguments == {"n": 1}


def test_arguments_that_name_the_thought_belong_to_the_open_call() -> None:
    data = sse(
        CREATED, start(0, type="thought"), stop(0), start(1, **{**CALL, "arguments": {}}),
        delta(0, "arguments_delta", arguments='{"n":1}'), stop(1), COMPLETED,
    )  # fmt: skip
    assert completion_of(data).tool_calls[0].arguments == {"n": 1}


def test_a_call_without_arguments_has_an_empty_object() -> None:
    assert (
        completion_of(sse(CREATED, start(0, **{**CALL, "arguments": {}}), stop(0), COMPLETED)).tool_calls[0].arguments
        == {}
    )


def test_what_a_step_says_at_its_start_is_its_beginning() -> None:
    data = sse(
        CREATED,
        start(0, type="thought", summary=[{"type": "text", "text": "h"}], signature=""),
        delta(0, "thought_summary", content={"type": "text", "text": "m"}), stop(0),
        start(1, type="model_output", content=[{"type": "text", "text": "Be"}]), delta(1, "text", text="rn"), stop(1),
        COMPLETED,
    )  # fmt: skip
    assert (completion_of(data).reasoning, completion_of(data).text) == ("hm", "Bern")


def test_unknown_events_deltas_and_steps_are_not_errors() -> None:
    data = sse(
        CREATED, {"event_type": "interaction.thought_of", "x": 1}, {"event_type": "weather", "x": 1},
        start(0, type="hologram", depth=3), delta(0, "hologram", light="x"), stop(0),
        start(1, type="model_output"), delta(1, "scent", of="rose"), delta(1, "text", text="hi"), stop(1), COMPLETED,
    )  # fmt: skip
    whole = completion_of(data)
    assert whole.text == "hi"
    (opaque,) = [part for part in whole.messages[0].parts if isinstance(part, ir.Opaque)]
    assert opaque.block == {"type": "hologram", "depth": 3, "light": "x"}


def test_a_stream_without_its_last_event_is_an_error() -> None:
    decoder = dragoman.StreamDecoder(FORMAT)
    events = [*decoder.feed(sse(CREATED, start(0, type="model_output"), delta(0, "text", text="a"), end=False))]
    with pytest.raises(dragoman.StreamError):
        dragoman.accumulate([*events, *decoder.close()])


def test_an_error_event_fails_the_stream_with_a_word_for_its_code() -> None:
    failed = {"event_type": "error", "error": {"code": "invalid_request", "message": "no"}}
    with pytest.raises(dragoman.StreamError) as raised:
        completion_of(sse(CREATED, failed))
    assert (raised.value.failure.kind, raised.value.failure.code) == ("invalid_request", "invalid_request")


def test_events_have_ids_only_where_the_interaction_is_kept() -> None:
    events: list[ir.AnyEvent] = [
        ir.StreamStart("v1_a", "m"), ir.PartStart(0, ir.Text("")), ir.PartDelta(0, "hi"), ir.PartEnd(0),
        ir.Finished(ir.Finish("stop")),
    ]  # fmt: skip
    kept, lost = dragoman.StreamEncoder(FORMAT, stores=True), dragoman.StreamEncoder(FORMAT, stores=False)
    ids = [json.loads(line[6:]).get("event_id") for line in kept.encode(events).split(b"\n") if line[:7] == b"data: {"]
    assert ids == [f"e{number}" for number in range(1, len(ids) + 1)]
    written = lost.encode(events)
    assert b"event_id" not in written
    assert b"v1_a" not in written


# ── statuses (traps 5, 24, 28, 30) ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("status", ["completed", "requires_action"])
def test_calls_are_found_among_the_steps_whatever_the_status(status: str) -> None:
    assert dragoman.decode_response(answer(CALL, status=status), FORMAT).finish_reason == "tool_calls"
    output = {"type": "model_output", "content": [{"type": "text", "text": "hi"}]}
    assert dragoman.decode_response(answer(output), FORMAT).finish_reason == "stop"


@pytest.mark.parametrize(
    ("status", "reason"),
    [("incomplete", "length"), ("budget_exceeded", "length"), ("failed", "error"), ("cancelled", "error"),
     ("requires_continuation", "pause"), ("in_progress", "error"), ("queued", "error"), ("tired", "unknown")],
)  # fmt: skip
def test_every_status(status: str, reason: str) -> None:
    given = answer(status=status)
    completion = dragoman.decode_response(given, FORMAT)
    assert completion.finish_reason == reason
    assert dragoman.encode_response(completion, FORMAT).body == given


def test_a_filter_is_degraded_and_reported() -> None:
    completion = ir.Completion((ir.Message("assistant", "I"),), ir.Finish("content_filter"), ir.Usage(), "r", "m", 1)
    encoded = dragoman.encode_response(completion, FORMAT)
    assert encoded.body["status"] == "incomplete"
    assert [loss.severity for loss in encoded.losses] == ["degraded"]


def test_an_output_may_hold_an_error_and_nothing_else() -> None:
    given = answer({"type": "model_output", "error": {"code": 13, "message": "oops"}}, status="failed")
    assert dragoman.encode_response(dragoman.decode_response(given, FORMAT), FORMAT).body == given


def test_the_errors_of_a_failed_answer_explain_it() -> None:
    given = answer(status="failed", errors=[{"code": "internal", "message": "out of luck"}])
    finish = dragoman.decode_response(given, FORMAT).finish
    assert finish is not None
    assert finish.explanation == "out of luck"
    assert dragoman.encode_response(dragoman.decode_response(given, FORMAT), FORMAT).body == given


# ── order, state, input (traps 6 to 10, 14, 31, 33) ───────────────────────────────────────────────────────────


def test_steps_of_a_search_behind_the_text_stay_there() -> None:
    given = RESPONSES["grounded, not stored"]
    completion = dragoman.decode_response(given, FORMAT)
    kinds = [type(part).__name__ for part in completion.messages[0].parts]
    assert kinds == ["Text", "ServerToolCall", "ServerToolResult"]
    assert dragoman.encode_response(completion, FORMAT).body == given


def test_nothing_is_stored_that_another_api_would_not_store() -> None:
    chat = {"model": "m", "messages": [{"role": "user", "content": "go"}]}
    assert to(FORMAT, chat, "openai-chat").body["store"] is False
    assert to(FORMAT, {**chat, "store": True}, "openai-chat").body["store"] is True
    assert "store" not in to(FORMAT, {"model": MODEL, "input": "hi"}).body


def test_state_is_a_loss_elsewhere() -> None:
    found = losses(to("openai-chat", REQUESTS["state"]))
    assert found["$.previous_interaction_id"] == "dropped"


@pytest.mark.parametrize(
    "given",
    ["Hi", {"type": "text", "text": "Hi"}, [{"type": "text", "text": "Hi"}], [{"type": "user_input", "content": "Hi"}],
     [{"type": "user_input", "content": [{"type": "text", "text": "Hi"}]}]],
)  # fmt: skip
def test_all_shapes_of_the_input_are_one_user_turn(given: Any) -> None:
    request = {"model": MODEL, "input": given}
    assert [(one.role, one.text) for one in dragoman.decode_request(request, FORMAT).messages] == [("user", "Hi")]
    assert to(FORMAT, request).body == request
    steps = dragoman.encode_request(dragoman.decode_request(to("openai-chat", request).json(), "openai-chat"), FORMAT)
    assert steps.body["input"] == [{"type": "user_input", "content": [{"type": "text", "text": "Hi"}]}]


def test_a_bare_step_is_read() -> None:
    request = {"model": MODEL, "input": RESULT, "previous_interaction_id": "v1_a"}
    assert dragoman.decode_request(request, FORMAT).messages[0].tool_results[0].value == "sunny"
    assert to(FORMAT, request).body == request


def test_steps_and_contents_do_not_mix() -> None:
    with pytest.raises(DecodeError, match=r"\$\.input\[1\]"):
        dragoman.decode_request({"model": MODEL, "input": [QUESTION, {"type": "text", "text": "Hi"}]}, FORMAT)


def test_a_result_among_the_contents_of_the_user_is_a_result() -> None:
    inside = {"type": "user_input", "content": [RESULT, {"type": "text", "text": "and now?"}]}
    given = body(QUESTION, CALL, inside)
    messages = dragoman.decode_request(given, FORMAT).messages
    assert [message.role for message in messages] == ["user", "assistant", "tool", "user"]
    assert to(FORMAT, given).body == given
    sent = dragoman.encode_request(dragoman.decode_request(to("openai-chat", given).json(), "openai-chat"), FORMAT)
    assert [step["type"] for step in sent.body["input"]][-2:] == ["function_result", "user_input"]


def test_the_timeline_of_a_get_keeps_the_users_steps_apart_from_the_answer() -> None:
    given = answer(QUESTION, {"type": "model_output", "content": [{"type": "text", "text": "hi"}]})
    completion = dragoman.decode_response(given, FORMAT)
    assert completion.text == "hi"
    assert dragoman.encode_response(completion, FORMAT).body == given


def test_outputs_of_the_old_schema_are_one_output() -> None:
    given = {"id": "v1_a", "status": "completed", "outputs": [{"type": "text", "text": "la la"}]}
    completion = dragoman.decode_response(given, FORMAT)
    assert completion.text == "la la"
    assert dragoman.encode_response(completion, FORMAT).body == given


# ── results (traps 11 to 13) ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("result", "kind", "value"),
    [("", "text", ""), ({}, "data", {}), ({"output": "x"}, "data", {"output": "x"}), ("x", "text", "x")],
)
def test_results_are_not_wrapped_and_not_unwrapped(result: Any, kind: str, value: Any) -> None:
    given = body(QUESTION, CALL, {**RESULT, "result": result})
    (found,) = dragoman.decode_request(given, FORMAT).messages[2].tool_results
    assert (found.kind, found.value) == (kind, value)
    assert to(FORMAT, given).body == given


def test_a_list_is_contents_and_other_lists_are_sent_as_text() -> None:
    given = body(QUESTION, CALL, {**RESULT, "result": [{"type": "text", "text": "sunny"}]})
    (found,) = dragoman.decode_request(given, FORMAT).messages[2].tool_results
    assert (found.kind, found.parts) == ("multimodal", (ir.Text("sunny"),))
    result = ir.ToolResult("zggxzq8r", "f", "data", [1, 2])
    turns = (ir.Message("user", "go"), ir.Message("assistant", (ir.ToolCall("zggxzq8r", "f", {}),)))
    request = ir.Request("gemini-2.5-flash", (*turns, ir.Message("tool", (result,))), (ir.ToolDefinition("f"),))
    encoded = dragoman.encode_request(request, FORMAT)
    assert encoded.body["input"][-1]["result"] == "[1,2]"
    assert [loss.severity for loss in encoded.losses] == ["degraded"]


def test_an_error_is_a_flag() -> None:
    given = body(QUESTION, CALL, {**RESULT, "is_error": True})
    (found,) = dragoman.decode_request(given, FORMAT).messages[2].tool_results
    assert (found.kind, found.value) == ("error", "sunny")
    assert to("gemini", given).body["contents"][2]["parts"][0]["functionResponse"]["response"] == {"error": "sunny"}


# ── settings (traps 15 to 18, 23, 34, 35) ─────────────────────────────────────────────────────────────────────

GENERATE = {
    "contents": [{"role": "user", "parts": [{"text": "Hi"}]}],
    "safetySettings": [{"category": "HARM_CATEGORY_HATE_SPEECH", "threshold": "BLOCK_ONLY_HIGH"}],
    "tools": [{"functionDeclarations": [{"name": "f"}]}, {"googleSearch": {}}],
    "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["f"]}},
    "generationConfig": {"thinkingConfig": {"thinkingLevel": "LOW"}, "topK": 4, "candidateCount": 1, "seed": 7},
}


def test_words_of_generate_content_are_lowered_and_renamed() -> None:
    encoded = to(FORMAT, GENERATE, "gemini")
    sent = encoded.body
    assert sent["safety_settings"] == [{"type": "hate_speech", "threshold": "block_only_high"}]
    assert sent["generation_config"]["thinking_level"] == "low"
    assert sent["generation_config"]["tool_choice"] == {"allowed_tools": {"mode": "any", "tools": ["f"]}}
    assert {tool["type"] for tool in sent["tools"]} == {"function", "google_search"}
    assert losses(encoded) == {"$.generationConfig.topK": "dropped"}
    assert judge.check_request(sent) == ()
    back = to("gemini", sent).body
    assert back["safetySettings"] == GENERATE["safetySettings"]


def test_the_highest_level_crosses_only_between_apis_of_google() -> None:
    asked = {**GENERATE, "generationConfig": {"thinkingConfig": {"thinkingLevel": "XHIGH"}}}
    own = to(FORMAT, asked, "gemini")
    assert own.body["generation_config"]["thinking_level"] == "xhigh"
    assert losses(own) == {}
    assert judge.check_request(own.body) == ()
    assert to("gemini", own.body).body["generationConfig"]["thinkingConfig"]["thinkingLevel"] == "XHIGH"
    chat = {"model": MODEL, "messages": [{"role": "user", "content": "go"}], "reasoning_effort": "xhigh"}
    foreign = to(FORMAT, chat, "openai-chat")
    assert foreign.body["generation_config"]["thinking_level"] == "high"
    assert losses(foreign) == {"$.reasoning_effort": "degraded"}


def test_a_body_of_generate_content_is_refused() -> None:
    assert judge.check_request(GENERATE | {"model": MODEL, "input": "hi"})


def test_what_the_api_does_not_have_is_lost_and_reported() -> None:
    chat = {
        "model": "m", "messages": [{"role": "user", "content": "go"}], "n": 2, "temperature": 0.5, "top_p": 0.5,
        "presence_penalty": 0.1,
    }  # fmt: skip
    encoded = to(FORMAT, chat, "openai-chat")
    assert {"$.n", "$.temperature", "$.top_p", "$.presence_penalty"} <= losses(encoded).keys()
    assert "generation_config" not in encoded.body


def test_a_budget_becomes_a_level() -> None:
    thinking = {"type": "enabled", "budget_tokens": 2000}
    claude = {"model": "m", "max_tokens": 4000, "messages": [{"role": "user", "content": "go"}], "thinking": thinking}
    assert to(FORMAT, claude, "anthropic-messages").body["generation_config"]["thinking_level"] == "low"


def test_a_thought_without_a_summary_is_a_thought() -> None:
    completion = dragoman.decode_response(RESPONSES["text"], FORMAT)
    assert completion.reasoning == ""
    part = completion.messages[0].parts[0]
    assert isinstance(part, ir.Text)
    assert part.signature is not None


def test_the_answer_format_is_tagged() -> None:
    request = ir.Request(MODEL, (ir.Message("user", "hi"),), output=ir.StructuredOutput("schema", {"type": "object"}))
    form = {"type": "text", "mime_type": "application/json", "schema": {"type": "object"}}
    assert dragoman.encode_request(request, FORMAT).body["response_format"] == form
    several = {"model": MODEL, "input": "hi", "response_format": [form, {"type": "image"}]}
    decoded = dragoman.decode_request(several, FORMAT)
    assert decoded.output is not None
    assert decoded.output.kind == "schema"
    assert to(FORMAT, several).body == several


def test_a_tuple_of_schemas_is_rewritten() -> None:
    schema = {
        "type": "object",
        "properties": {"p": {"type": "array", "items": [{"type": "string"}, {"type": "number"}]}},
    }
    request = ir.Request(MODEL, (ir.Message("user", "hi"),), (ir.ToolDefinition("f", None, schema),))
    encoded = dragoman.encode_request(request, FORMAT)
    sent = encoded.body["tools"][0]["parameters"]["properties"]["p"]
    assert sent["items"] == {"anyOf": [{"type": "string"}, {"type": "number"}]}
    assert (sent["minItems"], sent["maxItems"]) == (2, 2)
    assert [loss.severity for loss in encoded.losses] == ["degraded"]
    assert judge.check_request(encoded.body) == ()
    assert judge.check_request({**encoded.body, "tools": [{**TOOL, "parameters": schema}]})


def test_the_choice_lies_in_the_generation_config() -> None:
    assert judge.check_request({"model": MODEL, "input": "hi", "tools": [TOOL], "tool_choice": "any"})
    assert not judge.check_request(
        {"model": MODEL, "input": "hi", "tools": [TOOL], "generation_config": {"tool_choice": "any"}}
    )


# ── usage, SDK keys, citations, media (traps 19 to 22) ────────────────────────────────────────────────────────


def test_thoughts_and_tools_are_counted_apart_and_added() -> None:
    usage = dragoman.decode_response(RESPONSES["text"], FORMAT).usage
    assert usage is not None
    assert (usage.input, usage.output, usage.reasoning, usage.total) == (151, 1222, 249, 1373)


def test_what_the_sdk_adds_is_not_part_of_the_answer() -> None:
    given = {**RESPONSES["text"], "output_text": "Hi 👋"}
    assert (
        dragoman.translate_response(given, source=FORMAT, target="openai-chat").body["choices"][0]["message"]["content"]
        == "Hi 👋"
    )


def test_offsets_of_citations_are_bytes() -> None:
    completion = dragoman.decode_response(RESPONSES["grounded, not stored"], FORMAT)
    text = completion.messages[0].parts[0]
    assert isinstance(text, ir.Text)
    (citation,) = text.citations
    assert text.text[citation.start : citation.end] == "Zürich"
    given = {**RESPONSES["grounded, not stored"], "steps": RESPONSES["grounded, not stored"]["steps"][1:]}
    there = dragoman.translate_response(given, source=FORMAT, target="openai-chat").body
    note = there["choices"][0]["message"]["annotations"][0]["url_citation"]
    assert (note["start_index"], note["end_index"]) == (0, 6)
    back = dragoman.translate_response(there, source="openai-chat", target=FORMAT).body
    outputs = [step for step in back["steps"] if step["type"] == "model_output"]
    assert outputs[0]["content"][0]["annotations"][0]["end_index"] == 7


@pytest.mark.parametrize(
    ("mime", "kind"),
    [("image/png", "image"), ("audio/wav", "audio"), ("video/mp4", "video"), ("application/pdf", "document"),
     ("text/markdown", "document")],
)  # fmt: skip
def test_the_type_of_a_content_follows_from_its_mime_type(mime: str, kind: str) -> None:
    part = {"inlineData": {"mimeType": mime, "data": "AAAA"}}
    sent = to(FORMAT, {"contents": [{"role": "user", "parts": [part]}]}, "gemini").body
    assert sent["input"][0]["content"] == [{"type": kind, "data": "AAAA", "mime_type": mime}]


# ── errors and addresses (traps 25, 32) ───────────────────────────────────────────────────────────────────────


def test_an_error_may_come_as_an_event() -> None:
    error = {"error": {"code": 400, "message": "no", "status": "INVALID_ARGUMENT"}}
    framed = f"event: error\ndata: {json.dumps(error)}\n\n".encode()
    failure = dragoman.decode_error(framed, FORMAT, status=400)
    assert (failure.kind, failure.message) == ("invalid_request", "no")
    assert dragoman.decode_error(json.dumps(error), FORMAT, status=400).kind == "invalid_request"


def test_the_two_services_have_paths_of_their_own() -> None:
    request = ir.Request(MODEL, (ir.Message("user", "hi"),))
    assert dragoman.encode_request(request, FORMAT).path == "/v1beta/interactions"
    assert dragoman.encode_request(request, "vertex-interactions").path == "/v1beta1/interactions"


@pytest.mark.parametrize("name", ["code", "search"])
def test_what_google_ran_crosses_between_its_two_apis(name: str) -> None:
    given = REQUESTS["tools that Google ran"]
    there = to("gemini", given)
    back = to(FORMAT, there.json(), "gemini").body["input"]
    wanted = [step for step in given["input"] if step["type"].startswith("code_" if name == "code" else "google_")]
    found = [step for step in back if step["type"].startswith("code_" if name == "code" else "google_")]
    assert [{key: value for key, value in step.items() if key != "is_error"} for step in found] == [
        {key: value for key, value in step.items() if key != "is_error"} for step in wanted
    ]


@pytest.mark.parametrize("mode", ["on", "adaptive"])
def test_thinking_that_is_switched_on_elsewhere_is_shown(mode: Any) -> None:
    """Other APIs return it; here it is returned on request. An API of Google's own has said what it wants to see."""
    request = ir.Request("gemini-3-pro", (ir.Message("user", "Hi"),), reasoning=ir.ReasoningSettings(mode))
    encoded = dragoman.encode_request(request, "gemini-interactions")
    assert encoded.body["generation_config"] == {"thinking_summaries": "auto"}
    own = structs.replace(request, origin="google")
    assert "generation_config" not in dragoman.encode_request(own, "gemini-interactions").body
